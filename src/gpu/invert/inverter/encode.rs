//! How does a device give the lists of a run encoded? The postings of its batches stay there. At the end the host says the order of
//! the terms, and the device gathers, encodes and gives their lists, as many at a time as there is room for.
//!
//! If the device has no room for the postings of a run, what it has is taken to the host ([`spill`](Inverter::spill)), and the run goes on as
//! one whose lists are encoded there.

use super::{Inverter, spent};
use crate::dictionary::forms::OrderedTerms;
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::gpu::invert::machine::Machine;
use crate::gpu::invert::steps::encode::{self, Chunk};
use crate::gpu::invert::steps::{self, Array, Columns};
use crate::index::list::{BLOCK, BOUND_FROM};
use crate::index::run::{EncodedChunk, EncodedList, RunPart};
use crate::pages;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What the host takes of encoded lists at a time, at least.
const TAKEN_BYTES: usize = 4 << 20;

/// With fewer postings for a chunk there is no device.
const LEAST_AT_ONCE: u32 = 1 << 20;

/// What becomes of the lists of a run.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// Lists are encoded on the device, if it has room.
    pub(super) wanted: bool,
    /// It had none in this run.
    spilled: bool,
    /// Postings of each batch that stays.
    batches: Vec<u32>,
}

impl Keeping {
    /// Whether the postings of the run stay on the device.
    pub(super) fn is_on(&self) -> bool {
        self.wanted && !self.spilled
    }
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
    /// Where the suffixes of their terms begin.
    suffix: usize,
}

impl Encoded {
    /// Parts of so many bytes.
    fn parts(&self, order: &OrderedTerms, suffix: &mut usize) -> Vec<Part> {
        let (mut parts, mut from, mut begin) = (Vec::new(), 0, (self.ranks.start, *suffix));
        for (rank, &end) in self.ranks.clone().zip(&self.places[1..]) {
            *suffix += usize::from(order.suffix_bytes[rank]);
            let is_last = rank + 1 == self.ranks.end;
            if (end - from) as usize >= TAKEN_BYTES || is_last && end > from {
                let (ranks, bytes) = (begin.0..rank + 1, from.into()..end.into());
                parts.push(Part { ranks, bytes, suffix: begin.1 });
                (from, begin) = (end, (rank + 1, *suffix));
            }
        }
        parts
    }

    fn chunk(
        &self,
        part: &Part,
        order: &OrderedTerms,
        dfs: &[u32],
        payload: &[u8],
    ) -> EncodedChunk {
        let (mut lists, mut suffixes) = (Vec::with_capacity(part.ranks.len()), Vec::new());
        let mut at = part.suffix;
        for rank in part.ranks.clone() {
            let suffix_bytes = order.suffix_bytes[rank];
            let begin = at;
            at += usize::from(suffix_bytes);
            // A form that only pieces behind the run have may have made a term.
            if dfs[rank] > 0 {
                let n = rank - self.ranks.start;
                let bytes = self.places[n + 1] - self.places[n];
                suffixes.extend_from_slice(&order.suffixes[begin..at]);
                lists.push(EncodedList {
                    collection: order.collections[rank],
                    suffix_bytes,
                    ends: true,
                    df: dfs[rank],
                    here: bytes as usize,
                    bytes: bytes.into(),
                });
            }
        }
        // Memory that is touched for the first time: on huge pages, if the system has them.
        let mut bytes = pages::with_capacity(payload.len());
        bytes.extend_from_slice(payload);
        EncodedChunk { lists, suffixes, payload: bytes, ..EncodedChunk::default() }
    }
}

/// Gives chunks, which are made in any order, in that of their numbers.
struct InOrder<'a, F> {
    next: usize,
    waiting: BTreeMap<usize, EncodedChunk>,
    emit: &'a mut F,
}

