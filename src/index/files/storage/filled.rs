//! How is a file written whose parts are ready in any order? Whoever knows what stands next takes
//! *room* for it, one behind the other, and any thread fills a room at any time: it puts the bytes
//! together, in steps that stay in the caches, takes their checksums, and writes them there. Those
//! of the file and of its pages are put together in the order of the rooms.

use super::sums::spill_of_sums;
use super::{Durability, Spill, StorageFile, WRITE_BUFFER_BYTES, write_at};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::format::{HEADER_BYTES, PAGE_BYTES};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Bytes that are put together before their checksums are taken.
const STEP_BYTES: usize = WRITE_BUFFER_BYTES;

/// The place of some bytes of a file, which only its owner fills.
#[derive(Debug)]
pub(crate) struct Room {
    number: usize,
    at: u64,
    bytes: u64,
}

impl Room {
    /// So many bytes fill it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// The checksums of a room: of all its bytes, and of each page, or part of one, that lies there.
#[derive(Debug)]
struct RoomSums {
    /// Where the room goes on in the file.
    at: u64,
    crc: crc32fast::Hasher,
    pages: Vec<u32>,
}

impl RoomSums {
    fn from(at: u64) -> Self {
        Self { at, crc: crc32fast::Hasher::new(), pages: Vec::new() }
    }

    /// Adds the bytes that follow, which begin where a page does, or the room.
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (here, rest) = bytes.split_at(bytes.len().min(page_rest(self.at) as usize));
            let (crc, len) = (crc32fast::hash(here), here.len() as u64);
            // Of a whole page that takes less than another look at it.
            self.crc.combine(&crc32fast::Hasher::new_with_initial_len(crc, len));
            self.pages.push(crc);
            self.at += len;
            bytes = rest;
        }
    }
}

/// Bytes of a page from a place on.
fn page_rest(at: u64) -> u64 {
    PAGE_BYTES - at % PAGE_BYTES
}

#[derive(Debug)]
struct Outcome {
    /// The number of the next room, and its place in the file.
    next: (usize, u64),
    /// Rooms before the first that is not full, and where they end.
    full: usize,
    at: u64,
    /// The checksum of all that is in these, and those of their whole pages.
    crc: crc32fast::Hasher,
    sums: Spill,
    /// The checksum of what they have of their last page, if they end within one.
    page: Option<crc32fast::Hasher>,
    /// The checksums of full rooms behind these, by number.
    waiting: BTreeMap<usize, RoomSums>,
    failed: Option<IndexError>,
    /// Nothing is written any more.
    is_over: bool,
}

impl Outcome {
    fn take(&mut self, number: usize, sums: RoomSums) -> Result<(), IndexError> {
        self.waiting.insert(number, sums);
        while let Some(RoomSums { at: end, crc, pages }) = self.waiting.remove(&self.full) {
            self.crc.combine(&crc);
            for crc in pages {
                let bytes = page_rest(self.at).min(end - self.at);
                self.at += bytes;
                let is_whole = self.at.is_multiple_of(PAGE_BYTES);
                let crc = match &mut self.page {
                    None if is_whole => crc,
                    page => {
                        let here = crc32fast::Hasher::new_with_initial_len(crc, bytes);
                        let page = page.get_or_insert_default();
                        page.combine(&here);
                        page.clone().finalize()
                    }
                };
                if is_whole {
                    self.page = None;
                    self.sums.push(&crc.to_le_bytes())?;
                }
            }
            self.full += 1;
        }
        Ok(())
    }

    fn fail(&mut self, error: IndexError) {
        self.is_over = true;
        self.failed.get_or_insert(error);
    }
}

/// A file whose body is filled in rooms. Each page has a checksum; the first one is without the
/// header.
///
/// Memory: 64 KB of checksums, and those of rooms that were filled before their turn.
#[derive(Debug)]
pub struct FilledFile {
    file: StorageFile,
    outcome: Mutex<Outcome>,
}

impl FilledFile {
    /// Creates a file in the folder of a generation. It is never synced here.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(generation: &Path, name: &str) -> Result<Self, IndexError> {
        Ok(Self::of(StorageFile::create(generation, name, Durability::Scratch)?))
    }

    /// A file that has no body yet.
    pub(crate) fn of(file: StorageFile) -> Self {
        let at = HEADER_BYTES as u64;
        let outcome = Mutex::new(Outcome {
            next: (0, at),
            full: 0,
            at,
            crc: crc32fast::Hasher::new(),
            sums: spill_of_sums(&file.path),
            page: None,
            waiting: BTreeMap::new(),
            failed: None,
            is_over: false,
        });
        Self { file, outcome }
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        lock(&self.outcome)
    }

    pub(crate) fn room(&self, bytes: u64) -> Room {
        let mut outcome = self.outcome();
        let (number, at) = outcome.next;
        outcome.next = (number + 1, at + bytes);
        Room { number, at, bytes }
    }

    /// Fills room, which `put` does step by step, one behind the other. Whoever
    /// [checks](Self::check) or [ends](Self::end) the file hears of errors; after one nothing is
    /// written.
    pub(crate) fn fill(&self, room: Room, put: impl FnMut(&mut [u8]), buffer: &mut Vec<u8>) {
        if self.outcome().is_over {
            return;
        }
        let Room { number, at, bytes } = room;
        let mut sums = RoomSums::from(at);
        let filled = self.write(at + bytes, put, &mut sums, buffer);
        let mut outcome = self.outcome();
        if let Err(error) = filled.and_then(|()| outcome.take(number, sums)) {
            outcome.fail(error);
        }
    }

    /// Writes what goes to the file up to its byte `end`.
    fn write(
        &self,
        end: u64,
        mut put: impl FnMut(&mut [u8]),
        sums: &mut RoomSums,
        buffer: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        let StorageFile { file, path, .. } = &self.file;
        while sums.at < end {
            let at = sums.at;
            buffer.reserve_exact(STEP_BYTES.saturating_sub(buffer.len()));
            buffer.resize(step(at, end - at), 0);
            put(buffer);
            sums.add(buffer);
            write_at(file, path, buffer, at)?;
        }
        Ok(())
    }

    /// Whether all is well so far.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        self.outcome().failed.take().map_or(Ok(()), Err)
    }

    /// Nothing is written any more.
    pub(crate) fn abandon(&self) {
        self.outcome().is_over = true;
    }

    /// Whether nothing is written any more: a room could not be filled, or the job has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome().is_over
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the file, all rooms of which are full, whose body goes on behind them, and the
    /// checksums of its pages up to there.
    ///
    /// # Panics
    /// If somebody who had room has not filled it.
    pub(crate) fn end(self) -> Result<(StorageFile, Spill), IndexError> {
        self.check()?;
        let outcome = self.outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Outcome { next, full, at, crc, mut sums, page, .. } = outcome;
        assert_eq!(next, (full, at), "a part of a file was written by nobody");
        if let Some(page) = page {
            sums.push(&page.finalize().to_le_bytes())?;
        }
        let written = at - HEADER_BYTES as u64;
        Ok((StorageFile { written, crc, ..self.file }, sums))
    }
}

/// Bytes that are put together at a time from a place on, of so many that are left: a step ends
/// where the file has a multiple of [`STEP_BYTES`].
fn step(at: u64, bytes: u64) -> usize {
    (STEP_BYTES - at as usize % STEP_BYTES).min(bytes as usize)
}
