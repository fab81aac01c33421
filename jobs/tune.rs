//! `millrace tune`.

use crate::Usage;
use crate::args::Common;
use crate::query_input::Input;
use anyhow::{Context, bail};
use millrace::evaluate::compare::Comparison;
use millrace::evaluate::measure::Measure;
use millrace::evaluate::qrels::{Judged, Qrels};
use millrace::evaluate::run::Rankings;
use millrace::evaluate::tune::{CrossValidated, best, cross_validate};
use millrace::index::find::open_plain;
use millrace::index::generation::Generation;
use millrace::input::splits::STDIN;
use millrace::query::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::{Mode, Wanted};
use millrace::score::bm25::{Bm25, IdfKind};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index; it is not changed.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Judgements: TREC's `qid iteration document relevance`, or BEIR's TSV.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// The values of k1 to try, with commas between them.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "0.3,0.6,0.9,1.2,1.5,1.8,2.1,2.5,3")]
    k1: Vec<f64>,
    /// The values of b to try.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.75,0.8,0.9,1")]
    b: Vec<f64>,
    /// What is to be as high as it gets: a measure as `evaluate` names them.
    #[arg(short, long, value_name = "NAME", default_value = "nDCG@10", value_parser = crate::evaluate::measure)]
    measure: Measure,
    /// Parts that the queries are dealt out to; each is measured by what the others choose.
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,
    /// The most hits of a query.
    #[arg(short, value_name = "K", default_value_t = 1000)]
    k: usize,
    /// Documents with any term (or), all terms (and), or all and else any (and-or).
    #[arg(long, default_value = "or", value_parser = crate::query::parse_mode, value_name = "or|and|and-or")]
    mode: Mode,
    /// Print everything as a JSON object.
    #[arg(long)]
    json: bool,
    /// Worker threads (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    common: Common,
}

/// A judged query.
struct Topic<'a> {
    qid: &'a str,
    text: String,
    judged: &'a Judged,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let queries = args.input.path().map(Path::to_path_buf).unwrap_or_else(|| STDIN.into());
    crate::args::stdin_once([&queries, &args.qrels])?;
    let grid: Vec<Bm25> = grid(&args.k1, &args.b)?;
    let qrels = Qrels::open(&args.qrels)?;
    let topics = topics(args, &qrels)?;
    if !(2..=topics.len()).contains(&args.folds) {
        let message =
            format!("--folds is 2 to the number of judged queries, which is {}", topics.len());
        return Err(Usage(message).into());
    }
    let generation = open_plain(&args.index)?;
    let folder = generation.path().to_path_buf();
    let threads =
        args.workers.or(std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let values = measure_all(&folder, args, &grid, &topics, threads)?;
    let found = Found::new(&grid, &values, args.folds);
    let totals = found.json(args, &qrels);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{totals}")?;
    } else {
        out.write_all(found.text(args).as_bytes())?;
    }
    let seconds = start.elapsed().as_secs_f64();
    if !args.common.quiet {
        say!("{} pairs of k1 and b, {} queries, {seconds:.2} s", grid.len(), topics.len());
    }
    crate::report::write(args.common.report.as_deref(), totals, seconds, threads, &[])
}

/// All pairs, and the defaults at the end if they are not among them.
fn grid(k1: &[f64], b: &[f64]) -> anyhow::Result<Vec<Bm25>> {
    let pairs = k1.iter().flat_map(|&k1| b.iter().map(move |&b| (k1, b)));
    let mut grid = pairs
        .map(|(k1, b)| Bm25::new(k1, b).map_err(|error| Usage(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    if !grid.contains(&Bm25::default()) {
        grid.push(Bm25::default());
    }
    Ok(grid)
}

/// The judged queries, in the order of the judgements.
fn topics<'a>(args: &Args, qrels: &'a Qrels) -> anyhow::Result<Vec<Topic<'a>>> {
    let mut texts = HashMap::new();
    for read in crate::query_input::remark(args.input.open(args.common.quiet)?) {
        let Query { qid, text, .. } = read.context("reading the queries")??;
        texts.insert(qid, text);
    }
    let all = texts.len();
    let topics: Vec<Topic> = qrels
        .iter()
        .filter_map(|(qid, judged)| Some(Topic { qid, text: texts.remove(qid)?, judged }))
        .collect();
    if topics.is_empty() {
        bail!("{}: none of {all} queries has judgements", args.qrels.display());
    }
    let (not_asked, not_judged) = (qrels.len() - topics.len(), texts.len());
    if !args.common.quiet && not_asked > 0 {
        say!("{not_asked} of {} judged queries are not asked and do not count", qrels.len());
    }
    if !args.common.quiet && not_judged > 0 {
        say!("{not_judged} of {all} queries have no judgements and do not count");
    }
    Ok(topics)
}

/// The value of each query for each pair: [pairs][queries]. Bounds hold for any k1 and b, so each pair is asked of the index
/// as it is.
fn measure_all(
    folder: &Path,
    args: &Args,
    grid: &[Bm25],
    topics: &[Topic],
    threads: usize,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let values = Mutex::new(vec![Vec::new(); grid.len()]);
    let work = || {
        let mut searcher = Searcher::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&bm25) = grid.get(at) else { break };
            let found = measure_one(folder, args, bm25, topics, &mut searcher);
            failed.fetch_or(found.is_err(), Ordering::Relaxed);
            values.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[at] = found?;
        }
        anyhow::Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(grid.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread of tune panicked"))
    })?;
    Ok(values.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn measure_one(
    folder: &Path,
    args: &Args,
    bm25: Bm25,
    topics: &[Topic],
    searcher: &mut Searcher,
) -> anyhow::Result<Vec<f64>> {
    let scoring = Scoring { bm25, idf: IdfKind::Lucene, ..Scoring::default() };
    let snapshot = Snapshot::new(Generation::open_folder(folder, false)?, scoring)?;
    let documents = snapshot.generation().documents();
    let wanted = Wanted { k: args.k, mode: args.mode, ..Wanted::default() };
    let mut values = Vec::with_capacity(topics.len());
    for Topic { qid, text, judged } in topics {
        let (hits, _) = searcher.search(&snapshot, &wanted, text)?;
        let mut ranking = Rankings::new("tune");
        for hit in hits {
            ranking.add(qid, documents.name(hit.docid).unwrap_or_default(), hit.score);
        }
        values.push(args.measure.of(&ranking.ranking(qid, judged)?, judged));
    }
    Ok(values)
}

/// What is told in the end.
struct Found<'a> {
    grid: &'a [Bm25],
    means: Vec<f64>,
    best: usize,
    default: usize,
    validated: CrossValidated,
    /// How the held-out values compare with those of the defaults.
    against: Comparison,
}

