//! Turns a stream of text in another encoding into UTF-8, before it is cut. So all that is behind
//! sees UTF-8, and offsets count the bytes of that.
//!
//! A byte order mark comes first, then what the head of an XML file says, then what was asked for;
//! without any of these the stream is UTF-8, and passes as it is.

use super::decoder::{DecodeError, Decoder, Output};
use encoding_rs::{CoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;
use std::fmt;
use std::str::FromStr;

/// An encoding of text, by the names of the WHATWG and for UTF-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextEncoding {
    Known(&'static Encoding),
    Utf32 { is_big: bool },
}

/// The head of an XML file, which names the encoding, is not longer.
const HEAD_BYTES: usize = 200;

impl TextEncoding {
    /// The encoding of a mark, and its length; `None` for the mark of UTF-8, which parsers drop.
    fn of_mark(head: &[u8]) -> Option<(Self, usize)> {
        Some(match head {
            [0xff, 0xfe, 0, 0, ..] => (Self::Utf32 { is_big: false }, 4),
            [0, 0, 0xfe, 0xff, ..] => (Self::Utf32 { is_big: true }, 4),
            [0xff, 0xfe, ..] => (Self::Known(UTF_16LE), 2),
            [0xfe, 0xff, ..] => (Self::Known(UTF_16BE), 2),
            _ => return None,
        })
    }

    /// What the first tag of an XML file says.
    fn of_xml(head: &[u8]) -> Option<Self> {
        let head = &head.strip_prefix(b"<?xml")?[..memmem::find(head, b"?>")? - 5];
        let name = memmem::find(head, b"encoding").map(|at| head[at + 8..].trim_ascii_start())?;
        let name = name.strip_prefix(b"=")?.trim_ascii_start();
        let (quote, name) = name.split_first()?;
        let name = &name[..memchr::memchr(*quote, name)?];
        // The bytes are those of ASCII, so they are no UTF-16.
        Self::of_label(name).filter(|found| found.keeps_ascii() && *found != Self::Known(UTF_8))
    }

    fn of_label(label: &[u8]) -> Option<Self> {
        match &label.to_ascii_lowercase()[..] {
            b"utf-32le" | b"utf-32" => Some(Self::Utf32 { is_big: false }),
            b"utf-32be" => Some(Self::Utf32 { is_big: true }),
            label => Encoding::for_label(label).filter(|it| *it != REPLACEMENT).map(Self::Known),
        }
    }

    /// Whether bytes below 128 are ASCII.
    pub(crate) fn keeps_ascii(self) -> bool {
        self.known().is_some_and(Encoding::is_ascii_compatible)
    }

    pub(crate) fn known(self) -> Option<&'static Encoding> {
        match self {
            Self::Known(encoding) => Some(encoding),
            Self::Utf32 { .. } => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Known(encoding) => encoding.name(),
            Self::Utf32 { is_big: false } => "UTF-32LE",
            Self::Utf32 { is_big: true } => "UTF-32BE",
        }
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TextEncoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::of_label(name.trim().as_bytes()).ok_or_else(|| {
            format!(
                "`{name}` is no encoding that is known, such as latin1, windows-1252 or gb18030"
            )
        })
    }
}

/// Whether text has a NUL as every other byte, as in UTF-16 that is mostly ASCII, and no mark.
pub(crate) fn is_like_utf16(head: &[u8]) -> bool {
    let (pairs, _) = head[..head.len().min(1 << 12)].as_chunks::<2>();
    let has = |nul: usize| pairs.iter().filter(|pair| pair[nul] == 0 && pair[1 - nul] != 0).count();
    pairs.len() >= 2 && (has(0) * 10 >= pairs.len() * 9 || has(1) * 10 >= pairs.len() * 9)
}

/// The encoding of the text that begins so, if it is not UTF-8.
pub(crate) fn encoding_of(head: &[u8], asked: Option<TextEncoding>) -> Option<TextEncoding> {
    let mut transcoder = Transcoder::new(asked);
    transcoder.held.extend_from_slice(head);
    transcoder.ends = true;
    transcoder.begin();
    transcoder.encoding()
}

/// A decoder of compressed bytes, and of their text to UTF-8 if it is in another encoding.
pub(crate) struct TextDecoder {
    decoder: Decoder,
    /// None where each document tells its own.
    transcoder: Option<Transcoder>,
    /// The decoder may hold more.
    is_full: bool,
    /// What the decoder has said, until all that stood before is out.
    failed: Option<DecodeError>,
}

