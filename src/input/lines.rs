//! How do many workers read one file of lines? In stretches that begin at multiples of so many bytes: each has the lines that
//! begin in it, and anybody finds the first of them without a look at what comes before. Its pieces are those that
//! one reader would cut from first to last, since both end at multiples of the same number of bytes.

use super::cutter::Cutter;
use super::hash::{CHUNK_BYTES, ChunkHashes, InputHash};
use super::piece::Piece;
use super::{Compression, Format};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use super::splits::CHANGED;

/// Bytes that are read at a time to find the first line of a stretch.
const LOOK_BYTES: usize = 4 << 10;
/// Bytes that are read at a time, so that they are hashed while they are in the core's cache.
const READ_BYTES: u64 = 256 << 10;
/// Bytes that are read at a time behind a stretch, for the end of its last line.
const BEHIND_BYTES: usize = 16 << 10;

/// A plain file of lines that is being read.
pub struct LineFile {
    input: u32,
    format: Format,
    file: File,
    before: Metadata,
    stretch_bytes: u64,
    state: Mutex<State>,
}

struct State {
    /// Of all chunks of the file.
    hashes: Vec<u64>,
    /// Stretches that are not read.
    left: u64,
}

impl LineFile {
    /// The file, if several can read it: it is not compressed, not empty, and each line is a record of its own. Its pieces have
    /// `piece_bytes`, a power of two.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(
        input: u32,
        format: Format,
        file: File,
        piece_bytes: usize,
    ) -> io::Result<Option<Self>> {
        let before = file.metadata()?;
        if !Self::of_lines(format) || !before.is_file() || before.len() == 0 {
            return Ok(None);
        }
        let mut start = Vec::with_capacity(6);
        read_at(&file, &mut start, 0, usize::MAX)?;
        if Compression::by_content(&start) != Compression::None {
            return Ok(None);
        }
        let stretch_bytes = (piece_bytes as u64).max(CHUNK_BYTES);
        let left = before.len().div_ceil(stretch_bytes);
        let hashes = vec![0; before.len().div_ceil(CHUNK_BYTES) as usize];
        let state = Mutex::new(State { hashes, left });
        Ok(Some(Self { input, format, file, before, stretch_bytes, state }))
    }

    /// Whether each line of a file of this format is a record of its own.
    pub fn of_lines(format: Format) -> bool {
        matches!(format, Format::Jsonl | Format::Tsv | Format::Plaintext)
    }

    /// The number of the input.
    pub fn input(&self) -> u32 {
        self.input
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.before.len()
    }

    /// The number of stretches.
    pub fn stretches(&self) -> u64 {
        self.bytes().div_ceil(self.stretch_bytes)
    }

    /// Bytes of the file that lie in a stretch.
    pub fn stretch_len(&self, stretch: u64) -> u64 {
        let begin = stretch * self.stretch_bytes;
        self.bytes().min(begin + self.stretch_bytes) - begin
    }

    /// Asks the system to read a stretch, if there is one of this number, which somebody will do soon.
    pub fn will_need(&self, stretch: u64) {
        if stretch < self.stretches() {
            // Who is not heard waits longer, no more.
            let (offset, len) = (stretch * self.stretch_bytes, self.stretch_len(stretch));
            _ = fadvise(&self.file, offset, NonZeroU64::new(len), Advice::WillNeed);
        }
    }

    /// Cuts the pieces of the lines that begin in a stretch, whose number is below [`stretches`](Self::stretches); nobody reads
    /// one twice. When all are read, gives the hash of the file.
    ///
    /// # Errors
    /// When it cannot be read, or has changed.
    pub fn read(
        &self,
        stretch: u64,
        cutter: &mut Cutter,
        mut give: impl FnMut(Piece),
    ) -> io::Result<Option<u64>> {
        let begin = stretch * self.stretch_bytes;
        let end = begin + self.stretch_len(stretch);
        let mut hashes = ChunkHashes::default();
        if let Some(first) = self.first_line(begin, end, &mut hashes)? {
            cutter.begin_part(self.format, self.input, first..end);
            let mut at = first;
            while at < self.bytes() && !cutter.is_past_part() {
                let buffer = cutter.buffer();
                let before = buffer.len();
                let most = match end.saturating_sub(at) {
                    0 => BEHIND_BYTES,
                    left => left.min(READ_BYTES) as usize,
                };
                let grown = read_at(&self.file, buffer, at, most)?;
                if grown == 0 {
                    return Err(changed());
                }
                let own = end.saturating_sub(at).min(grown as u64) as usize;
                hashes.update(&buffer[before..before + own]);
                at += grown as u64;
                cutter.grown(grown).into_iter().for_each(&mut give);
                std::iter::from_fn(|| cutter.grown(0)).for_each(&mut give);
            }
            if cutter.is_past_part() {
                cutter.end_part().into_iter().for_each(give);
            } else {
                std::iter::from_fn(|| cutter.end_input()).for_each(give);
            }
        }
        self.done(begin, &hashes.digest())
    }

    /// Where the first line begins from `begin` on and before `end`; `hashes` get the bytes from `begin` up to there.
    fn first_line(
        &self,
        begin: u64,
        end: u64,
        hashes: &mut ChunkHashes,
    ) -> io::Result<Option<u64>> {
        if begin == 0 {
            return Ok(Some(0));
        }
        // A line begins behind the end of another.
        let mut at = begin - 1;
        let mut look = Vec::with_capacity(LOOK_BYTES);
        while at < end {
            look.clear();
            if read_at(&self.file, &mut look, at, usize::MAX)? == 0 {
                return Err(changed());
            }
            look.truncate((end - at) as usize);
            let own = usize::from(at < begin);
            match memchr::memchr(b'\n', &look) {
                Some(line_end) if at + (line_end as u64) + 1 < end => {
                    hashes.update(&look[own..line_end + 1]);
                    return Ok(Some(at + line_end as u64 + 1));
                }
                _ => hashes.update(&look[own..]),
            }
            at += look.len() as u64;
        }
        Ok(None)
    }

    /// Notes that a stretch is read.
    fn done(&self, begin: u64, hashes: &[u64]) -> io::Result<Option<u64>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let first = (begin / CHUNK_BYTES) as usize;
        state.hashes[first..first + hashes.len()].copy_from_slice(hashes);
        state.left -= 1;
        if state.left > 0 {
            return Ok(None);
        }
        let now = self.file.metadata()?;
        if now.len() != self.before.len() || now.modified()? != self.before.modified()? {
            return Err(changed());
        }
        Ok(Some(InputHash::of_chunks(&state.hashes)))
    }
}

