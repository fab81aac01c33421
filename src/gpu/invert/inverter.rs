//! How does a batch of texts become lists? [`count`](Inverter::count) says what each of its pieces counts, by which whoever
//! asks finds out where the run ends; [`lists`](Inverter::lists) gives the lists of the batch if all of it belongs to the run, or
//! keeps them on the device until [`encode`](Inverter::encode).
//! Nothing here depends on the order in which a device's threads run.
//!
//! A device keeps the forms that it has met, and a table of their fingerprints, until the run ends or they take too much, and numbers the
//! terms of the run, most of which it makes itself. Every token is compared with its form byte by byte: two forms with one fingerprint, a
//! form that is very long and a table that is full cost time and change nothing.

mod encode;
mod find;
mod learner;
mod terms;
mod typed;
mod work;

pub use find::Back;
pub use learner::Tell;
pub use terms::plain;
pub use work::{InverterSeconds, InverterWork};

use self::encode::Keeping;
use self::find::{Finding, Found, Layout, Tokens, which};
use self::learner::{Learned, Learner};
use self::terms::{Numbering, OF_TERMS};
use self::typed::{Typed, part};
use super::Tuning;
use super::machine::{DeviceMemory, Machine};
use super::steps::{self, Array, Columns};
use super::text::PieceText;
use crate::dictionary::forms::{Forms, Terms};
use crate::dictionary::inverted::Lists;
use crate::gpu::error::GpuError;
use crate::order::{PieceCounts, Sketch};
use crate::pages;
use crate::text::analysis::Analysis;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Batches whose forms are found, or are being found, and that are not counted, at most: each has two numbers for each token on the device, and 16 bytes for each new form.
pub const MOST_FOUND: usize = 3;

/// What one piece of a batch counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// For the sequencer.
    pub counts: PieceCounts,
    /// Indexed tokens of each document.
    pub lengths: Vec<u32>,
    /// The hash of each document's text.
    pub contents: Vec<u64>,
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

/// Who is told what an inverter does beside its caller.
pub struct Hooks {
    /// Is called, by other threads, whenever forms were found or terms made.
    pub tell: Tell,
    /// Takes texts that nobody needs any more.
    pub back: Back,
}

impl Default for Hooks {
    /// Nobody.
    fn default() -> Self {
        Self { tell: Arc::new(|| ()), back: Arc::new(drop) }
    }
}

/// Turns texts into the lists of runs, on one device.
pub struct Inverter<M> {
    machine: M,
    tuning: Tuning,
    /// Stands before the learner, which ends when this is dropped.
    finding: Finding,
    learner: Learner,
    /// Batches whose forms are found, which are counted next, in their order.
    found: VecDeque<Found>,
    /// What the forms of these mean, as far as that is known.
    learned: VecDeque<Learned>,
    /// Arrays of tokens of batches that were counted.
    spare: Vec<Tokens>,
    /// Why forms could not be found.
    failed: Option<GpuError>,
    terms: Numbering,
    /// Terms whose last docid the device has.
    lasts: u32,
    keeping: Keeping,
    open: Option<Open>,
    work: InverterWork,
}

pub(super) fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

impl<M: Machine> Typed for Inverter<M> {
    fn on(&mut self) -> &mut dyn Machine {
        &mut self.machine
    }
}

impl<M: Machine> Inverter<M> {
    /// An inverter on a machine that has done nothing, and on another one of the same device; `threads` make terms of forms.
    ///
    /// # Errors
    /// Of the device; the system gives no threads.
    pub fn new(
        machine: M,
        analysis: Analysis,
        threads: usize,
        hooks: Hooks,
    ) -> Result<Self, GpuError> {
        let refused =
            |source: io::Error| GpuError::Thread { device: "the indexer gpu".into(), source };
        let Hooks { tell, back } = hooks;
        let (learner, asker) =
            Learner::start(analysis.clone(), threads, tell.clone()).map_err(refused)?;
        let finding = Finding::start(machine.sibling()?, &analysis, asker, (back, tell));
        Ok(Self {
            machine,
            tuning: Tuning::default(),
            finding: finding.map_err(refused)?,
            learner,
            found: VecDeque::new(),
            learned: VecDeque::new(),
            spare: Vec::new(),
            failed: None,
            terms: Numbering::default(),
            lasts: 0,
            keeping: Keeping::default(),
            open: None,
            work: InverterWork::default(),
        })
    }

