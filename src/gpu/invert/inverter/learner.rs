//! Who makes terms of the forms that a device has found? A thread of its own, batch after batch, while the device finds those of the next
//! one and counts the one before.

use super::spent;
use crate::dictionary::forms::{Forms, Meaning};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Instant;

/// The forms of a batch of which terms are to be made.
#[derive(Default)]
pub(super) struct Unknown {
    /// The bytes of the new ones.
    pub(super) bytes: Vec<u8>,
    /// Where each begins, and the end, counted from what the first has.
    pub(super) places: Vec<u32>,
    /// The odd ones.
    pub(super) odd: Vec<Vec<u8>>,
}

/// What they mean.
pub(super) struct Learned {
    pub(super) meanings: Vec<Meaning>,
    pub(super) odd_meanings: Vec<Meaning>,
    /// The expansions of both, and where they stand among those of all batches.
    pub(super) expansions: Vec<u32>,
    pub(super) place: usize,
    /// Words of expansions that stay: those of odd tokens are of no use when the batch is counted.
    pub(super) kept: usize,
    /// The numbers of terms are below this.
    pub(super) numbers: u32,
    /// How long it took.
    pub(super) seconds: f64,
}

/// Terms, and how many words the expansions of their forms take.
struct Known {
    forms: Forms,
    expansions: usize,
}

impl Known {
    fn learn(&mut self, unknown: &Unknown) -> Learned {
        let began = Instant::now();
        let Unknown { bytes, places, odd } = unknown;
        let first = places.first().copied().unwrap_or(0);
        let form =
            |i: usize| &bytes[(places[i] - first) as usize..(places[i + 1] - first) as usize];
        let (count, place) = (places.len().saturating_sub(1), self.expansions);
        let (meanings, mut expansions) = self.forms.learn(count, form, place);
        let kept = place + expansions.len();
        let (odd_meanings, more) = self.forms.learn(odd.len(), |i| &odd[i], kept);
        expansions.extend(more);
        self.expansions = kept;
        let (numbers, seconds) = (self.forms.numbers(), spent(began));
        Learned { meanings, odd_meanings, expansions, place, kept, numbers, seconds }
    }
}

/// Is told that terms were made.
pub type Tell = Box<dyn Fn() + Send>;

/// The thread, and what it is asked.
pub(super) struct Learner {
    known: Arc<Mutex<Known>>,
    tell: Option<Tell>,
    thread: Option<Thread>,
    under_way: usize,
}

struct Thread {
    asked: Sender<Unknown>,
    /// What was learned, or how that panicked.
    learned: Receiver<thread::Result<Learned>>,
    handle: JoinHandle<()>,
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    // Who has panicked is told by whoever waits for it.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Learner {
    /// One that has learned nothing, and has no thread yet.
    pub(super) fn new(forms: Forms) -> Self {
        let known = Arc::new(Mutex::new(Known { forms, expansions: 0 }));
        Self { known, tell: None, thread: None, under_way: 0 }
    }

    /// Has `tell` called whenever something was learned; nothing was asked yet.
    pub(super) fn tell_by(&mut self, tell: Tell) {
        self.tell = Some(tell);
    }

    /// Asks what forms mean, and goes on; what was asked first is answered first.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn ask(&mut self, unknown: Unknown) -> io::Result<()> {
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => Thread::start(&self.known, self.tell.take())?,
        };
        // It takes questions until this is dropped.
        _ = thread.asked.send(unknown);
        self.thread = Some(thread);
        self.under_way += 1;
        Ok(())
    }

    /// The next answer, if it is there.
    ///
    /// # Panics
    /// As the thread did.
    pub(super) fn answer(&mut self) -> Option<Learned> {
        let learned = self.thread.as_ref()?.learned.try_recv().ok()?;
        self.under_way -= 1;
        Some(learned.unwrap_or_else(|cause| resume_unwind(cause)))
    }

    /// Waits for the next answer.
    ///
    /// # Panics
    /// As the thread did, or if nothing was asked.
    pub(super) fn wait(&mut self) -> Learned {
        let thread = self.thread.as_ref().expect("something was asked");
        let learned = thread.learned.recv().expect("whatever is asked is answered");
        self.under_way -= 1;
        learned.unwrap_or_else(|cause| resume_unwind(cause))
    }

    /// Waits for all answers, of which nobody needs any more.
    pub(super) fn forget_answers(&mut self) {
        while self.under_way > 0 {
            self.wait();
        }
    }

    /// Forgets all expansions; nothing is under way.
    pub(super) fn forget_expansions(&mut self) {
        lock(&self.known).expansions = 0;
    }

    /// The terms, when all that was asked is learned.
    pub(super) fn with<T>(&mut self, look: impl FnOnce(&mut Forms) -> T) -> T {
        look(&mut lock(&self.known).forms)
    }
}

impl Thread {
    fn start(known: &Arc<Mutex<Known>>, tell: Option<Tell>) -> io::Result<Self> {
        let (asked, questions) = channel::<Unknown>();
        let (to, learned) = channel();
        let known = known.clone();
        let learn = move || {
            for unknown in questions {
                let learned = catch_unwind(AssertUnwindSafe(|| lock(&known).learn(&unknown)));
                // Whoever has gone wants to know nothing.
                _ = to.send(learned);
                tell.iter().for_each(|tell| tell());
            }
        };
        let handle = Builder::new().name("learner".into()).spawn(learn)?;
        Ok(Self { asked, learned, handle })
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        if let Some(Thread { asked, learned, handle }) = self.thread.take() {
            drop((asked, learned));
            // What it has to tell was told.
            _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::Analysis;

    #[test]
    fn who_waits_hears_of_a_panic() {
        let mut learner = Learner::new(Forms::new(Analysis::default(), 2));
        let (to, told) = channel();
        learner.tell_by(Box::new(move || to.send(()).unwrap()));
        let fails = || Unknown { places: vec![0, 1], ..Unknown::default() };
        learner.ask(fails()).unwrap();
        told.recv().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| learner.answer())).is_err());
        learner.ask(fails()).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| learner.wait())).is_err());
        learner.forget_answers();
    }
}
