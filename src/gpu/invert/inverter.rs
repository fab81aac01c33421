//! How does a batch of texts become lists? In three steps, each of which hands on what it has made.
//!
//! 1. A thread of its own has the forms of batches found ([`find`](Inverter::find)), and others
//!    make terms of those of which the device makes none, while batches before are counted.
//! 2. [`count`](Inverter::count) says what each piece of a batch counts, by which whoever asks
//!    finds out where the run ends; [`lists`](Inverter::lists) gives the lists of the batch if all
//!    of it belongs to the run, or keeps them on the device.
//! 3. [`encode`](Inverter::encode) encodes the lists of a run that were kept.
//!
//! Nothing here depends on the order in which a device's threads run.
//!
//! A device keeps the forms that it has met, and a table of their fingerprints, until the run ends
//! or they take too much, and numbers the terms of the run, most of which it makes itself. Every
//! token is compared with its form byte by byte: two forms with one fingerprint, a form that is
//! very long and a table that is full cost time and change nothing.

mod count;
mod encode;
mod find;
mod kept;
mod learner;
mod terms;
mod typed;
mod work;

pub(crate) use find::{Back, ParseLines};
pub(crate) use learner::Tell;
pub(crate) use work::{InverterSeconds, InverterWork};

use self::find::{Finding, Found, Tokens};
use self::kept::Keeping;
use self::learner::{Learned, Learner};
use self::terms::{Numbering, OF_TERMS};
use self::typed::Typed;
use super::Tuning;
use super::machine::{DeviceMemory, Machine};
use super::steps::InvertArray;
use super::text::PieceText;
use crate::dictionary::device::forms::{Forms, Terms};
use crate::gpu::floor::error::GpuError;
use crate::index::documents::pieces::PieceDocuments;
use crate::input::formats::fields::Fields;
use crate::input::parser::parse_lines;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Batches whose forms are found, or are being found, and that are not counted, at most: each has
/// two numbers for each token on the device, and 16 bytes for each new form.
pub(crate) const MOST_FOUND: usize = 3;

/// What one piece of a batch counts.
pub struct Counted {
    pub counts: PieceCounts,
    /// Indexed tokens of each document.
    pub lengths: Vec<u32>,
    pub codes: Arc<[u8]>,
    /// The hash of each document's text.
    pub contents: Vec<u64>,
    /// Its documents, if the piece is lines.
    pub documents: Option<PieceDocuments>,
}

/// Who is told what an inverter does beside its caller.
pub struct InverterHooks {
    /// Is called, by other threads, whenever forms were found or terms made.
    pub tell: Tell,
    /// Takes texts that nobody needs any more.
    pub back: Back,
    /// Makes texts of lines that a device cannot read.
    pub parse: ParseLines,
}

impl Default for InverterHooks {
    /// Nobody, documents of any length, and fields that nobody asked for.
    fn default() -> Self {
        Self {
            tell: Arc::new(|| ()),
            back: Arc::new(drop),
            parse: Arc::new(|text, lines| {
                parse_lines(text, lines, (u64::MAX, &Fields::default()), &Arc::default())
            }),
        }
    }
}

/// The batch that was counted last.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The docid of its first document, counted from the run's first.
    first: u32,
    postings: u32,
    terms: u32,
    list_bytes: u32,
}

/// Turns texts into the lists of runs, on one device.
pub struct Inverter<M: ?Sized> {
    machine: Box<M>,
    tuning: Tuning,
    /// Stands before the learner, which ends when this is dropped.
    finding: Finding,
    learner: Learner,
    back: Back,
    /// The pieces whose forms are found, or being found, which are counted next, in their order.
    coming: VecDeque<Arc<Vec<PieceText>>>,
    /// What came of the first of these.
    found: VecDeque<Result<Found, GpuError>>,
    /// What their forms mean, as far as that is known.
    learned: VecDeque<Learned>,
    /// Arrays of tokens of batches that were counted.
    spare: Vec<Tokens>,
    numbering: Numbering,
    /// Terms whose last docid the device has, and how many postings of theirs stay.
    lasts: u32,
    keeping: Keeping,
    open: Option<Open>,
    work: InverterWork,
}

