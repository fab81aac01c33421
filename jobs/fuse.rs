//! `millrace fuse`.

use crate::Usage;
use crate::cli::args::stdin_once;
use crate::cli::progress::{DrawnProgress, in_bytes};
use crate::cli::report;
use crate::query::parse_tag;
use millrace::inside::evaluate::{Method, check_weights, fuse, read_runs, write_run};
use millrace::inside::query::RunTag;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// rrf: the sum of 1 / (k + rank) over the runs. combsum: the sum of the scores, after the
    /// scores of each run are scaled to the range from 0 to 1. combmnz: that times the number of
    /// runs that have the document. combmax, combmin: the greatest or least of these scores.
    #[arg(long, default_value = "rrf", value_parser = Method::NAMES, hide_possible_values = true)]
    #[arg(value_name = "rrf|combsum|combmnz|combmax|combmin")]
    method: String,
    /// For each run a number, 0 or more, that its part of a score is multiplied by, separated by
    /// commas [default: 1 for each].
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    weights: Option<Vec<f64>>,
    /// The k of rrf [default: 60]. The greater it is, the less the first ranks count for.
    #[arg(long, value_name = "F")]
    rrf_k: Option<f64>,
    /// Greatest number of documents for a query.
    #[arg(short, default_value = "1000", value_name = "K", value_parser = crate::query::ranking::parse_k)]
    k: usize,
    /// Name of the run: the last word of each line.
    #[arg(long, default_value = "fused", value_parser = parse_tag, value_name = "NAME")]
    tag: RunTag,
    /// Two runs or more, in TREC format or another (docs/experiments.md); - is standard input.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

/// Writes a TREC run to standard output.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.runs.len() < 2 {
        return Err(Usage("give two runs or more".into()).into());
    }
    stdin_once(&args.runs)?;
    let method = Method::named(&args.method, args.rrf_k).map_err(Usage::from)?;
    let weights = args.weights.as_deref();
    weights.map(|all| check_weights(all, args.runs.len())).transpose().map_err(Usage::from)?;
    let (progress, drawn) = DrawnProgress::begin(in_bytes("reading"));
    let runs = read_runs(&args.runs, &progress).collect::<Result<Vec<_>, _>>()?;
    drop(drawn);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut queries = 0;
    // The first ten of each query, for a report.
    let mut first: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for ranking in fuse(&runs, method, weights.unwrap_or_default(), args.k)? {
        write_run(&ranking, args.tag.name(), &mut out)?;
        queries += 1;
        if report::is_asked() {
            let (qid, hits) = ranking;
            first.insert(qid, hits.into_iter().take(10).map(|hit| hit.0).collect());
        }
    }
    out.flush()?;
    let is_first = |(qid, name): &(&str, &[u8])| {
        first.get(*qid).is_some_and(|names| names.iter().any(|other| other == name))
    };
    let found = runs.iter().zip(&args.runs).map(|(run, path)| {
        json!({
            "run": path.display().to_string(),
            "documents": run.documents().count(),
            "first_10": run.documents().filter(is_first).count(),
        })
    });
    let totals = json!({
        "job": "fuse",
        "method": args.method,
        "weights": args.weights,
        "runs": args.runs.iter().map(|run| run.display().to_string()).collect::<Vec<_>>(),
        "queries": queries,
        "first_10": first.values().map(Vec::len).sum::<usize>(),
        "found": found.collect::<Vec<_>>(),
    });
    report::write(totals, 1)
}
