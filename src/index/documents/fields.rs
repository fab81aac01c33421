//! The lengths of a run's documents, in tokens: a file of those of all text and, if the index has
//! fields, one with those of each field, one behind the other for each document
//! (`docs/index-format.md`, Documents).

use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, FilledFile, StorageFile};
use crate::index::format::{
    FileHeader, FileKind, HEADER_BYTES, LONG, check_length, padding, run_file, run_name,
};
use crate::index::generations::manifest::{RunEntry, find_file};
use std::path::Path;
use std::sync::Mutex;

const BODY: u64 = HEADER_BYTES as u64;

/// A file of lengths, mapped.
#[derive(Debug)]
pub(crate) struct FieldLengths {
    map: Map,
    documents: u32,
    /// Lengths of each document.
    each: u64,
    tokens: u64,
    /// Lengths of 65,535 tokens or more.
    long: u64,
}

impl FieldLengths {
    /// Maps those of the fields of a run, and reads no more than the header; none of a run without
    /// fields.
    pub(crate) fn open(generation: &Path, run: &RunEntry) -> Result<Option<Self>, IndexError> {
        let fields = run.field_tokens.len() as u64;
        let open = || Self::of_kind(generation, run, FileKind::Fields, fields);
        (fields > 0).then(open).transpose()
    }

    /// The same for those of all text.
    pub(super) fn of_text(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let lengths = Self::of_kind(generation, run, FileKind::Lengths, 1)?;
        match lengths.tokens == run.tokens {
            true => Ok(lengths),
            false => Err(IndexError::damaged(lengths.map.path(), 24, run.tokens, lengths.tokens)),
        }
    }

    fn of_kind(
        generation: &Path,
        run: &RunEntry,
        kind: FileKind,
        each: u64,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, kind))?;
        let header = FileHeader::parse(map.path(), kind, map.bytes())?;
        header.check_unused(map.path(), if kind == FileKind::Fields { 4 } else { 3 })?;
        let [documents, tokens, long, fields, _] = header.values;
        let fields = if kind == FileKind::Fields { fields } else { each };
        for (at, expected, found) in [(16, run.documents.into(), documents), (40, each, fields)] {
            if expected != found {
                return Err(IndexError::damaged(map.path(), at, expected, found));
            }
        }
        let lengths = Self { map, documents: run.documents, each, tokens, long };
        let expected = long.checked_mul(8).and_then(|long| long.checked_add(lengths.long_start()));
        check_length(lengths.map.path(), lengths.map.bytes().len() as u64, expected)?;
        Ok(lengths)
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Verifies the checksum of the file by the `files` of the generation's manifest.
    pub(crate) fn verify(
        &self,
        generation: &Path,
        run: &RunEntry,
        files: &[FileEntry],
    ) -> Result<(), IndexError> {
        let entry = find_file(files, generation, &run.file(FileKind::Fields))?;
        self.map.verify(entry.bytes, entry.crc32)
    }

    /// Of all documents and fields together, by the header.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    fn count(&self) -> u64 {
        u64::from(self.documents) * self.each
    }

    /// Where the long lengths begin, each behind its number among all.
    fn long_start(&self) -> u64 {
        BODY + 2 * self.count() + padding(2 * self.count())
    }

    /// The lengths of all documents in a field, in tokens, by its number from 1. The blocks of the
    /// file are verified.
    pub(crate) fn of(&self, field: u8) -> Result<Vec<u32>, IndexError> {
        self.map.check_all()?;
        self.column(usize::from(field) - 1)
    }

    /// The lengths at a place among those of each document, as they are.
    pub(super) fn column(&self, column: usize) -> Result<Vec<u32>, IndexError> {
        let short: &[u16] = self.map.array(BODY, self.count())?;
        let each = self.each as usize;
        let mut lengths: Vec<u32> = match each {
            1 => short.iter().map(|&tokens| tokens.into()).collect(),
            _ => short.iter().skip(column).step_by(each).map(|&tokens| tokens.into()).collect(),
        };
        let first = self.long_start();
        let mut left = (0..).zip(short).filter(|(_, short)| **short == LONG);
        for (number, &[found, tokens]) in (0..).zip(self.map.array::<[u32; 2]>(first, self.long)?) {
            match left.next() {
                Some((next, _)) if next == found as usize && tokens >= LONG.into() => {
                    if next % each == column {
                        lengths[next / each] = tokens;
                    }
                }
                next => {
                    let expected = match next {
                        Some((next, _)) => format!("at least {LONG} tokens of length {next}"),
                        None => "no more long lengths".to_owned(),
                    };
                    let offset = first + 8 * number;
                    let found = format!("{tokens} of {found}");
                    return Err(IndexError::damaged(self.map.path(), offset, expected, found));
                }
            }
        }
        match left.next() {
            None => Ok(lengths),
            Some((at, _)) => {
                let expected = format!("{} long lengths", self.long);
                let found = format!("one more, length {at}");
                Err(IndexError::damaged(self.map.path(), BODY + 2 * at as u64, expected, found))
            }
        }
    }

    /// The lengths of one document, that in field 1 first, by blocks that are verified.
    pub(crate) fn of_document(&self, docid: u32) -> Result<Vec<u32>, IndexError> {
        if docid >= self.documents {
            let expected = format!("more than {docid} documents");
            return Err(IndexError::damaged(self.map.path(), 16, expected, self.documents));
        }
        let first = u64::from(docid) * self.each;
        let short: &[u16] = self.map.checked_array(BODY + 2 * first, self.each)?;
        let length = |(number, &short): (u64, &u16)| match short {
            LONG => {
                let start = self.long_start();
                let long: &[[u32; 2]] = self.map.checked_array(start, self.long)?;
                let none = |_| IndexError::damaged(self.map.path(), start, "its length", docid);
                let at = long.binary_search_by_key(&number, |entry| entry[0].into());
                at.map(|at| long[at][1]).map_err(none)
            }
            short => Ok(short.into()),
        };
        (first..).zip(short).map(length).collect()
    }
}

