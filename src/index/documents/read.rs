//! How is the documents' table read in place?

#![forbid(unsafe_code)]

use super::Location;
use crate::index::error::IndexError;
use crate::index::format::{
    ENDS, HEADER_BYTES, Header, Kind, LENGTHS, LOCATIONS, LONG, NAMES, check_length, padding,
};
use crate::index::manifest::find_file;
use crate::index::map::Map;
use crate::index::storage::FileEntry;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// The documents' table, mapped.
///
/// Memory: 4 bytes a document, beside what is mapped.
#[derive(Debug)]
pub struct Documents {
    lengths: Vec<u32>,
    lengths_file: Map,
    names: Map,
    ends: Map,
    locations: Map,
    documents: u32,
    tokens: u64,
    name_bytes: u64,
}

impl Documents {
    /// Maps the table in the folder of a generation, verifies the checksums of all four files by
    /// the entries of the manifest that `file` finds, and checks the ends of the names.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open(generation: &Path, files: &[FileEntry]) -> Result<Self, IndexError> {
        let documents = Self::open_unverified(generation)?;
        for (map, name) in [
            (&documents.lengths_file, LENGTHS),
            (&documents.names, NAMES),
            (&documents.ends, ENDS),
            (&documents.locations, LOCATIONS),
        ] {
            let entry = find_file(files, generation, name)?;
            map.verify(entry.bytes, entry.crc32)?;
        }
        documents.check_ends()?;
        Ok(documents)
    }

    /// Maps the table and reads no more than the headers and the lengths.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open_unverified(generation: &Path) -> Result<Self, IndexError> {
        let open = |name, kind, used| {
            let map = Map::open(&generation.join(name))?;
            let header = Header::parse(map.path(), kind, map.bytes())?;
            header.check_unused(map.path(), used)?;
            Ok((map, header.values))
        };
        let (lengths, [count, tokens, long, ..]) = open(LENGTHS, Kind::Lengths, 3)?;
        let (names, [names_count, name_bytes, ..]) = open(NAMES, Kind::Names, 2)?;
        let (ends, [ends_count, ends_bytes, ..]) = open(ENDS, Kind::Ends, 2)?;
        let (locations, [locations_count, ..]) = open(LOCATIONS, Kind::Locations, 1)?;
        let documents = u32::try_from(count).map_err(|_| {
            IndexError::damaged(lengths.path(), 16, "at most 2^32 - 1 documents", count)
        })?;
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
        for (map, size, more) in [(&lengths, 2, long), (&ends, 8, 0), (&locations, 16, 0)] {
            let bytes = BODY + size * count + padding(size * count);
            let expected = more.checked_mul(8).and_then(|more| more.checked_add(bytes));
            check_length(map.path(), map.bytes().len() as u64, expected)?;
        }
        let expected = name_bytes.checked_add(BODY + padding(name_bytes));
        check_length(names.path(), names.bytes().len() as u64, expected)?;
        let lengths_file = lengths;
        let lengths = read_lengths(&lengths_file, documents, long)?;
        let table =
            Self { lengths, lengths_file, names, ends, locations, documents, tokens, name_bytes };
        Ok(table)
    }

    /// Checks that the ends of the names never fall and stay among the names.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn check_ends(&self) -> Result<(), IndexError> {
        let mut before = 0;
        for (i, &end) in self.ends().iter().enumerate() {
            if end < before || end > self.name_bytes {
                let offset = BODY + 8 * i as u64;
                let expected = format!("an end from {before} to {}", self.name_bytes);
                return Err(IndexError::damaged(self.ends.path(), offset, expected, end));
            }
            before = end;
        }
        if before != self.name_bytes {
            let last = (BODY + 8 * u64::from(self.documents)).saturating_sub(8);
            return Err(IndexError::damaged(self.ends.path(), last, self.name_bytes, before));
        }
        Ok(())
    }

    /// Returns how many documents there are.
    pub fn len(&self) -> u32 {
        self.documents
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Returns how many tokens the documents have, by the header.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the tokens of every document, by docid.
    #[inline]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Returns the tokens of a document.
    #[inline]
    pub fn length(&self, docid: u32) -> Option<u32> {
        self.lengths().get(docid as usize).copied()
    }

    /// Returns the name of a document, UTF-8 unless the file was damaged after it was opened.
    pub fn name(&self, docid: u32) -> Option<&[u8]> {
        let (ends, docid) = (self.ends(), docid as usize);
        let end = *ends.get(docid)?;
        let start = docid.checked_sub(1).map_or(0, |before| ends[before]);
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        self.name_section().get(start..end)
    }

    /// Returns where a document lies in the input.
    pub fn location(&self, docid: u32) -> Option<Location> {
        self.locations().get(docid as usize).copied()
    }

    /// Returns where every document lies, by docid.
    pub fn locations(&self) -> &[Location] {
        self.locations.array(BODY, self.documents.into()).unwrap_or(&[])
    }

    /// Returns the first document of this name. Looks at every document until it is found.
    pub fn find_name(&self, name: &[u8]) -> Option<u32> {
        (0..self.documents).find(|docid| self.name(*docid) == Some(name))
    }

    /// Returns the bytes of all names.
    pub(crate) fn name_section(&self) -> &[u8] {
        self.names.slice(BODY, self.name_bytes).unwrap_or(&[])
    }

    fn ends(&self) -> &[u64] {
        // `open_unverified` has compared every length with the file's, so none of these fails.
        self.ends.array(BODY, self.documents.into()).unwrap_or(&[])
    }
}

/// Reads the lengths of all documents, of which `long` have 65,535 tokens or more.
fn read_lengths(map: &Map, documents: u32, long: u64) -> Result<Vec<u32>, IndexError> {
    let short: &[u16] = map.array(BODY, documents.into())?;
    let mut lengths: Vec<u32> = short.iter().map(|&tokens| tokens.into()).collect();
    let first = BODY + 2 * u64::from(documents) + padding(2 * u64::from(documents));
    let mut left = short.iter().zip(&mut lengths).enumerate().filter(|(_, (s, _))| **s == LONG);
    for (number, &[docid, tokens]) in (0..).zip(map.array::<[u32; 2]>(first, long)?) {
        let offset = first + 8 * number;
        match left.next() {
            Some((next, (_, length))) if next == docid as usize && tokens >= LONG.into() => {
                *length = tokens;
            }
            next => {
                let expected = match next {
                    Some((next, _)) => format!("at least {LONG} tokens of document {next}"),
                    None => "no more long documents".to_owned(),
                };
                let found = format!("{tokens} of {docid}");
                return Err(IndexError::damaged(map.path(), offset, expected, found));
            }
        }
    }
    match left.next() {
        None => Ok(lengths),
        Some((docid, _)) => {
            let expected = format!("{long} long documents");
            let found = format!("one more, document {docid}");
            Err(IndexError::damaged(map.path(), BODY + 2 * docid as u64, expected, found))
        }
    }
}
