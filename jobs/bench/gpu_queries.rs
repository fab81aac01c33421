//! `millrace bench gpu-queries`: how fast does a device answer queries about an index, and is it right?
//!
//! All lists of the queries are brought to the device first. A sample of the answers is compared with those
//! of the CPU's exhaustive search, to the bit, before anything is timed. Isolated: the engine, from batches
//! of placed queries to their hits in host memory; analysis, look-up and formatting are not in it. Batches
//! are in flight in several slots; for the CPU all threads search, with analysis and look-up.

mod collection;
mod ding09;
mod huang;
mod wang;

use super::rows::print;
use super::{all_queries, quantile};
use anyhow::{Context as _, bail};
use collection::{OnDevice, Planned, expected};
use millrace::gpu::ding09::{MERGE_LEVELS, Merging};
use millrace::gpu::query::batch::{Answered, Batch, BatchQuery, Room};
use millrace::gpu::query::bring::Decoding;
use millrace::gpu::query::device::{QueryDevice, Slot, accumulation};
use millrace::index::generations::generation::Generation;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Only rows whose names begin so: check, load, decode, accumulate, or-10, or-1000, and-10, latency, steps, cpu.
    /// ding09 is another engine, for indexes of rice or pfor, with rows ding09-check, -table1, -figure4, -figure6,
    /// -table2, -table3, -terms, -levels, -splitters and -batched; huang is one for newpfd with blocks of 64, with rows huang-check,
    /// -table1, -figure3, -figure4, -figure5 and -table3; wang is one for indexes in global order, with rows
    /// wang-check, -figure4, -figure5, -figure6, -figure8, -figure9 and -figure10.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Number of queries in a batch (default: 256; huang 16384, wang 4096).
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,
    /// Batches in flight.
    #[arg(long, default_value = "3", value_name = "N")]
    slots: NonZeroUsize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Queries whose answers are compared with the CPU's.
    #[arg(long, default_value_t = 256, value_name = "N")]
    sample: usize,
    /// Only queries with so many distinct terms.
    #[arg(long, default_value = "1..64", value_parser = parse_terms, value_name = "A..B")]
    terms: (usize, usize),
    /// Bytes of the device's memory for lists.
    #[arg(long, value_name = "SIZE", value_parser = crate::cli::args::size)]
    gpu_memory: Option<u64>,
    /// With wang-check: bytes of GPU memory for lists that are copied for a batch (default: 256M).
    #[arg(long, value_name = "SIZE", value_parser = crate::cli::args::size)]
    buffer: Option<u64>,
    /// With wang: share of PageRank that the order of the index was made for (default: 0.3).
    #[arg(long, value_name = "F")]
    alpha: Option<f64>,
    /// Milliseconds within which queries of wang are to be answered in figures 5 and 9.
    #[arg(long, value_name = "MS,...", value_delimiter = ',', default_value = "20,150")]
    deadline_ms: Vec<f64>,
    /// Levels of splitters of ding09.
    #[arg(long, default_value_t = MERGE_LEVELS, value_name = "N", value_parser = clap::value_parser!(u32).range(..=4))]
    merge_levels: u32,
    /// Splitters of ding09 for each of the level before (see query --help).
    #[arg(long, value_name = "N", value_parser = millrace::gpu::query::given::splitters)]
    splitters: Option<u32>,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

fn parse_terms(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "give A..B, both included".to_string();
    let (least, most) = text.split_once("..").ok_or_else(wrong)?;
    Ok((least.parse().map_err(|_| wrong())?, most.parse().map_err(|_| wrong())?))
}

/// The ways to ask that are compared and timed.
const ROWS: [(&str, Mode, u32); 3] =
    [("or-10", Mode::Or, 10), ("or-1000", Mode::Or, 1000), ("and-10", Mode::And, 10)];

/// Ways that are only compared.
const COMPARED: [(&str, Mode, u32); 3] =
    [("and-or-10", Mode::AndOr, 10), ("and-1000", Mode::And, 1000), ("or-20000", Mode::Or, 20_000)];

impl Args {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.starts_with(only.as_str()))
    }

    /// Queries of a batch, or what they are if nobody says.
    fn batch_or(&self, usual: usize) -> usize {
        self.batch.map_or(usual, NonZeroUsize::get)
    }

    /// How ding09 merges.
    fn merging(&self) -> Merging {
        Merging { levels: self.merge_levels, splitters: self.splitters }
    }

    fn batch(&self) -> usize {
        self.batch_or(256)
    }
}

