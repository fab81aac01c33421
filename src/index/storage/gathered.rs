//! How does a file get to the system whose bytes lie in many buffers of others? In *parts* of whole pages, of which each is gathered,
//! gets its checksums and is written at its place, by threads if there are any: of a large file that is most of the work.
//!
//! The system lets one thread at a time write to a file. Gathering parts in the file itself, through a map, gains nothing
//! (docs/measurements/2026-11-23-gpu-indexing.md).

#![forbid(unsafe_code)]

use super::sums::spill_of_sums;
use super::{Spill, StorageFile, WRITE_BUFFER_BYTES, write_at};
use crate::index::crc32;
use crate::index::error::IndexError;
use crate::index::format::{HEADER_BYTES, PAGE_BYTES};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// Bytes of a part, but for the first, which begins behind the header, and the last.
const PART_BYTES: u64 = WRITE_BUFFER_BYTES as u64;
const _: () = assert!(PART_BYTES.is_multiple_of(PAGE_BYTES));

/// A buffer that lives until its bytes are gathered.
pub(crate) type Source = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Neighbouring bytes of a part.
enum Piece {
    Zeros(usize),
    Bytes(Source, Range<usize>),
}

/// A part of the file.
struct Part {
    number: usize,
    /// Its place in the file.
    at: u64,
    pieces: Vec<Piece>,
}

/// What is taken of a part that is written.
struct Taken {
    bytes: u64,
    crc: u32,
    pages: Vec<u32>,
}

/// What came of the parts.
struct Outcome {
    /// Of those up to the first that is missing: how many they are, the checksum of all, and those of their pages.
    parts: usize,
    crc: crc32fast::Hasher,
    sums: Spill,
    /// Of those behind it, by number.
    taken: BTreeMap<usize, Taken>,
    /// The first error.
    failed: Option<IndexError>,
    /// What waits is not written any more.
    is_over: bool,
}

impl Outcome {
    fn take(&mut self, number: usize, taken: Taken) -> Result<(), IndexError> {
        self.taken.insert(number, taken);
        while let Some(Taken { bytes, crc, pages }) = self.taken.remove(&self.parts) {
            self.crc.combine(&crc32fast::Hasher::new_with_initial_len(crc, bytes));
            self.sums.push(bytemuck::cast_slice(&pages))?;
            self.parts += 1;
        }
        Ok(())
    }

    fn fail(&mut self, error: IndexError) {
        self.is_over = true;
        self.failed.get_or_insert(error);
    }
}

/// Who writes the parts.
struct Writers {
    outcome: Arc<Mutex<Outcome>>,
    /// To the threads, if there are any.
    parts: Option<Sender<Part>>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(file: &StorageFile, count: usize) -> Result<Self, IndexError> {
        let outcome = Outcome {
            parts: 0,
            crc: crc32fast::Hasher::new(),
            sums: spill_of_sums(&file.path),
            taken: BTreeMap::new(),
            failed: None,
            is_over: false,
        };
        let outcome = Arc::new(Mutex::new(outcome));
        let (parts, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let start = |_| {
            let (path, file) = (file.path.clone(), file.file.try_clone()?);
            let (waiting, outcome) = (waiting.clone(), outcome.clone());
            let work = move || write_parts(&file, &path, &waiting, &outcome);
            Builder::new().name("writer".into()).spawn(work)
        };
        let threads: io::Result<Vec<_>> = (0..count).map(start).collect();
        let threads =
            threads.map_err(IndexError::storage("start a thread that writes", &file.path))?;
        Ok(Self { outcome, parts: (count > 0).then_some(parts), threads })
    }

    /// Waits until all parts are written: the checksum of all, and those of their pages.
    fn wait(mut self, path: &Path) -> Result<(crc32fast::Hasher, Spill), IndexError> {
        self.parts = None;
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        }
        let mut outcome = lock(&self.outcome);
        let sums = std::mem::replace(&mut outcome.sums, spill_of_sums(path));
        outcome.failed.take().map_or(Ok((outcome.crc.clone(), sums)), Err)
    }
}

