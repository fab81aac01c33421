//! Bitmaps of the longest lists of a run: made when a query wants one for the second time, and kept
//! for all generations that have the run. A query of signs and counts, or of all of its terms,
//! reads them in place of the lists, and OR looks candidates up in them.

use super::Run;
use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A list has a bitmap if one document in this many, or more, has its term.
const LEAST_SHARE: u32 = 32;

/// The bitmaps of a run take this many bytes at most for each document, and this many in all: those
/// that are wanted first.
const MOST_BYTES_A_DOCUMENT: usize = 32;
const MOST_BYTES: usize = 256 << 20;

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// Documents of a line.
pub(crate) const LINE_DOCUMENTS: u32 = 64 * LINE_WORDS as u32;

pub(crate) type DenseList = Arc<Bitmap>;

/// The documents of a run that have a term.
#[derive(Debug)]
pub(crate) struct Bitmap {
    /// Bit `docid % 64` of word `docid / 64`; whole lines.
    pub(crate) bits: Box<[u64]>,
    /// How many postings come before each line, and in all.
    pub(crate) before: Box<[u32]>,
}

impl Bitmap {
    /// Of whole lines.
    pub(crate) fn new(bits: Vec<u64>) -> Self {
        let mut sum = 0;
        let lines = bits.chunks(LINE_WORDS);
        let ends = lines.map(|line| {
            sum += line.iter().map(|word| word.count_ones()).sum::<u32>();
            sum
        });
        let before = std::iter::once(0).chain(ends).collect();
        Self { bits: bits.into(), before }
    }

    /// The words of a line.
    pub(crate) fn line(&self, line: usize) -> Option<&[u64; LINE_WORDS]> {
        self.bits.as_chunks().0.get(line)
    }
}

#[derive(Debug, Default)]
pub(super) struct DenseLists(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By the offset of the list; `None` if it was wanted once.
    lists: HashMap<u64, Option<DenseList>>,
    made: usize,
}

impl Run {
    /// The bitmap of a list, if it is long, was wanted before, and there is room. Deleted documents
    /// are among them. The second time the list is read.
    ///
    /// # Errors
    /// `List`, and whatever is wrong with the list's place.
    pub(crate) fn dense(&self, term: &TermEntry) -> Result<Option<DenseList>, IndexError> {
        if u64::from(term.df) * u64::from(LEAST_SHARE) < u64::from(self.documents()) {
            return Ok(None);
        }
        let words = (self.documents().div_ceil(LINE_DOCUMENTS).max(1) as usize) * LINE_WORDS;
        let known = || self.dense.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let Known { lists, made } = &mut *known();
            match lists.get(&term.offset) {
                Some(Some(list)) => return Ok(Some(list.clone())),
                Some(None) => {}
                None => {
                    lists.insert(term.offset, None);
                    return Ok(None);
                }
            }
            let bytes = MOST_BYTES.min(MOST_BYTES_A_DOCUMENT * self.documents() as usize);
            if *made >= bytes / (8 * words) {
                return Ok(None);
            }
        }
        let bits = bits_of(&self.list(*term)?, self.documents(), words);
        let list = Arc::new(Bitmap::new(bits.map_err(self.wrong(term))?));
        let Known { lists, made } = &mut *known();
        // Another thread may have made it meanwhile: it is the same.
        let place = lists.entry(term.offset).or_default();
        *made += usize::from(place.is_none());
        Ok(Some(place.get_or_insert(list).clone()))
    }
}

/// A bit for each document of a list.
fn bits_of(list: &ListView<'_>, documents: u32, words: usize) -> Result<Vec<u64>, ListError> {
    let mut bits = vec![0; words];
    let mut set = |docid: u32| bits[docid as usize / 64] |= 1 << (docid % 64);
    let mut docids = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    for block in 0..list.full_blocks() {
        let docids = &mut docids[..list.block_len()];
        list.decode_block(block, documents, &mut columns, docids)?;
        // The quarters in turn: neighbours are often in one word, and would wait for each other.
        let quarter = docids.len() / 4;
        for number in 0..quarter {
            (0..4).for_each(|part| set(docids[part * quarter + number]));
        }
    }
    let tail = list.decode_tail(documents, &mut docids, &mut [0; MAX_BLOCK])?;
    docids[..tail].iter().copied().for_each(set);
    Ok(bits)
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
        assert!(bitmaps_made(700) > 3);
        // A bitmap takes 64 bytes.
        assert_eq!(bitmaps_made(40), MOST_BYTES_A_DOCUMENT * 40 / 64);
    }

    /// How many lists of a run have a bitmap, which are compared with what is in documents.
    fn bitmaps_made(documents: u32) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(5, documents, 300);
        build(folder.path(), &collection, &[]);
        let generation = Generation::open(folder.path()).unwrap();
        let run = &generation.runs()[0];
        let words: BTreeSet<&String> = collection.iter().flat_map(|terms| terms.keys()).collect();
        let room = MOST_BYTES_A_DOCUMENT * documents as usize
            / (64 * documents.div_ceil(LINE_DOCUMENTS) as usize);
        let mut made = 0;
        for term in words {
            let place = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(place)..];
            let entry = run.lexicon().find(place, suffix).unwrap().unwrap();
            let has = |docid: u32| collection[docid as usize].contains_key(term);
            assert!(run.dense(&entry).unwrap().is_none(), "{term} is wanted for the first time");
            match run.dense(&entry).unwrap() {
                Some(bitmap) => {
                    let bits = &bitmap.bits;
                    made += 1;
                    assert!(entry.df * LEAST_SHARE >= documents);
                    let bit = |docid: u32| bits[docid as usize / 64] >> (docid % 64) & 1 == 1;
                    assert!((0..documents).all(|docid| bit(docid) == has(docid)), "{term}");
                    assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), entry.df);
                    assert!(Arc::ptr_eq(&bitmap, &run.dense(&entry).unwrap().unwrap()));
                    let end = |line: usize| documents.min(512 * line as u32);
                    let before = |line: usize| (0..end(line)).filter(|&docid| has(docid)).count();
                    let mut lines = 0..=documents.div_ceil(LINE_DOCUMENTS) as usize;
                    assert!(lines.all(|line| bitmap.before[line] as usize == before(line)));
                }
                None => assert!(entry.df * LEAST_SHARE < documents || made == room, "{term}"),
            }
        }
        made
    }
}
