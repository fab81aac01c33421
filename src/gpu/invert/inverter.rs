//! The inverter, which makes lists of batches of texts in three steps.
//!
//! 1. A thread of its own finds the forms of batches ([`find`](Inverter::find)), and others make
//!    terms of those of which the device makes none, while batches before are counted.
//! 2. [`count`](Inverter::count) says what each piece of a batch counts, by which the caller finds
//!    the end of the run; [`lists`](Inverter::lists) returns the lists of a batch that belongs to
//!    the run as a whole, or retains them on the device.
//! 3. [`encode`](Inverter::encode) encodes the retained lists of a run.
//!
//! Results do not depend on the order in which a device's threads run. A device retains the forms
//! that it has met, and a table of their fingerprints, until the run ends or they take too much,
//! and numbers the terms of the run, most of which it makes. Every token is compared with its form
//! byte by byte: two forms with one fingerprint, very long ones and a full table only cost time.

mod count;
mod encode;
mod find;
mod kept;
mod learner;
mod terms;
mod typed;
mod work;

pub(crate) use find::Back;
pub(crate) use learner::TellLearned;
pub(crate) use work::{InverterSeconds, InverterWork};

use self::find::{FindThread, FoundForms, FoundTokens};
use self::kept::Keeping;
use self::learner::{Learned, Learner};
use self::terms::{Numbering, OF_TERMS};
use self::typed::Typed;
use super::InvertTuning;
use super::machine::{DeviceMemory, InvertMachine};
use super::steps::InvertArray;
use super::text::PieceText;
use crate::dictionary::device::forms::{Forms, Terms};
use crate::gpu::floor::error::GpuError;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Batches between `find` and `count` at most: each has two numbers for each token on the device,
/// and 16 bytes for each new form.
pub(crate) const MOST_FOUND: usize = 3;

pub struct CountedBatch {
    pub counts: PieceCounts,
    /// Of indexed tokens, by document.
    pub lengths: Vec<u32>,
    pub codes: Arc<[u8]>,
    /// By document.
    pub contents: Vec<u64>,
}

pub struct InverterHooks {
    /// Called by other threads, whenever forms were found or terms made.
    pub tell: TellLearned,
    pub back: Back,
}

impl Default for InverterHooks {
    fn default() -> Self {
        Self { tell: Arc::new(|| ()), back: Arc::new(drop) }
    }
}

/// The batch that was counted last.
#[derive(Clone, Copy, Debug)]
struct OpenBatch {
    /// Counted from the run's first.
    first: u32,
    postings: u32,
    terms: u32,
    list_bytes: u32,
}

pub struct Inverter<M: ?Sized> {
    machine: Box<M>,
    tuning: InvertTuning,
    /// Before the learner, which ends when this is dropped.
    finding: FindThread,
    learner: Learner,
    back: Back,
    /// The pieces to be counted next, in their order: forms are found, or being found.
    coming: VecDeque<Arc<Vec<PieceText>>>,
    /// Outcomes of the first of these.
    found: VecDeque<Result<FoundForms, GpuError>>,
    /// The meanings of their forms, as far as known.
    learned: VecDeque<Learned>,
    /// Arrays of tokens of counted batches, to be used again.
    spare: Vec<FoundTokens>,
    numbering: Numbering,
    /// Terms with last docids, and numbers of retained postings, on the device.
    lasts: u32,
    keeping: Keeping,
    open: Option<OpenBatch>,
    work: InverterWork,
}

pub(super) fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

impl<M: InvertMachine + ?Sized> Typed for Inverter<M> {
    type On = M;

    fn on(&mut self) -> &mut M {
        &mut self.machine
    }
}

