//! The experiments of Ding, He, Yan and Suel on a device; `docs/inside/papers.md` names them.
//!
//! Times of one query are from its launch to its hits in host memory; those of stages are between
//! events on the device, and what the host takes to launch the next kernel is in them.

mod decoding;
mod merging;

use super::Args;
use super::harness::{
    AnswerTimes, PlannedQuery, PlannedTerm, PreparedBench, alone, batches_of, distinct, expected,
    hits, passes, run_wanted, spread, with,
};
use crate::args::explain;
use crate::numbers::mean;
use crate::rows::print;
use anyhow::ensure;
use millrace::inside::papers::{
    AskedPart, DeviceMethod as _, DevicePart, DingTuning, MethodBatch, MethodDevice, check_lists,
};
use millrace::{Algorithm, Hit, Mode, Query, Scoring, Wanted};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// The most queries that are timed one at a time.
const ALONE: usize = 2000;

/// The most queries whose stages are timed.
const STAGED: usize = 1000;

/// The paper's table 2, in milliseconds: the mode, one core, the GPU.
const TABLE_2: [(Mode, f64, f64); 3] =
    [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];

pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let prepared =
        PreparedBench::new(args, queries, Scoring::default(), Wanted::default(), usize::MAX)?;
    let generation = prepared.snapshot.generation();
    check_lists::<DingTuning>(generation).map_err(explain)?;
    let mut device = prepared.open::<DingTuning>(0, args.batch_or(256), 1000, None)?;
    let start = Instant::now();
    let lists = distinct(&prepared.planned);
    let parts: Vec<_> = lists.iter().map(|(_, term)| list(term)).collect();
    device.fill(&parts, device.cache_room())?;
    let cache = device.cache();
    ensure!(cache.left_out() == 0, "the lists of the queries do not fit --gpu-memory");
    let form = generation.runs()[0].postings_header().form;
    let more = json!({
        "lists": cache.len(), "bytes": cache.bytes(), "load_s": start.elapsed().as_secs_f64(),
        "codec": form.name(), "block_size": form.block_len(),
    });
    prepared.load("ding09-load", device.device(), more)?;
    let mut bench = Ding09Bench { prepared: &prepared, device };
    run_wanted(
        args,
        &mut bench,
        &[
            ("ding09-check", Ding09Bench::check),
            ("ding09-table1", Ding09Bench::table_1),
            ("ding09-figure4", Ding09Bench::figure_4),
            ("ding09-figure6", Ding09Bench::figure_6),
            ("ding09-table2", Ding09Bench::table_2),
            ("ding09-table3", Ding09Bench::table_3),
            ("ding09-batched", Ding09Bench::batched),
        ],
    )
}

struct Ding09Bench<'a> {
    prepared: &'a PreparedBench<'a>,
    device: MethodDevice<DingTuning>,
}

fn list(term: &PlannedTerm) -> DevicePart {
    DevicePart::whole(term.entries.iter().copied())
}

fn asked(term: &PlannedTerm) -> AskedPart {
    AskedPart::new(list(term), term.weight)
}

/// What the CPU does beside: every posting is scored where any term will do, as on the device.
fn wanted(mode: Mode) -> Wanted {
    let algorithm = if mode == Mode::And { Algorithm::Galloping } else { Algorithm::Exhaustive };
    Wanted { k: 10, mode, algorithm, ..Wanted::default() }
}

/// The stages of table 3 that kernels belong to.
fn stage(kernel: &str, all_terms: bool) -> &'static str {
    match kernel {
        "ding_open" | "ding_decode" => "decompression",
        "ding_clear" => "initialization",
        "ding_accumulate" => "scoring",
        "ding_scores" | "ding_maxima" | "ding_extract" if all_terms => "top-k scoring",
        "ding_scores" | "ding_maxima" | "ding_extract" => "top-k",
        _ => "intersection",
    }
}

