//! Weights of queries as whole numbers of 16 bits, so that a device adds up learned weights in any
//! order. A term of weight w adds `m` for each unit of its impacts, where `m` is w in some unit.
//!
//! If a unit, a power of two, gives whole numbers for all weights, and no sum reaches 2^24, then
//! every sum is exact, as is that of f32: it is the score. Otherwise `m` is rounded up, so that a
//! document's sum is at least its score, and the device computes the scores of all documents whose
//! sums reach the threshold. If k of them are better than any other can be, they are the answer.

use super::plan::PlacedTerm;
use crate::query::top_k::Hit;

pub(crate) const MOST_IMPACT_TERMS: usize = 128;

const MOST_MULTIPLIER: f64 = 65535.0;

/// Below it all whole numbers are numbers of f32.
const EXACT: f64 = (1 << 24) as f64;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FixedWeights {
    /// What 1 of a sum stands for.
    unit: f64,
    pub(super) multipliers: Vec<u32>,
    pub(super) is_exact: bool,
}

/// The greatest power of two of which a number, which is normal, is a multiple: its exponent.
fn lowest_bit(weight: f32) -> i32 {
    let bits = weight.to_bits();
    let mantissa = bits & 0x007f_ffff | 0x0080_0000;
    (bits >> 23) as i32 - 150 + mantissa.trailing_zeros() as i32
}

/// Whether weights can be made whole numbers, whatever the lists are.
pub(super) fn suits(weights: impl ExactSizeIterator<Item = f32>) -> bool {
    let count = weights.len();
    (1..=MOST_IMPACT_TERMS).contains(&count) && { weights }.all(|w| w > 0.0 && w.is_normal())
}

impl FixedWeights {
    /// `None` if the sums might not fit.
    pub(super) fn new(terms: &[PlacedTerm]) -> Option<Self> {
        if !suits(terms.iter().map(|term| term.weight.factor())) {
            return None;
        }
        let weights = || terms.iter().map(|term| f64::from(term.weight.factor()));
        let impacts = || terms.iter().map(|term| f64::from(term.placed.exceptions));
        let most = weights().fold(0.0, f64::max);
        let total: f64 = weights().zip(impacts()).map(|(weight, impact)| weight * impact).sum();
        let lowest = terms.iter().map(|term| lowest_bit(term.weight.factor())).min();
        let whole = lowest.map_or(1.0, |exponent| 2f64.powi(exponent));
        if most / whole <= MOST_MULTIPLIER && total / whole < EXACT {
            let multipliers = weights().map(|weight| (weight / whole) as u32).collect();
            return Some(Self { unit: whole, multipliers, is_exact: true });
        }
        // Rounding up adds one impact of each term at most.
        let room = f64::from(u32::MAX) - 1.0 - impacts().sum::<f64>();
        if room < f64::from(1 << 30) {
            return None;
        }
        let unit = (most / (MOST_MULTIPLIER - 1.0)).max(total / room);
        let multipliers = weights().map(|weight| (weight / unit).ceil().max(1.0) as u32).collect();
        Some(Self { unit, multipliers, is_exact: false })
    }

    /// The best k of the documents whose sums are `threshold` or more, best first, unless another
    /// may be among these.
    pub(super) fn answer(&self, keys: &[u64], k: u32, threshold: u32) -> Option<Vec<Hit>> {
        if self.is_exact {
            let unit = self.unit as f32;
            let hit =
                |&key: &u64| Hit { docid: !(key as u32), score: (key >> 32) as u32 as f32 * unit };
            return Some(keys.iter().map(hit).collect());
        }
        let hits: Vec<Hit> = keys.iter().map(|&key| Hit::of_key(key)).collect();
        // A rounding of f32 for each term and one more, and what is left of a weight.
        let rounding = (self.multipliers.len() + 4) as f64 * f64::from(f32::EPSILON);
        let others = self.unit * f64::from(threshold) * (1.0 + rounding);
        let are_best = |kth: &Hit| f64::from(kth.score) > others;
        (threshold <= 1 || hits.get(k as usize - 1).is_some_and(are_best)).then_some(hits)
    }
}

/// How many of a sample, one document of `spread`, are likely to have the sum of the k-th best of
/// all documents or more, and some more than that: a lower bar lets a few more candidates pass,
/// and one that is too high takes a second turn.
pub(super) fn rank_in_sample(k: u32, spread: u32) -> u32 {
    let mean = f64::from(k - 1) / f64::from(spread);
    ((mean + 3.1 * mean.sqrt() + 1.0).ceil() as u32).max(5)
}

