//! The weight of a term: a formula and the term's numbers in it. With the term frequency and the
//! norm of the document it gives the posting's score, in single precision:
//!
//! | formula | score of a posting | scores |
//! | --- | --- | --- |
//! | [`Saturation`](Formula::Saturation) | `(factor * tf) / (tf + norm)` | `bm25`, `wang`... |
//! | [`Lifted`](Formula::Lifted) | the same, `+ more` | `bm25plus`, `bm25l` |
//! | [`Dirichlet`](Formula::Dirichlet) | `factor * (ln(1 + tf * more) + norm)` | `ql` |
//! | [`Dph`](Formula::Dph) | see `dph` | `dph` |
//! | [`Linear`](Formula::Linear) | `factor * tf` | `impact` |
//! | [`Ratio`](Formula::Ratio) | `tf / norm` | a field in `bm25f` |
//!
//! `named` says what `factor`, `more` and the norms are. The loops over postings are made for
//! saturation; other formulas are computed a block at a time, beside them (`Weight::score_all`).
//! Each operation is rounded on its own, so that all engines and levels of vector instructions give
//! the same bits; logarithms are `ln`, not those of a library.
//!
//! A score below [`LEAST`] counts as [`LEAST`], so that every posting scores above 0. A norm of
//! infinity is that of a deleted document, whose postings score 0.
//!
//! **Bounds.** The pairs of a bound dominate the postings of their block. Saturation, lifted,
//! Dirichlet and linear formulas rise with tf and fall with length, so that the best pair bounds
//! the block, with slack for rounding. DPH does neither: it falls again where a document has little
//! else than the term; `dph_most` has its bound.

use super::bm25;

/// The least score of a posting, unless the formula is saturation.
pub(crate) const LEAST: f32 = 1e-30;

/// The errors of two logarithms and of sums of them, at most, relative to their size.
const SLACK: f32 = 4e-6;

/// The most by which rounding lifts a score above that of a posting that dominates it, as a factor:
/// each has four roundings of one part in 2^24.
pub(crate) const ROUNDING: f32 = 1.0 + 4.0 * f32::EPSILON;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Formula {
    /// `(factor * tf) / (tf + norm)`: [`bm25::score`].
    #[default]
    Saturation,
    /// `(factor * tf) / (tf + norm) + more`.
    Lifted,
    /// `factor * (ln(1 + tf * more) + norm)`; norms are 0 or less.
    Dirichlet,
    /// See `dph`; norms are lengths.
    Dph,
    /// `factor * tf`; norms are 0.
    Linear,
    /// `tf / norm`: what a field adds to the frequency of a word ([`Weight::blend`]).
    Ratio,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    factor: f32,
    more: f32,
    formula: Formula,
    /// No document is deleted, and the norms of others do not count.
    without_norms: bool,
    /// The number of the field whose norms count; 0 for those of the query.
    field: u8,
}

impl From<f32> for Weight {
    #[inline]
    fn from(factor: f32) -> Self {
        Self::new(Formula::Saturation, factor, 0.0)
    }
}

impl Weight {
    /// Both numbers are 0 or more.
    pub(crate) fn new(formula: Formula, factor: f32, more: f32) -> Self {
        Self { factor, more, formula, without_norms: false, field: 0 }
    }

    #[inline(always)]
    pub(crate) fn is_saturation(self) -> bool {
        self.formula == Formula::Saturation
    }

    pub(crate) fn is_linear(self) -> bool {
        self.formula == Formula::Linear
    }

