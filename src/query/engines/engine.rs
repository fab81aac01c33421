//! Who answers planned queries? An engine is given plans, advances without waiting, and gives
//! answers back. A worker drives one engine; the engines of the workers of a process may work
//! together, through memory that they share ([`Engines`]). What they find is the same, to the bit.
//!
//! | engine | a query is answered |
//! | --- | --- |
//! | [`whole`] | whole, by the worker that took it (`inter`) |
//! | [`shares`] | by all workers, each over its share of the docids (`docp-ui`, `docp-pi`) |
//! | [`tasks`] | in tasks, by whichever worker comes first (`fgqp`) |
//! | [`hybrid`] | by the CPU or by a device, whichever a scheduler gives it |
//! | [`renewed`] | by engines that are made anew for each generation |

pub(crate) mod hybrid;
pub(crate) mod measure;
pub(crate) mod renewed;
pub(crate) mod shares;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod whole;

use crate::query::error::QueryError;
use crate::query::plan::Plan;
use crate::query::searcher::Cutting;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The number that the query was submitted with.
    pub number: u64,
    /// Its best hits, best first.
    pub hits: Vec<Hit>,
    /// Whether any of its terms is in the index.
    pub known: bool,
    /// Whether it was left unanswered since its deadline had passed; it has no hits then.
    pub late: bool,
}

/// What an engine wants of the worker that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// There is more to do at once.
    Busy,
    /// There is nothing to do now, but there may be soon: the worker looks again after its other
    /// work, without sleeping.
    Soon,
    /// There is no room, and nothing to do until a colleague or a device wakes this worker.
    Full,
    /// There is nothing to do until a query is submitted or a colleague wakes this worker.
    Idle,
}

/// What answers queries on one worker.
pub trait QueryEngine {
    /// Takes a query; its number comes back with its answer, from this engine or from that of
    /// another worker that it shares queries with. Numbers of queries under way differ.
    fn submit(&mut self, number: u64, plan: Plan);

    /// The same for a query that came at a time, for engines that have deadlines.
    fn submit_of(&mut self, number: u64, plan: Plan, _came: Instant) {
        self.submit(number, plan);
    }

    /// Does a part of the work, of about a millisecond at most unless a query cannot be left, and
    /// never waits.
    ///
    /// # Errors
    /// When the index is damaged, or what the engine runs on has failed. No answer may be expected
    /// after that.
    fn advance(&mut self) -> Result<Pace, QueryError>;

    /// Appends the answers that are ready, in any order.
    fn take(&mut self, answers: &mut Vec<Answer>);

    /// How many more queries may be submitted now. An engine that is [`Pace::Idle`] has room.
    fn room(&self) -> usize;

    /// Says how many queries wait until some engine has room; an engine may cut queries less, or
    /// wake colleagues, because of them.
    fn waiting(&mut self, _queries: usize) {}

    /// Moves queries to `queries` that somebody else has to answer: those that what this engine
    /// runs on cannot, and those that it was given before `overdue` and has not answered; what
    /// comes of these later is dropped. An engine that was asked once leaves all of the first kind
    /// to who asks. One that answers all itself has none.
    fn give_back(&mut self, _overdue: Option<Instant>, _queries: &mut Vec<(u64, Plan)>) {}

    /// Whether what the engine runs on works, and has come to an end with all that was taken back
    /// from it.
    fn works(&self) -> bool {
        true
    }

    /// Whether all lists of a query are where the engine needs them.
    fn holds(&self, _plan: &Plan) -> bool {
        true
    }
}

/// Makes the engines of the workers of one process, and holds what these share.
pub trait Engines: Send + Sync {
    /// Makes the engine of worker `worker` of the process, once. Queries will mostly be of
    /// `snapshot`.
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, QueryError>;

    /// Whether a worker does nothing else from when its engine has begun with a query until it has
    /// answered it, however long that takes. The worker that takes queries in then leaves them to
    /// others that are free.
    fn answers_whole(&self) -> bool {
        false
    }

    /// Whether each worker wants a core of its own, where there are as many cores as workers.
    fn wants_cores(&self) -> bool {
        false
    }
}

/// Wakes the worker that it is of.
type Wake = Box<dyn Fn() + Send + Sync>;

/// What wakes each worker of a process.
#[derive(Default)]
pub struct Wakers(Vec<OnceLock<Wake>>);

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wakers").field(&self.0.len()).finish()
    }
}

impl Wakers {
    /// For so many workers, none of which has begun.
    pub fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self(std::iter::repeat_with(OnceLock::new).take(workers).collect()))
    }

    pub(crate) fn workers(&self) -> usize {
        self.0.len()
    }

    /// Sets what wakes a worker; what is set first counts.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    pub(crate) fn set(&self, worker: usize, wake: impl Fn() + Send + Sync + 'static) {
        _ = self.0[worker].set(Box::new(wake));
    }

    /// Wakes some workers. One that has not begun looks for work by itself when it does.
    pub(crate) fn wake(&self, workers: &[usize]) {
        for wake in workers.iter().filter_map(|&worker| self.0[worker].get()) {
            wake();
        }
    }
}

/// How queries are spread over the workers of a process: the models of `tatikonda11`. All give the
/// same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Model {
    /// A query to a worker.
    #[default]
    Inter,
    /// Every worker answers every query over its share of the docids, in the index.
    DocpUi {
        /// All workers end a query before any of them begins the next.
        barrier: bool,
    },
    /// As `DocpUi`, in a copy of the share's postings that each worker makes at the start.
    DocpPi {
        /// All workers end a query before any of them begins the next.
        barrier: bool,
    },
    /// Queries are cut into tasks, which go to whoever comes first.
    Fgqp {
        /// A new query is cut only while at most so many tasks are open.
        delta: usize,
        cutting: Cutting,
        /// So long a worker without work looks for more before it sleeps.
        patience: Duration,
    },
}

impl Model {
    /// Its name, as users write it.
    #[cfg(test)]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Model::Inter => "inter",
            Model::DocpUi { .. } => "docp-ui",
            Model::DocpPi { .. } => "docp-pi",
            Model::Fgqp { .. } => "fgqp",
        }
    }

    /// What makes the engines of the model for the workers that `wakers` wake.
    pub fn engines(self, wakers: &Arc<Wakers>) -> Box<dyn Engines> {
        match self {
            Model::Inter => Box::new(whole::WholeEngines),
            Model::DocpUi { barrier } => Box::new(shares::Crew::new(false, barrier, wakers)),
            Model::DocpPi { barrier } => Box::new(shares::Crew::new(true, barrier, wakers)),
            Model::Fgqp { delta, cutting, patience } => {
                Box::new(tasks::Crew::new(delta, cutting, patience, wakers))
            }
        }
    }
}
