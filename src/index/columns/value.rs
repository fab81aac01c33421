//! Values of columns, from text to keys and back.

#![warn(missing_docs)]

use super::spec::ColumnKind;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::cmp::Ordering;
use std::fmt;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ColumnValue {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A point of time, in microseconds since 1970 (UTC).
    Date(i64),
    /// A string.
    Word(String),
    /// The value of a field that is kept, in JSON, as it stands in the record.
    Json(String),
}

/// The sign of numbers of 64 bits.
const SIGN: u64 = 1 << 63;

/// The key of a value that is written so; none if it is none of this kind. Words have none before
/// there is a dictionary.
pub(crate) fn key_of(kind: ColumnKind, text: &str) -> Option<u64> {
    let text = text.trim();
    match kind {
        ColumnKind::Int => {
            let whole = || text.parse::<f64>().ok().filter(|n| n.fract() == 0.0);
            // Above, not every integer has a float of its own.
            let whole = || whole().filter(|n| n.abs() < (1u64 << 53) as f64).map(|n| n as i64);
            int_key(text.parse().ok().or_else(whole)?)
        }
        ColumnKind::Float => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
            // There is one zero.
            let bits = (number + 0.0).to_bits();
            Some(if bits & SIGN == 0 { bits | SIGN } else { !bits })
        }
        ColumnKind::Date => int_key(date(text)?.as_microsecond()),
        ColumnKind::Word => None,
    }
}

/// None of the least, so that there is a code for no value.
fn int_key(number: i64) -> Option<u64> {
    (number != i64::MIN).then_some(number as u64 ^ SIGN)
}

/// Reads an ISO 8601 date, also of a year or a month alone, which is where that begins; of a time
/// without an offset in UTC.
fn date(text: &str) -> Option<Timestamp> {
    if let Ok(exactly) = text.parse::<Timestamp>() {
        return Some(exactly);
    }
    let padded = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_string(),
    };
    let of_day = |day: Date| day.at(0, 0, 0, 0);
    let is_day = padded.len() == 10 && padded.as_bytes()[4] == b'-';
    let time = match is_day {
        true => padded.parse().map(of_day).ok()?,
        false => padded.parse::<DateTime>().ok()?,
    };
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

impl ColumnValue {
    /// The value of a key that is not of a word.
    pub(crate) fn of(kind: ColumnKind, key: u64) -> Self {
        let number = (key ^ SIGN) as i64;
        match kind {
            ColumnKind::Float if key & SIGN == 0 => Self::Float(f64::from_bits(!key)),
            ColumnKind::Float => Self::Float(f64::from_bits(key ^ SIGN)),
            ColumnKind::Date => Self::Date(number),
            ColumnKind::Int | ColumnKind::Word => Self::Int(number),
        }
    }
}

impl Eq for ColumnValue {}

impl Ord for ColumnValue {
    /// Of values of one column.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) | (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Word(a), Self::Word(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

impl PartialOrd for ColumnValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ColumnValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
            Self::Json(json) => match serde_json::from_str::<String>(json) {
                Ok(text) => f.write_str(&text),
                Err(_) => f.write_str(json),
            },
            Self::Date(number) => match Timestamp::from_microsecond(*number) {
                Ok(time) if number.rem_euclid(86_400_000_000) == 0 => {
                    write!(f, "{}", time.to_zoned(TimeZone::UTC).date())
                }
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{number} us"),
            },
        }
    }
}

impl Serialize for ColumnValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => to.serialize_i64(*number),
            Self::Float(number) => to.serialize_f64(*number),
            Self::Word(word) => to.serialize_str(word),
            Self::Date(_) => to.collect_str(self),
            Self::Json(json) => {
                let raw = serde_json::from_str::<&RawValue>(json);
                raw.map_err(serde::ser::Error::custom)?.serialize(to)
            }
        }
    }
}
