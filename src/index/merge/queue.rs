//! How do chunks of lists get from the threads that make them to the one that places them? By
//! parts, which threads take in order. The chunks of the least part that is not placed are placed
//! as they come; those of others wait. What waits is bounded, what is placed and not written yet
//! included; the part that is being placed may always go on by a few chunks, so that nobody waits
//! for ever.

#![forbid(unsafe_code)]

use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::files::storage::WRITE_BUFFER_BYTES;
use crate::index::run::{LaidChunk, OpenChunk, RunFiles, Stretch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Chunks of the part that is being placed wait too when they are so many, or so many bytes are
/// placed and not written. An unfinished part of the file keeps fewer until more comes: of the
/// first of its chunks a part of them, which may be long, all of the others.
const MOST_AHEAD: usize = 4;
const MOST_UNWRITTEN: usize = 4 * WRITE_BUFFER_BYTES;

/// What a payload counts while it is not written: hardly more than the file may keep of it.
fn unwritten(payload: &[u8]) -> usize {
    payload.len().min(WRITE_BUFFER_BYTES)
}

/// Chunks on their way from the threads to the file.
pub(super) struct Queue {
    state: Mutex<State>,
    /// A chunk or an end has come.
    came: Condvar,
    room: Condvar,
    parts: usize,
    /// Bytes that may wait, and then chunks of the part that is being placed.
    most_bytes: u64,
}

struct State {
    /// The next part that a thread takes.
    claimed: usize,
    /// The part that is being placed.
    head: usize,
    waiting: BTreeMap<usize, VecDeque<LaidChunk>>,
    /// Bytes of memory of chunks that wait, and of payloads that are not written.
    bytes: u64,
    /// Bytes of lists that are placed and not written, of each chunk [a few](unwritten) at most.
    unwritten: usize,
    /// Buffers of what is written, for the next chunks.
    free: Vec<Vec<u8>>,
    /// Parts that have no more chunks.
    ended: Vec<bool>,
    /// Terms and postings of each run.
    seen: Vec<(u64, u64)>,
    error: Option<IndexError>,
    stopped: bool,
}

impl State {
    /// Whether a chunk of `part` may be added.
    fn has_room(&self, part: usize, most_bytes: u64) -> bool {
        let ahead = || self.waiting.get(&part).map_or(0, VecDeque::len);
        let may_go_on = || ahead() < MOST_AHEAD && self.unwritten < MOST_UNWRITTEN;
        self.bytes <= most_bytes || part == self.head && may_go_on()
    }
}

/// Bytes of memory of what says where lists lie.
fn table_bytes(chunk: &LaidChunk) -> u64 {
    let stretches = chunk.stretches.capacity() * size_of::<Stretch>();
    let blocks = size_of_val(&*chunk.blocks);
    (stretches + blocks + chunk.terms.capacity()) as u64
}

/// The lists of a chunk that is placed, until all of them are on their way to the file.
struct Payload {
    bytes: Vec<u8>,
    queue: Arc<Queue>,
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.queue.written(std::mem::take(&mut self.bytes));
    }
}

impl Queue {
    pub(super) fn new(parts: usize, most_bytes: u64, runs: usize) -> Self {
        let state = State {
            claimed: 0,
            head: 0,
            waiting: BTreeMap::new(),
            bytes: 0,
            unwritten: 0,
            free: Vec::new(),
            ended: vec![false; parts],
            seen: vec![(0, 0); runs],
            error: None,
            stopped: false,
        };
        let [came, room] = [Condvar::new(), Condvar::new()];
        Self { state: Mutex::new(state), came, room, parts, most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        lock(&self.state)
    }

    /// The next part for a thread.
    pub(super) fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        let part = state.claimed;
        state.claimed += 1;
        (part < self.parts && !state.stopped).then_some(part)
    }

    /// Hands a chunk over; waits while there is no room for it. Returns an empty buffer for the
    /// next one.
    pub(super) fn push(&self, part: usize, chunk: LaidChunk) -> Vec<u8> {
        let mut state = self.lock();
        while !state.has_room(part, self.most_bytes) && !state.stopped {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += table_bytes(&chunk) + chunk.payload.capacity() as u64;
        state.waiting.entry(part).or_default().push_back(chunk);
        let buffer = state.free.pop().unwrap_or_default();
        let is_head = part == state.head;
        drop(state);
        if is_head {
            self.came.notify_all();
        }
        buffer
    }

    /// What was placed is on its way to the file.
    fn written(&self, mut buffer: Vec<u8>) {
        let mut state = self.lock();
        state.unwritten -= unwritten(&buffer);
        state.bytes -= buffer.capacity() as u64;
        buffer.clear();
        // Others are given back outside of the lock.
        let fits = (state.free.len() + 1) as u64 * buffer.capacity() as u64 + state.bytes;
        let rest = if fits <= self.most_bytes {
            state.free.push(buffer);
            None
        } else {
            Some(buffer)
        };
        drop(state);
        drop(rest);
        self.room.notify_all();
    }

    /// A part has no more chunks.
    pub(super) fn end(&self, part: usize, seen: &[(u64, u64)]) {
        let mut state = self.lock();
        state.ended[part] = true;
        for (sum, seen) in state.seen.iter_mut().zip(seen) {
            *sum = (sum.0 + seen.0, sum.1 + seen.1);
        }
        drop(state);
        self.came.notify_all();
    }

    pub(super) fn fail(&self, error: IndexError) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        drop(state);
        self.stop();
    }

