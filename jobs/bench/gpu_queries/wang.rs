//! `millrace bench gpu-queries --only wang`: the experiments of Wang, Yu, Stones, Ren, Wang, Liu and Ren on a device.
//!
//! | row | of the paper |
//! | --- | --- |
//! | wang-check | none: answers are the CPU's, to the bit, with whole lists, beginnings of them, and none on the device |
//! | wang-figure4 | figure 4: c by queries of a batch, t by its bytes, dq by cache and policy |
//! | wang-figure5 | figure 5: throughput under a deadline by partition, of the model and measured |
//! | wang-figure6 | figure 6: time of the device and of post-processing, not overlapped, by cache and lambda |
//! | wang-figure8 | figure 8: throughput by memory and policy |
//! | wang-figure9 | figure 9: throughput and response time under a deadline by lambda |
//! | wang-figure10 | figure 10: throughput by k, of threads of the CPU, the device, and both |
//!
//! The index is in global order. The log is cut in halves: caches are filled by the first, and the other is answered.
//! Queries without a document that has all their terms are left out, as in the paper (section 4.1).

mod figure_10;
mod figures;
mod model;
mod pass;

use super::collection::on_all_threads;
use super::{Args, print, threads};
use crate::query::score::wang;
use anyhow::{bail, ensure};
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::turns::Memory;
use millrace::gpu::wang::batch::{MOST_TERMS, shared_bytes};
use millrace::gpu::wang::cache::{WantedLists, longest};
use millrace::gpu::wang::device::WangDevice;
use millrace::gpu::wang::{DEFAULT_ROUND, ROUNDS};
use millrace::index::generations::generation::Generation;
use millrace::index::lexicon::TermEntry;
use millrace::query::caching::Demand;
use millrace::query::plan::{Plan, Planner};
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted as Asked};
use millrace::score::bm25::IdfKind;
use millrace::score::named::Score;
use model::Sizes;
use pass::{How, Post};
use serde_json::json;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Queries of a batch at most.
const BATCH: usize = 4096;

/// The same in figures.
const BATCH_OF_FIGURES: usize = 16_384;

/// Bytes of lists that the host keeps laid out.
const MOST_KEPT: u64 = 32 << 30;

/// The most hits that are asked for.
const MOST_HITS: usize = 1000;

/// Queries all of whose lists travel, which takes long.
const MOST_TRAVELLING: usize = 500;

/// Queries that this thread alone ends.
const MOST_BEHIND: usize = 2000;

/// Runs the experiments whose names are asked for.
pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let scoring = Scoring {
        idf: IdfKind::Robertson,
        score: Score::Wang(wang(args.alpha)?),
        ..Scoring::default()
    };
    let snapshot = Snapshot::new(Generation::open(&args.index, false)?, scoring)?;
    snapshot.check_global()?;
    let start = Instant::now();
    let (least, most) = args.terms;
    let plans = plans(&snapshot, queries, (least, most.min(MOST_TERMS)))?;
    let planned_s = start.elapsed().as_secs_f64();
    if plans.len() < 2 {
        bail!("no queries have documents with all their terms, as many as --terms says");
    }
    let (devices, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let device = Device::open(&devices[0], 1)?;
    let start = Instant::now();
    let header = snapshot.generation().runs()[0].postings_header();
    let has_figures = args.only.as_ref().is_none_or(|only| only != "wang-check");
    // Where figures part the memory, what a batch has is at most as large as all lists on the device.
    let (batch, most) = match has_figures {
        true => (Some(2 * header.list_bytes + (1 << 20)), BATCH_OF_FIGURES),
        false => (args.buffer, args.batch_or(BATCH)),
    };
    let memory = Memory { lists: args.gpu_memory, batch, queries: most, k: 64 };
    let device = WangDevice::open(device, &toolchain, &snapshot, memory, threads())?;
    let lists = longest(snapshot.generation())?;
    let test = plans.len() / 2;
    print(json!({
        "row": "wang-load", "device": device.device().info().to_string(),
        "documents": snapshot.norms().len(), "queries": queries.len(), "train": test,
        "test": plans.len() - test, "long_lists": lists.len(), "list_bytes": header.list_bytes,
        "planned_s": planned_s, "open_s": start.elapsed().as_secs_f64(),
        "cache_bytes": device.cache_room(), "buffer_bytes": device.room().list_bytes,
    }))?;
    let (test, texts) = (test..plans.len(), plans[..test].iter().map(|plan| plan.0));
    let texts = texts.map(|number| &*queries[number].text).collect();
    let list_bytes = header.list_bytes;
    let plans = plans.into_iter().map(|(_, plan)| plan).collect();
    let (asked, sizes) = (Vec::new(), Sizes::default());
    let mut bench = Bench { args, device, snapshot, texts, plans, test, lists, asked, sizes };
    if args.wants("wang-check") {
        bench.check()?;
    }
    if has_figures {
        bench.figures(list_bytes)?;
    }
    Ok(())
}

