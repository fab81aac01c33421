//! Reads messages of a CIFF file, which may be damaged: field by field, with the place of every
//! byte, and never more of it in memory than a term or a name.

use crate::index::error::IndexError;
use std::fmt::Display;
use std::io::{BufRead, Seek};
use std::path::Path;

/// The longest term or name that is read, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CiffValue {
    Number(u64),
    /// This many bytes, which come next.
    Bytes(u64),
    /// A number of 32 or 64 bits.
    Fixed,
}

pub(super) struct CiffReader<'a, R> {
    path: &'a Path,
    input: R,
    at: u64,
    end: u64,
}

impl<'a, R: BufRead + Seek> CiffReader<'a, R> {
    pub(super) fn new(path: &'a Path, input: R, bytes: u64) -> Self {
        Self { path, input, at: 0, end: bytes }
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// The error that something else stands at a place.
    pub(super) fn wrong(&self, at: u64, expected: impl Display, found: impl Display) -> IndexError {
        IndexError::damaged(self.path, at, expected, found)
    }

    pub(super) fn go_to(&mut self, at: u64) -> Result<(), IndexError> {
        let by = at.wrapping_sub(self.at) as i64;
        self.input.seek_relative(by).map_err(IndexError::storage("read", self.path))?;
        self.at = at;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, IndexError> {
        let byte =
            self.input.fill_buf().map_err(IndexError::storage("read", self.path))?.first().copied();
        let Some(byte) = byte.filter(|_| self.at < self.end) else {
            return Err(self.wrong(self.at, "a byte", "the end of the file"));
        };
        self.input.consume(1);
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, IndexError> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.wrong(start, "a number of 64 bits", "a longer one"))
    }

    /// A length, and where this many bytes end, which is not behind `end`.
    fn length(&mut self, end: u64) -> Result<(u64, u64), IndexError> {
        let start = self.at;
        let length = self.varint()?;
        let until = self.at.checked_add(length).filter(|&until| until <= end);
        let until = until.ok_or_else(|| {
            let left = end.saturating_sub(self.at);
            self.wrong(start, format!("a length of at most {left} bytes"), length)
        })?;
        Ok((length, until))
    }

    /// Begins the next message of the file; returns where it ends.
    pub(super) fn message(&mut self, what: &str) -> Result<u64, IndexError> {
        if self.is_at_end() {
            return Err(self.wrong(self.at, what, "the end of the file"));
        }
        Ok(self.length(self.end)?.1)
    }

    /// The number and value of the next field of a message that ends at `end`; none at the end.
    pub(super) fn field(&mut self, end: u64) -> Result<Option<(u64, CiffValue)>, IndexError> {
        let start = self.at;
        if start == end {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => CiffValue::Number(self.varint()?),
            2 => CiffValue::Bytes(self.length(end)?.0),
            kind @ (1 | 5) => {
                self.skip(if kind == 1 { 8 } else { 4 }, end)?;
                CiffValue::Fixed
            }
            kind => {
                return Err(self.wrong(
                    start,
                    "a field of protobuf",
                    format!("one of type {kind}"),
                ));
            }
        };
        if self.at > end {
            return Err(self.wrong(
                start,
                format!("a field that ends before byte {end}"),
                "a longer one",
            ));
        }
        Ok(Some((tag >> 3, value)))
    }

    pub(super) fn skip(&mut self, bytes: u64, end: u64) -> Result<(), IndexError> {
        let until = self.at.saturating_add(bytes);
        if until > end.min(self.end) {
            return Err(self.wrong(self.at, format!("{bytes} bytes"), end.saturating_sub(self.at)));
        }
        self.go_to(until)
    }

    /// Reads a text of this many bytes, as [`field`](Self::field) said.
    pub(super) fn text(&mut self, bytes: u64) -> Result<String, IndexError> {
        let start = self.at;
        if bytes > LONGEST_TEXT {
            return Err(self.wrong(
                start,
                format!("a text of at most {LONGEST_TEXT} bytes"),
                bytes,
            ));
        }
        let mut text = vec![0; bytes as usize];
        self.input.read_exact(&mut text).map_err(IndexError::storage("read", self.path))?;
        self.at += bytes;
        String::from_utf8(text).map_err(|error| {
            let valid = error.utf8_error().valid_up_to() as u64;
            self.wrong(start + valid, "UTF-8", "other bytes")
        })
    }

    /// Checks a number against the 31 bits of all counts of CIFF.
    pub(super) fn count(&self, at: u64, what: &str, number: u64) -> Result<u32, IndexError> {
        let fits = i32::try_from(number).ok();
        fits.map(i32::unsigned_abs)
            .ok_or_else(|| self.wrong(at, format!("{what}, at most {}", i32::MAX), number as i64))
    }
}
