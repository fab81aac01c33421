//! The engine of `millrace query`: batches are in flight in several slots.

use super::Args;
use super::harness::{
    DeviceLists, PlannedQuery, PreparedBench, alone, batches, distinct, expected, spread,
};
use crate::rows::print;
use crate::threads::{in_turn, threads};
use anyhow::{Context as _, bail, ensure};
use millrace::inside::gpu::{
    BatchAnswer, BatchQuery, BatchSlot, Bringer, BroughtList, FreeRanges, Layout, ListRequest,
    PlacedList, PlacedTerm, QueryBatch, QueryBatchRoom, QueryDevice, layout_of,
};
use millrace::inside::score::Given;
use millrace::{Hit, Mode, Query, Wanted};
use serde_json::json;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A way to ask: its name, which documents match, and how many hits.
type AskedWay = (&'static str, Mode, u32);

/// The ways that are compared, of which the first ones are timed.
const WAYS: [AskedWay; 6] = [
    ("or-10", Mode::Or, 10),
    ("or-1000", Mode::Or, 1000),
    ("and-10", Mode::And, 10),
    ("and-or-10", Mode::AndOr, 10),
    ("and-1000", Mode::And, 1000),
    ("or-20000", Mode::Or, 20_000),
];
const TIMED: usize = 3;

/// Batches in flight.
const SLOTS: usize = 3;

/// Queries that are asked one at a time.
const ALONE: usize = 1500;

/// Lists that a thread brings together: few, so that all threads have some.
const TOGETHER: usize = 16;

pub(super) fn run(args: &Args, queries: &[Query]) -> anyhow::Result<()> {
    let start = Instant::now();
    let scoring = Given::default().scoring(&args.score)?;
    let mut prepared = PreparedBench::new(args, queries, scoring, Wanted::default(), usize::MAX)?;
    let layout = layout_of(&prepared.snapshot, WAYS[0].2 as usize);
    let device = prepared.device(0)?;
    let norms = prepared.snapshot.norms();
    let device = QueryDevice::open(device, &prepared.toolchain, norms, layout, args.gpu_memory)?;
    let lists = load(&device, &prepared)?;
    if layout == Layout::Bounds {
        let possible =
            |planned: &PlannedQuery| query(&lists, planned, WAYS[0], &device).is_possible();
        prepared.planned.retain(possible);
    }
    prepared.load("load", device.device(), lists.row(start))?;
    let bench = UsualBench { prepared: &prepared, device, lists };
    let ways = WAYS.into_iter().filter(|way| layout == Layout::Bounds || way.1 == Mode::Or);
    for way in ways.clone().filter(|way| args.wants("check") || args.wants(way.0)) {
        bench.check(way)?;
    }
    for way in ways.take(TIMED) {
        if args.wants(way.0) {
            bench.throughput(way)?;
        }
        if args.wants("latency") {
            bench.latency(way)?;
        }
    }
    Ok(())
}

/// Brings all lists, by all threads.
fn load(
    device: &QueryDevice,
    prepared: &PreparedBench<'_>,
) -> anyhow::Result<DeviceLists<PlacedList>> {
    let lists = distinct(&prepared.planned);
    let ranges = Mutex::new(FreeRanges::new(device.arena().bytes()));
    let documents = 0..device.windows().documents;
    let begin = || Ok(Bringer::new(device, &prepared.snapshot, &documents)?);
    let made = in_turn(threads(), begin, |bringer, number| {
        let Some(some) = lists.chunks(TOGETHER).nth(number) else { return Ok(None) };
        let mut lens = [0; TOGETHER];
        let mut came = Vec::new();
        let asked = (0..).zip(some).map(|(id, (_, term))| ListRequest {
            id,
            entries: &term.entries,
            weight: term.weight.into(),
        });
        let room = |id: usize, bytes| {
            lens[id] = bytes;
            ranges.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)
        };
        bringer.bring(asked, room, |id, brought| came.push((id, brought)));
        let made = came.into_iter().map(|(id, brought)| match brought {
            BroughtList::Here(at, placed) => Ok((some[id].0.clone(), at, placed, lens[id])),
            BroughtList::NoRoom => bail!("the lists of the queries do not fit --gpu-memory"),
            BroughtList::Damaged(_) => bail!("the index is damaged; `millrace check` says where"),
            BroughtList::Lost(_) => bail!("the device took no copy of a list"),
        });
        Ok(Some(made.collect::<anyhow::Result<Vec<_>>>()?))
    })?;
    Ok(DeviceLists::new(made.into_iter().flatten().collect()))
}

fn query(
    lists: &DeviceLists<PlacedList>,
    planned: &PlannedQuery,
    (_, mode, k): AskedWay,
    device: &QueryDevice,
) -> BatchQuery {
    let terms = planned.terms.iter().map(|term| {
        let (place, placed) = lists.at(term);
        PlacedTerm { place, placed, df: term.df, weight: term.weight.into() }
    });
    let docids = 0..device.windows().documents;
    BatchQuery { terms: terms.collect(), k, mode, docids, floors: [0; 2] }
}

struct UsualBench<'a> {
    prepared: &'a PreparedBench<'a>,
    device: QueryDevice,
    lists: DeviceLists<PlacedList>,
}

