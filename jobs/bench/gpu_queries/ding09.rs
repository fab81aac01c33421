//! `millrace bench gpu-queries --only ding09`: the experiments of Ding, He, Yan and Suel on a device.
//!
//! | row | of the paper |
//! | --- | --- |
//! | ding09-check | none: a sample of the answers is the CPU's, to the bit |
//! | ding09-table1 | table 1: integers decoded in a second, of all lists of the queries |
//! | ding09-figure4 | figure 4: the same by the length of the list |
//! | ding09-figure6 | figure 6: Parallel Merge Find by length and levels |
//! | ding09-table2 | table 2: the mean time of a query, one at a time, lists on the device |
//! | ding09-table3 | table 3: shares of the stages |
//! | ding09-terms | section 8.4, without figures there: time by number of terms, by all postings and the shortest list |
//! | ding09-levels | section 7.3: AND by levels of splitters |
//! | ding09-splitters | AND, and two lists as in figure 6, by splitters of a level, of which the paper has no number |
//! | ding09-batched | none: queries in a second, many at a time |
//!
//! Times of one query are from its launch to its hits in host memory; those of stages are between events on the
//! device, and what the host takes to launch the next kernel is in them.

mod decoding;
mod merging;

use super::collection::{Key, Planned, distinct, expected, key, on_all_threads, plan};
use super::{Args, print};
use crate::bench::quantile;
use crate::query::gpus::explain;
use anyhow::{Context as _, bail};
use millrace::gpu::ding09::batch::{DingBatch, DingQuery, DingTerm};
use millrace::gpu::ding09::device::DingDevice;
use millrace::gpu::ding09::list::{Laid, ListLayer, form_of};
use millrace::gpu::ding09::{MOST_MERGE_LEVELS, Merging, steps};
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::query::residency::Ranges;
use millrace::gpu::turns::Memory;
use millrace::index::generations::generation::Generation;
use millrace::query::reading::lines::Query;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Mode, Stage, Wanted};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The most queries that are timed one at a time.
const ALONE: usize = 2000;

/// The paper's table 2, in milliseconds: the mode, one core, the GPU.
const TABLE_2: [(Mode, f64, f64); 3] =
    [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];

/// Splitters of a level that are compared; none is what the option is if it is left out.
const SPLITTERS: [Option<u32>; 6] = [None, Some(4), Some(16), Some(64), Some(256), Some(4096)];

/// Runs the experiments whose names are asked for.
pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let snapshot = Snapshot::new(Generation::open(&args.index, false)?, Scoring::default())?;
    form_of(snapshot.generation()).map_err(|error| explain(error.into()))?;
    let (devices, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let device = Device::open(&devices[0], 1)?;
    let memory = Memory { lists: args.gpu_memory, batch: None, queries: args.batch(), k: 1000 };
    let device = DingDevice::open(device, &toolchain, snapshot.norms(), memory)?;
    let planned = plan(&snapshot, queries, args.terms)?;
    if planned.is_empty() {
        bail!("no query has terms of the index, as many as --terms says");
    }
    let lists = Lists::load(&device, &snapshot, &planned)?;
    let postings: u64 = planned.iter().map(Planned::postings).sum();
    let form = snapshot.generation().runs()[0].postings_header().form;
    print(json!({
        "row": "ding09-load", "device": device.device().info().to_string(),
        "codec": form.name(), "block_size": form.block_len(),
        "documents": snapshot.norms().len(), "queries": planned.len(), "lists": lists.places.len(),
        "postings": lists.postings, "bytes": lists.bytes, "load_s": lists.seconds,
        "postings_per_query": postings / planned.len() as u64,
    }))?;
    let mut bench = Bench { args, device, planned, lists, snapshot };
    let wants = |name: &str| args.wants(name);
    if wants("ding09-check") {
        for k in [10, 1000] {
            Mode::ALL.into_iter().try_for_each(|mode| bench.check(mode, k, queries))?;
        }
    }
    if wants("ding09-table1") {
        bench.table_1()?;
    }
    if wants("ding09-figure4") {
        bench.figure_4()?;
    }
    if wants("ding09-figure6") {
        bench.figure_6()?;
    }
    if wants("ding09-table2") || wants("ding09-terms") {
        bench.alone(wants("ding09-table2"), wants("ding09-terms"))?;
    }
    if wants("ding09-table3") {
        bench.table_3()?;
    }
    if wants("ding09-levels") {
        let of = |levels| Merging { levels, ..args.merging() };
        bench.mergings("ding09-levels", (0..=MOST_MERGE_LEVELS).map(of))?;
    }
    if wants("ding09-splitters") {
        let of = |splitters| Merging { splitters, ..args.merging() };
        bench.mergings("ding09-splitters", SPLITTERS.map(of))?;
        bench.splitters()?;
    }
    if wants("ding09-batched") {
        bench.batched()?;
    }
    Ok(())
}

