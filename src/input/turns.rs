//! Bounds how much is parsed at once: this many pieces, and few long documents. A document costs
//! several times its bytes while it is parsed, and what is inflated inside of a WARC record is in
//! no count of pieces. So a parser that meets one takes a part of a room that all parsers of a job
//! share, and waits until it is there. A document that is longer than the room is parsed while no
//! other parser has a piece.
//!
//! Waiting is safe: who holds room waits for nobody, and gives it back at the end of the piece; who
//! waits to be alone does not count among those that have a piece.

use crate::crew::lock;
use crate::order::{DOCUMENT_TIMES, LONG_BYTES};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Turns {
    room: usize,
    /// Pieces that are parsed at once.
    most: usize,
    /// What a document may take at most.
    document: u64,
    state: Mutex<TurnsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct TurnsState {
    taken: usize,
    /// Parsers that have a piece and do not wait to be alone.
    parsing: usize,
    /// Parsers that are alone or wait for it.
    alone: usize,
}

impl Default for Turns {
    /// Room for all, as for a parser that works alone.
    fn default() -> Self {
        Self::new(usize::MAX, usize::MAX, u64::MAX)
    }
}

impl Turns {
    /// Room for long documents of `room` bytes together, or for one that takes up to `document`
    /// bytes; at `most` this many parsers have a piece.
    pub(crate) fn new(room: usize, most: usize, document: u64) -> Self {
        Self { room, most, document, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What a document may take at most.
    pub(crate) fn document_bytes(&self) -> u64 {
        self.document
    }

    fn wait_until(&self, is: impl Fn(&TurnsState) -> bool) -> MutexGuard<'_, TurnsState> {
        let mut state = lock(&self.state);
        while !is(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
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

    /// The longest document that is held.
    pub(crate) fn longest(&self) -> u64 {
        self.of.document / DOCUMENT_TIMES
    }

    /// Begins a piece, when no other parser is alone and not too many have one.
    pub(crate) fn begin(&self) {
        let most = self.of.most;
        self.of.wait_until(|state| state.alone == 0 && state.parsing < most).parsing += 1;
    }

    /// Ends a piece that was begun, with another turn of the same parser or with this one.
    pub(crate) fn end(&self) {
        lock(&self.of.state).parsing -= 1;
        self.of.changed.notify_all();
    }

    /// Takes room for what has come to `bytes`, until [`give_back`](Self::give_back).
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        // Who has all of the room is alone already, however much it grows.
        if bytes > LONG_BYTES && bytes > self.held && self.held < self.of.room {
            self.wait(bytes.saturating_mul(2));
        }
    }

    /// One that grows takes twice what it has, so that it rarely asks.
    #[cold]
    fn wait(&mut self, bytes: usize) {
        // What is held goes first: two that hold a part and want more would wait for each other.
        self.give_back();
        let room = self.of.room;
        self.held = bytes.min(room);
        if self.held < room {
            self.of.wait_until(|state| state.taken <= room - bytes).taken += bytes;
            return;
        }
        let mut state = lock(&self.of.state);
        state.alone += 1;
        let own = state.parsing.min(1);
        state.parsing -= own;
        drop(state);
        self.of.changed.notify_all();
        let mut state = self.of.wait_until(|state| state.taken == 0 && state.parsing == 0);
        state.taken = room;
        state.parsing = own;
    }

    pub(crate) fn give_back(&mut self) {
        if self.held > 0 {
            let mut state = lock(&self.of.state);
            state.alone -= usize::from(self.held == self.of.room);
            state.taken -= std::mem::take(&mut self.held);
            drop(state);
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
        let turns = Arc::new(Turns::new(8 * LONG_BYTES, 9, u64::MAX));
        let turn = || Turn::new(turns.clone());
        let mut a = turn();
        let mut b = turn();
        let mut c = turn();
        a.take(LONG_BYTES);
        assert_eq!(lock(&turns.state).taken, 0, "it is not long");
        a.take(2 * LONG_BYTES);
        b.take(2 * LONG_BYTES);
        assert_eq!(lock(&turns.state).taken, 8 * LONG_BYTES);
        a.take(3 * LONG_BYTES);
        assert_eq!(lock(&turns.state).taken, 8 * LONG_BYTES, "it has taken that already");
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
        assert_eq!(lock(&turns.state).taken, 0);
    }

    #[test]
    fn two_that_grow_do_not_wait_for_each_other() {
        let turns = Arc::new(Turns::new(4 * LONG_BYTES, 2, u64::MAX));
        let (done, heard) = channel();
        for _ in 0..4 {
            let mut turn = Turn::new(turns.clone());
            let done = done.clone();
            std::thread::spawn(move || {
                for _ in 0..50 {
                    turn.begin();
                    (1..40).for_each(|n| turn.take(n * LONG_BYTES / 4));
                    turn.give_back();
                    turn.end();
                }
                done.send(()).unwrap();
            });
        }
        for _ in 0..4 {
            heard.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }

    #[test]
    fn whoever_parses_a_very_long_document_is_alone() {
        let turns = Arc::new(Turns::new(4 * LONG_BYTES, 3, u64::MAX));
        let (said, heard) = channel();
        let mut alone = Turn::new(turns.clone());
        let other = Turn::new(turns.clone());
        other.begin();
        alone.begin();
        let waiting = std::thread::spawn(move || {
            alone.take(100 * LONG_BYTES);
            said.send("alone").unwrap();
            alone
        });
        assert!(heard.recv_timeout(Duration::from_millis(20)).is_err(), "another has a piece");
        other.end();
        assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok("alone"));
        let mut alone = waiting.join().unwrap();
        let (said, heard) = channel();
        let next = std::thread::spawn(move || {
            other.begin();
            said.send("next").unwrap();
            other.end();
        });
        assert!(heard.recv_timeout(Duration::from_millis(20)).is_err(), "one is alone");
        alone.give_back();
        assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok("next"));
        alone.end();
        next.join().unwrap();
        let state = lock(&turns.state);
        assert_eq!((state.taken, state.parsing, state.alone), (0, 0, 0));
    }
}
