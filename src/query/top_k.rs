//! The k documents with the highest scores, of equal ones those with the smallest docids.
//!
//! A bag of up to 2 k documents is cut back to the best k when it is full: each document costs one
//! comparison, and one store if it gets in, however large k is. The memory grows with the documents
//! that get in, not with k.

#![warn(missing_docs)]

use std::ops::Range;

/// A document found, with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The document.
    pub docid: u32,
    /// Its score.
    pub score: f32,
}

impl Hit {
    /// From a device's key: the bits of the score above the inverted bits of the docid.
    pub(crate) fn of_key(key: u64) -> Self {
        Self { docid: !(key as u32), score: f32::from_bits((key >> 32) as u32) }
    }
}

/// A hit of the whole index, with its document's name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedHit {
    /// Its name.
    pub name: String,
    /// Its docid in the whole index.
    pub docid: u32,
    /// Its score.
    pub score: f32,
}

impl NamedHit {
    pub(crate) fn new(hit: Hit, name: String) -> Self {
        Self { name, docid: hit.docid, score: hit.score }
    }
}

/// The least number of documents between two cuts.
const LEAST_ROOM: usize = 32;

/// The best k of the documents offered, for one query after another.
#[derive(Debug, Default)]
pub struct TopK {
    k: usize,
    /// Length at which the bag is cut back.
    limit: usize,
    /// Only documents above this key get in.
    bar: u64,
    /// Only these documents get in: this many from the first on.
    first: u32,
    span: u32,
    keys: Vec<u64>,
}

/// A number that is greater for the better document. Zero is below all, `u64::MAX` above all.
#[inline(always)]
fn key(docid: u32, score: f32) -> u64 {
    let bits = score.to_bits();
    // Bits of floats order like integers once those of negative ones are inverted.
    let ordered = bits ^ ((bits as i32 >> 31) as u32 | 1 << 31);
    u64::from(ordered) << 32 | u64::from(!docid)
}

#[inline(always)]
fn score_of(key: u64) -> f32 {
    let ordered = (key >> 32) as u32;
    f32::from_bits(ordered ^ (!(ordered as i32 >> 31) as u32 | 1 << 31))
}

impl TopK {
    /// Takes nothing until [`reset`](Self::reset).
    pub fn new() -> Self {
        let mut top = TopK::default();
        top.reset(0);
        top
    }

    /// Begins a query for the best `k`; drops what was offered before.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.limit = k.saturating_mul(2).max(k.saturating_add(LEAST_ROOM));
        self.bar = if k == 0 { u64::MAX } else { 0 };
        self.first = 0;
        self.span = u32::MAX;
        self.keys.clear();
    }

    /// Lets only some documents in, until the next [`reset`](Self::reset).
    pub(crate) fn only(&mut self, docids: Range<u32>) {
        self.first = docids.start;
        self.span = docids.end.saturating_sub(docids.start);
    }

    /// Refuses documents with scores below `floor`, since k others have such scores.
    pub(crate) fn raise(&mut self, floor: f32) {
        if floor > f32::NEG_INFINITY {
            self.bar = self.bar.max(key(0, floor.next_down()));
        }
    }

    /// Begins for the best `k` as another one would go on: with its threshold and the documents it
    /// lets in.
    pub(super) fn begin_as(&mut self, other: &Self, k: usize) {
        self.reset(k);
        self.bar = other.bar;
        self.first = other.first;
        self.span = other.span;
    }

    /// Offers all of its documents to another one, and keeps none.
    pub(super) fn pour_into(&mut self, other: &mut Self) {
        self.keys.drain(..).for_each(|key| other.offer(!(key as u32), score_of(key)));
    }

    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// The k-th best score so far; minus infinity if fewer documents were offered.
    pub(crate) fn least(&mut self) -> f32 {
        if self.keys.len() > self.k {
            self.cut();
        }
        if self.keys.len() < self.k || self.k == 0 {
            return self.threshold();
        }
        self.keys.iter().min().map_or(f32::INFINITY, |&key| score_of(key))
    }

    /// The score that a document offered after all smaller docids must exceed to be among the best
    /// k; it rises, and may lag behind the k-th score so far. Minus infinity while every document
    /// may get in, plus infinity if k is 0.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        match self.bar {
            0 => f32::NEG_INFINITY,
            u64::MAX => f32::INFINITY,
            bar => score_of(bar),
        }
    }

    /// Offers a document, each at most once, in any order. The score must not be NaN.
    #[inline]
    pub(crate) fn offer(&mut self, docid: u32, score: f32) {
        let key = key(docid, score);
        if key > self.bar && docid.wrapping_sub(self.first) < self.span {
            self.keys.push(key);
            if self.keys.len() >= self.limit {
                self.cut();
            }
        }
    }

    /// Raises the threshold to the k-th best score if enough were offered since the last time.
    #[inline]
    pub(crate) fn tighten(&mut self) {
        let more = if self.bar == 0 { 0 } else { self.k / 4 };
        if self.keys.len() > self.k.saturating_add(more)
            || (self.bar == 0 && self.keys.len() == self.k && self.k > 0)
        {
            self.cut();
        }
    }

    /// Replaces `hits` by the best, best first. Then takes nothing until [`reset`](Self::reset).
    pub fn take(&mut self, hits: &mut Vec<Hit>) {
        hits.clear();
        if self.keys.len() > self.k {
            self.cut();
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        hits.extend(
            self.keys.iter().map(|&key| Hit { docid: !(key as u32), score: score_of(key) }),
        );
        self.reset(0);
    }

    /// Drops all but the best k; there are at least k, and k is not 0.
    #[inline(never)]
    fn cut(&mut self) {
        let (_, &mut least, _) = self.keys.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
        self.bar = least;
        self.keys.truncate(self.k);
    }
}

