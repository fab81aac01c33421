//! How does a device give the lists of a run encoded? The postings of its batches stay there. At the end the host says the order of
//! the terms, and the device gathers, encodes and gives their lists, as many at a time as there is room for. While it encodes some, those before
//! are taken to the host by several threads, each of which lays out what it has, as the files will have it.
//!
//! If the device has no room for the postings of a run, what it has is taken to the host ([`spill`](Inverter::spill)), and the run goes on as
//! one whose lists are encoded there.

use super::{Inverter, spent};
use crate::dictionary::forms::OrderedTerms;
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::gpu::invert::machine::{DeviceMemory, Downloader, Machine};
use crate::gpu::invert::steps::encode::{self, Chunk};
use crate::gpu::invert::steps::{self, Array, Columns};
use crate::index::lexicon::TermCoder;
use crate::index::list::{BLOCK, BOUND_FROM, Form};
use crate::index::run::{EncodedList, LaidChunk, Layout, RunPart};
use crate::pages;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;

/// What the host takes of encoded lists at a time, at least.
const TAKEN_BYTES: usize = 4 << 20;

/// With fewer postings for a chunk there is no device.
const LEAST_AT_ONCE: u32 = 1 << 20;

/// The first chunk has such a part of the postings of a whole one, and each next one twice as many: the host has something to take soon.
const FIRST_PART: u32 = 8;

/// Bytes of a posting in most lists: memory for so many is there from the beginning.
const LIKELY_BYTES: u64 = 2;

/// Arrays that a device needs while it encodes, and of which each has memory for all postings of a chunk.
const OF_CHUNKS: [Array; 6] =
    [Array::Docids, Array::Tfs, Array::PartPlaces, Array::Heads, Array::Bounds, Array::Encoded];

/// What becomes of the lists of a run.
#[derive(Default)]
pub(super) struct Keeping {
    /// Lists are encoded on the device, if it has room.
    pub(super) wanted: bool,
    /// It had none in this run.
    spilled: bool,
    /// Postings of each batch that stays.
    batches: Vec<u32>,
    /// Takes encoded lists to the host, if it is there already.
    downloader: Option<Box<dyn Downloader>>,
}

impl Keeping {
    /// Whether the postings of the run stay on the device.
    pub(super) fn is_on(&self) -> bool {
        self.wanted && !self.spilled
    }
}

/// The terms of a run in the order of the lexicon, and how many postings each has. A form that only pieces behind the run have may have
/// made a term, which has none.
struct Terms {
    order: OrderedTerms,
    /// Their numbers are below this.
    numbers: u32,
    dfs: Vec<u32>,
}

/// A term that has postings.
#[derive(Clone, Copy)]
struct Last {
    rank: usize,
    suffix: usize,
    /// Terms of its collection up to it.
    terms: usize,
}

/// How far the parts go that were cut: where the suffix of the next rank begins, and the last term before that.
#[derive(Clone, Copy, Default)]
struct Cut {
    suffix: usize,
    last: Option<Last>,
}

/// Lists that are encoded, on the device.
struct Encoded {
    ranks: Range<usize>,
    /// Where each begins, and the end.
    places: Vec<u32>,
}

/// Some of them, which are taken together.
struct Part {
    ranks: Range<usize>,
    bytes: Range<u64>,
    /// What is before them.
    behind: Cut,
}

impl Terms {
    fn suffix(&self, rank: usize, at: usize) -> &[u8] {
        &self.order.suffixes[at..at + usize::from(self.order.suffix_bytes[rank])]
    }

