//! The program without papers.

use crate::query::ranking::RankingArgs;
use millrace::SettingError;
use millrace::inside::build::{HandedIndexers, Pipeline};
use millrace::inside::dataflow::ProcessorShares;
use millrace::inside::gpu::{ChosenMethod, Devices, GpuEngines, HandedMethod, HandedMethods};
use millrace::inside::query::{Engines, HandedAlgorithms, HandedModels, Wakers};
use millrace::inside::rebuild::HandedRebuild;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ALGORITHMS: HandedAlgorithms = &[];

pub(crate) const MODELS: HandedModels = &[];

pub(crate) const INDEXERS: HandedIndexers = &[];

pub(crate) const METHODS: HandedMethods = &[];

pub(crate) const REBUILD: HandedRebuild = HandedRebuild { indexers: INDEXERS, planner: None };

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NoTokensArgs {}

impl NoTokensArgs {
    pub(crate) fn fill(&self, _pipeline: &mut Pipeline) {}
}

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NoMethodArgs {}

impl NoMethodArgs {
    pub(crate) fn check(&self, _: ChosenMethod, _on_devices: bool) -> Result<(), SettingError> {
        Ok(())
    }

    pub(crate) fn method(&self, _: ChosenMethod) -> Option<Arc<dyn HandedMethod>> {
        None
    }
}

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NoDocpArgs {}

impl NoDocpArgs {
    pub(crate) fn has_barrier(&self) -> bool {
        false
    }
}

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NoHybridArgs {}

/// There are none.
pub(crate) enum NoHybridEngines {}

impl NoHybridArgs {
    pub(crate) fn engines(
        &self,
        _devices: &Devices,
        _ranking: &RankingArgs,
        _deadline: Duration,
        _shed: bool,
        _shares: &Arc<ProcessorShares>,
    ) -> anyhow::Result<NoHybridEngines> {
        anyhow::bail!("this program does not divide queries between CPU and GPU")
    }
}

impl NoHybridEngines {
    pub(crate) fn over(
        self,
        _engines: GpuEngines,
        _devices: &Devices,
        _wakers: &Arc<Wakers>,
    ) -> anyhow::Result<Arc<dyn Engines>> {
        match self {}
    }
}
