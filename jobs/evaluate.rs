//! `millrace evaluate`.

use crate::cli::args::stdin_once;
use crate::cli::progress::{DrawnProgress, in_bytes, in_things};
use crate::cli::report::{is_asked, write};
use anyhow::Context;
use millrace::inside::evaluate::{differences, means, queries, read_runs};
use millrace::{Comparison, Evaluation, Lines, Measure, Qrels, Query};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// File of judgements: TREC's `qid iteration document relevance`, or the TSV of BEIR.
    /// Judged queries that have no document in a run count as 0.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// Measure to print: nDCG@k, AP, RR, P@k, R@k, Success@k, Rprec, ERR@k, RBP(p=0.8), Bpref,
    /// Judged@k, SetP, NumRet, infAP or IPrec@0.1. P(rel=2)@10 counts documents of relevance 2 or
    /// more. trec_eval's names are read too: ndcg_cut_10. May be given several times [default: nine
    /// measures].
    #[arg(short, long = "measure", value_name = "NAME", value_parser = measure)]
    measures: Vec<Measure>,
    /// Order of equal scores. trec_eval: by name, as trec_eval and ir_measures order them. run: by
    /// the ranks in the file, for all measures.
    #[arg(long, default_value = "trec_eval", value_parser = ["trec_eval", "run"])]
    #[arg(value_name = "trec_eval|run", hide_possible_values = true)]
    ties: String,
    /// Also print the values of each query.
    #[arg(long)]
    per_query: bool,
    /// File of queries, whose texts the report then shows beside their values.
    #[arg(long, value_name = "FILE", requires = "report")]
    queries: Option<PathBuf>,
    /// Print one JSON object for each run.
    #[arg(long)]
    json: bool,
    /// Runs in TREC format or another (docs/experiments.md); - is standard input. Each is compared
    /// with the first.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

pub(crate) fn measure(text: &str) -> Result<Measure, String> {
    let several = if text.contains(',') { "; each of several has its own -m" } else { "" };
    text.parse().map_err(|error: millrace::EvaluateError| format!("{error}{several}"))
}

/// The texts of the judged queries, by their names.
fn texts(path: &Path, qrels: &Qrels) -> anyhow::Result<BTreeMap<String, String>> {
    let reading = || format!("reading the queries {}", path.display());
    let mut texts = BTreeMap::new();
    for read in Lines::open(path).with_context(reading)? {
        let Query { qid, text, .. } = read.with_context(reading)??;
        texts.insert(qid, text);
    }
    let judged: HashSet<&str> = qrels.qids().collect();
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
        let mut run = run?;
        if args.ties == "run" {
            run.order_ties_by_rank();
        }
        let found = Evaluation::new(&mut run, &qrels, &measures)?;
        found.remarks().iter().for_each(|remark| tell!("{remark}"));
        let too_few = run.depth(&qrels).and_then(|k| Measure::remark_on_depth(&measures, k));
        too_few.iter().for_each(|remark| tell!("{}: {remark}", found.run));
        all.push(found);
    }
    drop(drawn);
    let (progress, drawn) = DrawnProgress::begin(in_things("comparing", "run", "runs"));
    progress.expect(all.len() as u64 - 1);
    if let Some((first, others)) = all.split_first_mut() {
        for run in &mut *others {
            run.against = Some((first.run.clone(), run.against(first)));
            progress.pass(1);
        }
        let against = others.iter_mut().filter_map(|run| Some(&mut run.against.as_mut()?.1));
        Comparison::adjust(&mut against.collect::<Vec<_>>());
    }
    drop(drawn);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.json {
        for run in &all {
            serde_json::to_writer(&mut out, run).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
    } else {
        if args.per_query {
            queries(&all).try_for_each(|line| out.write_all(line.as_bytes()))?;
        }
        out.write_all(means(&all).as_bytes())?;
        out.write_all(differences(&all).as_bytes())?;
    }
    out.flush()?;
    if !is_asked() {
        return Ok(());
    }
    let totals = json!({
        "job": "evaluate",
        "qrels": args.qrels.display().to_string(),
        "queries": qrels.len(),
        "measures": measures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "texts": texts,
        "runs": all,
    });
    write(totals, 1)
}
