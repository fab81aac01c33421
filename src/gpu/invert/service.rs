//! Who drives a device that inverts? One thread: it counts batches in the order of the input, and
//! tells what became of them. Another thread brings the texts of the next batches to the device
//! meanwhile. No worker waits.

use super::inverter::{Inverter, InverterHooks, ParseLines, spent};
use super::machine::{DeviceMemory, Machine, Uploader};
use super::runs::{Event, Runs};
use super::text::{PieceText, is_fitting, parts};
use crate::crew::Awaited;
use crate::dictionary::closed::{ClosedError, Wake};
use crate::dictionary::device::text_buffers::TextBuffers;
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
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Opens the device, on the thread that drives it.
pub(crate) type OpenMachine = Box<dyn FnOnce() -> Result<Box<dyn Machine>, ClosedError> + Send>;

pub(crate) struct Inverting {
    /// How text becomes terms.
    pub analysis: Analysis,
    /// Threads that make terms of forms.
    pub threads: usize,
    /// Where runs end ([`Budget::run_limit`](crate::order::Budget)).
    pub run_limit: u64,
    /// Lists are encoded on the device where it has room for them, with
    /// [`bp128`](crate::index::list::Form::BP128).
    pub encodes: bool,
    /// That of the generation, where lists are put.
    pub folder: PathBuf,
    /// Where texts lie; they end with the last batch.
    pub buffers: Arc<TextBuffers>,
    /// Makes texts of lines that the device cannot read.
    pub parse: ParseLines,
}

/// What became of texts, or why nothing more will.
pub(crate) type Outcome = Result<Event, ClosedError>;

/// A thread that drives a device.
pub(crate) struct InvertService {
    batches: Option<Sender<Vec<PieceText>>>,
    outcomes: Receiver<Outcome>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl InvertService {
    /// Starts it; `wake` is called whenever there is an outcome.
    pub(crate) fn start(open: OpenMachine, how: Inverting, wake: Wake) -> io::Result<Self> {
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

    pub(crate) fn send(&self, pieces: Vec<PieceText>) {
        if let Some(batches) = &self.batches {
            // A thread that has ended has told why.
            _ = batches.send(pieces);
        }
    }

    /// No pieces will come any more.
    pub(crate) fn end(&mut self) {
        self.batches = None;
    }

    /// The next outcome, if there is one. Never waits.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
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

/// What the thread that drives a device waits for.
enum Message {
    Brought(Brought),
    Failed(GpuError),
    Panicked(Box<dyn Any + Send>),
    /// There will be no more batches.
    End,
    /// Forms were found, or terms made.
    GoOn,
}

/// A batch whose texts are on the device, if there is room for them ahead.
struct Brought {
    pieces: Vec<PieceText>,
    text: Option<DeviceMemory>,
    /// How long pinning and copying took, in seconds.
    pin: f64,
    upload: f64,
}

/// Texts that are on the device beside those of the batch whose forms were found last: of the next,
/// and of one that is brought.
const TEXTS_AHEAD: usize = 2;

/// What whoever brings texts takes: batches, room for one more, and batches of which nobody needs
/// the texts any more.
struct Coming {
    batches: Receiver<Vec<PieceText>>,
    room: Receiver<Option<DeviceMemory>>,
    done: Receiver<Arc<Vec<PieceText>>>,
    buffers: Arc<TextBuffers>,
}

/// Brings texts to the device, batch after batch, whenever there may be one more; those on the
/// device that nobody needs any more come back. When there are no more batches the buffers end, so
/// that texts are freed here, beside the thread that drives the device.
fn bring(mut uploader: Box<dyn Uploader>, coming: &Coming, to: &Sender<Message>) {
    // Whoever has gone wants no texts.
    while let Ok(old) = coming.room.recv() {
        let Ok(mut pieces) = coming.batches.recv() else {
            // Whoever has gone wants to know nothing.
            _ = to.send(Message::End);
            coming.buffers.end();
            return coming.done.iter().for_each(drop);
        };
        let (mut pin, mut upload) = (0.0, 0.0);
        let brought = match is_fitting(&pieces) {
            true => {
                let began = Instant::now();
                for piece in &mut pieces {
                    // SAFETY: a buffer gives memory that is not pinned, and drops what comes back
                    // before it frees that; nobody else pins any.
                    piece.bytes.pin(|memory| unsafe { uploader.pin(memory) });
                }
                pin = spent(began);
                let brought = uploader.upload(&parts(pieces.iter()), old).map(Some);
                upload = spent(began) - pin;
                brought
            }
            false => Ok(None),
        };
        let brought = match brought {
            // Whoever needs them makes room.
            Err(error) if error.is_out_of_memory() => Ok(None),
            brought => brought,
        };
        let message = match brought {
            Ok(text) => Message::Brought(Brought { pieces, text, pin, upload }),
            Err(error) => Message::Failed(error),
        };
        if to.send(message).is_err() {
            return;
        }
    }
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
    let machine = open()?;
    let ((to, messages), (give_room, room), (give, done)) = (channel(), channel(), channel());
    for _ in 0..TEXTS_AHEAD {
        _ = give_room.send(None);
    }
    let told = to.clone();
    let hooks = InverterHooks {
        // Whoever has gone wants to know nothing, and has no use for room.
        tell: Arc::new(move || _ = told.send(Message::GoOn)),
        back: Arc::new(move |old| _ = give_room.send(old)),
        parse: how.parse,
    };
    let mut inverter = Inverter::new(machine, &how.analysis, how.threads, &hooks)?;
    drop(hooks);
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.run_limit, how.folder, stop.clone());
    let (uploader, coming) =
        (runs.uploader()?, Coming { batches, room, done, buffers: how.buffers });
    let bring = move || {
        let bring = || bring(uploader, &coming, &to);
        if let Err(cause) = catch_unwind(AssertUnwindSafe(bring)) {
            // Whoever has gone wants to know nothing.
            _ = to.send(Message::Panicked(cause));
        }
    };
    *uploading = Some(Builder::new().name("uploader".into()).spawn(bring)?);
    runs.seconds().open = spent(began);
    let (mut brought, mut ended) = (VecDeque::<Brought>::new(), false);
    while !stop.load(Ordering::Relaxed) {
        // Forms are found first: the host makes terms of them while the batch before is counted.
        while runs.has_room()
            && let Some(Brought { pieces, text, pin, upload }) = brought.pop_front()
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
                        // They are filled again.
                        false => drop(pieces),
                        // They are freed. If nobody brings more, it frees them itself.
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
                // Whoever brings texts has the device, too, until it knows that no more come back.
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
