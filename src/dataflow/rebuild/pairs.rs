//! Documents that are compared, in scratch files by ranges of hashes.

use crate::index::error::IndexError;
use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Rows that are read at a time.
const CHUNK: u64 = 1 << 14;

/// Documents of one side that follow one another: the highest bit if they are new, then the docid
/// or number of the first, and how many they are.
pub(super) type Stretch = u64;

pub(super) const NEW: Stretch = 1 << 63;
pub(super) const COUNT_BITS: u32 = 31;

pub(super) fn numbers(stretch: Stretch) -> Range<u32> {
    let first = (stretch >> COUNT_BITS) as u32;
    first..first + (stretch & ((1 << COUNT_BITS) - 1)) as u32
}

/// Documents of either side with one name and one content, as they lie in a scratch file.
#[derive(Clone, Copy, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(super) struct PairRow {
    pub name: [u64; 2],
    pub content: u64,
    pub side: Stretch,
}

impl PairRow {
    /// Takes the documents of a row that follow. Whether they do.
    fn extend(&mut self, row: &Self) -> bool {
        let (here, more) = (numbers(self.side), numbers(row.side));
        let is_alike = (self.name, self.content) == (row.name, row.content);
        let next = (self.side >> COUNT_BITS) + here.len() as u64;
        let follows = is_alike && next == row.side >> COUNT_BITS;
        let fits = here.len() + more.len() < 1 << COUNT_BITS;
        self.side += if follows && fits { more.len() as u64 } else { 0 };
        follows && fits
    }
}

const ROW_BYTES: usize = size_of::<PairRow>();

/// The documents of both sides whose names are in a range of hashes.
pub(super) struct PairFile {
    file: File,
    path: PathBuf,
    pub rows: u64,
}

/// One that is being written.
struct NewPairFile {
    file: BufWriter<File>,
    path: PathBuf,
    rows: u64,
    last: Option<PairRow>,
}

impl NewPairFile {
    fn put(&mut self, row: Option<PairRow>) -> Result<(), IndexError> {
        if let (Some(last), Some(row)) = (&mut self.last, &row)
            && last.extend(row)
        {
            return Ok(());
        }
        let Some(last) = std::mem::replace(&mut self.last, row) else { return Ok(()) };
        self.rows += 1;
        let written = self.file.write_all(bytemuck::bytes_of(&last));
        written.map_err(IndexError::storage("write", &self.path))
    }

    fn finish(mut self) -> Result<PairFile, IndexError> {
        self.put(None)?;
        let Self { file, path, rows, .. } = self;
        let file = file.into_inner();
        let file = file.map_err(|error| IndexError::storage("write", &path)(error.into_error()))?;
        Ok(PairFile { file, path, rows })
    }
}

/// Files of ranges that are open at a time, at most.
pub(super) const MOST_RANGES: u64 = 512;

/// Bytes that are written to the file of a range at a time.
const CUT_BYTES: usize = 32 << 10;

/// Takes a document into the file of a range, by a hash that tells the range.
pub(super) type PutRow<'a> = &'a mut dyn FnMut(u64, PairRow) -> Result<(), IndexError>;

/// Writes documents to files by this many ranges of hashes.
pub(super) fn cut(
    folder: &Path,
    name: &str,
    ranges: u64,
    each: impl FnOnce(PutRow<'_>) -> Result<(), IndexError>,
) -> Result<Vec<PairFile>, IndexError> {
    let mut files = Vec::new();
    for number in 0..ranges {
        let path = folder.join(format!("{name}-{number:03}"));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(IndexError::storage("write", &path))?;
        let file = BufWriter::with_capacity(CUT_BYTES, file);
        files.push(NewPairFile { file, path, rows: 0, last: None });
    }
    each(&mut |hash, row| {
        let range = ((u128::from(hash) * u128::from(ranges)) >> 64) as usize;
        files[range].put(Some(row))
    })?;
    files.into_iter().map(NewPairFile::finish).collect()
}

impl PairFile {
    /// By this many ranges of contents.
    pub(super) fn cut(&self, folder: &Path, ranges: u64) -> Result<Vec<Self>, IndexError> {
        cut(folder, "contents", ranges, |put| {
            let mut rows = Vec::new();
            for start in (0..self.rows).step_by(CHUNK as usize) {
                self.read(start..self.rows.min(start + CHUNK), &mut rows)?;
                rows.iter().try_for_each(|row| put(row.content, *row))?;
            }
            Ok(())
        })
    }

    pub(super) fn read(
        &self,
        wanted: Range<u64>,
        rows: &mut Vec<PairRow>,
    ) -> Result<(), IndexError> {
        rows.resize((wanted.end - wanted.start) as usize, PairRow::zeroed());
        let read = self
            .file
            .read_exact_at(bytemuck::cast_slice_mut(rows), wanted.start * ROW_BYTES as u64);
        read.map_err(IndexError::storage("read", &self.path))
    }
}
