//! Figures 4, 5, 6, 8 and 9. Sizes are those of lists on the device; the index is as large as all its lists would be there.

use super::super::{print, threads};
use super::Bench;
use super::model::{CACHES, Fitted, Model};
use super::pass::{How, Post, Took};
use millrace::gpu::wang::DEFAULT_ROUND;
use millrace::gpu::wang::cache::of_plan;
use millrace::index::cache_plan::{CachedLists, Policy};
use millrace::query::caching::Demand;
use millrace::query::plan::Plan;
use serde_json::{Value, json};

/// Greatest parts of a list that VFB admits.
const LAMBDAS: [f64; 6] = [0.75, 0.8, 0.85, 0.9, 0.95, 1.0];

/// That of figures 4, 5 and 7.
pub(super) const LAMBDA: f64 = 0.95;

/// Memory of the device, in parts of the index, where it does not vary: about that of figure 5.
pub(super) const MEMORY: f64 = 0.4;

/// The paper's buffer of figure 6, 800 MB, in parts of its index of about 14 GB.
const BUFFER: f64 = 0.057;

/// What the paper finds between the best partitions of its model and of measurement, in parts of the memory.
const PAPER_DIFFERENCE: f64 = 0.04;

fn lambdas(policy: Policy) -> &'static [f64] {
    if policy == Policy::Vfb { &LAMBDAS } else { &[1.0] }
}

