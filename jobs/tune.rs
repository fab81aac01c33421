//! `millrace tune`.

use crate::Usage;
use crate::cli::args::workers_of;
use crate::cli::progress::{DrawnProgress, in_things};
use crate::query::input::{QueryFile, has_words, telling};
use crate::query::score::parse_idf;
use anyhow::{Context, bail, ensure};
use millrace::inside::input::STDIN;
use millrace::inside::score::Score;
use millrace::inside::shown::number_of;
use millrace::inside::tune::judged;
use millrace::{
    Generation, Goal, Grid, IdfKind, Measure, Mode, Qrels, Query, StaticScale, Syntax, Topic,
    Tried, tune,
};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index. It is not changed.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// File of judgements: TREC's `qid iteration document relevance`, or the TSV of BEIR.
    /// Judged queries that are not asked do not count; `evaluate` counts them as 0.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// Scoring function whose parameters are tried: bm25, bm25-lucene, bm25f, bm25plus, bm25l,
    /// tfidf, ql or wang.
    #[arg(long, default_value = Score::NAMES[0], value_parser = Score::NAMES, value_name = "NAME")]
    #[arg(hide_possible_values = true)]
    score: String,
    /// Values of k1 to try, separated by commas [default: 0.3,0.6,0.9,1.2,1.5,1.8,2.1,2.5,3].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    k1: Option<Vec<f64>>,
    /// Values of b to try [default: 0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.75,0.8,0.9,1; with bm25f 0.75].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    b: Option<Vec<f64>>,
    /// Weights of a field to try, as title=1,2,5; once for each field that words are looked for in.
    #[arg(long, value_name = "FIELD=LIST", value_parser = Tried::of_field)]
    boost: Vec<(String, Vec<f64>)>,
    /// Values of b of a field to try, as title=0.3,0.75.
    #[arg(long, value_name = "FIELD=LIST", value_parser = Tried::of_field)]
    field_b: Vec<(String, Vec<f64>)>,
    /// With bm25plus and bm25l: values of delta to try [default: 0,0.25,0.5,1,1.5].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    score_delta: Option<Vec<f64>>,
    /// With ql: values of mu to try [default: 50,100,200,500,1000,1500,2000,3000,5000].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    mu: Option<Vec<f64>>,
    /// With wang: values of alpha to try [default: 0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    alpha: Option<Vec<f64>>,
    /// With wang: what stands for PageRank, as of `query` [default: greatest].
    #[arg(long, value_parser = StaticScale::ALL.map(StaticScale::name), value_name = "NAME", hide_possible_values = true)]
    static_scale: Option<String>,
    /// Formula for the weight of rare terms [default: lucene]. The papers use robertson.
    #[arg(long, value_parser = parse_idf, value_name = "lucene|robertson")]
    idf: Option<IdfKind>,
    /// Measure to maximise; `millrace evaluate --help` lists them.
    #[arg(short, long, value_name = "NAME", default_value = "nDCG@10", value_parser = crate::evaluate::measure)]
    measure: Measure,
    /// Number of parts for the cross-validation. Each part is measured with the parameters that are
    /// best for the others.
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,
    /// Greatest number of hits for a query.
    #[arg(short, value_name = "K", default_value = "1000", value_parser = crate::query::ranking::parse_k)]
    k: usize,
    /// Which documents match. or: those with any term. and: those with all terms. and-or: as and,
    /// but as or if fewer than k documents have all terms.
    #[arg(long, default_value = "or", value_name = "or|and|and-or")]
    mode: Mode,
    /// Leave out the document that has the name of the query, for queries that are documents.
    #[arg(long)]
    remove_query: bool,
    /// Where the best values are on the border of those that were tried, try others beyond.
    #[arg(long)]
    wider: bool,
    /// Print everything as one JSON object.
    #[arg(long)]
    json: bool,
    /// Number of worker threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    input: QueryFile,
}

