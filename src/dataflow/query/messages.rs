//! Messages of processes about a query: the query, the document frequencies of its terms in each
//! shard, and the best hits of each shard.

use crate::dataflow::crossing::{CrossingRecord, Words, put_numbers, put_text};
use crate::index::columns::ColumnValue;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::answers::returned::ReturnedValues;
use crate::query::listing::facets::{Facet, FacetValues, FoundFacets, NumberFacet};
use crate::query::listing::{FacetBy, SortBy};
use crate::query::reading::asked::Query;
use crate::query::top_k::NamedHit;
use crate::query::wanted::{Algorithm, Mode, Syntax, Wanted};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The worker that looks its terms up.
    pub worker: u32,
    pub number: u64,
    pub k: usize,
    pub mode: Mode,
    pub syntax: Syntax,
    pub count: bool,
    /// The name of one that the other process has, too.
    pub algorithm: String,
    /// Its text, and what it asks of columns.
    pub query: Query,
}

impl Question {
    pub(crate) fn new(worker: u32, number: u64, wanted: Wanted, query: &Query) -> Self {
        let Wanted { k, mode, algorithm, syntax, count } = wanted;
        let algorithm = algorithm.name().to_string();
        let Query { text, filter, sort, facets, returned, .. } = query.clone();
        let query = Query { text, filter, sort, facets, returned, ..Query::default() };
        Self { worker, number, k, mode, syntax, count, algorithm, query }
    }

    /// What is asked for, by an algorithm of this program or one that was handed in.
    pub(crate) fn wanted(&self, handed: HandedAlgorithms) -> Result<Wanted, String> {
        let name = &self.algorithm;
        let algorithm = Algorithm::among(name, handed)
            .map_err(|all| format!("process 0 asks for the algorithm {name}; here are {all}"))?;
        let &Self { k, mode, syntax, count, .. } = self;
        Ok(Wanted { k, mode, algorithm, syntax, count })
    }
}

/// The document frequencies of a query's terms in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedTerms {
    pub worker: u32,
    pub number: u64,
    /// By first appearance of the distinct terms.
    pub dfs: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShardHits {
    pub number: u64,
    /// Whether any of its terms is in the index.
    pub known: bool,
    /// Of the wanted mode; of AND+OR, documents with all terms.
    pub first: StageHits,
    /// Of AND+OR, documents with any term, if this shard has fewer than k with all.
    pub any: StageHits,
}

/// What a shard has found in a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StageHits {
    pub hits: Vec<ShardHit>,
    /// How many documents match; 0 if that is not asked for.
    pub found: u64,
    pub facets: FoundFacets,
}

/// A hit of a shard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShardHit {
    pub named: NamedHit,
    /// If hits are sorted by a column.
    pub key: Option<ColumnValue>,
    pub values: ReturnedValues,
}

fn place<T: PartialEq>(all: &[T], item: &T) -> u64 {
    all.iter().position(|other| other == item).unwrap_or(all.len()) as u64
}

impl CrossingRecord for Question {
    fn write(&self, put: &mut impl FnMut(u64)) {
        put(self.worker.into());
        put(self.number);
        put(self.k as u64);
        put(place(&Mode::ALL, &self.mode));
        put(place(&Syntax::ALL, &self.syntax));
        put(self.count.into());
        put_text(&self.algorithm, put);
        let Query { text, filter, sort, facets, returned, .. } = &self.query;
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

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let worker = words.small()?;
        let number = words.word()?;
        let k = words.word()?.try_into().ok()?;
        let mode = *Mode::ALL.get(words.small()? as usize)?;
        let syntax = *Syntax::ALL.get(words.small()? as usize)?;
        let count = words.flag()?;
        let [algorithm, text] = [words.text()?, words.text()?];
        let filter = list(words, |words| words.text())?.pop().map(Into::into);
        let sort = |words: &mut Words<'_>| {
            Some(Arc::new(SortBy { column: words.text()?, falls: words.flag()? }))
        };
        let sort = list(words, sort)?.pop();
        let facet = |words: &mut Words<'_>| {
            Some(FacetBy { column: words.text()?, most: words.word()?.try_into().ok()? })
        };
        let facets = Some(list(words, facet)?.into());
        let returned = Some(list(words, |words| words.text())?).filter(|names| !names.is_empty());
        let returned = returned.map(Into::into);
        let query = Query { text, filter, sort, facets, returned, ..Query::default() };
        Some(Self { worker, number, k, mode, syntax, count, algorithm, query })
    }
}

