//! `millrace bench gpu-queries --only huang`: the experiments of Huang, Ren, Zhao, Stones, Zhang, Wang and Liu.
//!
//! | row | of the paper |
//! | --- | --- |
//! | huang-check | none: a sample of the answers is the CPU's, to the bit |
//! | huang-table1 | table 1: the time of a query by threads and k, four ways, and on one thread and all of the CPU; alone: huang-table1-64-10, huang-table1-cpu-10 |
//! | huang-figure3 | figure 3: the same by blocks of the lists, on the device and on one thread of the CPU |
//! | huang-figure4 | figure 4: how many queries have lists of so many blocks |
//! | huang-figure5 | figure 5: shares of initialization, scoring and merging |
//! | huang-table3 | table 3: one device and all of them |
//!
//! The paper does not say what the average time of a query is. `us` is the time of all batches, from the copy of the
//! queries, and the lists that travel, to the hits in host memory, over the number of queries; `latency_ms` is
//! the mean time of the batch that a query is in; `prepare_us` is what the host takes to make the batches. Ways with
//! `shared` have one threshold for all threads of a query, which the paper has not.

mod figures;
mod table_3;

use super::collection::{Planned, expected, plan};
use super::{Args, cpu_rate, print, threads};
use crate::query::gpus::explain;
use anyhow::bail;
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::discover::DeviceInfo;
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::huang::batch::{How, HuangBatch, shared_bytes};
use millrace::gpu::huang::device::{HuangDevice, HuangTerm};
use millrace::gpu::huang::list::check_form;
use millrace::gpu::huang::{BATCH, DEFAULT_THREADS, THREADS, Traversal};
use millrace::gpu::turns::Memory;
use millrace::index::generations::generation::Generation;
use millrace::query::reading::lines::Query;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// A way to find documents: its name in the paper, its kernel, and what the CPU does of it.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    kernel: &'static str,
    mode: Mode,
    algorithm: Algorithm,
    how: How,
}

/// The paper's four.
fn ways() -> [Way; 4] {
    let any = |name, traversal: Traversal| Way {
        name,
        kernel: traversal.kernel(),
        mode: Mode::Or,
        algorithm: traversal.on_cpu(),
        how: How::default(),
    };
    let (kernel, algorithm, how) = ("huang_and", Algorithm::Auto, How::default());
    [
        Way { name: "and", kernel, mode: Mode::And, algorithm, how },
        any("or", Traversal::Exhaustive),
        any("wand", Traversal::Wand),
        any("bmw", Traversal::Bmw),
    ]
}

/// Those two of them for which a threshold matters, with one for all threads of a query.
fn shared_ways() -> [(Way, usize); 2] {
    let [_, _, wand, bmw] = ways();
    let how = How { shared_threshold: true, ..How::default() };
    let (wand, bmw) =
        (Way { name: "wand, shared", how, ..wand }, Way { name: "bmw, shared", how, ..bmw });
    [(wand, 2), (bmw, 3)]
}

/// The paper's table 1 in milliseconds: AND, OR, WAND and BMW for the best 1, 10 and 20, by threads as [`THREADS`].
const TABLE_1: [[[f64; 3]; 4]; 6] = [
    [[8.07, 8.08, 8.14], [45.57, 45.88, 45.97], [8.29, 10.22, 11.18], [3.54, 4.90, 6.49]],
    [[5.78, 5.81, 5.86], [30.26, 30.32, 30.37], [5.97, 7.45, 8.23], [2.69, 4.47, 5.21]],
    [[6.06, 6.08, 6.13], [29.48, 29.53, 29.57], [6.19, 7.86, 8.73], [2.96, 4.47, 5.21]],
    [[7.53, 7.56, 7.61], [34.38, 34.42, 34.49], [7.55, 8.97, 9.65], [4.14, 6.51, 7.60]],
    [[9.33, 9.35, 9.39], [39.86, 39.91, 39.95], [9.24, 11.71, 13.03], [4.91, 7.51, 8.71]],
    [[12.24, 12.28, 12.36], [49.02, 49.08, 49.21], [12.05, 15.23, 16.93], [6.17, 9.14, 10.53]],
];

/// The same of one thread of the CPU.
const TABLE_1_CPU: [[f64; 3]; 4] =
    [[12.70, 12.82, 12.93], [65.77, 66.08, 66.15], [15.11, 15.25, 15.34], [8.82, 8.96, 9.03]];

/// The paper's k.
const KS: [u32; 3] = [1, 10, 20];

/// Where devices come from.
struct Source<'a> {
    args: &'a Args,
    devices: Vec<DeviceInfo>,
    toolchain: Toolchain,
    snapshot: Arc<Snapshot>,
}

impl Source<'_> {
    fn open(&self, number: usize) -> anyhow::Result<HuangDevice> {
        let device = Device::open(&self.devices[number], 1)?;
        let queries = self.args.batch_or(BATCH);
        let memory = Memory { lists: self.args.gpu_memory, batch: None, queries, k: 1000 };
        Ok(HuangDevice::open(device, &self.toolchain, &self.snapshot, memory, threads())?)
    }
}