impl Bench<'_> {
    /// Answers queries with what is cached in so many bytes, with batches as fitted.
    pub(super) fn with_cache(
        &mut self,
        plans: &[Plan],
        (cached, bytes): (&CachedLists, f64),
        (buffer, queries): (u64, usize),
        post: Post,
    ) -> anyhow::Result<Took> {
        self.device.fill(&of_plan(cached), bytes as u64)?;
        let mut room = *self.device.room();
        room.list_bytes = room.list_bytes.min(buffer as usize);
        self.best_pass(plans, How { round: DEFAULT_ROUND, queries, room, post })
    }

    /// c(n), t(S_b), and dq(S_c) by policy.
    pub(super) fn figure_4(
        &mut self,
        model: &Model,
        demand: &Demand,
        plans: &[Plan],
    ) -> anyhow::Result<()> {
        for &(queries, seconds) in &model.c.0 {
            print(json!({ "row": "wang-figure4", "batch": queries, "c_us": 1e6 * seconds }))?;
        }
        for &(bytes, seconds) in &model.t.0 {
            print(json!({
                "row": "wang-figure4", "buffer_bytes": bytes, "t_us_per_mb": 1e12 * seconds,
                "gb_per_s": 1e-9 / seconds,
            }))?;
        }
        let memory = MEMORY * self.sizes.index;
        for policy in Policy::ALL {
            for part in CACHES {
                let cached = self.sizes.admit(demand, policy, part * memory, LAMBDA);
                let buffer = ((1.0 - part) * memory) as u64;
                let most = super::BATCH_OF_FIGURES;
                let batches = self.sizes.simulate(&model.c, plans, &cached, (buffer, most));
                let alone = self.sizes.simulate(&model.c, plans, &cached, (buffer, 1));
                print(json!({
                    "row": "wang-figure4", "policy": policy.name(), "cache_of_memory": part,
                    "dq_mb": 1e-6 * batches.bytes, "dq_mb_alone": 1e-6 * alone.bytes,
                    "hit_rate": batches.hits, "batch": batches.queries,
                }))?;
            }
        }
        Ok(())
    }

    /// Throughput by S_c under deadlines: model and measurement, and their best partitions.
    pub(super) fn figure_5(
        &mut self,
        model: &Model,
        demand: &Demand,
        plans: &[Plan],
    ) -> anyhow::Result<()> {
        let memory = MEMORY * self.sizes.index;
        for deadline_ms in self.args.deadline_ms.clone() {
            for policy in Policy::ALL {
                // Rate and part of the cache: of the model, and measured.
                let mut best = [(0.0, 0.0); 2];
                for part in CACHES {
                    let cached = self.sizes.admit(demand, policy, part * memory, LAMBDA);
                    let left = ((1.0 - part) * memory) as u64;
                    let fitted = self.sizes.fit(model, plans, &cached, (left, deadline_ms / 1e3));
                    let Some(fitted) = fitted else { continue };
                    let batch = (fitted.buffer, fitted.queries);
                    let post = Post::Overlapped(threads());
                    let took = self.with_cache(plans, (&cached, part * memory), batch, post)?;
                    let measured = plans.len() as f64 / took.seconds;
                    for (best, rate) in best.iter_mut().zip([fitted.rate, measured]) {
                        if rate > best.0 {
                            *best = (rate, part);
                        }
                    }
                    let more = json!({
                        "row": "wang-figure5", "policy": policy.name(), "deadline_ms": deadline_ms,
                        "cache_of_memory": part, "lambda": LAMBDA,
                    });
                    print(self.both(more, &fitted, (&took, plans.len())))?;
                }
                let [of_model, measured] = best;
                print(json!({
                    "row": "wang-figure5", "policy": policy.name(), "deadline_ms": deadline_ms,
                    "best_cache_of_model": of_model.1, "best_cache_measured": measured.1,
                    "difference": (of_model.1 - measured.1).abs(), "paper_difference": PAPER_DIFFERENCE,
                    "model_queries_per_s": of_model.0, "queries_per_s": measured.0,
                }))?;
            }
        }
        Ok(())
    }

    /// What the model says and what was measured, in one row.
    fn both(&self, mut row: Value, fitted: &Fitted, (took, queries): (&Took, usize)) -> Value {
        let count = queries as f64;
        row["buffer_bytes"] = json!(fitted.buffer);
        row["batch_of_model"] = json!(fitted.batches.queries);
        row["model_queries_per_s"] = json!(fitted.rate);
        row["model_response_ms"] = json!(1e3 * fitted.response_s);
        row["batch"] = json!(count / took.batches as f64);
        row["queries_per_s"] = json!(count / took.seconds);
        row["latency_ms"] = json!(1e3 * took.latency_s);
        row["transfer_bytes_per_query"] = json!(took.list_bytes as f64 / count);
        row["continued"] = json!(took.begun as f64 / count);
        row["cached_bytes"] = json!(self.device.cache().bytes());
        row
    }

    /// Time of the device and of what ends queries, one after the other, by cache and lambda.
    pub(super) fn figure_6(&mut self, demand: &Demand, plans: &[Plan]) -> anyhow::Result<()> {
        // Post-processing is not hidden, and takes its time.
        let plans = &plans[..plans.len().min(2000)];
        let buffer = ((BUFFER * self.sizes.index) as u64).max(self.sizes.largest_query(plans));
        for of_index in [0.05, 0.1, 0.2, 0.3, 0.4] {
            for lambda in LAMBDAS {
                let bytes = of_index * self.sizes.index;
                let cached = self.sizes.admit(demand, Policy::Vfb, bytes, lambda);
                let batch = (buffer, super::BATCH_OF_FIGURES);
                let took = self.with_cache(plans, (&cached, bytes), batch, Post::Behind)?;
                let count = plans.len() as f64;
                let gpu_s = took.seconds - took.post_s;
                print(json!({
                    "row": "wang-figure6", "cache_of_index": of_index, "lambda": lambda,
                    "buffer_bytes": buffer, "gpu_us": 1e6 * gpu_s / count, "post_us": 1e6 * took.post_s / count,
                    "us": 1e6 * took.seconds / count, "continued": took.begun as f64 / count,
                    "transfer_bytes_per_query": took.list_bytes as f64 / count,
                    "copy_us": 1e6 * took.copy_s / count, "kernel_us": 1e6 * took.kernel_s / count,
                }))?;
            }
        }
        Ok(())
    }

    /// Throughput without a deadline by memory, with the best partition of the model.
    pub(super) fn figure_8(
        &mut self,
        model: &Model,
        demand: &Demand,
        plans: &[Plan],
    ) -> anyhow::Result<()> {
        for of_index in [0.1, 0.2, 0.3, 0.4, 0.6, 0.8] {
            let memory = of_index * self.sizes.index;
            for policy in Policy::ALL {
                for &lambda in lambdas(policy) {
                    let log = (demand, plans);
                    let best = self.sizes.best_partition(
                        model,
                        log,
                        (policy, lambda),
                        (memory, f64::INFINITY),
                    );
                    let Some((part, fitted)) = best else { continue };
                    let cached = self.sizes.admit(demand, policy, part * memory, lambda);
                    let batch = (fitted.buffer, fitted.queries);
                    let post = Post::Overlapped(threads());
                    let took = self.with_cache(plans, (&cached, part * memory), batch, post)?;
                    let row = json!({
                        "row": "wang-figure8", "policy": policy.name(), "lambda": lambda,
                        "memory_of_index": of_index, "cache_of_memory": part,
                    });
                    print(self.both(row, &fitted, (&took, plans.len())))?;
                }
            }
        }
        Ok(())
    }

    /// Throughput and response time under deadlines by lambda, with the best of the partitions near that of the model.
    pub(super) fn figure_9(
        &mut self,
        model: &Model,
        demand: &Demand,
        plans: &[Plan],
    ) -> anyhow::Result<()> {
        let memory = MEMORY * self.sizes.index;
        for deadline_ms in self.args.deadline_ms.clone() {
            for policy in Policy::ALL {
                for &lambda in lambdas(policy) {
                    let (log, deadline_s) = ((demand, plans), deadline_ms / 1e3);
                    let Some((near, _)) = self.sizes.best_partition(
                        model,
                        log,
                        (policy, lambda),
                        (memory, deadline_s),
                    ) else {
                        continue;
                    };
                    let mut best: Option<(Value, f64)> = None;
                    for part in [near - 0.05, near, (near + 0.04).min(0.97)] {
                        let cached = self.sizes.admit(demand, policy, part * memory, lambda);
                        let left = ((1.0 - part) * memory) as u64;
                        let Some(fitted) =
                            self.sizes.fit(model, plans, &cached, (left, deadline_s))
                        else {
                            continue;
                        };
                        let batch = (fitted.buffer, fitted.queries);
                        let post = Post::Overlapped(threads());
                        let took = self.with_cache(plans, (&cached, part * memory), batch, post)?;
                        let rate = plans.len() as f64 / took.seconds;
                        let is_better = best.as_ref().is_none_or(|(_, best)| rate > *best);
                        if took.latency_s <= deadline_s && is_better {
                            let row = json!({
                                "row": "wang-figure9", "policy": policy.name(), "lambda": lambda,
                                "deadline_ms": deadline_ms, "cache_of_memory": part,
                                "cache_of_model": near,
                            });
                            best = Some((self.both(row, &fitted, (&took, plans.len())), rate));
                        }
                    }
                    let none = json!({
                        "row": "wang-figure9", "policy": policy.name(), "lambda": lambda,
                        "deadline_ms": deadline_ms, "queries_per_s": 0.0,
                    });
                    print(best.map_or(none, |(row, _)| row))?;
                }
            }
        }
        Ok(())
    }
}
