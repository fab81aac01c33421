//! Who makes terms of the forms that a device has found? A thread of its own, batch after batch, while the device finds those of the next
//! one and counts the one before.

use super::spent;
use crate::crew::Awaited;
use crate::crew::lock;
use crate::dictionary::forms::{Forms, Meaning, OrderedTerms};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, JoinHandle};
use std::time::Instant;

/// The forms of a batch of which terms are to be made.
#[derive(Default)]
pub(super) struct Unknown {
    /// The device knows none of the forms before.
    pub(super) forgets: bool,
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
        let Unknown { forgets, bytes, places, odd } = unknown;
        if *forgets {
            self.expansions = 0;
        }
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

/// Is told that forms were found, or terms made.
pub type Tell = Arc<dyn Fn() + Send + Sync>;

/// Who asks the thread.
pub(super) struct Asker {
    asked: Sender<Unknown>,
    expansions: Arc<AtomicUsize>,
}

impl Asker {
    /// Asks what forms mean, and goes on; what was asked first is answered first.
    pub(super) fn ask(&self, unknown: Unknown) {
        // It takes questions until this is dropped.
        _ = self.asked.send(unknown);
    }

    /// Words of the expansions of all that was answered since forms were forgotten.
    pub(super) fn expansions(&self) -> usize {
        self.expansions.load(Ordering::Relaxed)
    }
}

/// The thread, and what it answers.
pub(super) struct Learner {
    known: Arc<Mutex<Known>>,
    /// What was learned, or how that panicked.
    learned: Receiver<thread::Result<Learned>>,
    thread: Option<JoinHandle<()>>,
}

impl Learner {
    /// One that has learned nothing. `tell` is called whenever it has learned something; the thread ends when nobody can ask any more.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(forms: Forms, tell: Tell) -> io::Result<(Self, Asker)> {
        let known = Arc::new(Mutex::new(Known { forms, expansions: 0 }));
        let expansions = Arc::new(AtomicUsize::new(0));
        let ((asked, questions), (to, learned)) = (channel::<Unknown>(), channel());
        let (here, words) = (known.clone(), expansions.clone());
        let learn = move || {
            for unknown in questions {
                let learned = catch_unwind(AssertUnwindSafe(|| lock(&here).learn(&unknown)));
                if let Ok(learned) = &learned {
                    words.store(learned.kept, Ordering::Relaxed);
                }
                // Whoever has gone wants to know nothing.
                _ = to.send(learned);
                tell();
            }
        };
        let thread = Some(Builder::new().name("learner".into()).spawn(learn)?);
        Ok((Self { known, learned, thread }, Asker { asked, expansions }))
    }

    /// The next answer, if it is there.
    ///
    /// # Panics
    /// As the thread did.
    pub(super) fn answer(&mut self) -> Option<Learned> {
        let learned = self.learned.try_recv().ok()?;
        Some(learned.unwrap_or_else(|cause| resume_unwind(cause)))
    }

    /// Waits for the next answer.
    ///
    /// # Panics
    /// As the thread did, or if nothing was asked.
    pub(super) fn wait(&mut self) -> Learned {
        let learned = self.learned.recv().expect("whatever is asked is answered");
        learned.unwrap_or_else(|cause| resume_unwind(cause))
    }

    /// Has a thread bring the terms into order, when all that was asked is learned.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn in_order(&self) -> io::Result<Awaited<OrderedTerms>> {
        let known = self.known.clone();
        Awaited::begin("order", move || lock(&known).forms.in_order())
    }

    /// The terms, when all that was asked is learned.
    pub(super) fn with<T>(&mut self, look: impl FnOnce(&mut Forms) -> T) -> T {
        look(&mut lock(&self.known).forms)
    }
}

impl Drop for Learner {
    /// Whoever can ask is dropped before.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // What it has to tell was told.
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::Analysis;

    #[test]
    fn who_waits_hears_of_a_panic() {
        let (to, told) = channel();
        let tell: Tell = Arc::new(move || to.send(()).unwrap());
        let forms = Forms::new(Analysis::default(), 2);
        let (mut learner, asker) = Learner::start(forms, tell).unwrap();
        let fails = || Unknown { places: vec![0, 1], ..Unknown::default() };
        asker.ask(fails());
        told.recv().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| learner.answer())).is_err());
        asker.ask(fails());
        assert!(catch_unwind(AssertUnwindSafe(|| learner.wait())).is_err());
        drop(asker);
    }
}
