//! Reads a small text file that may be compressed, in any character set, as UTF-8: queries,
//! judgements, lists of words. Offsets in it count the bytes of this UTF-8.

use super::unpacked::Unpacked;
use crate::input::streams::charset::{Charset, CharsetDecoder};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of an open file.
pub fn text_of_file(file: File) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(TextStream::new(Unpacked::new(Box::new(file))?, None)))
}

/// The whole text of a file.
pub fn whole_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    text_of_file(File::open(path)?)?.read_to_end(&mut text)?;
    Ok(text)
}

/// A declaration of XML is looked for in so many first bytes.
const DECLARED_BYTES: usize = 1024;

const PART_BYTES: usize = 64 << 10;

/// A file's text in UTF-8, given as soon as it is there.
pub(crate) struct TextStream {
    stream: Unpacked,
    /// What was asked for.
    asked: Option<Charset>,
    begun: bool,
    decoder: Option<CharsetDecoder>,
    /// What was read: `part[given..]`, or else decoded.
    part: Vec<u8>,
    given: usize,
    ended: bool,
    /// What errors begin with.
    what: String,
}

impl TextStream {
    /// `-` is standard input; a folder is an error.
    pub(crate) fn open(path: &Path, asked: Option<Charset>) -> io::Result<Self> {
        Ok(Self::new(Unpacked::open(path)?, asked))
    }

    pub(crate) fn new(stream: Unpacked, asked: Option<Charset>) -> Self {
        let decoder = None;
        let part = Vec::new();
        let what = String::new();
        Self { stream, asked, begun: false, decoder, part, given: 0, ended: false, what }
    }

    /// Says in errors what is read.
    pub(crate) fn named(self, what: String) -> Self {
        Self { what, ..self }
    }

    /// Reads once, behind what is there.
    fn read_more(&mut self) -> io::Result<()> {
        let before = self.part.len();
        self.part.resize(before + PART_BYTES, 0);
        let read = self.stream.read(&mut self.part[before..]);
        let bytes = *read.as_ref().unwrap_or(&0);
        self.part.truncate(before + bytes);
        self.ended = read? == 0;
        Ok(())
    }

    /// Finds the character set by the first bytes; of what a pipe does not have yet, only the rest
    /// of a mark or of a declaration is waited for.
    fn begin(&mut self) -> io::Result<()> {
        let declares = |head: &[u8]| {
            let open = head.len() < DECLARED_BYTES && memchr::memchr(b'>', head).is_none();
            open && (head.starts_with(b"<?xml") || b"<?xml".starts_with(head))
        };
        while !self.ended && (Charset::may_be_mark(&self.part) || declares(&self.part)) {
            self.read_more()?;
        }
        let marked = Charset::by_mark(&self.part);
        let mark = marked.map_or(0, |(_, mark)| mark);
        let charset = marked.map(|(charset, _)| charset).or_else(|| Charset::declared(&self.part));
        if charset.or(self.asked).is_none() && Charset::is_unmarked(&self.part) {
            let why = "this is UTF-16 or UTF-32 text without a byte order mark: \
                       its character set has to be named";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.begun = true;
        self.decoder = charset.or(self.asked).and_then(CharsetDecoder::new);
        // That of UTF-8 is dropped where it always was.
        if self.decoder.is_some() {
            self.given = mark;
            self.decode();
        }
        Ok(())
    }

    /// Decodes what is there.
    fn decode(&mut self) {
        let Some(decoder) = &mut self.decoder else { return };
        let mut text = String::new();
        decoder.decode(&self.part[self.given..], self.ended, &mut text);
        self.part = text.into_bytes();
        self.given = 0;
    }
}

impl Read for TextStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.give(into);
        read.map_err(|error| match &*self.what {
            "" => error,
            what => io::Error::new(error.kind(), format!("{what}: {error}")),
        })
    }
}

impl TextStream {
    fn give(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            self.begin()?;
        }
        // A part of a character gives nothing yet.
        while self.given == self.part.len() && !self.ended && !into.is_empty() {
            self.part.clear();
            self.given = 0;
            self.read_more()?;
            self.decode();
        }
        let n = into.len().min(self.part.len() - self.given);
        into[..n].copy_from_slice(&self.part[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], asked: Option<&str>) -> io::Result<String> {
        let asked = asked.map(|name| name.parse().unwrap());
        let stream = Unpacked::new(Box::new(io::Cursor::new(bytes.to_vec())))?;
        let mut text = String::new();
        TextStream::new(stream, asked).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn the_mark_comes_before_the_declaration_and_that_before_the_name() {
        let xml = b"<?xml version='1.0' encoding='latin1'?>\xe9";
        assert!(read(xml, Some("koi8-r")).unwrap().ends_with('\u{e9}'));
        assert_eq!(read(b"caf\xe9\n", Some("latin1")).unwrap(), "caf\u{e9}\n");
        assert_eq!(read(b"\xff\xfea\0\n\0", Some("latin1")).unwrap(), "a\n");
        assert_eq!(read("\u{feff}\u{e9}".as_bytes(), Some("latin1")).unwrap(), "\u{feff}\u{e9}");
        assert_eq!(read(b"", None).unwrap(), "");
        assert_eq!(read(b"\xff\xfe", None).unwrap(), "");
        let long = "x\u{e9}".repeat(100_000);
        let wide: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&wide, Some("utf-16le")).unwrap(), long);
        let why = read(&wide[..1000], None).unwrap_err().to_string();
        assert!(why.contains("UTF-16"), "{why}");
    }
}
