//! Verifies parts of files that have a checksum for each *page* of theirs, which is compared when
//! something of it is first asked for; the outcome is remembered.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The pages of a file that this process has verified: a bit for each of them.
#[derive(Debug)]
pub(crate) struct Pages {
    verified: Vec<AtomicU64>,
    /// A page has two to the power of this bytes.
    bits: u32,
    /// Where the last page ends in the file, and where the checksums begin.
    end: u64,
    sums: u64,
}

impl Pages {
    /// Pages of so many bytes, a power of two, up to byte `end`, whose checksums begin at byte
    /// `sums`.
    pub(crate) fn new(page_bytes: u64, end: u64, sums: u64) -> Self {
        let words = end.div_ceil(page_bytes).div_ceil(64);
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { verified, bits: page_bytes.trailing_zeros(), end, sums }
    }

    fn count(&self) -> u64 {
        self.end.div_ceil(1 << self.bits)
    }

    pub(crate) fn are_verified(&self) -> bool {
        let words = self.verified.iter();
        let found = words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        self.count() > 0 && found.sum::<u64>() >= self.count()
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
        for page in pages.start..pages.end.min(self.count()) {
            let [start, to] = [page, page + 1].map(|page| (page << self.bits).min(self.end));
            let from = start.max((HEADER_BYTES as u64).min(to));
            let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let sum = file.get(at(self.sums + 4 * page)..).and_then(|sums| sums.first_chunk());
            let (Some(header), Some(bytes), Some(sum)) =
                (file.get(at(start)..at(from)), file.get(at(from)..at(to)), sum)
            else {
                let expected = format!("a page up to byte {to}, and its checksum");
                let found = "the end of the file";
                return Err(IndexError::damaged(path, file.len() as u64, expected, found));
            };
            let sum = u32::from_le_bytes(*sum);
            check_page(path, from, bytes, sum)?;
            all.update(header);
            all.combine(&crc32fast::Hasher::new_with_initial_len(sum, to - from));
        }
        Ok(all)
    }
}

/// Verifies what a page has of a file from byte `at` on.
pub(crate) fn check_page(
    path: &Path,
    at: u64,
    bytes: &[u8],
    expected: u32,
) -> Result<(), IndexError> {
    let found = crc32fast::hash(bytes);
    if found == expected {
        return Ok(());
    }
    let expected = format!("{} bytes with checksum {expected:08x}", bytes.len());
    Err(IndexError::damaged(path, at, expected, format_args!("{found:08x}")))
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
