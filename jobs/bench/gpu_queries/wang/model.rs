//! The paper's model of throughput (section 4.2.1): TP = 1 / (c(n) + t(S_b) dq(S_c)). c(n) is the time of a query of a
//! batch of n whose lists are all on the device; t(S_b) the time to bring a byte, in batches of S_b; dq(S_c) the bytes
//! that travel for a query. The first two are measured. The last follows from the plan of the cache and the log: lists
//! travel once for all queries of a batch, so that it depends on S_b as well, which the paper leaves out.

use super::super::threads;
use super::Bench;
use super::pass::{How, Post};
use millrace::gpu::wang::DEFAULT_ROUND;
use millrace::index::cache_plan::{CachedLists, Policy};
use millrace::index::lexicon::TermEntry;
use millrace::query::caching::Demand;
use millrace::query::plan::Plan;
use std::collections::{HashMap, HashSet};

/// A measured function, at rising places.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve(pub(super) Vec<(f64, f64)>);

impl Curve {
    /// Its value, between two places in proportion to the logarithm; beyond them that of the nearest.
    pub(super) fn at(&self, x: f64) -> f64 {
        let behind = self.0.partition_point(|point| point.0 < x);
        match (behind.checked_sub(1).map(|before| self.0[before]), self.0.get(behind)) {
            (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x / x0).ln() / (x1 / x0).ln(),
            (Some((_, y)), None) | (None, Some(&(_, y))) => y,
            (None, None) => 0.0,
        }
    }
}

/// What batches come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batches {
    /// Queries of one, in the mean.
    pub(super) queries: f64,
    /// Bytes of lists that travel for a query.
    pub(super) bytes: f64,
    /// Of the lists that queries ask for, the share that has something on the device.
    pub(super) hits: f64,
    /// Seconds of a query whose lists are there, in the mean: batches differ in size, the last one most.
    pub(super) c_s: f64,
}

/// What is measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// Seconds of a query, by queries of a batch.
    pub(super) c: Curve,
    /// Seconds of a byte, by bytes of a batch.
    pub(super) t: Curve,
}

/// A partition of the device's memory, and what the model says of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fitted {
    /// Bytes for batches.
    pub(super) buffer: u64,
    /// Queries of a batch at most.
    pub(super) queries: usize,
    /// What batches come to.
    pub(super) batches: Batches,
    /// Queries a second.
    pub(super) rate: f64,
    /// Seconds of a batch.
    pub(super) response_s: f64,
}

/// Parts of the memory that the cache takes.
pub(super) const CACHES: [f64; 14] =
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Parts of the memory that is left, tried as buffers.
const BUFFERS: u32 = 12;

/// What lists take on the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// Bytes of each list that queries ask for.
    pub(super) lists: HashMap<u64, u64>,
    /// Bytes of a list on the device for each on disk.
    pub(super) growth: f64,
    /// Bytes of all lists of the index.
    pub(super) index: f64,
}

impl Sizes {
    /// Bytes of a list.
    fn bytes_of(&self, entry: &TermEntry) -> u64 {
        let usual = (entry.bytes as f64 * self.growth) as u64;
        self.lists.get(&entry.offset).copied().unwrap_or(usual)
    }

    /// What a cache of so many bytes of the device's memory admits.
    pub(super) fn admit(
        &self,
        demand: &Demand,
        policy: Policy,
        bytes: f64,
        lambda: f64,
    ) -> CachedLists {
        demand.admit(policy, (bytes / self.growth) as u64, lambda).cached
    }

