//! Finds where the parts of a JSON value (RFC 8259) on one line end, and checks them.
//!
//! A [`JsonCursor`] walks over a piece. It never passes a line feed, which ends the record even
//! inside of a string, and never calls itself: nested values cost a bit each, up to [`MAX_DEPTH`].
//! Every byte is looked at once, or once more where an escape is unfolded, so time is linear.
//!
//! Raw control characters inside of strings are accepted: RFC 8259 forbids them, but they are
//! common in collections and harm nothing here. Nothing here looks at whether strings are UTF-8.

use std::ops::Range;

use super::scan::{Scan, simple_escape};
use crate::buffers::TextBuffer;

/// Values that may lie in each other; a value nested deeper is bad JSON. The outermost counts.
pub(crate) const MAX_DEPTH: u32 = 128;

/// A byte that may not stand where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// Its place in the piece; the place behind the last byte if there is none.
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

/// A string, by the place of what stands between its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) range: Range<usize>,
    /// Whether there are escapes among them, all of which are right.
    pub(crate) escapes: bool,
}

#[derive(Debug)]
pub(crate) struct JsonCursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) scan: Scan,
}

impl JsonCursor<'_> {
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Steps over white space, but not over a line feed.
    #[inline]
    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    #[cold]
    pub(crate) fn bad(&self, expected: &'static str) -> Bad {
        Bad { offset: self.at, expected }
    }

    #[inline]
    pub(crate) fn begin_key(&mut self) -> Result<(), Bad> {
        if self.take(b'"') { Ok(()) } else { Err(self.bad("a key in quotes")) }
    }

    /// Steps over the colon, up to the value.
    #[inline]
    pub(crate) fn colon(&mut self) -> Result<(), Bad> {
        self.space();
        if !self.take(b':') {
            return Err(self.bad("`:`"));
        }
        self.space();
        Ok(())
    }

    fn key(&mut self) -> Result<(), Bad> {
        self.begin_key()?;
        self.string()?;
        self.colon()
    }

    /// Steps over a string, from behind its opening quote to behind its closing one.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<Span, Bad> {
        let begin = self.at;
        let mut escapes = false;
        loop {
            self.at = self.scan.find(self.bytes, self.at);
            if self.peek() != Some(b'\\') {
                break;
            }
            escapes = true;
            self.escape()?;
        }
        self.end_of_string(begin, escapes)
    }

    /// Appends to `out` what a string stands for, from here (not inside of an escape) to its end,
    /// and steps behind its closing quote. Lone halves of surrogate pairs become U+FFFD.
    #[inline(always)]
    pub(crate) fn unescape(&mut self, out: &mut TextBuffer) -> Result<Span, Bad> {
        let begin = self.at;
        loop {
            self.at = self.scan.copy(self.bytes, self.at, out);
            if self.peek() != Some(b'\\') {
                break;
            }
            match self.escape()? {
                Escape::Byte(byte) => {
                    out.room(1)[0] = byte;
                    out.advance(1);
                }
                Escape::Char(char) => out.extend([char.encode_utf8(&mut [0; 4]).as_bytes()]),
            }
        }
        self.end_of_string(begin, true)
    }

    #[inline(always)]
    fn end_of_string(&mut self, begin: usize, escapes: bool) -> Result<Span, Bad> {
        let range = begin..self.at;
        if !self.take(b'"') {
            return Err(self.bad("`\"` at the end of a string"));
        }
        Ok(Span { range, escapes })
    }

    #[inline]
    fn escape(&mut self) -> Result<Escape, Bad> {
        let letter = self.bytes.get(self.at + 1).copied().unwrap_or(0);
        let byte = simple_escape(letter);
        if byte != 0 {
            self.at += 2;
            return Ok(Escape::Byte(byte));
        }
        self.unicode_escape().map(Escape::Char)
    }

    /// Steps over the `\u` and four digits here, and over the second one of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, Bad> {
        let Some(first) = self.hex_escape(self.at) else {
            return Err(self.bad("an escape of JSON"));
        };
        self.at += 6;
        if let Some(char) = char::from_u32(first) {
            return Ok(char);
        }
        if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, self.hex_escape(self.at)) {
            self.at += 6;
            let code = 0x1_0000 + ((first - 0xd800) << 10 | (second - 0xdc00));
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex_escape(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..)?.strip_prefix(b"\\u")?.first_chunk::<4>()?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    }

    pub(crate) fn number(&mut self) -> Result<Range<usize>, Bad> {
        let begin = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(begin..self.at)
    }

    fn digits(&mut self) -> Result<(), Bad> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == begin { Err(self.bad("a digit")) } else { Ok(()) }
    }

    pub(crate) fn word(&mut self, word: &'static str) -> Result<(), Bad> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.bad("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Steps over the value here, which lies in one other.
    pub(crate) fn skip_value(&mut self) -> Result<(), Bad> {
        let mut open = OpenValues { kinds: 0, depth: 1 };
        loop {
            if self.value_or_open(&mut open)? && self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Steps over a value whole (and says so), or into the first member or element of one.
    fn value_or_open(&mut self, open: &mut OpenValues) -> Result<bool, Bad> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string().map(drop)?;
            }
            Some(b'-' | b'0'..=b'9') => self.number().map(drop)?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(begin @ (b'{' | b'[')) => {
                if open.depth == MAX_DEPTH {
                    return Err(self.bad("no more than 128 values in each other"));
                }
                self.at += 1;
                self.space();
                let object = begin == b'{';
                if !self.take(if object { b'}' } else { b']' }) {
                    open.push(object);
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
            }
            _ => return Err(self.bad("a value")),
        }
        Ok(true)
    }

    /// Behind a value: steps over what closes, up to the next value or (and says so) to the end of
    /// the outermost one.
    fn close(&mut self, open: &mut OpenValues) -> Result<bool, Bad> {
        while open.depth > 1 {
            self.space();
            let object = open.in_object();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.space();
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if object => open.pop(),
                Some(b']') if !object => open.pop(),
                _ => return Err(self.bad(if object { "`,` or `}`" } else { "`,` or `]`" })),
            }
            self.at += 1;
        }
        Ok(true)
    }
}

