//! The experiments of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu on devices; `docs/papers.md`
//! names them. Those of one core are `experiments cpu-queries`.
//!
//! The paper does not say what the average time of a query is. `us` is the time of all batches,
//! from the copy of the queries, and the lists that travel, to the hits in host memory, over the
//! number of queries; `latency_ms` is the mean time of the batch that a query is in. Ways with
//! `shared` have one threshold for all threads of a query, which the paper has not.

use super::Args;
use super::harness::{
    AnswerTimes, PlannedQuery, PreparedBench, batches_of, expected, has_room, hits, passes,
    run_wanted, with,
};
use crate::args::explain;
use crate::rows::print;
use millrace::inside::gpu::{
    BATCH, BLOCK, DEFAULT_THREADS, DeviceMethod as _, HuangTuning, MethodBatch, MethodDevice,
    THREADS, Traversal, check_lists, huang_shared_bytes,
};
use millrace::{Mode, Query, Scoring, Wanted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A way to find documents: its name, which documents match, and how threads go through lists.
#[derive(Clone, Copy)]
struct HuangWay {
    name: &'static str,
    mode: Mode,
    traversal: Traversal,
    shared_threshold: bool,
}

impl HuangWay {
    /// Has a batch answered so.
    fn tell(self, batch: &mut MethodBatch<HuangTuning>) {
        batch.all_terms = self.mode == Mode::And;
        batch.how.traversal = self.traversal;
        batch.how.shared_threshold = self.shared_threshold;
    }
}

const OF_PAPER: usize = 4;

/// The paper's, and two of them with one threshold for all threads of a query.
fn ways() -> [HuangWay; 6] {
    let any = |name, traversal, shared_threshold| HuangWay {
        name,
        mode: Mode::Or,
        traversal,
        shared_threshold,
    };
    [
        HuangWay { mode: Mode::And, ..any("and", Traversal::Exhaustive, false) },
        any("or", Traversal::Exhaustive, false),
        any("wand", Traversal::Wand, false),
        any("bmw", Traversal::Bmw, false),
        any("wand, shared", Traversal::Wand, true),
        any("bmw, shared", Traversal::Bmw, true),
    ]
}

/// How many hits the paper asks for.
const KS: [u32; 3] = [1, 10, 20];

/// Every device has so many batches of a pass of table 3 if all of them work. One alone has batches
/// of the same size: they take as long as their longest queries, so that smaller ones would hardly
/// take less.
const BATCHES_OF_DEVICE: usize = 2;

/// Fewer queries have no time of their own.
const LEAST_QUERIES: usize = 16;

/// Queries of figure 5.
const STAGED: usize = 1000;

pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let prepared =
        PreparedBench::new(args, queries, Scoring::default(), Wanted::default(), usize::MAX)?;
    check_lists::<HuangTuning>(prepared.snapshot.generation()).map_err(explain)?;
    let start = Instant::now();
    let device = open(&prepared, 0)?;
    let cache = device.cache();
    let lists = json!({
        "lists": cache.len(), "left_out": cache.left_out(), "bytes": cache.bytes(),
        "load_s": start.elapsed().as_secs_f64(),
    });
    prepared.load("huang-load", device.device(), lists)?;
    // A cell of it can be asked for: huang-table1-64-10 has 64 threads and k 10.
    let cell = args.only.as_deref().filter(|only| only.starts_with("huang-table1-"));
    let mut bench = HuangBench { prepared: &prepared, devices: vec![device] };
    run_wanted(
        args,
        &mut bench,
        &[
            ("huang-check", HuangBench::check),
            (cell.unwrap_or("huang-table1"), HuangBench::table_1),
            ("huang-figure3", HuangBench::figure_3),
            ("huang-figure4", HuangBench::figure_4),
            ("huang-figure5", HuangBench::figure_5),
            ("huang-table3", HuangBench::table_3),
        ],
    )
}

fn open(prepared: &PreparedBench<'_>, number: usize) -> anyhow::Result<MethodDevice<HuangTuning>> {
    let mut device = prepared.open(number, prepared.args.batch_or(BATCH), 1000, None)?;
    device.bring(&HuangTuning::default())?;
    Ok(device)
}

/// Blocks of the lists of a query.
fn blocks(planned: &PlannedQuery) -> u64 {
    planned.terms.iter().map(|term| u64::from(term.df).div_ceil(BLOCK as u64)).sum()
}

