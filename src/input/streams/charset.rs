//! The character sets of inputs, and their decoding to UTF-8 as the bytes come in.
//!
//! The order is: a byte order mark, else what the input declares of itself, else what was asked
//! for, else UTF-8. UTF-8 is passed on as it is, damaged or not.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8};
use std::str::FromStr;

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// One of those that the web knows, UTF-8 and UTF-16 among them.
    Web(&'static Encoding),
    Utf32Le,
    Utf32Be,
}

/// Byte order marks. That of UTF-32 stands before that of UTF-16, which it begins with.
const MARKS: [(&[u8], Charset); 5] = [
    (b"\xff\xfe\0\0", Charset::Utf32Le),
    (b"\0\0\xfe\xff", Charset::Utf32Be),
    (b"\xef\xbb\xbf", Charset::UTF8),
    (b"\xff\xfe", Charset::Web(encoding_rs::UTF_16LE)),
    (b"\xfe\xff", Charset::Web(encoding_rs::UTF_16BE)),
];

/// Bytes that are looked at for UTF-16 without a mark.
const LOOKED_AT: usize = 256;

impl Charset {
    pub const UTF8: Self = Self::Web(UTF_8);

    /// By the byte order mark that a stream begins with; also the bytes of the mark.
    pub(crate) fn by_mark(head: &[u8]) -> Option<(Self, usize)> {
        let found = MARKS.iter().find(|(mark, _)| head.starts_with(mark));
        found.map(|(mark, charset)| (*charset, mark.len()))
    }

    /// Whether more bytes behind these may make them a byte order mark, or another one.
    pub(crate) fn may_be_mark(head: &[u8]) -> bool {
        MARKS.iter().any(|(mark, _)| mark.len() > head.len() && mark.starts_with(head))
    }

    /// By the declaration of XML that a stream begins with. Its bytes are ASCII, so that it is not
    /// in UTF-16.
    pub(crate) fn declared(head: &[u8]) -> Option<Self> {
        let declaration = head.strip_prefix(b"<?xml".as_slice())?;
        let declaration = &declaration[..memchr::memmem::find(declaration, b"?>")?];
        let at = memchr::memmem::find(declaration, b"encoding")?;
        let value = declaration[at + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?;
        let (quote, value) = value.trim_ascii_start().split_first()?;
        let end = memchr::memchr(*quote, value)?;
        let found = Encoding::for_label(&value[..end])?;
        let is_ascii = found.is_ascii_compatible() && found != REPLACEMENT;
        Some(if is_ascii { Self::Web(found) } else { Self::UTF8 })
    }

    /// Whether bytes look like UTF-16 or UTF-32 without a mark: as in ASCII that is written so,
    /// NULs stand at places of one kind alone.
    pub(crate) fn is_unmarked(head: &[u8]) -> bool {
        let head = &head[..head.len().min(LOOKED_AT) & !1];
        let nuls = |from: usize| head.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
        let even = nuls(0);
        let odd = nuls(1);
        head.len() >= 4
            && even.min(odd) * 2 <= head.len() / 2
            && even.max(odd) * 8 >= head.len() * 3
    }
}

impl FromStr for Charset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match &*name.trim().to_ascii_lowercase() {
            "utf-32" | "utf-32le" | "utf32" | "utf32le" => return Ok(Self::Utf32Le),
            "utf-32be" | "utf32be" => return Ok(Self::Utf32Be),
            _ => {}
        }
        let found = Encoding::for_label(name.as_bytes()).filter(|found| *found != REPLACEMENT);
        found.map(Self::Web).ok_or_else(|| {
            "give a character set such as latin1, windows-1251, gb18030, shift_jis, utf-16le or \
             utf-32le"
                .into()
        })
    }
}

/// Decodes a stream part by part.
pub(crate) enum CharsetDecoder {
    Web(encoding_rs::Decoder),
    /// Whether the first byte is the lowest, and the bytes of a character that is not whole.
    Utf32(bool, Vec<u8>),
}

