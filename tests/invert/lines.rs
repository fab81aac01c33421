//! Does a device find the names and texts in lines of JSON that a parser finds, and does the host parse what a device cannot?

use super::machine::{Emulated, compiled};
use super::{SHAPES, compare, inverter_of, keyed, put, read, words};
use crate::emulation::Random;
use crate::invert::emulated;
use millrace::dictionary::lines::{LONGEST_NAME, LineShape, Lines};
use millrace::dictionary::parsed::Regroup;
use millrace::dictionary::text_buffers::TextBuffer;
use millrace::dictionary::texts::Texts;
use millrace::gpu::invert::Tuning;
use millrace::gpu::invert::machine::{Machine, Reading};
use millrace::gpu::invert::steps::lines::{count_lines, read_lines, write_lines};
use millrace::gpu::invert::steps::{self, Array, COUNTERS, IRREGULAR_LINES, SUM};
use millrace::gpu::invert::text::{PieceText, TILE_BYTES};
use millrace::gpu::invert::twin::{self, Run};
use millrace::input::document::{Document, Name, Piece, Sink, Skip};
use millrace::input::jsonl::JsonlParser;
use millrace::input::parser::parse_lines;
use millrace::text::analysis::Analysis;
use millrace::text::html::Page;
use millrace::text::tokenizer::Tokenizer;
use std::sync::Arc;

/// Shapes with names in quotes and of digits, and other fields around.
const AROUNDS: [[&str; 3]; 4] = [
    ["{\"id\": \"", "\", \"contents\": \"", "}\n"],
    ["{\"id\":", ",\"text\":\"", "}\r\n"],
    ["{\"lang\":[0],\"_id\":\"", "\",\"a\":null,\"body\":\"", ",\"z\":{\"b\":-1e5}}\n"],
    ["{\"docno\":\"", "\"\t,\"title\":\"", " }\n"],
];

fn shape(number: usize) -> LineShape {
    LineShape::of(AROUNDS[number].map(str::as_bytes)).unwrap()
}

/// Characters of JSON strings, among them escapes of all kinds, and, if they are `wrong`, what is none.
fn string(random: &mut Random, parts: u32, wrong: bool) -> Vec<u8> {
    const PARTS: [&[u8]; 24] = [
        b"mill ",
        b"Running, ",
        b"a",
        b" ",
        b"the river ",
        b"\xc3\xa9",
        b"\xe5\x8c\x97",
        b"\xff",
        b"\t",
        b"\r",
        b"\x01",
        b"\\\"",
        b"\\\\",
        b"\\n",
        b"\\/",
        b"\\b\\f\\r\\t",
        b"\\u0041",
        b"\\u00e9",
        b"\\u5317",
        b"\\ud83d\\uDE00",
        b"\\ud83d",
        b"\\uDE00",
        b"\\\\ud83d\\ude00",
        b"uD83D",
    ];
    const WRONG: [&[u8]; 7] = [b"\\x", b"\\u12", b"\\u00g1", b"\\", b"\"", b"\"}", b"\\u123"];
    let part = |_| match random.below(40) {
        0 if wrong => WRONG[random.below(7) as usize],
        n if n < 24 => PARTS[n as usize],
        _ => PARTS[random.below(5) as usize],
    };
    Vec::from_iter((0..parts).map(part)).concat()
}

/// A line of a shape, or, if some are `wrong`, now and then another one.
fn line(random: &mut Random, number: usize, wrong: bool) -> Vec<u8> {
    let arounds = AROUNDS[number].map(|around| around.as_bytes().to_vec());
    let [before, between, mut behind] = arounds;
    let mut name = match random.below(30) {
        0 => "9".repeat(LONGEST_NAME).into_bytes(),
        n => (1..=n * n / 20 + 1).map(|n| b"123456789"[(n % 9) as usize]).collect(),
    };
    if !shape(number).has_numbers() && random.below(3) == 0 {
        name.extend(b"-\xc3\xa9 \xff");
        name.truncate(LONGEST_NAME);
    }
    let parts = random.below(60) * random.below(2) + random.below(5);
    let text = string(random, parts, wrong);
    if wrong {
        match random.below(60) {
            0 => name.push(b'9'),
            1 => name.insert(0, b'0'),
            2 => name.extend(b"\\u0041"),
            3 => name.clear(),
            4 => behind.insert(0, b' '),
            5 => _ = behind.remove(0),
            6 => return b"\n".to_vec(),
            7 => return b"  \r\n".to_vec(),
            8 => return [&before[..], b"a\n"].concat(),
            9 => name.push(b'x'),
            _ => {}
        }
    }
    [before, name, between, text, b"\"".to_vec(), behind].concat()
}

fn lines_of(number: usize) -> Lines {
    Lines { shape: shape(number), longest: 4000, input: 0, offset: 0, was_open: false }
}

