//! Options of how queries are spread over workers.

use crate::Usage;
use crate::papers::{self, DocpArgs};
use clap::builder::PossibleValuesParser;
use millrace::inside::query::{Model, spreading};

/// How queries are spread over workers.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct SpreadingArgs {
    #[arg(long, default_value = "inter", value_name = papers::names_of_models())]
    #[arg(help = papers::help_of_models(), value_parser = PossibleValuesParser::new(papers::models()))]
    parallelism: String,
    /// With fgqp: cut the next query into tasks when N tasks or fewer are left to do [default: 5].
    /// 5 gives low latency, 150 high throughput.
    #[arg(long, value_name = "N")]
    delta: Option<usize>,
    /// With fgqp: do not cut queries that are expected to take fewer microseconds than this
    /// [default: 100]. 0 cuts every query.
    #[arg(long, value_name = "US")]
    cut_us: Option<u32>,
    /// With fgqp: microseconds that a worker without work keeps looking for some before it sleeps
    /// [default: 200]. Waking a worker takes longer than finding it awake.
    #[arg(long, value_name = "US")]
    spin_us: Option<u32>,
    #[command(flatten)]
    docp: DocpArgs,
}

impl SpreadingArgs {
    pub(super) fn model(&self) -> Result<Model, Usage> {
        let Self { delta, cut_us, spin_us, ref docp, .. } = *self;
        let barrier = docp.has_barrier();
        let given = spreading::Spreading { delta, cut_us, spin_us, barrier };
        Ok(given.model(&self.parallelism, papers::MODELS)?)
    }
}