    /// The weight of both together, of the same formula, where its factor and what is added to it
    /// are sums.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { factor: self.factor + other.factor, more: self.more + other.more, ..self }
    }

    pub(crate) fn in_field(self, field: u8) -> Self {
        Self { field, ..self }
    }

    #[inline(always)]
    pub(crate) fn field(self) -> usize {
        usize::from(self.field)
    }

    /// The weight by which a field adds to the frequency of a word.
    pub(crate) fn ratio(self) -> Self {
        Self { formula: Formula::Ratio, ..self }
    }

    /// The score of a word by its frequency, which is the sum of what its fields add.
    #[inline(always)]
    pub(crate) fn blend(self, frequency: f32) -> f32 {
        at_least(self.factor * (frequency / (frequency + 1.0)))
    }

    /// The weight where no document is deleted.
    pub(crate) fn of_whole(self) -> Self {
        Self { without_norms: self.is_linear(), ..self }
    }

    #[inline(always)]
    pub(crate) fn is_without_norms(self) -> bool {
        self.without_norms
    }

    #[inline(always)]
    pub fn factor(self) -> f32 {
        self.factor
    }

    pub(crate) fn more(self) -> f32 {
        self.more
    }

    pub(crate) fn formula(self) -> Formula {
        self.formula
    }

    /// The weight whose scores, times the factor of this one, are those of this one, except for
    /// rounding: the same for all queries.
    pub(crate) fn of_factor_1(self) -> Self {
        let is_lifted = self.formula == Formula::Lifted;
        let more = if is_lifted { self.more / self.factor } else { self.more };
        Self { factor: 1.0, more, ..self }
    }

    /// The score of a posting; `tf` is 1 or more.
    #[inline(always)]
    pub(crate) fn score(self, tf: u32, norm: f32) -> f32 {
        if self.is_saturation() { bm25::score(self.factor, tf, norm) } else { self.other(tf, norm) }
    }

    #[inline(never)]
    fn other(self, tf: u32, norm: f32) -> f32 {
        let mut score = [norm];
        self.score_all(&[tf], &mut score);
        score[0]
    }

    /// Replaces each document's norm by the score of its posting.
    #[inline(always)]
    pub(crate) fn score_all(self, tfs: &[u32], norms: &mut [f32]) {
        let Self { factor, more, formula, .. } = self;
        let postings = norms.iter_mut().zip(tfs);
        match formula {
            Formula::Saturation => {
                postings.for_each(|(norm, &tf)| *norm = bm25::score(factor, tf, *norm));
            }
            Formula::Lifted => postings.for_each(|(norm, &tf)| {
                *norm = live(*norm, bm25::score(factor, tf, *norm) + more);
            }),
            Formula::Dirichlet => postings.for_each(|(norm, &tf)| {
                *norm = live(*norm, factor * at_least(ln(1.0 + tf as f32 * more) + *norm));
            }),
            Formula::Dph => postings.for_each(|(norm, &tf)| {
                *norm = live(*norm, factor * at_least(dph(more, tf, *norm)));
            }),
            Formula::Linear => postings.for_each(|(norm, &tf)| {
                *norm = live(*norm, factor * tf as f32);
            }),
            Formula::Ratio => postings.for_each(|(norm, &tf)| *norm = tf as f32 / *norm),
        }
    }

    /// The most that a posting scores with this tf or a smaller one, in a document with this norm
    /// or that of a longer one, rounding included.
    #[inline(never)]
    pub(super) fn other_most(self, tf: u32, norm: f32) -> f32 {
        let Self { factor, more, formula, .. } = self;
        match formula {
            Formula::Saturation => bm25::score(factor, tf, norm) * ROUNDING,
            // Adding the same to both changes the order of none.
            Formula::Lifted => bm25::score(factor, tf, norm) * ROUNDING + more,
            Formula::Dirichlet => {
                let rises = ln(1.0 + tf as f32 * more);
                let most = rises + norm + SLACK * (1.0 + rises - norm);
                factor * at_least(most) * ROUNDING
            }
            Formula::Dph => factor * dph_most(more, tf, norm) * ROUNDING,
            Formula::Linear => factor * tf as f32,
            Formula::Ratio => tf as f32 / norm * ROUNDING,
        }
    }
}

#[inline(always)]
fn live(norm: f32, score: f32) -> f32 {
    if norm == f32::INFINITY { 0.0 } else { score }
}

#[inline(always)]
fn at_least(score: f32) -> f32 {
    // Written so that NaN becomes the least.
    if score > LEAST { score } else { LEAST }
}

/// DPH without the factor (Amati 2006), as in Terrier and PISA; `inverse` is all tokens by the
/// term's:
///
/// ```text
/// f     = tf / length
/// score = (1 - f)^2 / (tf + 1) * (tf * log2(f * inverse) + 0.5 * log2(2 pi * tf * (1 - f)))
/// ```
///
/// A document that is the term alone (f = 1) scores nothing.
#[inline(always)]
fn dph(inverse: f32, tf: u32, length: f32) -> f32 {
    let tf = tf as f32;
    let share = tf / length;
    let rest = 1.0 - share;
    let normal = ln(std::f32::consts::TAU * tf * rest);
    let score = rest * rest / (tf + 1.0) * (tf * ln(share * inverse) + 0.5 * normal);
    if rest > 0.0 { score * std::f32::consts::LOG2_E } else { 0.0 }
}

/// The most that DPH gives a posting with this tf `t` or a smaller one, in a document of this
/// length `l` or a longer one. With 1 - f at most 1 a posting scores at most
///
/// ```text
/// tf / (tf + 1) * max(0, log2(tf / length * inverse))  +  0.5 * log2(2 pi * tf) / (tf + 1)
/// ```
///
/// The first part rises with tf and falls with length, so it is greatest for t and l. The second
/// falls with tf from 1 on (its derivative has the sign of 1 + 1 / tf - ln(2 pi tf), which is 2 -
/// 1.84 at 1, and below zero from 2 on), so that its greatest values are those for 1 and 2: 0.6629
/// and 0.6086.
fn dph_most(inverse: f32, tf: u32, length: f32) -> f32 {
    let tf = tf as f32;
    let informative = (ln(tf / length.max(1.0) * inverse) * std::f32::consts::LOG2_E).max(0.0);
    (tf / (tf + 1.0) * informative + 0.663) * (1.0 + SLACK) + SLACK
}