/// Runs the experiments of a paper.
type Run = fn(&Args, &[Query]) -> anyhow::Result<()>;

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let queries = all_queries(args.queries.as_deref())?;
    for (name, run) in [("ding09", ding09::run as Run), ("huang", huang::run), ("wang", wang::run)]
    {
        if args.only.as_ref().is_some_and(|only| only.starts_with(name)) {
            return run(args, &queries);
        }
    }
    let start = Instant::now();
    let snapshot = Snapshot::new(Generation::open(&args.index, false)?, Scoring::default())?;
    let (device, planned) =
        collection::open(snapshot.clone(), &queries, args.terms, args.gpu_memory)?;
    if planned.is_empty() {
        bail!("no query has terms of the index, as many as --terms says");
    }
    let on = OnDevice::load(&device, &planned)?;
    let postings: u64 = planned.iter().map(Planned::postings).sum();
    print(json!({
        "row": "load", "device": device.query.device().info().to_string(),
        "documents": snapshot.norms().len(), "queries": planned.len(), "lists": on.lists,
        "postings": on.postings, "bytes": on.bytes, "load_s": on.seconds,
        "start_s": start.elapsed().as_secs_f64(),
        "postings_per_query": postings / planned.len() as u64,
    }))?;
    let bench =
        Bench { args, device: &device.query, planned: &planned, on: &on, snapshot: &snapshot };
    for (name, mode, k) in ROWS.into_iter().chain(COMPARED) {
        if args.wants("check") || args.wants(name) {
            bench.check(name, mode, k, &queries)?;
        }
    }
    if args.wants("decode") {
        let Decoding { postings, bytes, lists_s, docids_s, .. } = on.decode(&device, &planned)?;
        let all = postings as f64;
        print(json!({
            "row": "decode", "postings": postings, "bytes": bytes,
            "postings_per_s": all / lists_s, "docids_per_s": all / docids_s,
            // Read as they lie on disk, written as five bytes.
            "docids_bytes_per_s": (bytes as f64 + 5.0 * all) / docids_s,
        }))?;
    }
    if args.wants("accumulate") {
        bench.accumulate()?;
    }
    for (name, mode, k) in ROWS {
        if args.wants(name) {
            bench.throughput(name, mode, k)?;
        }
        if args.wants("steps") {
            bench.steps(name, mode, k)?;
        }
    }
    if args.wants("latency") {
        for (name, mode, k) in ROWS {
            bench.latency(name, mode, k)?;
        }
    }
    if args.wants("cpu") {
        for (name, mode, k) in ROWS {
            bench.cpu(name, (mode, Algorithm::Auto), k, &queries)?;
        }
        bench.cpu("or-10, exhaustive", (Mode::Or, Algorithm::Exhaustive), 10, &queries)?;
    }
    Ok(())
}

struct Bench<'a> {
    args: &'a Args,
    device: &'a QueryDevice,
    planned: &'a [Planned],
    on: &'a OnDevice,
    snapshot: &'a Arc<Snapshot>,
}

