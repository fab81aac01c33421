//! Engines that answer queries whole, each on the worker that took it: `inter` (`tatikonda11`,
//! algorithm 1). A worker takes the next query when it has answered those before, or some of many
//! that wait, so that queries go to whichever core becomes free.

use super::{Answer, Engines, Pace, QueryEngine};
use crate::index::error::IndexError;
use crate::query::plan::Plan;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A worker takes as many queries at a time as it answers in about this time, at most [`MOST`]:
/// then the lock of those that wait takes little time, and none waits long for others.
const TOGETHER: Duration = Duration::from_micros(250);
const MOST: u128 = 8;

#[derive(Default)]
pub(crate) struct WholeEngine {
    searcher: Searcher,
    query: Option<(u64, Plan)>,
    answer: Option<Answer>,
    failed: Option<u64>,
    /// What a query takes, as far as is known.
    mean: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub struct WholeEngines;

impl Engines for WholeEngines {
    fn engine(
        &self,
        _worker: usize,
        _snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        Ok(Box::<WholeEngine>::default())
    }

    fn answers_whole(&self) -> bool {
        true
    }
}

impl QueryEngine for WholeEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        debug_assert!(self.query.is_none(), "there is room for one query");
        self.query = Some((number, plan));
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        let Some((number, plan)) = self.query.take() else { return Ok(Pace::Idle) };
        let start = Instant::now();
        if let Err(error) = self.searcher.answer(&plan) {
            // What is kept from query to query may be half written.
            self.searcher = Searcher::default();
            self.failed = Some(number);
            return Err(error);
        }
        self.answer = Some(Answer::of(number, &plan, &mut self.searcher));
        let took = start.elapsed();
        self.mean = Some(self.mean.map_or(took, |mean| (7 * mean + took) / 8));
        Ok(Pace::Idle)
    }

    fn failed(&mut self) -> Option<u64> {
        self.failed.take()
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.extend(self.answer.take());
    }

    fn takes(&self) -> usize {
        let Some(mean) = self.mean else { return 1 };
        (TOGETHER.as_nanos() / mean.as_nanos().max(1)).clamp(1, MOST) as usize
    }

    fn room(&mut self) -> bool {
        self.query.is_none() && self.answer.is_none()
    }
}