/// Bytes that are decompressed at a time, at first and then.
const FIRST_BYTES: usize = 1 << 10;
const STEP_BYTES: usize = 64 << 10;

impl TextDecoder {
    pub(crate) fn new(decoder: Decoder, transcoder: Option<Transcoder>) -> Self {
        Self { decoder, transcoder, is_full: false, failed: None }
    }

    pub(crate) fn encoding(&self) -> Option<TextEncoding> {
        self.transcoder.as_ref()?.encoding
    }

    /// Decodes the text too, from the beginning on.
    pub(super) fn transcode(&mut self, transcoder: Transcoder) {
        self.transcoder = Some(transcoder);
    }

    pub(crate) fn allow_window(&mut self, bytes: u64) {
        self.decoder.allow_window(bytes);
    }

    /// As [`Decoder::decode`], and what it says of errors.
    pub(crate) fn decode(
        &mut self,
        input: &[u8],
        out: &mut Output<'_>,
    ) -> Result<usize, DecodeError> {
        let Some(transcoder) = self.transcoder.as_mut().filter(|it| !it.passes()) else {
            return match self.failed.take() {
                Some(error) => Err(error),
                None => self.decoder.decode(input, out),
            };
        };
        let mut taken = 0;
        if transcoder.wants_more() {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let begin = transcoder.held.len();
            let is_begun = matches!(transcoder.state, TranscoderState::Begins);
            let room = if is_begun { FIRST_BYTES } else { STEP_BYTES };
            transcoder.held.resize(begin + room, 0);
            let mut raw = Output::new(&mut transcoder.held[begin..]);
            let decoded = self.decoder.decode(input, &mut raw);
            self.is_full = raw.is_full();
            let made = raw.made().len();
            transcoder.held.truncate(begin + made);
            match decoded {
                Ok(n) => taken = n,
                Err(window @ DecodeError::Window { .. }) => return Err(window),
                Err(error) => {
                    transcoder.ends = true;
                    self.failed = Some(error);
                }
            }
        }
        transcoder.decode(out);
        Ok(taken)
    }

    /// Whether more would come without any input.
    pub(crate) fn holds_more(&self) -> bool {
        let of = |transcoder: &Transcoder| {
            !transcoder.passes()
                && (self.is_full || self.failed.is_some() || transcoder.holds_more())
        };
        self.failed.is_some() || self.transcoder.as_ref().is_some_and(of)
    }

    /// Is told that no input follows; returns whether more has to come out then.
    pub(crate) fn ends(&mut self) -> bool {
        self.transcoder.as_mut().is_some_and(Transcoder::end)
    }

    pub(crate) fn finish(&mut self) -> Result<(), DecodeError> {
        self.decoder.finish()
    }
}

/// The encoding of a stream, once its first bytes have come.
pub(crate) struct Transcoder {
    /// What was asked for.
    asked: Option<TextEncoding>,
    /// The bytes that have come and are not decoded: while the encoding is not known, the first.
    held: Vec<u8>,
    state: TranscoderState,
    /// What was found, if it is not UTF-8.
    encoding: Option<TextEncoding>,
    ends: bool,
}

enum TranscoderState {
    Begins,
    Known(Box<encoding_rs::Decoder>),
    Utf32 {
        is_big: bool,
    },
    /// What is held passes, and all that follows.
    Passes,
}

impl Transcoder {
    pub(crate) fn new(asked: Option<TextEncoding>) -> Self {
        let asked = asked.filter(|asked| *asked != TextEncoding::Known(UTF_8));
        Self {
            asked,
            held: Vec::new(),
            state: TranscoderState::Begins,
            encoding: None,
            ends: false,
        }
    }

    /// The encoding, if it is known and not UTF-8.
    pub(crate) fn encoding(&self) -> Option<TextEncoding> {
        self.encoding
    }

    /// Whether bytes pass as they are, and none are held.
    fn passes(&self) -> bool {
        matches!(self.state, TranscoderState::Passes) && self.held.is_empty()
    }

    /// Whether more bytes are wanted before any is decoded.
    fn wants_more(&self) -> bool {
        match self.state {
            TranscoderState::Begins => true,
            TranscoderState::Passes => false,
            _ => self.held.len() < 4,
        }
    }

