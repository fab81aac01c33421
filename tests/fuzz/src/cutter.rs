//! Pieces do not depend on the blocks in which a stream comes, nor on how many read it, and they
//! make the stream again.

use crate::fuzzing::take::Take;
use millrace::index::documents::pieces::Skipped;
use millrace::input::Format;
use millrace::input::cutter::Cutter;
use millrace::input::hash::InputHash;
use millrace::input::piece::Piece;
use millrace::input::streams::shared_file::SharedFile;
use millrace::order::PIECE_BYTES;
use std::io::Write as _;

/// The files of an input have at most this many bytes in all.
const MOST_BYTES: usize = 8 << 20;

/// One step of an input: a record that ends with a mark, or a part of one.
fn step(take: &mut Take<'_>, file: &mut Vec<u8>, mark: &[u8]) {
    let kind = take.u8();
    let small = usize::from(take.u16());
    let length = match kind % 4 {
        0 => usize::from(take.u8()),
        1 => small,
        2 => PIECE_BYTES / 2 + small,
        // About a piece from where the file is now.
        _ => (PIECE_BYTES + 4).saturating_sub(file.len() % PIECE_BYTES + small % 16),
    };
    let byte = if kind & 4 == 0 { b'x' } else { b'y' };
    file.resize((file.len() + length).min(MOST_BYTES), byte);
    if kind & 16 != 0 {
        file.extend_from_slice(&mark[..usize::from(kind >> 5) % mark.len()]);
    }
    if kind & 8 == 0 {
        file.extend_from_slice(mark);
    }
}

/// Cuts files that come in blocks whose sizes are `blocks`, again and again.
fn cut(format: Format, max_document: u64, files: &[Vec<u8>], blocks: &[usize]) -> Vec<Piece> {
    let mut cutter = Cutter::new(format, max_document);
    let mut pieces = Vec::new();
    let mut blocks = blocks.iter().cycle();
    for (input, file) in (0u32..).zip(files) {
        cutter.begin(input);
        let mut rest = &file[..];
        while !rest.is_empty() {
            let most = blocks.next().map_or(1, |block| (*block).max(1));
            let (mut block, behind) = rest.split_at(most.min(rest.len()));
            rest = behind;
            while !block.is_empty() {
                let buffer = cutter.buffer();
                let room = buffer.capacity() - buffer.len();
                assert!(room > 0);
                let (now, later) = block.split_at(room.min(block.len()));
                buffer.extend([now]);
                block = later;
                let mut grown = now.len();
                while let Some(piece) = cutter.grown(grown) {
                    pieces.push(piece);
                    grown = 0;
                }
            }
        }
        while let Some(piece) = cutter.end_input() {
            pieces.push(piece);
        }
    }
    pieces.extend(cutter.end_split());
    pieces
}

/// Cuts a file of which many read a part each, and returns its hash.
fn cut_shared(format: Format, max_document: u64, input: u32, file: &[u8]) -> (Vec<Piece>, u64) {
    let mut there = tempfile::tempfile().expect("there is room");
    there.write_all(file).expect("there is room");
    let shared = SharedFile::new(input, format, there, PIECE_BYTES);
    let shared = shared.expect("it can be read").expect("its records end with marks");
    let mut cutter = Cutter::new(Format::Jsonl, max_document);
    let (mut pieces, mut hash) = (Vec::new(), None);
    // Not in their order.
    for stretch in (0..shared.stretches()).rev() {
        let mut reading = shared.begin(stretch, &mut cutter).expect("it can be read");
        let mut own = Vec::new();
        let mut most_held = PIECE_BYTES;
        while !shared
            .read(&mut reading, &mut cutter, most_held, |piece| own.push(piece))
            .expect("it can be read")
        {
            most_held *= 2;
        }
        hash = shared.end(reading).expect("it is as it was");
        own.append(&mut pieces);
        pieces = own;
    }
    (pieces, InputHash::of_chunks(&hash.expect("all is read")))
}

