//! Figures 4, 5, 6, 8 and 9. Sizes are those of lists on the device, that of the index, too.

use super::super::harness::with;
use super::model::{CACHES, Fitted, MemoryPoint};
use super::pass::{PassSettings, PassTimes};
use super::{BATCH, WangBench, WangLog};
use crate::rows::print;
use millrace::inside::index::{CachePolicy, CachedLists};
use millrace::inside::papers::{DEFAULT_ROUND, of_plan};
use serde_json::{Value, json};

/// Greatest parts of a list that VFB admits.
pub(super) const LAMBDAS: [f64; 4] = [0.75, 0.85, 0.95, 1.0];

/// That of figures 4, 5 and 7.
pub(super) const LAMBDA: f64 = 0.95;

/// Memory of the device, in parts of the index, where it does not vary: about that of figure 5.
pub(super) const MEMORY: f64 = 0.4;

/// The paper's buffer of figure 6, 800 MB, in parts of its index of about 14 GB.
const BUFFER: f64 = 0.057;

/// Queries of figure 6, where post-processing is not hidden, and takes its time.
const BEHIND: usize = 2000;

/// What a partition of the memory gives.
pub(super) struct MeasuredPartition {
    pub(super) row: Value,
    pub(super) rate: f64,
    pub(super) cached: CachedLists,
    pub(super) fitted: Fitted,
}

