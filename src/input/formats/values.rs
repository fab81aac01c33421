//! Finds the values of columns, and of fields that are kept, in the record of a document: JSON
//! keys, columns of CSV, elements of TREC, MediaWiki and HTML and the `<meta>` of pages, fields of
//! the head of a WARC record. Lines of text have none.
//!
//! A record is read once more for them, and only where an index has any, so that parsers know
//! nothing of values. A field that is kept is JSON, as it stands there if the record is.

use super::csv::{CsvHead, CsvParser};
use super::json::{Bad, JsonCursor, unfolded};
use super::scan::Scan;
use crate::buffers::TextBuffer;
use crate::index::columns::{Column, PieceColumns};
use crate::index::documents::Location;
use crate::index::texts::PieceTexts;
use crate::input::Format;
use crate::input::document::BYTE_ORDER_MARK;
use crate::text::html::{HtmlText, Markup, attributes};
use memchr::memchr;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// The member of documents that a program gives by which their values come.
pub(crate) const GIVEN_VALUES: &str = "values";

/// Reads the values of documents, for a build whose index has these columns and keeps these fields.
pub(crate) struct ValuesParser {
    columns: Arc<[Column]>,
    stored: Arc<[String]>,
    kept: Vec<KeptValues>,
    /// Values are members of one member, as a program gives them.
    given: bool,
    scratch: TextBuffer,
    csv: CsvParser,
    /// Those of the file whose head is known.
    heads: CsvHead,
    head: Vec<u8>,
    html: HtmlText,
}

/// The values of a document in a field that is kept, in JSON with commas between them.
#[derive(Default)]
struct KeptValues {
    json: Vec<u8>,
    count: usize,
}

impl KeptValues {
    fn begin(&mut self) {
        if self.count > 0 {
            self.json.push(b',');
        }
        self.count += 1;
    }

    fn push_text(&mut self, text: &[u8]) {
        self.begin();
        serde_json::to_writer(&mut self.json, &String::from_utf8_lossy(text))
            .expect("a vector takes all");
    }

    /// Adds what stands in a record in JSON, except for strings and nulls.
    fn push_raw(&mut self, raw: &[u8]) {
        match String::from_utf8_lossy(raw) {
            // Control characters in strings are no JSON.
            raw if serde_json::from_str::<&RawValue>(&raw).is_err() => {
                self.push_text(raw.as_bytes());
            }
            raw => {
                self.begin();
                self.json.extend_from_slice(raw.trim().as_bytes());
            }
        }
    }

    /// Moves them to what is kept of the document; several are a list.
    fn end(&mut self, texts: &mut PieceTexts) {
        let json = match self.count {
            0 | 1 => Cow::Borrowed(&self.json),
            _ => Cow::Owned([b"[", &self.json[..], b"]"].concat()),
        };
        texts.push(&json);
        self.json.clear();
        self.count = 0;
    }
}

/// The values of the document that is next.
struct Taker<'a> {
    columns: &'a [Column],
    stored: &'a [String],
    kept: &'a mut [KeptValues],
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
        for (_, kept) in self.stored.iter().zip(&mut *self.kept).filter(|of| is_it(of.0)) {
            kept.push_text(value);
        }
    }

    fn knows(&self, name: &[u8]) -> bool {
        let mut names = self.columns.iter().map(|column| &column.name).chain(self.stored);
        names.any(|known| known.as_bytes().eq_ignore_ascii_case(name))
    }
}

impl ValuesParser {
    /// None if there are neither columns nor fields that are kept. `given`: documents are those
    /// that a program gives.
    pub(crate) fn new(columns: Arc<[Column]>, stored: Arc<[String]>, given: bool) -> Option<Self> {
        let (scratch, csv, heads, head, html) = Default::default();
        let kept = stored.iter().map(|_| KeptValues::default()).collect();
        let is_asked = !columns.is_empty() || !stored.is_empty();
        let new = Self { columns, stored, kept, given, scratch, csv, heads, head, html };
        is_asked.then_some(new)
    }

