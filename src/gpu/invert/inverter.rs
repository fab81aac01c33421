//! How does a batch of texts become lists? [`count`](Inverter::count) says what each of its pieces
//! counts, by which whoever asks finds out where the run ends; [`lists`](Inverter::lists) gives the
//! lists of the batch if all of it belongs to the run, or keeps them on the device until
//! [`encode`](Inverter::encode). Nothing here depends on the order in which a device's threads run.
//!
//! Several batches are counted at a time, by lanes: of one device, which has something to do then
//! while the host reads what was counted, or of several. Each lane keeps what it has counted of a
//! run; the terms of all have one numbering. When the run ends the first lane, which is at home,
//! takes the batches of the others and encodes all lists. Where lists do not stay on the device it
//! counts alone.
//!
//! A device keeps the forms that it has met, and a table of their fingerprints, until the run ends
//! or they take too much, and numbers the terms of the run, most of which it makes itself. Every
//! token is compared with its form byte by byte: two forms with one fingerprint, a form that is
//! very long and a table that is full cost time and change nothing.

mod counter;
mod encode;
mod find;
mod kept;
mod lane;
mod learner;
mod mend;
mod terms;
mod typed;
mod work;

pub(crate) use find::{Back, ParseLines};
pub(crate) use learner::Tell;
pub(crate) use work::{InverterSeconds, InverterWork};

use self::counter::Counter;
use self::find::{Finding, Which, which};
use self::lane::{Lane, Waker};
use self::learner::Learner;
use self::terms::Numbering;
#[cfg(test)]
use super::Tuning;
use super::machine::{DeviceMemory, Machine, Uploader};
use super::text::PieceText;
use crate::dictionary::closed::ClosedError;
use crate::dictionary::device::forms::{Forms, Terms};
use crate::dictionary::device::inverted::Lists;
use crate::gpu::floor::error::GpuError;
use crate::index::documents::pieces::PieceDocuments;
use crate::index::files::storage::FilledFile;
use crate::index::run::{LaidChunk, RunPart};
use crate::input::formats::fields::Fields;
use crate::input::parser::parse_lines;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Batches of a lane whose forms are found, or are being found, and that are not counted, at most:
/// each has two numbers for each token on the device, and 16 bytes for each new form.
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
    /// Is called, by other threads, whenever a batch is counted.
    pub tell: Tell,
    /// Takes texts of a lane that nobody needs any more.
    pub back: Arc<dyn Fn(usize, Option<DeviceMemory>) + Send + Sync>,
    /// Makes texts of lines that a device cannot read.
    pub parse: ParseLines,
}

impl Default for InverterHooks {
    /// Nobody, documents of any length, and fields that nobody asked for.
    fn default() -> Self {
        Self {
            tell: Arc::new(|| ()),
            back: Arc::new(|_, text| drop(text)),
            parse: Arc::new(|text, lines| {
                parse_lines(text, lines, (u64::MAX, &Fields::default()), &Arc::default())
            }),
        }
    }
}

/// Turns texts into the lists of runs, on one device or several.
pub struct Inverter<M> {
    /// The first is at home: it encodes, and counts where one counts alone.
    lanes: Vec<Lane<M>>,
    back: Arc<dyn Fn(usize, Option<DeviceMemory>) + Send + Sync>,
    /// Pieces that were asked for and are not counted, and whose they are.
    asked: Vec<(Which, usize)>,
    /// The lane whose lists are asked for next, and the docid of its batch's first document.
    open: Option<(usize, u32)>,
    /// Lists are encoded on the device, if it has room, and it had none in this run.
    encodes: bool,
    has_spilled: bool,
    /// A device had no room for several lanes.
    is_alone: bool,
    work: InverterWork,
}

pub(super) fn spent(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

/// The machine of a lane, which counts nothing meanwhile.
pub struct OfLane<'a, M>(MutexGuard<'a, Counter<M>>);

