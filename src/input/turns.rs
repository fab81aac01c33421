//! Bounds how many long documents are parsed at once. A document costs several times its bytes
//! while it is parsed, and what is inflated inside of a WARC record is in no count of pieces. So
//! whoever meets one takes a part of a room that all parsers of a job share, and waits until it is
//! there; a document that is longer than the room is parsed alone.
//!
//! Waiting is safe: who holds room waits for nobody, and gives it back at the end of the piece.

use crate::crew::lock;
use crate::order::PIECE_BYTES;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Shorter documents wait for nobody.
pub(crate) const LONG_BYTES: usize = 2 * PIECE_BYTES;

#[derive(Debug)]
pub(crate) struct Turns {
    room: usize,
    taken: Mutex<usize>,
    changed: Condvar,
}

impl Default for Turns {
    /// Room for all, as for a parser that works alone.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Turns {
    /// Room for long documents of `room` bytes together, or for one of any length.
    pub(crate) fn new(room: usize) -> Self {
        Self { room, taken: Mutex::new(0), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // Nothing panics while it holds the lock.
        lock(&self.taken)
    }
}

/// What one parser has of the room; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Turn {
    of: Arc<Turns>,
    held: usize,
}

impl Turn {
    pub(crate) fn new(of: Arc<Turns>) -> Self {
        Self { of, held: 0 }
    }

    pub(crate) fn alone() -> Self {
        Self::new(Arc::default())
    }

    /// Takes room for what has come to `bytes`, until [`give_back`](Self::give_back).
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        if bytes > LONG_BYTES && bytes > self.held {
            self.wait(bytes.saturating_mul(2));
        }
    }

    /// One that grows takes twice what it has, so that it rarely asks.
    #[cold]
    fn wait(&mut self, bytes: usize) {
        // What is held goes first: two that hold a part and want more would wait for each other.
        self.give_back();
        let bytes = bytes.min(self.of.room);
        let mut taken = self.of.lock();
        while *taken > 0 && *taken > self.of.room - bytes {
            taken = self.of.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        self.held = bytes;
    }

    pub(crate) fn give_back(&mut self) {
        if self.held > 0 {
            *self.of.lock() -= std::mem::take(&mut self.held);
            self.of.changed.notify_all();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn long_documents_share_the_room() {
        let turns = Arc::new(Turns::new(8 * LONG_BYTES));
        let turn = || Turn::new(turns.clone());
        let mut a = turn();
        let mut b = turn();
        let mut c = turn();
        a.take(LONG_BYTES);
        assert_eq!(*turns.lock(), 0, "it is not long");
        a.take(2 * LONG_BYTES);
        b.take(2 * LONG_BYTES);
        assert_eq!(*turns.lock(), 8 * LONG_BYTES);
        a.take(3 * LONG_BYTES);
        assert_eq!(*turns.lock(), 8 * LONG_BYTES, "it has taken that already");
        let (said, heard) = channel();
        let waiting = std::thread::spawn(move || {
            // Longer than the room: alone.
            c.take(100 * LONG_BYTES);
            said.send(()).unwrap();
            c
        });
        assert!(heard.recv_timeout(Duration::from_millis(20)).is_err());
        a.give_back();
        assert!(heard.recv_timeout(Duration::from_millis(20)).is_err());
        drop(b);
        heard.recv_timeout(Duration::from_secs(20)).unwrap();
        drop(waiting.join().unwrap());
        assert_eq!(*turns.lock(), 0);
    }

    #[test]
    fn two_that_grow_do_not_wait_for_each_other() {
        let turns = Arc::new(Turns::new(4 * LONG_BYTES));
        let (done, heard) = channel();
        for _ in 0..4 {
            let mut turn = Turn::new(turns.clone());
            let done = done.clone();
            std::thread::spawn(move || {
                for _ in 0..50 {
                    (1..40).for_each(|n| turn.take(n * LONG_BYTES / 4));
                    turn.give_back();
                }
                done.send(()).unwrap();
            });
        }
        for _ in 0..4 {
            heard.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }
}