impl CrossingRecord for CountedTerms {
    fn write(&self, put: &mut impl FnMut(u64)) {
        put(self.worker.into());
        put(self.number);
        put_numbers(&self.dfs, put);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let worker = words.small()?;
        let number = words.word()?;
        Some(Self { worker, number, dfs: words.numbers()? })
    }
}

impl CrossingRecord for ShardHits {
    fn write(&self, put: &mut impl FnMut(u64)) {
        put(self.number);
        put(self.known.into());
        for StageHits { hits, found, facets } in [&self.first, &self.any] {
            put(*found);
            put_list(hits, put, |hit, put| {
                let ShardHit { named: NamedHit { name, docid, score }, key, values } = hit;
                put(u64::from(*docid) << 32 | u64::from(score.to_bits()));
                put_text(name, put);
                put_list(key.as_slice(), put, put_value);
                put_list(&values.0, put, |(column, values), put| {
                    put_text(&column.to_string(), put);
                    put_list(values, put, put_value);
                });
            });
            put_list(&facets.0, put, put_facet);
        }
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let number = words.word()?;
        let known = words.flag()?;
        let mut stage = || {
            let found = words.word()?;
            let hit = |words: &mut Words<'_>| {
                let word = words.word()?;
                let docid = (word >> 32) as u32;
                let score = f32::from_bits(word as u32);
                let named = NamedHit { name: words.text()?, docid, score };
                let key = list(words, value_of)?.pop();
                let value = |words: &mut Words<'_>| {
                    Some((words.text()?.parse().ok()?, list(words, value_of)?))
                };
                let values = ReturnedValues(list(words, value)?);
                Some(ShardHit { named, key, values })
            };
            let hits = list(words, hit)?;
            Some(StageHits { hits, found, facets: FoundFacets(list(words, facet_of)?) })
        };
        Some(Self { number, known, first: stage()?, any: stage()? })
    }
}

/// The number of some things, and each.
fn put_list<T, P: FnMut(u64)>(all: &[T], put: &mut P, one: impl Fn(&T, &mut P)) {
    put(all.len() as u64);
    all.iter().for_each(|of| one(of, put));
}

/// What [`put_list`] put. The number may be wrong, so the room grows with what is there.
fn list<T>(words: &mut Words<'_>, one: impl Fn(&mut Words<'_>) -> Option<T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    for _ in 0..words.word()? {
        all.push(one(words)?);
    }
    Some(all)
}

fn put_value(value: &ColumnValue, put: &mut impl FnMut(u64)) {
    match value {
        ColumnValue::Int(number) => [0, *number as u64].into_iter().for_each(put),
        ColumnValue::Date(number) => [1, *number as u64].into_iter().for_each(put),
        ColumnValue::Float(number) => [2, number.to_bits()].into_iter().for_each(put),
        ColumnValue::Word(word) => {
            put(3);
            put_text(word, put);
        }
        ColumnValue::Json(json) => {
            put(4);
            put_text(json, put);
        }
    }
}

fn value_of(words: &mut Words<'_>) -> Option<ColumnValue> {
    Some(match words.word()? {
        0 => ColumnValue::Int(words.word()? as i64),
        1 => ColumnValue::Date(words.word()? as i64),
        2 => ColumnValue::Float(f64::from_bits(words.word()?)),
        3 => ColumnValue::Word(words.text()?),
        4 => ColumnValue::Json(words.text()?),
        _ => return None,
    })
}

fn put_facet<P: FnMut(u64)>(facet: &Facet, put: &mut P) {
    put_text(&facet.column.to_string(), put);
    put(facet.most as u64);
    match &facet.found {
        FacetValues::Words(words) => {
            put(words.len() as u64);
            for (word, count) in words {
                put_text(word, put);
                put(*count);
            }
        }
        FacetValues::Numbers(of) => {
            [of.documents, of.values, of.least, of.greatest].into_iter().for_each(&mut *put);
            put_list(&of.parts, put, |part, put| put(part.to_bits()));
        }
    }
}

