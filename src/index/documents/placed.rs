//! Several threads write the documents of one run: once it is known how many documents and bytes of
//! names come before some neighbouring ones, these have their places in the files.

use super::fields::PlacedLengths;
use super::lookup::NameColumn;
use super::ramps::{RampFile, RampPart, end_of};
use super::rows::RowsFile;
use super::{DocumentsEntry, Location};
use crate::codec::ramp::BLOCK;
use crate::crew::{Crew, cores, lock};
use crate::index::error::IndexError;
use crate::index::files::storage::{FilledFile, StorageFile};
use crate::index::format::{FileHeader, FileKind, run_file, run_name};
use bytemuck::{AnyBitPattern, NoUninit};
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

/// What of a run comes before some documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentsPlace {
    pub documents: u32,
    pub name_bytes: u64,
}

/// The six files of a run's documents, written by any threads at places that leave no gaps.
///
/// Memory: 2 bytes for each document while it is written and three in the end, a write buffer
/// for each thread, 8 bytes for each document of 65,535 tokens or more, and about 30 for each part
/// that is written.
#[derive(Debug)]
pub(crate) struct PlacedDocuments {
    lengths: PlacedLengths,
    hashes: FilledFile,
    names: StorageFile,
    ends: RampFile,
    locations: RampFile,
    rows: RowsFile<PlacedRow>,
    /// Names as they came, end to end.
    whole_names: RowsFile<u8>,
    lookup: NameColumn,
    /// If the index has fields.
    fields: Option<PlacedLengths>,
    first_input: u32,
    sum: Mutex<PlacedSum>,
}

/// Of a document, until its run is written.
#[derive(Clone, Copy, Debug, Default, AnyBitPattern, NoUninit)]
#[repr(C)]
struct PlacedRow {
    /// Where its name ends.
    end: u64,
    location: Location,
}

/// Documents of which a thread makes blocks at a time, at least, threads at most, such parts for
/// each of them between two writes, and how often is written at most: all wait for a thread that
/// the system has interrupted, which is for milliseconds where all cores are busy.
const LEAST_AT_ONCE: u32 = if cfg!(test) { 1 << 8 } else { 1 << 12 };
const BLOCK_MAKERS: usize = 8;
const PARTS_AT_ONCE: usize = 2;
const MOST_WRITES: usize = 16;

/// Neighbouring blocks as they lie in the files, with names from the first of theirs.
#[derive(Default)]
struct BlocksPart {
    names: Vec<u8>,
    ends: RampPart,
    locations: RampPart,
}

impl BlocksPart {
    /// Adds a block of documents, whose names lie one behind the other from `start` on among the
    /// whole `names`, and of which the one before ends at `before`.
    fn put(&mut self, rows: &[PlacedRow], (names, start): (&[u8], u64), before: u64) {
        let name = |from: u64, to: u64| &names[(from - start) as usize..(to - start) as usize];
        let from = rows.iter().scan(start, |from, row| Some(std::mem::replace(from, row.end)));
        let all = from.zip(rows).map(|(from, row)| name(from, row.end));
        let first = all.clone().next().unwrap_or_default();
        let mut shared =
            all.clone().fold(first.len(), |shared, name| common(&first[..shared], name));
        // Both parts are text.
        while first.get(shared).is_some_and(|byte| byte & 0xc0 == 0x80) {
            shared -= 1;
        }
        self.ends_of(all, shared);
        self.locations.locations(rows.iter().map(|row| &row.location), before);
    }

    fn ends_of<'a>(&mut self, names: impl Iterator<Item = &'a [u8]> + Clone, shared: usize) {
        let front = self.names.len() as u64;
        let of_front = names.clone().next().unwrap_or_default();
        self.names.extend_from_slice(&of_front[..shared]);
        let rest = |name: &[u8]| {
            self.names.extend_from_slice(&name[shared..]);
            self.names.len() as u64
        };
        let ends: Vec<u64> = names.map(rest).collect();
        self.ends.even(&ends);
        // A name that is as long as this comes from no record.
        self.ends.line(front, shared as u32);
    }
}

