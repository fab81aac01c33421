//! How do planned queries become batches of the device? Lists are there for good, or travel with
//! the batch; those that will are laid out by several threads when their queries come.

use super::batch::WangBatch;
use super::device::{WangDevice, WangTerm};
use crate::gpu::floor::error::GpuError;
use crate::gpu::query::service::Why;
use crate::gpu::turns::{Found, Turn};
use crate::query::plan::Plan;

/// A device, and how it is asked.
pub(in crate::gpu) struct WangTurn {
    device: WangDevice,
    round: u32,
}

impl WangTurn {
    /// Answers by rounds of so many documents.
    pub(in crate::gpu) fn new(device: WangDevice, round: u32) -> Self {
        Self { device, round }
    }
}

impl Turn for WangTurn {
    type Batch = WangBatch;
    type Lists = ();

    fn bring(&mut self, plans: &[&Plan]) -> Vec<Option<()>> {
        let lists = plans.iter().flat_map(|plan| plan.lists_of(0)).flatten().copied();
        // A list that is damaged is found so again with its query.
        _ = self.device.lay_ahead(lists);
        vec![Some(()); plans.len()]
    }

    fn leave(&mut self, (): &()) {}

    fn batch(&self, _all_terms: bool) -> WangBatch {
        self.device.batch(self.round)
    }

    fn add(&mut self, batch: &mut WangBatch, plan: &Plan, (): &()) -> Result<(), Why> {
        let lists = plan.terms().iter().zip(plan.lists_of(0));
        let terms: Option<Vec<WangTerm>> = lists
            .map(|(term, entry)| {
                entry.map(|entry| WangTerm { entry, weight: term.weight.factor() })
            })
            .collect();
        // A query with a term that no document has comes to no device.
        let Some(terms) = terms else { return Err(Why::Unsuited) };
        match self.device.add(batch, &terms, plan.wanted().k as u32) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Why::Unsuited),
            // Who answers the query on the CPU finds out where the index is damaged.
            Err(_) => Err(Why::Lists),
        }
    }

    fn answer(&mut self, mut batch: WangBatch) -> Result<Vec<Found>, GpuError> {
        batch.finish();
        let answers = self.device.answer(&batch)?;
        Ok(answers.into_iter().map(|found| Found { hits: found.hits, rest: found.rest }).collect())
    }

    fn list_bytes(&self) -> u64 {
        self.device.list_bytes()
    }
}
