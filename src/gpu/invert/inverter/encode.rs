//! Encodes the lists of a run on the device, where the postings of its batches stay. At the end
//! these are gathered list by list, while the host sorts the terms; without room for all of them,
//! the host sorts first, and some terms at a time are gathered. Of these some lists at a time are
//! encoded, while several threads take those before to the host and put them where they belong in
//! the file ([`going`], [`parts`]).

mod going;
mod parts;

use self::going::{Finally, Going, Lent};
use self::parts::{EncodedRanks, RunTerms};
use super::typed::Typed;
use super::{Inverter, spent};
use crate::dictionary::closed::ClosedError;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::{DeviceMemory, Downloader, InvertMachine};
use crate::gpu::invert::steps::encode::{self, EncodeChunk};
use crate::gpu::invert::steps::postings::PostingColumns;
use crate::gpu::invert::steps::{self, InvertArray};
use crate::index::files::storage::FilledFile;
use crate::index::list::{BLOCK, BOUND_FROM};
use crate::index::run::{LaidChunk, RunPart};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;

/// The first chunk has such a part of the postings of a whole one, and each next one twice as many,
/// so that the host soon has something to take.
const FIRST_PART: u64 = 8;

/// Ranks whose postings the host asks for at a time.
const KNOWN_AT_ONCE: usize = 1 << 18;

/// Under way to the host.
const MOST_LENT: usize = 4;

/// Without room for such a part of a whole chunk, encoding fails.
const LEAST_PART: u64 = 128;

/// Of a posting in most lists: memory for this many is reserved at the beginning.
const LIKELY_BYTES: u64 = 2;

const OF_LISTS: [InvertArray; 7] = [
    InvertArray::Docids,
    InvertArray::Tfs,
    InvertArray::PartPlaces,
    InvertArray::Heads,
    InvertArray::LongLists,
    InvertArray::Bounds,
    InvertArray::Encoded,
];

type Taking<'scope> = ScopedJoinHandle<'scope, Result<Box<dyn Downloader>, GpuError>>;

impl<M: InvertMachine + ?Sized> Inverter<M> {
    /// Encodes the lists of the run, whose documents have length `codes`, in the order of the
    /// lexicon, puts them where they belong in the file of `open`, and passes what the lexicon has
    /// of them to `out` in chunks, each with a share of `held`; the last one says so. The run has
    /// [ended](Self::end_run) then.
    ///
    /// # Errors
    /// Of the device, and those of `open`. If the device is out of memory, the file is not open,
    /// and [the postings stay](Self::can_spill), [`spill`](Self::spill) may do.
    pub fn encode(
        &mut self,
        part: RunPart,
        codes: &[Arc<[u8]>],
        held: &Arc<()>,
        open: impl FnOnce() -> Result<FilledFile, ClosedError>,
        mut out: impl FnMut(LaidChunk) + Send,
    ) -> Result<(), ClosedError> {
        let began = Instant::now();
        // The forms go with the run, and no more terms get numbers.
        self.let_go();
        self.free_terms();
        let term_codes = self.numbering.codes.clone();
        let numbers = term_codes.len() as u32;
        // A device takes this many launches at a time, and this thread waits for it.
        let order = self.learner.in_order(term_codes)?;
        let codes: Vec<&[u8]> = codes.iter().map(|codes| &**codes).collect();
        let documents = codes.iter().map(|codes| codes.len() as u64).sum();
        if let Err(error) = self.reserve_run(numbers, documents) {
            if !error.is_out_of_memory() {
                return Err(error.into());
            }
            self.free_but_run();
            self.reserve_run(numbers, documents)?;
        }
        self.machine.write(InvertArray::Codes, 0, &codes)?;
        let sizes = self.sizes(documents);
        let is_gathered = self.gather_all(sizes, numbers)?;
        if is_gathered {
            // Nothing will be gathered again, and freeing takes longest: nobody waits for it here.
            self.forget_kept();
        }
        let terms = RunTerms { order: order.made(), numbers };
        self.work.seconds.order += spent(began);
        let began = Instant::now();
        let mut emit = |chunk| {
            out(LaidChunk { part, whole: true, guard: Some(held.clone()), ..chunk });
        };
        self.encode_all(&terms, sizes, is_gathered, open, &mut emit)?;
        emit(LaidChunk { ends: true, ..LaidChunk::default() });
        self.work.seconds.encode += spent(began);
        Ok(())
    }

