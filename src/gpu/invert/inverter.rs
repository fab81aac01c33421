//! How does a batch of texts become lists? [`count`](Inverter::count) says what each of its pieces counts, by which whoever
//! asks finds out where the run ends; [`lists`](Inverter::lists) gives the lists of the batch if all of it belongs to the run, or
//! keeps them on the device until [`encode`](Inverter::encode).
//! Nothing here depends on the order in which a device's threads run.
//!
//! A device keeps the forms that it has met, and a table of their fingerprints, until the run ends or they take too much; the
//! host knows the terms of the run. Every token is compared with its form byte by byte: two forms with one fingerprint, a
//! form that is very long and a table that is full cost time and change nothing.

mod encode;
mod find;
mod learner;
mod work;

pub use find::MOST_FOUND;
pub use learner::Tell;
pub use work::{InverterSeconds, InverterWork};

use self::encode::Keeping;
use self::find::{Found, Layout, Which, which};
use self::learner::Learner;
use super::Tuning;
use super::machine::{DeviceMemory, Machine, Reading};
use super::steps::{self, Array, COUNTERS, Columns, SUM};
use super::text::PieceText;
use crate::dictionary::forms::{Forms, Terms};
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::order::{PieceCounts, Sketch};
use crate::pages;
use crate::text::analysis::Analysis;
use bytemuck::{Pod, Zeroable};
use std::collections::VecDeque;
use std::time::Instant;

/// What one piece of a batch counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// For the sequencer.
    pub counts: PieceCounts,
    /// Indexed tokens of each document.
    pub lengths: Vec<u32>,
}

/// The batch that was counted last.
#[derive(Clone, Copy, Debug)]
struct Open {
    first: u32,
    documents: u32,
    postings: u32,
    terms: u32,
    list_bytes: u32,
}

/// Turns texts into the lists of runs, on one device.
pub struct Inverter<M> {
    machine: M,
    tuning: Tuning,
    learner: Learner,
    /// The forms that the device knows, their bytes, and the slots of its table.
    known: u32,
    arena_bytes: u64,
    slots: u32,
    /// Words of the expansions that the device has of them.
    expansions: usize,
    /// Batches whose forms are found, which are counted next.
    found: VecDeque<Found>,
    /// Terms whose last docid the device has.
    lasts: u32,
    keeping: Keeping,
    /// The pieces whose texts were brought, until their forms are found.
    brought: Option<Which>,
    open: Option<Open>,
    work: InverterWork,
}

/// Values of an array from the one with number `at` on.
fn part<T: Pod>(array: Array, at: u64, to: &mut [T]) -> Reading<'_> {
    Reading { array, at: at * size_of::<T>() as u64, to: bytemuck::cast_slice_mut(to) }
}

pub(super) fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

impl<M: Machine> Inverter<M> {
    /// An inverter on a machine that has done nothing; `threads` make terms of forms.
    pub fn new(machine: M, analysis: Analysis, threads: usize) -> Self {
        Self {
            machine,
            tuning: Tuning::default(),
            learner: Learner::new(Forms::new(analysis, threads)),
            known: 0,
            arena_bytes: 0,
            slots: 0,
            expansions: 0,
            found: VecDeque::new(),
            lasts: 0,
            keeping: Keeping::default(),
            brought: None,
            open: None,
            work: InverterWork::default(),
        }
    }

    /// The same, and forms are found otherwise; nothing was counted yet.
    #[must_use]
    pub fn tuned(self, tuning: Tuning) -> Self {
        Self { tuning, ..self }
    }

    /// The same, and the lists of runs are encoded on the device where it has room for them; nothing was counted yet.
    #[must_use]
    pub fn encoding(mut self) -> Self {
        self.keeping.wanted = true;
        self
    }

    /// The same, and `tell` is called whenever the host has made the terms of a batch that was [found](Self::find), by another thread.
    #[must_use]
    pub fn telling(mut self, tell: Tell) -> Self {
        self.learner.tell_by(tell);
        self
    }

    /// What it has done so far.
    pub fn work(&self) -> InverterWork {
        self.work
    }

    /// Where the time goes that its caller measures.
    pub fn seconds(&mut self) -> &mut InverterSeconds {
        &mut self.work.seconds
    }

    /// The machine.
    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Takes the texts of pieces that were [brought](Machine::uploader) for them and are counted next; gives back those of earlier ones.
    ///
    /// # Errors
    /// Of the device.
    pub fn adopt(
        &mut self,
        pieces: &[PieceText],
        text: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        self.brought = Some(which(pieces));
        let unpinned = pieces.iter().filter(|piece| !piece.bytes.is_pinned());
        self.work.unpinned += unpinned.map(|piece| piece.bytes.len() as u64).sum::<u64>();
        self.machine.adopt(Array::Text, text)
    }