/// The plans of queries that have as many terms as is said, and documents with all of them.
fn plans(
    snapshot: &Arc<Snapshot>,
    queries: &[Query],
    (least, most): (usize, usize),
) -> anyhow::Result<Vec<(usize, Plan)>> {
    let wanted = Asked { k: 1, mode: Mode::And, algorithm: Algorithm::Wang };
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, Plan)>> {
        let (mut planner, mut searcher, mut found) =
            (Planner::default(), Searcher::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(query) = queries.get(number) else { return Ok(found) };
            let plan = planner.plan(snapshot, wanted, &query.text)?;
            let fits = (least..=most).contains(&plan.terms().len());
            if fits && !searcher.answer(&plan)?.is_empty() {
                found.push((number, plan));
            }
        }
    };
    let mut plans = on_all_threads(work)?;
    plans.sort_by_key(|(number, _)| *number);
    Ok(plans)
}

/// The answers of the CPU to queries, by all its threads.
fn by_cpu(plans: &[Plan], algorithm: Algorithm) -> anyhow::Result<Vec<Vec<Hit>>> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, Vec<Hit>)>> {
        let (mut searcher, mut found) = (Searcher::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(number) else { return Ok(found) };
            let mut plan = plan.clone();
            plan.want(Asked { algorithm, ..*plan.wanted() });
            found.push((number, searcher.answer(&plan)?.to_vec()));
        }
    };
    let mut found = on_all_threads(work)?;
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, hits)| hits).collect())
}

/// The same queries for the best k.
fn for_best(plans: &[Plan], k: usize) -> Vec<Plan> {
    let mut plans = plans.to_vec();
    plans.iter_mut().for_each(|plan| plan.want(Asked { k, ..*plan.wanted() }));
    plans
}

struct Bench<'a> {
    args: &'a Args,
    device: WangDevice,
    snapshot: Arc<Snapshot>,
    /// The queries by which caches are filled.
    texts: Vec<&'a str>,
    plans: Vec<Plan>,
    /// Those of them that are answered in figures.
    test: Range<usize>,
    /// All lists of more than one block, the longest first.
    lists: Vec<WantedLists>,
    /// The lists that queries of figures ask for.
    asked: Vec<TermEntry>,
    sizes: Sizes,
}