    fn reserve_run(&mut self, terms: u32, documents: u64) -> Result<(), GpuError> {
        self.grow_lasts(terms)?;
        self.reserve::<u8>(InvertArray::Codes, documents)
    }

    /// Sizes for a device that has room.
    fn sizes(&self, documents: u64) -> EncodeSizes {
        let postings = self.keeping.postings();
        let longest = postings.min(documents);
        let gathered = postings.min(self.tuning.gathered_at_once.into()).max(longest);
        EncodeSizes { gathered, encoded: self.tuning.encoded_at_once.into(), longest }
    }

    /// Gathers the postings of all lists, if there is room for that and for the likely results.
    fn gather_all(&mut self, sizes: EncodeSizes, terms: u32) -> Result<bool, GpuError> {
        let postings = self.keeping.postings();
        if postings == 0 {
            return Ok(false);
        }
        if sizes.gathered == postings {
            match self.reserve_sizes(sizes, terms.into()) {
                Ok(()) => {
                    self.put(InvertArray::Counters, 0, &[0u32; steps::COUNTERS])?;
                    self.machine.run(&encode::make_room(terms))?;
                    self.gather()?;
                    return Ok(true);
                }
                Err(error) if error.is_out_of_memory() => {}
                Err(error) => return Err(error),
            }
        }
        // Makes more room, if not for all.
        self.free_but_run();
        Ok(false)
    }

    /// At most `most` postings.
    fn gather_some(
        &mut self,
        known: &mut KnownLengths,
        most: u64,
        terms: &RunTerms,
    ) -> Result<Range<usize>, GpuError> {
        let all = terms.order.numbers.len();
        let PlannedRanks { ranks, postings, .. } = self.plan(known, all, most, terms)?;
        if postings > 0 {
            self.machine.run(&encode::make_room_for(&ranks, terms.numbers))?;
            self.gather()?;
        }
        Ok(ranks)
    }

    /// The next lists before rank `end`, of at most `most` postings, or one; reads unknown lengths.
    fn plan(
        &mut self,
        known: &mut KnownLengths,
        end: usize,
        most: u64,
        terms: &RunTerms,
    ) -> Result<PlannedRanks, GpuError> {
        let mut planned = PlannedRanks::from(known.first);
        loop {
            let to_end = end - known.first;
            let dfs = &known.dfs[..known.dfs.len().min(to_end)];
            if !planned.add(dfs, most) || dfs.len() == to_end {
                return Ok(planned);
            }
            let first = known.first + known.dfs.len();
            let numbers = &terms.order.numbers[first..];
            let numbers = &numbers[..numbers.len().min(KNOWN_AT_ONCE)];
            self.put(InvertArray::Numbers, first as u64, numbers)?;
            self.machine.run(&[encode::rank_counts(first as u32, numbers.len() as u32)])?;
            known.dfs.extend(self.get::<u32>(InvertArray::Dfs, first as u64, numbers.len())?);
        }
    }

    /// Of lists that have room.
    fn gather(&mut self) -> Result<(), GpuError> {
        for (place, postings) in self.keeping.batches.clone().into_iter().enumerate() {
            self.machine.places().exchange(InvertArray::Kept, place);
            let run = self.machine.run(&encode::gather(PostingColumns::kept(postings)));
            self.machine.places().exchange(InvertArray::Kept, place);
            run?;
        }
        Ok(())
    }