impl<M> Deref for OfLane<'_, M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0.machine
    }
}

impl<M> DerefMut for OfLane<'_, M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.0.machine
    }
}

const HOME: usize = 0;

impl<M: Machine + 'static> Inverter<M> {
    /// An inverter with a lane for each machine, none of which has done anything, and on another
    /// one of the same device for each; `threads` make terms of forms. Lanes of different devices
    /// can use the memory of each other.
    ///
    /// # Errors
    /// Of the devices; the system gives no threads.
    ///
    /// # Panics
    /// There is no machine.
    pub fn new(
        machines: Vec<M>,
        analysis: &Analysis,
        threads: usize,
        hooks: &InverterHooks,
    ) -> Result<Self, GpuError> {
        assert!(!machines.is_empty(), "an inverter has a lane");
        let devices: BTreeSet<String> = machines.iter().map(Machine::device).collect();
        let (devices, lanes) = (devices.len() as u64, machines.len() as u64);
        let work = InverterWork { devices, lanes, ..InverterWork::default() };
        let forms = Arc::new(Mutex::new(Forms::new(threads)));
        let numbering = Arc::<Mutex<Numbering>>::default();
        let start = |(lane, machine): (usize, M)| {
            let refused =
                |source: io::Error| GpuError::Thread { device: "the indexer gpu".into(), source };
            let (waker, woken) = Waker::new();
            let (of, back, told) = (waker.clone(), hooks.back.clone(), hooks.tell.clone());
            let tell: Tell = Arc::new(move || of.go_on());
            let (learner, asker) =
                Learner::start(analysis.clone(), (forms.clone(), threads), tell.clone())
                    .map_err(refused)?;
            let back: Back = Arc::new(move |text| back(lane, text));
            let parse = (hooks.parse.clone(), threads);
            let finding = Finding::start(machine.sibling()?, analysis, asker, parse, (back, tell));
            let finding = finding.map_err(refused)?;
            let counter = Counter::new(machine, finding, learner, numbering.clone());
            Lane::start(counter, (waker, woken), move || told()).map_err(refused)
        };
        let lanes = machines.into_iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Self {
            lanes,
            back: hooks.back.clone(),
            asked: Vec::new(),
            open: None,
            encodes: false,
            has_spilled: false,
            is_alone: false,
            work,
        })
    }

    /// The same, and forms are found otherwise; nothing was counted yet.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn tuned(self, tuning: Tuning) -> Self {
        for lane in &self.lanes {
            let mut counter = lane.counter();
            counter.finding.tune(tuning);
            counter.tuning = tuning;
        }
        self
    }

    /// The same, and the lists of runs are encoded on the device where it has room for them;
    /// nothing was counted yet.
    #[must_use]
    pub fn encoding(self) -> Self {
        self.lanes.iter().for_each(|lane| lane.counter().keeping.wanted = true);
        Self { encodes: true, ..self }
    }

    /// How many lanes it has.
    #[cfg(test)]
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// What it has done so far.
    pub fn work(&self) -> InverterWork {
        let mut work = self.work;
        for lane in &self.lanes {
            let counter = lane.counter();
            work.add(counter.work);
            work.add(counter.finding.work());
        }
        work
    }

    /// Where the time goes that its caller measures.
    pub(crate) fn seconds(&mut self) -> &mut InverterSeconds {
        &mut self.work.seconds
    }

    pub fn machine(&mut self) -> OfLane<'_, M> {
        OfLane(self.lanes[HOME].counter())
    }

    /// Whoever brings texts to the device of a lane while it works.
    pub(crate) fn uploader(&mut self, lane: usize) -> Result<Box<dyn Uploader>, GpuError> {
        self.lanes[lane].counter().machine.uploader()
    }

    /// Has a lane count pieces, behind all that it was asked for before, which
    /// [`count`](Self::count) takes later. If their texts were brought to it they are used, and
    /// those of earlier ones go [back](InverterHooks::back). A lane that counts nothing ahead only
    /// finds their forms.
    ///
    /// # Panics
    /// If the lane has no [room](Self::has_room); whoever counts panics if there are too many
    /// pieces, or too much text.
    pub(crate) fn find(
        &mut self,
        lane: usize,
        pieces: Arc<Vec<PieceText>>,
        text: Option<DeviceMemory>,
    ) {
        assert!(self.has_room(lane), "a batch is counted before");
        let (lane, text) = match lane {
            lane if lane != HOME && self.counts_alone() => {
                self.give_back(lane, text);
                (HOME, None)
            }
            lane => (lane, text),
        };
        self.asked.push((which(&pieces), lane));
        self.lanes[lane].ask(pieces, text);
    }

    /// Gives back texts that were brought for pieces that no lane is asked for, or room for texts
    /// that could not be brought.
    pub(crate) fn give_back(&self, lane: usize, text: Option<DeviceMemory>) {
        // Nobody needs texts on the device of a lane that is not used.
        if lane == HOME || !self.is_alone {
            (self.back)(lane, text);
        }
    }

    /// Whether a lane can be asked for one more batch before one is taken.
    pub(crate) fn has_room(&self, lane: usize) -> bool {
        let of = if self.counts_alone() { HOME } else { lane };
        self.asked.iter().filter(|(_, lane)| *lane == of).count() < MOST_FOUND
    }

    /// Batches that were asked for and are not taken.
    pub(crate) fn found(&self) -> usize {
        self.asked.len()
    }

    /// Whether only the lane at home counts.
    fn counts_alone(&self) -> bool {
        self.is_alone || !self.keeps()
    }

    /// Whether pieces can be counted without waiting for their lane, or for their forms and the
    /// host's terms.
    pub(crate) fn is_ready(&mut self, pieces: &[PieceText]) -> bool {
        let of = which(pieces);
        let keeps = self.keeps();
        match self.asked.iter().find(|(asked, _)| *asked == of) {
            Some(&(_, lane)) if keeps => self.lanes[lane].has_counted(),
            Some(&(_, lane)) => self.lanes[lane].asked().ready().is_some(),
            None => true,
        }
    }

    /// Counts the next pieces, at most [`MOST_PIECES`](super::text::MOST_PIECES) with
    /// [`MOST_BYTES`](super::text::MOST_BYTES) of text; the first document has docid `first`,
    /// counted from the run's first. What was [asked](Self::find) for is there already, or nearly;
    /// if it is other pieces, all that was asked for is let go.
    ///
    /// # Errors
    /// Of the device. If that is out of memory, fewer pieces may do. What was asked for is let go,
    /// and one lane counts alone from then on.
    ///
    /// # Panics
    /// There are too many pieces, or too much text.
    pub fn count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        // What was counted and is not taken belongs to no run.
        let is_dropped = self.open.take().is_some();
        let of = which(pieces);
        let asked = self.asked.iter().position(|(asked, _)| *asked == of);
        let (lane, counted) = match asked.filter(|_| !is_dropped) {
            Some(asked) => {
                let (_, lane) = self.asked.remove(asked);
                let counted = match self.keeps() {
                    true => self.lanes[lane].counted(),
                    false => self.lanes[lane].asked().count(pieces, first),
                };
                (lane, counted)
            }
            None => {
                let gone = self.let_go();
                (HOME, gone.and_then(|()| self.lanes[HOME].counter().count(pieces, first)))
            }
        };
        match counted {
            Ok(_) => self.open = Some((lane, first)),
            Err(_) => self.retreat()?,
        }
        counted
    }

    /// Lets go of all that was asked for or counted and does not stay; the forms stay.
    fn let_go(&mut self) -> Result<(), GpuError> {
        self.open = None;
        self.asked.clear();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            lane.forget(|text| (self.back)(number, text)).let_go()?;
        }
        Ok(())
    }

    /// The same where the run ends, and the forms go too.
    fn discard(&mut self) {
        self.open = None;
        self.asked.clear();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            lane.forget(|text| (self.back)(number, text)).discard();
        }
    }

    /// A device has failed, since it is full or otherwise: if there are several lanes, the one at
    /// home counts alone from now on, and has the memory of all.
    fn retreat(&mut self) -> Result<(), GpuError> {
        self.discard();
        // Nobody is told any more what the forms mean that were found, so that no lane may know
        // them.
        self.lanes.iter().for_each(|lane| lane.counter().free_but_run());
        if self.lanes.len() > 1 && !self.is_alone {
            self.is_alone = true;
            // If there is no room for that either, it comes when there is more.
            return self
                .bring_home()
                .or_else(|e| if e.is_out_of_memory() { Ok(()) } else { Err(e) });
        }
        Ok(())
    }

    /// Brings all that other lanes have of the run to the one at home; they know no forms then.
    fn bring_home(&mut self) -> Result<(), GpuError> {
        let (home, others) = self.lanes.split_first().expect("there is one at home");
        let mut home = home.counter();
        others.iter().try_for_each(|other| home.take_batches(&mut other.counter()))
    }

    /// The lists of the batch that was counted last, or nothing if the device [keeps](Self::keeps)
    /// them; it belongs to the run as a whole.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    ///
    /// # Panics
    /// No batch was counted, or its lists were given.
    pub fn lists(&mut self) -> Result<Option<Lists>, GpuError> {
        let (lane, first) = self.open.take().expect("a batch was counted");
        let lists = self.lanes[lane].counter().lists(first);
        self.lanes[lane].go_on();
        lists
    }

    /// Whether the lists of the run stay on the device until it ends.
    pub(crate) fn keeps(&self) -> bool {
        self.encodes && !self.has_spilled
    }

    /// Whether the postings of the run stay on the device, as they do until all lists are gathered
    /// and there is room to encode them.
    pub(crate) fn can_spill(&self) -> bool {
        self.lanes.iter().any(|lane| lane.counter().can_spill())
    }

    /// Takes the lists that stay on the device to the host, and those of later batches of the run
    /// as well. Nothing is counted then, and the device knows no forms.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    pub(crate) fn spill(&mut self) -> Result<Vec<Lists>, GpuError> {
        self.discard();
        self.lanes.iter().for_each(|lane| lane.counter().free_but_run());
        self.bring_home()?;
        self.has_spilled = true;
        self.lanes[HOME].counter().spill()
    }

    /// Encodes the lists of the run, of whose documents the lengths have such `codes`, in the order
    /// of the lexicon, puts them where they belong in the file that `open` gives, and gives what
    /// the lexicon has of them by chunks, the last of which says so. Each has a part of `held`. The
    /// run has [ended](Self::end_run) then.
    ///
    /// # Errors
    /// Of the device, and those of `open`. If the device is out of memory, the file is not open,
    /// and [the postings stay](Self::can_spill), [`spill`](Self::spill) may do.
    pub fn encode(
        &mut self,
        run: (RunPart, &[Arc<[u8]>]),
        held: &Arc<()>,
        open: impl FnOnce() -> Result<FilledFile, ClosedError>,
        out: impl FnMut(LaidChunk) + Send,
    ) -> Result<(), ClosedError> {
        self.discard();
        self.bring_home()?;
        self.lanes[HOME].counter().encode(run, held, open, out)
    }

    /// Ends the run: its terms. The next batch begins another one.
    ///
    /// # Errors
    /// Of the device.
    pub fn end_run(&mut self) -> Result<Terms, GpuError> {
        self.discard();
        let (home, others) = self.lanes.split_first().expect("there is one at home");
        others.iter().try_for_each(|other| other.counter().forget_run())?;
        self.has_spilled = false;
        home.counter().end_run()
    }
}
