//! The documents of JSON lines are those that a general JSON parser finds, on every way of
//! scanning, whole and line by line.

use millrace::input::document::{Document, DocumentSink, Name, PieceView, Skip};
use millrace::input::formats::fields::{Fields, NAMES};
use millrace::input::formats::jsonl::JsonlParser;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
struct Record {
    /// Where it begins, its line, and its length.
    place: (usize, u64, usize),
    found: Result<(Option<String>, Vec<u8>), Skip>,
}

#[derive(Debug, Default)]
struct Kept(Vec<Record>);

impl DocumentSink for Kept {
    fn document(&mut self, document: Document<'_>) {
        let Document { name, content, offset, bytes, line, .. } = document;
        let name = match name {
            Name::Given(name) => Some(name.to_owned()),
            Name::Missing => None,
        };
        self.0.push(Record {
            place: (offset, line, bytes),
            found: Ok((name, content.bytes().to_vec())),
        });
    }

    fn skipped(&mut self, offset: usize, line: u64, bytes: usize, reason: Skip) {
        assert!(!reason.to_string().is_empty());
        self.0.push(Record { place: (offset, line, bytes), found: Err(reason) });
    }
}

/// The members of an object in their order, keys that occur twice among them.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Visitor<'de> for Members {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}

/// Name and text of an object; none if that cannot be decided, or if it is no document.
fn expected(line: &str) -> Option<(Option<String>, String)> {
    let mut parser = serde_json::Deserializer::from_str(line);
    let Members(members) = parser.deserialize_map(Members(Vec::new())).ok()?;
    let mut best = NAMES.len();
    let mut name = None;
    let mut texts: Vec<(usize, String)> = Vec::new();
    let fields = Fields::default();
    for (key, value) in &members {
        let value = value.get();
        let string: Option<String> = match value.starts_with('"') {
            true => Some(serde_json::from_str(value).ok()?),
            false => None,
        };
        if let Some(rank) = fields.name_rank(key.as_bytes()) {
            let number = value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            let given = string.or_else(|| number.then(|| value.to_owned()));
            if let Some(given) = given.filter(|given| rank < best && !given.is_empty()) {
                (best, name) = (rank, Some(given));
            }
        } else if let Some(number) = fields.text_number(key.as_bytes()) {
            match string {
                Some(string) => texts.push((number, string)),
                None if value == "null" => {}
                // Lists may be joined, and spare fields passed over.
                None => return None,
            }
        }
    }
    if fields.is_whole(texts.iter().map(|(number, _)| *number)) {
        texts.retain(|(number, _)| !fields.is_spare(*number));
    }
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    Some((name, texts.join("\n")))
}

fn check_line(line: &[u8], record: Option<&Record>) {
    let verdict = serde_json::from_slice::<IgnoredAny>(line);
    let Some(Record { found, .. }) = record else {
        assert!(line.trim_ascii().is_empty());
        return;
    };
    match found {
        Ok((name, text)) => {
            // The liberties that the general parser does not take: a mark where files were joined,
            // and control characters.
            let line = line.trim_ascii_start();
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            let tame: Vec<u8> =
                line.iter().map(|byte| if *byte < b' ' { b' ' } else { *byte }).collect();
            assert!(serde_json::from_slice::<IgnoredAny>(&tame).is_ok(), "{line:?} was accepted");
            let expected = std::str::from_utf8(line).ok().and_then(expected);
            if let Some((expected_name, expected_text)) = expected {
                assert_eq!(*name, expected_name);
                assert_eq!(*text, expected_text.into_bytes());
            }
        }
        Err(Skip::BadJson { expected, .. }) => {
            let too_deep = expected.starts_with("no more than");
            assert!(verdict.is_err() || too_deep, "{line:?} was refused: {found:?}");
        }
        Err(_) => {}
    }
}

/// What is asked of an input.
pub fn jsonl(data: &[u8]) {
    let mut first: Option<Vec<Record>> = None;
    for (way, mut parser) in JsonlParser::all() {
        let mut kept = Kept::default();
        parser.parse(PieceView::whole(data), &mut kept);
        let first = first.get_or_insert_with(|| kept.0.clone());
        assert_eq!(*first, kept.0, "{way}");
    }
    let records = first.unwrap_or_default();

    // Line by line, with one parser: nothing goes from one to the next.
    let mut parser = JsonlParser::new();
    let mut records = records.into_iter().peekable();
    let mut offset = if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    for (number, line) in (1..).zip(data[offset..].split(|byte| *byte == b'\n')) {
        let record = records.next_if(|record| record.place.1 == number);
        let mut kept = Kept::default();
        // An offset that is not 0: a byte order mark is one at the beginning of a file alone.
        parser.parse(PieceView { bytes: line, offset: 9, line: number }, &mut kept);
        for alone in &mut kept.0 {
            alone.place.0 += offset;
            if let Err(Skip::BadJson { offset: at, found, .. }) = &mut alone.found {
                *at += offset;
                *found = data.get(*at).copied();
            }
        }
        assert_eq!(record.as_slice(), kept.0);
        check_line(line, record.as_ref());
        offset += line.len() + 1;
    }
    assert_eq!(records.next(), None);
}