/// Merges the best hits of several parts of a query, from tasks, workers or processes.
#[derive(Debug)]
pub(crate) struct Combined {
    top: TopK,
}

impl Combined {
    pub(crate) fn new(k: usize) -> Self {
        let mut top = TopK::new();
        top.reset(k);
        Self { top }
    }

    /// Adds the hits of a part; a document is in one part alone. Returns the k-th score so far;
    /// minus infinity if there are fewer, plus infinity if k is 0.
    pub(crate) fn add(&mut self, hits: &[Hit]) -> f32 {
        hits.iter().for_each(|hit| self.top.offer(hit.docid, hit.score));
        self.top.least()
    }

    /// Best first.
    pub(crate) fn take(&mut self) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.top.take(&mut hits);
        hits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best(k: usize, offers: &[(u32, f32)]) -> Vec<Hit> {
        let mut top = TopK::new();
        top.reset(k);
        offers.iter().for_each(|&(docid, score)| top.offer(docid, score));
        let mut hits = vec![Hit { docid: 1, score: 1.0 }];
        top.take(&mut hits);
        hits
    }

    #[test]
    fn none_are_kept_for_k_of_0_or_before_a_reset() {
        assert_eq!(best(0, &[(1, 1.0), (0, f32::MAX)]), []);
        let mut top = TopK::new();
        assert_eq!(top.threshold(), f32::INFINITY);
        top.offer(1, 1.0);
        let mut hits = Vec::new();
        top.take(&mut hits);
        assert_eq!(hits, []);
    }

    #[test]
    fn a_k_of_all_there_is_takes_memory_for_the_hits_only() {
        let hits = best(usize::MAX, &[(7, 0.0), (u32::MAX - 1, 3.0)]);
        assert_eq!(hits, [Hit { docid: u32::MAX - 1, score: 3.0 }, Hit { docid: 7, score: 0.0 }]);
        let mut top = TopK::new();
        top.reset(4_000_000_000);
        assert_eq!(top.keys.capacity(), 0);
    }

    #[test]
    fn the_threshold_rises_and_lets_no_tie_in() {
        let mut top = TopK::new();
        top.reset(3);
        assert_eq!(top.threshold(), f32::NEG_INFINITY);
        for docid in 0..1000 {
            top.offer(docid, 2.5);
        }
        assert_eq!(top.threshold(), 2.5);
        let mut hits = Vec::new();
        top.take(&mut hits);
        assert_eq!(hits.iter().map(|hit| hit.docid).collect::<Vec<_>>(), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn oracle_a_sort_of_all_gives_the_same(
            scores in prop::collection::vec(prop::sample::select(vec![0.0f32, 1e-40, 0.5, 1.0, 1.5, 7.0]), 0..400),
            noise in prop::bool::weighted(0.5),
            backwards in any::<bool>(),
            k in prop::sample::select(vec![0usize, 1, 2, 10, 31, 32, 33, 100, 1000, usize::MAX]),
        ) {
            let mut offers: Vec<(u32, f32)> = (0u32..)
                .zip(scores)
                .map(|(docid, score)| {
                    let noise = if noise { (docid * 7919 % 1009) as f32 / 64.0 } else { 0.0 };
                    (docid * 3, score + noise)
                })
                .collect();
            let mut expected = offers.clone();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            expected.truncate(k);
            if backwards {
                offers.reverse();
            }
            let found = best(k, &offers);
            prop_assert_eq!(found.iter().map(|hit| (hit.docid, hit.score)).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn law_parts_of_the_offers_with_a_floor_give_the_best_of_all(
            offers in prop::collection::vec((0u32..5, 1u32..4), 1..300),
            cut in any::<prop::sample::Index>(),
            k in prop::sample::select(vec![0usize, 1, 3, 40]),
        ) {
            let mut docid = 0;
            let offers: Vec<(u32, f32)> = offers
                .into_iter()
                .map(|(score, gap)| {
                    docid += gap;
                    (docid, score as f32)
                })
                .collect();
            let cut = offers[cut.index(offers.len())].0;
            let mut combined = TopK::new();
            combined.reset(k);
            let mut floor = f32::NEG_INFINITY;
            // The later documents first: of equal scores the earlier ones still get in.
            for part in [cut..u32::MAX, 0..cut] {
                let mut top = TopK::new();
                let mut hits = Vec::new();
                top.reset(k);
                top.raise(floor);
                top.only(part);
                offers.iter().for_each(|&(docid, score)| top.offer(docid, score));
                top.take(&mut hits);
                hits.iter().for_each(|hit| combined.offer(hit.docid, hit.score));
                floor = combined.least();
            }
            let mut found = Vec::new();
            combined.take(&mut found);
            prop_assert_eq!(found, best(k, &offers));
        }

        #[test]
        fn law_keys_keep_scores_and_their_order(a in any::<f32>(), b in any::<f32>(), docid in any::<u32>()) {
            prop_assert_eq!(score_of(key(docid, a)).to_bits(), a.to_bits());
            if a < b {
                prop_assert!(key(0, a) < key(u32::MAX, b));
            }
        }
    }
}
