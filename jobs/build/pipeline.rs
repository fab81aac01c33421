//! Who parses and who indexes what, as the command line asks for it.

use super::{Args, Prepared};
use crate::Usage;
use crate::args::{show_count, size};
use crate::gpus::Chosen;
use millrace::dataflow::build::{Indexing, MakeIndexer};
use millrace::dataflow::sample::{SAMPLE_BYTES, Sample, sample};
use millrace::dictionary::closed::{ClosedError, ClosedTerms};
use millrace::dictionary::indexer::{ParsedBlock, TokenIndexer};
use millrace::dictionary::owners::Owners;
use millrace::dictionary::run::{RunDictionary, SortedRun};
use millrace::gpu::indexer::cuda::Sizes;
use millrace::input::splits::Plan;
use millrace::order::Budget;
use millrace::schedule::placement::{Placed, Rates, by_weight, in_turn};
use millrace::schedule::roles::Roles;
use millrace::text::analysis::Analysis;
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
    /// Indexers on GPUs (one for each worker, up to sixteen on each GPU that is used, if left out);
    /// for wei11.
    #[arg(long, value_name = "N2")]
    pub(crate) gpu_indexers: Option<usize>,
    /// Text that an indexer takes together, trie collection by trie collection; for wei11.
    #[arg(long, default_value = "16M", value_parser = size, value_name = "SIZE")]
    pub(crate) parse_block: u64,
    /// Files that are read at once, at most (if left out, as many as it takes to feed the parsers and
    /// memory allows; 1 is in turn).
    #[arg(long, value_name = "N")]
    pub(crate) readers: Option<usize>,
    /// The part of each gigabyte of input by which trie collections are given to indexers; 0 deals
    /// them out in turn.
    #[arg(long, default_value_t = SAMPLE_BYTES, hide_default_value = true, value_parser = bytes, value_name = "SIZE")]
    pub(crate) sample: u64,
    /// How fast indexers are taken to be when work is placed, in millions of tokens a second: one on
    /// the CPU, one on a GPU, and a GPU on one trie collection.
    #[arg(long, value_name = "PARSER,CPU,GPU,TREE")]
    pub(crate) rates: Option<Rates>,
    /// Indexers throw away what they get: for the bench of parsers.
    #[arg(skip)]
    pub(crate) parse_only: bool,
}

/// Takes tokens for no index at all.
struct Discard;

impl TokenIndexer for Discard {
    fn append(&mut self, _: ParsedBlock) -> Result<(), ClosedError> {
        Ok(())
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        Ok(0)
    }

    fn most_blocks(&self) -> usize {
        1
    }

    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError> {
        Ok(Box::new(SortedRun::from(RunDictionary::default())))
    }
}

/// Makes indexers that throw away what they get.
pub(super) fn discard() -> MakeIndexer {
    Box::new(|_| Ok(Box::new(Discard)))
}

/// A size that may be 0.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// What a GPU indexer may pin where memory allows it, however small its share is.
const ENOUGH_HOST_BYTES: usize = 8 << 20;

impl PipelineArgs {
    /// Who parses and who indexes.
    pub(super) fn roles(
        &self,
        indexing: Indexing,
        workers: usize,
        budget: &Budget,
        gpus: &Chosen,
        quiet: bool,
    ) -> anyhow::Result<Roles> {
        let asked = [("--cpu-indexers", self.cpu_indexers), ("--gpu-indexers", self.gpu_indexers)];
        if indexing == Indexing::Postings
            && let Some((option, _)) = asked.iter().find(|(_, asked)| asked.is_some())
        {
            return Err(Usage(format!("{option}: give it with --indexer wei11")).into());
        }
        // Half of what may be under way is for pinned memory at most.
        let host_bytes = budget.under_way() * workers as u64 / 2;
        let gpu_indexers = gpus.indexers(self.gpu_indexers, workers, host_bytes, quiet)?;
        let roles = Roles::new(workers, self.parsers, self.cpu_indexers, gpu_indexers);
        Ok(roles.map_err(|e| Usage(e.to_string()))?.on_devices(gpus.devices()))
    }

    /// What each GPU indexer may take of the host's memory: room for two blocks on their way, which
    /// are its share of what is parsed, and what comes back, out of a quarter of the memory for all
    /// that is under way. Pinning is slow, and a larger block goes in parts.
    pub(super) fn gpu_sizes(&self, budget: &Budget, roles: &Roles, plan: &Plan) -> Sizes {
        let under_way = budget.under_way() as usize * roles.workers;
        let indexers = roles.gpu_indexers.max(1);
        let blocks = usize::try_from(self.parse_block).unwrap_or(usize::MAX).saturating_mul(4);
        let host_bytes = (blocks / indexers).max(ENOUGH_HOST_BYTES).min(under_way / 4 / indexers);
        let host_bytes = host_bytes.max(Sizes::LEAST_HOST_BYTES);
        // A run costs less than its text, for which the bytes of the files stand; twice its share,
        // for shares are not equal. A pipe, which has no size, may bring anything.
        let known = plan.inputs.iter().all(|input| input.bytes > 0);
        let text = if known { plan.bytes() / indexers as u64 * 2 } else { u64::MAX };
        Sizes { host_bytes, run_limit: budget.run_limit.min(text) }
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

/// What a part of the input says of all of it; `None` when nobody asks, or it cannot be read twice.
pub(super) fn sample_of(args: &Args, plan: &Plan, analysis: &Analysis) -> Option<Sample> {
    match args.pipeline.sample {
        0 => None,
        bytes => sample(plan, analysis, args.max_document, indexing(args), bytes),
    }
}

/// Places the trie collections by a sample of the input.
pub(super) fn place(args: &Args, input: &mut Prepared) -> Placing {
    let (roles, indexing) = (&input.roles, indexing(args));
    let sample = match roles.indexers() {
        // One owner gets everything.
        1 => None,
        _ => input.sample.take().or_else(|| sample_of(args, &input.plan, &input.analysis)),
    };
    let Some(sample) = sample else {
        let report = json!({"by": "turn", "indexers": roles.indexers()});
        return Placing { owners: Arc::new(in_turn(roles)), report };
    };
    let placed = by_weight(&sample.weights, roles, &args.pipeline.rates.unwrap_or_default());
    if indexing == Indexing::Tokens && !args.workers.common.quiet {
        say!("millrace: {}", describe(&placed, &sample, roles));
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
            ", the rest to {n} GPU indexers on {} GPUs (expected {:.1} s on CPU and {:.1} s on GPU for 10^9 tokens)",
            roles.gpus, placed.expected.0, placed.expected.1
        ),
    };
    format!(
        "placement: {on_cpu}{on_gpu}; by {} tokens from {} places in {:.3} s",
        show_count(tokens),
        sample.places,
        sample.seconds
    )
}
