//! The constants of the format: every number and name of `docs/index-format.md`, and the header of
//! all binary files.

use crate::index::error::IndexError;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::path::{Path, PathBuf};

/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 5;
pub(crate) const MAGIC: [u8; 8] = *b"MILLRACE";
pub(crate) const HEADER_BYTES: usize = 64;
/// Sections are padded to a multiple of this many bytes.
pub(crate) const ALIGNMENT: u64 = 8;

pub(crate) const LEXICON_BLOCK: usize = 16;
/// Entries of the lexicon's directory: one a collection, and the end.
pub(crate) const DIRECTORY_ENTRIES: usize = TRIE_COLLECTIONS + 1;
pub(crate) const MAX_TERM_BYTES: usize = 255;
/// Stands for the length of a document that has at least this many tokens.
pub(crate) const LONG: u16 = u16::MAX;

/// Zero bytes behind the last list and its padding, so that wide loads stay inside the file.
pub(crate) const POSTINGS_SLACK: u64 = 64;

/// The file that names the live generation.
pub(crate) const CURRENT: &str = "CURRENT";
/// The folder of the history of the rebuilds of a job file, in that of its index.
pub(crate) const HISTORY: &str = "rebuild";
/// In that folder if documents may come by call too.
pub(crate) const WRITABLE: &str = "writable";
/// The file that names the older generations that are kept.
pub(crate) const KEPT: &str = "KEPT";
/// The file of a rollback that holds.
pub(crate) const HELD: &str = "HELD";
pub(crate) const CACHE_PLAN: &str = "cache.plan";
/// The file that a build or a merge locks.
pub(crate) const LOCK: &str = "LOCK";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const RUNS: &str = "runs";
/// The file of a generation's inputs.
pub(crate) const INPUTS: &str = "inputs";
/// The file of what a generation leaves out of its runs.
pub(crate) const DELETIONS: &str = "deletions";

/// The indexer of an imported index: lengths of documents are what the other engine says, which
/// need not be the sums of term frequencies.
pub(crate) const IMPORTED: &str = "import";

/// The format in the settings of an index of learned vectors: its terms stay as they are.
pub(crate) const VECTORS: &str = "vectors";

// The arrays of a file are used as they are mapped.
const _: () = assert!(cfg!(target_endian = "little"), "millrace needs a little-endian machine");

/// `gen-000001`.
pub fn generation_name(number: u32) -> String {
    format!("gen-{number:06}")
}

pub fn generation_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("gen-")?.parse().ok()?;
    (generation_name(number) == name).then_some(number)
}

/// `000000`.
pub(crate) fn run_name(number: u32) -> String {
    format!("{number:06}")
}

pub(crate) fn is_run_name(name: &str) -> bool {
    name.parse().is_ok_and(|number| run_name(number) == name)
}

/// Lists with a full block begin at a multiple of this many bytes, so that devices read blocks of
/// `bp128` in units of 16 bytes.
pub(crate) const LIST_ALIGNMENT: u64 = 16;

/// Bytes of a page of the postings, the unit of their checksums.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Bytes of a block of other files, the unit of their checksums.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// Whether the file at a path, of an index, ends with the checksums of its blocks.
pub(crate) fn has_sums(path: &Path) -> bool {
    let name = path.extension().or(path.file_name());
    let kinds = FileKind::OWN.into_iter().chain(FileKind::OPTIONAL);
    let mut kinds = kinds.chain([FileKind::Deletions, FileKind::Inputs]);
    let has_pages = |kind| matches!(kind, FileKind::Postings | FileKind::Positions);
    kinds.any(|kind| !has_pages(kind) && name.is_some_and(|is| is == kind.extension()))
}

/// How many bytes of a file come before the checksums of its blocks.
pub(crate) const fn before_sums(file_bytes: u64) -> u64 {
    // Two checksums fill a multiple of the alignment.
    let pairs = file_bytes.div_ceil(2 * BLOCK_BYTES + ALIGNMENT);
    file_bytes.saturating_sub(pairs * ALIGNMENT)
}

