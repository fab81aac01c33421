//! Engines that answer every query together, each worker over its share of the documents: `docp-ui`
//! and `docp-pi` (`tatikonda11`, section 3.2.1).
//!
//! The worker that took a query plans it once and gives it to all workers. Each adds the hits of
//! its share; the last to do so has the answer, or gives the next stage to all.
//!
//! With a barrier, as in the paper, the next query is taken when all have ended the one before: a
//! worker claims the room for it first, and the one that has an answer keeps the room of its query.
//! Without a barrier, workers that are ahead go on with later queries.

use super::copied::Copied;
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::query::engines::engine::{Answer, Engines, HandedModel, Pace, QueryEngine, Wakers};
use crate::query::plan::Plan;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::{Combined, Hit};
use crate::query::wanted::Stage;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Greatest number of open queries without a barrier.
const MOST_OPEN: usize = 64;

/// How long a worker without a task spins while all allowed queries are open: it begins the next
/// one sooner than if it had to be woken. Then it sleeps, since with fewer free cores than workers
/// spinning ones keep cores from those that work.
const PATIENCE: Duration = Duration::from_micros(200);

/// A worker begins no further query after this time.
const SLICE: Duration = Duration::from_millis(1);

/// A stage of a query that all workers work at.
struct Round {
    number: u64,
    plan: Arc<Plan>,
    stage: Stage,
    found: Mutex<Found>,
}

/// What some workers have found.
struct Found {
    combined: Combined,
    workers: usize,
    /// Documents that match, if the query asks for that.
    matching: Option<u64>,
}

impl Round {
    /// Adds what a worker's searcher has found; returns all hits, and how many documents match, to
    /// the last of `workers`.
    fn add(&self, searcher: &Searcher, workers: usize) -> Option<(Vec<Hit>, Option<u64>)> {
        let found = &mut *lock(&self.found);
        found.combined.add(searcher.hits());
        found.matching = found.matching.zip(searcher.found()).map(|(all, own)| all + own);
        found.workers += 1;
        (found.workers == workers).then(|| (found.combined.take(), found.matching))
    }
}

/// The rounds that a worker has to do.
#[derive(Default)]
struct RoundDesk {
    rounds: VecDeque<Arc<Round>>,
    /// The worker looks here no more until it is woken.
    asleep: bool,
}

struct SharedDesks {
    copies: bool,
    barrier: bool,
    wakers: Arc<Wakers>,
    desks: Vec<Mutex<RoundDesk>>,
    /// Queries under way, and those that workers have claimed room for.
    open: AtomicUsize,
}

impl SharedDesks {
    fn most_open(&self) -> usize {
        if self.barrier { 1 } else { MOST_OPEN }
    }

    /// Gives a stage of a query to all workers, or a query that lists all that matches to worker
    /// `own`, which is awake.
    fn lay(&self, own: usize, number: u64, plan: Arc<Plan>, stage: Stage) {
        let matching = plan.wanted().count.then_some(0);
        let combined = Combined::new(plan.wanted().k);
        let found = Mutex::new(Found { combined, workers: 0, matching });
        let round = Arc::new(Round { number, plan, stage, found });
        let mut asleep = Vec::new();
        let is_whole = round.plan.listing_of_all().is_some();
        for (worker, desk) in self.desks.iter().enumerate() {
            if is_whole && worker != own {
                continue;
            }
            let mut desk = lock(desk);
            desk.rounds.push_back(round.clone());
            if std::mem::take(&mut desk.asleep) && worker != own {
                asleep.push(worker);
            }
        }
        self.wakers.wake(&asleep);
    }
}

/// `docp-ui`, or `docp-pi` if each worker has a copy of its postings.
pub(in crate::papers) struct Docp {
    pub(in crate::papers) copies: bool,
}

impl HandedModel for Docp {
    fn name(&self) -> &'static str {
        if self.copies { "docp-pi" } else { "docp-ui" }
    }

    fn engines(&self, barrier: bool, wakers: &Arc<Wakers>) -> Box<dyn Engines> {
        Box::new(ShareCrew::new(self.copies, barrier, wakers))
    }
}

struct ShareCrew(Arc<SharedDesks>);

impl ShareCrew {
    /// With `copies` each worker has postings of its own.
    fn new(copies: bool, barrier: bool, wakers: &Arc<Wakers>) -> Self {
        let desks = std::iter::repeat_with(Mutex::default).take(wakers.workers()).collect();
        let wakers = wakers.clone();
        Self(Arc::new(SharedDesks { copies, barrier, wakers, desks, open: AtomicUsize::new(0) }))
    }
}

