//! Table 1 and figure 4: how fast are lists decoded? Docids with localised sums (*GPU+LPS*), gaps alone (*GPU*), and
//! docids by one thread of the CPU.

use super::super::collection::{PlannedTerm, distinct, key};
use super::super::print;
use super::Bench;
use crate::bench::median;
use millrace::gpu::ding09::batch::{DingBatch, DingQuery, DingTerm};
use millrace::gpu::ding09::steps::{Decoded, decoding};
use millrace::index::list::{Columns, MAX_BLOCK};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// Lists of a bin of figure 4 that are measured.
const LISTS_OF_BIN: usize = 24;

/// Each list, or batch of lists, is decoded so often; the median counts.
const PASSES: usize = 7;

/// The paper's table 1, in millions of integers a second: the codec, one core, the GPU.
const TABLE_1: [(&str, f64, f64); 2] = [("rice", 310.63, 305.27), ("pfor", 1165.13, 1237.57)];

impl Bench<'_> {
    /// A batch of lists.
    fn lists(&self, terms: &[&PlannedTerm]) -> Vec<DingBatch> {
        let mut batches = vec![self.device.batch(true)];
        for term in terms {
            let (place, laid) = self.lists.places[&key(term)];
            let terms = vec![DingTerm { place, laid, weight: 1.0 }];
            let query = DingQuery { terms, k: 1, docids: 0..u32::MAX };
            let last = batches.len() - 1;
            if let Err(query) = batches[last].add(query, self.device.room()) {
                let mut next = self.device.batch(true);
                if next.add(query, self.device.room()).is_ok() {
                    batches.push(next);
                }
            }
        }
        batches.retain(|batch| !batch.is_empty());
        batches.iter_mut().for_each(DingBatch::finish);
        batches
    }

    /// Milliseconds on the device to decode the lists of a batch: of its steps alone.
    fn decode(&mut self, batch: &DingBatch, what: Decoded) -> anyhow::Result<f64> {
        let steps = decoding(batch, what);
        let mut ms = Vec::with_capacity(PASSES);
        for _ in 0..PASSES {
            let times = self.device.time_steps(batch, &steps)?;
            ms.push(times.iter().map(|&ms| f64::from(ms)).sum());
        }
        Ok(median(&mut ms))
    }

    /// Seconds that one thread of the CPU takes to decode the docids of a list.
    fn decode_on_cpu(&self, term: &PlannedTerm) -> anyhow::Result<f64> {
        let mut columns = Columns::default();
        let mut docids = [0; MAX_BLOCK];
        let mut seconds = Vec::with_capacity(PASSES);
        for _ in 0..PASSES {
            let start = Instant::now();
            for (run, entry) in self.snapshot.generation().runs().iter().zip(&term.entries) {
                let Some(entry) = *entry else { continue };
                let list = run.list(entry)?;
                let len = list.block_len();
                columns.close();
                for block in 0..list.full_blocks() {
                    let docids = &mut docids[..len];
                    list.decode_block(block, run.documents(), &mut columns, docids)?;
                    std::hint::black_box(docids);
                }
            }
            seconds.push(start.elapsed().as_secs_f64());
        }
        Ok(median(&mut seconds))
    }

    pub(super) fn table_1(&mut self) -> anyhow::Result<()> {
        let planned = self.planned.clone();
        let lists: Vec<&PlannedTerm> =
            distinct(&planned).into_iter().map(|(_, term)| term).collect();
        let postings: u64 = lists.iter().map(|term| u64::from(term.df)).sum();
        let codec = self.snapshot.generation().runs()[0].postings_header().form.name();
        let batches = self.lists(&lists);
        let mut rate = |what| -> anyhow::Result<f64> {
            let mut ms = 0.0;
            for batch in &batches {
                ms += self.decode(batch, what)?;
            }
            Ok(postings as f64 / ms / 1e3)
        };
        let (docids, gaps) = (rate(Decoded::Docids)?, rate(Decoded::Gaps)?);
        let mut cpu = 0.0;
        for term in lists.iter().step_by((lists.len() / 1000).max(1)) {
            cpu += self.decode_on_cpu(term)?;
        }
        let some = lists.iter().step_by((lists.len() / 1000).max(1));
        let of_cpu: u64 = some.map(|term| u64::from(term.df)).sum();
        let paper = TABLE_1.into_iter().find(|(name, ..)| *name == codec);
        print(json!({
            "row": "ding09-table1", "codec": codec, "lists": lists.len(), "postings": postings,
            "docids_m_per_s": docids, "gaps_m_per_s": gaps,
            "cpu_docids_m_per_s": of_cpu as f64 / cpu / 1e6,
            "paper_gpu_m_per_s": paper.map(|(_, _, gpu)| gpu),
            "paper_cpu_m_per_s": paper.map(|(_, cpu, _)| cpu),
        }))
    }

    pub(super) fn figure_4(&mut self) -> anyhow::Result<()> {
        let planned = self.planned.clone();
        let mut bins: BTreeMap<u32, Vec<&PlannedTerm>> = BTreeMap::new();
        for (_, term) in distinct(&planned) {
            bins.entry(term.df.max(1000).next_power_of_two()).or_default().push(term);
        }
        for (upto, lists) in bins {
            let step = (lists.len() / LISTS_OF_BIN).max(1);
            let (mut count, mut postings, mut ms, mut cpu) = (0, 0u64, [0.0; 2], 0.0);
            for term in lists.iter().step_by(step).take(LISTS_OF_BIN) {
                let Some(batch) = self.lists(&[term]).pop() else { continue };
                for (ms, what) in ms.iter_mut().zip([Decoded::Docids, Decoded::Gaps]) {
                    *ms += self.decode(&batch, what)?;
                }
                cpu += self.decode_on_cpu(term)?;
                (count, postings) = (count + 1, postings + u64::from(term.df));
            }
            print(json!({
                "row": "ding09-figure4", "postings_upto": upto, "lists": count,
                "docids_m_per_s": postings as f64 / ms[0] / 1e3,
                "gaps_m_per_s": postings as f64 / ms[1] / 1e3,
                "cpu_docids_m_per_s": postings as f64 / cpu / 1e6,
            }))?;
        }
        Ok(())
    }
}
