//! Which documents of a run does a generation leave out? A run never changes, so what was deleted
//! stands in a file of the generation: which documents, and by how much they make the document
//! frequencies and the totals too great (`docs/index-format.md`, Deletions). Scores are then those
//! of an index without these documents, to the bit.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::FileEntry;
use crate::index::format::{HEADER_BYTES, Header, Kind, check_length, padding, run_file};
use crate::index::generations::manifest::{Deleted, RunEntry};
use crate::index::lexicon::TermEntry;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// The deleted documents of a run. Docids count from the run's first document.
///
/// Memory: a bit for each document and a twelfth of that, and 12 bytes for each list with a posting
/// of a deleted document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    documents: u32,
    pub(super) totals: Deleted,
    /// A bit for each document, the low bit of a word first; set if it is deleted.
    pub(super) bits: Vec<u64>,
    /// Deleted documents before each word.
    before: Vec<u32>,
    /// Lists with postings of deleted documents, by where they begin, and how many of those.
    pub(super) lists: Vec<u64>,
    pub(super) counts: Vec<u32>,
}

impl Deletions {
    /// Reads the deletions file of a run in the folder of a generation, and verifies its checksum
    /// if the manifest's entry of the file is given.
    ///
    /// # Errors
    /// `Damaged` if it is not what the run's entry says, or the numbers do not agree; `Storage`,
    /// `Newer`, `Older`.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        file: Option<&FileEntry>,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&generation.join(run_file(&run.name, Kind::Deletions)))?;
        if let Some(file) = file {
            map.verify(file.bytes, file.crc32)?;
        }
        let header = Header::parse(map.path(), Kind::Deletions, map.bytes())?;
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

    /// What does not agree: where in the file, what is expected there, and what was found.
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
            let (at, found) = (offsets + 8 * (i as u64 + 1), self.lists[i + 1]);
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

    /// Returns how many documents are deleted, and their tokens and postings.
    pub(crate) fn totals(&self) -> Deleted {
        self.totals
    }

    /// Returns how many lists have postings of deleted documents.
    pub(crate) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Tells whether a document is deleted.
    #[inline]
    pub(crate) fn contains(&self, docid: u32) -> bool {
        let word = self.bits.get(docid as usize / 64).copied().unwrap_or(0);
        word >> (docid % 64) & 1 == 1
    }

    /// Returns the deleted documents, rising.
    pub(crate) fn docids(&self) -> impl Iterator<Item = u32> {
        (0..self.documents).filter(|&docid| self.contains(docid))
    }

    /// Returns how many documents before `docid` are deleted.
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

    /// Returns how many postings of a list are of deleted documents.
    pub(crate) fn of_list(&self, list: &TermEntry) -> u32 {
        self.lists.binary_search(&list.offset).map_or(0, |at| self.counts[at])
    }
}
