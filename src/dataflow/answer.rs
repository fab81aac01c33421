//! Answers queries, each on one worker: `--parallelism inter` (`tatikonda11`, algorithm 1).
//!
//! - In: queries, spread over the workers in turn. Out: answers as text, at the batch's time, in no
//!   order.
//! - Memory: the queries that wait; the number of batches under way is bounded.
//! - Work per activation: queries for about a millisecond.

use super::batch::Numbered;
use super::control::Guard;
use super::query::QueryJob;
use crate::dictionary::group::Local;
use crate::query::searcher::Searcher;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;

/// The answer to a query, as it will be written.
pub struct Answered {
    /// Place of the query in its batch.
    pub place: u32,
    /// Lines of output; none for a query without hits in some forms.
    pub text: String,
}

/// An activation begins no further query after this time.
pub(super) const SLICE: Duration = Duration::from_millis(1);

/// See the [module](self).
pub trait Answer<'scope> {
    /// Answers queries.
    fn answer(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>>;
}

impl<'scope> Answer<'scope> for StreamVec<'scope, u64, Local<Numbered>> {
    fn answer(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>> {
        let job = job.clone();
        let scope = self.scope();
        let worker = scope.index();
        let in_turn = Exchange::new(|Local(query): &Local<Numbered>| query.number);
        self.unary(in_turn, "Answer", move |_, info| {
            let guard = Guard::new(&job.control, "Answer", worker);
            let activator = scope.activator_for(info.address);
            let mut searcher = Searcher::new(job.shared.clone());
            let mut waiting = VecDeque::new();
            move |input, output| {
                input.for_each(|cap, data| {
                    for Local(query) in data.drain(..) {
                        waiting.push_back((cap.retain(0), query));
                    }
                });
                let start = Instant::now();
                while let Some((cap, query)) = waiting.pop_front() {
                    let answered = guard.work(|| {
                        let began = Instant::now();
                        let (hits, known) = searcher.search(&query.query.text)?;
                        Ok(job.write(&query, hits, known, began.elapsed()))
                    });
                    let Some(answered) = answered else { return };
                    output.session(&cap).give(Local(answered));
                    if start.elapsed() > SLICE && !waiting.is_empty() {
                        return activator.activate();
                    }
                }
            }
        })
    }
}
