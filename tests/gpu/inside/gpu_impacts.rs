//! A device adds up learned weights as the CPU does. The kernels, emulated, against sums by their
//! definition: the same documents in the same order with the same scores, to the bit.

use crate::inside_tests::emulation::{Emulator, Random};
use crate::inside_tests::gpu_queries::{TUNING, emulator, room, run_batch};
use millrace::gpu::query::batch::{BatchAnswer, BatchQuery, QueryBatchRoom};
use millrace::gpu::query::list::{Layout, ListMaker, PlacedList, Windows};
use millrace::gpu::query::plan::PlacedTerm;
use millrace::query::top_k::Hit;
use millrace::query::wanted::Mode;

struct List {
    postings: Vec<(u32, u32)>,
    place: u64,
    placed: PlacedList,
}

struct Collection {
    windows: Windows,
    norms: Vec<f32>,
    arena: Vec<u8>,
    lists: Vec<List>,
}

impl Collection {
    /// Lists of all lengths; `weight` draws the weight of a posting.
    fn new(documents: u32, random: &mut Random, weight: impl Fn(u32, &mut Random) -> u32) -> Self {
        let windows =
            Windows { documents, bits: TUNING.impact_bits, layout: Layout::DocumentBlocks };
        let norm = |_| if random.below(9) == 0 { f32::INFINITY } else { 0.0 };
        let norms = (0..documents).map(norm).collect();
        let mut collection = Self { windows, norms, arena: vec![0; 64], lists: Vec::new() };
        for gap in [1, 1, 2, 2, 3, 3, 5, 9, 9, 20, 50, 300, 1000, 5000] {
            let mut postings = Vec::new();
            let mut docid = random.below(gap);
            while docid < documents {
                postings.push((docid, weight(docid, random)));
                docid += 1 + random.below(2 * gap - 1);
            }
            collection.push(postings);
        }
        collection
    }

    fn push(&mut self, postings: Vec<(u32, u32)>) {
        let mut maker = ListMaker::default();
        maker.begin(1.0.into());
        for part in postings.chunks(128) {
            let (docids, weights): (Vec<u32>, Vec<u32>) = part.iter().copied().unzip();
            maker.push(self.windows, &docids, &weights, &self.norms);
        }
        self.arena.resize(self.arena.len().next_multiple_of(256), 0);
        let place = self.arena.len() as u64;
        let placed = maker.finish(self.windows, &mut self.arena);
        self.lists.push(List { postings, place, placed });
    }

    fn query(&self, lists: &[usize], k: u32, weight: impl FnMut() -> f32) -> BatchQuery {
        let weights = std::iter::repeat_with(weight);
        let term = |(&list, weight): (&usize, f32)| {
            let List { postings, place, placed } = &self.lists[list];
            let weight = weight.into();
            PlacedTerm { place: *place, placed: *placed, df: postings.len() as u32, weight }
        };
        let terms = lists.iter().zip(weights).map(term).collect();
        let docids = 0..self.windows.documents;
        BatchQuery { terms, k, mode: Mode::Or, docids, floors: [0; 2] }
    }

    /// The best documents, by the definition.
    fn best(&self, query: &BatchQuery) -> Vec<Hit> {
        let mut scores: Vec<Option<f32>> = vec![None; self.norms.len()];
        for term in &query.terms {
            let list = self.lists.iter().find(|list| list.place == term.place).unwrap();
            for &(docid, weight) in &list.postings {
                *scores[docid as usize].get_or_insert(0.0) += term.weight.factor() * weight as f32;
            }
        }
        let live = (0..).zip(scores).filter(|(docid, _)| self.norms[*docid as usize] == 0.0);
        let mut hits: Vec<Hit> =
            live.filter_map(|(docid, score)| Some(Hit { docid, score: score? })).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(query.k as usize);
        hits
    }
}

/// How queries were answered.
#[derive(Debug, Default)]
struct Answered {
    exactly: usize,
    again: usize,
    not: usize,
}

