//! Draws terms by their frequencies. Term number R, from 1, comes in proportion to
//!
//! ```text
//! R^-s                     up to the knee at 8192     s: the exponent of Zipf's law
//! knee^-s (R / knee)^-t    beyond it                  t: the larger of s and 1 / h
//! ```
//!
//! Natural language bends like this: words in general use follow s = 1, and names, numbers and
//! misspellings fall off faster (Gerlach and Altmann, *Stochastic model for the vocabulary growth
//! in natural languages*, Phys. Rev. X 3, 2013). Because terms are drawn independently, n tokens
//! have about n^(1/t) distinct ones once n is large: Heaps' law with the exponent h, until the
//! vocabulary is used up.
//!
//! The draw takes 64 random bits and one access to an alias table (Walker; Vose 1991) of 2^15
//! slots. Its integer weights add up to 2^47 and are met exactly. The first terms have a slot each;
//! all others share segments of a sixteenth of their rank: inside a segment a rank is drawn evenly
//! and accepted in proportion to its weight, which takes a power only where two cheap bounds do not
//! decide.

#![forbid(unsafe_code)]

use crate::random::Random;
use crate::real::{growth, ln, pow};
use std::hint::select_unpredictable;

/// Slots of the alias table, and symbols: terms of their own, then segments.
pub(super) const SLOTS: usize = 1 << 15;

/// Ranks below this have a symbol of their own, the rank itself.
pub(super) const DIRECT: u32 = SLOTS as u32 - 384;

/// Where the exponent changes.
const KNEE: f64 = 8192.0;

/// The weight of a slot; all weights add up to `SLOTS` times this.
const SLOT_WEIGHT: u64 = 1 << 32;

/// A slot of the alias table: it is its own symbol with probability `own` / 2^32, else `alias`.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    own: u32,
    alias: u32,
}

/// Ranks that share a symbol.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u32,
    len: u32,
    /// The last rank's weight, relative to the first's, times 2^32, rounded down.
    least: u64,
}

/// Draws ranks, from 0.
pub(super) struct Ranks {
    slots: Box<[Slot; SLOTS]>,
    segments: Vec<Segment>,
    law: Law,
    /// The sum of all weights.
    all: f64,
}

/// The share of tokens that each rank of an ideal collection has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    exponent: f64,
    tail_exponent: f64,
}

impl Law {
    pub(super) fn new(exponent: f64, heaps: f64) -> Self {
        Self { exponent, tail_exponent: exponent.max(1.0 / heaps) }
    }

    /// The weight of a rank, from 0, relative to that of rank 0.
    pub(super) fn weight(&self, rank: u32) -> f64 {
        let number = f64::from(rank) + 1.0;
        if number <= KNEE {
            pow(number, -self.exponent)
        } else {
            pow(KNEE, -self.exponent) * pow(number / KNEE, -self.tail_exponent)
        }
    }

    /// The sum of the weights of `len` ranks beyond the knee, from `first`. The midpoint rule and
    /// the first term of its error by Euler and Maclaurin: exact to some 1e-15 for ranks in
    /// thousands.
    fn weight_of_segment(&self, first: u32, len: u32) -> f64 {
        let t = self.tail_exponent;
        let low = f64::from(first) + 0.5;
        let high = f64::from(first) + f64::from(len) + 0.5;
        let density = |x: f64| pow(KNEE, -self.exponent) * pow(x / KNEE, -t);
        let width = ln(high / low);
        let integral = density(low) * low * width * growth((1.0 - t) * width);
        let slope = |x: f64| -t * density(x) / x;
        integral - (slope(high) - slope(low)) / 24.0
    }
}