/// How many bytes two names begin with are the same.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Writes the names of all documents, their ends and places, except for the headers.
fn write_blocks(
    (rows, names): (&RowsFile<PlacedRow>, &RowsFile<u8>),
    documents: u32,
    (to_names, ends, locations): (&mut StorageFile, &mut RampFile, &mut RampFile),
) -> Result<(), IndexError> {
    let threads = cores().min(BLOCK_MAKERS);
    let parts = (threads * PARTS_AT_ONCE * MOST_WRITES) as u32;
    let at_once = documents.div_ceil(parts).next_multiple_of(BLOCK as u32).max(LEAST_AT_ONCE);
    let make = |room: &mut (Vec<PlacedRow>, Vec<u8>), first: u32| {
        let (of_part, whole) = room;
        let last = documents.min(first.saturating_add(at_once));
        // With the one before.
        let from = first.saturating_sub(1);
        of_part.resize((last - from) as usize, PlacedRow::default());
        rows.read(from.into(), of_part)?;
        let (before, of_part) = of_part.split_at((first - from) as usize);
        let mut before = before.first().copied().unwrap_or_default();
        let (start, end) = (before.end, of_part.last().map_or(0, |row| row.end));
        whole.resize((end - start) as usize, 0);
        names.read(start, whole)?;
        let mut part = BlocksPart::default();
        for block in of_part.chunks(BLOCK) {
            let whole = &whole[(before.end - start) as usize..];
            part.put(block, (whole, before.end), end_of(&before.location));
            before = *block.last().expect("chunks are not empty");
        }
        Ok::<_, IndexError>(part)
    };
    let firsts: Vec<u32> = (0..documents).step_by(at_once as usize).collect();
    let mut crew = Crew::new("documents");
    for firsts in firsts.chunks(PARTS_AT_ONCE * threads) {
        let work = |room: &mut (Vec<PlacedRow>, Vec<u8>), number: usize| make(room, firsts[number]);
        for part in crew.in_order(threads, firsts.len(), work)? {
            ends.put(&part.ends, to_names.body_bytes())?;
            to_names.write(&part.names)?;
            locations.put(&part.locations, 0)?;
        }
    }
    Ok(())
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
        let create = |kind| StorageFile::create(generation, &run_file(&run, kind));
        Ok(Self {
            lengths: PlacedLengths::create(generation, number, FileKind::Lengths, 1)?,
            names: create(FileKind::Names)?,
            hashes: FilledFile::of(create(FileKind::Hashes)?),
            ends: RampFile::of(create(FileKind::Ends)?),
            locations: RampFile::of(create(FileKind::Locations)?),
            rows: RowsFile::create(generation)?,
            whole_names: RowsFile::create(generation)?,
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
        let row = |(end, location): (&u64, &Location)| PlacedRow {
            end: end + place.name_bytes,
            location: *location,
        };
        let rows: Vec<PlacedRow> = ends.iter().zip(&*locations).map(row).collect();
        self.rows.put(place.documents.into(), &rows)?;
        self.whole_names.put(place.name_bytes, names.as_bytes())?;
        self.lengths.write(place.documents, lengths)?;
        let hashes: &[u8] = bytemuck::cast_slice(hashes);
        let at = u64::from(place.documents) * size_of::<u64>() as u64;
        let room = self.hashes.room_at(at, hashes.len() as u64);
        self.hashes.fill(room, [hashes], &mut Vec::new());
        self.hashes.check()?;
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

    /// Writes names and places, the headers and the look-up.
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
        let count = u64::from(documents);
        let header = |kind, b| FileHeader { kind, values: [count, b, 0, 0, 0], last: 0 };
        let Self { mut names, mut ends, mut locations, .. } = self;
        let source = (&self.rows, &self.whole_names);
        write_blocks(source, documents, (&mut names, &mut ends, &mut locations))?;
        let name_bytes = names.body_bytes();
        names.pad()?;
        let fields = self.fields.map(|fields| fields.finish(documents)).transpose()?;
        let (fields, field_tokens) = fields.unzip();
        let mut files = vec![
            lengths,
            names.finish(header(FileKind::Names, name_bytes))?,
            ends.finish(FileKind::Ends, documents, name_bytes)?,
            locations.finish(FileKind::Locations, documents, rise)?,
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
