//! Several threads write the documents of one run: once it is known how many documents and bytes of
//! names come before some neighbouring ones, these have their places in the files.

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
    /// The end of each name in `names`; afterwards, in the file.
    pub ends: &'a mut [u64],
    pub lengths: &'a [u32],
    /// Inputs are numbered in the generation, and afterwards in the run.
    pub locations: &'a mut [Location],
    pub hashes: &'a [u64],
}

/// What of a run comes before some documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentsPlace {
    pub documents: u32,
    pub name_bytes: u64,
}

/// The six files of a run's documents, written by any threads at places that leave no gaps.
///
/// Memory: 2 bytes for each document while it is written, a write buffer for each thread, 8 bytes
/// for each document of 65,535 tokens or more, and about 30 for each part that is written.
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

    /// Writes the lengths of the fields of neighbouring documents, document by document. `Refused`
    /// if there are too many.
    pub(crate) fn write_fields(
        &self,
        place: DocumentsPlace,
        lengths: &[u32],
    ) -> Result<(), IndexError> {
        self.fields.as_ref().map_or(Ok(()), |fields| fields.write(place.documents, lengths))
    }

    /// # Errors
    /// `Refused` if there are more than 2^32 - 1 documents or an input is before the run's first.
    ///
    /// # Panics
    /// If the columns are not equally long.
    pub(crate) fn write(
        &self,
        place: DocumentsPlace,
        columns: DocumentColumns<'_>,
    ) -> Result<(), IndexError> {
        let DocumentColumns { names, ends, lengths, locations, hashes } = columns;
        let count = ends.len();
        assert!([lengths.len(), locations.len(), hashes.len()] == [count; 3]);
        let refused = |reason| Err(IndexError::refused(self.names.path(), reason));
        let documents =
            u32::try_from(count).ok().filter(|&n| place.documents.checked_add(n).is_some());
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
        self.lookup.put(place.documents, names.as_bytes(), ends)?;
        for end in &mut *ends {
            *end = (*end + place.name_bytes).to_le();
        }
        let at = |bytes: usize| u64::from(place.documents) * bytes as u64;
        self.lengths.write(place.documents, lengths)?;
        let writes: [(&FilledFile, u64, &[u8]); 4] = [
            (&self.names, place.name_bytes, names.as_bytes()),
            (&self.ends, at(size_of::<u64>()), bytemuck::cast_slice(ends)),
            (&self.locations, at(size_of::<Location>()), bytemuck::cast_slice(locations)),
            (&self.hashes, at(size_of::<u64>()), bytemuck::cast_slice(hashes)),
        ];
        let mut buffer = Vec::new();
        for (file, at, bytes) in writes {
            file.fill(file.room_at(at, bytes.len() as u64), [bytes], &mut buffer);
            file.check()?;
        }
        let ends = [locations.first(), locations.last()].map(|end| end.map_or(0, |end| end.input));
        let rises = locations.is_sorted_by_key(|location| location.input);
        let mut sum = lock(&self.sum);
        if documents > 0 {
            sum.parts.insert(place.documents, rises.then_some(ends));
        }
        sum.documents += documents;
        sum.inputs = sum.inputs.max(inputs);
        Ok(())
    }

    /// Writes the headers and the look-up.
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
        let sum = std::mem::take(&mut *lock(&self.sum));
        let rise = u64::from(sum.inputs_rise());
        let PlacedSum { documents, inputs, .. } = sum;
        let (lengths, tokens) = self.lengths.finish(documents)?;
        let mut names = self.names.end()?;
        let name_bytes = names.body_bytes();
        names.pad()?;
        let count = u64::from(documents);
        let header = |kind, b| FileHeader { kind, values: [count, b, 0, 0, 0], last: 0 };
        let fields = self.fields.map(|fields| fields.finish(documents)).transpose()?;
        let (fields, field_tokens) = fields.unzip();
        let mut files = vec![
            lengths,
            names.finish(header(FileKind::Names, name_bytes))?,
            self.ends.end()?.finish(header(FileKind::Ends, name_bytes))?,
            self.locations.end()?.finish(header(FileKind::Locations, rise))?,
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
