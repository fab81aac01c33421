//! Threads that share work again and again. They stay: starting one takes longer than many a piece
//! of the work, and blocks allocations of other threads meanwhile. And threads that make one thing.

#![allow(unsafe_code)]

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle, Scope};
use std::{fmt, io};

type CrewJob = Box<dyn FnOnce() + Send>;

/// Cores that this process may use; 1 where the system does not tell.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Ignores poison: a panic is reported to the thread that waits for the one that panicked, and what
/// is behind such locks is whole after any panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that does what it is sent, until no sender is left.
struct Hand {
    jobs: Sender<CrewJob>,
    /// Dropped behind the sender, and waited for; a panic of its work has been reported.
    _thread: Awaited<()>,
}

pub(crate) struct Crew {
    name: &'static str,
    hands: Vec<Hand>,
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("hands", &self.hands.len()).finish_non_exhaustive()
    }
}

impl Crew {
    /// Threads of this name are started when there is work for them.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, hands: Vec::new() }
    }

    /// Does all of the work, each piece on a thread of its own as far as they have begun; returns
    /// the results in order. If a piece panics, so does this once all have ended.
    pub(crate) fn all<T: Send>(&mut self, work: Vec<impl FnOnce() -> T + Send>) -> Vec<T> {
        let mut came: Vec<Option<T>> = Vec::new();
        came.resize_with(work.len(), || None);
        let pieces = work.into_iter().zip(&mut came).collect();
        self.share(usize::MAX, pieces, |(work, came)| *came = Some(work()));
        came.into_iter().map(|came| came.expect("every piece was done")).collect()
    }

    /// What `work` makes of each number below `count`, in their order. Each of at most this many
    /// threads, of which this one is one, begins with a state of its own and takes the next number.
    ///
    /// # Errors
    /// The failure of the least number that has failed; nobody begins another one after it.
    ///
    /// # Panics
    /// If the work does, once all have ended.
    pub(crate) fn in_order<S: Default, T: Send, E: Send>(
        &mut self,
        threads: usize,
        count: usize,
        work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let next = AtomicUsize::new(0);
        let take = || {
            let mut state = S::default();
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return made;
                }
                let one = work(&mut state, number);
                if one.is_err() {
                    next.store(count, Ordering::Relaxed);
                }
                made.push((number, one));
            }
        };
        let made = self.all(vec![&take; threads.clamp(1, count.max(1))]);
        let mut made: Vec<(usize, Result<T, E>)> = made.into_iter().flatten().collect();
        made.sort_unstable_by_key(|(number, _)| *number);
        made.into_iter().map(|(_, one)| one).collect()
    }

    /// Does the work of all pieces: this thread and at most `others` take the next one when they
    /// have done one. A thread that has not begun when all are taken, which may be for milliseconds
    /// where all cores are busy, is not waited for. If a piece panics, so does this once all have
    /// ended.
    pub(crate) fn share<T: Send>(
        &mut self,
        others: usize,
        pieces: Vec<T>,
        work: impl Fn(T) + Sync,
    ) {
        let pieces: Vec<Mutex<Option<T>>> =
            pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
        let work = |number: usize| {
            let piece = lock(&pieces[number]).take();
            work(piece.expect("a piece is taken once"));
        };
        let work: &(dyn Fn(usize) + Sync) = &work;
        let count = pieces.len();
        // SAFETY: only the lifetime changes. All pieces are done before this function ends, and a
        // thread that finds all taken does not use the work.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync)>(
                work,
            )
        };
        let next = AtomicUsize::new(0);
        let done = Mutex::default();
        let shared = Arc::new(SharedWork { work, count, next, done, all: Condvar::new() });
        for number in 0..others.min(count.saturating_sub(1)) {
            let here = shared.clone();
            // If the system gives no more threads, those that there are do it.
            let Some(hand) = self.hand(number) else { break };
            _ = hand.jobs.send(Box::new(move || here.take()));
        }
        shared.take();
        let mut done = lock(&shared.done);
        while done.pieces < count {
            done = shared.all.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(cause) = done.panic.take() {
            drop(done);
            resume_unwind(cause);
        }
    }

    /// Starts the thread if there is none; none if the system gives none.
    fn hand(&mut self, number: usize) -> Option<&Hand> {
        if number >= self.hands.len() {
            let (jobs, from) = channel();
            let work = move || from.into_iter().for_each(|job: CrewJob| job());
            let thread = Awaited::begin(self.name, work).ok()?;
            self.hands.push(Hand { jobs, _thread: thread });
        }
        self.hands.get(number)
    }
}

/// Pieces of work that threads take one after the other.
struct SharedWork {
    /// Does a piece by its number.
    work: *const (dyn Fn(usize) + Sync),
    count: usize,
    /// The first that is not taken.
    next: AtomicUsize,
    done: Mutex<DonePieces>,
    all: Condvar,
}