/// Runs the experiments whose names are asked for.
pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let snapshot = Snapshot::new(Generation::open(&args.index, false)?, Scoring::default())?;
    check_form(snapshot.generation()).map_err(|error| explain(error.into()))?;
    let (devices, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let source = Source { args, devices, toolchain, snapshot };
    let planned = plan(&source.snapshot, queries, args.terms)?;
    if planned.is_empty() {
        bail!("no query has terms of the index, as many as --terms says");
    }
    let start = Instant::now();
    let device = source.open(0)?;
    let postings: u64 = planned.iter().map(Planned::postings).sum();
    print(json!({
        "row": "huang-load", "device": device.device().info().to_string(),
        "documents": source.snapshot.norms().len(), "queries": planned.len(),
        "lists": device.cache().len(), "left_out": device.cache().left_out(),
        "bytes": device.cache().bytes(), "load_s": start.elapsed().as_secs_f64(),
        "postings_per_query": postings / planned.len() as u64,
    }))?;
    let mut bench = Bench { source: &source, device, planned: &planned, queries };
    let wants = |name: &str| args.wants(name);
    if wants("huang-check") {
        bench.check()?;
    }
    // A cell of it can be asked for: huang-table1-64-10 has 64 threads and k 10.
    let of_table_1 = |only: &String| only.starts_with("huang-table1-");
    if wants("huang-table1") || args.only.as_ref().is_some_and(of_table_1) {
        bench.table_1()?;
    }
    if wants("huang-figure3") {
        bench.figure_3()?;
    }
    if wants("huang-figure4") {
        bench.figure_4()?;
    }
    if wants("huang-figure5") {
        bench.figure_5()?;
    }
    if wants("huang-table3") {
        bench.table_3()?;
    }
    Ok(())
}

struct Bench<'a> {
    source: &'a Source<'a>,
    device: HuangDevice,
    planned: &'a [Planned],
    queries: &'a [Query],
}

/// What queries took on a device.
struct Took {
    us: f64,
    latency_ms: f64,
    device_us: f64,
}

