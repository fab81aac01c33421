//! A device finds the names and texts in lines of JSON that a parser finds, and the host parses
//! what a device cannot.

use super::machine::{Emulated, compiled};
use super::{SHAPES, compare, inverter_of, keyed, put, read, words};
use crate::inside_tests::emulation::Random;
use millrace::dictionary::device::lines::{
    DeviceLines, LONGEST_NAME, LineShape, LineValue, ValueRole,
};
use millrace::dictionary::device::text_buffers::TextBuffer;
use millrace::dictionary::device::texts::TextGatherer;
use millrace::dictionary::parsed::Regroup;
use millrace::gpu::invert::InvertTuning;
use millrace::gpu::invert::machine::{ArrayReading, InvertMachine};
use millrace::gpu::invert::steps::lines::{
    LinesOf, count_lines, end_lines, read_lines, write_lines,
};
use millrace::gpu::invert::steps::{self, COUNTERS, InvertArray, SUM};
use millrace::gpu::invert::text::{PieceText, TILE_BYTES};
use millrace::gpu::invert::twin::{self, TwinRun};
use millrace::input::document::{Document, DocumentSink, Name, PieceView, Skip};
use millrace::input::formats::fields::Fields;
use millrace::input::formats::jsonl::JsonlParser;
use millrace::input::parser::parse_lines;
use millrace::text::analysis::Analysis;
use millrace::text::html::Page;
use millrace::text::tokenizer::Tokenizer;
use std::sync::Arc;

const NAMED: LineValue = LineValue { role: ValueRole::Name, is_number: false };
const NUMBERED: LineValue = LineValue { role: ValueRole::Name, is_number: true };
const TEXT: LineValue = LineValue { role: ValueRole::Text, is_number: false };
const OTHER: LineValue = LineValue { role: ValueRole::Other, is_number: false };
const NUMBER: LineValue = LineValue { role: ValueRole::Other, is_number: true };

/// Values, each behind its bytes, and what is behind all.
type Template = (&'static [(&'static str, LineValue)], &'static str);

/// Shapes with names in quotes and of digits, one text and several, and other fields around.
const TEMPLATES: [Template; 8] = [
    (&[("{\"id\": \"", NAMED), ("\", \"contents\": \"", TEXT)], "\"}\n"),
    (&[("{\"id\":", NUMBERED), (",\"text\":\"", TEXT)], "\"}\r\n"),
    (
        &[("{\"lang\":[", NUMBER), ("],\"_id\":\"", NAMED), ("\",\"a\":null,\"body\":\"", TEXT)],
        "\",\"z\":{\"b\":-1e5}}\n",
    ),
    (&[("{\"docno\":\"", NAMED), ("\"\t,\"title\":\"", TEXT)], "\" }\n"),
    (
        &[
            ("{\"_id\": \"", NAMED),
            ("\", \"title\": \"", TEXT),
            ("\", \"text\": \"", TEXT),
            ("\", \"metadata\": {\"url\": \"", OTHER),
            ("\", \"pubmed_id\": \"", OTHER),
        ],
        "\"}}\n",
    ),
    (
        &[
            ("{\"url\":\"", TEXT),
            ("\",\"docid\":\"", OTHER),
            ("\",\"year\":", NUMBER),
            (",\"tags\":[\"", OTHER),
            ("\"],\"pid\":", NUMBERED),
            (" , \"a key that is longer than others are\" : true, \"id\":{}, \"body\":\"", TEXT),
            ("\",\"headings\":\"", TEXT),
        ],
        "\",\"docno\":null}\n",
    ),
    (&[("{\"text\":\"", TEXT), ("\",\"id\":\"\",\"_id\":\"", NAMED)], "\"}\n"),
    (&[("{\"timestamp\":\"", OTHER), ("\",\"id\":null,\"text\":\"", TEXT)], "\"}\n"),
];

fn shape(number: usize) -> LineShape {
    let (values, behind) = TEMPLATES[number];
    let values: Vec<_> = values.iter().map(|(before, value)| (before.as_bytes(), *value)).collect();
    LineShape::of(&values, behind.as_bytes()).unwrap()
}

