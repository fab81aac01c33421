//! Options of `--indexer wei11`.

use crate::cli::args::size;
use millrace::inside::build::Pipeline;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TokensArgs {
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
}

impl TokensArgs {
    pub(crate) fn fill(&self, pipeline: &mut Pipeline) {
        pipeline.cpu_indexers = self.cpu_indexers;
        pipeline.gpu_indexers = self.gpu_indexers;
        pipeline.parse_block = self.parse_block;
    }
}
