//! Reads the input: its files, the pieces that they are cut into, and the documents in these.
//!
//! The first bytes of a file tell its compression ([`Compression`]); its name ([`Format::by_name`])
//! or else the first bytes of its content ([`Format::by_content`]) tell its format, whose parser
//! finds the documents of each piece; [`document`] has what parsers have in common.

use std::fmt;
use std::path::Path;

use crate::index::format::VECTORS;
use crate::settings::names;
use streams::encoded::is_unmarked;

pub(crate) mod borders;
pub(crate) mod cutter;
pub mod document;
pub(crate) mod error;
pub(crate) mod folder;
mod foreign;
pub(crate) mod formats;
mod guess;
pub(crate) mod hash;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod parser;
pub(crate) mod piece;
pub(crate) mod record;
pub(crate) mod sample;
mod seen;
pub(crate) mod splits;
pub(crate) mod streams;
pub(crate) mod turns;
pub(crate) mod wanted;

/// How documents lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A JSON object a line; see `jsonl`.
    Jsonl,
    /// Name, tab, text a line; see `tsv`.
    Tsv,
    /// The file is one document; see `plain`.
    Text,
    /// The file is one page; see `html`.
    Html,
    /// Pages as they were crawled; see `warc`.
    Warc,
    /// SGML as TREC hands it out; see `trec`.
    Trec,
    /// JSON objects that may go over lines, in an array or not; see `json_values`.
    Json,
    /// Records of fields, the first of which names the columns; see `csv`.
    Csv,
    /// Name, white space, text a line; see `plaintext`.
    Plaintext,
    Mediawiki,
    /// A JSON object a line, with learned weights of terms; see `jsonl::vector`.
    Vectors,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// It is not, or in a way that is not known here.
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

/// Why the format of some content cannot be told, or is none that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    Ciff,
    Binary,
    Utf16,
    Returns,
    Archive { what: &'static str, command: &'static str },
    Foreign { what: &'static str, command: &'static str },
    Bulk,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Ciff => "this is an index, not documents (CIFF): import it",
            Self::Binary => {
                "these are binary data, not text; if they are text, the format has to be named"
            }
            Self::Utf16 => {
                "this looks like UTF-16 or UTF-32 without a byte order mark: its encoding has to be named, such as utf-16le"
            }
            Self::Returns => {
                "its lines end with carriage returns only; `tr '\\r' '\\n' < FILE` makes lines of them"
            }
            Self::Archive { what, command } => {
                return write!(
                    f,
                    "this is {what}, which is not read as it is; `{command}` unpacks it"
                );
            }
            Self::Foreign { what, command } => {
                return write!(
                    f,
                    "this is {what}, which is not read as it is; `{command}` makes text of it"
                );
            }
            Self::Bulk => {
                "this is input for the bulk interface of Elasticsearch; `jq -nc 'inputs as $action | input + {id: $action[]._id}' FILE` makes JSON lines of it"
            }
        };
        f.write_str(text)
    }
}

/// Endings that names of compressed files have behind those of their formats.
pub const COMPRESSED: [&str; 5] = [".gz", ".zst", ".zstd", ".bz2", ".xz"];

/// Bytes in which a NUL makes content binary.
const BINARY_HEAD_BYTES: usize = 8192;

/// Lines that are looked at to tell TSV from other text.
const HEAD_LINES: usize = 100;

names!(Format {
    Jsonl = "jsonl",
    Tsv = "tsv",
    Text = "text",
    Html = "html",
    Warc = "warc",
    Trec = "trec",
    Json = "json",
    Csv = "csv",
    Plaintext = "plaintext",
    Mediawiki = "mediawiki",
    Vectors = VECTORS,
});

impl Format {
    pub(crate) fn file_is_document(self) -> bool {
        matches!(self, Format::Text | Format::Html)
    }

    /// Whether each document says in which encoding it is, and is decoded by itself.
    pub(crate) fn documents_tell_encoding(self) -> bool {
        matches!(self, Format::Html | Format::Warc)
    }