/// Characters of JSON strings, among them escapes of all kinds, and, if they are `wrong`, what is
/// none.
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

/// A number that a device reads, or, if some are `wrong`, now and then none.
fn number(random: &mut Random, wrong: bool) -> Vec<u8> {
    const NUMBERS: [&str; 9] =
        ["0", "7", "12", "1984", "-3", "-0", "12.5", "-0.25", "123456789012345678.012345678901"];
    const WRONG: [&str; 8] =
        ["", "-", "01", "1.", ".5", "1e5", "1-1", "123456789012345678901234567890.1"];
    let number = match random.below(60) {
        0 if wrong => WRONG[random.below(8) as usize],
        n => NUMBERS[(n % 9) as usize],
    };
    number.into()
}

fn name(random: &mut Random, wrong: bool) -> Vec<u8> {
    let mut name = match random.below(30) {
        0 => "9".repeat(LONGEST_NAME).into_bytes(),
        n => (1..=n * n / 20 + 1).map(|n| b"123456789"[(n % 9) as usize]).collect(),
    };
    if random.below(3) == 0 {
        name.extend(b"-\xc3\xa9 \xff");
        name.truncate(LONGEST_NAME);
    }
    match random.below(60) {
        0 if wrong => name.resize(LONGEST_NAME + 1, b'x'),
        1 if wrong => name.extend(b"\\u0041"),
        2 if wrong => name.clear(),
        _ => {}
    }
    name
}

/// A line of a shape, or, if some are `wrong`, now and then another one.
fn line(random: &mut Random, of: usize, wrong: bool) -> Vec<u8> {
    let (values, behind) = TEMPLATES[of];
    let mut parts = Vec::new();
    for (before, value) in values {
        parts.push(before.as_bytes().to_vec());
        parts.push(match value {
            LineValue { is_number: true, .. } => number(random, wrong),
            LineValue { role: ValueRole::Name, .. } => name(random, wrong),
            _ => {
                let parts = random.below(60) * random.below(2) + random.below(5);
                string(random, parts, wrong)
            }
        });
    }
    parts.push(behind.as_bytes().to_vec());
    if wrong {
        let part = 2 * random.below(values.len() as u32 + 1) as usize;
        match random.below(60) {
            0 => parts[part].insert(0, b' '),
            1 => _ = parts[part].remove(0),
            2 => return b"\n".to_vec(),
            3 => return b"  \r\n".to_vec(),
            4 => return [&parts[0][..], b"a\n"].concat(),
            5 => parts[part].insert(1, b'x'),
            _ => {}
        }
    }
    parts.concat()
}

fn lines_of(number: usize) -> DeviceLines {
    let shape = shape(number);
    DeviceLines { shape, longest: 4000, input: 0, reading: 0, offset: 0, was_open: false }
}

/// Lines of pieces of several shapes.
fn raw(random: &mut Random, pieces: u32, lines: u32, wrong: bool) -> Vec<(usize, Vec<Vec<u8>>)> {
    let piece = |_| {
        let number = random.below(TEMPLATES.len() as u32) as usize;
        let count = 1 + random.below(lines);
        (number, (0..count).map(|_| line(random, number, wrong)).collect())
    };
    (0..pieces).map(piece).collect()
}

fn get<M: InvertMachine>(machine: &mut M, array: InvertArray, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    machine.read(&mut [ArrayReading { array, at: 0, to: &mut read, is_pinned: false }]).unwrap();
    read
}

