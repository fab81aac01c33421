//! A manifest without its inputs, read as a stream.

use super::sharded::{ShardEntry, ShardedManifest};
use super::{Manifest, RunEntry, Settings, Statistics, tail};
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::FileEntry;
use crate::index::format::MANIFEST;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// A manifest of either kind with only the number of its inputs, which need no memory.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Summary {
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    #[serde(default)]
    pub created: u64,
    #[serde(default)]
    pub settings: Settings,
    #[serde(default)]
    pub statistics: Statistics,
    /// By docid; none of a generation of several shards.
    #[serde(default)]
    pub runs: Vec<RunEntry>,
    /// Every file but the manifest.
    #[serde(default)]
    pub files: Vec<FileEntry>,
    #[serde(default, deserialize_with = "count")]
    pub inputs: u64,
    /// 0 if the generation is whole.
    #[serde(default, deserialize_with = "count")]
    pub shards: u64,
    /// Of an older format only the counts above are known.
    #[serde(skip)]
    pub is_older: bool,
    /// CRC-32 of all bytes of the file.
    #[serde(skip)]
    pub crc32: u32,
}

impl Summary {
    /// Reads the manifest in the folder of a generation and verifies its checksum, but not that its
    /// parts agree: its writer has made sure of that. Of an older format it has what that tells.
    pub(crate) fn read(generation: &Path) -> Result<Self, IndexError> {
        let path = generation.join(MANIFEST);
        let file = plain::open(&path)?;
        let bytes = file.metadata().map_err(IndexError::storage("read", &path))?.len();
        let (before, all) = Default::default();
        let left = bytes.saturating_sub(tail(0).len() as u64);
        let mut summing = Summing { file, left, before, all, tail: Vec::new() };
        let reader = BufReader::with_capacity(1 << 16, &mut summing);
        if let Ok(mut summary) = serde_json::from_reader::<_, Self>(reader)
            && summing.tail == tail(summing.before.finalize()).as_bytes()
        {
            summary.crc32 = summing.all.finalize();
            return Ok(summary);
        }
        if let Err(IndexError::Older { .. }) = Manifest::read(generation) {
            return Ok(Self::of_older(&plain::read(&path)?));
        }
        // Says what is wrong.
        if ShardedManifest::read(generation)?.is_none() {
            Manifest::read(generation)?;
        }
        Err(IndexError::damaged(&path, bytes, "a manifest that nobody writes to", "another one"))
    }

    /// What the manifest of an older format tells, of all shards if there are some.
    fn of_older(bytes: &[u8]) -> Self {
        let told: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let shards = told["shards"].as_array().map_or(&[][..], Vec::as_slice);
        let parts = || std::iter::once(&told).chain(shards);
        let sum = |of: &str| parts().filter_map(|part| part["statistics"][of].as_u64()).sum();
        let documents = sum("documents");
        let tokens = sum("tokens");
        let statistics = Statistics { documents, tokens, ..Statistics::default() };
        let generation = told["generation"].as_u64().unwrap_or_default() as u32;
        let created = told["created"].as_u64().unwrap_or_default();
        let shards = shards.len() as u64;
        Self { generation, created, statistics, shards, is_older: true, ..Self::default() }
    }

    /// Describes a generation, whose files are finished, as a shard, with no place among the others
    /// yet.
    pub(crate) fn shard(self) -> ShardEntry {
        ShardEntry {
            first_docid: 0,
            docids: self.runs.iter().map(|run| run.documents).sum(),
            runs: self.runs.len() as u64,
            inputs: self.inputs,
            bytes: self.files.iter().map(|file| file.bytes).sum(),
            statistics: self.statistics,
            manifest_crc32: self.crc32,
        }
    }
}

/// The list takes no memory.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Vec::<IgnoredAny>::deserialize(from).map(|list| list.len() as u64)
}

/// Takes the checksums of what is read: of all, and of all but the last `tail` bytes.
struct Summing<R> {
    file: R,
    left: u64,
    before: crc32fast::Hasher,
    all: crc32fast::Hasher,
    tail: Vec<u8>,
}

impl<R: Read> Read for Summing<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(to)?;
        let (before, behind) = to[..n].split_at(self.left.min(n as u64) as usize);
        self.left -= before.len() as u64;
        self.before.update(before);
        self.all.update(&to[..n]);
        self.tail.extend_from_slice(behind);
        Ok(n)
    }
}
