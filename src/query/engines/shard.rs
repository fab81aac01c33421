//! The part of an index that a process searches.

use crate::index::error::IndexError;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::query::engines::share::counted_from;
use crate::query::snapshot::{Scoring, Snapshot, WholeCollection};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub process: usize,
    pub processes: usize,
    /// Docid of the shard's first document in the whole index.
    pub first_docid: u32,
}

impl Shard {
    pub const WHOLE: Self = Self { process: 0, processes: 1, first_docid: 0 };

    /// Opens a process's shard of the index in the folder `index`, in the generation of `manifest`.
    /// `docids` are those of the whole index that are searched.
    ///
    /// # Errors
    /// As [`ShardedManifest::open`], if there is no such shard, and if its recorded analysis is
    /// unknown.
    pub fn open(
        index: &Path,
        manifest: &ShardedManifest,
        process: usize,
        processes: usize,
        scoring: Scoring,
        docids: &Range<u32>,
    ) -> Result<(Arc<Snapshot>, Self), IndexError> {
        let shards = manifest.shards.len();
        let listed = manifest.shards.get(process).filter(|_| shards == processes);
        let path = || index.to_path_buf();
        let listed =
            listed.ok_or_else(|| IndexError::Shards { path: path(), shards, processes })?;
        let shard = Self { process, processes, first_docid: listed.first_docid };
        let generation = manifest.open(index, process)?;
        // The manifest has at most as many documents as there are docids.
        let documents = manifest.documents().try_into().unwrap_or(u32::MAX);
        let whole = WholeCollection { documents, tokens: manifest.tokens() };
        let whole = (whole, manifest.field_tokens());
        let docids = counted_from(docids, shard.first_docid);
        let snapshot = Snapshot::of_shard(generation.into(), scoring, whole, docids, None)?;
        Ok((snapshot, shard))
    }
}
