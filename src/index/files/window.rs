//! Reads index files where memory counts: by positioned reads through a small window, since the
//! pages of a map would count as resident memory.

use crate::index::error::IndexError;
use crate::index::files::packed::{self, FilePlace};
use crate::index::files::pages::PageLayout;
use crate::index::format::BLOCK_BYTES;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The part of a file that is held in memory.
///
/// The file is opened for every read, which costs little beside the window that it fills: a merge
/// of very many runs would run out of open files otherwise. One that is read here and there stays
/// [open](Self::open_for_good).
///
/// Memory: the capacity, and if it is verified two pages and a window on their checksums.
#[derive(Debug)]
pub(crate) struct FileWindow {
    path: PathBuf,
    /// The file that has it, or is it, and where it begins there.
    file: PathBuf,
    first: u64,
    length: u64,
    start: u64,
    buffer: Vec<u8>,
    capacity: usize,
    sums: Option<PageSums>,
    kept: Option<File>,
}

/// Verifies pages, whose checksums are read through a window of their own.
#[derive(Debug)]
struct PageSums {
    layout: PageLayout,
    window: Box<FileWindow>,
}

impl PageSums {
    /// Verifies `bytes`, which begin with a page at `at`.
    fn verify(&mut self, at: u64, bytes: &[u8]) -> Result<(), IndexError> {
        let PageLayout { page_bytes, end, .. } = self.layout;
        let bytes = &bytes[..bytes.len().min(end.saturating_sub(at) as usize)];
        for (page, bytes) in (at / page_bytes..).zip(bytes.chunks(page_bytes as usize)) {
            let sum = self.window.read(self.layout.place_of(page), 4)?;
            let sum = *sum.first_chunk().expect("four bytes were read");
            self.layout.check(self.window.path(), page, bytes, sum)?;
        }
        Ok(())
    }
}

impl FileWindow {
    pub(crate) fn open(path: &Path, capacity: usize) -> Result<Self, IndexError> {
        let place = packed::open(path)?;
        Ok(Self::of(path, place.bytes, place, capacity))
    }

    /// Keeps the file open.
    pub(crate) fn open_for_good(path: &Path, capacity: usize) -> Result<Self, IndexError> {
        let place = packed::open(path)?;
        let kept = place.file.try_clone().map_err(IndexError::storage("open", path))?;
        Ok(Self { kept: Some(kept), ..Self::of(path, place.bytes, place, capacity) })
    }

    /// On the checksums of blocks, too.
    pub(crate) fn open_whole(path: &Path, capacity: usize) -> Result<Self, IndexError> {
        let place = packed::open(path)?;
        Ok(Self::of(path, place.whole, place, capacity))
    }

    fn of(path: &Path, length: u64, place: FilePlace, capacity: usize) -> Self {
        let FilePlace { path: file, start: first, .. } = place;
        let path = path.to_path_buf();
        let buffer = Vec::new();
        Self { path, file, first, length, start: 0, buffer, capacity, sums: None, kept: None }
    }

    /// Verifies what is read by the checksums of the blocks of the file, which has them.
    pub(crate) fn checked(path: &Path, capacity: usize) -> Result<Self, IndexError> {
        let window = Self::open(path, capacity)?;
        let end = window.length;
        window.verifying(PageLayout { page_bytes: BLOCK_BYTES, end, sums: end })
    }

