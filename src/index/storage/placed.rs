//! How do several threads write one file? Each part goes to its place as soon as somebody knows where that is; the checksum of
//! the file is put together from those of the parts.

#![forbid(unsafe_code)]

use super::{StorageFile, write_at};
use crate::index::crc32;
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// A file whose body is written in parts, in any order. Together they leave nothing out.
///
/// Memory: what is known of parts that came before their turn.
#[derive(Debug)]
pub(crate) struct PlacedFile {
    file: StorageFile,
    sums: Mutex<Sums>,
}

/// The checksum of the parts up to the first that is missing.
#[derive(Debug, Default)]
struct Sums {
    bytes: u64,
    crc: crc32fast::Hasher,
    /// Length and checksum of parts behind that, by their place.
    waiting: BTreeMap<u64, (u64, u32)>,
}

impl PlacedFile {
    /// A file that has no body yet.
    pub(crate) fn new(file: StorageFile) -> Self {
        Self { file, sums: Mutex::default() }
    }

    /// Writes a part of the body at its place.
    ///
    /// # Errors
    /// `Storage`.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IndexError> {
        if bytes.is_empty() {
            return Ok(());
        }
        write_at(&self.file.file, &self.file.path, bytes, HEADER_BYTES as u64 + at)?;
        let crc = crc32::hash(bytes);
        let mut sums = self.sums();
        let Sums { bytes: known, crc: sum, waiting } = &mut *sums;
        waiting.insert(at, (bytes.len() as u64, crc));
        while let Some((len, crc)) = waiting.remove(known) {
            sum.combine(&crc32fast::Hasher::new_with_initial_len(crc, len));
            *known += len;
        }
        Ok(())
    }

    /// Returns where the file is.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the file, all parts of which are written; its body goes on behind them.
    ///
    /// # Panics
    /// If a part is missing.
    pub(crate) fn end(self) -> StorageFile {
        let Sums { bytes, crc, waiting } = std::mem::take(&mut *self.sums());
        assert!(waiting.is_empty(), "a part of a file was written by nobody");
        StorageFile { written: bytes, crc, ..self.file }
    }
}
