//! The inputs of a generation, by the number that locations give, in a file that is written and
//! read one after the other, or one alone (`docs/index-format.md`, Inputs). Paths are bytes.

#[cfg(test)]
mod tests;

use crate::codec::vbyte;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, INPUTS, check_length, padding};
use crate::index::generations::manifest::{Manifest, find_file};
use serde::{Serialize, Serializer};
use std::borrow::Borrow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const BODY: u64 = HEADER_BYTES as u64;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputEntry {
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Its length as it was read, compressed or not.
    pub bytes: u64,
    /// Hash of those bytes, with the name of the hash before a colon.
    pub hash: String,
    pub format: String,
    pub compression: String,
    /// The encoding from which it was decoded, as places count the decoded bytes; none: UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_encoding: Option<String>,
    /// Fields of JSON and columns of CSV that were asked for as names; none for the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub id_fields: Vec<String>,
    /// The same as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_fields: Vec<String>,
    /// The fields that gave text; none where none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_fields: Vec<String>,
}

fn lossy<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

impl InputEntry {
    /// Whether no job file has it as a source: its documents came by call, or all of them are
    /// deleted since it is gone.
    pub(crate) fn is_by_call(&self) -> bool {
        self.hash.is_empty()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        fn put(text: &[u8], to: &mut Vec<u8>) {
            vbyte::put(text.len() as u64, to);
            to.extend_from_slice(text);
        }
        let [encoding, asked] =
            [&self.encoding, &self.asked_encoding].map(|name| name.as_deref().unwrap_or_default());
        put(self.path.as_os_str().as_bytes(), to);
        for text in [&*self.hash, &self.format, &self.compression, encoding, asked] {
            put(text.as_bytes(), to);
        }
        vbyte::put(self.bytes, to);
        for fields in [&self.id_fields, &self.text_fields, &self.taken_fields] {
            vbyte::put(fields.len() as u64, to);
            fields.iter().for_each(|field| put(field.as_bytes(), to));
        }
    }

    /// None if these are not the bytes of one, or not in their only form.
    fn decode(bytes: &[u8]) -> Option<Self> {
        fn take<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
            let length = usize::try_from(vbyte::get(bytes, at)?).ok()?;
            let taken = bytes.get(*at..)?.get(..length)?;
            *at += length;
            Some(taken)
        }
        let text = |at: &mut usize| String::from_utf8(take(bytes, at)?.to_vec()).ok();
        let at = &mut 0;
        let path = PathBuf::from(OsString::from_vec(take(bytes, at)?.to_vec()));
        let [hash, format, compression] = [text(at)?, text(at)?, text(at)?];
        let [encoding, asked_encoding] =
            [text(at)?, text(at)?].map(|name| (!name.is_empty()).then_some(name));
        let length = vbyte::get(bytes, at)?;
        let mut fields = [const { Vec::new() }; 3];
        for fields in &mut fields {
            for _ in 0..vbyte::get(bytes, at)? {
                fields.push(text(at)?);
            }
        }
        let [id_fields, text_fields, taken_fields] = fields;
        let entry = Self {
            path,
            bytes: length,
            hash,
            format,
            compression,
            encoding,
            asked_encoding,
            id_fields,
            text_fields,
            taken_fields,
        };
        (*at == bytes.len()).then_some(entry)
    }
}

/// Inputs as one process sends them to another: each record behind its length.
pub(crate) fn sent(inputs: &[InputEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut record = Vec::new();
    for input in inputs {
        record.clear();
        input.encode(&mut record);
        vbyte::put(record.len() as u64, &mut bytes);
        bytes.extend_from_slice(&record);
    }
    bytes
}

/// What was [`sent`]; none if it is something else.
pub(crate) fn received(bytes: &[u8]) -> Option<Vec<InputEntry>> {
    let mut inputs = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = usize::try_from(vbyte::get(bytes, &mut at)?).ok()?;
        inputs.push(InputEntry::decode(bytes.get(at..)?.get(..length)?)?);
        at += length;
    }
    Some(inputs)
}

/// Writes the inputs of a generation. Memory: 8 bytes each, and a write buffer.
#[derive(Debug)]
pub(crate) struct InputsWriter {
    file: StorageFile,
    ends: Vec<u64>,
    record: Vec<u8>,
}