/// Where a list of `df` postings begins if the one before it ends at byte `end` of the lists; none
/// if that is beyond all files.
#[inline]
pub(crate) const fn list_start(end: u64, df: u32, block_len: u32) -> Option<u64> {
    if df < block_len { Some(end) } else { end.checked_next_multiple_of(LIST_ALIGNMENT) }
}

/// Pages of lists of `list_bytes` bytes, which begin behind the header.
pub(crate) const fn list_pages(list_bytes: u64) -> u64 {
    match list_bytes {
        0 => 0,
        bytes => bytes.saturating_add(HEADER_BYTES as u64).div_ceil(PAGE_BYTES),
    }
}

/// `runs/000000.lexicon`.
pub(crate) fn run_file(run: &str, kind: FileKind) -> String {
    format!("{RUNS}/{run}.{}", kind.extension())
}

/// `runs/000007.packed/lexicon`, a section of the file `runs/000007.packed`.
pub(crate) fn packed_file(run: &str, kind: FileKind) -> String {
    format!("{}/{}", run_file(run, FileKind::Packed), kind.extension())
}

/// The name of the run whose file the manifest names so; none of another file.
pub(crate) fn run_of_file(name: &str) -> Option<&str> {
    let name = name.strip_prefix(RUNS)?.strip_prefix('/')?;
    name.split(['.', '-']).next()
}

/// Whether a file in the folder of runs is one that jobs write: `000000.lexicon`, or
/// `000000-000007.moves` for one that generation 7 has written.
pub(crate) fn is_run_file(name: &str) -> bool {
    let Some((run, extension)) = name.split_once('.') else { return false };
    let (run, generation) = run.split_once('-').unwrap_or((run, "000000"));
    // A file that is being written may have others beside it.
    let kind = extension.split('.').next().unwrap_or_default();
    let kinds = FileKind::OWN.into_iter().chain(FileKind::OPTIONAL);
    let mut kinds = kinds.chain([FileKind::Packed]);
    let is_known = kinds.any(|known| known.extension() == kind);
    is_run_name(run) && is_run_name(generation) && is_known
}

/// Where a file lies that the manifest in the folder `generation` names: the runs of all
/// generations of an index are beside these. Another folder has its runs inside, such as that of a
/// part that no index has yet.
pub(crate) fn file_path(generation: &Path, name: &str) -> PathBuf {
    match name.strip_prefix(RUNS) {
        Some(_) => runs_home(generation).join(name),
        None => generation.join(name),
    }
}

/// The folder that has the folder of the runs of a generation.
pub(crate) fn runs_home(generation: &Path) -> &Path {
    let name = generation.file_name().and_then(|name| name.to_str());
    let is_numbered = name.and_then(generation_number).is_some();
    generation.parent().filter(|_| is_numbered).unwrap_or(generation)
}

pub(crate) const fn padding(bytes: u64) -> u64 {
    bytes.wrapping_neg() % ALIGNMENT
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Lexicon,
    Postings,
    Lengths,
    Names,
    Ends,
    Locations,
    /// Documents that lie elsewhere now.
    Moves,
    Hashes,
    Lookup,
    Deletions,
    Inputs,
    /// Where the terms of postings stand in their documents.
    Positions,
    /// The lengths of documents' fields.
    Fields,
    /// Values of documents.
    Columns,
    Texts,
    Scores,
    /// Bounds of blocks of documents.
    Bounds,
    /// All files of a small run.
    Packed,
    CachePlan,
}

impl FileKind {
    pub(crate) const OF_RUN: [Self; 8] = [
        Self::Lexicon,
        Self::Postings,
        Self::Lengths,
        Self::Names,
        Self::Ends,
        Self::Locations,
        Self::Hashes,
        Self::Lookup,
    ];

    /// The same, the positions, lengths of fields, columns and texts, which an index has of all
    /// runs or of none.
    pub(crate) const OWN: [Self; 12] = {
        let mut own = [Self::Positions; 12];
        (own[9], own[10], own[11]) = (Self::Fields, Self::Columns, Self::Texts);
        own.split_at_mut(Self::OF_RUN.len()).0.copy_from_slice(&Self::OF_RUN);
        own
    };