impl WangBench<'_> {
    /// The device's memory in figures where it does not vary, without a deadline.
    pub(super) fn usual(&self, policy: CachePolicy, lambda: f64) -> MemoryPoint {
        let memory = MEMORY * self.sizes.index;
        MemoryPoint { policy, lambda, memory, part: 0.0, deadline_s: f64::INFINITY }
    }

    /// Fills the cache, and says how queries are answered with a buffer.
    pub(super) fn fill(
        &mut self,
        cached: &CachedLists,
        bytes: f64,
        buffer: u64,
        queries: usize,
    ) -> anyhow::Result<PassSettings> {
        self.device.fill(&of_plan(cached), bytes as u64)?;
        let mut room = *self.device.room();
        room.list_bytes = room.list_bytes.min(buffer as usize);
        Ok(PassSettings { round: DEFAULT_ROUND, queries, room, behind: false, beside: false })
    }

    /// Measures a partition. None if the model has no batches of it that end in time.
    pub(super) fn at(
        &mut self,
        log: &WangLog,
        at: MemoryPoint,
    ) -> anyhow::Result<Option<MeasuredPartition>> {
        let Some((cached, fitted)) = self.sizes.fit(log, at) else { return Ok(None) };
        let how = self.fill(&cached, at.cache(), fitted.buffer, fitted.queries)?;
        let took = self.middle_pass(&log.plans, how)?;
        let count = log.plans.len() as f64;
        let rate = count / took.seconds;
        let row = json!({
            "policy": at.policy.name(), "lambda": at.lambda, "cache_of_memory": at.part,
            "buffer_bytes": fitted.buffer, "batch_of_model": fitted.batches.queries,
            "model_queries_per_s": fitted.rate, "model_response_ms": 1e3 * fitted.response_s,
            "batch": count / took.batches as f64, "queries_per_s": rate,
            "spread": took.spread.map(|seconds| count / seconds),
            "galloping_queries_per_s": self.cpu, "over_galloping": rate / self.cpu,
            "latency_ms": 1e3 * took.latency_s,
            "transfer_bytes_per_query": took.list_bytes as f64 / count,
            "continued": took.begun as f64 / count, "cached_bytes": self.device.cache().bytes(),
        });
        Ok(Some(MeasuredPartition { row, rate, cached, fitted }))
    }

    /// c(n), t(S_b), and dq(S_c) by policy.
    pub(super) fn figure_4(&mut self, log: &WangLog) -> anyhow::Result<()> {
        for &(queries, seconds) in &log.model.c.0 {
            print(json!({ "row": "wang-figure4", "batch": queries, "c_us": 1e6 * seconds }))?;
        }
        for &(bytes, seconds) in &log.model.t.0 {
            print(json!({
                "row": "wang-figure4", "buffer_bytes": bytes, "t_us_per_mb": 1e12 * seconds,
                "gb_per_s": 1e-9 / seconds,
            }))?;
        }
        for policy in CachePolicy::ALL {
            for part in CACHES {
                let at = MemoryPoint { part, ..self.usual(policy, LAMBDA) };
                let cached = self.sizes.admit(log, at);
                let batches = self.sizes.simulate(log, &cached, at.left(), BATCH);
                print(json!({
                    "row": "wang-figure4", "policy": policy.name(), "cache_of_memory": part,
                    "dq_mb": 1e-6 * batches.bytes, "batch": batches.queries,
                }))?;
            }
        }
        Ok(())
    }

    /// Deadlines in seconds, with the fields that tell of a figure under one.
    fn deadlines(&self, row: &str) -> Vec<(f64, Value)> {
        let of = |&ms: &f64| (ms / 1e3, json!({"row": row, "deadline_ms": ms}));
        self.prepared.args.deadline_ms.iter().map(of).collect()
    }

    /// Throughput by S_c under deadlines, of the model and measured.
    pub(super) fn figure_5(&mut self, log: &WangLog) -> anyhow::Result<()> {
        for (deadline_s, row) in self.deadlines("wang-figure5") {
            for (policy, part) in
                CachePolicy::ALL.into_iter().flat_map(|of| CACHES.map(|part| (of, part)))
            {
                let at = MemoryPoint { part, deadline_s, ..self.usual(policy, LAMBDA) };
                if let Some(measured) = self.at(log, at)? {
                    print(with(row.clone(), measured.row))?;
                }
            }
        }
        Ok(())
    }

    /// Time of the device and of what ends queries, one after the other, by cache and lambda.
    pub(super) fn figure_6(&mut self, log: &WangLog) -> anyhow::Result<()> {
        let plans = &log.plans[..log.plans.len().min(BEHIND)];
        let buffer = ((BUFFER * self.sizes.index) as u64).max(self.sizes.largest_query(plans));
        for of_index in [0.05, 0.1, 0.2, 0.3, 0.4] {
            for lambda in LAMBDAS {
                let memory = of_index * self.sizes.index;
                let at = MemoryPoint { memory, part: 1.0, ..self.usual(CachePolicy::Vfb, lambda) };
                let cached = self.sizes.admit(log, at);
                let how = self.fill(&cached, memory, buffer, BATCH)?;
                let took = self.middle_pass(plans, PassSettings { behind: true, ..how })?;
                let PassTimes { seconds, post_s, spread, .. } = took;
                let count = plans.len() as f64;
                let us = |seconds: f64| 1e6 * seconds / count;
                print(json!({
                    "row": "wang-figure6", "cache_of_index": of_index, "lambda": lambda,
                    "buffer_bytes": buffer, "gpu_us": us(seconds - post_s), "post_us": us(post_s),
                    "us": us(seconds), "spread_us": spread.map(us), "continued": took.begun as f64 / count,
                    "transfer_bytes_per_query": took.list_bytes as f64 / count,
                }))?;
            }
        }
        Ok(())
    }

    /// Throughput without a deadline by memory.
    pub(super) fn figure_8(&mut self, log: &WangLog) -> anyhow::Result<()> {
        for of_index in [0.1, 0.2, 0.3, 0.4, 0.6, 0.8] {
            let row = json!({"row": "wang-figure8", "memory_of_index": of_index});
            self.by_lambda(log, &row, of_index, f64::INFINITY)?;
        }
        Ok(())
    }

    /// Throughput and response time under deadlines.
    pub(super) fn figure_9(&mut self, log: &WangLog) -> anyhow::Result<()> {
        for (deadline_s, row) in self.deadlines("wang-figure9") {
            self.by_lambda(log, &row, MEMORY, deadline_s)?;
        }
        Ok(())
    }

    /// By policy and lambda, with the best partition of the model.
    fn by_lambda(
        &mut self,
        log: &WangLog,
        row: &Value,
        of_index: f64,
        deadline_s: f64,
    ) -> anyhow::Result<()> {
        let memory = of_index * self.sizes.index;
        for policy in CachePolicy::ALL {
            for &lambda in if policy == CachePolicy::Vfb { &LAMBDAS[..] } else { &[1.0] } {
                let at = MemoryPoint { memory, deadline_s, ..self.usual(policy, lambda) };
                let Some(best) = self.sizes.best(log, at) else { continue };
                if let Some(measured) = self.at(log, best)? {
                    print(with(row.clone(), measured.row))?;
                }
            }
        }
        Ok(())
    }
}