/// Reads as many bytes as a buffer has room for, at most so many, and tells how many there were.
fn read_at(file: &File, buffer: &mut Vec<u8>, at: u64, most: usize) -> io::Result<usize> {
    loop {
        let room = buffer.spare_capacity_mut();
        let most = most.min(room.len());
        match pread(file, &mut room[..most], at) {
            Err(Errno::INTR) => {}
            read => {
                let bytes = read?.0.len();
                // SAFETY: so many bytes were read, to where the buffer's room begins.
                unsafe { buffer.set_len(buffer.len() + bytes) };
                return Ok(bytes);
            }
        }
    }
}

fn changed() -> io::Error {
    io::Error::other(CHANGED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PIECE_BYTES;
    use proptest::prelude::*;
    use std::io::Write as _;

    const MOST_DOCUMENT: u64 = 700_000;

    /// Where a piece begins, and its bytes.
    type Shown = Vec<(u64, Vec<u8>)>;

    fn one_reader(bytes: &[u8], piece_bytes: usize) -> Vec<Piece> {
        let mut cutter = Cutter::of_pieces(Format::Jsonl, MOST_DOCUMENT, piece_bytes);
        cutter.begin(7);
        let mut pieces = Vec::new();
        for block in bytes.chunks(60_000) {
            cutter.buffer().extend_from_slice(block);
            pieces.extend(cutter.grown(block.len()));
            pieces.extend(std::iter::from_fn(|| cutter.grown(0)));
        }
        pieces.extend(std::iter::from_fn(|| cutter.end_input()));
        pieces
    }

    fn many_readers(bytes: &[u8], piece_bytes: usize) -> (Vec<Piece>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let lines = LineFile::new(7, Format::Jsonl, file, piece_bytes).unwrap().unwrap();
        let mut stretches: Vec<u64> = (0..lines.stretches()).collect();
        // Not in their order, by two that have read other stretches before.
        let turned = stretches.len() / 3;
        stretches.rotate_left(turned);
        let mut cutters =
            [0; 2].map(|_| Cutter::of_pieces(Format::Jsonl, MOST_DOCUMENT, piece_bytes));
        let (mut cut, mut hash) = (Vec::new(), None);
        for (turn, stretch) in stretches.into_iter().enumerate() {
            assert_eq!(hash, None, "not before the last");
            let mut pieces = Vec::new();
            hash = lines.read(stretch, &mut cutters[turn % 2], |piece| pieces.push(piece)).unwrap();
            cut.push((stretch, pieces));
        }
        cut.sort_by_key(|&(stretch, _)| stretch);
        (cut.into_iter().flat_map(|(_, pieces)| pieces).collect(), hash.expect("all are read"))
    }

    fn shown(pieces: &[Piece]) -> Shown {
        let some = pieces.iter().filter(|piece| !piece.bytes.is_empty());
        some.map(|piece| (piece.offset, piece.bytes.clone())).collect()
    }

    fn check(bytes: &[u8], piece_bytes: usize) {
        let one = one_reader(bytes, piece_bytes);
        let (many, hash) = many_readers(bytes, piece_bytes);
        let places = |pieces: &[Piece]| {
            shown(pieces).iter().map(|(at, bytes)| (*at, bytes.len())).collect::<Vec<_>>()
        };
        assert_eq!(places(&one), places(&many), "{} bytes by {piece_bytes}", bytes.len());
        assert!(shown(&one) == shown(&many));
        let skipped = |pieces: &[Piece]| {
            pieces.iter().flat_map(|piece| piece.skipped.clone()).collect::<Vec<_>>()
        };
        assert_eq!(skipped(&one), skipped(&many));
        let mut whole = InputHash::default();
        whole.update(bytes);
        assert_eq!(hash, whole.digest());
    }

    fn text(lengths: &[usize], ends: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for &length in lengths {
            text.resize(text.len() + length, b'x');
            text.push(b'\n');
        }
        if !ends {
            text.pop();
        }
        text
    }

    #[test]
    fn lines_about_the_borders_of_stretches() {
        let stretch = CHUNK_BYTES as usize;
        for before in [stretch - 2, stretch - 1, stretch, stretch + 1] {
            for ends in [true, false] {
                check(&text(&[before], ends), PIECE_BYTES);
                check(&text(&[before, 0, 5], ends), PIECE_BYTES);
                check(&text(&[5, before - 6, 3 * stretch, 9], ends), PIECE_BYTES);
                check(&text(&[before / 2, before, 2], ends), 4 * PIECE_BYTES);
            }
        }
    }

    #[test]
    fn what_one_reader_has_to_read_is_no_file_of_lines() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        let is = |format, bytes: &[u8]| {
            LineFile::new(0, format, file(bytes), PIECE_BYTES).unwrap().is_some()
        };
        assert!(
            is(Format::Jsonl, b"{}\n") && is(Format::Tsv, b"1\ta") && is(Format::Plaintext, b"a")
        );
        assert!(
            !is(Format::Jsonl, b"") && !is(Format::Csv, b"a,b\n") && !is(Format::Trec, b"<DOC>")
        );
        assert!(!is(Format::Jsonl, b"\x1f\x8b\x08\0\0\0"), "gzip");
        let (_, pipe) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(LineFile::new(0, Format::Jsonl, pipe, PIECE_BYTES).unwrap().is_none());
    }

    #[test]
    fn a_file_that_changes_is_told() {
        for longer in [true, false] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text(&[100; 30_000], true)).unwrap();
            let handle = file.try_clone().unwrap();
            let lines = LineFile::new(0, Format::Jsonl, file, PIECE_BYTES).unwrap().unwrap();
            handle.set_len(if longer { 4 << 20 } else { 1 << 20 }).unwrap();
            let mut cutter = Cutter::new(Format::Jsonl, MOST_DOCUMENT);
            let mut read = (0..lines.stretches()).map(|n| lines.read(n, &mut cutter, drop));
            let error = read.find_map(Result::err).unwrap();
            assert_eq!(error.to_string(), CHANGED);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn law_many_readers_cut_what_one_does(
            lines in prop::collection::vec(
                prop_oneof![0usize..200, 300_000usize..900_000, 1_000_000usize..3_000_000, Just((1 << 20) - 1)],
                1..12,
            ),
            short in 0usize..20_000,
            ends: bool,
            log in 0u32..3,
        ) {
            let lengths: Vec<usize> =
                lines.iter().flat_map(|&n| std::iter::repeat_n(57, short).chain([n])).take(60_000).collect();
            check(&text(&lengths, ends), PIECE_BYTES << log);
        }
    }
}