    /// Lets all threads end.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.came.notify_all();
        self.room.notify_all();
    }

    /// How many terms and postings of each run came.
    pub(super) fn seen(&self) -> Vec<(u64, u64)> {
        self.lock().seen.clone()
    }

    /// Places all parts in order.
    pub(super) fn place_all(self: &Arc<Self>, files: &mut RunFiles) -> Result<(), IndexError> {
        let mut state = self.lock();
        while state.head < self.parts {
            if state.stopped {
                return state.error.take().map_or(Ok(()), Err);
            }
            let head = state.head;
            if let Some(chunk) = state.waiting.get_mut(&head).and_then(VecDeque::pop_front) {
                state.bytes -= table_bytes(&chunk);
                state.unwritten += unwritten(&chunk.payload);
                drop(state);
                let LaidChunk { stretches, terms, blocks, payload, .. } = chunk;
                let payload = Arc::new(Payload { bytes: payload, queue: self.clone() });
                files.place_all(OpenChunk::new((stretches, terms, blocks), Some(payload)))?;
                self.room.notify_all();
                state = self.lock();
            } else if state.ended[head] {
                state.waiting.remove(&head);
                state.head += 1;
                self.room.notify_all();
            } else {
                state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }
}

/// Stops all when its thread panics; the scope passes the panic on when they have ended.
pub(super) struct OnPanic<'a>(pub(super) &'a Queue);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of lists of one posting: hardly any payload.
    fn chunk() -> LaidChunk {
        LaidChunk { terms: vec![b'x'; 50_000], payload: vec![0; 4000], ..LaidChunk::default() }
    }

    #[test]
    fn what_waits_counts_with_its_terms() {
        let bytes = table_bytes(&chunk()) + 4000;
        assert!(bytes >= 54_000, "{bytes}");
        let queue = Queue::new(3, 10 * bytes, 1);
        for _ in 0..11 {
            assert!(queue.lock().has_room(1, queue.most_bytes));
            queue.push(1, chunk());
        }
        let room = |part| queue.lock().has_room(part, queue.most_bytes);
        assert!(!room(1) && !room(2));
        // The part that is being placed goes on, by a few chunks.
        for _ in 0..MOST_AHEAD {
            assert!(room(0));
            queue.push(0, chunk());
        }
        assert!(!room(0));
        assert_eq!(queue.lock().bytes, (11 + MOST_AHEAD as u64) * bytes);
    }

    #[test]
    fn what_is_not_written_counts_until_it_is() {
        let queue = Arc::new(Queue::new(1, MOST_UNWRITTEN as u64 + 1500, 1));
        let payload = |bytes: usize| {
            let mut state = queue.lock();
            let payload = Payload { bytes: vec![0; bytes], queue: queue.clone() };
            state.unwritten += unwritten(&payload.bytes);
            state.bytes += bytes as u64;
            payload
        };
        let (few, more) = (payload(1000), payload(2000));
        let many = [(); 4].map(|()| payload(MOST_UNWRITTEN / 4));
        assert!(!queue.lock().has_room(0, queue.most_bytes), "the file is behind");
        drop(few);
        assert!(!queue.lock().has_room(0, queue.most_bytes));
        assert!(queue.lock().free.is_empty(), "there is no memory to keep it");
        drop(many);
        assert!(queue.lock().has_room(0, queue.most_bytes));
        drop(more);
        {
            let state = queue.lock();
            assert_eq!((state.unwritten, state.bytes, state.free.len()), (0, 0, 4));
        }
        // The end of a long chunk may wait in the file for what comes behind it.
        let long = payload(9 * MOST_UNWRITTEN);
        let [behind, rest] = [payload(WRITE_BUFFER_BYTES - 1), payload(100)];
        assert!(
            queue.lock().bytes > queue.most_bytes && queue.lock().has_room(0, queue.most_bytes)
        );
        drop((long, behind, rest));
    }
}
