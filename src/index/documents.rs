//! What is known of each document: its length, its name, and where it lies in the input?
//! (`docs/FORMAT.md`, Documents.)

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{
    ENDS, HEADER_BYTES, Header, Kind, LENGTHS, LOCATIONS, NAMES, check_length, padding,
};
use crate::index::map::Map;
use crate::index::storage::{Durability, FileEntry, StorageFile};
use std::path::Path;

/// Where a document's record lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Location {
    /// Its first byte in the uncompressed stream of the input.
    pub offset: u64,
    /// Its bytes, without a line end.
    pub bytes: u32,
    /// Number of the input in the manifest.
    pub input: u32,
}

/// Writes the table, document after document. Memory: four write buffers.
#[derive(Debug)]
pub struct DocumentsWriter {
    lengths: StorageFile,
    names: StorageFile,
    ends: StorageFile,
    locations: StorageFile,
    documents: u64,
    tokens: u64,
    name_bytes: u64,
}

/// A table that is written and synced.
#[derive(Debug)]
pub struct FinishedDocuments {
    /// Its files.
    pub files: Vec<FileEntry>,
    /// Documents.
    pub documents: u64,
    /// The sum of their lengths.
    pub tokens: u64,
}

impl DocumentsWriter {
    /// Creates the files in the folder of a generation.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(generation: &Path) -> Result<Self, IndexError> {
        let create = |name| StorageFile::create(generation, name, Durability::Lasting);
        Ok(Self {
            lengths: create(LENGTHS)?,
            names: create(NAMES)?,
            ends: create(ENDS)?,
            locations: create(LOCATIONS)?,
            documents: 0,
            tokens: 0,
            name_bytes: 0,
        })
    }

    /// Adds the next document: its name, its length in indexed tokens, its place.
    ///
    /// # Errors
    /// `Storage`.
    pub fn push(&mut self, name: &[u8], length: u32, at: Location) -> Result<(), IndexError> {
        self.documents += 1;
        self.tokens += u64::from(length);
        self.name_bytes += name.len() as u64;
        self.lengths.write(&length.to_le_bytes())?;
        self.names.write(name)?;
        self.ends.write(&self.name_bytes.to_le_bytes())?;
        self.locations.write(bytemuck::bytes_of(&at))
    }

    /// Ends the files.
    ///
    /// # Errors
    /// `Storage`.
    pub fn finish(mut self) -> Result<FinishedDocuments, IndexError> {
        let (documents, tokens, name_bytes) = (self.documents, self.tokens, self.name_bytes);
        self.lengths.pad()?;
        self.names.pad()?;
        let files = [
            (self.lengths, Kind::Lengths, [documents, tokens]),
            (self.names, Kind::Names, [documents, name_bytes]),
            (self.ends, Kind::Ends, [documents, name_bytes]),
            (self.locations, Kind::Locations, [documents, 0]),
        ];
        let files = files
            .into_iter()
            .map(|(file, kind, [a, b])| file.finish(Header { kind, values: [a, b, 0, 0, 0] }));
        Ok(FinishedDocuments { files: files.collect::<Result<_, _>>()?, documents, tokens })
    }
}

/// The table, mapped.
#[derive(Debug)]
pub struct Documents {
    lengths: Map,
    names: Map,
    ends: Map,
    locations: Map,
    documents: u32,
    tokens: u64,
    name_bytes: u64,
}

