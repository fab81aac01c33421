//! Finds the values of columns in the record of a document: JSON keys, columns of CSV, elements of
//! TREC, MediaWiki and HTML and the `<meta>` of pages, fields of the head of a WARC record. Lines
//! of text have none.
//!
//! A record is read once more for them, and only where an index has columns, so that parsers know
//! nothing of values.

use super::csv::{CsvHead, CsvParser};
use super::json::{Bad, JsonCursor, unfolded};
use super::scan::Scan;
use crate::buffers::TextBuffer;
use crate::index::columns::{Column, PieceColumns};
use crate::index::documents::Location;
use crate::input::Format;
use crate::input::document::BYTE_ORDER_MARK;
use crate::text::html::{HtmlText, Markup, attributes};
use memchr::memchr;
use std::sync::Arc;

/// The member of documents that a program gives by which their values come.
pub(crate) const GIVEN_VALUES: &str = "values";

/// Reads the values of documents, for a build whose index has these columns.
pub(crate) struct ValuesParser {
    columns: Arc<[Column]>,
    /// Values are members of one member, as a program gives them.
    given: bool,
    scratch: TextBuffer,
    csv: CsvParser,
    /// Those of the file whose head is known.
    heads: CsvHead,
    head: Vec<u8>,
    html: HtmlText,
}

/// The values of the document that is next.
struct Taker<'a> {
    columns: &'a [Column],
    location: &'a Location,
    values: &'a mut PieceColumns,
}

