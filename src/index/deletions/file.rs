//! The file of what a generation leaves out of its runs (`docs/index-format.md`, Deletions).

use super::{Deletions, DocidSet};
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{DELETIONS, FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::{RunEntry, find_file};
use bytemuck::AnyBitPattern;
use std::path::Path;
use std::sync::Arc;

/// Of each run with deletions its place, its documents, and how many are counted and deleted since.
fn rows(runs: &[RunEntry]) -> Vec<[u32; 4]> {
    let row = |(place, run): (u32, &RunEntry)| {
        let deleted = run.deleted?;
        let since = deleted.documents.saturating_sub(deleted.counted);
        Some([place, run.documents, deleted.counted, since])
    };
    (0..).zip(runs).filter_map(row).collect()
}

/// Whether a set is written as rising docids.
fn is_short(documents: u32, count: u32) -> bool {
    64 * u64::from(count) < u64::from(documents)
}

/// Writes what a generation leaves out of its `runs`; none if that is nothing.
pub(crate) fn write_deletions(
    generation: &Path,
    runs: &[RunEntry],
    deletions: &[Arc<Deletions>],
) -> Result<Option<FileEntry>, IndexError> {
    let rows = rows(runs);
    if rows.is_empty() {
        return Ok(None);
    }
    let mut file = StorageFile::create(generation, DELETIONS)?;
    for row in &rows {
        file.write(bytemuck::bytes_of(row))?;
        file.write(&(deletions[row[0] as usize].lists.len() as u64).to_le_bytes())?;
    }
    for &[place, documents, ..] in &rows {
        let Deletions { counted, since, lists, counts } = &*deletions[place as usize];
        for set in [counted, since] {
            match is_short(documents, set.len()) {
                true => file.write(bytemuck::cast_slice(&Vec::from_iter(set.docids())))?,
                false => file.write(bytemuck::cast_slice(set.words()))?,
            }
            file.pad()?;
        }
        file.write(bytemuck::cast_slice(lists))?;
        file.write(bytemuck::cast_slice(counts))?;
        file.pad()?;
    }
    let values = [rows.len() as u64, 0, 0, 0, 0];
    file.finish(FileHeader { kind: FileKind::Deletions, values, last: 0 }).map(Some)
}

/// Reads what the generation in a folder leaves out of each of its `runs`; where the `files` of the
/// manifest are given, it is compared with that.
///
/// # Errors
/// `Damaged` if it is not what the entries of the runs say, or does not agree with itself; `Newer`,
/// `Older`, `Storage`.
pub(crate) fn read_deletions(
    generation: &Path,
    runs: &[RunEntry],
    files: Option<&[FileEntry]>,
) -> Result<Vec<Arc<Deletions>>, IndexError> {
    let mut all = vec![Arc::default(); runs.len()];
    let rows = rows(runs);
    if rows.is_empty() {
        return Ok(all);
    }
    let map = Map::open(&generation.join(DELETIONS))?;
    if let Some(files) = files {
        let file = find_file(files, generation, DELETIONS)?;
        map.verify(file.bytes, file.crc32)?;
    }
    map.checked(0, map.bytes().len() as u64)?;
    let header = FileHeader::parse(map.path(), FileKind::Deletions, map.bytes())?;
    header.check_unused(map.path(), 1)?;
    let mut reader = DeletionsReader { map: &map, at: HEADER_BYTES as u64 };
    reader.expect(16, rows.len() as u64, header.values[0])?;
    let mut lists = Vec::with_capacity(rows.len());
    for row in &rows {
        for number in row {
            let at = reader.at;
            let found = reader.take::<u32>(1)?[0];
            reader.expect(at, u64::from(*number), found.into())?;
        }
        lists.push(reader.take::<u64>(1)?[0]);
    }
    for (row, lists) in rows.iter().zip(lists) {
        let place = row[0] as usize;
        let postings = runs[place].deleted.map_or(0, |deleted| deleted.postings);
        all[place] = Arc::new(reader.deletions(row, lists, postings)?);
    }
    check_length(map.path(), map.bytes().len() as u64, Some(reader.at))?;
    Ok(all)
}

struct DeletionsReader<'a> {
    map: &'a Map,
    at: u64,
}

impl<'a> DeletionsReader<'a> {
    fn damaged(&self, at: u64, expected: impl ToString, found: impl ToString) -> IndexError {
        IndexError::damaged(self.map.path(), at, expected, found)
    }

    fn expect(&self, at: u64, expected: u64, found: u64) -> Result<(), IndexError> {
        if expected == found { Ok(()) } else { Err(self.damaged(at, expected, found)) }
    }

    fn take<T: AnyBitPattern>(&mut self, count: u64) -> Result<&'a [T], IndexError> {
        let taken = self.map.array(self.at, count)?;
        self.at += size_of_val::<[T]>(taken) as u64;
        Ok(taken)
    }

    fn pass_padding(&mut self) -> Result<(), IndexError> {
        let zeros = self.take::<u8>(padding(self.at))?;
        self.expect(self.at, 0, zeros.iter().map(|&byte| u64::from(byte)).sum())
    }

    fn deletions(
        &mut self,
        &[_, documents, counted, since]: &[u32; 4],
        lists: u64,
        postings: u64,
    ) -> Result<Deletions, IndexError> {
        let most = counted;
        let counted = self.set(documents, counted)?;
        let start = self.at;
        let since = self.set(documents, since)?;
        if let Some(docid) = since.docids().find(|&docid| counted.contains(docid)) {
            return Err(self.damaged(start, "documents that are not counted", docid));
        }
        let start = self.at;
        let offsets = self.take::<u64>(lists)?;
        if let Some(pair) = offsets.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(self.damaged(start, format!("a list behind {}", pair[0]), pair[1]));
        }
        let start = self.at;
        let counts = self.take::<u32>(lists)?;
        if let Some(count) = counts.iter().find(|count| !(1..=most).contains(count)) {
            return Err(self.damaged(start, format!("1 to {most} postings of a list"), count));
        }
        self.expect(start, postings, counts.iter().map(|&count| u64::from(count)).sum())?;
        self.pass_padding()?;
        Ok(Deletions { counted, since, lists: offsets.to_vec(), counts: counts.to_vec() })
    }

    fn set(&mut self, documents: u32, count: u32) -> Result<DocidSet, IndexError> {
        let start = self.at;
        let set = if count == 0 {
            DocidSet::default()
        } else if is_short(documents, count) {
            let docids = self.take::<u32>(count.into())?;
            // This many are left as rise and are documents.
            let rising = docids.iter().zip(&docids[1..]).take_while(|(a, b)| a < b);
            let end = 1 + rising.count();
            let below = docids[..end].iter().copied().filter(|docid| *docid < documents);
            DocidSet::default().with(documents, below)
        } else {
            DocidSet::new(self.take::<u64>(documents.div_ceil(64).into())?.to_vec())
        };
        let found = if set.len() == count { set.before(documents) } else { set.len() };
        if found != count {
            let expected = format!("{count} rising documents below {documents}");
            return Err(self.damaged(start, expected, found));
        }
        self.pass_padding()?;
        Ok(set)
    }
}
