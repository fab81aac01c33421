//! Answers to many queries at once, by threads that take the next queries when they have answered
//! some, into one column of docids and one of scores.
//!
//! For queries that come one by one, or whose answers are wanted as they come, there is the [query
//! service](crate::dataflow::query::service), which gives the same answers.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TAKEN: usize = 4;

/// The hits of many queries, query after query, each best first.
#[derive(Clone, Debug, PartialEq)]
pub struct ManyHits {
    /// Where the hits of each query begin, then the end of all: `[queries + 1]`.
    pub offsets: Vec<u64>,
    /// `[hits]`.
    pub docids: Vec<u32>,
    /// `[hits]`.
    pub scores: Vec<f32>,
    /// Queries of which no term is in the index.
    pub unknown: usize,
}

#[derive(Default)]
struct Found {
    /// The first query of some that were taken together, and the hits of each.
    taken: Vec<(usize, [usize; TAKEN])>,
    docids: Vec<u32>,
    scores: Vec<f32>,
    unknown: usize,
}

/// Answers all `queries` with so many `threads`.
///
/// # Errors
/// If the index is damaged; `Stopped` if `stop` was set before all were answered.
pub fn search_many<Q: AsRef<str> + Sync>(
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    queries: &[Q],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<ManyHits, IndexError> {
    let (next, failed) = (AtomicUsize::new(0), Stop::default());
    let work = || {
        let found = answer(snapshot, wanted, queries, (&next, stop, &failed));
        if found.is_err() {
            failed.set();
        }
        found
    };
    let threads = threads.get().min(queries.len().div_ceil(TAKEN)).max(1);
    let found: Result<Vec<Found>, IndexError> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = others.into_iter().map(|thread| thread.join().expect("a search panicked"));
        std::iter::once(own).chain(others).collect()
    });
    let found = found?;
    stop.check()?;
    Ok(in_order(&found, queries.len()))
}

fn answer<Q: AsRef<str>>(
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    queries: &[Q],
    (next, stop, failed): (&AtomicUsize, &Stop, &Stop),
) -> Result<Found, IndexError> {
    let (mut searcher, mut found) = (Searcher::new(), Found::default());
    while !stop.is_set() && !failed.is_set() {
        let first = next.fetch_add(TAKEN, Ordering::Relaxed);
        let Some(rest) = queries.get(first..).filter(|rest| !rest.is_empty()) else { break };
        let mut counts = [0; TAKEN];
        for (query, count) in rest.iter().zip(&mut counts) {
            let (hits, known) = searcher.search(snapshot, wanted, query.as_ref())?;
            found.docids.extend(hits.iter().map(|hit| hit.docid));
            found.scores.extend(hits.iter().map(|hit| hit.score));
            found.unknown += usize::from(!known);
            *count = hits.len();
        }
        found.taken.push((first, counts));
    }
    Ok(found)
}

fn in_order(found: &[Found], queries: usize) -> ManyHits {
    // For each group of queries taken together: the thread, and where its hits begin there.
    let mut places = vec![(0, 0, [0; TAKEN]); queries.div_ceil(TAKEN)];
    for (thread, found) in found.iter().enumerate() {
        let mut start = 0;
        for &(first, counts) in &found.taken {
            places[first / TAKEN] = (thread, start, counts);
            start += counts.iter().sum::<usize>();
        }
    }
    let hits = found.iter().map(|found| found.docids.len()).sum();
    let mut all = ManyHits {
        offsets: Vec::with_capacity(queries + 1),
        docids: Vec::with_capacity(hits),
        scores: Vec::with_capacity(hits),
        unknown: found.iter().map(|found| found.unknown).sum(),
    };
    let mut offset = 0;
    for (thread, start, counts) in places {
        let end = start + counts.iter().sum::<usize>();
        all.docids.extend_from_slice(&found[thread].docids[start..end]);
        all.scores.extend_from_slice(&found[thread].scores[start..end]);
        for count in counts {
            all.offsets.push(offset);
            offset += count as u64;
        }
    }
    // The last group may have fewer queries.
    all.offsets.truncate(queries);
    all.offsets.push(offset);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};
    use crate::query::snapshot::Scoring;

    fn threads(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn answers_are_those_of_one_searcher_in_the_order_of_the_queries() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(3, 300, 60);
        build(folder.path(), &collection, &[0, 130]);
        let generation = Generation::open(folder.path(), true).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let terms: Vec<&String> = collection.iter().flat_map(|d| d.keys()).collect();
        for count in [0, 1, 3, 4, 5, 50] {
            let queries: Vec<String> = (0..count)
                .map(|i| match i % 7 {
                    3 => "nowhere".to_string(),
                    n => (0..=n).map(|j| terms[(31 * i + j) % terms.len()].clone() + " ").collect(),
                })
                .collect();
            let wanted = Wanted { k: 7, ..Wanted::default() };
            let (mut searcher, mut expected) = (Searcher::new(), Vec::new());
            for query in &queries {
                expected.push(searcher.search(&snapshot, &wanted, query).unwrap().0.to_vec());
            }
            for n in [1, 2, 5] {
                let found = search_many(&snapshot, &wanted, &queries, threads(n), &Stop::default())
                    .unwrap();
                assert_eq!(found.offsets.len(), count + 1);
                assert_eq!(found.unknown, queries.iter().filter(|q| *q == "nowhere").count());
                for (at, hits) in expected.iter().enumerate() {
                    let range = found.offsets[at] as usize..found.offsets[at + 1] as usize;
                    let docids: Vec<u32> = hits.iter().map(|hit| hit.docid).collect();
                    let scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
                    assert_eq!(found.docids[range.clone()], docids, "{n} threads, query {at}");
                    assert_eq!(found.scores[range], scores);
                }
                assert_eq!(found.docids.len() as u64, *found.offsets.last().unwrap());
            }
        }
    }

    #[test]
    fn who_is_told_to_stop_answers_nothing() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(3, 20, 20), &[0]);
        let generation = Generation::open(folder.path(), true).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let stop = Stop::default();
        stop.set();
        let found =
            search_many(&snapshot, &Wanted::default(), &["a"; 9], threads(2), &stop).unwrap_err();
        assert!(matches!(found, IndexError::Stopped), "{found}");
    }
}