impl Ranks {
    /// Makes the tables for `vocabulary` terms. The weights of the first `boosted` ranks are
    /// multiplied so that all of them together reach `boost` times their share.
    pub(super) fn new(law: &Law, vocabulary: u32, boosted: u32, boost: f64) -> Self {
        let mut weights = vec![0.0; SLOTS];
        for rank in 0..DIRECT.min(vocabulary) {
            weights[rank as usize] = law.weight(rank);
        }
        let mut segments = Vec::new();
        let mut first = DIRECT;
        while first < vocabulary {
            let len = (first / 16).min(vocabulary - first);
            let last = f64::from(first) + f64::from(len);
            let least = pow((f64::from(first) + 1.0) / last, law.tail_exponent);
            weights[DIRECT as usize + segments.len()] = law.weight_of_segment(first, len);
            segments.push(Segment { first, len, least: (least * SLOT_WEIGHT as f64) as u64 });
            first += len;
        }
        let all: f64 = weights.iter().sum();
        let head: f64 = weights[..boosted as usize].iter().sum();
        let share = (head / all * boost).min(0.95);
        let factor = share * (all - head) / ((1.0 - share) * head);
        weights[..boosted as usize].iter_mut().for_each(|weight| *weight *= factor);
        Self { slots: alias_table(&weights), segments, law: *law, all }
    }

    /// The share of a collection's tokens that are this term.
    pub(super) fn share(&self, rank: u32) -> f64 {
        self.law.weight(rank) / self.all
    }

    /// The symbol that 64 random bits stand for: a rank below [`DIRECT`], or a segment.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: u64) -> u32 {
        let number = bits as usize % SLOTS;
        let slot = self.slots[number];
        // No branch: the processor could not guess it.
        select_unpredictable(((bits >> 32) as u32) < slot.own, number as u32, slot.alias)
    }

    /// Draws a rank from the segment that is `symbol`, from [`DIRECT`] on.
    pub(super) fn in_segment(&self, symbol: u32, random: &mut Random) -> u32 {
        let segment = &self.segments[(symbol - DIRECT) as usize];
        loop {
            let bits = random.bits();
            let rank = segment.first + (((bits >> 32) * u64::from(segment.len)) >> 32) as u32;
            let level = bits & (SLOT_WEIGHT - 1);
            if level < segment.least || self.accepts(segment, rank, level) {
                return rank;
            }
        }
    }

    /// Whether the rank's weight, relative to that of the segment's first, is more than `level` /
    /// 2^32. It is convex in the rank: above its tangent at the first, and below its chord.
    #[inline]
    fn accepts(&self, segment: &Segment, rank: u32, level: u64) -> bool {
        let level = level as f64 / SLOT_WEIGHT as f64;
        let first = f64::from(segment.first) + 1.0;
        let behind = f64::from(rank - segment.first);
        if level < 1.0 - self.law.tail_exponent * behind / first {
            return true;
        }
        let least = segment.least as f64 / SLOT_WEIGHT as f64;
        // Above the true chord by the rounding of `least`, and by more where the segment is one
        // rank.
        let chord = 1.0 - (1.0 - least) * behind / f64::from(segment.len) + 1e-9;
        level <= chord && level < pow(first / (first + behind), self.law.tail_exponent)
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let symbol = self.symbol(random.bits());
        if symbol < DIRECT { symbol } else { self.in_segment(symbol, random) }
    }
}

