//! Bounds of blocks: the most that a posting adds to a score, for any k1, b and collection.
//!
//! A posting's score grows with its tf and falls with the length of its document, for every k1 and
//! b and every mean length. So only the *undominated* postings count, those for which no other has
//! both a greater tf (or the same) and a shorter document (or as long), and only their (tf, length)
//! pairs are stored.
//!
//! They are rounded outward, which leaves the bound safe: the tf up and the length down to the next
//! value of a scale of 256 *codes*. If there are more than [`PAIRS`], the two neighbours that
//! differ least in the tf or in the length are merged to the greater tf and the shorter length,
//! again and again.
//!
//! ```text
//! code  0 to 31     the value itself
//! code 32 to 255    (16 + c % 16) << (c / 16 - 1): 32, 34, 36, ..., 62, 64, 68, ..., 507,904
//! tf code 255       any tf
//! ```
//!
//! Everything is integer arithmetic on the postings alone, so that a block's bound does not depend
//! on its writer. Ding and Suel (Faster top-k document retrieval using block-max indexes, 2011)
//! store the greatest score instead, which fixes k1, b and the statistics when the index is built.

use super::bm25::{Bm25, score};
use super::weight::{ROUNDING, Weight};

pub(crate) const PAIRS: usize = 3;

pub(crate) const BOUND_BYTES: usize = 2 * PAIRS;

/// The (tf code, length code) pairs of a block, by falling tf; the last repeated if too few.
pub(crate) type Bound = [u8; BOUND_BYTES];

const EXACT: u32 = 32;

/// The code of the greatest value of the scale that is at most `value`.
#[inline]
pub const fn code_below(value: u32) -> u8 {
    if value < EXACT {
        return value as u8;
    }
    let exponent = value.ilog2();
    let code = 16 * (exponent - 3) + (value >> (exponent - 4) & 15);
    if code > 255 { 255 } else { code as u8 }
}

/// The code of the least value of the scale that is at least `tf`; code 255 is any tf.
#[inline]
pub(crate) const fn code_above(tf: u32) -> u8 {
    let code = code_below(tf);
    if value(code) == tf || code == 255 { code } else { code + 1 }
}

#[inline]
pub(crate) const fn value(code: u8) -> u32 {
    let code = code as u32;
    if code < EXACT { code } else { (16 + code % 16) << (code / 16 - 1) }
}

#[inline]
pub(crate) const fn greatest_tf(code: u8) -> u32 {
    if code == 255 { u32::MAX } else { value(code) }
}

/// About 16 times the binary logarithm of a code's value, plus 16.
const fn magnitude(code: u8) -> u16 {
    match code {
        0 => 0,
        1..32 => {
            let exponent = code.ilog2() as u16;
            16 * exponent + ((code as u16) << 4 >> exponent)
        }
        // Codes go on in sixteenths of a doubling.
        _ => code as u16 + 64,
    }
}

/// Postings that are looked at together.
const AT_ONCE: usize = 64;

/// By tf less one: the [code](code_above) of a tf.
const ABOVE: [u8; 512] = {
    let mut codes = [0; 512];
    let mut tf = 0;
    while tf < codes.len() {
        codes[tf] = code_above(tf as u32 + 1);
        tf += 1;
    }
    codes
};

#[derive(Clone, Debug)]
pub(crate) struct Front {
    /// The least length code by tf code; 255 where there is none.
    lengths: [u8; 256],
    /// The tf codes that were added, a bit each.
    tfs: [u64; 4],
}

impl Front {
    pub(crate) const fn new() -> Self {
        Self { lengths: [255; 256], tfs: [0; 4] }
    }

    /// Adds a posting by its tf and the [code](code_below) of its document's length.
    #[inline]
    pub(crate) fn add(&mut self, tf: u32, length: u8) {
        self.add_codes(code_above(tf), length);
    }

    /// [`add`](Self::add) for many postings, given by tf less one and length code, but for some of
    /// those that others dominate. Nearly all tfs are small, and the least length of each small tf
    /// is found for many postings at once. Where many are not, as impacts are, the undominated ones
    /// are found one after the other.
    pub(crate) fn add_block(&mut self, tfs_less_one: &[u32], lengths: &[u8]) {
        const SMALL: u8 = 4;
        const MANY: usize = 16;
        for (tfs, lengths) in tfs_less_one.chunks(AT_ONCE).zip(lengths.chunks(AT_ONCE)) {
            let mut small = [u8::MAX; AT_ONCE];
            let mut padded = [0; AT_ONCE];
            for (small, &tf) in small.iter_mut().zip(tfs) {
                *small = tf.min(u32::from(u8::MAX)) as u8;
            }
            padded[..lengths.len()].copy_from_slice(lengths);
            let mut rest = tfs.len();
            for tf in 0..SMALL {
                let mut least = u8::MAX;
                let mut many = 0u8;
                for (&other, &length) in small.iter().zip(&padded) {
                    let same = other == tf;
                    least = least.min(if same { length } else { u8::MAX });
                    many += u8::from(same);
                }
                if many > 0 {
                    self.add_codes(tf + 1, least);
                }
                rest -= usize::from(many);
            }
            if rest > MANY {
                self.add_undominated(tfs, &padded);
            } else if rest > 0 {
                let large = tfs.iter().zip(lengths).filter(|&(&tf, _)| tf >= u32::from(SMALL));
                large.for_each(|(&tf, &length)| self.add(tf.wrapping_add(1), length));
            }
        }
    }