impl Ding09Bench<'_> {
    /// Batches of queries, to be answered as is usual.
    fn of(
        &mut self,
        planned: &[&PlannedQuery],
        k: u32,
        size: usize,
        all_terms: bool,
    ) -> anyhow::Result<Vec<MethodBatch<DingTuning>>> {
        let queries = planned.iter().map(|planned| planned.asked());
        batches_of(&mut self.device, DingTuning::default(), all_terms, queries, k, size)
    }

    fn size(&self) -> usize {
        self.prepared.args.batch_or(256)
    }

    fn time(
        &mut self,
        batches: &[MethodBatch<DingTuning>],
        seconds: f64,
    ) -> anyhow::Result<AnswerTimes> {
        passes(seconds, || {
            let mut all = AnswerTimes::default();
            for batch in batches {
                all += AnswerTimes::of(batch.len(), || {
                    std::hint::black_box(self.device.answer(batch)?);
                    Ok(self.device.took_ms()?)
                })?;
            }
            Ok(all)
        })
    }

    /// The answers to queries, in batches of this many: first those of AND, then those of OR.
    fn answers(
        &mut self,
        queries: &[&PlannedQuery],
        mode: Mode,
        k: u32,
        size: usize,
    ) -> anyhow::Result<Vec<Vec<Hit>>> {
        let stages: &[bool] = match mode {
            Mode::And => &[true],
            Mode::Or => &[false],
            Mode::AndOr => &[true, false],
        };
        let mut found = vec![Vec::new(); queries.len()];
        let mut asked: Vec<usize> = (0..queries.len()).collect();
        for &all_terms in stages {
            let some: Vec<&PlannedQuery> = asked.iter().map(|&q| queries[q]).collect();
            let mut all = Vec::with_capacity(some.len());
            for batch in self.of(&some, k, size, all_terms)? {
                all.extend(hits(self.device.answer(&batch)?));
            }
            for (&q, hits) in asked.iter().zip(all) {
                found[q] = hits;
            }
            asked.retain(|&q| found[q].len() < k as usize);
        }
        Ok(found)
    }

    fn check(&mut self) -> anyhow::Result<()> {
        let sample = self.prepared.sample();
        for (k, mode) in [10, 1000].into_iter().flat_map(|k| Mode::ALL.map(|mode| (k, mode))) {
            let found = self.answers(&sample, mode, k, self.size())?;
            let expected = expected(&sample, mode, k)?;
            let row = json!({"row": "ding09-check", "mode": mode.name(), "k": k});
            self.prepared.compare(row, &sample, &found, &expected)?;
        }
        Ok(())
    }

    /// Microseconds of each query alone, for the best 10.
    fn alone(&mut self, queries: &[&PlannedQuery], mode: Mode) -> anyhow::Result<Vec<f64>> {
        alone(queries, |planned| self.answers(&[planned], mode, 10, 1).map(drop))
    }

    fn table_2(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(ALONE);
        let postings: u64 = queries.iter().map(|planned| planned.postings()).sum();
        for (mode, cpu_ms, gpu_ms) in TABLE_2 {
            let micros = self.alone(&queries, mode)?;
            let mean_ms = mean(&micros) / 1e3;
            let [p50, p99] = spread(&micros);
            let beside = self.prepared.beside(&queries, wanted(mode), STAGED)?;
            let row = json!({
                "row": "ding09-table2", "mode": mode.name(), "k": 10, "queries": queries.len(),
                "postings_per_query": postings / queries.len() as u64, "mean_ms": mean_ms,
                "p50_us": p50, "p99_us": p99, "paper_cpu_ms": cpu_ms, "paper_gpu_ms": gpu_ms,
                "times_paper_gpu": gpu_ms / mean_ms,
            });
            print(with(row, beside))?;
        }
        Ok(())
    }

    /// What the stages of queries take, one query at a time and in batches; and of all lists of AND
    /// but the shortest, how many blocks are decoded.
    fn table_3(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(STAGED);
        let others = |planned: &&PlannedQuery| -> u64 {
            let laid = |term| self.device.cache().place(&asked(term).key).map(|(_, laid)| laid);
            let lists = planned.terms.iter().filter_map(laid);
            let all: u64 = lists.clone().map(|laid| u64::from(laid.blocks)).sum();
            let shortest = lists.min_by_key(|laid| laid.postings);
            all - shortest.map_or(0, |laid| u64::from(laid.blocks))
        };
        let blocks: u64 = queries.iter().map(others).sum();
        let modes = [(Mode::And, true, Some(blocks)), (Mode::Or, false, None)];
        for (mode, all_terms, blocks) in modes {
            for size in [1, self.size()] {
                let mut stages = BTreeMap::<&str, f64>::new();
                let mut chosen = 0;
                for batch in self.of(&queries, 10, size, all_terms)? {
                    let steps = DingTuning::steps(&batch);
                    let times = self.device.time_steps(&batch, &steps)?;
                    for (step, &ms) in steps.iter().zip(&times[1..]) {
                        *stages.entry(stage(step.kernel, all_terms)).or_default() += f64::from(ms);
                    }
                    if all_terms {
                        let ranks = batch.ranks(self.device.output());
                        let others = ranks.iter().flat_map(|ranks| &ranks[1..]);
                        chosen += others.map(|rank| u64::from(rank.chosen)).sum::<u64>();
                    }
                }
                let all: f64 = stages.values().sum();
                stages.values_mut().for_each(|ms| *ms /= all);
                print(json!({
                    "row": "ding09-table3", "mode": mode.name(), "k": 10, "batch": size,
                    "queries": queries.len(), "us_per_query": all * 1e3 / queries.len() as f64,
                    "shares": stages, "blocks_decoded": chosen, "blocks": blocks,
                }))?;
            }
        }
        Ok(())
    }

    /// Queries in a second, many at a time.
    fn batched(&mut self) -> anyhow::Result<()> {
        let queries = self.prepared.some(usize::MAX);
        for mode in [Mode::Or, Mode::And] {
            let batches = self.of(&queries, 10, self.size(), mode == Mode::And)?;
            let took = self.time(&batches, self.prepared.args.seconds)?;
            let beside = self.prepared.beside(&queries, wanted(mode), STAGED)?;
            let row = json!({
                "row": "ding09-batched", "mode": mode.name(), "k": 10,
                "batch": queries.len() as f64 / batches.len() as f64,
                "queries_per_s": 1e6 / took.us(), "us": took.us(),
            });
            print(with(row, beside))?;
        }
        Ok(())
    }
}
