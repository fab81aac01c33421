//! Joins the parts of a run term by term. A device that is full in the middle of a run is emptied,
//! and what it held is a part; a later part has the later docids.
//!
//! The terms are dealt in shares as they come. A share ends where the first chunk of a part does,
//! or earlier, so it takes one chunk of each part.

use super::fetch::{ChunkReader, Fetch, FetchedPart};
use crate::codec::folded;
use crate::dictionary::closed::{ClosedError, ClosedShare, ClosedTerms};
use crate::papers::wei11::gpu::btree::trees::Trees;

/// A closed run that is dealt: all its parts, the last of which is under way.
pub(super) struct DeviceRun {
    parts: Vec<FetchedPart>,
    /// None when all has come.
    rest: Option<Fetch>,
}

impl DeviceRun {
    /// `parts` in their order; `rest` is what the device still holds.
    pub(super) fn new(mut parts: Vec<FetchedPart>, rest: Option<Fetch>) -> Self {
        parts.extend(rest.is_some().then(FetchedPart::default));
        Self { parts, rest }
    }

    /// The next share, of about this many bytes of each part; nothing while it has not come.
    pub(super) fn next(
        &mut self,
        trees: &mut Trees,
        share_bytes: u64,
    ) -> Result<Option<ClosedShare>, ClosedError> {
        if let Some(fetch) = &mut self.rest {
            let last = self.parts.last_mut().expect("what comes has a place");
            if fetch.advance(trees, last)? {
                self.rest = None;
            } else if last.is_empty() {
                return Ok(None);
            }
        }
        let border = self.parts.iter().filter_map(|part| part.border(share_bytes)).min();
        let mut heads = Vec::new();
        if let Some(border) = border {
            heads.extend(self.parts.iter_mut().filter_map(|part| part.deal(border)));
        }
        let terms = Box::new(JoinedTerms { heads, collection: 0, suffix: Vec::new() });
        let last = self.rest.is_none() && self.parts.iter().all(FetchedPart::is_empty);
        Ok(Some(ClosedShare { terms, last }))
    }
}

/// The terms of a share, those of all parts.
struct JoinedTerms {
    heads: Vec<ChunkReader>,
    collection: u16,
    suffix: Vec<u8>,
}

impl ClosedTerms for JoinedTerms {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        let heads = self.heads.iter().filter_map(|head| head.term());
        let heads = heads.map(|(collection, term)| (collection, term.suffix));
        let Some((collection, suffix)) = heads.min() else { return Ok(false) };
        self.collection = collection;
        self.suffix.clear();
        self.suffix.extend_from_slice(suffix);
        postings.clear();
        let mut last = None;
        for head in &mut self.heads {
            let Some((collection, term)) = head.term() else { continue };
            if collection == self.collection && term.suffix == self.suffix {
                join(postings, last, term.list)
                    .ok_or("postings that a device has sent do not decode: this is a bug")?;
                last = Some(term.last);
                head.step();
            }
        }
        Ok(true)
    }

    fn term(&self) -> (u16, &[u8]) {
        (self.collection, &self.suffix)
    }
}

/// Appends the list `more`, whose first gap is a docid, to `list`, whose last docid is `last`. Both
/// may have that docid, if its tokens came in two parts. `None` if they do not decode.
fn join(list: &mut Vec<u8>, last: Option<u32>, more: &[u8]) -> Option<()> {
    let Some(last) = last else {
        list.extend_from_slice(more);
        return Some(());
    };
    let mut at = 0;
    let (docid, tf) = folded::get(more, &mut at)?;
    if docid == last {
        let mut start = 0;
        let mut behind = 0;
        let mut open = None;
        while behind < list.len() {
            start = behind;
            open = Some(folded::get(list, &mut behind)?);
        }
        let (gap, before) = open?;
        list.truncate(start);
        folded::put(gap, before.checked_add(tf)?, list);
    } else {
        folded::put(docid.checked_sub(last)?.checked_sub(1)?, tf, list);
    }
    list.extend_from_slice(&more[at..]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(postings: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut expected = 0;
        for &(docid, tf) in postings {
            folded::put(docid - expected, tf, &mut bytes);
            expected = docid + 1;
        }
        bytes
    }

    proptest! {
        /// Wherever a list is cut, between two tokens of a document too, the parts give the list.
        #[test]
        fn law_joined_parts_are_the_list(
            gaps in prop::collection::vec((0u32..300, 1u32..6), 1..30),
            cut in any::<prop::sample::Index>(),
            within in any::<bool>(),
        ) {
            let mut next = 0;
            let whole: Vec<(u32, u32)> = gaps
                .iter()
                .map(|&(gap, tf)| {
                    let docid = next + gap;
                    next = docid + 1;
                    (docid, tf)
                })
                .collect();
            let cut = cut.index(whole.len());
            let mut before = whole[..cut].to_vec();
            let mut behind = whole[cut..].to_vec();
            let (docid, tf) = behind[0];
            if within && tf > 1 {
                before.push((docid, 1));
                behind[0].1 = tf - 1;
            }
            let mut list = Vec::new();
            let mut last = None;
            for part in [before, behind] {
                if let Some(&(docid, _)) = part.last() {
                    join(&mut list, last, &encoded(&part)).unwrap();
                    last = Some(docid);
                }
            }
            prop_assert_eq!(list, encoded(&whole));
        }
    }

    #[test]
    fn lists_that_do_not_follow_are_refused() {
        let mut list = encoded(&[(5, 1)]);
        assert_eq!(join(&mut list, Some(5), &encoded(&[(4, 1)])), None);
        assert_eq!(join(&mut list, Some(5), &[]), None);
        assert_eq!(join(&mut list, Some(5), &[0x80]), None);
    }
}
