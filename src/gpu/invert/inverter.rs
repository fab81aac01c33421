//! How does a batch of texts become lists? [`count`](Inverter::count) says what each of its pieces counts, by which whoever
//! asks finds out where the run ends; [`lists`](Inverter::lists) gives the lists of the batch if all of it belongs to the run, or
//! keeps them on the device until [`encode`](Inverter::encode).
//! Nothing here depends on the order in which a device's threads run.
//!
//! A device keeps the forms that it has met, and a table of their fingerprints, until the run ends or they take too much; the
//! host knows the terms of the run. Every token is compared with its form byte by byte: two forms with one fingerprint, a
//! form that is very long and a table that is full cost time and change nothing.

mod encode;
mod work;

pub use work::{InverterSeconds, InverterWork};

use self::encode::Keeping;
use super::Tuning;
use super::machine::{DeviceText, Machine};
use super::steps::{self, Array, COUNTERS, Columns, NEW_FORMS, ODD_TOKENS, SUM};
use super::text::{MOST_BYTES, MOST_PIECES, PieceText, TILE_BYTES, form_at, parts};
use crate::dictionary::forms::{Forms, Terms};
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::order::{PieceCounts, Sketch};
use crate::pages;
use crate::text::analysis::Analysis;
use bytemuck::{Pod, Zeroable};
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

/// The texts of a batch as one.
struct Layout {
    bytes: usize,
    /// Bytes up to the end of the last tile.
    padded: usize,
    /// Where each piece begins.
    piece_bytes: Vec<usize>,
    document_starts: Vec<u32>,
    piece_starts: Vec<u32>,
}

impl Layout {
    fn of(pieces: &[PieceText]) -> Self {
        let (mut bytes, mut documents) = (0, 0);
        let (mut piece_bytes, mut document_starts, mut piece_starts) = Default::default();
        for piece in pieces {
            Vec::push(&mut piece_bytes, bytes);
            Vec::push(&mut piece_starts, documents);
            Vec::extend(&mut document_starts, piece.starts.iter().map(|s| bytes as u32 + s));
            bytes += piece.bytes.len();
            documents += piece.documents();
        }
        document_starts.push(bytes as u32);
        piece_starts.push(documents);
        let padded = bytes.next_multiple_of(TILE_BYTES);
        Self { bytes, padded, piece_bytes, document_starts, piece_starts }
    }

    fn documents(&self) -> u32 {
        self.document_starts.len() as u32 - 1
    }

    /// The form that begins at a place of the batch.
    fn form<'a>(&self, pieces: &'a [PieceText], start: u32) -> &'a [u8] {
        let piece = self.piece_bytes.partition_point(|&first| first <= start as usize) - 1;
        form_at(&pieces[piece].bytes, start as usize - self.piece_bytes[piece])
    }
}

/// Turns texts into the lists of runs, on one device.
pub struct Inverter<M> {
    machine: M,
    tuning: Tuning,
    forms: Forms,
    /// The forms that the device knows, their bytes, and the slots of its table.
    known: u32,
    arena_bytes: u64,
    slots: u32,
    /// Their expansions, of which the device has so many words.
    expansions: Vec<u32>,
    expansions_there: usize,
    /// Terms whose last docid the device has.
    lasts: u32,
    keeping: Keeping,
    /// The pieces whose texts the device has already: where they lie in the host's memory, and how many.
    brought: Option<(usize, usize)>,
    open: Option<Open>,
    work: InverterWork,
}

fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

/// The smallest table.
const LEAST_SLOTS: u32 = 1 << 12;
/// The largest one.
const MOST_SLOTS: u32 = 1 << 30;
/// When forms take more bytes than this before a batch they are forgotten: places of bytes are numbers of 32 bits. The terms
/// of a run take less, but there are forms without terms.
const MOST_ARENA_BYTES: u64 = (4 << 30) - MOST_BYTES as u64;
/// The same for numbers of forms, and words of expansions.
const MOST_FORMS: u32 = 1 << 30;
const MOST_EXPANSIONS: usize = 1 << 30;

impl<M: Machine> Inverter<M> {
    /// An inverter on a machine that has done nothing; `threads` make terms of forms.
    pub fn new(machine: M, analysis: Analysis, threads: usize) -> Self {
        Self {
            machine,
            tuning: Tuning::default(),
            forms: Forms::new(analysis, threads),
            known: 0,
            arena_bytes: 0,
            slots: 0,
            expansions: Vec::new(),
            expansions_there: 0,
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
        text: DeviceText,
    ) -> Result<Option<DeviceText>, GpuError> {
        self.brought = Some((pieces.as_ptr().addr(), pieces.len()));
        self.machine.adopt(Array::Text, text)
    }

    /// Counts the next pieces, at most [`MOST_PIECES`] with [`MOST_BYTES`] of text; the first document has docid `first`, counted
    /// from the run's first.
    ///
    /// # Errors
    /// Of the device. If that is out of memory, fewer pieces may do.
    ///
    /// # Panics
    /// There are too many pieces, or too much text.
    pub fn count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        let layout = Layout::of(pieces);
        assert!(pieces.len() <= MOST_PIECES && layout.padded <= MOST_BYTES, "a batch is bounded");
        self.open = None;
        let counted = self.try_count(pieces, &layout, first);
        if counted.is_err() {
            // The table may have forms that are not kept, and arrays be longer than smaller batches need.
            self.free_but_run();
        }
        counted
    }

