//! What keeps a build from putting less in the place of more? Empty input, a stream that breaks off,
//! many broken records or few documents make it fail before it publishes, and the live generation
//! stays.

use super::error::BuildError;
use super::options::BuildOptions;
use crate::index::error::IndexError;
use crate::index::manifest::Manifest;
use crate::index::shards::ShardedManifest;
use crate::input::document::is_broken_record;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// What a build refuses to publish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guards {
    /// Takes input without any content, and publishes an index without any document.
    pub allow_empty: bool,
    /// Takes what comes before the damage of a compressed stream, or before its end comes too early.
    pub allow_cut: bool,
    /// The most records that may be broken, of themselves and the documents. What a format leaves out
    /// on purpose, such as the statuses and content types of web pages, does not count.
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
        let (allow_empty, allow_cut) = (false, false);
        Self { allow_empty, allow_cut, max_skipped: None, min_documents: None, keep: 1 }
    }
}

/// A number, or a share of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many.
    Count(u64),
    /// So many of a hundred.
    Percent(f64),
}

impl Limit {
    /// The least whole number that is not below the limit, of `all`.
    fn least(self, all: u64) -> u64 {
        match self {
            Self::Count(n) => n,
            Self::Percent(share) => (all as f64 * share / 100.0).ceil() as u64,
        }
    }

    /// The greatest whole number that is not above the limit, of `all`.
    fn most(self, all: u64) -> u64 {
        match self {
            Self::Count(n) => n,
            Self::Percent(share) => (all as f64 * share / 100.0).floor() as u64,
        }
    }
}

/// What is no [`Limit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number, or a share from 0% to 100%, found `{found}`")]
pub struct NoLimit {
    /// The text.
    pub found: String,
}

impl FromStr for Limit {
    type Err = NoLimit;

    fn from_str(text: &str) -> Result<Self, NoLimit> {
        let limit = match text.strip_suffix('%') {
            None => text.parse().ok().map(Self::Count),
            Some(share) => {
                let share: Option<f64> = share.parse().ok();
                share.filter(|share| (0.0..=100.0).contains(share)).map(Self::Percent)
            }
        };
        limit.ok_or_else(|| NoLimit { found: text.to_string() })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

/// Documents of the generation in a folder, whole or in shards.
fn documents_of(generation: &Path) -> Result<u64, IndexError> {
    Ok(match ShardedManifest::read(generation)? {
        Some(manifest) => manifest.documents(),
        None => Manifest::read(generation)?.statistics.documents,
    })
}

/// Checks a generation that is whole, of so many `documents`, before it replaces the one in the
/// folder `before`.
pub(super) fn check(
    options: &BuildOptions,
    documents: u64,
    skipped: &BTreeMap<String, u64>,
    before: Option<&Path>,
) -> Result<(), BuildError> {
    let guards = &options.guards;
    let broken = skipped.iter().filter(|(reason, _)| is_broken_record(reason));
    let broken: u64 = broken.map(|(_, n)| n).sum();
    if let Some(limit) = guards.max_skipped
        && broken > limit.most(broken + documents)
    {
        return Err(BuildError::TooManySkipped { broken, records: broken + documents, limit });
    }
    let Some(limit) = guards.min_documents else { return Ok(()) };
    let before = before.map(documents_of).transpose()?;
    let least = limit.least(before.unwrap_or(0));
    if documents < least {
        return Err(BuildError::TooFewDocuments { documents, least, limit, before });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_shares() {
        for (text, least, most) in [
            ("0", 0, 0),
            ("7", 7, 7),
            ("0%", 0, 0),
            ("90%", 10, 9),
            ("0.5%", 1, 0),
            ("100%", 11, 11),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!((limit.least(11), limit.most(11)), (least, most), "{text}");
            assert_eq!(limit.to_string(), text);
        }
        for text in ["", "%", "-1", "101%", "1.5", "NaN%", "x"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