    /// Adds the values of a record that is a document to those of a piece, and those of fields
    /// that are kept to `texts`. The head is the first record of the input, where it says what the
    /// others mean.
    pub(crate) fn read(
        &mut self,
        (format, head): (Format, &[u8]),
        record: &[u8],
        location: &Location,
        values: &mut PieceColumns,
        texts: Option<&mut PieceTexts>,
    ) {
        let (columns, stored) = (self.columns.clone(), self.stored.clone());
        let mut kept = std::mem::take(&mut self.kept);
        let taker =
            &mut Taker { columns: &columns, stored: &stored, kept: &mut kept, location, values };
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
        if let Some(texts) = texts {
            kept.iter_mut().for_each(|kept| kept.end(texts));
        }
        self.kept = kept;
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
            let number = taker.columns.iter().position(|of| of.name.as_bytes() == key);
            let stored = taker.stored.iter().position(|name| name.as_bytes() == key);
            cursor.colon()?;
            let start = cursor.at;
            match number {
                Some(number) => self.value(cursor, taker, number, true)?,
                None => cursor.skip_value()?,
            }
            if let Some(number) = stored {
                self.keep(&cursor.bytes[start..cursor.at], &mut taker.kept[number]);
            }
        }
    }

    /// Keeps a value as it is written, except for strings, whose escapes may be wrong.
    fn keep(&mut self, raw: &[u8], kept: &mut KeptValues) {
        let mut cursor = JsonCursor { bytes: raw, at: 1, scan: Scan::best() };
        match raw.first() {
            Some(b'"') => {
                if let Ok(span) = cursor.string() {
                    kept.push_text(unfolded(&cursor, &span, &mut self.scratch));
                }
            }
            None | Some(b'n') => {}
            _ => kept.push_raw(raw),
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
        let mut parser = ValuesParser::new(columns.clone().into(), Arc::default(), given).unwrap();
        let mut values = PieceColumns::new(3);
        let location = Location::default();
        let of = (format, head.as_bytes());
        parser.read(of, record.as_bytes(), &location, &mut values, None);
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
    fn fields_are_kept_as_they_stand_in_the_record() {
        let stored: Arc<[String]> = ["a", "b c"].map(String::from).into();
        let of = |format, head: &str, record: &[u8], given| {
            let mut parser = ValuesParser::new(Arc::default(), stored.clone(), given).unwrap();
            let (mut values, mut texts) = (PieceColumns::new(0), PieceTexts::of(2).unwrap());
            let location = Location::default();
            for _ in 0..2 {
                let of = (format, head.as_bytes());
                parser.read(of, record, &location, &mut values, Some(&mut texts));
            }
            assert_eq!(values.misfits, 0);
            let shown = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
            let parts: Vec<String> = texts.each().map(shown).collect();
            assert_eq!(parts[..2], parts[2..]);
            [parts[0].clone(), parts[1].clone()]
        };
        let json = |record: &str| of(Format::Jsonl, "", record.as_bytes(), false);
        for (record, a, b) in [
            (
                r#"{"a":"\u0041\ud800\n","x":1,"b c":{"y": [1,null]}}"#,
                r#""A\ufffd\n""#,
                r#"{"y": [1,null]}"#,
            ),
            ("{\"a\":\"x\ty\",\"b c\":[\"x\ty\"]}", r#""x\ty""#, r#""[\"x\ty\"]""#),
            (r#"{"a": null, "b c": 1.50e3 }"#, "", "1.50e3"),
            (r#"{"a":[],"A":1,"\u0062 c":true}"#, "[]", "true"),
            (r#"{"a":1,"a":"2"}"#, r#"[1,"2"]"#, ""),
            ("{}", "", ""),
        ] {
            assert_eq!(json(record), [a.replace("\\ufffd", "\u{fffd}"), b.to_string()], "{record}");
        }
        let given = of(Format::Jsonl, "", br#"{"a":1,"values":{"a":[2]}}"#, true);
        assert_eq!(given, ["[2]", ""].map(String::from));
        let bytes = of(Format::Jsonl, "", b"{\"a\":\"\xff\"}", false);
        assert_eq!(bytes, ["\"\u{fffd}\"", ""].map(String::from));
        let csv = of(Format::Csv, "id,b c,a\n", b"1,\"x, \"\"y\",\n", false);
        assert_eq!(csv, ["", r#""x, \"y""#].map(String::from));
        let trec = of(Format::Trec, "", b"<DOC><A>x &amp; <i>y</i></A><a>z</a></DOC>", false);
        assert_eq!(trec, [r#"["x & y","z"]"#, ""].map(String::from));
        let warc = of(Format::Warc, "", b"WARC/1.0\r\nB c: d\r\n\r\na: 1", false);
        assert_eq!(warc, ["", r#""d""#].map(String::from));
        assert_eq!(of(Format::Tsv, "", b"1\ta", false), ["", ""].map(String::from));
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
