//! What a run keeps of the records of its documents, in blocks of Zstandard with one dictionary
//! (`docs/index-format.md`, Texts): *parts*, of which all documents have as many. The first is the
//! text as it was indexed, if texts are kept, and each other one the value of a field, in JSON.
//!
//! Blocks and dictionary depend on the texts of the run and their order alone. [`TextsFile`] takes
//! texts from several threads, [`RunTexts`] reads them, and [`carry_texts`] brings them into a
//! merged or ordered run.

mod carry;
mod packing;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use carry::carry_texts;
pub(crate) use write::{PieceTexts, TextsFile};

use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::{RunEntry, Settings};
use bytemuck::{AnyBitPattern, NoUninit};
use packing::{DecoderDictionary, Inflater, can_pack};
use serde_json::value::RawValue;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;
use twox_hash::XxHash3_64;

const BODY: u64 = HEADER_BYTES as u64;

/// What is reserved for a block before any of it is read, at most.
const FIRST_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
struct TextBlock {
    /// Where it ends among all blocks.
    end: u64,
    /// Its bytes, when it is inflated: the length of each part as a u32, and the parts.
    raw_bytes: u64,
    first_docid: u32,
    zero: u32,
}

/// The texts of a run, mapped.
pub(crate) struct RunTexts {
    map: Map,
    documents: u32,
    /// Of each document.
    parts: usize,
    blocks: u64,
    block_bytes: u64,
    dictionary_bytes: u64,
    dictionary: OnceLock<DecoderDictionary<'static>>,
}

impl fmt::Debug for RunTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTexts").field("path", &self.map.path()).finish_non_exhaustive()
    }
}

/// The block that was read last.
#[derive(Debug, Default)]
pub(crate) struct LastTexts {
    /// The number of a run and of a block in it.
    of: Option<(usize, usize)>,
    raw: Vec<u8>,
}

