//! Verifies parts of files that have a checksum for each *page* of theirs, which is compared when
//! something of it is first asked for; the outcome is remembered.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The pages of a file that have a checksum each, a `u32`; that of the first is without the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLayout {
    /// A power of two.
    pub page_bytes: u64,
    /// Where the last page ends in the file, and where the checksums begin.
    pub end: u64,
    pub sums: u64,
}

impl PageLayout {
    fn count(&self) -> u64 {
        self.end.div_ceil(self.page_bytes)
    }

    /// Where the checksum of a page lies.
    pub(crate) fn place_of(&self, page: u64) -> u64 {
        self.sums + 4 * page
    }

    /// Verifies the `bytes` of a page of the file at `path` by the four bytes of its checksum.
    /// Returns how many of them are not summed, and the checksum of the others.
    pub(crate) fn check(
        &self,
        path: &Path,
        page: u64,
        bytes: &[u8],
        sum: [u8; 4],
    ) -> Result<(usize, u32), IndexError> {
        let header = if page == 0 { HEADER_BYTES.min(bytes.len()) } else { 0 };
        let [found, expected] = [crc32fast::hash(&bytes[header..]), u32::from_le_bytes(sum)];
        if found == expected {
            return Ok((header, found));
        }
        let at = page * self.page_bytes + header as u64;
        let expected = format!("{} bytes with checksum {expected:08x}", bytes.len() - header);
        Err(IndexError::damaged(path, at, expected, format_args!("{found:08x}")))
    }
}

/// The pages of a file that this process has verified: a bit for each of them.
#[derive(Debug)]
pub(crate) struct Pages {
    layout: PageLayout,
    /// A page has two to the power of this bytes.
    bits: u32,
    verified: Vec<AtomicU64>,
}

impl Pages {
    pub(crate) fn new(layout: PageLayout) -> Self {
        let verified = (0..layout.count().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { layout, bits: layout.page_bytes.trailing_zeros(), verified }
    }

    pub(crate) fn are_verified(&self) -> bool {
        let words = self.verified.iter();
        let found = words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        self.layout.count() > 0 && found.sum::<u64>() >= self.layout.count()
    }

    pub(crate) fn set_verified(&self) {
        self.verified.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Verifies the pages of at least one byte inside of them, at `start` in the `file` at `path`.
    /// Threads that come at the same time may both verify a page, which does no harm.
    #[inline]
    pub(crate) fn verify(
        &self,
        path: &Path,
        file: &[u8],
        start: u64,
        bytes: u64,
    ) -> Result<(), IndexError> {
        let first = start >> self.bits;
        let last = (start + bytes - 1) >> self.bits;
        for word in first / 64..=last / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            let wanted = (u64::MAX << from) & (u64::MAX >> (63 - to));
            let missing = wanted & !self.verified[word as usize].load(Ordering::Relaxed);
            if missing != 0 {
                self.verify_pages(path, file, word, missing)?;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn verify_pages(
        &self,
        path: &Path,
        file: &[u8],
        word: u64,
        mut missing: u64,
    ) -> Result<(), IndexError> {
        while missing != 0 {
            let bit = u64::from(missing.trailing_zeros());
            let page = word * 64 + bit;
            self.compare(path, file, page..page + 1)?;
            self.verified[word as usize].fetch_or(1 << bit, Ordering::Relaxed);
            missing &= missing - 1;
        }
        Ok(())
    }

    /// Compares some pages of the `file` at `path`, or those of them that there are, with their
    /// checksums. Returns that of all their bytes, the header of the file too.
    pub(crate) fn compare(
        &self,
        path: &Path,
        file: &[u8],
        pages: Range<u64>,
    ) -> Result<crc32fast::Hasher, IndexError> {
        let mut all = crc32fast::Hasher::new();
        for page in pages.start..pages.end.min(self.layout.count()) {
            let [from, to] = [page, page + 1].map(|page| (page << self.bits).min(self.layout.end));
            let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let sums = file.get(at(self.layout.place_of(page))..);
            let (Some(bytes), Some(sum)) =
                (file.get(at(from)..at(to)), sums.and_then(|sums| sums.first_chunk()))
            else {
                let expected = format!("a page up to byte {to}, and its checksum");
                let found = "the end of the file";
                return Err(IndexError::damaged(path, file.len() as u64, expected, found));
            };
            let (header, sum) = self.layout.check(path, page, bytes, *sum)?;
            all.update(&bytes[..header]);
            let summed = (bytes.len() - header) as u64;
            all.combine(&crc32fast::Hasher::new_with_initial_len(sum, summed));
        }
        Ok(all)
    }
}

/// Makes the checksums of the header and of the blocks of the file at `path` good again, as a
/// faulty program would.
#[cfg(any(test, fuzzing))]
pub(crate) fn seal(path: &Path, file: &mut [u8]) {
    use crate::index::format::{BLOCK_BYTES, before_sums, has_sums};
    if let Some(header) = file.first_chunk_mut::<HEADER_BYTES>() {
        let crc = crc32fast::hash(&header[..HEADER_BYTES - 4]);
        header[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        if has_sums(path) {
            let (blocks, sums) = file.split_at_mut(before_sums(file.len() as u64) as usize);
            let mut header = HEADER_BYTES;
            for (block, sum) in blocks.chunks(BLOCK_BYTES as usize).zip(sums.chunks_mut(4)) {
                let block = block.get(std::mem::take(&mut header)..).unwrap_or_default();
                sum.copy_from_slice(&crc32fast::hash(block).to_le_bytes());
            }
        }
    }
}
