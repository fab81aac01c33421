//! The end of a job, well or not.
//!
//! When a worker panics, timely leaves the other workers of the process waiting for ever, and it
//! has no operators that fail. So every operator runs its work through an [`OperatorGuard`], which
//! keeps the first failure of the job, and every worker's step loop polls the [`Control`] and drops
//! its dataflows as soon as there is one.

use super::timeline::Timeline;
use crate::cluster::{ClusterError, PeerFailure};
use crate::crew::lock;
use crate::index::files::storage::Stop;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thiserror::Error;
use tracing::debug;

pub(crate) type Cause = Box<dyn Error + Send + Sync>;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobError {
    #[error("worker {worker} failed")]
    Operator {
        operator: &'static str,
        worker: usize,
        #[source]
        source: Cause,
    },
    /// A bug of millrace.
    #[error("worker {worker} panicked: {message} (this is a bug: please report it)")]
    Panic {
        worker: usize,
        /// Message and place.
        message: String,
    },
    #[error("ended by signal {0}")]
    Signal(i32),
    #[error("the job was cancelled")]
    Cancelled,
    /// A quiet end.
    #[error("the reader of the output has closed it")]
    OutputClosed,
    #[error("{0}")]
    Peer(PeerFailure),
    /// The processes of the job do not come together.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the workers could not be started: {0}")]
    Start(String),
}

/// Seconds that one operator of one worker has worked.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorTime {
    pub operator: &'static str,
    pub worker: usize,
    pub seconds: f64,
    /// When it last worked, in seconds from the beginning of the job.
    pub until: f64,
    pub timeline: Timeline,
}

/// The working time of an operator on all workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatorShare {
    pub operator: &'static str,
    pub seconds: f64,
    /// Of the working time of all operators.
    pub share: f64,
    /// When it last worked, in seconds from the beginning of the job.
    pub until_s: f64,
    pub seconds_by_worker: Vec<f64>,
}

impl OperatorShare {
    /// By name.
    pub fn of(times: &[OperatorTime]) -> Vec<Self> {
        let all: f64 = times.iter().map(|time| time.seconds).sum();
        let mut by_name: BTreeMap<&'static str, Vec<&OperatorTime>> = BTreeMap::new();
        for time in times {
            by_name.entry(time.operator).or_default().push(time);
        }
        let share = |(operator, mut times): (&'static str, Vec<&OperatorTime>)| {
            times.sort_by_key(|time| time.worker);
            let seconds_by_worker: Vec<f64> = times.iter().map(|time| time.seconds).collect();
            let seconds: f64 = seconds_by_worker.iter().sum();
            let share = if all > 0.0 { seconds / all } else { 0.0 };
            let until_s = times.iter().map(|time| time.until).fold(0.0, f64::max);
            Self { operator, seconds, share, until_s, seconds_by_worker }
        };
        by_name.into_iter().map(share).collect()
    }
}

/// Shared by the workers of one job, which any thread may end through it.
pub struct Control {
    began: Instant,
    stop: Stop,
    failure: Mutex<Option<JobError>>,
    /// The job was asked to end.
    asked: AtomicBool,
    times: Mutex<Vec<OperatorTime>>,
}

impl Default for Control {
    fn default() -> Self {
        let (stop, failure, asked, times) = Default::default();
        Self { began: Instant::now(), stop, failure, asked, times }
    }
}

impl Control {
    /// Ends the job; the first failure counts.
    pub fn fail(&self, error: JobError) {
        debug!(%error, "the job is to end");
        let asked =
            matches!(error, JobError::Signal(_) | JobError::Cancelled | JobError::OutputClosed);
        let mut failure = lock(&self.failure);
        self.asked.fetch_or(asked, Ordering::Relaxed);
        failure.get_or_insert(error);
        self.stop.set();
    }

    /// Lets another job begin in the place of one that failed and has ended, unless it was asked to
    /// end.
    pub(crate) fn revive(&self) -> bool {
        let mut failure = lock(&self.failure);
        let revived = !self.is_asked();
        if revived {
            *failure = None;
            lock(&self.times).clear();
            self.stop.clear();
        }
        revived
    }

    /// Ends the job with [`JobError::Cancelled`], unless it has failed already.
    pub fn cancel(&self) {
        self.fail(JobError::Cancelled);
    }

    /// Whether the job was asked to end; a failure alone is no such request.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Ends work on files that is no operator's, such as a merge.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The signal that ends the job, if one does.
    pub(crate) fn signal(&self) -> Option<i32> {
        match *lock(&self.failure) {
            Some(JobError::Signal(number)) => Some(number),
            _ => None,
        }
    }

    pub fn take_failure(&self) -> Option<JobError> {
        lock(&self.failure).take()
    }

    /// Once the job has ended.
    pub(crate) fn operator_times(&self) -> Vec<OperatorTime> {
        lock(&self.times).clone()
    }
}

/// An operator of one worker runs its work through this.
pub(crate) struct OperatorGuard {
    control: Arc<Control>,
    operator: &'static str,
    worker: usize,
    worked: Cell<Duration>,
    until: Cell<Instant>,
    timeline: RefCell<Timeline>,
}

impl OperatorGuard {
    pub(crate) fn new(control: &Arc<Control>, operator: &'static str, worker: usize) -> Self {
        let until = Cell::new(control.began);
        let control = control.clone();
        let (worked, timeline) = Default::default();
        Self { control, operator, worker, worked, until, timeline }
    }

    /// Does a part of the operator's work, unless the job has ended; a failure ends it.
    pub(crate) fn work<R>(&self, work: impl FnOnce() -> Result<R, Cause>) -> Option<R> {
        if self.control.stopped() {
            return None;
        }
        let start = Instant::now();
        let result =
            crate::fault::operator(self.operator).map_err(Cause::from).and_then(|()| work());
        let end = Instant::now();
        self.worked.set(self.worked.get() + (end - start));
        self.until.set(end);
        let began = self.control.began;
        self.timeline.borrow_mut().add(start - began, end - began);
        match result {
            Ok(result) => Some(result),
            Err(source) => {
                let &Self { operator, worker, .. } = self;
                self.control.fail(JobError::Operator { operator, worker, source });
                None
            }
        }
    }
}

impl Drop for OperatorGuard {
    fn drop(&mut self) {
        let seconds = self.worked.get().as_secs_f64();
        let until = (self.until.get() - self.control.began).as_secs_f64();
        let &mut Self { operator, worker, .. } = self;
        let timeline = self.timeline.take();
        let time = OperatorTime { operator, worker, seconds, until, timeline };
        lock(&self.control.times).push(time);
    }
}