impl Documents {
    /// Maps the table of the generation in the folder `generation`; `entry` gives each file's length
    /// and checksum, which are verified.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open<'a>(
        generation: &Path,
        entry: impl Fn(&str) -> Result<&'a FileEntry, IndexError>,
    ) -> Result<Self, IndexError> {
        let open = |name: &str, kind, used| -> Result<(Map, [u64; 5]), IndexError> {
            let map = Map::open(&generation.join(name))?;
            let header = Header::parse(map.path(), kind, map.bytes())?;
            header.check_unused(map.path(), used)?;
            let entry = entry(name)?;
            map.verify(entry.bytes, entry.crc32)?;
            Ok((map, header.values))
        };
        let (lengths, [count, tokens, ..]) = open(LENGTHS, Kind::Lengths, 2)?;
        let documents = u32::try_from(count).ok().filter(|&n| n < u32::MAX).ok_or_else(|| {
            IndexError::damaged(lengths.path(), 16, "a number of documents", count)
        })?;
        let (names, [names_count, name_bytes, ..]) = open(NAMES, Kind::Names, 2)?;
        let (ends, [ends_count, ends_bytes, ..]) = open(ENDS, Kind::Ends, 2)?;
        let (locations, [locations_count, ..]) = open(LOCATIONS, Kind::Locations, 1)?;
        for (map, at, expected, found) in [
            (&names, 16, count, names_count),
            (&ends, 16, count, ends_count),
            (&ends, 24, name_bytes, ends_bytes),
            (&locations, 16, count, locations_count),
        ] {
            if expected != found {
                return Err(IndexError::damaged(map.path(), at, expected, found));
            }
        }
        for (map, bytes) in [
            (&lengths, Some(4 * count)),
            (&names, Some(name_bytes)),
            (&ends, count.checked_mul(8)),
            (&locations, count.checked_mul(16)),
        ] {
            let whole = bytes.and_then(|bytes| {
                bytes.checked_add(padding(bytes))?.checked_add(HEADER_BYTES as u64)
            });
            check_length(map.path(), map.bytes().len() as u64, whole)?;
        }
        let table = Self { lengths, names, ends, locations, documents, tokens, name_bytes };
        table.check_ends()?;
        Ok(table)
    }

    /// Names must follow one another inside the file of names.
    fn check_ends(&self) -> Result<(), IndexError> {
        let ends = self.ends();
        let fault = match ends.iter().position(|&end| end > self.name_bytes) {
            Some(at) => Some((at, self.name_bytes)),
            None => ends.windows(2).position(|w| w[0] > w[1]).map(|at| (at + 1, ends[at])),
        };
        if let Some((at, bound)) = fault {
            let offset = (HEADER_BYTES + 8 * at) as u64;
            let expected = format!("the end of a name, beside {bound}");
            return Err(IndexError::damaged(self.ends.path(), offset, expected, ends[at]));
        }
        match ends.last() {
            Some(&last) if last != self.name_bytes => {
                let offset = (HEADER_BYTES + 8 * (ends.len() - 1)) as u64;
                Err(IndexError::damaged(self.ends.path(), offset, self.name_bytes, last))
            }
            _ => Ok(()),
        }
    }

    /// Documents.
    pub fn len(&self) -> u32 {
        self.documents
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// The sum of all lengths, as the header tells it.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The length of every document, in indexed tokens.
    pub fn lengths(&self) -> &[u32] {
        self.lengths.array(HEADER_BYTES as u64, self.documents.into()).expect("checked when opened")
    }

    fn ends(&self) -> &[u64] {
        self.ends.array(HEADER_BYTES as u64, self.documents.into()).expect("checked when opened")
    }

    /// The length of a document below [`len`](Self::len), in indexed tokens.
    pub fn length(&self, docid: u32) -> u32 {
        self.lengths()[docid as usize]
    }

    /// The name of a document below [`len`](Self::len).
    pub fn name(&self, docid: u32) -> &[u8] {
        let ends = self.ends();
        let start = docid.checked_sub(1).map_or(0, |before| ends[before as usize]);
        let names = self.names.from(HEADER_BYTES as u64);
        // The file may have changed since its ends were checked.
        names.get(start as usize..ends[docid as usize] as usize).unwrap_or(&[])
    }

    /// The place of a document below [`len`](Self::len).
    pub fn location(&self, docid: u32) -> Location {
        let locations: &[Location] = self
            .locations
            .array(HEADER_BYTES as u64, self.documents.into())
            .expect("checked when opened");
        locations[docid as usize]
    }

    /// The first document with this name; a scan of all names.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        (0..self.documents).find(|&docid| self.name(docid) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(rows: &[(String, u32, u64)]) -> (tempfile::TempDir, Vec<FileEntry>) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = DocumentsWriter::create(folder.path()).unwrap();
        for (name, length, offset) in rows {
            let at = Location { offset: *offset, bytes: 7, input: 1 };
            writer.push(name.as_bytes(), *length, at).unwrap();
        }
        (folder, writer.finish().unwrap().files)
    }

    fn open(folder: &Path, files: &[FileEntry]) -> Result<Documents, IndexError> {
        Documents::open(folder, |name| Ok(files.iter().find(|f| f.name == name).unwrap()))
    }

    proptest! {
        #[test]
        fn law_reads_what_was_written(rows in prop::collection::vec((".{0,9}", any::<u32>(), any::<u64>()), 0..40)) {
            let (folder, files) = write(&rows);
            let table = open(folder.path(), &files).unwrap();
            prop_assert_eq!(table.len() as usize, rows.len());
            prop_assert_eq!(table.tokens(), rows.iter().map(|r| u64::from(r.1)).sum::<u64>());
            for (docid, (name, length, offset)) in (0u32..).zip(&rows) {
                prop_assert_eq!(table.name(docid), name.as_bytes());
                prop_assert_eq!(table.length(docid), *length);
                prop_assert_eq!(table.location(docid), Location { offset: *offset, bytes: 7, input: 1 });
                let first = rows.iter().position(|r| r.0 == *name).unwrap();
                prop_assert_eq!(table.find_name(name.as_bytes()), Some(first as u32));
            }
        }

        #[test]
        fn law_damage_is_an_error(file in 0usize..4, at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<bool>()) {
            let rows: Vec<_> = (0..5).map(|i| (format!("d{i}"), i, 0)).collect();
            let (folder, files) = write(&rows);
            let path = folder.path().join(&files[file].name);
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            std::fs::write(&path, bytes).unwrap();
            let error = open(folder.path(), &files).unwrap_err().to_string();
            prop_assert!(error.contains(&files[file].name), "{}", error);
        }
    }
}
