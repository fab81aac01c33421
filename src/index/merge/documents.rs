//! Merges the documents of several runs. Threads copy *stretches* of neighbouring documents, each
//! to its place in the files: the documents that are left out tell how many precede it.

use super::lengths::{long_documents, no_long, of_long};
use super::{MergeInput, Merging};
use crate::crew::Crew;
use crate::index::documents::lookup::NameColumn;
use crate::index::documents::moves::Moves;
use crate::index::documents::names::NamesWindow;
use crate::index::documents::ramps::RampWindow;
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location, PlacedDocuments};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, LONG, padding};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Documents of a stretch. Tests have few documents.
const STRETCH: u32 = if cfg!(test) { 1 << 6 } else { 1 << 14 };
/// Documents that are copied between two looks at `stop`.
const AT_ONCE: u32 = 1 << 12;
/// Bytes of the windows, and of that on names.
const WINDOW_BYTES: usize = 32 << 10;
const NAMES_BYTES: usize = if cfg!(test) { 100 } else { 128 << 10 };
const THREAD_BYTES: u64 = 1 << 20;
/// Bytes of the windows that find where stretches begin.
const BORDER_BYTES: usize = 4 << 10;
const BODY: u64 = HEADER_BYTES as u64;

/// Neighbouring documents of an input, and the docid in the merged run of the first that is left.
#[derive(Debug)]
struct DocumentStretch {
    input: usize,
    documents: Range<u32>,
    docid: u32,
}

/// Writes the documents of all runs as those of run `number` in the folder `to`, except for their
/// look-up. Every input is one of the generation's.
///
/// Memory: for each thread [`THREAD_BYTES`], and the longest name twice; 8 bytes for each document
/// of 65,535 tokens or more.
pub(super) fn merge(
    inputs: &[MergeInput],
    to: &Path,
    number: u32,
    merging: &Merging,
) -> Result<(DocumentsEntry, NameColumn), IndexError> {
    // Runs that a rebuild has put together may have inputs in any order.
    let first_input = inputs.iter().filter(|input| input.run.inputs > 0);
    let first_input = first_input.map(|input| input.run.first_input).min().unwrap_or(0);
    let mut docid = 0;
    let mut stretches = Vec::new();
    let mut longs = Vec::new();
    let fields = inputs.first().map_or(0, |input| input.run.field_tokens.len());
    for (number, input) in inputs.iter().enumerate() {
        let of_fields = (fields > 0).then(|| input.long_of(FileKind::Fields, fields as u64));
        longs.push([input.long_documents()?, of_fields.transpose()?.unwrap_or_default()]);
        input.cut(number, &mut docid, &mut stretches);
    }
    let table =
        PlacedDocuments::create(to, number, first_input)?.with_fields(to, number, fields)?;
    let table = Arc::new(table);
    let copy = |(): &mut (), number: usize| {
        let stretch = &stretches[number];
        inputs[stretch.input].copy(stretch, &longs[stretch.input], &table, &merging.stop)
    };
    let threads = merging.threads_of(THREAD_BYTES);
    Crew::new("documents").in_order(threads, stretches.len(), copy)?;
    Arc::into_inner(table).expect("all have written").finish_others()
}

/// The documents of 65,535 tokens or more, and their lengths; and likewise lengths of fields.
type LongDocuments = [Vec<(u32, u32)>; 2];

impl MergeInput {
    fn path(&self, kind: FileKind) -> PathBuf {
        self.run.path(&self.generation, kind)
    }

    fn open(&self, kind: FileKind, bytes: usize) -> Result<FileWindow, IndexError> {
        FileWindow::open(&self.path(kind), bytes)
    }

    fn ramps(&self, kind: FileKind, bytes: usize) -> Result<RampWindow, IndexError> {
        RampWindow::open(&self.generation, &self.run, kind, bytes, FileWindow::open)
    }

    /// Also checks the headers of all files but that of fields.
    fn long_documents(&self) -> Result<Vec<(u32, u32)>, IndexError> {
        for kind in FileKind::OF_DOCUMENTS {
            self.header(kind)?;
        }
        self.long_of(FileKind::Lengths, 1)
    }

