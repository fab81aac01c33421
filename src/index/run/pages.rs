//! Verifies the bytes of lists: the postings have a checksum for each page, which is compared when
//! a list that lies there is first asked for; the outcome is remembered.

use super::PostingsHeader;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::window::check_page;
use crate::index::format::{HEADER_BYTES, PAGE_BYTES, list_pages};
use std::sync::atomic::{AtomicU64, Ordering};

/// The pages of a run's postings that this process has verified: a bit for each page of 4 KiB.
#[derive(Debug)]
pub(super) struct Pages(Vec<AtomicU64>);

impl Pages {
    pub(super) fn new(header: &PostingsHeader) -> Self {
        let words = list_pages(header.list_bytes).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn are_verified(&self, header: &PostingsHeader) -> bool {
        let pages = list_pages(header.list_bytes);
        let found = self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        pages > 0 && found.sum::<u64>() >= pages
    }

    pub(super) fn set_verified(&self) {
        self.0.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Verifies the pages of a list of at least one byte inside of the lists, at `start` in the
    /// file `postings`. Threads that come at the same time may both verify a page, which does no
    /// harm.
    #[inline]
    pub(super) fn verify(
        &self,
        postings: &Map,
        header: &PostingsHeader,
        start: u64,
        bytes: u64,
    ) -> Result<(), IndexError> {
        let first = start / PAGE_BYTES;
        let last = (start + bytes - 1) / PAGE_BYTES;
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
