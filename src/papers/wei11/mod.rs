//! `wei11`: Zheng Wei, Joseph JaJa: A Fast Algorithm for Constructing Inverted Files on
//! Heterogeneous Platforms. IPDPS 2011, pages 1124 to 1134.
//!
//! The paper builds an index by a pipeline: parsers regroup tokens by trie collection, and indexers
//! on CPUs and GPUs, each of which owns some collections, insert them into a B-tree a collection.
//!
//! | section | what | file |
//! | --- | --- | --- |
//! | III.C, step 5, figure 6 | tokens by trie collection | [`regroup`], [`stream`] |
//! | III.B, table II | B-trees of nodes of 512 bytes | [`btree`] |
//! | III.D.1 | the CPU indexer | [`cpu`], `btree/run.rs` |
//! | III.D.2 | the GPU indexer | [`gpu`], `kernels/wei11` |
//! | III.A, III.F, figure 9 | blocks of 16 MiB to indexers | [`lane`], [`indexer`] |
//! | III.F | how many indexers are where | [`devices`] |
//! | III.B, table I | trie collections | `text/trie_collection.rs`, in every build |
//! | III.E | sampling, popular collections to CPUs | `input/sample.rs`, `schedule/placement.rs` |
//! | III.F | roles of workers, runs, merging | `schedule/roles.rs`, `index/run/`, `index/merge/` |
//! | tables III to VI, figures 10, 11 | | `jobs/experiments/src/pipeline.rs` |
//!
//! What differs: a surface form is stemmed once and not each token; a token has a gap in place of
//! one id for all tokens of a document; the frontier of timely puts blocks in order where the paper
//! reads buffers in turn; the dictionary is emptied with each run, which bounds memory; on the
//! device a vote stands for the paper's reduction. `docs/inside/wei11.md` tells it at length.

pub(crate) mod btree;
pub(crate) mod cpu;
#[cfg(feature = "gpu")]
mod devices;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
pub(crate) mod indexer;
mod lane;
pub(crate) mod regroup;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use crate::build::error::BuildError;
use crate::build::handed::{FoundDevices, HandedBuild, HandedIndexer, HandedWiring, TokensIndexer};
use crate::dictionary::owners::{CollectionWeights, Owners};
use crate::input::sample::{GroupWeigher, MEMO_BYTES, WeighPieces};
use crate::text::analysis::Analysis;
use indexer::TokenIndexer;
use lane::{MakeIndexer, TokenLanes};
use regroup::TokenTally;
use std::sync::Arc;
use stream::{StreamTokens, TokenGroup};

pub struct Wei11 {
    /// Makes the indexers in place of its own, for experiments.
    pub make: Option<fn() -> Box<dyn TokenIndexer>>,
}

impl Wei11 {
    pub const fn handed(&'static self) -> HandedIndexer {
        HandedIndexer(self)
    }

    fn make(&self, build: &HandedBuild<'_>) -> MakeIndexer {
        match self.make {
            Some(make) => Box::new(move |_| Ok(make())),
            #[cfg(feature = "gpu")]
            None => devices::make(build),
            #[cfg(not(feature = "gpu"))]
            None => Box::new(|_| Ok(Box::new(cpu::CpuIndexer::default()))),
        }
    }
}

impl TokensIndexer for Wei11 {
    fn name(&self) -> &'static str {
        "wei11"
    }

    fn parser_times(&self) -> u64 {
        40
    }

    fn weigher(&self, analysis: Analysis, max_document: u64) -> Box<dyn WeighPieces> {
        let tally = TokenTally::new(analysis, Arc::new(Owners::in_turn(1)), MEMO_BYTES);
        Box::new(GroupWeigher::new(tally, max_document, weigh))
    }

    #[cfg(feature = "gpu")]
    fn on_devices(
        &self,
        found: FoundDevices<'_>,
        asked: Option<usize>,
        workers: usize,
        host_bytes: u64,
    ) -> Result<usize, BuildError> {
        devices::indexers(found, asked, workers, host_bytes)
    }

    #[cfg(not(feature = "gpu"))]
    fn on_devices(
        &self,
        _: FoundDevices<'_>,
        _: Option<usize>,
        _: usize,
        _: u64,
    ) -> Result<usize, BuildError> {
        Ok(0)
    }

    fn wire(&self, build: HandedBuild<'_>) -> HandedWiring {
        let make = self.make(&build);
        let lane = Arc::new(TokenLanes { make, parse_block: build.parse_block });
        #[cfg(feature = "gpu")]
        let pinned = devices::sizes(&build).host_bytes;
        #[cfg(not(feature = "gpu"))]
        let pinned = 0;
        HandedWiring { lane, pinned }
    }
}

/// Tokens of each trie collection.
fn weigh(group: &TokenGroup, weights: &mut CollectionWeights) {
    for (collection, stream) in group.streams() {
        weights.all[usize::from(collection)] += StreamTokens::new(stream).count() as u64;
    }
}
