//! Figure 10: throughput by k of threads of the CPU, which do the same, of the device with memory of two fifths of the
//! index, and of both together: queries all of whose lists are cached come first to the device, which takes batches from
//! the front, and threads take single ones from the back, until they meet.

use super::super::{print, threads};
use super::figures::MEMORY;
use super::model::{Fitted, Model};
use super::pass::{How, Post};
use super::{Bench, for_best};
use crate::bench::wang::in_threads;
use millrace::gpu::wang::DEFAULT_ROUND;
use millrace::gpu::wang::cache::of_plan;
use millrace::index::cache_plan::{CachedLists, Policy};
use millrace::query::plan::Plan;
use millrace::query::searcher::Searcher;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The paper's gain of the device over eight threads, by k.
const PAPER: [(usize, f64); 4] = [(1, 1.03), (5, 1.19), (10, 1.24), (15, 1.24)];

/// Queries that a thread of the CPU answers.
const OF_A_THREAD: usize = 800;

/// Greatest parts of a list that are tried.
const LAMBDAS: [f64; 3] = [0.85, 0.95, 1.0];

impl Bench<'_> {
    pub(super) fn figure_10(&mut self, model: &Model) -> anyhow::Result<()> {
        let memory = MEMORY * self.sizes.index;
        for (k, paper) in PAPER {
            let plans = for_best(self.test(), k);
            let mut one = 0.0;
            let mut of_eight = 0.0;
            for count in [1, 2, 4, 8, threads()] {
                let some = &plans[..plans.len().min(OF_A_THREAD * count)];
                let rate = some.len() as f64 / in_threads(some, count)?;
                if count == 1 {
                    one = rate;
                }
                if count == 8 {
                    of_eight = rate;
                }
                print(json!({
                    "row": "wang-figure10", "k": k, "cpu_threads": count, "queries_per_s": rate,
                    "times_one_thread": rate / one,
                }))?;
            }
            let demand = self.demand(k)?;
            let mut best: Option<(f64, f64, f64, Fitted, CachedLists)> = None;
            for lambda in LAMBDAS {
                let log = (&demand, &plans[..]);
                let how = (Policy::Vfb, lambda);
                let Some((part, fitted)) =
                    self.sizes.best_partition(model, log, how, (memory, f64::INFINITY))
                else {
                    continue;
                };
                let cached = self.sizes.admit(&demand, Policy::Vfb, part * memory, lambda);
                let batch = (fitted.buffer, fitted.queries);
                let post = Post::Overlapped(threads());
                let took = self.with_cache(&plans, (&cached, part * memory), batch, post)?;
                let rate = plans.len() as f64 / took.seconds;
                if best.as_ref().is_none_or(|best| rate > best.0) {
                    best = Some((rate, lambda, part, fitted, cached));
                }
            }
            let Some((rate, lambda, part, fitted, cached)) = best else { continue };
            let (together, by_device) = self.together(&plans, (&cached, part * memory), &fitted)?;
            print(json!({
                "row": "wang-figure10", "k": k, "engine": "gpu", "lambda": lambda, "cache_of_memory": part,
                "memory_of_index": MEMORY, "queries_per_s": rate, "times_one_thread": rate / one,
                "times_eight_threads": rate / of_eight, "paper_times_eight_threads": paper,
                "together_queries_per_s": together, "together_times_one_thread": together / one,
                "together_by_device": by_device, "cpu_threads": threads(),
            }))?;
        }
        Ok(())
    }

    /// Queries a second of the device and all threads, and the part of the queries that went to the device.
    fn together(
        &mut self,
        plans: &[Plan],
        (cached, bytes): (&CachedLists, f64),
        fitted: &Fitted,
    ) -> anyhow::Result<(f64, f64)> {
        let is_cached = |plan: &Plan| {
            plan.lists_of(0).iter().flatten().all(|entry| cached.blocks(0, entry).is_some())
        };
        let mut plans = plans.to_vec();
        plans.sort_by_key(|plan| !is_cached(plan));
        // The device is fast: small batches, so that it does not take the last ones alone.
        let size = fitted.queries.min(plans.len().div_ceil(8)).max(1);
        self.device.fill(&of_plan(cached), bytes as u64)?;
        let mut room = *self.device.room();
        room.list_bytes = room.list_bytes.min(fitted.buffer as usize);
        let how =
            How { round: DEFAULT_ROUND, queries: size, room, post: Post::Overlapped(threads()) };
        // Queries from the front up to `front` are the device's, those from `back` on that of threads; both in one word.
        let both = AtomicUsize::new(0);
        let all = plans.len();
        let take = |front: usize, back: usize| -> Option<usize> {
            let mut seen = both.load(Ordering::Relaxed);
            loop {
                let (from_front, from_back) = (seen >> 32, seen & 0xffff_ffff);
                let left = all - from_front - from_back;
                if left == 0 {
                    return None;
                }
                let (front, back) = (front.min(left), back.min(left));
                let next = (from_front + front) << 32 | (from_back + back);
                match both.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Some(if front > 0 { from_front } else { all - from_back - 1 }),
                    Err(now) => seen = now,
                }
            }
        };
        let start = Instant::now();
        let work = || -> anyhow::Result<()> {
            let mut searcher = Searcher::new();
            while let Some(at) = take(0, 1) {
                std::hint::black_box(searcher.answer(&plans[at])?);
            }
            Ok(())
        };
        let by_device = std::thread::scope(|scope| -> anyhow::Result<usize> {
            let workers: Vec<_> = (1..threads()).map(|_| scope.spawn(work)).collect();
            let mut by_device = 0;
            while let Some(first) = take(size, 0) {
                let end = both.load(Ordering::Relaxed) >> 32;
                self.device_pass(&plans[first..end], how)?;
                by_device += end - first;
            }
            for worker in workers {
                worker.join().expect("a search panicked")?;
            }
            Ok(by_device)
        })?;
        let count = all as f64;
        Ok((count / start.elapsed().as_secs_f64(), by_device as f64 / count))
    }
}
