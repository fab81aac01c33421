//! A limit of documents or records: a number, or a share of all.

#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;

/// A number, or a share of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This many.
    Count(u64),
    /// This many of a hundred.
    Percent(f64),
}

impl Limit {
    /// The least whole number that is not below the limit, of `all`.
    pub(crate) fn least(self, all: u64) -> u64 {
        match self {
            Self::Count(n) => n,
            // Exact up to 2^53, and no index has more than 2^32 documents.
            Self::Percent(share) => (all as f64 * share / 100.0).ceil() as u64,
        }
    }

    /// The greatest whole number that is not above the limit, of `all`.
    pub(crate) fn most(self, all: u64) -> u64 {
        match self {
            Self::Count(n) => n,
            Self::Percent(share) => (all as f64 * share / 100.0).floor() as u64,
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    /// Reads `250` or `90%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let limit = match text.strip_suffix('%') {
            None => text.parse().ok().map(Self::Count),
            Some(share) => {
                let share: Option<f64> = share.parse().ok();
                share.filter(|share| (0.0..=100.0).contains(share)).map(Self::Percent)
            }
        };
        limit
            .ok_or_else(|| format!("expected a number, or a share from 0% to 100%, found `{text}`"))
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
        for text in ["", "%", "-1", "-1%", "101%", "1.5", "NaN%", "ninety"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
        assert_eq!(Limit::Percent(100.0).most(u64::from(u32::MAX)), u64::from(u32::MAX));
    }
}
