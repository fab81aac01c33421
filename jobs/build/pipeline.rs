//! Who parses and who indexes what, as the command line asks for it.

use super::{Args, Prepared};
use crate::Usage;
use crate::args::{show_count, size};
use millrace::dataflow::build::{Indexing, MakeIndexer};
use millrace::dataflow::sample::{SAMPLE_BYTES, Sample, sample};
use millrace::dictionary::btree::indexer::CpuIndexer;
use millrace::dictionary::owners::Owners;
use millrace::schedule::placement::{Placed, Rates, by_weight, in_turn};
use millrace::schedule::roles::Roles;
use serde_json::{Value, json};
use std::sync::Arc;

/// How workers share the steps of the job. The index does not depend on it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PipelineArgs {
    /// Workers that parse, the last ones (all of them if left out).
    #[arg(long, value_name = "M")]
    pub(crate) parsers: Option<usize>,
    /// Indexers on the CPU (as many as workers if left out); for wei11.
    #[arg(long, value_name = "N1")]
    pub(crate) cpu_indexers: Option<usize>,
    /// Text that an indexer takes together, trie collection by trie collection; for wei11.
    #[arg(long, default_value = "16M", value_parser = size, value_name = "SIZE")]
    pub(crate) parse_block: u64,
    /// Files that are read at once (as many as workers and memory allow if left out; 1 is in turn).
    #[arg(long, value_name = "N")]
    pub(crate) readers: Option<usize>,
    /// The part of each gigabyte of input by which trie collections are given to indexers; 0 deals
    /// them out in turn.
    #[arg(long, default_value_t = SAMPLE_BYTES, hide_default_value = true, value_parser = bytes, value_name = "SIZE")]
    pub(crate) sample: u64,
}

/// A size that may be 0.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

impl PipelineArgs {
    /// Who parses and who indexes.
    pub(super) fn roles(&self, indexing: Indexing, workers: usize) -> Result<Roles, Usage> {
        if indexing == Indexing::Postings && self.cpu_indexers.is_some() {
            return Err(Usage("--cpu-indexers: give it with --indexer wei11".into()));
        }
        Roles::new(workers, self.parsers, self.cpu_indexers, 0).map_err(|e| Usage(e.to_string()))
    }
}

/// What `--indexer` says that indexers get.
pub(super) fn indexing(args: &Args) -> Indexing {
    match args.indexer.as_str() {
        "wei11" => Indexing::Tokens,
        _ => Indexing::Postings,
    }
}

/// Which indexer owns what, and what that was decided by.
pub(super) struct Placing {
    pub(super) owners: Arc<Owners>,
    pub(super) report: Value,
}

/// Places the trie collections by a sample of the input.
pub(super) fn place(args: &Args, input: &Prepared) -> Placing {
    let Prepared { roles, analysis, plan, .. } = input;
    let indexing = indexing(args);
    let sample = match args.pipeline.sample {
        0 => None,
        // One owner gets everything.
        _ if roles.indexers() == 1 => None,
        bytes => sample(plan, analysis, args.max_document, indexing, bytes),
    };
    let Some(sample) = sample else {
        let report = json!({"by": "turn", "indexers": roles.indexers()});
        return Placing { owners: Arc::new(in_turn(roles)), report };
    };
    let placed = by_weight(&sample.weights, roles, &Rates::default());
    if indexing == Indexing::Tokens && !args.workers.common.quiet {
        eprintln!("millrace: {}", describe(&placed, &sample, roles));
    }
    let report = json!({
        "by": "sample",
        "sample_bytes": sample.bytes,
        "sample_places": sample.places,
        "sample_seconds": sample.seconds,
        "sample_weight": sample.weights.iter().sum::<u64>(),
        "collections": placed.seen,
        "popular_collections": placed.popular,
        "cpu_share": placed.cpu_share,
        "cpu_heaviest": placed.cpu_heaviest,
        "cpu_indexers": roles.cpu_indexers,
        "gpu_indexers": roles.gpu_indexers,
        "expected_cpu_s_per_giga_token": placed.expected.0,
        "expected_gpu_s_per_giga_token": placed.expected.1,
    });
    Placing { owners: Arc::new(placed.owners), report }
}

/// One line for people.
fn describe(placed: &Placed, sample: &Sample, roles: &Roles) -> String {
    let tokens: u64 = sample.weights.iter().sum();
    let on_cpu = format!(
        "{} of {} trie collections with {:.1} % of the tokens to {} CPU indexers (heaviest {:.2} of the mean)",
        show_count(placed.popular as u64),
        show_count(placed.seen as u64),
        placed.cpu_share * 100.0,
        roles.cpu_indexers,
        placed.cpu_heaviest,
    );
    let on_gpu = match roles.gpu_indexers {
        0 => String::new(),
        n => format!(
            ", the rest to {n} GPU indexers (expected {:.1} s on CPU and {:.1} s on GPU for 10^9 tokens)",
            placed.expected.0, placed.expected.1
        ),
    };
    format!(
        "placement: {on_cpu}{on_gpu}; by {} tokens from {} places in {:.3} s",
        show_count(tokens),
        sample.places,
        sample.seconds
    )
}

/// Makes each indexer of tokens by its number: those on GPUs come first.
pub(super) fn make_indexer() -> MakeIndexer {
    Box::new(|_| Ok(Box::new(CpuIndexer::default())))
}
