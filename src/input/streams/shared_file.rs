//! Lets many workers read one file, in stretches that begin at multiples of this many bytes: each
//! has the records that begin in it. A record ends with a mark, such as the end of a line or
//! `</page>`, and begins where the mark before it ends; so anybody finds the first one of a stretch
//! without a look at what comes before. Its pieces are those that one reader would cut from first
//! to last, since both end at the first mark behind multiples of the same number of bytes.

use crate::crew::lock;
use crate::input::borders::marks::Mark;
use crate::input::cutter::Cutter;
use crate::input::hash::{CHUNK_BYTES, InputHash};
use crate::input::piece::Piece;
use crate::input::{Compression, Format, MARK_BYTES};
use rustix::fs::{Advice, fadvise};
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

pub(crate) const CHANGED: &str = "the file changed while it was read";

/// Bytes that are read at a time to find the first record of a stretch.
const LOOK_BYTES: usize = 4 << 10;
/// Bytes that are read at a time, so that they are hashed while they are in the core's cache.
const READ_BYTES: u64 = 256 << 10;
/// Bytes that are read at a time behind a stretch, for the end of its last record.
const BEHIND_BYTES: usize = 16 << 10;

pub(crate) struct SharedFile {
    input: u32,
    format: Format,
    mark: Mark,
    file: File,
    before: Metadata,
    stretch_bytes: u64,
    /// The stretches that this process reads.
    part: Range<u64>,
    state: Mutex<SharedFileState>,
}

struct SharedFileState {
    /// Of all chunks of these stretches.
    hashes: Vec<u64>,
    /// Stretches that are not read.
    left: u64,
}

pub(crate) struct StretchReading {
    begin: u64,
    end: u64,
    /// What comes before is read, of the stretch and of what follows it.
    at: u64,
    hashes: InputHash,
}

impl SharedFile {
    /// The file, if several can read it: it is not compressed, not empty, and its records end with
    /// a mark. Its pieces have `piece_bytes`, a power of two.
    pub(crate) fn new(
        input: u32,
        format: Format,
        file: File,
        piece_bytes: usize,
    ) -> io::Result<Option<Self>> {
        let before = file.metadata()?;
        let Some(mark) = Mark::of(format) else { return Ok(None) };
        if !before.is_file() || before.len() == 0 {
            return Ok(None);
        }
        let mut start = [0; MARK_BYTES];
        let read = read_at(&file, &mut start, 0)?;
        if Compression::by_content(&start[..read]) != Compression::None {
            return Ok(None);
        }
        let stretch_bytes = (piece_bytes as u64).max(CHUNK_BYTES);
        let part = 0..before.len().div_ceil(stretch_bytes);
        let state = Mutex::new(SharedFileState { hashes: Vec::new(), left: 0 });
        let file = Self { input, format, mark, file, before, stretch_bytes, part, state };
        Ok(Some(file.of_part(0..u64::MAX)?))
    }

    /// The file of which this process reads the records that begin in some `bytes`, which begin and
    /// end where stretches do, or at the end of the file.
    pub(crate) fn of_part(mut self, bytes: Range<u64>) -> io::Result<Self> {
        let Range { start, end } = bytes.start..bytes.end.min(self.bytes());
        if start >= end {
            return Err(changed());
        }
        self.part = start / self.stretch_bytes..end.div_ceil(self.stretch_bytes);
        let chunks = end.div_ceil(CHUNK_BYTES) - start / CHUNK_BYTES;
        let left = self.stretches();
        self.state = Mutex::new(SharedFileState { hashes: vec![0; chunks as usize], left });
        Ok(self)
    }

    /// Whether other processes read the rest.
    pub(crate) fn is_part(&self) -> bool {
        self.stretches() < self.bytes().div_ceil(self.stretch_bytes)
    }

    pub(crate) fn input(&self) -> u32 {
        self.input
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.before.len()
    }

    /// How many stretches this process reads; they are numbered from 0.
    pub(crate) fn stretches(&self) -> u64 {
        self.part.end - self.part.start
    }

    fn begin_of(&self, stretch: u64) -> u64 {
        (self.part.start + stretch) * self.stretch_bytes
    }

    pub(crate) fn stretch_len(&self, stretch: u64) -> u64 {
        let begin = self.begin_of(stretch);
        self.bytes().min(begin + self.stretch_bytes) - begin
    }

    /// Asks the system to read a stretch, if there is one, which somebody will do soon.
    pub(crate) fn will_need(&self, stretch: u64) {
        if stretch < self.stretches() {
            // Who is not heard waits longer, no more.
            let offset = self.begin_of(stretch);
            let len = self.stretch_len(stretch);
            _ = fadvise(&self.file, offset, NonZeroU64::new(len), Advice::WillNeed);
        }
    }

