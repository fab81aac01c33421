//! The documents that are to be ranked for each query, and no others: a run of another system, or
//! of a first stage.

#![warn(missing_docs)]

use super::reading::asked::{GivenDocids, Query};
use super::snapshot::Snapshot;
use crate::index::error::IndexError;
use crate::shown::{number_of, one_word, one_word_of, visible};
use std::collections::HashMap;

/// How many names that no document has are printed.
const TOLD: usize = 3;

/// The candidates of each query.
#[derive(Debug, Default)]
pub struct CandidatesByQuery {
    by_query: HashMap<String, GivenDocids>,
    /// Names that no document of the index has.
    unknown: Vec<String>,
}

impl CandidatesByQuery {
    /// From the name of a query and that of a document for each candidate. Both are compared as an
    /// answer writes them. Of several documents of one name each is a candidate. Looks at the names
    /// of all documents once.
    ///
    /// # Errors
    /// If a name is damaged.
    pub fn new<'a>(
        snapshot: &Snapshot,
        given: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, IndexError> {
        let mut places = HashMap::new();
        let mut of_queries: HashMap<String, Vec<usize>> = HashMap::new();
        for (qid, name) in given {
            let next = places.len();
            let place = *places.entry(one_word(name).into_owned()).or_insert(next);
            of_queries.entry(one_word_of(qid).into_owned()).or_default().push(place);
        }
        let mut docids = vec![Vec::new(); places.len()];
        let documents = snapshot.generation().documents();
        for docid in snapshot.share().start..snapshot.share().end.min(documents.len()) {
            let name = documents.name(docid)?;
            let is_live = snapshot.norms()[docid as usize].is_finite();
            if let Some(&place) = places.get(&*one_word(&name)).filter(|_| is_live) {
                docids[place].push(docid);
            }
        }
        let by_query = of_queries.into_iter().map(|(qid, places)| {
            let mut all: Vec<u32> =
                places.iter().flat_map(|&place| docids[place].iter().copied()).collect();
            all.sort_unstable();
            all.dedup();
            (qid, all.into())
        });
        let by_query = by_query.collect();
        let missing = places.into_iter().filter(|(_, place)| docids[*place].is_empty());
        let mut unknown: Vec<String> =
            missing.map(|(name, _)| String::from_utf8_lossy(&name).into_owned()).collect();
        unknown.sort_unstable();
        Ok(Self { by_query, unknown })
    }

    /// Those of a query; none if it has none.
    pub fn of(&self, qid: &str) -> GivenDocids {
        self.by_query.get(&*one_word_of(qid)).cloned().unwrap_or_default()
    }

    /// Lets the candidates of the query be ranked, all of them unless it has a k of its own or
    /// there is one for all.
    pub fn give(&self, query: &mut Query, k: Option<usize>) {
        let given = self.of(&query.qid);
        query.k = query.k.or(k).or(Some(given.len()));
        query.candidates = Some(given);
    }

    /// What is to be said of names that no document has.
    pub fn remark(&self) -> Option<String> {
        let first: Vec<_> = self.unknown.iter().take(TOLD).map(|name| visible(name)).collect();
        let count = number_of(self.unknown.len() as u64, "candidate is", "candidates are");
        let more = if self.unknown.len() > TOLD { ", ..." } else { "" };
        let said = format!("{count} not in the index: {}{more}", first.join(", "));
        (!first.is_empty()).then_some(said)
    }
}