/// All lists of the queries, in the arena.
struct Lists {
    places: HashMap<Key, (u64, Laid)>,
    postings: u64,
    bytes: u64,
    seconds: f64,
}

impl Lists {
    /// Lays lists out on all threads and copies them.
    fn load(device: &DingDevice, snapshot: &Snapshot, planned: &[Planned]) -> anyhow::Result<Self> {
        let start = Instant::now();
        let lists = distinct(planned);
        let arena = device.arena();
        let ranges = Mutex::new(Ranges::new(arena.bytes()));
        let next = AtomicUsize::new(0);
        let worker = || -> anyhow::Result<Vec<(Key, u64, Laid, u64)>> {
            let (mut layer, mut bytes, mut made) = (ListLayer::default(), Vec::new(), Vec::new());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((key, term)) = lists.get(at) else { return Ok(made) };
                bytes.clear();
                let laid = layer.lay(snapshot.generation(), &term.entries, &mut bytes)?;
                let mut ranges = ranges.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let place = ranges.take(bytes.len() as u64);
                drop(ranges);
                let place = place.context("the lists of the queries do not fit --gpu-memory")?;
                arena.write(place, &bytes)?;
                made.push((key.clone(), place, laid, bytes.len() as u64));
            }
        };
        let (mut places, mut bytes) = (HashMap::new(), 0);
        for (key, place, laid, len) in on_all_threads(worker)? {
            bytes += len;
            places.insert(key, (place, laid));
        }
        let postings = lists.iter().map(|(_, term)| u64::from(term.df)).sum();
        Ok(Self { places, postings, bytes, seconds: start.elapsed().as_secs_f64() })
    }

    fn query(&self, planned: &Planned, k: u32) -> DingQuery {
        let terms = planned.terms.iter().map(|term| {
            let (place, laid) = self.places[&key(term)];
            DingTerm { place, laid, weight: term.weight }
        });
        DingQuery { terms: terms.collect(), k, docids: 0..u32::MAX }
    }
}

struct Bench<'a> {
    args: &'a Args,
    device: DingDevice,
    planned: Vec<Planned>,
    lists: Lists,
    snapshot: Arc<Snapshot>,
}

/// The stages of table 3 that kernels belong to.
fn stage(kernel: &str, all_terms: bool) -> &'static str {
    match kernel {
        "ding_open" | "ding_decode" => "decompression",
        "ding_clear" => "initialization",
        "ding_accumulate" => "scoring",
        "ding_scores" | "ding_maxima" | "ding_extract" => {
            if all_terms {
                "top-k scoring"
            } else {
                "top-k"
            }
        }
        _ => "intersection",
    }
}

