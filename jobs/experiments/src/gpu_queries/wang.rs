//! The experiments of Wang, Yu, Stones, Ren, Wang, Liu and Ren on a device; `docs/inside/papers.md`
//! names them. Those that need none are `experiments wang`.
//!
//! The index is in global order. The log is cut in halves: caches are filled by the first, and the
//! other is answered. Queries without a document that has all their terms are left out.

mod figure_10;
mod figures;
mod model;
mod pass;

use super::Args;
use super::harness::{PlannedQuery, PreparedBench, expected, has_room, wanting};
use crate::args::scoring_of_wang;
use crate::threads::{in_turn, threads};
use crate::wang::rate;
use millrace::inside::index::{Stop, TermEntry};
use millrace::inside::papers::{
    DEFAULT_ROUND, Demand, DeviceMethod as _, DevicePart, MethodDevice, ROUNDS, WANG, WangTuning,
    longest, wang_shared_bytes,
};
use millrace::inside::query::Plan;
use millrace::{Algorithm, Mode, Query, Wanted};
use model::{ListSizes, WangModel};
use pass::PassSettings;
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// Queries of a batch at most.
const BATCH: usize = 16_384;

/// How many hits are compared.
const KS: [u32; 6] = [10, 1, 5, 15, 100, 1000];

pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let (scoring, most) = (scoring_of_wang(&args.index)?, WangTuning::MOST_TERMS);
    let prepared = PreparedBench::new(args, queries, scoring, of_wang(1), most)?;
    let generation = prepared.snapshot.generation();
    let list_bytes = generation.runs()[0].postings_header().list_bytes;
    // The memory of a query job, of the host, too.
    let device = prepared.open::<WangTuning>(0, BATCH, 64, None)?;
    let lists = longest(generation)?;
    let test = &prepared.planned[prepared.planned.len() / 2..];
    let texts: HashSet<&str> = test.iter().map(|of| &*queries[of.number].text).collect();
    let more = json!({
        "test": test.len(), "distinct": texts.len(), "long_lists": lists.len(),
        "list_bytes": list_bytes, "cache_bytes": device.cache_room(),
        "buffer_bytes": device.room().list_bytes,
    });
    prepared.load("wang-load", device.device(), more)?;
    let sizes = ListSizes::default();
    let mut bench =
        WangBench { prepared: &prepared, device, lists, asked: Vec::new(), sizes, cpu: 0.0 };
    if args.wants("wang-check") {
        bench.check()?;
    }
    if args.only.as_ref().is_none_or(|only| only != "wang-check") {
        bench.figures(list_bytes)?;
    }
    Ok(())
}

/// What the paper wants of queries.
fn of_wang(k: usize) -> Wanted {
    Wanted { k, mode: Mode::And, algorithm: WANG, ..Wanted::default() }
}

/// A model, what the training queries want of lists, and the queries that are answered.
struct WangLog {
    model: WangModel,
    demand: Demand,
    plans: Vec<Plan>,
}

type Figure<B> = fn(&mut B, &WangLog) -> anyhow::Result<()>;

struct WangBench<'a> {
    prepared: &'a PreparedBench<'a>,
    device: MethodDevice<WangTuning>,
    /// All lists of more than one block, the longest first.
    lists: Vec<DevicePart>,
    /// The lists that queries of figures ask for.
    asked: Vec<TermEntry>,
    sizes: ListSizes,
    /// Queries a second of the best CPU engine on all cores, of figures with the best 10.
    cpu: f64,
}

impl<'a> WangBench<'a> {
    /// The queries by which caches are filled, and those that are answered in figures.
    fn halves(&self) -> (&'a [PlannedQuery], &'a [PlannedQuery]) {
        self.prepared.planned.split_at(self.prepared.planned.len() / 2)
    }

    /// The log for the best k, to be answered as the model says.
    fn log(&self, model: WangModel, k: usize) -> anyhow::Result<WangLog> {
        let (train, test) = self.halves();
        let text = |planned: &PlannedQuery| (&*self.prepared.queries[planned.number].text, 1);
        let texts: Vec<(&str, _)> = train.iter().map(text).collect();
        let demand =
            Demand::of_log(&self.prepared.snapshot, &texts, k, threads(), &Stop::default())?;
        Ok(WangLog { model, demand, plans: wanting(test, of_wang(k)) })
    }

