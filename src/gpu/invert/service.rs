//! Who drives devices that invert? One thread: it takes what [lanes](super::inverter) have counted,
//! in the order of the input, and tells what became of it. For each lane another thread brings the
//! texts of the next batches to its device meanwhile. No worker waits.

use super::inverter::{Inverter, InverterHooks, ParseLines, spent};
use super::machine::{DeviceMemory, Machine, Uploader};
use super::runs::{Event, OpenLists, Runs};
use super::text::{PieceText, is_fitting, parts};
use crate::crew::{Awaited, lock};
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Opens the devices, on the thread that drives them: a machine for each lane.
pub(crate) type OpenMachines =
    Box<dyn FnOnce() -> Result<Vec<Box<dyn Machine>>, ClosedError> + Send>;

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
    /// Opens the file of the lists of a run, where they are put.
    pub lists: OpenLists,
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
    pub(crate) fn start(open: OpenMachines, how: Inverting, wake: Wake) -> io::Result<Self> {
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
            let mut uploading = Vec::new();
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
            for thread in uploading {
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
    /// The pieces of a batch, their texts on the device if there is room for them ahead, and the
    /// seconds that pinning and copying took.
    Brought(Numbered, Vec<PieceText>, Option<DeviceMemory>, [f64; 2]),
    Failed(GpuError),
    Panicked(Box<dyn Any + Send>),
    /// There are so many batches, and will be no more.
    End(u64),
    Counted,
}

/// The number of a batch, and the lane that has it.
type Numbered = (u64, usize);

/// What all threads share that bring texts.
struct Coming {
    /// The number of the next batch, and the batches. Whoever has room takes one.
    batches: Mutex<(u64, Receiver<Vec<PieceText>>)>,
    buffers: Arc<TextBuffers>,
    /// Areas of memory, of which pieces of several batches have parts, are pinned by one at a time.
    pinning: Mutex<()>,
}

impl Coming {
    /// The next batch, or how many there were.
    fn next(&self) -> Result<(u64, Vec<PieceText>), u64> {
        let (number, batches) = &mut *lock(&self.batches);
        let pieces = batches.recv().map_err(|_| *number)?;
        *number += 1;
        Ok((*number - 1, pieces))
    }
}

/// Texts that are on the device of a lane beside those of the batch whose forms were found last: of
/// the next, and of one that is brought.
const TEXTS_AHEAD: usize = 2;

/// Brings texts to the device of a lane, batch after batch, whenever there may be one more; those
/// on the device that nobody needs any more come back. When there are no more batches the buffers
/// end, so that texts are freed here, beside the thread that drives the device.
fn bring(
    lane: usize,
    mut uploader: Box<dyn Uploader>,
    coming: &Coming,
    (room, done): (&Receiver<Option<DeviceMemory>>, &Receiver<Arc<Vec<PieceText>>>),
    to: &Sender<Message>,
) {
    // Whoever has gone wants no texts.
    while let Ok(old) = room.recv() {
        let (number, mut pieces) = match coming.next() {
            Ok(next) => next,
            Err(batches) => {
                // Whoever has gone wants to know nothing.
                _ = to.send(Message::End(batches));
                coming.buffers.end();
                return done.iter().for_each(drop);
            }
        };
        let mut seconds = [0.0; 2];
        let brought = match is_fitting(&pieces) {
            true => {
                let began = Instant::now();
                let pinning = lock(&coming.pinning);
                for piece in &mut pieces {
                    // SAFETY: a buffer gives memory that is not pinned, and drops what comes back
                    // before it frees that; nobody else pins any.
                    piece.bytes.pin(|memory| unsafe { uploader.pin(memory) });
                }
                drop(pinning);
                seconds[0] = spent(began);
                let brought = uploader.upload(&parts(pieces.iter()), old).map(Some);
                seconds[1] = spent(began) - seconds[0];
                brought
            }
            false => Ok(None),
        };
        let message = match brought {
            Ok(text) => Message::Brought((number, lane), pieces, text, seconds),
            // Whoever needs them makes room.
            Err(error) if error.is_out_of_memory() => {
                Message::Brought((number, lane), pieces, None, seconds)
            }
            Err(error) => Message::Failed(error),
        };
        if to.send(message).is_err() {
            return;
        }
    }
}

fn drive(
    open: OpenMachines,
    how: Inverting,
    batches: Receiver<Vec<PieceText>>,
    stop: Arc<AtomicBool>,
    uploading: &mut Vec<JoinHandle<()>>,
    mut tell: impl FnMut(Event) + Send,
) -> Result<(), ClosedError> {
    let began = Instant::now();
    let machines = open()?;
    let (to, messages) = channel();
    let (rooms, room): (Vec<_>, Vec<_>) = machines.iter().map(|_| channel()).unzip();
    for _ in 0..TEXTS_AHEAD {
        rooms.iter().for_each(|room| _ = room.send(None));
    }
    let counted = to.clone();
    let hooks = InverterHooks {
        // Whoever has gone wants to know nothing, and has no use for room.
        tell: Arc::new(move || _ = counted.send(Message::Counted)),
        back: Arc::new(move |lane, old| _ = rooms[lane].send(old)),
        parse: how.parse,
    };
    let mut inverter = Inverter::new(machines, &how.analysis, how.threads, &hooks)?;
    drop(hooks);
    if how.encodes {
        inverter = inverter.encoding();
    }
    let mut runs = Runs::new(inverter, how.run_limit, how.lists, stop.clone());
    let coming = Arc::new(Coming {
        batches: Mutex::new((0, batches)),
        buffers: how.buffers,
        pinning: Mutex::default(),
    });
    let mut done = Vec::new();
    for (lane, room) in room.into_iter().enumerate() {
        let (uploader, coming, to) = (runs.uploader(lane)?, coming.clone(), to.clone());
        let (give, free) = channel();
        done.push(give);
        let bring = move || {
            let bring = || bring(lane, uploader, &coming, (&room, &free), &to);
            if let Err(cause) = catch_unwind(AssertUnwindSafe(bring)) {
                // Whoever has gone wants to know nothing.
                _ = to.send(Message::Panicked(cause));
            }
        };
        uploading.push(Builder::new().name("uploader".into()).spawn(bring)?);
    }
    drop(coming);
    runs.seconds().open = spent(began);
    let mut brought = Vec::from_iter(
        done.iter().map(|_| VecDeque::<(Numbered, Vec<PieceText>, Option<DeviceMemory>)>::new()),
    );
    let mut batches = None;
    while !stop.load(Ordering::Relaxed) {
        // Forms are found first: the host makes terms of them while the batch before is counted.
        for brought in &mut brought {
            while let Some(((_, lane), ..)) = brought.front()
                && runs.has_room(*lane)
                && let Some((of, pieces, text)) = brought.pop_front()
            {
                runs.find(of, pieces, text);
            }
        }
        let next = match messages.try_recv() {
            Ok(message) => message,
            Err(_) if runs.is_ready() => {
                if let Some((lane, pieces)) = runs.take_next(&mut tell)? {
                    match batches {
                        // They are filled again.
                        None => drop(pieces),
                        // They are freed. If nobody brings more, it frees them itself.
                        Some(_) => _ = done[lane].send(pieces),
                    }
                }
                continue;
            }
            Err(_) if batches == Some(runs.taken()) => {
                runs.end(tell)?;
                // The system closes the device meanwhile, which takes as long; if it gives no
                // thread, what is spare goes with the process.
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
            Message::Brought(of, pieces, text, [pin, upload]) => {
                runs.seconds().pin += pin;
                runs.seconds().upload += upload;
                let (_, lane) = of;
                brought[lane].push_back((of, pieces, text));
            }
            Message::Failed(error) => return Err(error.into()),
            Message::Panicked(cause) => resume_unwind(cause),
            Message::End(all) => batches = Some(all),
            Message::Counted => {}
        }
    }
    Ok(())
}