    /// Cuts lists into parts of so many bytes.
    fn parts(&self, encoded: &Encoded, cut: &mut Cut) -> Vec<Part> {
        let collections = &self.order.collections;
        let (mut parts, mut from, mut begin) = (Vec::new(), 0, (encoded.ranks.start, *cut));
        for (rank, &end) in encoded.ranks.clone().zip(&encoded.places[1..]) {
            if self.dfs[rank] > 0 {
                let same = cut.last.filter(|last| collections[last.rank] == collections[rank]);
                let terms = 1 + same.map_or(0, |last| last.terms);
                cut.last = Some(Last { rank, suffix: cut.suffix, terms });
            }
            cut.suffix += usize::from(self.order.suffix_bytes[rank]);
            let is_last = rank + 1 == encoded.ranks.end;
            if (end - from) as usize >= TAKEN_BYTES || is_last && end > from {
                let (ranks, bytes) = (begin.0..rank + 1, from.into()..end.into());
                parts.push(Part { ranks, bytes, behind: begin.1 });
                (from, begin) = (end, (rank + 1, *cut));
            }
        }
        parts
    }

    /// Lays out the lists of a part.
    fn lay(&self, encoded: &Encoded, part: &Part, payload: &[u8]) -> LaidChunk {
        let coder = part.behind.last.map_or_else(TermCoder::default, |last| {
            let collection = self.order.collections[last.rank];
            TermCoder::behind(collection, self.suffix(last.rank, last.suffix), last.terms)
        });
        let mut layout = Layout::behind(Form::BP128, coder);
        // Memory that is touched for the first time: on huge pages, if the system has them.
        let mut bytes = pages::with_capacity(payload.len());
        bytes.extend_from_slice(payload);
        let mut laid = LaidChunk { payload: bytes, ..LaidChunk::default() };
        let mut at = part.behind.suffix;
        for rank in part.ranks.clone() {
            let suffix = self.suffix(rank, at);
            at += suffix.len();
            let df = self.dfs[rank];
            if df > 0 {
                let n = rank - encoded.ranks.start;
                let bytes = encoded.places[n + 1] - encoded.places[n];
                let list = EncodedList {
                    collection: self.order.collections[rank],
                    ends: true,
                    df,
                    here: bytes as usize,
                    bytes: bytes.into(),
                };
                layout.add(&mut laid, &list, suffix).expect("terms of a run come in order");
            }
        }
        laid
    }
}

/// Who has taken lists to the host, and where they lay.
type Taken = Result<(Box<dyn Downloader>, DeviceMemory), GpuError>;

/// Lists on their way to the host.
type Taking<'scope> = ScopedJoinHandle<'scope, Taken>;

/// Waits for lists.
fn taken(taking: Taking<'_>) -> Taken {
    taking.join().unwrap_or_else(|cause| resume_unwind(cause))
}

/// Gives chunks, which are made in any order, in that of their numbers.
struct InOrder<F> {
    next: usize,
    waiting: BTreeMap<usize, LaidChunk>,
    emit: F,
}

impl<F: FnMut(LaidChunk)> InOrder<F> {
    fn give(&mut self, number: usize, chunk: LaidChunk) {
        self.waiting.insert(number, chunk);
        while let Some(chunk) = self.waiting.remove(&self.next) {
            (self.emit)(chunk);
            self.next += 1;
        }
    }
}

impl<M: Machine> Inverter<M> {
    /// Makes room for what stays of a batch.
    pub(super) fn reserve_kept(
        &mut self,
        postings: u32,
        documents: u32,
        first: u32,
    ) -> Result<(), GpuError> {
        let end = (u64::from(first) + u64::from(documents)).max(16);
        self.machine.reserve(Array::Codes, end, first.into())?;
        if postings == 0 {
            return Ok(());
        }
        self.reserve::<u32>(Array::Kept, encode::kept_words(postings))
    }

    /// Keeps what was counted last.
    pub(super) fn keep(
        &mut self,
        counted: Columns,
        postings: u32,
        documents: u32,
        first: u32,
    ) -> Result<(), GpuError> {
        if documents > 0 {
            self.machine.run(&[encode::keep_codes(documents, first)])?;
        }
        if postings > 0 {
            self.machine.run(&[encode::keep(counted)])?;
            self.machine.places().set_aside(Array::Kept);
            self.keeping.batches.push(postings);
        }
        Ok(())
    }

