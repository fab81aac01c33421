//! `millrace evaluate`.

use crate::cli::args::stdin_once;
use crate::cli::progress::{DrawnProgress, in_bytes, in_things};
use anyhow::Context;
use millrace::inside::evaluate::{differences, means, queries, read_runs};
use millrace::{Comparison, Evaluation, Lines, Measure, Qrels, Query};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// File of judgements: TREC's `qid iteration document relevance`, or the TSV of BEIR.
    /// Judged queries that have no document in a run count as 0.
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
    /// File of queries, whose texts the report then shows beside their values.
    #[arg(long, value_name = "FILE", requires = "report")]
    queries: Option<PathBuf>,
    /// Print one JSON object for each run.
    #[arg(long)]
    json: bool,
    /// Runs in TREC format; - is standard input. Each is compared with the first.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

pub(crate) fn measure(text: &str) -> Result<Measure, String> {
    text.parse().map_err(|error: millrace::EvaluateError| error.to_string())
}

/// The texts of the judged queries, by their names.
fn texts(path: &Path, qrels: &Qrels) -> anyhow::Result<BTreeMap<String, String>> {
    let reading = || format!("reading the queries {}", path.display());
    let mut texts = BTreeMap::new();
    for read in Lines::open(path).with_context(reading)? {
        let Query { qid, text, .. } = read.with_context(reading)??;
        texts.insert(qid, text);
    }
    let judged: HashSet<&str> = qrels.iter().map(|(qid, _)| qid).collect();
    texts.retain(|qid, _| judged.contains(qid.as_str()));
    Ok(texts)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    stdin_once(args.runs.iter().chain([&args.qrels]).chain(&args.queries))?;
    let measures = if args.measures.is_empty() { Measure::usual() } else { args.measures.clone() };
    let qrels = Qrels::open(&args.qrels)?;
    let texts = args.queries.as_deref().map(|path| texts(path, &qrels)).transpose()?;
    let mut all: Vec<Evaluation> = Vec::new();
    let (progress, drawn) = DrawnProgress::begin(in_bytes("reading"));
    for run in read_runs(&args.runs, &progress) {
        let found = Evaluation::new(&mut run?, &qrels, &measures)?;
        found.remarks().iter().for_each(|remark| tell!("{remark}"));
        all.push(found);
    }
    drop(drawn);
    let (progress, drawn) = DrawnProgress::begin(in_things("comparing", "run", "runs"));
    progress.expect(all.len() as u64 - 1);
    let compared = |run: &Evaluation| {
        let against = run.against(&all[0]);
        progress.pass(1);
        against
    };
    let against: Vec<Option<Vec<Comparison>>> =
        all.iter().enumerate().map(|(at, run)| (at > 0).then(|| compared(run))).collect();
    drop(drawn);
    let rows = all.iter().zip(&against);
    let rows: Vec<String> = rows
        .map(|(run, against)| run.as_json(&all[0].run, against.as_deref()))
        .collect::<Result<_, _>>()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    } else {
        if args.per_query {
            out.write_all(queries(&all).as_bytes())?;
        }
        out.write_all(means(&all).as_bytes())?;
        out.write_all(differences(&all, &against).as_bytes())?;
    }
    let runs: Vec<Value> =
        rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>()?;
    let totals = json!({
        "job": "evaluate",
        "qrels": args.qrels.display().to_string(),
        "queries": qrels.len(),
        "measures": measures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "texts": texts,
        "runs": runs,
    });
    crate::cli::report::write(totals, 1)
}
