//! The records of a batch for the kernels: one for each query and one for each of its terms.
//!
//! The sums of OR are integers. With `unit` chosen so that the sums of a query fit their bits, a
//! posting with impact i, of a term that gives no document more than w, adds `c = ceil(i * m /
//! 2^16)`, where `m = ceil(w * 2^16 / (255 * unit))`. So `unit * c` is at least the posting's
//! score, and above it by at most `w / 255 + unit * (1 + 255 / 2^16)`. If k documents have sums of
//! T or more, then k documents have scores of at least `unit * (T - slack)`, the slack being the
//! sum of these errors over all terms in units, and a document whose sum is below `T - slack` is
//! not among the best k. The roundings of f32, of one part in 2^24 each, are part of the slack.

use super::list::{MOST_IMPACT, PlacedList};
use crate::score::weight::Weight;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

pub(crate) const MOST_TERMS: usize = 64;

pub(crate) const MOST_HITS: usize = 1 << 16;

/// Queries of more terms have sums of 16 bits.
const NARROW_TERMS: usize = 8;

pub(crate) const NONE: u32 = u32::MAX;

/// As in `kernels/query_list.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct TermRecord {
    pub place: u64,
    pub postings: u32,
    pub exceptions: u32,
    pub multiplier: u32,
    pub weight: f32,
    pub shorter: u16,
    pub formula: u16,
    pub more: f32,
}

/// As in `kernels/query_list.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct QueryRecord {
    pub keys: u64,
    pub sorted: u64,
    pub first_term: u32,
    pub terms: u32,
    pub k: u32,
    pub slack: u32,
    pub from: u32,
    pub to: u32,
    pub capacity: u32,
    /// A record that spares this one if it has k hits.
    pub after: u32,
    pub hits: u32,
    pub per_unit: f32,
    pub bar: u32,
    /// Smaller sums, or bins, are ignored always.
    pub floor: u32,
}

/// As in `kernels/query_list.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryState {
    pub threshold: u32,
    pub count: u32,
    pub hits: u32,
    pub spare: u32,
}

/// There were more candidates than room.
pub(crate) const OVERFLOWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub struct PlacedTerm {
    /// Of its list.
    pub place: u64,
    pub placed: PlacedList,
    pub df: u32,
    /// Its factor is above zero.
    pub weight: Weight,
}

impl PlacedTerm {
    /// The most that it gives a document, except for rounding.
    pub(super) fn most(&self) -> f32 {
        self.placed.most * self.weight.factor()
    }
}

/// Of the sums of a query.
pub(crate) fn bits(terms: usize) -> u32 {
    if terms <= NARROW_TERMS { 8 } else { 16 }
}

/// The scale of the sums of a query, and their error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub bits: u32,
    /// What 1 of a sum stands for.
    pub unit: f64,
    pub slack: u32,
}

impl Scale {
    /// `None` if terms of these weights cannot be added up so.
    pub(crate) fn new(weights: impl ExactSizeIterator<Item = f32> + Clone) -> Option<Self> {
        let terms = weights.len();
        let bits = bits(terms);
        let most = f64::from((1u32 << bits) - 1);
        let total: f64 = weights.clone().map(f64::from).sum();
        let is_good = |w: f32| w > 0.0 && w.is_finite();
        if terms == 0 || terms > MOST_TERMS || !weights.clone().all(is_good) {
            return None;
        }
        let unit = total / (most - 2.0 * terms as f64);
        // Weights so small that a multiplier overflows have no such unit.
        if !(unit.is_normal() && (total as f32).is_normal()) {
            return None;
        }
        let error = |w: f32| {
            let of_impact = f64::from(w) / (f64::from(MOST_IMPACT) * unit);
            of_impact * (1.0 + 1e-5) + 1.0 + 256.0 / 65536.0
        };
        let rounding = 2.0 * (terms as f64 + 4.0) * f64::from(f32::EPSILON) * most;
        // The impact itself is right to two parts in a million.
        let slack = weights.map(error).sum::<f64>() + rounding + 4e-6 * most;
        Some(Self { bits, unit, slack: slack as u32 })
    }

    pub(crate) fn multiplier(&self, weight: f32) -> u32 {
        let exact = f64::from(weight) * 65536.0 / (f64::from(MOST_IMPACT) * self.unit);
        // The product with an impact fits 32 bits, whatever the weight's share of the total.
        (exact.ceil() as u32).max(1)
    }
}

/// What a posting adds to the sum of its document.
#[cfg(test)]
pub(crate) fn worth(impact: u8, multiplier: u32) -> u32 {
    (u32::from(impact) * multiplier + 65535) >> 16
}

