//! How devices answer: the options of engines, which queries the default engine can answer, and
//! methods that a program hands in beside it.

use super::fixed;
use super::plan::{MOST_HITS, Scale};
use super::service::DeviceDesk;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Mode;
use crate::score::named::Score;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A method that is handed in, with its tuning; it finds what all others find.
pub trait HandedMethod: Debug + Send + Sync {
    /// As users write it. An algorithm of the CPU may have the same.
    fn name(&self) -> &'static str;

    /// Queries of a batch.
    fn batch(&self) -> usize;

    /// Whether queries of a mode are answered with such a score.
    fn has_score(&self, score: Score, mode: Mode) -> bool;

    /// # Errors
    /// It does not read such an index.
    fn check(&self, snapshot: &Snapshot) -> Result<(), GpuError>;

    /// Whether it can answer a query by the weights of its terms and its share of the documents.
    fn suits(&self, plan: &Plan) -> bool;

    /// Returns the work of the device's thread, which ends when nobody can send queries any more.
    fn open(&self, given: GivenDevice<'_>) -> Result<ThreadWork, GpuError>;
}

/// What a program hands in, each with its usual tuning.
pub type HandedMethods = &'static [&'static dyn HandedMethod];

/// Of the thread of a device.
pub(crate) type ThreadWork = Box<dyn FnOnce() + Send>;

/// A device that shall answer queries over some documents of a snapshot.
pub struct GivenDevice<'a> {
    pub(crate) device: Device,
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) share: Range<u32>,
    pub(crate) options: &'a GpuOptions,
    pub(crate) desk: DeviceDesk,
}

#[derive(Clone, Debug)]
pub(crate) struct GpuOptions {
    /// The default engine if left out: sums of upper bounds, by `query.cu`.
    pub method: Option<Arc<dyn HandedMethod>>,
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
            method: None,
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

impl GpuOptions {
    /// Whether a device can answer a query from `snapshot`, by its k, its snapshot, and what its
    /// method says.
    pub(super) fn suits(&self, plan: &Plan, snapshot: &Arc<Snapshot>) -> bool {
        if !(1..=MOST_HITS).contains(&plan.wanted().k) || !Arc::ptr_eq(plan.snapshot(), snapshot) {
            return false;
        }
        if let Some(method) = &self.method {
            return method.suits(plan);
        }
        match snapshot.scoring().score {
            Score::Impact => plan.wanted().mode == Mode::Or && fixed::suits(weights(plan)),
            _ => snapshot.statics().is_empty() && Scale::new(weights(plan)).is_some(),
        }
    }
}

/// Of the terms that documents have.
pub(crate) fn weights(plan: &Plan) -> impl ExactSizeIterator<Item = f32> + Clone {
    let known = plan.terms().iter().filter(|term| term.df > 0);
    known.map(|term| term.weight.factor()).collect::<Vec<f32>>().into_iter()
}
