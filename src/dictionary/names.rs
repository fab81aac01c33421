//! Which documents have a name that an earlier one has? Counted exactly, in bounded memory: hashes
//! of 128 bits are sorted in parts, which lie in a file without a name, and merged at the end.
//!
//! Names that differ share such a hash with a chance below 10^-20 for 4 billion documents; no name
//! is compared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of a hash and a docid in the file.
const ENTRY_BYTES: usize = 20;
/// Entries that are read from a part at a time.
const READ_ENTRIES: usize = 200;
/// With fewer entries it is not worth starting a thread.
const LEAST_ENTRIES: usize = 1 << 15;

/// Names that occur more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Documents whose name an earlier document has.
    pub count: u64,
    /// The first document of that kind and the earlier one with its name.
    pub first: Option<(u32, u32)>,
}

/// The hash that stands for a name.
pub fn name_hash(name: &[u8]) -> u128 {
    xxh3_128(name)
}

/// Collects the names of all documents.
pub struct Names {
    folder: PathBuf,
    most: usize,
    entries: Vec<(u128, u32)>,
    file: Option<File>,
    /// Where each sorted part ends in the file, in entries.
    parts: Vec<u64>,
}

impl Names {
    /// Keeps at most `most_bytes` in memory; parts go to a file without a name in `folder`.
    pub fn new(folder: &Path, most_bytes: u64) -> Self {
        let most = (most_bytes as usize / size_of::<(u128, u32)>()).max(1);
        Self {
            folder: folder.to_path_buf(),
            most,
            entries: Vec::new(),
            file: None,
            parts: Vec::new(),
        }
    }

    /// Adds the name of a document.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, name: &[u8], docid: u32) -> io::Result<()> {
        self.push_hash(name_hash(name), docid)
    }

    /// Adds the name of a document by its [`name_hash`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push_hash(&mut self, hash: u128, docid: u32) -> io::Result<()> {
        if self.entries.len() == self.most {
            self.spill()?;
        }
        self.entries.push((hash, docid));
        Ok(())
    }

    /// Adds the names of neighbouring documents, of which `docid` is the first, by their [`name_hash`]es.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn extend(&mut self, hashes: &[u128], docid: u32) -> io::Result<()> {
        for (docid, hash) in (docid..).zip(hashes) {
            self.push_hash(*hash, docid)?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        crate::fault::storage()?;
        self.entries.sort_unstable();
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile_in(&self.folder)?);
        }
        let file = self.file.as_mut().expect("a file was made");
        let mut out = io::BufWriter::with_capacity(64 << 10, file);
        for (hash, docid) in &self.entries {
            out.write_all(&hash.to_le_bytes())?;
            out.write_all(&docid.to_le_bytes())?;
        }
        out.flush()?;
        self.parts.push(self.parts.last().unwrap_or(&0) + self.entries.len() as u64);
        self.entries.clear();
        Ok(())
    }

    /// Counts the duplicates among all names; so many `threads` sort them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn finish(mut self, threads: usize) -> io::Result<Duplicates> {
        let counted = sort_and_count(&mut self.entries, u128::BITS - 1, threads);
        let Some(file) = self.file.take() else { return Ok(counted) };
        let mut count = Count::default();
        let mut parts = vec![Part { file: &file, next: 0, end: 0, buffer: Vec::new() }];
        parts[0].buffer = std::mem::take(&mut self.entries);
        parts[0].buffer.reverse();
        let mut start = 0;
        for &end in &self.parts {
            parts.push(Part { file: &file, next: start, end, buffer: Vec::new() });
            start = end;
        }
        let mut heads = BinaryHeap::new();
        for (number, part) in parts.iter_mut().enumerate() {
            heads.extend(part.pop()?.map(|entry| Reverse((entry, number))));
        }
        while let Some(Reverse((entry, number))) = heads.pop() {
            count.add(entry);
            heads.extend(parts[number].pop()?.map(|entry| Reverse((entry, number))));
        }
        Ok(count.duplicates)
    }
}