    fn holds_more(&self) -> bool {
        match self.state {
            TranscoderState::Begins => false,
            TranscoderState::Passes => !self.held.is_empty(),
            TranscoderState::Known(_) => self.ends || self.held.len() >= 4,
            TranscoderState::Utf32 { .. } => self.held.len() >= 4,
        }
    }

    /// Is told that nothing follows; returns whether that is news.
    fn end(&mut self) -> bool {
        !std::mem::replace(&mut self.ends, true) && !self.passes()
    }

    /// Decodes what is held to `out`, as far as that has room.
    fn decode(&mut self, out: &mut Output<'_>) {
        if matches!(self.state, TranscoderState::Begins) && !self.begin() {
            return;
        }
        let taken = match &mut self.state {
            TranscoderState::Begins => 0,
            TranscoderState::Passes => {
                let taken = self.held.len().min(out.rest().len());
                out.rest()[..taken].copy_from_slice(&self.held[..taken]);
                out.advance(taken);
                taken
            }
            TranscoderState::Known(decoder) => {
                // The longest character and what a decoder may add.
                if out.rest().len() < 16 {
                    return;
                }
                let (result, read, made, _) =
                    decoder.decode_to_utf8(&self.held, out.rest(), self.ends);
                out.advance(made);
                if self.ends && result == CoderResult::InputEmpty {
                    // It may not be asked again.
                    self.state = TranscoderState::Passes;
                    self.held.clear();
                    return;
                }
                read
            }
            TranscoderState::Utf32 { is_big } => {
                let read = if *is_big { u32::from_be_bytes } else { u32::from_le_bytes };
                let mut taken = 0;
                while let Some(code) = self.held[taken..].first_chunk::<4>() {
                    let char = char::from_u32(read(*code)).unwrap_or(char::REPLACEMENT_CHARACTER);
                    if out.rest().len() < 4 {
                        break;
                    }
                    let made = char.encode_utf8(out.rest()).len();
                    out.advance(made);
                    taken += 4;
                }
                if self.ends && self.held.len() - taken < 4 { self.held.len() } else { taken }
            }
        };
        self.held.drain(..taken);
    }

