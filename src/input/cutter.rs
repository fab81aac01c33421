//! Where does a piece end? At the first line end at or after [`PIECE_BYTES`] from its start, so
//! that pieces depend on the bytes of the stream alone, not on the blocks in which they came.
//!
//! A line longer than the longest document is dropped while it comes in: memory never holds more
//! than that and a piece.

use super::Format;
use super::piece::{Piece, Skipped};
use crate::order::PIECE_BYTES;
use memchr::{memchr, memrchr};

/// Cuts the uncompressed streams of one split.
pub struct Cutter {
    format: Format,
    max_document: u64,
    /// The input that is being read.
    input: u32,
    /// Where `piece.bytes` end in the input's stream.
    end: u64,
    piece: Piece,
    /// No line end is before this place in `piece.bytes`, counted from where one may end a piece.
    searched: usize,
    /// Bytes dropped of a record that is too long, and where it began.
    dropping: Option<u64>,
}

/// Room that is made for decoded bytes at a time, beyond the end of a piece.
const STEP_BYTES: usize = 64 << 10;

impl Cutter {
    /// Makes a cutter; records over `max_document` bytes are skipped.
    pub fn new(format: Format, max_document: u64) -> Self {
        Self {
            format,
            max_document,
            input: 0,
            end: 0,
            piece: empty(format, 0, 0, 0),
            searched: 0,
            dropping: None,
        }
    }

    /// Begins the stream of the next input of the split.
    pub fn begin(&mut self, input: u32) {
        self.input = input;
        self.end = 0;
        // A piece that holds nothing but empty files is one all the same.
        if self.piece.bytes.is_empty() && self.piece.files.is_empty() {
            let skipped = std::mem::take(&mut self.piece.skipped);
            self.piece = Piece { skipped, ..empty(self.format, input, 0, PIECE_BYTES) };
        }
    }

    /// The buffer that decoded bytes are appended to, with room for some. What is appended must be
    /// told to [`grown`](Self::grown).
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        let bytes = &mut self.piece.bytes;
        if bytes.capacity() - bytes.len() < STEP_BYTES {
            // Exactly: what is behind a piece's end must stay smaller than a piece.
            bytes.reserve_exact(STEP_BYTES);
        }
        bytes
    }

    /// Is told that `bytes` were appended. Returns a piece if one is whole.
    pub fn grown(&mut self, bytes: usize) -> Option<Piece> {
        self.end += bytes as u64;
        match self.format {
            Format::Text => {
                self.drop_long_file();
                None
            }
            _ => self.cut_lines(),
        }
    }

    fn cut_lines(&mut self) -> Option<Piece> {
        if let Some(start) = self.dropping {
            // Everything in the buffer belongs to the long line, up to its end.
            let bytes = &mut self.piece.bytes;
            let line_end = memchr(b'\n', bytes);
            let gone = line_end.map_or(bytes.len(), |n| n + 1);
            bytes.drain(..gone);
            self.piece.offset += gone as u64;
            line_end?;
            self.dropping = None;
            self.skip_long(start, self.piece.offset - start - 1);
        }
        if self.piece.bytes.len() < PIECE_BYTES {
            return None;
        }
        let from = self.searched.max(PIECE_BYTES - 1);
        if let Some(n) = memchr(b'\n', &self.piece.bytes[from..]) {
            self.searched = 0;
            let end = from + n;
            let line = memrchr(b'\n', &self.piece.bytes[..end]).map_or(0, |n| n + 1);
            if (end - line) as u64 <= self.max_document {
                return Some(self.split_off(end + 1));
            }
            // The same as below, for a line whose end came with the bytes that made it too long.
            let piece = self.split_off(line);
            let start = self.piece.offset;
            self.piece.bytes.drain(..end + 1 - line);
            self.piece.offset += (end + 1 - line) as u64;
            let piece = self.keep_if_any(piece);
            self.skip_long(start, (end - line) as u64);
            return piece;
        }
        self.searched = self.piece.bytes.len();
        let line = memrchr(b'\n', &self.piece.bytes[..PIECE_BYTES - 1]).map_or(0, |n| n + 1);
        if (self.piece.bytes.len() - line) as u64 <= self.max_document {
            return None;
        }
        // The last line is too long already: what stands before it goes on, the line goes.
        self.searched = 0;
        let piece = self.split_off(line);
        self.dropping = Some(self.piece.offset);
        self.piece.offset += self.piece.bytes.len() as u64;
        self.piece.bytes = Vec::new();
        self.keep_if_any(piece)
    }

    /// A piece without bytes leaves what it skipped to the next.
    fn keep_if_any(&mut self, mut piece: Piece) -> Option<Piece> {
        if piece.bytes.is_empty() {
            self.piece.skipped.append(&mut piece.skipped);
            return None;
        }
        Some(piece)
    }

    fn drop_long_file(&mut self) {
        let start = self.piece.files.last().map_or(0, |&(_, end)| end);
        if self.dropping.is_some() || (self.piece.bytes.len() - start) as u64 > self.max_document {
            self.dropping = Some(0);
            self.piece.bytes.truncate(start);
            self.piece.bytes.shrink_to(start + STEP_BYTES);
        }
    }

    fn skip_long(&mut self, offset: u64, bytes: u64) {
        let skipped = Skipped::too_long(self.input, offset, bytes, self.max_document);
        self.piece.skipped.push(skipped);
    }

    /// Notes that the rest of the input cannot be read.
    pub fn skip_rest(&mut self, reason: &'static str, detail: String) {
        let skipped = Skipped { input: self.input, offset: self.end, line: 0, reason, detail };
        self.piece.skipped.push(skipped);
    }

    /// Ends the stream of the current input. Returns a piece if one is whole.
    pub fn end_input(&mut self) -> Option<Piece> {
        if let Some(start) = self.dropping.take() {
            self.skip_long(start, self.end - start);
        } else if self.format == Format::Text {
            self.piece.files.push((self.input, self.piece.bytes.len()));
        }
        let whole = self.format != Format::Text || self.piece.bytes.len() >= PIECE_BYTES;
        (whole && self.has_piece()).then(|| self.split_off(self.piece.bytes.len()))
    }

    /// Ends the split: what is left, if anything.
    pub fn end_split(&mut self) -> Option<Piece> {
        self.has_piece().then(|| self.split_off(self.piece.bytes.len()))
    }

    fn has_piece(&self) -> bool {
        let piece = &self.piece;
        !piece.bytes.is_empty() || !piece.skipped.is_empty() || !piece.files.is_empty()
    }

    /// Takes the first `len` bytes as a piece; the rest begins the next.
    fn split_off(&mut self, len: usize) -> Piece {
        let piece = &mut self.piece;
        let (input, offset) = (self.input, piece.offset + len as u64);
        let rest = &piece.bytes[len..];
        let mut next = empty(self.format, input, offset, PIECE_BYTES.max(rest.len()));
        next.bytes.extend_from_slice(rest);
        piece.bytes.truncate(len);
        std::mem::replace(piece, next)
    }
}