    /// Verifies later reads by the checksums of pages.
    pub(crate) fn verifying(mut self, layout: PageLayout) -> Result<Self, IndexError> {
        let bytes = 4 * (self.capacity / layout.page_bytes as usize + 2);
        let window = Box::new(Self::open_whole(&self.path, bytes)?);
        self.buffer.clear();
        self.sums = Some(PageSums { layout, window });
        Ok(self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that one call may ask for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// `bytes` bytes, or as many as the window holds, from `at` on.
    #[inline]
    pub(crate) fn read(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        let bytes = bytes.min(self.capacity);
        let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        match skip.and_then(|skip| Some(skip..skip.checked_add(bytes)?)) {
            Some(range) if range.end <= self.buffer.len() => Ok(&self.buffer[range]),
            _ => self.fill(at, bytes),
        }
    }

    fn fill(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        if self.length.checked_sub(at).is_none_or(|rest| rest < bytes as u64) {
            let expected = format!("{bytes} bytes from byte {at} on");
            let found = "the end";
            return Err(IndexError::damaged(&self.path, self.length, expected, found));
        }
        // Only whole pages can be verified.
        let (from, end) = match &self.sums {
            Some(PageSums { layout: PageLayout { page_bytes, .. }, .. }) => {
                let end = at.saturating_add(self.capacity as u64).next_multiple_of(*page_bytes);
                (at / page_bytes * page_bytes, end.min(self.length))
            }
            None => (at, at.saturating_add(self.capacity as u64).min(self.length)),
        };
        // What is held already of the new place moves to the front.
        let held = from.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = held.filter(|skip| *skip < self.buffer.len()).map_or(0, |skip| {
            self.buffer.copy_within(skip.., 0);
            self.buffer.len() - skip
        });
        // At most the capacity and two pages.
        self.start = from;
        self.buffer.resize((end - from) as usize, 0);
        let read = match &self.kept {
            Some(_) => Ok(None),
            None => {
                File::open(&self.file).map(Some).map_err(IndexError::storage("open", &self.path))
            }
        };
        let read = read.and_then(|opened| {
            let at = self.first + from + held as u64;
            let file = opened.as_ref().or(self.kept.as_ref()).expect("one of them is open");
            file.read_exact_at(&mut self.buffer[held..], at)
                .map_err(IndexError::storage("read", &self.path))
        });
        let read = read.and_then(|()| match &mut self.sums {
            Some(sums) => sums.verify(from + held as u64, &self.buffer[held..]),
            None => Ok(()),
        });
        if let Err(error) = read {
            self.buffer.clear();
            return Err(error);
        }
        Ok(&self.buffer[(at - from) as usize..][..bytes])
    }
}

/// The CRC-32 of a part of a whole file, by reads of at most `capacity` bytes.
pub(crate) fn checksum(
    path: &Path,
    part: Range<u64>,
    capacity: usize,
) -> Result<crc32fast::Hasher, IndexError> {
    let mut window = FileWindow::open_whole(path, capacity)?;
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
    use crate::index::format::{HEADER_BYTES, PAGE_BYTES};
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
            let mut window = FileWindow::open(&path, capacity).unwrap();
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
    fn pages_are_verified_as_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        // Two whole pages, a part of one, what has no checksum, and the checksums.
        let end = 2 * PAGE_BYTES as usize + 100;
        let mut good: Vec<u8> = (0..end + 7).map(|i| (i % 251) as u8).collect();
        let sums_start = good.len() as u64;
        for (number, page) in good.clone()[..end].chunks(PAGE_BYTES as usize).enumerate() {
            let page = if number == 0 { &page[HEADER_BYTES..] } else { page };
            good.extend_from_slice(&crc32fast::hash(page).to_le_bytes());
        }
        for capacity in [1usize, 64, 5000] {
            let all = |bytes: &[u8]| {
                std::fs::write(&path, bytes).unwrap();
                let window = FileWindow::open(&path, capacity).unwrap();
                let layout =
                    PageLayout { page_bytes: PAGE_BYTES, end: end as u64, sums: sums_start };
                let mut window = window.verifying(layout).unwrap();
                (0..end as u64 + 7).step_by(capacity).try_for_each(|at| {
                    let here = capacity.min(end + 7 - at as usize);
                    let expected = &bytes[at as usize..][..here];
                    window.read(at, here).map(|found| assert_eq!(found, expected))
                })
            };
            all(&good).unwrap();
            for at in [0, HEADER_BYTES, 4095, 4096, 8191, 8192, end - 1, end, end + 7, end + 15] {
                let mut bad = good.clone();
                bad[at] ^= 4;
                let is_summed = at >= HEADER_BYTES && !(end..end + 7).contains(&at);
                assert_eq!(all(&bad).is_err(), is_summed, "byte {at}, {capacity} bytes");
            }
        }
    }

    #[test]
    fn a_file_that_vanishes_or_shrinks_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [1; 100]).unwrap();
        let mut window = FileWindow::open(&path, 10).unwrap();
        window.read(0, 10).unwrap();
        std::fs::write(&path, [1; 50]).unwrap();
        window.read(60, 10).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(window.read(20, 10).unwrap_err().is_not_found());
        assert!(FileWindow::open(&path, 10).unwrap_err().is_not_found());
    }
}
