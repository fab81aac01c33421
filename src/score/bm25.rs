//! BM25, in one form that every engine on every device repeats to the bit.
//!
//! ```text
//! weight        = f32(times * idf * (k1 + 1))                 a term of a query; once, in f64
//! norm          = f32(k1 * (1 - b + b * length / mean))       a document; once, in f64
//! score         = (weight * f32(tf)) / (f32(tf) + norm)       a posting; in f32
//! document      = ((0 + score 1) + score 2) + ...             terms in the order of the query
//! ```
//!
//! Each f32 operation is rounded to nearest, ties to even, on its own: no fused multiply-add, no
//! reciprocal, no other order of additions. The logarithm is that of the crate `libm`, which is the
//! same on every host. `idf` is the natural logarithm of `1 + (N - df + 0.5) / (df + 0.5)`, or with
//! [`IdfKind::Robertson`] that of the fraction alone, at least 1e-6. Weights are not below zero, so
//! for any k1 and b a score lies between 0 and the weight.

#![warn(missing_docs)]

use crate::settings::SettingError;
use libm::log;

/// The greatest k1: beyond it a score might not fit an f32.
pub(crate) const MAX_K1: f64 = 1e9;

/// The least that [`IdfKind::Robertson`] gives.
const LEAST_ROBERTSON_IDF: f64 = 1e-6;

/// Form of the inverse document frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdfKind {
    /// `ln(1 + (N - df + 0.5) / (df + 0.5))`: above zero for every term.
    #[default]
    Lucene,
    /// `ln((N - df + 0.5) / (df + 0.5))`, at least 1e-6.
    Robertson,
}

/// The inverse document frequency of a term that `df` of all `documents` have.
pub fn idf(documents: u32, df: u32, kind: IdfKind) -> f64 {
    // A damaged index may give more postings than documents; the fraction stays above zero.
    let without = f64::from(documents.saturating_sub(df));
    let odds = (without + 0.5) / (f64::from(df) + 0.5);
    match kind {
        IdfKind::Lucene => log(1.0 + odds),
        IdfKind::Robertson => log(odds).max(LEAST_ROBERTSON_IDF),
    }
}

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    k1: f64,
    b: f64,
}

impl Default for Bm25 {
    /// k1 = 1.2, b = 0.75.
    fn default() -> Self {
        Bm25 { k1: 1.2, b: 0.75 }
    }
}

impl Bm25 {
    /// `k1` is the saturation of term frequencies, `b` the influence of the document's length.
    ///
    /// # Errors
    /// If k1 is not from 0 to [`MAX_K1`], or b not from 0 to 1.
    pub fn new(k1: f64, b: f64) -> Result<Self, SettingError> {
        let k1 = SettingError::within("k1", 0.0, MAX_K1, k1)?;
        let b = SettingError::within("b", 0.0, 1.0, b)?;
        Ok(Bm25 { k1, b })
    }

    /// k1.
    pub fn k1(&self) -> f64 {
        self.k1
    }

    /// b.
    pub fn b(&self) -> f64 {
        self.b
    }

    /// The weight of a term that stands `times` times in the query; 0 or more.
    pub fn weight(&self, idf: f64, times: u32) -> f32 {
        (f64::from(times) * idf * (self.k1 + 1.0)) as f32
    }

    /// The norm of a document of `length` tokens; all documents have length 0 where `mean` is 0.
    #[inline]
    pub(crate) fn norm(&self, length: u32, mean: f64) -> f32 {
        let relative = if mean > 0.0 { self.b * f64::from(length) / mean } else { 0.0 };
        (self.k1 * (1.0 - self.b + relative)) as f32
    }

    /// Replaces `norms` with those of `lengths`.
    pub fn norms(&self, lengths: &[u32], mean: f64, norms: &mut Vec<f32>) {
        norms.clear();
        norms.extend(lengths.iter().map(|&length| self.norm(length, mean)));
    }
}

