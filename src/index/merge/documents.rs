//! How do the documents of several runs become those of one? One run is copied behind the other
//! through small windows, so that the memory does not depend on them.

#![forbid(unsafe_code)]

use super::Input;
use crate::index::deletions::Deletions;
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location};
use crate::index::error::IndexError;
use crate::index::format::{HEADER_BYTES, Header, Kind, LONG, padding, run_file};
use crate::index::manifest::RunEntry;
use crate::index::storage::{Durability, Stop};
use crate::index::window::Window;
use std::path::Path;

/// Documents that are read at a time.
const AT_ONCE: u32 = 1 << 10;
/// Bytes of the window on the names.
const NAMES_WINDOW_BYTES: usize = 64 << 10;
const BODY: u64 = HEADER_BYTES as u64;

/// Writes the documents of all runs as those of run `number` in the folder `to`. Every input is one of
/// the generation's.
///
/// Memory: half a megabyte beside that of the writer, and the longest name.
pub(super) fn merge(
    inputs: &[Input],
    to: &Path,
    number: u32,
    stop: &Stop,
) -> Result<DocumentsEntry, IndexError> {
    // Runs that a rebuild has put together need not have their inputs in order.
    let first_input = inputs.iter().filter(|input| input.run.inputs > 0);
    let first_input = first_input.map(|input| input.run.first_input).min().unwrap_or(0);
    let mut writer = DocumentsWriter::create(to, number, Durability::Lasting, first_input)?;
    for Input { generation, run, deletions, .. } in inputs {
        Source::open(generation, run)?.copy(run, deletions.as_deref(), &mut writer, stop)?;
    }
    writer.finish()
}

/// The documents of one run, read in order.
struct Source {
    lengths: Window,
    /// The long documents, and where the next of them stands.
    long: Window,
    next_long: u64,
    names: Window,
    ends: Window,
    locations: Window,
    hashes: Window,
}

impl Source {
    fn open(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let open = |kind, bytes| {
            let path = generation.join(run_file(&run.name, kind));
            let mut window = Window::open(&path, bytes)?;
            let first = window.length().min(BODY) as usize;
            let header = Header::parse(&path, kind, window.read(0, first)?)?;
            if header.values[0] != u64::from(run.documents) {
                return Err(IndexError::damaged(&path, 16, run.documents, header.values[0]));
            }
            Ok(window)
        };
        let at_once = AT_ONCE as usize;
        let bytes = 2 * u64::from(run.documents);
        Ok(Self {
            lengths: open(Kind::Lengths, 2 * at_once)?,
            long: open(Kind::Lengths, HEADER_BYTES.max(1 << 10))?,
            next_long: BODY + bytes + padding(bytes),
            names: open(Kind::Names, NAMES_WINDOW_BYTES)?,
            ends: open(Kind::Ends, 8 * at_once)?,
            locations: open(Kind::Locations, 16 * at_once)?,
            hashes: open(Kind::Hashes, 8 * at_once)?,
        })
    }

    fn copy(
        mut self,
        run: &RunEntry,
        deletions: Option<&Deletions>,
        writer: &mut DocumentsWriter,
        stop: &Stop,
    ) -> Result<(), IndexError> {
        let (mut docid, mut name_start, mut name) = (0u32, 0u64, Vec::new());
        while docid < run.documents {
            stop.check()?;
            let count = AT_ONCE.min(run.documents - docid) as usize;
            let at = |size: u64| BODY + size * u64::from(docid);
            let lengths = self.lengths.read(at(2), 2 * count)?.as_chunks().0;
            let ends = self.ends.read(at(8), 8 * count)?.as_chunks().0;
            let locations = self.locations.read(at(16), 16 * count)?.chunks_exact(16);
            let hashes = self.hashes.read(at(8), 8 * count)?.as_chunks().0;
            let columns = lengths.iter().zip(ends).zip(locations).zip(hashes);
            for (document, (((&length, &end), location), &hash)) in (docid..).zip(columns) {
                let length = match u16::from_le_bytes(length) {
                    LONG => {
                        let pair = self.long.read(self.next_long, 8)?;
                        let number = |at: usize| {
                            u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]])
                        };
                        if number(0) != document {
                            let expected = format!("document {document}, which is long");
                            let (at, found) = (self.next_long, number(0));
                            let path = self.long.path();
                            return Err(IndexError::damaged(path, at, expected, found));
                        }
                        self.next_long += 8;
                        number(4)
                    }
                    length => length.into(),
                };
                let end = u64::from_le_bytes(end);
                if end < name_start {
                    let offset = BODY + 8 * u64::from(document);
                    let expected = format!("an end of at least {name_start}");
                    return Err(IndexError::damaged(self.ends.path(), offset, expected, end));
                }
                name.clear();
                while name_start < end {
                    let rest = usize::try_from(end - name_start).unwrap_or(usize::MAX);
                    let part = self.names.read(BODY + name_start, rest)?;
                    name.extend_from_slice(part);
                    name_start += part.len() as u64;
                }
                if deletions.is_some_and(|deletions| deletions.contains(document)) {
                    continue;
                }
                let location: Location = bytemuck::pod_read_unaligned(location);
                let input = location.input.saturating_add(run.first_input);
                let location = Location { input, ..location };
                writer.push(&name, length, location, u64::from_le_bytes(hash))?;
            }
            docid += count as u32;
        }
        Ok(())
    }
}
