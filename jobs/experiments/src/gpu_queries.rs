//! `experiments gpu-queries`: how fast a device answers queries of an index, and that it is right.
//!
//! A sample of the answers is compared with those of the CPU's exhaustive search, to the bit.
//! Isolated: the engine, from batches of planned queries to their hits in host memory.

mod ding09;
mod harness;
mod huang;
mod usual;
mod wang;

use crate::args::all_queries;
use millrace::Query;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Index of the same documents that suits the CPU best, which is measured beside devices by
    /// ding09 and huang (default: the same).
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,
    /// Only rows whose names begin so (of wang also several, separated by commas): check, or-10,
    /// or-1000, and-10, latency. ding09 is another engine, for indexes of rice or pfor, with rows
    /// ding09-check, -table1, -figure4, -figure6, -table2, -table3 and -batched; huang is one for
    /// newpfd with blocks of 64, with rows huang-check, -table1-K-THREADS, -figure3, -figure5,
    /// -table2-CORES-THREADS, where CORES is one or all, and -table3-THREADS; wang is one for
    /// indexes in global order, with rows wang-check, -figure4, -figure5, -figure6, -figure8,
    /// -figure9 and -figure10.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// With `impact` the default engine answers OR for learned weights.
    #[arg(long, default_value = "bm25", value_parser = ["bm25", "impact"], value_name = "NAME")]
    score: String,
    /// Number of queries in a batch (default: 256; huang 16384, wang 4096).
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Queries whose answers are compared with the CPU's.
    #[arg(long, default_value_t = 256, value_name = "N")]
    sample: usize,
    /// Only queries with this many distinct terms.
    #[arg(long, default_value = "1..128", value_parser = parse_terms, value_name = "A..B")]
    terms: (usize, usize),
    /// Only AND queries of which this many documents have all terms.
    #[arg(long, default_value_t = 1, value_name = "N")]
    least_hits: usize,
    /// Bytes of the device's memory for lists.
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size)]
    gpu_memory: Option<u64>,
    /// Milliseconds within which queries of wang are to be answered in figures 5 and 9.
    #[arg(long, value_name = "MS,...", value_delimiter = ',', default_value = "20,150")]
    deadline_ms: Vec<f64>,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out
    /// or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

fn parse_terms(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "give A..B, both included".to_string();
    let (least, most) = text.split_once("..").ok_or_else(wrong)?;
    Ok((least.parse().map_err(|_| wrong())?, most.parse().map_err(|_| wrong())?))
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        let only = self.only.as_deref().unwrap_or_default();
        only.split(',').any(|only| name.starts_with(only))
    }

    /// Queries of a batch, or what they are if nobody says.
    fn batch_or(&self, usual: usize) -> usize {
        self.batch.map_or(usual, NonZeroUsize::get)
    }
}

type RunExperiments = fn(&Args, &[Query]) -> anyhow::Result<()>;

const ENGINES: [(&str, RunExperiments); 3] =
    [("ding09", ding09::run), ("huang", huang::run), ("wang", wang::run)];

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let queries = all_queries(args.queries.as_deref())?;
    let only = args.only.as_deref().unwrap_or_default();
    let named = ENGINES.iter().find(|(name, _)| only.starts_with(name));
    named.map_or(usual::run as RunExperiments, |(_, run)| *run)(args, &queries)
}
