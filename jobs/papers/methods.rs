//! Options of methods by which GPUs answer queries.

use millrace::SettingError;
use millrace::inside::gpu::{ChosenMethod, HandedMethod};
use millrace::inside::papers::{Cached, GivenMethods, MOST_MERGE_LEVELS, Traversal, given};
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// With --algorithm ding09: levels of splitters in a merge, 0 to 4 [default: 3, as in the
    /// paper].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_MERGE_LEVELS)))]
    merge_levels: Option<u32>,
    /// With --algorithm ding09: splitters of each level for one splitter of the level before, a
    /// power of two [default: the elements are divided evenly among the levels].
    #[arg(long, value_name = "N", value_parser = given::splitters)]
    splitters: Option<u32>,
    /// GPU threads for each query. With --algorithm huang: 32, 64, 128, 256, 320 or 512 [default:
    /// 64, as in the paper]. With --algorithm wang: 64, 128, 256, 512 or 1024, which is also the
    /// number of documents in a round [default: 256].
    #[arg(long, value_name = "N", value_parser = given::threads)]
    query_threads: Option<u32>,
    /// With --algorithm huang and --mode or: how each thread finds documents: exhaustive, wand or
    /// bmw [default: bmw].
    #[arg(long, value_name = "NAME", value_parser = given::traversal)]
    traversal: Option<Traversal>,
    /// With --algorithm huang: the score that a document must beat to be looked at. own: the k-th
    /// best of this thread, as in the paper. shared: the k-th best of all threads of the query.
    #[arg(long, value_name = "own|shared", value_parser = ["own", "shared"])]
    threshold: Option<String>,
    /// With --algorithm wang: lists that stay in the memory of the GPU. planned: those of the plan
    /// that `millrace cache` has made, or the longest if there is no plan. longest: the longest
    /// [default: planned].
    #[arg(long, value_name = "planned|longest", value_parser = ["planned", "longest"])]
    cached: Option<String>,
}

impl MethodArgs {
    /// Checks the options with an algorithm, and with answers by devices or by the CPU alone.
    pub(crate) fn check(
        &self,
        algorithm: ChosenMethod,
        on_devices: bool,
    ) -> Result<(), SettingError> {
        self.given().check(algorithm, on_devices)
    }

    /// The chosen method with this tuning, if one is chosen.
    pub(crate) fn method(&self, algorithm: ChosenMethod) -> Option<Arc<dyn HandedMethod>> {
        self.given().method(algorithm)
    }

    fn given(&self) -> GivenMethods {
        GivenMethods {
            merge_levels: self.merge_levels,
            splitters: self.splitters,
            threads: self.query_threads,
            traversal: self.traversal,
            shared_threshold: self.threshold.as_ref().map(|threshold| threshold == "shared"),
            cached: self.cached.as_deref().map(|cached| match cached {
                "longest" => Cached::Longest,
                _ => Cached::Planned,
            }),
        }
    }
}
