//! All files of a small run in one, its *pack* (`docs/index-format.md`, Packs): what an update
//! publishes is then one file to write, to sync and to remove. Its files are sections of the pack,
//! as they would lie alone; `runs/000007.packed/lexicon` is the path of one.

use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{
    FileHeader, FileKind, HEADER_BYTES, before_sums, check_length, has_sums, packed_file, run_file,
};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Sections begin at multiples of this.
const SECTION_ALIGNMENT: u64 = HEADER_BYTES as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
struct PackEntry {
    code: [u8; 4],
    zero: u32,
    start: u64,
    bytes: u64,
}

const ENTRY_BYTES: usize = size_of::<PackEntry>();

/// Where a file of an index lies: the whole of a file, or a section of a pack.
#[derive(Debug)]
pub(crate) struct FilePlace {
    pub path: PathBuf,
    pub file: File,
    pub start: u64,
    pub bytes: u64,
    /// With the checksums of its blocks.
    pub whole: u64,
}

/// The file on the disk that is or has this file of an index.
pub(crate) fn on_disk(path: &Path) -> &Path {
    let extension = FileKind::Packed.extension();
    path.parent().filter(|pack| pack.extension().is_some_and(|is| is == extension)).unwrap_or(path)
}

/// Finds and opens a file of an index.
pub(crate) fn open(path: &Path) -> Result<FilePlace, IndexError> {
    let pack = on_disk(path);
    let file = plain::open(pack)?;
    let length = file.metadata().map_err(IndexError::storage("open", pack))?.len();
    let bytes = |whole: u64| if has_sums(path) { before_sums(whole) } else { whole };
    let whole =
        FilePlace { path: pack.to_path_buf(), file, start: 0, bytes: length, whole: length };
    if pack == path {
        return Ok(FilePlace { bytes: bytes(length), ..whole });
    }
    let sections = read_sections(&whole)?;
    let is_it = |section: &&PackEntry| {
        let kind = FileKind::OWN.into_iter().find(|kind| kind.code() == section.code);
        kind.is_some_and(|kind| path.file_name().is_some_and(|name| name == kind.extension()))
    };
    let missing = || IndexError::damaged(path, 0, "a section of its pack", "none");
    let section = sections.iter().find(is_it).ok_or_else(missing)?;
    let (start, length) = (section.start, section.bytes);
    Ok(FilePlace { start, bytes: bytes(length), whole: length, ..whole })
}

/// The sections of a pack, which lie behind one another to its end.
fn read_sections(pack: &FilePlace) -> Result<Vec<PackEntry>, IndexError> {
    let FilePlace { path, file, .. } = pack;
    let read = |bytes: &mut [u8], at| {
        file.read_exact_at(bytes, at).map_err(IndexError::storage("read", path))
    };
    let mut header = [0; HEADER_BYTES];
    let there = HEADER_BYTES.min(pack.bytes as usize);
    read(&mut header[..there], 0)?;
    let header = FileHeader::parse(path, FileKind::Packed, &header[..there])?;
    header.check_unused(path, 2)?;
    let [count, crc32, ..] = header.values;
    let most = FileKind::OWN.len() as u64;
    if count > most {
        return Err(IndexError::damaged(path, 16, format!("{most} sections at most"), count));
    }
    let blank = PackEntry { code: [0; 4], zero: 0, start: 0, bytes: 0 };
    let mut sections = vec![blank; count as usize];
    let body = HEADER_BYTES as u64;
    let mut end = body + count * ENTRY_BYTES as u64;
    check_length(path, pack.bytes.min(end), Some(end))?;
    read(bytemuck::cast_slice_mut(&mut sections), body)?;
    let found = crc32fast::hash(bytemuck::cast_slice(&sections));
    if u64::from(found) != crc32 {
        let expected = format!("a list of sections with checksum {crc32:08x}");
        return Err(IndexError::damaged(path, body, expected, format!("{found:08x}")));
    }
    for (at, section) in sections.iter().enumerate() {
        let start = end.next_multiple_of(SECTION_ALIGNMENT);
        if section.start != start || section.zero != 0 {
            let at = body + (at * ENTRY_BYTES) as u64;
            let expected = format!("a section at byte {start}");
            return Err(IndexError::damaged(path, at, expected, section.start));
        }
        end = start.saturating_add(section.bytes);
    }
    check_length(path, pack.bytes, Some(end))?;
    Ok(sections)
}

