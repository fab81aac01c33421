//! The thread that drives a device that inverts: it counts batches in the order of the input, and
//! tells the outcomes, while another thread uploads the texts of the next batches. No worker waits.

use super::inverter::{Inverter, InverterHooks, spent};
use super::machine::{DeviceMemory, InvertMachine, Uploader};
use super::runs::{RunEvent, Runs};
use super::text::{PieceText, is_fitting, parts};
use crate::buffers::TextBuffers;
use crate::crew::Awaited;
use crate::dictionary::closed::{ClosedError, Wake};
use crate::gpu::floor::error::GpuError;
use crate::pages;
use crate::shown::panicked;
use crate::text::analysis::Analysis;
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// Runs on the thread that drives the device.
pub(crate) type OpenMachine =
    Box<dyn FnOnce() -> Result<Box<dyn InvertMachine>, ClosedError> + Send>;

pub(crate) struct InvertSettings {
    pub analysis: Analysis,
    /// Threads that make terms of forms.
    pub threads: usize,
    /// The number of the first run.
    pub first_run: u32,
    /// See [`Budget::run_limit`](crate::order::Budget).
    pub run_limit: u64,
    /// The device encodes lists where it has room for them, with
    /// [`bp128`](crate::index::list::Form::BP128).
    pub encodes: bool,
    /// The generation's folder, where lists are put.
    pub folder: PathBuf,
    /// Where texts lie; they end with the last batch.
    pub buffers: Arc<TextBuffers>,
}

pub(crate) type InvertOutcome = Result<RunEvent, ClosedError>;

pub(crate) struct InvertService {
    batches: Option<Sender<Vec<PieceText>>>,
    /// Dropped behind the sender, and waited for.
    _thread: Awaited<()>,
    outcomes: Receiver<InvertOutcome>,
    stop: Arc<AtomicBool>,
}

impl InvertService {
    /// `wake` is called whenever there is an outcome.
    pub(crate) fn start(open: OpenMachine, how: InvertSettings, wake: Wake) -> io::Result<Self> {
        let (batches, from) = channel();
        let (to, outcomes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = Awaited::begin("inverter", move || {
            let tell = |outcome: InvertOutcome| {
                // If the receiver is gone nobody wants it; the same below.
                _ = to.send(outcome);
                wake();
            };
            // Waited for at the end: it ends when no more batches come.
            let mut uploading = None;
            let driven = AssertUnwindSafe(|| {
                drive(open, how, from, stopped, &mut uploading, |e| tell(Ok(e)))
            });
            match catch_unwind(driven) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tell(Err(error)),
                Err(panic) => {
                    let message = panicked(&*panic);
                    let error = format!(
                        "the thread that drives a device panicked: {message} (this is a bug: please report it)"
                    );
                    tell(Err(error.into()));
                }
            }
        })?;
        Ok(Self { batches: Some(batches), _thread: thread, outcomes, stop })
    }

    pub(crate) fn send(&self, pieces: Vec<PieceText>) {
        if let Some(batches) = &self.batches {
            // A thread that has ended has told why.
            _ = batches.send(pieces);
        }
    }

    pub(crate) fn end(&mut self) {
        self.batches = None;
    }

    /// Never waits.
    pub(crate) fn outcome(&self) -> Option<InvertOutcome> {
        self.outcomes.try_recv().ok()
    }
}