    /// Encodes all lists, chunk after chunk, as long as they can be written; those before are taken
    /// to the host meanwhile.
    fn encode_all(
        &mut self,
        terms: &RunTerms,
        mut sizes: EncodeSizes,
        is_gathered: bool,
        open: impl FnOnce() -> Result<FilledFile, ClosedError>,
        emit: &mut (impl FnMut(LaidChunk) + Send),
    ) -> Result<(), ClosedError> {
        let ranks = terms.order.numbers.len();
        let mut open = Some(open);
        let mut at_once = sizes.encoded / FIRST_PART;
        let least = sizes.encoded / LEAST_PART;
        self.put(InvertArray::Counters, 0, &[0u32; steps::COUNTERS])?;
        let mut gathered = if is_gathered { 0..ranks } else { 0..0 };
        if !is_gathered {
            sizes = self.reserve_some(sizes, least, terms)?;
            at_once = at_once.min(sizes.encoded);
        }
        let mut known = KnownLengths { first: 0, dfs: Vec::new() };
        let mut lent = 0;
        let going = Going::new(terms, emit);
        let (back, returned) = channel();
        scope(|scope| {
            let over = Finally(|| going.end());
            let mut taking: Option<Taking<'_>> = None;
            while known.first < ranks && !going.is_futile() {
                let encoded = self.encode_next(&mut known, &mut gathered, at_once, sizes, terms);
                let (here, places) = match encoded {
                    Err(error) if error.is_out_of_memory() && lent > 0 => {
                        // The lists that are taken have room, too.
                        for _ in 0..std::mem::take(&mut lent) {
                            drop(self.returned(&returned));
                        }
                        continue;
                    }
                    Err(error) if error.is_out_of_memory() && at_once > least => {
                        // There is less room than was likely. What was gathered has to stay.
                        self.spare.clear();
                        self.finding.finder().free();
                        at_once /= 2;
                        sizes.encoded = at_once;
                        continue;
                    }
                    encoded => encoded?,
                };
                let dfs = known.take(here.end);
                at_once = (2 * at_once).min(sizes.encoded);
                if places.last() == Some(&0) {
                    going.hand_on(EncodedRanks { ranks: here, dfs, places, lists: None });
                    continue;
                }
                let memory =
                    self.machine.lend(InvertArray::Encoded)?.expect("lists were encoded there");
                lent += 1;
                if let Some(open) = open.take() {
                    let opened = Arc::new(open()?);
                    going.file.get_or_init(|| opened);
                    let by = self.keeping.downloader.take();
                    let mut by = by.map_or_else(|| self.machine.downloader(), Ok)?;
                    let going = &going;
                    taking = Some(scope.spawn(move || {
                        let _left = Finally(|| going.leave());
                        by.download(&|| going.next())?;
                        Ok(by)
                    }));
                }
                let lists = Some(Lent::new(memory, &back));
                going.hand_on(EncodedRanks { ranks: here, dfs, places, lists });
                let memory = match lent {
                    MOST_LENT => Some(self.returned(&returned)),
                    _ => returned.try_recv().ok(),
                };
                if let Some(memory) = memory {
                    // The next ones are written there.
                    self.machine.adopt(InvertArray::Encoded, memory)?;
                    lent -= 1;
                }
            }
            drop(over);
            // Done while the last lists are taken to the host.
            self.machine.places().free(&OF_LISTS);
            drop(self.end_run()?);
            let began = Instant::now();
            let taken =
                taking.map(|taking| taking.join().unwrap_or_else(|cause| resume_unwind(cause)));
            self.work.seconds.take += spent(began);
            self.keeping.downloader = taken.transpose()?;
            Ok(())
        })
    }

    fn returned(&mut self, returned: &Receiver<DeviceMemory>) -> DeviceMemory {
        let began = Instant::now();
        let memory = returned.recv().expect("what was lent comes back");
        self.work.seconds.take += spent(began);
        memory
    }

    /// Encodes the next lists, with at most `at_once` postings, or one list; returns their ranks,
    /// and where each begins, and the end.
    fn encode_next(
        &mut self,
        known: &mut KnownLengths,
        gathered: &mut Range<usize>,
        at_once: u64,
        sizes: EncodeSizes,
        terms: &RunTerms,
    ) -> Result<(Range<usize>, Vec<u32>), GpuError> {
        if known.first >= gathered.end {
            *gathered = self.gather_some(known, sizes.gathered, terms)?;
        }
        let planned = self.plan(known, gathered.end, at_once, terms)?;
        let PlannedRanks { ranks, postings, parts, longs } = planned;
        if postings == 0 {
            return Ok((ranks.clone(), vec![0; ranks.len() + 1]));
        }
        self.reserve_chunks(terms.order.numbers.len() as u64, sizes.encoded, parts)?;
        let count = ranks.len();
        let chunk =
            EncodeChunk { first: ranks.start as u32, ranks: count as u32, parts: parts as u32 };
        self.put(InvertArray::LongLists, 0, &longs)?;
        self.machine.run(&chunk.measure(longs.len() as u32))?;
        let bytes = u64::from(self.sum()?);
        self.reserve::<u8>(InvertArray::Encoded, bytes.max(LIKELY_BYTES * sizes.encoded))
            .or_else(|_| self.reserve::<u8>(InvertArray::Encoded, bytes))?;
        self.machine.run(&[chunk.write()])?;
        Ok((ranks, self.get(InvertArray::EncodedPlaces, 0, count + 1)?))
    }

