//! What does a batch of queries say to the kernels, and how much memory does it take? Its queries
//! are sorted by falling classes of numbers of terms, since the terms decide how much shared memory
//! a block takes, and in a class by falling postings: a block that begins late and takes long
//! leaves the device idle beside it. Lists that are not on the device travel with it, each once.

use super::list::HuangLaid;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument, Step};
use crate::gpu::lane::{HitsOf, answers};
pub(crate) use crate::gpu::travelling::Input;
use crate::gpu::travelling::{Bytes, Placed, Travelling};
use crate::query::top_k::Hit;
use bytemuck::{Pod, Zeroable};
use std::cmp::Reverse;
use std::ops::Range;

/// The most terms of a query: their numbers fit a word.
pub(crate) const MOST_TERMS: usize = 16;

/// Shared memory of a thread for each term.
const CURSOR_BYTES: u32 = 4 * 8;

/// Shared memory of a block for a query of so many terms: cursors, the best scores of threads, and
/// a threshold.
pub fn huang_shared_bytes(threads: u32, terms: usize) -> u32 {
    CURSOR_BYTES * threads * terms as u32 + 4 * threads + 16
}

/// Queries with so many terms, and fewer, are launched together: all blocks of a launch take as
/// much shared memory. With five it is registers that bound the threads of a multiprocessor. Each
/// launch has an end at which few blocks run.
const CLASSES: [u32; 3] = [5, 10, MOST_TERMS as u32];

/// The class of queries with so many terms.
fn class_of(terms: u32) -> usize {
    CLASSES.partition_point(|&most| most < terms)
}

/// A term of a query, as kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct TermRecord {
    place: u64,
    blocks: u32,
    travels: u32,
    weight: f32,
    most: f32,
    per_bound: f32,
    spare: u32,
}

/// A query, as kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct QueryRecord {
    heaps: u64,
    by_length: u64,
    first_term: u32,
    terms: u32,
    k: u32,
    capacity: u32,
    hits: u32,
    from: u32,
    to: u32,
    slack: f32,
}

/// An array that kernels work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HuangArray {
    /// The lists that stay, in bytes.
    Cached,
    /// What the host says of the batch, and the lists that travel with it: [`HuangBatch::parts`].
    Input,
    /// f32: norms of all documents.
    Norms,
    /// The batch's memory: [`HuangRoom::words`].
    Words,
    /// What the host is told: [`HuangBatch::output`].
    Output,
}

/// A list by where it lies in each run of the index: bytes before it, or `u64::MAX`.
pub(crate) type Key = Box<[u64]>;

/// A term of a query that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedTerm<'a> {
    pub key: &'a Key,
    /// Where that is on the device, in bytes, and how it lies there; `None` if it has to travel.
    pub cached: Option<(u64, HuangLaid)>,
    pub weight: f32,
}

/// What a batch may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HuangRoom {
    pub words: u64,
    pub hits: u64,
    /// Terms, which are at least as many as queries.
    pub terms: usize,
    pub list_bytes: usize,
    pub shared_bytes: u32,
}

impl HuangRoom {
    /// Bytes that a batch has for its kernels, at most.
    pub(crate) fn input_bytes(&self) -> usize {
        (size_of::<QueryRecord>() + size_of::<TermRecord>()) * self.terms + self.list_bytes + 64
    }

    /// Bytes that its kernels write for the host, at most.
    pub(crate) fn output_bytes(&self) -> usize {
        (4 + size_of::<Stages>()) * self.terms + 8 * self.hits as usize + 32
    }
}

/// How kernels go through a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HuangWay {
    /// Whether stages of a query do not overlap, for [`HuangBatch::stages`].
    pub timed: bool,
    /// Whether the threads of a query pass over documents by the greatest threshold of all of them;
    /// else each by its own, as in the paper.
    pub shared_threshold: bool,
}

/// Cycles of a multiprocessor that a query took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Stages {
    /// To find where the lists begin in the documents of each thread.
    pub initialization: u64,
    /// To go through the lists.
    pub scoring: u64,
    /// To merge what the threads found.
    pub merging: u64,
}

/// Queries that are answered together.
#[derive(Debug, Default)]
pub struct HuangBatch {
    threads: u32,
    documents: u32,
    terms: Vec<TermRecord>,
    records: Vec<QueryRecord>,
    /// Postings of each query's lists.
    postings: Vec<u64>,
    /// The number of each query among those that were added.
    order: Vec<usize>,
    lists: Travelling<Key, HuangLaid>,
    words: u64,
    hits: u64,
}