impl UsualBench<'_> {
    fn batches(
        &self,
        planned: &[&PlannedQuery],
        way: AskedWay,
        size: usize,
        room: &QueryBatchRoom,
    ) -> anyhow::Result<Vec<QueryBatch>> {
        let queries = planned.iter().map(|planned| query(&self.lists, planned, way, &self.device));
        let mut all = batches(
            &mut (),
            queries,
            size,
            |()| QueryBatch::default(),
            |(), batch, query| Ok(batch.add(query.clone(), room).is_ok()),
        )?;
        all.iter_mut().for_each(|batch| batch.finish(room));
        Ok(all)
    }

    fn size(&self) -> usize {
        self.prepared.args.batch_or(256)
    }

    fn room(&self, k: u32) -> QueryBatchRoom {
        self.device.room(self.size(), k)
    }

    fn check(&self, way: AskedWay) -> anyhow::Result<()> {
        let (name, mode, k) = way;
        let room = self.room(k);
        let mut slot = BatchSlot::new(&self.device, room)?;
        let mut alone = BatchSlot::new(&self.device, self.device.room(1, k))?;
        let sample = self.prepared.sample();
        let mut found = Vec::new();
        let mut overflown = 0;
        for batch in self.batches(&sample, way, self.size(), &room)? {
            slot.launch(&self.device, &batch)?;
            slot.wait()?;
            for answer in slot.answers(&batch) {
                let hits = match answer {
                    BatchAnswer::Hits(hits) => hits,
                    BatchAnswer::Overflown(_) => {
                        overflown += 1;
                        self.again(&mut alone, sample[found.len()], way, answer)?
                    }
                };
                found.push(hits);
            }
        }
        let expected = expected(&sample, mode, k)?;
        let row = json!({"row": "check", "name": name, "overflown": overflown});
        self.prepared.compare(row, &sample, &found, &expected)
    }

    /// The answer to one query that had no whole one in its batch.
    fn again(
        &self,
        slot: &mut BatchSlot,
        planned: &PlannedQuery,
        way: AskedWay,
        mut answer: BatchAnswer,
    ) -> anyhow::Result<Vec<Hit>> {
        let room = *slot.room();
        let mut asked = query(&self.lists, planned, way, &self.device);
        while let BatchAnswer::Overflown(floors) = answer {
            ensure!(asked.floors != floors, "a query has too many candidates");
            asked.floors = floors;
            let mut batch = QueryBatch::default();
            ensure!(batch.add(asked.clone(), &room).is_ok(), "one query has room");
            batch.finish(&room);
            slot.launch(&self.device, &batch)?;
            slot.wait()?;
            answer = slot.answers(&batch).pop().context("an answer for each query")?;
        }
        match answer {
            BatchAnswer::Hits(hits) => Ok(hits),
            BatchAnswer::Overflown(_) => bail!("a query has too many candidates"),
        }
    }

    /// Runs batches in turns over all slots for some seconds, after each was launched once.
    fn throughput(&self, way: AskedWay) -> anyhow::Result<()> {
        let room = self.room(way.2);
        let batches = self.batches(&self.prepared.some(usize::MAX), way, self.size(), &room)?;
        let slots = (0..SLOTS).map(|_| BatchSlot::new(&self.device, room));
        let mut slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut waiting: Vec<Option<&QueryBatch>> = vec![None; slots.len()];
        let mut queries = 0;
        let mut overflown = 0;
        let mut is_warm = false;
        let mut start = Instant::now();
        for (number, batch) in batches.iter().cycle().enumerate() {
            let turn = number % slots.len();
            let slot = &mut slots[turn];
            if let Some(before) = waiting[turn].replace(batch) {
                while !slot.is_done()? {
                    std::hint::spin_loop();
                }
                let left = |answer: &&BatchAnswer| matches!(answer, BatchAnswer::Overflown(_));
                overflown += slot.answers(before).iter().filter(left).count();
                queries += before.len();
            }
            slot.launch(&self.device, batch)?;
            let is_over = start.elapsed().as_secs_f64() > self.prepared.args.seconds;
            if is_warm && is_over && queries > 0 {
                break;
            }
            if !is_warm && (is_over || number > batches.len()) {
                is_warm = true;
                queries = 0;
                overflown = 0;
                start = Instant::now();
            }
        }
        let rate = queries as f64 / start.elapsed().as_secs_f64();
        for slot in slots.iter_mut().filter(|slot| slot.is_busy()) {
            slot.wait()?;
            slot.free();
        }
        print(json!({
            "row": way.0, "engine": "gpu", "batch": self.size(), "slots": slots.len(),
            "queries_per_s": rate, "us": 1e6 / rate, "overflown": overflown, "queries": queries,
        }))
    }

    /// One query at a time, from its launch to its hits.
    fn latency(&self, way: AskedWay) -> anyhow::Result<()> {
        let room = self.device.room(1, way.2);
        let batches = self.batches(&self.prepared.some(ALONE), way, 1, &room)?;
        let mut slot = BatchSlot::new(&self.device, room)?;
        let mut on_device = Vec::new();
        let micros = alone(&batches, |batch| {
            slot.launch(&self.device, batch)?;
            while !slot.is_done()? {
                std::hint::spin_loop();
            }
            std::hint::black_box(slot.answers(batch));
            on_device.push(1e3 * f64::from(slot.took_ms()?));
            Ok(())
        })?;
        let timed = on_device.len().checked_sub(micros.len()).context("all are timed")?;
        let [p50, p99] = spread(&micros);
        let [device_p50, device_p99] = spread(&on_device[timed..]);
        print(json!({
            "row": "latency", "name": way.0, "queries": micros.len(), "p50_us": p50, "p99_us": p99,
            "device_p50_us": device_p50, "device_p99_us": device_p99,
        }))
    }
}
