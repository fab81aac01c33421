//! What lists have without the postings of deleted documents: found when it is first asked for, and
//! kept.

use super::Run;
use crate::index::deletions::{Deletions, DocidSet};
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

const SHARDS: usize = 16;

/// A number of each list that was asked for, by the list's offset, as of this many documents that
/// were deleted; in maps with locks of their own, so that threads seldom wait. Memory: about 36
/// bytes for each such list.
#[derive(Debug, Default)]
struct FoundCounts([RwLock<HashMap<u64, (usize, u64)>>; SHARDS]);

impl FoundCounts {
    /// The number of a list as of `so_far` documents; no lock is held while `find` finds it, or
    /// `of_these` by how much some of the deleted documents made it less.
    fn of(
        &self,
        list: &TermEntry,
        so_far: usize,
        find: impl FnOnce() -> Result<u64, IndexError>,
        of_these: impl FnOnce(Range<usize>) -> Result<u64, IndexError>,
    ) -> Result<u64, IndexError> {
        // Fibonacci hashing: most offsets are multiples of 16.
        let shard = list.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        let shard = &self.0[shard as usize % SHARDS];
        let known = shard.read().unwrap_or_else(PoisonError::into_inner).get(&list.offset).copied();
        let found = match known {
            Some((at, found)) if at == so_far => return Ok(found),
            // A later generation was asked before: this one stays what it is.
            Some((at, found)) if at > so_far => return Ok(found + of_these(so_far..at)?),
            Some((at, found)) => found.saturating_sub(of_these(at..so_far)?),
            None => find()?,
        };
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        shard.insert(list.offset, (so_far, found));
        Ok(found)
    }
}

/// What was found of the lists of a run, for all generations that this process has open one after
/// the other.
#[derive(Debug, Default)]
struct SharedCounts {
    /// What was deleted behind the first of the generations, in their order.
    log: RwLock<Vec<u32>>,
    dfs: FoundCounts,
    cfs: FoundCounts,
}

/// What was found of the lists of a run, as of a generation that leaves out the first `so_far`
/// documents of the log.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCounts {
    shared: Arc<SharedCounts>,
    so_far: usize,
}

impl RunCounts {
    /// For the generation after that of these counts, which left out what was deleted `before`. If
    /// it does not only leave out more, nothing is known of it.
    pub(super) fn after(&self, before: &Deletions, now: &Deletions) -> Self {
        let Some(more) = now.more_than(before) else { return Self::default() };
        let mut log = self.shared.log.write().unwrap_or_else(PoisonError::into_inner);
        let so_far = self.so_far + more.len();
        match log.get(self.so_far..so_far) {
            Some(known) if known == more => {}
            None if log.len() == self.so_far => log.extend(more),
            // Another generation follows that one too.
            _ => return Self::default(),
        }
        Self { shared: self.shared.clone(), so_far }
    }

    /// Whether both are of the same run without the same documents.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.so_far == other.so_far
    }
}

impl Run {
    /// The number of postings of a list without those of deleted documents. Of those that are not
    /// counted yet they are counted here the first time, in the blocks that have any: 0.6 to 1.3 ms
    /// for a million postings of `bp128` where 1 % is deleted, and about 36 bytes of memory for
    /// each list that is asked for. Generations that follow add what they delete.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    #[inline]
    pub fn live_df(&self, term: &TermEntry) -> Result<u32, IndexError> {
        if self.deletions.since.len() == 0 {
            return self.count_live(term);
        }
        let RunCounts { shared, so_far } = &self.counts;
        let find = || self.count_live(term).map(u64::from);
        let df = shared.dfs.of(term, *so_far, find, |part| Ok(self.deleted(term, part)?[0]))?;
        Ok(df as u32)
    }

    /// As [`live_df`](Self::live_df), for jobs that ask once for each list: nothing is kept.
    pub(crate) fn count_live(&self, term: &TermEntry) -> Result<u32, IndexError> {
        let Deletions { since, .. } = &*self.deletions;
        let since = if since.len() == 0 { 0 } else { self.count(term, since)? };
        let gone = u64::from(self.deletions.counted_in(term)) + u64::from(since);
        u64::from(term.df).checked_sub(gone).map(|df| df as u32).ok_or_else(|| {
            let start = HEADER_BYTES as u64 + term.offset;
            let expected = format!("a list of the {gone} postings that are deleted, at least");
            IndexError::damaged(self.postings_path(), start, expected, term.df)
        })
    }

