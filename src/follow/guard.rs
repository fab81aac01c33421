//! May a generation replace the live one?

use crate::index::manifest::Statistics;
use crate::rebuild::job_file::GuardKeys;
use crate::rebuild::values::Share;
use std::collections::BTreeMap;
use thiserror::Error;

/// What a guard of the job file found.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum GuardError {
    /// There would be fewer documents than the guard allows.
    #[error(
        "the sources have {found} documents, fewer than min_documents = {asked} of the {live} live ones ({least})"
    )]
    TooFew {
        /// Documents.
        found: u64,
        /// The least.
        least: u64,
        /// Documents of the live generation.
        live: u64,
        /// As the job file says it.
        asked: Share,
    },
    /// More records cannot be read than the guard allows.
    #[error(
        "{skipped} of {records} records cannot be read, more than max_skipped = {asked} ({reasons})"
    )]
    TooManySkipped {
        /// Records that are no documents.
        skipped: u64,
        /// All records.
        records: u64,
        /// As the job file says it.
        asked: Share,
        /// Why, and how many.
        reasons: String,
    },
    /// A compressed file ends early or is damaged.
    #[error(
        "{count} compressed files are cut short or damaged; with allow_cut in [guard] the rest of each is left out"
    )]
    Cut {
        /// How many.
        count: u64,
    },
    /// A file is empty that was not, or is new.
    #[error("{path} is empty; with allow_empty in [guard] that is as it should be")]
    Empty {
        /// The file.
        path: String,
    },
}

/// The reasons for which a build leaves out the rest of a compressed file.
const CUT: [&str; 2] = ["compressed stream cut short", "damaged compressed stream"];

/// Compares a generation that is written with what the job wants. `live` are the documents of the live
/// generation, if there is one.
///
/// # Errors
/// The first guard that does not let it pass.
pub(super) fn check(
    guard: &GuardKeys,
    live: Option<u64>,
    statistics: &Statistics,
) -> Result<(), GuardError> {
    check_skipped(guard, statistics.documents, &statistics.skipped)?;
    check_documents(guard, live.unwrap_or(0), statistics.documents)
}

/// Looks at what could not be read beside so many documents.
pub(super) fn check_skipped(
    guard: &GuardKeys,
    documents: u64,
    skipped: &BTreeMap<String, u64>,
) -> Result<(), GuardError> {
    let cut: u64 = CUT.iter().filter_map(|reason| skipped.get(*reason)).sum();
    if cut > 0 && !guard.allow_cut {
        return Err(GuardError::Cut { count: cut });
    }
    let (asked, count) = (guard.max_skipped, skipped.values().sum::<u64>());
    let records = documents + count;
    if count > asked.most_of(records) {
        let reasons = skipped.iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        return Err(GuardError::TooManySkipped { skipped: count, records, asked, reasons });
    }
    Ok(())
}

/// Compares the documents that there would be with the `live` ones.
pub(super) fn check_documents(guard: &GuardKeys, live: u64, found: u64) -> Result<(), GuardError> {
    let asked = guard.min_documents;
    let least = asked.least_of(live);
    if found < least {
        return Err(GuardError::TooFew { found, least, live, asked });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: GuardKeys = GuardKeys {
        min_documents: Share::Percent(90.0),
        max_skipped: Share::Percent(1.0),
        allow_cut: false,
        allow_empty: false,
    };

    fn statistics(documents: u64, skipped: &[(&str, u64)]) -> Statistics {
        let skipped = skipped.iter().map(|&(reason, count)| (reason.to_string(), count)).collect();
        Statistics { documents, skipped, ..Statistics::default() }
    }

    #[test]
    fn what_is_just_enough_passes() {
        assert_eq!(check(&GUARD, Some(100), &statistics(90, &[])), Ok(()));
        assert_eq!(check(&GUARD, None, &statistics(0, &[])), Ok(()));
        assert_eq!(check(&GUARD, Some(100), &statistics(99, &[("bad JSON", 1)])), Ok(()));
        let count = GuardKeys { min_documents: Share::Count(5), ..GUARD };
        assert_eq!(check(&count, None, &statistics(5, &[])), Ok(()));
    }

    #[test]
    fn what_is_less_does_not() {
        let fewer = check(&GUARD, Some(100), &statistics(89, &[])).unwrap_err();
        assert!(matches!(fewer, GuardError::TooFew { found: 89, least: 90, live: 100, .. }));
        let count = GuardKeys { min_documents: Share::Count(5), ..GUARD };
        assert!(check(&count, None, &statistics(4, &[])).is_err());
        let skipped = check(&GUARD, None, &statistics(98, &[("bad JSON", 1), ("no tab", 1)]));
        let message = skipped.unwrap_err().to_string();
        assert_eq!(
            message,
            "2 of 100 records cannot be read, more than max_skipped = 1% (1 bad JSON, 1 no tab)"
        );
        let cut = statistics(1000, &[(CUT[0], 1)]);
        assert_eq!(check(&GUARD, None, &cut), Err(GuardError::Cut { count: 1 }));
        assert_eq!(check(&GuardKeys { allow_cut: true, ..GUARD }, None, &cut), Ok(()));
    }
}