/// Finished batches for each device; on each one lists lie in other places.
struct MadeBatches {
    of_devices: Vec<Vec<MethodBatch<HuangTuning>>>,
    k: u32,
    threads: u32,
    queries: usize,
}

struct HuangBench<'a> {
    prepared: &'a PreparedBench<'a>,
    devices: Vec<MethodDevice<HuangTuning>>,
}

impl<'a> HuangBench<'a> {
    /// Batches of at most so many queries, for so many devices.
    fn make(
        &mut self,
        planned: &[&PlannedQuery],
        k: u32,
        threads: u32,
        devices: usize,
        size: usize,
    ) -> anyhow::Result<MadeBatches> {
        let mut of_devices = Vec::new();
        let how = HuangTuning { threads, ..HuangTuning::default() };
        for device in self.devices.iter_mut().take(devices) {
            let queries = planned.iter().map(|planned| planned.asked());
            of_devices.push(batches_of(device, how, false, queries, k, size)?);
        }
        Ok(MadeBatches { of_devices, k, threads, queries: planned.len() })
    }

    /// The same for the first device, of as many queries as are asked for.
    fn make_one(
        &mut self,
        planned: &[&PlannedQuery],
        k: u32,
        threads: u32,
    ) -> anyhow::Result<MadeBatches> {
        let size = self.prepared.args.batch_or(BATCH);
        self.make(planned, k, threads, 1, size)
    }

    /// Answers all batches; devices take the next one when they have ended one.
    fn pass(&mut self, made: &mut MadeBatches, way: HuangWay) -> anyhow::Result<AnswerTimes> {
        let next = AtomicUsize::new(0);
        let work = |device: &mut MethodDevice<HuangTuning>,
                    batches: &mut [MethodBatch<HuangTuning>]|
         -> anyhow::Result<AnswerTimes> {
            let mut all = AnswerTimes::default();
            while let Some(batch) = batches.get_mut(next.fetch_add(1, Ordering::Relaxed)) {
                way.tell(batch);
                all += AnswerTimes::of(batch.len(), || {
                    std::hint::black_box(device.answer(batch)?);
                    Ok(device.took_ms()?)
                })?;
            }
            Ok(all)
        };
        let work = &work;
        let parts: Vec<_> = std::thread::scope(|scope| {
            let each = self.devices.iter_mut().zip(&mut made.of_devices);
            let threads: Vec<_> =
                each.map(|(device, batches)| scope.spawn(move || work(device, batches))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
        });
        let mut all = AnswerTimes::default();
        for part in parts {
            all += part?;
        }
        Ok(all)
    }

    /// Prints a row for each way, with more by the place of the way and the time of a query.
    fn rows(
        &mut self,
        row: &str,
        made: &mut MadeBatches,
        ways: &[HuangWay],
        mut more: impl FnMut(usize, f64) -> Value,
    ) -> anyhow::Result<()> {
        for (place, &way) in ways.iter().enumerate() {
            let took = passes(self.prepared.args.seconds / 4.0, || self.pass(made, way))?;
            let row = json!({
                "row": row, "way": way.name, "k": made.k, "threads": made.threads,
                "queries": made.queries, "batch": made.queries / made.of_devices[0].len(),
                "us": took.us(), "latency_ms": 1e3 * took.latency_s / took.queries,
                "device_us": took.device_us(),
            });
            print(with(row, more(place, took.us())))?;
        }
        Ok(())
    }

    /// The paper's numbers of threads for which the device has the shared memory.
    fn threads(&self) -> Vec<u32> {
        let planned = &self.prepared.planned;
        let terms = planned.iter().map(|planned| planned.terms.len()).max().unwrap_or(0);
        let room = self.devices[0].room().shared_bytes;
        let fits = |threads: &u32| {
            has_room(huang_shared_bytes(*threads, terms), room, "threads", *threads)
        };
        THREADS.into_iter().filter(fits).collect()
    }

    /// Compares a sample of answers: with all numbers of threads for the best 10 alone.
    fn check(&mut self) -> anyhow::Result<()> {
        let sample = self.prepared.sample();
        for k in [10, 1, 20, 1000] {
            let all = expected(&sample, Mode::And, k)?;
            let any = expected(&sample, Mode::Or, k)?;
            let usual = |threads: &u32| k == 10 || *threads == DEFAULT_THREADS;
            for threads in self.threads().into_iter().filter(usual) {
                let mut made = self.make_one(&sample, k, threads)?;
                for way in ways() {
                    let mut found = Vec::with_capacity(sample.len());
                    for batch in &mut made.of_devices[0] {
                        way.tell(batch);
                        found.extend(hits(self.devices[0].answer(batch)?));
                    }
                    let expected = if way.mode == Mode::And { &all } else { &any };
                    let row = json!({
                        "row": "huang-check", "way": way.name, "k": k, "threads": threads,
                    });
                    self.prepared.compare(row, &sample, &found, expected)?;
                }
            }
        }
        Ok(())
    }

    fn table_1(&mut self) -> anyhow::Result<()> {
        let all = self.prepared.some(usize::MAX);
        for threads in self.threads() {
            for k in KS {
                if self.prepared.args.wants(&format!("huang-table1-{threads}-{k}")) {
                    let mut made = self.make_one(&all, k, threads)?;
                    self.rows("huang-table1", &mut made, &ways(), |_, _| json!({}))?;
                }
            }
        }
        Ok(())
    }

    /// Queries by the next power of two of their blocks.
    fn by_blocks(&self) -> BTreeMap<u64, Vec<&'a PlannedQuery>> {
        let mut bins: BTreeMap<u64, Vec<&PlannedQuery>> = BTreeMap::new();
        for planned in &self.prepared.planned {
            bins.entry(blocks(planned).next_power_of_two()).or_default().push(planned);
        }
        bins
    }