    /// The same, and forms are found otherwise; nothing was counted yet.
    #[must_use]
    pub fn tuned(mut self, tuning: Tuning) -> Self {
        self.finding.tune(tuning);
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
        let mut work = self.work;
        self.finding.add_to(&mut work);
        work
    }

    /// Where the time goes that its caller measures.
    pub fn seconds(&mut self) -> &mut InverterSeconds {
        &mut self.work.seconds
    }

    /// The machine.
    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Has the forms of pieces found that are [counted](Self::count) later, behind all that are found already, and the host makes terms of them
    /// meanwhile. If their texts were brought they are used, and those of earlier ones go [back](Hooks::back).
    ///
    /// # Panics
    /// If there is no [room](Self::has_room); the thread that finds forms does if there are too many pieces, or too much text.
    pub fn find(&mut self, pieces: Arc<Vec<PieceText>>, text: Option<DeviceMemory>) {
        assert!(self.has_room(), "a batch is counted before");
        let to = self.spare.pop();
        self.finding.ask(pieces, text, to);
    }

    /// Gives back texts that were brought for pieces whose forms are not found ahead, or room for texts that could not be brought.
    pub fn give_back(&self, text: Option<DeviceMemory>) {
        self.finding.give_back(text);
    }

    /// Whether one more batch can be found before the next is counted.
    pub fn has_room(&self) -> bool {
        self.found() < MOST_FOUND
    }

    /// Batches that are found, or are being found, and are not counted.
    pub fn found(&self) -> usize {
        self.found.len() + self.finding.under_way()
    }

    /// Whether counting the next batch would not wait for its forms or the host's terms.
    pub fn is_ready(&mut self) -> bool {
        while let Some(outcome) = self.finding.outcome() {
            self.take_outcome(outcome);
        }
        while let Some(learned) = self.learner.answer() {
            self.take_learned(learned);
        }
        match self.found.front() {
            Some(found) => found.tokens == 0 || !self.learned.is_empty(),
            None => self.finding.under_way() == 0,
        }
    }

    fn take_outcome(&mut self, outcome: Result<Found, GpuError>) {
        match outcome {
            Ok(found) => self.found.push_back(found),
            // Whoever counts makes room.
            Err(error) if error.is_out_of_memory() => {}
            Err(error) => _ = self.failed.get_or_insert(error),
        }
    }

    fn take_learned(&mut self, learned: Learned) {
        self.work.seconds.learn += learned.seconds;
        self.learned.push_back(learned);
    }

    /// Waits until nothing is being found.
    fn settle(&mut self) {
        for outcome in self.finding.outcomes() {
            self.take_outcome(outcome);
        }
    }

    /// Takes the batch that was found first, and tells the device what its forms mean.
    fn take_found(&mut self) -> Result<Found, GpuError> {
        let mut found = self.found.pop_front().expect("a batch was found");
        if found.tokens == 0 {
            return Ok(found);
        }
        let began = Instant::now();
        if self.learned.is_empty() {
            let learned = self.learner.wait();
            self.take_learned(learned);
        }
        self.work.seconds.terms += spent(began);
        let learned = self.learned.pop_front().expect("it was waited for");
        if let Some([tokens, forms, coded]) = found.arrays.take() {
            let tokens = self.machine.adopt(Array::CountedTokens, tokens)?;
            let forms = self.machine.adopt(Array::CountedForms, forms)?;
            let coded = self.machine.adopt(Array::CountedCoded, coded)?;
            let all = tokens.zip(forms).zip(coded);
            let all = all.map(|((tokens, forms), coded)| [tokens, forms, coded]);
            self.spare.extend(all.filter(|_| self.spare.len() < MOST_FOUND));
        }
        self.tell(&found, &learned)?;
        Ok(found)
    }