    /// Counts the next pieces, at most [`MOST_PIECES`](super::text::MOST_PIECES) with [`MOST_BYTES`](super::text::MOST_BYTES) of text; the
    /// first document has docid `first`, counted from the run's first. If other pieces were [found](Self::find) first, all that
    /// was found is let go.
    ///
    /// # Errors
    /// Of the device. If that is out of memory, fewer pieces may do. What was found is let go.
    ///
    /// # Panics
    /// There are too many pieces, or too much text.
    pub fn count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        self.open = None;
        let counted = self.try_count(pieces, first);
        if counted.is_err() {
            self.free_but_run();
        }
        counted
    }

    fn try_count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        if self.found.front().is_none_or(|found| found.of != which(pieces)) {
            self.let_go()?;
            self.try_find(pieces)?;
        }
        let (Found { layout, tokens, .. }, terms) = self.take_found()?;
        let (documents, piece_count) = (layout.documents(), pieces.len() as u32);
        let began = Instant::now();
        let words = u64::from(documents.max(1));
        self.put(Array::PieceStarts, 0, &layout.piece_starts)?;
        self.put(Array::DocumentStarts, 0, &layout.document_starts)?;
        self.reserve::<u32>(Array::Lengths, words)?;
        let sketch_words = steps::sketch_words(piece_count);
        self.reserve::<u32>(Array::Sketches, sketch_words)?;
        self.reserve::<u64>(Array::PieceBytes, u64::from(piece_count))?;
        self.reserve::<u64>(Array::PiecePostings, u64::from(piece_count))?;
        let mut clear = vec![steps::clear(Array::Lengths, 0, words)];
        if piece_count > 0 {
            clear.push(steps::clear(Array::Sketches, 0, sketch_words));
            clear.push(steps::clear(Array::PieceBytes, 0, 2 * u64::from(piece_count)));
            clear.push(steps::clear(Array::PiecePostings, 0, 2 * u64::from(piece_count)));
        }
        self.machine.run(&clear)?;
        self.work.seconds.tell += spent(began);
        let mut open = Open { first, documents, postings: 0, terms, list_bytes: 0 };
        if tokens > 0 {
            let began = Instant::now();
            let pairs = self.write_terms(tokens, documents, piece_count)?;
            if pairs > 0 {
                self.sort(pairs, open.terms)?;
                open.postings = self.write_postings(pairs)?;
                self.grow_lasts(open.terms)?;
                let columns = Columns::counted(open.postings, first);
                self.machine.run(&steps::measure(columns, piece_count))?;
                // If there is no room for the lists, that is to be known now.
                if !self.keeps() {
                    open.list_bytes = self.sum()?;
                    self.reserve_lists(open.postings, open.list_bytes, open.terms)?;
                }
            }
            self.work.seconds.count += spent(began);
        }
        let began = Instant::now();
        if self.keeps() {
            self.reserve_kept(open.postings, documents, first)?;
        }
        self.work.seconds.room += spent(began);
        let began = Instant::now();
        let counted = self.counted(&layout, piece_count)?;
        self.work.seconds.counted += spent(began);
        if !self.found.is_empty() {
            self.turn();
        }
        self.open = Some(open);
        Ok(counted)
    }

    /// The lists of the batch that was counted last, or nothing if the device [keeps](Self::keeps) them; it belongs to the run as a whole.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    ///
    /// # Panics
    /// No batch was counted, or its lists were given.
    pub fn lists(&mut self) -> Result<Option<Lists>, GpuError> {
        let Open { first, documents, postings, terms, list_bytes } =
            self.open.take().expect("a batch was counted");
        self.work.postings += u64::from(postings);
        let columns = Columns::counted(postings, first);
        if self.keeps() {
            self.keep(columns, postings, documents, first)?;
            return Ok(None);
        }
        if postings == 0 {
            return Ok(Some(Lists::default()));
        }
        self.take_lists(columns, terms, list_bytes).map(Some)
    }

    fn reserve_lists(&mut self, postings: u32, bytes: u32, terms: u32) -> Result<(), GpuError> {
        self.reserve::<u32>(Array::ListPlaces, u64::from(postings) + 1)?;
        self.reserve::<u8>(Array::Lists, bytes.into())?;
        self.reserve::<u32>(Array::ListStarts, u64::from(terms) + 1)
    }

    fn take_lists(&mut self, columns: Columns, terms: u32, bytes: u32) -> Result<Lists, GpuError> {
        self.machine.run(&steps::write_lists(columns, terms))?;
        Ok(Lists {
            starts: self.get(Array::ListStarts, 0, terms as usize + 1)?,
            bytes: self.get(Array::Lists, 0, bytes as usize)?,
        })
    }

    /// Ends the run: its terms. The next batch begins another one.
    ///
    /// # Errors
    /// Of the device.
    pub fn end_run(&mut self) -> Result<Terms, GpuError> {
        self.open = None;
        self.lasts = 0;
        self.let_go()?;
        self.forget_kept();
        self.forget_forms()?;
        Ok(self.learner.with(Forms::take))
    }

    /// Writes terms and documents of all tokens; their number.
    fn write_terms(&mut self, tokens: u32, documents: u32, pieces: u32) -> Result<u32, GpuError> {
        self.reserve_tiles(steps::tiles(tokens))?;
        self.machine.run(&steps::count_terms(tokens))?;
        let pairs = self.sum()?;
        for array in [Array::Keys, Array::Values, Array::SortedKeys, Array::SortedValues] {
            self.reserve::<u32>(array, pairs.into())?;
        }
        self.reserve::<u32>(Array::TokenPlaces, u64::from(tokens) + 1)?;
        self.machine.run(&steps::write_terms(tokens, documents, pieces))?;
        Ok(pairs)
    }

    /// Sorts pairs by terms, whose numbers are below `terms`.
    fn sort(&mut self, pairs: u32, terms: u32) -> Result<(), GpuError> {
        self.reserve_tiles(steps::sort_words(pairs))?;
        let bits = u32::BITS - terms.saturating_sub(1).leading_zeros();
        for shift in (0..bits).step_by(8) {
            self.machine.run(&steps::sort_pass(pairs, shift))?;
            self.machine.places().swap(Array::Keys, Array::SortedKeys);
            self.machine.places().swap(Array::Values, Array::SortedValues);
        }
        Ok(())
    }

    /// Makes postings of sorted pairs; their number.
    fn write_postings(&mut self, pairs: u32) -> Result<u32, GpuError> {
        self.reserve_tiles(steps::tiles(pairs))?;
        self.machine.run(&steps::count_postings(pairs))?;
        let postings = self.sum()?;
        self.reserve::<u32>(Array::Postings, u64::from(postings) + 1)?;
        self.machine.run(&[steps::write_postings(pairs)])?;
        Ok(postings)
    }

    /// Terms that the run has not had before have had no document, and no postings.
    fn grow_lasts(&mut self, terms: u32) -> Result<(), GpuError> {
        if terms > self.lasts {
            let (had, more) = (u64::from(self.lasts), u64::from(terms - self.lasts));
            for array in [Array::Lasts, Array::Counts] {
                self.machine.reserve(array, 4 * u64::from(terms), 4 * had)?;
                self.machine.run(&[steps::clear(array, had, more)])?;
            }
            self.lasts = terms;
        }
        Ok(())
    }

    /// What the pieces count.
    fn counted(&mut self, layout: &Layout, pieces: u32) -> Result<Vec<Counted>, GpuError> {
        let mut lengths: Vec<u32> = pages::zeroed(layout.documents() as usize);
        let mut bytes = vec![0u64; pieces as usize];
        let mut postings = bytes.clone();
        let mut sketches: Vec<u32> = pages::zeroed(steps::sketch_words(pieces) as usize);
        self.machine.read(&mut [
            part(Array::Lengths, 0, &mut lengths),
            part(Array::PieceBytes, 0, &mut bytes),
            part(Array::PiecePostings, 0, &mut postings),
            part(Array::Sketches, 0, &mut sketches),
        ])?;
        let (sketches, _) = sketches.as_chunks::<{ Sketch::REGISTERS }>();
        let starts = layout.piece_starts.windows(2);
        let pieces = starts.zip(sketches).zip(bytes.iter().zip(&postings));
        Ok(pieces
            .map(|((documents, sketch), (&list_bytes, &postings))| Counted {
                counts: PieceCounts {
                    documents: documents[1] - documents[0],
                    postings,
                    list_bytes,
                    forms: Sketch::of_registers(sketch.map(|rank| rank as u8)),
                },
                lengths: lengths[documents[0] as usize..documents[1] as usize].to_vec(),
            })
            .collect())
    }

    /// Makes room for what so many tiles count.
    fn reserve_tiles(&mut self, tiles: u32) -> Result<(), GpuError> {
        self.reserve::<u32>(Array::Tiles, tiles.into())?;
        self.reserve::<u32>(Array::Sums, steps::sum_words(tiles).into())
    }

    /// Makes an array at least so long; what it had is of no use any more.
    fn reserve<T>(&mut self, array: Array, len: u64) -> Result<(), GpuError> {
        self.machine.reserve(array, (len * size_of::<T>() as u64).max(16), 0)
    }

    /// Writes values to an array behind the first `at`, which stay.
    fn put<T: Pod>(&mut self, array: Array, at: u64, values: &[T]) -> Result<(), GpuError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let from = at * size_of::<T>() as u64;
        self.machine.reserve(array, (from + bytes.len() as u64).max(16), from)?;
        self.machine.write(array, from, &[bytes])
    }

    /// Reads values of an array from the one with number `at` on.
    fn get<T: Pod + Zeroable>(
        &mut self,
        array: Array,
        at: u64,
        len: usize,
    ) -> Result<Vec<T>, GpuError> {
        // Lists are large, and their memory is touched for the first time: on huge pages, if the system has them.
        let mut values = pages::zeroed(len);
        self.machine.read(&mut [part(array, at, &mut values)])?;
        Ok(values)
    }

    fn counters(&mut self) -> Result<[u32; COUNTERS], GpuError> {
        let mut counters = [0; COUNTERS];
        self.machine.read(&mut [part(Array::Counters, 0, &mut counters)])?;
        Ok(counters)
    }

    /// The last sum of tiles.
    fn sum(&mut self) -> Result<u32, GpuError> {
        Ok(self.counters()?[SUM])
    }
}
