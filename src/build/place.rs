//! Which indexer owns what, and what was that decided by?

use super::error::BuildError;
use super::options::BuildOptions;
use super::prepare::Ready;
use super::rates::{RatesFrom, rates_of};
use crate::dictionary::indexer::Indexing;
use crate::dictionary::owners::Owners;
use crate::input::sample::{Sample, sample};
use crate::input::splits::Plan;
use crate::schedule::placement::{Rates, by_weight, in_turn};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// How the trie collections were given to indexers.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Placement {
    /// Dealt out in turn, for nothing is known of the input, there is one indexer, or a device encodes all.
    Turn {
        /// The indexers.
        indexers: usize,
    },
    /// By a sample of the input.
    Sample(Placed),
}

/// What a sample has led to.
#[derive(Clone, Debug, Serialize)]
pub struct Placed {
    /// Uncompressed bytes of the sample.
    pub sample_bytes: u64,
    /// Places that it was taken from.
    pub sample_places: usize,
    /// How long it took.
    pub sample_seconds: f64,
    /// Tokens in it, or, where postings are indexed, units of an appended posting.
    pub sample_weight: u64,
    /// Trie collections in it.
    pub collections: usize,
    /// Those that CPU indexers own.
    pub popular_collections: usize,
    /// The share of the weight that CPU indexers own.
    pub cpu_share: f64,
    /// The heaviest CPU indexer, in units of the mean of all.
    pub cpu_heaviest: f64,
    /// Indexers on the CPU.
    pub cpu_indexers: usize,
    /// Indexers on GPUs.
    pub gpu_indexers: usize,
    /// Devices of those.
    #[serde(skip)]
    pub gpus: usize,
    /// How fast parsers and indexers were taken to be.
    pub rates: Rates,
    /// Where that comes from.
    pub rates_from: RatesFrom,
    /// Seconds that the CPU is expected to take for 10^9 tokens.
    pub expected_cpu_s_per_giga_token: f64,
    /// Seconds that the GPUs are expected to take for 10^9 tokens.
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
    /// How long the sample took, in seconds; none was taken if they were dealt out in turn.
    pub fn sample_seconds(&self) -> Option<f64> {
        match self {
            Self::Turn { .. } => None,
            Self::Sample(placed) => Some(placed.sample_seconds),
        }
    }
}

/// What a part of the input says of all of it; `None` when nobody asks, it cannot be read twice, or owners have nothing to do.
pub(super) fn sample_of(options: &BuildOptions, plan: &Plan) -> Option<Sample> {
    match options.pipeline.sample {
        0 => None,
        _ if options.device_encodes() => None,
        bytes => {
            let (indexing, threads) = (options.indexer.indexing(), options.workers);
            sample(plan, &options.analysis, options.max_document, indexing, bytes, threads)
        }
    }
}

/// Places the trie collections by a sample of the input.
///
/// # Errors
/// The rates that are kept of this machine cannot be read.
pub(super) fn place(
    options: &BuildOptions,
    input: &mut Ready,
) -> Result<(Arc<Owners>, Placement), BuildError> {
    let roles = &input.roles;
    let sample = match roles.indexers() {
        // One owner gets everything.
        1 => None,
        _ => input.sample.take().or_else(|| sample_of(options, &input.plan)),
    };
    let Some(sample) = sample else {
        return Ok((Arc::new(in_turn(roles)), Placement::Turn { indexers: roles.indexers() }));
    };
    let (rates, rates_from) = rates_of(options, &input.gpus)?;
    let placed = by_weight(&sample.weights, roles, &rates);
    let placement = Placement::Sample(Placed {
        sample_bytes: sample.bytes,
        sample_places: sample.places,
        sample_seconds: sample.seconds,
        sample_weight: sample.weights.iter().sum::<u64>(),
        collections: placed.seen,
        popular_collections: placed.popular,
        cpu_share: placed.cpu_share,
        cpu_heaviest: placed.cpu_heaviest,
        cpu_indexers: roles.cpu_indexers,
        gpu_indexers: roles.gpu_indexers,
        gpus: roles.gpus,
        rates,
        rates_from,
        expected_cpu_s_per_giga_token: placed.expected.0,
        expected_gpu_s_per_giga_token: placed.expected.1,
    });
    if options.indexer.indexing() == Indexing::Tokens {
        options.note(&super::Note::Placed(placement.clone()));
    }
    Ok((Arc::new(placed.owners), placement))
}