impl HuangBatch {
    /// An empty batch about so many documents, for blocks of so many threads.
    pub(crate) fn new(documents: u32, threads: u32) -> Self {
        Self { documents, threads, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn list_bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Words of memory that it takes.
    pub(crate) fn words(&self) -> u64 {
        self.words
    }

    /// Adds a query for the best `k` of some documents; false if there is no room. `lay` gives the
    /// bytes of the list of a term that has to travel, by its number.
    ///
    /// # Errors
    /// What `lay` returns. The batch stays as it was.
    pub(crate) fn add<E>(
        &mut self,
        terms: &[AskedTerm<'_>],
        (k, docids): (u32, Range<u32>),
        room: &HuangRoom,
        lay: impl FnMut(usize) -> Result<Bytes<HuangLaid>, E>,
    ) -> Result<bool, E> {
        let capacity = k.min(self.documents.div_ceil(self.threads)).max(1);
        let words = self.words + 2 * u64::from(capacity) * u64::from(self.threads);
        let hits = self.hits + u64::from(k);
        let fits = words <= room.words
            && hits <= room.hits.min(u64::from(u32::MAX))
            && self.terms.len() + terms.len() <= room.terms
            && (1..=MOST_TERMS).contains(&terms.len())
            && huang_shared_bytes(self.threads, terms.len()) <= room.shared_bytes;
        if !fits {
            return Ok(false);
        }
        let before = self.lists.len();
        let placed = self.lists.place_all(terms.iter().map(|term| (term.key, term.cached)), lay)?;
        if self.lists.bytes() > room.list_bytes {
            self.lists.truncate(before);
            return Ok(false);
        }
        let mut lengths: Vec<(u32, usize)> =
            placed.iter().zip(0..).map(|(list, t)| (list.laid.postings, t)).collect();
        lengths.sort_unstable();
        let by_length = lengths.iter().rev().fold(0, |order, &(_, t)| order << 4 | t as u64);
        self.postings.push(lengths.iter().map(|&(postings, _)| u64::from(postings)).sum());
        self.order.push(self.records.len());
        self.records.push(QueryRecord {
            heaps: self.words,
            by_length,
            first_term: self.terms.len() as u32,
            terms: terms.len() as u32,
            k,
            capacity,
            hits: self.hits as u32,
            from: docids.start,
            to: docids.end,
            slack: 1.0 - (2 * terms.len() + 8) as f32 * f32::EPSILON,
        });
        let records = placed.iter().zip(terms).map(|(list, term)| term_record(list, term.weight));
        self.terms.extend(records);
        (self.words, self.hits) = (words, hits);
        Ok(true)
    }

    /// Sorts the queries. Nothing is added after that.
    pub fn finish(&mut self) {
        let work = |&q: &usize| Reverse((class_of(self.records[q].terms), self.postings[q]));
        self.order.sort_by_key(work);
        self.records = self.order.iter().map(|&q| self.records[q]).collect();
    }

    /// The launches that answer the batch, which is finished, by a kernel.
    pub fn steps(&self, kernel: &'static str, how: HuangWay) -> Vec<Step<HuangArray>> {
        use Argument::{Array as In, Number};
        let (input, output) = (self.input(), self.output());
        let mut steps = Vec::new();
        let mut first = 0;
        while let Some(record) = self.records.get(first) {
            let class = class_of(record.terms);
            let queries =
                self.records[first..].partition_point(|other| class_of(other.terms) == class);
            let terms = self.records[first..][..queries].iter().map(|other| other.terms).max();
            let geometry = Geometry {
                blocks: queries as u32,
                threads: self.threads,
                shared_bytes: huang_shared_bytes(self.threads, terms.unwrap_or(0) as usize),
            };
            let arguments = vec![
                In(HuangArray::Cached, 0),
                In(HuangArray::Input, input.lists as u64),
                In(HuangArray::Input, input.terms as u64),
                In(HuangArray::Input, 0),
                Number(first as u32),
                In(HuangArray::Norms, 0),
                Number(self.documents),
                Number(how.timed.into()),
                Number(how.shared_threshold.into()),
                In(HuangArray::Words, 0),
                In(HuangArray::Output, 0),
                In(HuangArray::Output, output.stages as u64),
                In(HuangArray::Output, output.hits as u64),
            ];
            steps.push(Step { kernel, geometry, arguments });
            first += queries;
        }
        steps
    }

    /// Where its parts lie in what it writes for the kernels.
    pub(crate) fn input(&self) -> Input {
        self.lists.input(&self.records, &self.terms)
    }

    /// What the kernels read: parts, and the byte with which each begins. These rise, and parts do
    /// not overlap.
    pub(crate) fn parts(&self) -> Vec<(usize, &[u8])> {
        self.lists.input_parts(&self.records, &self.terms)
    }

    /// Where its parts lie in what the kernels write.
    pub(crate) fn output(&self) -> Output {
        let stages = (4 * self.records.len()).next_multiple_of(8);
        let hits = stages + size_of::<Stages>() * self.records.len();
        Output { stages, hits, bytes: hits + 8 * self.hits as usize }
    }

    /// The answers to all queries, in the order in which they were added, best first.
    pub(crate) fn answers(&self, output: &[u8]) -> Vec<Vec<Hit>> {
        let Output { stages, hits, bytes } = self.output();
        answers(self.hits(), &output[..stages], &output[hits..bytes])
    }

    /// Where the hits of each query are.
    fn hits(&self) -> impl ExactSizeIterator<Item = HitsOf> {
        let queries = self.records.iter().zip(&self.order);
        queries.map(|(record, &query)| HitsOf { query, k: record.k, first: record.hits })
    }

    /// What the stages of the queries took, in the order in which they were added.
    pub fn stages(&self, output: &[u8]) -> Vec<Stages> {
        let Output { stages, hits, .. } = self.output();
        let mut all = vec![Stages::default(); self.len()];
        let each = output[stages..hits].chunks_exact(size_of::<Stages>());
        for (stages, &q) in each.zip(&self.order) {
            all[q] = bytemuck::pod_read_unaligned(stages);
        }
        all
    }
}

/// Bounds are for a weight of 1: so much more makes up for the rounding of the product.
const ROUNDING: f32 = 1.0 + 16.0 * f32::EPSILON;

fn term_record(list: &Placed<HuangLaid>, weight: f32) -> TermRecord {
    let Placed { place, laid, travels } = *list;
    let per_bound = weight * ROUNDING;
    let (blocks, travels, most) = (laid.blocks, travels.into(), per_bound * laid.most);
    TermRecord { place, blocks, travels, weight, most, per_bound, spare: 0 }
}

/// Where the parts of its output lie, in bytes: numbers of hits come first, a u32 for each query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// [`Stages`] of each query.
    pub stages: usize,
    /// u64: the hits of all queries.
    pub hits: usize,
    pub bytes: usize,
}
