//! The paper's CPU indexer: searches every token in the B-tree of its trie collection and appends
//! postings as they come (section III.D.1). The last posting of a term is *open*, for the next
//! token may belong to it too; the others lie in [`Slices`] in the form of [`folded`].

#![allow(unsafe_code)]

use super::NONE;
#[cfg(target_arch = "x86_64")]
use super::below::Avx2;
use super::below::{Portable, Vectors};
use super::forest::Forest;
use super::walk::TreeWalk;
use crate::codec::folded;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{Level, level};
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::dictionary::slices::{Chain, Slices};
use crate::papers::wei11::stream::{StreamTokens, TokenGroup};
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone, Copy)]
struct PostingsRecord {
    /// The postings that are not open; begins with the second posting.
    chain: Chain,
    df: u32,
    /// Docid of the open posting, counted from the run's first document.
    last: u32,
    /// Documents between it and the posting before.
    gap: u32,
    tf: u32,
}

/// The part of an open run that one indexer owns.
#[derive(Default)]
pub struct BTreeRun {
    forest: Forest,
    records: Vec<PostingsRecord>,
    slices: Slices,
    postings: u64,
    bytes: Vec<u8>,
}

impl BTreeRun {
    pub fn terms(&self) -> usize {
        self.records.len()
    }

    pub fn postings_len(&self) -> u64 {
        self.postings
    }

    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Appends the tokens of a parsed block: consecutive pieces by docid, each with the docid of
    /// its first document, counted from the run's first. Takes all tokens of a trie collection
    /// together, so that its tree stays in the cache.
    pub fn append(&mut self, block: &[(&TokenGroup, u32)]) {
        // Each by collection, with the number of the piece, and the place in its group.
        let mut streams: Vec<(u16, u32, u32)> =
            Vec::with_capacity(block.iter().map(|(group, _)| group.collections.len()).sum());
        for (piece, (group, _)) in (0u32..).zip(block) {
            let places = (0u32..).zip(&group.collections);
            streams.extend(places.map(|(place, &(collection, _))| (collection, piece, place)));
        }
        // The sort is stable and uses the ascending run of each piece.
        streams.sort_by_key(|&(collection, ..)| collection);
        for (collection, piece, place) in streams {
            let (group, first) = block[piece as usize];
            let stream = group.stream(place as usize).map_or(&[][..], |(_, stream)| stream);
            let tokens = StreamTokens::new(stream);
            self.append_tokens(
                tokens.map(|(document, suffix)| (collection, first + document, suffix)),
            );
        }
    }

    /// Appends tokens: collection, docid and suffix. As they stand in the text, each leads to
    /// another tree, which regrouping is measured against (section III.C).
    pub fn append_tokens<'a>(&mut self, tokens: impl Iterator<Item = (u16, u32, &'a [u8])>) {
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            // SAFETY: the machine has the instructions of this level.
            return unsafe { self.append_avx2(tokens) };
        }
        self.append_by::<Portable>(tokens);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn append_avx2<'a>(&mut self, tokens: impl Iterator<Item = (u16, u32, &'a [u8])>) {
        self.append_by::<Avx2>(tokens);
    }

    #[inline(always)]
    fn append_by<'a, V: Vectors>(&mut self, tokens: impl Iterator<Item = (u16, u32, &'a [u8])>) {
        for (collection, docid, suffix) in tokens {
            let (term, new) = self.forest.find_or_insert_by::<V>(collection, suffix);
            self.count(term, new, docid);
        }
    }

    #[inline(always)]
    fn count(&mut self, term: u32, new: bool, docid: u32) {
        if new {
            self.postings += 1;
            let chain = Chain::default();
            let record = PostingsRecord { chain, df: 1, last: docid, gap: docid, tf: 1 };
            return self.records.push(record);
        }
        let record = &mut self.records[term as usize];
        if record.last == docid {
            record.tf += 1;
            return;
        }
        if record.df == 1 {
            record.chain = self.slices.begin();
        }
        self.bytes.clear();
        folded::put(record.gap, record.tf, &mut self.bytes);
        self.slices.append(&mut record.chain, &self.bytes);
        self.postings += 1;
        record.df += 1;
        record.gap = docid - record.last - 1;
        record.last = docid;
        record.tf = 1;
    }

    /// Closes the run: as many shares as it has this many postings, of equally many trees each; one
    /// share at least, and no more than there are trees.
    pub(crate) fn shares(self, postings: u64) -> VecDeque<WalkedRun> {
        let all = 0..TRIE_COLLECTIONS as u16;
        let trees: Vec<u16> =
            all.filter(|&collection| self.forest.root(collection) != NONE).collect();
        let shares = self.postings.div_ceil(postings).max(1) as usize;
        let of_each = trees.len().div_ceil(shares).max(1);
        let starts = trees.into_iter().step_by(of_each).skip(1);
        let ends = starts.chain([TRIE_COLLECTIONS as u16]);
        let run = Arc::new(self);
        let mut from = 0;
        let share = |to| {
            let walk = TreeWalk::of(std::mem::replace(&mut from, to)..to);
            WalkedRun { run: run.clone(), walk, collection: 0, suffix: Vec::new() }
        };
        ends.map(share).collect()
    }

    /// Replaces `bytes` by the postings of a term, in the form of [`folded`].
    fn postings(&self, term: u32, bytes: &mut Vec<u8>) {
        bytes.clear();
        let record = &self.records[term as usize];
        if record.df > 1 {
            self.slices.read(&record.chain, |slice| bytes.extend_from_slice(slice));
        }
        folded::put(record.gap, record.tf, bytes);
    }
}

/// The terms of some trie collections of a closed run.
pub(crate) struct WalkedRun {
    run: Arc<BTreeRun>,
    walk: TreeWalk,
    collection: u16,
    suffix: Vec<u8>,
}

impl ClosedTerms for WalkedRun {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        postings.clear();
        let Some((collection, term)) = self.walk.next(&self.run.forest, &mut self.suffix) else {
            return Ok(false);
        };
        self.collection = collection;
        self.run.postings(term, postings);
        Ok(true)
    }

    fn term(&self) -> (u16, &[u8]) {
        (self.collection, &self.suffix)
    }
}

#[cfg(test)]
mod tests;
