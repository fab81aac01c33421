//! Queries on a device as the paper has them, a [method](crate::papers::methods): a block of
//! threads has a query of AND, and searches for documents of the shortest list in the others, by
//! rounds, the best documents first, until no later one can be among the best (`kernels/wang`).
//! Lists are on the device for good, whole or their first blocks, or come with the batches. Where
//! such beginnings end before a query does, the CPU goes on ([`rounds`](super::rounds)). Hits are
//! those of every other engine.

pub(crate) mod batch;
pub(crate) mod list;
#[cfg(test)]
#[path = "tests/twin.rs"]
pub(crate) mod twin;

use crate::gpu::floor::error::GpuError;
use crate::index::cache_plan::{CachePlan, CachedList, CachedLists};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::papers::huang::gpu::BATCH;
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery};
use crate::papers::methods::lists::{DevicePart, longest};
use crate::papers::methods::{DeviceMethod, MethodStep};
use crate::query::engines::share::ALL;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Mode;
use crate::score::named::Score;
use batch::{WangRecord, WangTermRecord};
use list::{WangLaid, WangLayer};

const KERNEL: &str = "wang_and";

/// Documents of a round, each with a thread.
pub const ROUNDS: [u32; 5] = [64, 128, 256, 512, 1024];

pub const DEFAULT_ROUND: u32 = 256;

/// Which lists are on a device for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cached {
    /// Those of the plan in the generation's folder ([`cache_plan`](crate::index::cache_plan)), or
    /// [the longest](Self::Longest) without one.
    #[default]
    Planned,
    /// Whole lists, the longest first.
    Longest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WangTuning {
    pub round: u32,
    pub cached: Cached,
}

impl WangTuning {
    pub(crate) const USUAL: Self = Self { round: DEFAULT_ROUND, cached: Cached::Planned };
}

impl Default for WangTuning {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Of the only run.
pub fn of_plan(cached: &CachedLists) -> Vec<DevicePart> {
    let part = |list: &CachedList| DevicePart {
        blocks: Some(list.blocks as usize),
        ..DevicePart::whole([Some(list.entry)])
    };
    cached.lists().iter().map(part).collect()
}

impl DeviceMethod for WangTuning {
    const NAME: &'static str = "wang";
    const TEXT: &'static str = concat!(
        include_str!("../../../../kernels/common.cuh"),
        include_str!("../../../../kernels/score.cuh"),
        include_str!("../../../../kernels/bits.cuh"),
        include_str!("../../../../kernels/wang/list.cuh"),
        include_str!("../../../../kernels/wang/top.cuh"),
        include_str!("../../../../kernels/wang/wang.cu"),
    );
    /// The numbers of all fit a word.
    const MOST_TERMS: usize = 16;
    const BATCH: usize = BATCH;
    const HAS_WORDS: bool = false;

    type Laid = WangLaid;
    type Layer = WangLayer;
    type Term = WangTermRecord;
    type Record = WangRecord;
    /// Hits, the docid from which the query is not answered, rounds, and nothing.
    type Said = [u32; 4];
    type Plan = ();

    /// Its own alone, which the order of the documents has to be by.
    fn has_score(score: Score, mode: Mode) -> bool {
        mode == Mode::And && matches!(score, Score::Wang(_))
    }

    fn suits(plan: &Plan) -> bool {
        *plan.snapshot().share() == ALL
    }

    fn check(snapshot: &Snapshot) -> Result<(), GpuError> {
        snapshot.check_global().map_err(GpuError::Order)
    }

    fn stay(&self, generation: &Generation) -> Result<Vec<DevicePart>, IndexError> {
        let is_planned = self.cached == Cached::Planned;
        let plan = is_planned.then(|| CachePlan::open(generation)).transpose()?.flatten();
        plan.map_or_else(|| longest(generation), |plan| Ok(of_plan(&plan.cached)))
    }

    fn lay(
        snapshot: &Snapshot,
        layer: &mut WangLayer,
        part: &DevicePart,
        out: &mut Vec<u8>,
    ) -> Result<WangLaid, IndexError> {
        let mut laid = WangLaid::default();
        snapshot.generation().for_each_list(&part.entries, |run, list| {
            laid = layer.lay_list(list, run.documents(), part.blocks, out)?;
            Ok(())
        })?;
        Ok(laid)
    }

    fn make(batch: &mut MethodBatch<Self>, query: &PlacedQuery<WangLaid>) -> MadeQuery<WangRecord> {
        batch::make(batch, query)
    }

    fn steps(batch: &MethodBatch<Self>) -> Vec<MethodStep> {
        batch::steps(batch)
    }

    fn rest(said: &[u32; 4]) -> Option<u32> {
        Some(said[1]).filter(|&docid| docid != u32::MAX)
    }
}
