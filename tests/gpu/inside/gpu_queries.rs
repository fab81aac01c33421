//! A device answers as the CPU does. The kernels of `query.cu`, emulated, against their twin: the
//! same documents in the same order with the same scores, to the bit.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator, Random};
use millrace::gpu::query::QueryTuning;
use millrace::gpu::query::batch::{BatchAnswer, BatchQuery, QueryBatch, QueryBatchRoom};
use millrace::gpu::query::list::{Layout, ListMaker, PlacedList, Windows};
use millrace::gpu::query::plan::{PlacedTerm, QueryState};
use millrace::gpu::query::steps::{
    Array, LaunchSettings, QueryStep, Zeroed, document_blocks_bytes,
};
use millrace::gpu::query::twin::{FORMULAS, Memory, norm, weight};
use millrace::query::top_k::Hit;
use millrace::query::wanted::Mode;
use millrace::score::weight::Formula;
use std::collections::HashMap;

/// Small windows and blocks, so that a few thousand documents meet every border.
pub(crate) const TUNING: QueryTuning = QueryTuning {
    window_bits: 8,
    threads: 96,
    wide_threads: 64,
    blocks_per_sm: 3,
    found: 16,
    sorted: 32,
    select_threads: 32,
    impact_bits: 6,
    impact_threads: 96,
};

pub(crate) fn emulator() -> Option<Emulator> {
    let source = TUNING.source();
    Emulator::compile(source.text, &source.kernels(), &source.sizes)
}

/// Lists of random documents, from a few to all.
struct Collection {
    windows: Windows,
    norms: Vec<f32>,
    arena: Vec<u8>,
    formula: Formula,
    /// With what the weight of each term has beside its factor.
    lists: Vec<(u64, PlacedList, u32, f32)>,
}

/// How documents differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Lengths and term frequencies of all sorts; one in nine is deleted.
    Mixed,
    /// All are alike, so that all scores of a query are ties.
    Alike,
}

impl Collection {
    fn new(documents: u32, kind: Kind, formula: Formula, random: &mut Random) -> Self {
        let windows = Windows { documents, bits: TUNING.window_bits, layout: Layout::Bounds };
        let norms = (0..documents)
            .map(|_| match (kind, random.below(9)) {
                (Kind::Alike, _) => 1.25,
                (_, 0) => f32::INFINITY,
                _ => random.below(4000) as f32 / 1000.0,
            })
            .map(|of| norm(formula, of))
            .collect();
        let arena = vec![0; 64];
        let mut collection = Self { windows, norms, arena, formula, lists: Vec::new() };
        for gap in [1, 2, 2, 3, 3, 5, 9, 20, 50, 300, 1000, 5000] {
            collection.list(gap, kind, random);
        }
        collection
    }

    fn list(&mut self, gap: u32, kind: Kind, random: &mut Random) {
        let mut docids = Vec::new();
        let mut tfs = Vec::new();
        let mut docid = random.below(gap);
        while docid < self.windows.documents {
            docids.push(docid);
            tfs.push(match (kind, random.below(60)) {
                (Kind::Alike, _) => 1,
                (_, 0) => 254 + random.below(3),
                (_, 1) => 1_000_000_000 + random.below(1000),
                (_, n) => 1 + n / 12,
            });
            docid += 1 + random.below(2 * gap - 1);
        }
        let mut maker = ListMaker::default();
        let more = random.below(300) as f32 / 10.0;
        maker.begin(weight(self.formula, 1.0 + gap as f32, more));
        for (docids, tfs) in docids.chunks(128).zip(tfs.chunks(128)) {
            maker.push(self.windows, docids, tfs, &self.norms);
        }
        let place = self.arena.len() as u64;
        let placed = maker.finish(self.windows, &mut self.arena);
        self.lists.push((place, placed, docids.len() as u32, more));
    }

    fn query(&self, terms: usize, k: u32, mode: Mode, random: &mut Random) -> BatchQuery {
        let mut left: Vec<usize> = (0..self.lists.len()).collect();
        let terms = (0..terms)
            .map(|_| {
                let list = left.swap_remove(random.below(left.len() as u32) as usize);
                let (place, placed, df, more) = self.lists[list];
                let times = 0.05 + random.below(1000) as f32 / 100.0;
                let weight = weight(self.formula, times, more);
                PlacedTerm { place, placed, df, weight }
            })
            .collect();
        let all = self.windows.documents;
        let docids = match random.below(4) {
            0 => random.below(all)..all / 2 + random.below(all),
            _ => 0..u32::MAX,
        };
        BatchQuery { terms, k, mode, docids, floors: [0; 2] }
    }
}

fn values<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// The memory of an emulated device.
struct Device<'a> {
    emulator: &'a Emulator,
    zeroed: Zeroed,
    memory: Buffer,
    arrays: HashMap<Array, Buffer>,
    seed: u64,
}