impl Bench<'_> {
    /// Batches of all queries.
    fn batches(&self, mode: Mode, k: u32, size: usize, room: &Room) -> Vec<Batch> {
        let mut batches = vec![Batch::default()];
        for planned in self.planned {
            let mut query = self.on.query(planned, mode, k);
            if !query.is_possible() {
                continue;
            }
            let full = batches.last().is_some_and(|batch| batch.len() == size);
            if full {
                batches.push(Batch::default());
            }
            while let Some(Err(back)) = batches.last_mut().map(|batch| batch.add(query, room)) {
                query = back;
                batches.push(Batch::default());
                if batches.len() > 1 << 20 {
                    break;
                }
            }
        }
        batches.iter_mut().for_each(|batch| batch.finish(room));
        batches
    }

    fn room(&self, k: u32) -> Room {
        self.device.room(self.args.batch(), k)
    }

    /// Compares a sample of answers.
    fn check(&self, name: &str, mode: Mode, k: u32, queries: &[Query]) -> anyhow::Result<()> {
        let room = self.room(k);
        let mut slot = Slot::new(self.device, room, false)?;
        let mut ordered = Slot::new(self.device, self.device.room(1, k), true)?;
        let step = (self.planned.len() / self.args.sample.max(1)).max(1);
        let sample: Vec<&Planned> = self.planned.iter().step_by(step).collect();
        let (mut found, mut overflown) = (Vec::new(), 0);
        let most = (room.keys / u64::from(room.capacity(k))).clamp(1, 64) as usize;
        for part in sample.chunks(self.args.batch().min(most)) {
            let mut batch = Batch::default();
            for planned in part {
                let query = self.on.query(planned, mode, k);
                let added = batch.add(query, &room);
                added.ok().context("a batch of the sample has no room")?;
            }
            batch.finish(&room);
            slot.launch(self.device, &batch)?;
            slot.wait(self.device)?;
            for (planned, answer) in part.iter().zip(slot.answers(&batch)) {
                found.push(match answer {
                    Answered::Hits(hits) => hits,
                    Answered::Overflown(_) => {
                        overflown += 1;
                        self.ordered(&mut ordered, planned, mode, k)?
                    }
                });
            }
        }
        let expected = expected(self.snapshot, &sample, (mode, k), queries)?;
        let mut wrong = 0;
        for ((planned, found), expected) in sample.iter().zip(&found).zip(&expected) {
            let bits = |hits: &[Hit]| -> Vec<(u32, u32)> {
                hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
            };
            if bits(found) != bits(expected) {
                wrong += 1;
                if wrong <= 3 {
                    let at = found.iter().zip(expected).position(|(a, b)| a != b);
                    let show = |hits: &[Hit]| at.and_then(|at| hits.get(at).copied());
                    say!(
                        "{name}: query {:?}: {} hits, not {}; first difference at {at:?}: {:?}, not {:?}",
                        queries[planned.number].text,
                        found.len(),
                        expected.len(),
                        show(found),
                        show(expected),
                    );
                }
            }
        }
        // What overflows only because asked: the ordered kernels on a few of the sample.
        let mut checked = 0;
        for (planned, expected) in sample.iter().zip(&expected).take(8) {
            let hits = self.ordered(&mut ordered, planned, mode, k)?;
            wrong += usize::from(&hits != expected);
            checked += 1;
        }
        print(json!({
            "row": "check", "name": name, "queries": sample.len(), "wrong": wrong,
            "overflown": overflown, "ordered": checked,
        }))?;
        if wrong > 0 {
            bail!("{name}: {wrong} answers differ from the CPU's");
        }
        Ok(())
    }

    /// The answer of the ordered kernels.
    fn ordered(
        &self,
        slot: &mut Slot,
        planned: &Planned,
        mode: Mode,
        k: u32,
    ) -> anyhow::Result<Vec<Hit>> {
        let mut one = |mode| -> anyhow::Result<Vec<Hit>> {
            let mut batch = Batch::default();
            let added = batch.add(self.on.query(planned, mode, k), slot.room());
            added.ok().context("one query has no room")?;
            batch.finish(slot.room());
            slot.launch_ordered(self.device, &batch)?;
            slot.wait(self.device)?;
            match slot.answers(&batch).pop() {
                Some(Answered::Hits(hits)) => Ok(hits),
                _ => bail!("the ordered kernels gave no answer"),
            }
        };
        match mode {
            Mode::AndOr => {
                let all = one(Mode::And)?;
                if all.len() < k as usize { one(Mode::Or) } else { Ok(all) }
            }
            mode => one(mode),
        }
    }

    /// Runs batches in turns over all slots for some seconds; returns queries and seconds.
    fn turns(&self, batches: &[Batch], slots: &mut [Slot]) -> anyhow::Result<(u64, f64, u64)> {
        let (mut queries, mut overflown) = (0, 0);
        let mut waiting: Vec<Option<usize>> = vec![None; slots.len()];
        let mut next = 0;
        let mut start = Instant::now();
        let mut warm = false;
        loop {
            for (slot, waits) in slots.iter_mut().zip(&mut waiting) {
                if let Some(batch) = waits.take() {
                    while !slot.is_done(self.device)? {
                        std::hint::spin_loop();
                    }
                    let batch = &batches[batch];
                    let answers = slot.answers(batch);
                    overflown +=
                        answers.iter().filter(|a| matches!(a, Answered::Overflown(_))).count()
                            as u64;
                    queries += batch.len() as u64;
                }
                slot.launch(self.device, &batches[next % batches.len()])?;
                *waits = Some(next % batches.len());
                next += 1;
            }
            if !warm && (next > batches.len() || start.elapsed().as_secs_f64() > self.args.seconds)
            {
                (warm, queries, overflown, start) = (true, 0, 0, Instant::now());
            }
            if warm && start.elapsed().as_secs_f64() > self.args.seconds {
                let seconds = start.elapsed().as_secs_f64();
                for slot in slots {
                    slot.wait(self.device)?;
                    slot.free();
                }
                return Ok((queries, seconds, overflown));
            }
        }
    }

    fn mean_postings(&self, mode: Mode) -> f64 {
        let of = |planned: &Planned| if mode == Mode::And { 0 } else { planned.postings() };
        self.planned.iter().map(of).sum::<u64>() as f64 / self.planned.len() as f64
    }

    fn throughput(&self, name: &str, mode: Mode, k: u32) -> anyhow::Result<()> {
        let room = self.room(k);
        let batches = self.batches(mode, k, self.args.batch(), &room);
        let slots = (0..self.args.slots.get()).map(|_| Slot::new(self.device, room, false));
        let mut slots = slots.collect::<Result<Vec<_>, _>>()?;
        let (queries, seconds, overflown) = self.turns(&batches, &mut slots)?;
        let rate = queries as f64 / seconds;
        print(json!({
            "row": name, "engine": "gpu", "batch": self.args.batch(), "slots": slots.len(),
            "queries_per_s": rate, "us": 1e6 / rate, "overflown": overflown, "queries": queries,
            "postings_per_s": rate * self.mean_postings(mode),
        }))
    }

    /// Device time of the steps of a batch: each is what the batch takes more with it.
    fn steps(&self, name: &str, mode: Mode, k: u32) -> anyhow::Result<()> {
        let room = self.room(k);
        let batches = self.batches(mode, k, self.args.batch(), &room);
        let mut slot = Slot::new(self.device, room, false)?;
        let (machine, windows) = (self.device.machine(), self.device.windows());
        let count = machine.batch(windows, batches[0].groups).len();
        let mut before = 0.0;
        let mut shares = Vec::new();
        for upto in 0..=count {
            let (mut all, mut candidates, mut queries) = (0.0, 0u64, 0usize);
            for pass in 0..2 {
                for batch in &batches {
                    let steps = machine.batch(windows, batch.groups);
                    slot.run(self.device, batch, &steps[..upto.min(steps.len())])?;
                    slot.wait(self.device)?;
                    if pass == 1 {
                        all += f64::from(slot.took_ms(self.device)?);
                        candidates += slot.candidates().iter().map(|&n| u64::from(n)).sum::<u64>();
                        queries += batch.len();
                    }
                    slot.free();
                }
            }
            let us = 1e3 * all / queries as f64;
            let steps = machine.batch(windows, batches[0].groups);
            let step = upto.checked_sub(1).map_or("copies", |at| steps[at].kernel);
            shares.push(json!({
                "step": step, "us_per_query": us - before,
                "candidates_per_query": candidates as f64 / queries as f64,
            }));
            before = us;
        }
        print(json!({"row": "steps", "name": name, "steps": shares, "us_per_query": before}))
    }

    /// All postings of OR are added up, and nothing is found.
    fn accumulate(&self) -> anyhow::Result<()> {
        let room = self.room(10);
        let mut batches = self.batches(Mode::Or, 10, self.args.batch(), &room);
        for batch in &mut batches {
            batch.records.iter_mut().for_each(|record| record.floor = 1 << 16);
        }
        let mut slot = Slot::new(self.device, room, false)?;
        let (mut ms, mut queries) = (Vec::new(), 0usize);
        let start = Instant::now();
        let mut pass = 0;
        while pass < 2 || start.elapsed() < Duration::from_secs_f64(self.args.seconds) {
            let mut all = 0.0;
            for batch in &batches {
                let steps =
                    accumulation(self.device.machine(), self.device.windows(), batch.groups);
                slot.run(self.device, batch, &steps)?;
                slot.wait(self.device)?;
                all += f64::from(slot.took_ms(self.device)?);
                slot.free();
            }
            if pass > 0 {
                ms.push(all);
            }
            queries = batches.iter().map(Batch::len).sum();
            pass += 1;
        }
        let median = super::median(&mut ms);
        let rate = queries as f64 / median * 1e3;
        print(json!({
            "row": "accumulate", "us_per_query": 1e6 / rate,
            "postings_per_s": rate * self.mean_postings(Mode::Or),
            // Two bytes of a docid and an impact; lists of a window stay in the second-level cache.
            "asked_bytes_per_s": 3.0 * rate * self.mean_postings(Mode::Or),
        }))
    }

    /// One query at a time, from its launch to its hits.
    fn latency(&self, name: &str, mode: Mode, k: u32) -> anyhow::Result<()> {
        let room = self.device.room(1, k);
        let batches = self.batches(mode, k, 1, &room);
        let mut slot = Slot::new(self.device, room, false)?;
        let (mut micros, mut on_device) = (Vec::new(), Vec::new());
        for (number, batch) in batches.iter().cycle().take(batches.len().min(1500) + 64).enumerate()
        {
            let start = Instant::now();
            slot.launch(self.device, batch)?;
            while !slot.is_done(self.device)? {
                std::hint::spin_loop();
            }
            std::hint::black_box(slot.answers(batch));
            if number >= 64 {
                micros.push(start.elapsed().as_secs_f64() * 1e6);
                on_device.push(1e3 * f64::from(slot.took_ms(self.device)?));
            }
        }
        micros.sort_unstable_by(f64::total_cmp);
        on_device.sort_unstable_by(f64::total_cmp);
        print(json!({
            "row": "latency", "name": name, "queries": micros.len(),
            "p50_us": quantile(&micros, 0.5), "p99_us": quantile(&micros, 0.99),
            "device_p50_us": quantile(&on_device, 0.5), "device_p99_us": quantile(&on_device, 0.99),
        }))
    }

    /// The CPU's engine on all threads, analysis and look-up among it.
    fn cpu(
        &self,
        name: &str,
        (mode, algorithm): (Mode, Algorithm),
        k: u32,
        queries: &[Query],
    ) -> anyhow::Result<()> {
        let wanted = Wanted { k: k as usize, mode, algorithm };
        let numbers: Vec<usize> = self.planned.iter().map(|planned| planned.number).collect();
        let work = (threads(), self.args.seconds);
        let rate = cpu_rate(self.snapshot, &wanted, (queries, &numbers), work)?;
        print(json!({
            "row": name, "engine": "cpu", "threads": threads(),
            "queries_per_s": rate,
        }))
    }
}

