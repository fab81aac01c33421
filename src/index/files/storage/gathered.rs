//! Writes a file whose bytes lie in many buffers, in *parts*, each of which has room of its own in
//! the file, where threads, if any, put it together: most of the work of a large file.

use super::filled::{FileRoom, FilledFile};
use super::{StorageFile, WRITE_BUFFER_BYTES, ZEROS};
use crate::crew::{lock, spawn};
use crate::index::error::IndexError;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A part with this many bytes is written.
const PART_BYTES: u64 = WRITE_BUFFER_BYTES as u64;

pub(crate) type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

enum GatheredPiece {
    Zeros(usize),
    Bytes(SharedBytes, Range<usize>),
}

impl GatheredPiece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Zeros(count) => &ZEROS[..*count],
            Self::Bytes(source, range) => &(**source).as_ref()[range.clone()],
        }
    }
}

struct GatheredPart {
    room: FileRoom,
    pieces: Vec<GatheredPiece>,
}

/// Threads that write, which are started for the first part that is full: a small file needs none.
struct Writers {
    file: Arc<FilledFile>,
    count: usize,
    parts: Option<Sender<GatheredPart>>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(&mut self) -> Result<(), IndexError> {
        let Self { file, count, .. } = self;
        let (parts, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let start = |_| {
            let file = file.clone();
            let waiting = waiting.clone();
            let work = move || write_parts(&file, &waiting);
            spawn("writer", work)
        };
        let threads: io::Result<Vec<_>> = (0..*count).map(start).collect();
        self.threads =
            threads.map_err(IndexError::storage("start a thread that writes", file.path()))?;
        self.parts = Some(parts);
        Ok(())
    }

    fn wait(&mut self) {
        self.parts = None;
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        }
    }
}

/// A file that is put together from pieces of buffers, or by others who have room in it. Each page
/// has a checksum; the first one is without the header.
///
/// Memory: a part for each thread, 64 KB of checksums, and the buffers of parts that are not
/// gathered.
pub(crate) struct GatheredFile {
    file: Arc<FilledFile>,
    bytes: u64,
    /// Of the part that is not written.
    pieces: Vec<GatheredPiece>,
    part_bytes: u64,
    /// Of the part that is gathered here, if there are no threads.
    buffer: Vec<u8>,
    writers: Writers,
}

impl GatheredFile {
    /// Puts together the body of a file that has none yet; this many `threads` write it, or the
    /// caller.
    pub(crate) fn new(file: StorageFile, threads: usize) -> Self {
        Self::of(Arc::new(FilledFile::of(file).with_sums()), threads)
    }

    /// A file whose bytes others [put](Self::pass) in place.
    pub(crate) fn by_others(file: Arc<FilledFile>) -> Self {
        Self::of(file, 0)
    }

    fn of(file: Arc<FilledFile>, count: usize) -> Self {
        let writers = Writers { file: file.clone(), count, parts: None, threads: Vec::new() };
        Self { file, bytes: 0, pieces: Vec::new(), part_bytes: 0, buffer: Vec::new(), writers }
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.bytes
    }

    /// Others that took room put all bytes there until the body has `end` bytes.
    pub(crate) fn pass(&mut self, end: u64) {
        self.bytes = end;
    }

    pub(crate) fn check(&self) -> Result<(), IndexError> {
        self.file.check()
    }

    /// Appends zero bytes, at most 15, and some bytes of a buffer behind them.
    pub(crate) fn append(
        &mut self,
        zeros: usize,
        source: &SharedBytes,
        range: Range<usize>,
    ) -> Result<(), IndexError> {
        let bytes = (zeros + range.len()) as u64;
        self.pieces
            .extend([GatheredPiece::Zeros(zeros), GatheredPiece::Bytes(source.clone(), range)]);
        self.bytes += bytes;
        self.part_bytes += bytes;
        if self.part_bytes < PART_BYTES {
            return Ok(());
        }
        if self.writers.parts.is_none() && self.writers.count > 0 {
            self.writers.start()?;
        }
        self.end_part()
    }

    fn end_part(&mut self) -> Result<(), IndexError> {
        if self.part_bytes == 0 {
            return Ok(());
        }
        let room = self.file.room(std::mem::take(&mut self.part_bytes));
        let part = GatheredPart { room, pieces: std::mem::take(&mut self.pieces) };
        match &self.writers.parts {
            // The threads take parts until there are no more, whatever fails.
            Some(parts) => _ = parts.send(part),
            None => write_part(&self.file, part, &mut self.buffer),
        }
        self.file.check()
    }

    /// Waits until all is written. Returns the file, whose body goes on.
    ///
    /// # Panics
    /// If the file is shared.
    pub(crate) fn end(mut self) -> Result<StorageFile, IndexError> {
        self.end_part()?;
        let Self { file, mut writers, .. } = self;
        writers.wait();
        drop(writers);
        Arc::into_inner(file).expect("whoever had room in a file has left it").end()
    }
}

impl Drop for Writers {
    /// An incomplete file is dropped after a failure: what waits is not written.
    fn drop(&mut self) {
        self.file.abandon();
        self.parts = None;
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

fn write_parts(file: &FilledFile, parts: &Mutex<Receiver<GatheredPart>>) {
    let mut buffer = Vec::new();
    loop {
        let part = lock(parts).recv();
        let Ok(part) = part else { return };
        write_part(file, part, &mut buffer);
    }
}

fn write_part(
    file: &FilledFile,
    GatheredPart { room, pieces }: GatheredPart,
    buffer: &mut Vec<u8>,
) {
    file.fill(room, pieces.iter().map(GatheredPiece::bytes), buffer);
}
