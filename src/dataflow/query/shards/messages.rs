//! What goes between processes about a query: the query to its home, terms to be counted and their
//! counts, the question to each shard, and the hits of each.

use super::words::{facet_of, list, put_facet, put_list, put_value, value_of};
use crate::dataflow::crossing::{CrossingRecord, Words, put_bytes, put_numbers, put_text};
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
    /// The generation that it is answered from.
    pub generation: u64,
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
    pub generation: u64,
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
    pub count: bool,
    /// Hits below this score are not wanted.
    pub floor: f32,
    pub about: Arc<About>,
}

/// What all shards are told of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct About {
    pub generation: u64,
    pub syntax: Syntax,
    /// The name of one that the other process has, too.
    pub algorithm: String,
    /// In all shards, by first appearance of the distinct terms.
    pub dfs: Vec<u64>,
    /// Its text, and what it asks of columns.
    pub query: Query,
}

impl Question {
    /// What is asked for, by an algorithm of this program or one that was handed in.
    pub(crate) fn wanted(&self, handed: HandedAlgorithms) -> Result<Wanted, String> {
        let name = &self.about.algorithm;
        let algorithm = Algorithm::among(name, handed).map_err(|all| {
            format!("another process asks for the algorithm {name}; here are {all}")
        })?;
        let &Self { k, mode, count, .. } = self;
        Ok(Wanted { k, mode, algorithm, syntax: self.about.syntax, count })
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

    /// In bytes, which are fewer than a document may have.
    fn lengths(&self) -> Vec<u32> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| (end - start) as u32).collect()
    }

    /// From one text and lengths, as they cross.
    fn of_lengths(text: String, lengths: &[u8]) -> Option<Self> {
        let (lengths, []) = lengths.as_chunks::<4>() else { return None };
        let mut end = 0usize;
        let ends = lengths.iter().map(|length| {
            end = end.saturating_add(u32::from_ne_bytes(*length) as usize);
            end
        });
        Some(Self { ends: ends.collect(), text })
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
fn put_choice<T: PartialEq>(all: &[T], item: Option<&T>, to: &mut Vec<u64>) {
    to.push(item.map_or(0, |item| place(all, item) + 1));
}

fn choice<T: Copy>(all: &[T], words: &mut Words<'_>) -> Option<Option<T>> {
    match words.small()? {
        0 => Some(None),
        at => all.get(at as usize - 1).copied().map(Some),
    }
}

/// What a shard needs of a query; without its wishes.
fn put_asked(query: &Query, to: &mut Vec<u64>) {
    let Query { text, filter, sort, facets, returned, .. } = query;
    put_text(text, to);
    put_list(filter.as_slice(), to, |filter, to| put_text(filter, to));
    put_list(sort.as_slice(), to, |sort, to| {
        put_text(&sort.column, to);
        to.push(sort.falls.into());
    });
    put_list(facets.as_deref().unwrap_or_default(), to, |facet, to| {
        put_text(&facet.column, to);
        to.push(facet.most as u64);
    });
    let returned = returned.as_deref().unwrap_or_default();
    put_list(returned, to, |name, to| put_text(name, to));
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
    fn write(&self, to: &mut Vec<u64>) {
        let Self { home, place, number, generation, query, waiter: _ } = self;
        to.extend([u64::from(*home), u64::from(*place), *number, *generation]);
        to.push(query.is_ok().into());
        match query {
            Ok(query) => {
                put_asked(query, to);
                put_text(&query.qid, to);
                put_list(query.k.as_slice(), to, |k, to| to.push(*k as u64));
                put_choice(&Mode::ALL, query.mode.as_ref(), to);
                put_list(query.algorithm.as_slice(), to, |of, to| put_text(of.name(), to));
                put_choice(&Syntax::ALL, query.syntax.as_ref(), to);
                put_choice(&[false, true], query.count.as_ref(), to);
                to.push(query.offset as u64);
                put_choice(&[false, true], query.snippets.as_ref(), to);
            }
            Err(Refused { line, offset, number, why }) => {
                to.extend([*line, *offset, *number]);
                put_text(why, to);
            }
        }
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [home, place] = [words.small()?, words.small()?];
        let [number, generation] = [words.word()?, words.word()?];
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
        Some(Self { home, place, number, generation, query, waiter: None })
    }
}

impl CrossingRecord for UnknownTerms {
    fn write(&self, to: &mut Vec<u64>) {
        let Self { worker, home, number, generation, terms } = self;
        to.extend([u64::from(*worker), u64::from(*home), *number, *generation]);
        put_list(terms, to, |term, to| put_text(term, to));
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [worker, home] = [words.small()?, words.small()?];
        let [number, generation] = [words.word()?, words.word()?];
        let terms = list(words, |words| words.text())?;
        Some(Self { worker, home, number, generation, terms })
    }
}

impl CrossingRecord for CountedTerms {
    fn write(&self, to: &mut Vec<u64>) {
        let Self { home, number, process, dfs } = self;
        to.extend([u64::from(*home), *number, u64::from(*process)]);
        put_numbers(dfs, to);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let home = words.small()?;
        let number = words.word()?;
        Some(Self { home, number, process: words.small()?, dfs: words.numbers()? })
    }
}

impl CrossingRecord for Question {
    fn write(&self, to: &mut Vec<u64>) {
        let Self { worker, home, number, k, mode, count, floor, about } = self;
        let About { generation, syntax, algorithm, dfs, query } = &**about;
        to.extend([u64::from(*worker), u64::from(*home), *number, *k as u64]);
        to.extend([place(&Mode::ALL, mode), place(&Syntax::ALL, syntax), u64::from(*count)]);
        to.extend([floor.to_bits().into(), *generation]);
        put_text(algorithm, to);
        put_numbers(dfs, to);
        put_asked(query, to);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let [worker, home] = [words.small()?, words.small()?];
        let number = words.word()?;
        let k = words.word()?.try_into().ok()?;
        let mode = *Mode::ALL.get(words.small()? as usize)?;
        let syntax = *Syntax::ALL.get(words.small()? as usize)?;
        let count = words.flag()?;
        let floor = f32::from_bits(words.small()?);
        let generation = words.word()?;
        let algorithm = words.text()?;
        let dfs = words.numbers()?;
        let query = asked(words)?;
        let about = Arc::new(About { generation, syntax, algorithm, dfs, query });
        Some(Self { worker, home, number, k, mode, count, floor, about })
    }
}

impl CrossingRecord for ShardHits {
    fn write(&self, to: &mut Vec<u64>) {
        let Self { home, number, process, known, first, any } = self;
        to.extend([u64::from(*home), *number, u64::from(*process), u64::from(*known)]);
        for StageHits { hits, names, keys, values, found, facets } in [first, any] {
            put_list(hits, to, |hit, to| {
                to.push(u64::from(hit.docid) << 32 | u64::from(hit.score.to_bits()));
            });
            put_text(&names.text, to);
            put_bytes(bytemuck::cast_slice(&names.lengths()), to);
            put_list(keys, to, |key, to| put_list(key.as_slice(), to, put_value));
            put_list(values, to, |of, to| {
                put_list(&of.0, to, |(column, values), to| {
                    put_text(&column.to_string(), to);
                    put_list(values, to, put_value);
                });
            });
            to.push(*found);
            put_list(&facets.0, to, put_facet);
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
            let names = Names::of_lengths(text, &words.bytes()?)?;
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
