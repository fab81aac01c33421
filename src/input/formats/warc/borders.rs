//! Finds where WARC records begin and end.
//!
//! A record ends where its length says, if line ends and then the next record follow there. If not,
//! its length is wrong or missing, and it ends where the next line is a version line (`WARC/1.0`):
//! this finds the next record wherever one goes wrong. So does the search for the end of a record
//! that is too long to be kept.
//!
//! The search goes over no byte twice: it begins behind the head of the record that is wrong, and
//! the next begins where it ended.

use super::head::{Seen, VERSION_LINE_BYTES, WarcHead, version_line};
use crate::input::borders::found::{FoundBorder, Gone};
use crate::input::document::BYTE_ORDER_MARK;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Line ends that may stand between two records; two CRLF should.
const MOST_LINE_ENDS_BYTES: usize = 64;

/// What stands where a record should end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    Record(usize),
    End,
    /// Something else, or the bytes end before.
    Other,
    /// More bytes have to come.
    More,
}

pub(crate) fn after(bytes: &[u8], end: u64, ended: bool) -> After {
    let Some(rest) = usize::try_from(end).ok().and_then(|end| bytes.get(end..)) else {
        return if ended { After::Other } else { After::More };
    };
    let line_ends =
        rest.iter().take(MOST_LINE_ENDS_BYTES).take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let rest = &rest[line_ends..];
    if rest.is_empty() {
        return if ended { After::End } else { After::More };
    }
    match version_line(rest, false) {
        Seen::No => After::Other,
        Seen::More if !ended => After::More,
        // A version line that the end cuts short ends the record all the same.
        _ => After::Record(bytes.len() - rest.len()),
    }
}

/// Finds the first version line that begins at or after `from`, the begin of a line or of the file;
/// else the place from which on to search when more bytes have come.
pub(crate) fn search(bytes: &[u8], mut from: usize, ended: bool) -> Result<usize, usize> {
    static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"WARC/"));
    while let Some(n) = NAME.find(&bytes[from..]) {
        let place = from + n;
        if begins_line(&bytes[..place]) {
            match version_line(&bytes[place..], ended) {
                Seen::Yes => return Ok(place),
                Seen::More => return Err(place),
                Seen::No => {}
            }
        }
        from = place + 1;
    }
    let kept = b"WARC".len();
    Err(from.max(bytes.len().saturating_sub(kept)))
}

fn begins_line(before: &[u8]) -> bool {
    before.last().is_none_or(|byte| *byte == b'\n') || before == BYTE_ORDER_MARK
}

pub(crate) struct WarcBorders {
    max_document: u64,
    /// Where the record under way begins in the piece.
    record: usize,
    state: WarcState,
}

#[derive(Clone, Copy)]
enum WarcState {
    Head,
    /// Its content begins and should end here.
    Content {
        start: usize,
        end: u64,
    },
    /// The next record begins here or later.
    Search {
        from: usize,
    },
}

impl WarcBorders {
    pub(crate) fn new(max_document: u64) -> Self {
        Self { max_document, record: 0, state: WarcState::Head }
    }

    pub(crate) fn find(&mut self, bytes: &[u8], least: usize, ended: bool) -> FoundBorder {
        loop {
            let border = match self.state {
                WarcState::Head => {
                    match version_line(&bytes[self.record..], ended) {
                        Seen::Yes => match WarcHead::read(&bytes[self.record..], ended) {
                            None => return FoundBorder::Nothing,
                            Some(head) => self.state = self.behind(&head),
                        },
                        Seen::No => self.state = WarcState::Search { from: self.record },
                        Seen::More => return FoundBorder::Nothing,
                    }
                    continue;
                }
                // Its length may be too long just because it is wrong; the search will tell.
                WarcState::Content { start, end }
                    if end - self.record as u64 > self.max_document =>
                {
                    self.state = WarcState::Search { from: start };
                    continue;
                }
                WarcState::Content { start, end } => match after(bytes, end, ended) {
                    After::Record(next) => next,
                    After::Other => {
                        self.state = WarcState::Search { from: start };
                        continue;
                    }
                    After::End | After::More => return FoundBorder::Nothing,
                },
                WarcState::Search { from } => {
                    let found = search(bytes, from, ended);
                    let (Ok(end) | Err(end)) = found;
                    if (end - self.record) as u64 > self.max_document {
                        return FoundBorder::Long(self.record);
                    }
                    match found {
                        Ok(next) => next,
                        Err(from) => {
                            self.state = WarcState::Search { from };
                            return FoundBorder::Nothing;
                        }
                    }
                }
            };
            self.record = border;
            self.state = WarcState::Head;
            if border >= least {
                return FoundBorder::End(border);
            }
        }
    }

    fn behind(&self, head: &WarcHead<'_>) -> WarcState {
        let start = self.record + head.bytes;
        match head.content_length {
            Some(length) => WarcState::Content { start, end: start as u64 + length },
            None => WarcState::Search { from: start },
        }
    }

    pub(crate) fn forget(&mut self, gone: usize) {
        // What goes ends at a border, or with the record under way.
        self.record = self.record.saturating_sub(gone);
        self.state = WarcState::Head;
    }

    /// The record's length is not believed here either.
    pub(crate) fn drop_record(bytes: &[u8]) -> Gone {
        // Its own version line may be the first.
        match search(bytes, 1.min(bytes.len()), false) {
            Ok(next) => Gone { bytes: next, end_bytes: 0, whole: true },
            Err(_) => {
                // What is kept holds a version line that is not whole, and the line end before it.
                let bytes = bytes.len().saturating_sub(VERSION_LINE_BYTES);
                Gone { bytes, end_bytes: 0, whole: false }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_record() {
        for (bytes, end, expected) in [
            ("abc\r\n\r\nWARC/1.0\r\n", 3, After::Record(7)),
            ("abcWARC/1.0\n", 3, After::Record(3)),
            ("abc\nWARC/1.x\n", 3, After::Other),
            ("abc\r\n\r\n", 3, After::More),
            ("abc", 3, After::More),
            ("abc", 4, After::More),
            ("abc", u64::MAX, After::More),
            ("abcd", 3, After::Other),
        ] {
            assert_eq!(after(bytes.as_bytes(), end, false), expected, "{bytes:?}");
        }
        assert_eq!(after(b"abc\r\n\r\n", 3, true), After::End);
        assert_eq!(after(b"abc", 4, true), After::Other);
        assert_eq!(after(b"abc\nWARC/1", 3, true), After::Record(4));
        let many = ["\n".repeat(MOST_LINE_ENDS_BYTES + 1).as_str(), "WARC/1.0\n"].concat();
        assert_eq!(after(many.as_bytes(), 0, false), After::Other);
        assert_eq!(after(many.as_bytes(), 1, false), After::Record(MOST_LINE_ENDS_BYTES + 1));
    }

    #[test]
    fn version_lines_are_searched_at_line_begins() {
        let bytes = b"xWARC/1.0\nWARC/x\nWARC/1.0\r\nx";
        assert_eq!(search(bytes, 0, false), Ok(17));
        assert_eq!(search(bytes, 18, false), Err(bytes.len() - 4));
        assert_eq!(search(b"x\nWARC/1", 0, false), Err(2));
        assert_eq!(search(b"x\nWARC/1", 0, true), Err(4));
        assert_eq!(search(b"WARC/1.1\n", 0, false), Ok(0));
        assert_eq!(search(b"\xef\xbb\xbfWARC/1.1\n", 0, false), Ok(3));
        assert_eq!(search(b"", 0, false), Err(0));
    }
}
