//! Reads index files in place, through one wrapper of the memory map whose every access is checked.
//!
//! A file of a generation never changes once it is written: a newer generation is a new folder, and
//! removing the old one takes away only the names of files that are still mapped. If another
//! program changes a mapped file nevertheless, the checks below and in the decoders turn that into
//! errors or wrong answers, never into reads outside the map. If it cuts the file short, the system
//! sends SIGBUS at the first access behind the new end, as for every mapped file: by default that
//! ends the process, and the program names the file first.

#![allow(unsafe_code)]

use crate::crew::{Crew, cores};
use crate::index::error::IndexError;
use crate::index::files::packed::{self, FilePlace};
use crate::index::files::pages::{PageLayout, Pages};
use crate::index::format::{BLOCK_BYTES, check_length};
use memmap2::{Mmap, MmapOptions};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Map {
    map: Mmap,
    path: PathBuf,
    /// Bytes before the checksums of blocks.
    length: usize,
    /// None if there are no such checksums, or they are no longer needed.
    blocks: Option<Pages>,
}

/// Blocks of 64 KiB that a thread verifies together, and bytes for which it pays to start one: some
/// 10 GB are summed in a second, and a thread takes 50 us to begin.
const BLOCKS_AT_ONCE: u64 = 16;
const PART_BYTES: usize = (BLOCKS_AT_ONCE * BLOCK_BYTES) as usize;
const THREAD_BYTES: usize = 8 << 20;

impl Map {
    pub(crate) fn open(path: &Path) -> Result<Self, IndexError> {
        let FilePlace { file, start, bytes, whole, .. } = packed::open(path)?;
        let [length, whole_length] =
            [bytes, whole].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        // SAFETY: files of a generation are never written again, and the module says what happens
        // when another program does it all the same: no caller relies on two reads being equal.
        let map = unsafe { MmapOptions::new().offset(start).len(whole_length).map(&file) };
        let map = map.map_err(IndexError::storage("map", path))?;
        let layout = PageLayout { page_bytes: BLOCK_BYTES, end: bytes, sums: bytes };
        let blocks = (bytes < whole).then(|| Pages::new(layout));
        Ok(Self { map, path: path.to_path_buf(), length, blocks })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Without the checksums of blocks.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[..self.length]
    }

    /// The bytes from `start` to the end of the file; none behind the end.
    #[inline]
    pub(crate) fn from(&self, start: u64) -> &[u8] {
        usize::try_from(start).ok().and_then(|start| self.bytes().get(start..)).unwrap_or(&[])
    }

    #[inline]
    pub(crate) fn slice(&self, start: u64, bytes: u64) -> Result<&[u8], IndexError> {
        let range = start.checked_add(bytes).and_then(|end| {
            let start = usize::try_from(start).ok()?;
            let end = usize::try_from(end).ok()?;
            self.bytes().get(start..end)
        });
        range.ok_or_else(|| self.too_short(start, bytes))
    }

    #[cold]
    fn too_short(&self, start: u64, bytes: u64) -> IndexError {
        let expected = format!("{bytes} bytes from byte {start} on");
        IndexError::damaged(&self.path, self.length as u64, expected, "the end of the file")
    }

    /// `count` numbers or records from `start` on, a multiple of their alignment.
    #[inline]
    pub(crate) fn array<T: bytemuck::AnyBitPattern>(
        &self,
        start: u64,
        count: u64,
    ) -> Result<&[T], IndexError> {
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        self.cast(start, count, self.slice(start, bytes)?)
    }

    /// [`slice`](Self::slice) of a file whose blocks have checksums: those blocks are verified
    /// unless they were.
    #[inline]
    pub(crate) fn checked(&self, start: u64, bytes: u64) -> Result<&[u8], IndexError> {
        let slice = self.slice(start, bytes)?;
        if let Some(blocks) = self.blocks.as_ref().filter(|_| bytes > 0) {
            blocks.verify(&self.path, &self.map, start, bytes)?;
        }
        Ok(slice)
    }

    /// [`array`](Self::array) of a file whose blocks have checksums; see
    /// [`checked`](Self::checked).
    #[inline]
    pub(crate) fn checked_array<T: bytemuck::AnyBitPattern>(
        &self,
        start: u64,
        count: u64,
    ) -> Result<&[T], IndexError> {
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        self.cast(start, count, self.checked(start, bytes)?)
    }