/// Values that --wider tries of a parameter at most.
const STEPS: usize = 10;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let queries = args.input.path().map(Path::to_path_buf).unwrap_or_else(|| STDIN.into());
    crate::cli::args::stdin_once([&queries, &args.qrels])?;
    let qrels = Qrels::open(&args.qrels)?;
    let generation = Generation::open(&args.index)?;
    let mut grid = args.grid(&generation.manifest().settings.fields)?;
    let topics = topics(args, &qrels, has_words(&generation))?;
    if !(2..=topics.len()).contains(&args.folds) {
        let message = format!(
            "--folds must be from 2 to the number of judged queries, which is {}",
            topics.len()
        );
        return Err(Usage(message).into());
    }
    let threads = workers_of(args.workers)?;
    let &Args { measure, k, mode, folds, remove_query, .. } = args;
    let (progress, drawn) = DrawnProgress::begin(in_things("tuning", "answer", "answers"));
    let goal = Goal { measure, k, mode, folds, threads, remove_query, progress };
    let mut found = tune(generation.path(), &grid, &topics, &goal)?;
    let mut steps = if args.wider { STEPS } else { 0 };
    while steps > 0 && !grid.border(&found.best.parameters).is_empty() {
        steps -= 1;
        grid = grid.wider(&found.best.parameters).map_err(Usage::from)?;
        found = tune(generation.path(), &grid, &topics, &goal)?;
    }
    drop(drawn);
    for name in grid.border(&found.best.parameters) {
        let more = if args.wider { "" } else { ": --wider goes on from there" };
        tell!("the best {name} is on the border of the values that were tried{more}");
    }
    let mut totals = serde_json::to_value(&found)?;
    totals["job"] = "tune".into();
    totals["index"] = args.index.display().to_string().into();
    totals["qrels"] = qrels.name().into();
    totals["score"] = grid.score().into();
    totals["measure"] = args.measure.to_string().into();
    crate::cli::report::print(args.json, &totals, || found.text(&grid, &goal))?;
    found.warning.iter().filter(|_| args.json).for_each(|warning| tell!("{warning}"));
    let seconds = start.elapsed().as_secs_f64();
    let settings = number_of(grid.len() as u64, "setting", "settings");
    let queries = number_of(topics.len() as u64, "query", "queries");
    tell!("{settings} of {}, {queries}, {seconds:.2} s", grid.names());
    crate::cli::report::write(totals, threads)
}

impl Args {
    fn grid(&self, fields: &[String]) -> Result<Grid, Usage> {
        let Self { k1, b, alpha, mu, score_delta, boost, field_b, .. } = self.clone();
        let static_scale = self.static_scale.as_deref().and_then(StaticScale::named);
        let tried = Tried { k1, b, alpha, mu, score_delta, boost, field_b, static_scale };
        let tried = tried.with_fields(&self.score, fields);
        Grid::new(&self.score, self.idf, &tried).map_err(Usage::from)
    }
}

/// In the order of the judgements.
fn topics<'a>(args: &Args, qrels: &'a Qrels, are_words: bool) -> anyhow::Result<Vec<Topic<'a>>> {
    let mut texts = HashMap::new();
    for read in telling(args.input.open(Syntax::Words, true)?, are_words) {
        let query = read.context("reading the queries")??;
        let words = query.has_words();
        let Query { qid, text, .. } = query;
        ensure!(words, "query {qid} has operators, and parameters are tuned for words");
        texts.insert(qid, text);
    }
    let (topics, remarks) = judged(&mut texts, qrels);
    if topics.is_empty() {
        bail!("{}: no query has judgements: {}", args.qrels.display(), remarks.join("; "));
    }
    let too_few = Measure::remark_on_depth(&[args.measure], args.k);
    remarks.iter().chain(&too_few).for_each(|remark| tell!("{remark}"));
    Ok(topics)
}