/// Answers queries as batches until all are answered, or need no further turn.
fn check(
    emulator: &Emulator,
    collection: &Collection,
    queries: Vec<BatchQuery>,
    room: &QueryBatchRoom,
    seed: u64,
) -> Answered {
    let mut answered = Answered::default();
    let mut left = queries;
    while !left.is_empty() {
        let memory = (&collection.arena[..], &collection.norms[..]);
        let found = run_batch(emulator, collection.windows, memory, &left, room, seed);
        let mut again = Vec::new();
        for (query, found) in left.into_iter().zip(found) {
            let expected = collection.best(&query);
            match found {
                BatchAnswer::Hits(hits) => {
                    assert_eq!(hits, expected, "{query:?}");
                    answered.exactly += 1;
                }
                BatchAnswer::Overflown(floors) if floors == query.floors => answered.not += 1,
                BatchAnswer::Overflown(floors) => again.push(BatchQuery { floors, ..query }),
            }
        }
        answered.again += again.len();
        left = again;
    }
    answered
}

/// Small rooms, so that a threshold is needed.
fn impact_room(candidates: u32) -> QueryBatchRoom {
    QueryBatchRoom { layout: Layout::Impacts, ..room(candidates) }
}

/// Where a batch of many queries for few hits is answered by blocks.
fn block_room(candidates: u32) -> QueryBatchRoom {
    QueryBatchRoom { layout: Layout::DocumentBlocks, ..room(candidates) }
}

fn small(_: u32, random: &mut Random) -> u32 {
    1 + random.below(255)
}

const KS: [u32; 5] = [1, 3, 10, 33, 400];

#[test]
fn twin_whole_weights_give_exact_sums() {
    let Some(emulator) = emulator() else { return };
    for (documents, seed) in [(1, 1), (63, 2), (200, 3), (1025, 4), (5000, 5)] {
        let mut random = Random(seed);
        let collection = Collection::new(documents, &mut random, small);
        let mut queries = Vec::new();
        for terms in [1, 2, 3, 5, 9, 14] {
            for k in KS {
                let lists: Vec<usize> = (0..terms).map(|t| (t * 5 + k as usize) % 14).collect();
                let mut step = 0.25;
                let mut weight = || {
                    step = 0.75 - step;
                    (1 + random.below(200)) as f32 * if k == 3 { step } else { 1.0 }
                };
                queries.push(collection.query(&lists, k, &mut weight));
            }
        }
        let count = queries.len();
        // All have room; and so few that most queries need a threshold.
        let answered = check(&emulator, &collection, queries.clone(), &impact_room(1 << 14), seed);
        assert_eq!((answered.exactly, answered.again), (count, 0), "{answered:?}");
        let answered = check(&emulator, &collection, queries, &impact_room(700), seed - 1);
        assert_eq!(answered.exactly + answered.not, count, "{answered:?}");
        assert!(answered.not < count / 5, "{answered:?}");
    }
}

#[test]
fn twin_rounded_weights_give_the_scores_of_single_precision() {
    let Some(emulator) = emulator() else { return };
    let great = |_: u32, random: &mut Random| match random.below(20) {
        0 => 200 + random.below(1200),
        1 => 255,
        n => n,
    };
    for (seed, scale) in [(11, 1.0), (12, 1e-20), (13, 1e20), (14, 1e-3)] {
        let mut random = Random(seed);
        let collection = Collection::new(2600, &mut random, great);
        let mut queries = Vec::new();
        for (terms, k) in [(1, 1), (2, 10), (3, 33), (7, 3), (14, 10), (14, 100)] {
            let lists: Vec<usize> = (0..terms).map(|t| (t + k as usize) % 14).collect();
            let weight = || (0.001 + random.below(100_000) as f32 / 777.0) * scale;
            queries.push(collection.query(&lists, k, weight));
        }
        let count = queries.len();
        let answered = check(&emulator, &collection, queries, &impact_room(900), seed);
        assert_eq!((answered.exactly, answered.not), (count, 0), "{answered:?}");
    }
}

