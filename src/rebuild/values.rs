//! What do the values of a job file mean: sizes, spans of time, and shares?

#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

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

/// What is no [`Limit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number, or a share from 0% to 100%, found `{found}`")]
pub struct NoLimit {
    /// The text.
    pub found: String,
}

impl FromStr for Limit {
    type Err = NoLimit;

    /// Reads `250` or `90%`.
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

/// Reads a span of time: a number of seconds, or numbers with s, m, h or d, as in `90s`, `7d` or
/// `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span of time; write it as in 30s, 15m, 12h or 7d");
    let (mut seconds, mut number) = (0u64, None::<u64>);
    let digits = text.trim();
    for c in digits.chars() {
        if let Some(digit) = c.to_digit(10) {
            let more = number.unwrap_or(0).checked_mul(10);
            let more = more.and_then(|n| n.checked_add(u64::from(digit)));
            number = Some(more.ok_or_else(wrong)?);
            continue;
        }
        let unit = match c {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let part = number.take().and_then(|n| n.checked_mul(unit));
        seconds = part.and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
    }
    match number {
        // A number without a unit stands alone.
        Some(n) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Duration::from_secs(n)),
        None if !digits.is_empty() => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}

/// Reads a size: a number of bytes, or one with K, M, G or T (powers of 1024), as in `64M`.
///
/// # Errors
/// The message for the one who wrote it.
pub fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, shift) = match upper.char_indices().next_back() {
        Some((at, 'K')) => (&upper[..at], 10),
        Some((at, 'M')) => (&upper[..at], 20),
        Some((at, 'G')) => (&upper[..at], 30),
        Some((at, 'T')) => (&upper[..at], 40),
        _ => (upper, 0),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| {
        format!("`{text}` is not a size; write bytes, or a number with K, M, G or T")
    })
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

    #[test]
    fn spans_of_time() {
        for (text, seconds) in
            [("0", 0), ("45", 45), ("45s", 45), ("15m", 900), ("7d", 604_800), ("1h30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "d", "7 d", "1h30", "-1s", "1w", "99999999999999999999d", "1.5h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        for bad in ["", "M", "-1", "1.5G", "64X", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("2KiB"), Ok(2048));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "M", "-1", "1.5G", "64X", "99999999999T", "\u{e9}"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
