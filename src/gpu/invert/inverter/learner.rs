//! Makes terms of the forms of which a device makes none, by two threads, batch after batch, while
//! the device finds the forms of the next and counts the one before: the first finds the words of
//! forms, the second looks up their terms.

use super::spent;
use crate::crew::{Awaited, lock};
use crate::dictionary::device::forms::{FormMeaning, FormReader, Forms, OrderedTerms, ReadForms};
use crate::text::analysis::Analysis;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// Forms of a batch that need terms.
#[derive(Default)]
pub(super) struct UnknownForms {
    pub(super) forgets: bool,
    pub(super) bytes: Vec<u8>,
    /// Where each begins, and its length.
    pub(super) places: Vec<[u32; 2]>,
    pub(super) odd: Vec<Vec<u8>>,
}

pub(super) struct Learned {
    pub(super) foreign: Vec<FormMeaning>,
    pub(super) odd: Vec<FormMeaning>,
    /// The expansions of both, and the number of meanings before them among those of all batches.
    pub(super) expansions: Vec<FormMeaning>,
    pub(super) place: usize,
    /// Meanings of expansions that stay; those of odd tokens are useless once the batch is counted.
    pub(super) kept: usize,
    pub(super) seconds: f64,
}

struct FormsRead {
    forgets: bool,
    forms: ReadForms,
    odd: ReadForms,
    seconds: f64,
}

impl FormsRead {
    fn of(unknown: &UnknownForms, reader: &mut FormReader) -> Self {
        let began = Instant::now();
        let UnknownForms { forgets, bytes, places, odd } = unknown;
        let form = |i: usize| &bytes[places[i][0] as usize..][..places[i][1] as usize];
        let forms = reader.read(places.len(), form);
        let odd = reader.read(odd.len(), |i| &odd[i]);
        Self { forgets: *forgets, forms, odd, seconds: spent(began) }
    }
}

/// Looks up terms; `expanded` meanings are the expansions before.
fn learn(known: &mut Forms, read: &FormsRead, expanded: usize) -> Learned {
    let began = Instant::now();
    let FormsRead { forgets, forms, odd, seconds } = read;
    let place = if *forgets { 0 } else { expanded };
    let (foreign, mut expansions) = known.learn(forms, place);
    let kept = place + expansions.len();
    let (odd, more) = known.learn(odd, kept);
    expansions.extend(more);
    Learned { foreign, odd, expansions, place, kept, seconds: seconds + spent(began) }
}

pub(crate) type TellLearned = Arc<dyn Fn() + Send + Sync>;

pub(super) struct LearnerAsker {
    asked: Sender<UnknownForms>,
    expansions: Arc<AtomicUsize>,
}

impl LearnerAsker {
    /// Asks what forms mean, and goes on; answers come in order.
    pub(super) fn ask(&self, unknown: UnknownForms) {
        _ = self.asked.send(unknown);
    }

    /// Meanings of the expansions of all answers since forms were forgotten.
    pub(super) fn expansions(&self) -> usize {
        self.expansions.load(Ordering::Relaxed)
    }
}

pub(super) struct Learner {
    /// They end, and are waited for, since all that can ask are dropped before.
    threads: Vec<Awaited<()>>,
    known: Arc<Mutex<Forms>>,
    learned: Receiver<thread::Result<Learned>>,
}

impl Learner {
    /// `threads` share the work of each step. `tell` is called whenever something is learned. It
    /// ends when nobody can ask any more.
    pub(super) fn start(
        analysis: Analysis,
        threads: usize,
        tell: TellLearned,
    ) -> io::Result<(Self, LearnerAsker)> {
        let known = Arc::new(Mutex::new(Forms::new(threads)));
        let expansions = Arc::new(AtomicUsize::new(0));
        let (asked, questions) = channel::<UnknownForms>();
        let (read, from) = channel();
        let (to, learned) = channel();
        let (done, spare) = channel::<FormsRead>();
        let here = known.clone();
        let words = expansions.clone();
        let find_words = move || {
            let mut reader = FormReader::new(analysis, threads);
            for unknown in questions {
                for FormsRead { forms, odd, .. } in spare.try_iter() {
                    reader.give_back([forms, odd]);
                }
                let words = AssertUnwindSafe(|| FormsRead::of(&unknown, &mut reader));
                // If the receiver is gone nobody wants it; the same below.
                _ = read.send(catch_unwind(words));
            }
        };
        let learn_all = move || {
            for read in from {
                let learned = read.and_then(|read: FormsRead| {
                    let expanded = words.load(Ordering::Relaxed);
                    let learn = || learn(&mut lock(&here), &read, expanded);
                    let learned = catch_unwind(AssertUnwindSafe(learn));
                    _ = done.send(read);
                    learned
                });
                if let Ok(learned) = &learned {
                    words.store(learned.kept, Ordering::Relaxed);
                }
                _ = to.send(learned);
                tell();
            }
        };
        let mut learner = Self { threads: Vec::new(), known, learned };
        // If the system refuses the second, the first has nobody to wait for.
        learner.threads.push(Awaited::begin("learner", learn_all)?);
        learner.threads.push(Awaited::begin("words", find_words)?);
        Ok((learner, LearnerAsker { asked, expansions }))
    }

    /// # Panics
    /// As the thread did.
    pub(super) fn answer(&mut self) -> Option<Learned> {
        let learned = self.learned.try_recv().ok()?;
        Some(learned.unwrap_or_else(|cause| resume_unwind(cause)))
    }

    /// # Panics
    /// As the thread did, or if nothing was asked.
    pub(super) fn wait(&mut self) -> Learned {
        let learned = self.learned.recv().expect("whatever is asked is answered");
        learned.unwrap_or_else(|cause| resume_unwind(cause))
    }

    /// Has a thread sort the terms with these codes, when all that was asked is learned.
    pub(super) fn in_order(&self, codes: Arc<Vec<u64>>) -> io::Result<Awaited<OrderedTerms>> {
        let known = self.known.clone();
        Awaited::begin("order", move || lock(&known).in_order(&codes))
    }

    /// When all that was asked is learned.
    pub(super) fn with<T>(&mut self, look: impl FnOnce(&mut Forms) -> T) -> T {
        look(&mut lock(&self.known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_hears_of_a_panic() {
        let (to, told) = channel();
        let tell: TellLearned = Arc::new(move || to.send(()).unwrap());
        let (mut learner, asker) = Learner::start(Analysis::default(), 2, tell).unwrap();
        let fails = || UnknownForms { places: vec![[0, 1]], ..UnknownForms::default() };
        asker.ask(fails());
        told.recv().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| learner.answer())).is_err());
        asker.ask(fails());
        assert!(catch_unwind(AssertUnwindSafe(|| learner.wait())).is_err());
        drop(asker);
    }
}
