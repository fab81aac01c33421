//! Which documents of all shards have a name that an earlier one has? Process 0 asks every process
//! for hashes of its names, in docid order and a piece at a time, so that no more than one is under
//! way, and counts in bounded memory.

use super::shard::Order;
use crate::cluster::Cluster;
use anyhow::{Context, bail};
use millrace::dataflow::documents::NAMES_SHARE;
use millrace::dictionary::names::{Duplicates, Names, name_hash};
use millrace::index::documents::Documents;
use millrace::index::shards::ShardEntry;
use std::path::Path;

/// Hashes that are sent at a time.
const PIECE: u32 = 1 << 16;
/// Bytes of a hash.
const HASH_BYTES: usize = 16;

/// The hashes of the names of documents `from` and those that follow, as bytes.
pub(super) fn piece(directory: &Path, from: u32) -> anyhow::Result<Vec<u8>> {
    let documents = Documents::open_unverified(directory)?;
    let end = documents.len().min(from.saturating_add(PIECE));
    let mut bytes = Vec::new();
    for docid in from..end {
        let name = documents.name(docid).context("a document that was written has no name")?;
        bytes.extend_from_slice(&name_hash(name).to_le_bytes());
    }
    Ok(bytes)
}

/// Counts the duplicates among the names of all shards, whose first docids are known. `directory` is
/// that of the shard of process 0, `memory` what the job may take.
pub(super) fn count(
    cluster: &Cluster,
    shards: &[ShardEntry],
    directory: &Path,
    memory: u64,
) -> anyhow::Result<Duplicates> {
    let mut names = Names::new(directory, memory / NAMES_SHARE);
    for (process, shard) in shards.iter().enumerate() {
        let documents = shard.statistics.documents as u32;
        let mut from = 0;
        while from < documents {
            let bytes = if process == 0 {
                piece(directory, from)?
            } else {
                cluster.tell(process, &Order::Names { from })?;
                cluster.hear_bytes(process)?
            };
            let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
            let expected = PIECE.min(documents - from);
            if !rest.is_empty() || hashes.len() != expected as usize {
                bail!("process {process} sent {} bytes of {expected} names", bytes.len());
            }
            for (docid, hash) in (shard.first_docid + from..).zip(hashes) {
                let added = names.push_hash(u128::from_le_bytes(*hash), docid);
                added.context("keeping hashes of the names")?;
            }
            from += expected;
        }
    }
    names.finish().context("reading hashes of the names")
}
