//! What goes between processes about a query: the query to its home, terms to be counted and their
//! counts, the question to each shard, and the hits of each.

use super::words::{facet_of, list, put_facet, put_list, put_value, value_of};
use crate::dataflow::crossing::{CrossingRecord, Words, put_numbers, put_text};
use crate::dataflow::query::waiter::Waiter;
use crate::index::columns::ColumnValue;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::answers::returned::ReturnedValues;
use crate::query::listing::facets::FoundFacets;
use crate::query::listing::{FacetBy, SortBy};
use crate::query::reading::lines::{Query, Refused};
use crate::query::top_k::Hit;
use crate::query::wanted::{Algorithm, Mode, Syntax, Wanted};
use std::sync::Arc;

/// A query on its way to its home.
#[derive(Clone, Debug)]
pub(crate) struct PostedQuery {
    /// The worker that is its home.
    pub home: u32,
    /// In its batch, from 0.
    pub place: u32,
    pub number: u64,
    pub query: Result<Query, Refused>,
    /// Never crosses: the home of a query that is waited for is in process 0.
    pub waiter: Option<Arc<dyn Waiter>>,
}

/// Terms whose document frequencies a home does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownTerms {
    /// The worker that looks them up.
    pub worker: u32,
    pub home: u32,
    pub number: u64,
    pub terms: Vec<String>,
}

/// Their document frequencies in one shard, in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedTerms {
    pub home: u32,
    pub number: u64,
    pub process: u32,
    pub dfs: Vec<u64>,
}

/// What a shard is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The worker that takes it, and the home that asks.
    pub worker: u32,
    pub home: u32,
    pub number: u64,
    pub k: usize,
    pub mode: Mode,
    pub syntax: Syntax,
    pub count: bool,
    /// The name of one that the other process has, too.
    pub algorithm: String,
    /// Hits below this score are not wanted.
    pub floor: f32,
    /// In all shards, by first appearance of the distinct terms.
    pub dfs: Vec<u64>,
    /// Its text, and what it asks of columns.
    pub query: Query,
}

impl Question {
    /// What is asked for, by an algorithm of this program or one that was handed in.
    pub(crate) fn wanted(&self, handed: HandedAlgorithms) -> Result<Wanted, String> {
        let name = &self.algorithm;
        let algorithm = Algorithm::among(name, handed).map_err(|all| {
            format!("another process asks for the algorithm {name}; here are {all}")
        })?;
        let &Self { k, mode, syntax, count, .. } = self;
        Ok(Wanted { k, mode, algorithm, syntax, count })
    }
}

/// What a shard has found for a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShardHits {
    pub home: u32,
    pub number: u64,
    pub process: u32,
    /// Whether any of its terms is in the index.
    pub known: bool,
    /// Of the wanted mode; of AND+OR, documents with all terms.
    pub first: StageHits,
    /// Of AND+OR, documents with any term, if this shard has fewer with all than it was asked for.
    pub any: StageHits,
}

/// What a shard has found in a stage: hits, best first, and of each its name and what a listing
/// needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StageHits {
    /// With docids of the whole index.
    pub hits: Vec<Hit>,
    pub names: Names,
    /// If hits are sorted by a column; else empty.
    pub keys: Vec<Option<ColumnValue>>,
    /// If any are asked for; else empty.
    pub values: Vec<ReturnedValues>,
    /// How many documents match; 0 if that is not asked for.
    pub found: u64,
    pub facets: FoundFacets,
}

/// Names of documents in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub(crate) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    /// The name at a place; empty if there is none.
    pub(crate) fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let end = self.ends.get(at).copied();
        start.zip(end).and_then(|(start, end)| self.text.get(start..end)).unwrap_or_default()
    }
}

fn place<T: PartialEq>(all: &[T], item: &T) -> u64 {
    all.iter().position(|other| other == item).unwrap_or(all.len()) as u64
}