    /// Lets go of all that was found and not counted; the forms stay.
    fn let_go(&mut self) -> Result<(), GpuError> {
        self.settle();
        while !self.found.is_empty() {
            self.take_found()?;
        }
        Ok(())
    }

    /// The same where the forms go too, so that nobody has to say what they mean.
    fn discard(&mut self) {
        self.settle();
        let asked = self.found.iter().filter(|found| found.tokens > 0).count();
        for _ in self.learned.len()..asked {
            self.learner.wait();
        }
        self.found.clear();
        self.learned.clear();
    }

    /// Frees what is not of the run; the device knows no forms then.
    fn free_but_run(&mut self) {
        self.discard();
        self.spare.clear();
        let of_run = [&OF_TERMS[..], &[Array::Lasts, Array::Counts, Array::Codes]].concat();
        self.machine.places().free_but(&of_run);
        self.finding.free();
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
        if self.found.is_empty() {
            self.settle();
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.found.front().is_none_or(|found| found.of != which(pieces)) {
            self.let_go()?;
            let to = self.spare.pop();
            let found = self.finding.now(pieces, to)?;
            self.found.push_back(found);
        }
        let Found { layout, contents, tokens, .. } = self.take_found()?;
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
        self.reserve::<u32>(Array::Counters, steps::COUNTERS as u64)?;
        let mut clear = vec![steps::clear(Array::Lengths, 0, words)];
        if piece_count > 0 {
            clear.push(steps::clear(Array::Sketches, 0, sketch_words));
            clear.push(steps::clear(Array::PieceBytes, 0, 2 * u64::from(piece_count)));
            clear.push(steps::clear(Array::PiecePostings, 0, 2 * u64::from(piece_count)));
        }
        self.machine.run(&clear)?;
        self.work.seconds.tell += spent(began);
        let terms = self.terms.codes.len() as u32;
        let mut open = Open { first, documents, postings: 0, terms, list_bytes: 0 };
        if tokens > 0 {
            let began = Instant::now();
            let (pairs, terms) = self.write_terms(tokens, documents, piece_count)?;
            open.terms = terms;
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
        let counted = self.counted((&layout, &contents), piece_count)?;
        self.take_codes(open.terms)?;
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
        let began = Instant::now();
        self.open = None;
        self.lasts = 0;
        self.discard();
        self.keep_again();
        self.finding.forget_forms()?;
        let Numbering { codes, .. } = std::mem::take(&mut self.terms);
        let terms = self.learner.with(|forms: &mut Forms| forms.take(codes));
        self.work.seconds.close += spent(began);
        Ok(terms)
    }

    /// Writes terms and documents of all tokens; their number, and that of the terms of the run.
    fn write_terms(
        &mut self,
        tokens: u32,
        documents: u32,
        pieces: u32,
    ) -> Result<(u32, u32), GpuError> {
        self.reserve_tiles(steps::tiles(tokens))?;
        self.machine.run(&steps::count_terms(tokens))?;
        let (pairs, terms) = self.sum_and_terms()?;
        for array in [Array::Keys, Array::Values, Array::SortedKeys, Array::SortedValues] {
            self.reserve::<u32>(array, pairs.into())?;
        }
        self.reserve::<u32>(Array::TokenPlaces, u64::from(tokens) + 1)?;
        self.machine.run(&steps::write_terms(tokens, documents, pieces))?;
        Ok((pairs, terms))
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

    /// What the pieces count, with the hashes of all documents.
    fn counted(
        &mut self,
        (layout, contents): (&Layout, &[u64]),
        pieces: u32,
    ) -> Result<Vec<Counted>, GpuError> {
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
        let counted = pieces.map(|((documents, sketch), (&list_bytes, &postings))| {
            let range = documents[0] as usize..documents[1] as usize;
            Counted {
                counts: PieceCounts {
                    documents: range.len() as u32,
                    postings,
                    list_bytes,
                    forms: Sketch::of_registers(sketch.map(|rank| rank as u8)),
                },
                lengths: lengths[range.clone()].to_vec(),
                contents: contents[range].to_vec(),
            }
        });
        Ok(counted.collect())
    }
}
