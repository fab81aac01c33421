//! How are the checksums of a file's pages taken while it is written?

#![forbid(unsafe_code)]

use super::Spill;
use crate::index::error::IndexError;
use crate::index::format::{HEADER_BYTES, PAGE_BYTES};
use std::path::Path;

/// The part of the checksums that stays in memory, in bytes: those of 64 MiB.
const IN_MEMORY: usize = 64 << 10;

/// Where the checksums of the pages of the file at `path` wait: they belong behind the pages.
pub(crate) fn spill_of_sums(path: &Path) -> Spill {
    Spill::new(path.with_extension("sums"), IN_MEMORY)
}

/// The checksums of the pages of a file that is written from its first byte to its last.
///
/// Memory: 64 KB, however long the file is.
#[derive(Debug)]
pub(crate) struct Sums {
    sums: Spill,
    /// Of the page that is being written.
    page: crc32fast::Hasher,
    /// Bytes of the file so far, and whether the page has any.
    at: u64,
    any: bool,
}

impl Sums {
    /// Begins behind the header of the file at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            sums: spill_of_sums(path),
            page: crc32fast::Hasher::new(),
            at: HEADER_BYTES as u64,
            any: false,
        }
    }

    /// Adds the bytes that follow.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) -> Result<(), IndexError> {
        while !bytes.is_empty() {
            // At most a page.
            let room = (PAGE_BYTES - self.at % PAGE_BYTES) as usize;
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.page.update(now);
            self.any = true;
            self.at += now.len() as u64;
            if self.at.is_multiple_of(PAGE_BYTES) {
                self.end_page()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), IndexError> {
        let page = std::mem::take(&mut self.page);
        self.any = false;
        self.sums.push(&page.finalize().to_le_bytes())
    }

    /// Returns all checksums, the last that of the part of a page that there is.
    pub(crate) fn finish(mut self) -> Result<Spill, IndexError> {
        if self.any {
            self.end_page()?;
        }
        Ok(self.sums)
    }
}
