//! The options that divide the work of a build.

use crate::cli::args::size;
use millrace::inside::gpu::Gpus;
use millrace::inside::input::SAMPLE_BYTES;
use millrace::inside::schedule::Rates;
use millrace::{BuildOptions, Indexer};

/// How the work is shared out, how much is taken at a time, and what is known of the machine. The
/// index does not depend on it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct SharingArgs {
    /// Which implementation builds the index: fast, wei11, gpu (needs a GPU), or auto: gpu if there
    /// is a GPU and the input has at least 128M for each worker, otherwise fast. The index is the
    /// same.
    #[arg(long, default_value = "auto", value_name = "NAME")]
    indexer: Indexer,
    /// GPUs to use: auto (all that `millrace devices` finds, or one for --indexer gpu), none, or a
    /// number.
    #[arg(long, default_value = "auto", value_name = "auto|none|N")]
    gpus: Gpus,
    /// Number of workers that parse [default: all].
    #[arg(long, value_name = "M")]
    parsers: Option<usize>,
    /// With --indexer wei11: number of indexers on the CPU [default: one for each worker].
    #[arg(long, value_name = "N1")]
    cpu_indexers: Option<usize>,
    /// With --indexer wei11: number of indexers on GPUs [default: one for each worker, at most 16
    /// on each GPU].
    #[arg(long, value_name = "N2")]
    gpu_indexers: Option<usize>,
    /// With --indexer wei11: bytes of text that an indexer takes at a time.
    #[arg(long, default_value = "16M", value_parser = size, value_name = "SIZE")]
    parse_block: u64,
    /// Greatest number of files that are read at the same time, each by one worker; 1 reads one
    /// file after the other. By default all workers read a file together where its format allows
    /// it, and of others as many are read as keep the parsers busy and fit the memory.
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// Bytes of each gigabyte of input to sample [default: 1M]. The sample decides which worker
    /// owns which terms; with 0 they are dealt out in turn.
    #[arg(long, default_value_t = SAMPLE_BYTES, hide_default_value = true, value_parser = bytes, value_name = "SIZE")]
    sample: u64,
    /// Speeds by which work is divided, in millions of tokens a second: of a parser, of an indexer
    /// on the CPU, of a GPU, and of a GPU on a single trie collection [default: what the experiment
    /// `pipeline --only rates` has measured on this machine, otherwise 8,12,300,0.25].
    #[arg(long, value_name = "PARSER,CPU,GPU,TREE")]
    rates: Option<Rates>,
}

/// A size that may be 0.
fn bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

impl SharingArgs {
    pub(super) fn fill(&self, options: &mut BuildOptions) {
        options.indexer = self.indexer;
        options.gpus = self.gpus;
        let pipeline = &mut options.pipeline;
        pipeline.parsers = self.parsers;
        pipeline.cpu_indexers = self.cpu_indexers;
        pipeline.gpu_indexers = self.gpu_indexers;
        pipeline.parse_block = self.parse_block;
        pipeline.readers = self.readers;
        pipeline.sample = self.sample;
        pipeline.rates = self.rates;
    }
}