    /// The sum of the term frequencies of a list in documents that are not deleted. An index does
    /// not have it, so the list is read the first time; about 36 bytes of memory for each list.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    pub(crate) fn live_cf(&self, term: &TermEntry) -> Result<u64, IndexError> {
        let find = || {
            let mut sum = 0;
            let add = |docids: &[u32], tfs: &[u32]| {
                let pairs = docids.iter().zip(tfs);
                let live = pairs.filter(|(docid, _)| !self.deletions.contains(**docid));
                sum += live.map(|(_, &tf)| u64::from(tf)).sum::<u64>();
            };
            let checked = self.list(*term)?.check(self.documents(), None, add);
            checked.map_err(self.wrong(term)).map(|()| sum)
        };
        let RunCounts { shared, so_far } = &self.counts;
        shared.cfs.of(term, *so_far, find, |part| Ok(self.deleted(term, part)?[1]))
    }

    /// The postings that a list has of some documents of the log, and the sum of their frequencies.
    fn deleted(&self, term: &TermEntry, part: Range<usize>) -> Result<[u64; 2], IndexError> {
        let log = self.counts.shared.log.read().unwrap_or_else(PoisonError::into_inner);
        let mut docids = log[part].to_vec();
        drop(log);
        docids.sort_unstable();
        of_few(&self.list(*term)?, self.documents(), &docids).map_err(self.wrong(term))
    }

    /// Counts the postings of a list that are of the documents of a set.
    pub(super) fn count(&self, term: &TermEntry, set: &DocidSet) -> Result<u32, IndexError> {
        of_list(&self.list(*term)?, self.documents(), set).map_err(self.wrong(term))
    }

    pub(super) fn wrong(&self, term: &TermEntry) -> impl FnOnce(ListError) -> IndexError {
        IndexError::list(self.postings_path(), HEADER_BYTES as u64 + term.offset)
    }
}

/// Where a block has at most one document of the set for this many postings, and spans at most half
/// as many documents for each posting, these are looked for one by one. Otherwise all postings are
/// looked up in the set.
const FEW: u32 = 32;

fn of_list(list: &ListView<'_>, documents: u32, set: &DocidSet) -> Result<u32, ListError> {
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    let block_len = list.block_len();
    let mut found = 0;
    // Docids of a block lie from here on, up to its last; this many documents of the set before.
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

/// As [`of_list`] for a few documents, which rise, and with the sum of their frequencies: only the
/// blocks that may have one are read.
fn of_few(list: &ListView<'_>, documents: u32, mut few: &[u32]) -> Result<[u64; 2], ListError> {
    let [mut docids, mut tfs] = [[0; MAX_BLOCK]; 2];
    let mut columns = SegmentColumns::default();
    let mut block = 0;
    let mut found = [0; 2];
    while let Some(&docid) = few.first() {
        let last = |last: &[u8; 4]| u32::from_le_bytes(*last);
        let ends = &list.last_docids()[block..];
        let here = ends.partition_point(|end| last(end) < docid);
        // The tail has all that lie behind the blocks.
        let count =
            ends.get(here).map_or(few.len(), |end| few.partition_point(|d| *d <= last(end)));
        block += here;
        let len = list.decode_postings(block, documents, &mut columns, &mut docids, &mut tfs)?;
        // At least the first, whatever a damaged list says.
        let (of_block, rest) = few.split_at(count.max(1));
        for at in of_block.iter().filter_map(|docid| docids[..len].binary_search(docid).ok()) {
            found[0] += 1;
            found[1] += u64::from(tfs[at]);
        }
        few = rest;
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
            let found = docids().filter(|docid| set.contains(docid));
            let expected = [found.clone().count() as u64, found.map(|d| u64::from(1 + d % 3)).sum()];
            let set = DocidSet::default().with(DOCUMENTS, set);
            prop_assert_eq!(u64::from(of_list(&list, DOCUMENTS, &set).unwrap()), expected[0]);
            let few: Vec<u32> = set.docids().collect();
            prop_assert_eq!(of_few(&list, DOCUMENTS, &few).unwrap(), expected);
        }
    }

    #[test]
    fn a_number_is_found_once_for_all_threads() {
        let counts = FoundCounts::default();
        let list = |offset| TermEntry { df: 1, bytes: 1, offset, ..TermEntry::default() };
        let none = |_| panic!("nothing is deleted meanwhile");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for offset in (0..16_000).step_by(16) {
                        let found = counts.of(&list(offset), 2, || Ok(3 * offset), none);
                        assert_eq!(found.unwrap(), 3 * offset);
                    }
                });
            }
        });
        let known = || panic!("it is known");
        // An error is not kept.
        counts.of(&list(1), 2, || Err(IndexError::Stopped), none).unwrap_err();
        assert_eq!(counts.of(&list(1), 2, || Ok(2), none).unwrap(), 2);
        assert_eq!(counts.of(&list(1), 2, known, none).unwrap(), 2);
        assert_eq!(counts.of(&list(160), 2, known, none).unwrap(), 480);
        // Later generations add what they delete, and those before them stay exact.
        let of_these = |part: Range<usize>| Ok(part.map(|number| 10 * number as u64).sum());
        counts.of(&list(160), 4, known, |_| Err(IndexError::Stopped)).unwrap_err();
        assert_eq!(counts.of(&list(160), 4, known, of_these).unwrap(), 430);
        assert_eq!(counts.of(&list(160), 4, known, none).unwrap(), 430);
        for (so_far, expected) in [(3, 460), (2, 480), (0, 490), (5, 390), (4, 430)] {
            assert_eq!(counts.of(&list(160), so_far, known, of_these).unwrap(), expected);
        }
    }
}
