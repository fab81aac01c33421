//! Where do the bytes of pieces go when they are parsed? To whoever fills the next piece: memory
//! that was used before is mapped, and no other thread waits while the system maps it.

use crate::crew::lock;
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ThreadId};

/// Buffers of pieces that nobody uses, shared by those who fill them and those who empty them.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Bytes that a buffer has room for.
    room: usize,
    /// Buffers that are kept at most.
    most: usize,
    /// Each with the thread that emptied it.
    spare: Mutex<Vec<(ThreadId, Vec<u8>)>>,
}

impl Buffers {
    /// Keeps buffers of `room` bytes, together at most `bytes`.
    pub(crate) fn new(room: usize, bytes: usize) -> Self {
        Self { room, most: bytes / room.max(1), spare: Mutex::default() }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<(ThreadId, Vec<u8>)>> {
        // A vector is whole after any panic.
        lock(&self.spare)
    }

    /// An empty buffer with room for at least `room` bytes: the last one that this thread emptied,
    /// if there is one, since its memory is in the caches of this core. That of another thread is
    /// in those of another core.
    pub(crate) fn take(&self, room: usize) -> Vec<u8> {
        if room <= self.room {
            let (own, mut spare) = (thread::current().id(), self.spare());
            let last = spare.iter().rposition(|&(by, _)| by == own);
            if let Some(at) = last.or(spare.len().checked_sub(1)) {
                return spare.remove(at).1;
            }
        }
        Vec::with_capacity(room.max(self.room))
    }

    /// Takes a buffer back. One that is too small, or has grown for a long document, is freed.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        if !(self.room..=2 * self.room).contains(&buffer.capacity()) {
            return;
        }
        buffer.clear();
        let mut spare = self.spare();
        if spare.len() < self.most {
            spare.push((thread::current().id(), buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_as_many_as_it_may_and_none_that_grew() {
        let buffers = Buffers::new(1000, 2500);
        let taken: Vec<_> = (0..3).map(|_| buffers.take(10)).collect();
        assert!(taken.iter().all(|buffer| buffer.capacity() >= 1000));
        for mut buffer in taken {
            buffer.push(1);
            buffers.give(buffer);
        }
        assert_eq!(buffers.spare().len(), 2);
        assert!(buffers.take(5000).capacity() >= 5000, "a kept one would be too small");
        assert_eq!((buffers.take(1000).len(), buffers.spare().len()), (0, 1));
        buffers.give(Vec::with_capacity(5000));
        buffers.give(Vec::new());
        assert_eq!(buffers.spare().len(), 1);
        let [mine, other] = [1000, 1001].map(Vec::with_capacity);
        let places = [&mine, &other].map(|buffer: &Vec<u8>| buffer.as_ptr());
        let buffers = Buffers::new(1000, 2500);
        buffers.give(mine);
        thread::scope(|scope| scope.spawn(|| buffers.give(other)).join()).unwrap();
        assert_eq!([0; 2].map(|_| buffers.take(10)).map(|buffer| buffer.as_ptr()), places);
        let none = Buffers::default();
        none.give(none.take(100));
        assert!(none.spare().is_empty());
    }
}