impl<'a> Device<'a> {
    fn new(
        emulator: &'a Emulator,
        (arena, norms): (&[u8], &[f32]),
        batch: &QueryBatch,
        room: &QueryBatchRoom,
        windows: Windows,
    ) -> Self {
        let zeroed = Zeroed::new(room.layout, batch.records.len());
        let upload = |bytes: &[u8]| emulator.upload(bytes).unwrap();
        let alloc = |len: usize| emulator.alloc(len).unwrap();
        let mut input = vec![0; batch.input_bytes()];
        batch.write(&mut input);
        let keys = batch.records.iter().map(|record| record.capacity as usize).sum::<usize>();
        let arrays = [
            (Array::Arena, upload(arena)),
            (Array::Input, upload(&input)),
            (Array::Terms, alloc(size_of_val(&batch.terms[..]))),
            (Array::Records, alloc(size_of_val(&batch.records[..]))),
            (Array::Answers, alloc(size_of::<QueryState>() * batch.records.len())),
            (Array::Norms, upload(bytemuck::cast_slice(norms))),
            (Array::Keys, alloc(8 * keys)),
            (Array::Sorted, alloc(8 * room.sorted as usize)),
            (Array::Hits, alloc(8 * batch.hits as usize)),
            (Array::DocumentBlocks, alloc(document_blocks_bytes(windows, batch.records.len()))),
        ];
        let memory = alloc(zeroed.bytes());
        Self { emulator, zeroed, memory, arrays: arrays.into(), seed: 0 }
    }

    fn run(&mut self, steps: &[QueryStep]) {
        self.emulator.run(steps, self.seed, |array, at| match self.zeroed.place(array) {
            Some(place) => Arg::Resident(&self.memory, place as u64 + at),
            None => Arg::Resident(&self.arrays[&array], at),
        });
    }

    fn answers(&self) -> Vec<QueryState> {
        values(&self.arrays[&Array::Answers].download().unwrap())
    }

    fn hits(&self) -> Vec<u64> {
        values(&self.arrays[&Array::Hits].download().unwrap())
    }
}

fn machine() -> LaunchSettings {
    LaunchSettings { tuning: TUNING, multiprocessors: 2 }
}

pub(crate) fn room(candidates: u32) -> QueryBatchRoom {
    QueryBatchRoom {
        layout: Layout::Bounds,
        records: 64,
        terms: 4096,
        keys: 1 << 22,
        hits: 1 << 20,
        sorted: 1 << 14,
        sorted_shared: TUNING.sorted,
        candidates,
        candidates_per_hit: 1,
    }
}

/// What the twin finds.
fn expected(collection: &Collection, query: &BatchQuery) -> Vec<Hit> {
    let best = |mode| {
        let mut batch = QueryBatch::default();
        let anew = BatchQuery { mode, floors: [0; 2], ..query.clone() };
        batch.add(anew, &room(1 << 15)).unwrap();
        batch.finish(&room(1 << 15));
        let memory = Memory {
            arena: &collection.arena,
            terms: &batch.terms,
            norms: &collection.norms,
            windows: collection.windows,
        };
        memory.best(&batch.records[0], mode == Mode::And)
    };
    match query.mode {
        Mode::AndOr => {
            let all = best(Mode::And);
            if all.len() < query.k as usize { best(Mode::Or) } else { all }
        }
        mode => best(mode),
    }
}

/// Answers queries as one batch, and again those that overflow, as long as they learn something by
/// it. Returns how many were answered then, and how many are left.
fn check(
    emulator: &Emulator,
    collection: &Collection,
    queries: &[BatchQuery],
    room: &QueryBatchRoom,
    seed: u64,
) -> [usize; 2] {
    let mut asked = queries.to_vec();
    let mut later = 0;
    let mut left = 0;
    let mut rounds = 0;
    while !asked.is_empty() {
        let answers = run(emulator, collection, &asked, room, seed + rounds);
        let mut again = Vec::new();
        for (query, answer) in asked.iter().zip(answers) {
            match answer {
                BatchAnswer::Hits(found) => {
                    later += usize::from(rounds > 0);
                    assert_eq!(found, expected(collection, query), "{query:?}");
                }
                BatchAnswer::Overflown(floors) if floors == query.floors => left += 1,
                BatchAnswer::Overflown(floors) => {
                    again.push(BatchQuery { floors, ..query.clone() });
                }
            }
        }
        asked = again;
        rounds += 1;
    }
    [later, left]
}