    fn try_count(
        &mut self,
        pieces: &[PieceText],
        layout: &Layout,
        first: u32,
    ) -> Result<Vec<Counted>, GpuError> {
        self.work.batches += 1;
        self.work.bytes += layout.bytes as u64;
        if self.arena_bytes > MOST_ARENA_BYTES
            || self.known > MOST_FORMS
            || self.expansions.len() > MOST_EXPANSIONS
        {
            self.work.forgotten += 1;
            self.forget_forms()?;
        }
        let documents = layout.documents();
        let words = u64::from(documents.max(1));
        self.put(Array::PieceStarts, 0, &layout.piece_starts)?;
        self.put(Array::DocumentStarts, 0, &layout.document_starts)?;
        self.reserve::<u32>(Array::Lengths, words)?;
        let piece_count = pieces.len() as u32;
        let sketch_words = steps::sketch_words(piece_count);
        self.reserve::<u32>(Array::Sketches, sketch_words)?;
        self.reserve::<u64>(Array::PieceBytes, u64::from(piece_count))?;
        self.reserve::<u64>(Array::PiecePostings, u64::from(piece_count))?;
        let began = Instant::now();
        let tokens = self.find_tokens(pieces, layout)?;
        self.work.seconds.find += spent(began);
        let mut clear = vec![steps::clear(Array::Lengths, 0, words)];
        if piece_count > 0 {
            clear.push(steps::clear(Array::Sketches, 0, sketch_words));
            clear.push(steps::clear(Array::PieceBytes, 0, 2 * u64::from(piece_count)));
            clear.push(steps::clear(Array::PiecePostings, 0, 2 * u64::from(piece_count)));
        }
        self.machine.run(&clear)?;
        let terms = self.forms.numbers();
        let mut open = Open { first, documents, postings: 0, terms, list_bytes: 0 };
        if tokens > 0 {
            self.find_forms(pieces, layout, tokens)?;
            open.terms = self.forms.numbers();
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
        if self.keeps() {
            self.reserve_kept(open.postings, documents, first)?;
        }
        let began = Instant::now();
        let counted = self.counted(layout, piece_count)?;
        self.work.seconds.counted += spent(began);
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
        self.forget_kept();
        self.forget_forms()?;
        Ok(self.forms.take())
    }

    /// Finds where tokens begin; their number.
    fn find_tokens(&mut self, pieces: &[PieceText], layout: &Layout) -> Result<u32, GpuError> {
        if layout.bytes == 0 {
            return Ok(0);
        }
        let began = Instant::now();
        if self.brought != Some((pieces.as_ptr().addr(), pieces.len())) {
            self.brought = None;
            self.reserve::<u8>(Array::Text, layout.padded as u64)?;
            self.machine.write(Array::Text, 0, &parts(pieces))?;
        }
        let took = spent(began);
        self.work.seconds.upload += took;
        // Its caller counts all.
        self.work.seconds.find -= took;
        let tiles = steps::text_tiles(layout.padded);
        self.reserve_tiles(tiles)?;
        self.put(Array::Counters, 0, &[0u32; COUNTERS])?;
        self.machine.run(&steps::count_tokens(tiles))?;
        let tokens = self.sum()?;
        self.work.tokens += u64::from(tokens);
        self.reserve::<u32>(Array::Tokens, u64::from(tokens))?;
        self.machine.run(&[steps::write_tokens(tiles)])?;
        Ok(tokens)
    }

    /// Finds the form of each token; what new forms mean is told to the device.
    fn find_forms(
        &mut self,
        pieces: &[PieceText],
        layout: &Layout,
        tokens: u32,
    ) -> Result<(), GpuError> {
        use Array::{NewLengths, NewPlaces, NewStarts, Odd, TokenForms};
        for array in [TokenForms, NewStarts, NewLengths, NewPlaces, Odd] {
            self.reserve::<u32>(array, u64::from(tokens))?;
        }
        let began = Instant::now();
        self.grow_table(tokens)?;
        let known = self.known;
        self.machine.run(&[steps::find_forms(tokens, self.slots, known, self.tuning)])?;
        let new = self.counter(NEW_FORMS)?;
        let mut new_bytes = 0;
        if new > 0 {
            self.reserve::<u32>(Array::Sums, steps::sum_words(new).into())?;
            self.machine.run(&steps::scan(NewPlaces, new))?;
            new_bytes = self.sum()?;
        }
        let (used, places) = (self.arena_bytes, u64::from(known) + 1);
        self.machine.reserve(Array::Arena, (used + u64::from(new_bytes)).max(16), used)?;
        let all = places + u64::from(new);
        self.machine.reserve(Array::FormPlaces, 4 * all, if known > 0 { 4 * places } else { 0 })?;
        self.machine.reserve(Array::Meanings, 8 * all, 8 * u64::from(known))?;
        if new > 0 {
            self.machine.run(&[steps::keep_forms(new, known, used as u32)])?;
        }
        self.machine.run(&[steps::check_forms(tokens)])?;
        let mut meanings = Vec::with_capacity(new as usize);
        self.work.seconds.find += spent(began);
        let began = Instant::now();
        if new > 0 {
            let bytes: Vec<u8> = self.get(Array::Arena, used, new_bytes as usize)?;
            let places: Vec<u32> = self.get(Array::FormPlaces, known.into(), new as usize + 1)?;
            let form = |i: usize| {
                let [start, end] = [places[i], places[i + 1]].map(|at| at as usize - used as usize);
                &bytes[start..end]
            };
            self.forms.learn(new as usize, form, (&mut meanings, &mut self.expansions));
        }
        self.put(Array::Meanings, known.into(), &meanings)?;
        self.know_odd(pieces, layout)?;
        self.work.seconds.learn += spent(began);
        self.known += new;
        self.arena_bytes += u64::from(new_bytes);
        self.work.forms += u64::from(new);
        Ok(())
    }

    /// Tells the device what odd tokens mean, and what it does not have of the expansions.
    fn know_odd(&mut self, pieces: &[PieceText], layout: &Layout) -> Result<(), GpuError> {
        let odd = self.counter(ODD_TOKENS)?;
        let kept = self.expansions.len();
        let mut meanings = Vec::with_capacity(odd as usize);
        if odd > 0 {
            let starts: Vec<u32> = self.get(Array::Odd, 0, odd as usize)?;
            let form = |i: usize| layout.form(pieces, starts[i]);
            self.forms.learn(odd as usize, form, (&mut meanings, &mut self.expansions));
        }
        self.work.odd += u64::from(odd);
        self.put(Array::OddMeanings, 0, &meanings)?;
        let (there, all) = (self.expansions_there, self.expansions.len());
        self.machine.reserve(Array::Expansions, (4 * all as u64).max(16), 4 * there as u64)?;
        let more = bytemuck::cast_slice(&self.expansions[there..]);
        self.machine.write(Array::Expansions, 4 * there as u64, &[more])?;
        // Those of odd tokens are of no use any more.
        self.expansions.truncate(kept);
        self.expansions_there = kept;
        Ok(())
    }

    /// Makes room for the forms of so many tokens, if none of them is known.
    fn grow_table(&mut self, tokens: u32) -> Result<(), GpuError> {
        let wanted = 2 * u64::from(self.known) + u64::from(tokens);
        let slots = wanted.next_power_of_two().clamp(LEAST_SLOTS.into(), MOST_SLOTS.into()) as u32;
        if slots <= self.slots {
            return Ok(());
        }
        self.reserve::<u64>(Array::NextSlots, slots.into())?;
        self.reserve::<u32>(Array::NextSlotForms, slots.into())?;
        self.machine.run(&[steps::clear(Array::NextSlots, 0, 2 * u64::from(slots))])?;
        if self.known > 0 {
            self.machine.run(&[steps::rehash(self.slots, slots, self.tuning)])?;
        }
        self.machine.places().swap(Array::Slots, Array::NextSlots);
        self.machine.places().swap(Array::SlotForms, Array::NextSlotForms);
        self.slots = slots;
        Ok(())
    }

    /// Empties the table of forms. The host knows their terms still.
    fn forget_forms(&mut self) -> Result<(), GpuError> {
        (self.known, self.arena_bytes, self.expansions_there) = (0, 0, 0);
        self.expansions.clear();
        if self.slots > 0 {
            self.machine.run(&[steps::clear(Array::Slots, 0, 2 * u64::from(self.slots))])?;
        }
        Ok(())
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
        let lengths: Vec<u32> = self.get(Array::Lengths, 0, layout.documents() as usize)?;
        let bytes: Vec<u64> = self.get(Array::PieceBytes, 0, pieces as usize)?;
        let postings: Vec<u64> = self.get(Array::PiecePostings, 0, pieces as usize)?;
        let words = steps::sketch_words(pieces) as usize;
        let sketches: Vec<u32> = self.get(Array::Sketches, 0, words)?;
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
        let from = at * size_of::<T>() as u64;
        self.machine.read(array, from, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    fn counter(&mut self, counter: usize) -> Result<u32, GpuError> {
        Ok(self.get::<u32>(Array::Counters, counter as u64, 1)?[0])
    }

    /// The last sum of tiles.
    fn sum(&mut self) -> Result<u32, GpuError> {
        self.counter(SUM)
    }
}
