//! Several threads write the documents of one run: once it is known how many come before some
//! neighbouring ones, these have their places in the files.

use super::blocks::{BlockOrder, BlocksPart, PlacedBlocks, RowsView};
use super::fields::PlacedLengths;
use super::lookup::NameColumn;
use super::{DocumentsEntry, Location};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::files::storage::{FilledFile, StorageFile};
use crate::index::format::{FileHeader, FileKind, run_file, run_name};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// Neighbouring documents as columns, each with an entry for each of them.
#[derive(Debug)]
pub(crate) struct DocumentColumns<'a> {
    /// End to end.
    pub names: &'a str,
    /// The end of each name in `names`.
    pub ends: &'a [u64],
    pub lengths: &'a [u32],
    /// Inputs are numbered in the generation, and afterwards in the run.
    pub locations: &'a mut [Location],
    pub hashes: &'a [u64],
}

/// The six files of a run's documents, written by any threads at places that leave no gaps.
///
/// Memory: 3 bytes for each document while it is written, a write buffer for each thread, 8 bytes
/// for each document of 65,535 tokens or more, about 30 for each part that is written, and parts
/// that were written before those in front of them.
#[derive(Debug)]
pub(crate) struct PlacedDocuments {
    lengths: PlacedLengths,
    names: FilledFile,
    ends: FilledFile,
    locations: FilledFile,
    hashes: FilledFile,
    lookup: NameColumn,
    /// If the index has fields.
    fields: Option<PlacedLengths>,
    first_input: u32,
    sum: Mutex<PlacedSum>,
    order: Mutex<BlockOrder>,
}

#[derive(Debug, Default)]
struct PlacedSum {
    documents: u32,
    inputs: u32,
    /// By the first document of each part that was written: its first input and its last, but none
    /// if inputs fall in it.
    parts: BTreeMap<u32, Option<[u32; 2]>>,
}

impl PlacedSum {
    /// Whether inputs never fall from document to document.
    fn inputs_rise(&self) -> bool {
        let mut least = 0;
        self.parts.values().all(|part| {
            let rises = part.is_some_and(|[first, _]| first >= least);
            least = part.map_or(u32::MAX, |[_, last]| last);
            rises
        })
    }
}

impl PlacedDocuments {
    /// Creates the files of run `number`. No document lies in an input before `first_input`.
    pub(crate) fn create(
        generation: &Path,
        number: u32,
        first_input: u32,
    ) -> Result<Self, IndexError> {
        let run = run_name(number);
        let create = |kind| {
            let file = StorageFile::create(generation, &run_file(&run, kind))?;
            Ok(FilledFile::of(file))
        };
        Ok(Self {
            lengths: PlacedLengths::create(generation, number, FileKind::Lengths, 1)?,
            names: create(FileKind::Names)?,
            ends: create(FileKind::Ends)?,
            locations: create(FileKind::Locations)?,
            hashes: create(FileKind::Hashes)?,
            lookup: NameColumn::create(generation, number)?,
            fields: None,
            first_input,
            sum: Mutex::default(),
            order: Mutex::default(),
        })
    }

    /// Creates a file of the lengths of this many fields, if there are any.
    pub(crate) fn with_fields(
        self,
        generation: &Path,
        number: u32,
        fields: usize,
    ) -> Result<Self, IndexError> {
        let create = || PlacedLengths::create(generation, number, FileKind::Fields, fields);
        let fields = (fields > 0).then(create);
        Ok(Self { fields: fields.transpose()?, ..self })
    }

    /// Writes the lengths of the fields of neighbouring documents from a docid on, document by
    /// document. `Refused` if there are too many.
    pub(crate) fn write_fields(&self, docid: u32, lengths: &[u32]) -> Result<(), IndexError> {
        self.fields.as_ref().map_or(Ok(()), |fields| fields.write(docid, lengths))
    }

