//! What a build refuses to publish, so that less does not take the place of more: empty input, a
//! stream that breaks off, many broken records or few documents. The live generation stays.

#![warn(missing_docs)]

pub(crate) mod limit;

use super::error::BuildError;
use crate::index::error::IndexError;
use crate::index::generations::manifest::Statistics;
use crate::index::generations::manifest::summary::Summary;
use crate::input::document::is_broken_record;
use crate::input::splits::InputPlan;
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
    /// The fewest indexed tokens, of those of the generation before.
    pub min_tokens: Option<Limit>,
    /// Older generations that stay.
    pub keep: usize,
}

impl Default for Guards {
    /// Refuses empty input and broken streams, and keeps one older generation.
    fn default() -> Self {
        Self {
            allow_empty: false,
            allow_cut: false,
            max_skipped: None,
            min_documents: None,
            min_tokens: None,
            keep: 1,
        }
    }
}

/// A new generation as guards see it.
pub(crate) struct NewContent<'a> {
    /// The input of all of it.
    pub plan: &'a InputPlan,
    pub read_bytes: u64,
    pub documents: u64,
    /// None: they are not counted yet.
    pub tokens: Option<u64>,
    /// Records that were read and are no documents, by reason.
    pub skipped: &'a BTreeMap<String, u64>,
    /// The first of them: place and reason.
    pub first_skipped: &'a [String],
}

impl Guards {
    /// Checks that there are documents, and text in them.
    pub(super) fn check_content(&self, new: &NewContent<'_>) -> Result<(), BuildError> {
        let &NewContent { plan, documents, .. } = new;
        if documents == 0 && !self.allow_empty {
            return Err(BuildError::NoDocuments {
                bytes: new.read_bytes,
                place: match plan.inputs.len() {
                    0 => "the input".to_string(),
                    1 => plan.path(0),
                    n => format!("{} and {} more inputs", plan.path(0), n - 1),
                },
                skipped: new.skipped.clone(),
                first_skipped: new.first_skipped.to_vec(),
            });
        }
        if documents > 0 && new.tokens == Some(0) {
            return Err(BuildError::NoText { documents, seen: plan.what_is_there() });
        }
        Ok(())
    }

    /// Checks all that is refused of a generation that is to replace one with such statistics as
    /// `before` says.
    pub(crate) fn check(
        &self,
        new: &NewContent<'_>,
        before: impl FnOnce() -> Result<Option<Statistics>, IndexError>,
    ) -> Result<(), BuildError> {
        self.check_content(new)?;
        let documents = new.documents;
        let broken = new.skipped.iter().filter(|(reason, _)| is_broken_record(reason));
        let broken: u64 = broken.map(|(_, n)| n).sum();
        if let Some(limit) = self.max_skipped
            && broken > limit.most(broken + documents)
        {
            return Err(BuildError::TooManySkipped { broken, records: broken + documents, limit });
        }
        if self.min_documents.is_none() && self.min_tokens.is_none() {
            return Ok(());
        }
        let before = before()?;
        let of_before = |count: fn(&Statistics) -> u64| before.as_ref().map(count);
        let numbers = [
            ("documents", Some(documents), self.min_documents, of_before(|all| all.documents)),
            ("tokens", new.tokens, self.min_tokens, of_before(|all| all.tokens)),
        ];
        for (what, found, limit, before) in numbers {
            let (Some(found), Some(limit)) = (found, limit) else { continue };
            let least = limit.least(before.unwrap_or(0));
            if found < least {
                return Err(BuildError::TooFew { what, found, least, limit, before });
            }
        }
        Ok(())
    }
}

/// Documents and tokens of the generation in a folder.
pub(super) fn statistics_of(generation: &Path) -> Result<Statistics, IndexError> {
    Summary::read(generation).map(|summary| summary.statistics)
}
