//! Turns a stream of text in another encoding into UTF-8, before it is cut. So all that is behind
//! sees UTF-8, and offsets count the bytes of that. Documents, queries, judgements and lists are
//! read so.
//!
//! A byte order mark comes first, then what the head of an XML file says, then what was asked for;
//! without any of these the stream is UTF-8. UTF-8 passes as it is, damaged or not.

use super::decoder::{DecodeError, Decoder, Output, TakenBytes};
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

const UTF8: TextEncoding = TextEncoding::Known(UTF_8);

/// Byte order marks. That of UTF-32 stands before that of UTF-16, which it begins with.
const MARKS: [(&[u8], TextEncoding); 5] = [
    (b"\xff\xfe\0\0", TextEncoding::Utf32 { is_big: false }),
    (b"\0\0\xfe\xff", TextEncoding::Utf32 { is_big: true }),
    (b"\xef\xbb\xbf", UTF8),
    (b"\xff\xfe", TextEncoding::Known(UTF_16LE)),
    (b"\xfe\xff", TextEncoding::Known(UTF_16BE)),
];

const XML: &[u8] = b"<?xml";

/// The head of an XML file, which names the encoding, is not longer.
pub(crate) const XML_HEAD_BYTES: usize = 1 << 10;

/// Bytes that are looked at for UTF-16 without a mark.
const LOOKED_AT: usize = 256;

impl TextEncoding {
    /// What a stream that begins so says of itself, and the bytes of its mark.
    fn told(head: &[u8]) -> Option<(Self, usize)> {
        let marked = MARKS.iter().find(|(mark, _)| head.starts_with(mark));
        let marked = marked.map(|(mark, encoding)| (*encoding, mark.len()));
        marked.or_else(|| Some((Self::of_xml(&head[..head.len().min(XML_HEAD_BYTES)])?, 0)))
    }

    /// What the first tag of an XML file says. As its bytes are those of ASCII, a name of an
    /// encoding that has others, such as UTF-16, is wrong, and stands where UTF-8 is likeliest.
    fn of_xml(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(XML)?;
        let head = &head[..memmem::find(head, b"?>")?];
        let name = memmem::find(head, b"encoding").map(|at| head[at + 8..].trim_ascii_start())?;
        let name = name.strip_prefix(b"=")?.trim_ascii_start();
        let (quote, name) = name.split_first()?;
        let found = Self::of_label(&name[..memchr::memchr(*quote, name)?])?;
        Some(if found.keeps_ascii() { found } else { UTF8 })
    }

    /// Whether more bytes behind these may tell another encoding.
    fn may_tell(head: &[u8]) -> bool {
        let goes_on = |whole: &[u8]| head.len() < whole.len() && whole.starts_with(head);
        let is_open = || head.len() < XML_HEAD_BYTES && memmem::find(head, b"?>").is_none();
        MARKS.iter().any(|(mark, _)| goes_on(mark))
            || goes_on(XML)
            || head.starts_with(XML) && is_open()
    }

    fn of_label(label: &[u8]) -> Option<Self> {
        match &label.to_ascii_lowercase()[..] {
            b"utf-32le" | b"utf-32" | b"utf32le" | b"utf32" => Some(Self::Utf32 { is_big: false }),
            b"utf-32be" | b"utf32be" => Some(Self::Utf32 { is_big: true }),
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
                "`{name}` is no encoding that is known, such as latin1, windows-1251, gb18030, \
                 shift_jis, utf-16le or utf-32le"
            )
        })
    }
}

/// Whether bytes look like UTF-16 or UTF-32 without a mark: as in ASCII that is written so, NULs
/// stand at places of one kind alone.
pub(crate) fn is_unmarked(head: &[u8]) -> bool {
    let head = &head[..head.len().min(LOOKED_AT) & !1];
    let nuls = |from: usize| head.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
    let even = nuls(0);
    let odd = nuls(1);
    head.len() >= 4 && even.min(odd) * 2 <= head.len() / 2 && even.max(odd) * 8 >= head.len() * 3
}

