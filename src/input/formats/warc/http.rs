//! Reads what the head of an HTTP response says of the body behind it.

use memchr::memchr;

/// The fields that matter; empty if a field is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    /// 0 if the first line has none.
    pub(crate) status: u16,
    pub(crate) content_type: &'a [u8],
    /// A content type with a character set, if any has one.
    pub(crate) typed_charset: &'a [u8],
    pub(crate) content_encoding: &'a [u8],
    pub(crate) transfer_encoding: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// Reads a response: a status line, fields up to an empty line, and the body. Nothing if `bytes` do
/// not begin with `HTTP/`. Lines may end in bare line feeds.
pub(crate) fn read(bytes: &[u8]) -> Option<Response<'_>> {
    if !bytes.starts_with(b"HTTP/") {
        return None;
    }
    let mut response = Response::default();
    let mut at = 0;
    while let Some(n) = memchr(b'\n', &bytes[at..]) {
        let line = bytes[at..at + n].trim_ascii();
        if at == 0 {
            response.status = status(line);
        } else if line.is_empty() {
            response.body = &bytes[at + n + 1..];
            return Some(response);
        } else {
            response.field(line);
        }
        at += n + 1;
    }
    Some(response)
}

/// The number that is the second word of a status line.
fn status(line: &[u8]) -> u16 {
    let word = line.split(u8::is_ascii_whitespace).skip(1).find(|word| !word.is_empty());
    let digits = word.and_then(|word| word.first_chunk::<3>());
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit));
    digits.map_or(0, |digits| digits.iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0')))
}

impl<'a> Response<'a> {
    fn field(&mut self, line: &'a [u8]) {
        let Some(colon) = memchr(b':', line) else { return };
        let name = line[..colon].trim_ascii_end();
        let value = line[colon + 1..].trim_ascii();
        let place = match name.len() {
            12 if name.eq_ignore_ascii_case(b"Content-Type") => {
                if self.typed_charset.is_empty() && contains(value, b"charset") {
                    self.typed_charset = value;
                }
                &mut self.content_type
            }
            16 if name.eq_ignore_ascii_case(b"Content-Encoding") => &mut self.content_encoding,
            17 if name.eq_ignore_ascii_case(b"Transfer-Encoding") => &mut self.transfer_encoding,
            _ => return,
        };
        if place.is_empty() {
            *place = value;
        }
    }

    pub(crate) fn is_chunked(&self) -> bool {
        contains(self.transfer_encoding, b"chunked")
    }
}

/// Whether `text` has `word` in it, in any case.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// The media type in a content type: what stands before its parameters.
pub(crate) fn media_type(content_type: &[u8]) -> &[u8] {
    let ends = |byte: &u8| matches!(byte, b';' | b',') || byte.is_ascii_whitespace();
    let length = content_type.iter().position(ends).unwrap_or(content_type.len());
    &content_type[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-TYPE: text/html \r\nContent-Type: a; charset=x\r\n\
            Transfer-Encoding:  Chunked\r\nContent-Encoding: gzip\nX-Content-Encoding: br\nnone\r\n\r\n\r\nbody";
        let response = read(bytes).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.content_type, b"text/html");
        assert_eq!(response.typed_charset, b"a; charset=x");
        assert_eq!(response.content_encoding, b"gzip");
        assert!(response.is_chunked());
        assert_eq!(response.body, b"\r\nbody");
        assert_eq!(read(b"<html>"), None);
    }

    #[test]
    fn status_lines() {
        for (line, expected) in [
            ("HTTP/1.0 200 OK", 200),
            ("HTTP/1.1  404", 404),
            ("HTTP/2 301 ", 301),
            ("HTTP/1.1", 0),
            ("HTTP/1.1 OK", 0),
            ("HTTP/1.1 20", 0),
            ("HTTP/1.1 99999999999", 999),
        ] {
            let bytes = [line, "\n\nx"].concat();
            assert_eq!(read(bytes.as_bytes()).unwrap().status, expected, "{line}");
        }
    }

    #[test]
    fn media_types() {
        for (content_type, expected) in
            [("text/html;charset=x", "text/html"), ("text/html , a", "text/html"), ("", "")]
        {
            assert_eq!(media_type(content_type.as_bytes()), expected.as_bytes());
        }
    }
}