/// Queries in a second that so many threads of the CPU answer, of those with some numbers, by turns; measured for
/// some seconds, before which as many pass by half.
fn cpu_rate(
    snapshot: &Arc<Snapshot>,
    wanted: &Wanted,
    (queries, numbers): (&[Query], &[usize]),
    (threads, seconds): (usize, f64),
) -> anyhow::Result<f64> {
    let next = AtomicUsize::new(0);
    let warm = Duration::from_secs_f64(seconds / 2.0);
    let until = warm + Duration::from_secs_f64(seconds);
    let start = Instant::now();
    let work = || -> anyhow::Result<u64> {
        let (mut searcher, mut count) = (Searcher::new(), 0);
        while start.elapsed() < until {
            let at = next.fetch_add(1, Ordering::Relaxed) % numbers.len();
            let text = &queries[numbers[at]].text;
            std::hint::black_box(searcher.search(snapshot, wanted, text)?);
            count += u64::from(start.elapsed() >= warm);
        }
        Ok(count)
    };
    let counts: Vec<anyhow::Result<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a search panicked")).collect()
    });
    let mut all = 0;
    for count in counts {
        all += count?;
    }
    Ok(all as f64 / (until - warm).as_secs_f64())
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// A query of a batch.
impl OnDevice {
    fn query(&self, planned: &Planned, mode: Mode, k: u32) -> BatchQuery {
        let terms = planned.terms.iter().map(|term| self.place(term)).collect();
        BatchQuery { terms, k, mode, docids: 0..u32::MAX, floors: [0; 2] }
    }
}
