//! What lists have without the postings of deleted documents: found when it is first asked for, and
//! kept.

use super::Run;
use crate::index::deletions::{Deletions, DocidSet};
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

const SHARDS: usize = 16;

/// A number of each list that was asked for, by the list's offset, in maps with locks of their own,
/// so that threads seldom wait. Memory: about 24 bytes for each such list.
#[derive(Debug, Default)]
pub(crate) struct FoundCounts([RwLock<HashMap<u64, u64>>; SHARDS]);

impl FoundCounts {
    /// The number of a list; no lock is held while `find` finds it.
    fn of(
        &self,
        list: &TermEntry,
        find: impl FnOnce() -> Result<u64, IndexError>,
    ) -> Result<u64, IndexError> {
        // Fibonacci hashing: most offsets are multiples of 16.
        let shard = list.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        let shard = &self.0[shard as usize % SHARDS];
        let known = shard.read().unwrap_or_else(PoisonError::into_inner).get(&list.offset).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = find()?;
        shard.write().unwrap_or_else(PoisonError::into_inner).insert(list.offset, found);
        Ok(found)
    }
}

impl Run {
    /// The number of postings of a list without those of deleted documents. Of those that are not
    /// counted yet they are counted here the first time, in the blocks that have any: 0.6 to 1.3 ms
    /// for a million postings of `bp128` where 1 % is deleted, and about 24 bytes of memory for
    /// each list that is asked for.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    #[inline]
    pub fn live_df(&self, term: &TermEntry) -> Result<u32, IndexError> {
        match self.deletions.is_empty() {
            true => Ok(term.df),
            false => self.left(term, |find| self.dfs.of(term, find)),
        }
    }

    /// As [`live_df`](Self::live_df), for jobs that ask once for each list: nothing is kept.
    pub(crate) fn count_live(&self, term: &TermEntry) -> Result<u32, IndexError> {
        self.left(term, |find| find())
    }

    /// `keep` gets what counts the postings of documents that were deleted since.
    fn left(
        &self,
        term: &TermEntry,
        keep: impl FnOnce(&dyn Fn() -> Result<u64, IndexError>) -> Result<u64, IndexError>,
    ) -> Result<u32, IndexError> {
        let Deletions { since, .. } = &*self.deletions;
        let find = || self.count(term, since).map(u64::from);
        let found = if since.len() == 0 { 0 } else { keep(&find)? };
        let gone = u64::from(self.deletions.counted_in(term)) + found;
        u64::from(term.df).checked_sub(gone).map(|df| df as u32).ok_or_else(|| {
            let start = HEADER_BYTES as u64 + term.offset;
            let expected = format!("a list of the {gone} postings that are deleted, at least");
            IndexError::damaged(self.postings_path(), start, expected, term.df)
        })
    }

    /// The sum of the term frequencies of a list in documents that are not deleted. An index does
    /// not have it, so the list is read the first time; about 24 bytes of memory for each list.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    pub(crate) fn live_cf(&self, term: &TermEntry) -> Result<u64, IndexError> {
        self.cfs.of(term, || {
            let mut sum = 0;
            let add = |docids: &[u32], tfs: &[u32]| {
                let pairs = docids.iter().zip(tfs);
                let live = pairs.filter(|(docid, _)| !self.deletions.contains(**docid));
                sum += live.map(|(_, &tf)| u64::from(tf)).sum::<u64>();
            };
            let checked = self.list(*term)?.check(self.documents(), None, add);
            checked.map_err(self.wrong(term)).map(|()| sum)
        })
    }

    /// Counts the postings of a list that are of the documents of a set.
    pub(super) fn count(&self, term: &TermEntry, set: &DocidSet) -> Result<u32, IndexError> {
        of_list(&self.list(*term)?, self.documents(), set).map_err(self.wrong(term))
    }

    fn wrong(&self, term: &TermEntry) -> impl FnOnce(ListError) -> IndexError {
        IndexError::list(self.postings_path(), HEADER_BYTES as u64 + term.offset)
    }
}

/// Where a block has at most one document of the set for so many postings, and spans at most half
/// as many documents for each posting, these are looked for one by one. Otherwise all postings are
/// looked up in the set.
const FEW: u32 = 32;

fn of_list(list: &ListView<'_>, documents: u32, set: &DocidSet) -> Result<u32, ListError> {
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    let block_len = list.block_len();
    let mut found = 0;
    // Docids of a block lie from here on, up to its last; so many documents of the set before.
    let (mut first, mut before) = (0, 0);
    for block in 0..list.full_blocks() {
        let end = list.last_docid(block).saturating_add(1);
        let up_to = set.before(end);
        if up_to != before {
            let docids = &mut docids[..block_len];
            list.decode_block(block, documents, &mut columns, docids)?;
            // Docids rise, so that more documents of the set lie before the end.
            let here = up_to - before;
            let least = (FEW * here).max((end - first) / (FEW / 2));
            found += if least <= block_len as u32 {
                let of_set = set.docids_from(first).take(here as usize);
                of_set.filter(|docid| docids.binary_search(docid).is_ok()).count() as u32
            } else {
                set.count(docids)
            };
        }
        (first, before) = (end, up_to);
    }
    if set.len() > before {
        let tail = list.decode_tail(documents, &mut docids, &mut tfs)?;
        found += set.count(&docids[..tail]);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::list::{Form, ListEncoder};
    use proptest::prelude::*;

    const DOCUMENTS: u32 = 3000;

    proptest! {
        #[test]
        fn law_postings_of_a_set_are_counted_in_lists_of_every_form(
            form in prop::sample::select(Form::all().collect::<Vec<_>>()),
            from in 0..DOCUMENTS,
            step in 1..40usize,
            set in prop_oneof![
                prop::collection::vec(0..DOCUMENTS, 0..4),
                prop::collection::vec(0..DOCUMENTS, 0..900),
            ],
        ) {
            let mut encoder = ListEncoder::of_form(form);
            let docids = || (from..DOCUMENTS).step_by(step);
            docids().for_each(|docid| encoder.push(docid, 1 + docid % 3, 5));
            let (df, bytes) = encoder.finish();
            let list = ListView::of_form(form, df, bytes, encoder.payload()).unwrap();
            let expected = docids().filter(|docid| set.contains(docid)).count();
            let set = DocidSet::default().with(DOCUMENTS, set);
            prop_assert_eq!(of_list(&list, DOCUMENTS, &set).unwrap() as usize, expected);
        }
    }

    #[test]
    fn a_number_is_found_once_for_all_threads() {
        let counts = FoundCounts::default();
        let list = |offset| TermEntry { df: 1, bytes: 1, offset };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for offset in (0..16_000).step_by(16) {
                        assert_eq!(
                            counts.of(&list(offset), || Ok(3 * offset)).unwrap(),
                            3 * offset
                        );
                    }
                });
            }
        });
        // An error is not kept.
        counts.of(&list(1), || Err(IndexError::Stopped)).unwrap_err();
        assert_eq!(counts.of(&list(1), || Ok(2)).unwrap(), 2);
        assert_eq!(counts.of(&list(1), || panic!("it is known")).unwrap(), 2);
        assert_eq!(counts.of(&list(160), || panic!("it is known")).unwrap(), 480);
    }
}