impl<F: FnMut(EncodedChunk)> InOrder<'_, F> {
    fn give(&mut self, number: usize, chunk: EncodedChunk) {
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
        mut out: impl FnMut(EncodedChunk) + Send,
    ) -> Result<(), GpuError> {
        let began = Instant::now();
        self.let_go()?;
        let (order, terms) = self.learner.with(|forms| (forms.in_order(), forms.numbers()));
        self.work.seconds.order += spent(began);
        let began = Instant::now();
        let ranks = order.numbers.len();
        let mut dfs = Vec::new();
        if ranks > 0 {
            self.grow_lasts(terms)?;
            self.put(Array::Counters, 0, &[0u32; steps::COUNTERS])?;
            self.put(Array::Numbers, 0, &order.numbers)?;
            self.reserve::<u32>(Array::Dfs, ranks as u64)?;
            self.machine.run(&[encode::rank_counts(ranks as u32)])?;
            dfs = self.get(Array::Dfs, 0, ranks)?;
        }
        let mut emit = |chunk| {
            out(EncodedChunk { part, whole: true, held: Some(held.clone()), ..chunk });
        };
        let (mut next, mut suffix, mut at_once) = (0, 0, self.tuning.encoded_at_once);
        while next < ranks {
            let here = next..chunk_end(&dfs, next, at_once);
            let places = match self.encode_ranks(&here, &dfs[here.clone()], terms) {
                Err(error) if error.is_out_of_memory() && at_once > LEAST_AT_ONCE => {
                    // What is not of the run makes room first.
                    self.free_but_run();
                    self.put(Array::Numbers, 0, &order.numbers)?;
                    self.put(Array::Dfs, 0, &dfs)?;
                    self.put(Array::Counters, 0, &[0u32; steps::COUNTERS])?;
                    at_once /= 2;
                    continue;
                }
                places => places?,
            };
            next = here.end;
            let encoded = Encoded { ranks: here, places };
            self.take_encoded(&encoded, &order, &dfs, &mut suffix, &mut emit)?;
        }
        emit(EncodedChunk { ends_run: true, ..EncodedChunk::default() });
        self.work.seconds.encode += spent(began);
        Ok(())
    }

    /// Encodes the lists of some ranks; where each begins, and the end.
    fn encode_ranks(
        &mut self,
        ranks: &Range<usize>,
        dfs: &[u32],
        terms: u32,
    ) -> Result<Vec<u32>, GpuError> {
        let postings: u64 = dfs.iter().map(|&df| u64::from(df)).sum();
        let parts: u64 = dfs.iter().map(|&df| u64::from(df).div_ceil(BLOCK as u64)).sum();
        let count = ranks.len() as u64;
        if postings == 0 {
            return Ok(vec![0; ranks.len() + 1]);
        }
        let chunk = Chunk { first: ranks.start as u32, ranks: count as u32, parts: parts as u32 };
        let rank_words = [Array::ChunkFirsts, Array::PartFirsts, Array::EncodedPlaces];
        for array in rank_words {
            self.reserve::<u32>(array, count + 1)?;
        }
        for array in [Array::Cursors, Array::BatchFirsts] {
            self.reserve::<u32>(array, terms.into())?;
        }
        for array in [Array::Docids, Array::Tfs] {
            self.reserve::<u32>(array, postings)?;
        }
        self.reserve::<u32>(Array::PartPlaces, parts + 1)?;
        self.reserve::<u32>(Array::Heads, parts)?;
        self.reserve::<u64>(Array::Bounds, parts)?;
        self.reserve::<u64>(Array::ListBounds, count)?;
        let sums = steps::sum_words(parts.max(count) as u32 + 1);
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
        let bytes = self.sum()?;
        self.reserve::<u8>(Array::Encoded, bytes.into())?;
        self.machine.run(&[chunk.write()])?;
        self.get(Array::EncodedPlaces, 0, ranks.len() + 1)
    }

    /// Takes encoded lists to the host, by several threads, and gives them in their order; the suffixes of their terms begin at `suffix`,
    /// which moves on.
    fn take_encoded(
        &mut self,
        encoded: &Encoded,
        order: &OrderedTerms,
        dfs: &[u32],
        suffix: &mut usize,
        emit: &mut (impl FnMut(EncodedChunk) + Send),
    ) -> Result<(), GpuError> {
        let parts = encoded.parts(order, suffix);
        let bytes: Vec<Range<u64>> = parts.iter().map(|part| part.bytes.clone()).collect();
        let given = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), emit });
        self.machine.read_parts(Array::Encoded, &bytes, &|n, payload| {
            let chunk = encoded.chunk(&parts[n], order, dfs, payload);
            given.lock().unwrap_or_else(PoisonError::into_inner).give(n, chunk);
        })
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

/// The end of the ranks from `begin` on that have so many postings together, one at least.
fn chunk_end(dfs: &[u32], begin: usize, at_once: u32) -> usize {
    let mut postings = 0u64;
    let fits = |&&df: &&u32| {
        postings += u64::from(df);
        postings <= at_once.into()
    };
    begin + dfs[begin..].iter().take_while(fits).count().max(1)
}
