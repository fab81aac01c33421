//! The experiments of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu on devices;
//! `docs/inside/papers.md` names them.
//!
//! The paper does not say what the average time of a query is. `us` is the time of all batches,
//! from planned queries to the hits in host memory, over the number of queries: making the batches
//! (`prepare_us`), the copies of queries and of the lists that travel, and kernels. `latency_ms` is
//! the mean time of the batch that a query is in.

use super::Args;
use super::harness::{
    AnswerTimes, PlannedQuery, PreparedBench, answer_all, batches_of, expected, has_room, hits,
    passes, run_wanted, wanting, with,
};
use crate::args::explain;
use crate::numbers::{PASSES, middle, uniform};
use crate::rows::print;
use crate::threads::threads;
use millrace::inside::papers::{
    ALGORITHMS, BATCH, BLOCK, DEFAULT_THREADS, DeviceMethod as _, HuangTuning, MethodBatch,
    MethodDevice, THREADS, Traversal, check_lists, huang_shared_bytes,
};
use millrace::inside::query::Plan;
use millrace::{Algorithm, Mode, Query, Scoring, Wanted};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A way to find documents: its name, which documents match, how threads go through lists, and the
/// same on the CPU.
#[derive(Clone, Copy)]
struct HuangWay {
    name: &'static str,
    mode: Mode,
    traversal: Traversal,
    shared_threshold: bool,
    on_cpu: Algorithm,
}

impl HuangWay {
    fn wanted(self, k: u32) -> Wanted {
        Wanted { k: k as usize, mode: self.mode, algorithm: self.on_cpu, ..Wanted::default() }
    }
}

const OF_PAPER: usize = 4;

/// The paper's, and two of them with one threshold for all threads of a query, which it has not.
fn ways() -> [HuangWay; 6] {
    let any = |name, traversal, shared_threshold, on_cpu| HuangWay {
        name,
        mode: Mode::Or,
        traversal,
        shared_threshold,
        on_cpu,
    };
    let of_paper = |name| Algorithm::among(name, ALGORITHMS).expect("the paper has it");
    let (wand, bmw) = (of_paper("wand"), of_paper("bmw"));
    let or = any("or", Traversal::Exhaustive, false, Algorithm::Exhaustive);
    [
        HuangWay { name: "and", mode: Mode::And, on_cpu: Algorithm::Galloping, ..or },
        or,
        any("wand", Traversal::Wand, false, wand),
        any("bmw", Traversal::Bmw, false, bmw),
        any("wand, shared", Traversal::Wand, true, wand),
        any("bmw, shared", Traversal::Bmw, true, bmw),
    ]
}

/// How many hits the paper asks for.
const KS: [u32; 3] = [1, 10, 20];

/// Every device has this many batches of a pass of table 3 if all of them work. One alone has
/// batches of the same size: they take as long as their longest queries, so that smaller ones would
/// hardly take less.
const BATCHES_OF_DEVICE: usize = 2;

/// Queries of table 3.
const OF_SEVERAL: usize = 4096;

/// Classes of queries of figures 3 and 4, by blocks, of as many each.
const CLASSES: usize = 10;

/// Queries of figure 5, and those that one core of the CPU answers in turn.
const STAGED: usize = 1000;

/// The parts of the queries that thresholds of figure 6 give to the device.
const BELOW: [f64; 7] = [0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.995];