/// The score of a posting; `tf` is 1 or more.
#[inline(always)]
pub fn score(weight: f32, tf: u32, norm: f32) -> f32 {
    let tf = tf as f32;
    (weight * tf) / (tf + norm)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameters_outside_their_range_are_refused() {
        for k1 in [-0.1, f64::NAN, f64::INFINITY, 1.1e9] {
            assert_eq!(Bm25::new(k1, 0.5).unwrap_err().setting(), "k1", "{k1}");
        }
        for b in [-0.1, f64::NAN, 1.1] {
            assert_eq!(Bm25::new(1.0, b).unwrap_err().setting(), "b", "{b}");
        }
        let error = Bm25::new(1.0, 2.0).unwrap_err();
        assert_eq!(error.to_string(), "b: expected a number from 0 to 1, found 2");
        assert_eq!(Bm25::new(1.2, 0.75), Ok(Bm25::default()));
        assert!(Bm25::new(0.0, 0.0).is_ok() && Bm25::new(MAX_K1, 1.0).is_ok());
    }

    #[test]
    fn the_formula_gives_known_values() {
        // N = 3, df = 1: ln(1 + 2.5 / 1.5); tf = 2, length 4 of mean 8.
        let bm25 = Bm25::default();
        let rare = idf(3, 1, IdfKind::Lucene);
        assert!((rare - 0.980_829_253_011_726_3).abs() < 1e-15);
        let value = score(bm25.weight(rare, 1), 2, bm25.norm(4, 8.0));
        let expected = rare * 2.2 * 2.0 / (2.0 + 1.2 * (0.25 + 0.75 * 0.5));
        assert!((f64::from(value) - expected).abs() < 1e-6);
        assert_eq!(bm25.weight(rare, 3), (3.0 * rare * 2.2) as f32);
    }

    #[test]
    fn common_terms_do_not_count_against_a_document() {
        assert!(idf(10, 10, IdfKind::Lucene) > 0.0);
        assert_eq!(idf(10, 10, IdfKind::Robertson), 1e-6);
        assert!((idf(100, 9, IdfKind::Robertson) - (91.5f64 / 9.5).ln()).abs() < 1e-15);
        assert!(idf(10, 12, IdfKind::Lucene) > 0.0);
    }

    #[test]
    fn empty_collections_have_norms() {
        let bm25 = Bm25::default();
        assert_eq!(bm25.norm(0, 0.0), (1.2 * 0.25) as f32);
        let mut norms = vec![7.0];
        bm25.norms(&[1, 2], 1.5, &mut norms);
        assert_eq!(norms, [bm25.norm(1, 1.5), bm25.norm(2, 1.5)]);
        assert_eq!(score(2.0, 1, Bm25::new(0.0, 0.5).unwrap().norm(5, 5.0)), 2.0);
    }

    proptest! {
        #[test]
        fn law_a_score_lies_between_zero_and_the_weight(
            k1 in prop::sample::select(vec![0.0, 1e-30, 0.9, 1.2, 1e9]),
            b in 0.0..=1.0f64,
            times in 1..u32::MAX,
            (df, more) in (1..u32::MAX, 0..u32::MAX),
            (tf, length) in (1..=u32::MAX, any::<u32>()),
            mean in prop::sample::select(vec![1e-9, 0.7, 300.0, 4e9]),
        ) {
            let bm25 = Bm25::new(k1, b).unwrap();
            for kind in [IdfKind::Lucene, IdfKind::Robertson] {
                let weight = bm25.weight(idf(df.saturating_add(more), df, kind), times);
                let score = score(weight, tf, bm25.norm(length, mean));
                // The product may round up by half a unit in the last place.
                prop_assert!(weight > 0.0 && score >= 0.0, "{weight} {score}");
                prop_assert!(score <= weight * (1.0 + f32::EPSILON), "{weight} {score}");
            }
        }
    }
}
