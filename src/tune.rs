//! Which k1 and b rank the documents of an index best, by queries that people judged? All pairs of a grid are measured,
//! and the best is chosen by all queries; what such a choice is worth for others is told by cross-validation
//! ([`evaluate::tune`](crate::evaluate::tune)).

#![forbid(unsafe_code)]

use crate::evaluate::EvaluateError;
use crate::evaluate::compare::Comparison;
use crate::evaluate::measure::Measure;
use crate::evaluate::qrels::{Judged, Qrels};
use crate::evaluate::run::Rankings;
use crate::evaluate::tune::{best, cross_validate};
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::wanted::{Mode, Wanted};
use crate::score::bm25::{Bm25, Bm25Error, IdfKind};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Why nothing is chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A ranking cannot be measured.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// A judged query.
#[derive(Clone, Debug)]
pub struct Topic<'a> {
    /// Its name.
    pub qid: &'a str,
    /// Its words.
    pub text: String,
    /// What people said of documents.
    pub judged: &'a Judged,
}

/// The queries that have judgements, in the order of these, which are taken out of the texts by qid; and what is to be
/// said of queries and judgements that have nothing to go with.
pub fn judged<'a>(
    texts: &mut HashMap<String, String>,
    qrels: &'a Qrels,
) -> (Vec<Topic<'a>>, Vec<String>) {
    let all = texts.len();
    let topic = |(qid, judged)| Some(Topic { qid, text: texts.remove(qid)?, judged });
    let topics: Vec<Topic<'_>> = qrels.iter().filter_map(topic).collect();
    let mut remarks = Vec::new();
    let (not_asked, not_judged) = (qrels.len() - topics.len(), texts.len());
    if not_asked > 0 {
        remarks.push(format!(
            "{not_asked} of {} judged queries are not asked and do not count",
            qrels.len()
        ));
    }
    if not_judged > 0 {
        remarks.push(format!("{not_judged} of {all} queries have no judgements and do not count"));
    }
    (topics, remarks)
}

/// How pairs are compared.
#[derive(Clone, Debug)]
pub struct Goal {
    /// What is to be as high as it gets.
    pub measure: Measure,
    /// The most hits of a query.
    pub k: usize,
    /// Which documents are hits.
    pub mode: Mode,
    /// Parts that the queries are dealt out to, from 2 to as many as there are queries.
    pub folds: usize,
    /// Threads.
    pub threads: usize,
}

/// A pair of parameters, and the mean over all queries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Term frequency saturation.
    pub k1: f64,
    /// Length normalisation.
    pub b: f64,
    /// The mean of the measure.
    pub mean: f64,
}

/// What the queries outside of a fold have chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoldChoice {
    /// Term frequency saturation.
    pub k1: f64,
    /// Length normalisation.
    pub b: f64,
    /// The mean over the other queries.
    pub train: f64,
    /// The mean over the fold's queries.
    pub test: f64,
    /// The fold's queries.
    pub queries: usize,
}

/// What a choice is worth for queries that had no say in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validated {
    /// The mean over all queries, each by parameters that were chosen without it.
    pub mean: f64,
    /// Each fold.
    pub folds: Vec<FoldChoice>,
    /// How these values compare with those of the defaults.
    pub against_default: Comparison,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// Queries that counted.
    pub queries: usize,
    /// The pair with the highest mean over all queries.
    pub best: Pair,
    /// The defaults.
    pub default: Pair,
    /// What the choice is worth.
    pub cross_validated: Validated,
    /// All pairs that were measured, in the order of the [`grid`].
    pub grid: Vec<Pair>,
}

impl Tuned {
    /// A table of means, k1 down and b across, and what follows from it: for the values of k1 and b that the
    /// [`grid`] was made of.
    pub fn text(&self, (k1s, bs): (&[f64], &[f64]), goal: &Goal) -> String {
        let mut text = format!("{:>8}", "k1 \\ b");
        bs.iter().for_each(|b| text += &format!(" {b:>7}"));
        // What the defaults add to the grid stands behind it.
        for (k1, row) in k1s.iter().zip(self.grid.chunks(bs.len())) {
            text += &format!("\n{k1:>8}");
            row.iter().for_each(|pair| text += &format!("  {:.4}", pair.mean));
        }
        let (measure, held_out) = (&goal.measure, &self.cross_validated);
        let row = |name: &str, Pair { k1, b, mean }: Pair| {
            format!("\n{name:<9} {measure} {mean:.4} with k1 {k1} b {b}")
        };
        text += &format!("\n{}{}", row("best", self.best), row("default", self.default));
        let against = &held_out.against_default;
        text += &format!(
            "\nheld out  {measure} {:.4} with {} folds; against the default {:+.4}, better for {} queries, worse for {}, p (t-test) {}\n",
            held_out.mean,
            goal.folds,
            against.difference,
            against.better,
            against.worse,
            against.t_test_p.map_or("-".to_string(), |p| format!("{p:.4}")),
        );
        for (number, fold) in (1..).zip(&held_out.folds) {
            text += &format!(
                "fold {number:>3}  {} queries: {:.4} with k1 {} b {}, chosen by {:.4} of the others\n",
                fold.queries, fold.test, fold.k1, fold.b, fold.train
            );
        }
        text
    }
}

