//! `millrace evaluate`.

use crate::cli::args::{Common, stdin_once};
use millrace::inside::evaluate::{differences, means, queries};
use millrace::{Comparison, Evaluation, Measure, Qrels, Rankings};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// File of judgements: TREC's `qid iteration document relevance`, or the TSV of BEIR.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// Measure to print: nDCG@k, AP, RR, P@k, R@k, Success@k, Rprec, ERR@k, RBP(p=0.8), Bpref or
    /// Judged@k. P(rel=2)@10 counts documents of relevance 2 or more. trec_eval's names are read
    /// too: ndcg_cut_10. May be given several times [default: nine measures].
    #[arg(short, long = "measure", value_name = "NAME", value_parser = measure)]
    measures: Vec<Measure>,
    /// Also print the values of each query.
    #[arg(long)]
    per_query: bool,
    /// Print one JSON object for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
    /// Runs in TREC format; - is standard input. Each is compared with the first.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

pub(crate) fn measure(text: &str) -> Result<Measure, String> {
    text.parse().map_err(|error: millrace::EvaluateError| error.to_string())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    stdin_once(args.runs.iter().chain([&args.qrels]))?;
    let measures = if args.measures.is_empty() { Measure::usual() } else { args.measures.clone() };
    let qrels = Qrels::open(&args.qrels)?;
    let mut all: Vec<Evaluation> = Vec::new();
    for path in &args.runs {
        let found = Evaluation::new(&mut Rankings::open(path)?, &qrels, &measures)?;
        if !args.common.quiet {
            found.remarks().iter().for_each(|remark| say!("{remark}"));
        }
        all.push(found);
    }
    let against: Vec<Option<Vec<Comparison>>> =
        all.iter().enumerate().map(|(at, run)| (at > 0).then(|| run.against(&all[0]))).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        for (run, against) in all.iter().zip(&against) {
            writeln!(out, "{}", run.as_json(&all[0].run, against.as_deref())?)?;
        }
    } else {
        if args.per_query {
            out.write_all(queries(&all).as_bytes())?;
        }
        out.write_all(means(&all).as_bytes())?;
        out.write_all(differences(&all, &against).as_bytes())?;
    }
    let runs: Vec<Value> =
        all.iter().map(|run| json!({"run": run.run, "measures": run.named_means()})).collect();
    let totals = json!({
        "job": "evaluate",
        "qrels": args.qrels.display().to_string(),
        "queries": qrels.len(),
        "runs": runs,
    });
    let seconds = start.elapsed().as_secs_f64();
    crate::cli::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}
