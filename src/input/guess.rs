//! Finds the formats of files from their names and first bytes.

use super::error::{InputError, io_error};
use super::foreign::{ARCHIVES, of_address};
use super::{COMPRESSED, Compression, Format, Unknown};
use crate::crew::{Crew, cores};
use crate::input::streams::decoder::{DecodeError, Decoder, Output};
use crate::input::streams::encoded::{TextDecoder, TextEncoding, Transcoder};
use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read to find a format.
const HEAD_BYTES: u64 = 64 << 10;
/// As many of bzip2, which decodes nothing before it has a block of up to 900,000 bytes.
const BZIP2_HEAD_BYTES: u64 = 1 << 20;

/// As many of zstd with a dictionary before it.
const DICTIONARY_HEAD_BYTES: u64 = 4 << 20;

pub(super) fn read_head(mut stream: impl Read) -> io::Result<Vec<u8>> {
    // With room for all of it: one read a file, where a vector that grows takes twelve.
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    stream.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    let more = match head[..] {
        [0x5d, 0x2a, 0x4d, 0x18, ..] => DICTIONARY_HEAD_BYTES,
        _ if Compression::by_content(&head) == Compression::Bzip2 => BZIP2_HEAD_BYTES,
        _ => return Ok(head),
    };
    stream.take(more - HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

pub(super) fn metadata(path: &Path) -> Result<Metadata, InputError> {
    let shown = path.display().to_string();
    path.metadata().map_err(|error| io_error(&shown, of_address(&shown).unwrap_or(error)))
}

pub(super) fn format_of_content(
    path: &Path,
    asked: Option<TextEncoding>,
) -> Result<Format, InputError> {
    content_format(&path.display().to_string(), &head_of_file(path)?, asked)
}

fn head_of_file(path: &Path) -> Result<Vec<u8>, InputError> {
    let shown = path.display().to_string();
    if !metadata(path)?.is_file() {
        return Err(InputError::NotAFile { path: shown });
    }
    File::open(path).and_then(read_head).map_err(|e| io_error(shown, e))
}

pub(super) fn text_of_file(
    path: &Path,
    asked: Option<TextEncoding>,
) -> Result<Vec<u8>, InputError> {
    text_of(&path.display().to_string(), &head_of_file(path)?, asked)
}

fn known<T>(found: Result<T, Unknown>, path: &str) -> Result<T, InputError> {
    found.map_err(|unknown| InputError::UnknownFormat { path: path.to_string(), unknown })
}

/// The format, unless it should have lines and has none, but carriage returns.
fn with_lines(format: Format, text: &[u8]) -> Result<Format, Unknown> {
    if memchr::memchr(b'\n', text).is_some() {
        return Ok(format);
    }
    let first = memchr::memchr(b'\r', text).unwrap_or(text.len());
    let behind = text[first..].trim_ascii();
    let are_lines = match format {
        Format::Jsonl => memchr::memmem::find(text, b"}\r{").is_some(),
        Format::Tsv => behind.contains(&b'\t'),
        Format::Csv | Format::Plaintext => !behind.is_empty(),
        _ => false,
    };
    if are_lines { Err(Unknown::Returns) } else { Ok(format) }
}

/// Finds the format from a file's name, if that has a known ending. Where formats share an ending,
/// the first bytes decide, if they leave no doubt: disks of TREC and many crawls are named as text,
/// and JSON may be lines, an array, or objects over several lines.
pub(super) fn format_of_name(
    path: &Path,
    asked: Option<TextEncoding>,
) -> Result<Option<Format>, InputError> {
    use Format::{Csv, Json, Jsonl, Mediawiki, Plaintext, Text, Trec, Tsv, Warc};
    let bare = bare_name(path);
    let shown = path.display().to_string();
    let named = Format::by_name(path);
    if bare.ends_with(".ciff") {
        return known(Err(Unknown::Ciff), &shown);
    }
    let xml = bare.ends_with(".xml");
    if !xml && !matches!(named, Some(Text | Jsonl | Csv | Tsv | Plaintext)) {
        return Ok(named);
    }
    let text = text_of_file(path, asked);
    let found = text.and_then(|text| {
        let found = known(Format::by_content(&text), &shown)?;
        let lines = named.filter(|named| *named != Jsonl).unwrap_or(found);
        known(with_lines(lines, &text), &shown)?;
        Ok(found)
    });
    Ok(match (named, found) {
        (_, Err(error @ InputError::UnknownFormat { unknown, .. })) if unknown.is_certain() => {
            return Err(error);
        }
        (Some(Jsonl), Ok(found @ (Json | Jsonl))) => Some(found),
        (Some(Text), Ok(found @ (Trec | Warc | Mediawiki))) => Some(found),
        (Some(Text), Err(error @ InputError::UnknownFormat { unknown: Unknown::Binary, .. })) => {
            return Err(error);
        }
        (None, Ok(found @ (Trec | Mediawiki))) => Some(found),
        (named, _) => named,
    })
}

/// A file's name in lower case, without the ending of a compression.
fn bare_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending));
    bare.map_or(name.clone(), str::to_string)
}

