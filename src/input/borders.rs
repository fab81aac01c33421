//! Where may a piece end, and which record is too long to be kept? One finder for each way in which
//! records end.
//!
//! Where each record ends with a [mark](Mark) that nothing else has, anybody finds the borders from anywhere. In the other formats a border
//! depends on all that comes before: whether a quote or a bracket is open, or where the lengths in the heads of records lead.
//!
//! A finder looks at the bytes of the piece that grows. What it says of them may not depend on how
//! many came at a time: it speaks when no further byte could change its answer.

use super::Format;
use super::machine::{Csv, Json, MachineBorders};
use super::mediawiki;
use super::trec;
use super::warc::borders::WarcBorders;
use memchr::{memchr, memrchr};

/// What is known of the bytes that are there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No piece ends in them, as far as one can tell.
    Nothing,
    /// The first border where the piece may end.
    End(usize),
    /// The record that begins here is longer than the longest document, and no piece ends before it.
    Long(usize),
}

/// The part of a record to be dropped that is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// Its bytes. A few of the last may stay until it is known that they hold no border.
    pub(super) bytes: usize,
    /// Those of them that end the record and do not count.
    pub(super) end_bytes: usize,
    /// The record ends with them.
    pub(super) whole: bool,
}

/// Finds borders of records.
pub(super) enum Borders {
    /// Records end with a mark.
    Marks(Marks),
    Warc(WarcBorders),
    Json(MachineBorders<Json>),
    Csv(MachineBorders<Csv>),
    /// Files are records: borders are no matter of bytes.
    Files,
}

impl Borders {
    /// Makes the finder of a format: records over `max_document` bytes are too long.
    pub(super) fn new(format: Format, max_document: u64) -> Self {
        match format {
            Format::Json => Self::Json(MachineBorders::new(max_document)),
            Format::Csv => Self::Csv(MachineBorders::new(max_document)),
            Format::Warc => Self::Warc(WarcBorders::new(max_document)),
            _ => match Mark::of(format) {
                Some(mark) => Self::Marks(Marks::new(mark, max_document)),
                None => Self::Files,
            },
        }
    }

    /// Looks at `bytes`, the piece so far, which may end at or behind `least` of them; `ended`: nothing follows them.
    pub(super) fn find(&mut self, bytes: &[u8], least: usize, ended: bool) -> Found {
        match self {
            Self::Marks(marks) => marks.find(bytes, least),
            Self::Warc(warc) => warc.find(bytes, least, ended),
            Self::Json(json) => json.find(bytes, least),
            Self::Csv(csv) => csv.find(bytes, least),
            Self::Files => Found::Nothing,
        }
    }

    /// Is told that the first `gone` bytes of the piece went, up to a border.
    pub(super) fn forget(&mut self, gone: usize) {
        match self {
            Self::Marks(marks) => marks.forget(),
            Self::Warc(warc) => warc.forget(gone),
            Self::Json(json) => json.forget(),
            Self::Csv(csv) => csv.forget(),
            Self::Files => {}
        }
    }

    /// Looks for the end of a record that is dropped, of which `bytes` are what is there.
    pub(super) fn drop_record(&mut self, bytes: &[u8]) -> Gone {
        match self {
            Self::Marks(marks) => marks.drop_record(bytes),
            Self::Warc(_) => WarcBorders::drop_record(bytes),
            Self::Json(json) => json.drop_record(bytes),
            Self::Csv(csv) => csv.drop_record(bytes),
            Self::Files => Gone { bytes: bytes.len(), end_bytes: 0, whole: false },
        }
    }
}

/// What stands at the end of every record, and nowhere else. Two of them never overlap, so that they are the same from
/// wherever one looks.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Its length.
    pub(super) bytes: usize,
    /// Those of it that do not count for the record's length.
    pub(super) end_bytes: usize,
    /// The end of the first mark that begins at or after a place.
    pub(super) first: fn(&[u8], usize) -> Option<usize>,
    /// The end of the last mark.
    pub(super) last: fn(&[u8]) -> Option<usize>,
}

impl Mark {
    /// That of a format, if records end with one.
    pub(super) fn of(format: Format) -> Option<Self> {
        match format {
            Format::Jsonl | Format::Tsv | Format::Plaintext => Some(LINE_END),
            Format::Trec => Some(trec::DOCUMENT_END),
            Format::Mediawiki => Some(mediawiki::PAGE_END),
            Format::Json | Format::Csv | Format::Warc | Format::Text | Format::Html => None,
        }
    }
}

/// The end of a line.
const LINE_END: Mark = Mark {
    bytes: 1,
    end_bytes: 1,
    first: |bytes, from| Some(from + memchr(b'\n', &bytes[from..])? + 1),
    last: |bytes| Some(memrchr(b'\n', bytes)? + 1),
};

/// Finds records that end with a mark.
pub(super) struct Marks {
    mark: Mark,
    max_document: u64,
    /// No mark that may end the piece begins before this place.
    searched: usize,
    /// Where the last record of the piece begins.
    last_record: Option<usize>,
}

impl Marks {
    fn new(mark: Mark, max_document: u64) -> Self {
        Self { mark, max_document, searched: 0, last_record: None }
    }

    fn forget(&mut self) {
        self.searched = 0;
        self.last_record = None;
    }

    fn find(&mut self, bytes: &[u8], least: usize) -> Found {
        let Mark { bytes: mark_bytes, end_bytes, first, last } = self.mark;
        if bytes.len() < least {
            return Found::Nothing;
        }
        let end = first(bytes, self.searched.max(least.saturating_sub(mark_bytes)));
        let before = &bytes[..least - 1];
        let record = *self.last_record.get_or_insert_with(|| last(before).unwrap_or(0));
        let length = end.map_or(bytes.len(), |end| end - end_bytes) - record;
        match end {
            _ if length as u64 > self.max_document => Found::Long(record),
            Some(end) => Found::End(end),
            None => {
                self.searched = bytes.len().saturating_sub(mark_bytes - 1);
                Found::Nothing
            }
        }
    }

    fn drop_record(&self, bytes: &[u8]) -> Gone {
        match (self.mark.first)(bytes, 0) {
            Some(end) => Gone { bytes: end, end_bytes: self.mark.end_bytes, whole: true },
            None => {
                let bytes = bytes.len().saturating_sub(self.mark.bytes - 1);
                Gone { bytes, end_bytes: 0, whole: false }
            }
        }
    }
}