    /// Whether the lists of the run stay on the device until it ends.
    pub fn keeps(&self) -> bool {
        self.keeping.is_on()
    }

    /// The codes of the lengths of the first documents of the run, of which the device keeps the lists.
    ///
    /// # Errors
    /// Of the device.
    pub fn codes(&mut self, documents: u32) -> Result<Vec<u8>, GpuError> {
        match documents {
            0 => Ok(Vec::new()),
            _ => self.get(Array::Codes, 0, documents as usize),
        }
    }

    /// Takes the lists that stay on the device to the host, and those of later batches of the run as well. Nothing is counted then,
    /// and the device knows no forms.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    pub fn spill(&mut self) -> Result<Vec<Lists>, GpuError> {
        self.keeping.spilled = true;
        self.work.spilled += 1;
        self.free_but_run();
        if self.lasts > 0 {
            self.machine.run(&[steps::clear(Array::Lasts, 0, self.lasts.into())])?;
        }
        let terms = self.lasts;
        // No piece is measured here.
        self.put(Array::PieceStarts, 0, &[0u32])?;
        self.reserve::<u64>(Array::PieceBytes, 1)?;
        self.reserve::<u64>(Array::PiecePostings, 1)?;
        self.put(Array::Counters, 0, &[0u32; steps::COUNTERS])?;
        let mut lists = Vec::new();
        for (n, postings) in std::mem::take(&mut self.keeping.batches).into_iter().enumerate() {
            self.machine.places().exchange(Array::Kept, n);
            let columns = Columns::kept(postings);
            self.reserve_tiles(steps::tiles(postings))?;
            self.machine.run(&steps::measure(columns, 0))?;
            let list_bytes = self.sum()?;
            self.reserve_lists(postings, list_bytes, terms)?;
            lists.push(self.take_lists(columns, terms, list_bytes)?);
        }
        self.machine.places().free_but(&[Array::Lasts, Array::Counts]);
        self.machine.places().free_aside();
        Ok(lists)
    }

    /// The run has ended: the next one's postings stay again.
    pub(super) fn forget_kept(&mut self) {
        self.keeping.spilled = false;
        self.keeping.batches.clear();
        self.machine.places().free_aside();
    }

    /// Encodes the lists of the run, in the order of the lexicon, and gives them by chunks, the last of which says so. Each has a part of
    /// `held`.
    ///
    /// # Errors
    /// Of the device. If that is out of memory and nothing was given, [`spill`](Self::spill) may do.
    pub fn encode(
        &mut self,
        part: RunPart,
        held: &Arc<()>,
        mut out: impl FnMut(LaidChunk) + Send,
    ) -> Result<(), GpuError> {
        let began = Instant::now();
        self.let_go()?;
        let (order, numbers) = self.learner.with(|forms| (forms.in_order(), forms.numbers()));
        self.work.seconds.order += spent(began);
        let began = Instant::now();
        let ranks = order.numbers.len();
        let mut terms = Terms { order, numbers, dfs: Vec::new() };
        if ranks > 0 {
            self.grow_lasts(numbers)?;
            self.put(Array::Counters, 0, &[0u32; steps::COUNTERS])?;
            self.put(Array::Numbers, 0, &terms.order.numbers)?;
            self.reserve::<u32>(Array::Dfs, ranks as u64)?;
            self.machine.run(&[encode::rank_counts(ranks as u32)])?;
            terms.dfs = self.get(Array::Dfs, 0, ranks)?;
        }
        let mut emit = |chunk| {
            out(LaidChunk { part, whole: true, held: Some(held.clone()), ..chunk });
        };
        self.encode_all(&terms, &mut emit)?;
        emit(LaidChunk { ends_run: true, ..LaidChunk::default() });
        self.machine.places().free(&OF_CHUNKS);
        self.work.seconds.encode += spent(began);
        Ok(())
    }

    /// Encodes all lists, chunk after chunk; those of one are taken to the host while the next are encoded.
    fn encode_all(
        &mut self,
        terms: &Terms,
        emit: &mut (impl FnMut(LaidChunk) + Send),
    ) -> Result<(), GpuError> {
        let Terms { order, dfs, .. } = terms;
        let given = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), emit });
        let (mut next, mut cut, mut number) = (0, Cut::default(), 0);
        let postings: u64 = dfs.iter().map(|&df| u64::from(df)).sum();
        let mut most = postings.min(self.tuning.encoded_at_once.into()) as u32;
        let mut plan = Plan::of(dfs, next, most / FIRST_PART, most);
        scope(|scope| {
            let mut taking: Option<Taking<'_>> = None;
            while let Some(here) = plan.chunks.front() {
                let places = match self.encode_chunk(here, &plan.largest, terms) {
                    Err(error) if error.is_out_of_memory() && taking.is_some() => {
                        // The lists that are taken have room, too.
                        self.keeping.downloader =
                            taking.take().map(taken).transpose()?.map(|(by, _)| by);
                        continue;
                    }
                    Err(error) if error.is_out_of_memory() && most > LEAST_AT_ONCE => {
                        // What is not of the run makes room first.
                        self.free_but_run();
                        self.put(Array::Numbers, 0, &order.numbers)?;
                        self.put(Array::Dfs, 0, dfs)?;
                        self.put(Array::Counters, 0, &[0u32; steps::COUNTERS])?;
                        most /= 2;
                        plan = Plan::of(dfs, next, most, most);
                        continue;
                    }
                    places => places?,
                };
                let here = plan.chunks.pop_front().expect("it was there").ranks;
                next = here.end;
                let encoded = Encoded { ranks: here, places };
                let parts = terms.parts(&encoded, &mut cut);
                if parts.is_empty() {
                    continue;
                }
                let before = taking.take().map(taken).transpose()?;
                let lists = self.machine.lend(Array::Encoded)?;
                let mut by = match before {
                    Some((by, old)) => {
                        // The next ones are written there.
                        self.machine.adopt(Array::Encoded, old)?;
                        by
                    }
                    None => self
                        .keeping
                        .downloader
                        .take()
                        .map_or_else(|| self.machine.downloader(), Ok)?,
                };
                let (given, first) = (&given, number);
                number += parts.len();
                taking = Some(scope.spawn(move || {
                    let bytes: Vec<Range<u64>> = parts.iter().map(|p| p.bytes.clone()).collect();
                    by.download(&lists, &bytes, &|n, payload| {
                        let chunk = terms.lay(&encoded, &parts[n], payload);
                        given.lock().unwrap_or_else(PoisonError::into_inner).give(first + n, chunk);
                    })?;
                    Ok((by, lists))
                }));
            }
            self.keeping.downloader = taking.map(taken).transpose()?.map(|(by, _)| by);
            Ok(())
        })
    }

    /// Encodes the lists of a chunk; where each begins, and the end. There will be memory for chunks as large as the largest, so that nothing is
    /// freed until they are encoded, for which a device waits until it has nothing to do.
    fn encode_chunk(
        &mut self,
        here: &Planned,
        largest: &Planned,
        terms: &Terms,
    ) -> Result<Vec<u32>, GpuError> {
        let (count, dfs) = (here.ranks.len(), &terms.dfs[here.ranks.clone()]);
        if here.postings == 0 {
            return Ok(vec![0; count + 1]);
        }
        let terms = terms.numbers;
        let chunk =
            Chunk { first: here.ranks.start as u32, ranks: count as u32, parts: here.parts as u32 };
        let most_ranks = largest.ranks.len() as u64;
        for array in [Array::ChunkFirsts, Array::PartFirsts, Array::EncodedPlaces] {
            self.reserve::<u32>(array, most_ranks + 1)?;
        }
        for array in [Array::Cursors, Array::BatchFirsts] {
            self.reserve::<u32>(array, terms.into())?;
        }
        for array in [Array::Docids, Array::Tfs] {
            self.reserve::<u32>(array, largest.postings)?;
        }
        self.reserve::<u32>(Array::PartPlaces, largest.parts + 1)?;
        self.reserve::<u32>(Array::Heads, largest.parts)?;
        self.reserve::<u64>(Array::Bounds, largest.parts)?;
        self.reserve::<u64>(Array::ListBounds, most_ranks)?;
        let sums = steps::sum_words(largest.parts.max(most_ranks) as u32 + 1);
        self.reserve::<u32>(Array::Sums, sums.into())?;
        self.machine.run(&chunk.begin(terms))?;
        for (n, &postings) in self.keeping.batches.iter().enumerate() {
            self.machine.places().exchange(Array::Kept, n);
            let run = self.machine.run(&Chunk::gather(Columns::kept(postings)));
            self.machine.places().exchange(Array::Kept, n);
            run?;
        }
        let is_long = |df: u32| u64::from(df).div_ceil(BLOCK as u64) >= u64::from(BOUND_FROM);
        let longs: Vec<u32> =
            (0..).zip(dfs).filter(|&(_, &df)| is_long(df)).map(|(rank, _)| rank).collect();
        self.put(Array::LongLists, 0, &longs)?;
        self.machine.run(&chunk.measure(longs.len() as u32))?;
        let bytes = u64::from(self.sum()?);
        let likely = LIKELY_BYTES * largest.postings;
        self.reserve::<u8>(Array::Encoded, bytes.max(likely))
            .or_else(|_| self.reserve::<u8>(Array::Encoded, bytes))?;
        self.machine.run(&[chunk.write()])?;
        self.get(Array::EncodedPlaces, 0, count + 1)
    }

    /// Frees what is not of the run; the device knows no forms then.
    pub(super) fn free_but_run(&mut self) {
        self.machine.places().free_but(&[Array::Lasts, Array::Counts, Array::Codes]);
        self.learner.forget_answers();
        self.learner.forget_expansions();
        self.found.clear();
        (self.known, self.arena_bytes, self.expansions, self.slots) = (0, 0, 0, 0);
        self.brought = None;
    }
}