    fn header(&self, kind: FileKind) -> Result<FileHeader, IndexError> {
        let mut window = self.open(kind, HEADER_BYTES)?;
        let first = window.length().min(BODY) as usize;
        let header = FileHeader::parse(&self.path(kind), kind, window.read(0, first)?)?;
        let documents = u64::from(self.run.documents);
        match header.values[0] {
            found if found == documents => Ok(header),
            found => Err(IndexError::damaged(window.path(), 16, documents, found)),
        }
    }

    /// Those of a file that has this many lengths of each document.
    fn long_of(&self, kind: FileKind, lengths: u64) -> Result<Vec<(u32, u32)>, IndexError> {
        let count = self.header(kind)?.values[2];
        let bytes = 2 * lengths * u64::from(self.run.documents);
        let mut window = self.open(kind, BORDER_BYTES)?;
        long_documents(&mut window, BODY + bytes + padding(bytes), count)
    }

    /// The length at a place of such a file.
    fn length(
        &self,
        kind: FileKind,
        window: &mut FileWindow,
        long: &[(u32, u32)],
        at: u64,
    ) -> Result<u32, IndexError> {
        match u16::from_le_bytes(fixed(window.read(BODY + 2 * at, 2)?)) {
            LONG => of_long(long, at).ok_or_else(|| no_long(&self.path(kind), at)),
            length => Ok(length.into()),
        }
    }

    fn cut(&self, input: usize, docid: &mut u32, stretches: &mut Vec<DocumentStretch>) {
        let mut deleted = self.deletions.iter().flat_map(|gone| gone.docids()).peekable();
        let documents = self.run.documents;
        for start in (0..documents).step_by(STRETCH as usize) {
            let end = documents.min(start.saturating_add(STRETCH));
            stretches.push(DocumentStretch { input, documents: start..end, docid: *docid });
            *docid = docid.saturating_add(end - start);
            while deleted.next_if(|&gone| gone < end).is_some() {
                *docid -= 1;
            }
        }
    }

    fn copy(
        &self,
        stretch: &DocumentStretch,
        [long, long_fields]: &LongDocuments,
        table: &Arc<PlacedDocuments>,
        stop: &Stop,
    ) -> Result<(), IndexError> {
        let mut lengths = self.open(FileKind::Lengths, WINDOW_BYTES)?;
        let bytes = [NAMES_BYTES, WINDOW_BYTES];
        let mut names = NamesWindow::open(&self.generation, &self.run, bytes, FileWindow::open)?;
        let mut locations = self.ramps(FileKind::Locations, WINDOW_BYTES)?;
        let mut hashes = self.open(FileKind::Hashes, WINDOW_BYTES)?;
        let moves = Moves::open(&self.generation, &self.run)?;
        let fields = self.run.field_tokens.len() as u64;
        let mut field_lengths =
            (fields > 0).then(|| self.open(FileKind::Fields, WINDOW_BYTES)).transpose()?;
        let mut writer = DocumentsWriter::at(table, stretch.docid);
        for docid in stretch.documents.clone() {
            if docid.is_multiple_of(AT_ONCE) {
                stop.check()?;
            }
            let name = names.name(docid)?;
            if self.deletions.as_ref().is_some_and(|gone| gone.contains(docid)) {
                continue;
            }
            let length = self.length(FileKind::Lengths, &mut lengths, long, docid.into())?;
            let location = moves.of(docid, locations.location(docid)?);
            let input = location.input.saturating_add(self.run.first_input);
            let location = Location { input, ..location };
            let hash = u64::from_le_bytes(fixed(hashes.read(BODY + 8 * u64::from(docid), 8)?));
            let name = std::str::from_utf8(name).map_err(|_| {
                IndexError::refused(&self.path(FileKind::Names), "a document's name is UTF-8")
            })?;
            if let Some(window) = &mut field_lengths {
                for at in fields * u64::from(docid)..fields * (u64::from(docid) + 1) {
                    let length = self.length(FileKind::Fields, window, long_fields, at)?;
                    writer.push_field(length);
                }
            }
            writer.push(name, length, location, hash)?;
        }
        writer.write()
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("so many bytes were read")
}
