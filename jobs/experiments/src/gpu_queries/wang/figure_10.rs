//! Figure 10: throughput by k of the device, and of it and threads of the CPU together: queries all
//! of whose lists are cached come first to the device, which takes batches from the front, and
//! threads take single ones from the back, until they meet. Beside them the CPU alone: by its best
//! engine on one core and on all, and by the paper's algorithm on all.

use super::super::harness::with;
use super::figures::{LAMBDAS, MEMORY, MeasuredPartition};
use super::model::MemoryPoint;
use super::pass::PassSettings;
use super::{WangBench, WangLog};
use crate::rows::print;
use crate::threads::threads;
use crate::wang::rate;
use millrace::Algorithm;
use millrace::inside::index::CachePolicy;
use millrace::inside::papers::WANG;
use millrace::inside::query::Plan;
use serde_json::json;

/// The paper's k.
const KS: [usize; 4] = [1, 5, 10, 15];

impl WangBench<'_> {
    pub(super) fn figure_10(&mut self, log: &WangLog) -> anyhow::Result<()> {
        for k in KS {
            let log = self.log(log.model.clone(), k)?;
            let alone =
                |algorithm, count| anyhow::Ok(rate(&log.plans, k, algorithm, count)?.middle);
            let one = alone(Algorithm::Galloping, 1)?;
            self.cpu = alone(Algorithm::Galloping, threads())?;
            let by_rounds = alone(WANG, threads())?;
            let mut best: Option<(MemoryPoint, MeasuredPartition)> = None;
            for lambda in LAMBDAS {
                let at = self.sizes.best(&log, self.usual(CachePolicy::Vfb, lambda));
                let Some(at) = at else { continue };
                let Some(measured) = self.at(&log, at)? else { continue };
                if best.as_ref().is_none_or(|(_, best)| measured.rate > best.rate) {
                    best = Some((at, measured));
                }
            }
            let Some((at, measured)) = best else { continue };
            let (together, by_device) = self.together(&log.plans, &measured, at.cache())?;
            let row = json!({
                "row": "wang-figure10", "k": k, "engine": "gpu", "memory_of_index": MEMORY,
                "together_queries_per_s": together, "together_by_device": by_device,
                "together_over_galloping": together / self.cpu, "cpu_threads": threads(),
                "galloping_of_one_core": one, "wang_queries_per_s": by_rounds,
                "over_wang": measured.rate / by_rounds,
            });
            print(with(measured.row, row))?;
        }
        Ok(())
    }

    /// Queries a second of the device and all threads, and the part that went to the device.
    fn together(
        &mut self,
        plans: &[Plan],
        measured: &MeasuredPartition,
        cache_bytes: f64,
    ) -> anyhow::Result<(f64, f64)> {
        let MeasuredPartition { cached, fitted, .. } = measured;
        let is_cached = |plan: &Plan| {
            plan.lists_of(0).iter().flatten().all(|entry| cached.blocks(0, entry).is_some())
        };
        let mut plans = plans.to_vec();
        plans.sort_by_key(|plan| !is_cached(plan));
        // The device is fast: small batches, so that it does not take the last ones alone.
        let size = fitted.queries.min(plans.len().div_ceil(8)).max(1);
        let how = self.fill(cached, cache_bytes, fitted.buffer, size)?;
        let took = self.middle_pass(&plans, PassSettings { beside: true, ..how })?;
        let count = plans.len() as f64;
        Ok((count / took.seconds, took.by_device as f64 / count))
    }
}
