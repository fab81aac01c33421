//! The methods by which devices answer, with their options, and which queries each can answer.

use super::fixed;
use super::plan::{MOST_HITS, Scale};
use crate::gpu::ding09::DingTuning;
use crate::gpu::huang::HuangTuning;
use crate::gpu::wang::WangTuning;
use crate::query::engines::share::ALL;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Mode;
use crate::score::named::Score;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuOptions {
    pub method: GpuMethod,
    pub batch: usize,
    /// Batches in flight on a device.
    pub slots: usize,
    /// Of each device, for lists; most of what is free if left out.
    pub memory: Option<u64>,
    /// Hits that most queries ask for.
    pub k: usize,
    /// Threads that bring lists to a device.
    pub fetchers: usize,
    /// Each device has a part of the documents, and answers every query over these; else each has
    /// all, and answers some of the queries.
    pub partition: bool,
    /// How long a batch that is not full waits for more queries while others are in flight.
    pub patience: Duration,
}

impl Default for GpuOptions {
    /// Batches of 256 queries for the best ten, three in flight.
    fn default() -> Self {
        Self {
            method: GpuMethod::Bounds,
            batch: 256,
            slots: 3,
            memory: None,
            k: 10,
            fetchers: 4,
            partition: false,
            patience: Duration::from_micros(300),
        }
    }
}

/// All find the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuMethod {
    /// Sums of upper bounds, by `query.cu`.
    #[default]
    Bounds,
    /// See [`ding09`](crate::gpu::ding09).
    Ding09(DingTuning),
    /// See [`huang`](crate::gpu::huang).
    Huang(HuangTuning),
    /// See [`crate::gpu::wang`]: for queries of AND with its score, and documents in that order.
    Wang(WangTuning),
}

impl GpuMethod {
    /// Whether a device can answer a query from `snapshot`, by the weights of its terms, its k and
    /// its snapshot.
    pub(super) fn suits(self, plan: &Plan, snapshot: &Arc<Snapshot>) -> bool {
        if !(1..=MOST_HITS).contains(&plan.wanted().k) || !Arc::ptr_eq(plan.snapshot(), snapshot) {
            return false;
        }
        let mode = plan.wanted().mode;
        if let Self::Wang(_) = self {
            return mode == Mode::And && *snapshot.share() == ALL;
        }
        let known = plan.terms().iter().filter(|term| term.df > 0);
        let weights: Vec<f32> = known.map(|term| term.weight.factor()).collect();
        let weights = weights.into_iter();
        match snapshot.scoring().score {
            Score::Impact => self == Self::Bounds && mode == Mode::Or && fixed::suits(weights),
            score => {
                let has_score = score.is_saturation() || self == Self::Bounds;
                snapshot.statics().is_empty() && has_score && Scale::new(weights).is_some()
            }
        }
    }
}