    /// Tells the format by the extension of a file's name, a compression's left aside, in any case.
    pub(crate) fn by_name(path: &Path) -> Option<Format> {
        let extension = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        let mut found = extension(path)?;
        if COMPRESSED.iter().any(|ending| ending[1..] == found) {
            found = extension(Path::new(path.file_stem()?))?;
        }
        match found.as_str() {
            "jsonl" | "json" | "ndjson" => Some(Format::Jsonl),
            "tsv" => Some(Format::Tsv),
            "csv" => Some(Format::Csv),
            "plaintext" => Some(Format::Plaintext),
            "txt" | "text" | "md" | "markdown" => Some(Format::Text),
            "html" | "htm" => Some(Format::Html),
            "warc" | "wet" => Some(Format::Warc),
            "trec" | "trectext" | "trecweb" => Some(Format::Trec),
            _ => None,
        }
    }

    /// Tells the format by the first bytes of the uncompressed content, of which some thousand are
    /// enough. A first `{` makes it JSON lines, or JSON over lines if the first line breaks off
    /// where it may; so does `[` before `{`. It is TSV if the first line, and three of four of the
    /// lines at the head, have a tab behind a first field without white space. What is nothing else
    /// is text, and so is an empty file.
    ///
    /// # Errors
    /// [`Unknown`] if this is UTF-16, or not text: a NUL among the first bytes, or more than 30 %
    /// of `head` not UTF-8, or more than 1 % control characters.
    pub(crate) fn by_content(head: &[u8]) -> Result<Format, Unknown> {
        if let Some(archive) = foreign::archive(head) {
            return Err(archive);
        }
        if is_unmarked(head) {
            return Err(Unknown::Utf16);
        }
        let head = head.strip_prefix(document::BYTE_ORDER_MARK).unwrap_or(head);
        let begin = head.trim_ascii_start();
        if head.starts_with(b"WARC/") && head.get(5).is_some_and(u8::is_ascii_digit) {
            return Ok(Format::Warc);
        }
        let begins = |tag: &[u8]| {
            let ends = |byte: &u8| *byte == b'>' || byte.is_ascii_whitespace();
            let found = begin.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
            found && begin.get(tag.len()).is_some_and(ends)
        };
        let has = |tag: &[u8]| begin.windows(tag.len()).any(|w| w.eq_ignore_ascii_case(tag));
        if begins(b"<doc") && (has(b"<docno>") || has(b"</doc>")) {
            return Ok(Format::Trec);
        }
        if begins(b"<!doctype html") || begins(b"<html") {
            return Ok(Format::Html);
        }
        if begins(b"<mediawiki") {
            return Ok(Format::Mediawiki);
        }
        if memchr::memchr(0, &head[..head.len().min(BINARY_HEAD_BYTES)]).is_some() {
            return Err(Unknown::Binary);
        }
        match begin {
            [b'{', ..] if foreign::is_bulk(begin) => return Err(Unknown::Bulk),
            [b'{', ..] if goes_on_over_lines(begin) => return Ok(Format::Json),
            [b'{', ..] => return Ok(Format::Jsonl),
            [b'[', rest @ ..] if matches!(rest.trim_ascii_start(), [b'{' | b']', ..]) => {
                return Ok(Format::Json);
            }
            _ => {}
        }
        if invalid_bytes(head) * 10 > head.len() * 3 || control_bytes(head) * 100 > head.len() {
            return Err(Unknown::Binary);
        }
        Ok(match () {
            () if is_tsv(head) => Format::Tsv,
            () if is_csv(begin) => Format::Csv,
            () => Format::Text,
        })
    }
}

/// Whether the object that `head` begins with does not end on its line, although nothing is wrong:
/// the line ends where JSON may be broken.
pub(crate) fn goes_on_over_lines(head: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'\n', head) else { return false };
    matches!(head[..end].trim_ascii_end(), [.., b'{' | b'[' | b',' | b':'])
}