    /// The files that a run may have.
    pub(crate) const OPTIONAL: [Self; 3] = [Self::Moves, Self::Scores, Self::Bounds];

    pub(crate) const OF_DOCUMENTS: [Self; 6] =
        [Self::Lengths, Self::Names, Self::Ends, Self::Locations, Self::Hashes, Self::Lookup];

    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Lexicon => "lexicon",
            Self::Postings => "postings",
            Self::Lengths => "lengths",
            Self::Names => "names",
            Self::Ends => "ends",
            Self::Locations => "locations",
            Self::Moves => "moves",
            Self::Hashes => "hashes",
            Self::Lookup => "lookup",
            Self::Deletions => DELETIONS,
            Self::Inputs => INPUTS,
            Self::Positions => "positions",
            Self::Fields => "fields",
            Self::Columns => "columns",
            Self::Texts => "texts",
            Self::Scores => "scores",
            Self::Bounds => "bounds",
            Self::Packed => "packed",
            Self::CachePlan => "plan",
        }
    }

    /// The first letters of the extension, in upper case.
    pub(crate) fn code(self) -> [u8; 4] {
        let letters = self.extension().as_bytes().first_chunk::<4>();
        let mut code = *letters.expect("extensions have four letters or more");
        code.make_ascii_uppercase();
        code
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub kind: FileKind,
    /// The numbers a to e of `docs/index-format.md`.
    pub values: [u64; 5],
    /// The number f, which only lexicons use.
    pub last: u32,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.kind.code());
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        for (to, value) in bytes[16..56].chunks_exact_mut(8).zip(self.values) {
            to.copy_from_slice(&value.to_le_bytes());
        }
        bytes[56..60].copy_from_slice(&self.last.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of the file at `path` from its first `bytes`. `Damaged` where a byte is
    /// wrong, `Newer` and `Older` for another format version.
    pub(crate) fn parse(path: &Path, kind: FileKind, bytes: &[u8]) -> Result<Self, IndexError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(IndexError::damaged(
                path,
                bytes.len() as u64,
                format_args!("a header of {HEADER_BYTES} bytes"),
                "the end of the file",
            ));
        };
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..8] != MAGIC {
            let found = bytes[..8].escape_ascii();
            return Err(IndexError::damaged(path, 0, "MILLRACE", found));
        }
        let version = u32_at(12);
        let crc = crc32fast::hash(&bytes[..60]);
        let found = u32_at(60);
        let mut ours = *bytes;
        ours[12..16].copy_from_slice(&VERSION.to_le_bytes());
        // The version is damaged where all else is as this program writes it.
        if version != VERSION && crc != found && crc32fast::hash(&ours[..60]) == found {
            return Err(IndexError::damaged(path, 12, format!("version {VERSION}"), version));
        }
        if version > VERSION {
            let path = path.to_path_buf();
            let found = u64::from(version);
            return Err(IndexError::Newer { path, found, supported: VERSION });
        }
        if bytes[8..12] != kind.code() {
            let expected = kind.code();
            let found = bytes[8..12].escape_ascii();
            return Err(IndexError::damaged(path, 8, expected.escape_ascii(), found));
        }
        if crc != found {
            let expected = format!("checksum {crc:08x} of the header");
            return Err(IndexError::damaged(path, 60, expected, format_args!("{found:08x}")));
        }
        if version != VERSION {
            let path = path.to_path_buf();
            let found = u64::from(version);
            return Err(IndexError::Older { path, found, supported: VERSION });
        }
        let last = u32_at(56);
        if last != 0 && kind != FileKind::Lexicon {
            return Err(IndexError::damaged(path, 56, "four zero bytes", last));
        }
        let mut values = [0; 5];
        for (value, from) in values.iter_mut().zip(bytes[16..56].as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*from);
        }
        Ok(Self { kind, values, last })
    }

    /// Checks that the numbers from `used` on are 0.
    pub(crate) fn check_unused(&self, path: &Path, used: usize) -> Result<(), IndexError> {
        match self.values.iter().enumerate().skip(used).find(|(_, value)| **value != 0) {
            Some((i, value)) => Err(IndexError::damaged(path, 16 + 8 * i as u64, 0, value)),
            None => Ok(()),
        }
    }
}