/// The encoding of the text that begins so, if it is not UTF-8.
pub(crate) fn encoding_of(head: &[u8], asked: Option<TextEncoding>) -> Option<TextEncoding> {
    let told = TextEncoding::told(head).map(|(encoding, _)| encoding);
    told.or(asked).filter(|found| *found != UTF8)
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

    pub(crate) fn allow_window(&mut self, bytes: u64) {
        self.decoder.allow_window(bytes);
    }

    /// As [`Decoder::decode`], and what it says of errors.
    pub(crate) fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
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
        let state = TranscoderState::Begins;
        Self { asked, held: Vec::new(), state, encoding: None, ends: false }
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
            TranscoderState::Utf32 { .. } => {
                self.held.len() >= 4 || self.ends && !self.held.is_empty()
            }
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
                for code in self.held.chunks(4) {
                    // What is cut at the end is no character, either.
                    let char = code.try_into().ok().and_then(|code| char::from_u32(read(code)));
                    let is_begun = code.len() < 4 && !self.ends;
                    if is_begun || out.rest().len() < 4 {
                        break;
                    }
                    let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
                    let made = char.encode_utf8(out.rest()).len();
                    out.advance(made);
                    taken += code.len();
                }
                taken
            }
        };
        self.held.drain(..taken);
    }

    /// Finds the encoding by the first bytes, unless more have to come.
    fn begin(&mut self) -> bool {
        if !self.ends && TextEncoding::may_tell(&self.held) {
            return false;
        }
        self.encoding = encoding_of(&self.held, self.asked);
        self.state = match self.encoding {
            Some(TextEncoding::Known(known)) => {
                let decoder = Box::new(known.new_decoder_without_bom_handling());
                TranscoderState::Known(decoder)
            }
            Some(TextEncoding::Utf32 { is_big }) => TranscoderState::Utf32 { is_big },
            None => TranscoderState::Passes,
        };
        // That of UTF-8 is dropped by parsers.
        if self.encoding.is_some() {
            let mark = TextEncoding::told(&self.held).map_or(0, |(_, mark)| mark);
            self.held.drain(..mark);
        }
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
        // Its bytes show that the name is wrong.
        for wrong in ["utf-16", "UTF-32", "iso-10646-ucs-2"] {
            assert_eq!(of(format!("<?xml encoding=\"{wrong}\"?>").as_bytes(), "big5"), "UTF-8");
        }
        assert_eq!(of(b"<?xml encoding='klingon'?>", "big5"), "Big5");
        assert_eq!(of(b"<?xml version='1.0' encoding='utf-8'?>", "latin1"), "UTF-8");
        assert_eq!(of(b"<top encoding='koi8-r'?>", "latin1"), "windows-1252");
        assert_eq!(encoding_of(b"", None), None);
        assert!("utf8-lossy".parse::<TextEncoding>().unwrap_err().contains("no encoding"));
    }

    #[test]
    fn the_ends_of_streams_come_out() {
        for sizes in [[1, 16], [3, 20], [99, 99]] {
            for whole in
                [&b""[..], b"<", b"<?xml", b"\xfe", b"\xef\xbb", b"\xef\xbb\xbfx", b"<?xml version"]
            {
                assert_eq!(decoded(whole, None, sizes), whole);
            }
            assert_eq!(decoded(b"\xff\xfeb\0\x01", None, sizes), "b\u{fffd}".as_bytes());
            assert_eq!(decoded(b"\xff", Some("latin1"), sizes), "ÿ".as_bytes());
            for cut in [&b"\0"[..], b"\0\0", b"\0\0\0"] {
                let whole = [b"\0\0\xfe\xff\0\x11\0\0\0\0\0b", cut].concat();
                assert_eq!(decoded(&whole, None, sizes), "\u{fffd}b\u{fffd}".as_bytes());
            }
        }
    }

    #[test]
    fn utf16_and_utf32_without_a_mark_are_seen() {
        for text in ["{\"id\": 1}", "17\tdark matter\n", "a dash \u{2014} in it\n"] {
            for is_big in [false, true] {
                assert!(is_unmarked(&utf16(text, is_big)), "{text}");
                assert!(is_unmarked(&utf32(text, is_big)), "{text}");
            }
        }
        assert!(is_unmarked(b"\0a\0b\0c"));
        let all = [0; 100];
        for text in [&b"dark\0matter"[..], b"", b"a\0", &all, b"a b c", b"with a \0 and \0"] {
            assert!(!is_unmarked(text), "{text:?}");
        }
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
