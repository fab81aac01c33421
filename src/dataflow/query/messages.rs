//! Messages of processes about a query: the query, the document frequencies of its terms in each
//! shard, and the best hits of each shard.

use crate::dataflow::crossing::{CrossingRecord, Words, put_numbers, put_text};
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::reading::asked::Query;
use crate::query::top_k::NamedHit;
use crate::query::wanted::{Algorithm, Mode, Syntax, Wanted};

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
    pub text: String,
    /// Empty if there is none.
    pub filter: String,
}

impl Question {
    pub(crate) fn new(worker: u32, number: u64, wanted: Wanted, query: &Query) -> Self {
        let Wanted { k, mode, algorithm, syntax, count } = wanted;
        let algorithm = algorithm.name().to_string();
        let text = query.text.clone();
        let filter = query.filter.as_deref().unwrap_or_default().to_string();
        Self { worker, number, k, mode, syntax, count, algorithm, text, filter }
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
    /// Hits of the wanted mode; of AND+OR, those with all terms.
    pub hits: Vec<NamedHit>,
    /// Of AND+OR, hits with any term, if this shard has fewer than k with all.
    pub any: Vec<NamedHit>,
    /// How many documents match, in the same order; 0 if that is not asked for.
    pub found: [u64; 2],
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
        put_text(&self.text, put);
        put_text(&self.filter, put);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let worker = words.small()?;
        let number = words.word()?;
        let k = words.word()?.try_into().ok()?;
        let mode = *Mode::ALL.get(words.small()? as usize)?;
        let syntax = *Syntax::ALL.get(words.small()? as usize)?;
        let count = words.flag()?;
        let [algorithm, text, filter] = [words.text()?, words.text()?, words.text()?];
        Some(Self { worker, number, k, mode, syntax, count, algorithm, text, filter })
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
        self.found.iter().for_each(|found| put(*found));
        for hits in [&self.hits, &self.any] {
            put(hits.len() as u64);
            for NamedHit { name, docid, score } in hits {
                put(u64::from(*docid) << 32 | u64::from(score.to_bits()));
                put_text(name, put);
            }
        }
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let number = words.word()?;
        let known = words.flag()?;
        let found = [words.word()?, words.word()?];
        let mut hits = || {
            // The count may be wrong, so the room grows with what is there.
            let mut hits = Vec::new();
            let count = words.word()?;
            for _ in 0..count {
                let word = words.word()?;
                let docid = (word >> 32) as u32;
                let score = f32::from_bits(word as u32);
                hits.push(NamedHit { name: words.text()?, docid, score });
            }
            Some(hits)
        };
        Some(Self { number, known, hits: hits()?, any: hits()?, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::crossing::Crossing;
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

    fn hits() -> impl Strategy<Value = Vec<NamedHit>> {
        let hit = (any::<u32>(), 0..1u32 << 31, text());
        prop::collection::vec(hit, 0..4).prop_map(|hits| {
            let named = |(docid, score, name)| NamedHit { name, docid, score: score as f32 / 7.0 };
            hits.into_iter().map(named).collect()
        })
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
        ) {
            let mode = Mode::ALL[mode];
            let algorithm = Algorithm::ALL[algorithm];
            let syntax = Syntax::ALL[syntax];
            let wanted = Wanted { k, mode, algorithm, syntax, count };
            let mut query = Query::new("", text);
            query.filter = Some("year = 1".into());
            let asked = Question::new(worker, number, wanted, &query);
            prop_assert_eq!(asked.wanted(&[]), Ok(wanted));
            send(&[asked.clone(), asked]);
            let counted = CountedTerms { worker, number, dfs };
            send(&[counted.clone(), counted]);
            let found = ShardHits { number, known, hits, any, found };
            send(&[found.clone(), found]);
        }
    }
}
