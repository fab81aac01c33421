//! Reads the head of a WARC record, and finds where it ends.
//!
//! A head is a version line and fields, `Name: value`, up to an empty line. Crawls have heads with
//! bare line feeds, with control bytes, and with an empty line amid the fields; so a head ends at
//! the first empty line by which its length was told, and only a record that begins first, or an
//! HTTP head, ends it without.

use memchr::memchr;

/// A head longer than this is none.
const MOST_HEAD_BYTES: usize = 64 << 10;

/// What stands somewhere, as far as the bytes that are there tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Yes,
    No,
    /// More bytes have to come.
    More,
}

/// Whether `bytes` begin with a version line: `WARC/1.0`, `WARC/1.1`, `WARC/0.18`, and others with
/// one or two digits. `ended`: no further bytes will come.
pub(crate) fn version_line(bytes: &[u8], ended: bool) -> Seen {
    match version_line_bytes(bytes) {
        Some(true) => Seen::Yes,
        None if !ended => Seen::More,
        _ => Seen::No,
    }
}

/// The most bytes by which a version line is recognised.
pub(crate) const VERSION_LINE_BYTES: usize = b"WARC/00.00\r\n".len();

/// Nothing if the bytes end too early.
fn version_line_bytes(bytes: &[u8]) -> Option<bool> {
    const NAME: &[u8] = b"WARC/";
    let known = bytes.len().min(NAME.len());
    if bytes[..known] != NAME[..known] {
        return Some(false);
    }
    let mut at = NAME.len();
    for end in [&b"."[..], b"\r\n"] {
        let digits = bytes.get(at..)?.iter().take(2).take_while(|b| b.is_ascii_digit()).count();
        at += digits;
        let byte = bytes.get(at)?;
        if digits == 0 || !end.contains(byte) {
            return Some(false);
        }
        at += 1;
    }
    Some(bytes[at - 1] == b'\n' || *bytes.get(at)? == b'\n')
}

/// What the fields say that matter. Values are without white space around them, and empty if a
/// field is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WarcHead<'a> {
    /// Length, up to where the record's content begins, in bytes.
    pub(crate) bytes: usize,
    pub(crate) content_length: Option<u64>,
    pub(crate) kind: &'a [u8],
    pub(crate) content_type: &'a [u8],
    pub(crate) trec_id: &'a [u8],
    pub(crate) target_uri: &'a [u8],
    pub(crate) record_id: &'a [u8],
}

impl<'a> WarcHead<'a> {
    /// Reads the head of the record that `bytes` begin with, by a version line; nothing if it does
    /// not end in them and more may come.
    pub(crate) fn read(bytes: &'a [u8], ended: bool) -> Option<Self> {
        let mut head = WarcHead::default();
        // Where the content begins if no field tells its length.
        let mut first_empty = None;
        let mut at = 0;
        let limit = bytes.len().min(MOST_HEAD_BYTES);
        while let Some(n) = memchr(b'\n', &bytes[at..limit]) {
            let line = bytes[at..at + n].trim_ascii();
            let next = at + n + 1;
            if line.is_empty() {
                if head.content_length.is_some() {
                    head.bytes = next;
                    return Some(head);
                }
                first_empty = first_empty.or(Some(next));
            } else if at > 0 && line.starts_with(b"WARC/") {
                match version_line(&bytes[at..], ended) {
                    Seen::Yes => return Some(head.ending(first_empty, at)),
                    Seen::More => return None,
                    Seen::No => {}
                }
            } else if first_empty.is_some() && line.starts_with(b"HTTP/") {
                return Some(head.ending(first_empty, at));
            } else {
                head.field(line);
            }
            at = next;
        }
        // All that is there is head, if no line told otherwise.
        (ended || limit == MOST_HEAD_BYTES).then(|| head.ending(first_empty, limit))
    }

    /// The head without a length, whose content begins at the first empty line, or else at `at`.
    fn ending(self, first_empty: Option<usize>, at: usize) -> Self {
        Self { bytes: first_empty.unwrap_or(at), content_length: None, ..self }
    }

    fn field(&mut self, line: &'a [u8]) {
        let Some(colon) = memchr(b':', line) else { return };
        let name = line[..colon].trim_ascii_end();
        let value = line[colon + 1..].trim_ascii();
        let place = match name.len() {
            9 if name.eq_ignore_ascii_case(b"WARC-Type") => &mut self.kind,
            12 if name.eq_ignore_ascii_case(b"Content-Type") => &mut self.content_type,
            12 if name.eq_ignore_ascii_case(b"WARC-TREC-ID") => &mut self.trec_id,
            14 if name.eq_ignore_ascii_case(b"WARC-Record-ID") => &mut self.record_id,
            15 if name.eq_ignore_ascii_case(b"WARC-Target-URI") => &mut self.target_uri,
            14 if name.eq_ignore_ascii_case(b"Content-Length") => {
                self.content_length = self.content_length.or_else(|| number(value));
                return;
            }
            _ => return,
        };
        if place.is_empty() {
            *place = value;
        }
    }

