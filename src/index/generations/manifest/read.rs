//! Reads manifests, and says what is wrong with them.

use super::{Manifest, tail};
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::format::{MANIFEST, VERSION};
use crate::index::generations::folder::number_of;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::path::Path;

#[derive(Deserialize)]
struct AnyVersion {
    format: u64,
    #[serde(rename = "generation")]
    _generation: IgnoredAny,
    /// Earlier programs wrote a generation of several processes so.
    #[serde(default)]
    shards: Vec<IgnoredAny>,
}

impl Manifest {
    pub(crate) fn read(generation: &Path) -> Result<Self, IndexError> {
        let path = generation.join(MANIFEST);
        let bytes = plain::read(&path)?;
        Self::decode(&path, &bytes)
    }

    /// Reads and verifies the manifest in the file at `path`.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let manifest: Self = Sealed::open(path, bytes)?.parse()?;
        match manifest.inconsistency() {
            Some(found) => Err(IndexError::damaged(path, 0, "parts that agree", found)),
            None => Ok(manifest),
        }
    }
}

/// Reads the manifest in the folder `path`, which has to be named for its generation.
pub(crate) fn read_manifest(path: &Path) -> Result<Manifest, IndexError> {
    let manifest = Manifest::read(path)?;
    if number_of(path) != Some(manifest.generation) {
        let expected = "the number of the generation's folder";
        return Err(IndexError::damaged(&path.join(MANIFEST), 0, expected, manifest.generation));
    }
    Ok(manifest)
}

/// A manifest whose checksum is right.
pub(crate) struct Sealed<'a> {
    path: &'a Path,
    text: Vec<u8>,
}

impl<'a> Sealed<'a> {
    pub(crate) fn open(path: &'a Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let any = serde_json::from_slice::<AnyVersion>(bytes);
        if let Ok(AnyVersion { format: found, .. }) = any
            && found != u64::from(VERSION)
        {
            let owned = path.to_owned();
            let supported = VERSION;
            let at = memchr::memmem::find(bytes, b"\"format\": ").map_or(0, |at| at + 10);
            let behind = bytes.get(at + found.to_string().len()..).unwrap_or_default();
            // The version alone is damaged where all else is as this program seals it.
            if is_sealed(&[&bytes[..at], VERSION.to_string().as_bytes(), behind].concat()) {
                return Err(IndexError::damaged(
                    path,
                    at as u64,
                    format!("format {VERSION}"),
                    found,
                ));
            }
            if found > u64::from(VERSION) {
                return Err(IndexError::Newer { path: owned, found, supported });
            }
            if is_sealed(bytes) {
                return Err(IndexError::Older { path: owned, found, supported });
            }
        }
        let length = tail(0).len();
        let Some((start, end)) = bytes.len().checked_sub(length).map(|at| bytes.split_at(at))
        else {
            let expected = "the manifest of an index, which ends with its checksum";
            return Err(IndexError::damaged(path, bytes.len() as u64, expected, "the end"));
        };
        let expected = tail(crc32fast::hash(start));
        if end != expected.as_bytes() {
            let found = end.escape_ascii().to_string();
            return Err(IndexError::damaged(
                path,
                start.len() as u64,
                expected.escape_default(),
                found,
            ));
        }
        // The tail is exactly as expected, so the text in front of it ends with a comma.
        let mut text = start.trim_ascii_end().to_vec();
        text.pop_if(|byte| *byte == b',');
        text.push(b'}');
        if any.is_ok_and(|any| !any.shards.is_empty()) {
            return Err(IndexError::Sharded { path: path.to_owned() });
        }
        Ok(Self { path, text })
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, IndexError> {
        serde_json::from_slice(&self.text).map_err(|error| {
            let offset = place(&self.text, error.line(), error.column());
            IndexError::damaged(self.path, offset, "a manifest", error)
        })
    }
}

/// Whether the checksum at the end is right: tells a manifest of an earlier format from a damaged
/// one.
fn is_sealed(bytes: &[u8]) -> bool {
    let start = bytes.len().checked_sub(tail(0).len());
    start.is_some_and(|start| bytes[start..] == *tail(crc32fast::hash(&bytes[..start])).as_bytes())
}

/// Turns line and column, both from 1, into an offset.
fn place(text: &[u8], line: usize, column: usize) -> u64 {
    let before: usize =
        text.split_inclusive(|byte| *byte == b'\n').take(line.max(1) - 1).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)) as u64
}