impl Engines for ShareCrew {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        let mut engine = ShareEngine {
            shared: self.0.clone(),
            worker,
            searcher: Searcher::new(),
            copied: None,
            snapshot: None,
            idle: None,
            claimed: false,
            answers: Vec::new(),
        };
        engine.prepare(snapshot)?;
        Ok(Box::new(engine))
    }
}

struct ShareEngine {
    shared: Arc<SharedDesks>,
    worker: usize,
    searcher: Searcher,
    copied: Option<Copied>,
    /// The snapshot that the searcher's share is of.
    snapshot: Option<Arc<Snapshot>>,
    /// Since when the worker has had no task, with no room for another query.
    idle: Option<Instant>,
    /// Room for a query is kept for this worker.
    claimed: bool,
    answers: Vec<Answer>,
}

impl ShareEngine {
    /// The pace of a worker without a task. One that finds no room is not needed: the worker that
    /// ends a query takes the next, and wakes all.
    fn rest(&mut self) -> Pace {
        let open = self.shared.open.load(Ordering::Acquire) - usize::from(self.claimed);
        if open < self.shared.most_open() {
            self.idle = None;
            return Pace::Idle;
        }
        if self.idle.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            self.idle = None;
            return Pace::Full;
        }
        std::thread::yield_now();
        Pace::Soon
    }

    /// Takes the worker's share of a snapshot; copies take a while.
    fn prepare(&mut self, snapshot: &Arc<Snapshot>) -> Result<(), IndexError> {
        if self.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot)) {
            return Ok(());
        }
        let docids = snapshot.docids_of_share(self.worker, self.shared.desks.len());
        if self.shared.copies {
            self.copied = Some(Copied::new(snapshot.generation(), &docids)?);
        } else {
            self.searcher.take_share(docids);
        }
        self.snapshot = Some(snapshot.clone());
        Ok(())
    }

    fn work(&mut self, round: &Round) -> Result<(), IndexError> {
        if round.plan.listing_of_all().is_some() {
            // The best of a share are none of all that matches: this worker has the query alone.
            let mut searcher = Searcher::new();
            searcher.answer(&round.plan)?;
            self.let_go();
            self.claimed = true;
            self.answers.push(Answer::of(round.number, &round.plan, &mut searcher));
            return Ok(());
        }
        self.prepare(round.plan.snapshot())?;
        match &self.copied {
            None => self.searcher.answer_stage(&round.plan, round.stage)?,
            Some(copied) => self.searcher.find_in(&round.plan, copied, round.stage)?,
        };
        let workers = self.shared.desks.len();
        let Some((hits, matching)) = round.add(&self.searcher, workers) else { return Ok(()) };
        let number = round.number;
        let plan = &round.plan;
        match round.stage.next(plan.wanted(), hits.len()) {
            Some(stage) => self.shared.lay(self.worker, number, plan.clone(), stage),
            None => {
                self.let_go();
                self.claimed = true;
                self.answers.push(Answer::new(number, plan, hits, matching));
            }
        }
        Ok(())
    }
}

impl QueryEngine for ShareEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        if !std::mem::take(&mut self.claimed) {
            self.shared.open.fetch_add(1, Ordering::AcqRel);
        }
        let stage = Stage::first(plan.wanted().mode);
        self.shared.lay(self.worker, number, Arc::new(plan), stage);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        let start = Instant::now();
        loop {
            let round = {
                let mut desk = lock(&self.shared.desks[self.worker]);
                let round = desk.rounds.pop_front();
                desk.asleep = round.is_none();
                round
            };
            let Some(round) = round else { return Ok(self.rest()) };
            self.idle = None;
            self.work(&round)?;
            // Who has an answer hands it out, and takes the next query where there is a barrier.
            if !self.answers.is_empty() || start.elapsed() > SLICE {
                return Ok(Pace::Busy);
            }
        }
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&mut self) -> bool {
        let more = |open| (open < self.shared.most_open()).then_some(open + 1);
        let open = &self.shared.open;
        self.claimed |=
            !self.claimed && open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        self.claimed
    }

    fn let_go(&mut self) {
        if std::mem::take(&mut self.claimed) {
            self.shared.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