impl<M: InvertMachine + ?Sized> Inverter<M> {
    /// On a machine that has done nothing, and a sibling that finds forms; `threads` make terms.
    ///
    /// # Errors
    /// Of the device, or if the system gives no threads.
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
        let back = hooks.back.clone();
        let tell = hooks.tell.clone();
        let sibling = machine.sibling()?;
        let finding = FindThread::start(sibling, analysis, asker, back, tell);
        Ok(Self {
            machine,
            tuning: InvertTuning::default(),
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

    /// Before anything is counted.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn tuned(mut self, tuning: InvertTuning) -> Self {
        self.finding.tune(tuning);
        self.tuning = tuning;
        self
    }

    /// Encodes the lists of runs on the device where it has room; set before anything is counted.
    #[must_use]
    pub fn encoding(mut self) -> Self {
        self.keeping.wanted = true;
        self
    }

    pub fn work(&self) -> InverterWork {
        let InverterWork { postings, spilled, seconds, .. } = self.work;
        let found = self.finding.finder().work;
        let InverterSeconds { find, upload, .. } = found.seconds;
        let upload = seconds.upload + upload;
        let seconds = InverterSeconds { find, upload, ..seconds };
        InverterWork { postings, spilled, seconds, ..found }
    }

    /// For times that the caller measures.
    pub(crate) fn seconds(&mut self) -> &mut InverterSeconds {
        &mut self.work.seconds
    }

    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Has the forms of pieces found, behind all asked for before, and the host make terms of them
    /// meanwhile; [`count`](Self::count) takes them later. If `text` has their texts, those of
    /// earlier ones go [back](InverterHooks::back).
    ///
    /// # Panics
    /// If there is no [room](Self::has_room); counting panics if there is too much text or pieces.
    pub(crate) fn find(&mut self, pieces: Arc<Vec<PieceText>>, text: Option<DeviceMemory>) {
        assert!(self.has_room(), "a batch is counted before");
        let to = self.spare.pop();
        self.coming.push_back(pieces.clone());
        self.finding.ask(pieces, text, to);
    }

    /// Returns texts that were uploaded in vain, or room for texts that could not be uploaded.
    pub(crate) fn give_back(&self, text: Option<DeviceMemory>) {
        (self.back)(text);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.coming.len() < MOST_FOUND
    }

    pub(crate) fn found(&self) -> usize {
        self.coming.len()
    }

    /// Whether counting these would not wait for their forms or the host's terms.
    pub(crate) fn is_ready(&mut self, pieces: &[PieceText]) -> bool {
        self.found.extend(self.finding.outcomes());
        while let Some(learned) = self.learner.answer() {
            self.take_learned(learned);
        }
        match self.found.front() {
            _ if !self.is_next(pieces) => true,
            Some(Ok(found)) => found.tokens == 0 || !self.learned.is_empty(),
            // Counting returns the error.
            Some(Err(_)) => true,
            None => false,
        }
    }

    fn is_next(&self, pieces: &[PieceText]) -> bool {
        self.coming.front().is_some_and(|coming| std::ptr::eq(&coming[..], pieces))
    }

    fn take_learned(&mut self, learned: Learned) {
        self.work.seconds.learn += learned.seconds;
        self.learned.push_back(learned);
    }

    /// Counts pieces, at most [`MOST_PIECES`](super::text::MOST_PIECES) with
    /// [`MOST_BYTES`](super::text::MOST_BYTES) of text; the first document has docid `first`,
    /// counted from the run's first. If they are not the next that `find` was [asked](Self::find)
    /// for, all that was asked for is dropped.
    ///
    /// # Errors
    /// Of the device. If out of memory, fewer pieces may do; all is freed that is not of the run.
    ///
    /// # Panics
    /// If there are too many pieces, or too much text.
    pub fn count(
        &mut self,
        pieces: &[PieceText],
        first: u32,
    ) -> Result<Vec<CountedBatch>, GpuError> {
        let counted = self.take_found(pieces).and_then(|found| self.count_found(found, first));
        if counted.is_err() {
            self.free_but_run();
        }
        counted
    }

    fn take_found(&mut self, pieces: &[PieceText]) -> Result<FoundForms, GpuError> {
        self.open = None;
        if self.is_next(pieces) {
            self.coming.pop_front();
            return self.found.pop_front().unwrap_or_else(|| self.finding.wait());
        }
        self.let_go();
        let to = self.spare.pop();
        self.finding.finder().find(pieces, None, to)
    }

    /// Drops all that was found or counted and does not stay. The meanings of its new forms are
    /// lost, so that all forms are forgotten.
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
        self.finding.finder().forget_forms();
    }

    /// The device knows no forms afterwards.
    fn free_but_run(&mut self) {
        self.let_go();
        self.spare.clear();
        let of_run = [InvertArray::Lasts, InvertArray::Counts, InvertArray::Codes];
        self.machine.places().free_but(&[&of_run[..], &OF_TERMS].concat());
        self.finding.finder().free();
    }

    /// Returns the terms of the run; the next batch begins another one.
    pub fn end_run(&mut self) -> Result<Terms, GpuError> {
        let began = Instant::now();
        self.let_go();
        self.finding.finder().forget_forms();
        self.lasts = 0;
        self.keep_again();
        self.free_terms();
        let Numbering { codes, .. } = std::mem::take(&mut self.numbering);
        let terms = self.learner.with(|forms: &mut Forms| forms.take(codes));
        self.work.seconds.close += spent(began);
        Ok(terms)
    }
}
