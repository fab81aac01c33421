//! The scores. Each gives what a posting adds to its document's score, by a
//! [`Weight`](super::weight::Weight) of the term and a norm of the document, and the document's
//! static part.
//!
//! ```text
//! document = ((static + score 1) + score 2) + ...   terms in the order of the query
//!                                                   static is 0 except for wang
//! ```
//!
//! The weight is made when a query is planned and the static part when an index is opened
//! ([`scoring`](super::scoring)), so that the loops over postings are the same for all.

use super::wang::Wang;
use crate::settings::{SettingError, names};

/// The greatest parameter: beyond it a score might not fit an f32.
pub(crate) const MOST: f64 = 1e9;

pub(crate) const LEAST_MU: f64 = 1e-3;

/// delta of BM25+ and BM25L: what a term adds that occurs in a document at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta(f64);

impl Delta {
    /// # Errors
    /// If it is not from 0 to [`MOST`].
    pub(crate) fn new(delta: f64) -> Result<Self, SettingError> {
        SettingError::within("score-delta", 0.0, MOST, delta).map(Self)
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

/// mu of Dirichlet smoothing: tokens of the whole collection that are added to each document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mu(f64);

impl Mu {
    pub(crate) fn new(mu: f64) -> Result<Self, SettingError> {
        SettingError::within("mu", LEAST_MU, MOST, mu).map(Self)
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

/// A score. `docs/queries.md` has the formula of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Score {
    #[default]
    Bm25,
    /// BM25 without the factor k1 + 1, as Lucene has it from version 8 on.
    Bm25Lucene,
    /// BM25F (Robertson and Zaragoza: The Probabilistic Relevance Framework, 2009): the frequencies
    /// of a word in all fields are added up before they saturate.
    Bm25F,
    /// BM25+ (Lv and Zhai: Lower-bounding term frequency normalization, 2011).
    Bm25Plus(Delta),
    /// BM25L (Lv and Zhai: When documents are very long, BM25 fails!, 2011).
    Bm25L(Delta),
    /// TF_IDF of Terrier: Robertson's tf and Spärck Jones' idf.
    TfIdf,
    /// Query likelihood, Dirichlet smoothing (Zhai, Lafferty 2001): Lucene's LMDirichletSimilarity.
    Ql(Mu),
    /// DPH (Amati and others, 2007), of divergence from randomness; it has no parameters.
    Dph,
    /// The term frequency, an impact that a model has learned, times the query's weight.
    Impact,
    /// PageRank and BM25 ([`wang`](super::wang)).
    Wang(Wang),
}

names!(Score with fields {
    Bm25 = "bm25",
    Bm25Lucene = "bm25-lucene",
    Bm25F = "bm25f",
    Bm25Plus(Self::DELTA_OF_BM25_PLUS) = "bm25plus",
    Bm25L(Self::DELTA_OF_BM25_L) = "bm25l",
    TfIdf = "tfidf",
    Ql(Self::MU) = "ql",
    Dph = "dph",
    Impact = "impact",
    Wang(Wang::default()) = "wang",
});

impl Score {
    /// Default of BM25+, as in the paper.
    pub(crate) const DELTA_OF_BM25_PLUS: Delta = Delta(1.0);
    /// Default of BM25L, as in the paper.
    pub(crate) const DELTA_OF_BM25_L: Delta = Delta(0.5);
    /// Default mu, as in Anserini.
    pub(crate) const MU: Mu = Mu(1000.0);

    pub(crate) fn has_k1(&self) -> bool {
        !matches!(self, Self::Ql(_) | Self::Dph | Self::Impact)
    }

    /// Whether it takes either form of the idf; others have their own or none.
    pub fn has_idf_kinds(&self) -> bool {
        matches!(self, Self::Bm25 | Self::Bm25Lucene | Self::Bm25F | Self::Wang(_))
    }

    /// Whether it weighs words of fields.
    pub(crate) fn has_fields(&self) -> bool {
        !matches!(self, Self::Impact | Self::Wang(_))
    }

    /// Whether it needs the frequency of a term in the whole collection.
    pub(crate) fn has_cf(&self) -> bool {
        matches!(self, Self::Ql(_) | Self::Dph)
    }

    /// Whether planning a query takes much more time than for the usual scores.
    pub fn is_slow_to_plan(&self) -> bool {
        self.has_cf() || *self == Self::Impact
    }

    /// Whether it is a sum of [saturations](super::weight::Formula::Saturation) alone.
    pub(crate) fn is_saturation(&self) -> bool {
        matches!(self, Self::Bm25 | Self::Bm25Lucene | Self::TfIdf)
    }
}
