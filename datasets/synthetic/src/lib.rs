//! Makes a collection of any size from a [`Recipe`], where a real one is too large to carry around.
//! The same recipe always makes the same collection: every byte of the text depends on the recipe
//! and on the numbers of file and document alone, and no mathematical function of the platform is
//! used.
//!
//! [`Model`] has the tables: how often each term comes and how it is spelled. [`Documents`] writes
//! single documents, [`collection`] whole files by many threads, [`queries`] queries for them,
//! [`log`] a log of what was asked, [`pagerank`] how important each document is; [`vectors`] makes
//! learned weights in the place of texts. `docs/inside/generate.md` of millrace says what is like a
//! real collection and what is not, and how fast it is.

#![forbid(unsafe_code)]

use random::Random;
use std::fmt;
use std::num::NonZeroU32;
use thiserror::Error;
use words::Words;
use zipf::{Law, Ranks};

pub mod arrivals;
pub mod collection;
mod compress;
mod documents;
mod html;
mod layout;
pub mod log;
pub mod pagerank;
pub mod permutation;
pub mod queries;
mod random;
mod real;
mod syllables;
mod text;
pub mod vectors;
mod words;
mod zipf;

pub use documents::Documents;

/// Terms of the least vocabulary.
pub const LEAST_VOCABULARY: u32 = 64;

/// What the documents of a collection depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Another seed makes other words and other documents.
    pub seed: u64,
    /// Distinct terms at most, from [`LEAST_VOCABULARY`].
    pub vocabulary: u32,
    /// The exponent of Zipf's law for the first 8192 terms, from 0.2 to 3.
    pub zipf: f64,
    /// The exponent of Heaps' law, by which the vocabulary grows: from 0.2 to 1. At 1 over `zipf`,
    /// or more, Zipf's law is the same for all terms.
    pub heaps: f64,
    /// Mean tokens of a document, from 1 to a million.
    pub mean_tokens: f64,
    /// Standard deviation of the logarithm of a document's tokens, from 0 to 3.
    pub sigma: f64,
    /// The share of tokens that come from what neighbouring documents are about, from 0 to 0.5.
    pub clustering: f64,
    /// Neighbouring documents that are about the same.
    pub cluster: NonZeroU32,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seed: 1,
            vocabulary: 1_000_000_000,
            zipf: 1.0,
            heaps: 0.62,
            mean_tokens: 200.0,
            sigma: 0.8,
            clustering: 0.0,
            cluster: NonZeroU32::new(64).expect("64 is not 0"),
        }
    }
}

/// A recipe that cannot be followed.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error("{setting} is {found}; it must be from {least} to {most}")]
#[non_exhaustive]
pub struct RecipeError {
    /// The setting that is wrong.
    pub setting: &'static str,
    /// Its value.
    pub found: f64,
    /// The least value that is right.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// How documents lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"id":…,"contents":…}`, a line each.
    Jsonl,
    /// Name, tab, text, a line each.
    Tsv,
    /// WARC/1.0 response records with pages in HTML.
    Warc,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Jsonl => "jsonl",
            Format::Tsv => "tsv",
            Format::Warc => "warc",
        })
    }
}

/// The terms of a recipe and how often each comes. Takes some 800 KB, whatever the vocabulary, and
/// some milliseconds to make.
pub struct Model {
    recipe: Recipe,
    /// The logarithm of the mean tokens of a document.
    log_mean: f64,
    words: Words,
    ranks: Ranks,
}

impl Model {
    /// Makes the tables.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(recipe: Recipe) -> Result<Self, RecipeError> {
        let Recipe { seed, vocabulary, zipf, heaps, mean_tokens, sigma, clustering, .. } = recipe;
        for (setting, found, least, most) in [
            ("vocabulary", vocabulary.into(), LEAST_VOCABULARY.into(), u32::MAX.into()),
            ("zipf", zipf, 0.2, 3.0),
            ("heaps", heaps, 0.2, 1.0),
            ("mean-tokens", mean_tokens, 1.0, 1e6),
            ("sigma", sigma, 0.0, 3.0),
            ("clustering", clustering, 0.0, 0.5),
        ] {
            if !(least..=most).contains(&found) {
                return Err(RecipeError { setting, found, least, most });
            }
        }
        let stop_words = words::STOP_WORDS.len() as u32;
        let law = Law::new(zipf, heaps);
        // What a cluster is about are no stop words either.
        let boost = text::STOP_WORDS_BOOST / (1.0 - clustering);
        let ranks = Ranks::new(&law, vocabulary, stop_words, boost);
        Ok(Self { recipe, log_mean: real::ln(mean_tokens), words: Words::new(seed), ranks })
    }

    /// The recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Draws the rank of a term that is no stop word.
    fn content_term(&self, random: &mut Random) -> u32 {
        loop {
            let rank = self.ranks.draw(random);
            if rank >= words::STOP_WORDS.len() as u32 {
                return rank;
            }
        }
    }

    /// The term that comes as often as all but `rank` others, in small letters.
    pub fn term(&self, rank: u32) -> String {
        self.words.term(rank)
    }
}

#[cfg(test)]
mod tests;
