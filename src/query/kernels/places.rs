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

/// How many pairs of the `first` and the `second` there are of which the second stands behind the
/// first by `least`, or by up to `span` more, modulo 2^32. Both rise strictly.
#[inline(always)]
pub(crate) fn pairs_within(
    level: Level,
    first: Places<'_>,
    second: Places<'_>,
    least: u32,
    span: u32,
) -> u32 {
    // What is added to a number of the shorter list to have the least of the longer one.
    let more = second.base.wrapping_add(least).wrapping_sub(first.base);
    let (few, many, more) = match first.len <= second.len {
        true => (first, second, more),
        false => (second, first, more.wrapping_add(span).wrapping_neg()),
    };
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected on this processor.
        Level::Avx512 => unsafe { pairs_avx512(few, many, more, span) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { pairs_avx2(few, many, more, span) },
        Level::Portable => pairs(few, many, more, span),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,popcnt")]
#[inline]
fn pairs_avx512(few: Places<'_>, many: Places<'_>, more: u32, span: u32) -> u32 {
    use std::arch::x86_64::*;
    let span = _mm512_set1_epi32(span as i32);
    if few.len > 4 || many.len > 8 {
        if many.len <= LANES {
            return beside_one_part(few, many, more, span);
        }
        return walk(few, many, more, span_of(span), |part, least| {
            // SAFETY: a part has 16 numbers.
            let part = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
            let behind = _mm512_sub_epi32(part, _mm512_set1_epi32(least as i32));
            _mm512_cmple_epu32_mask(behind, span).into()
        });
    }
    // Each of up to 4 beside up to 8.
    const TWO: [i32; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let [own, others] = [few, many].map(|list| {
        let part: &[u32; LANES] = list.sums.first_chunk().expect("there is room behind the sums");
        // SAFETY: a part has 16 numbers.
        unsafe { _mm512_loadu_si512(part.as_ptr().cast()) }
    });
    // SAFETY: the array has 16 numbers.
    let two = unsafe { _mm512_loadu_si512(TWO.as_ptr().cast()) };
    let others = _mm512_broadcast_i64x4(_mm512_castsi512_si256(others));
    let least = _mm512_add_epi32(own, _mm512_set1_epi32(more as i32));
    let pairs = |lanes: __m512i| {
        let behind = _mm512_sub_epi32(others, _mm512_permutexvar_epi32(lanes, least));
        u32::from(_mm512_cmple_epu32_mask(behind, span))
    };
    let found = pairs(two) | pairs(_mm512_add_epi32(two, _mm512_set1_epi32(2))) << 16;
    let of_one = (1u32 << many.len) - 1;
    let of_all = ((1u64 << (8 * few.len)) - 1) as u32;
    (found & of_one.wrapping_mul(0x0101_0101) & of_all).count_ones()
}

/// Each of the few beside all of at most 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,popcnt")]
#[inline]
fn beside_one_part(
    few: Places<'_>,
    many: Places<'_>,
    more: u32,
    span: std::arch::x86_64::__m512i,
) -> u32 {
    use std::arch::x86_64::*;
    let part: &[u32; LANES] = many.sums.first_chunk().expect("there is room behind the sums");
    // SAFETY: a part has 16 numbers.
    let part = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
    let part = _mm512_sub_epi32(part, _mm512_set1_epi32(more as i32));
    let there = ((1u32 << many.len) - 1) as u16;
    let near = |sum: &u32| {
        let behind = _mm512_sub_epi32(part, _mm512_set1_epi32(*sum as i32));
        (_mm512_cmple_epu32_mask(behind, span) & there).count_ones()
    };
    few.sums[..few.len].iter().map(near).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn span_of(span: std::arch::x86_64::__m512i) -> u32 {
    use std::arch::x86_64::*;
    _mm_cvtsi128_si32(_mm512_castsi512_si128(span)) as u32
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn pairs_avx2(few: Places<'_>, many: Places<'_>, more: u32, span: u32) -> u32 {
    pairs(few, many, more, span)
}

#[inline(always)]
fn pairs(few: Places<'_>, many: Places<'_>, more: u32, span: u32) -> u32 {
    walk(few, many, more, span, |part, least| {
        let is_near =
            |(lane, value): (u32, &u32)| u32::from(value.wrapping_sub(least) <= span) << lane;
        (0..).zip(part).map(is_near).sum()
    })
}

/// Compares each of few numbers with the parts of the many that may be near, of which `near` gives
/// a bit for each that is.
#[inline(always)]
fn walk(
    few: Places<'_>,
    many: Places<'_>,
    more: u32,
    span: u32,
    near: impl Fn(&[u32; LANES], u32) -> u32,
) -> u32 {
    let mut count = 0;
    let mut at = 0;
    // Positions, which rise, and are negative where there is none.
    let position = |sum: u32| sum.wrapping_sub(many.base) as i32;
    for sum in &few.sums[..few.len] {
        let least = sum.wrapping_add(more);
        while at + LANES < many.len && position(many.sums[at + LANES - 1]) < position(least) {
            at += LANES;
        }
        let mut from = at;
        loop {
            let part = many.sums[from..].first_chunk().expect("there is room behind the sums");
            let left = (many.len - from).min(LANES);
            count += (near(part, least) & ((1 << left) - 1)).count_ones();
            from += LANES;
            let most = position(least).saturating_add(span as i32);
            if from >= many.len || position(many.sums[from]) > most {
                break;
            }
        }
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
            least in -20i32..20,
            span in 0u32..30,
        ) {
            let pairs = lists[0].iter().flat_map(|a| lists[1].iter().map(move |b| b.wrapping_sub(*a) as i32));
            let expected = pairs.filter(|by| (least..=least + span as i32).contains(by)).count();
            let sums = [0, 1].map(|which: usize| -> Vec<u32> {
                let places: &BTreeSet<u32> = &lists[which];
                let own = places.iter().map(|at| at.wrapping_add(bases[which]));
                [bases[which]].into_iter().chain(own).chain([7; LANES]).collect()
            });
            let [first, second] =
                [0, 1].map(|which: usize| Places::of(&sums[which], 1, 1 + lists[which].len()));
            prop_assert!(first.iter().eq(lists[0].iter().copied()));
            for level in [Level::Portable, level()] {
                let found = pairs_within(level, first, second, least as u32, span);
                prop_assert_eq!(found, expected as u32);
            }
        }
    }
}
