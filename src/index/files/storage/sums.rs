//! The checksums of a file that is written: of all its bytes behind the header, and of each *unit*,
//! which is a page or a block and for the first one begins behind the header. Parts of the file are
//! summed apart, in any order, and put together in theirs.

use super::{Spill, WRITE_BUFFER_BYTES};
use crate::index::error::IndexError;
use crate::index::format::{BLOCK_BYTES, HEADER_BYTES, PAGE_BYTES};
use std::path::{Path, PathBuf};

/// Bytes of the checksums of pages that stay in memory, of 64 MiB: they belong behind the pages.
const SUMS_IN_MEMORY: usize = if cfg!(test) { 256 } else { 64 << 10 };

// Steps in which a file is written end where units do.
const _: () = assert!((WRITE_BUFFER_BYTES as u64).is_multiple_of(BLOCK_BYTES));

/// The checksums of a part of a file: of all its bytes, and of each unit, or part of one, that lies
/// there.
#[derive(Debug)]
pub(super) struct RoomSums {
    /// Where the part goes on in the file.
    pub at: u64,
    unit: u64,
    crc: crc32fast::Hasher,
    units: Vec<u32>,
}

impl RoomSums {
    /// Adds the bytes that follow, which begin where a unit does, or the part, or where those
    /// before ended.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (here, rest) = bytes.split_at(bytes.len().min(rest(self.at, self.unit) as usize));
            let crc = crc32fast::hash(here);
            let len = here.len() as u64;
            // For a whole unit that is cheaper than reading it again.
            self.crc.combine(&crc32fast::Hasher::new_with_initial_len(crc, len));
            self.units.push(crc);
            self.at += len;
            bytes = rest;
        }
    }
}

fn rest(at: u64, unit: u64) -> u64 {
    unit - at % unit
}

/// The checksums of a file up to a place.
#[derive(Debug)]
pub(super) struct FileSums {
    at: u64,
    crc: crc32fast::Hasher,
    unit: u64,
    /// Those of whole units, if they are wanted.
    units: Option<Spill>,
    /// The checksum of the part of the last unit, if the file ends within one.
    part: Option<crc32fast::Hasher>,
}

impl Default for FileSums {
    /// Those of no unit.
    fn default() -> Self {
        let crc = crc32fast::Hasher::new();
        Self { at: HEADER_BYTES as u64, crc, unit: BLOCK_BYTES, units: None, part: None }
    }
}

impl FileSums {
    /// Of blocks, of which there is always one.
    pub(super) fn of_blocks() -> Self {
        let units = Some(Spill::new(PathBuf::new(), usize::MAX));
        Self { units, part: Some(crc32fast::Hasher::new()), ..Self::default() }
    }

    /// Of the pages of the file at `path`, of which there is none without a byte.
    pub(super) fn of_pages(path: &Path) -> Self {
        let units = Some(Spill::beside(path, ".sums", SUMS_IN_MEMORY));
        Self { units, unit: PAGE_BYTES, ..Self::default() }
    }

    /// Where the file goes on.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn crc(&self) -> &crc32fast::Hasher {
        &self.crc
    }

    pub(super) fn has_units(&self) -> bool {
        self.units.is_some()
    }

    /// For a part of the file from a place on.
    pub(super) fn room(&self, at: u64) -> RoomSums {
        RoomSums { at, unit: self.unit, crc: crc32fast::Hasher::new(), units: Vec::new() }
    }

    /// Takes the next part.
    pub(super) fn take(&mut self, part: RoomSums) -> Result<(), IndexError> {
        let RoomSums { at: end, crc, units, .. } = part;
        self.crc.combine(&crc);
        for crc in units {
            let bytes = rest(self.at, self.unit).min(end - self.at);
            self.at += bytes;
            self.add(crc, bytes)?;
        }
        Ok(())
    }

    /// Adds this many bytes with this checksum, which end at `at`, to their unit.
    fn add(&mut self, crc: u32, bytes: u64) -> Result<(), IndexError> {
        let Some(units) = &mut self.units else { return Ok(()) };
        let is_whole = self.at.is_multiple_of(self.unit);
        let crc = match &mut self.part {
            None if is_whole => crc,
            part => {
                let here = crc32fast::Hasher::new_with_initial_len(crc, bytes);
                let part = part.get_or_insert_default();
                part.combine(&here);
                part.clone().finalize()
            }
        };
        if is_whole {
            self.part = None;
            units.push(&crc.to_le_bytes())?;
        }
        Ok(())
    }

    /// The checksums of all units so far, which are not wanted any more.
    pub(super) fn take_units(&mut self) -> Result<Option<Spill>, IndexError> {
        if let (Some(units), Some(part)) = (&mut self.units, self.part.take()) {
            units.push(&part.finalize().to_le_bytes())?;
        }
        Ok(self.units.take())
    }
}