/// Lines of pieces of several shapes.
fn raw(random: &mut Random, pieces: u32, lines: u32, wrong: bool) -> Vec<(usize, Vec<Vec<u8>>)> {
    let piece = |_| {
        let number = random.below(AROUNDS.len() as u32) as usize;
        let count = 1 + random.below(lines);
        (number, (0..count).map(|_| line(random, number, wrong)).collect())
    };
    (0..pieces).map(piece).collect()
}

fn get<M: Machine>(machine: &mut M, array: Array, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    machine.read(&mut [Reading { array, at: 0, to: &mut read, is_pinned: false }]).unwrap();
    read
}

fn numbers<M: Machine>(machine: &mut M, array: Array, len: usize) -> Vec<u32> {
    let bytes = get(machine, array, 4 * len);
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The kernels against their twin.
pub(super) fn lines_are_read<M: Machine>(mut machine: M, seed: u64) {
    let mut random = Random(seed);
    for (pieces, lines, wrong) in [(1, 1, false), (3, 40, false), (2, 30, true), (40, 90, false)] {
        let pieces = raw(&mut random, pieces, lines, wrong);
        let (mut bytes, mut places, mut arounds) = (Vec::new(), vec![0], Vec::new());
        let (mut ends, mut expected, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (number, lines) in &pieces {
            starts.push(expected.len() as u32);
            arounds.extend(shape(*number).words());
            for line in lines {
                // A line feed within it ends it.
                for line in line.split_inclusive(|&byte| byte == b'\n') {
                    bytes.extend_from_slice(line);
                    ends.push(bytes.len() as u32);
                    expected.push(
                        twin::line(&shape(*number), 4000, line)
                            .map(|(name, text)| (line[name].to_vec(), text)),
                    );
                }
            }
            places.push(bytes.len() as u32);
        }
        let padded = bytes.len().next_multiple_of(TILE_BYTES);
        bytes.resize(padded, b' ');
        let count = expected.len();
        put(&mut machine, Array::Raw, &bytes);
        put(&mut machine, Array::PiecePlaces, &words(&places));
        put(&mut machine, Array::Arounds, &words(&arounds));
        put(&mut machine, Array::Counters, &[0; 4 * COUNTERS]);
        let tiles = steps::text_tiles(padded);
        for (array, len) in [
            (Array::Tiles, tiles as usize),
            (Array::Sums, 64),
            (Array::LineEnds, count),
            (Array::LineTexts, count),
            (Array::LineNames, count),
            (Array::NamePlaces, count + 1),
            (Array::DocumentStarts, count + 1),
            (Array::NameLengths, count.div_ceil(4)),
            (Array::PieceStarts, pieces.len()),
        ] {
            put(&mut machine, array, &vec![0xa5; 4 * len]);
        }
        machine.run(&count_lines(tiles)).unwrap();
        assert_eq!(numbers(&mut machine, Array::Counters, COUNTERS)[SUM] as usize, count);
        machine.run(&read_lines((tiles, count as u32), pieces.len() as u32, 4000)).unwrap();
        let irregular = expected.iter().filter(|line| line.is_none()).count();
        let counters = numbers(&mut machine, Array::Counters, COUNTERS);
        assert_eq!(counters[IRREGULAR_LINES] as usize, irregular);
        assert_eq!(irregular > 0, wrong);
        assert_eq!(numbers(&mut machine, Array::LineEnds, count), ends);
        assert_eq!(numbers(&mut machine, Array::PieceStarts, pieces.len()), starts);
        if wrong {
            continue;
        }
        let (mut names, mut texts, mut text_starts) = (Vec::new(), Vec::new(), vec![0]);
        let lengths = get(&mut machine, Array::NameLengths, count);
        for ((name, text), length) in expected.into_iter().flatten().zip(lengths) {
            assert_eq!(name.len(), usize::from(length));
            names.extend(name);
            texts.extend(text);
            texts.push(b' ');
            text_starts.push(texts.len() as u32);
        }
        assert_eq!(numbers(&mut machine, Array::DocumentStarts, count + 1), text_starts);
        put(&mut machine, Array::Names, &vec![0; names.len()]);
        put(&mut machine, Array::Text, &vec![0; texts.len()]);
        machine.run(&[write_lines(count as u32)]).unwrap();
        assert!(get(&mut machine, Array::Names, names.len()) == names, "names differ");
        assert!(get(&mut machine, Array::Text, texts.len()) == texts, "texts differ");
    }
}

#[test]
fn twin_emulated_lines_are_read() {
    let Some(emulator) = compiled() else { return };
    for seed in 0..3 {
        lines_are_read(Emulated::new(emulator.clone(), seed), seed + 3);
    }
}

/// Keeps names and texts, or nothing of what is passed over.
#[derive(Default)]
struct Kept(Vec<Option<(String, Vec<u8>)>>);

impl Sink for Kept {
    fn page(&mut self, _page: &Page<'_>) {}

    fn document(&mut self, document: Document<'_>) {
        let Name::Given(name) = document.name else { return self.0.push(None) };
        self.0.push(Some((name.to_owned(), document.text.to_vec())));
    }

    fn skipped(&mut self, _offset: usize, _line: u64, _bytes: usize, _reason: Skip) {
        self.0.push(None);
    }
}

/// Whatever the twin finds a parser that knows no shape finds, too, and shapes are found in lines.
#[test]
fn twin_lines_are_those_of_a_parser() {
    let (mut random, mut regular) = (Random(23), 0);
    for round in 0..20_000 {
        let number = round % AROUNDS.len();
        let line = line(&mut random, number, true);
        if line.iter().filter(|&&byte| byte == b'\n').count() > 1 {
            continue;
        }
        let mut kept = Kept::default();
        JsonlParser::new().parse(Piece::whole(&line), &mut kept);
        if let Some((name, text)) = twin::line(&shape(number), u32::MAX, &line) {
            let name = String::from_utf8_lossy(&line[name.clone()]).into_owned();
            assert_eq!(kept.0.len(), 1);
            let (found, of) = kept.0[0].as_ref().expect("it is a document");
            // Each byte that is no UTF-8 becomes one character, or several become one, as the parser has it.
            assert!(*of == text && (*found == name || found.contains('\u{fffd}')), "{line:?}");
            assert_eq!(JsonlParser::new().line_shape(&line), Some(shape(number)));
            regular += 1;
        }
    }
    assert!((5_000..19_000).contains(&regular), "{regular}");
}

/// A piece of lines, as it goes to a device.
fn piece(number: usize, lines: &[Vec<u8>]) -> PieceText {
    let mut texts = Texts::new(Arc::default());
    let mut bytes = TextBuffer::default();
    bytes.extend([&lines.concat()]);
    texts.lines(bytes, lines_of(number));
    texts.take()
}

/// The texts that a parser finds in pieces of lines, and the others.
fn parsed(pieces: &[PieceText]) -> Vec<PieceText> {
    let parse = |piece: &PieceText| match &piece.lines {
        Some(lines) => parse_lines(piece, lines, (u64::MAX, &Arc::default())).0,
        None => {
            let mut texts = Texts::new(Arc::default());
            let ends = piece.starts.iter().skip(1).copied().chain([piece.bytes.len() as u32]);
            for (&start, end) in piece.starts.iter().zip(ends) {
                texts.document(&piece.bytes[start as usize..end as usize - 1]);
            }
            texts.take()
        }
    };
    pieces.iter().map(parse).collect()
}

/// Batches of lines, of irregular ones, and of lines and texts.
#[test]
fn batches_of_lines_are_inverted() {
    let Some(emulator) = compiled() else { return };
    for (seed, bits) in [(0, 64), (1, 5), (2, 64)] {
        let tokenizer = Tokenizer::ALL[seed as usize % 2];
        let analysis = Analysis { tokenizer, ..Analysis::default() };
        let tuning = Tuning { fingerprint_bits: bits, probes: 2, ..Tuning::default() };
        let machines = emulated(&emulator, seed, 1 + seed % 2);
        let mut inverter = inverter_of(machines, tokenizer, 2).tuned(tuning);
        let (mut random, mut run, mut lists, mut first) = (Random(seed), Run::new(), Vec::new(), 0);
        let mut parsed_again = 0;
        for batch in 0..4 {
            let lines = raw(&mut random, 6, 30, batch == 1);
            let mut pieces: Vec<PieceText> =
                lines.iter().map(|(number, lines)| piece(*number, lines)).collect();
            if batch == 2 {
                pieces.extend(super::pieces(&mut random, SHAPES[1]));
            }
            if batch == 1 || batch == 2 {
                parsed_again += 6;
            }
            let pieces = Arc::new(pieces);
            let texts = parsed(&pieces);
            let expected = twin::invert(&analysis, &texts, first, &mut run);
            let text = (batch % 2 == 0).then(|| {
                let mut bytes =
                    pieces.iter().map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>().concat();
                bytes.resize(bytes.len().next_multiple_of(TILE_BYTES), b' ');
                inverter.uploader(0).unwrap().upload(&[&bytes], None).unwrap()
            });
            inverter.find(0, pieces.clone(), text);
            let counted = inverter.count(&pieces, first).unwrap();
            compare(&counted, &expected);
            for ((counted, piece), text) in counted.iter().zip(&*pieces).zip(&texts) {
                let documents = counted.documents.as_ref();
                assert_eq!(documents.is_some(), piece.lines.is_some());
                if let Some(documents) = documents {
                    assert_eq!(documents.documents(), text.documents());
                    assert_eq!(documents.are_lines(), batch == 0 || batch == 3);
                }
            }
            first += counted.iter().map(|piece| piece.counts.documents).sum::<u32>();
            lists.extend(inverter.lists().unwrap());
        }
        assert_eq!(read(&inverter.end_run().unwrap(), &lists), keyed(&run));
        let work = inverter.work();
        assert!(work.lines > 50 && work.parsed_again == parsed_again, "{work:?}");
        assert!(bits == 64 || work.odd > 100, "{work:?}");
    }
}
