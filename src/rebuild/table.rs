//! Which documents are there, and what do they say? A table of names and content hashes, sorted by
//! name, on disk.
//!
//! ```text
//! magic 8 | entries u64 | crc32 of all entries u32 | 0 u32 | entries of 32 bytes
//! ```
//!
//! A name is its 128-bit hash: among ten thousand million names two share one with a probability
//! below 10^-18. [`Sorter`] takes entries in any order and holds no more of them than it is told to;
//! [`Table`] is read in ranges of names, with positioned reads.

use bytemuck::{Pod, Zeroable};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

const MAGIC: [u8; 8] = *b"MRTABLE1";

/// Bytes before the entries.
const HEAD: usize = 24;

/// Bytes of an entry.
const ENTRY: usize = size_of::<Entry>();

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Entry {
    /// Hash of its name; the order of the table.
    pub name: u128,
    /// Hash of its content.
    pub content: u64,
    /// Which input it comes from.
    pub input: u32,
    /// Its docid, or its number in the order in which the inputs were read.
    pub number: u32,
}

/// The hash of a document's name.
pub fn name_hash(name: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(name)
}

/// Why a table cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The file is not a table, or a byte of it has changed.
    #[error("{}: byte {at}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong there.
        message: &'static str,
    },
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> TableError + '_ {
    |source| TableError::Io { path: path.to_path_buf(), source }
}

/// Sorts entries in bounded memory.
pub struct Sorter {
    folder: PathBuf,
    held: Vec<Entry>,
    most: usize,
    parts: Vec<PathBuf>,
}