    /// Adds the undominated ones of some postings, by tf less one and length code.
    fn add_undominated(&mut self, tfs_less_one: &[u32], lengths: &[u8; AT_ONCE]) {
        // The greatest key has the greatest tf, and of those with it the shortest length.
        let mut keys = [0; AT_ONCE];
        for ((key, &tf), &length) in keys.iter_mut().zip(tfs_less_one).zip(lengths) {
            let first = ABOVE.get(tf as usize);
            let code = first.copied().unwrap_or_else(|| code_above(tf.wrapping_add(1)));
            *key = u16::from(code) << 8 | u16::from(u8::MAX - length);
        }
        loop {
            let greatest = keys.iter().fold(0, |most, &key| key.max(most));
            let [tf, shortest] = greatest.to_be_bytes();
            if tf == 0 {
                return;
            }
            self.add_codes(tf, u8::MAX - shortest);
            let is_shorter = |key: u16| key & 0xff > u16::from(shortest);
            keys.iter_mut().for_each(|key| *key = if is_shorter(*key) { *key } else { 0 });
        }
    }

    #[inline]
    pub(crate) fn add_bound(&mut self, bound: Bound) {
        bound.as_chunks().0.iter().for_each(|&[tf, length]| self.add_codes(tf, length));
    }

    #[inline]
    fn add_codes(&mut self, tf: u8, length: u8) {
        let least = &mut self.lengths[usize::from(tf)];
        *least = length.min(*least);
        self.tfs[usize::from(tf / 64)] |= 1 << (tf % 64);
    }

    /// The bound of what was added; leaves the front empty. Zeros if nothing was added.
    pub(crate) fn take(&mut self) -> Bound {
        let mut pairs = [[0; 2]; 256];
        let mut count = 0;
        let mut least = None;
        for (word, tfs) in self.tfs.iter_mut().enumerate().rev() {
            while *tfs != 0 {
                let bit = 63 - tfs.leading_zeros();
                *tfs ^= 1 << bit;
                let tf = 64 * word + bit as usize;
                let length = std::mem::replace(&mut self.lengths[tf], 255);
                if least.is_none_or(|least| length < least) {
                    least = Some(length);
                    pairs[count] = [tf as u8, length];
                    count += 1;
                }
            }
        }
        while count > PAIRS {
            let at = closest(&pairs[..count]);
            // The greater tf stays; the shorter length comes from the next.
            pairs[at][1] = pairs[at + 1][1];
            pairs.copy_within(at + 2..count, at + 1);
            count -= 1;
        }
        let last = count.saturating_sub(1);
        let mut bound = [0; BOUND_BYTES];
        for (i, pair) in bound.as_chunks_mut().0.iter_mut().enumerate() {
            *pair = pairs[i.min(last)];
        }
        bound
    }
}

/// The first of the two neighbours with the least loss when they are merged.
fn closest(pairs: &[[u8; 2]]) -> usize {
    let loss = |at: &usize| {
        let [tf, length] = pairs[*at];
        let [next_tf, next_length] = pairs[at + 1];
        let apart = |a, b| magnitude(a) - magnitude(b);
        apart(tf, next_tf).min(apart(length, next_length))
    };
    (0..pairs.len() - 1).min_by_key(loss).expect("two or more are merged")
}

/// The norms of bounds for one k1, b and mean length.
#[derive(Clone, Debug)]
pub struct BoundNorms {
    /// By length code: the norm of its least length.
    pub(crate) norms: Box<[f32; 256]>,
}

impl BoundNorms {
    pub fn new(bm25: &Bm25, mean: f64) -> Self {
        Self::with(|length| bm25.norm(length, mean))
    }

    pub(crate) fn with(norm: impl Fn(u32) -> f32) -> Self {
        Self { norms: Box::new(std::array::from_fn(|code| norm(value(code as u8)))) }
    }

