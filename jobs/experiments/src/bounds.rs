//! `experiments bounds`: how tight the score bounds of the blocks of an index are, and what they
//! cost.
//!
//! Isolated: bounds against the best score of the same block, with a weight of 1, so that every
//! block counts alike. Lists of fewer than 128 postings have no bounds and are left out of all but
//! the bytes.

use millrace::Generation;
use millrace::inside::index::LexiconStream;
use millrace::inside::score::{BOUND_BYTES, Bm25, BoundNorms, score};
use std::path::PathBuf;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
}

/// Bytes of the window on a lexicon.
const WINDOW_BYTES: usize = 64 << 10;

/// Sums over blocks, or lists.
#[derive(Default)]
struct Sums {
    count: u64,
    best: f64,
    bound: f64,
}

impl Sums {
    fn add(&mut self, best: f32, bound: f32) {
        self.count += 1;
        self.best += f64::from(best);
        self.bound += f64::from(bound);
    }

    fn ratio(&self) -> f64 {
        self.bound / self.best
    }
}

/// Reads every list and prints one line.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bm25 = Bm25::default();
    let generation = Generation::open(&args.index, false)?;
    let statistics = &generation.manifest().statistics;
    let mean = statistics.tokens as f64 / statistics.documents.max(1) as f64;
    let bounds = BoundNorms::new(&bm25, mean);
    let mut norms = Vec::new();
    bm25.norms(generation.documents().lengths(), mean, &mut norms);
    let mut blocks = Sums::default();
    let mut lists = Sums::default();
    let mut bound_bytes = 0;
    let mut list_bytes = 0;
    for run in generation.runs() {
        let norms = &norms[run.first_docid() as usize..][..run.documents() as usize];
        let mut terms = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
        while terms.advance()? {
            let term = terms.term().list;
            list_bytes += term.bytes;
            let list = run.list(term)?;
            let of_blocks = list.bounds();
            let of_list = list.list_bounds();
            if of_blocks.is_empty() {
                continue;
            }
            let own = if of_list.len() < of_blocks.len() { of_list.len() } else { 0 };
            bound_bytes += (BOUND_BYTES * (of_blocks.len() + own)) as u64;
            let mut block = 0;
            let mut best_of_list = 0f32;
            list.check(run.documents(), None, |docids, tfs| {
                let each = docids.iter().zip(tfs);
                let best = each.map(|(&docid, &tf)| score(1.0, tf, norms[docid as usize]));
                let best = best.fold(0.0, f32::max);
                best_of_list = best_of_list.max(best);
                blocks.add(best, bounds.most(1.0.into(), &of_blocks[block]));
                block += 1;
            })?;
            let of_list = of_list.iter().map(|bound| bounds.most(1.0.into(), bound));
            lists.add(best_of_list, of_list.fold(0.0, f32::max));
        }
    }
    let postings = statistics.postings.max(1) as f64;
    let line = serde_json::json!({
        "blocks": blocks.count,
        "mean_best": blocks.best / blocks.count.max(1) as f64,
        "mean_bound_over_mean_best": blocks.ratio(),
        "lists": lists.count,
        "lists_mean_bound_over_mean_best": lists.ratio(),
        "bound_bytes_a_posting": bound_bytes as f64 / postings,
        "list_bytes_a_posting": list_bytes as f64 / postings,
    });
    crate::rows::print(line)
}