impl Bench<'_> {
    fn test(&self) -> &[Plan] {
        &self.plans[self.test.clone()]
    }

    /// What the training queries, for the best k, want of lists.
    fn demand(&self, k: usize) -> anyhow::Result<Demand> {
        let texts: Vec<_> = self.texts.iter().map(|text| (text, 1)).collect();
        Ok(Demand::of_log(&self.snapshot, &texts, k, threads())?)
    }

    /// The figures that are asked for, for the best 10 but for the last.
    fn figures(&mut self, list_bytes: u64) -> anyhow::Result<()> {
        let plans = for_best(self.test(), 10);
        let entries = plans.iter().flat_map(|plan| plan.lists_of(0)).flatten();
        let lists: HashMap<u64, TermEntry> = entries.map(|entry| (entry.offset, *entry)).collect();
        self.asked = lists.into_values().collect();
        self.asked.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.df));
        let start = Instant::now();
        self.device.keep(MOST_KEPT);
        self.device.lay_ahead(self.asked.iter().copied())?;
        let on_disk: u64 = self.asked.iter().map(|entry| entry.bytes).sum();
        let kept = self.device.kept();
        let sizes = self.asked.iter().filter_map(|entry| {
            let key = entry.offset;
            kept.bytes_of(&key).map(|bytes| (key, bytes))
        });
        self.sizes.lists = sizes.collect();
        self.sizes.growth = kept.bytes() as f64 / on_disk.max(1) as f64;
        self.sizes.index = self.sizes.growth * list_bytes as f64;
        print(json!({
            "row": "wang-lists", "lists": self.asked.len(), "bytes_on_disk": on_disk,
            "bytes": self.device.kept().bytes(), "index_bytes": self.sizes.index,
            "lay_s": start.elapsed().as_secs_f64(),
        }))?;
        let demand = self.demand(10)?;
        let model = self.measure(&plans)?;
        if self.args.wants("wang-figure4") {
            self.figure_4(&model, &demand, &plans)?;
        }
        if self.args.wants("wang-figure5") {
            self.figure_5(&model, &demand, &plans)?;
        }
        if self.args.wants("wang-figure6") {
            self.figure_6(&demand, &plans)?;
        }
        if self.args.wants("wang-figure8") {
            self.figure_8(&model, &demand, &plans)?;
        }
        if self.args.wants("wang-figure9") {
            self.figure_9(&model, &demand, &plans)?;
        }
        if self.args.wants("wang-figure10") {
            self.figure_10(&model)?;
        }
        Ok(())
    }

    /// Queries as a batch has them, with what the device has room for, ended by all threads.
    fn usual(&self, round: u32) -> How {
        let room = *self.device.room();
        How { round, queries: self.args.batch_or(BATCH), room, post: Post::Overlapped(threads()) }
    }

    /// Whether the device has the shared memory that all queries need; says so if not.
    fn has_shared_memory(&self, round: u32, k: usize) -> bool {
        let terms = self.plans.iter().map(|plan| plan.terms().len()).max().unwrap_or(0);
        let needs = shared_bytes(round, terms, k.next_power_of_two() as u32);
        let room = self.device.room().shared_bytes;
        if needs > room {
            say!(
                "rounds of {round} for the best {k} are left out: {needs} bytes of shared memory, not {room}"
            );
        }
        needs <= room
    }

    /// Compares answers to all queries with those of the CPU, which looks at all documents, and a sample with those of
    /// the exhaustive search.
    fn check(&mut self) -> anyhow::Result<()> {
        let block_len = self.snapshot.generation().runs()[0].postings_header().form.block_len();
        let part = |lists: &[WantedLists], parts: usize| -> Vec<WantedLists> {
            let of = |&(entry, _): &WantedLists| {
                let blocks = (entry.df as usize).div_ceil(block_len).div_ceil(parts);
                (entry, Some(blocks))
            };
            lists.iter().map(of).collect()
        };
        let of_hits = |k: usize| -> anyhow::Result<(Vec<Plan>, Vec<Vec<Hit>>)> {
            let plans = for_best(&self.plans, k);
            let expected = by_cpu(&plans, Algorithm::Galloping)?;
            Ok((plans, expected))
        };
        let mut asked = Vec::new();
        for k in [10, 1, 5, 15, 100, MOST_HITS] {
            asked.push((k, of_hits(k)?));
        }
        let step = (self.plans.len() / self.args.sample.max(1)).max(1);
        let sample: Vec<usize> = (0..self.plans.len()).step_by(step).collect();
        let plans: Vec<Plan> = sample.iter().map(|&n| asked[0].1.0[n].clone()).collect();
        let exhaustive = by_cpu(&plans, Algorithm::Exhaustive)?;
        for (&number, hits) in sample.iter().zip(&exhaustive) {
            let same = same_bits(&asked[0].1.1[number], hits);
            ensure!(same, "galloping and exhaustive searches differ: this is a bug");
        }
        let all = self.plans.len();
        for (name, wanted, most) in [
            ("whole", self.lists.clone(), all),
            ("halves", part(&self.lists, 2), all),
            ("tenths", part(&self.lists, 10), all),
            ("first blocks", part(&self.lists, usize::MAX), all),
            ("none", Vec::new(), MOST_TRAVELLING),
        ] {
            self.device.fill(&wanted, self.device.cache_room())?;
            for (k, (plans, expected)) in &asked {
                for round in ROUNDS {
                    // Other rounds for the best 10 alone.
                    let is_usual = round == DEFAULT_ROUND;
                    if !(is_usual || *k == 10 && name != "none") || name == "none" && *k != 10 {
                        continue;
                    }
                    if !self.has_shared_memory(round, *k) {
                        continue;
                    }
                    let mut how = self.usual(round);
                    if !is_usual {
                        how.post = Post::Behind;
                    }
                    let most = if is_usual { most } else { most.min(MOST_BEHIND) };
                    let plans = &plans[..plans.len().min(most)];
                    let (found, took) = self.device_pass(plans, how)?;
                    let pairs = found.iter().zip(expected);
                    let wrong = pairs.filter(|(found, hits)| !same_bits(found, hits)).count();
                    print(json!({
                        "row": "wang-check", "cached": name, "k": k, "round": round,
                        "lists": self.device.cache().len(), "left_out": self.device.cache().left_out(),
                        "cached_bytes": self.device.cache().bytes(), "queries": plans.len(),
                        "exhaustive": sample.len(), "continued": took.begun, "wrong": wrong,
                    }))?;
                    ensure!(wrong == 0, "{name}: {wrong} answers differ from the CPU's");
                }
            }
        }
        Ok(())
    }
}

fn same_bits(a: &[Hit], b: &[Hit]) -> bool {
    let bits = |hit: &Hit| (hit.docid, hit.score.to_bits());
    a.len() == b.len() && a.iter().map(bits).eq(b.iter().map(bits))
}