#[cfg(test)]
mod tests {
    use super::super::list::PlacedList;
    use super::*;
    use proptest::prelude::*;

    fn terms(of: &[(f32, u32)]) -> Vec<PlacedTerm> {
        let placed = |exceptions| PlacedList { exceptions, ..PlacedList::default() };
        let term = |&(weight, most): &(f32, u32)| PlacedTerm {
            place: 0,
            placed: placed(most),
            df: 1,
            weight: weight.into(),
        };
        of.iter().map(term).collect()
    }

    #[test]
    fn weights_of_a_power_of_two_are_exact() {
        let of = |weights: &[f32]| {
            let with_most = weights.iter().map(|&weight| (weight, 255));
            FixedWeights::new(&terms(&with_most.collect::<Vec<_>>())).unwrap()
        };
        for (weights, multipliers) in [
            (&[3.0, 255.0, 1.0][..], &[3, 255, 1][..]),
            (&[0.5, 2.25], &[2, 9]),
            (&[65535.0], &[65535]),
            (&[1024.0, 3072.0], &[1, 3]),
        ] {
            let fixed = of(weights);
            assert_eq!((&fixed.multipliers[..], fixed.is_exact), (multipliers, true));
        }
        // Sums that f32 rounds, and weights that 16 bits do.
        for weights in [&[65535.0, 65533.0][..], &[0.1], &[1e30, 1.0]] {
            assert!(!of(weights).is_exact, "{weights:?}");
        }
        for weights in [&[][..], &[0.0], &[f32::NAN], &[-1.0], &[1e-40], &[1.0; 129]] {
            assert!(!suits(weights.iter().copied()), "{weights:?}");
        }
        assert_eq!(FixedWeights::new(&terms(&[(1.1, u32::MAX)])), None);
    }

    proptest! {
        /// Whatever the weights and the threshold, an answer is the one of f32.
        #[test]
        fn law_answers_are_those_of_single_precision(
            query in prop::collection::vec((prop_oneof![1e-3..9.0f32, (1..999u32).prop_map(|w| w as f32), Just(1e-9f32), Just(1e9)], 1..5000u32), 1..40),
            documents in prop::collection::vec(prop::collection::vec(any::<u32>(), 40), 1..60),
            k in 1..20u32,
            place in any::<prop::sample::Index>(),
        ) {
            let fixed = FixedWeights::new(&terms(&query)).unwrap();
            let mut sums = Vec::new();
            let mut scores = Vec::new();
            for (docid, drawn) in (0u32..).zip(&documents) {
                let impact = |t: usize| (drawn[t] % 3 * (drawn[t] / 3 % (query[t].1 + 1))).min(query[t].1);
                let sum: u64 =
                    (0..query.len()).map(|t| u64::from(fixed.multipliers[t] * impact(t))).sum();
                prop_assert!(sum <= u64::from(u32::MAX));
                let add = |score: f32, t: usize| match impact(t) {
                    0 => score,
                    impact => score + query[t].0 * impact as f32,
                };
                if sum > 0 {
                    sums.push((sum as u32, docid));
                    scores.push(Hit { docid, score: (0..query.len()).fold(0.0, add) });
                }
            }
            let threshold = if sums.is_empty() { 1 } else { place.get(&sums).0 };
            let found = sums.iter().zip(&scores).filter(|(sum, _)| sum.0 >= threshold);
            let mut keys: Vec<u64> = found
                .map(|(sum, hit)| match fixed.is_exact {
                    true => u64::from(sum.0) << 32 | u64::from(!sum.1),
                    false => u64::from(hit.score.to_bits()) << 32 | u64::from(!sum.1),
                })
                .collect();
            keys.sort_by_key(|&key| std::cmp::Reverse(key));
            keys.truncate(k as usize);
            scores.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
            scores.truncate(k as usize);
            let whole = keys.len() == scores.len();
            match fixed.answer(&keys, k, threshold) {
                Some(hits) => prop_assert!(hits == scores || (fixed.is_exact && !whole)),
                None => prop_assert!(!fixed.is_exact && threshold > 1),
            }
        }
    }

    #[test]
    fn ranks_in_a_sample_grow_slower_than_what_is_asked_for() {
        let ranks = [1, 10, 100, 1000, 10_000].map(|k| rank_in_sample(k, 64));
        assert_eq!(ranks, [5, 5, 7, 29, 196]);
    }
}
