//! A scoring function with its parameters: norms of documents and [`Weight`]s of terms.

#![warn(missing_docs)]

use super::bm25::{Bm25, IdfKind, idf};
use super::bounds::BoundNorms;
use super::fields::{FieldScoring, number};
use super::named::Score;
use super::weight::{Formula, Weight};
use libm::log;

/// The scoring function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scoring {
    /// The parameters k1 and b.
    pub bm25: Bm25,
    /// The idf form.
    pub idf: IdfKind,
    /// The score.
    pub score: Score,
    /// What fields count; all text is scored if nothing is said.
    pub fields: FieldScoring,
}

/// The collection's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeCollection {
    /// Documents.
    pub documents: u32,
    /// Indexed tokens.
    pub tokens: u64,
}

impl WholeCollection {
    /// Mean tokens of a document; 0 without documents.
    pub(crate) fn mean(&self) -> f64 {
        match self.documents {
            0 => 0.0,
            n => self.tokens as f64 / f64::from(n),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TermCounts {
    /// How often the query has it, or the weight that the query gives it: above 0.
    pub times: f64,
    /// Documents with it.
    pub df: u32,
    /// Its occurrences in all of them, where [`Score::has_cf`].
    pub cf: u64,
}

/// Norms of documents, those of short ones from a table: a norm may take a logarithm.
pub(crate) struct NormsByLength<'a> {
    scoring: &'a Scoring,
    mean: f64,
    of_short: Vec<f32>,
}

impl<'a> NormsByLength<'a> {
    /// For this many documents.
    pub(crate) fn new(scoring: &'a Scoring, mean: f64, documents: u32) -> Self {
        let lengths = 0..documents.min(1 << 16);
        Self { scoring, mean, of_short: lengths.map(|length| scoring.norm(length, mean)).collect() }
    }

    /// The norms of documents by their lengths; there are as many.
    pub(crate) fn put(&self, lengths: &[u32], norms: &mut [f32]) {
        for (norm, &length) in norms.iter_mut().zip(lengths) {
            let known = self.of_short.get(length as usize).copied();
            *norm = known.unwrap_or_else(|| self.scoring.norm(length, self.mean));
        }
    }
}

impl Scoring {
    /// Whether words that name no field are looked for in fields.
    pub fn is_of_fields(&self) -> bool {
        self.score == Score::Bm25F || !self.fields.boost.is_empty()
    }

    /// What gives the norms of a field: the same with its b.
    pub(crate) fn of_field(&self, field: &str) -> Self {
        let b = number(&self.fields.b, field);
        let own = b.and_then(|b| Bm25::new(self.bm25.k1(), b).ok());
        Self { bm25: own.unwrap_or(self.bm25), ..self.clone() }
    }

    /// What norms of a field are [`divided`] by in BM25F: its weight.
    pub(crate) fn divisor(&self, field: &str) -> Option<f32> {
        (self.score == Score::Bm25F).then(|| self.fields.weight(field) as f32)
    }

    /// The parameters with their values, those of a field as `boost:title` and `b:title`.
    pub(crate) fn parameters(&self) -> Vec<(String, f64)> {
        let mut all = match self.score {
            Score::Wang(wang) => vec![("alpha", wang.alpha())],
            Score::Ql(mu) => vec![("mu", mu.get())],
            Score::Bm25Plus(delta) | Score::Bm25L(delta) => vec![("score-delta", delta.get())],
            _ => Vec::new(),
        };
        if self.score.has_k1() {
            all.extend([("k1", self.bm25.k1()), ("b", self.bm25.b())]);
        }
        let mut all: Vec<(String, f64)> =
            all.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        for (of, fields) in [("boost", &self.fields.boost), ("b", &self.fields.b)] {
            all.extend(fields.iter().map(|(field, value)| (format!("{of}:{field}"), *value)));
        }
        all
    }

    /// The norm of a document of `length` tokens.
    pub(crate) fn norm(&self, length: u32, mean: f64) -> f32 {
        match self.score {
            Score::Ql(mu) => -log((f64::from(length) + mu.get()) / mu.get()) as f32,
            Score::Dph => length as f32,
            Score::Impact => 0.0,
            Score::Bm25L(delta) => {
                // The document's tokens divide tf, so they multiply the whole fraction.
                let b = self.bm25.b();
                let relative = if mean > 0.0 { b * f64::from(length) / mean } else { 0.0 };
                ((self.bm25.k1() + delta.get()) * (1.0 - b + relative)) as f32
            }
            _ => self.bm25.norm(length, mean),
        }
    }

    pub(crate) fn bounds(&self, mean: f64) -> BoundNorms {
        BoundNorms::with(|length| self.norm(length, mean))
    }

    /// The idf in a term's weight, if the score has one.
    pub(crate) fn idf(&self, documents: u32, df: u32) -> Option<f64> {
        // A damaged index may give more postings than documents, and a term may be in none.
        let n = f64::from(documents.max(df));
        let df_or_one = f64::from(df.max(1));
        match self.score {
            Score::Bm25 | Score::Bm25Lucene | Score::Bm25F | Score::Wang(_) => {
                Some(idf(documents, df, self.idf))
            }
            Score::Bm25Plus(_) => Some(log((n + 1.0) / df_or_one)),
            Score::Bm25L(_) => Some(log((n + 1.0) / (f64::from(df) + 0.5))),
            Score::TfIdf => Some(libm::log2(n / df_or_one + 1.0)),
            Score::Ql(_) | Score::Dph | Score::Impact => None,
        }
    }

    /// A term's part in the weights of [`Score::Wang`], which add up to 1 - alpha.
    pub(crate) fn wang_part(&self, documents: u32, counts: &TermCounts) -> f64 {
        counts.times * idf(documents, counts.df, self.idf)
    }

    /// The weight of a term; [`Score::Wang`] weighs all together ([`Self::wang_part`]).
    pub(crate) fn weight(&self, whole: WholeCollection, counts: &TermCounts) -> Weight {
        let TermCounts { times, df, cf } = *counts;
        let part = times * self.idf(whole.documents, df).unwrap_or(1.0);
        let k1 = self.bm25.k1();
        let saturation = |factor: f64| Weight::from(factor as f32);
        let lifted = |factor: f64, more: f64| {
            Weight::new(Formula::Lifted, (part * factor) as f32, (part * more) as f32)
        };
        // A term that occurs nowhere has no postings either.
        let inverse = if cf == 0 { 0.0 } else { whole.tokens as f64 / cf as f64 };
        match self.score {
            Score::Bm25 | Score::Bm25F => saturation(part * (k1 + 1.0)),
            Score::Bm25Lucene | Score::Wang(_) => saturation(part),
            Score::TfIdf => saturation(part * k1),
            Score::Bm25Plus(delta) => lifted(k1 + 1.0, delta.get()),
            Score::Bm25L(delta) => {
                // (c + d) / (k1 + c + d) with c = tf / B is r + (1 - r) tf / (tf + (k1 + d) B),
                // where r = d / (k1 + d).
                let all = k1 + delta.get();
                let delta = delta.get();
                let constant = if all > 0.0 { delta / all } else { 0.0 };
                lifted((k1 + 1.0) * (1.0 - constant), (k1 + 1.0) * constant)
            }
            Score::Ql(mu) => {
                Weight::new(Formula::Dirichlet, times as f32, (inverse / mu.get()) as f32)
            }
            Score::Dph => Weight::new(Formula::Dph, times as f32, inverse as f32),
            Score::Impact => Weight::new(Formula::Linear, times as f32, 0.0),
        }
    }
}