/// Checks what no checksum of a section is about: the bytes between sections are zero.
pub(crate) fn check_pack(path: &Path) -> Result<(), IndexError> {
    let pack = open(path)?;
    let sections = read_sections(&pack)?;
    let mut end = (HEADER_BYTES + sections.len() * ENTRY_BYTES) as u64;
    for section in sections {
        let mut gap = [0; SECTION_ALIGNMENT as usize];
        let gap = &mut gap[..(section.start - end) as usize];
        pack.file.read_exact_at(gap, end).map_err(IndexError::storage("read", path))?;
        if let Some(at) = gap.iter().position(|byte| *byte != 0) {
            return Err(IndexError::damaged(path, end + at as u64, 0, gap[at]));
        }
        end = section.start + section.bytes;
    }
    Ok(())
}

/// Writes the pack of run `name` of a generation from the `files` of its kinds, which lie at these
/// paths, and returns the entries of its sections.
pub(crate) fn write_pack(
    generation: &Path,
    name: &str,
    files: &[(FileKind, PathBuf, FileEntry)],
) -> Result<Vec<FileEntry>, IndexError> {
    let mut pack = StorageFile::create(generation, &run_file(name, FileKind::Packed))?;
    let mut end = (HEADER_BYTES + files.len() * ENTRY_BYTES) as u64;
    let section = |(kind, _, file): &(FileKind, PathBuf, FileEntry)| {
        let start = end.next_multiple_of(SECTION_ALIGNMENT);
        end = start + file.bytes;
        PackEntry { code: kind.code(), zero: 0, start, bytes: file.bytes }
    };
    let sections: Vec<PackEntry> = files.iter().map(section).collect();
    let list = bytemuck::cast_slice(&sections);
    pack.write(list)?;
    for ((_, path, file), section) in files.iter().zip(&sections) {
        let gap = section.start - (HEADER_BYTES as u64 + pack.body_bytes());
        pack.write(&[0; SECTION_ALIGNMENT as usize][..gap as usize])?;
        let bytes = plain::read(path)?;
        check_length(path, bytes.len() as u64, Some(file.bytes))?;
        pack.write(&bytes)?;
    }
    let values = [sections.len() as u64, crc32fast::hash(list).into(), 0, 0, 0];
    pack.finish(FileHeader { kind: FileKind::Packed, values, last: 0 })?;
    let entry = |(kind, _, file): &(FileKind, PathBuf, FileEntry)| FileEntry {
        name: packed_file(name, *kind),
        ..file.clone()
    };
    Ok(files.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::files::map::Map;
    use crate::index::files::window::FileWindow;

    #[test]
    fn sections_are_read_as_files_and_what_is_damaged_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let kinds = [(FileKind::Lexicon, 104), (FileKind::Names, 0), (FileKind::Lookup, 64)];
        let content = |bytes: u8| (1..=bytes).collect::<Vec<u8>>();
        let file = |&(kind, bytes): &(FileKind, u8)| {
            let mut file = StorageFile::create(folder.path(), kind.extension()).unwrap();
            file.write(&content(bytes)).unwrap();
            let path = file.path().to_path_buf();
            let header = FileHeader { kind, values: [0; 5], last: 0 };
            (kind, path, file.finish(header).unwrap())
        };
        let files: Vec<_> = kinds.iter().map(file).collect();
        let entries = write_pack(folder.path(), "000007", &files).unwrap();
        let pack = folder.path().join("runs/000007.packed");
        let sections = || {
            let mut found = Vec::new();
            for entry in &entries {
                let path = folder.path().join(&entry.name);
                let map = Map::open(&path)?;
                map.verify(entry.bytes, entry.crc32)?;
                let mut window = FileWindow::open(&path, 1000)?;
                let length = window.length();
                assert_eq!(window.read(0, length as usize)?, map.bytes());
                window.read(length, 1).unwrap_err();
                assert_eq!(map.checked(0, length)?, map.bytes());
                found.push(map.bytes()[HEADER_BYTES..].to_vec());
            }
            check_pack(&pack).map(|()| found)
        };
        assert_eq!(sections().unwrap(), kinds.map(|(_, bytes)| content(bytes)));
        open(&folder.path().join("runs/000007.packed/postings")).unwrap_err();
        let good = std::fs::read(&pack).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&pack, &bad).unwrap();
            assert!(sections().is_err(), "byte {at}");
            std::fs::write(&pack, &good[..at]).unwrap();
            assert!(sections().is_err(), "cut to {at} bytes");
        }
        std::fs::write(&pack, [&good[..], &[0]].concat()).unwrap();
        sections().unwrap_err();
    }
}