/// The ending of a file's name, in lower case and without that of a compression.
pub(super) fn ending(path: &Path) -> String {
    let bare = bare_name(path);
    bare.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_string())
}

/// Whether a file's name is that of an archive.
pub(super) fn is_named_as_archive(path: &Path) -> bool {
    let bare = bare_name(path);
    ARCHIVES.iter().any(|ending| bare.ends_with(ending))
}

/// Checks that a file, whose format was given, is not known well to be something else. Of bzip2 and
/// pipes nothing is read before.
pub(super) fn check_given(path: &Path, asked: Option<TextEncoding>) -> Result<(), InputError> {
    if !metadata(path)?.is_file() {
        return Ok(());
    }
    let head = head_of_file(path)?;
    if Compression::by_content(&head) == Compression::Bzip2 {
        return Ok(());
    }
    match content_format(&path.display().to_string(), &head, asked) {
        Err(error @ InputError::UnknownFormat { unknown, .. }) if unknown.is_certain() => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// What is named to be read.
pub(super) enum NamedInput {
    Folder,
    File(Format),
}

impl NamedInput {
    fn find(
        path: &Path,
        format: Option<Format>,
        asked: Option<TextEncoding>,
        is_index: impl Fn(&Path, bool) -> bool,
    ) -> Result<Self, InputError> {
        let is_folder = metadata(path)?.is_dir();
        if is_index(path, is_folder) {
            return Err(InputError::IsIndex { path: path.display().to_string() });
        }
        if is_folder {
            return Ok(Self::Folder);
        }
        let named = match format {
            Some(_) => check_given(path, asked).map(|()| format)?,
            None => format_of_name(path, asked)?,
        };
        named.map_or_else(|| format_of_content(path, asked), Ok).map(Self::File)
    }
}

/// Files for which another thread pays, whose beginnings are looked at.
const LOOKED_AT: usize = 32;

/// What each of some paths is, by several threads. `is_index` tells of a path, and whether it is a
/// folder, if it is of an index.
pub(super) fn look_at(
    paths: &[PathBuf],
    format: Option<Format>,
    asked: Option<TextEncoding>,
    is_index: impl Fn(&Path, bool) -> bool + Sync,
) -> Vec<Result<NamedInput, InputError>> {
    let find = |(): &mut (), at: usize| {
        Ok::<_, Infallible>(NamedInput::find(&paths[at], format, asked, &is_index))
    };
    let threads = cores().min(paths.len() / LOOKED_AT + 1);
    let Ok(found) = Crew::new("lister").in_order(threads, paths.len(), find);
    found
}

/// Finds the format from the first bytes of a file, decompressed if need be.
pub(super) fn content_format(
    path: &str,
    head: &[u8],
    asked: Option<TextEncoding>,
) -> Result<Format, InputError> {
    let text = text_of(path, head, asked)?;
    known(Format::by_content(&text).and_then(|format| with_lines(format, &text)), path)
}

/// What the first bytes of a file say, in UTF-8.
pub(super) fn text_of(
    path: &str,
    head: &[u8],
    asked: Option<TextEncoding>,
) -> Result<Vec<u8>, InputError> {
    let unreadable = |e: DecodeError| io_error(path, e.into());
    let mut text = vec![0; HEAD_BYTES as usize];
    let mut out = Output::new(&mut text);
    let decoder = Decoder::new(Compression::by_content(head), 27).map_err(unreadable)?;
    let mut decoder = TextDecoder::new(decoder, Some(Transcoder::new(asked)));
    let mut at = 0;
    loop {
        let before = out.made().len();
        let taken = decoder.decode(&head[at..], &mut out).map_err(unreadable)?;
        at += taken;
        let is_stuck = taken == 0 && out.made().len() == before;
        if out.is_full() || is_stuck && !(at == head.len() && decoder.ends()) {
            break;
        }
    }
    let made = out.made().len();
    text.truncate(made);
    Ok(text)
}