    /// The figures that are asked for, for the best 10 except for the last.
    fn figures(&mut self, list_bytes: u64) -> anyhow::Result<()> {
        let plans = wanting(self.halves().1, of_wang(10));
        let entries = plans.iter().flat_map(|plan| plan.lists_of(0)).flatten();
        let lists: HashMap<u64, TermEntry> = entries.map(|entry| (entry.offset, *entry)).collect();
        self.asked = lists.into_values().collect();
        self.asked.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.df));
        let begin = || Ok(Default::default());
        let sized = in_turn(threads(), begin, |(layer, out): &mut (_, Vec<u8>), number| {
            let Some(&entry) = self.asked.get(number) else { return Ok(None) };
            out.clear();
            WangTuning::lay(
                &self.prepared.snapshot,
                layer,
                &DevicePart::whole([Some(entry)]),
                out,
            )?;
            Ok(Some((entry.offset, out.len() as u64)))
        })?;
        let on_disk: u64 = self.asked.iter().map(|entry| entry.bytes).sum();
        let on_device: u64 = sized.iter().map(|(_, bytes)| bytes).sum();
        let growth = on_device as f64 / on_disk.max(1) as f64;
        let index = growth * list_bytes as f64;
        let most_buffer = self.device.room().list_bytes as u64;
        self.sizes = ListSizes { lists: sized.into_iter().collect(), growth, index, most_buffer };
        self.cpu = rate(&plans, 10, Algorithm::Galloping, threads())?.middle;
        let model = self.measure(&plans)?;
        let log = self.log(model, 10)?;
        let figures: [(&str, Figure<Self>); 6] = [
            ("wang-figure4", Self::figure_4),
            ("wang-figure5", Self::figure_5),
            ("wang-figure6", Self::figure_6),
            ("wang-figure8", Self::figure_8),
            ("wang-figure9", Self::figure_9),
            ("wang-figure10", Self::figure_10),
        ];
        for (name, figure) in figures {
            if self.prepared.args.wants(name) {
                figure(self, &log)?;
            }
        }
        Ok(())
    }

    /// Compares a sample of answers, with whole lists on the device, parts of them, and nothing.
    fn check(&mut self) -> anyhow::Result<()> {
        let form = self.prepared.snapshot.generation().runs()[0].postings_header().form;
        let part = |parts: usize| -> Vec<DevicePart> {
            let blocks = |df: u32| (df as usize).div_ceil(form.block_len()).div_ceil(parts);
            let df = |list: &DevicePart| list.entries.iter().flatten().map(|entry| entry.df).sum();
            let of = |list| DevicePart { blocks: Some(blocks(df(list))), ..list.clone() };
            self.lists.iter().map(of).collect()
        };
        let caches = [
            ("whole", self.lists.clone()),
            ("halves", part(2)),
            ("first blocks", part(usize::MAX)),
            ("none", Vec::new()),
        ];
        let sample = self.prepared.sample();
        let terms = sample.iter().map(|planned| planned.terms.len()).max().unwrap_or(0);
        for k in KS {
            let plans = wanting(sample.iter().copied(), of_wang(k as usize));
            let expected = expected(&sample, Mode::And, k)?;
            for (name, cached) in &caches {
                self.device.fill(cached, self.device.cache_room())?;
                for round in ROUNDS {
                    let room = *self.device.room();
                    let needs = wang_shared_bytes(round, terms, k.next_power_of_two());
                    if !has_room(needs, room.shared_bytes, "documents of a round", round) {
                        continue;
                    }
                    let queries = self.prepared.args.batch_or(BATCH);
                    let behind = round != DEFAULT_ROUND;
                    // Of one k, threads answer some of the queries.
                    let beside = k == 15;
                    let how = PassSettings { round, queries, room, behind, beside };
                    let (found, took) = self.device_pass(&plans, how)?;
                    let cache = self.device.cache();
                    let row = json!({
                        "row": "wang-check", "cached": name, "k": k, "round": round,
                        "lists": cache.len(), "left_out": cache.left_out(),
                        "cached_bytes": cache.bytes(), "continued": took.begun,
                    });
                    self.prepared.compare(row, &sample, &found, &expected)?;
                }
            }
        }
        Ok(())
    }
}