    /// Begins to read a stretch, whose number is below [`stretches`](Self::stretches); nobody reads
    /// one twice. The cutter is to be used for nothing else until it is read.
    pub(crate) fn begin(&self, stretch: u64, cutter: &mut Cutter) -> io::Result<StretchReading> {
        let begin = self.begin_of(stretch);
        let end = begin + self.stretch_len(stretch);
        let mut hashes = InputHash::default();
        let at = self.first_record(begin, end, &mut hashes)?.unwrap_or(end);
        cutter.begin_part(self.format, self.input, at..end);
        Ok(StretchReading { begin, end, at, hashes })
    }

    /// Cuts the pieces of the records that begin in a stretch. Tells whether that was all: not, if
    /// the piece that grows is longer than `most_held`.
    pub(crate) fn read(
        &self,
        reading: &mut StretchReading,
        cutter: &mut Cutter,
        most_held: usize,
        mut give: impl FnMut(Piece),
    ) -> io::Result<bool> {
        let StretchReading { end, at, hashes, .. } = reading;
        while *at < self.bytes() && !cutter.is_past_part() {
            if cutter.held_bytes() > most_held {
                return Ok(false);
            }
            let buffer = cutter.buffer();
            let most = match end.saturating_sub(*at) {
                0 => BEHIND_BYTES,
                left => left.min(READ_BYTES) as usize,
            };
            let own = end.saturating_sub(*at) as usize;
            let room = buffer.room(0);
            let most = most.min(room.len());
            let grown = read_at(&self.file, &mut room[..most], *at)?;
            hashes.update(&room[..own.min(grown)]);
            buffer.advance(grown);
            if grown == 0 {
                return Err(changed());
            }
            *at += grown as u64;
            cutter.grown(grown).into_iter().for_each(&mut give);
            std::iter::from_fn(|| cutter.grown(0)).for_each(&mut give);
        }
        if cutter.is_past_part() {
            cutter.end_part().into_iter().for_each(give);
        } else {
            std::iter::from_fn(|| cutter.end_input()).for_each(give);
        }
        Ok(true)
    }

    /// Where the first record begins from `begin` on and before `end`; `hashes` get the bytes from
    /// `begin` up to there.
    fn first_record(
        &self,
        begin: u64,
        end: u64,
        hashes: &mut InputHash,
    ) -> io::Result<Option<u64>> {
        if begin == 0 {
            return Ok(Some(0));
        }
        // It begins behind a mark, all of which may stand before.
        let mut at = begin - self.mark.bytes as u64;
        let mut room = [0; LOOK_BYTES];
        let mut len = 0;
        loop {
            let seen = at + len as u64;
            let read = read_at(&self.file, &mut room[len..], seen)?;
            if read == 0 {
                return Err(changed());
            }
            len = (len + read).min((end - at) as usize);
            let look = &room[..len];
            let first = (self.mark.first)(look, 0).map(|n| at + n as u64);
            let first = first.filter(|first| *first < end);
            let until = first.unwrap_or(at + look.len() as u64);
            let from = seen.max(begin).min(until);
            hashes.update(&look[(from - at) as usize..(until - at) as usize]);
            if first.is_some() || until == end {
                return Ok(first);
            }
            // A mark may have begun.
            let gone = look.len().saturating_sub(self.mark.bytes - 1);
            room.copy_within(gone..len, 0);
            len -= gone;
            at += gone as u64;
        }
    }

    /// Ends a stretch that is read. When all are, gives the hashes of their chunks.
    pub(crate) fn end(
        &self,
        StretchReading { begin, hashes, .. }: StretchReading,
    ) -> io::Result<Option<Vec<u64>>> {
        let hashes = hashes.chunks();
        let mut state = lock(&self.state);
        let first = ((begin - self.begin_of(0)) / CHUNK_BYTES) as usize;
        state.hashes[first..first + hashes.len()].copy_from_slice(&hashes);
        state.left -= 1;
        if state.left > 0 {
            return Ok(None);
        }
        let now = self.file.metadata()?;
        if now.len() != self.before.len() || now.modified()? != self.before.modified()? {
            return Err(changed());
        }
        Ok(Some(std::mem::take(&mut state.hashes)))
    }
}

fn changed() -> io::Error {
    io::Error::other(CHANGED)
}

