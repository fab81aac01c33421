//! How do the documents of several runs become those of one? Threads copy *stretches* of
//! neighbouring documents, each to its place in the files: how many documents and bytes of names
//! come before it follows from where names end, and from the documents that are left out.

use super::lengths::{long_documents, no_long, of_long};
use super::{Input, Merging};
use crate::crew::Crew;
use crate::index::deletions::Deletions;
use crate::index::documents::{
    DocumentColumns, DocumentsEntry, DocumentsPlace, Location, PlacedDocuments,
};
use crate::index::error::IndexError;
use crate::index::files::storage::{Durability, Stop};
use crate::index::files::window::Window;
use crate::index::format::{HEADER_BYTES, Header, Kind, LONG, padding, run_file};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Documents of a stretch. Tests have few documents.
const STRETCH: u32 = if cfg!(test) { 1 << 6 } else { 1 << 14 };
/// Documents that are read at a time, if their names have no more bytes than the second; one at
/// least.
const AT_ONCE: u32 = STRETCH / 4;
const NAMES_AT_ONCE: u64 = if cfg!(test) { 100 } else { 128 << 10 };
const THREAD_BYTES: u64 = 1 << 20;
/// Bytes of the windows that say where stretches begin.
const BORDER_BYTES: usize = 4 << 10;
const BODY: u64 = HEADER_BYTES as u64;

/// Neighbouring documents of an input, and where those that are left stand in the merged run.
#[derive(Debug)]
struct Stretch {
    input: usize,
    documents: Range<u32>,
    place: DocumentsPlace,
}

/// Writes the documents of all runs as those of run `number` in the folder `to`. Every input is one
/// of the generation's.
///
/// Memory: for each thread [`THREAD_BYTES`], and the longest name twice; 8 bytes for each document
/// of 65,535 tokens or more.
pub(super) fn merge(
    inputs: &[Input],
    to: &Path,
    number: u32,
    merging: &Merging,
) -> Result<DocumentsEntry, IndexError> {
    // Runs that a rebuild has put together need not have their inputs in order.
    let first_input = inputs.iter().filter(|input| input.run.inputs > 0);
    let first_input = first_input.map(|input| input.run.first_input).min().unwrap_or(0);
    let mut place = DocumentsPlace::default();
    let (mut stretches, mut longs) = (Vec::new(), Vec::new());
    for (number, input) in inputs.iter().enumerate() {
        longs.push(input.long_documents()?);
        input.cut(number, &mut place, &mut stretches)?;
    }
    let table = PlacedDocuments::create(to, number, Durability::Lasting, first_input)?;
    let next = AtomicUsize::new(0);
    let copy = || {
        while let Some(stretch) = stretches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (input, long) = (&inputs[stretch.input], &longs[stretch.input]);
            input.copy(stretch, long, &table, &merging.stop).inspect_err(|_| {
                // Nobody begins another one.
                next.store(stretches.len(), Ordering::Relaxed);
            })?;
        }
        Ok(())
    };
    let threads = merging.threads_of(THREAD_BYTES).min(stretches.len());
    let copied = Crew::new("documents").all(vec![&copy; threads]);
    copied.into_iter().collect::<Result<(), _>>()?;
    table.finish()
}

/// The documents of 65,535 tokens or more, and their lengths.
type LongDocuments = Vec<(u32, u32)>;

impl Input {
    fn path(&self, kind: Kind) -> PathBuf {
        self.generation.join(run_file(&self.run.name, kind))
    }

    /// Opens a window on a file of the documents.
    fn open(&self, kind: Kind, bytes: usize) -> Result<Window, IndexError> {
        Window::open(&self.path(kind), bytes)
    }

    /// The long documents. The headers of all files are looked at, too.
    fn long_documents(&self) -> Result<LongDocuments, IndexError> {
        let mut count = 0;
        for kind in Kind::OF_DOCUMENTS {
            let mut window = self.open(kind, HEADER_BYTES)?;
            let first = window.length().min(BODY) as usize;
            let header = Header::parse(&self.path(kind), kind, window.read(0, first)?)?;
            let (documents, found) = (u64::from(self.run.documents), header.values[0]);
            if found != documents {
                return Err(IndexError::damaged(window.path(), 16, documents, found));
            }
            if kind == Kind::Lengths {
                count = header.values[2];
            }
        }
        let mut window = self.open(Kind::Lengths, BORDER_BYTES)?;
        let bytes = 2 * u64::from(self.run.documents);
        let first = BODY + bytes + padding(bytes);
        long_documents(&mut window, first, count)
    }