impl Drop for InvertService {
    /// The thread is waited for then: a device must not be used when the job has ended.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

enum Message {
    Brought(BroughtPieces),
    Failed(GpuError),
    Panicked(Box<dyn Any + Send>),
    /// There will be no more batches.
    End,
    /// Forms were found, or terms made.
    GoOn,
}

/// `text` is none if the device had no room.
struct BroughtPieces {
    pieces: Vec<PieceText>,
    text: Option<DeviceMemory>,
    /// Seconds of pinning and copying.
    pin: f64,
    upload: f64,
}

/// Texts on the device beside the batch whose forms were found last: the next, and one uploaded.
const TEXTS_AHEAD: usize = 2;

/// For the uploading thread: batches, room for one more, and batches whose texts were used.
struct ComingBatches {
    batches: Receiver<Vec<PieceText>>,
    room: Receiver<Option<DeviceMemory>>,
    done: Receiver<Arc<Vec<PieceText>>>,
    buffers: Arc<TextBuffers>,
}

/// Uploads texts, batch after batch, whenever there is room for one more; `room` has memory to use
/// again. After the last batch the buffers end, so that texts are freed here, beside the driver.
fn bring(mut uploader: Box<dyn Uploader>, coming: &ComingBatches, to: &Sender<Message>) {
    while let Ok(old) = coming.room.recv() {
        let Ok(mut pieces) = coming.batches.recv() else {
            _ = to.send(Message::End);
            coming.buffers.end();
            return coming.done.iter().for_each(drop);
        };
        let mut pin = 0.0;
        let mut upload = 0.0;
        let brought = match is_fitting(&pieces) {
            true => {
                let began = Instant::now();
                for piece in &mut pieces {
                    // SAFETY: a buffer has memory that is not pinned, and drops the pin before it
                    // frees that; nobody else pins any.
                    piece.bytes.pin(|memory| unsafe { uploader.pin(memory) });
                }
                pin = spent(began);
                let brought = uploader.upload(&parts(&pieces), old).map(Some);
                upload = spent(began) - pin;
                brought
            }
            false => Ok(None),
        };
        let brought = match brought {
            // The reader of the texts makes room.
            Err(error) if error.is_out_of_memory() => Ok(None),
            brought => brought,
        };
        let message = match brought {
            Ok(text) => Message::Brought(BroughtPieces { pieces, text, pin, upload }),
            Err(error) => Message::Failed(error),
        };
        if to.send(message).is_err() {
            return;
        }
    }
}

/// A device that is open, whose uploading thread has begun.
struct Begun {
    runs: Runs,
    messages: Receiver<Message>,
    /// Takes pieces that are done.
    give: Sender<Arc<Vec<PieceText>>>,
}

fn begin(
    open: OpenMachine,
    how: InvertSettings,
    batches: Receiver<Vec<PieceText>>,
    stop: &Arc<AtomicBool>,
    uploading: &mut Option<Awaited<()>>,
) -> Result<Begun, ClosedError> {
    let began = Instant::now();
    let machine = open()?;
    let (to, messages) = channel();
    let (give_room, room) = channel();
    let (give, done) = channel();
    for _ in 0..TEXTS_AHEAD {
        _ = give_room.send(None);
    }
    let told = to.clone();
    let hooks = InverterHooks {
        // If the receiver is gone nobody wants it, or needs room.
        tell: Arc::new(move || _ = told.send(Message::GoOn)),
        back: Arc::new(move |old| _ = give_room.send(old)),
    };
    let mut inverter = Inverter::new(machine, &how.analysis, how.threads, &hooks)?;
    drop(hooks);
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.first_run, how.run_limit, how.folder, stop.clone());
    let uploader = runs.uploader()?;
    let coming = ComingBatches { batches, room, done, buffers: how.buffers };
    let bring = move || {
        let bring = || bring(uploader, &coming, &to);
        if let Err(cause) = catch_unwind(AssertUnwindSafe(bring)) {
            _ = to.send(Message::Panicked(cause));
        }
    };
    *uploading = Some(Awaited::begin("uploader", bring)?);
    runs.seconds().open = spent(began);
    Ok(Begun { runs, messages, give })
}

fn drive(
    open: OpenMachine,
    how: InvertSettings,
    batches: Receiver<Vec<PieceText>>,
    stop: Arc<AtomicBool>,
    uploading: &mut Option<Awaited<()>>,
    mut tell: impl FnMut(RunEvent) + Send,
) -> Result<(), ClosedError> {
    let Begun { mut runs, messages, give } = begin(open, how, batches, &stop, uploading)?;
    let mut brought = VecDeque::<BroughtPieces>::new();
    let mut ended = false;
    while !stop.load(Ordering::Relaxed) {
        // Forms are found first: the host makes terms of them while the batch before is counted.
        while runs.has_room()
            && let Some(BroughtPieces { pieces, text, pin, upload }) = brought.pop_front()
        {
            runs.seconds().pin += pin;
            runs.seconds().upload += upload;
            runs.find(pieces, text);
        }
        let next = match messages.try_recv() {
            Ok(message) => message,
            Err(_) if runs.is_ready() => {
                if let Some(pieces) = runs.take_next(&mut tell)? {
                    match ended {
                        // Their buffers are filled again.
                        false => drop(pieces),
                        // The uploading thread frees them, or, if it is gone, this.
                        true => _ = give.send(pieces),
                    }
                }
                continue;
            }
            Err(_) if ended && !runs.has_coming() => {
                runs.end(tell)?;
                // The system closes the device meanwhile, which takes as long; if it gives no
                // thread, what is spare goes with the process.
                let _spare = Awaited::begin("spare", pages::give_back);
                // The uploading thread holds the device, too, until no more come back.
                drop((runs, give));
                return Ok(());
            }
            Err(_) => {
                let began = Instant::now();
                let message = messages.recv().map_err(|_| "the inverter keeps a sender")?;
                let seconds = spent(began);
                match runs.has_coming() {
                    true => runs.seconds().terms += seconds,
                    false => runs.seconds().texts += seconds,
                }
                message
            }
        };
        match next {
            Message::Brought(batch) => brought.push_back(batch),
            Message::Failed(error) => return Err(error.into()),
            Message::Panicked(cause) => resume_unwind(cause),
            Message::End => ended = true,
            Message::GoOn => {}
        }
    }
    Ok(())
}
