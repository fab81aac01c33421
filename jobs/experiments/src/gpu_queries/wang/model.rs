//! The paper's model of throughput (section 4.2.1): TP = 1 / (c(n) + t(S_b) dq(S_c)). c(n) is the
//! time of a query of a batch of n whose lists are all on the device; t(S_b) the time to bring a
//! byte, in batches of S_b. Both are measured. dq(S_c), the bytes that travel for a query, follows
//! from the plan of the cache and the log, and from S_b, which the paper leaves out.

use super::pass::PassSettings;
use super::{BATCH, WangBench, WangLog};
use millrace::inside::index::{CachePolicy, CachedLists, TermEntry};
use millrace::inside::papers::{DEFAULT_ROUND, DevicePart};
use millrace::inside::query::Plan;
use std::collections::{HashMap, HashSet};

/// A measured function, at rising places.
#[derive(Clone, Default)]
pub(super) struct Curve(pub(super) Vec<(f64, f64)>);

impl Curve {
    /// Its value, between two places in proportion to the logarithm; beyond them the nearest.
    pub(super) fn at(&self, x: f64) -> f64 {
        let behind = self.0.partition_point(|point| point.0 < x);
        match (behind.checked_sub(1).map(|before| self.0[before]), self.0.get(behind)) {
            (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x / x0).ln() / (x1 / x0).ln(),
            (Some((_, y)), None) | (None, Some(&(_, y))) => y,
            (None, None) => 0.0,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Batches {
    /// Queries of one, in the mean.
    pub(super) queries: f64,
    /// Bytes of lists that travel for a query.
    pub(super) bytes: f64,
    /// Seconds of a query whose lists are there, in the mean: batches differ in size.
    pub(super) c_s: f64,
}

/// What is measured: seconds of a query by those of a batch, and of a byte by those of a batch.
#[derive(Clone, Default)]
pub(super) struct WangModel {
    pub(super) c: Curve,
    pub(super) t: Curve,
}

/// A partition of the device's memory, and what the model says of it.
#[derive(Clone, Copy)]
pub(super) struct Fitted {
    pub(super) buffer: u64,
    /// Queries of a batch at most.
    pub(super) queries: usize,
    pub(super) batches: Batches,
    pub(super) rate: f64,
    pub(super) response_s: f64,
}

/// Memory of the device, the part of it that caches lists by a policy, and a deadline.
#[derive(Clone, Copy)]
pub(super) struct MemoryPoint {
    pub(super) policy: CachePolicy,
    /// The greatest part of a list that is cached.
    pub(super) lambda: f64,
    pub(super) memory: f64,
    pub(super) part: f64,
    pub(super) deadline_s: f64,
}

impl MemoryPoint {
    pub(super) fn cache(&self) -> f64 {
        self.part * self.memory
    }

    /// Bytes that the cache leaves.
    pub(super) fn left(&self) -> u64 {
        ((1.0 - self.part) * self.memory) as u64
    }
}

/// Parts of the memory that the cache takes.
pub(super) const CACHES: [f64; 10] = [0.1, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Parts of the memory that is left, tried as buffers.
const BUFFERS: u32 = 12;

/// What lists take on the device.
#[derive(Clone, Default)]
pub(super) struct ListSizes {
    /// Bytes of each list that queries ask for.
    pub(super) lists: HashMap<u64, u64>,
    /// Bytes of a list on the device for each on disk.
    pub(super) growth: f64,
    /// Bytes of all lists of the index.
    pub(super) index: f64,
    /// Bytes of lists that travel with a batch at most, as in a query job.
    pub(super) most_buffer: u64,
}

impl ListSizes {
    fn bytes_of(&self, entry: &TermEntry) -> u64 {
        let usual = (entry.bytes as f64 * self.growth) as u64;
        self.lists.get(&entry.offset).copied().unwrap_or(usual)
    }

    pub(super) fn admit(&self, log: &WangLog, at: MemoryPoint) -> CachedLists {
        let bytes = (at.cache() / self.growth) as u64;
        log.demand.admit(at.policy, bytes, at.lambda).cached
    }

    /// The same with the part for the cache that is best by the model.
    pub(super) fn best(&self, log: &WangLog, at: MemoryPoint) -> Option<MemoryPoint> {
        let fits = std::thread::scope(|scope| {
            let fit = |part| {
                let at = MemoryPoint { part, ..at };
                scope.spawn(move || Some((at, self.fit(log, at)?.1.rate)))
            };
            CACHES.map(fit).map(|part| part.join().expect("a thread panicked"))
        });
        let best = fits.into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(at, _)| at)
    }

    /// Batches of the queries, with what is cached, that take at most this many bytes and queries.
    pub(super) fn simulate(
        &self,
        log: &WangLog,
        cached: &CachedLists,
        buffer: u64,
        most: usize,
    ) -> Batches {
        let mut travels = HashSet::new();
        let mut bytes = 0;
        let mut queries = 0;
        let mut all_bytes = 0u64;
        let mut batches = 1u64;
        let of_batch = |queries: usize| queries as f64 * log.model.c.at(queries as f64);
        let mut c_s = 0.0;
        for plan in &log.plans {
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
                bytes = 0;
                queries = 0;
                batches += 1;
                here = more(&mut travels);
            }
            bytes += here;
            queries += 1;
        }
        let count = log.plans.len().max(1) as f64;
        Batches {
            queries: count / batches as f64,
            bytes: (all_bytes + bytes) as f64 / count,
            c_s: (c_s + of_batch(queries)) / count,
        }
    }

    /// What is cached; and the greatest buffer, of what the cache leaves of the memory, whose
    /// batches are answered in time. None if even the smallest takes longer.
    pub(super) fn fit(&self, log: &WangLog, at: MemoryPoint) -> Option<(CachedLists, Fitted)> {
        let cached = self.admit(log, at);
        let largest = self.largest_query(&log.plans);
        let fitted = (1..=BUFFERS).rev().find_map(|part| {
            let most = at.left().min(self.most_buffer);
            let buffer = most / u64::from(BUFFERS) * u64::from(part);
            let mut queries = BATCH;
            if buffer < largest {
                return None;
            }
            loop {
                let batches = self.simulate(log, &cached, buffer, queries);
                let seconds = batches.c_s + log.model.t.at(buffer as f64) * batches.bytes;
                let rate = 1.0 / seconds;
                let response_s = batches.queries * seconds;
                let fitted = Fitted { buffer, queries, batches, rate, response_s };
                if response_s <= at.deadline_s {
                    return Some(fitted);
                }
                // A smaller buffer first, as in the paper; with the smallest, fewer queries.
                if part > 1 || queries < 2 {
                    return None;
                }
                queries /= 2;
            }
        });
        Some((cached, fitted?))
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

impl WangBench<'_> {
    /// Measures c by n, with all lists of the queries on the device, and t by S_b, with none.
    pub(super) fn measure(&mut self, plans: &[Plan]) -> anyhow::Result<WangModel> {
        let mut model = WangModel::default();
        let room = *self.device.room();
        let all =
            self.asked.iter().map(|&entry| DevicePart::whole([Some(entry)])).collect::<Vec<_>>();
        self.device.fill(&all, self.device.cache_room())?;
        let most = BATCH.min(plans.len());
        let mut queries = most.min(32);
        loop {
            // Small batches of some queries take long enough.
            let some = plans.len().min(queries * 64);
            // Whole batches: c is that of a batch of just this many.
            let some = &plans[..some - some % queries];
            let how =
                PassSettings { round: DEFAULT_ROUND, queries, room, behind: false, beside: false };
            let took = self.middle_pass(some, how)?;
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
            let mut how = PassSettings {
                round: DEFAULT_ROUND,
                queries: usize::MAX,
                room,
                behind: false,
                beside: false,
            };
            how.room.list_bytes = buffer as usize;
            let took = self.middle_pass(some, how)?;
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
