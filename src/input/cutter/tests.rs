use super::super::document::{self, KeptDocuments};
use super::*;
use crate::input::formats::trec::TrecParser;
use crate::input::formats::warc::WarcParser;
use proptest::prelude::*;

fn cut(format: Format, max_document: u64, files: &[&[u8]], block: usize) -> Vec<Piece> {
    cut_with(Cutter::new(format, max_document), files, block)
}

fn cut_with(mut cutter: Cutter, files: &[&[u8]], block: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (input, file) in (0u32..).zip(files) {
        cutter.begin(input);
        for mut block in file.chunks(block) {
            while !block.is_empty() {
                let buffer = cutter.buffer();
                let n = block.len().min(buffer.capacity() - buffer.len());
                buffer.extend([&block[..n]]);
                block = &block[n..];
                pieces.extend(cutter.grown(n));
                pieces.extend(std::iter::from_fn(|| cutter.grown(0)));
            }
        }
        pieces.extend(std::iter::from_fn(|| cutter.end_input()));
    }
    pieces.extend(cutter.end_split());
    pieces
}

#[test]
fn pieces_of_another_size_end_with_records_too() {
    let text = "x".repeat(1000);
    let warc = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
        text.len()
    );
    let formats = [
        (Format::Jsonl, format!("{{\"contents\": \"{text}\"}}\n")),
        (Format::Json, format!("{{\n\"contents\": \"{text}\"}}\n")),
        (Format::Csv, format!("a,\"{text}\n\"\n")),
        (Format::Trec, format!("<DOC>\n<DOCNO>a</DOCNO>\n{text}\n</DOC>\n")),
        (Format::Warc, warc),
    ];
    for (format, record) in formats {
        let file = record.repeat(3 * (1 << 20) / record.len());
        for pieces in [PIECE_BYTES / 2, PIECE_BYTES, 2 * PIECE_BYTES] {
            let cutter = Cutter::of_pieces(format, 1 << 20, pieces);
            let cut = cut_with(cutter, &[file.as_bytes()], 100_000);
            let (last, whole) = cut.split_last().unwrap();
            for piece in whole {
                // The records' lengths are equal, and a piece ends with the first behind a
                // multiple; of JSON the line end behind a record is before the next.
                let more = (piece.offset as usize + piece.bytes.len()) % pieces;
                assert!(more <= record.len(), "{format:?}: {more} behind a multiple of {pieces}");
            }
            assert!(!whole.is_empty() && last.bytes.len() <= pieces + record.len(), "{format:?}");
            let together: usize = cut.iter().map(|piece| piece.bytes.len()).sum();
            assert_eq!(together, file.len(), "{format:?}");
        }
    }
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
        assert_eq!(pieces.iter().flat_map(|p| &*p.bytes).count(), file.len());
        assert!(pieces.len() > 3);
        for p in &pieces[..pieces.len() - 1] {
            let least = PIECE_BYTES - p.offset as usize % PIECE_BYTES;
            assert!(p.bytes.len() >= least && p.bytes.ends_with(b"\n"));
            assert!(!p.bytes[least - 1..p.bytes.len() - 1].contains(&b'\n'));
        }
        let now: Vec<_> = pieces.iter().map(|p| (p.offset, p.bytes.len())).collect();
        assert_eq!(*borders.get_or_insert_with(|| now.clone()), now);
    }
}

