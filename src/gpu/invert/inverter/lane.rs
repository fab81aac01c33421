//! How do several batches get counted at a time? Each lane has a device, or shares one, with a
//! thread of its own: while one waits for its device and reads what it has counted, another one has
//! the device do something. What a lane has counted waits until somebody has said whether it
//! belongs to the run.

use super::Counted;
use super::counter::Counter;
use crate::crew::lock;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::{DeviceMemory, Machine};
use crate::gpu::invert::text::PieceText;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Builder, JoinHandle};

/// What came of the next batch of a lane, or how counting it panicked.
type Outcome = thread::Result<Result<Vec<Counted>, GpuError>>;

/// Pieces, and their texts if these were brought.
type Asked = (Arc<Vec<PieceText>>, Option<DeviceMemory>);

/// Why a lane's thread looks what there is to do.
enum Wake {
    /// Pieces have come, forms were found, terms made, or lists taken.
    GoOn,
    End,
}

/// Wakes the thread of a lane.
#[derive(Clone)]
pub(super) struct Waker(Sender<Wake>);

impl Waker {
    /// A lane's waker, and what its thread waits for.
    pub(super) fn new() -> (Self, Woken) {
        let (wake, woken) = channel();
        (Self(wake), Woken(woken))
    }

    pub(super) fn go_on(&self) {
        // A lane that has ended has nothing to do.
        _ = self.0.send(Wake::GoOn);
    }
}

pub(super) struct Woken(Receiver<Wake>);

/// A counter, and the thread that has it count what comes.
pub(super) struct Lane<M> {
    counter: Arc<Mutex<Counter<M>>>,
    asked: Arc<Mutex<VecDeque<Asked>>>,
    outcomes: Receiver<Outcome>,
    /// The next outcome, if somebody has looked for it.
    outcome: Option<Outcome>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl<M: Machine + 'static> Lane<M> {
    /// Starts the thread, which is woken by its waker; `tell` is called whenever a batch is
    /// counted, or may be where lists do not stay.
    pub(super) fn start(
        counter: Counter<M>,
        (waker, woken): (Waker, Woken),
        tell: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let counter = Arc::new(Mutex::new(counter));
        let asked = Arc::new(Mutex::new(VecDeque::<Asked>::new()));
        let (to, outcomes) = channel();
        let (here, coming) = (counter.clone(), asked.clone());
        let count = move || {
            for wake in woken.0 {
                if let Wake::End = wake {
                    return;
                }
                let mut counter = lock(&here);
                take(&coming, &mut counter);
                if !counter.keeps() {
                    // Somebody else counts, who may wait for what was found.
                    tell();
                    continue;
                }
                if counter.is_open() {
                    continue;
                }
                let count = || {
                    let pieces = counter.ready()?;
                    Some(counter.count(&pieces, 0))
                };
                if let Some(outcome) = catch_unwind(AssertUnwindSafe(count)).transpose() {
                    // Whoever has gone wants to know nothing.
                    _ = to.send(outcome);
                    tell();
                }
            }
        };
        let thread = Some(Builder::new().name("counter".into()).spawn(count)?);
        Ok(Self { counter, asked, outcomes, outcome: None, waker, thread })
    }
}

/// Has a counter find what is asked. Whoever lets go of that has the counter meanwhile.
fn take<M: Machine>(asked: &Mutex<VecDeque<Asked>>, counter: &mut Counter<M>) {
    for (pieces, text) in lock(asked).drain(..) {
        counter.find(pieces, text);
    }
}

impl<M: Machine> Lane<M> {
    /// Its counter, when it counts nothing.
    pub(super) fn counter(&self) -> MutexGuard<'_, Counter<M>> {
        lock(&self.counter)
    }

    /// The same, which knows of all that was asked for.
    pub(super) fn asked(&self) -> MutexGuard<'_, Counter<M>> {
        let mut counter = self.counter();
        take(&self.asked, &mut counter);
        counter
    }

    /// Asks for pieces to be counted, and goes on.
    pub(super) fn ask(&self, pieces: Arc<Vec<PieceText>>, text: Option<DeviceMemory>) {
        lock(&self.asked).push_back((pieces, text));
        self.waker.go_on();
    }

    /// It may count the next batch.
    pub(super) fn go_on(&self) {
        self.waker.go_on();
    }

    /// Whether the next batch is counted.
    pub(super) fn has_counted(&mut self) -> bool {
        if self.outcome.is_none() {
            self.outcome = self.outcomes.try_recv().ok();
        }
        self.outcome.is_some()
    }

    /// What came of the next batch that was asked for.
    ///
    /// # Panics
    /// As the thread did.
    pub(super) fn counted(&mut self) -> Result<Vec<Counted>, GpuError> {
        let outcome = self.outcome.take();
        let outcome = outcome.or_else(|| self.outcomes.recv().ok());
        let outcome = outcome.expect("whatever is asked is answered");
        outcome.unwrap_or_else(|cause| resume_unwind(cause))
    }

    /// The counter, and all that was asked and is not counted, or counted and not taken, is
    /// forgotten; texts go `back`.
    pub(super) fn forget(
        &mut self,
        back: impl Fn(Option<DeviceMemory>),
    ) -> MutexGuard<'_, Counter<M>> {
        let counter = lock(&self.counter);
        // Whose texts were not brought had no room that goes back.
        let texts = lock(&self.asked).drain(..).filter_map(|(_, text)| text).collect::<Vec<_>>();
        texts.into_iter().for_each(|text| back(Some(text)));
        self.outcome = None;
        self.outcomes.try_iter().for_each(drop);
        counter
    }
}

impl<M> Drop for Lane<M> {
    fn drop(&mut self) {
        _ = self.waker.0.send(Wake::End);
        if let Some(thread) = self.thread.take() {
            // What it has to tell was told.
            _ = thread.join();
        }
    }
}
