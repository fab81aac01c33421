//! Writes the columns of a run, one after the other.

use super::gathered::{ColumnParts, ColumnValues};
use super::spec::{Column, ColumnKind};
use super::{ColumnEntry, SEVERAL, width_of};
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, run_file, run_name};
use std::path::Path;

/// Memory: what is gathered of one column, and 4 bytes for each of its words.
#[derive(Debug)]
pub(crate) struct ColumnsWriter {
    file: StorageFile,
    entries: Vec<ColumnEntry>,
    documents: u32,
}

impl ColumnsWriter {
    /// Creates the file of run `number`, which has this many documents.
    pub(crate) fn create(
        generation: &Path,
        number: u32,
        documents: u32,
    ) -> Result<Self, IndexError> {
        let name = run_file(&run_name(number), FileKind::Columns);
        let file = StorageFile::create(generation, &name)?;
        Ok(Self { file, entries: Vec::new(), documents })
    }

    /// Writes the columns of a run as they were gathered.
    pub(crate) fn write_all(
        generation: &Path,
        number: u32,
        documents: u32,
        columns: &[Column],
        mut parts: ColumnParts,
    ) -> Result<FileEntry, IndexError> {
        let mut writer = Self::create(generation, number, documents)?;
        for (at, column) in columns.iter().enumerate() {
            writer.write(column, parts.take(at))?;
        }
        writer.finish()
    }

    /// Writes the next column.
    ///
    /// # Errors
    /// `Refused` if there are 2^32 values or more, or not as many documents as in the run.
    pub(crate) fn write(
        &mut self,
        column: &Column,
        mut values: ColumnValues,
    ) -> Result<(), IndexError> {
        let documents = values.ends.len();
        if documents != self.documents as usize || u32::try_from(values.keys.len()).is_err() {
            let why = format!("a run has values of its documents, and less than 2^32 of {column}");
            return Err(IndexError::refused(self.file.path(), &why));
        }
        let mut entry = ColumnEntry { kind: column.kind as u8, ..ColumnEntry::default() };
        let words = sort_words(&mut values);
        let ColumnValues { ends, keys, .. } = values;
        entry.values = keys.len() as u64;
        entry.least = match column.kind {
            ColumnKind::Word => 0,
            _ => keys.iter().copied().min().unwrap_or(0),
        };
        let greatest = keys.iter().copied().max();
        let spread = greatest.map(|greatest| greatest - entry.least);
        let code = |key: u64| key - entry.least;
        if column.several {
            entry.kind |= SEVERAL;
            entry.widths[0] = width_of(spread.unwrap_or(0));
            entry.widths[1] = width_of(ends.last().copied().unwrap_or(0).into());
            self.put(entry.widths[1], ends.iter().map(|&end| end.into()))?;
            self.put(entry.widths[0], keys.iter().map(|&key| code(key)))?;
        } else {
            // Code 0 is no value.
            entry.widths[0] = width_of(spread.map_or(0, |spread| spread + 1));
            let mut start = 0;
            let codes = ends.iter().map(|&end| {
                let own = keys.get(std::mem::replace(&mut start, end as usize)..end as usize);
                own.and_then(<[u64]>::first).map_or(0, |&key| code(key) + 1)
            });
            self.put(entry.widths[0], codes)?;
        }
        if column.kind == ColumnKind::Word {
            entry.words = words.len() as u64;
            entry.word_bytes = words.iter().map(|word| word.len() as u64).sum();
            entry.widths[2] = width_of(entry.word_bytes);
            let mut end = 0;
            self.put(
                entry.widths[2],
                words.iter().map(|word| {
                    end += word.len() as u64;
                    end
                }),
            )?;
            words.iter().try_for_each(|word| self.file.write(word.as_bytes()))?;
            self.file.pad()?;
        }
        self.entries.push(entry);
        Ok(())
    }

    fn put(&mut self, width: u8, numbers: impl Iterator<Item = u64>) -> Result<(), IndexError> {
        if width > 0 {
            for number in numbers {
                self.file.write(&number.to_le_bytes()[..width.into()])?;
            }
        }
        self.file.pad()
    }

    /// Writes the table and the header.
    pub(crate) fn finish(mut self) -> Result<FileEntry, IndexError> {
        let table = self.file.body_bytes();
        self.file.write(bytemuck::cast_slice(&self.entries))?;
        let values = [self.documents.into(), self.entries.len() as u64, table, 0, 0];
        self.file.finish(FileHeader { kind: FileKind::Columns, values, last: 0 })
    }
}

/// Sorts the words of values, and leaves out those that none is: keys become places.
fn sort_words(values: &mut ColumnValues) -> Vec<Box<str>> {
    let mut is_used = vec![false; values.words.len()];
    if is_used.is_empty() {
        return Vec::new();
    }
    values.keys.iter().for_each(|&key| is_used[key as usize] = true);
    let words = std::mem::take(&mut values.words).into_iter().enumerate();
    let mut words: Vec<_> = words.filter(|(number, _)| is_used[*number]).collect();
    words.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
    let mut places = vec![0; is_used.len()];
    for (place, (number, _)) in words.iter().enumerate() {
        places[*number] = place as u64;
    }
    values.keys.iter_mut().for_each(|key| *key = places[*key as usize]);
    words.into_iter().map(|(_, word)| word).collect()
}