/// Weights above 255 are parts that add up; more terms than a warp has lanes, and this many chunks
/// that runs of several are needed.
#[test]
fn twin_many_terms_and_great_weights_are_added_up() {
    let Some(emulator) = emulator() else { return };
    let mut random = Random(21);
    let collection = Collection::new(300, &mut random, |_, random| 200 + random.below(9000));
    let lists: Vec<usize> = (0..128).map(|t| [0, 1, 2, 4, 13, 6, 0][t % 7]).collect();
    let queries = [(128, 5), (33, 300), (64, 10)]
        .map(|(terms, k)| collection.query(&lists[..terms], k, || (1 + random.below(9)) as f32));
    let answered = check(&emulator, &collection, queries.into(), &impact_room(1 << 10), 3);
    assert_eq!(answered.exactly, 3, "{answered:?}");
}

/// All documents are alike: the first ones win, if there is room for all. Otherwise the CPU has to.
#[test]
fn twin_ties_go_to_the_first_documents() {
    let Some(emulator) = emulator() else { return };
    let mut random = Random(31);
    let collection = Collection::new(3000, &mut random, |_, _| 7);
    let queries = || {
        let query = |k| collection.query(&[0, 1], k, || 3.0);
        [1, 10, 333].map(query).to_vec()
    };
    let answered = check(&emulator, &collection, queries(), &impact_room(1 << 12), 0);
    assert_eq!(answered.exactly, 3, "{answered:?}");
    let answered = check(&emulator, &collection, queries(), &impact_room(500), 0);
    assert_eq!(answered.not, 3, "{answered:?}");
}

/// The sample has the best documents, so that the first threshold is too high.
#[test]
fn twin_a_threshold_that_was_too_high_is_lowered() {
    let Some(emulator) = emulator() else { return };
    let mut random = Random(41);
    let weight = |docid: u32, random: &mut Random| match docid % 64 {
        0 => 200 + random.below(55),
        _ => 1 + random.below(100),
    };
    let collection = Collection::new(4000, &mut random, weight);
    let queries = (0..6).map(|n| collection.query(&[n, n + 1, 3], 40, || 2.0)).collect();
    let answered = check(&emulator, &collection, queries, &impact_room(1500), 7);
    assert!(answered.again >= 5 && answered.exactly >= 5, "{answered:?}");
}

/// Documents of a topic stand together, so that a query has few windows with good ones; it has room
/// for few candidates, since the window with the greatest bound gives a good threshold.
#[test]
fn twin_windows_are_chosen_by_the_bounds_of_their_blocks() {
    let Some(emulator) = emulator() else { return };
    for (documents, seed) in [(2049, 51), (2048, 52), (90, 53)] {
        let mut random = Random(seed);
        let weight = |docid: u32, random: &mut Random| match docid / 97 % 7 {
            0 => 1 + random.below(400),
            _ => 1 + random.below(20),
        };
        let collection = Collection::new(documents, &mut random, weight);
        let mut queries = Vec::new();
        for number in 0..36 {
            let terms = [1, 2, 5, 9, 14][number % 5];
            let lists: Vec<usize> = (0..terms).map(|t| (t * 5 + number) % 14).collect();
            let mut weight = || match number % 2 {
                0 => (1 + random.below(200)) as f32,
                _ => 0.001 + random.below(100_000) as f32 / 777.0,
            };
            queries.push(collection.query(&lists, [1, 3, 8][number % 3], &mut weight));
        }
        let answered = check(&emulator, &collection, queries.clone(), &block_room(260), seed);
        assert_eq!(answered.exactly + answered.not, 36, "{answered:?}");
        assert!(answered.again < 6 && answered.not < 3, "{answered:?}");
        if documents > 90 {
            continue;
        }
        // One that is not answered so: neither are the others of its batch.
        queries[7].k = 101;
        let answered = check(&emulator, &collection, queries, &block_room(1 << 12), seed);
        assert_eq!(answered.exactly, 36, "{answered:?}");
    }
}

#[test]
fn twin_ties_in_all_windows_are_left_to_the_cpu() {
    let Some(emulator) = emulator() else { return };
    let collection = Collection::new(3000, &mut Random(61), |_, _| 7);
    let queries = vec![collection.query(&[0, 1], 10, || 3.0); 32];
    let answered = check(&emulator, &collection, queries, &block_room(500), 0);
    assert_eq!(answered.not, 32, "{answered:?}");
}
