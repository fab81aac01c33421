//! Options of `--parallelism docp-ui` and `docp-pi`.

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DocpArgs {
    /// With docp-ui and docp-pi: start a query only when all workers have finished the one before,
    /// as in the paper.
    #[arg(long)]
    barrier: bool,
}

impl DocpArgs {
    pub(crate) fn has_barrier(&self) -> bool {
        self.barrier
    }
}
