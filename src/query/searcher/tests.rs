//! Tests of searches in parts against whole ones. Algorithms that are handed in are tested by the
//! same functions.

pub(crate) mod oracles;

use super::*;
use crate::index::generations::generation::Generation;
use crate::index::testing::{Collection, build, collection, term};
use crate::query::engines::pool::{BegunQuery, Pool, PoolWork, TasksDone};
use crate::query::engines::share::{ALL as ALL_DOCIDS, share_of};
use crate::query::snapshot::Scoring;
use crate::query::top_k::Combined;
use crate::query::wanted::{Mode, Syntax};
use std::ops::Range;
use std::time::Duration;

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Exhaustive, Algorithm::MaxScore, Algorithm::Blocks, Algorithm::Galloping];

fn of_share(share: Range<u32>) -> Searcher {
    let mut searcher = Searcher::new();
    searcher.take_share(share);
    searcher
}

const ALL: Cutting = Cutting { skip: 1, least_ns: 0.0 };

pub(crate) fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
}

/// An index in which a few terms are in most documents, and some runs.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    documents: u32,
}

impl Fixture {
    pub(crate) fn new(seed: u64, documents: u32, ends: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut collection: Collection = collection(seed, documents, 60);
        // Equal documents far from each other have equal scores.
        let half = collection.len() / 2;
        let (first, second) = collection.split_at_mut(half);
        second[..half].clone_from_slice(first);
        for (number, document) in collection.iter_mut().enumerate() {
            if number % 3 > 0 {
                document.insert(term(7), 1 + number as u32 % 2);
            }
            // Terms of few of the shares.
            let third = number * 3 / documents as usize;
            if number % 2 > 0 && third != 1 {
                document.insert(term(62 + third as u32), 1);
            }
        }
        build(folder.path(), &collection, ends);
        Self { folder, documents }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot_within(ALL_DOCIDS)
    }

    /// Only these documents are searched.
    fn snapshot_within(&self, docids: Range<u32>) -> Arc<Snapshot> {
        let generation = Generation::open(self.folder.path()).unwrap();
        Snapshot::of_range(generation, Scoring::default(), docids).unwrap()
    }
}

pub(crate) fn plan(snapshot: &Arc<Snapshot>, wanted: &Wanted, text: &str) -> Arc<Plan> {
    Arc::new(Planner::default().plan(snapshot, *wanted, text).unwrap())
}

const AND: Wanted = Wanted {
    k: 10,
    mode: Mode::And,
    algorithm: Algorithm::Auto,
    syntax: Syntax::Words,
    count: false,
};

fn cut_of(snapshot: &Arc<Snapshot>, text: &str, cutting: &Cutting) -> Option<QueryCut> {
    match Searcher::new().begin(&plan(snapshot, &AND, text), Stage::All, cutting).unwrap() {
        Begun::Cut(cut) => Some(cut),
        Begun::Answered => None,
    }
}

/// Does all tasks of a query, in an order and in portions that `order` gives.
fn by_tasks(
    searcher: &mut Searcher,
    plan: &Arc<Plan>,
    cutting: &Cutting,
    order: &[usize],
) -> Vec<Hit> {
    let mut stage = Stage::first(plan.wanted().mode);
    loop {
        let cut = match searcher.begin(plan, stage, cutting).unwrap() {
            Begun::Answered => return searcher.hits().to_vec(),
            Begun::Cut(cut) => cut,
        };
        let mut portions = Vec::new();
        let mut first = 0;
        while first < cut.tasks() {
            let size = 1 + order[portions.len() % order.len()] % 7;
            let end = (first + size).min(cut.end_of_run(first));
            portions.push(first..end);
            first = end;
        }
        let mut combined = Combined::new(plan.wanted().k);
        let mut floor = f32::NEG_INFINITY;
        let mut taken = 0;
        while !portions.is_empty() {
            let next = order[taken % order.len()] % portions.len();
            taken += 1;
            searcher.work(&cut, portions.swap_remove(next), floor).unwrap();
            floor = combined.add(searcher.hits());
        }
        let hits = combined.take();
        match cut.stage().next(plan.wanted(), hits.len()) {
            None => return hits,
            Some(next) => stage = next,
        }
    }
}

