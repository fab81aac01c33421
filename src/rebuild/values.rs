//! Reads the values of a job file that are written as text, such as sizes and spans of time.

use jiff::civil::Date;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(super) fn text<'de, D: Deserializer<'de>, T, E: Display>(
    from: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    read(&Cow::<str>::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads a name, or a list of some.
pub(super) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Some(Vec<String>),
    }
    Ok(match Names::deserialize(from)? {
        Names::One(name) => vec![name],
        Names::Some(names) => names,
    })
}

pub(super) fn named<'de, D: Deserializer<'de>, N: FromStr<Err: Display>, T: From<N>>(
    from: D,
) -> Result<T, D::Error> {
    text(from, N::from_str).map(T::from)
}

/// Reads a path; no file is meant by one that a template has left empty.
pub(super) fn path<'de, D: Deserializer<'de>, T: From<PathBuf>>(from: D) -> Result<T, D::Error> {
    let named = |path: &str| (!path.trim().is_empty()).then(|| PathBuf::from(path).into());
    text(from, |path| named(path).ok_or("this path is empty"))
}

pub(super) fn count<'de, D: Deserializer<'de>, T: From<u32>, const LEAST: u32, const MOST: u32>(
    from: D,
) -> Result<T, D::Error> {
    within(from, LEAST..=MOST).map(T::from)
}

pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    within(from, 0.0..=1.0)
}

/// Reads a share of one, without 0 and 1.
pub(super) fn part<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    match f64::deserialize(from)? {
        part if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err(D::Error::custom("this must be above 0 and below 1")),
    }
}

fn within<'de, D: Deserializer<'de>, T: Deserialize<'de> + PartialOrd + Display>(
    from: D,
    range: RangeInclusive<T>,
) -> Result<T, D::Error> {
    let value = T::deserialize(from)?;
    let wrong = || format!("this must be from {} to {}", range.start(), range.end());
    range.contains(&value).then_some(value).ok_or_else(|| D::Error::custom(wrong()))
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    text(from, size)
}

pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    text(from, duration)
}

pub(super) fn days<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    text(from, |text| {
        let seconds = duration(text)?.as_secs();
        let days = u32::try_from(seconds / 86_400).ok().filter(|days| *days > 0);
        let whole = days.filter(|_| seconds.is_multiple_of(86_400));
        whole.ok_or_else(|| format!("`{text}` is not a number of whole days"))
    })
}

/// Reads a span of time: seconds, or numbers with s, m, h or d, as in `90s`, `7d` or `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span of time; write it as in 30s, 15m, 12h or 7d");
    let mut seconds = 0u64;
    let mut number = None::<u64>;
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
/// The message for the user.
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

/// The first date in the name of a log: four, two and two digits, with hyphens between or nothing,
/// no other digit before or behind.
pub(crate) fn day_of(name: &str) -> Option<Date> {
    let bytes = name.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1)));
    let ways = starts.flat_map(|at| [(at, at + 10, "%Y-%m-%d"), (at, at + 8, "%Y%m%d")]);
    let mut dates = ways.filter_map(|(at, end, format)| {
        let date = Date::strptime(format, name.get(at..end)?).ok()?;
        (!is_digit(end)).then_some(date)
    });
    dates.next()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn sizes_have_binary_units() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("2KiB"), Ok(2048));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "M", "-1", "1.5G", "64X", "99999999999T", "\u{e9}"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_tell_days() {
        let day = |name| day_of(name).map(|day| day.to_string());
        for name in ["queries-2026-11-02.tsv", "20261102", "a7-20261102.log.gz", "x2026-11-02"] {
            assert_eq!(day(name).as_deref(), Some("2026-11-02"), "{name}");
        }
        for name in [
            "queries.tsv",
            "2026-13-02",
            "2026-11-31",
            "120261102",
            "202611021",
            "2026-1102",
            "2026-11-022",
            "",
        ] {
            assert_eq!(day(name), None, "{name}");
        }
        assert_eq!(day("2026-99-99-2026-01-31").as_deref(), Some("2026-01-31"));
    }
}