    #[inline]
    fn cast<'a, T: bytemuck::AnyBitPattern>(
        &self,
        start: u64,
        count: u64,
        slice: &'a [u8],
    ) -> Result<&'a [T], IndexError> {
        bytemuck::try_cast_slice(slice).map_err(|error| self.misaligned(start, count, error))
    }

    #[cold]
    fn misaligned(&self, start: u64, count: u64, error: bytemuck::PodCastError) -> IndexError {
        IndexError::damaged(&self.path, start, format!("{count} aligned numbers"), error)
    }

    /// Compares the length and the checksum of the whole file, and the checksums of its blocks.
    pub(crate) fn verify(&self, bytes: u64, crc32: u32) -> Result<(), IndexError> {
        verify_all(cores(), &[(self, bytes, crc32)])
    }

    /// This many reads of any places will come: if these need most blocks of a large file, all are
    /// verified, by several threads.
    pub(crate) fn expect(&self, reads: u64) -> Result<(), IndexError> {
        let is_much = self.length > THREAD_BYTES && reads * BLOCK_BYTES > self.length as u64;
        if is_much { self.check_all() } else { Ok(()) }
    }

    /// Verifies all blocks that were not, by several threads.
    pub(crate) fn check_all(&self) -> Result<(), IndexError> {
        let Some(blocks) = &self.blocks else { return Ok(()) };
        let check = |(): &mut (), part: usize| {
            let start = part * PART_BYTES;
            let bytes = PART_BYTES.min(self.length - start);
            blocks.verify(&self.path, &self.map, start as u64, bytes as u64)
        };
        let threads = cores().min(self.length / THREAD_BYTES + 1);
        let parts = self.length.div_ceil(PART_BYTES);
        Crew::new("verifier").in_order(threads, parts, check).map(drop)
    }

    /// What has checksums of blocks if there are such, and else all; and the rest.
    fn summed(&self) -> (&[u8], &[u8]) {
        self.map.split_at(if self.blocks.is_some() { self.length } else { self.map.len() })
    }

    /// The checksum of a part of what is summed. Blocks are compared with theirs.
    fn sum(&self, part: usize) -> Result<crc32fast::Hasher, IndexError> {
        let first = BLOCKS_AT_ONCE * part as u64;
        if let Some(blocks) = &self.blocks {
            return blocks.compare(&self.path, &self.map, first..first + BLOCKS_AT_ONCE);
        }
        let mut crc = crc32fast::Hasher::new();
        let bytes = self.map[part * PART_BYTES..].chunks(PART_BYTES).next();
        crc.update(bytes.unwrap_or_default());
        Ok(crc)
    }

    /// Takes what [`verify`](Self::verify) has found good for good: what is
    /// [`checked`](Self::checked) costs no more than what is not.
    pub(crate) fn trust(&mut self) {
        self.blocks = None;
    }
}

/// [`verify`](Map::verify) of several files, of this many bytes and with these checksums, by this
/// many threads, at most.
pub(crate) fn verify_all(threads: usize, files: &[(&Map, u64, u32)]) -> Result<(), IndexError> {
    let mut parts = Vec::new();
    let mut all = 0;
    for (map, bytes, _) in files {
        check_length(&map.path, map.map.len() as u64, Some(*bytes))?;
        let (summed, _) = map.summed();
        parts.extend((0..summed.len().div_ceil(PART_BYTES)).map(|part| (*map, part)));
        all += summed.len();
    }
    let sum = |(): &mut (), number: usize| parts[number].0.sum(parts[number].1);
    let threads = threads.min(all / THREAD_BYTES + 1);
    let mut sums = Crew::new("verifier").in_order(threads, parts.len(), sum)?.into_iter();
    for (map, _, crc32) in files {
        let (summed, rest) = map.summed();
        let mut crc = crc32fast::Hasher::new();
        sums.by_ref().take(summed.len().div_ceil(PART_BYTES)).for_each(|sum| crc.combine(&sum));
        crc.update(rest);
        let sums = 4 * summed.len().div_ceil(BLOCK_BYTES as usize);
        if let Some(at) = rest.iter().skip(sums).position(|byte| *byte != 0) {
            let at = map.length + sums + at;
            return Err(IndexError::damaged(&map.path, at as u64, 0, map.map[at]));
        }
        check_crc(&map.path, *crc32, crc.finalize())?;
    }
    Ok(())
}

/// # Errors
/// `Damaged`, at byte 0.
pub(crate) fn check_crc(path: &Path, expected: u32, found: u32) -> Result<(), IndexError> {
    if expected == found {
        return Ok(());
    }
    let expected = format!("a file with checksum {expected:08x}");
    Err(IndexError::damaged(path, 0, expected, format_args!("{found:08x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bytes: &[u8]) -> (tempfile::TempDir, Map) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let map = Map::open(&path).unwrap();
        (folder, map)
    }

    #[test]
    fn every_access_is_checked() {
        let (_folder, map) = map(&[1, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(map.slice(4, 1).unwrap(), [2]);
        assert!(map.slice(9, 0).unwrap().is_empty());
        for (start, bytes) in [(9, 1), (0, 10), (u64::MAX, 1), (1, u64::MAX), (10, 0)] {
            map.slice(start, bytes).unwrap_err();
        }
        assert_eq!(map.array::<u32>(0, 2).unwrap(), [1, 2]);
        assert_eq!(map.array::<u64>(0, 1).unwrap(), [0x2_0000_0001]);
        for (start, count) in [(0, 3), (1, 1), (0, u64::MAX), (u64::MAX, 1), (0, 1 << 62)] {
            map.array::<u32>(start, count).unwrap_err();
        }
        assert_eq!(map.from(8), [3]);
        assert!(map.from(9).is_empty());
        assert!(map.from(u64::MAX).is_empty());
    }

    #[test]
    fn an_empty_file_can_be_mapped() {
        let (_folder, map) = map(&[]);
        assert!(map.bytes().is_empty());
        map.verify(0, 0).unwrap();
        map.verify(1, 0).unwrap_err();
    }

    #[test]
    fn checksum_and_length_are_compared() {
        let (_folder, map) = map(b"abc");
        map.verify(3, crc32fast::hash(b"abc")).unwrap();
        let wrong = map.verify(3, 1).unwrap_err().to_string();
        assert!(wrong.contains("byte 0: expected a file with checksum 00000001"), "{wrong}");
        map.verify(4, crc32fast::hash(b"abc")).unwrap_err();
    }
}