/// Sorts entries whose hashes are alike in the bits above `bit`, and counts the duplicates among them. Hashes have each bit as often
/// as not, so that threads get as much by it without being told where to divide.
fn sort_and_count(entries: &mut [(u128, u32)], bit: u32, threads: usize) -> Duplicates {
    if threads < 2 || entries.len() < LEAST_ENTRIES || bit == 0 {
        entries.sort_unstable();
        let mut count = Count::default();
        entries.iter().for_each(|&entry| count.add(entry));
        return count.duplicates;
    }
    let (mut zeros, mut end) = (0, entries.len());
    while zeros < end {
        if entries[zeros].0 >> bit & 1 == 0 {
            zeros += 1;
        } else {
            end -= 1;
            entries.swap(zeros, end);
        }
    }
    let (low, high) = entries.split_at_mut(zeros);
    thread::scope(|scope| {
        let low = scope.spawn(move || sort_and_count(low, bit - 1, threads / 2));
        let high = sort_and_count(high, bit - 1, threads - threads / 2);
        let low = low.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        Duplicates {
            count: low.count + high.count,
            first: [low.first, high.first].into_iter().flatten().min(),
        }
    })
}

/// A sorted part of the file, and its next entries, the nearest last.
struct Part<'a> {
    file: &'a File,
    next: u64,
    end: u64,
    buffer: Vec<(u128, u32)>,
}

impl Part<'_> {
    fn pop(&mut self) -> io::Result<Option<(u128, u32)>> {
        if self.buffer.is_empty() && self.next < self.end {
            let n = (self.end - self.next).min(READ_ENTRIES as u64) as usize;
            let mut bytes = vec![0; n * ENTRY_BYTES];
            self.file.read_exact_at(&mut bytes, self.next * ENTRY_BYTES as u64)?;
            self.next += n as u64;
            self.buffer.extend(bytes.as_chunks::<ENTRY_BYTES>().0.iter().rev().map(|entry| {
                let (hash, docid) = entry.split_at(16);
                let hash = u128::from_le_bytes(hash.try_into().expect("16 bytes"));
                (hash, u32::from_le_bytes(docid.try_into().expect("4 bytes")))
            }));
        }
        Ok(self.buffer.pop())
    }
}

/// Counts in a sorted stream.
#[derive(Default)]
struct Count {
    last: Option<(u128, u32)>,
    duplicates: Duplicates,
}

impl Count {
    fn add(&mut self, (hash, docid): (u128, u32)) {
        match self.last {
            Some((last, earliest)) if last == hash => {
                self.duplicates.count += 1;
                let first = &mut self.duplicates.first;
                if first.is_none_or(|(d, _)| docid < d) {
                    *first = Some((docid, earliest));
                }
            }
            _ => self.last = Some((hash, docid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn oracle_counts_like_a_map(names in prop::collection::vec(0u32..300, 0..1500), most in 1u64..40_000, threads in 1usize..4) {
            let dir = tempfile::tempdir().unwrap();
            let mut counted = Names::new(dir.path(), most);
            let mut seen: HashMap<u32, u32> = HashMap::new();
            let mut expected = Duplicates::default();
            for (docid, name) in (0u32..).zip(&names) {
                counted.push(&name.to_le_bytes(), docid).unwrap();
                match seen.get(name) {
                    Some(&earlier) => {
                        expected.count += 1;
                        expected.first.get_or_insert((docid, earlier));
                    }
                    None => _ = seen.insert(*name, docid),
                }
            }
            prop_assert_eq!(counted.finish(threads).unwrap(), expected);
            prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn threads_count_alike() {
        let dir = tempfile::tempdir().unwrap();
        let counted = |threads| {
            let mut names = Names::new(dir.path(), u64::MAX);
            for docid in 0..300_000u32 {
                // Two of five have a name that an earlier one has.
                let name = if docid % 5 < 3 { docid } else { docid / 7 };
                names.push(&name.to_le_bytes(), docid).unwrap();
            }
            names.finish(threads).unwrap()
        };
        let expected = counted(1);
        assert!(expected.count > 100_000);
        for threads in [2, 3, 16] {
            assert_eq!(counted(threads), expected, "{threads} threads");
        }
    }
}