impl Sorter {
    /// Makes a sorter that holds `bytes` bytes at most, at least those of a thousand entries, and
    /// writes what is more to files in `folder`.
    pub fn new(folder: &Path, bytes: u64) -> Self {
        let most = (bytes / ENTRY as u64).clamp(1000, u64::from(u32::MAX)) as usize;
        Self { folder: folder.to_path_buf(), held: Vec::new(), most, parts: Vec::new() }
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn push(&mut self, entry: Entry) -> Result<(), TableError> {
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

    /// Writes the table of all entries to `path` and opens it.
    ///
    /// # Errors
    /// When a file cannot be written or read.
    pub fn finish(mut self, path: &Path) -> Result<Table, TableError> {
        self.held.sort_unstable();
        if self.parts.is_empty() {
            write(path, self.held.iter().map(|entry| Ok(*entry)))?;
            return Table::open(path);
        }
        let mut sources = vec![Source::Held(std::mem::take(&mut self.held).into_iter())];
        for part in &self.parts {
            let mut file = File::open(part).map_err(io_error(part))?;
            io::copy(&mut Read::by_ref(&mut file).take(HEAD as u64), &mut io::sink())
                .map_err(io_error(part))?;
            sources.push(Source::Part(BufReader::with_capacity(1 << 18, file), part.clone()));
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
        write(path, merged)?;
        for part in &self.parts {
            fs::remove_file(part).map_err(io_error(part))?;
        }
        Table::open(path)
    }
}

/// Sorted entries.
enum Source {
    Held(std::vec::IntoIter<Entry>),
    Part(BufReader<File>, PathBuf),
}

impl Source {
    fn next(&mut self) -> Option<Result<Entry, TableError>> {
        match self {
            Source::Held(entries) => entries.next().map(Ok),
            Source::Part(file, path) => {
                let mut entry = Entry::zeroed();
                match file.read_exact(bytemuck::bytes_of_mut(&mut entry)) {
                    Ok(()) => Some(Ok(entry)),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                    Err(error) => Some(Err(io_error(path)(error))),
                }
            }
        }
    }
}

/// Writes sorted entries as a table. It is not synced: no job needs the table of another.
fn write(
    path: &Path,
    entries: impl Iterator<Item = Result<Entry, TableError>>,
) -> Result<(), TableError> {
    let error = io_error(path);
    let file = File::create(path).map_err(&error)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    out.write_all(&[0; HEAD]).map_err(&error)?;
    let (mut count, mut crc) = (0u64, crc32fast::Hasher::new());
    for entry in entries {
        let entry = entry?;
        let bytes = bytemuck::bytes_of(&entry);
        crc.update(bytes);
        out.write_all(bytes).map_err(&error)?;
        count += 1;
    }
    let file = out.into_inner().map_err(|failed| error(failed.into_error()))?;
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&count.to_le_bytes());
    head[16..20].copy_from_slice(&crc.finalize().to_le_bytes());
    file.write_all_at(&head, 0).map_err(&error)
}

/// A sorted table on disk.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    file: File,
    entries: u64,
}

impl Table {
    /// Opens a table and verifies it whole.
    ///
    /// # Errors
    /// `Io`; `Damaged` where anything but what was written is read.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let error = io_error(path);
        let damaged = |at, message| TableError::Damaged { path: path.to_path_buf(), at, message };
        let mut file = File::open(path).map_err(&error)?;
        let bytes = file.metadata().map_err(&error)?.len();
        let mut head = [0; HEAD];
        if bytes < HEAD as u64 {
            return Err(damaged(bytes, "the head is cut short"));
        }
        file.read_exact(&mut head).map_err(&error)?;
        if head[..8] != MAGIC || head[20..] != [0; 4] {
            return Err(damaged(0, "this is not a table of documents"));
        }
        let entries = u64::from_le_bytes(head[8..16].try_into().expect("8 bytes"));
        if entries.checked_mul(ENTRY as u64) != Some(bytes - HEAD as u64) {
            return Err(damaged(8, "the number of entries is not that of the file's length"));
        }
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            match file.read(&mut buffer).map_err(&error)? {
                0 => break,
                n => crc.update(&buffer[..n]),
            }
        }
        if crc.finalize().to_le_bytes() != head[16..20] {
            return Err(damaged(16, "the checksum is not that of the entries"));
        }
        Ok(Self { path: path.to_path_buf(), file, entries })
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The entries whose numbers in the table are in a range.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self, range: Range<u64>) -> Result<Vec<Entry>, TableError> {
        let mut entries = vec![Entry::zeroed(); (range.end - range.start) as usize];
        let at = HEAD as u64 + range.start * ENTRY as u64;
        let bytes = bytemuck::cast_slice_mut(&mut entries);
        self.file.read_exact_at(bytes, at).map_err(io_error(&self.path))?;
        Ok(entries)
    }

    /// The number of the first entry whose name is `name` or greater.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn first_from(&self, name: u128) -> Result<u64, TableError> {
        let (mut low, mut high) = (0, self.entries);
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
    use proptest::prelude::*;

    fn entry(name: u128, number: u32) -> Entry {
        Entry { name, content: u64::from(number) * 7, input: number % 3, number }
    }

    fn sorted(folder: &Path, entries: &[Entry], bytes: u64) -> Table {
        let mut sorter = Sorter::new(folder, bytes);
        for entry in entries {
            sorter.push(*entry).unwrap();
        }
        sorter.finish(&folder.join("table")).unwrap()
    }

    #[test]
    fn entries_come_back_sorted_whether_they_fit_memory_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut entries: Vec<Entry> =
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn law_every_flipped_bit_and_every_cut_is_found(bit in 0usize..(24 + 5 * 32) * 8, cut in 0usize..24 + 5 * 32) {
            let folder = tempfile::tempdir().unwrap();
            let entries: Vec<Entry> = (0..5).map(|n| entry(u128::from(n), n)).collect();
            drop(sorted(folder.path(), &entries, 0));
            let path = folder.path().join("table");
            let whole = fs::read(&path).unwrap();
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            prop_assert!(Table::open(&path).is_err(), "bit {bit}");
            fs::write(&path, &whole[..cut]).unwrap();
            prop_assert!(Table::open(&path).is_err(), "cut {cut}");
        }
    }
}