impl Drop for Writers {
    /// Who drops a file that is not complete knows why: what waits is not written.
    fn drop(&mut self) {
        lock(&self.outcome).is_over = true;
        self.parts = None;
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

/// A file that is put together from pieces of buffers. Each page has a checksum; the first one is without the header.
///
/// Memory: a part for each thread, 64 KB of checksums, and the buffers that have bytes of parts which are not gathered.
pub(crate) struct GatheredFile {
    file: StorageFile,
    /// Bytes of the body so far.
    bytes: u64,
    part: Part,
    /// Of the part that is gathered here, if there are no threads.
    buffer: Vec<u8>,
    writers: Writers,
}

impl GatheredFile {
    /// Puts together the body of a file that has none yet; so many `threads` write it, or who calls.
    ///
    /// # Errors
    /// `Storage`, if the system gives no thread.
    pub(crate) fn new(file: StorageFile, threads: usize) -> Result<Self, IndexError> {
        let writers = Writers::start(&file, threads)?;
        let part = Part { number: 0, at: HEADER_BYTES as u64, pieces: Vec::new() };
        Ok(Self { file, bytes: 0, part, buffer: Vec::new(), writers })
    }

    /// Bytes of the body so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends zero bytes until the body has `end` bytes.
    ///
    /// # Errors
    /// `Storage`, of this or an earlier part.
    pub(crate) fn fill(&mut self, end: u64) -> Result<(), IndexError> {
        while self.bytes < end {
            let here = self.room().min(end - self.bytes);
            self.push(Piece::Zeros(here as usize), here)?;
        }
        Ok(())
    }

    /// Appends some bytes of a buffer.
    ///
    /// # Errors
    /// `Storage`, of this or an earlier part.
    pub(crate) fn append(
        &mut self,
        source: &Source,
        mut range: Range<usize>,
    ) -> Result<(), IndexError> {
        while !range.is_empty() {
            let here = self.room().min(range.len() as u64);
            let end = range.start + here as usize;
            self.push(Piece::Bytes(source.clone(), range.start..end), here)?;
            range.start = end;
        }
        Ok(())
    }

    /// Bytes that the part has room for, at least 1.
    fn room(&self) -> u64 {
        PART_BYTES - (HEADER_BYTES as u64 + self.bytes) % PART_BYTES
    }

    fn push(&mut self, piece: Piece, bytes: u64) -> Result<(), IndexError> {
        let fills = bytes == self.room();
        self.part.pieces.push(piece);
        self.bytes += bytes;
        if fills { self.end_part() } else { Ok(()) }
    }

    fn end_part(&mut self) -> Result<(), IndexError> {
        let next = Part {
            number: self.part.number + 1,
            at: HEADER_BYTES as u64 + self.bytes,
            pieces: Vec::new(),
        };
        let part = std::mem::replace(&mut self.part, next);
        match &self.writers.parts {
            // The threads take parts until there are no more, whatever fails.
            Some(parts) => _ = parts.send(part),
            None => {
                let StorageFile { file, path, .. } = &self.file;
                write_part((file, path), part, &mut self.buffer, &self.writers.outcome);
            }
        }
        lock(&self.writers.outcome).failed.take().map_or(Ok(()), Err)
    }

    /// Waits until all is written. Returns the file, whose body goes on behind what was put together, and the checksums of the
    /// pages up to there.
    ///
    /// # Errors
    /// `Storage`.
    pub(crate) fn end(mut self) -> Result<(StorageFile, Spill), IndexError> {
        if !self.part.pieces.is_empty() {
            self.end_part()?;
        }
        let (crc, sums) = self.writers.wait(&self.file.path)?;
        (self.file.written, self.file.crc) = (self.bytes, crc);
        Ok((self.file, sums))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Writes parts until there are no more.
fn write_parts(file: &File, path: &Path, parts: &Mutex<Receiver<Part>>, outcome: &Mutex<Outcome>) {
    let mut buffer = Vec::new();
    loop {
        let Ok(part) = lock(parts).recv() else { return };
        write_part((file, path), part, &mut buffer, outcome);
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Zeros(count) => *count,
            Self::Bytes(_, range) => range.len(),
        }
    }
}

/// Puts pieces one behind the other, as many bytes as there are.
fn gather(pieces: &[Piece], mut to: &mut [u8]) {
    for piece in pieces {
        let (here, rest) = to.split_at_mut(piece.len());
        match piece {
            Piece::Zeros(_) => here.fill(0),
            Piece::Bytes(source, range) => {
                here.copy_from_slice(&(**source).as_ref()[range.clone()]);
            }
        }
        to = rest;
    }
}

/// Writes a part, unless one has failed.
fn write_part(
    (file, path): (&File, &Path),
    part: Part,
    buffer: &mut Vec<u8>,
    outcome: &Mutex<Outcome>,
) {
    if lock(outcome).is_over {
        return;
    }
    let Part { number, at, pieces } = part;
    let bytes = pieces.iter().map(Piece::len).sum();
    buffer.reserve_exact(PART_BYTES as usize - buffer.len());
    buffer.resize(bytes, 0);
    gather(&pieces, buffer);
    // From now on whoever made the bytes may make more.
    drop(pieces);
    let in_first = (PAGE_BYTES - at % PAGE_BYTES) as usize;
    let (first, rest) = buffer.split_at(buffer.len().min(in_first));
    let pages = std::iter::once(first).chain(rest.chunks(PAGE_BYTES as usize));
    let pages = pages.map(crc32::hash).collect();
    let taken = Taken { bytes: bytes as u64, crc: crc32::hash(buffer), pages };
    let written = write_at(file, path, buffer, at);
    let mut outcome = lock(outcome);
    if let Err(error) = written.and_then(|()| outcome.take(number, taken)) {
        outcome.fail(error);
    }
}