#[derive(Clone, Debug)]
pub(crate) struct QueryLimits {
    /// 1 to [`MOST_HITS`].
    pub k: u32,
    pub docids: Range<u32>,
    pub capacity: u32,
    /// See [`QueryRecord::after`].
    pub after: u32,
    /// See [`QueryRecord::floor`].
    pub floor: u32,
}

/// Appends the terms of a query to `terms` and returns its record, without the places of its keys
/// and hits. `None` if a device cannot answer it.
pub(crate) fn record(
    query: &[PlacedTerm],
    asked: &QueryLimits,
    terms: &mut Vec<TermRecord>,
) -> Option<(QueryRecord, Scale)> {
    let scale = Scale::new(query.iter().map(PlacedTerm::most))?;
    let first_term = terms.len() as u32;
    let mut order: Vec<u16> = (0..query.len() as u16).collect();
    order.sort_by_key(|&t| query[t as usize].df);
    terms.extend(query.iter().zip(order).map(|(term, shorter)| TermRecord {
        place: term.place,
        postings: term.placed.postings,
        exceptions: term.placed.exceptions,
        multiplier: scale.multiplier(term.most()),
        weight: term.weight.factor(),
        shorter,
        formula: term.weight.formula() as u16,
        more: term.weight.more(),
    }));
    let total: f64 = query.iter().map(|term| f64::from(term.most())).sum();
    let record = QueryRecord {
        first_term,
        terms: query.len() as u32,
        k: asked.k,
        slack: scale.slack,
        from: asked.docids.start,
        to: asked.docids.end,
        capacity: asked.capacity,
        after: asked.after,
        per_unit: ((255.0 / total) as f32).min(f32::MAX),
        bar: (1 << scale.bits) / 8,
        floor: asked.floor,
        ..QueryRecord::zeroed()
    };
    Some((record, scale))
}

#[cfg(test)]
mod tests {
    use super::super::list::impact;
    use super::super::twin::{FORMULAS, norm, weight};
    use super::*;
    use crate::score::weight::Formula;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_sums_fit_and_bound_scores_from_both_sides(
            formula in prop::sample::select(FORMULAS.to_vec()),
            factors in prop::collection::vec(prop_oneof![1e-6..20.0f32, 1e-3..1e3f32, Just(1e9f32)], 1..=MOST_TERMS),
            postings in prop::collection::vec((1..300u32, 0.1..4.0f32, 0.0..4.0f32), MOST_TERMS),
        ) {
            let norm = norm(formula, postings[0].1);
            // The best of each list scores some times what the document does.
            let term = |(&factor, &(tf, times, more)): (&f32, &(u32, f32, f32))| {
                let weight = weight(formula, factor, more);
                let own = weight.of_factor_1().score(tf, norm);
                let most = if formula == Formula::Saturation { 1.0 } else { own * times.max(1.0) };
                let placed = PlacedList { most, ..PlacedList::default() };
                (PlacedTerm { place: 0, placed, df: 1, weight }, tf, impact(own / most))
            };
            let terms: Vec<_> = factors.iter().zip(&postings).map(term).collect();
            let scale = Scale::new(terms.iter().map(|(term, ..)| term.most())).unwrap();
            let mut sum = 0;
            let mut most = 0;
            let mut exact = 0.0f32;
            for (term, tf, impact) in terms {
                let multiplier = scale.multiplier(term.most());
                u32::from(u8::MAX).checked_mul(multiplier).and_then(|p| p.checked_add(65535)).unwrap();
                sum += worth(impact, multiplier);
                most += worth(u8::MAX, multiplier);
                exact += term.weight.score(tf, norm);
            }
            prop_assert!(most < 1 << scale.bits, "{most}");
            let units = f64::from(exact) / scale.unit;
            prop_assert!(f64::from(sum) >= units * (1.0 - 1e-4), "{sum} {units}");
            prop_assert!(f64::from(sum) <= units + f64::from(scale.slack + 1), "{sum} {units} {scale:?}");
        }
    }

    #[test]
    fn what_cannot_be_added_up_is_refused() {
        for weights in [&[][..], &[0.0], &[f32::NAN], &[f32::INFINITY], &[1e-40], &[1.0; 65]] {
            assert_eq!(Scale::new(weights.iter().copied()), None, "{weights:?}");
        }
        // For one term, a unit of a sum and one of an impact.
        assert_eq!(Scale::new([3.0].into_iter()).unwrap().slack, 1);
        assert_eq!(Scale::new([3.0, 1.0, 0.5, 0.1].into_iter()).unwrap().slack, 4);
    }

    #[test]
    fn records_have_the_sizes_that_kernels_read() {
        assert_eq!(size_of::<TermRecord>(), 32);
        assert_eq!(size_of::<QueryRecord>(), 64);
        assert_eq!(size_of::<QueryState>(), 16);
    }
}