/// Counts the bytes of control characters that no text has.
fn control_bytes(head: &[u8]) -> usize {
    let is = |byte: &&u8| **byte < b' ' && !matches!(**byte, 0x08..=b'\r' | 0x1a | 0x1b);
    head.iter().filter(is).count()
}

/// Tells whether the first line looks like the head of CSV: fields parted by commas or semicolons,
/// of which one names documents, and one is text.
fn is_csv(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii_end().to_ascii_lowercase();
    let fields = formats::fields::Fields::default();
    [b',', b';'].iter().any(|separator| {
        let names: Vec<_> = line.split(|byte| byte == separator).map(unquoted).collect();
        names.len() > 1
            && names.iter().any(|name| fields.name_rank(name).is_some())
            && names.iter().any(|name| fields.text_number(name).is_some())
    })
}

fn unquoted(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    name.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(name)
}

/// Counts the bytes that are not UTF-8; a character that `head` cuts off at its end is.
fn invalid_bytes(head: &[u8]) -> usize {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => return 0,
        Err(error) if error.error_len().is_none() => return 0,
        Err(_) => head.utf8_chunks().map(|chunk| chunk.invalid()),
    };
    whole.map(<[u8]>::len).sum()
}

/// A line that is cut off does not count, if there are others.
fn is_tsv(head: &[u8]) -> bool {
    let head = match memchr::memrchr(b'\n', head) {
        Some(last_end) => &head[..last_end],
        None => head,
    };
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && *line != b"\r")
        .take(HEAD_LINES)
        .map(|line| match memchr::memchr(b'\t', line) {
            Some(tab) => tab > 0 && !line[..tab].iter().any(u8::is_ascii_whitespace),
            None => false,
        });
    if lines.next() != Some(true) {
        return false;
    }
    let (alike, all) = lines.fold((1, 1), |(alike, all), is| (alike + usize::from(is), all + 1));
    alike * 4 >= all * 3
}

names!(Compression { None = "none", Gzip = "gzip", Zstd = "zstd", Bzip2 = "bzip2", Xz = "xz" });

impl Compression {
    /// Tells the compression by the first bytes of a file, of which [`MARK_BYTES`] are enough.
    pub fn by_content(head: &[u8]) -> Compression {
        let is = |mark: &[u8]| head.len() >= mark.len().min(6) && fits(mark, head);
        let found = MARKS.iter().find(|(mark, _)| is(mark));
        found.map_or(Compression::None, |(_, compression)| *compression)
    }

    /// Whether more bytes behind these may make them the mark of a compression.
    pub(crate) fn may_begin(head: &[u8]) -> bool {
        MARKS.iter().any(|(mark, _)| head.len() < mark.len() && fits(mark, head))
    }
}

/// The bytes of the longest mark of a compression.
pub(crate) const MARK_BYTES: usize = 10;

/// What compressed files begin with. `BZh1 to some people` is text: behind the level of bzip2
/// stands the mark of its first block, or that of its end.
const MARKS: [(&[u8], Compression); 6] = [
    (b"\x1f\x8b", Compression::Gzip),
    (b"\x28\xb5\x2f\xfd", Compression::Zstd),
    // A skippable frame of Zstandard, with which some of its tools begin.
    (b"\x50\x2a\x4d\x18", Compression::Zstd),
    (b"BZh1\x31\x41\x59\x26\x53\x59", Compression::Bzip2),
    (b"BZh1\x17\x72\x45\x38\x50\x90", Compression::Bzip2),
    (b"\xfd7zXZ\0", Compression::Xz),
];

/// Whether bytes and a mark are alike as far as both go. Frames are of sixteen kinds, and bzip2 has
/// nine levels.
fn fits(mark: &[u8], head: &[u8]) -> bool {
    mark.iter().zip(head).enumerate().all(|(at, (mark, byte))| match (at, mark) {
        (0, 0x50) => byte & 0xf0 == 0x50,
        (3, b'1') => (b'1'..=b'9').contains(byte),
        _ => mark == byte,
    })
}

#[cfg(test)]
mod tests;