#[test]
fn a_piece_that_begins_close_before_a_multiple_may_have_fewer_bytes_than_a_mark() {
    for (format, mark) in [(Format::Trec, "</DOC>"), (Format::Mediawiki, "</page>")] {
        for before in 1..mark.len() {
            // A block ends at the multiple.
            let mut file = vec![b'x'; 2 * PIECE_BYTES - before - mark.len()];
            file.extend_from_slice(mark.as_bytes());
            file.resize(3 * PIECE_BYTES, b'y');
            let pieces = shown(cut(format, 1 << 30, &[&file], PIECE_BYTES));
            assert_eq!(pieces.len(), 2);
            assert!(pieces == shown(cut(format, 1 << 30, &[&file], 1000)));
        }
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
                let skipped: Vec<_> = pieces.iter().flat_map(|p| p.skipped.first()).collect();
                let kept: Vec<u8> = pieces.iter().flat_map(|p| p.bytes.to_vec()).collect();
                if long <= limit {
                    assert!(skipped.is_empty());
                    assert_eq!(kept, file);
                } else {
                    assert_eq!(skipped.len(), 1, "{before} {long} {end}");
                    assert_eq!(skipped[0].offset, (before + 1 + 6) as u64);
                    let tail: &[usize] = if end { &[7] } else { &[] };
                    assert_eq!(kept, lines([before, 5].into_iter().chain(tail.iter().copied())));
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
    assert_eq!(*pieces[0].bytes, *b"onefour");
    assert_eq!(pieces[0].files, [(0, 3), (1, 3), (3, 7)]);
    assert_eq!(pieces[0].skipped.first().len(), 1);
    assert_eq!(pieces[0].skipped.first()[0].input, 2);
}

/// Parts of a stream of records, some of them broken; a number stands for this many bytes of text.
fn stream(parts: &[(usize, usize)], kinds: &[&str]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (number, &(kind, bytes)) in parts.iter().enumerate() {
        let text = format!("{number} text \n").repeat(bytes / 8);
        let record = kinds[kind % kinds.len()];
        let length = text.len();
        let record = record
            .replace("NUMBER", &number.to_string())
            .replace("LENGTH", &length.to_string())
            .replace("LESS", &(length / 2).to_string())
            .replace("MORE", &(length + 3000).to_string())
            .replace("TEXT", &text);
        stream.extend_from_slice(record.as_bytes());
    }
    stream
}

const LINES: &[&str] = &["NUMBER\tTEXT", "NUMBER\n", "TEXT\r\n"];

const TREC: &[&str] = &[
    "<DOC><DOCNO>NUMBER</DOCNO>TEXT</DOC>\n",
    "<DOC><DOCNO>NUMBER</DOCNO>TEXT</DOC>\n",
    "<doc><docno>NUMBER</docno>TEXT</doc",
    "<DOC>TEXT",
    "TEXT</DOC>",
];

const WARC: &[&str] = &[
    "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-TREC-ID: NUMBER\r\nContent-Length: LENGTH\r\n\r\nTEXT\r\n\r\n",
    "WARC/0.18\nWARC-Type: conversion\nContent-Length: LENGTH\nWARC-TREC-ID: NUMBER\n\nTEXT",
    "WARC/1.0\nWARC-Type: conversion\nWARC-TREC-ID: NUMBER\nContent-Length: LESS\n\nTEXT\n",
    "WARC/1.0\nWARC-Type: conversion\nWARC-TREC-ID: NUMBER\nContent-Length: MORE\n\nTEXT\n",
    "WARC/1.1\nWARC-Type: conversion\nWARC-TREC-ID: NUMBER\nContent-Length: 99999999\n\nTEXT\n",
    "WARC/1.0\nWARC-Type: conversion\nWARC-TREC-ID: NUMBER\n\nTEXT\n",
    "WARC/1.0\nWARC-Type: request\nContent-Length: LENGTH\n\nTEXT\n",
    "TEXT\r\n\r\n\n\n\n",
];

type Shown = (u64, Vec<u8>, bool, SkippedRecords);

fn shown(pieces: Vec<Piece>) -> Vec<Shown> {
    pieces.into_iter().map(|p| (p.offset, p.bytes.to_vec(), p.ends_input, p.skipped)).collect()
}

/// Documents, and what is skipped, of all pieces; places are those in the stream.
fn parsed<'a>(
    format: Format,
    pieces: impl IntoIterator<Item = (u64, &'a [u8], bool)>,
) -> KeptDocuments {
    let mut all = KeptDocuments::default();
    for (offset, bytes, ends_input) in pieces {
        let mut kept = KeptDocuments::default();
        let piece = document::PieceView { bytes, offset, line: 1 };
        match format {
            Format::Warc => _ = WarcParser::new(1 << 30).parse(piece, ends_input, &mut kept),
            _ => TrecParser::default().parse(piece, &mut kept),
        }
        for (name, text, place, length, _) in kept.documents {
            all.documents.push((name, text, place + offset as usize, length, 0));
        }
        all.skipped.extend(
            kept.skipped
                .into_iter()
                .map(|(at, line, n, skip)| (at + offset as usize, line, n, skip)),
        );
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn law_pieces_depend_on_bytes_alone(
        parts in proptest::collection::vec((0usize..16, 0usize..400_000), 0..20),
        format in proptest::sample::select(vec![Format::Tsv, Format::Trec, Format::Warc]),
        block in 1000usize..3_000_000,
        max_document in proptest::sample::select(vec![150_000u64, 1_200_000, 1 << 30]),
    ) {
        let kinds = match format {
            Format::Trec => TREC,
            Format::Warc => WARC,
            _ => LINES,
        };
        let stream = stream(&parts, kinds);
        let pieces = shown(cut(format, max_document, &[&stream], block));
        prop_assert!(pieces == shown(cut(format, max_document, &[&stream], 100_000)));
        if max_document < stream.len() as u64 {
            return Ok(());
        }
        let whole: Vec<u8> = pieces.iter().flat_map(|(_, bytes, ..)| bytes).copied().collect();
        prop_assert!(whole == stream);
        for (offset, bytes, ends_input, _) in &pieces {
            let multiple = |at: u64| at / PIECE_BYTES as u64;
            prop_assert!(*ends_input || multiple(offset + bytes.len() as u64) > multiple(*offset));
        }
        if format != Format::Tsv {
            let cut = parsed(format, pieces.iter().map(|p| (p.0, &*p.1, p.2)));
            let whole = parsed(format, [(0, &*stream, true)]);
            prop_assert!(cut.documents == whole.documents);
            // A first piece without a document says so, though others may follow.
            let notes = |kept: &KeptDocuments| {
                let some = kept.skipped.iter().filter(|s| s.3 != Skip::NoDoc);
                some.copied().collect::<Vec<_>>()
            };
            prop_assert_eq!(notes(&cut), notes(&whole));
        }
    }
}

#[test]
fn small_blocks_make_the_same_pieces() {
    let kinds = [0, 1, 2, 3, 5, 7, 6, 4].map(|kind| (kind, 100));
    let stream = stream(&kinds, WARC);
    let expected = shown(cut(Format::Warc, 1 << 20, &[&stream], 1 << 20));
    assert_eq!(shown(cut(Format::Warc, 1 << 20, &[&stream], 1)), expected);
}

#[test]
fn a_warc_record_too_long_is_dropped_wherever_it_stands() {
    let record = |kind: usize, bytes| stream(&[(kind, bytes)], WARC);
    let limit = 2 << 20;
    let long = 7 << 20;
    for before in [0, 100, PIECE_BYTES, PIECE_BYTES * 3 / 2] {
        for kind in [0, 2, 4, 5] {
            let first = record(0, before);
            let last = record(1, 9);
            let file = [&first[..], &record(kind, long), &last].concat();
            for block in [70_000, 10 << 20] {
                let pieces = cut(Format::Warc, limit, &[&file], block);
                let kept: Vec<u8> = pieces.iter().flat_map(|p| p.bytes.to_vec()).collect();
                assert!(kept == [&first[..], &last].concat(), "{before} {kind} {block}");
                let skipped: Vec<_> = pieces.iter().flat_map(|p| p.skipped.first()).collect();
                assert_eq!(skipped.len(), 1);
                assert_eq!(skipped[0].offset, first.len() as u64);
                assert_eq!(skipped[0].reason, "document too long");
                let end = pieces.last().unwrap();
                assert_eq!(end.offset + end.bytes.len() as u64, file.len() as u64);
            }
        }
    }
}

#[test]
fn empty_files_that_begin_a_piece_are_kept() {
    let pieces = cut(Format::Text, 2000, &[b"", b"", b"three"], 700);
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].files, [(0, 0), (1, 0), (2, 5)]);
    let pieces = cut(Format::Text, 2000, &[b"", b""], 700);
    assert_eq!(pieces[0].files, [(0, 0), (1, 0)]);
}