    /// Finds the encoding by the first bytes, unless more have to come.
    fn begin(&mut self) -> bool {
        let head = &self.held[..];
        let is_xml = head.starts_with(b"<?xml");
        let goes_on = |whole: &[u8]| head.len() < whole.len() && whole.starts_with(head);
        let marks: [&[u8]; 4] = [b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"\xfe\xff", b"<?xml"];
        let is_open = is_xml && head.len() < HEAD_BYTES && memmem::find(head, b"?>").is_none();
        if !self.ends && (head.is_empty() || is_open || marks.iter().any(|mark| goes_on(mark))) {
            return false;
        }
        let marked = TextEncoding::of_mark(head);
        let is_utf8 = head.starts_with(crate::input::document::BYTE_ORDER_MARK);
        let asked = self.asked.filter(|_| !is_utf8);
        let found = marked.or_else(|| {
            let declared = TextEncoding::of_xml(&head[..head.len().min(HEAD_BYTES)]);
            Some((declared.or(asked)?, 0))
        });
        self.encoding = found.map(|(encoding, _)| encoding);
        self.state = match found {
            Some((TextEncoding::Known(known), _)) => {
                let decoder = Box::new(known.new_decoder_without_bom_handling());
                TranscoderState::Known(decoder)
            }
            Some((TextEncoding::Utf32 { is_big }, _)) => TranscoderState::Utf32 { is_big },
            None => TranscoderState::Passes,
        };
        self.held.drain(..found.map_or(0, |(_, mark)| mark));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Compression;
    use proptest::prelude::*;

    /// Decodes in blocks of `block` bytes into room of `room`.
    fn decoded(bytes: &[u8], asked: Option<&str>, [block, room]: [usize; 2]) -> Vec<u8> {
        let asked = asked.map(|name| name.parse().unwrap());
        let plain = Decoder::new(Compression::None, 20).unwrap();
        let mut decoder = TextDecoder::new(plain, Some(Transcoder::new(asked)));
        let mut all = Vec::new();
        let mut at = 0;
        let mut end = 0;
        loop {
            let mut made = vec![0; room];
            let mut out = Output::new(&mut made);
            at += decoder.decode(&bytes[at..end], &mut out).unwrap();
            let full = out.is_full();
            all.extend_from_slice(out.made());
            if at < end || full || decoder.holds_more() {
                continue;
            }
            if end < bytes.len() {
                end = bytes.len().min(end + block);
            } else if !decoder.ends() {
                return all;
            }
        }
    }

    fn utf16(text: &str, is_big: bool) -> Vec<u8> {
        let bytes = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn utf32(text: &str, is_big: bool) -> Vec<u8> {
        let bytes = |char| match is_big {
            true => u32::from(char).to_be_bytes(),
            false => u32::from(char).to_le_bytes(),
        };
        text.chars().flat_map(bytes).collect()
    }

    #[test]
    fn what_is_found_comes_before_what_was_asked_for() {
        let of = |head: &[u8], asked: &str| {
            let asked = Some(asked.parse().unwrap());
            encoding_of(head, asked).map_or("UTF-8", TextEncoding::name)
        };
        assert_eq!(of(b"{}", "latin1"), "windows-1252");
        assert_eq!(of(b"{}", "utf-8"), "UTF-8");
        assert_eq!(of(b"\xef\xbb\xbf{}", "latin1"), "UTF-8");
        assert_eq!(of(b"\xff\xfe{\0", "latin1"), "UTF-16LE");
        assert_eq!(of(b"\xff\xfe\0\0{\0\0\0", "latin1"), "UTF-32LE");
        assert_eq!(of(b"\0\0\xfe\xff", "latin1"), "UTF-32BE");
        let xml = b"<?xml version='1.0' encoding = 'ISO-8859-2' ?><DOC>";
        assert_eq!(of(xml, "latin1"), "ISO-8859-2");
        assert_eq!(of(b"<?xml version='1.0'?><a encoding='koi8-r'>", "latin1"), "windows-1252");
        assert_eq!(of(b"<?xml encoding=\"utf-16\"?>", "big5"), "Big5");
        assert_eq!(encoding_of(b"", None), None);
        assert!("utf8-lossy".parse::<TextEncoding>().unwrap_err().contains("no encoding"));
    }

    #[test]
    fn the_ends_of_streams_come_out() {
        for sizes in [[1, 16], [3, 20], [99, 99]] {
            for whole in [&b""[..], b"<", b"<?xml", b"\xfe", b"\xef\xbb\xbfx", b"<?xml version"] {
                assert_eq!(decoded(whole, None, sizes), whole);
            }
            assert_eq!(decoded(b"\xff\xfeb\0\x01", None, sizes), "b\u{fffd}".as_bytes());
            assert_eq!(decoded(b"\xff", Some("latin1"), sizes), "ÿ".as_bytes());
            assert_eq!(
                decoded(b"\0\0\xfe\xff\0\x11\0\0\0\0\0b\0", None, sizes),
                "\u{fffd}b".as_bytes()
            );
        }
    }

    #[test]
    fn every_other_byte_is_nul_in_utf16() {
        assert!(
            is_like_utf16(&utf16("{\"id\": 1}", true)) && is_like_utf16(&utf16("a\tb\n", false))
        );
        assert!(!is_like_utf16(b"a\0b") && !is_like_utf16(b"") && !is_like_utf16(&[0; 100]));
        assert!(!is_like_utf16(b"text with a \0 and \0"));
    }

    proptest! {
        #[test]
        fn law_any_text_is_decoded_in_any_blocks(
            text in "\\PC{0,300}", block in 1usize..90, room in 16usize..90,
        ) {
            let sizes = [block, room];
            for (mark, bytes) in [
                (&b"\xff\xfe"[..], utf16(&text, false)),
                (b"\xfe\xff", utf16(&text, true)),
                (b"\xff\xfe\0\0", utf32(&text, false)),
                (b"\0\0\xfe\xff", utf32(&text, true)),
            ] {
                let made = decoded(&[mark, &bytes].concat(), None, sizes);
                prop_assert_eq!(std::str::from_utf8(&made), Ok(&text[..]));
            }
            let made = decoded(&encoding_rs::GB18030.encode(&text).0, Some("gb18030"), sizes);
            let expected = encoding_rs::GB18030.encode(&text).0;
            let expected = encoding_rs::GB18030.decode_without_bom_handling(&expected).0;
            prop_assert_eq!(made, expected.as_bytes());
            prop_assert_eq!(decoded(text.as_bytes(), None, sizes), text.as_bytes());
        }
    }
}
