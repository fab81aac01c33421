//! Merges the documents of several runs. Threads copy *stretches* of neighbouring documents, each
//! to its place in the files: the ends of names and the documents that are left out tell how many
//! documents and bytes of names precede it.

use super::lengths::{long_documents, no_long, of_long};
use super::{MergeInput, Merging};
use crate::crew::Crew;
use crate::index::documents::lookup::NameColumn;
use crate::index::documents::moves::Moves;
use crate::index::documents::names::{NamesWindow, end_before};
use crate::index::documents::{
    DocumentsEntry, DocumentsPlace, DocumentsWriter, Location, PlacedDocuments,
};
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

/// Neighbouring documents of an input, and the place in the merged run of those that are left.
#[derive(Debug)]
struct DocumentStretch {
    input: usize,
    documents: Range<u32>,
    place: DocumentsPlace,
}

/// Writes the documents of all runs as those of run `number` in the folder `to`, but for their
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
    let mut place = DocumentsPlace::default();
    let mut stretches = Vec::new();
    let mut longs = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        longs.push(input.long_documents()?);
        input.cut(number, &mut place, &mut stretches)?;
    }
    let table = PlacedDocuments::create(to, number, first_input)?;
    let table = Arc::new(table);
    let copy = |(): &mut (), number: usize| {
        let stretch = &stretches[number];
        inputs[stretch.input].copy(stretch, &longs[stretch.input], &table, &merging.stop)
    };
    let threads = merging.threads_of(THREAD_BYTES);
    Crew::new("documents").in_order(threads, stretches.len(), copy)?;
    Arc::into_inner(table).expect("all have written").finish_others()
}

/// The documents of 65,535 tokens or more, and their lengths.
type LongDocuments = Vec<(u32, u32)>;

impl MergeInput {
    fn path(&self, kind: FileKind) -> PathBuf {
        self.run.path(&self.generation, kind)
    }

    fn open(&self, kind: FileKind, bytes: usize) -> Result<FileWindow, IndexError> {
        FileWindow::open(&self.path(kind), bytes)
    }

    /// Also checks the headers of all files.
    fn long_documents(&self) -> Result<LongDocuments, IndexError> {
        let mut count = 0;
        for kind in FileKind::OF_DOCUMENTS {
            let mut window = self.open(kind, HEADER_BYTES)?;
            let first = window.length().min(BODY) as usize;
            let header = FileHeader::parse(&self.path(kind), kind, window.read(0, first)?)?;
            let documents = u64::from(self.run.documents);
            let found = header.values[0];
            if found != documents {
                return Err(IndexError::damaged(window.path(), 16, documents, found));
            }
            if kind == FileKind::Lengths {
                count = header.values[2];
            }
        }
        let mut window = self.open(FileKind::Lengths, BORDER_BYTES)?;
        let bytes = 2 * u64::from(self.run.documents);
        let first = BODY + bytes + padding(bytes);
        long_documents(&mut window, first, count)
    }

    fn cut(
        &self,
        input: usize,
        place: &mut DocumentsPlace,
        stretches: &mut Vec<DocumentStretch>,
    ) -> Result<(), IndexError> {
        let mut ends = self.open(FileKind::Ends, BORDER_BYTES)?;
        let mut deleted = self.deletions.iter().flat_map(|gone| gone.docids()).peekable();
        let documents = self.run.documents;
        for start in (0..documents).step_by(STRETCH as usize) {
            let end = documents.min(start.saturating_add(STRETCH));
            stretches.push(DocumentStretch { input, documents: start..end, place: *place });
            let mut count = end - start;
            let mut bytes = name_bytes(&mut ends, start..end)?;
            while let Some(gone) = deleted.next_if(|&gone| gone < end) {
                count -= 1;
                bytes = bytes.saturating_sub(name_bytes(&mut ends, gone..gone + 1)?);
            }
            place.documents = place.documents.saturating_add(count);
            place.name_bytes = place.name_bytes.saturating_add(bytes);
        }
        Ok(())
    }

    fn copy(
        &self,
        stretch: &DocumentStretch,
        long: &LongDocuments,
        table: &Arc<PlacedDocuments>,
        stop: &Stop,
    ) -> Result<(), IndexError> {
        let mut lengths = self.open(FileKind::Lengths, WINDOW_BYTES)?;
        let bytes = [NAMES_BYTES, WINDOW_BYTES];
        let mut names = NamesWindow::open(&self.generation, &self.run, bytes, FileWindow::open)?;
        let mut locations = self.open(FileKind::Locations, WINDOW_BYTES)?;
        let mut hashes = self.open(FileKind::Hashes, WINDOW_BYTES)?;
        let moves = Moves::open(&self.generation, &self.run)?;
        let mut writer = DocumentsWriter::at(table, stretch.place);
        for docid in stretch.documents.clone() {
            if docid.is_multiple_of(AT_ONCE) {
                stop.check()?;
            }
            let at = |size: u64| BODY + size * u64::from(docid);
            let name = names.name(docid)?;
            if self.deletions.as_ref().is_some_and(|gone| gone.contains(docid)) {
                continue;
            }
            let length = match u16::from_le_bytes(fixed(lengths.read(at(2), 2)?)) {
                LONG => of_long(long, docid.into())
                    .ok_or_else(|| no_long(&self.path(FileKind::Lengths), docid.into()))?,
                length => length.into(),
            };
            let location: Location = bytemuck::pod_read_unaligned(locations.read(at(16), 16)?);
            let location = moves.of(docid, location);
            let input = location.input.saturating_add(self.run.first_input);
            let location = Location { input, ..location };
            let hash = u64::from_le_bytes(fixed(hashes.read(at(8), 8)?));
            let name = std::str::from_utf8(name).map_err(|_| {
                IndexError::refused(&self.path(FileKind::Names), "a document's name is UTF-8")
            })?;
            writer.push(name, length, location, hash)?;
        }
        writer.write()
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("so many bytes were read")
}

fn name_bytes(ends: &mut FileWindow, documents: Range<u32>) -> Result<u64, IndexError> {
    let start = end_before(ends, documents.start)?;
    let end = end_before(ends, documents.end)?;
    end.checked_sub(start).ok_or_else(|| {
        let offset = BODY + 8 * u64::from(documents.end - 1);
        IndexError::damaged(ends.path(), offset, format!("an end of at least {start}"), end)
    })
}
