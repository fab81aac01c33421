//! Where do the bytes of a piece lie? In memory of their own, or where a device can take them from,
//! so that nobody copies what goes there as it is.

use crate::dictionary::device::text_buffers::TextBuffer;
use rustix::io::{Errno, pread};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

pub enum PieceBytes {
    Own(Vec<u8>),
    /// In memory from which a device can take them.
    ForDevice(TextBuffer),
}

impl PieceBytes {
    /// Bytes for which there is room.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.capacity(),
            Self::ForDevice(bytes) => bytes.capacity(),
        }
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        match self {
            Self::Own(bytes) => bytes.reserve_exact(more),
            Self::ForDevice(bytes) => bytes.reserve(more),
        }
    }

    /// Forgets what is behind the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Own(bytes) => bytes.truncate(len),
            Self::ForDevice(bytes) => bytes.truncate(len),
        }
    }

    pub(super) fn forget(&mut self, count: usize) {
        self.copy_within(count.., 0);
        self.truncate(self.len() - count);
    }

    pub(super) fn extend(&mut self, more: &[u8]) {
        match self {
            Self::Own(bytes) => bytes.extend_from_slice(more),
            Self::ForDevice(bytes) => bytes.extend([more]),
        }
    }

    /// Appends what a file has from `at` on, as much as there is room for, and at most so many
    /// bytes; tells how many there were, and gives them to `look` while they are in the caches.
    pub(super) fn read_at(
        &mut self,
        (file, at): (&File, u64),
        most: usize,
        look: impl FnOnce(&[u8]),
    ) -> io::Result<usize> {
        match self {
            Self::Own(bytes) => {
                let before = bytes.len();
                let read = read_at(file, bytes, at, most)?;
                look(&bytes[before..]);
                Ok(read)
            }
            Self::ForDevice(bytes) => NEAR.with_borrow_mut(|near| {
                near.clear();
                near.reserve(most);
                let most = most.min(bytes.capacity() - bytes.len());
                let read = read_at(file, near, at, most)?;
                look(near);
                bytes.extend_far(near);
                Ok(read)
            }),
        }
    }
}

thread_local! {
    /// What is read on its way to memory of a device's. The system writes three times as fast to
    /// what is in the caches, and that memory is not.
    static NEAR: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads as many bytes as a buffer has room for, at most so many, and tells how many there were.
pub(super) fn read_at(
    file: &File,
    buffer: &mut Vec<u8>,
    at: u64,
    most: usize,
) -> io::Result<usize> {
    loop {
        let room = buffer.spare_capacity_mut();
        let most = most.min(room.len());
        match pread(file, &mut room[..most], at) {
            Err(Errno::INTR) => {}
            read => {
                let bytes = read?.0.len();
                // SAFETY: so many bytes were read, to where the buffer's room begins.
                unsafe { buffer.set_len(buffer.len() + bytes) };
                return Ok(bytes);
            }
        }
    }
}

impl Default for PieceBytes {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl From<Vec<u8>> for PieceBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Own(bytes)
    }
}

impl Deref for PieceBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::ForDevice(bytes) => bytes,
        }
    }
}

impl DerefMut for PieceBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::ForDevice(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn both_kinds_hold_the_same() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"the mill stands at the river").unwrap();
        let mut both = [PieceBytes::default(), PieceBytes::ForDevice(TextBuffer::default())];
        for bytes in &mut both {
            assert_eq!(bytes.read_at((&file, 0), 100, |_| ()).unwrap(), 0);
            assert!(bytes.is_empty());
            bytes.reserve(100);
            assert!(bytes.capacity() >= 100);
            assert_eq!(bytes.read_at((&file, 4), 4, |seen| assert_eq!(seen, b"mill")).unwrap(), 4);
            bytes.extend(b", ");
            let look = |seen: &[u8]| assert_eq!(seen, b"the river");
            assert_eq!(bytes.read_at((&file, 19), 100, look).unwrap(), 9);
            assert_eq!(**bytes, *b"mill, the river");
            bytes.forget(6);
            bytes.truncate(5);
            bytes[0] = b'T';
            assert_eq!(**bytes, *b"The r");
            bytes.forget(5);
            assert!(bytes.is_empty());
        }
    }
}
