//! What any job may know of a manifest of either kind, also of an older format.

use super::read::Sealed;
use super::sharded::ShardEntry;
use super::{RunEntry, Settings, Statistics};
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::FileEntry;
use crate::index::format::MANIFEST;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A manifest of either kind.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Summary {
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    #[serde(default)]
    pub created: u64,
    #[serde(default)]
    pub is_commit: bool,
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
    #[serde(default)]
    pub inputs: u64,
    /// 0 if the generation is whole.
    #[serde(skip)]
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
        let bytes = plain::read(&path)?;
        let sealed = match Sealed::open(&path, &bytes) {
            Err(IndexError::Older { .. }) => return Ok(Self::of_older(&bytes)),
            sealed => sealed?,
        };
        let shards = sealed.shards as u64;
        Ok(Self { shards, crc32: crc32fast::hash(&bytes), ..sealed.parse()? })
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
