//! Counts where two words of a document stand at a distance from each other.

#![allow(unsafe_code)]

use crate::cpu::Level;

/// Numbers that are compared at once.
pub(crate) const LANES: usize = 16;

/// Positions of a word in a document, as numbers that are greater by `base`, modulo 2^32: the first
/// `len` of `sums`, behind which are [`LANES`] more.
#[derive(Clone, Copy)]
pub(crate) struct Places<'p> {
    sums: &'p [u32],
    len: usize,
    base: u32,
}

impl<'p> Places<'p> {
    /// Those from `start` to `end` of the sums of a block's values, behind which are at least 16.
    pub(crate) fn of(sums: &'p [u32], start: usize, end: usize) -> Self {
        let base = start.checked_sub(1).map_or(0, |before| sums[before]);
        assert!(end + LANES <= sums.len() && start <= end, "there is room behind the sums");
        Self { sums: &sums[start..], len: end - start, base }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + use<'p> {
        let base = self.base;
        self.sums[..self.len].iter().map(move |sum| sum.wrapping_sub(base))
    }
}

/// How many of the `first` have one of the `second` at a distance behind them, modulo 2^32. Both
/// rise strictly.
#[inline]
pub(crate) fn at_distance(
    level: Level,
    first: Places<'_>,
    second: Places<'_>,
    distance: u32,
) -> u32 {
    // What is added to a number of the shorter list to have that of the longer one.
    let more = second.base.wrapping_add(distance).wrapping_sub(first.base);
    let (few, many, more) = match first.len <= second.len {
        true => (first, second, more),
        false => (second, first, more.wrapping_neg()),
    };
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected on this processor.
        Level::Avx512 => unsafe { common_avx512(few, many, more) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { common_avx2(few, many, more) },
        Level::Portable => common(few, many, more),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,popcnt")]
fn common_avx512(few: Places<'_>, many: Places<'_>, more: u32) -> u32 {
    common(few, many, more)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn common_avx2(few: Places<'_>, many: Places<'_>, more: u32) -> u32 {
    common(few, many, more)
}

/// Compares each of few numbers with 16 of the many at once, as far as these may be the same.
#[inline(always)]
fn common(few: Places<'_>, many: Places<'_>, more: u32) -> u32 {
    let mut count = 0;
    let mut at = 0;
    for sum in &few.sums[..few.len] {
        let wanted = sum.wrapping_add(more);
        // Behind a part whose last one is less nothing is lost: both rise.
        while at + LANES < many.len
            && many.sums[at + LANES - 1].wrapping_sub(many.base) < wanted.wrapping_sub(many.base)
            && (wanted.wrapping_sub(many.base) as i32) >= 0
        {
            at += LANES;
        }
        let part = many.sums[at..].first_chunk::<LANES>().expect("there is room behind the sums");
        let left = (many.len - at).min(LANES) as u32;
        let same = |(lane, value): (u32, &u32)| u32::from(*value == wanted && lane < left);
        count += (0..).zip(part).map(same).sum::<u32>();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::level;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn oracle_distances_are_those_of_sets(
            lists in prop::array::uniform2(prop::collection::btree_set(0u32..300, 1..90)),
            bases in prop::array::uniform2(any::<u32>()),
            distance in 0u32..20,
        ) {
            let expected = lists[0].iter().filter(|at| lists[1].contains(&(*at + distance))).count();
            let sums = [0, 1].map(|which: usize| -> Vec<u32> {
                let places: &BTreeSet<u32> = &lists[which];
                let own = places.iter().map(|at| at.wrapping_add(bases[which]));
                [bases[which]].into_iter().chain(own).chain([7; LANES]).collect()
            });
            let [first, second] =
                [0, 1].map(|which: usize| Places::of(&sums[which], 1, 1 + lists[which].len()));
            prop_assert!(first.iter().eq(lists[0].iter().copied()));
            for level in [Level::Portable, level()] {
                prop_assert_eq!(at_distance(level, first, second, distance), expected as u32);
            }
        }
    }
}
