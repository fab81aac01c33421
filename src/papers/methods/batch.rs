//! A batch of queries as the kernels read it, and the memory that it takes. Queries are sorted by
//! falling class (a class may be launched together), then work: a query that begins late and takes
//! long leaves the device idle beside it. Parts not on the device travel with the batch, each once.

use super::lists::{DevicePart, ListKey};
use super::travelling::{Bytes, Travelling, TravellingTerm};
use super::{DeviceMethod, MethodArgument, MethodArray, MethodStep};
use crate::gpu::floor::arrays::ALIGNMENT;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::Argument::{Array as In, Number};
use crate::query::plan::Plan;
use crate::query::top_k::Hit;
use std::cmp::Reverse;
use std::ops::Range;

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundHits {
    pub hits: Vec<Hit>,
    /// The docid from which it is not answered, if it is not.
    pub rest: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct AskedPart {
    pub part: DevicePart,
    pub key: ListKey,
    pub weight: f32,
}

impl AskedPart {
    pub fn new(part: DevicePart, weight: f32) -> Self {
        Self { key: part.key(), part, weight }
    }

    /// The terms of a query that documents have.
    pub fn of_plan(plan: &Plan) -> Vec<Self> {
        let count = plan.terms().len();
        let terms = plan.terms().iter().enumerate();
        let known = terms.filter(|(_, term)| term.df > 0);
        let asked = known.map(|(t, term)| {
            let part = DevicePart::whole(plan.lists().iter().skip(t).step_by(count).copied());
            Self::new(part, term.weight.factor())
        });
        asked.collect()
    }
}

#[derive(Clone, Debug)]
pub struct PlacedQuery<L> {
    pub(in crate::papers) terms: Vec<TravellingTerm<L>>,
    pub k: u32,
    pub docids: Range<u32>,
}

impl<L> PlacedQuery<L> {
    /// The numbers of its terms, the shortest first.
    pub(in crate::papers) fn by_length(&self, length: impl Fn(&L) -> u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        order.sort_by_key(|&t| length(&self.terms[t].laid));
        order
    }
}

/// The numbers of at most 16 terms, four bits each, the first in the lowest.
pub(in crate::papers) fn in_a_word(order: &[usize]) -> u64 {
    order.iter().rev().fold(0, |word, &t| word << 4 | t as u64)
}

#[derive(Clone, Copy, Debug)]
pub struct MadeQuery<R> {
    pub record: R,
    /// Of the batch's memory.
    pub words: u64,
    /// At most.
    pub hits: u32,
    /// Bytes of [`MethodBatch::more`].
    pub more: usize,
    pub shared_bytes: u32,
    pub class: u32,
    pub work: u64,
}

/// The capacity of a batch, or its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchRoom {
    pub words: u64,
    pub hits: u64,
    /// At least as many as queries.
    pub terms: usize,
    pub list_bytes: usize,
    /// Bytes that kernels read beside records, terms and lists.
    pub more: usize,
    /// Of a block.
    pub shared_bytes: u32,
}

impl BatchRoom {
    fn holds(&self, used: &Self) -> bool {
        used.words <= self.words
            && used.hits <= self.hits.min(u64::from(u32::MAX))
            && used.terms <= self.terms
            && used.list_bytes <= self.list_bytes
            && used.more <= self.more
            && used.shared_bytes <= self.shared_bytes
    }

    /// At most.
    pub(crate) fn input_bytes<M: DeviceMethod>(&self) -> usize {
        let records = (size_of::<M::Record>() + size_of::<M::Term>()) * self.terms;
        records + self.more + self.list_bytes + 512
    }

    /// At most.
    pub(crate) fn output_bytes<M: DeviceMethod>(&self) -> usize {
        let said = size_of::<M::Said>() + M::SAID_BESIDE.iter().sum::<usize>();
        said * self.terms + 8 * self.hits as usize + 32
    }
}