/// Batches of queries in their order, which are finished, on a device.
fn batches(
    device: &mut HuangDevice,
    planned: &[&Planned],
    (k, threads): (u32, u32),
    size: usize,
) -> anyhow::Result<Vec<HuangBatch>> {
    let mut batches = vec![device.batch(threads)];
    for planned in planned {
        let terms = planned.terms.iter().map(|term| HuangTerm {
            entries: term.entries.iter().map(Option::as_ref).collect(),
            weight: term.weight,
        });
        let (terms, best) = (terms.collect::<Vec<_>>(), (k, 0..u32::MAX));
        let mut last = batches.len() - 1;
        if batches[last].len() == size {
            batches.push(device.batch(threads));
            last += 1;
        }
        if !device.add(&mut batches[last], &terms, best.clone())? {
            let mut next = device.batch(threads);
            let added = device.add(&mut next, &terms, best)?;
            anyhow::ensure!(added, "query {} has no room in a batch", planned.number);
            batches.push(next);
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches.iter_mut().for_each(HuangBatch::finish);
    Ok(batches)
}

impl<'a> Bench<'a> {
    fn batches(
        &mut self,
        planned: &[&Planned],
        (k, threads): (u32, u32),
    ) -> anyhow::Result<Vec<HuangBatch>> {
        let size = self.source.args.batch_or(BATCH);
        batches(&mut self.device, planned, (k, threads), size)
    }

    /// Those of the paper's numbers of threads for which the device has the shared memory that the queries need.
    fn threads(&self) -> impl Iterator<Item = (u32, [[f64; 3]; 4])> + use<> {
        let terms = self.planned.iter().map(|planned| planned.terms.len()).max().unwrap_or(0);
        let room = self.device.room().shared_bytes;
        let fits = move |&(threads, _): &(u32, _)| {
            let needs = shared_bytes(threads, terms);
            if needs > room {
                say!("{threads} threads are left out: {needs} bytes of shared memory, not {room}");
            }
            needs <= room
        };
        THREADS.into_iter().zip(TABLE_1).filter(fits)
    }

    fn all(&self) -> Vec<&'a Planned> {
        self.planned.iter().collect()
    }

    /// Compares a sample of answers: of all numbers of threads for the best 10, of the usual one for others.
    fn check(&mut self) -> anyhow::Result<()> {
        let step = (self.planned.len() / self.source.args.sample.max(1)).max(1);
        let sample: Vec<&Planned> = self.planned.iter().step_by(step).collect();
        for k in [10, 1, 20, 1000] {
            let of_mode = |mode| expected(&self.source.snapshot, &sample, (mode, k), self.queries);
            let (all, any) = (of_mode(Mode::And)?, of_mode(Mode::Or)?);
            for (threads, _) in self.threads().filter(|&(n, _)| k == 10 || n == DEFAULT_THREADS) {
                let batches = self.batches(&sample, (k, threads))?;
                for way in ways().into_iter().chain(shared_ways().map(|(way, _)| way)) {
                    let mut found = Vec::with_capacity(sample.len());
                    for batch in &batches {
                        found.extend(self.device.answer(batch, way.kernel, way.how)?);
                    }
                    let expected = if way.mode == Mode::And { &all } else { &any };
                    self.compare((way.name, k, threads), &sample, (&found, expected))?;
                }
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        (name, k, threads): (&str, u32, u32),
        sample: &[&Planned],
        (found, expected): (&[Vec<Hit>], &[Vec<Hit>]),
    ) -> anyhow::Result<()> {
        let bits = |hits: &[Hit]| -> Vec<(u32, u32)> {
            hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
        };
        let mut wrong = 0;
        for ((planned, found), expected) in sample.iter().zip(found).zip(expected) {
            if bits(found) == bits(expected) {
                continue;
            }
            wrong += 1;
            if wrong <= 3 {
                let at = found.iter().zip(expected).position(|(a, b)| a != b);
                let text = &self.queries[planned.number].text;
                let (found, expected) = (found.len(), expected.len());
                say!("query {text:?}: {found} hits, not {expected}; first difference at {at:?}");
            }
        }
        print(json!({
            "row": "huang-check", "way": name, "k": k, "threads": threads,
            "queries": sample.len(), "wrong": wrong,
        }))?;
        anyhow::ensure!(wrong == 0, "{name}: {wrong} answers differ from the CPU's");
        Ok(())
    }

    /// The time of batches by a kernel: a pass that does not count, and passes for a part of --seconds.
    fn time(&mut self, batches: &[HuangBatch], way: Way) -> anyhow::Result<Took> {
        let (mut queries, mut latency, mut on_device) = (0.0, 0.0, 0.0);
        let mut start = Instant::now();
        let mut pass = 0;
        while pass < 2 || start.elapsed().as_secs_f64() < self.source.args.seconds / 4.0 {
            if pass == 1 {
                (queries, latency, on_device, start) = (0.0, 0.0, 0.0, Instant::now());
            }
            for batch in batches {
                let (begins, count) = (Instant::now(), batch.len() as f64);
                std::hint::black_box(self.device.answer(batch, way.kernel, way.how)?);
                queries += count;
                latency += count * begins.elapsed().as_secs_f64();
                on_device += f64::from(self.device.took_ms()?);
            }
            pass += 1;
        }
        let us = 1e6 * start.elapsed().as_secs_f64() / queries;
        let (latency_ms, device_us) = (1e3 * latency / queries, 1e3 * on_device / queries);
        Ok(Took { us, latency_ms, device_us })
    }

    /// Microseconds of a query on so many threads of the CPU.
    fn cpu_us(
        &self,
        planned: &[&Planned],
        way: Way,
        k: u32,
        threads: usize,
    ) -> anyhow::Result<f64> {
        let wanted = Wanted { k: k as usize, mode: way.mode, algorithm: way.algorithm };
        let numbers: Vec<usize> = planned.iter().map(|planned| planned.number).collect();
        let texts = (self.queries, &numbers[..]);
        let seconds = self.source.args.seconds / 2.0;
        Ok(1e6 / cpu_rate(&self.source.snapshot, &wanted, texts, (threads, seconds))?)
    }

    fn table_1(&mut self) -> anyhow::Result<()> {
        let all = self.all();
        for (threads, paper) in self.threads() {
            for (n, k) in KS.into_iter().enumerate() {
                if !self.source.args.wants(&format!("huang-table1-{threads}-{k}")) {
                    continue;
                }
                let start = Instant::now();
                let batches = self.batches(&all, (k, threads))?;
                let prepare_us = 1e6 * start.elapsed().as_secs_f64() / all.len() as f64;
                let as_printed = ways().into_iter().zip(0..);
                for (way, row) in as_printed.chain(shared_ways()) {
                    let (took, paper) = (self.time(&batches, way)?, paper[row]);
                    print(json!({
                        "row": "huang-table1", "way": way.name, "k": k, "threads": threads,
                        "queries": all.len(), "batch": all.len() / batches.len(),
                        "us": took.us, "latency_ms": took.latency_ms, "device_us": took.device_us,
                        "prepare_us": prepare_us, "paper_ms": paper[n],
                        "times_paper": 1e3 * paper[n] / took.us,
                    }))?;
                }
            }
        }
        for (way, paper) in ways().into_iter().zip(TABLE_1_CPU) {
            for (k, paper_ms) in KS.into_iter().zip(paper) {
                if !self.source.args.wants(&format!("huang-table1-cpu-{k}")) {
                    continue;
                }
                let one_us = self.cpu_us(&all, way, k, 1)?;
                let all_us = self.cpu_us(&all, way, k, threads())?;
                print(json!({
                    "row": "huang-table1", "way": way.name, "k": k, "engine": "cpu",
                    "one_thread_us": one_us, "all_threads_us": all_us, "cpu_threads": threads(),
                    "paper_ms": paper_ms,
                }))?;
            }
        }
        Ok(())
    }
}
