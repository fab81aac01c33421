//! How the queries of a server are answered.

use super::Args;
use super::gpus::Where;
use super::ranking::RankingArgs;
use super::spread::SpreadingArgs;
use crate::cli::args::{Workers, as_given};
use std::num::NonZeroUsize;

/// How the queries of a server are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServingArgs {
    #[command(flatten)]
    pub(crate) ranking: RankingArgs,
    /// Greatest number of queries that are taken together [default: 64, or 1024 with a GPU].
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,
    /// Greatest number of queries that wait or are being answered. Further ones are refused with
    /// status 503.
    #[arg(long, value_name = "N", default_value = "1024")]
    max_queue: NonZeroUsize,
    #[command(flatten)]
    pub(crate) workers: Workers,
    #[command(flatten)]
    spreading: SpreadingArgs,
    #[command(flatten)]
    place: Where,
}

impl Args {
    /// Those of a server: what only files of queries have is as if it were not asked for.
    pub(crate) fn of_server(server: &ServingArgs) -> anyhow::Result<Self> {
        let usual = as_given(&["--index".into(), ".".into()])?;
        let ServingArgs { ranking, batch, max_queue, workers, spreading, place } = server.clone();
        let max_queue = Some(max_queue);
        let delay_ms = 0;
        Ok(Self { ranking, batch, delay_ms, max_queue, workers, spreading, place, ..usual })
    }
}
