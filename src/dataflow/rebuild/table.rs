//! A table of the names and content hashes of documents on disk, sorted by name: a scratch file of
//! one rebuild, with 32 bytes an entry and nothing else.
//!
//! A name is its 128-bit hash: among ten thousand million names two share one with a probability
//! below 10^-18. [`Sorter`] takes entries in any order in bounded memory; [`Table`] is read in
//! ranges of names, with positioned reads.

use crate::index::error::IndexError;
use bytemuck::{Pod, Zeroable};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const ENTRY: usize = size_of::<TableEntry>();

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TableEntry {
    /// Hash of its name; the order of the table.
    pub name: u128,
    pub content: u64,
    pub input: u32,
    /// Its docid, or its number in the order in which the inputs were read.
    pub number: u32,
}

pub(crate) fn name_hash(name: &[u8]) -> u128 {
    twox_hash::XxHash3_128::oneshot(name)
}

pub(crate) struct Sorter {
    folder: PathBuf,
    held: Vec<TableEntry>,
    most: usize,
    parts: Vec<PathBuf>,
}

impl Sorter {
    /// Holds `bytes` bytes at most, at least a thousand entries, and writes the rest to files in
    /// `folder`.
    pub(crate) fn new(folder: &Path, bytes: u64) -> Self {
        let most = (bytes / ENTRY as u64).clamp(1000, u64::from(u32::MAX)) as usize;
        Self { folder: folder.to_path_buf(), held: Vec::new(), most, parts: Vec::new() }
    }

    pub(crate) fn push(&mut self, entry: TableEntry) -> Result<(), IndexError> {
        if self.held.len() == self.most {
            self.held.sort_unstable();
            let path = self.folder.join(format!("part-{:04}", self.parts.len()));
            write(&path, self.held.iter().map(|entry| Ok(*entry)))?;
            self.parts.push(path);
            self.held.clear();
        }
        self.held.push(entry);
        Ok(())
    }

    pub(crate) fn finish(mut self, path: &Path) -> Result<Table, IndexError> {
        self.held.sort_unstable();
        if self.parts.is_empty() {
            return write(path, self.held.iter().map(|entry| Ok(*entry)));
        }
        let mut sources = vec![EntrySource::Held(std::mem::take(&mut self.held).into_iter())];
        for part in &self.parts {
            let file = File::open(part).map_err(IndexError::storage("open", part))?;
            sources.push(EntrySource::Part(BufReader::with_capacity(1 << 18, file), part.clone()));
        }
        let mut heads = BinaryHeap::new();
        for (number, source) in sources.iter_mut().enumerate() {
            heads.extend(source.next().transpose()?.map(|entry| Reverse((entry, number))));
        }
        let merged = std::iter::from_fn(|| {
            let Reverse((least, number)) = heads.pop()?;
            match sources[number].next() {
                Some(Ok(entry)) => heads.push(Reverse((entry, number))),
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
            Some(Ok(least))
        });
        let table = write(path, merged)?;
        for part in &self.parts {
            fs::remove_file(part).map_err(IndexError::storage("remove", part))?;
        }
        Ok(table)
    }
}

enum EntrySource {
    Held(std::vec::IntoIter<TableEntry>),
    Part(BufReader<File>, PathBuf),
}

impl EntrySource {
    fn next(&mut self) -> Option<Result<TableEntry, IndexError>> {
        match self {
            EntrySource::Held(entries) => entries.next().map(Ok),
            EntrySource::Part(file, path) => {
                let mut entry = TableEntry::zeroed();
                match file.read_exact(bytemuck::bytes_of_mut(&mut entry)) {
                    Ok(()) => Some(Ok(entry)),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                    Err(error) => Some(Err(IndexError::storage("read", path)(error))),
                }
            }
        }
    }
}

/// Not synced: no job needs the table of another.
fn write(
    path: &Path,
    entries: impl Iterator<Item = Result<TableEntry, IndexError>>,
) -> Result<Table, IndexError> {
    let error = || IndexError::storage("write", path);
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
    let mut out = BufWriter::with_capacity(1 << 18, file.map_err(error())?);
    let mut count = 0;
    for entry in entries {
        out.write_all(bytemuck::bytes_of(&entry?)).map_err(error())?;
        count += 1;
    }
    let file = out.into_inner().map_err(|failed| error()(failed.into_error()))?;
    Ok(Table { path: path.to_path_buf(), file, entries: count })
}

#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    file: File,
    entries: u64,
}

impl Table {
    pub(crate) fn len(&self) -> u64 {
        self.entries
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    pub(crate) fn entries(&self, range: Range<u64>) -> Result<Vec<TableEntry>, IndexError> {
        let mut entries = vec![TableEntry::zeroed(); (range.end - range.start) as usize];
        let at = range.start * ENTRY as u64;
        let bytes = bytemuck::cast_slice_mut(&mut entries);
        self.file.read_exact_at(bytes, at).map_err(IndexError::storage("read", &self.path))?;
        Ok(entries)
    }

    /// The number of the first entry whose name is `name` or greater.
    pub(crate) fn first_from(&self, name: u128) -> Result<u64, IndexError> {
        let mut low = 0;
        let mut high = self.entries;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entries(middle..middle + 1)?[0].name < name {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: u128, number: u32) -> TableEntry {
        TableEntry { name, content: u64::from(number) * 7, input: number % 3, number }
    }

    fn sorted(folder: &Path, entries: &[TableEntry], bytes: u64) -> Table {
        let mut sorter = Sorter::new(folder, bytes);
        for entry in entries {
            sorter.push(*entry).unwrap();
        }
        sorter.finish(&folder.join("table")).unwrap()
    }

    #[test]
    fn entries_come_back_sorted_whether_they_fit_memory_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut entries: Vec<TableEntry> =
            (0..25_000).map(|n| entry(name_hash(&(n / 2u32).to_le_bytes()), n)).collect();
        let spilled = sorted(folder.path(), &entries, 0);
        entries.sort_unstable();
        assert_eq!(spilled.entries(0..spilled.len()).unwrap(), entries);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "parts are removed");
        let held = sorted(folder.path(), &entries, 1 << 30);
        assert_eq!(held.entries(0..held.len()).unwrap(), entries);
        for (at, entry) in entries.iter().enumerate().step_by(997) {
            let first = entries.partition_point(|other| other.name < entry.name) as u64;
            assert_eq!(held.first_from(entry.name).unwrap(), first, "{at}");
        }
        assert_eq!(held.first_from(0).unwrap(), 0);
    }

    #[test]
    fn no_entries() {
        let folder = tempfile::tempdir().unwrap();
        let table = sorted(folder.path(), &[], 0);
        assert!(table.is_empty());
        assert_eq!(table.first_from(5).unwrap(), 0);
    }
}