/// Compares the length of a file with the one that its header or the manifest implies; `expected`
/// is `None` when the numbers overflow.
pub(crate) fn check_length(
    path: &Path,
    found: u64,
    expected: Option<u64>,
) -> Result<(), IndexError> {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(IndexError::damaged(
            path,
            found.min(expected),
            format_args!("a file of {expected} bytes"),
            format_args!("{found} bytes"),
        )),
        None => {
            Err(IndexError::damaged(path, 16, "numbers that fit the file", "numbers that overflow"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader { kind: FileKind::Lexicon, values: [1, 2, u64::MAX, 4, 5], last: 6 }
    }

    #[test]
    fn header_round_trip() {
        let bytes = header().encode();
        assert_eq!(FileHeader::parse(Path::new("x"), FileKind::Lexicon, &bytes).unwrap(), header());
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_found() {
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header().encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            FileHeader::parse(Path::new("x"), FileKind::Lexicon, &bytes).unwrap_err();
        }
        for end in 0..HEADER_BYTES {
            FileHeader::parse(Path::new("x"), FileKind::Lexicon, &header().encode()[..end])
                .unwrap_err();
        }
    }

    #[test]
    fn messages_say_what_is_wrong() {
        let parse = |kind, bytes: &[u8]| {
            FileHeader::parse(Path::new("runs/0"), kind, bytes).unwrap_err().to_string()
        };
        let mut bytes = header().encode();
        assert_eq!(parse(FileKind::Names, &bytes), "runs/0: byte 8: expected NAME, found LEXI");
        bytes[12] = 9;
        let wrong = "runs/0: byte 12: expected version 5, found 9";
        assert_eq!(parse(FileKind::Lexicon, &bytes), wrong);
        // Another program has sealed it, in its own way or in ours.
        bytes[61] ^= 1;
        assert!(parse(FileKind::Lexicon, &bytes).contains("format version 9 is newer than 5"));
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        assert!(parse(FileKind::Lexicon, &bytes).contains("format version 9 is newer than 5"));
        let foreign = [b'%'; 64];
        assert!(parse(FileKind::Names, &foreign).contains("byte 0: expected MILLRACE"));
    }

    #[test]
    fn names_are_canonical() {
        assert_eq!(generation_number("gen-000012"), Some(12));
        assert_eq!(generation_number("gen-1234567"), Some(1_234_567));
        for name in ["gen-12", "gen-+00012", "gen-0000012", "gen-", "x", "gen-99999999999"] {
            assert_eq!(generation_number(name), None, "{name}");
        }
        assert!(is_run_name("000000"));
        assert!(!is_run_name("../000"));
    }

    #[test]
    fn checksums_of_blocks_are_found_by_the_length_of_a_file() {
        let borders = (1..5).flat_map(|blocks| [-8i64, 0, 8].map(|by| blocks * (64 << 10) + by));
        for bytes in borders.chain([64, 72, 1 << 40]).map(|bytes| bytes as u64) {
            let sums = 4 * bytes.div_ceil(BLOCK_BYTES);
            let whole = bytes + sums + padding(sums);
            assert_eq!(before_sums(whole), bytes);
            // So no file that was cut short is taken for a whole one.
            for cut in 1..300.min(whole) {
                assert!(before_sums(whole - cut) < bytes, "{bytes} bytes, {cut} less");
            }
        }
        let of = |name: &str| has_sums(Path::new(name));
        assert!(of("i/runs/000007.names") && of("i/runs/000007.packed/names"));
        assert!(of("i/gen-000001/inputs") && of("i/runs/000000-000007.moves"));
        assert!(!of("i/runs/000007.postings") && !of("i/runs/000007.packed"));
    }

    #[test]
    fn padding_reaches_the_next_multiple() {
        assert_eq!((0..9).map(padding).collect::<Vec<_>>(), [0, 7, 6, 5, 4, 3, 2, 1, 0]);
    }
}