impl Bench<'_> {
    /// Batches of queries, which are finished.
    fn batches(
        &self,
        queries: &[&Planned],
        k: u32,
        size: usize,
        all_terms: bool,
    ) -> Vec<DingBatch> {
        let mut batches = vec![self.device.batch(all_terms)];
        for planned in queries {
            let mut query = self.lists.query(planned, k);
            let last = batches.len() - 1;
            if batches[last].len() == size {
                batches.push(self.device.batch(all_terms));
            }
            let last = batches.len() - 1;
            if let Err(back) = batches[last].add(query, self.device.room()) {
                query = back;
                let mut next = self.device.batch(all_terms);
                if next.add(query, self.device.room()).is_ok() {
                    batches.push(next);
                } else {
                    say!("query {} has no room in a batch", planned.number);
                }
            }
        }
        batches.retain(|batch| !batch.is_empty());
        batches.iter_mut().for_each(DingBatch::finish);
        batches
    }

    /// The answers to queries, in batches of so many: first those of AND, then those of OR.
    fn answers(
        &mut self,
        queries: &[&Planned],
        (mode, k): (Mode, u32),
        size: usize,
    ) -> anyhow::Result<Vec<Vec<Hit>>> {
        let wanted = Wanted { k: k as usize, mode, ..Wanted::default() };
        let mut found: Vec<Option<Vec<Hit>>> = vec![None; queries.len()];
        let mut stage = Some(Stage::first(mode));
        while let Some(now) = stage {
            let needs = |hits: &Option<Vec<Hit>>| match hits {
                None => true,
                Some(hits) => Stage::All.next(&wanted, hits.len()) == Some(now),
            };
            let asked: Vec<usize> = (0..queries.len()).filter(|&q| needs(&found[q])).collect();
            let some: Vec<&Planned> = asked.iter().map(|&q| queries[q]).collect();
            let mut hits = Vec::with_capacity(some.len());
            for batch in self.batches(&some, k, size, now == Stage::All) {
                hits.extend(self.device.answer(&batch, self.args.merging())?);
            }
            anyhow::ensure!(hits.len() == asked.len(), "some queries have no room");
            for (q, hits) in asked.into_iter().zip(hits) {
                found[q] = Some(hits);
            }
            stage = now.next(&wanted, 0);
        }
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Compares a sample of answers.
    fn check(&mut self, mode: Mode, k: u32, queries: &[Query]) -> anyhow::Result<()> {
        let planned = self.planned.clone();
        let step = (planned.len() / self.args.sample.max(1)).max(1);
        let sample: Vec<&Planned> = planned.iter().step_by(step).collect();
        let found = self.answers(&sample, (mode, k), self.args.batch())?;
        let expected = expected(&self.snapshot, &sample, (mode, k), queries)?;
        let mut wrong = 0;
        for ((planned, found), expected) in sample.iter().zip(&found).zip(&expected) {
            let bits = |hits: &[Hit]| -> Vec<(u32, u32)> {
                hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
            };
            if bits(found) == bits(expected) {
                continue;
            }
            wrong += 1;
            if wrong <= 3 {
                let at = found.iter().zip(expected).position(|(a, b)| a != b);
                let (text, found, expected) =
                    (&queries[planned.number].text, found.len(), expected.len());
                say!("query {text:?}: {found} hits, not {expected}; first difference at {at:?}");
            }
        }
        print(json!({
            "row": "ding09-check", "mode": mode.name(), "k": k, "queries": sample.len(),
            "wrong": wrong, "merge_levels": self.args.merge_levels,
        }))?;
        anyhow::ensure!(wrong == 0, "{}: {wrong} answers differ from the CPU's", mode.name());
        Ok(())
    }

    /// Some of the queries, spread over all.
    fn some(&self) -> Vec<Planned> {
        let step = (self.planned.len() / ALONE).max(1);
        self.planned.iter().step_by(step).take(ALONE).cloned().collect()
    }

    /// Microseconds of each query alone, from its launch to its hits; the second of two passes counts.
    fn time_alone(&mut self, queries: &[Planned], mode: Mode, k: u32) -> anyhow::Result<Vec<f64>> {
        let wanted = Wanted { k: k as usize, mode, ..Wanted::default() };
        let mut micros = Vec::with_capacity(queries.len());
        for planned in queries.iter().take(50).chain(queries) {
            let start = Instant::now();
            let mut stage = Some(Stage::first(mode));
            while let Some(now) = stage {
                let mut batch = self.device.batch(now == Stage::All);
                let added = batch.add(self.lists.query(planned, k), self.device.room());
                added.ok().context("a query has no room")?;
                batch.finish();
                let hits = self.device.answer(&batch, self.args.merging())?;
                stage = now.next(&wanted, hits[0].len());
            }
            micros.push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(micros.split_off(queries.len().min(50)))
    }

    fn alone(&mut self, table_2: bool, terms: bool) -> anyhow::Result<()> {
        let queries = self.some();
        let postings: u64 = queries.iter().map(Planned::postings).sum();
        for (mode, cpu_ms, gpu_ms) in TABLE_2 {
            let micros = self.time_alone(&queries, mode, 10)?;
            if table_2 {
                let mut sorted = micros.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                let mean = micros.iter().sum::<f64>() / micros.len() as f64;
                print(json!({
                    "row": "ding09-table2", "mode": mode.name(), "k": 10, "queries": queries.len(),
                    "merge_levels": self.args.merge_levels,
                    "postings_per_query": postings / queries.len() as u64,
                    "mean_ms": mean / 1e3, "p50_us": quantile(&sorted, 0.5),
                    "p99_us": quantile(&sorted, 0.99),
                    "paper_cpu_ms": cpu_ms, "paper_gpu_ms": gpu_ms,
                    "times_paper_gpu": gpu_ms * 1e3 / mean,
                }))?;
            }
            if terms && mode != Mode::AndOr {
                by_footprint(&queries, &micros, mode)?;
            }
        }
        Ok(())
    }

    /// What the stages of queries take, one query at a time and in batches.
    fn table_3(&mut self) -> anyhow::Result<()> {
        let queries = self.some();
        let queries: Vec<&Planned> = queries.iter().take(1000).collect();
        for (mode, all_terms) in [(Mode::And, true), (Mode::Or, false)] {
            for size in [1, self.args.batch()] {
                let mut stages: BTreeMap<&str, f64> = BTreeMap::new();
                let mut kernels: BTreeMap<&str, f64> = BTreeMap::new();
                let (mut chosen, mut blocks) = (0u64, 0u64);
                for batch in self.batches(&queries, 10, size, all_terms) {
                    let steps = steps::batch(&batch, self.args.merging());
                    let times = self.device.time_steps(&batch, &steps)?;
                    for (step, ms) in steps.iter().zip(times) {
                        *stages.entry(stage(step.kernel, all_terms)).or_default() += f64::from(ms);
                        *kernels.entry(step.kernel).or_default() += f64::from(ms);
                    }
                    if all_terms {
                        let ranks = batch.ranks(self.device.output());
                        let others = ranks.iter().flat_map(|ranks| &ranks[1..]);
                        chosen += others.map(|rank| u64::from(rank.chosen)).sum::<u64>();
                    }
                }
                if all_terms {
                    for planned in &queries {
                        let lists =
                            planned.terms.iter().map(|term| self.lists.places[&key(term)].1);
                        let mut lists: Vec<Laid> = lists.collect();
                        lists.sort_by_key(|laid| laid.postings);
                        blocks += lists[1..].iter().map(|laid| u64::from(laid.blocks)).sum::<u64>();
                    }
                }
                let all: f64 = stages.values().sum();
                let shares: BTreeMap<&str, f64> =
                    stages.iter().map(|(name, ms)| (*name, ms / all)).collect();
                let paper = match all_terms {
                    true => {
                        json!({"top-k scoring": 0.08, "intersection": 0.45, "decompression": 0.47})
                    }
                    false => json!({
                        "initialization": 0.09, "decompression": 0.30, "scoring": 0.48, "top-k": 0.13,
                    }),
                };
                let us = |ms: f64| ms * 1e3 / queries.len() as f64;
                let kernels: BTreeMap<&str, f64> =
                    kernels.into_iter().map(|(name, ms)| (name, us(ms))).collect();
                print(json!({
                    "row": "ding09-table3", "mode": mode.name(), "k": 10, "batch": size,
                    "queries": queries.len(), "us_per_query": us(all), "shares": shares,
                    "paper": paper, "kernels_us": kernels,
                    // Of all lists but the shortest.
                    "blocks_decoded": chosen, "blocks": blocks,
                }))?;
            }
        }
        Ok(())
    }

    /// AND by levels of splitters, or by splitters of a level, one query at a time and in batches.
    fn mergings(
        &mut self,
        row: &str,
        mergings: impl IntoIterator<Item = Merging>,
    ) -> anyhow::Result<()> {
        let queries = self.some();
        let queries: Vec<&Planned> = queries.iter().take(1000).collect();
        for merging in mergings {
            for size in [1, self.args.batch()] {
                let batches = self.batches(&queries, 10, size, true);
                let mut ms = 0.0;
                for pass in 0..2 {
                    for batch in &batches {
                        self.device.answer(batch, merging)?;
                        let took = f64::from(self.device.took_ms()?);
                        ms += if pass == 1 { took } else { 0.0 };
                    }
                }
                print(json!({
                    "row": row, "mode": "and", "k": 10, "merge_levels": merging.levels,
                    "splitters": merging.splitters,
                    "batch": size, "us_per_query": ms * 1e3 / queries.len() as f64,
                }))?;
            }
        }
        Ok(())
    }

    /// Queries in a second, many at a time.
    fn batched(&mut self) -> anyhow::Result<()> {
        let queries = self.planned.clone();
        let queries: Vec<&Planned> = queries.iter().collect();
        for (mode, k) in [(Mode::Or, 10), (Mode::Or, 1000), (Mode::And, 10), (Mode::And, 1000)] {
            let batches = self.batches(&queries, k, self.args.batch(), mode == Mode::And);
            let (mut answered, mut start, mut warm) = (0, Instant::now(), false);
            for (n, batch) in (0..).zip(batches.iter().cycle()) {
                self.device.answer(batch, self.args.merging())?;
                answered += batch.len();
                let over = start.elapsed().as_secs_f64() > self.args.seconds;
                if warm && over {
                    break;
                }
                if !warm && (over || n + 1 == batches.len()) {
                    (warm, answered, start) = (true, 0, Instant::now());
                }
            }
            let seconds = start.elapsed().as_secs_f64();
            print(json!({
                "row": "ding09-batched", "mode": mode.name(), "k": k,
                "batch": queries.len() as f64 / batches.len() as f64,
                "queries_per_s": answered as f64 / seconds, "us": 1e6 * seconds / answered as f64,
            }))?;
        }
        Ok(())
    }
}

/// What queries are put together by.
type Value<'a> = &'a dyn Fn(&Planned) -> u64;

/// Prints the time by number of terms, and by two footprints in powers of two.
fn by_footprint(queries: &[Planned], micros: &[f64], mode: Mode) -> anyhow::Result<()> {
    let bin = |postings: u64| postings.max(1).next_power_of_two();
    let sum = |query: &Planned| bin(query.postings());
    let shortest =
        |query: &Planned| bin(query.terms.iter().map(|term| u64::from(term.df)).min().unwrap_or(0));
    let terms = |query: &Planned| query.terms.len() as u64;
    let by: [(&str, Value<'_>); 3] =
        [("terms", &terms), ("postings_upto", &sum), ("shortest_upto", &shortest)];
    for (name, value) in by {
        let mut bins: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
        for (query, us) in queries.iter().zip(micros) {
            let bin = bins.entry(value(query)).or_default();
            *bin = (bin.0 + 1, bin.1 + us);
        }
        for (value, (count, us)) in bins {
            print(json!({
                "row": "ding09-terms", "mode": mode.name(), "k": 10, name: value,
                "queries": count, "mean_us": us / count as f64,
            }))?;
        }
    }
    Ok(())
}