impl RunTexts {
    /// Maps the texts of a run, of whose documents this many `parts` are kept, and reads the
    /// header.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        parts: usize,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Texts))?;
        let header = FileHeader::parse(map.path(), FileKind::Texts, map.bytes())?;
        let [documents, blocks, block_bytes, dictionary_bytes, further] = header.values;
        if documents != u64::from(run.documents) {
            return Err(IndexError::damaged(map.path(), 16, run.documents, documents));
        }
        if further.checked_add(1) != Some(parts as u64) {
            let expected = format!("{parts} parts of each document");
            return Err(IndexError::damaged(map.path(), 48, expected, format!("{further} more")));
        }
        let documents = run.documents;
        let dictionary = OnceLock::new();
        let texts =
            Self { map, documents, parts, blocks, block_bytes, dictionary_bytes, dictionary };
        let table = blocks.checked_mul(size_of::<TextBlock>() as u64);
        let expected = table.and_then(|table| texts.table_start()?.checked_add(table));
        check_length(texts.map.path(), texts.map.bytes().len() as u64, expected)?;
        Ok(texts)
    }

    /// Verifies all of the file.
    pub(crate) fn verify(&self, bytes: u64, crc32: u32) -> Result<(), IndexError> {
        self.map.verify(bytes, crc32)
    }

    /// Where the dictionary begins.
    fn dictionary_start(&self) -> Option<u64> {
        BODY.checked_add(self.block_bytes)?.checked_add(padding(self.block_bytes))
    }

    fn table_start(&self) -> Option<u64> {
        let start = self.dictionary_start()?.checked_add(self.dictionary_bytes)?;
        start.checked_add(padding(self.dictionary_bytes))
    }

    fn blocks(&self) -> Result<&[TextBlock], IndexError> {
        // It was computed when the file was opened.
        self.map.array(self.table_start().unwrap_or(0), self.blocks)
    }

    /// The entry of a block, which is verified.
    fn block(&self, number: usize) -> Result<TextBlock, IndexError> {
        let at = self.table_start().unwrap_or(0) + (number * size_of::<TextBlock>()) as u64;
        Ok(self.map.checked_array(at, 1)?[0])
    }

    fn dictionary(&self) -> Result<&DecoderDictionary<'static>, IndexError> {
        if self.dictionary.get().is_none() {
            let start = self.dictionary_start().unwrap_or(0);
            let bytes = self.map.checked(start, self.dictionary_bytes)?;
            let made = DecoderDictionary::try_copy(bytes).map_err(|error| {
                IndexError::damaged(self.map.path(), start, "a dictionary", error)
            })?;
            self.dictionary.get_or_init(|| made);
        }
        Ok(self.dictionary.get().expect("it was made"))
    }

    /// A part of what is kept of a document. `last` has the block that was read last, of run
    /// `number`.
    pub(crate) fn part<'a>(
        &self,
        number: usize,
        docid: u32,
        part: usize,
        last: &'a mut LastTexts,
    ) -> Result<&'a [u8], IndexError> {
        let after = self.blocks()?.partition_point(|block| block.first_docid <= docid);
        let wrong = |at: u64, found: String| {
            IndexError::damaged(self.map.path(), at, "a block of texts", found)
        };
        let none = || wrong(24, format!("none for document {docid}"));
        let place = after.checked_sub(1).filter(|_| docid < self.documents).ok_or_else(none)?;
        let block = self.block(place)?;
        let end = match place + 1 < self.blocks as usize {
            true => self.block(place + 1)?.first_docid,
            false => self.documents,
        };
        let count = end.checked_sub(block.first_docid).filter(|_| docid < end).ok_or_else(none)?;
        if last.of != Some((number, place)) {
            last.of = None;
            self.inflate(place, &block, &mut last.raw)?;
            last.of = Some((number, place));
        }
        let at = BODY + block.end;
        let head = 4 * count as usize * self.parts;
        let lengths = last.raw.get(..head);
        let lengths = lengths.ok_or_else(|| wrong(at, "one without lengths".into()))?;
        let lengths = lengths.as_chunks().0.iter().map(|&length| u32::from_le_bytes(length));
        let nth = (docid - block.first_docid) as usize * self.parts + part;
        let (mut start, mut length) = (head, 0);
        for (at, own) in lengths.enumerate().take(nth + 1) {
            start += if at > 0 { length } else { 0 };
            length = own as usize;
        }
        let text = last.raw.get(start..start.saturating_add(length));
        text.ok_or_else(|| wrong(at, format!("a text of {length} bytes")))
    }

    /// The value of a field that is such a part, in JSON.
    pub(crate) fn json(
        &self,
        number: usize,
        docid: u32,
        part: usize,
        last: &mut LastTexts,
    ) -> Result<Option<String>, IndexError> {
        let found = self.part(number, docid, part, last)?;
        if found.is_empty() {
            return Ok(None);
        }
        let json = serde_json::from_slice::<&RawValue>(found);
        json.map(|json| Some(json.get().to_string())).map_err(|error| {
            let expected = format!("a value in JSON of document {docid}");
            IndexError::damaged(self.map.path(), BODY, expected, error)
        })
    }

    fn inflate(
        &self,
        place: usize,
        block: &TextBlock,
        raw: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        can_pack(self.map.path())?;
        let start = if place == 0 { 0 } else { self.block(place - 1)?.end };
        let bytes = block.end.checked_sub(start).filter(|_| block.end <= self.block_bytes);
        let wrong = |found: String| {
            let expected = format!("a block of {} bytes when inflated", block.raw_bytes);
            IndexError::damaged(self.map.path(), BODY + start, expected, found)
        };
        let bytes = bytes.ok_or_else(|| wrong(format!("one that ends at {}", block.end)))?;
        let packed = self.map.checked(BODY + start, bytes)?;
        raw.clear();
        raw.reserve(block.raw_bytes.min(FIRST_BYTES) as usize);
        let decoder = Inflater::with_prepared_dictionary(packed, self.dictionary()?);
        let read = decoder
            .and_then(|decoder| decoder.take(block.raw_bytes.saturating_add(1)).read_to_end(raw));
        match read {
            Ok(read) if read as u64 == block.raw_bytes => Ok(()),
            Ok(read) => Err(wrong(format!("{read} bytes"))),
            Err(error) => Err(wrong(error.to_string())),
        }
    }
}

/// Checks that all that a run keeps is there: texts whose hashes its documents have, and values of
/// fields in JSON.
pub(crate) fn check_texts(
    generation: &Path,
    run: &RunEntry,
    settings: &Settings,
    documents: Option<&RunDocuments>,
) -> Result<(), IndexError> {
    let texts = RunTexts::open(generation, run, settings.record_parts())?;
    // Hashes are of more than the text otherwise.
    let documents = documents.filter(|_| settings.fields.is_empty() && !settings.has_values());
    let mut last = LastTexts::default();
    for docid in 0..run.documents {
        for (part, field) in settings.parts_of_records().enumerate() {
            if field.is_some() {
                texts.json(0, docid, part, &mut last)?;
                continue;
            }
            let text = texts.part(0, docid, part, &mut last)?;
            let hash = documents.and_then(|documents| documents.hashes().get(docid as usize));
            if hash.is_some_and(|&hash| hash != XxHash3_64::oneshot(text)) {
                let found = "another text";
                let expected = format!("the text of document {docid}");
                return Err(IndexError::damaged(texts.map.path(), BODY, expected, found));
            }
        }
    }
    Ok(())
}