/// The hits of several searchers together, each in its share.
fn by_shares(searchers: &mut [Searcher], plan: &Plan) -> Vec<Hit> {
    let parts = searchers.len();
    by_parts(parts, plan, &mut |number, stage| {
        searchers[number].answer_stage(plan, stage).unwrap().to_vec()
    })
}

/// Merges the hits of this many parts in each stage.
pub(crate) fn by_parts(
    parts: usize,
    plan: &Plan,
    answer: &mut dyn FnMut(usize, Stage) -> Vec<Hit>,
) -> Vec<Hit> {
    let mut stage = Some(Stage::first(plan.wanted().mode));
    let mut hits = Vec::new();
    while let Some(now) = stage {
        let mut combined = Combined::new(plan.wanted().k);
        for number in 0..parts {
            combined.add(&answer(number, now));
        }
        hits = combined.take();
        stage = now.next(plan.wanted(), hits.len());
    }
    hits
}

#[test]
fn tasks_are_those_of_the_papers_algorithm() {
    let fixture = Fixture::new(3, 4000, &[]);
    let snapshot = fixture.snapshot();
    let run = &snapshot.generation().runs()[0];
    let mut cuts = 0;
    for skip in [1, 2, 4] {
        for number in 0..40 {
            let text = format!("{} {}", term(number), term(7));
            let Some(cut) = cut_of(&snapshot, &text, &Cutting { skip, ..ALL }) else { continue };
            let entries = cut.plan().lists_of(0).iter().flatten();
            let lists: Vec<ListView<'_>> = entries.map(|&list| run.list(list).unwrap()).collect();
            if cut.plan().terms().len() < 2 || lists[0].df() == lists[1].df() {
                continue;
            }
            cuts += 1;
            let shortest = usize::from(lists[1].df() < lists[0].df());
            let last = |list: &ListView<'_>, block: usize| {
                list.last_docids().get(block).map_or(u32::MAX, |last| u32::from_le_bytes(*last))
            };
            for task in 0..cut.tasks() {
                let own = &cut.blocks(task)[shortest];
                let other = &cut.blocks(task)[1 - shortest];
                let blocks = lists[shortest].blocks();
                let start = task * skip;
                let end = ((task + 1) * skip).min(blocks);
                assert_eq!(*own, start as u32..end as u32);
                // The least blocks that hold d1 and d2.
                let d1 = if start == 0 { 0 } else { last(&lists[shortest], start - 1) + 1 };
                let d2 = last(&lists[shortest], end - 1);
                let list = &lists[1 - shortest];
                let of = |docid| (0..list.blocks()).find(|&block| last(list, block) >= docid);
                assert_eq!(of(d1), Some(other.start as usize));
                let last_block = of(d2).unwrap_or(list.blocks() - 1);
                assert_eq!(last_block + 1, other.end as usize);
            }
        }
    }
    assert!(cuts > 20, "{cuts} queries");
}

/// An algorithm that takes one document at a time is several times as slow as four blocks at once.
pub(crate) fn check_estimate(handed: Algorithm) {
    let fixture = Fixture::new(3, 4000, &[]);
    let snapshot = fixture.snapshot();
    let cost = |algorithm, text: &str| {
        let wanted = Wanted { algorithm, ..AND };
        match Searcher::new().begin(&plan(&snapshot, &wanted, text), Stage::All, &ALL).unwrap() {
            Begun::Cut(cut) => cut.cost_ns(),
            Begun::Answered => panic!("{text} is not cut"),
        }
    };
    let two = format!("{} {}", term(7), term(62));
    let three = format!("{two} {}", term(64));
    let adaptive = |text: &str| cost(handed, text);
    assert!(adaptive(&two) > 4.0 * cost(Algorithm::Galloping, &two));
    assert_eq!(cost(Algorithm::Galloping, &two), cost(Algorithm::Auto, &two));
    // One more list that is not shorter is hardly ever searched.
    assert_eq!(adaptive(&three), adaptive(&two).min(adaptive(&term(64))));
    // A query below the least cost stays whole.
    let wanted = Wanted { algorithm: handed, ..AND };
    for (least_ns, whole) in [(adaptive(&two) * 0.9, false), (adaptive(&two) * 1.1, true)] {
        let cutting = Cutting { least_ns, ..ALL };
        let begun = Searcher::new().begin(&plan(&snapshot, &wanted, &two), Stage::All, &cutting);
        assert_eq!(matches!(begun.unwrap(), Begun::Answered), whole);
    }
}