/// The parts of a stream that are taken and those that are dropped are the whole.
fn check_whole(file: &[u8], mark: &[u8], input: u32, pieces: &[Piece], skipped: &[&Skipped]) {
    let mut at = 0;
    let mut dropped = skipped.iter().filter(|skipped| skipped.input == input).peekable();
    for piece in pieces.iter().filter(|piece| piece.input == input && !piece.bytes.is_empty()) {
        while dropped.next_if(|skipped| skipped.offset == at as u64).is_some() {
            at += record_bytes(&file[at..], mark);
        }
        assert_eq!(piece.offset, at as u64);
        assert!(file[at..].starts_with(&piece.bytes));
        at += piece.bytes.len();
        assert!(piece.bytes.ends_with(mark) || at == file.len());
    }
    while dropped.next_if(|skipped| skipped.offset == at as u64).is_some() {
        at += record_bytes(&file[at..], mark);
    }
    assert_eq!((at, dropped.next()), (file.len(), None));
}

fn record_bytes(rest: &[u8], mark: &[u8]) -> usize {
    let end = rest.windows(mark.len()).position(|bytes| bytes == mark);
    end.map_or(rest.len(), |end| end + mark.len())
}

/// Many readers cut what one does.
fn check_shared(format: Format, max_document: u64, (input, file): (u32, &[u8]), one: &[Piece]) {
    let (many, hash) = cut_shared(format, max_document, input, file);
    let mut whole = InputHash::default();
    whole.update(file);
    assert_eq!(hash, whole.digest());
    let own = |pieces: &[Piece]| {
        let own = pieces.iter().filter(|piece| piece.input == input && !piece.bytes.is_empty());
        own.map(|piece| (piece.offset, piece.bytes.to_vec())).collect::<Vec<_>>()
    };
    assert!(own(one) == own(&many));
    let skipped = |pieces: &[Piece]| {
        let skipped = pieces.iter().flat_map(|piece| piece.skipped.first().to_vec());
        skipped.filter(|skipped| skipped.input == input).collect::<Vec<_>>()
    };
    assert_eq!(skipped(one), skipped(&many));
}

/// What is asked of an input.
pub fn cutter(data: &[u8]) {
    let mut take = Take(data);
    let flags = take.u8();
    let (format, mark): (Format, &[u8]) = match (flags & 1, flags >> 6) {
        (0, 1) => (Format::Trec, b"</DOC>"),
        (0, 2) => (Format::Mediawiki, b"</page>"),
        (0, _) => (Format::Jsonl, b"\n"),
        _ => (Format::Text, b"\n"),
    };
    let max_document = match flags >> 1 & 3 {
        0 => u64::from(take.u16()) + 1,
        1 => PIECE_BYTES as u64 - 2 + u64::from(take.u8() % 5),
        2 => 2 * PIECE_BYTES as u64 + u64::from(take.u16()),
        _ => 64 << 20,
    };
    let blocks: Vec<usize> = (0..=flags >> 3 & 7)
        .map(|_| (usize::from(take.u16()) << (take.u8() % 7)).max(2048))
        .collect();
    let mut files = vec![Vec::new()];
    while !take.is_empty() {
        if files.iter().map(Vec::len).sum::<usize>() > MOST_BYTES {
            break;
        }
        if take.u8() % 16 == 15 {
            files.push(Vec::new());
        }
        if let Some(file) = files.last_mut() {
            step(&mut take, file, mark);
        }
    }

    let plain = cut(format, max_document, &files, &[256 << 10]);
    let other = cut(format, max_document, &files, &blocks);
    assert_eq!(plain.len(), other.len());
    for (a, b) in plain.iter().zip(&other) {
        assert_eq!((a.input, a.offset, &a.files), (b.input, b.offset, &b.files));
        assert!(*a.bytes == *b.bytes);
    }
    let skipped: Vec<_> = plain.iter().flat_map(|piece| piece.skipped.first()).collect();
    let other_skipped: Vec<_> = other.iter().flat_map(|piece| piece.skipped.first()).collect();
    assert_eq!(skipped, other_skipped);

    if format != Format::Text {
        for (input, file) in (0u32..).zip(&files) {
            check_whole(file, mark, input, &plain, &skipped);
            if !file.is_empty() {
                check_shared(format, max_document, (input, file), &plain);
            }
        }
    } else {
        let mut kept = plain.iter().flat_map(|piece| {
            let starts = std::iter::once(0).chain(piece.files.iter().map(|&(_, end)| end));
            starts.zip(&piece.files).map(|(start, &(input, end))| (input, &piece.bytes[start..end]))
        });
        for (input, file) in (0u32..).zip(&files) {
            if file.len() as u64 <= max_document {
                assert!(kept.next() == Some((input, &file[..])));
            }
        }
        assert_eq!(kept.next(), None);
    }
}
