//! Engines that answer queries whole, each on the worker that took it: `inter` (`tatikonda11`,
//! algorithm 1). A worker takes the next query when it has answered those before, or some of many
//! that wait, so that queries go to whichever core becomes free.

use super::{Answer, Engines, Pace, QueryEngine};
use crate::index::error::IndexError;
use crate::query::plan::Plan;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct WholeEngine {
    searcher: Searcher,
    query: Option<(u64, Plan)>,
    answer: Option<Answer>,
    failed: Option<u64>,
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
        if let Err(error) = self.searcher.answer(&plan) {
            // What is kept from query to query may be half written.
            self.searcher = Searcher::default();
            self.failed = Some(number);
            return Err(error);
        }
        self.answer = Some(Answer::of(number, &plan, &mut self.searcher));
        Ok(Pace::Idle)
    }

    fn failed(&mut self) -> Option<u64> {
        self.failed.take()
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.extend(self.answer.take());
    }

    /// Enough that the lock of the queries that wait takes little time, and so few that not many
    /// wait for one that takes long.
    fn takes(&self) -> usize {
        8
    }

    fn room(&mut self) -> bool {
        self.query.is_none() && self.answer.is_none()
    }
}