#[test]
fn a_pool_gives_every_task_once_and_new_queries_when_few_are_open() {
    let fixture = Fixture::new(3, 9000, &[4000]);
    let snapshot = fixture.snapshot();
    let cut = || cut_of(&snapshot, &term(7), &ALL).expect("it is cut");
    let tasks = cut().tasks();
    assert!(tasks > 20, "{tasks} tasks");
    for delta in [0, 5, 1000] {
        let pool: Pool<u32> = Pool::new(delta, 3);
        assert!(pool.push([0]).is_empty());
        assert!(matches!(
            pool.take(0, true, whole),
            (Some(PoolWork::Begin(BegunQuery { query: 0, .. })), _)
        ));
        assert!(matches!(pool.take(1, true, whole), (None, _)));
        assert!(matches!(pool.take(2, true, whole), (None, _)));
        let mut woken = pool.open(0, cut(), 0);
        woken.sort_unstable();
        assert_eq!(woken, [1, 2]);
        pool.push([1]);
        let mut next = 0;
        let mut begun = false;
        while next < tasks || !begun {
            match pool.take(0, true, whole).0.unwrap() {
                PoolWork::Begin(BegunQuery { query, .. }) => {
                    assert_eq!(query, 1);
                    assert!(tasks - next <= delta);
                    begun = true;
                }
                PoolWork::Tasks(open, range) => {
                    assert!(begun || tasks - next > delta);
                    assert_eq!((open.query, range.start), (0, next));
                    assert!(range.end <= open.cut.end_of_run(next));
                    next = range.end;
                    let done = open.done(range, Duration::from_micros(10), &[]);
                    assert_eq!(done == TasksDone::Answered(vec![]), next == tasks);
                }
            }
        }
        assert!(matches!(pool.take(0, true, whole), (None, _)));
    }
}

/// No tasks are expected.
fn whole(_: &u32, _: usize) -> usize {
    0
}

#[test]
fn a_pool_counts_the_tasks_of_queries_that_are_being_cut() {
    let fixture = Fixture::new(3, 9000, &[4000]);
    let snapshot = fixture.snapshot();
    let plan = plan(&snapshot, &AND, &term(7));
    let cut = cut_of(&snapshot, &term(7), &ALL).expect("it is cut");
    let expected = ALL.tasks_of(&plan);
    assert!(expected.abs_diff(cut.tasks()) <= 1, "{expected} {}", cut.tasks());
    let none = Cutting { least_ns: f64::INFINITY, ..ALL };
    assert_eq!((none.tasks_of(&plan), none.before(3).tasks_of(&plan)), (0, 0));
    for (delta, begin_at_once) in [(5, false), (expected, true)] {
        let pool: Pool<u32> = Pool::new(delta, 3);
        pool.push([0, 1]);
        let begun = pool.take(0, true, |_, _| expected).0;
        assert!(matches!(begun, Some(PoolWork::Begin(BegunQuery { tasks, .. })) if tasks > 5));
        let second = pool.take(1, true, |_, _| expected).0;
        assert_eq!(second.is_some(), begin_at_once, "{delta}");
    }
    // A query that was not cut after all is no longer in the way.
    let pool: Pool<u32> = Pool::new(5, 3);
    pool.push([0, 1]);
    pool.take(0, true, |_, _| expected);
    assert!(pool.take(1, true, |_, _| expected).0.is_none() && !pool.wants_query());
    pool.answered_whole(expected);
    assert!(pool.take(1, true, |_, _| expected).0.is_some());
}