    /// What the document is called: its TREC name, else the page's address, else the record's.
    pub(crate) fn name(&self) -> &'a [u8] {
        [self.trec_id, self.target_uri, self.record_id]
            .into_iter()
            .map(|name| {
                let inner = name.strip_prefix(b"<").and_then(|name| name.strip_suffix(b">"));
                inner.unwrap_or(name)
            })
            .find(|name| !name.is_empty())
            .unwrap_or_default()
    }
}

/// The number that `digits` are, if they are and it is not absurd.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_lines() {
        for (line, seen) in [
            ("WARC/1.0\r\n", Seen::Yes),
            ("WARC/1.1\nx", Seen::Yes),
            ("WARC/0.18\n", Seen::Yes),
            ("WARC/10.18\r\n", Seen::Yes),
            ("WARC/1.0 \n", Seen::No),
            ("WARC/1.0\rx", Seen::No),
            ("WARC/.0\n", Seen::No),
            ("WARC/1.\n", Seen::No),
            ("WARC/123.0\n", Seen::No),
            ("WARC/1.0 is a format\n", Seen::No),
            ("warc/1.0\n", Seen::No),
            ("", Seen::More),
            ("WA", Seen::More),
            ("WARC/", Seen::More),
            ("WARC/1", Seen::More),
            ("WARC/1.", Seen::More),
            ("WARC/1.0", Seen::More),
            ("WARC/1.0\r", Seen::More),
            ("WARX", Seen::No),
        ] {
            assert_eq!(version_line(line.as_bytes(), false), seen, "{line:?}");
            let at_end = if seen == Seen::More { Seen::No } else { seen };
            assert_eq!(version_line(line.as_bytes(), true), at_end, "{line:?}");
        }
    }

    #[test]
    fn fields_are_found_in_any_case() {
        let bytes = b"WARC/1.0\r\nwarc-type:response\r\nWARC-Target-URI : <http://a/> \r\n\
            content-length: 12\r\nContent-Length: 13\r\nWARC-TREC-ID:\r\nx\r\n\r\nbody";
        let head = WarcHead::read(bytes, false).unwrap();
        assert_eq!(&bytes[head.bytes..], b"body");
        assert_eq!(head.kind, b"response");
        assert_eq!(head.content_length, Some(12));
        assert_eq!(head.name(), b"http://a/");
        assert_eq!(WarcHead { trec_id: b"a-1", ..head }.name(), b"a-1");
        assert_eq!(WarcHead { record_id: b"<urn:x>", ..WarcHead::default() }.name(), b"urn:x");
        assert_eq!(WarcHead::default().name(), b"");
    }

    #[test]
    fn broken_heads_end_somewhere() {
        for (bytes, content, length) in [
            // Bare line feeds, an empty line too early, control bytes.
            ("WARC/1.0\nA: 1\n\nContent-Length: 3\n\nabc", "abc", Some(3)),
            ("WARC/1.0\nA: \x01\r\r\nContent-Length: 3\n \t\nabc", "abc", Some(3)),
            // No length.
            (
                "WARC/1.0\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                "HTTP",
                None,
            ),
            ("WARC/1.0\nContent-Length: x\n\nabc", "abc", None),
            ("WARC/1.0\nContent-Length: 9999999999999999999\n\nabc", "abc", None),
            ("WARC/1.0\nA: 1\nWARC/1.0\nContent-Length: 3\n\nabc", "WARC/1.0\nC", None),
            ("WARC/1.0\nA: 1", "", None),
            ("WARC/1.0", "", None),
        ] {
            let head = WarcHead::read(bytes.as_bytes(), true).unwrap();
            assert!(bytes[head.bytes..].starts_with(content), "{bytes:?}");
            assert_eq!(head.content_length, length, "{bytes:?}");
        }
        let endless = [&b"WARC/1.0\n"[..], &b"a: b\n".repeat(MOST_HEAD_BYTES)].concat();
        assert_eq!(WarcHead::read(&endless, false).unwrap().content_length, None);
        assert_eq!(WarcHead::read(b"WARC/1.0\nContent-Length: 1\n", false), None);
        assert_eq!(WarcHead::read(b"WARC/1.0\nA: 1\nWARC/1.", false), None);
    }
}