    /// The best partition of a memory by the model: the part of the cache, and what was fitted.
    pub(super) fn best_partition(
        &self,
        model: &Model,
        (demand, plans): (&Demand, &[Plan]),
        (policy, lambda): (Policy, f64),
        (memory, deadline_s): (f64, f64),
    ) -> Option<(f64, Fitted)> {
        let fit = |part: f64| {
            let cached = self.admit(demand, policy, part * memory, lambda);
            let left = ((1.0 - part) * memory) as u64;
            Some((part, self.fit(model, plans, &cached, (left, deadline_s))?))
        };
        let fits = std::thread::scope(|scope| {
            let fit = &fit;
            let parts = CACHES.map(|part| scope.spawn(move || fit(part)));
            parts.map(|part| part.join().expect("a thread panicked"))
        });
        fits.into_iter().flatten().max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))
    }

    /// Batches of queries, with what is cached, that take at most so many bytes and queries, if c is as given.
    pub(super) fn simulate(
        &self,
        c: &Curve,
        plans: &[Plan],
        cached: &CachedLists,
        (buffer, most): (u64, usize),
    ) -> Batches {
        let (mut travels, mut bytes, mut queries) = (HashSet::new(), 0, 0);
        let (mut all_bytes, mut batches, mut lists, mut hits) = (0u64, 1u64, 0u64, 0u64);
        let of_batch = |queries: usize| queries as f64 * c.at(queries as f64);
        let mut c_s = 0.0;
        for plan in plans {
            let more = |travels: &mut HashSet<u64>| -> u64 {
                let entries = plan.lists_of(0).iter().flatten();
                let away = entries.filter(|entry| cached.blocks(0, entry).is_none());
                away.filter(|entry| travels.insert(entry.offset))
                    .map(|entry| self.bytes_of(entry))
                    .sum()
            };
            let mut here = more(&mut travels);
            if queries > 0 && (bytes + here > buffer || queries == most) {
                all_bytes += bytes;
                c_s += of_batch(queries);
                travels.clear();
                (bytes, queries, batches) = (0, 0, batches + 1);
                here = more(&mut travels);
            }
            (bytes, queries) = (bytes + here, queries + 1);
            for entry in plan.lists_of(0).iter().flatten() {
                lists += 1;
                hits += u64::from(cached.blocks(0, entry).is_some());
            }
        }
        let count = plans.len().max(1) as f64;
        Batches {
            queries: count / batches as f64,
            bytes: (all_bytes + bytes) as f64 / count,
            hits: hits as f64 / lists.max(1) as f64,
            c_s: (c_s + of_batch(queries)) / count,
        }
    }

    /// The greatest buffer, of what a cache leaves of the memory, whose batches are answered within so many seconds, and
    /// what the model says of it. None if even the smallest takes longer.
    pub(super) fn fit(
        &self,
        model: &Model,
        plans: &[Plan],
        cached: &CachedLists,
        (left, deadline_s): (u64, f64),
    ) -> Option<Fitted> {
        let largest = self.largest_query(plans);
        (1..=BUFFERS).rev().find_map(|part| {
            let buffer = left / u64::from(BUFFERS) * u64::from(part);
            let mut queries = super::BATCH_OF_FIGURES;
            if buffer < largest {
                return None;
            }
            loop {
                let batches = self.simulate(&model.c, plans, cached, (buffer, queries));
                let seconds = batches.c_s + model.t.at(buffer as f64) * batches.bytes;
                let (rate, response_s) = (1.0 / seconds, batches.queries * seconds);
                let fitted = Fitted { buffer, queries, batches, rate, response_s };
                if response_s <= deadline_s {
                    return Some(fitted);
                }
                // A smaller buffer first, as in the paper; with the smallest, fewer queries.
                if part > 1 || queries < 2 {
                    return None;
                }
                queries /= 2;
            }
        })
    }

    /// Bytes of the lists of the query that has most of them.
    pub(super) fn largest_query(&self, plans: &[Plan]) -> u64 {
        let of = |plan: &Plan| -> u64 {
            let entries = plan.lists_of(0).iter().flatten();
            entries.map(|entry| self.bytes_of(entry)).sum()
        };
        plans.iter().map(of).max().unwrap_or(0)
    }
}

impl Bench<'_> {
    /// Measures c by n, with all lists of the queries on the device, and t by S_b, with none.
    pub(super) fn measure(&mut self, plans: &[Plan]) -> anyhow::Result<Model> {
        let mut model = Model::default();
        let room = *self.device.room();
        let post = Post::Overlapped(threads());
        let all = self.asked.iter().map(|&entry| (entry, None)).collect::<Vec<_>>();
        self.device.fill(&all, self.device.cache_room())?;
        let most = super::BATCH_OF_FIGURES.min(plans.len());
        let mut queries = most.min(32);
        loop {
            // Small batches of some queries take long enough.
            let some = plans.len().min(queries * 64);
            // Whole batches: c is that of a batch of just so many.
            let some = &plans[..some - some % queries];
            let how = How { round: DEFAULT_ROUND, queries, room, post };
            let took = self.best_pass(some, how)?;
            model.c.0.push((queries as f64, took.seconds / some.len() as f64));
            if queries == most {
                break;
            }
            queries = most.min(2 * queries);
        }
        self.device.fill(&[], 0)?;
        let least = self.sizes.largest_query(plans).next_power_of_two();
        let mut buffer = room.list_bytes as u64;
        let mut points = Vec::new();
        while points.is_empty() || (buffer >= least && points.len() < 6) {
            let some = &plans[..plans.len().min(2000)];
            let mut how = How { round: DEFAULT_ROUND, queries: usize::MAX, room, post };
            how.room.list_bytes = buffer as usize;
            let took = self.best_pass(some, how)?;
            let bytes = took.list_bytes.max(1) as f64;
            // By what batches of that size had, which may be less than there is room for.
            let of_batch = (took.list_bytes / took.batches as u64) as f64;
            points.push((of_batch, took.copy_s / bytes));
            buffer /= 2;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        model.t.0 = points;
        Ok(model)
    }
}