pub(super) fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

impl<M: Machine + ?Sized> Typed for Inverter<M> {
    type On = M;

    fn on(&mut self) -> &mut M {
        &mut self.machine
    }
}

impl<M: Machine + ?Sized> Inverter<M> {
    /// An inverter on a machine that has done nothing, and on another one of the same device, on
    /// which forms are found; `threads` make terms of forms.
    ///
    /// # Errors
    /// Of the device; the system gives no threads.
    pub fn new(
        machine: Box<M>,
        analysis: &Analysis,
        threads: usize,
        hooks: &InverterHooks,
    ) -> Result<Self, GpuError> {
        let refused =
            |source: io::Error| GpuError::Thread { device: "the indexer gpu".into(), source };
        let (learner, asker) =
            Learner::start(analysis.clone(), threads, hooks.tell.clone()).map_err(refused)?;
        let told = (hooks.back.clone(), hooks.tell.clone());
        let parse = (hooks.parse.clone(), threads);
        let finding = Finding::start(machine.sibling()?, analysis, asker, parse, told);
        Ok(Self {
            machine,
            tuning: Tuning::default(),
            finding: finding.map_err(refused)?,
            learner,
            back: hooks.back.clone(),
            coming: VecDeque::new(),
            found: VecDeque::new(),
            learned: VecDeque::new(),
            spare: Vec::new(),
            numbering: Numbering::default(),
            lasts: 0,
            keeping: Keeping::default(),
            open: None,
            work: InverterWork::default(),
        })
    }

