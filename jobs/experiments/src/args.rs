//! Options that several experiments have.

use crate::Usage;
use anyhow::Context;
use millrace::inside::gpu::{ChosenMethod, GpuError};
use millrace::inside::input::STDIN;
use millrace::inside::papers::{ALGORITHMS, METHODS};
use millrace::inside::score::{Score, Wang};
use millrace::{BuildError, Generation, IdfKind, Lines, Mode, Query, Scoring, Snapshot, Wanted};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use millrace::inside::rebuild::size;

/// An index and queries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AskedQueries {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: PathBuf,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out
    /// or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

impl AskedQueries {
    pub(crate) fn queries(&self) -> anyhow::Result<Vec<Query>> {
        all_queries(self.queries.as_deref())
    }

    /// Opens the index, to be searched as the papers do.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<Snapshot>> {
        let scoring = Scoring { idf: IdfKind::Robertson, ..Scoring::default() };
        Ok(Snapshot::open(&self.index, scoring)?)
    }
}

/// How queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AskedRanking {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: PathBuf,
    /// Greatest number of hits for a query.
    #[arg(short, default_value_t = 10, value_name = "K")]
    pub(crate) k: usize,
    /// Which documents match.
    #[arg(long, default_value = "and", value_name = "or|and|and-or")]
    mode: Mode,
    /// Search algorithm, as of `millrace query`. With wang the score is that of wang, too.
    #[arg(long, default_value = "auto", value_parser = algorithm, value_name = "NAME")]
    pub(crate) algorithm: ChosenMethod,
}

impl AskedRanking {
    pub(crate) fn open(&self) -> anyhow::Result<Arc<Snapshot>> {
        if !self.algorithm.on_cpu().is_for_global_order() {
            return Ok(Snapshot::open(&self.index, Scoring::default())?);
        }
        let snapshot = Snapshot::open(&self.index, scoring_of_wang(&self.index)?)?;
        snapshot.check_global()?;
        Ok(snapshot)
    }

    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            k: self.k,
            mode: self.mode,
            algorithm: self.algorithm.on_cpu(),
            ..Wanted::default()
        }
    }
}

fn algorithm(text: &str) -> Result<ChosenMethod, String> {
    let chosen = ChosenMethod::among(text, ALGORITHMS, METHODS);
    chosen.map_err(|names| format!("give {names}"))
}

/// The scoring of `wang` for which documents of an index are in order, or its usual one.
pub(crate) fn scoring_of_wang(index: &Path) -> anyhow::Result<Scoring> {
    let of_order = Scoring::of_order(&Generation::open(index)?);
    if matches!(of_order.score, Score::Wang(_)) {
        return Ok(of_order);
    }
    let score = Score::Wang(Wang::default());
    Ok(Scoring { idf: IdfKind::Robertson, score, ..Scoring::default() })
}

/// The queries of a file or of standard input; there is at least one.
pub(crate) fn all_queries(path: Option<&Path>) -> anyhow::Result<Vec<Query>> {
    let path = path.unwrap_or(Path::new(STDIN));
    let named = || format!("reading the queries {}", path.display());
    let queries: Vec<Query> = Lines::open(path)
        .with_context(named)?
        .map(|query| Ok(query.with_context(named)??))
        .collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!queries.is_empty(), "there are no queries");
    Ok(queries)
}

/// As many workers as are asked for, or one for each core.
pub(crate) fn workers_or_cores(asked: Option<NonZeroUsize>) -> usize {
    let workers = asked.or_else(|| std::thread::available_parallelism().ok());
    workers.map_or(1, NonZeroUsize::get)
}

/// Says what the devices would answer.
pub(crate) fn explain(error: GpuError) -> anyhow::Error {
    anyhow::Error::from(error).context("GPUs")
}

/// What went wrong in a build: a wrong option is wrong usage.
pub(crate) fn of_build(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Options(error) => Usage(error.to_string()).into(),
        error => anyhow::Error::from(error).context("a build of the experiment"),
    }
}

/// Figures of an experiment by name, and what measures each.
pub(crate) type Figures<T> = [(&'static str, fn(&T) -> anyhow::Result<()>)];

/// Measures the figures that are asked for, or all.
pub(crate) fn figures<T>(of: &T, figures: &Figures<T>, only: &[String]) -> anyhow::Result<()> {
    if let Some(other) = only.iter().find(|name| figures.iter().all(|figure| figure.0 != **name)) {
        let names: Vec<&str> = figures.iter().map(|figure| figure.0).collect();
        return Err(Usage(format!("--only {other}: there are {}", names.join(", "))).into());
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|other| other == name);
    figures.iter().filter(|figure| wanted(figure.0)).try_for_each(|figure| figure.1(of))
}
