//! Counts the documents of all shards that have the name of an earlier one. Process 0 asks every
//! process for hashes of its names, in docid order and a piece at a time, in bounded memory.

use super::error::BuildError;
use crate::dictionary::names::{Duplicates, Names, name_hash};
use crate::index::documents::Documents;
use crate::index::generations::manifest::sharded::ShardEntry;
use std::path::Path;

/// Hashes that are sent at a time.
const PIECE: u32 = 1 << 16;
const HASH_BYTES: usize = 16;

/// The hashes of the names of documents `from` and those that follow, as bytes.
pub(super) fn piece(directory: &Path, from: u32) -> Result<Vec<u8>, BuildError> {
    let documents = Documents::open_unverified(directory)?;
    let end = documents.len().min(from.saturating_add(PIECE));
    let mut bytes = Vec::new();
    for docid in from..end {
        bytes.extend_from_slice(&name_hash(documents.name(docid)?).to_le_bytes());
    }
    Ok(bytes)
}

/// Counts the duplicates among the names of all shards, whose first docids are known, in `names`;
/// `threads` sort at the end. `ask` gets the [`piece`] of a process from a document on.
pub(super) fn count(
    shards: &[ShardEntry],
    names: Names,
    threads: usize,
    ask: impl Fn(usize, u32) -> Result<Vec<u8>, BuildError>,
) -> Result<Duplicates, BuildError> {
    let failed = |error: std::io::Error| BuildError::Names(error.into());
    for (process, shard) in shards.iter().enumerate() {
        let documents = shard.statistics.documents as u32;
        let mut from = 0;
        while from < documents {
            let bytes = ask(process, from)?;
            let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
            let expected = PIECE.min(documents - from);
            if !rest.is_empty() || hashes.len() != expected as usize {
                return Err(BuildError::NamesSent { process, bytes: bytes.len(), expected });
            }
            for (docid, hash) in (shard.first_docid + from..).zip(hashes) {
                names.push_hash(u128::from_le_bytes(*hash), docid).map_err(failed)?;
            }
            from += expected;
        }
    }
    names.finish(threads).map_err(failed)
}