impl Taker<'_> {
    /// Takes a value of each column of this name, which is compared without case if it may be.
    fn take(&mut self, name: &[u8], any_case: bool, value: &[u8]) {
        let is_it = |column: &str| match any_case {
            true => column.as_bytes().eq_ignore_ascii_case(name),
            false => column.as_bytes() == name,
        };
        for (number, column) in self.columns.iter().enumerate().filter(|of| is_it(&of.1.name)) {
            let value = String::from_utf8_lossy(value);
            self.values.push(number, column, self.location, &value);
        }
    }

    fn knows(&self, name: &[u8]) -> bool {
        self.columns.iter().any(|column| column.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

impl ValuesParser {
    /// None if there are no columns. `given`: documents are those that a program gives.
    pub(crate) fn new(columns: Arc<[Column]>, given: bool) -> Option<Self> {
        let (scratch, csv, heads, head, html) = Default::default();
        (!columns.is_empty()).then_some(Self { columns, given, scratch, csv, heads, head, html })
    }

    /// Adds the values of a record that is a document to those of a piece. `head` is the first
    /// record of the input, where it says what the others mean.
    pub(crate) fn read(
        &mut self,
        format: Format,
        head: &[u8],
        record: &[u8],
        location: &Location,
        values: &mut PieceColumns,
    ) {
        let columns = self.columns.clone();
        let taker = &mut Taker { columns: &columns, location, values };
        match format {
            Format::Jsonl | Format::Json | Format::Vectors => {
                let mut cursor = JsonCursor { bytes: record, at: 0, scan: Scan::best() };
                // The record was read before, and is right.
                _ = self.object(&mut cursor, taker, self.given);
                self.scratch.shrink(super::KEPT_BUFFER_BYTES);
            }
            Format::Csv => self.csv(head, record, taker),
            Format::Trec | Format::Mediawiki | Format::Html => self.elements(record, taker),
            Format::Warc => head_fields(record, taker),
            Format::Tsv | Format::Plaintext | Format::Text => {}
        }
        values.end();
    }

    /// Takes the members of an object, or of one of its members that has all.
    fn object(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        taker: &mut Taker<'_>,
        within: bool,
    ) -> Result<(), Bad> {
        if cursor.bytes[cursor.at..].starts_with(BYTE_ORDER_MARK) {
            cursor.at += BYTE_ORDER_MARK.len();
        }
        cursor.space();
        if !cursor.take(b'{') {
            return cursor.skip_value();
        }
        loop {
            cursor.space();
            if cursor.take(b'}') || cursor.peek().is_none() {
                return Ok(());
            }
            cursor.take(b',');
            cursor.space();
            cursor.begin_key()?;
            let key = cursor.string()?;
            let key = unfolded(cursor, &key, &mut self.scratch);
            if within {
                let is_it = key == GIVEN_VALUES.as_bytes();
                cursor.colon()?;
                if is_it {
                    self.object(cursor, taker, false)?
                } else {
                    cursor.skip_value()?
                }
                continue;
            }
            // The first that has the name has all values of it.
            let numbers = taker.columns.iter().position(|of| of.name.as_bytes() == key);
            cursor.colon()?;
            match numbers {
                Some(number) => self.value(cursor, taker, number, true)?,
                None => cursor.skip_value()?,
            }
        }
    }

    fn value(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        taker: &mut Taker<'_>,
        number: usize,
        may_be_list: bool,
    ) -> Result<(), Bad> {
        let column = &taker.columns[number];
        let start = cursor.at;
        match cursor.peek() {
            Some(b'"') => {
                cursor.at += 1;
                let span = cursor.string()?;
                let text = unfolded(cursor, &span, &mut self.scratch);
                taker.values.push(number, column, taker.location, &String::from_utf8_lossy(text));
            }
            Some(b'n') => cursor.word("null")?,
            Some(b'[') if may_be_list => {
                cursor.at += 1;
                loop {
                    cursor.space();
                    if cursor.take(b']') || cursor.peek().is_none() {
                        return Ok(());
                    }
                    cursor.take(b',');
                    cursor.space();
                    self.value(cursor, taker, number, false)?;
                }
            }
            first => {
                cursor.skip_value()?;
                let text = String::from_utf8_lossy(&cursor.bytes[start..cursor.at]);
                match first {
                    Some(b'{' | b'[') => taker.values.misfit(column, taker.location, &text, false),
                    _ => taker.values.push(number, column, taker.location, &text),
                }
            }
        }
        Ok(())
    }

    fn csv(&mut self, head: &[u8], record: &[u8], taker: &mut Taker<'_>) {
        if self.head != head {
            self.heads = self.csv.columns(head);
            self.head = head.to_vec();
        }
        self.csv.read(record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record), self.heads.delimiter);
        for (column, head) in self.heads.heads.iter().enumerate() {
            match self.csv.value(column).map(<[u8]>::trim_ascii) {
                Some(value) if !value.is_empty() => taker.take(head, false, value),
                _ => {}
            }
        }
    }

    /// Takes what stands in elements of the names of columns, and in `<meta name= content=>`.
    fn elements(&mut self, record: &[u8], taker: &mut Taker<'_>) {
        let mut at = 0;
        while let Some(n) = memchr(b'<', &record[at..]) {
            at += n + 1;
            let rest = &record[at..];
            let is_name = |byte: &u8| !byte.is_ascii_whitespace() && !b"<>/=".contains(byte);
            let name = &rest[..rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len())];
            if name.eq_ignore_ascii_case(b"meta") {
                let (mut key, mut content) = (&b""[..], None);
                _ = attributes(record, at + name.len(), |of, value| {
                    if of.eq_ignore_ascii_case(b"content") {
                        content = Some(value);
                    } else if of.eq_ignore_ascii_case(b"name")
                        || of.eq_ignore_ascii_case(b"property")
                    {
                        key = value;
                    }
                });
                if let Some(content) = content.filter(|_| taker.knows(key)) {
                    self.text(key, content, taker);
                }
            } else if taker.knows(name) {
                let Some(open) = memchr(b'>', rest) else { return };
                let inner = &rest[open + 1..];
                let Some(end) = end_of(inner, name) else { continue };
                if rest[..open].last() != Some(&b'/') {
                    self.text(name, &inner[..end], taker);
                }
            }
        }
        self.html.shrink();
    }

    /// Takes what an element says, without tags and references.
    fn text(&mut self, name: &[u8], raw: &[u8], taker: &mut Taker<'_>) {
        let label = std::str::from_utf8(raw).is_ok().then_some(&b"utf-8"[..]);
        let text = self.html.text(raw, Markup::Sgml { hidden: &[] }, label);
        let text = text.trim_ascii();
        if !text.is_empty() {
            taker.take(name, true, text);
        }
    }
}

