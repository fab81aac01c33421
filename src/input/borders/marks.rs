//! Finds borders of records that end with a mark.

use super::found::{FoundBorder, Gone};
use memchr::{memchr, memrchr};

/// What stands at the end of every record, and nowhere else. Two of them never overlap, so that
/// they are the same from wherever one looks.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(in crate::input) bytes: usize,
    /// Those of it that do not count for the record's length.
    pub(in crate::input) end_bytes: usize,
    /// The end of the first mark that begins at or after a place.
    pub(in crate::input) first: fn(&[u8], usize) -> Option<usize>,
    pub(in crate::input) last: fn(&[u8]) -> Option<usize>,
}

pub(in crate::input) const LINE_END: Mark = Mark {
    bytes: 1,
    end_bytes: 1,
    first: |bytes, from| Some(from + memchr(b'\n', &bytes[from..])? + 1),
    last: |bytes| Some(memrchr(b'\n', bytes)? + 1),
};

pub(in crate::input) struct BorderMarks {
    mark: Mark,
    max_document: u64,
    /// No mark that may end the piece begins before this place.
    searched: usize,
    /// Where the last record of the piece begins.
    last_record: Option<usize>,
}

impl BorderMarks {
    pub(super) fn new(mark: Mark, max_document: u64) -> Self {
        Self { mark, max_document, searched: 0, last_record: None }
    }

    pub(super) fn forget(&mut self) {
        self.searched = 0;
        self.last_record = None;
    }

    pub(super) fn find(&mut self, bytes: &[u8], least: usize) -> FoundBorder {
        let Mark { bytes: mark_bytes, end_bytes, first, last } = self.mark;
        if bytes.len() < least {
            return FoundBorder::Nothing;
        }
        let end = first(bytes, self.searched.max(least.saturating_sub(mark_bytes)));
        let before = &bytes[..least - 1];
        let record = *self.last_record.get_or_insert_with(|| last(before).unwrap_or(0));
        let length = end.map_or(bytes.len(), |end| end - end_bytes) - record;
        match end {
            _ if length as u64 > self.max_document => FoundBorder::Long(record),
            Some(end) => FoundBorder::End(end),
            None => {
                self.searched = bytes.len().saturating_sub(mark_bytes - 1);
                FoundBorder::Nothing
            }
        }
    }

    pub(super) fn drop_record(&self, bytes: &[u8]) -> Gone {
        match (self.mark.first)(bytes, 0) {
            Some(end) => Gone { bytes: end, end_bytes: self.mark.end_bytes, whole: true },
            None => {
                let bytes = bytes.len().saturating_sub(self.mark.bytes - 1);
                Gone { bytes, end_bytes: 0, whole: false }
            }
        }
    }
}
