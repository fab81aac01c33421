//! Engines that answer planned queries. An engine takes plans, advances without waiting, and
//! returns answers. A worker drives one engine; the engines of a process may share memory
//! ([`Engines`]). All find the same, to the bit.
//!
//! | engine | a query is answered |
//! | --- | --- |
//! | [`whole`] | whole, by the worker that took it (`inter`) |
//! | [`tasks`] | in tasks, by whichever worker comes first (`fgqp`) |
//! | [`renewed`] | by engines that are made again for each generation |

pub(crate) mod renewed;
pub(crate) mod tasks;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod whole;

use crate::index::error::IndexError;
use crate::query::listing::Listing;
use crate::query::listing::facets::FoundFacets;
use crate::query::plan::Plan;
use crate::query::searcher::{Cutting, Searcher};
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub number: u64,
    /// Best first.
    pub hits: Vec<Hit>,
    /// Documents that match, if the query asks how many there are.
    pub found: Option<u64>,
    /// Whether any of its terms is in the index.
    pub known: bool,
    /// Whether it was left unanswered, without hits, since its deadline had passed.
    pub late: bool,
    /// Of all that matches, if the query asks for any.
    pub facets: FoundFacets,
    /// How hits are listed, if the query says it.
    pub(crate) listing: Option<Arc<Listing>>,
}

impl Answer {
    /// The answer to a query of which this many documents match, if it asks for that.
    pub fn new(number: u64, plan: &Plan, hits: Vec<Hit>, found: Option<u64>) -> Self {
        let (known, listing) = (plan.known(), plan.listing().cloned());
        Self { number, hits, found, known, listing, ..Self::default() }
    }

    /// What a searcher has found last.
    pub(crate) fn of(number: u64, plan: &Plan, searcher: &mut Searcher) -> Self {
        let facets = searcher.take_facets();
        Self { facets, ..Self::new(number, plan, searcher.hits().to_vec(), searcher.found()) }
    }
}

/// What an engine wants of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// There is more to do at once.
    Busy,
    /// There may be something to do soon: the worker looks again without sleeping.
    Soon,
    /// There is no room, and nothing to do until another worker or a device wakes this one.
    Full,
    /// There is nothing to do until a query is submitted or another worker wakes this one.
    Idle,
}

/// The engine of one worker.
pub trait QueryEngine {
    /// Takes a query; its number comes back with its answer, from this engine or from another one
    /// that it shares queries with. Numbers of open queries differ.
    fn submit(&mut self, number: u64, plan: Plan);

    /// The same with the query's arrival, for engines that have deadlines.
    fn submit_of(&mut self, number: u64, plan: Plan, _came: Instant) {
        self.submit(number, plan);
    }

    /// Works for about a millisecond at most, unless a query cannot be interrupted; never waits.
    ///
    /// # Errors
    /// If the index is damaged or the device has failed; no answers follow then, unless it was for
    /// [one query](Self::failed).
    fn advance(&mut self) -> Result<Pace, IndexError>;

    /// The query for which [`advance`](Self::advance) has failed, where all others go on.
    fn failed(&mut self) -> Option<u64> {
        None
    }

    /// Appends the answers that are ready, in any order.
    fn take(&mut self, answers: &mut Vec<Answer>);

    /// Whether there is room for a query, which is then kept until one is submitted or
    /// [`let_go`](Self::let_go): engines that share room never keep the same room twice. One that
    /// is [`Pace::Idle`] has room.
    fn room(&mut self) -> bool;

    /// Queries that this worker takes for it at a time, if it has room: no other worker can answer
    /// these.
    fn takes(&self) -> usize {
        1
    }

    /// Gives back room that was kept, or that a query left with its answer.
    fn let_go(&mut self) {}

    /// Tells how many queries wait until some engine has room; an engine may cut queries less, or
    /// wake other workers, because of them.
    fn waiting(&mut self, _queries: usize) {}

    /// Moves queries to `queries` that others must answer: those that the engine's device cannot,
    /// and those submitted before `overdue` and not answered, whose late answers are dropped. An
    /// engine that was asked once leaves all of the first kind to the asker.
    fn give_back(&mut self, _overdue: Option<Instant>, _queries: &mut Vec<(u64, Plan)>) {}

    /// Whether the engine's device works and has finished all queries that were taken back from it.
    fn works(&self) -> bool {
        true
    }
}

/// Makes the engines of the workers of one process and holds what they share.
pub trait Engines: Send + Sync {
    /// Makes the engine of a worker, once. Queries will mostly be of `snapshot`.
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError>;

    /// Whether a worker does nothing else while its engine has a query, however long that takes.
    /// The worker that takes queries in then leaves them to others that are free.
    fn answers_whole(&self) -> bool {
        false
    }

    /// Whether each worker wants a core of its own, if there are as many.
    fn wants_cores(&self) -> bool {
        false
    }
}

type WakeWorker = Box<dyn Fn() + Send + Sync>;

/// The wake-up function of each worker of a process.
#[derive(Default)]
pub struct Wakers(Vec<OnceLock<WakeWorker>>);

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wakers").field(&self.0.len()).finish()
    }
}

impl Wakers {
    /// For this many workers, none of which has begun.
    pub fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self(std::iter::repeat_with(OnceLock::new).take(workers).collect()))
    }

    pub(crate) fn workers(&self) -> usize {
        self.0.len()
    }

    /// Sets the wake-up function of a worker; the first one counts.
    ///
    /// # Panics
    /// If there is no such worker.
    pub(crate) fn set(&self, worker: usize, wake: impl Fn() + Send + Sync + 'static) {
        _ = self.0[worker].set(Box::new(wake));
    }

    /// Wakes workers. One that has not begun looks for work when it does.
    pub(crate) fn wake(&self, workers: &[usize]) {
        for wake in workers.iter().filter_map(|&worker| self.0[worker].get()) {
            wake();
        }
    }
}

/// A model that a program hands in. All workers may have to end a query before any of them begins
/// the next (`barrier`).
pub trait HandedModel: Send + Sync {
    /// As users write it, unlike the name of any other.
    fn name(&self) -> &'static str;

    /// What makes the engines of these workers.
    fn engines(&self, barrier: bool, wakers: &Arc<Wakers>) -> Box<dyn Engines>;
}

pub type HandedModels = &'static [&'static dyn HandedModel];

impl PartialEq for dyn HandedModel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for dyn HandedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The models for spreading queries over workers. All give the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Model {
    #[default]
    Inter,
    Handed {
        model: &'static dyn HandedModel,
        barrier: bool,
    },
    /// Queries are cut into tasks, which go to the first free worker.
    Fgqp {
        /// A new query is cut only while at most this many tasks are open.
        delta: usize,
        cutting: Cutting,
        /// How long a worker without work looks for more before it sleeps.
        patience: Duration,
    },
}

impl Model {
    pub fn name(&self) -> &'static str {
        match self {
            Model::Inter => "inter",
            Model::Handed { model, .. } => model.name(),
            Model::Fgqp { .. } => "fgqp",
        }
    }

    pub fn engines(self, wakers: &Arc<Wakers>) -> Box<dyn Engines> {
        match self {
            Model::Inter => Box::new(whole::WholeEngines),
            Model::Handed { model, barrier } => model.engines(barrier, wakers),
            Model::Fgqp { delta, cutting, patience } => {
                Box::new(tasks::TaskCrew::new(delta, cutting, patience, wakers))
            }
        }
    }
}