    /// Cuts the documents, which come behind `place`, into stretches.
    fn cut(
        &self,
        input: usize,
        place: &mut DocumentsPlace,
        stretches: &mut Vec<Stretch>,
    ) -> Result<(), IndexError> {
        let mut ends = self.open(Kind::Ends, BORDER_BYTES)?;
        let mut deleted = self.deletions.iter().flat_map(|gone| gone.docids()).peekable();
        let documents = self.run.documents;
        for start in (0..documents).step_by(STRETCH as usize) {
            let end = documents.min(start.saturating_add(STRETCH));
            stretches.push(Stretch { input, documents: start..end, place: *place });
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
        stretch: &Stretch,
        long: &LongDocuments,
        table: &PlacedDocuments,
        stop: &Stop,
    ) -> Result<(), IndexError> {
        let at_once = AT_ONCE as usize;
        let mut lengths = self.open(Kind::Lengths, 2 * at_once)?;
        let mut names = self.open(Kind::Names, NAMES_AT_ONCE as usize)?;
        let mut ends = self.open(Kind::Ends, 8 * at_once)?;
        let mut locations = self.open(Kind::Locations, 16 * at_once)?;
        let mut hashes = self.open(Kind::Hashes, 8 * at_once)?;
        let mut columns = Columns::default();
        let Stretch { documents: Range { start, end }, mut place, .. } = *stretch;
        let mut name_start = end_before(&mut ends, start)?;
        let mut docid = start;
        while docid < end {
            stop.check()?;
            let most = AT_ONCE.min(end - docid) as usize;
            let at = |size: u64| BODY + size * u64::from(docid);
            let read = ends.read(at(8), 8 * most)?.as_chunks().0;
            columns.ends.clear();
            let mut before = name_start;
            for (number, &bytes) in read.iter().enumerate() {
                let name_end = u64::from_le_bytes(bytes);
                if name_end < before {
                    let offset = at(8) + 8 * number as u64;
                    let expected = format!("an end of at least {before}");
                    let path = self.path(Kind::Ends);
                    return Err(IndexError::damaged(&path, offset, expected, name_end));
                }
                if number > 0 && name_end - name_start > NAMES_AT_ONCE {
                    break;
                }
                before = name_end;
                columns.ends.push(name_end - name_start);
            }
            let count = columns.ends.len();
            columns.names.clear();
            let mut name_at = name_start;
            while name_at < before {
                let rest = usize::try_from(before - name_at).unwrap_or(usize::MAX);
                let part = names.read(BODY + name_at, rest)?;
                columns.names.extend_from_slice(part);
                name_at += part.len() as u64;
            }
            columns.lengths.clear();
            let read = lengths.read(at(2), 2 * count)?.as_chunks().0;
            for (document, &bytes) in (docid..).zip(read) {
                columns.lengths.push(match u16::from_le_bytes(bytes) {
                    LONG => of_long(long, document.into())
                        .ok_or_else(|| no_long(&self.path(Kind::Lengths), document.into()))?,
                    length => length.into(),
                });
            }
            let read = locations.read(at(16), 16 * count)?.chunks_exact(16);
            columns.locations.clear();
            columns.locations.extend(read.map(|bytes| {
                let location: Location = bytemuck::pod_read_unaligned(bytes);
                let input = location.input.saturating_add(self.run.first_input);
                Location { input, ..location }
            }));
            let read = hashes.read(at(8), 8 * count)?.as_chunks().0;
            columns.hashes.clear();
            columns.hashes.extend(read.iter().map(|&bytes| u64::from_le_bytes(bytes)));
            if let Some(deletions) = &self.deletions {
                columns.leave_out(deletions, docid);
            }
            let (left, bytes) = (columns.ends.len() as u32, columns.names.len() as u64);
            columns.write(place, table, names.path())?;
            place.documents += left;
            place.name_bytes += bytes;
            docid += count as u32;
            name_start = before;
        }
        Ok(())
    }
}

/// Where the name of the document before one ends.
fn end_before(ends: &mut Window, document: u32) -> Result<u64, IndexError> {
    let Some(before) = document.checked_sub(1) else { return Ok(0) };
    let bytes = ends.read(BODY + 8 * u64::from(before), 8)?;
    Ok(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes were read")))
}

/// Bytes of the names of neighbouring documents.
fn name_bytes(ends: &mut Window, documents: Range<u32>) -> Result<u64, IndexError> {
    let (start, end) = (end_before(ends, documents.start)?, end_before(ends, documents.end)?);
    end.checked_sub(start).ok_or_else(|| {
        let offset = BODY + 8 * u64::from(documents.end - 1);
        IndexError::damaged(ends.path(), offset, format!("an end of at least {start}"), end)
    })
}

#[derive(Default)]
struct Columns {
    names: Vec<u8>,
    ends: Vec<u64>,
    lengths: Vec<u32>,
    locations: Vec<Location>,
    hashes: Vec<u64>,
}

impl Columns {
    /// Leaves documents out; the first has this docid.
    fn leave_out(&mut self, deletions: &Deletions, first: u32) {
        let (mut left, mut bytes, mut start) = (0, 0, 0);
        for (at, docid) in (first..first + self.ends.len() as u32).enumerate() {
            let end = self.ends[at] as usize;
            if !deletions.contains(docid) {
                self.names.copy_within(start..end, bytes);
                bytes += end - start;
                self.ends[left] = bytes as u64;
                self.lengths[left] = self.lengths[at];
                self.locations[left] = self.locations[at];
                self.hashes[left] = self.hashes[at];
                left += 1;
            }
            start = end;
        }
        self.names.truncate(bytes);
        self.ends.truncate(left);
        self.lengths.truncate(left);
        self.locations.truncate(left);
        self.hashes.truncate(left);
    }

    /// Writes them; their names come from the file at `path`.
    fn write(
        &mut self,
        place: DocumentsPlace,
        table: &PlacedDocuments,
        path: &Path,
    ) -> Result<(), IndexError> {
        let refused = || IndexError::refused(path, "a document's name is UTF-8");
        let names = std::str::from_utf8(&self.names).map_err(|_| refused())?;
        let is_apart = |&end: &u64| names.is_char_boundary(end as usize);
        if !names.is_ascii() && !self.ends.iter().all(is_apart) {
            return Err(refused());
        }
        let Self { ends, lengths, locations, hashes, .. } = self;
        table.write(place, DocumentColumns { names, ends, lengths, locations, hashes })
    }
}
