//! The order in which documents are numbered: that of the input, unless a merge or the end of a
//! build renumbers them. Similar documents side by side make lists shorter; the best first let
//! searches end earlier.

use crate::score::bm25::Bm25;
use crate::score::static_scale::StaticScale;
use crate::score::wang::{GlobalParameters, Wang};
use crate::settings::names;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An order of documents. Equal ones stay in the order in which they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DocumentOrder {
    Input,
    /// By their names as URLs: by host, read from its end, then by the rest; other names come
    /// first.
    Url,
    /// By their names, byte for byte.
    Name,
    /// By their tokens, shortest first.
    Length,
    /// Documents with many terms in common stand together.
    Topic,
    /// By falling global score (`score::wang`) with these parameters.
    Global {
        wang: Wang,
        /// a, which is k1, and b.
        bm25: Bm25,
    },
}

names!(DocumentOrder with fields {
    Input = "input",
    Url = "url",
    Name = "name",
    Length = "length",
    Topic = "topic",
    Global { wang: Wang::default(), bm25: Bm25::default() } = "global",
});

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderEntry {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalEntry>,
}

impl fmt::Display for OrderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.global {
            None => f.write_str(&self.name),
            Some(GlobalEntry { alpha, k1, b, static_scale, .. }) => {
                write!(f, "{} (alpha {alpha}, k1 {k1}, b {b}", self.name)?;
                if let Some(scale) = static_scale {
                    write!(f, ", static scale {scale}")?;
                }
                f.write_str(")")
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalEntry {
    pub alpha: f64,
    /// The paper's a.
    pub k1: f64,
    pub b: f64,
    /// The scale of PageRank; the greatest, if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_scale: Option<String>,
    pub documents: u32,
    pub tokens: u64,
    /// Tokens of a document in the mean, for readers.
    pub mean_length: f64,
}

impl GlobalEntry {
    pub(crate) fn new(parameters: &GlobalParameters) -> Self {
        let GlobalParameters { wang, bm25, documents, tokens } = *parameters;
        let alpha = wang.alpha();
        let k1 = bm25.k1();
        let b = bm25.b();
        // Programs from before there were others read what has the usual one.
        let scale = Some(wang.scale()).filter(|scale| *scale != StaticScale::default());
        let static_scale = scale.map(|scale| scale.name().to_string());
        let mean_length = parameters.mean();
        Self { alpha, k1, b, static_scale, documents, tokens, mean_length }
    }

    /// None if they are outside of their ranges, or the scale is not known.
    pub(crate) fn parameters(&self) -> Option<GlobalParameters> {
        let scale = match &self.static_scale {
            Some(name) => StaticScale::named(name)?,
            None => StaticScale::default(),
        };
        let wang = Wang::new(self.alpha).ok()?.on(scale);
        let bm25 = Bm25::new(self.k1, self.b).ok()?;
        let documents = self.documents;
        let tokens = self.tokens;
        Some(GlobalParameters { wang, bm25, documents, tokens })
    }
}
