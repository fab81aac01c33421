//! Who drives a device that inverts? One thread: it counts batches of texts, waits for the device, and tells what became of
//! them. Another one brings the texts of the next batches there meanwhile, a third has their forms found, and a fourth makes terms of these. No worker waits.

use super::inverter::{Hooks, Inverter, spent};
use super::machine::{DeviceMemory, Machine, Uploader};
use super::runs::{Event, OpenLists, Runs};
use super::text::{PieceText, is_fitting, parts};
use crate::crew::Awaited;
use crate::dictionary::closed::{ClosedError, Wake};
use crate::dictionary::text_buffers::TextBuffers;
use crate::gpu::error::GpuError;
use crate::pages;
use crate::shown::panicked;
use crate::text::analysis::Analysis;
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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
    /// Opens the file of the lists of a run, where they are put.
    pub lists: OpenLists,
    /// Where texts lie; they end with the last batch.
    pub buffers: Arc<TextBuffers>,
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

/// What the thread that drives a device waits for.
enum Message {
    /// Pieces, their texts on the device if there is room for them ahead, and the seconds that this took.
    Brought(Vec<PieceText>, Option<DeviceMemory>, f64),
    /// Nobody could bring them.
    Failed(GpuError),
    /// Who brings them panicked.
    Panicked(Box<dyn Any + Send>),
    /// There will be no more.
    End,
    /// Forms were found, or the host has made terms of them.
    Found,
}

/// Texts that are on the device beside those of the batch whose forms were found last: of the next, and of one that is brought.
const TEXTS_AHEAD: usize = 2;

/// Brings texts to a device, batch after batch, whenever there may be one more; those on the device that nobody needs any more come
/// back. When there are no more batches `buffers` end, so that texts are freed here, beside the thread that drives the device.
fn bring(
    mut uploader: Box<dyn Uploader>,
    buffers: &TextBuffers,
    batches: &Receiver<Vec<PieceText>>,
    (room, done): (&Receiver<Option<DeviceMemory>>, &Receiver<Arc<Vec<PieceText>>>),
    to: &Sender<Message>,
) {
    for mut pieces in batches {
        done.try_iter().for_each(drop);
        // Whoever has gone wants no texts.
        let Ok(old) = room.recv() else { return };
        let began = Instant::now();
        let brought = match is_fitting(&pieces) {
            true => {
                for piece in &mut pieces {
                    // SAFETY: a buffer gives memory that is not pinned, and drops what comes back before it frees that; nobody else pins any.
                    piece.bytes.pin(|memory| unsafe { uploader.pin(memory) });
                }
                uploader.upload(&parts(&pieces), old).map(Some)
            }
            false => Ok(None),
        };
        let seconds = spent(began);
        let message = match brought {
            Ok(text) => Message::Brought(pieces, text, seconds),
            // Whoever needs them makes room.
            Err(error) if error.is_out_of_memory() => Message::Brought(pieces, None, seconds),
            Err(error) => Message::Failed(error),
        };
        if to.send(message).is_err() {
            return;
        }
    }
    // Whoever has gone wants to know nothing.
    _ = to.send(Message::End);
    buffers.end();
    done.iter().for_each(drop);
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
    let (to, messages) = channel();
    let ((room, rooms), (done, free)) = (channel(), channel());
    (0..TEXTS_AHEAD).for_each(|_| _ = room.send(None));
    let found = to.clone();
    let hooks = Hooks {
        // Whoever has gone wants to know nothing, and has no use for room.
        tell: Arc::new(move || _ = found.send(Message::Found)),
        back: Arc::new(move |old| _ = room.send(old)),
    };
    let mut inverter = Inverter::new(open()?, how.analysis, how.threads, hooks)?;
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.run_limit, how.lists, stop.clone());
    let uploader = runs.uploader()?;
    let thread = Builder::new().name("uploader".into());
    let buffers = how.buffers;
    let bring = move || {
        let bring = || bring(uploader, &buffers, &batches, (&rooms, &free), &to);
        if let Err(cause) = catch_unwind(AssertUnwindSafe(bring)) {
            // Whoever has gone wants to know nothing.
            _ = to.send(Message::Panicked(cause));
        }
    };
    *uploading = Some(thread.spawn(bring)?);
    runs.seconds().open = spent(began);
    let mut brought: VecDeque<(Vec<PieceText>, Option<DeviceMemory>)> = VecDeque::new();
    let mut over = false;
    while !stop.load(Ordering::Relaxed) {
        // Forms are found first: the host makes terms of them while the batch before is counted.
        if runs.has_room()
            && let Some((pieces, text)) = brought.pop_front()
        {
            runs.find(pieces, text);
            continue;
        }
        let next = match messages.try_recv() {
            Ok(message) => message,
            Err(_) if runs.is_ready() => {
                // If nobody brings more, it frees them itself.
                _ = done.send(runs.take_next(&mut tell)?);
                continue;
            }
            Err(_) if over && !runs.has_coming() && brought.is_empty() => {
                runs.end(tell)?;
                // The system closes the device meanwhile, which takes as long; if it gives no thread, what is spare goes with the process.
                let _spare = Awaited::begin("spare", pages::give_back);
                // Whoever brings texts has the device, too, until it knows that no more come back.
                drop((runs, done));
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
            Message::Brought(pieces, text, seconds) => {
                runs.seconds().upload += seconds;
                brought.push_back((pieces, text));
            }
            Message::Failed(error) => return Err(error.into()),
            Message::Panicked(cause) => resume_unwind(cause),
            Message::End => over = true,
            Message::Found => {}
        }
    }
    Ok(())
}
