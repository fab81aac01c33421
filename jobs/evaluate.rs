//! `millrace evaluate`.

use crate::args::{Common, stdin_once};
use millrace::evaluate::Evaluation;
use millrace::evaluate::compare::Comparison;
use millrace::evaluate::measure::Measure;
use millrace::evaluate::qrels::Qrels;
use millrace::evaluate::run::Rankings;
use millrace::evaluate::table::{differences, means, queries};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Judgements: TREC's `qid iteration document relevance`, or BEIR's TSV.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// A measure; may be given more than once. nDCG@k, AP, RR, P@k, R@k, Success@k, Bpref, Judged@k;
    /// with the least relevance that counts as P(rel=2)@10 (default: nine of them).
    #[arg(short, long = "measure", value_name = "NAME", value_parser = measure)]
    measures: Vec<Measure>,
    /// Print the values of every query too.
    #[arg(long)]
    per_query: bool,
    /// Print a JSON object for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
    /// Runs, as `query` writes them or others do; - is standard input. All are compared with the
    /// first.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

pub(crate) fn measure(text: &str) -> Result<Measure, String> {
    text.parse().map_err(|error: millrace::evaluate::EvaluateError| error.to_string())
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    stdin_once(args.runs.iter().chain([&args.qrels]))?;
    let measures = if args.measures.is_empty() { Measure::usual() } else { args.measures.clone() };
    let qrels = Qrels::open(&args.qrels)?;
    let mut all: Vec<Evaluation> = Vec::new();
    for path in &args.runs {
        let found = Evaluation::new(&mut Rankings::open(path)?, &qrels, &measures)?;
        if !args.common.quiet {
            notes(&found);
        }
        all.push(found);
    }
    let against: Vec<Option<Vec<Comparison>>> =
        all.iter().enumerate().map(|(at, run)| (at > 0).then(|| run.against(&all[0]))).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        for (run, against) in all.iter().zip(&against) {
            writeln!(out, "{}", object(run, &all[0].run, against.as_deref())?)?;
        }
    } else {
        if args.per_query {
            out.write_all(queries(&all).as_bytes())?;
        }
        out.write_all(means(&all).as_bytes())?;
        out.write_all(differences(&all, &against).as_bytes())?;
    }
    let runs: Vec<Value> =
        all.iter().map(|run| json!({"run": run.run, "measures": named(run)})).collect();
    let totals = json!({
        "job": "evaluate",
        "qrels": args.qrels.display().to_string(),
        "queries": qrels.len(),
        "runs": runs,
    });
    let seconds = start.elapsed().as_secs_f64();
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}

/// Says what does not fit together, which may be meant.
pub(crate) fn notes(run: &Evaluation) {
    let judged = run.per_query.len();
    if run.without_hits > 0 {
        say!(
            "{}: {} of {judged} judged queries have no document in this run and count as 0",
            run.run,
            run.without_hits
        );
    }
    if run.not_judged > 0 {
        say!("{}: {} queries have no judgements and do not count", run.run, run.not_judged);
    }
}

/// The means by the names of their measures.
pub(crate) fn named(run: &Evaluation) -> Value {
    let rows = run.measures.iter().zip(&run.means);
    rows.map(|(measure, mean)| (measure.to_string(), json!(mean)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A run's object, which has also, for all runs but the first, how it compares with that.
fn object(run: &Evaluation, first: &str, against: Option<&[Comparison]>) -> anyhow::Result<String> {
    let mut text = serde_json::to_string(run)?;
    if let Some(against) = against {
        let rows = run.measures.iter().zip(against);
        let rows = rows.map(|(measure, row)| Ok((measure.to_string(), serde_json::to_value(row)?)));
        let measures: serde_json::Map<String, Value> = rows.collect::<anyhow::Result<_>>()?;
        let against = json!({"run": first, "measures": measures});
        text.pop();
        text += &format!(",\"against\":{against}}}");
    }
    Ok(text)
}
