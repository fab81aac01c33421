//! Writes a file whose parts are ready in any order. The owner of the next bytes takes *room* for
//! them, one behind the other, or knows its place, and any thread fills a room at any time: it
//! takes the checksums of the bytes and writes them. The checksums of the file and of its pages are
//! put together in the order of the rooms.

use super::{FileSums, RoomSums, StorageFile, WRITE_BUFFER_BYTES, write_at};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// Bytes that are gathered before their checksums are taken.
const STEP_BYTES: usize = WRITE_BUFFER_BYTES;

#[derive(Debug)]
pub(crate) struct FileRoom {
    at: u64,
    bytes: u64,
}

impl FileRoom {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

#[derive(Debug, Default)]
struct FilledOutcome {
    next: u64,
    /// Up to the first room that is not full.
    sums: FileSums,
    /// The checksums of full rooms behind these, by place.
    waiting: BTreeMap<u64, RoomSums>,
    failed: Option<IndexError>,
    is_over: bool,
}

impl FilledOutcome {
    fn take(&mut self, place: u64, sums: RoomSums) -> Result<(), IndexError> {
        self.waiting.insert(place, sums);
        while let Some(sums) = self.waiting.remove(&self.sums.at()) {
            self.sums.take(sums)?;
        }
        Ok(())
    }

    fn fail(&mut self, error: IndexError) {
        self.is_over = true;
        self.failed.get_or_insert(error);
    }
}

/// A file whose body is filled in rooms.
///
/// Memory: 64 KB of checksums of pages, and those of rooms that were filled before their turn.
#[derive(Debug)]
pub struct FilledFile {
    file: StorageFile,
    outcome: Mutex<FilledOutcome>,
}

impl FilledFile {
    /// Creates the file `name` of the lists of a run in the folder of a generation. It is never
    /// synced here.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(generation: &Path, name: &str) -> Result<Self, IndexError> {
        let file = StorageFile::create(generation, name)?;
        Ok(Self::of(file).with_sums())
    }

    /// The file has no body yet.
    pub(crate) fn of(mut file: StorageFile) -> Self {
        let sums = std::mem::take(&mut file.sums);
        let outcome = FilledOutcome { next: sums.at(), sums, ..FilledOutcome::default() };
        Self { file, outcome: Mutex::new(outcome) }
    }

    /// Also takes the checksum of each page of the file; the first one is without the header.
    pub(crate) fn with_sums(self) -> Self {
        lock(&self.outcome).sums = FileSums::of_pages(&self.file.path);
        self
    }

    pub(crate) fn room(&self, bytes: u64) -> FileRoom {
        let mut outcome = lock(&self.outcome);
        let at = outcome.next;
        outcome.next = at + bytes;
        FileRoom { at, bytes }
    }

    /// The room at byte `at` of the body, which the caller knows to be its own.
    pub(crate) fn room_at(&self, at: u64, bytes: u64) -> FileRoom {
        let mut outcome = lock(&self.outcome);
        let at = HEADER_BYTES as u64 + at;
        outcome.next = outcome.next.max(at + bytes);
        FileRoom { at, bytes }
    }

    /// Fills room with `pieces`, one behind the other, by way of a buffer. [`check`](Self::check)
    /// and [`end`](Self::end) report errors; after one nothing is written.
    pub(crate) fn fill<'a>(
        &self,
        room: FileRoom,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        buffer: &mut Vec<u8>,
    ) {
        let outcome = lock(&self.outcome);
        if room.bytes == 0 || outcome.is_over {
            return;
        }
        let mut sums = outcome.sums.room(room.at);
        drop(outcome);
        let filled = self.write(pieces, &mut sums, buffer);
        let mut outcome = lock(&self.outcome);
        if filled.is_ok() {
            assert_eq!(sums.at, room.at + room.bytes, "a room takes as many bytes as it has");
        }
        if let Err(error) = filled.and_then(|()| outcome.take(room.at, sums)) {
            outcome.fail(error);
        }
    }

    /// Writes pieces, step by step; a piece that fills a step is not copied.
    fn write<'a>(
        &self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        sums: &mut RoomSums,
        buffer: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        let StorageFile { file, path, .. } = &self.file;
        let mut left = step_rest(sums.at);
        let mut put = |bytes: &[u8]| {
            let at = sums.at;
            sums.add(bytes);
            write_at(file, path, bytes, at)?;
            Ok(step_rest(sums.at))
        };
        buffer.clear();
        for mut piece in pieces {
            while !piece.is_empty() {
                let (here, behind) = piece.split_at(piece.len().min(left - buffer.len()));
                piece = behind;
                if here.len() == left {
                    left = put(here)?;
                    continue;
                }
                buffer.extend_from_slice(here);
                if buffer.len() == left {
                    left = put(buffer)?;
                    buffer.clear();
                }
            }
        }
        if buffer.is_empty() { Ok(()) } else { put(buffer).map(drop) }
    }

    /// Returns the first error so far.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        match &lock(&self.outcome).failed {
            None => Ok(()),
            Some(IndexError::Storage { operation, path, source }) => {
                let again = source.raw_os_error().map(io::Error::from_raw_os_error);
                let again = again.unwrap_or_else(|| source.kind().into());
                Err(IndexError::storage(operation, path)(again))
            }
            Some(_) => Err(IndexError::Stopped),
        }
    }

    pub(crate) fn abandon(&self) {
        lock(&self.outcome).is_over = true;
    }

    /// Whether nothing is written any more: a room could not be filled, or the job has ended.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.outcome).is_over
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the file, all rooms of which are full, whose body goes on behind them.
    ///
    /// # Panics
    /// If a room is not filled.
    pub(crate) fn end(self) -> Result<StorageFile, IndexError> {
        self.check()?;
        let outcome = self.outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let FilledOutcome { next, sums, .. } = outcome;
        assert_eq!(next, sums.at(), "a part of a file was written by nobody");
        Ok(StorageFile { sums, ..self.file })
    }
}

/// Bytes of a step from a place on: it ends where the file has a multiple of [`STEP_BYTES`].
fn step_rest(at: u64) -> usize {
    STEP_BYTES - at as usize % STEP_BYTES
}