fn empty(format: Format, input: u32, offset: u64, room: usize) -> Piece {
    let bytes = if room == 0 { Vec::new() } else { Vec::with_capacity(room + STEP_BYTES) };
    Piece { input, format, offset, bytes, files: Vec::new(), skipped: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(format: Format, max_document: u64, files: &[&[u8]], block: usize) -> Vec<Piece> {
        let mut cutter = Cutter::new(format, max_document);
        let mut pieces = Vec::new();
        for (input, file) in (0u32..).zip(files) {
            cutter.begin(input);
            for mut block in file.chunks(block) {
                while !block.is_empty() {
                    let buffer = cutter.buffer();
                    let n = block.len().min(buffer.capacity() - buffer.len());
                    buffer.extend_from_slice(&block[..n]);
                    block = &block[n..];
                    pieces.extend(cutter.grown(n));
                }
            }
            pieces.extend(cutter.end_input());
        }
        pieces.extend(cutter.end_split());
        pieces
    }

    fn lines(lengths: impl IntoIterator<Item = usize>) -> Vec<u8> {
        lengths.into_iter().flat_map(|n| [vec![b'x'; n], vec![b'\n']].concat()).collect()
    }

    #[test]
    fn pieces_do_not_depend_on_blocks() {
        let file = lines((0..30_000).map(|i| i * 7919 % 300));
        let mut borders: Option<Vec<(u64, usize)>> = None;
        for block in [1000, 4096, 256 << 10, 10 << 20] {
            let pieces = cut(Format::Jsonl, 1 << 20, &[&file], block);
            assert_eq!(pieces.iter().flat_map(|p| &p.bytes).count(), file.len());
            assert!(pieces.len() > 3);
            for p in &pieces[..pieces.len() - 1] {
                assert!(p.bytes.len() >= PIECE_BYTES && p.bytes.ends_with(b"\n"));
                assert!(!p.bytes[PIECE_BYTES - 1..p.bytes.len() - 1].contains(&b'\n'));
            }
            let now: Vec<_> = pieces.iter().map(|p| (p.offset, p.bytes.len())).collect();
            assert_eq!(*borders.get_or_insert_with(|| now.clone()), now);
        }
    }

    #[test]
    fn a_line_too_long_is_dropped_wherever_it_stands() {
        let limit = 3 << 20;
        for before in [0, 10, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1] {
            for long in [limit, limit + 1, 9 << 20] {
                for end in [true, false] {
                    let mut file = lines([before, 5, long]);
                    if end {
                        file.extend(lines([7]));
                    } else {
                        file.pop();
                    }
                    let pieces = cut(Format::Jsonl, limit as u64, &[&file], 100_000);
                    let skipped: Vec<_> = pieces.iter().flat_map(|p| &p.skipped).collect();
                    let kept: Vec<u8> = pieces.iter().flat_map(|p| p.bytes.clone()).collect();
                    if long <= limit {
                        assert!(skipped.is_empty());
                        assert_eq!(kept, file);
                    } else {
                        assert_eq!(skipped.len(), 1, "{before} {long} {end}");
                        assert_eq!(skipped[0].offset, (before + 1 + 6) as u64);
                        let tail: &[usize] = if end { &[7] } else { &[] };
                        assert_eq!(
                            kept,
                            lines([before, 5].into_iter().chain(tail.iter().copied()))
                        );
                        if end {
                            let last = pieces.last().unwrap();
                            assert_eq!(last.offset + last.bytes.len() as u64, file.len() as u64);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn small_files_share_a_piece_and_long_ones_are_dropped() {
        let long = vec![b'y'; 3000];
        let pieces = cut(Format::Text, 2000, &[b"one", b"", &long, b"four"], 700);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].bytes, b"onefour");
        assert_eq!(pieces[0].files, [(0, 3), (1, 3), (3, 7)]);
        assert_eq!(pieces[0].skipped.len(), 1);
        assert_eq!(pieces[0].skipped[0].input, 2);
    }

    #[test]
    fn empty_files_that_begin_a_piece_are_kept() {
        let pieces = cut(Format::Text, 2000, &[b"", b"", b"three"], 700);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].files, [(0, 0), (1, 0), (2, 5)]);
        let pieces = cut(Format::Text, 2000, &[b"", b""], 700);
        assert_eq!(pieces[0].files, [(0, 0), (1, 0)]);
    }
}
