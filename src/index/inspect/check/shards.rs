//! Checks all shards of an index, and that they are those that its manifest lists.

use super::{Report, Share, check_generation};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::format::MANIFEST;
use crate::index::generations::manifest::sharded::ShardedManifest;
use std::fs;
use std::path::Path;

/// Checks the shards of the generation in the folder `generation`. A shard that lies on another
/// disk is a problem, since it is not checked.
pub(crate) fn check(
    index: &Path,
    generation: &Path,
    manifest: &ShardedManifest,
    share: Share,
    watched: &Stop,
) -> Result<Report, Vec<IndexError>> {
    let path = generation.join(MANIFEST);
    let mut report = Report {
        generation: generation.to_path_buf(),
        files: 1,
        bytes: fs::metadata(&path).map_or(0, |file| file.len()),
        shards: manifest.shards.len() as u64,
        ..Report::default()
    };
    let mut problems = Vec::new();
    for shard in 0..manifest.shards.len() {
        let folder = manifest.folder(index, shard);
        match check_generation(&folder, share, watched) {
            Ok(found) => {
                report.files += found.files;
                report.bytes = report.bytes.saturating_add(found.bytes);
                report.documents += found.documents;
                report.terms += found.terms;
                report.postings += found.postings;
            }
            Err(found) => {
                problems.extend(found);
                continue;
            }
        }
        problems.extend(manifest.check_listed(&folder, shard).err());
    }
    if problems.is_empty() { Ok(report) } else { Err(problems) }
}
