//! The options that divide the work of a build.

use crate::cli::args::size;
use crate::papers::{self, TokensArgs};
use millrace::inside::gpu::Gpus;
use millrace::inside::input::SAMPLE_BYTES;
use millrace::inside::schedule::Rates;
use millrace::{BuildOptions, Indexer};

/// How the work is shared out, how much is taken at a time, and what is known of the machine. The
/// index does not depend on it.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct SharingArgs {
    #[arg(long, default_value = "auto", value_name = "NAME", value_parser = papers::indexer)]
    #[arg(help = papers::help_of_indexers())]
    indexer: Indexer,
    /// GPUs to use: auto (all that `millrace devices` finds, or one for --indexer gpu), none, or a
    /// number.
    #[arg(long, default_value = "auto", value_name = "auto|none|N")]
    gpus: Gpus,
    /// Number of workers that parse [default: all].
    #[arg(long, value_name = "M")]
    parsers: Option<usize>,
    #[command(flatten)]
    tokens: TokensArgs,
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
        pipeline.handed = papers::INDEXERS;
        self.tokens.fill(pipeline);
        pipeline.readers = self.readers;
        pipeline.sample = self.sample;
        pipeline.rates = self.rates;
    }
}