/// The place of what is there, from 1; 0 if nothing is.
fn put_choice<T: PartialEq>(all: &[T], item: Option<&T>, put: &mut impl FnMut(u64)) {
    put(item.map_or(0, |item| place(all, item) + 1));
}

fn choice<T: Copy>(all: &[T], words: &mut Words<'_>) -> Option<Option<T>> {
    match words.small()? {
        0 => Some(None),
        at => all.get(at as usize - 1).copied().map(Some),
    }
}

/// What a shard needs of a query; without its wishes.
fn put_asked(query: &Query, put: &mut impl FnMut(u64)) {
    let Query { text, filter, sort, facets, returned, .. } = query;
    put_text(text, put);
    put_list(filter.as_slice(), put, |filter, put| put_text(filter, put));
    put_list(sort.as_slice(), put, |sort, put| {
        put_text(&sort.column, put);
        put(sort.falls.into());
    });
    put_list(facets.as_deref().unwrap_or_default(), put, |facet, put| {
        put_text(&facet.column, put);
        put(facet.most as u64);
    });
    let returned = returned.as_deref().unwrap_or_default();
    put_list(returned, put, |name, put| put_text(name, put));
}

fn asked(words: &mut Words<'_>) -> Option<Query> {
    let text = words.text()?;
    let filter = list(words, |words| words.text())?.pop().map(Into::into);
    let sort = |words: &mut Words<'_>| {
        Some(Arc::new(SortBy { column: words.text()?, falls: words.flag()? }))
    };
    let sort = list(words, sort)?.pop();
    let facet = |words: &mut Words<'_>| {
        Some(FacetBy { column: words.text()?, most: words.word()?.try_into().ok()? })
    };
    let facets = Some(list(words, facet)?).filter(|facets| !facets.is_empty()).map(Into::into);
    let returned = Some(list(words, |words| words.text())?).filter(|names| !names.is_empty());
    let returned = returned.map(Into::into);
    Some(Query { text, filter, sort, facets, returned, ..Query::default() })
}

impl CrossingRecord for PostedQuery {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let Self { home, place, number, query, waiter: _ } = self;
        [u64::from(*home), u64::from(*place), *number].into_iter().for_each(&mut *put);
        put(query.is_ok().into());
        match query {
            Ok(query) => {
                put_asked(query, put);
                put_text(&query.qid, put);
                put_list(query.k.as_slice(), put, |k, put| put(*k as u64));
                put_choice(&Mode::ALL, query.mode.as_ref(), put);
                put_list(query.algorithm.as_slice(), put, |of, put| put_text(of.name(), put));
                put_choice(&Syntax::ALL, query.syntax.as_ref(), put);
                put_choice(&[false, true], query.count.as_ref(), put);
                put(query.offset as u64);
                put_choice(&[false, true], query.snippets.as_ref(), put);
            }
            Err(Refused { line, offset, number, why }) => {
                [*line, *offset, *number].into_iter().for_each(&mut *put);
                put_text(why, put);
            }
        }
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [home, place] = [words.small()?, words.small()?];
        let number = words.word()?;
        let query = match words.flag()? {
            true => {
                let asked = asked(words)?;
                let qid = words.text()?;
                let k = list(words, |words| words.word()?.try_into().ok())?.pop();
                let mode = choice(&Mode::ALL, words)?;
                // Whatever is handed in is the same for all queries of a job.
                let algorithm = list(words, |words| words.text())?.pop();
                let algorithm = algorithm.and_then(|name| Algorithm::named(&name));
                let syntax = choice(&Syntax::ALL, words)?;
                let count = choice(&[false, true], words)?;
                let offset = words.word()?.try_into().ok()?;
                let snippets = choice(&[false, true], words)?;
                Ok(Query { qid, k, mode, algorithm, syntax, count, offset, snippets, ..asked })
            }
            false => {
                let [line, offset, number] = [words.word()?, words.word()?, words.word()?];
                Err(Refused { line, offset, number, why: words.text()?.into() })
            }
        };
        Some(Self { home, place, number, query, waiter: None })
    }
}