#[derive(Default)]
struct DonePieces {
    pieces: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: several threads may use the work at once, and only those do that have taken a piece, for
// which `share` waits.
unsafe impl Send for SharedWork {}
// SAFETY: as above.
unsafe impl Sync for SharedWork {}

impl SharedWork {
    fn take(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            // SAFETY: `share`, whose the work is, waits until this piece is done.
            let work = unsafe { &*self.work };
            let came = catch_unwind(AssertUnwindSafe(|| work(number)));
            let mut done = lock(&self.done);
            done.pieces += 1;
            if let Err(cause) = came {
                done.panic.get_or_insert(cause);
            }
            if done.pieces == self.count {
                self.all.notify_one();
            }
        }
    }
}

/// Starts a thread of this name, for what takes a thread of its own.
pub(crate) fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}

/// Begins to make something in a thread beside this one; what is returned waits for it, or makes it
/// itself if the system gives no more threads. Panics as the thread did.
pub(crate) fn beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    make: impl Fn() -> T + Send + Copy + 'scope,
) -> impl FnOnce() -> T {
    let started = Builder::new().spawn_scoped(scope, make);
    move || match started {
        Ok(thread) => thread.join().unwrap_or_else(|cause| resume_unwind(cause)),
        Err(_) => make(),
    }
}

/// A result that a thread makes meanwhile. Dropping it waits for the thread: what it uses must not
/// be used when the job has ended.
pub(crate) struct Awaited<T>(Option<JoinHandle<T>>);

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Awaited").field(&self.0).finish()
    }
}

impl<T: Send + 'static> Awaited<T> {
    pub(crate) fn begin(name: &str, make: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        Ok(Self(Some(spawn(name, make)?)))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it is made. Panics as the thread did.
    pub(crate) fn made(self) -> T {
        self.ended().unwrap_or_else(|cause| resume_unwind(cause))
    }

    /// Waits until it is made, or the thread has panicked.
    pub(crate) fn ended(mut self) -> thread::Result<T> {
        self.0.take().expect("it is waited for once").join()
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        _ = self.0.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_stands_in_the_order_of_the_work() {
        let mut crew = Crew::new("test");
        for pieces in [0, 1, 5, 3, 9] {
            let text: Vec<String> = (0..pieces).map(|n| format!("piece {n}")).collect();
            let mut longer = vec![String::new(); pieces];
            let work = text.iter().zip(&mut longer).map(|(text, longer)| {
                move || {
                    *longer = text.repeat(2);
                    text.as_str()
                }
            });
            let came = crew.all(work.collect());
            assert!(came.iter().eq(text.iter()));
            assert!(longer.iter().zip(&text).all(|(longer, text)| *longer == text.repeat(2)));
        }
        assert_eq!(crew.hands.len(), 8);
    }

    #[test]
    fn shared_pieces_are_done_once_each() {
        let mut crew = Crew::new("test");
        for (others, count) in [(0, 5), (3, 0), (3, 1), (3, 1000), (9, 7)] {
            let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..50 {
                crew.share(others, (0..count).collect(), |n: usize| {
                    _ = done[n].fetch_add(1, Ordering::Relaxed)
                });
            }
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 50));
        }
        let busy = AtomicUsize::new(0);
        let fails = AssertUnwindSafe(|| {
            crew.share(2, (0..20).collect(), |n: usize| {
                busy.fetch_add(1, Ordering::Relaxed);
                assert_ne!(n, 3, "piece {n}");
            });
        });
        assert!(catch_unwind(fails).is_err());
        assert_eq!(busy.into_inner(), 20);
        assert_eq!(crew.all(vec![|| 1, || 2]), [1, 2]);
    }

    #[test]
    fn numbers_are_taken_in_turn_until_one_fails() {
        let mut crew = Crew::new("test");
        for (threads, count) in [(0, 3), (1, 9), (3, 1), (4, 100), (3, 0)] {
            let work = |seen: &mut usize, number: usize| {
                *seen += 1;
                assert!(*seen <= number + 1, "each begins with none");
                Ok::<_, usize>(number * 2)
            };
            let made = crew.in_order(threads, count, work).unwrap();
            assert!(made.into_iter().eq((0..count).map(|number| number * 2)));
            let begun = AtomicUsize::new(0);
            let work = |(): &mut (), number: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if number >= 5 { Err(number) } else { Ok(number) }
            };
            let failed = crew.in_order(threads, count, work).err();
            assert_eq!(failed, (count > 5).then_some(5));
            assert!(begun.into_inner() <= count.min(6 + threads));
        }
    }

    #[test]
    fn a_panic_waits_for_all_and_ends_no_thread() {
        let mut crew = Crew::new("test");
        for fails in [0, 2, 3] {
            let mut done = [false; 4];
            let work = done.iter_mut().enumerate().map(|(n, done)| {
                move || {
                    assert_ne!(n, fails, "piece {n}");
                    thread::sleep(std::time::Duration::from_millis(5));
                    *done = true;
                }
            });
            let work = work.collect();
            assert!(catch_unwind(AssertUnwindSafe(|| crew.all(work))).is_err());
            assert!(done.iter().enumerate().all(|(n, done)| *done == (n != fails)));
        }
        assert_eq!(crew.all(vec![|| 1, || 2]), [1, 2]);
    }
}
