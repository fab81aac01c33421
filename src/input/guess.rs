//! Finds the formats of files from their names and first bytes.

use super::error::{InputError, io_error};
use super::foreign::ARCHIVES;
use super::{COMPRESSED, Compression, Format, Unknown};
use crate::input::streams::decoder::{Decoder, Output};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes that are read to find a format.
pub(super) const HEAD_BYTES: u64 = 64 << 10;
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
    path.metadata().map_err(|e| io_error(path.display().to_string(), e))
}

pub(super) fn format_of_content(path: &Path) -> Result<Format, InputError> {
    let shown = path.display().to_string();
    if !metadata(path)?.is_file() {
        return Err(InputError::NotAFile { path: shown });
    }
    let head = File::open(path).and_then(read_head).map_err(|e| io_error(&shown, e))?;
    content_format(&shown, &head)
}

/// Finds the format from a file's name, if that has a known ending. Where formats share an ending,
/// the first bytes decide, if they leave no doubt: disks of TREC and many crawls are named as text,
/// and JSON may be lines, an array, or objects over several lines.
pub(super) fn format_of_name(path: &Path) -> Result<Option<Format>, InputError> {
    use Format::{Json, Jsonl, Mediawiki, Text, Trec, Warc};
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let named = Format::by_name(path);
    if bare.ends_with(".ciff") {
        let path = path.display().to_string();
        let unknown = Unknown::Ciff;
        return Err(InputError::UnknownFormat { path, unknown });
    }
    let xml = bare.ends_with(".xml");
    if !xml && !matches!(named, Some(Text | Jsonl)) {
        return Ok(named);
    }
    Ok(match (named, format_of_content(path)) {
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

/// Whether a file's name is that of an archive.
pub(super) fn is_named_as_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    ARCHIVES.iter().any(|ending| bare.ends_with(ending))
}

/// Checks that a file, whose format was given, is not known well to be something else. Of bzip2 and
/// pipes nothing is read before.
pub(super) fn check_given(path: &Path) -> Result<(), InputError> {
    let error = |e| io_error(path.display().to_string(), e);
    if !metadata(path)?.is_file() {
        return Ok(());
    }
    let head = File::open(path).and_then(read_head).map_err(error)?;
    if Compression::by_content(&head) == Compression::Bzip2 {
        return Ok(());
    }
    match content_format(&path.display().to_string(), &head) {
        Err(error @ InputError::UnknownFormat { unknown, .. }) if unknown.is_certain() => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Finds the format from the first bytes of a file, decompressed if need be.
pub(super) fn content_format(path: &str, head: &[u8]) -> Result<Format, InputError> {
    let mut text = vec![0; HEAD_BYTES as usize];
    let mut out = Output::new(&mut text);
    let unreadable = |e| io_error(path, io::Error::new(ErrorKind::InvalidData, e));
    let mut decoder = Decoder::new(Compression::by_content(head), 27).map_err(unreadable)?;
    decoder.decode(head, &mut out).map_err(unreadable)?;
    Format::by_content(out.made())
        .map_err(|unknown| InputError::UnknownFormat { path: path.to_string(), unknown })
}