impl CrossingRecord for UnknownTerms {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let Self { worker, home, number, terms } = self;
        [u64::from(*worker), u64::from(*home), *number].into_iter().for_each(&mut *put);
        put_list(terms, put, |term, put| put_text(term, put));
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [worker, home] = [words.small()?, words.small()?];
        let number = words.word()?;
        Some(Self { worker, home, number, terms: list(words, |words| words.text())? })
    }
}

impl CrossingRecord for CountedTerms {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let Self { home, number, process, dfs } = self;
        [u64::from(*home), *number, u64::from(*process)].into_iter().for_each(&mut *put);
        put_numbers(dfs, put);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let home = words.small()?;
        let number = words.word()?;
        Some(Self { home, number, process: words.small()?, dfs: words.numbers()? })
    }
}

impl CrossingRecord for Question {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let Self { worker, home, number, k, mode, syntax, count, .. } = self;
        [u64::from(*worker), u64::from(*home), *number, *k as u64].into_iter().for_each(&mut *put);
        put(place(&Mode::ALL, mode));
        put(place(&Syntax::ALL, syntax));
        put((*count).into());
        put_text(&self.algorithm, put);
        put(self.floor.to_bits().into());
        put_numbers(&self.dfs, put);
        put_asked(&self.query, put);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [worker, home] = [words.small()?, words.small()?];
        let number = words.word()?;
        let k = words.word()?.try_into().ok()?;
        let mode = *Mode::ALL.get(words.small()? as usize)?;
        let syntax = *Syntax::ALL.get(words.small()? as usize)?;
        let count = words.flag()?;
        let algorithm = words.text()?;
        let floor = f32::from_bits(words.small()?);
        let dfs = words.numbers()?;
        let query = asked(words)?;
        Some(Self { worker, home, number, k, mode, syntax, count, algorithm, floor, dfs, query })
    }
}

impl CrossingRecord for ShardHits {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let Self { home, number, process, known, first, any } = self;
        [u64::from(*home), *number, u64::from(*process), u64::from(*known)]
            .into_iter()
            .for_each(&mut *put);
        for StageHits { hits, names, keys, values, found, facets } in [first, any] {
            put_list(hits, put, |hit, put| {
                put(u64::from(hit.docid) << 32 | u64::from(hit.score.to_bits()));
            });
            put_text(&names.text, put);
            put_list(&names.ends, put, |end, put| put(*end as u64));
            put_list(keys, put, |key, put| put_list(key.as_slice(), put, put_value));
            put_list(values, put, |of, put| {
                put_list(&of.0, put, |(column, values), put| {
                    put_text(&column.to_string(), put);
                    put_list(values, put, put_value);
                });
            });
            put(*found);
            put_list(&facets.0, put, put_facet);
        }
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let home = words.small()?;
        let number = words.word()?;
        let process = words.small()?;
        let known = words.flag()?;
        let mut stage = || {
            let hits = words
                .numbers()?
                .into_iter()
                .map(|word| Hit { docid: (word >> 32) as u32, score: f32::from_bits(word as u32) });
            let hits = hits.collect();
            let text = words.text()?;
            let ends = list(words, |words| words.word()?.try_into().ok())?;
            let names = Names { text, ends };
            let keys = list(words, |words| Some(list(words, value_of)?.pop()))?;
            let value =
                |words: &mut Words<'_>| Some((words.text()?.parse().ok()?, list(words, value_of)?));
            let values = list(words, |words| Some(ReturnedValues(list(words, value)?)))?;
            let found = words.word()?;
            let facets = FoundFacets(list(words, facet_of)?);
            Some(StageHits { hits, names, keys, values, found, facets })
        };
        Some(Self { home, number, process, known, first: stage()?, any: stage()? })
    }
}
