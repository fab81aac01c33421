//! Bitmaps of the longest lists of a run: made when a query first wants one, and kept for all
//! generations that have the run. They are what a query of signs and counts reads in place of lists
//! whose postings take as many bytes.

use super::Run;
use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A list has a bitmap if one document in so many, or more, has its term.
const LEAST_SHARE: u32 = 16;

/// The bitmaps of a run take so many bytes at most for each document, and so many in all: those
/// that are wanted first.
const MOST_BYTES_A_DOCUMENT: usize = 16;
const MOST_BYTES: usize = 256 << 20;

/// The documents of a run that have a term: bit `docid % 64` of word `docid / 64`.
pub(crate) type DenseList = Arc<[u64]>;

/// By the offset of the list; `None` while there is no room.
#[derive(Debug, Default)]
pub(super) struct DenseLists(Mutex<HashMap<u64, DenseList>>);

impl Run {
    /// The bitmap of a list, if it is long and there is room. Deleted documents are among them. The
    /// first time the list is read.
    ///
    /// # Errors
    /// `List`, and whatever is wrong with the list's place.
    pub(crate) fn dense(&self, term: &TermEntry) -> Result<Option<DenseList>, IndexError> {
        let words = self.documents().div_ceil(64).max(1) as usize;
        if u64::from(term.df) * u64::from(LEAST_SHARE) < u64::from(self.documents()) {
            return Ok(None);
        }
        let lists = || self.dense.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = MOST_BYTES.min(MOST_BYTES_A_DOCUMENT * self.documents() as usize) / (8 * words);
        {
            let lists = lists();
            if let Some(known) = lists.get(&term.offset) {
                return Ok(Some(known.clone()));
            }
            if lists.len() >= most {
                return Ok(None);
            }
        }
        let mut bits = vec![0; words];
        let set = |docids: &[u32], _: &[u32]| {
            docids.iter().for_each(|&docid| bits[docid as usize / 64] |= 1 << (docid % 64));
        };
        self.list(*term)?.check(self.documents(), None, set).map_err(self.wrong(term))?;
        // Another thread may have made it meanwhile: it is the same.
        Ok(Some(lists().entry(term.offset).or_insert(bits.into()).clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};
    use crate::text::trie_collection::{implied_prefix_len, trie_collection};
    use std::collections::BTreeSet;

    #[test]
    fn long_lists_have_bitmaps_as_far_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(5, 700, 300);
        build(folder.path(), &collection, &[]);
        let generation = Generation::open(folder.path()).unwrap();
        let run = &generation.runs()[0];
        let words: BTreeSet<&String> = collection.iter().flat_map(|terms| terms.keys()).collect();
        let mut made = 0;
        for term in words {
            let place = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(place)..];
            let entry = run.lexicon().find(place, suffix).unwrap().unwrap();
            let has = |docid: u32| collection[docid as usize].contains_key(term);
            match run.dense(&entry).unwrap() {
                Some(bits) => {
                    made += 1;
                    assert!(entry.df * LEAST_SHARE >= 700);
                    let bit = |docid: u32| bits[docid as usize / 64] >> (docid % 64) & 1 == 1;
                    assert!((0..700).all(|docid| bit(docid) == has(docid)), "{term}");
                    assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), entry.df);
                    assert!(Arc::ptr_eq(&bits, &run.dense(&entry).unwrap().unwrap()));
                }
                None => assert!(entry.df * LEAST_SHARE < 700 || made == 127, "{term}"),
            }
        }
        assert!(made > 3);
    }
}