/// Answers queries as one batch.
fn run(
    emulator: &Emulator,
    collection: &Collection,
    queries: &[BatchQuery],
    room: &QueryBatchRoom,
    seed: u64,
) -> Vec<BatchAnswer> {
    assert!(queries.iter().all(BatchQuery::is_possible));
    let memory = (&collection.arena[..], &collection.norms[..]);
    run_batch(emulator, collection.windows, memory, queries, room, seed)
}

/// Answers queries of lists in an arena as one batch.
pub(crate) fn run_batch(
    emulator: &Emulator,
    windows: Windows,
    memory: (&[u8], &[f32]),
    queries: &[BatchQuery],
    room: &QueryBatchRoom,
    seed: u64,
) -> Vec<BatchAnswer> {
    let mut batch = QueryBatch::default();
    for query in queries {
        batch.add(query.clone(), room).unwrap();
    }
    batch.finish(room);
    let mut device = Device::new(emulator, memory, &batch, room, windows);
    device.seed = seed;
    device.run(&machine().batch(windows, batch.groups));
    let states = device.answers();
    let hits = device.hits();
    (0..queries.len()).map(|number| batch.answer(number, &states, &hits)).collect()
}

/// The only posting scores next to nothing, and the query weighs it a billionth.
#[test]
fn a_query_whose_sums_have_no_unit_is_refused() {
    let placed = PlacedList { most: 1e-30, ..PlacedList::default() };
    let term =
        |times| PlacedTerm { place: 0, placed, df: 1, weight: weight(FORMULAS[3], times, 1.0) };
    let query = |times| BatchQuery {
        terms: vec![term(times)],
        k: 1,
        mode: Mode::Or,
        docids: 0..1,
        floors: [0; 2],
    };
    assert!(QueryBatch::default().add(query(1.0), &room(9)).is_ok());
    assert!(QueryBatch::default().add(query(1e-9), &room(9)).is_err());
}

const MODES: [Mode; 3] = [Mode::Or, Mode::And, Mode::AndOr];

#[test]
fn twin_batches_of_queries_are_answered_exactly() {
    let Some(emulator) = emulator() else { return };
    // One window, a few that are not sampled, and many.
    let sizes = [(1, 1), (200, 2), (1025, 3), (3000, 4)];
    for (formula, (documents, seed)) in FORMULAS.iter().flat_map(|&f| sizes.map(|size| (f, size))) {
        let mut random = Random(seed);
        let collection = Collection::new(documents, Kind::Mixed, formula, &mut random);
        let queries: Vec<BatchQuery> = (0..18)
            .map(|n| {
                let terms = [1, 2, 3, 4, 5, 12][n / 3];
                let k = [1, 3, 10, 33, 100, 1000][random.below(6) as usize];
                collection.query(terms, k, MODES[n % 3], &mut random)
            })
            .collect();
        let overflown = check(&emulator, &collection, &queries, &room(1 << 15), seed - 1);
        assert_eq!(overflown, [0; 2], "{documents} documents, {formula:?}");
    }
}

/// Windows go by groups. Of rare terms beside frequent ones few documents matter, of which some
/// groups have too many; of rare terms alone all do.
#[test]
fn twin_windows_go_by_groups() {
    let Some(emulator) = emulator() else { return };
    for seed in 7..11 {
        let mut random = Random(seed);
        let collection = Collection::new(7000, Kind::Mixed, Formula::Saturation, &mut random);
        let mut queries: Vec<BatchQuery> = (0..24)
            .map(|n| collection.query(2 + n % 7, [1, 2, 5, 20][n % 4], Mode::Or, &mut random))
            .collect();
        for query in &mut queries[16..] {
            query.k = 100;
            query.terms.retain(|term| term.df < 50);
        }
        queries.retain(|query| !query.terms.is_empty());
        let overflown = check(&emulator, &collection, &queries, &room(1 << 15), seed);
        assert_eq!(overflown, [0; 2], "{seed}");
    }
}

#[test]
fn twin_what_overflows_is_answered_later_or_left() {
    let Some(emulator) = emulator() else { return };
    let kinds = [(Kind::Mixed, 5), (Kind::Alike, 6)];
    for (formula, (kind, seed)) in FORMULAS.iter().flat_map(|&f| kinds.map(|kind| (f, kind))) {
        let mut random = Random(seed);
        let collection = Collection::new(2100, kind, formula, &mut random);
        let queries: Vec<BatchQuery> = (0..9)
            .map(|n| collection.query(1 + n % 4, [1, 3, 40][n / 3], MODES[n % 3], &mut random))
            .collect();
        // Of documents that differ, more fit where the best are known.
        let candidates = if kind == Kind::Mixed { 80 } else { 8 };
        let [later, left] = check(&emulator, &collection, &queries, &room(candidates), seed);
        assert!(
            if kind == Kind::Mixed { later > 0 } else { left > 0 },
            "{kind:?} {formula:?} {later} {left}"
        );
    }
}