impl CharsetDecoder {
    /// `None` for UTF-8, which needs none.
    pub(crate) fn new(charset: Charset) -> Option<Self> {
        match charset {
            Charset::Web(found) if found == UTF_8 => None,
            Charset::Web(found) => Some(Self::Web(found.new_decoder_without_bom_handling())),
            Charset::Utf32Le | Charset::Utf32Be => {
                Some(Self::Utf32(charset == Charset::Utf32Le, Vec::new()))
            }
        }
    }

    /// Appends the text of the next bytes, the last of all or not. What is no character becomes
    /// U+FFFD.
    pub(crate) fn decode(&mut self, bytes: &[u8], last: bool, out: &mut String) {
        match self {
            Self::Web(decoder) => {
                out.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
                // There is room for all of it.
                _ = decoder.decode_to_string(bytes, out, last);
            }
            Self::Utf32(little, rest) => {
                rest.extend_from_slice(bytes);
                let (whole, begun) = rest.as_chunks::<4>();
                let number = |c: &[u8; 4]| {
                    if *little { u32::from_le_bytes(*c) } else { u32::from_be_bytes(*c) }
                };
                let of = |c| char::from_u32(number(c)).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend(whole.iter().map(of));
                if last && !begun.is_empty() {
                    out.push(char::REPLACEMENT_CHARACTER);
                }
                *rest = begun.to_vec();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_first_and_the_longer_one_wins() {
        let utf16 = Charset::Web(encoding_rs::UTF_16LE);
        assert_eq!(Charset::by_mark(b"\xff\xfea\0"), Some((utf16, 2)));
        assert_eq!(Charset::by_mark(b"\xff\xfe\0\0a\0\0\0"), Some((Charset::Utf32Le, 4)));
        assert_eq!(Charset::by_mark(b"\xef\xbb\xbf"), Some((Charset::UTF8, 3)));
        assert_eq!(Charset::by_mark(b"abc"), None);
        assert!(Charset::may_be_mark(b"") && Charset::may_be_mark(b"\xff\xfe"));
        assert!(!Charset::may_be_mark(b"\xff\xfea") && !Charset::may_be_mark(b"a"));
    }

    #[test]
    fn xml_declares_its_set() {
        let of = |head: &str| Charset::declared(head.as_bytes());
        let latin = Some(Charset::Web(encoding_rs::WINDOWS_1252));
        assert_eq!(of("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>"), latin);
        assert_eq!(of("<?xml version='1.0' encoding = 'latin1' ?>"), latin);
        assert_eq!(of("<?xml version='1.0' encoding='utf-16'?>"), Some(Charset::UTF8));
        assert_eq!(of("<?xml version='1.0'?><a encoding='latin1'>"), None);
        assert_eq!(of("<top encoding='latin1'>"), None);
    }

    #[test]
    fn utf16_without_a_mark_is_seen() {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        assert!(Charset::is_unmarked(&wide("17\tdark matter\n")));
        assert!(Charset::is_unmarked(&wide("a dash \u{2014} in it\n")[..21]));
        assert!(Charset::is_unmarked(b"\0a\0b\0c"));
        for text in [&b"dark\0matter"[..], b"", b"a\0", b"\0\0\0\0\0\0\0\0", b"a b c"] {
            assert!(!Charset::is_unmarked(text), "{text:?}");
        }
    }

    #[test]
    fn parts_of_any_size_are_the_same_text() {
        let text = "caf\u{e9} \u{1f600}\n";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let full: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for (name, bytes) in [("utf-16be", &wide), ("UTF-32LE", &full)] {
            for size in 1..9 {
                let mut decoder = CharsetDecoder::new(name.parse().unwrap()).unwrap();
                let mut out = String::new();
                bytes.chunks(size).for_each(|part| decoder.decode(part, false, &mut out));
                decoder.decode(b"", true, &mut out);
                assert_eq!(out, text, "{name} {size}");
            }
        }
        "no such set".parse::<Charset>().unwrap_err();
        "hz-gb-2312".parse::<Charset>().unwrap_err();
    }
}