/// Rounds weights to integers that add up to a full table, and lays them out so that every slot
/// holds at most two.
fn alias_table(weights: &[f64]) -> Box<[Slot; SLOTS]> {
    let total = SLOTS as u64 * SLOT_WEIGHT;
    let all: f64 = weights.iter().sum();
    let mut left: Vec<u64> = weights.iter().map(|w| (w / all * total as f64) as u64).collect();
    // What rounding down took goes to the most frequent term, where it is least felt.
    left[0] += total - left.iter().sum::<u64>();
    let mut slots = vec![Slot::default(); weights.len()];
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|&symbol| left[symbol as usize] < SLOT_WEIGHT);
    while let (Some(one), Some(&other)) = (small.pop(), large.last()) {
        slots[one as usize] = Slot { own: left[one as usize] as u32, alias: other };
        left[other as usize] -= SLOT_WEIGHT - left[one as usize];
        if left[other as usize] < SLOT_WEIGHT {
            large.pop();
            small.push(other);
        }
    }
    // Weights are integers, so what is left fills its slot exactly.
    for symbol in large {
        slots[symbol as usize] = Slot { own: 0, alias: symbol };
    }
    slots.into_boxed_slice().try_into().expect("one slot a weight")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn random() -> Random {
        Random::new(3, Purpose::Words, 0, 0)
    }

    /// The probability of every symbol, times 2^47, from the table alone.
    fn weights_of(table: &[Slot; SLOTS]) -> Vec<u64> {
        let mut found = vec![0; SLOTS];
        for (number, slot) in table.iter().enumerate() {
            found[number] += u64::from(slot.own);
            found[slot.alias as usize] += SLOT_WEIGHT - u64::from(slot.own);
        }
        found
    }

    #[test]
    fn law_the_alias_table_holds_the_weights() {
        for (exponent, vocabulary) in [(1.0, 1_000_000), (0.3, 5000), (2.5, u32::MAX), (1.0, 40)] {
            let law = Law::new(exponent, 0.6);
            let weights: Vec<f64> = (0..SLOTS as u32)
                .map(|rank| if rank < vocabulary { law.weight(rank) } else { 0.0 })
                .collect();
            let all: f64 = weights.iter().sum();
            let table = alias_table(&weights);
            let total = (SLOTS as u64 * SLOT_WEIGHT) as f64;
            for (found, weight) in weights_of(&table).into_iter().zip(&weights).skip(1) {
                assert!((found as f64 - weight / all * total).abs() <= 1.5, "{found} {weight}");
            }
        }
    }

    #[test]
    fn oracle_segments_weigh_what_their_ranks_weigh() {
        for (exponent, heaps) in [(1.0, 1.0), (1.0, 0.62), (0.5, 0.8), (2.0, 0.9)] {
            let law = Law::new(exponent, heaps);
            for (first, len) in [(DIRECT, 1), (DIRECT, DIRECT / 16), (3_000_000, 187_500)] {
                let sum: f64 = (first..first + len).map(|rank| law.weight(rank)).sum();
                let found = law.weight_of_segment(first, len);
                assert!((found / sum - 1.0).abs() < 1e-11, "{first} {len}: {found} {sum}");
            }
        }
    }

    #[test]
    fn ranks_of_a_segment_come_by_their_weight() {
        let law = Law::new(1.0, 0.5);
        let ranks = Ranks::new(&law, u32::MAX, 0, 1.0);
        let mut random = random();
        let draws = 200_000u32;
        let symbol = DIRECT + 3;
        let Segment { first, len, .. } = ranks.segments[3];
        let half = first + len / 2;
        let low = (0..draws).filter(|_| ranks.in_segment(symbol, &mut random) < half).count();
        let expected = law.weight_of_segment(first, len / 2) / law.weight_of_segment(first, len);
        let found = low as f64 / f64::from(draws);
        assert!((found - expected).abs() < 0.004, "{found} {expected}");
    }

    #[test]
    fn the_last_segment_ends_with_the_vocabulary() {
        for vocabulary in [DIRECT + 1, DIRECT + 5000, 1_000_003, u32::MAX] {
            let ranks = Ranks::new(&Law::new(1.0, 1.0), vocabulary, 33, 1.1);
            assert!(ranks.segments.len() <= SLOTS - DIRECT as usize);
            let last = ranks.segments.last().unwrap();
            assert_eq!(u64::from(last.first) + u64::from(last.len), u64::from(vocabulary));
            let mut random = random();
            let symbol = DIRECT + ranks.segments.len() as u32 - 1;
            assert!((0..1000).all(|_| ranks.in_segment(symbol, &mut random) < vocabulary));
        }
        let ranks = Ranks::new(&Law::new(1.0, 1.0), 64, 33, 1.1);
        let mut random = random();
        assert!((0..10_000).all(|_| ranks.draw(&mut random) < 64));
    }

    #[test]
    fn the_boost_gives_the_head_its_share() {
        let law = Law::new(1.0, 0.6);
        let share = |ranks: &Ranks| {
            let all = weights_of(&ranks.slots);
            all[..33].iter().sum::<u64>() as f64 / all.iter().sum::<u64>() as f64
        };
        let plain = share(&Ranks::new(&law, 1 << 30, 33, 1.0));
        let boosted = share(&Ranks::new(&law, 1 << 30, 33, 1.125));
        assert!((boosted / plain - 1.125).abs() < 1e-6, "{plain} {boosted}");
    }
}
