//! Places trie collections: which indexer owns what, and what decided that.

use super::devices::ChosenDevices;
use super::error::BuildError;
use super::note::Note;
use super::options::BuildOptions;
use super::placement::{PlacedCollections, Placement};
use super::rates::rates_of;
use crate::dictionary::owners::Owners;
use crate::input::sample::{GroupWeigher, Sample, WeighPieces, sample};
use crate::input::splits::InputPlan;
use crate::schedule::placement::{by_weight, in_turn};
use crate::schedule::roles::Roles;
use std::sync::Arc;

/// What a part of the input says of all of it; `None` when nobody asks, it cannot be read twice, or
/// owners have nothing to do.
pub(super) fn sample_of(options: &BuildOptions, plan: &InputPlan) -> Option<Sample> {
    match options.pipeline.sample {
        0 => None,
        _ if options.device_encodes() => None,
        bytes => {
            let handed = options.indexer.handed();
            let BuildOptions { analysis, max_document: most, .. } = options;
            let most = *most;
            let weigher = || -> Box<dyn WeighPieces> {
                match handed {
                    Some(indexer) => indexer.weigher(analysis.clone(), most),
                    // What a device makes of texts is encoded as what parsers count is.
                    None => Box::new(GroupWeigher::of_postings(analysis.clone(), most)),
                }
            };
            sample(plan, most, bytes, options.workers, &weigher)
        }
    }
}

/// Takes a sample now unless one was taken before.
pub(super) fn place(
    options: &BuildOptions,
    plan: &InputPlan,
    gpus: &ChosenDevices,
    roles: &Roles,
    sample: Option<Sample>,
) -> Result<(Arc<Owners>, Placement), BuildError> {
    let sample = match roles.indexers() {
        // One owner gets everything.
        1 => None,
        _ => sample.or_else(|| sample_of(options, plan)),
    };
    let Some(sample) = sample else {
        return Ok((Arc::new(in_turn(roles)), Placement::Turn { indexers: roles.indexers() }));
    };
    let (rates, rates_from) = rates_of(options, gpus)?;
    let placed = by_weight(&sample.weights, roles, &rates);
    let placement = Placement::Sample(PlacedCollections {
        sample_bytes: sample.bytes,
        sample_places: sample.places,
        sample_seconds: sample.seconds,
        sample_weight: sample.weights.all.iter().sum::<u64>(),
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
    if options.indexer.handed().is_some() {
        options.note(&Note::Placed(placement.clone()));
    }
    Ok((Arc::new(placed.owners), placement))
}
