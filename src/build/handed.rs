//! Indexers of tokens that a program hands in: what a build asks of one.

use super::error::BuildError;
use super::note::Notes;
use crate::dataflow::build::handed::HandedLane;
#[cfg(feature = "gpu")]
use crate::gpu::floor::discover::DeviceInfo;
#[cfg(feature = "gpu")]
use crate::gpu::floor::modules::Toolchain;
use crate::input::sample::WeighPieces;
use crate::input::splits::InputPlan;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::text::analysis::Analysis;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(crate) struct FoundDevices<'a> {
    #[cfg(feature = "gpu")]
    pub(crate) devices: &'a [DeviceInfo],
    #[cfg(feature = "gpu")]
    pub(crate) toolchain: Option<&'a Toolchain>,
    /// Why there are not more.
    pub(crate) reasons: &'a [String],
    pub(crate) notes: Option<&'a Notes>,
}

/// A build whose workers have their roles.
pub(crate) struct HandedBuild<'a> {
    pub(crate) found: FoundDevices<'a>,
    pub(crate) roles: Roles,
    pub(crate) budget: &'a Budget,
    pub(crate) plan: &'a InputPlan,
    /// Bytes of text that an indexer takes together.
    pub(crate) parse_block: u64,
}

pub(crate) struct HandedWiring {
    pub(crate) lane: Arc<dyn HandedLane>,
    /// Bytes of memory that an indexer on a device pins.
    pub(crate) pinned: usize,
}

/// An indexer that takes tokens. The index is that of every other.
pub(crate) trait TokensIndexer: Send + Sync {
    /// As users write it, unlike the name of any other.
    fn name(&self) -> &'static str;

    /// Times its bytes, what a parser needs besides for a piece in the worst case, where no word
    /// that is short occurs twice.
    fn parser_times(&self) -> u64;

    /// Weighs trie collections, by the units in which rates are.
    fn weigher(&self, analysis: Analysis, max_document: u64) -> Box<dyn WeighPieces>;

    /// How many indexers are on devices: as `asked`, as far as there are `workers` and memory.
    ///
    /// # Errors
    /// There is no device, or not the memory, for those that were asked for.
    fn on_devices(
        &self,
        found: FoundDevices<'_>,
        asked: Option<usize>,
        workers: usize,
        host_bytes: u64,
    ) -> Result<usize, BuildError>;

    fn wire(&self, build: HandedBuild<'_>) -> HandedWiring;
}

/// An indexer that is handed in.
#[derive(Clone, Copy)]
pub struct HandedIndexer(pub(crate) &'static dyn TokensIndexer);

/// What a program hands in.
pub type HandedIndexers = &'static [HandedIndexer];

impl HandedIndexer {
    /// As users write it.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl PartialEq for HandedIndexer {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for HandedIndexer {}

impl fmt::Debug for HandedIndexer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
