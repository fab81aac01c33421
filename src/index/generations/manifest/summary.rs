//! What any job may know of a manifest, also of an older format.

use super::read::Sealed;
use super::{Settings, Statistics};
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::FileEntry;
use crate::index::format::MANIFEST;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

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
    /// Every file but the manifest.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

impl Summary {
    /// Reads the manifest in the folder of a generation and verifies its checksum, but not that its
    /// parts agree: its writer has made sure of that. Of an older format it has what that tells.
    pub(crate) fn read(generation: &Path) -> Result<Self, IndexError> {
        let path = generation.join(MANIFEST);
        let bytes = plain::read(&path)?;
        match Sealed::open(&path, &bytes) {
            Err(error) if error.is_older() => Ok(Self::of_older(&bytes)),
            sealed => sealed?.parse(),
        }
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
        Self { generation, created, statistics, ..Self::default() }
    }
}