#[test]
fn a_pool_gives_greater_parts_when_more_queries_are_open() {
    let fixture = Fixture::new(3, 9000, &[4000]);
    let snapshot = fixture.snapshot();
    // The first part of a query is a whole run, taken by an estimate.
    let parts = |open: u32| {
        let pool: Pool<u32> = Pool::new(usize::MAX, 2);
        for query in 0..open {
            let cut = cut_of(&snapshot, &term(7), &ALL).expect("it is cut");
            pool.open(query, cut, 0);
        }
        let mut tasks = 0;
        let mut parts = 0;
        let mut took = 0;
        while let (Some(PoolWork::Tasks(open, range)), _) = pool.take(0, true, whole) {
            if open.query == 0 {
                tasks = open.cut.tasks();
                parts += 1;
                took += range.len();
            }
            // A task takes long enough to be taken alone.
            open.done(range.clone(), Duration::from_millis(1) * range.len() as u32, &[]);
        }
        assert_eq!(took, tasks);
        parts
    };
    let one = parts(1);
    let two = parts(2);
    let four = parts(4);
    assert!(one > two && two > four && four == 2, "{one} {two} {four}");
}

#[test]
fn a_pool_learns_how_many_tasks_are_worth_taking() {
    let fixture = Fixture::new(3, 9000, &[4000]);
    let snapshot = fixture.snapshot();
    let last_part = |task: Duration| {
        let cut = cut_of(&snapshot, &term(7), &ALL).expect("it is cut");
        let pool = Pool::new(5, 4);
        let mut parts = Vec::new();
        pool.open(0, cut, 0);
        while let (Some(PoolWork::Tasks(open, range)), _) = pool.take(0, true, whole) {
            parts.push(range.len());
            let took = task * range.len() as u32;
            open.done(range, took, &[]);
        }
        parts[parts.len() - 2]
    };
    assert_eq!(last_part(Duration::from_millis(1)), 1);
    assert_eq!(last_part(Duration::from_micros(4)), 5);
}

#[test]
fn a_pool_wakes_workers_early_where_queries_are_cut() {
    let fixture = Fixture::new(3, 9000, &[9000]);
    let snapshot = fixture.snapshot();
    let pool: Pool<u32> = Pool::new(5, 3);
    let rest = |pool: &Pool<u32>| {
        while pool.take(0, false, whole).0.is_some() {}
        // A worker that waits for work is not woken, one that sleeps is.
        assert!(pool.take(1, false, whole).0.is_none());
        assert!(pool.take(2, true, whole).0.is_none());
    };
    rest(&pool);
    assert!(pool.push([0]).is_empty());
    assert!(matches!(
        pool.take(0, false, whole),
        (Some(PoolWork::Begin(BegunQuery { query: 0, .. })), _)
    ));
    let cut = cut_of(&snapshot, &term(7), &ALL).expect("it is cut");
    assert_eq!(pool.open(0, cut, 0), [2]);
    rest(&pool);
    assert_eq!(pool.push([1]), [2]);
    rest(&pool);
    pool.answered_whole(0);
    assert!(pool.push([2]).is_empty());
}