impl<'a> Found<'a> {
    fn new(grid: &'a [Bm25], values: &[Vec<f64>], folds: usize) -> Self {
        let queries = values[0].len();
        let default = grid.iter().position(|&bm25| bm25 == Bm25::default());
        let default = default.expect("the defaults are in the grid");
        let validated = cross_validate(values, folds);
        Self {
            grid,
            means: values.iter().map(|of| of.iter().sum::<f64>() / queries as f64).collect(),
            best: best(values, 0..queries).0,
            default,
            against: Comparison::new(&validated.held_out, &values[default]),
            validated,
        }
    }

    /// The mean over all queries, each by parameters that were chosen without it.
    fn held_out(&self) -> f64 {
        self.validated.held_out.iter().sum::<f64>() / self.validated.held_out.len() as f64
    }

    fn pair(&self, at: usize) -> Value {
        json!({"k1": self.grid[at].k1(), "b": self.grid[at].b(), "mean": self.means[at]})
    }

    fn json(&self, args: &Args, qrels: &Qrels) -> Value {
        let folds = self.validated.folds.iter().map(|fold| {
            let chosen = self.grid[fold.chosen];
            json!({"k1": chosen.k1(), "b": chosen.b(), "train": fold.train, "test": fold.test, "queries": fold.queries})
        });
        json!({
            "job": "tune",
            "index": args.index.display().to_string(),
            "qrels": qrels.name(),
            "measure": args.measure.to_string(),
            "queries": self.validated.held_out.len(),
            "best": self.pair(self.best),
            "default": self.pair(self.default),
            "cross_validated": {
                "mean": self.held_out(),
                "folds": folds.collect::<Vec<_>>(),
                "against_default": self.against,
            },
            "grid": (0..self.grid.len()).map(|at| self.pair(at)).collect::<Vec<_>>(),
        })
    }

    /// A table of means, k1 down and b across, and what follows from it.
    fn text(&self, args: &Args) -> String {
        let mut text = format!("{:>8}", "k1 \\ b");
        args.b.iter().for_each(|b| text += &format!(" {b:>7}"));
        // What the defaults add to the grid stands behind it.
        for (k1, row) in args.k1.iter().zip(self.means.chunks(args.b.len())) {
            text += &format!("\n{k1:>8}");
            row.iter().for_each(|mean| text += &format!("  {mean:.4}"));
        }
        let pair = |at: usize| format!("k1 {} b {}", self.grid[at].k1(), self.grid[at].b());
        let measure = &args.measure;
        text += &format!(
            "\n\nbest      {measure} {:.4} with {}",
            self.means[self.best],
            pair(self.best)
        );
        text += &format!(
            "\ndefault   {measure} {:.4} with {}",
            self.means[self.default],
            pair(self.default)
        );
        text += &format!(
            "\nheld out  {measure} {:.4} with {} folds; against the default {:+.4}, better for {} queries, worse for {}, p (t-test) {}\n",
            self.held_out(),
            args.folds,
            self.against.difference,
            self.against.better,
            self.against.worse,
            self.against.t_test_p.map_or("-".to_string(), |p| format!("{p:.4}")),
        );
        for (number, fold) in (1..).zip(&self.validated.folds) {
            text += &format!(
                "fold {number:>3}  {} queries: {:.4} with {}, chosen by {:.4} of the others\n",
                fold.queries,
                fold.test,
                pair(fold.chosen),
                fold.train
            );
        }
        text
    }
}
