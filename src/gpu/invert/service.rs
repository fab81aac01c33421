//! Who drives a device that inverts? One thread: it takes batches of texts, waits for the device, and tells what became of
//! them. No worker waits.

use super::inverter::Inverter;
use super::machine::Machine;
use super::runs::{Event, Runs};
use crate::dictionary::closed::{ClosedError, Wake};
use crate::gpu::invert::text::PieceText;
use crate::shown::panicked;
use crate::text::analysis::Analysis;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
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
            let driven = AssertUnwindSafe(|| drive(open, how, &from, stopped, |e| tell(Ok(e))));
            match catch_unwind(driven) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tell(Err(error)),
                Err(panic) => {
                    let message = panicked(&*panic);
                    let error = format!("the thread that drives a device panicked: {message} (this is a bug: please report it)");
                    tell(Err(error.into()));
                }
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

fn drive(
    open: OpenMachine,
    how: Inverting,
    batches: &Receiver<Vec<PieceText>>,
    stop: Arc<AtomicBool>,
    mut tell: impl FnMut(Event),
) -> Result<(), ClosedError> {
    let began = Instant::now();
    let mut inverter = Inverter::new(open()?, how.analysis, how.threads);
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.run_limit, stop.clone());
    runs.seconds().open = began.elapsed().as_secs_f64();
    loop {
        let began = Instant::now();
        let Ok(pieces) = batches.recv() else { break };
        runs.seconds().texts += began.elapsed().as_secs_f64();
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
