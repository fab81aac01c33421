//! How does a device give the lists of a run encoded? The postings of its batches stay there. At the end the host says the order of
//! the terms, and the device gathers, encodes and gives their lists, as many at a time as there is room for. While it encodes some, those before
//! are taken to the host by several threads, each of which puts what it has where it belongs in the file ([`parts`]).
//!
//! If the device has no room for the postings of a run, what it has is taken to the host ([`spill`](Inverter::spill)), and the run goes on as
//! one whose lists are encoded there.

mod parts;

use self::parts::{Cut, Encoded, InOrder, Part, Terms};
use super::typed::Typed;
use super::{Inverter, lock, spent};
use crate::dictionary::closed::ClosedError;
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::gpu::invert::machine::{DeviceMemory, Downloader, MOST_TAKEN, Machine};
use crate::gpu::invert::steps::encode::{self, Chunk};
use crate::gpu::invert::steps::{self, Array, Columns};
use crate::index::list::{BLOCK, BOUND_FROM};
use crate::index::run::{LaidChunk, RunPart};
use crate::index::storage::FilledFile;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;

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

/// Who takes lists to the host, and how far it has come.
struct Taker {
    by: Box<dyn Downloader>,
    cut: Cut,
    /// Of the next part.
    number: usize,
}

/// Who has taken lists to the host, and where they lay.
type Taken = (Taker, DeviceMemory);

/// Takes the lists of a chunk to their places.
fn take(
    terms: &Terms,
    encoded: &Encoded,
    lists: &DeviceMemory,
    taker: &mut Taker,
    file: &Arc<FilledFile>,
    given: &Mutex<InOrder<impl FnMut(LaidChunk) + Send>>,
) -> Result<(), GpuError> {
    let parts = terms.parts(encoded, MOST_TAKEN, &mut taker.cut, file);
    let first = taker.number;
    taker.number += parts.len();
    let bytes: Vec<Range<u64>> = parts.iter().map(|part| part.bytes.clone()).collect();
    let parts: Vec<Mutex<Option<Part>>> =
        parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    taker.by.download(lists, &bytes, &|n, payload| {
        let part = lock(&parts[n]).take().expect("a part is taken once");
        let chunk = terms.place(encoded, part, payload, file);
        lock(given).give(first + n, chunk);
    })
}

/// Lists on their way to the host.
type Taking<'scope> = ScopedJoinHandle<'scope, Result<Taken, GpuError>>;

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

    /// Encodes the lists of the run, in the order of the lexicon, puts them where they belong in the file that `open` gives, and gives what
    /// the lexicon has of them by chunks, the last of which says so. Each has a part of `held`.
    ///
    /// # Errors
    /// Of the device, and those of `open`. If the device is out of memory and the file is not open, [`spill`](Self::spill) may do.
    pub fn encode(
        &mut self,
        part: RunPart,
        held: &Arc<()>,
        open: impl FnOnce() -> Result<FilledFile, ClosedError>,
        mut out: impl FnMut(LaidChunk) + Send,
    ) -> Result<(), ClosedError> {
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
        self.encode_all(&terms, open, &mut emit)?;
        emit(LaidChunk { ends_run: true, ..LaidChunk::default() });
        self.machine.places().free(&OF_CHUNKS);
        self.work.seconds.encode += spent(began);
        Ok(())
    }

    /// Encodes all lists, chunk after chunk; those of one are taken to the host while the next are encoded.
    fn encode_all(
        &mut self,
        terms: &Terms,
        open: impl FnOnce() -> Result<FilledFile, ClosedError>,
        emit: &mut (impl FnMut(LaidChunk) + Send),
    ) -> Result<(), ClosedError> {
        let Terms { order, dfs, .. } = terms;
        let (given, mut open) = (Mutex::new(InOrder::new(emit)), Some(open));
        let file: OnceLock<Arc<FilledFile>> = OnceLock::new();
        let postings: u64 = dfs.iter().map(|&df| u64::from(df)).sum();
        let mut most = postings.min(self.tuning.encoded_at_once.into()) as u32;
        let (mut next, mut plan) = (0, Plan::of(dfs, 0, most / FIRST_PART, most));
        scope(|scope| {
            let (mut taking, mut resting): (Option<Taking<'_>>, Option<Taker>) = (None, None);
            while let Some(here) = plan.chunks.front() {
                let places = match self.encode_chunk(here, &plan.largest, terms) {
                    Err(error) if error.is_out_of_memory() && taking.is_some() => {
                        // The lists that are taken have room, too.
                        resting = self.taken(&mut taking)?.map(|(taker, _)| taker);
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
                let before = self.taken(&mut taking)?;
                let is_empty = encoded.places.last() == Some(&0);
                let lent = if is_empty { None } else { Some(self.machine.lend(Array::Encoded)?) };
                let mut taker = match before {
                    Some((taker, old)) => {
                        // The next ones are written there.
                        self.machine.adopt(Array::Encoded, old)?;
                        taker
                    }
                    None => match resting.take() {
                        Some(taker) => taker,
                        None => {
                            let by = self.keeping.downloader.take();
                            let by = by.map_or_else(|| self.machine.downloader(), Ok)?;
                            Taker { by, cut: Cut::default(), number: 0 }
                        }
                    },
                };
                let Some(lists) = lent else {
                    terms.pass_empty(&encoded, &mut taker.cut);
                    resting = Some(taker);
                    continue;
                };
                if let Some(open) = open.take() {
                    let opened = Arc::new(open()?);
                    file.get_or_init(|| opened);
                }
                let (given, file) = (&given, file.get().expect("it was opened"));
                taking = Some(scope.spawn(move || {
                    take(terms, &encoded, &lists, &mut taker, file, given)?;
                    Ok((taker, lists))
                }));
            }
            let taker = self.taken(&mut taking)?.map(|(taker, _)| taker).or(resting);
            self.keeping.downloader = taker.map(|taker| taker.by);
            Ok(())
        })
    }

    /// Waits for lists, if any are on their way.
    fn taken(&mut self, taking: &mut Option<Taking<'_>>) -> Result<Option<Taken>, GpuError> {
        let began = Instant::now();
        let taken = taking
            .take()
            .map(|t| t.join().unwrap_or_else(|cause| resume_unwind(cause)))
            .transpose();
        self.work.seconds.take += spent(began);
        taken
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