enum Escape {
    Byte(u8),
    Char(char),
}

/// The values around a place: a bit each, set for an object, the innermost lowest.
struct OpenValues {
    kinds: u128,
    depth: u32,
}

impl OpenValues {
    fn push(&mut self, object: bool) {
        self.kinds = self.kinds << 1 | u128::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.kinds >>= 1;
        self.depth -= 1;
    }

    fn in_object(&self) -> bool {
        self.kinds & 1 == 1
    }
}

/// What a string stands for; `scratch` keeps it if it has escapes.
#[inline]
pub(super) fn unfolded<'a>(
    cursor: &JsonCursor<'a>,
    string: &Span,
    scratch: &'a mut TextBuffer,
) -> &'a [u8] {
    if !string.escapes {
        return &cursor.bytes[string.range.clone()];
    }
    scratch.truncate(0);
    let mut again = JsonCursor { bytes: cursor.bytes, at: string.range.start, scan: cursor.scan };
    let unfolded = again.unescape(scratch);
    debug_assert!(unfolded.is_ok(), "the span of a string was checked when it was made");
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Skips the value that `text` begins with, in every way of scanning, and says where it ended.
    fn skipped(text: &[u8]) -> Result<usize, Bad> {
        let mut ends = Scan::all().map(|scan| {
            let mut cursor = JsonCursor { bytes: text, at: 0, scan };
            cursor.skip_value().map(|()| cursor.at)
        });
        let first = ends.next().unwrap();
        ends.for_each(|end| assert_eq!(end, first));
        first
    }

    fn unescaped(text: &str) -> Result<Vec<u8>, Bad> {
        let mut out = TextBuffer::default();
        JsonCursor { bytes: text.as_bytes(), at: 0, scan: Scan::best() }.unescape(&mut out)?;
        Ok(out.to_vec())
    }

    #[test]
    fn numbers_follow_the_grammar() {
        for good in ["0", "-0", "10", "1.5", "-1.25e+7", "1E0", "0e-1", "1e999"] {
            assert_eq!(skipped(good.as_bytes()), Ok(good.len()), "{good}");
        }
        for (bad, offset) in [("-", 1), ("1.", 2), ("1.e5", 2), ("1e", 2), ("1e+", 3), ("-a", 1)] {
            assert_eq!(skipped(bad.as_bytes()), Err(Bad { offset, expected: "a digit" }), "{bad}");
        }
        assert_eq!(skipped(b"01"), Ok(1)); // the caller finds the second digit
    }

    #[test]
    fn surrogates_pair_or_are_replaced() {
        assert_eq!(unescaped(r#"\ud83d\ude00""#), Ok("😀".into()));
        assert_eq!(unescaped(r#"\uD83Dx""#), Ok("\u{fffd}x".into()));
        assert_eq!(unescaped(r#"\ude00\ud83d""#), Ok("\u{fffd}\u{fffd}".into()));
        assert_eq!(unescaped(r#"\ud83d\ud83d\ude00""#), Ok("\u{fffd}😀".into()));
        assert_eq!(unescaped(r#"\ud83d\n\u0000""#), Ok("\u{fffd}\n\0".into()));
        assert_eq!(unescaped(r#"\ud83d\u12x4""#).unwrap_err().offset, 6);
        assert_eq!(unescaped(r#"ab\u+123""#).unwrap_err().offset, 2);
        assert_eq!(unescaped(r"\ud83d").unwrap_err().expected, "`\"` at the end of a string");
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(skipped(nested(127).as_bytes()), Ok(254));
        assert_eq!(skipped(nested(128).as_bytes()).unwrap_err().offset, 127);
        let objects = ["{\"a\":".repeat(126), "[1, {}]".into(), "}".repeat(126)].concat();
        assert_eq!(skipped(objects.as_bytes()).unwrap_err().offset, 126 * 5 + 4);
        assert!(skipped("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn a_line_feed_ends_everything() {
        for text in ["\"ab\ncd\"", "[1,\n2]", "{\"a\n\":1}", "\"\\\n\"", "{\n}", "nul\n"] {
            let bad = skipped(text.as_bytes()).unwrap_err();
            assert!(bad.offset <= text.find('\n').unwrap(), "{text:?}: {bad:?}");
        }
    }

    fn tokens() -> impl Strategy<Value = Vec<u8>> {
        let token = proptest::sample::select(&[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"a\":",
            "{\"b\" : ",
            "[1",
            "12",
            "-0.5e3",
            "true",
            "null",
            "fals",
            " ",
            "\t",
            "\\",
            "\\n",
            "\\u00",
            "\\ud800",
            "\"\\u12aF\"",
            "0",
            "é",
            "],",
            "},",
            "[]",
            "{}",
            "\"\":[",
        ]);
        proptest::collection::vec(token, 0..12).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn oracle_accepts_what_serde_json_accepts(text in tokens()) {
            let mut cursor = JsonCursor { bytes: &text, at: 0, scan: Scan::best() };
            cursor.space();
            let mut ours = cursor.skip_value().is_ok();
            cursor.space();
            ours &= cursor.at == text.len();
            // serde_json refuses a tab in a string, but a space is good wherever a tab is good
            // here.
            let tabless: Vec<_> = text.iter().map(|b| if *b == b'\t' { b' ' } else { *b }).collect();
            let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(&tabless).is_ok();
            prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&text));
        }

        #[test]
        fn oracle_unescapes_as_serde_json_does(text in tokens()) {
            let literal = [b"\"", text.as_slice(), b"\""].concat();
            let mut out = TextBuffer::default();
            let mut cursor = JsonCursor { bytes: &literal, at: 1, scan: Scan::best() };
            let ours = cursor.unescape(&mut out).map(drop);
            // serde_json refuses lone surrogates in a `String`, and control characters.
            if let Ok(theirs) = serde_json::from_slice::<String>(&literal) {
                prop_assert_eq!((ours, cursor.at), (Ok(()), literal.len()));
                prop_assert_eq!(&*out, theirs.as_bytes());
            }
        }

        #[test]
        fn law_any_bytes_end_somewhere(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let line_end = text.iter().position(|b| *b == b'\n').unwrap_or(text.len());
            match skipped(&text) {
                Ok(end) => prop_assert!(end <= line_end),
                Err(bad) => prop_assert!(bad.offset <= line_end),
            }
        }
    }
}