fn numbers<M: InvertMachine>(machine: &mut M, array: InvertArray, len: usize) -> Vec<u32> {
    let bytes = get(machine, array, 4 * len);
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The kernels against their twin.
pub(super) fn lines_are_read<M: InvertMachine>(mut machine: M, seed: u64) {
    let mut random = Random(seed);
    for (pieces, lines, wrong) in [(1, 1, false), (3, 40, false), (2, 30, true), (40, 90, false)] {
        let pieces = raw(&mut random, pieces, lines, wrong);
        let (mut bytes, mut places, mut shapes) = (Vec::new(), vec![0], Vec::new());
        let (mut ends, mut expected, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (number, lines) in &pieces {
            starts.push(expected.len() as u32);
            shapes.extend(shape(*number).words());
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
        put(&mut machine, InvertArray::Raw, &bytes);
        put(&mut machine, InvertArray::PiecePlaces, &words(&places));
        put(&mut machine, InvertArray::Shapes, &words(&shapes));
        put(&mut machine, InvertArray::Counters, &[0; 4 * COUNTERS]);
        put(&mut machine, InvertArray::OddPieces, &vec![0; 4 * pieces.len()]);
        let tiles = steps::text_tiles(padded);
        for (array, len) in [
            (InvertArray::Tiles, tiles as usize),
            (InvertArray::Sums, 64),
            (InvertArray::LineEnds, count),
            (InvertArray::LineTexts, count),
            (InvertArray::LineNames, count),
            (InvertArray::NamePlaces, count + 1),
            (InvertArray::DocumentStarts, count + 1),
            (InvertArray::NameLengths, count.div_ceil(4)),
            (InvertArray::PieceStarts, pieces.len()),
        ] {
            put(&mut machine, array, &vec![0xa5; 4 * len]);
        }
        machine.run(&count_lines(tiles)).unwrap();
        assert_eq!(numbers(&mut machine, InvertArray::Counters, COUNTERS)[SUM] as usize, count);
        let are_alike = pieces.iter().all(|(number, _)| *number == pieces[0].0);
        let lines =
            LinesOf { lines: count as u32, pieces: pieces.len() as u32, are_alike, longest: 4000 };
        machine.run(&[end_lines(tiles)]).unwrap();
        machine.run(&read_lines(lines)).unwrap();
        assert_eq!(numbers(&mut machine, InvertArray::LineEnds, count), ends);
        assert_eq!(numbers(&mut machine, InvertArray::PieceStarts, pieces.len()), starts);
        let ends = starts.iter().skip(1).copied().chain([count as u32]);
        let is_odd = |(start, end): (&u32, u32)| {
            expected[*start as usize..end as usize].iter().any(Option::is_none)
        };
        let odd: Vec<bool> = starts.iter().zip(ends).map(is_odd).collect();
        let found = numbers(&mut machine, InvertArray::OddPieces, pieces.len());
        assert!(found.iter().map(|&odd| odd != 0).eq(odd.iter().copied()), "{found:?} {odd:?}");
        assert_eq!(odd.contains(&true), wrong);
        if wrong {
            // The host reads these, and nothing is written before.
            continue;
        }
        let (mut names, mut texts, mut text_starts) = (Vec::new(), Vec::new(), vec![0]);
        let lengths = get(&mut machine, InvertArray::NameLengths, count);
        for ((name, text), length) in expected.into_iter().flatten().zip(lengths) {
            assert_eq!(name.len(), usize::from(length));
            names.extend(name);
            texts.extend(text);
            texts.push(b' ');
            text_starts.push(texts.len() as u32);
        }
        assert_eq!(numbers(&mut machine, InvertArray::DocumentStarts, count + 1), text_starts);
        put(&mut machine, InvertArray::Names, &vec![0; names.len()]);
        put(&mut machine, InvertArray::Text, &vec![0; texts.len()]);
        machine.run(&[write_lines(lines)]).unwrap();
        assert!(get(&mut machine, InvertArray::Names, names.len()) == names, "names differ");
        assert!(get(&mut machine, InvertArray::Text, texts.len()) == texts, "texts differ");
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

impl DocumentSink for Kept {
    fn page(&mut self, _page: &Page<'_>) {}

    fn document(&mut self, document: Document<'_>) {
        let name = match document.name {
            Name::Given(name) => name.to_owned(),
            Name::Missing => String::new(),
        };
        self.0.push(Some((name, document.text.to_vec())));
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
        let number = round % TEMPLATES.len();
        let line = line(&mut random, number, true);
        if line.iter().filter(|&&byte| byte == b'\n').count() > 1 {
            continue;
        }
        let mut kept = Kept::default();
        JsonlParser::new().parse(PieceView::whole(&line), &mut kept);
        if let Some((name, text)) = twin::line(&shape(number), u32::MAX, &line) {
            let name = String::from_utf8_lossy(&line[name.clone()]).into_owned();
            assert_eq!(kept.0.len(), 1);
            let (found, of) = kept.0[0].as_ref().expect("it is a document");
            // Each byte that is no UTF-8 becomes one character, or several become one, as the
            // parser has it.
            assert!(*of == text && (*found == name || found.contains('\u{fffd}')), "{line:?}");
            assert_eq!(JsonlParser::new().line_shape(&line), Some(shape(number)));
            regular += 1;
        }
    }
    assert!((5_000..19_000).contains(&regular), "{regular}");
}

/// A member of an object, and the same one of another object.
fn members(random: &mut Random) -> [String; 2] {
    const KEYS: [&str; 9] =
        ["id", "_id", "docid", "i\\u0064", "title", "text", "body", "year", "more"];
    const STRINGS: [&str; 6] = ["", "a", "b c", "\\n", "\\u00e9d", "\\ud83d\\ude00"];
    const WORDS: [&str; 3] = ["null", "[]", "true"];
    let key = KEYS[random.below(9) as usize];
    let around =
        [("", ""), ("", ""), ("", ""), ("{\"id\":", "}"), ("[", "]")][random.below(5) as usize];
    let kind = random.below(9);
    [0, 1].map(|_| {
        let kind = if random.below(30) == 0 { random.below(9) } else { kind };
        let value = match kind {
            0 => WORDS[random.below(3) as usize].to_owned(),
            1 | 2 => String::from_utf8(number(random, true)).unwrap(),
            _ => format!("\"{}\"", STRINGS[random.below(6) as usize]),
        };
        format!("\"{key}\":{}{value}{}", around.0, around.1)
    })
}

/// What has the shape of another line is read as a parser reads it, whatever the shape.
#[test]
fn twin_lines_of_any_shape_are_those_of_a_parser() {
    let (mut random, mut shapes, mut regular) = (Random(29), 0, 0);
    for _ in 0..60_000 {
        let members: Vec<_> = (0..1 + random.below(7)).map(|_| members(&mut random)).collect();
        let line = |n: usize| {
            let members: Vec<_> = members.iter().map(|member| &*member[n]).collect();
            format!("{{{}}}\n", members.join(", "))
        };
        let (first, other) = (line(0), line(1));
        let Some(shape) = JsonlParser::new().line_shape(first.as_bytes()) else { continue };
        shapes += 1;
        assert!(twin::line(&shape, u32::MAX, first.as_bytes()).is_some(), "{first}");
        let Some((name, text)) = twin::line(&shape, u32::MAX, other.as_bytes()) else { continue };
        let mut kept = Kept::default();
        JsonlParser::new().parse(PieceView::whole(other.as_bytes()), &mut kept);
        assert_eq!(kept.0, [Some((other[name].to_owned(), text))], "{first}{other}");
        regular += 1;
    }
    assert!(shapes > 4_000 && regular > 1_600, "{shapes} {regular}");
}

/// A piece of lines, as it goes to a device.
fn piece(number: usize, lines: &[Vec<u8>]) -> PieceText {
    let mut texts = TextGatherer::new(Arc::default());
    let mut bytes = TextBuffer::default();
    bytes.extend([&lines.concat()]);
    texts.lines(bytes, lines_of(number));
    texts.take()
}

/// The texts that a parser finds in pieces of lines, and the others.
fn parsed(pieces: &[PieceText]) -> Vec<PieceText> {
    let parse = |piece: &PieceText| match &piece.lines {
        Some(lines) => parse_lines(piece, lines, u64::MAX, &Fields::default(), &Arc::default()).0,
        None => {
            let mut texts = TextGatherer::new(Arc::default());
            let ends = piece.starts.iter().skip(1).copied().chain([piece.bytes.len() as u32]);
            for (&start, end) in piece.starts.iter().zip(ends) {
                texts.document(&piece.bytes[start as usize..end as usize - 1]);
            }
            texts.take()
        }
    };
    pieces.iter().map(parse).collect()
}

/// Whether a device cannot read some of the lines of a piece.
fn is_odd(number: usize, lines: &[Vec<u8>]) -> bool {
    let lines = lines.concat();
    let mut lines = lines.split_inclusive(|&byte| byte == b'\n');
    lines.any(|line| twin::line(&shape(number), 4000, line).is_none())
}

/// Texts that a host has found are lines that a device can read.
#[test]
fn texts_are_lines_of_strings() {
    let (mut random, mut texts) = (Random(31), TextGatherer::new(Arc::default()));
    let of = |random: &mut Random| {
        let parts = random.below(30);
        let quoted = string(random, parts, true);
        quoted.into_iter().map(|byte| if byte == b'b' { b'\n' } else { byte }).collect()
    };
    let expected: Vec<Vec<u8>> = (0..200).map(|_| of(&mut random)).collect();
    expected.iter().for_each(|text| _ = texts.document(text));
    let piece = texts.take().as_lines(&lines_of(0));
    let lines = piece.bytes.split_inclusive(|&byte| byte == b'\n');
    let found = lines.map(|line| twin::line(&LineShape::of_strings(), u32::MAX, line).unwrap());
    assert!(found.eq(expected.into_iter().map(|t| (0..0, t))));
}

/// Batches of lines, some of them odd, and of texts.
#[test]
fn batches_of_lines_are_inverted() {
    let Some(emulator) = compiled() else { return };
    for (seed, bits) in [(0, 64), (1, 5)] {
        // A device gets no lines of text that it would be given in another form.
        let tokenizer = [Tokenizer::Words, Tokenizer::FirstCjkBigram][seed as usize % 2];
        let analysis = Analysis { tokenizer, ..Analysis::default() };
        let tuning = InvertTuning { fingerprint_bits: bits, probes: 2, ..InvertTuning::default() };
        let machine = Emulated::new(emulator.clone(), seed);
        let mut inverter = inverter_of(machine, tokenizer, 2).tuned(tuning);
        let (mut random, mut run, mut lists, mut first) =
            (Random(seed), TwinRun::new(), Vec::new(), 0);
        let mut parsed_again = 0;
        for batch in 0..5 {
            let mut lines = raw(&mut random, 6, 30, batch == 1);
            if batch >= 3 {
                // These hold no document.
                lines.insert(2, (0, vec![b"{\n".to_vec()]));
                lines.push((1, vec![b"no JSON\n".to_vec(), b"\n".to_vec()]));
            }
            if batch == 4 {
                lines.retain(|(number, lines)| is_odd(*number, lines));
            }
            let odd: Vec<bool> =
                lines.iter().map(|(number, lines)| is_odd(*number, lines)).collect();
            let pieces: Vec<PieceText> = match batch {
                2 => super::pieces(&mut random, tokenizer, SHAPES[1]),
                _ => lines.iter().map(|(number, lines)| piece(*number, lines)).collect(),
            };
            parsed_again += if batch == 2 { 0 } else { odd.iter().filter(|odd| **odd).count() };
            let pieces = Arc::new(pieces);
            let texts = parsed(&pieces);
            let expected = twin::invert(&analysis, &texts, first, &mut run);
            let text = (batch % 2 == 0).then(|| {
                let mut bytes =
                    pieces.iter().map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>().concat();
                bytes.resize(bytes.len().next_multiple_of(TILE_BYTES), b' ');
                inverter.machine().uploader().unwrap().upload(&[&bytes], None).unwrap()
            });
            inverter.find(pieces.clone(), text);
            let counted = inverter.count(&pieces, first).unwrap();
            compare(&counted, &expected);
            for (n, counted) in counted.iter().enumerate() {
                let documents = counted.documents.as_ref();
                assert_eq!(documents.is_some(), batch != 2);
                if let Some(documents) = documents {
                    assert_eq!(documents.documents(), texts[n].documents());
                    assert_eq!(documents.are_lines(), !odd[n]);
                }
            }
            first += counted.iter().map(|piece| piece.counts.documents).sum::<u32>();
            lists.extend(inverter.lists().unwrap());
        }
        assert_eq!(read(&inverter.end_run().unwrap(), &lists), keyed(&run));
        let work = inverter.work();
        assert!(work.lines > 50 && parsed_again > 5, "{work:?}");
        assert_eq!(work.parsed_again, parsed_again as u64);
        assert!(bits == 64 || work.odd > 100, "{work:?}");
    }
}
