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
const COUNT_BITS: u32 = 31;

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
    pub(super) fn new(name: u128, content: u64, is_new: bool, number: u32) -> Self {
        let side = if is_new { NEW } else { 0 } | u64::from(number) << COUNT_BITS | 1;
        Self { name: [name as u64, (name >> 64) as u64], content, side }
    }

    /// Takes the documents of a row that follow. Whether they do.
    pub(super) fn extend(&mut self, row: &Self) -> bool {
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
pub(super) struct NewPairFile {
    file: BufWriter<File>,
    path: PathBuf,
    rows: u64,
    last: Option<PairRow>,
}

impl NewPairFile {
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, IndexError> {
        let path = folder.join(name);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(IndexError::storage("write", &path))?;
        let file = BufWriter::with_capacity(CUT_BYTES, file);
        Ok(Self { file, path, rows: 0, last: None })
    }

    pub(super) fn put(&mut self, row: Option<PairRow>) -> Result<(), IndexError> {
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

    pub(super) fn finish(mut self) -> Result<PairFile, IndexError> {
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

impl PairFile {
    /// Writes the documents to files of this `name`, by this many ranges of a hash.
    pub(super) fn cut(
        &self,
        folder: &Path,
        name: &str,
        ranges: u64,
        hash: impl Fn(&PairRow) -> u64,
    ) -> Result<Vec<Self>, IndexError> {
        let create = |number| NewPairFile::create(folder, &format!("{name}-{number:03}"));
        let mut files = (0..ranges).map(create).collect::<Result<Vec<_>, _>>()?;
        let mut rows = Vec::new();
        for start in (0..self.rows).step_by(CHUNK as usize) {
            self.read(start..self.rows.min(start + CHUNK), &mut rows)?;
            for row in &rows {
                let range = (u128::from(hash(row)) * u128::from(ranges)) >> 64;
                files[range as usize].put(Some(*row))?;
            }
        }
        files.into_iter().map(NewPairFile::finish).collect()
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
