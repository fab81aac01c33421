//! The manifest of a generation of several shards.

use super::read::Sealed;
use super::{Settings, Statistics, sealed};
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::hexadecimal;
use crate::index::format::{MANIFEST, VERSION, generation_name, shard_name};
use crate::index::generations::folder::number_of;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardedManifest {
    pub format: u32,
    /// Also in the names of the folders of its shards.
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    pub created: u64,
    /// Of process 0.
    pub command: String,
    /// The same for all shards except for the memory.
    pub settings: Settings,
    /// Documents whose name an earlier one has, in the same shard or another.
    pub duplicate_names: u64,
    /// By docid; the folder of each is named for its place here.
    pub shards: Vec<ShardEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    pub first_docid: u32,
    /// Its documents, deleted ones too.
    pub docids: u32,
    pub statistics: Statistics,
    pub runs: u64,
    pub inputs: u64,
    /// Bytes of its files without the manifest.
    pub bytes: u64,
    #[serde(with = "hexadecimal")]
    pub manifest_crc32: u32,
}

impl ShardedManifest {
    /// Gives each shard its first docid.
    pub(crate) fn line_up(&mut self, index: &Path) -> Result<(), IndexError> {
        let mut next = 0u64;
        for shard in &mut self.shards {
            shard.first_docid = u32::try_from(next).map_err(|_| too_many(index))?;
            next += u64::from(shard.docids);
        }
        u32::try_from(next).map(drop).map_err(|_| too_many(index))
    }

    /// None if the generation is whole.
    pub(crate) fn read(generation: &Path) -> Result<Option<Self>, IndexError> {
        let path = generation.join(MANIFEST);
        let bytes = plain::read(&path)?;
        let manifest = Self::decode(&path, &bytes)?;
        match &manifest {
            Some(manifest) if number_of(generation) != Some(manifest.generation) => {
                let expected = "the number of the generation's folder";
                Err(IndexError::damaged(&path, 0, expected, manifest.generation))
            }
            _ => Ok(manifest),
        }
    }

    /// Reads and verifies the manifest in the file at `path`; none if it is that of a whole
    /// generation.
    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Option<Self>, IndexError> {
        let sealed = Sealed::open(path, bytes)?;
        if sealed.shards == 0 {
            return Ok(None);
        }
        let manifest: Self = sealed.parse()?;
        if manifest.format != VERSION {
            let expected = format!("format version {VERSION}");
            return Err(IndexError::damaged(path, 0, expected, manifest.format));
        }
        let mut lined_up = manifest.clone();
        lined_up.line_up(path)?;
        if lined_up != manifest {
            let expected = "first docids that follow from the documents";
            return Err(IndexError::damaged(path, 0, expected, "others"));
        }
        Ok(Some(manifest))
    }

    pub(crate) fn encode(&self) -> String {
        sealed(self)
    }

    /// The number of the generation in a folder if it has shards, or may have some because its
    /// manifest cannot be read.
    pub(crate) fn number_with_shards(generation: &Path) -> Option<u32> {
        match Self::read(generation) {
            Ok(manifest) => manifest.map(|manifest| manifest.generation),
            Err(_) => number_of(generation),
        }
    }

    pub(crate) fn documents(&self) -> u64 {
        self.sum(|s| s.documents)
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.sum(|s| s.tokens)
    }

    /// Of each field of the index, in all shards.
    pub(crate) fn field_tokens(&self) -> Vec<u64> {
        let of = |at: usize| self.sum(|s| s.field_tokens.get(at).copied().unwrap_or_default());
        (0..self.settings.fields.len()).map(of).collect()
    }

    /// Saturates, since a manifest may say anything.
    pub(crate) fn sum(&self, number: impl Fn(&Statistics) -> u64) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.saturating_add(number(&shard.statistics)))
    }

    pub(crate) fn shard_of(&self, docid: u32) -> Option<usize> {
        let after = self.shards.partition_point(|shard| shard.first_docid <= docid);
        // Empty shards begin where the next one does.
        let shard = after.checked_sub(1)?;
        let within = docid - self.shards[shard].first_docid;
        (within < self.shards[shard].docids).then_some(shard)
    }

    pub(crate) fn folder(&self, index: &Path, shard: usize) -> PathBuf {
        index.join(shard_name(shard)).join(generation_name(self.generation))
    }
}

fn too_many(index: &Path) -> IndexError {
    IndexError::refused(index, format_args!("there are more than {} documents", u32::MAX))
}
