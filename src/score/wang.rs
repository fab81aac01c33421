//! The score of `wang` (section 3.2), PageRank with BM25, after Zhang, Shi, Yan and Wen (2010).
//!
//! ```text
//! S(d, q) = alpha PR(d) + (1 - alpha) * sum over terms of  w(t) IR(d, t)
//! IR(d, t) = tf / (tf + norm(d))          the posting's part of BM25 without its weight
//! w(t) = times * idf / sum of these over the terms of the query
//! GS(d) = alpha PR(d) + (1 - alpha) * greatest IR of the document's terms
//! ```
//!
//! The paper does not say how both are brought to one scale: here PR, or what stands for it
//! ([`StaticScale`]), is divided by the greatest of all documents, and the paper's IR by 1 + a, so
//! that each lies between 0 and 1. The paper's a is k1.
//!
//! Weights add up to 1 and are not negative, so S of a document is at most its GS, whatever the
//! query; IR rises with tf, so that GS follows from the greatest tf of a document.
//!
//! The weight (1 - alpha) w(t) and the static part alpha PR(d) are computed in double precision and
//! rounded to single once; the static part is added first, then the terms in the order of the
//! query.

use super::bm25::Bm25;
use super::static_scale::StaticScale;
use crate::settings::SettingError;

/// The share of PageRank in the score, and its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wang {
    alpha: f64,
    scale: StaticScale,
}

impl Default for Wang {
    /// 0.3, as in the paper.
    fn default() -> Self {
        Self { alpha: 0.3, scale: StaticScale::default() }
    }
}

impl Wang {
    /// `alpha` is the share of PageRank.
    ///
    /// # Errors
    /// If it is not from 0 to 1.
    pub fn new(alpha: f64) -> Result<Self, SettingError> {
        let alpha = SettingError::within("alpha", 0.0, 1.0, alpha)?;
        Ok(Self { alpha, ..Self::default() })
    }

    /// The same share on another scale.
    #[must_use]
    pub fn on(self, scale: StaticScale) -> Self {
        Self { scale, ..self }
    }

    pub(crate) fn scale(&self) -> StaticScale {
        self.scale
    }

    pub(crate) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The weight of a term with this `part` of the `sum` over the query's terms; 0 or more.
    pub(crate) fn weight(&self, part: f64, sum: f64) -> f32 {
        ((1.0 - self.alpha) * part / sum) as f32
    }

    /// The static part of a document's score; `greatest` is the greatest rank of all documents, on
    /// the same scale.
    pub(crate) fn static_part(&self, rank: f32, greatest: f32) -> f32 {
        (self.alpha * self.share(rank, greatest)) as f32
    }

    /// The GS of a document, rounded up: `tf` is the greatest of its terms, 0 if it has none; the
    /// norm is that of BM25 with the parameters of the queries.
    pub(crate) fn global(&self, rank: f32, greatest: f32, tf: u32, norm: f32) -> f32 {
        let tf = f64::from(tf);
        // A document without terms is in no answer.
        let most = if tf > 0.0 { tf / (tf + f64::from(norm)) } else { 0.0 };
        let exact = self.alpha * self.share(rank, greatest) + (1.0 - self.alpha) * most;
        let rounded = exact as f32;
        if f64::from(rounded) < exact { rounded.next_up() } else { rounded }
    }

    fn share(&self, rank: f32, greatest: f32) -> f64 {
        if greatest > 0.0 { f64::from(rank) / f64::from(greatest) } else { 1.0 }
    }
}

/// The factor on a GS that no score of that many terms exceeds, for documents of at most that GS:
/// additions in single precision may lift a score above its GS by some parts in 2^24.
pub(crate) fn slack(terms: usize) -> f64 {
    // Each term has a rounded weight, tf, sum, product and quotient, and is added with a rounding;
    // the static part and the last additions have one each.
    1.0 + (terms + 8) as f64 * f64::from(f32::EPSILON)
}

/// Whether no document whose GS is at most `global` can come before one with the score `threshold`
/// and a smaller docid, in a score of this many terms.
pub(crate) fn is_over(threshold: f32, global: f32, terms: usize) -> bool {
    f64::from(threshold) >= f64::from(global) * slack(terms)
}

/// The parameters that fix the order of documents by GS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GlobalParameters {
    pub wang: Wang,
    /// k1, the paper's a, and b.
    pub bm25: Bm25,
    pub documents: u32,
    pub tokens: u64,
}

impl GlobalParameters {
    pub(crate) fn mean(&self) -> f64 {
        match self.documents {
            0 => 0.0,
            n => self.tokens as f64 / f64::from(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::score::bm25::score;

    #[test]
    fn alphas_outside_their_range_are_refused() {
        for alpha in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Wang::new(alpha).is_err(), "{alpha}");
        }
        let error = Wang::new(2.0).unwrap_err().to_string();
        assert_eq!(error, "alpha: expected a number from 0 to 1, found 2");
        assert_eq!(Wang::new(0.3), Ok(Wang::default()));
    }

    #[test]
    fn the_formula_gives_known_values() {
        let wang = Wang::default();
        assert_eq!(wang.weight(2.0, 8.0), 0.175);
        assert_eq!(wang.static_part(0.5, 2.0), 0.075);
        // No document has a rank: all have the same.
        assert_eq!(wang.static_part(0.0, 0.0), 0.3);
        assert_eq!(wang.global(2.0, 2.0, 0, 1.0), 0.3f64 as f32);
        let global = f64::from(wang.global(1.0, 4.0, 3, 1.0));
        assert!((global - (0.3 * 0.25 + 0.7 * 0.75)).abs() < 1e-7, "{global}");
    }

    proptest! {
        #[test]
        fn law_no_score_is_above_the_global_one(
            alpha in prop::sample::select(vec![0.0, 1e-9, 0.3, 0.999, 1.0]),
            k1 in prop::sample::select(vec![0.0, 0.9, 1.2, 1e9]),
            rank in 0..=1000u32,
            postings in prop::collection::vec((1..=u32::MAX, 0..32u32, 0.0..20.0f64), 1..12),
            length in any::<u32>(),
            mean in prop::sample::select(vec![0.7, 300.0, 4e9]),
        ) {
            let wang = Wang::new(alpha).unwrap();
            let norm = Bm25::new(k1, 0.75).unwrap().norm(length, mean);
            let rank = rank as f32 / 7.0;
            let greatest = 1000.0 / 7.0;
            let postings: Vec<(u32, f64)> =
                postings.into_iter().map(|(tf, shift, idf)| ((tf >> shift).max(1), idf + 1e-6)).collect();
            let sum: f64 = postings.iter().map(|posting| posting.1).sum();
            let found = postings.iter().fold(wang.static_part(rank, greatest), |found, &(tf, idf)| {
                found + score(wang.weight(idf, sum), tf, norm)
            });
            let most = postings.iter().map(|posting| posting.0).max().unwrap();
            let global = wang.global(rank, greatest, most, norm);
            // A threshold that stops a search is not below what comes.
            for threshold in [found, found.next_down(), found / 2.0, global, found * 1.001] {
                if is_over(threshold, global, postings.len()) {
                    prop_assert!(threshold >= found, "{threshold} {found} {global}");
                }
            }
            prop_assert!(is_over(global * 1.001 + f32::MIN_POSITIVE, global, postings.len()));
        }
    }
}