    fn figure_3(&mut self) -> anyhow::Result<()> {
        for (upto, queries) in self.by_blocks() {
            if queries.len() < LEAST_QUERIES {
                continue;
            }
            let mut made = self.make_one(&queries, 10, DEFAULT_THREADS)?;
            let upto = json!({"blocks_upto": upto});
            self.rows("huang-figure3", &mut made, &ways()[..OF_PAPER], |_, _| upto.clone())?;
        }
        Ok(())
    }

    fn figure_4(&mut self) -> anyhow::Result<()> {
        let all = self.prepared.planned.len() as f64;
        let mut upto_here = 0.0;
        for (upto, queries) in self.by_blocks() {
            let share = queries.len() as f64 / all;
            upto_here += share;
            print(json!({
                "row": "huang-figure4", "blocks_upto": upto, "queries": queries.len(),
                "share": share, "share_upto": upto_here,
            }))?;
        }
        Ok(())
    }

    /// Of some queries, by cycles of multiprocessors.
    fn figure_5(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(STAGED);
        for threads in self.threads().into_iter().filter(|n| (..=256).contains(n)) {
            let mut made = self.make_one(&queries, 10, threads)?;
            let device = &mut self.devices[0];
            for way in &ways()[..OF_PAPER] {
                let mut sums = [0.0; 3];
                for batch in &mut made.of_devices[0] {
                    way.tell(batch);
                    batch.how.timed = true;
                    device.time_steps(batch, &HuangTuning::steps(batch))?;
                    for stages in batch.stages(device.output()) {
                        let of = [stages.initialization, stages.scoring, stages.merging];
                        sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of as f64);
                    }
                }
                let all: f64 = sums.iter().sum();
                let [initialization, scoring, merging] = sums.map(|sum| sum / all);
                print(json!({
                    "row": "huang-figure5", "way": way.name, "k": 10, "threads": threads,
                    "queries": queries.len(), "initialization": initialization, "scoring": scoring,
                    "merging": merging, "cycles_per_query": all / queries.len() as f64,
                }))?;
            }
        }
        Ok(())
    }

    /// On one device, two, and so on.
    fn table_3(&mut self) -> anyhow::Result<()> {
        let all = self.prepared.some(usize::MAX);
        for number in self.devices.len()..self.prepared.devices.len() {
            self.devices.push(open(self.prepared, number)?);
        }
        let counts = (0..=self.devices.len().ilog2()).map(|power| 1 << power);
        let most = 1 << self.devices.len().ilog2();
        let size = all.len().div_ceil(BATCHES_OF_DEVICE * most);
        let size = size.clamp(1, self.prepared.args.batch_or(BATCH));
        for threads in self.threads().into_iter().filter(|n| (64..=256).contains(n)) {
            let mut one_us = [0.0; OF_PAPER];
            for count in counts.clone() {
                let mut made = self.make(&all, 10, threads, count, size)?;
                self.rows("huang-table3", &mut made, &ways()[..OF_PAPER], |place, us| {
                    if count == 1 {
                        one_us[place] = us;
                    }
                    json!({"gpus": count, "times_one": one_us[place] / us})
                })?;
            }
        }
        Ok(())
    }
}
