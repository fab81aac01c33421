//! How do planned queries become batches of the device? Lists are there for good, or travel with
//! the batch; those that will are laid out by several threads when their queries come.

use super::batch::{HuangBatch, HuangWay};
use super::device::{HuangDevice, HuangTerm, HuangTuning};
use crate::gpu::floor::error::GpuError;
use crate::gpu::query::service::Why;
use crate::gpu::turns::{Found, Turn};
use crate::query::plan::{Plan, PlanTerm};
use crate::query::snapshot::Snapshot;
use std::ops::Range;
use std::sync::Arc;

/// A device, and what it is asked for.
pub(in crate::gpu) struct HuangTurn {
    device: HuangDevice,
    runs: usize,
    /// The documents that are asked for.
    docids: Range<u32>,
    tuning: HuangTuning,
}

impl HuangTurn {
    pub(in crate::gpu) fn new(
        device: HuangDevice,
        (snapshot, docids): (Arc<Snapshot>, Range<u32>),
        tuning: HuangTuning,
    ) -> Self {
        Self { device, runs: snapshot.generation().runs().len(), docids, tuning }
    }

    /// The terms of a query that documents have.
    fn terms<'a>(&self, plan: &'a Plan) -> Vec<HuangTerm<'a>> {
        let (count, entries) = (plan.terms().len(), plan.lists());
        let known = plan.terms().iter().enumerate().filter(|(_, term)| term.df > 0);
        let term = |(t, term): (usize, &PlanTerm)| HuangTerm {
            entries: (0..self.runs).map(|run| entries[run * count + t].as_ref()).collect(),
            weight: term.weight.factor(),
        };
        known.map(term).collect()
    }
}

impl Turn for HuangTurn {
    type Batch = (HuangBatch, &'static str);
    type Lists = ();

    fn bring(&mut self, plans: &[&Plan]) -> Vec<Option<()>> {
        let lists = plans.iter().flat_map(|plan| self.terms(plan)).map(|term| term.entries);
        let lists: Vec<_> = lists.collect();
        // A list that is damaged is found so again with its query.
        _ = self.device.lay_ahead(lists);
        vec![Some(()); plans.len()]
    }

    fn leave(&mut self, (): &()) {}

    fn batch(&self, all_terms: bool) -> Self::Batch {
        let kernel = if all_terms { "huang_and" } else { self.tuning.traversal.kernel() };
        (self.device.batch(self.tuning.threads), kernel)
    }

    fn add(&mut self, (batch, _): &mut Self::Batch, plan: &Plan, (): &()) -> Result<(), Why> {
        let terms = self.terms(plan);
        let best = (plan.wanted().k as u32, self.docids.clone());
        match self.device.add(batch, &terms, best) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Why::Unsuited),
            // Who answers the query on the CPU finds out where the index is damaged.
            Err(_) => Err(Why::Lists),
        }
    }

    fn answer(&mut self, (mut batch, kernel): Self::Batch) -> Result<Vec<Found>, GpuError> {
        batch.finish();
        let how =
            HuangWay { shared_threshold: self.tuning.shared_threshold, ..HuangWay::default() };
        let answers = self.device.answer(&batch, kernel, how)?;
        Ok(answers.into_iter().map(Found::from).collect())
    }

    fn list_bytes(&self) -> u64 {
        self.device.list_bytes()
    }
}
