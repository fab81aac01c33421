//! Finds where a piece may end, and which record is too long to be kept: a finder for each way in
//! which records end.
//!
//! Where each record ends with a [mark](Mark) that nothing else has, anybody finds the borders from
//! anywhere. In the other formats a border depends on all that comes before: whether a quote or a
//! bracket is open, or where the lengths in the heads of records lead.
//!
//! A finder looks at the bytes of the piece that grows. What it says of them may not depend on how
//! many came at a time: it speaks when no further byte could change its answer.

pub(super) mod found;
pub(super) mod marks;
pub(crate) mod over_lines;

use crate::input::Format;
use crate::input::formats::warc::borders::WarcBorders;
use crate::input::formats::{mediawiki, trec};
use found::{FoundBorder, Gone};
use marks::{BorderMarks, LINE_END, Mark};
use over_lines::{Csv, Json, MachineBorders};

pub(super) enum Borders {
    Marks(BorderMarks),
    Warc(WarcBorders),
    Json(MachineBorders<Json>),
    Csv(MachineBorders<Csv>),
    /// Files are records: borders are no matter of bytes.
    Files,
}

impl Borders {
    /// Records over `max_document` bytes are too long.
    pub(super) fn new(format: Format, max_document: u64) -> Self {
        match format {
            Format::Json => Self::Json(MachineBorders::new(max_document)),
            Format::Csv => Self::Csv(MachineBorders::new(max_document)),
            Format::Warc => Self::Warc(WarcBorders::new(max_document)),
            _ => match Mark::of(format) {
                Some(mark) => Self::Marks(BorderMarks::new(mark, max_document)),
                None => Self::Files,
            },
        }
    }

    /// Looks at `bytes`, the piece so far, which may end at or behind `least` of them; `ended`:
    /// nothing follows them.
    pub(super) fn find(&mut self, bytes: &[u8], least: usize, ended: bool) -> FoundBorder {
        match self {
            Self::Marks(marks) => marks.find(bytes, least),
            Self::Warc(warc) => warc.find(bytes, least, ended),
            Self::Json(json) => json.find(bytes, least),
            Self::Csv(csv) => csv.find(bytes, least),
            Self::Files => FoundBorder::Nothing,
        }
    }

    /// The first `gone` bytes of the piece went, up to a border.
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

impl Mark {
    pub(super) fn of(format: Format) -> Option<Self> {
        match format {
            Format::Jsonl | Format::Tsv | Format::Plaintext | Format::Vectors => Some(LINE_END),
            Format::Trec => Some(trec::DOCUMENT_END),
            Format::Mediawiki => Some(mediawiki::PAGE_END),
            Format::Json | Format::Csv | Format::Warc | Format::Text | Format::Html => None,
        }
    }
}