#[derive(Clone, Copy, Debug)]
struct SortedQuery {
    query: usize,
    /// The first of its hits, and the most of them.
    hits: (usize, u32),
    shared_bytes: u32,
    class: u32,
    work: u64,
}

/// Queries that are answered together.
#[derive(Debug)]
pub struct MethodBatch<M: DeviceMethod> {
    pub how: M,
    /// Documents must have all terms.
    pub all_terms: bool,
    pub room: BatchRoom,
    pub(in crate::papers) documents: u32,
    pub(in crate::papers) terms: Vec<M::Term>,
    pub(in crate::papers) records: Vec<M::Record>,
    /// Further words that kernels read.
    pub(in crate::papers) more: Vec<u32>,
    pub(in crate::papers) plan: M::Plan,
    queries: Vec<SortedQuery>,
    lists: Travelling<M::Laid>,
    used: BatchRoom,
}

impl<M: DeviceMethod> MethodBatch<M> {
    pub(crate) fn new(how: M, all_terms: bool, documents: u32, room: BatchRoom) -> Self {
        let (terms, records, more, plan, queries, lists, used) = Default::default();
        Self { how, all_terms, room, documents, terms, records, more, plan, queries, lists, used }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn used(&self) -> &BatchRoom {
        &self.used
    }

    /// Adds a query for the best `k` of some documents; false if there is no room. `cached` has
    /// place and description of a part on the device; `lay` lays out one that has to travel.
    ///
    /// # Errors
    /// What `lay` returns; the batch stays as it was.
    pub(crate) fn add<E>(
        &mut self,
        asked: &[AskedPart],
        k: u32,
        docids: Range<u32>,
        cached: impl Fn(&ListKey) -> Option<(u64, M::Laid)>,
        lay: impl FnMut(usize) -> Result<Bytes<M::Laid>, E>,
    ) -> Result<bool, E> {
        let first = self.terms.len();
        let lists = self.lists.len();
        let may_fit = (1..=M::MOST_TERMS).contains(&asked.len()) && k > 0;
        if !may_fit || first + asked.len() > self.room.terms {
            return Ok(false);
        }
        let places = asked.iter().map(|asked| (&asked.key, cached(&asked.key), asked.weight));
        let terms = self.lists.place_all(places, lay)?;
        let made = M::make(self, &PlacedQuery { terms, k, docids });
        let before = self.used;
        let used = BatchRoom {
            words: before.words + made.words,
            hits: before.hits + u64::from(made.hits),
            terms: self.terms.len(),
            list_bytes: self.lists.bytes(),
            more: before.more + made.more,
            shared_bytes: before.shared_bytes.max(made.shared_bytes),
        };
        if !self.room.holds(&used) {
            self.terms.truncate(first);
            self.lists.truncate(lists);
            return Ok(false);
        }
        self.used = used;
        let MadeQuery { shared_bytes, class, work, .. } = made;
        let query = self.records.len();
        let hits = (before.hits as usize, made.hits);
        self.queries.push(SortedQuery { query, hits, shared_bytes, class, work });
        self.records.push(made.record);
        Ok(true)
    }

    /// Sorts the queries. Nothing is added after that.
    pub fn finish(&mut self) {
        self.queries.sort_by_key(|query| Reverse((query.class, query.work)));
        self.records = self.queries.iter().map(|query| self.records[query.query]).collect();
        M::plan(self);
    }

    /// A launch for the queries of each class, a block of `threads` threads a query: with both
    /// kinds of lists, terms, records, the number of the first query, norms, and `more` arguments.
    pub(in crate::papers) fn step_by_class(
        &self,
        kernel: &'static str,
        threads: u32,
        more: &[MethodArgument],
    ) -> Vec<MethodStep> {
        let BatchInput { terms, lists, .. } = self.input();
        let [lists, terms, records] = [lists, terms, 0].map(|at| In(MethodArray::Input, at as u64));
        let [cached, norms] = [MethodArray::Cached, MethodArray::Norms].map(|array| In(array, 0));
        let mut first = 0;
        let classes = self.queries.chunk_by(|a, b| a.class == b.class);
        let step = classes.map(|class| {
            let blocks = class.len() as u32;
            // All blocks of a launch take the same.
            let shared_bytes = class.iter().map(|query| query.shared_bytes).max().unwrap_or(0);
            let arguments = [&[cached, lists, terms, records, Number(first), norms], more].concat();
            first += blocks;
            MethodStep { kernel, geometry: Geometry { blocks, threads, shared_bytes }, arguments }
        });
        step.collect()
    }

    pub(crate) fn input(&self) -> BatchInput {
        let terms = size_of_val(&self.records[..]).next_multiple_of(ALIGNMENT);
        let more = terms + size_of_val(&self.terms[..]).next_multiple_of(ALIGNMENT);
        let lists = more + size_of_val(&self.more[..]).next_multiple_of(ALIGNMENT);
        BatchInput { terms, more, lists }
    }

    /// What the kernels read: parts that stand end to end.
    pub(crate) fn parts(&self) -> Vec<&[u8]> {
        let head: [&[u8]; 3] = [
            bytemuck::cast_slice(&self.records),
            bytemuck::cast_slice(&self.terms),
            bytemuck::cast_slice(&self.more),
        ];
        let padding = |part: &[u8]| part.len().next_multiple_of(ALIGNMENT) - part.len();
        let all = head.into_iter().chain(self.lists.parts());
        all.flat_map(|part| [part, &[0; ALIGNMENT][..padding(part)]]).collect()
    }

    pub(crate) fn output(&self) -> BatchOutput {
        let [of_query, of_term] = M::SAID_BESIDE;
        let said = size_of::<M::Said>() * self.records.len();
        let beside = said.next_multiple_of(ALIGNMENT);
        let more = of_query * self.records.len() + of_term * self.terms.len();
        let hits = (beside + more).next_multiple_of(ALIGNMENT);
        BatchOutput { beside, hits, bytes: hits + 8 * self.used.hits as usize }
    }

    /// Results of records, in the order in which their queries were added.
    pub(in crate::papers) fn as_added<T: Clone + Default>(
        &self,
        values: impl Iterator<Item = T>,
    ) -> Vec<T> {
        let mut all = vec![T::default(); self.len()];
        self.queries.iter().zip(values).for_each(|(query, value)| all[query.query] = value);
        all
    }

    fn said(&self, output: &[u8]) -> impl Iterator<Item = M::Said> {
        output.chunks_exact(size_of::<M::Said>()).map(bytemuck::pod_read_unaligned).take(self.len())
    }

    /// In the order in which queries were added.
    #[cfg(test)]
    pub(crate) fn said_as_added(&self, output: &[u8]) -> Vec<M::Said> {
        self.as_added(self.said(output))
    }

    /// In the order in which queries were added.
    pub fn answers(&self, output: &[u8]) -> Vec<FoundHits> {
        let BatchOutput { hits, bytes, .. } = self.output();
        let keys: &[[u8; 8]] = output[hits..bytes].as_chunks().0;
        let found = self.queries.iter().zip(self.said(output)).map(|(query, said)| {
            let (first, most) = query.hits;
            let count = said.as_ref()[0].min(most) as usize;
            let keys = keys[first..][..count].iter();
            let hits = keys.map(|key| Hit::of_key(u64::from_le_bytes(*key))).collect();
            FoundHits { hits, rest: M::rest(&said) }
        });
        self.as_added(found)
    }
}

/// In bytes; records come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchInput {
    pub terms: usize,
    pub more: usize,
    pub lists: usize,
}

/// In bytes; [`DeviceMethod::Said`] of each query comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchOutput {
    /// [`DeviceMethod::SAID_BESIDE`] of all queries, or terms.
    pub beside: usize,
    /// u64.
    pub hits: usize,
    pub bytes: usize,
}