#[test]
fn only_blocks_that_overlap_a_range_of_docids_are_read() {
    let fixture = Fixture::new(5, 30_000, &[12_000]);
    let blocks = |docids: Range<u32>| -> Vec<usize> {
        let plan = plan(&fixture.snapshot_within(docids), &Wanted::default(), &term(7));
        Searcher::new()
            .with_lists(&plan, plan.snapshot().share(), |_, lists| {
                Ok(lists.iter().map(|list| list.map_or(0, |list| list.blocks())).collect())
            })
            .unwrap()
    };
    // The term is in two of three documents.
    assert_eq!(blocks(ALL_DOCIDS), blocks(0..30_000));
    assert!(blocks(ALL_DOCIDS)[0] > 60 && blocks(ALL_DOCIDS)[1] > 90);
    assert_eq!(blocks(11_000..12_000)[1], 0);
    assert_eq!(blocks(12_000..13_000)[0], 0);
    let narrow = blocks(20_000..20_100);
    assert!(narrow[0] == 0 && (1..=2).contains(&narrow[1]), "{narrow:?}");
    let both = blocks(11_990..12_010);
    assert!(both.iter().all(|n| (1..=2).contains(n)), "{both:?}");
    assert_eq!(blocks(9..9), [0, 0]);
}

#[test]
fn queries_of_a_second_pass_allocate_nothing() {
    check_allocations(&[Algorithm::Auto]);
    check_allocations(&ALGORITHMS);
}

pub(crate) fn check_allocations(algorithms: &[Algorithm]) {
    let fixture = Fixture::new(5, 30_000, &[12_000]);
    let texts: Vec<String> = (0..60u32)
        .map(|number| {
            // The stemmer makes a string of its own for what is not ASCII.
            let terms = (0..66).filter(|number| number % 6 != 2).cycle().skip(number as usize * 7);
            let terms = terms.step_by(11).take(1 + number as usize % 5).map(term);
            terms.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let snapshot = fixture.snapshot();
    for &algorithm in algorithms {
        for mode in [Mode::Or, Mode::And, Mode::AndOr] {
            for k in [1, 10, 1000] {
                let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
                let mut searcher = Searcher::new();
                let mut pass = || {
                    let hits =
                        |text: &String| searcher.search(&snapshot, &wanted, text).unwrap().0.len();
                    texts.iter().map(hits).sum()
                };
                let found: usize = pass();
                // Bitmaps are made when a list is wanted for the second time.
                pass();
                let mut again = 0;
                let allocations = allocation_counter::measure(|| again = pass());
                assert_eq!(
                    (again, allocations.count_total),
                    (found, 0),
                    "{algorithm:?} {mode:?} {k}"
                );
            }
        }
    }
}

#[test]
fn shares_cover_all_documents_once() {
    for documents in [0, 1, 2, 7, 1000, u32::MAX] {
        for shares in [1, 2, 3, 16] {
            let ranges: Vec<_> =
                (0..shares).map(|number| share_of(&(0..documents), number, shares)).collect();
            assert_eq!((ranges[0].start, ranges[shares - 1].end), (0, documents));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}

#[test]
fn many_terms_are_answered_as_few() {
    check_many_terms(&ALGORITHMS);
}

/// They are answered list by list, which gives the bits that the other algorithms give.
pub(crate) fn check_many_terms(algorithms: &[Algorithm]) {
    use crate::query::algorithms::scored::MANY_TERMS;
    let folder = tempfile::tempdir().unwrap();
    let collection = collection(17, 600, 2 * MANY_TERMS as u32);
    build(folder.path(), &collection, &[0, 250]);
    let generation = Generation::open(folder.path()).unwrap();
    let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
    let terms = |count: usize| (0..count).map(|n| term(n as u32) + " ").collect::<String>();
    let mut searcher = Searcher::new();
    for &algorithm in algorithms {
        for mode in Mode::ALL {
            let wanted = Wanted { k: 40, mode, algorithm, ..Wanted::default() };
            // Terms of which there is no document are terms of the query, and change no score.
            let nowhere = terms(MANY_TERMS - 1) + "nowhere elsewhere";
            let few = terms(MANY_TERMS - 1);
            let expected = bits(searcher.search(&snapshot, &wanted, &few).unwrap().0);
            let found = bits(searcher.search(&snapshot, &wanted, &nowhere).unwrap().0);
            if mode != Mode::And {
                assert_eq!(found, expected, "{algorithm:?} {mode:?}");
                assert_eq!(found.len(), 40);
            } else {
                assert_eq!(found, [], "{algorithm:?}");
            }
        }
    }
}
