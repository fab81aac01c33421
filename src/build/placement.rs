//! How the trie collections were given to indexers, as notes and reports tell it.

use crate::schedule::placement::Rates;
use serde::Serialize;
use std::fmt;

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Placement {
    /// Dealt out in turn, for nothing is known of the input, there is one indexer, or a device
    /// encodes all.
    Turn { indexers: usize },
    /// By a sample of the input.
    Sample(PlacedCollections),
}

/// Where the rates come from by which trie collections were placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RatesFrom {
    Given,
    Measured,
    /// Of the machine on which millrace was measured.
    Default,
}

#[derive(Clone, Debug, Serialize)]
pub struct PlacedCollections {
    pub sample_bytes: u64,
    pub sample_places: usize,
    pub sample_seconds: f64,
    /// Tokens in it, or, where postings are indexed, units of an appended posting.
    pub sample_weight: u64,
    pub collections: usize,
    pub popular_collections: usize,
    /// The share of the weight that CPU indexers own.
    pub cpu_share: f64,
    /// The heaviest CPU indexer, in units of the mean of all.
    pub cpu_heaviest: f64,
    pub cpu_indexers: usize,
    pub gpu_indexers: usize,
    #[serde(skip)]
    pub gpus: usize,
    pub rates: Rates,
    pub rates_from: RatesFrom,
    pub expected_cpu_s_per_giga_token: f64,
    pub expected_gpu_s_per_giga_token: f64,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed = match self {
            Self::Turn { indexers } => {
                return write!(f, "trie collections in turn to {indexers} indexers");
            }
            Self::Sample(placed) => placed,
        };
        write!(
            f,
            "{} of {} trie collections with {:.1} % of the tokens to {} CPU indexers (heaviest {:.2} of the mean)",
            placed.popular_collections,
            placed.collections,
            placed.cpu_share * 100.0,
            placed.cpu_indexers,
            placed.cpu_heaviest,
        )?;
        if placed.gpu_indexers > 0 {
            write!(
                f,
                ", the rest to {} GPU indexers on {} GPUs ({} rates: {:.1} s on CPU and {:.1} s on GPU for 10^9 tokens)",
                placed.gpu_indexers,
                placed.gpus,
                match placed.rates_from {
                    RatesFrom::Given => "given",
                    RatesFrom::Measured => "measured",
                    RatesFrom::Default => "default",
                },
                placed.expected_cpu_s_per_giga_token,
                placed.expected_gpu_s_per_giga_token,
            )?;
        }
        write!(
            f,
            "; by {} tokens from {} places in {:.3} s",
            placed.sample_weight, placed.sample_places, placed.sample_seconds
        )
    }
}

impl Placement {
    /// None was taken if they were dealt out in turn.
    pub fn sample_seconds(&self) -> Option<f64> {
        match self {
            Self::Turn { .. } => None,
            Self::Sample(placed) => Some(placed.sample_seconds),
        }
    }
}