    /// Reserves to gather and encode lists of some terms at a time, before any is gathered: each
    /// time all postings of the run are read.
    fn reserve_some(
        &mut self,
        sizes: EncodeSizes,
        least: u64,
        terms: &RunTerms,
    ) -> Result<EncodeSizes, GpuError> {
        let mut sizes = EncodeSizes { encoded: sizes.encoded.min(sizes.gathered), ..sizes };
        loop {
            match self.reserve_sizes(sizes, terms.numbers.into()) {
                Err(error) if error.is_out_of_memory() && sizes.encoded > least => {
                    self.machine.places().free(&OF_LISTS);
                    sizes = sizes.halved();
                }
                reserved => return reserved.map(|()| sizes),
            }
        }
    }

    /// Reserves what gathering and encoding is likely to take.
    fn reserve_sizes(&mut self, sizes: EncodeSizes, terms: u64) -> Result<(), GpuError> {
        let EncodeSizes { gathered, encoded, longest } = sizes;
        for array in [InvertArray::Docids, InvertArray::Tfs] {
            self.reserve::<u32>(array, gathered)?;
        }
        for array in [InvertArray::Cursors, InvertArray::BatchFirsts] {
            self.reserve::<u32>(array, terms + 1)?;
        }
        self.reserve_chunks(terms, encoded, longest.div_ceil(BLOCK as u64))?;
        for array in [InvertArray::Numbers, InvertArray::Dfs] {
            self.reserve::<u32>(array, terms)?;
        }
        self.reserve::<u8>(InvertArray::Encoded, LIKELY_BYTES * encoded.max(longest))
    }

    /// Reserves for chunks up to this size, so that nothing is freed until all is encoded: for that
    /// a device waits until it has nothing to do.
    fn reserve_chunks(&mut self, ranks: u64, postings: u64, parts: u64) -> Result<(), GpuError> {
        let parts = (postings / BLOCK as u64 + ranks.min(postings)).max(parts);
        let sums = steps::sum_words(parts.max(ranks) as u32 + 1);
        self.reserve::<u32>(InvertArray::Sums, sums.into())?;
        for array in [InvertArray::ChunkFirsts, InvertArray::PartFirsts, InvertArray::EncodedPlaces]
        {
            self.reserve::<u32>(array, ranks + 1)?;
        }
        for array in [InvertArray::PartPlaces, InvertArray::Heads, InvertArray::LongLists] {
            self.reserve::<u32>(array, parts + 1)?;
        }
        self.reserve::<u64>(InvertArray::ListBounds, ranks)?;
        self.reserve::<u64>(InvertArray::Bounds, parts)
    }
}

/// Postings that are gathered together, and encoded together, at most, unless one list has more;
/// and an upper bound of the longest list.
#[derive(Clone, Copy)]
struct EncodeSizes {
    gathered: u64,
    encoded: u64,
    longest: u64,
}

impl EncodeSizes {
    /// A list is gathered as a whole.
    fn halved(self) -> Self {
        let Self { gathered, encoded, longest } = self;
        match gathered > longest {
            true => {
                let gathered = (gathered / 2).max(longest);
                Self { gathered, encoded: encoded.min(gathered), longest }
            }
            false => Self { encoded: encoded / 2, ..self },
        }
    }
}

struct PlannedRanks {
    ranks: Range<usize>,
    postings: u64,
    parts: u64,
    /// Ranks of long lists, counted from the first.
    longs: Vec<u32>,
}

impl PlannedRanks {
    fn from(first: usize) -> Self {
        Self { ranks: first..first, postings: 0, parts: 0, longs: Vec::new() }
    }

    /// Adds lists while they have at most `most` postings, or are one; `dfs` begin at its first
    /// rank. False if there is no more room.
    fn add(&mut self, dfs: &[u32], most: u64) -> bool {
        let first = self.ranks.len();
        for (n, df) in (first..).zip(dfs[first..].iter().map(|&df| u64::from(df))) {
            if n > 0 && self.postings + df > most {
                return false;
            }
            let parts = df.div_ceil(BLOCK as u64);
            self.ranks.end += 1;
            self.postings += df;
            self.parts += parts;
            if parts >= u64::from(BOUND_FROM) {
                self.longs.push(n as u32);
            }
        }
        true
    }
}

/// Lengths of lists by rank, as far as read.
struct KnownLengths {
    /// The first rank that is not encoded.
    first: usize,
    dfs: Vec<u32>,
}

impl KnownLengths {
    fn take(&mut self, end: usize) -> Vec<u32> {
        let rest = self.dfs.split_off(end - self.first);
        self.first = end;
        std::mem::replace(&mut self.dfs, rest)
    }
}
