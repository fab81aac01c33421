//! What a build refuses to publish, so that less does not take the place of more: empty input, a
//! stream that breaks off, many broken records or few documents. The live generation stays.

#![warn(missing_docs)]

pub(crate) mod limit;

use super::error::BuildError;
use crate::index::error::IndexError;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::index::generations::manifest::summary::Summary;
use crate::input::document::is_broken_record;
use limit::Limit;
use std::collections::BTreeMap;
use std::path::Path;

/// What a build refuses to publish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guards {
    /// Takes input without any content, and publishes an index without any document.
    pub allow_empty: bool,
    /// Takes what comes before the damage, or the early end, of a compressed stream.
    pub allow_cut: bool,
    /// The most records that may be broken, of themselves and the documents. What a format leaves
    /// out on purpose, such as the statuses and content types of web pages, does not count.
    pub max_skipped: Option<Limit>,
    /// The fewest documents, of those of the generation before. A share of them is no limit for the
    /// first generation.
    pub min_documents: Option<Limit>,
    /// Older generations that stay.
    pub keep: usize,
}

impl Default for Guards {
    /// Refuses empty input and broken streams, and keeps one older generation.
    fn default() -> Self {
        let allow_empty = false;
        let allow_cut = false;
        Self { allow_empty, allow_cut, max_skipped: None, min_documents: None, keep: 1 }
    }
}

impl Guards {
    /// Checks a generation of `documents` that is to replace one with as many as `before` says.
    pub(crate) fn check(
        &self,
        documents: u64,
        skipped: &BTreeMap<String, u64>,
        before: impl FnOnce() -> Result<Option<u64>, IndexError>,
    ) -> Result<(), BuildError> {
        let broken = skipped.iter().filter(|(reason, _)| is_broken_record(reason));
        let broken: u64 = broken.map(|(_, n)| n).sum();
        if let Some(limit) = self.max_skipped
            && broken > limit.most(broken + documents)
        {
            return Err(BuildError::TooManySkipped { broken, records: broken + documents, limit });
        }
        let Some(limit) = self.min_documents else { return Ok(()) };
        let before = before()?;
        let least = limit.least(before.unwrap_or(0));
        if documents < least {
            return Err(BuildError::TooFewDocuments { documents, least, limit, before });
        }
        Ok(())
    }
}

/// Documents of the generation in a folder, whole or in shards.
pub(super) fn documents_of(generation: &Path) -> Result<u64, IndexError> {
    let summary = Summary::read(generation)?;
    if summary.shards == 0 {
        return Ok(summary.statistics.documents);
    }
    Ok(ShardedManifest::read(generation)?.map_or(0, |manifest| manifest.documents()))
}