    /// The most that a posting of the bound's block adds to a score, rounding included.
    #[inline]
    pub fn most(&self, weight: Weight, bound: &Bound) -> f32 {
        let norm = |length: u8| self.norms[usize::from(length)];
        let pairs = bound.as_chunks().0.iter();
        if weight.is_saturation() {
            let of_pair =
                |&[tf, length]: &[u8; 2]| score(weight.factor(), greatest_tf(tf), norm(length));
            return pairs.map(of_pair).fold(0.0, f32::max) * ROUNDING;
        }
        let of_pair = |&[tf, length]: &[u8; 2]| weight.other_most(greatest_tf(tf), norm(length));
        pairs.map(of_pair).fold(0.0, f32::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bound(postings: &[(u32, u32)]) -> Bound {
        let mut front = Front::new();
        postings.iter().for_each(|&(tf, length)| front.add(tf, code_below(length)));
        front.take()
    }

    #[test]
    fn codes_are_a_rising_scale() {
        assert_eq!((0..32).map(value).collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
        assert_eq!([32, 33, 47, 48, 255].map(value), [32, 34, 62, 64, 507_904]);
        for code in 0..=255 {
            assert_eq!(code_below(value(code)), code);
            assert_eq!(code_above(value(code)), code);
        }
        assert!((0..255).all(|code| value(code) < value(code + 1)));
        assert!((0..255).all(|code| magnitude(code) < magnitude(code + 1)));
        assert_eq!((code_below(u32::MAX), code_above(u32::MAX)), (255, 255));
        assert_eq!((code_below(33), code_above(33)), (32, 33));
        assert_eq!((code_below(507_903), code_above(507_905)), (254, 255));
        assert_eq!((greatest_tf(254), greatest_tf(255)), (value(254), u32::MAX));
    }

    #[test]
    fn dominated_postings_are_left_out() {
        assert_eq!(bound(&[]), [0; BOUND_BYTES]);
        assert_eq!(bound(&[(1, 0)]), [1, 0, 1, 0, 1, 0]);
        let found = bound(&[(1, 10), (1, 20), (3, 9), (2, 9), (7, 31), (5, 30)]);
        assert_eq!(found, [7, 31, 5, 30, 3, 9]);
        assert_eq!(bound(&[(2, 4), (9, 6)]), [9, 6, 2, 4, 2, 4]);
    }

    #[test]
    fn too_many_are_merged_where_least_is_lost() {
        let [tf_40, tf_36, length_200, length_60] = [40, 36, 200, 60].map(code_below);
        let found = bound(&[(40, 200), (36, 60), (8, 30), (4, 29)]);
        // 36 and 40 are close, 29 and 30 are closer.
        assert_eq!(found, [tf_40, length_200, tf_36, length_60, 8, 29]);
        let found = bound(&[(40, 200), (36, 60), (8, 30), (4, 29), (1, 2)]);
        assert_eq!(found, [tf_40, length_60, 8, 29, 1, 2]);
    }

    #[test]
    fn a_front_forgets_what_was_taken() {
        let mut front = Front::new();
        front.add(500, 3);
        front.take();
        front.add_bound([4, 9, 2, 5, 1, 1]);
        front.add(4, 10);
        assert_eq!(front.take(), [4, 9, 2, 5, 1, 1]);
        assert_eq!(front.take(), [0; BOUND_BYTES]);
    }

    proptest! {
        #[test]
        fn law_no_posting_scores_above_its_bound(
            postings in prop::collection::vec((1..=u32::MAX, any::<u32>(), 0..32u32, 0..32u32), 1..200),
            k1 in prop::sample::select(vec![0.0, 1e-30, 0.9, 1.2, 1e9]),
            b in prop::sample::select(vec![0.0, 0.3, 0.75, 1.0]),
            weight in 0..1_000_000u32,
            mean in prop::sample::select(vec![0.0, 1e-9, 0.7, 300.0, 4e9]),
        ) {
            let postings: Vec<(u32, u32)> = postings
                .into_iter()
                .map(|(tf, length, a, b)| ((tf >> a).max(1), length >> b))
                .collect();
            let bm25 = Bm25::new(k1, b).unwrap();
            let norms = BoundNorms::new(&bm25, mean);
            let weight = weight as f32 / 1e4;
            let mut whole = Front::new();
            for block in postings.chunks(128) {
                let bound = bound(block);
                whole.add_bound(bound);
                for &(tf, length) in block {
                    let score = score(weight, tf, bm25.norm(length, mean));
                    prop_assert!(score <= norms.most(weight.into(), &bound), "{} {}", tf, length);
                }
            }
            let whole = norms.most(weight.into(), &whole.take());
            for &(tf, length) in &postings {
                prop_assert!(score(weight, tf, bm25.norm(length, mean)) <= whole);
            }
        }

        #[test]
        fn oracle_a_block_is_its_postings(
            postings in prop_oneof![
                prop::collection::vec((prop_oneof![8 => 0..6u32, 1 => any::<u32>()], any::<u8>()), 0..200),
                prop::collection::vec((0..700u32, any::<u8>()), 0..200),
                prop::collection::vec((any::<u32>(), 0..3u8), 0..200),
            ],
        ) {
            let (tfs, lengths): (Vec<u32>, Vec<u8>) = postings.iter().copied().unzip();
            let mut one_by_one = Front::new();
            let mut at_once = Front::new();
            postings.iter().for_each(|&(tf, length)| one_by_one.add(tf.wrapping_add(1), length));
            at_once.add_block(&tfs, &lengths);
            prop_assert_eq!(one_by_one.take(), at_once.take());
        }

        #[test]
        fn law_the_order_of_postings_does_not_matter(
            postings in prop::collection::vec((1..300u32, 0..3000u32), 0..100),
            turn in any::<prop::sample::Index>(),
        ) {
            let expected = bound(&postings);
            let mut turned = postings.clone();
            if !turned.is_empty() {
                let by = turn.index(turned.len());
                turned.rotate_left(by);
            }
            prop_assert_eq!(bound(&turned), expected);
        }
    }
}