/// By what table 2 of the paper has less time for LBD than for SD, in percent, with 64 threads.
const TABLE_2: [f64; OF_PAPER] = [49.76, 50.06, 44.54, 62.30];

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
    // A part can be asked for: huang-table1-10-64 has k 10 and 64 threads.
    let part = |name| args.only.as_deref().filter(|only| only.starts_with(name)).unwrap_or(name);
    let mut bench = HuangBench { prepared: &prepared, devices: vec![device] };
    run_wanted(
        args,
        &mut bench,
        &[
            ("huang-check", HuangBench::check),
            (part("huang-table1"), HuangBench::table_1),
            ("huang-figure3", HuangBench::figure_3),
            ("huang-figure5", HuangBench::figure_5),
            (part("huang-table2"), HuangBench::table_2),
            (part("huang-table3"), HuangBench::table_3),
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

/// How queries are answered, in batches of at most `size`.
#[derive(Clone, Copy)]
struct HuangRun {
    way: HuangWay,
    k: u32,
    threads: u32,
    size: usize,
}

impl HuangRun {
    fn batches(
        self,
        device: &mut MethodDevice<HuangTuning>,
        queries: &[&PlannedQuery],
    ) -> anyhow::Result<Vec<MethodBatch<HuangTuning>>> {
        let how = HuangTuning {
            threads: self.threads,
            traversal: self.way.traversal,
            shared_threshold: self.way.shared_threshold,
            ..HuangTuning::default()
        };
        let asked = queries.iter().map(|planned| planned.asked());
        batches_of(device, how, self.way.mode == Mode::And, asked, self.k, self.size)
    }

    fn answer(
        self,
        device: &mut MethodDevice<HuangTuning>,
        queries: &[&PlannedQuery],
    ) -> anyhow::Result<AnswerTimes> {
        let mut all = AnswerTimes::default();
        for some in queries.chunks(self.size) {
            let start = Instant::now();
            let batches = self.batches(device, some)?;
            all.prepare_s += start.elapsed().as_secs_f64();
            for batch in batches {
                all += AnswerTimes::of(batch.len(), || {
                    std::hint::black_box(device.answer(&batch)?);
                    Ok(device.took_ms()?)
                })?;
            }
        }
        Ok(all)
    }
}

struct HuangBench<'a> {
    prepared: &'a PreparedBench<'a>,
    devices: Vec<MethodDevice<HuangTuning>>,
}

impl<'a> HuangBench<'a> {
    fn run(&self, way: HuangWay, k: u32, threads: u32) -> HuangRun {
        HuangRun { way, k, threads, size: self.prepared.args.batch_or(BATCH) }
    }

    /// Answers queries on some devices, which take the next batch when they have ended one.
    fn pass(
        &mut self,
        queries: &[&PlannedQuery],
        run: HuangRun,
        devices: usize,
    ) -> anyhow::Result<AnswerTimes> {
        let next = AtomicUsize::new(0);
        let work = |device: &mut MethodDevice<HuangTuning>| -> anyhow::Result<AnswerTimes> {
            let mut all = AnswerTimes::default();
            while let Some(some) =
                queries.chunks(run.size).nth(next.fetch_add(1, Ordering::Relaxed))
            {
                all += run.answer(device, some)?;
            }
            Ok(all)
        };
        let work = &work;
        let parts: Vec<_> = std::thread::scope(|scope| {
            let devices = self.devices.iter_mut().take(devices);
            let threads: Vec<_> = devices.map(|device| scope.spawn(move || work(device))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
        });
        let mut all = AnswerTimes::default();
        for part in parts {
            all += part?;
        }
        Ok(all)
    }

    /// Prints what a way takes on some devices, with more; returns the microseconds of a query.
    fn row(
        &mut self,
        row: &str,
        queries: &[&PlannedQuery],
        run: HuangRun,
        devices: usize,
        more: &Value,
    ) -> anyhow::Result<f64> {
        let took = passes(self.prepared.args.seconds / 4.0, || self.pass(queries, run, devices))?;
        let mut row = json!({
            "row": row, "way": run.way.name, "k": run.k, "threads": run.threads,
            "queries": queries.len(), "batch": run.size.min(queries.len()), "us": took.us(),
            "prepare_us": 1e6 * took.prepare_s / took.queries,
            "latency_ms": 1e3 * took.latency_s / took.queries, "device_us": took.device_us(),
        });
        if let Some(cores) = more["best_all_cores_us"].as_f64() {
            row["over_all_cores"] = json!(cores / took.us());
        }
        print(with(row, more.clone()))?;
        Ok(took.us())
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
                for way in ways() {
                    let run = self.run(way, k, threads);
                    let device = &mut self.devices[0];
                    let mut found = Vec::with_capacity(sample.len());
                    for batch in run.batches(device, &sample)? {
                        found.extend(hits(device.answer(&batch)?));
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
        for k in KS {
            let wants = |n: &u32| self.prepared.args.wants(&format!("huang-table1-{k}-{n}"));
            let threads: Vec<u32> = self.threads().into_iter().filter(wants).collect();
            if threads.is_empty() {
                continue;
            }
            for &way in &ways()[..OF_PAPER] {
                let beside = self.prepared.beside(&all, way.wanted(k), STAGED)?;
                for &threads in &threads {
                    self.row("huang-table1", &all, self.run(way, k, threads), 1, &beside)?;
                }
            }
        }
        Ok(())
    }

    /// Figures 3 and 4: by the blocks of queries.
    fn figure_3(&mut self) -> anyhow::Result<()> {
        let mut all = self.prepared.some(usize::MAX);
        all.sort_by_key(|planned| blocks(planned));
        let size = all.len().div_ceil(CLASSES);
        for (number, queries) in all.chunks(size).enumerate() {
            let upto = queries.last().map(|planned| blocks(planned));
            let share = (number * size + queries.len()) as f64 / all.len() as f64;
            for &way in &ways()[..OF_PAPER] {
                let beside = self.prepared.beside(queries, way.wanted(10), STAGED / CLASSES)?;
                let more = with(json!({"blocks_upto": upto, "share_upto": share}), beside);
                let run = self.run(way, 10, DEFAULT_THREADS);
                self.row("huang-figure3", queries, run, 1, &more)?;
            }
        }
        Ok(())
    }

    /// Of some queries, by cycles of multiprocessors.
    fn figure_5(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(STAGED);
        for threads in self.threads().into_iter().filter(|n| (..=256).contains(n)) {
            for &way in &ways()[..OF_PAPER] {
                let run = self.run(way, 10, threads);
                let device = &mut self.devices[0];
                let mut sums = [0.0; 3];
                for mut batch in run.batches(device, &queries)? {
                    batch.how.timed = true;
                    device.time_steps(&batch, &HuangTuning::steps(&batch))?;
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

    /// Microseconds of a query, of which a device answers some, and `cores` of the CPU the others,
    /// one of them less if it has to feed the device; of the middle pass.
    fn together(
        &mut self,
        run: HuangRun,
        queries: &[&PlannedQuery],
        cores: usize,
        on_device: impl Fn(usize) -> bool,
    ) -> anyhow::Result<f64> {
        let (of_device, of_cpu): (Vec<_>, Vec<_>) =
            queries.iter().copied().enumerate().partition(|&(at, _)| on_device(at));
        let of_device: Vec<&PlannedQuery> = of_device.into_iter().map(|(_, query)| query).collect();
        let of_cpu = of_cpu.into_iter().map(|(_, query)| query);
        let plans = wanting(of_cpu, run.way.wanted(run.k));
        let cores = if of_device.is_empty() { cores } else { (cores - 1).max(1) };
        let device = &mut self.devices[0];
        let plans: Vec<&Plan> = plans.iter().collect();
        let pass = || {
            let start = Instant::now();
            std::thread::scope(|scope| {
                let fed = scope.spawn(|| run.answer(device, &of_device));
                answer_all(&plans, cores)?;
                fed.join().expect("a thread panicked")
            })?;
            Ok(1e6 * start.elapsed().as_secs_f64() / queries.len() as f64)
        };
        Ok(middle(PASSES, |&us| us, pass)?.middle)
    }

    /// Table 2 and figures 6 and 7: LBD gives queries of fewer blocks to the device, by the best
    /// of several thresholds, and SD every other one by chance.
    fn table_2(&mut self) -> anyhow::Result<()> {
        for (name, cores, most) in [("all", threads(), usize::MAX), ("one", 1, STAGED)] {
            let queries = self.prepared.some(most);
            let mut sorted: Vec<u64> = queries.iter().map(|planned| blocks(planned)).collect();
            sorted.sort_unstable();
            let mut chance = uniform(7);
            let halves: Vec<bool> = queries.iter().map(|_| chance() < 0.5).collect();
            for threads in self.threads().into_iter().filter(|n| (..=256).contains(n)) {
                if !self.prepared.args.wants(&format!("huang-table2-{name}-{threads}")) {
                    continue;
                }
                for (way, paper) in ways().into_iter().zip(TABLE_2) {
                    let run = self.run(way, 10, threads);
                    // What the host has laid out stays there.
                    self.together(run, &queries, cores, |_| true)?;
                    let gpu = self.together(run, &queries, cores, |_| true)?;
                    let cpu = self.together(run, &queries, cores, |_| false)?;
                    let sd = self.together(run, &queries, cores, |at| halves[at])?;
                    let row = json!({
                        "way": way.name, "threads": threads, "cores": cores, "k": 10,
                        "queries": queries.len(),
                    });
                    let mut lbd = (f64::INFINITY, 0);
                    for below in BELOW {
                        let threshold = sorted[(below * sorted.len() as f64) as usize];
                        let short = |at: usize| blocks(queries[at]) < threshold;
                        let us = self.together(run, &queries, cores, short)?;
                        if us < lbd.0 {
                            lbd = (us, threshold);
                        }
                        let more = json!({
                            "row": "huang-figure6", "threshold": threshold, "below": below,
                            "us": us, "of_sd": us / sd,
                        });
                        print(with(row.clone(), more))?;
                    }
                    let (lbd, threshold) = lbd;
                    let mut more = json!({
                        "row": "huang-table2", "cpu_us": cpu, "gpu_us": gpu, "sd_us": sd,
                        "lbd_us": lbd, "threshold": threshold, "percent": 100.0 * (1.0 - lbd / sd),
                    });
                    if threads == DEFAULT_THREADS {
                        more["paper_percent"] = json!(paper);
                    }
                    print(with(row, more))?;
                }
            }
        }
        Ok(())
    }

    /// On one device, two, and so on.
    fn table_3(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(OF_SEVERAL);
        for number in self.devices.len()..self.prepared.devices.len() {
            self.devices.push(open(self.prepared, number)?);
        }
        let most = 1 << self.devices.len().ilog2();
        for threads in self.threads().into_iter().filter(|n| (64..=256).contains(n)) {
            if !self.prepared.args.wants(&format!("huang-table3-{threads}")) {
                continue;
            }
            for &way in &ways()[..OF_PAPER] {
                let mut run = self.run(way, 10, threads);
                run.size = queries.len().div_ceil(BATCHES_OF_DEVICE * most).clamp(1, run.size);
                let mut one = None;
                for count in (0..=most.ilog2()).map(|power| 1 << power) {
                    let mut more = json!({"gpus": count});
                    if let Some(one) = one {
                        more["one_us"] = json!(one);
                    }
                    let us = self.row("huang-table3", &queries, run, count, &more)?;
                    one.get_or_insert(us);
                }
            }
        }
        Ok(())
    }
}