/// All pairs of some values, k1 by k1, and the defaults at the end if they are not among them.
///
/// # Errors
/// When a value is none that BM25 takes.
pub fn grid(k1: &[f64], b: &[f64]) -> Result<Vec<Bm25>, Bm25Error> {
    let pairs = k1.iter().flat_map(|&k1| b.iter().map(move |&b| (k1, b)));
    let mut grid = pairs.map(|(k1, b)| Bm25::new(k1, b)).collect::<Result<Vec<_>, _>>()?;
    if !grid.contains(&Bm25::default()) {
        grid.push(Bm25::default());
    }
    Ok(grid)
}

/// Measures every pair of a [`grid`] on the generation in the folder `generation`, which is not changed.
///
/// # Errors
/// When the index is damaged, or two documents of a ranking have one name.
///
/// # Panics
/// If the defaults are not in the grid, or there are not as many queries as folds.
pub fn tune(
    generation: &Path,
    grid: &[Bm25],
    topics: &[Topic<'_>],
    goal: &Goal,
) -> Result<Tuned, TuneError> {
    let values = measure_all(generation, grid, topics, goal)?;
    let queries = topics.len();
    let pair = |at: usize| {
        let mean = values[at].iter().sum::<f64>() / queries as f64;
        Pair { k1: grid[at].k1(), b: grid[at].b(), mean }
    };
    let default = grid.iter().position(|&bm25| bm25 == Bm25::default());
    let default = default.expect("the defaults are in the grid");
    let validated = cross_validate(&values, goal.folds);
    let folds = validated.folds.iter().map(|fold| {
        let Pair { k1, b, .. } = pair(fold.chosen);
        FoldChoice { k1, b, train: fold.train, test: fold.test, queries: fold.queries }
    });
    Ok(Tuned {
        queries,
        best: pair(best(&values, 0..queries).0),
        default: pair(default),
        cross_validated: Validated {
            mean: validated.held_out.iter().sum::<f64>() / queries as f64,
            folds: folds.collect(),
            against_default: Comparison::new(&validated.held_out, &values[default]),
        },
        grid: (0..grid.len()).map(pair).collect(),
    })
}

/// The value of each query for each pair: [pairs][queries]. Bounds hold for any k1 and b, so each pair is asked of the index
/// as it is.
fn measure_all(
    generation: &Path,
    grid: &[Bm25],
    topics: &[Topic<'_>],
    goal: &Goal,
) -> Result<Vec<Vec<f64>>, TuneError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let values = Mutex::new(vec![Vec::new(); grid.len()]);
    let work = || {
        let mut searcher = Searcher::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&bm25) = grid.get(at) else { break };
            let found = measure_one(generation, bm25, topics, goal, &mut searcher);
            failed.fetch_or(found.is_err(), Ordering::Relaxed);
            values.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[at] = found?;
        }
        Ok::<_, TuneError>(())
    };
    std::thread::scope(|scope| {
        let threads = goal.threads.min(grid.len());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread of tune panicked"))
    })?;
    Ok(values.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn measure_one(
    generation: &Path,
    bm25: Bm25,
    topics: &[Topic<'_>],
    goal: &Goal,
    searcher: &mut Searcher,
) -> Result<Vec<f64>, TuneError> {
    let scoring = Scoring { bm25, idf: IdfKind::Lucene, ..Scoring::default() };
    let snapshot = Snapshot::new(Generation::open_folder(generation, false)?, scoring)?;
    let documents = snapshot.generation().documents();
    let wanted = Wanted { k: goal.k, mode: goal.mode, ..Wanted::default() };
    let mut values = Vec::with_capacity(topics.len());
    for Topic { qid, text, judged } in topics {
        let (hits, _) = searcher.search(&snapshot, &wanted, text)?;
        let mut ranking = Rankings::new("tune");
        for hit in hits {
            ranking.add(qid, documents.name(hit.docid).unwrap_or_default(), hit.score);
        }
        values.push(goal.measure.of(&ranking.ranking(qid, judged)?, judged));
    }
    Ok(values)
}
