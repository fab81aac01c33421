//! Who parses and who indexes what, as the command line asks for it.

use crate::args::size;
use millrace::build::Pipeline;
use millrace::input::sample::SAMPLE_BYTES;
use millrace::schedule::placement::Rates;

/// How workers share the steps of the job. The index does not depend on it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Parts {
    /// Workers that parse, the last ones (all of them if left out).
    #[arg(long, value_name = "M")]
    parsers: Option<usize>,
    /// Indexers on the CPU (as many as workers if left out); for wei11.
    #[arg(long, value_name = "N1")]
    cpu_indexers: Option<usize>,
    /// Indexers on GPUs (one for each worker, up to sixteen on each GPU that is used, if left out);
    /// for wei11.
    #[arg(long, value_name = "N2")]
    gpu_indexers: Option<usize>,
}

/// How much is taken at a time, and what is known of the machine. The index does not depend on it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Tuning {
    /// Text that an indexer takes together, trie collection by trie collection; for wei11.
    #[arg(long, default_value = "16M", value_parser = size, value_name = "SIZE")]
    parse_block: u64,
    /// Files that are read at once, at most (if left out, as many as it takes to feed the parsers and
    /// memory allows; 1 is in turn).
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// The part of each gigabyte of input by which trie collections are given to indexers; 0 deals
    /// them out in turn.
    #[arg(long, default_value_t = SAMPLE_BYTES, hide_default_value = true, value_parser = bytes, value_name = "SIZE")]
    sample: u64,
    /// How fast parsers and indexers are taken to be when work is placed, in millions of tokens a second:
    /// a parser, an indexer on the CPU, a GPU, and a GPU on one trie collection (if left out, as
    /// `millrace bench pipeline --only rates` has measured on this machine, or else 8,12,300,0.25).
    #[arg(long, value_name = "PARSER,CPU,GPU,TREE")]
    rates: Option<Rates>,
}

/// A size that may be 0.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

impl Parts {
    /// Puts these options into those of a build.
    pub(super) fn fill(&self, pipeline: &mut Pipeline) {
        pipeline.parsers = self.parsers;
        pipeline.cpu_indexers = self.cpu_indexers;
        pipeline.gpu_indexers = self.gpu_indexers;
    }
}

impl Tuning {
    /// Puts these options into those of a build.
    pub(super) fn fill(&self, pipeline: &mut Pipeline) {
        pipeline.parse_block = self.parse_block;
        pipeline.readers = self.readers;
        pipeline.sample = self.sample;
        pipeline.rates = self.rates;
    }
}
