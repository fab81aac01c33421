//! How are index files read when memory counts? By positioned reads through a small window, never
//! through the map, whose pages would count as resident memory.

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The part of a file that is held in memory.
///
/// The file is opened for every read: a merge of very many runs would run out of open files
/// otherwise, and one opening costs little beside the window that it fills.
///
/// Memory: the capacity.
#[derive(Debug)]
pub(crate) struct Window {
    path: PathBuf,
    /// Bytes of the file.
    length: u64,
    /// Where the window begins.
    start: u64,
    buffer: Vec<u8>,
    capacity: usize,
}

impl Window {
    /// Opens a window of `capacity` bytes on the file at `path`.
    pub(crate) fn open(path: &Path, capacity: usize) -> Result<Self, IndexError> {
        let metadata = std::fs::metadata(path).map_err(IndexError::storage("open", path))?;
        let (path, buffer) = (path.to_path_buf(), Vec::new());
        Ok(Self { path, length: metadata.len(), start: 0, buffer, capacity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that one call may ask for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns `bytes` bytes, or as many as the window holds, from `at` on.
    ///
    /// # Errors
    /// `Storage`, or `Damaged` if the file ends before.
    #[inline]
    pub(crate) fn read(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        let bytes = bytes.min(self.capacity);
        let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        match skip.and_then(|skip| Some(skip..skip.checked_add(bytes)?)) {
            Some(range) if range.end <= self.buffer.len() => Ok(&self.buffer[range]),
            _ => self.fill(at, bytes),
        }
    }

    /// Moves the window to `at`.
    fn fill(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        let Some(rest) = self.length.checked_sub(at).filter(|rest| *rest >= bytes as u64) else {
            let (expected, found) = (format!("{bytes} bytes from byte {at} on"), "the end");
            return Err(IndexError::damaged(&self.path, self.length, expected, found));
        };
        // What is held already of the new place moves to the front; the rest is read.
        let held = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = held.filter(|skip| *skip < self.buffer.len()).map_or(0, |skip| {
            self.buffer.copy_within(skip.., 0);
            self.buffer.len() - skip
        });
        let filled = usize::try_from(rest).map_or(self.capacity, |rest| rest.min(self.capacity));
        self.start = at;
        self.buffer.resize(filled, 0);
        let read = File::open(&self.path)
            .map_err(IndexError::storage("open", &self.path))
            .and_then(|file| {
                file.read_exact_at(&mut self.buffer[held..], at + held as u64)
                    .map_err(IndexError::storage("read", &self.path))
            });
        if let Err(error) = read {
            self.buffer.clear();
            return Err(error);
        }
        Ok(&self.buffer[..bytes])
    }
}

/// Returns the CRC-32 of a part of a file, by reads of at most `capacity` bytes.
///
/// # Errors
/// `Storage`, or `Damaged` if the file ends before.
pub(crate) fn checksum(
    path: &Path,
    part: Range<u64>,
    capacity: usize,
) -> Result<crc32fast::Hasher, IndexError> {
    let mut window = Window::open(path, capacity)?;
    let mut crc = crc32fast::Hasher::new();
    let mut at = part.start;
    while at < part.end {
        let rest = usize::try_from(part.end - at).unwrap_or(usize::MAX);
        let bytes = window.read(at, rest)?;
        crc.update(bytes);
        at += bytes.len() as u64;
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_a_window_shows_the_file(
            reads in prop::collection::vec((0..130u64, 0..12usize), 0..20),
            capacity in 1..20usize,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            let bytes: Vec<u8> = (0..120).collect();
            std::fs::write(&path, &bytes).unwrap();
            let mut window = Window::open(&path, capacity).unwrap();
            for (at, length) in reads {
                let length = length.min(capacity);
                match bytes.get(at as usize..at as usize + length) {
                    Some(expected) => prop_assert_eq!(window.read(at, length).unwrap(), expected),
                    None => prop_assert!(window.read(at, length).is_err()),
                }
            }
            let mut crc = checksum(&path, 0..50, capacity).unwrap();
            crc.combine(&checksum(&path, 50..120, capacity).unwrap());
            prop_assert_eq!(crc.finalize(), crc32fast::hash(&bytes));
        }
    }

    #[test]
    fn a_file_that_vanishes_or_shrinks_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [1; 100]).unwrap();
        let mut window = Window::open(&path, 10).unwrap();
        window.read(0, 10).unwrap();
        std::fs::write(&path, [1; 50]).unwrap();
        window.read(60, 10).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(window.read(20, 10).unwrap_err().is_not_found());
        assert!(Window::open(&path, 10).unwrap_err().is_not_found());
    }
}