/// Reads as many bytes as there is room for, unless the file ends before; tells how many that
/// were.
fn read_at(file: &File, room: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(room, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::documents::pieces::SkippedRecords;
    use crate::order::PIECE_BYTES;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use std::io::Write as _;

    const MOST_DOCUMENT: u64 = 700_000;
    const STRETCH: usize = CHUNK_BYTES as usize;

    /// Formats whose records end with a mark, and one that does.
    const MARKED: [(Format, &str); 3] =
        [(Format::Jsonl, "\n"), (Format::Trec, "</DOC>"), (Format::Mediawiki, "</page>")];

    /// Where a piece begins, and its bytes.
    type Shown = Vec<(u64, Vec<u8>)>;

    fn one_reader(format: Format, bytes: &[u8], piece_bytes: usize) -> Vec<Piece> {
        let mut cutter = Cutter::of_pieces(format, MOST_DOCUMENT, piece_bytes);
        cutter.begin(7);
        let mut pieces = Vec::new();
        for block in bytes.chunks(60_000) {
            cutter.buffer().extend([block]);
            pieces.extend(cutter.grown(block.len()));
            pieces.extend(std::iter::from_fn(|| cutter.grown(0)));
        }
        pieces.extend(std::iter::from_fn(|| cutter.end_input()));
        pieces
    }

    fn many_readers(format: Format, bytes: &[u8], piece_bytes: usize) -> (Vec<Piece>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        // Of two processes, if it is long enough.
        let border = 4 * STRETCH as u64;
        let parts = match bytes.len() as u64 > border {
            true => vec![0..border, border..u64::MAX],
            false => std::iter::once(0..u64::MAX).collect(),
        };
        let (mut all, mut hashes) = (Vec::new(), Vec::new());
        for part in parts {
            let file = file.try_clone().unwrap();
            let file = SharedFile::new(7, format, file, piece_bytes).unwrap().unwrap();
            let (pieces, of_part) = read_part(file.of_part(part).unwrap(), piece_bytes);
            all.extend(pieces);
            hashes.extend(of_part);
        }
        (all, InputHash::of_chunks(&hashes))
    }

    fn read_part(file: SharedFile, piece_bytes: usize) -> (Vec<Piece>, Vec<u64>) {
        let mut stretches: Vec<u64> = (0..file.stretches()).collect();
        // Not in their order, by two that have read other stretches before, of other formats.
        let turned = stretches.len() / 3;
        stretches.rotate_left(turned);
        let mut cutters = [Format::Jsonl, Format::Trec]
            .map(|format| Cutter::of_pieces(format, MOST_DOCUMENT, piece_bytes));
        let mut cut = Vec::new();
        let mut hashes = None;
        for (turn, stretch) in stretches.into_iter().enumerate() {
            assert_eq!(hashes, None, "not before the last");
            let mut pieces = Vec::new();
            let cutter = &mut cutters[turn % 2];
            let mut reading = file.begin(stretch, cutter).unwrap();
            let most_held = piece_bytes + 200_000;
            if !file.read(&mut reading, cutter, most_held, |piece| pieces.push(piece)).unwrap() {
                assert!(cutter.held_bytes() > most_held);
                let mut read = |most| file.read(&mut reading, cutter, most, |p| pieces.push(p));
                assert!(!read(most_held).unwrap(), "it is as long as it was");
                assert!(read(usize::MAX).unwrap());
            }
            hashes = file.end(reading).unwrap();
            cut.push((stretch, pieces));
        }
        cut.sort_by_key(|&(stretch, _)| stretch);
        let pieces = cut.into_iter().flat_map(|(_, pieces)| pieces).collect();
        (pieces, hashes.expect("all are read"))
    }

    fn shown(pieces: &[Piece]) -> Shown {
        let some = pieces.iter().filter(|piece| !piece.bytes.is_empty());
        some.map(|piece| (piece.offset, piece.bytes.to_vec())).collect()
    }

    fn check(format: Format, bytes: &[u8], piece_bytes: usize) {
        let one = one_reader(format, bytes, piece_bytes);
        let (many, hash) = many_readers(format, bytes, piece_bytes);
        let places = |pieces: &[Piece]| {
            shown(pieces).iter().map(|(at, bytes)| (*at, bytes.len())).collect::<Vec<_>>()
        };
        let name = format!("{} bytes of {format} by {piece_bytes}", bytes.len());
        assert_eq!(places(&one), places(&many), "{name}");
        assert!(shown(&one) == shown(&many), "{name}");
        // One piece of a single reader may have more of them than it names.
        let skipped = |pieces: &[Piece]| {
            let all = pieces.iter().flat_map(|piece| piece.skipped.first()).cloned();
            all.take(SkippedRecords::NAMED).collect::<Vec<_>>()
        };
        assert_eq!(skipped(&one), skipped(&many), "{name}");
        let mut whole = InputHash::default();
        whole.update(bytes);
        assert_eq!(hash, whole.digest(), "{name}");
    }

    /// Records of these lengths, beside their marks; the last may have none.
    fn records(mark: &str, lengths: &[usize], ends: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for &length in lengths {
            text.resize(text.len() + length, b'x');
            text.extend_from_slice(mark.as_bytes());
        }
        if !ends {
            text.pop();
        }
        text
    }

    #[test]
    fn records_about_the_borders_of_stretches() {
        for (format, mark) in MARKED {
            // A mark that ends behind a border, at it, or before it, or is cut by it.
            for before in STRETCH - mark.len() - 1..=STRETCH + 1 {
                for ends in [true, false] {
                    check(format, &records(mark, &[before], ends), PIECE_BYTES);
                    check(format, &records(mark, &[before, 0, 5], ends), PIECE_BYTES);
                }
                let long = [5, before - 5 - mark.len(), 3 * STRETCH, 9];
                check(format, &records(mark, &long, true), PIECE_BYTES);
                let large = [before / 2, before, 2];
                check(format, &records(mark, &large, false), 4 * PIECE_BYTES);
            }
        }
    }

    #[test]
    fn what_is_known_at_a_place_depends_on_what_comes_before_in_other_formats() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        let is = |format, bytes: &[u8]| {
            SharedFile::new(0, format, file(bytes), PIECE_BYTES).unwrap().is_some()
        };
        for format in [Format::Tsv, Format::Plaintext].into_iter().chain(MARKED.map(|m| m.0)) {
            assert!(is(format, b"any bytes") && Mark::of(format).is_some());
            assert!(!is(format, b"") && !is(format, b"\x1f\x8b\x08\0\0\0"), "gzip");
        }
        for format in [Format::Csv, Format::Json, Format::Warc, Format::Text, Format::Html] {
            assert!(!is(format, b"any bytes") && Mark::of(format).is_none());
        }
        let (_, pipe) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(SharedFile::new(0, Format::Jsonl, pipe, PIECE_BYTES).unwrap().is_none());
    }

    #[test]
    fn a_file_that_changes_is_told() {
        for longer in [true, false] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&records("\n", &[100; 30_000], true)).unwrap();
            let handle = file.try_clone().unwrap();
            let file = SharedFile::new(0, Format::Jsonl, file, PIECE_BYTES).unwrap().unwrap();
            handle.set_len(if longer { 4 << 20 } else { 1 << 20 }).unwrap();
            let mut cutter = Cutter::new(Format::Jsonl, MOST_DOCUMENT);
            let mut read = |stretch| {
                let mut reading = file.begin(stretch, &mut cutter)?;
                file.read(&mut reading, &mut cutter, usize::MAX, drop)?;
                file.end(reading)
            };
            let error = (0..file.stretches()).find_map(|n| read(n).err()).unwrap();
            assert_eq!(error.to_string(), CHANGED);
        }
    }

    /// Appends a part of a file: text, marks and what looks like them.
    fn append(text: &mut Vec<u8>, mark: &str, (kind, n): (u32, usize)) {
        let fill = |text: &mut Vec<u8>, n| text.resize(text.len() + n, b'x');
        match kind {
            0 => fill(text, n % 200),
            1 => fill(text, 300_000 + n % 600_000),
            2 => fill(text, 1_000_000 + n % 2_000_000),
            3 => fill(text, MOST_DOCUMENT as usize - 9 + n % 10),
            // So that what follows lies about a border.
            4 => fill(text, STRETCH - text.len() % STRETCH + n % 10),
            5 => fill(text, 2 * STRETCH - text.len() % STRETCH - n % 10),
            6 => text.extend_from_slice(&mark.as_bytes()[..n % mark.len()]),
            7 => text.extend_from_slice(mark.to_lowercase().as_bytes()),
            8 => text.extend_from_slice(b"\r\n"),
            9 => text.extend_from_slice(b"<DOC>\n<page>\n<"),
            10 => text.extend_from_slice(b"</doc></DOC></page>\n"),
            11 => (0..n % 20_000).for_each(|_| {
                fill(text, 57);
                text.extend_from_slice(mark.as_bytes());
            }),
            _ => text.extend_from_slice(mark.as_bytes()),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 60,
            ..ProptestConfig::with_failure_persistence(
                FileFailurePersistence::Direct("tests/proptest/shared_file.txt")
            )
        })]

        #[test]
        fn law_many_readers_cut_what_one_does(
            (format, mark) in prop::sample::select(MARKED.to_vec()),
            parts in prop::collection::vec((0u32..16, 0usize..1 << 30), 1..24),
            log in 0u32..3,
        ) {
            let mut text = Vec::new();
            parts.into_iter().for_each(|part| append(&mut text, mark, part));
            prop_assume!(!text.is_empty());
            check(format, &text, PIECE_BYTES << log);
        }
    }
}