/// Lists that are encoded together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Planned {
    ranks: Range<usize>,
    postings: u64,
    /// Blocks and tails.
    parts: u64,
}

/// Which lists are encoded together.
struct Plan {
    chunks: VecDeque<Planned>,
    /// So many ranks, postings and parts one of them has at most.
    largest: Planned,
}

impl Plan {
    /// The ranks from `begin` on. The first chunk has `first` postings, each next one twice as many up to `most`; or it is one list.
    fn of(dfs: &[u32], begin: usize, first: u32, most: u32) -> Self {
        let (mut chunks, mut at_once) = (VecDeque::new(), u64::from(first));
        let mut here = Planned { ranks: begin..begin, ..Planned::default() };
        for (rank, &df) in (begin..).zip(&dfs[begin..]) {
            let postings = u64::from(df);
            if here.postings + postings > at_once && !here.ranks.is_empty() {
                let next = Planned { ranks: rank..rank, ..Planned::default() };
                chunks.push_back(std::mem::replace(&mut here, next));
                at_once = (2 * at_once).min(most.into());
            }
            here.ranks.end = rank + 1;
            here.postings += postings;
            here.parts += postings.div_ceil(BLOCK as u64);
        }
        if !here.ranks.is_empty() {
            chunks.push_back(here);
        }
        let most = |of: fn(&Planned) -> u64| chunks.iter().map(of).max().unwrap_or(0);
        let largest = Planned {
            ranks: 0..most(|chunk| chunk.ranks.len() as u64) as usize,
            postings: most(|chunk| chunk.postings),
            parts: most(|chunk| chunk.parts),
        };
        Self { chunks, largest }
    }
}