/// Where the end tag of an element stands.
fn end_of(inner: &[u8], name: &[u8]) -> Option<usize> {
    let is_end = |at: &usize| {
        let rest = inner[*at..].strip_prefix(b"</").and_then(|rest| rest.get(..name.len()));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(name))
    };
    memchr::memchr_iter(b'<', inner).find(is_end)
}

/// Takes the fields of the head that a WARC record begins with.
fn head_fields(record: &[u8], taker: &mut Taker<'_>) {
    for line in record.split(|&byte| byte == b'\n').skip(1) {
        let line = line.trim_ascii();
        let Some(colon) = memchr(b':', line) else { return };
        let value = line[colon + 1..].trim_ascii();
        if !value.is_empty() {
            taker.take(&line[..colon], true, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfits(format: Format, head: &str, record: &str, given: bool) -> (Vec<String>, u64) {
        let columns: Vec<Column> =
            ["year:int", "tags:word[]", "score:float"].map(|column| column.parse().unwrap()).into();
        let mut parser = ValuesParser::new(columns.clone().into(), given).unwrap();
        let mut values = PieceColumns::new(3);
        let location = Location::default();
        parser.read(format, head.as_bytes(), record.as_bytes(), &location, &mut values);
        (values.shown(&columns), values.misfits)
    }

    #[test]
    fn values_are_found_in_all_formats() {
        let all = ["2010", "a & b,c", "1.5"];
        let json =
            r#"{"id":"x","ye\u0061r":2010,"o":{"year":3},"tags":["a & b",null,"c"],"score":1.5}"#;
        let given = format!(r#"{{"year":1,"values":{json},"id":"y"}}"#);
        let tags = "<DOC><year>2010</year><TAGS>a &amp; b</tags><tags> c</tags><Score x=1>1.5</score></DOC>";
        let metas = "<meta name=year content=2010><meta content='a &amp; b' property=tags><tags>c</tags>\
                     <META NAME='score' content=\"1.5\">";
        let warc = "WARC/1.0\r\nYear: 2010\r\ntags: a & b\r\nTags:c\r\nscore: 1.5\r\n\r\nyear: 3";
        for (format, head, record, is_given) in [
            (Format::Jsonl, "", json, false),
            (Format::Jsonl, "", &given[..], true),
            (Format::Trec, "", tags, false),
            (Format::Html, "", metas, false),
            (Format::Warc, "", warc, false),
        ] {
            assert_eq!(misfits(format, head, record, is_given), (all.map(String::from).into(), 0));
        }
        let csv = misfits(Format::Csv, "id;tags;year;score\n", "1;\"a & b\";2010;\n", false);
        assert_eq!(csv, (vec!["2010".into(), "a & b".into(), String::new()], 0));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let of = |record: &str| misfits(Format::Jsonl, "", record, false);
        let all = |year: &str, tags: &str| vec![year.to_string(), tags.to_string(), String::new()];
        assert_eq!(of(r#"{"year":"last","tags":{"a":1},"score":[]}"#), (all("", ""), 2));
        assert_eq!(of(r#"{"year":[1,2],"tags":[true,[1]]}"#), (all("1", "true"), 2));
        assert_eq!(of(r#"{"year":2.0,"tags":""}"#), (all("2", ""), 0));
        assert_eq!(of(r#"{"year":2.5,"score":"nan"}"#), (all("", ""), 2));
        assert_eq!(of("{}"), (all("", ""), 0));
    }
}