/// A file of lengths that is written, by any threads at places that leave no gaps.
///
/// Memory: 2 bytes for each length while it is written, and 8 for each of 65,535 tokens or more.
#[derive(Debug)]
pub(super) struct PlacedLengths {
    file: FilledFile,
    kind: FileKind,
    each: usize,
    /// The long ones, and tokens by place among the lengths of a document.
    sum: Mutex<(Vec<[u32; 2]>, Vec<u64>)>,
}

impl PlacedLengths {
    /// Creates the file of run `number`, with this many lengths of each document.
    pub(super) fn create(
        generation: &Path,
        number: u32,
        kind: FileKind,
        each: usize,
    ) -> Result<Self, IndexError> {
        let file = StorageFile::create(generation, &run_file(&run_name(number), kind))?;
        let file = FilledFile::of(file);
        Ok(Self { file, kind, each, sum: Mutex::new((Vec::new(), vec![0; each])) })
    }

    /// Writes the lengths of neighbouring documents, of which this many come `before`. `Refused` if
    /// there are more lengths than a run may have.
    pub(super) fn write(&self, before: u32, lengths: &[u32]) -> Result<(), IndexError> {
        let first = u64::from(before) * self.each as u64;
        if u32::try_from(first + lengths.len() as u64).is_err() {
            let most = u32::MAX / self.each as u32;
            let reason = format!("a run with {} fields has at most {most} documents", self.each);
            return Err(IndexError::refused(self.file.path(), reason));
        }
        let mut long = Vec::new();
        let shorts = (first as u32..).zip(lengths).map(|(number, &length)| {
            let short = u16::try_from(length).unwrap_or(LONG);
            if short == LONG {
                long.push([number, length]);
            }
            short.to_le()
        });
        let shorts: Vec<u16> = shorts.collect();
        let bytes: &[u8] = bytemuck::cast_slice(&shorts);
        let room = self.file.room_at(2 * first, bytes.len() as u64);
        self.file.fill(room, [bytes], &mut Vec::new());
        self.file.check()?;
        let mut sum = lock(&self.sum);
        sum.0.append(&mut long);
        for (column, tokens) in sum.1.iter_mut().enumerate() {
            let own = lengths.iter().skip(column).step_by(self.each);
            *tokens += own.map(|&length| u64::from(length)).sum::<u64>();
        }
        Ok(())
    }

    /// Ends the file. Returns its entry and the sums of its lengths.
    pub(super) fn finish(self, documents: u32) -> Result<(FileEntry, Vec<u64>), IndexError> {
        let (mut long, tokens) = std::mem::take(&mut *lock(&self.sum));
        long.sort_unstable();
        let mut file = self.file.end()?;
        file.pad()?;
        file.write(bytemuck::cast_slice(&long))?;
        let fields = if self.kind == FileKind::Fields { self.each as u64 } else { 0 };
        let values = [documents.into(), tokens.iter().sum(), long.len() as u64, fields, 0];
        let entry = file.finish(FileHeader { kind: self.kind, values, last: 0 })?;
        Ok((entry, tokens))
    }
}
