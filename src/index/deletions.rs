//! The deleted documents of a run. A run never changes, so a file of the generation names them, and
//! says by how much they make document frequencies and totals too great (`docs/index-format.md`,
//! Deletions). Scores are then those of an index without these documents, to the bit.

#[cfg(test)]
mod tests;

use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::{Deleted, RunEntry};
use crate::index::lexicon::TermEntry;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// The deleted documents of a run, with docids from the run's first. Memory: a bit for each
/// document and a twelfth of that, and 12 bytes for each list with a posting of a deleted document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    documents: u32,
    pub(super) totals: Deleted,
    /// A bit for each document, the low bit of a word first.
    pub(super) bits: Vec<u64>,
    /// Deleted documents before each word.
    before: Vec<u32>,
    /// Offsets of the lists with postings of deleted documents, and how many those are.
    pub(super) lists: Vec<u64>,
    pub(super) counts: Vec<u32>,
}

impl Deletions {
    /// Reads the deletions of a run in the folder of a generation, and verifies the checksum if
    /// `file` is given. `Damaged` if they are not what the run's entry says, or the numbers do not
    /// agree.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        file: Option<&FileEntry>,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Deletions))?;
        if let Some(file) = file {
            map.verify(file.bytes, file.crc32)?;
        }
        let header = FileHeader::parse(map.path(), FileKind::Deletions, map.bytes())?;
        let [documents, deleted, tokens, postings, lists] = header.values;
        let of_run = run.deleted.unwrap_or_default();
        for (at, expected, found) in [
            (16, u64::from(run.documents), documents),
            (24, of_run.documents.into(), deleted),
            (32, of_run.tokens, tokens),
            (40, of_run.postings, postings),
        ] {
            if expected != found {
                return Err(IndexError::damaged(map.path(), at, expected, found));
            }
        }
        let words = u64::from(run.documents).div_ceil(64);
        let bytes = lists.checked_mul(12).and_then(|bytes| bytes.checked_add(BODY + 8 * words));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(padding(4 * (lists % 2))));
        check_length(map.path(), map.bytes().len() as u64, bytes)?;
        let offsets = BODY + 8 * words;
        let read = Self::new(
            run.documents,
            of_run,
            map.array::<u64>(BODY, words)?.to_vec(),
            map.array::<u64>(offsets, lists)?.to_vec(),
            map.array::<u32>(offsets + 8 * lists, lists)?.to_vec(),
        );
        match read.wrong() {
            Some((at, expected, found)) => {
                Err(IndexError::damaged(map.path(), at, expected, found))
            }
            None => Ok(read),
        }
    }

    pub(super) fn new(
        documents: u32,
        totals: Deleted,
        bits: Vec<u64>,
        lists: Vec<u64>,
        counts: Vec<u32>,
    ) -> Self {
        let mut sum = 0;
        let count = |word: &u64| {
            sum += word.count_ones();
            sum - word.count_ones()
        };
        let before = bits.iter().map(count).collect();
        Self { documents, totals, bits, before, lists, counts }
    }

    /// What does not agree: the place in the file, what is expected there, what was found.
    fn wrong(&self) -> Option<(u64, String, u64)> {
        let found = self.bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        if found != u64::from(self.totals.documents) {
            return Some((BODY, format!("{} deleted documents", self.totals.documents), found));
        }
        let end = self.documents % 64;
        if let Some(&last) = self.bits.last().filter(|_| end > 0)
            && last >> end != 0
        {
            let at = BODY + 8 * (self.bits.len() as u64 - 1);
            return Some((at, format!("{end} documents at the end"), last));
        }
        let offsets = BODY + 8 * self.bits.len() as u64;
        if let Some(i) = self.lists.windows(2).position(|pair| pair[0] >= pair[1]) {
            let at = offsets + 8 * (i as u64 + 1);
            let found = self.lists[i + 1];
            return Some((at, format!("more than {}", self.lists[i]), found));
        }
        let counts = offsets + 8 * self.lists.len() as u64;
        let wrong = |count: &u32| *count == 0 || *count > self.totals.documents;
        if let Some(i) = self.counts.iter().position(wrong) {
            let expected = format!("1 to {} postings", self.totals.documents);
            return Some((counts + 4 * i as u64, expected, self.counts[i].into()));
        }
        let sum: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        (sum != self.totals.postings)
            .then(|| (counts, format!("{} postings", self.totals.postings), sum))
    }

    pub(crate) fn totals(&self) -> Deleted {
        self.totals
    }

    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    #[inline]
    pub(crate) fn contains(&self, docid: u32) -> bool {
        let word = self.bits.get(docid as usize / 64).copied().unwrap_or(0);
        word >> (docid % 64) & 1 == 1
    }

    /// Rising.
    pub(crate) fn docids(&self) -> impl Iterator<Item = u32> {
        (0..self.documents).filter(|&docid| self.contains(docid))
    }

    /// Deleted documents before `docid`.
    #[inline]
    pub(crate) fn before(&self, docid: u32) -> u32 {
        let at = docid as usize / 64;
        match (self.bits.get(at), self.before.get(at)) {
            (Some(word), Some(before)) => {
                before + (word & !(u64::MAX << (docid % 64))).count_ones()
            }
            _ => self.totals.documents,
        }
    }

    /// Postings of a list that are of deleted documents.
    pub(crate) fn of_list(&self, list: &TermEntry) -> u32 {
        self.lists.binary_search(&list.offset).map_or(0, |at| self.counts[at])
    }
}
