//! Ranges of docids, as users write them.

use crate::query::engines::share::ALL;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A range of docids of the whole index, written `A..B`; either end may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docids(pub Range<u32>);

impl FromStr for Docids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "give A..B, A.. or ..B with docids from 0".to_string();
        let number = |text: &str, open: u32| match text {
            "" => Ok(open),
            text => text.parse().map_err(|_| form()),
        };
        let (start, end) = text.split_once("..").ok_or_else(form)?;
        let start = number(start, ALL.start)?;
        let end = number(end, ALL.end)?;
        if start > end {
            Err(format!("{start} is greater than {end}"))
        } else {
            Ok(Self(start..end))
        }
    }
}

impl fmt::Display for Docids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.0.start, self.0.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let read = |text: &str| text.parse::<Docids>().map(|docids| docids.0);
        assert_eq!(read("3..7"), Ok(3..7));
        assert_eq!((read(".."), read("5.."), read("..5")), (Ok(ALL), Ok(5..ALL.end), Ok(0..5)));
        assert_eq!(read("7..3"), Err("7 is greater than 3".to_string()));
        for wrong in ["", "3", "a..b", "3..-1", "1..2..3"] {
            assert!(read(wrong).unwrap_err().contains("give A..B"), "{wrong}");
        }
    }
}
