//! Cuts streams into pieces. A piece ends at the first border of records at or behind the next
//! multiple of a size in the stream. So pieces depend on the bytes alone, not on the blocks in
//! which they came. Where records end with a mark, a reader that begins in the middle of a file
//! finds the same ones ([`shared_file`](crate::input::streams::shared_file)).
//!
//! A record longer than the longest document is dropped while it comes in: memory never holds more
//! than that and a piece. So is one that the memory cannot hold; if it may be a document, that is
//! noted in the piece and ends the build.

use super::Format;
use super::borders::Borders;
use super::borders::found::FoundBorder;
use super::piece::Piece;
use crate::buffers::{TextBuffer, TextBuffers};
use crate::index::documents::pieces::{LargeDocument, Skipped, SkippedRecords};
use crate::input::document::{Skip, WarcFault};
use crate::input::formats::csv::first_record;
use crate::input::formats::warc;
use crate::order::{DOCUMENT_TIMES, PIECE_BYTES};
use std::ops::Range;
use std::sync::Arc;

pub struct Cutter {
    format: Format,
    max_document: u64,
    /// Records of more bytes are not held; at most `max_document`.
    longest: u64,
    piece_bytes: usize,
    borders: Borders,
    buffers: Arc<TextBuffers>,
    input: u32,
    /// Where `piece.bytes` end in the input's stream.
    end: u64,
    /// Records that begin here or later are not to be cut.
    until: u64,
    piece: Piece,
    /// The first record of the input, of CSV.
    head: Option<Arc<[u8]>>,
    /// Where a record that is too long began, while it is dropped, and what it is if it is not too
    /// long to be a document.
    dropping: Option<u64>,
    long: LongRecord,
    ended: bool,
}

/// What a record that is not held is, by its beginning: a document, with its name if that is known;
/// none for a reason; nothing if it is passed over.
type LongRecord = Option<Result<String, Skip>>;

/// Room that is made for decoded bytes at a time, beyond the end of a piece.
const STEP_BYTES: usize = 64 << 10;
/// A buffer with less room than this grows.
const LEAST_ROOM: usize = 16 << 10;

impl Cutter {
    /// Pieces have [`PIECE_BYTES`]; records over `max_document` bytes are skipped.
    pub fn new(format: Format, max_document: u64) -> Self {
        Self::of_pieces(format, max_document, PIECE_BYTES)
    }

    pub(crate) fn of_pieces(format: Format, max_document: u64, piece_bytes: usize) -> Self {
        Self {
            format,
            max_document,
            longest: max_document,
            piece_bytes,
            borders: Borders::new(format, max_document),
            buffers: Arc::default(),
            input: 0,
            end: 0,
            until: u64::MAX,
            piece: empty(format, 0, 0, TextBuffer::default()),
            head: None,
            dropping: None,
            long: None,
            ended: false,
        }
    }

    /// A record of more than `longest` bytes, of which there may be documents, is not held.
    pub(crate) fn holding(self, longest: u64) -> Self {
        let longest = longest.min(self.max_document);
        Self { longest, borders: Borders::new(self.format, longest), ..self }
    }