/// The natural logarithm of a positive normal number, to some parts in 10^7, by operations that
/// vectors have; other numbers give anything. With `x = 2^e * m` and m from about 0.71 to 1.41:
/// `ln x = e ln 2 + 2 artanh((m - 1) / (m + 1))`, by the series of artanh.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const LEAST_MANTISSA: u32 = 0x3f35_04f3;
    let shifted = x.to_bits().wrapping_sub(LEAST_MANTISSA);
    let exponent = ((shifted as i32) >> 23) as f32;
    let mantissa = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(LEAST_MANTISSA));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0))));
    exponent * std::f32::consts::LN_2 + (2.0 * s + s * series)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::score::bounds::{code_above, code_below, greatest_tf, value};

    const FORMULAS: [Formula; 5] =
        [Formula::Saturation, Formula::Lifted, Formula::Dirichlet, Formula::Dph, Formula::Linear];

    #[test]
    fn oracle_logarithms_are_those_of_the_library() {
        for exponent in -60..100 {
            for part in 0..500 {
                let x = (1.0 + part as f32 / 500.0) * 2f32.powi(exponent);
                let found = f64::from(ln(x));
                let exact = f64::from(x).ln();
                assert!(
                    (found - exact).abs() <= 3e-7 * exact.abs().max(0.3),
                    "{x}: {found} {exact}"
                );
            }
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn dph_gives_known_values() {
        // By hand, in double precision: tf 3 of 120 tokens, a term of every 5,000th token.
        let exact = (1.0f64 - 0.025).powi(2) / 4.0
            * (3.0 * (0.025f64 * 5000.0).log2()
                + 0.5 * (2.0 * std::f64::consts::PI * 3.0 * 0.975).log2());
        let found = Weight::new(Formula::Dph, 2.0, 5000.0).score(3, 120.0);
        assert!((f64::from(found) - 2.0 * exact).abs() < 1e-5, "{found} {exact}");
        // A document that is the term alone, and one where the term is rarer than elsewhere.
        for (tf, length) in [(7, 7.0), (9, 7.0), (1, 0.0), (1, 1e9)] {
            assert_eq!(Weight::new(Formula::Dph, 1.0, 50.0).score(tf, length), LEAST);
        }
    }

    #[test]
    fn postings_of_deleted_documents_are_worth_nothing() {
        for formula in FORMULAS {
            let weight = Weight::new(formula, 3.0, 20.0);
            assert_eq!(weight.score(4, f32::INFINITY), 0.0, "{formula:?}");
            assert!(weight.score(1, -0.1 * f32::from(formula == Formula::Dirichlet)) > 0.0);
        }
    }

    proptest! {
        #[test]
        fn law_no_posting_is_worth_more_than_a_pair_that_dominates_it(
            formula in prop::sample::select(FORMULAS.to_vec()),
            (tf, tf_shift, more_tf) in (1..=u32::MAX, 0..32u32, 0..3u32),
            (length, length_shift, longer) in (any::<u32>(), 0..32u32, 0..50u32),
            factor in prop::sample::select(vec![1e-3f32, 1.0, 7.3, 1e4]),
            more in prop::sample::select(vec![0.0f32, 1e-6, 0.1, 3.0, 1e3, 1e6, 1e12]),
            scale in prop::sample::select(vec![0.001f64, 1.0, 1000.0, 1e9]),
        ) {
            let norm = |length: u32| match formula {
                Formula::Saturation | Formula::Lifted => (f64::from(length) / scale) as f32,
                Formula::Dirichlet => -((f64::from(length) + scale) / scale).ln() as f32,
                Formula::Dph => length as f32,
                Formula::Linear | Formula::Ratio => 0.0,
            };
            let tf = (tf >> tf_shift).max(1);
            let length = length >> length_shift;
            let weight = Weight::new(formula, factor, more);
            let score = weight.score(tf, norm(length));
            prop_assert!((0.0..=f32::MAX).contains(&score), "{}", score);
            let pair_tf = greatest_tf(code_above(tf.saturating_add(more_tf)));
            let pair_length = value(code_below(length.saturating_sub(longer)));
            let most = weight.other_most(pair_tf, norm(pair_length));
            prop_assert!(score <= most, "{} {}", score, most);
        }
    }
}
