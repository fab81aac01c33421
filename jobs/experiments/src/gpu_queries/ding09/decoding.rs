//! Table 1 and figure 4: how fast lists are decoded. Docids with localised sums (*GPU+LPS*), and
//! gaps alone (*GPU*); `experiments codecs` has the CPU. Postings behind the whole blocks of a list
//! are plain numbers on a device, and do not count.

use super::super::harness::{PlannedTerm, batches_of, distinct, with};
use super::{Ding09Bench, asked};
use crate::numbers::median;
use crate::rows::print;
use millrace::inside::papers::{Decoded, DingTuning, decoding};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Lists of a bin of figure 4 that are measured.
const LISTS_OF_BIN: usize = 24;

/// Each list, or batch of lists, is decoded so often; the median counts.
const PASSES: usize = 7;

/// The paper's table 1, in millions of integers a second: the codec, one core, the GPU.
const TABLE_1: [(&str, f64, f64); 2] = [("rice", 310.63, 305.27), ("pfor", 1165.13, 1237.57)];

impl Ding09Bench<'_> {
    /// Postings of a list in whole blocks.
    fn coded(&self, term: &PlannedTerm) -> u32 {
        let generation = self.prepared.snapshot.generation();
        let block = generation.runs()[0].postings_header().form.block_len() as u32;
        term.entries.iter().flatten().map(|entry| entry.df - entry.df % block).sum()
    }

    /// Millions of postings that are decoded in a second, of lists in batches of this many.
    fn rates(&mut self, lists: &[&PlannedTerm], size: usize) -> anyhow::Result<Value> {
        let postings: f64 = lists.iter().map(|term| f64::from(self.coded(term))).sum();
        let queries = lists.iter().map(|term| vec![asked(term)]);
        let how = DingTuning::default();
        let batches = batches_of(&mut self.device, how, true, queries, 1, size)?;
        let mut rates = [0.0; 2];
        for (rate, what) in rates.iter_mut().zip([Decoded::Docids, Decoded::Gaps]) {
            let mut ms = 0.0;
            for batch in &batches {
                let steps = decoding(batch, what);
                let pass = |_| -> anyhow::Result<f64> {
                    let times = self.device.time_steps(batch, &steps)?;
                    Ok(times[1..].iter().copied().map(f64::from).sum())
                };
                ms += median(&mut (0..PASSES).map(pass).collect::<anyhow::Result<Vec<_>>>()?);
            }
            *rate = postings / ms / 1e3;
        }
        let [docids, gaps] = rates;
        Ok(json!({"lists": lists.len(), "docids_m_per_s": docids, "gaps_m_per_s": gaps}))
    }

    pub(super) fn table_1(&mut self) -> anyhow::Result<()> {
        let lists = distinct(&self.prepared.planned);
        let lists: Vec<&PlannedTerm> = lists.into_iter().map(|(_, term)| term).collect();
        let runs = self.prepared.snapshot.generation().runs();
        let codec = runs[0].postings_header().form.name();
        let paper = TABLE_1.into_iter().find(|(name, ..)| *name == codec);
        let row = json!({
            "row": "ding09-table1", "codec": codec,
            "paper_gpu_m_per_s": paper.map(|(_, _, gpu)| gpu),
            "paper_cpu_m_per_s": paper.map(|(_, cpu, _)| cpu),
        });
        print(with(row, self.rates(&lists, usize::MAX)?))
    }

    pub(super) fn figure_4(&mut self) -> anyhow::Result<()> {
        let mut bins: BTreeMap<u32, Vec<&PlannedTerm>> = BTreeMap::new();
        for (_, term) in distinct(&self.prepared.planned) {
            let coded = self.coded(term);
            if coded == 0 {
                continue;
            }
            bins.entry(coded.max(1000).next_power_of_two()).or_default().push(term);
        }
        for (upto, lists) in bins {
            let step = lists.len().div_ceil(LISTS_OF_BIN);
            let lists: Vec<_> = lists.into_iter().step_by(step).collect();
            let row = json!({"row": "ding09-figure4", "postings_upto": upto});
            print(with(row, self.rates(&lists, 1)?))?;
        }
        Ok(())
    }
}
