//! What does a batch of queries say to the kernel, and how much memory does it take? Its queries
//! are sorted by falling classes of the shared memory of a block, which depends on their terms and
//! on k, and in a class by the falling length of their shortest lists: a block that begins late and
//! takes long leaves the device idle beside it. Lists that are not on the device travel with it,
//! each once.

use super::list::WangLaid;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument, Step};
pub(crate) use crate::gpu::travelling::Input;
use crate::gpu::travelling::{Bytes, Placed, Travelling};
use crate::query::top_k::Hit;
use crate::score::wang::slack;
use bytemuck::{Pod, Zeroable};
use std::cmp::Reverse;

/// What a query comes to on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best documents, best first.
    pub hits: Vec<Hit>,
    /// The docid from which it is not answered, if it is not.
    pub rest: Option<u32>,
    pub rounds: u32,
}

/// The most terms of a query: their numbers fit a word.
pub const MOST_TERMS: usize = 16;

/// Shared memory of a block of so many threads, for a query of so many terms with room for so many
/// keys.
pub fn wang_shared_bytes(threads: u32, terms: usize, capacity: u32) -> u32 {
    8 * capacity + 8 * threads + 4 * threads * terms as u32 + 16
}

/// Queries whose blocks take at most so many bytes are launched together, since all blocks of a
/// launch take the same.
const CLASSES: [u32; 4] = [4 << 10, 8 << 10, 16 << 10, 48 << 10];

/// The class of queries whose blocks take so many bytes.
fn class_of(shared_bytes: u32) -> usize {
    CLASSES.partition_point(|&most| most < shared_bytes)
}

/// No docid: the query is answered.
const NONE: u32 = u32::MAX;

/// A term of a query, as the kernel reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct TermRecord {
    place: u64,
    postings: u32,
    buckets: u32,
    shift: u32,
    block_bits: u32,
    travels: u32,
    weight: f32,
}

/// A query, as the kernel reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct QueryRecord {
    by_length: u64,
    slack: f64,
    first_term: u32,
    terms: u32,
    k: u32,
    capacity: u32,
    hits: u32,
    cut: u32,
}

/// What the kernel says of a query, beside its hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct AnswerRecord {
    hits: u32,
    rest: u32,
    rounds: u32,
    spare: u32,
}

/// An array that the kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Array {
    /// The lists that stay, in bytes.
    Cached,
    /// What the host says of the batch, and the lists that travel with it: [`WangBatch::parts`].
    Input,
    /// f32: norms of all documents.
    Norms,
    /// f32: what their scores begin with.
    Statics,
    /// f32: their global scores.
    Globals,
    /// What the host is told: [`WangBatch::output_bytes`].
    Output,
}

/// A list, by where it begins in its run.
pub(crate) type Key = u64;

/// A term of a query that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedTerm {
    pub key: Key,
    /// Where that is on the device, in bytes, and how it lies there; `None` if it has to travel.
    pub cached: Option<(u64, WangLaid)>,
    pub weight: f32,
}

/// What a batch may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WangRoom {
    pub hits: u64,
    /// Terms, which are at least as many as queries.
    pub terms: usize,
    pub list_bytes: usize,
    pub shared_bytes: u32,
}

impl WangRoom {
    /// Bytes that a batch has for its kernel, at most.
    pub(crate) fn input_bytes(&self) -> usize {
        (size_of::<QueryRecord>() + size_of::<TermRecord>()) * self.terms + self.list_bytes + 64
    }

    /// Bytes that the kernel writes for the host, at most.
    pub(crate) fn output_bytes(&self) -> usize {
        size_of::<AnswerRecord>() * self.terms + 8 * self.hits as usize
    }
}

/// Queries that are answered together.
#[derive(Debug, Default)]
pub struct WangBatch {
    threads: u32,
    documents: u32,
    terms: Vec<TermRecord>,
    records: Vec<QueryRecord>,
    /// Postings that are there of each query's shortest list.
    shortest: Vec<u32>,
    /// The number of each query among those that were added.
    order: Vec<usize>,
    lists: Travelling<Key, WangLaid>,
    hits: u64,
}