fn facet_of(words: &mut Words<'_>) -> Option<Facet> {
    let column = words.text()?.parse().ok()?;
    let mut facet = Facet::new(column, words.word()?.try_into().ok()?);
    match &mut facet.found {
        FacetValues::Words(of) => {
            of.extend(list(words, |words| Some((words.text()?, words.word()?)))?);
        }
        FacetValues::Numbers(of) => {
            let [documents, values, least, greatest] =
                [words.word()?, words.word()?, words.word()?, words.word()?];
            let parts = list(words, |words| words.word().map(f64::from_bits))?;
            *of = NumberFacet { documents, values, least, greatest, parts };
        }
    }
    Some(facet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::crossing::Crossing;
    use crate::index::columns::Column;
    use proptest::prelude::*;
    use std::fmt::Debug;
    use timely::bytes::arc::BytesMut;
    use timely::container::PushInto;
    use timely::dataflow::channels::ContainerBytes;

    fn send<R: CrossingRecord + Clone + Debug + PartialEq>(records: &[R]) {
        let mut container = Crossing::default();
        records.iter().for_each(|record| container.push_into(record.clone()));
        let mut bytes = Vec::new();
        container.into_bytes(&mut bytes);
        let received = Crossing::<R>::from_bytes(BytesMut::from(bytes).freeze()).0;
        assert_eq!(received.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), records);
    }

    fn text() -> impl Strategy<Value = String> {
        "\\PC{0,12}"
    }

    fn hits() -> impl Strategy<Value = Vec<ShardHit>> {
        let value = || {
            prop_oneof![
                any::<i64>().prop_map(ColumnValue::Int),
                any::<i64>().prop_map(ColumnValue::Date),
                (-1e9..1e9f64).prop_map(ColumnValue::Float),
                text().prop_map(ColumnValue::Word),
            ]
        };
        let values = prop::collection::vec((column(), prop::collection::vec(value(), 0..3)), 0..3);
        let key = prop::option::of(value());
        let hit = (any::<u32>(), 0..1u32 << 31, text(), key, values);
        prop::collection::vec(hit, 0..4).prop_map(|hits| {
            let named = |(docid, score, name, key, values)| {
                let named = NamedHit { name, docid, score: score as f32 / 7.0 };
                ShardHit { named, key, values: ReturnedValues(values) }
            };
            hits.into_iter().map(named).collect()
        })
    }

    fn column() -> impl Strategy<Value = Column> {
        prop::sample::select(vec!["year:int", "a:b:float", "day:date[]", "\u{fc}:word[]"])
            .prop_map(|column| column.parse().unwrap())
    }

    fn facets() -> impl Strategy<Value = FoundFacets> {
        let words = prop::collection::btree_map(text(), any::<u64>(), 0..4);
        let numbers = (any::<[u64; 4]>(), prop::collection::vec(-1e9..1e9f64, 0..4));
        let facet = (column(), any::<usize>(), words, numbers);
        let facet = facet.prop_map(|(column, most, words, (numbers, parts))| {
            let mut facet = Facet::new(column, most);
            let [documents, values, least, greatest] = numbers;
            match &mut facet.found {
                FacetValues::Words(of) => *of = words,
                FacetValues::Numbers(of) => {
                    *of = NumberFacet { documents, values, least, greatest, parts };
                }
            }
            facet
        });
        prop::collection::vec(facet, 0..3).prop_map(FoundFacets)
    }

    proptest! {
        #[test]
        fn law_records_cross_unchanged(
            (worker, number, known) in (any::<u32>(), any::<u64>(), any::<bool>()),
            text in text(),
            (k, mode, algorithm) in (any::<usize>(), 0..3usize, 0..5usize),
            dfs in prop::collection::vec(any::<u64>(), 0..4),
            (hits, any, found) in (hits(), hits(), any::<[u64; 2]>()),
            (syntax, count) in (0..3usize, any::<bool>()),
            (facets, of_any) in (facets(), facets()),
        ) {
            let mode = Mode::ALL[mode];
            let algorithm = Algorithm::ALL[algorithm];
            let syntax = Syntax::ALL[syntax];
            let wanted = Wanted { k, mode, algorithm, syntax, count };
            let mut query = Query::new("", text);
            query.filter = Some("year = 1".into());
            if count {
                query.sort = Some(Arc::new("year:desc".parse().unwrap()));
                query.returned = Some(["a".to_string(), "b".to_string()].into());
            }
            query.facets = Some(["tags:3".parse().unwrap()].into());
            let asked = Question::new(worker, number, wanted, &query);
            prop_assert_eq!(asked.wanted(&[]), Ok(wanted));
            send(&[asked.clone(), asked]);
            let counted = CountedTerms { worker, number, dfs };
            send(&[counted.clone(), counted]);
            let first = StageHits { hits, found: found[0], facets };
            let any = StageHits { hits: any, found: found[1], facets: of_any };
            let found = ShardHits { number, known, first, any };
            send(&[found.clone(), found]);
        }
    }
}