    pub(crate) fn with_buffers(self, buffers: Arc<TextBuffers>) -> Self {
        Self { buffers, ..self }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub fn begin(&mut self, input: u32) {
        self.input = input;
        self.end = 0;
        self.until = u64::MAX;
        self.ended = false;
        self.head = None;
        self.borders = Borders::new(self.format, self.longest);
        // A piece that holds nothing but empty files is one all the same.
        if self.piece.bytes.is_empty() && self.piece.files.is_empty() {
            let skipped = std::mem::take(&mut self.piece.skipped);
            let bytes = std::mem::take(&mut self.piece.bytes);
            self.piece = Piece { skipped, ..empty(self.format, input, 0, bytes) };
        }
    }

    /// Begins in the middle of the stream of an input, at the begin of a record, and is to cut the
    /// records that begin in a range of it; what was there is forgotten.
    pub(crate) fn begin_part(&mut self, format: Format, input: u32, range: Range<u64>) {
        self.format = format;
        self.piece.bytes.truncate(0);
        self.piece.skipped = SkippedRecords::default();
        self.dropping = None;
        self.begin(input);
        self.piece.offset = range.start;
        self.end = range.start;
        self.until = range.end;
    }

    pub(crate) fn is_past_part(&self) -> bool {
        self.dropping.is_none() && self.piece.offset >= self.until
    }

    /// Ends the part: a piece without bytes, if something was skipped behind the last one.
    pub(crate) fn end_part(&mut self) -> Option<Piece> {
        // What follows the part is another's.
        self.piece.bytes.truncate(0);
        self.has_piece().then(|| self.split_off(0, 0))
    }

    /// Bytes of the piece that grows behind which it may end: those before the next multiple.
    pub(crate) fn enough(&self) -> usize {
        self.piece_bytes - (self.piece.offset % self.piece_bytes as u64) as usize
    }

    fn new_buffer(&self, bytes: usize) -> TextBuffer {
        let mut buffer = TextBuffer::of(&self.buffers);
        buffer.reserve_exact(bytes + STEP_BYTES);
        buffer
    }

    /// Has room for bytes of the stream to be appended, which [`grown`](Self::grown) is told.
    pub fn buffer(&mut self) -> &mut TextBuffer {
        if self.piece.bytes.capacity() == 0 {
            self.piece.bytes = self.new_buffer(self.piece_bytes);
        }
        let bytes = &mut self.piece.bytes;
        if bytes.capacity() - bytes.len() < LEAST_ROOM {
            // Growing copies the piece, so it grows by a part of it; not by more, since most of
            // what is behind its end is copied to the next. A grown buffer is used again.
            bytes.reserve_exact(STEP_BYTES.max(self.piece_bytes / 8));
        }
        bytes
    }

    /// Is told that `bytes` were appended, or 0 to ask for the next. Returns a piece if one is
    /// whole; more may be until it returns none.
    pub fn grown(&mut self, bytes: usize) -> Option<Piece> {
        self.end += bytes as u64;
        if self.format.file_is_document() {
            self.drop_long_file();
            return None;
        }
        self.cut()
    }

    fn cut(&mut self) -> Option<Piece> {
        loop {
            if let Some(start) = self.dropping {
                let gone = self.borders.drop_record(&self.piece.bytes);
                self.piece.bytes.forget(gone.bytes);
                self.piece.offset += gone.bytes as u64;
                if !gone.whole {
                    return None;
                }
                self.dropping = None;
                self.skip_long(start, self.piece.offset - start - gone.end_bytes as u64);
            }
            if self.is_past_part() {
                return None;
            }
            match self.borders.find(&self.piece.bytes, self.enough(), self.ended) {
                FoundBorder::Nothing => return None,
                FoundBorder::End(end) => return Some(self.split_off(end, end)),
                FoundBorder::Long(start) => {
                    // What stands before the record goes on, the record goes.
                    self.long = match self.format {
                        Format::Warc => warc::long_record(&self.piece.bytes[start..]),
                        _ => Some(Ok(String::new())),
                    };
                    let gone = self.borders.drop_record(&self.piece.bytes[start..]);
                    let offset = self.piece.offset + start as u64;
                    self.dropping = (!gone.whole).then_some(offset);
                    let piece = self.split_off(start, start + gone.bytes);
                    let piece = self.keep_if_any(piece);
                    if gone.whole {
                        self.skip_long(offset, (gone.bytes - gone.end_bytes) as u64);
                    }
                    if piece.is_some() {
                        return piece;
                    }
                }
            }
        }
    }

    /// A piece without bytes leaves what it skipped to the next.
    fn keep_if_any(&mut self, piece: Piece) -> Option<Piece> {
        if piece.bytes.is_empty() {
            self.piece.skipped.append(piece.skipped);
            return None;
        }
        Some(piece)
    }

    fn drop_long_file(&mut self) {
        let start = self.piece.files.last().map_or(0, |&(_, end)| end);
        if self.dropping.is_some() || (self.piece.bytes.len() - start) as u64 > self.longest {
            self.dropping = Some(0);
            self.long = Some(Ok(String::new()));
            let mut kept = self.new_buffer(start);
            kept.extend([&self.piece.bytes[..start]]);
            self.piece.bytes = kept;
        }
    }

    fn skip_long(&mut self, offset: u64, bytes: u64) {
        let input = self.input;
        let skipped = match self.long.take() {
            _ if bytes > self.max_document => {
                Skipped::too_long(input, offset, bytes, self.max_document)
            }
            None => return,
            Some(Ok(name)) => {
                let takes = DOCUMENT_TIMES * bytes;
                return self.piece.skipped.refuse(LargeDocument {
                    input,
                    offset,
                    bytes,
                    takes,
                    name,
                });
            }
            Some(Err(skip)) => {
                let detail = match skip {
                    // Of which the bytes are known by now.
                    Skip::BrokenWarc(WarcFault::NoVersion { .. }) => {
                        WarcFault::NoVersion { bytes: bytes as usize }.to_string()
                    }
                    _ => skip.to_string(),
                };
                Skipped { input, offset, line: 0, reason: skip.reason(), detail }
            }
        };
        self.piece.skipped.push(skipped.reason, || skipped);
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.piece.bytes.len()
    }

    pub(crate) fn stream_bytes(&self) -> u64 {
        self.end
    }

    pub(crate) fn skip_rest(&mut self, reason: &'static str, detail: String) {
        let skipped = Skipped { input: self.input, offset: self.end, line: 0, reason, detail };
        self.piece.skipped.push(reason, || skipped);
    }

    /// As [`grown`](Self::grown), at the end of the current input's stream.
    pub fn end_input(&mut self) -> Option<Piece> {
        let files = self.format.file_is_document();
        if !std::mem::replace(&mut self.ended, true) && files && self.dropping.is_none() {
            self.piece.files.push((self.input, self.piece.bytes.len()));
        }
        if !files && let Some(piece) = self.cut() {
            return Some(piece);
        }
        if let Some(start) = self.dropping.take() {
            // What is left of it, kept for a border that did not come, goes too.
            let kept = if files { self.piece.bytes.len() } else { 0 };
            self.piece.bytes.truncate(kept);
            self.skip_long(start, self.end - start);
        }
        let whole = !files || self.piece.bytes.len() >= self.piece_bytes;
        (whole && self.has_piece()).then(|| self.last_piece())
    }

    pub(crate) fn end_split(&mut self) -> Option<Piece> {
        self.has_piece().then(|| self.last_piece())
    }

    fn last_piece(&mut self) -> Piece {
        let len = self.piece.bytes.len();
        Piece { ends_input: true, ..self.split_off(len, len) }
    }

    fn has_piece(&self) -> bool {
        let piece = &self.piece;
        !piece.bytes.is_empty() || !piece.skipped.is_empty() || !piece.files.is_empty()
    }

    /// Takes the first `len` bytes as a piece; what stands from `next` on begins the next.
    fn split_off(&mut self, len: usize, next: usize) -> Piece {
        self.borders.forget(next);
        let input = self.input;
        let offset = self.piece.offset + next as u64;
        let rest = &self.piece.bytes[next..];
        let mut next = empty(self.format, input, offset, TextBuffer::default());
        // The buffer of what is cut is filled again when it is parsed, unless something has to be
        // kept now: also the begin of a mark that ends what is dropped.
        if !rest.is_empty() && (self.dropping.is_some() || offset < self.until) {
            next.bytes = self.new_buffer(self.piece_bytes.max(rest.len()));
            next.bytes.extend([rest]);
        }
        self.piece.bytes.truncate(len);
        let mut piece = std::mem::replace(&mut self.piece, next);
        if self.format == Format::Csv {
            piece.head = self.head.get_or_insert_with(|| csv_head(&piece)).clone();
        }
        piece
    }
}

/// The first record of the input that the piece begins; nothing if it was dropped.
fn csv_head(piece: &Piece) -> Arc<[u8]> {
    if piece.offset == 0 { first_record(&piece.bytes).into() } else { Arc::default() }
}

fn empty(format: Format, input: u32, offset: u64, bytes: TextBuffer) -> Piece {
    let (files, head, skipped) = Default::default();
    Piece { input, format, offset, bytes, files, head, ends_input: false, skipped }
}

#[cfg(test)]
mod tests;