impl WangBatch {
    /// An empty batch about so many documents, for rounds of so many.
    ///
    /// # Panics
    /// If a round is not one of [`ROUNDS`](super::ROUNDS).
    pub(crate) fn new(documents: u32, round: u32) -> Self {
        assert!(super::ROUNDS.contains(&round), "a round of {round}");
        Self { documents, threads: round, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn list_bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Adds a query for the best `k`; false if there is no room. `lay` gives the bytes of the list
    /// of a term that has to travel, by its number.
    ///
    /// # Errors
    /// What `lay` returns. The batch stays as it was.
    pub(crate) fn add<E>(
        &mut self,
        terms: &[AskedTerm],
        k: u32,
        room: &WangRoom,
        lay: impl FnMut(usize) -> Result<Bytes<WangLaid>, E>,
    ) -> Result<bool, E> {
        let fits = self.terms.len() + terms.len() <= room.terms
            && (1..=MOST_TERMS).contains(&terms.len())
            && k > 0;
        if !fits {
            return Ok(false);
        }
        let before = self.lists.len();
        let placed =
            self.lists.place_all(terms.iter().map(|term| (&term.key, term.cached)), lay)?;
        let (record, shortest) = self.record(&placed, k);
        let hits = self.hits + u64::from(record.k.min(record.capacity));
        let shared = wang_shared_bytes(self.threads, terms.len(), record.capacity);
        if hits > room.hits.min(u64::from(u32::MAX))
            || self.lists.bytes() > room.list_bytes
            || shared > room.shared_bytes
        {
            self.lists.truncate(before);
            return Ok(false);
        }
        self.hits = hits;
        self.terms
            .extend(placed.iter().zip(terms).map(|(list, term)| term_record(list, term.weight)));
        self.order.push(self.records.len());
        self.records.push(record);
        self.shortest.push(shortest);
        Ok(true)
    }

    /// The record of a query, and the postings of its shortest list.
    fn record(&self, lists: &[Placed<WangLaid>], k: u32) -> (QueryRecord, u32) {
        let mut lengths: Vec<(u32, usize)> =
            lists.iter().zip(0..).map(|(list, t)| (list.laid.df, t)).collect();
        lengths.sort_unstable();
        let by_length = lengths.iter().rev().fold(0, |order, &(_, t)| order << 4 | t as u64);
        let most = lists[lengths[0].1].laid.postings;
        let record = QueryRecord {
            by_length,
            slack: slack(lists.len()),
            first_term: self.terms.len() as u32,
            terms: lists.len() as u32,
            k,
            capacity: k.min(most).max(1).next_power_of_two(),
            hits: self.hits as u32,
            cut: lists.iter().filter_map(|list| list.laid.end).min().unwrap_or(self.documents),
        };
        (record, most)
    }

    fn wang_shared_bytes(&self, record: &QueryRecord) -> u32 {
        wang_shared_bytes(self.threads, record.terms as usize, record.capacity)
    }

    fn class_of(&self, record: &QueryRecord) -> usize {
        class_of(self.wang_shared_bytes(record))
    }

    /// Sorts the queries. Nothing is added after that.
    pub fn finish(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        let work = |&q: &usize| Reverse((self.class_of(&self.records[q]), self.shortest[q]));
        order.sort_by_key(work);
        self.records = order.iter().map(|&q| self.records[q]).collect();
        self.order = order;
    }

    /// The launches that answer the batch, which is finished.
    pub(crate) fn steps(&self) -> Vec<Step<Array>> {
        use Argument::{Array as In, Number};
        let input = self.input();
        let mut steps = Vec::new();
        let mut first = 0;
        while let Some(record) = self.records.get(first) {
            let class = self.class_of(record);
            let is_of_class = |other: &QueryRecord| self.class_of(other) == class;
            let queries = self.records[first..].partition_point(is_of_class);
            let each = self.records[first..][..queries].iter();
            let shared_bytes = each.map(|other| self.wang_shared_bytes(other)).max().unwrap_or(0);
            let geometry = Geometry { blocks: queries as u32, threads: self.threads, shared_bytes };
            let arguments = vec![
                In(Array::Cached, 0),
                In(Array::Input, input.lists as u64),
                In(Array::Input, input.terms as u64),
                In(Array::Input, 0),
                Number(first as u32),
                In(Array::Norms, 0),
                In(Array::Statics, 0),
                In(Array::Globals, 0),
                Number(self.documents),
                In(Array::Output, 0),
                In(Array::Output, self.answers_bytes() as u64),
            ];
            steps.push(Step { kernel: super::KERNEL, geometry, arguments });
            first += queries;
        }
        steps
    }

    /// Where its parts lie in what it writes for the kernel.
    pub(crate) fn input(&self) -> Input {
        self.lists.input(&self.records, &self.terms)
    }

    /// What the kernel reads: parts, and the byte with which each begins. These rise, and parts do
    /// not overlap.
    pub(crate) fn parts(&self) -> Vec<(usize, &[u8])> {
        self.lists.input_parts(&self.records, &self.terms)
    }

    fn answers_bytes(&self) -> usize {
        size_of::<AnswerRecord>() * self.records.len()
    }

    /// Bytes that the kernel writes: of each query how many hits, from where it is not answered,
    /// and rounds; then the hits of all.
    pub(crate) fn output_bytes(&self) -> usize {
        self.answers_bytes() + 8 * self.hits as usize
    }

    /// The answers to all queries, in the order in which they were added.
    pub fn answers(&self, output: &[u8]) -> Vec<Found> {
        let (answers, keys) = output[..self.output_bytes()].split_at(self.answers_bytes());
        let keys: &[[u8; 8]] = keys.as_chunks().0;
        let none = Found { hits: Vec::new(), rest: None, rounds: 0 };
        let mut all = vec![none; self.len()];
        let answers = answers.chunks_exact(size_of::<AnswerRecord>());
        for ((record, answer), &q) in self.records.iter().zip(answers).zip(&self.order) {
            let answer: AnswerRecord = bytemuck::pod_read_unaligned(answer);
            let count = answer.hits.min(record.k).min(record.capacity) as usize;
            let keys = &keys[record.hits as usize..][..count];
            let hits: Vec<Hit> =
                keys.iter().map(|key| Hit::of_key(u64::from_le_bytes(*key))).collect();
            let rest = (answer.rest != NONE).then_some(answer.rest);
            all[q] = Found { hits, rest, rounds: answer.rounds };
        }
        all
    }
}

fn term_record(list: &Placed<WangLaid>, weight: f32) -> TermRecord {
    let Placed { place, laid, travels } = *list;
    let WangLaid { postings, buckets, shift, block_bits, .. } = laid;
    TermRecord { place, postings, buckets, shift, block_bits, travels: travels.into(), weight }
}
