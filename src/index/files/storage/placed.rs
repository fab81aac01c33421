//! How do several threads write one file? Each part goes to its place as soon as somebody knows
//! where that is; the checksum of the file is put together from those of the parts.
//!
//! The system lets one thread at a time write to a file, and others turn round and round until it
//! is their turn. So one thread writes, and others leave it their parts meanwhile, as far as there
//! is room: no core waits for a lock.

#![forbid(unsafe_code)]

use super::{StorageFile, put_at};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::panicking;

/// A file whose body is written in parts, in any order. Together they leave nothing out.
///
/// Memory: two buffers for parts that are left, and what is known of parts that came before their
/// turn.
#[derive(Debug)]
pub(crate) struct PlacedFile {
    file: StorageFile,
    /// Bytes of parts that are left at most.
    room: usize,
    shared: Mutex<Shared>,
    /// There is room for parts again, or nobody writes.
    has_room: Condvar,
}

/// What threads that write know of each other.
#[derive(Debug, Default)]
struct Shared {
    /// Somebody writes, and looks for parts that were left before it ends.
    is_writing: bool,
    left: Parts,
    /// A buffer for whoever writes next.
    spare: Parts,
    sums: Sums,
    /// Nothing is written any more.
    failed: Option<io::Error>,
}

/// Parts that are left to whoever writes.
#[derive(Debug, Default)]
struct Parts {
    /// Place and length of each.
    places: Vec<(u64, usize)>,
    /// Their bytes, one behind the other.
    bytes: Vec<u8>,
}

impl Parts {
    /// Adds a part, if there is room for it in so many bytes.
    fn add(&mut self, room: usize, at: u64, part: &[u8]) -> bool {
        let has_room = part.len() <= room - self.bytes.len();
        if has_room {
            self.bytes.reserve_exact(room - self.bytes.len());
            self.bytes.extend_from_slice(part);
            self.places.push((at, part.len()));
        }
        has_room
    }

    fn take(&mut self, mut part: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut start = 0;
        for (at, len) in self.places.drain(..) {
            part(at, &self.bytes[start..start + len])?;
            start += len;
        }
        self.bytes.clear();
        Ok(())
    }
}

/// The checksum of the parts up to the first that is missing.
#[derive(Debug, Default)]
struct Sums {
    bytes: u64,
    crc: crc32fast::Hasher,
    /// Length and checksum of parts behind that, by their place.
    waiting: BTreeMap<u64, (u64, u32)>,
}

impl Sums {
    fn add(&mut self, at: u64, len: u64, crc: u32) {
        self.waiting.insert(at, (len, crc));
        while let Some((len, crc)) = self.waiting.remove(&self.bytes) {
            self.crc.combine(&crc32fast::Hasher::new_with_initial_len(crc, len));
            self.bytes += len;
        }
    }
}

/// Whoever writes. If that panics nobody waits for it.
struct Writing<'a>(&'a PlacedFile);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if panicking() {
            let mut shared = self.0.shared();
            (shared.is_writing, shared.failed) = (false, Some(io::ErrorKind::Other.into()));
            self.0.has_room.notify_all();
        }
    }
}

impl PlacedFile {
    /// A file that has no body yet; parts of at most `room` bytes together are left to whoever
    /// writes.
    pub(crate) fn new(file: StorageFile, room: usize) -> Self {
        Self { file, room, shared: Mutex::default(), has_room: Condvar::new() }
    }

    /// Writes a part of the body at its place, or leaves it to the thread that writes now, which
    /// then does not return before.
    pub(crate) fn write(&self, at: u64, part: &[u8]) -> Result<(), IndexError> {
        if part.is_empty() {
            return Ok(());
        }
        let mut shared = self.shared();
        loop {
            self.check(&shared)?;
            if !shared.is_writing {
                break;
            }
            if shared.left.add(self.room, at, part) {
                return Ok(());
            }
            shared = self.has_room.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        shared.is_writing = true;
        let _writing = Writing(self);
        let mut parts = std::mem::take(&mut shared.spare);
        drop(shared);
        let mut written = self.put(at, part);
        loop {
            let mut shared = self.shared();
            self.has_room.notify_all();
            if written.is_err() || shared.left.places.is_empty() {
                (shared.is_writing, shared.failed) = (false, written.err());
                shared.spare = parts;
                return self.check(&shared);
            }
            std::mem::swap(&mut parts, &mut shared.left);
            drop(shared);
            written = parts.take(|at, part| self.put(at, part));
        }
    }

    fn put(&self, at: u64, part: &[u8]) -> io::Result<()> {
        put_at(&self.file.file, part, HEADER_BYTES as u64 + at)?;
        let crc = crc32fast::hash(part);
        self.shared().sums.add(at, part.len() as u64, crc);
        Ok(())
    }

    fn check(&self, shared: &Shared) -> Result<(), IndexError> {
        let Some(failed) = &shared.failed else { return Ok(()) };
        let again = failed.raw_os_error().map(io::Error::from_raw_os_error);
        let again = again.unwrap_or_else(|| failed.kind().into());
        Err(IndexError::storage("write", self.path())(again))
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Returns the file, all parts of which are written; its body goes on behind them.
    ///
    /// # Panics
    /// If a part is missing.
    pub(crate) fn end(self) -> Result<StorageFile, IndexError> {
        let mut shared = self.shared();
        self.check(&shared)?;
        let Sums { bytes, crc, waiting } = std::mem::take(&mut shared.sums);
        let is_whole = waiting.is_empty() && !shared.is_writing;
        assert!(is_whole, "a part of a file was written by nobody");
        drop(shared);
        Ok(StorageFile { written: bytes, crc, ..self.file })
    }
}
