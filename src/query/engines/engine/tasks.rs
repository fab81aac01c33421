//! Engines that answer queries by tasks for whichever worker comes first: `fgqp` (`tatikonda11`,
//! section 3.2.2). The workers of a process share a [`Pool`] of queries and tasks; the worker that
//! does the last task of a query has its answer.

use super::{Answer, Engines, Pace, QueryEngine, Wakers};
use crate::index::error::IndexError;
use crate::query::engines::pool::{BegunQuery, OpenQuery, Pool, PoolWork, TasksDone};
use crate::query::plan::Plan;
use crate::query::searcher::{Begun, Cutting, Searcher};
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Stage;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

type NumberedPlan = (u64, Arc<Plan>);

#[derive(Debug)]
struct SharedPool {
    pool: Pool<NumberedPlan>,
    cutting: Cutting,
    patience: Duration,
    wakers: Arc<Wakers>,
}

#[derive(Debug)]
pub(crate) struct TaskCrew(Arc<SharedPool>);

impl TaskCrew {
    /// A new query is cut only while at most `delta` tasks are open; workers look for work for
    /// `patience` before they sleep. A single worker cuts none.
    pub(crate) fn new(
        delta: usize,
        cutting: Cutting,
        patience: Duration,
        wakers: &Arc<Wakers>,
    ) -> Self {
        let workers = wakers.workers();
        let least_ns = if workers > 1 { cutting.least_ns } else { f64::INFINITY };
        let cutting = Cutting { least_ns, ..cutting };
        let pool = Pool::new(delta, workers);
        let wakers = wakers.clone();
        Self(Arc::new(SharedPool { pool, cutting, patience, wakers }))
    }
}

impl Engines for TaskCrew {
    fn engine(
        &self,
        worker: usize,
        _snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        Ok(Box::new(TaskEngine {
            shared: self.0.clone(),
            worker,
            searcher: Searcher::new(),
            idle: None,
            answers: Vec::new(),
        }))
    }

    fn wants_cores(&self) -> bool {
        true
    }
}

struct TaskEngine {
    shared: Arc<SharedPool>,
    worker: usize,
    searcher: Searcher,
    /// Since when a worker that does not sleep has had nothing to do.
    idle: Option<Instant>,
    answers: Vec<Answer>,
}

impl TaskEngine {
    fn work(&mut self, work: PoolWork<NumberedPlan>) -> Result<(), IndexError> {
        match work {
            PoolWork::Begin(BegunQuery { query: (number, plan), waiting, tasks }) => {
                let cutting = self.shared.cutting.before(waiting);
                self.begin(number, &plan, Stage::first(plan.wanted().mode), &cutting, tasks)
            }
            PoolWork::Tasks(open, tasks) => self.tasks(&open, tasks),
        }
    }

    fn begin(
        &mut self,
        number: u64,
        plan: &Arc<Plan>,
        stage: Stage,
        cutting: &Cutting,
        expected: usize,
    ) -> Result<(), IndexError> {
        match self.searcher.begin(plan, stage, cutting)? {
            Begun::Answered => {
                self.shared.pool.answered_whole(expected);
                self.answers.push(Answer::of(number, plan, &mut self.searcher));
            }
            Begun::Cut(cut) => {
                let woken = self.shared.pool.open((number, plan.clone()), cut, expected);
                self.shared.wakers.wake(&woken);
            }
        }
        Ok(())
    }

    fn tasks(
        &mut self,
        open: &OpenQuery<NumberedPlan>,
        tasks: Range<usize>,
    ) -> Result<(), IndexError> {
        let start = Instant::now();
        self.searcher.work(&open.cut, tasks.clone(), open.floor())?;
        let (number, plan) = &open.query;
        match open.done(tasks, start.elapsed(), self.searcher.hits()) {
            TasksDone::More => {}
            // What counts is not cut.
            TasksDone::Answered(hits) => self.answers.push(Answer::new(*number, plan, hits, None)),
            TasksDone::Next(stage) => {
                let cutting = self.shared.cutting;
                self.begin(*number, plan, stage, &cutting, 0)?;
            }
        }
        Ok(())
    }
}

impl QueryEngine for TaskEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        let woken = self.shared.pool.push([(number, Arc::new(plan))]);
        self.shared.wakers.wake(&woken);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        let waited = self.idle.map_or(Duration::ZERO, |since| since.elapsed());
        let sleep = waited >= self.shared.patience;
        if self.idle.is_some() && !sleep && !self.shared.pool.has_work() {
            std::thread::yield_now();
            return Ok(Pace::Soon);
        }
        let cutting = self.shared.cutting;
        let tasks = |(_, plan): &NumberedPlan, waiting| cutting.before(waiting).tasks_of(plan);
        let (work, woken) = self.shared.pool.take(self.worker, sleep, tasks);
        self.shared.wakers.wake(&woken);
        if let Some(work) = work {
            self.idle = None;
            self.work(work)?;
            return Ok(Pace::Busy);
        }
        if sleep {
            self.idle = None;
            return Ok(Pace::Idle);
        }
        self.idle.get_or_insert_with(Instant::now);
        std::thread::yield_now();
        Ok(Pace::Soon)
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&mut self) -> bool {
        self.shared.pool.wants_query()
    }

    fn waiting(&mut self, queries: usize) {
        let woken = self.shared.pool.behind(queries);
        self.shared.wakers.wake(&woken);
    }
}