impl InputsWriter {
    pub(crate) fn create(generation: &Path) -> Result<Self, IndexError> {
        let file = StorageFile::create(generation, INPUTS)?;
        Ok(Self { file, ends: Vec::new(), record: Vec::new() })
    }

    /// The number of the next input.
    pub(crate) fn next(&self) -> u32 {
        self.ends.len() as u32
    }

    pub(crate) fn extend<I: Borrow<InputEntry>>(
        &mut self,
        inputs: impl IntoIterator<Item = I>,
    ) -> Result<(), IndexError> {
        for input in inputs {
            self.record.clear();
            input.borrow().encode(&mut self.record);
            self.file.write(&self.record)?;
            self.ends.push(self.file.body_bytes());
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<FileEntry, IndexError> {
        let bytes = self.file.body_bytes();
        self.file.pad()?;
        self.file.write(bytemuck::cast_slice(&self.ends))?;
        let values = [self.ends.len() as u64, bytes, 0, 0, 0];
        self.file.finish(FileHeader { kind: FileKind::Inputs, values, last: 0 })
    }
}

/// The inputs of a generation, mapped.
#[derive(Debug)]
pub(crate) struct InputsFile {
    map: Map,
    inputs: u64,
    bytes: u64,
}

impl InputsFile {
    /// Maps the inputs in the folder of a generation and verifies their checksum.
    pub(crate) fn open(generation: &Path, manifest: &Manifest) -> Result<Self, IndexError> {
        let inputs = Self::open_unverified(generation, manifest)?;
        let file = find_file(&manifest.files, generation, INPUTS)?;
        inputs.map.verify(file.bytes, file.crc32)?;
        Ok(inputs)
    }

    pub(crate) fn open_unverified(
        generation: &Path,
        manifest: &Manifest,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&generation.join(INPUTS))?;
        let header = FileHeader::parse(map.path(), FileKind::Inputs, map.bytes())?;
        header.check_unused(map.path(), 2)?;
        let [inputs, bytes, ..] = header.values;
        if inputs != manifest.inputs {
            return Err(IndexError::damaged(map.path(), 16, manifest.inputs, inputs));
        }
        let ends = inputs.checked_mul(8).and_then(|ends| ends.checked_add(BODY + padding(bytes)));
        let expected = ends.and_then(|ends| ends.checked_add(bytes));
        check_length(map.path(), map.bytes().len() as u64, expected)?;
        Ok(Self { map, inputs, bytes })
    }

    /// `Damaged` if there is no such input, or its record is none.
    pub(crate) fn get(&self, number: u64) -> Result<InputEntry, IndexError> {
        let ends = self.ends()?;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        let wrong = |place: u64, what: &str| {
            let expected = format!("{what} {number} of {}", self.inputs);
            IndexError::damaged(self.map.path(), place, expected, "none")
        };
        let of_end = BODY + self.bytes + padding(self.bytes) + 8 * number.min(self.inputs);
        let end = ends.get(at).copied().filter(|end| (start..=self.bytes).contains(end));
        let end = end.ok_or_else(|| wrong(of_end, "the end of input"))?;
        let record = self.map.slice(BODY + start, end - start)?;
        InputEntry::decode(record).ok_or_else(|| wrong(BODY + start, "input"))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<InputEntry, IndexError>> {
        (0..self.inputs).map(|number| self.get(number))
    }

    pub(crate) fn all(&self) -> Result<Vec<InputEntry>, IndexError> {
        self.iter().collect()
    }

    /// Checks that every record can be read, and that none has a byte beyond the last.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        self.iter().try_for_each(|input| input.map(drop))?;
        let last = self.ends()?.last().copied().unwrap_or(0);
        if last != self.bytes {
            return Err(IndexError::damaged(self.map.path(), 24, last, self.bytes));
        }
        let end = BODY + self.bytes;
        match self.map.slice(end, padding(end))?.iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(at) => {
                let at = end + at as u64;
                Err(IndexError::damaged(self.map.path(), at, "a zero byte of padding", "another"))
            }
        }
    }

    fn ends(&self) -> Result<&[u64], IndexError> {
        self.map.array(BODY + self.bytes + padding(self.bytes), self.inputs)
    }
}
