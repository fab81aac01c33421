//! Are the bytes of a list those that were written? The postings have a checksum for each page,
//! which is verified when a list that lies there is first asked for, and remembered.

use super::PostingsHeader;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::window::check_page;
use crate::index::format::{HEADER_BYTES, PAGE_BYTES, list_pages};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which pages of a run's postings have been verified by this process.
///
/// Memory: a bit for each page of 4 KiB.
#[derive(Debug)]
pub(super) struct Pages(Vec<AtomicU64>);

impl Pages {
    /// None yet.
    pub(super) fn new(header: &PostingsHeader) -> Self {
        let words = list_pages(header.list_bytes).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Makes sure that the pages of a list are as they were written; `start` and `bytes`, at least
    /// 1, say where it is in the file `postings`, and it is inside of the lists.
    ///
    /// Threads that come at the same time may both verify a page, which does no harm.
    #[inline]
    pub(super) fn verify(
        &self,
        postings: &Map,
        header: &PostingsHeader,
        (start, bytes): (u64, u64),
    ) -> Result<(), IndexError> {
        let (first, last) = (start / PAGE_BYTES, (start + bytes - 1) / PAGE_BYTES);
        for word in first / 64..=last / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            let wanted = (u64::MAX << from) & (u64::MAX >> (63 - to));
            let missing = wanted & !self.0[word as usize].load(Ordering::Relaxed);
            if missing != 0 {
                self.verify_pages(postings, header, word, missing)?;
            }
        }
        Ok(())
    }

    /// Verifies the pages of a word that are `missing`.
    #[cold]
    #[inline(never)]
    fn verify_pages(
        &self,
        postings: &Map,
        header: &PostingsHeader,
        word: u64,
        mut missing: u64,
    ) -> Result<(), IndexError> {
        let end = HEADER_BYTES as u64 + header.list_bytes;
        let sums: &[u32] = postings.array(header.sums_start(), list_pages(header.list_bytes))?;
        while missing != 0 {
            let bit = u64::from(missing.trailing_zeros());
            let page = word * 64 + bit;
            let from = (page * PAGE_BYTES).max(HEADER_BYTES as u64);
            let to = ((page + 1) * PAGE_BYTES).min(end);
            let bytes = postings.slice(from, to - from)?;
            check_page(postings.path(), from, bytes, sums[page as usize])?;
            self.0[word as usize].fetch_or(1 << bit, Ordering::Relaxed);
            missing &= missing - 1;
        }
        Ok(())
    }
}
