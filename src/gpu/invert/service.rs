//! Who drives a device that inverts? One thread: it takes batches of texts, waits for the device, and tells what became of
//! them. Another one brings the texts of the next batch there meanwhile. No worker waits.

use super::inverter::Inverter;
use super::machine::{DeviceText, Machine, Uploader};
use super::runs::{Event, Runs};
use super::text::{PieceText, fitting, parts};
use crate::dictionary::closed::{ClosedError, Wake};
use crate::gpu::error::GpuError;
use crate::shown::panicked;
use crate::text::analysis::Analysis;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Opens the device, on the thread that drives it.
pub type OpenMachine = Box<dyn FnOnce() -> Result<Box<dyn Machine>, ClosedError> + Send>;

/// How a device inverts.
pub struct Inverting {
    /// How text becomes terms.
    pub analysis: Analysis,
    /// Threads that make terms of forms.
    pub threads: usize,
    /// Where runs end ([`Budget::run_limit`](crate::order::Budget)).
    pub run_limit: u64,
    /// Lists are encoded on the device where it has room for them, with [`bp128`](crate::index::list::Form::BP128).
    pub encodes: bool,
}

/// What became of texts, or why nothing more will.
pub type Outcome = Result<Event, ClosedError>;

/// A thread that drives a device.
pub struct InvertService {
    batches: Option<Sender<Vec<PieceText>>>,
    outcomes: Receiver<Outcome>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl InvertService {
    /// Starts it; `wake` is called whenever there is an outcome.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(open: OpenMachine, how: Inverting, wake: Wake) -> io::Result<Self> {
        let (batches, from) = channel();
        let (to, outcomes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = Builder::new().name("inverter".into()).spawn(move || {
            let tell = |outcome: Outcome| {
                // Whoever has gone wants to know nothing.
                _ = to.send(outcome);
                wake();
            };
            let mut uploading = None;
            let driven = AssertUnwindSafe(|| {
                drive(open, how, from, stopped, &mut uploading, |e| tell(Ok(e)))
            });
            match catch_unwind(driven) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tell(Err(error)),
                Err(panic) => {
                    let message = panicked(&*panic);
                    let error = format!("the thread that drives a device panicked: {message} (this is a bug: please report it)");
                    tell(Err(error.into()));
                }
            }
            if let Some(thread) = uploading {
                // It ends when no more batches come.
                _ = thread.join();
            }
        })?;
        Ok(Self { batches: Some(batches), outcomes, stop, thread: Some(thread) })
    }

    /// Hands on the next pieces.
    pub fn send(&self, pieces: Vec<PieceText>) {
        if let Some(batches) = &self.batches {
            // A thread that has ended has told why.
            _ = batches.send(pieces);
        }
    }

    /// No pieces will come any more.
    pub fn end(&mut self) {
        self.batches = None;
    }

    /// The next outcome, if there is one. Never waits.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }
}

impl Drop for InvertService {
    /// Waits for the thread: a device is not to be used when the job has ended.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // It has told what there was to tell.
            _ = thread.join();
        }
    }
}

/// What who brings texts hands on.
enum Brought {
    /// Pieces, their texts on the device if there is room for them ahead, and the seconds that this took.
    Pieces(Vec<PieceText>, Option<DeviceText>, f64),
    /// There will be no more.
    End,
}

/// Brings texts to a device, batch after batch; texts that nobody needs any more come back.
fn bring(
    mut uploader: Box<dyn Uploader>,
    batches: &Receiver<Vec<PieceText>>,
    old: &Receiver<DeviceText>,
    to: &SyncSender<Result<Brought, GpuError>>,
) {
    for pieces in batches {
        let began = Instant::now();
        let brought = match fitting(&pieces) == pieces.len() {
            true => uploader.upload(&parts(&pieces), old.try_recv().ok()).map(Some),
            false => Ok(None),
        };
        let brought = match brought {
            // Whoever needs them makes room.
            Err(error) if error.is_out_of_memory() => Ok(None),
            brought => brought,
        };
        let seconds = began.elapsed().as_secs_f64();
        if to.send(brought.map(|text| Brought::Pieces(pieces, text, seconds))).is_err() {
            return;
        }
    }
    // Whoever has gone wants to know nothing.
    _ = to.send(Ok(Brought::End));
}

fn drive(
    open: OpenMachine,
    how: Inverting,
    batches: Receiver<Vec<PieceText>>,
    stop: Arc<AtomicBool>,
    uploading: &mut Option<JoinHandle<()>>,
    mut tell: impl FnMut(Event) + Send,
) -> Result<(), ClosedError> {
    let began = Instant::now();
    let mut inverter = Inverter::new(open()?, how.analysis, how.threads);
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.run_limit, stop.clone());
    let uploader = runs.uploader()?;
    // One batch is inverted while the next is brought.
    let (to, brought) = sync_channel(0);
    let (give_back, old) = channel();
    let thread = Builder::new().name("uploader".into());
    *uploading = Some(thread.spawn(move || bring(uploader, &batches, &old, &to))?);
    runs.seconds().open = began.elapsed().as_secs_f64();
    loop {
        let began = Instant::now();
        let next = brought
            .recv()
            .map_err(|_| "who brings texts to a device has ended: this is a bug")??;
        runs.seconds().texts += began.elapsed().as_secs_f64();
        let Brought::Pieces(pieces, text, seconds) = next else { break };
        runs.seconds().upload += seconds;
        if let Some(text) = text
            && let Some(old) = runs.adopt(&pieces, text)?
        {
            // If nobody brings more, it is of no use.
            _ = give_back.send(old);
        }
        runs.take(&pieces, &mut tell)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    if !stop.load(Ordering::Relaxed) {
        runs.end(tell)?;
    }
    Ok(())
}
