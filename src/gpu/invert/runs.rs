//! Divides the batches of a device, in the order of the input, into runs, and tells what each piece
//! counts. A sequencer decides, as every owner's does for `fast`: if a run ends within a batch, the
//! pieces up to its end are counted again alone, and the others begin the next run.

use super::inverter::{CountedBatch, Inverter, InverterSeconds, InverterWork, MOST_FOUND, spent};
use super::machine::{DeviceMemory, InvertMachine, Uploader};
use super::text::{MOST_BYTES, PieceText, fitting, is_fitting};
use crate::dictionary::closed::ClosedError;
use crate::dictionary::device::inverted::{InvertedLists, InvertedRun};
use crate::gpu::floor::error::GpuError;
use crate::index::files::storage::FilledFile;
use crate::index::format::{FileKind, run_file, run_name};
use crate::index::run::{LaidChunk, RunPart};
use crate::order::{PieceCounts, PiecePlacement, Sequencer};
use std::any::Any;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) enum RunEvent {
    /// Counted, and of the open run.
    Piece {
        counts: Arc<PieceCounts>,
        lengths: Vec<u32>,
        contents: Vec<u64>,
    },
    /// The open run ends with the last piece: its lists.
    Run(RunEnd),
    /// Of the open run, which ends with the last piece.
    Encoded(LaidChunk),
    End(InverterWork),
}

/// An inverted run, and its place in the index.
#[derive(Clone)]
pub(crate) struct RunEnd {
    pub run: u32,
    pub first_docid: u32,
    pub documents: u32,
    pub inverted: Arc<InvertedRun>,
    /// Of the lengths of its documents, piece by piece.
    pub lengths: Vec<Arc<[u8]>>,
}

/// The open run of a device.
pub(crate) struct Runs {
    inverter: Inverter<dyn InvertMachine>,
    /// The folder of the generation.
    folder: PathBuf,
    sequencer: Sequencer,
    /// Batches that are not taken.
    coming: VecDeque<Arc<Vec<PieceText>>>,
    batches: Vec<InvertedLists>,
    /// Codes of the documents' lengths.
    lengths: Vec<Arc<[u8]>>,
    /// The run before, until it is encoded or written: there is memory for one.
    before: Weak<dyn Any + Send + Sync>,
    stop: Arc<AtomicBool>,
}

/// Between two looks whether the run before is encoded.
const PAUSE: Duration = Duration::from_micros(200);