    /// The same, and forms are found otherwise; nothing was counted yet.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn tuned(mut self, tuning: Tuning) -> Self {
        self.finding.tune(tuning);
        self.tuning = tuning;
        self
    }

    /// The same, and the lists of runs are encoded on the device where it has room for them;
    /// nothing was counted yet.
    #[must_use]
    pub fn encoding(mut self) -> Self {
        self.keeping.wanted = true;
        self
    }

    /// What it has done so far.
    pub fn work(&self) -> InverterWork {
        let InverterWork { postings, spilled, seconds, .. } = self.work;
        let found = self.finding.work();
        let InverterSeconds { lines, find, upload, .. } = found.seconds;
        let upload = seconds.upload + upload;
        let seconds = InverterSeconds { lines, find, upload, ..seconds };
        InverterWork { postings, spilled, seconds, ..found }
    }

    /// Where the time goes that its caller measures.
    pub(crate) fn seconds(&mut self) -> &mut InverterSeconds {
        &mut self.work.seconds
    }

    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Has the forms of pieces found, behind all that it was asked for before, and the host make
    /// terms of them meanwhile; [`count`](Self::count) takes them later. If their texts were
    /// brought they are used, and those of earlier ones go [back](InverterHooks::back).
    ///
    /// # Panics
    /// If there is no [room](Self::has_room); whoever counts panics if there are too many pieces,
    /// or too much text.
    pub(crate) fn find(&mut self, pieces: Arc<Vec<PieceText>>, text: Option<DeviceMemory>) {
        assert!(self.has_room(), "a batch is counted before");
        let to = self.spare.pop();
        self.coming.push_back(pieces.clone());
        self.finding.ask(pieces, text, to);
    }

    /// Gives back texts that were brought for pieces that are not asked for, or room for texts that
    /// could not be brought.
    pub(crate) fn give_back(&self, text: Option<DeviceMemory>) {
        (self.back)(text);
    }

    /// Whether it can be asked for one more batch before one is counted.
    pub(crate) fn has_room(&self) -> bool {
        self.coming.len() < MOST_FOUND
    }

    /// Batches that were asked for and are not counted.
    pub(crate) fn found(&self) -> usize {
        self.coming.len()
    }

    /// Whether pieces can be counted without waiting for their forms or the host's terms.
    pub(crate) fn is_ready(&mut self, pieces: &[PieceText]) -> bool {
        self.found.extend(self.finding.outcomes());
        while let Some(learned) = self.learner.answer() {
            self.take_learned(learned);
        }
        match self.found.front() {
            _ if !self.is_next(pieces) => true,
            Some(Ok(found)) => found.tokens == 0 || !self.learned.is_empty(),
            // Counting says why.
            Some(Err(_)) => true,
            None => false,
        }
    }

    /// Whether pieces are those that were asked for first.
    fn is_next(&self, pieces: &[PieceText]) -> bool {
        self.coming.front().is_some_and(|coming| std::ptr::eq(&coming[..], pieces))
    }

    fn take_learned(&mut self, learned: Learned) {
        self.work.seconds.learn += learned.seconds;
        self.learned.push_back(learned);
    }

    /// Counts the next pieces, at most [`MOST_PIECES`](super::text::MOST_PIECES) with
    /// [`MOST_BYTES`](super::text::MOST_BYTES) of text; the first document has docid `first`,
    /// counted from the run's first. What was [asked](Self::find) for is found already, or nearly;
    /// if it is other pieces, all that was asked for is let go.
    ///
    /// # Errors
    /// Of the device. If that is out of memory, fewer pieces may do. What was asked for is let go,
    /// and all is freed that is not of the run.
    ///
    /// # Panics
    /// There are too many pieces, or too much text.
    pub fn count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        let counted = self.take_found(pieces).and_then(|found| self.count_found(found, first));
        if counted.is_err() {
            self.free_but_run();
        }
        counted
    }

    /// What was found of the next pieces. If it is other pieces that were asked for, all is let go.
    fn take_found(&mut self, pieces: &[PieceText]) -> Result<Found, GpuError> {
        self.open = None;
        if self.is_next(pieces) {
            self.coming.pop_front();
            return self.found.pop_front().unwrap_or_else(|| self.finding.wait());
        }
        self.let_go();
        let to = self.spare.pop();
        self.finding.now(pieces, to)
    }

    /// Lets go of all that was found or counted and does not stay. Nobody says any more what the
    /// new forms mean, so that all are forgotten.
    fn let_go(&mut self) {
        self.open = None;
        if self.coming.is_empty() {
            return;
        }
        let waited = (self.found.len()..self.coming.len()).map(|_| self.finding.wait());
        self.found.extend(waited.collect::<Vec<_>>());
        self.coming.clear();
        let found = self.found.drain(..).flatten();
        let asked = found.filter(|found| found.tokens > 0).count();
        for _ in self.learned.len()..asked {
            self.learner.wait();
        }
        self.learned.clear();
        self.finding.forget_forms();
    }

    /// Frees what is not of the run; the device knows no forms then.
    fn free_but_run(&mut self) {
        self.let_go();
        self.spare.clear();
        let of_run = [InvertArray::Lasts, InvertArray::Counts, InvertArray::Codes];
        self.machine.places().free_but(&[&of_run[..], &OF_TERMS].concat());
        self.finding.free();
    }

    /// Ends the run: its terms. The next batch begins another one.
    ///
    /// # Errors
    /// Of the device.
    pub fn end_run(&mut self) -> Result<Terms, GpuError> {
        let began = Instant::now();
        self.let_go();
        self.finding.forget_forms();
        self.lasts = 0;
        self.keep_again();
        self.free_terms();
        let Numbering { codes, .. } = std::mem::take(&mut self.numbering);
        let terms = self.learner.with(|forms: &mut Forms| forms.take(codes));
        self.work.seconds.close += spent(began);
        Ok(terms)
    }
}