    /// Writes neighbouring documents from a docid on.
    ///
    /// # Errors
    /// `Refused` if there are more than 2^32 - 1 documents or an input is before the run's first.
    ///
    /// # Panics
    /// If the columns are not equally long.
    pub(crate) fn write(&self, docid: u32, columns: DocumentColumns<'_>) -> Result<(), IndexError> {
        let DocumentColumns { names, ends, lengths, locations, hashes } = columns;
        let count = ends.len();
        assert!([lengths.len(), locations.len(), hashes.len()] == [count; 3]);
        let path = self.names.path();
        let refused = |reason| Err(IndexError::refused(path, reason));
        let documents = u32::try_from(count).ok().filter(|&n| docid.checked_add(n).is_some());
        let Some(documents) = documents else {
            return refused("an index has at most 2^32 - 1 documents");
        };
        let mut inputs = 0;
        for location in &mut *locations {
            let Some(input) = location.input.checked_sub(self.first_input) else {
                return refused("a document lies in none of the run's inputs");
            };
            location.input = input;
            inputs = inputs.max(input.saturating_add(1));
        }
        self.lookup.put(docid, names.as_bytes(), ends)?;
        self.lengths.write(docid, lengths)?;
        let hashes: &[u8] = bytemuck::cast_slice(hashes);
        let room =
            self.hashes.room_at(u64::from(docid) * size_of::<u64>() as u64, hashes.len() as u64);
        self.hashes.fill(room, [hashes], &mut Vec::new());
        self.hashes.check()?;
        let part = BlocksPart::new(docid, RowsView::new(names.as_bytes(), ends, locations));
        let placed = lock(&self.order).take(docid, part, path)?;
        self.put(placed)?;
        let ends = [locations.first(), locations.last()].map(|end| end.map_or(0, |end| end.input));
        let rises = locations.is_sorted_by_key(|location| location.input);
        let mut sum = lock(&self.sum);
        if documents > 0 {
            sum.parts.insert(docid, rises.then_some(ends));
        }
        sum.documents += documents;
        sum.inputs = sum.inputs.max(inputs);
        Ok(())
    }

    fn put(&self, placed: PlacedBlocks) -> Result<(), IndexError> {
        let files = [&self.names, &self.ends, &self.locations];
        let mut buffer = Vec::new();
        for (file, (at, pieces)) in files.into_iter().zip(placed.0) {
            let room = file.room_at(at, pieces.iter().map(|piece| piece.len() as u64).sum());
            file.fill(room, pieces.iter().map(Vec::as_slice), &mut buffer);
            file.check()?;
        }
        Ok(())
    }

    /// Writes the last block, the headers and the look-up.
    ///
    /// # Panics
    /// If some documents are not written.
    pub(crate) fn finish(self) -> Result<DocumentsEntry, IndexError> {
        let (mut entry, lookup) = self.finish_others()?;
        entry.files.push(lookup.write(entry.documents)?);
        Ok(entry)
    }

    /// As [`finish`](Self::finish), but leaves the look-up to be written.
    pub(crate) fn finish_others(self) -> Result<(DocumentsEntry, NameColumn), IndexError> {
        let placed = lock(&self.order).finish(self.names.path())?;
        self.put(placed)?;
        let sum = std::mem::take(&mut *lock(&self.sum));
        let rise = u64::from(sum.inputs_rise());
        let PlacedSum { documents, inputs, .. } = sum;
        let (lengths, tokens) = self.lengths.finish(documents)?;
        let order = std::mem::take(&mut *lock(&self.order));
        let mut names = self.names.end()?;
        names.pad()?;
        let name_bytes = order.name_bytes();
        let count = u64::from(documents);
        let header = |kind, b| FileHeader { kind, values: [count, b, 0, 0, 0], last: 0 };
        let fields = self.fields.map(|fields| fields.finish(documents)).transpose()?;
        let (fields, field_tokens) = fields.unzip();
        let mut files = vec![
            lengths,
            names.finish(header(FileKind::Names, name_bytes))?,
            order.ends.finish(self.ends.end()?, FileKind::Ends, documents, name_bytes)?,
            order.locations.finish(self.locations.end()?, FileKind::Locations, documents, rise)?,
            self.hashes.end()?.finish(header(FileKind::Hashes, 0))?,
        ];
        files.extend(fields);
        let first_input = if inputs == 0 { 0 } else { self.first_input };
        let field_tokens = field_tokens.unwrap_or_default();
        let tokens = tokens[0];
        let entry = DocumentsEntry { documents, tokens, field_tokens, first_input, inputs, files };
        Ok((entry, self.lookup))
    }
}