impl Runs {
    /// Run `first_run`, which ends at about so much cost
    /// ([`Budget::run_limit`](crate::order::Budget)); all ends early once `stop` is set. Where the
    /// device encodes lists they go to files in the `folder` of the generation.
    pub(crate) fn new(
        inverter: Inverter<dyn InvertMachine>,
        first_run: u32,
        run_limit: u64,
        folder: PathBuf,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            inverter,
            folder,
            sequencer: Sequencer::new(first_run, run_limit),
            coming: VecDeque::new(),
            batches: Vec::new(),
            lengths: Vec::new(),
            before: Weak::<()>::new(),
            stop,
        }
    }

    /// For times that the caller measures.
    pub(crate) fn seconds(&mut self) -> &mut InverterSeconds {
        self.inverter.seconds()
    }

    pub(crate) fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        self.inverter.machine().uploader()
    }

    /// Has the forms of the next batch found; `text` are its texts, if they were uploaded.
    pub(crate) fn find(&mut self, pieces: Vec<PieceText>, text: Option<DeviceMemory>) {
        let pieces = Arc::new(pieces);
        match is_fitting(&pieces) {
            true if text.is_some() => self.inverter.find(pieces.clone(), text),
            is_fitting => {
                self.inverter.give_back(text);
                if is_fitting {
                    self.inverter.find(pieces.clone(), None);
                }
            }
        }
        self.coming.push_back(pieces);
    }

    /// Asks for all that comes again, if that was dropped: a run has ended, or there was no room.
    fn find_again(&mut self) {
        if self.inverter.found() == 0 {
            for pieces in self.coming.iter().filter(|pieces| is_fitting(pieces)) {
                if self.inverter.has_room() {
                    self.inverter.find(pieces.clone(), None);
                }
            }
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.coming.len() < MOST_FOUND
    }

    pub(crate) fn has_coming(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Whether taking waits neither for pieces nor for their forms or terms.
    pub(crate) fn is_ready(&mut self) -> bool {
        let next = self.coming.front();
        next.is_some_and(|pieces| self.inverter.is_ready(pieces))
    }

    /// Takes the next pieces, if there are any; their texts are not needed afterwards.
    ///
    /// # Errors
    /// Of the device, a piece with more text than a device takes, or too many documents.
    pub(crate) fn take_next(
        &mut self,
        out: impl FnMut(RunEvent) + Send,
    ) -> Result<Option<Arc<Vec<PieceText>>>, ClosedError> {
        let Some(pieces) = self.coming.pop_front() else { return Ok(None) };
        self.take(&pieces, out)?;
        self.find_again();
        Ok(Some(pieces))
    }

    /// Counts pieces; once more if the device had no room, and has freed all but the run's.
    fn count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<CountedBatch>, GpuError> {
        match self.inverter.count(pieces, first) {
            Err(error) if error.is_out_of_memory() => self.inverter.count(pieces, first),
            counted => counted,
        }
    }

    fn take(
        &mut self,
        pieces: &[PieceText],
        mut out: impl FnMut(RunEvent) + Send,
    ) -> Result<(), ClosedError> {
        let mut rest = pieces;
        while !rest.is_empty() {
            // The next run's lists stay on the device, or have to wait for memory of the host.
            if !self.inverter.keeps() && !self.wait_for_encoders() {
                return Ok(());
            }
            let first = self.sequencer.open_run().run_documents;
            let mut here = fitting(rest);
            if here == 0 {
                let bytes = rest[0].bytes.len();
                let error = format!(
                    "a piece of the input has {bytes} bytes of text, and a device takes {MOST_BYTES} at once"
                );
                return Err(error.into());
            }
            let counted = loop {
                match self.count(&rest[..here], first) {
                    Err(error) if error.is_out_of_memory() && self.inverter.keeps() => {
                        if !self.wait_for_encoders() {
                            return Ok(());
                        }
                        self.batches = self.inverter.spill()?;
                    }
                    Err(error) if error.is_out_of_memory() && here > 1 => here /= 2,
                    counted => break counted?,
                }
            };
            let mut closes = None;
            let mut taken = 0;
            for counted in &counted {
                let placement = self.sequencer.place(&counted.counts)?;
                taken += 1;
                if placement.closes {
                    closes = Some(placement);
                    break;
                }
            }
            if taken < here {
                self.count(&rest[..taken], first)?;
            }
            let began = Instant::now();
            self.batches.extend(self.inverter.lists()?);
            self.seconds().lists += spent(began);
            let began = Instant::now();
            for counted in counted.into_iter().take(taken) {
                let CountedBatch { counts, lengths, codes, contents } = counted;
                self.lengths.push(codes);
                let counts = Arc::new(counts);
                out(RunEvent::Piece { counts, lengths, contents });
            }
            self.seconds().give += spent(began);
            if let Some(placement) = closes {
                self.close(placement, &mut out)?;
            }
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// All pieces are taken: the open run ends, if it has documents.
    pub(crate) fn end(&mut self, mut out: impl FnMut(RunEvent) + Send) -> Result<(), ClosedError> {
        let open = self.sequencer.open_run();
        if open.run_documents > 0 {
            self.close(open, &mut out)?;
        }
        out(RunEvent::End(self.inverter.work()));
        Ok(())
    }

    fn close(
        &mut self,
        at: PiecePlacement,
        out: &mut (impl FnMut(RunEvent) + Send),
    ) -> Result<(), ClosedError> {
        if self.inverter.keeps() {
            if !self.wait_for_encoders() || self.encode(at, out)? {
                return Ok(());
            }
            self.batches = self.inverter.spill()?;
        }
        let terms = self.inverter.end_run()?;
        let batches = std::mem::take(&mut self.batches);
        let inverted = Arc::new(InvertedRun { terms, batches });
        self.before = Arc::downgrade(&inverted) as _;
        out(RunEvent::Run(RunEnd {
            run: at.run,
            first_docid: at.run_first,
            documents: at.run_documents,
            inverted,
            lengths: std::mem::take(&mut self.lengths),
        }));
        Ok(())
    }

    /// Has the device encode the run's lists; false if it has no room for that.
    fn encode(
        &mut self,
        at: PiecePlacement,
        out: &mut (impl FnMut(RunEvent) + Send),
    ) -> Result<bool, ClosedError> {
        let PiecePlacement { run, run_first: first_docid, run_documents: documents, .. } = at;
        let part = RunPart { run, first_docid, documents, owner: 0 };
        let held = Arc::new(());
        let mut is_open = false;
        let folder = &self.folder;
        let open = || {
            is_open = true;
            Ok(FilledFile::create(folder, &run_file(&run_name(run), FileKind::Postings))?)
        };
        let lengths = &self.lengths[..];
        let emit = |chunk| out(RunEvent::Encoded(chunk));
        let encoded = self.inverter.encode(part, lengths, &held, open, emit);
        let has_no_room = |error: &ClosedError| {
            error.downcast_ref::<GpuError>().is_some_and(GpuError::is_out_of_memory)
        };
        match encoded {
            Err(error) if !is_open && has_no_room(&error) && self.inverter.can_spill() => {
                return Ok(false);
            }
            encoded => encoded?,
        }
        self.lengths.clear();
        self.before = Arc::downgrade(&held) as _;
        Ok(true)
    }

    /// False if all is to end.
    fn wait_for_encoders(&mut self) -> bool {
        let began = Instant::now();
        while self.before.strong_count() > 0 && !self.stop.load(Ordering::Relaxed) {
            sleep(PAUSE);
        }
        self.seconds().encoders += spent(began);
        !self.stop.load(Ordering::Relaxed)
    }
}
