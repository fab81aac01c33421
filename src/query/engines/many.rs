//! Answers to many queries at once, by threads that take the next queries when they have answered
//! some, into one column of docids and one of scores.
//!
//! For queries that come one by one, or whose answers are wanted as they come, there is the [query
//! service](crate::dataflow::query::service), which gives the same answers.

#![warn(missing_docs)]
use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::query::reading::asked::{GivenDocids, Query};
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::Wanted;
use std::num::NonZeroUsize;
use std::sync::Arc;

const TAKEN: usize = 4;

/// The hits of many queries, query after query, each best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManyHits {
    /// Where the hits of each query begin, then the end of all: `[queries + 1]`.
    pub offsets: Vec<u64>,
    /// `[hits]`.
    pub docids: Vec<u32>,
    /// `[hits]`.
    pub scores: Vec<f32>,
    /// How many documents match each query, if that is asked for: `[queries]`, or nothing.
    pub found: Vec<u64>,
    /// The facets of each query as an object in JSON, if they ask for any: `[queries]`, or nothing.
    pub facets: Vec<String>,
    /// Queries of which no term is in the index.
    pub unknown: usize,
    /// The places of queries that are none, and have no hits, and why.
    pub refused: Vec<(usize, String)>,
}

impl ManyHits {
    fn push(&mut self, hits: &[Hit], known: bool) {
        self.docids.extend(hits.iter().map(|hit| hit.docid));
        self.scores.extend(hits.iter().map(|hit| hit.score));
        self.unknown += usize::from(!known);
        self.offsets.push(self.docids.len() as u64);
    }

    /// Keeps the first `most` hits of each query that are such: by its place and the docid.
    pub fn keep(&mut self, most: usize, is: impl Fn(usize, u32) -> bool) {
        let mut kept = 0;
        let mut start = 0;
        for query in 0..self.offsets.len().saturating_sub(1) {
            let end = self.offsets[query + 1] as usize;
            let first = kept;
            for at in start..end {
                if kept - first < most && is(query, self.docids[at]) {
                    self.docids[kept] = self.docids[at];
                    self.scores[kept] = self.scores[at];
                    kept += 1;
                }
            }
            start = end;
            self.offsets[query + 1] = kept as u64;
        }
        self.docids.truncate(kept);
        self.scores.truncate(kept);
    }
}

/// Answers all `queries` with this many `threads`, and counts them.
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
    answer_many(queries.len(), wanted.count, threads, stop, |searcher, at, found| {
        let (hits, known) = searcher.search(snapshot, wanted, queries[at].as_ref())?;
        found.push(hits, known);
        found.found.extend(searcher.found());
        Ok(())
    })
}

/// Answers all `queries` as they ask for it; `usual` has what they leave open.
///
/// # Errors
/// As [`search_many`].
pub fn ask_many(
    snapshot: &Arc<Snapshot>,
    usual: &Wanted,
    queries: &[Query],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<ManyHits, IndexError> {
    let has_facets = queries.iter().any(|query| query.facets.is_some());
    let mut all = answer_many(queries.len(), usual.count, threads, stop, |searcher, at, found| {
        let (hits, known) = searcher.ask(snapshot, usual, &queries[at])?;
        found.push(hits, known);
        found.found.extend(searcher.found());
        let facets = has_facets.then(|| serde_json::to_string(&searcher.take_facets()));
        found.facets.extend(facets.map(|facets| facets.expect("words and numbers are JSON")));
        Ok(())
    })?;
    // Queries that are none have no facets.
    if has_facets {
        all.refused.iter().for_each(|(at, _)| all.facets.insert(*at, "{}".to_string()));
    }
    Ok(all)
}

/// Ranks the documents that are given for each query, and no others.
///
/// # Errors
/// As [`search_many`].
///
/// # Panics
/// If there are other numbers of queries and of their documents.
pub fn rank_many<Q: AsRef<str> + Sync>(
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    queries: &[Q],
    given: &[GivenDocids],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<ManyHits, IndexError> {
    assert_eq!(queries.len(), given.len());
    answer_many(queries.len(), wanted.count, threads, stop, |searcher, at, found| {
        let text = queries[at].as_ref();
        let (hits, known) = searcher.rank_given(snapshot, wanted, text, &given[at])?;
        found.push(hits, known);
        found.found.extend(searcher.found());
        Ok(())
    })
}

fn answer_many(
    queries: usize,
    counts: bool,
    threads: NonZeroUsize,
    stop: &Stop,
    answer: impl Fn(&mut Searcher, usize, &mut ManyHits) -> Result<(), IndexError> + Sync,
) -> Result<ManyHits, IndexError> {
    let answer = |searcher: &mut Searcher, number: usize| {
        stop.check()?;
        let mut found = ManyHits::default();
        for at in (number * TAKEN..queries).take(TAKEN) {
            match answer(searcher, at, &mut found) {
                Err(IndexError::Query { why }) => {
                    found.refused.push((at, why));
                    found.push(&[], true);
                    found.found.extend(counts.then_some(0));
                }
                answered => answered?,
            }
            stop.pass(1);
        }
        Ok::<_, IndexError>(found)
    };
    let taken = queries.div_ceil(TAKEN);
    let found = Crew::new("answers").in_order(threads.get(), taken, answer)?;
    stop.check()?;
    let hits = found.iter().map(|found| found.docids.len()).sum();
    let mut all = ManyHits {
        offsets: Vec::with_capacity(queries + 1),
        docids: Vec::with_capacity(hits),
        scores: Vec::with_capacity(hits),
        ..ManyHits::default()
    };
    all.offsets.push(0);
    for found in found {
        let before = all.docids.len() as u64;
        all.offsets.extend(found.offsets.iter().map(|end| before + end));
        all.docids.extend(found.docids);
        all.scores.extend(found.scores);
        all.found.extend(found.found);
        all.facets.extend(found.facets);
        all.unknown += found.unknown;
        all.refused.extend(found.refused);
    }
    Ok(all)
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
        let generation = Generation::open(folder.path()).unwrap();
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
            let mut searcher = Searcher::new();
            let mut expected = Vec::new();
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
    fn a_query_of_too_many_terms_is_refused_alone() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(3, 20, 20), &[0]);
        let generation = Generation::open(folder.path()).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let long: String = (0..=1 << 16).map(|word| format!("w{word} ")).collect();
        let mut queries = vec!["nowhere".to_string(); 11];
        queries[6] = long;
        let stop = Stop::default();
        let found =
            search_many(&snapshot, &Wanted::default(), &queries, threads(2), &stop).unwrap();
        let why = "has more than 65536 different terms".to_string();
        assert_eq!((found.refused, found.unknown, found.offsets.len()), (vec![(6, why)], 10, 12));
    }

    #[test]
    fn who_is_told_to_stop_answers_nothing() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(3, 20, 20), &[0]);
        let generation = Generation::open(folder.path()).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let stop = Stop::default();
        stop.set();
        let found =
            search_many(&snapshot, &Wanted::default(), &["a"; 9], threads(2), &stop).unwrap_err();
        assert!(matches!(found, IndexError::Stopped), "{found}");
    }
}
