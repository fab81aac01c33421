//! Tests of all engines against the exhaustive search, whatever queries are open together and
//! whichever worker goes on next. What is handed in is tested by the same functions.

use super::*;
use crate::index::generations::generation::Generation;
use crate::index::testing::{build, collection, rank, term};
use crate::query::plan::Planner;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Scoring;
use crate::query::wanted::{Algorithm, Mode, Wanted};
use crate::score::named::Score;
use crate::score::wang::Wang;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn fgqp(delta: usize, least_ns: f64, patience_us: u64) -> Model {
    let patience = Duration::from_micros(patience_us);
    Model::Fgqp { delta, cutting: Cutting { least_ns, ..Cutting::default() }, patience }
}

fn models() -> Vec<Model> {
    vec![
        Model::Inter,
        fgqp(0, 0.0, 0),
        fgqp(5, 0.0, 50),
        fgqp(150, 10_000.0, 0),
        fgqp(5, f64::INFINITY, 0),
    ]
}

/// A mock of a device's engines: three queries at a time, and late answers.
pub(crate) struct LateEngines;

#[derive(Default)]
struct Late {
    searcher: Searcher,
    queries: VecDeque<(u64, Plan)>,
    turn: usize,
    answers: Vec<Answer>,
}

impl Engines for LateEngines {
    fn engine(
        &self,
        _worker: usize,
        _snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        Ok(Box::<Late>::default())
    }
}

impl QueryEngine for Late {
    fn submit(&mut self, number: u64, plan: Plan) {
        assert!(self.room());
        self.queries.push_back((number, plan));
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        self.turn += 1;
        if self.turn.is_multiple_of(3)
            && let Some((number, plan)) = self.queries.pop_back()
        {
            let hits = self.searcher.answer(&plan)?.to_vec();
            self.answers.push(Answer::new(number, &plan, hits, None));
        }
        Ok(if self.queries.is_empty() { Pace::Idle } else { Pace::Soon })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&mut self) -> bool {
        self.queries.len() < 3
    }
}

pub(crate) type Make = Box<dyn Fn(&Arc<Wakers>) -> Box<dyn Engines>>;

/// Everything that makes engines, by name.
fn crews() -> Vec<(String, Make)> {
    let of = |model: Model| {
        (format!("{model:?}"), Box::new(move |wakers: &_| model.engines(wakers)) as Make)
    };
    models().into_iter().map(of).collect()
}

/// An index of some runs, in which documents far from each other are alike.
pub(crate) fn snapshot(
    folder: &std::path::Path,
    seed: u64,
    documents: u32,
    ends: &[usize],
) -> Arc<Snapshot> {
    let mut collection = collection(seed, documents, 60);
    let half = collection.len() / 2;
    let (first, second) = collection.split_at_mut(half);
    second[..half].clone_from_slice(first);
    for (number, document) in collection.iter_mut().enumerate() {
        if number % 3 > 0 {
            document.insert(term(7), 1 + number as u32 % 2);
        }
    }
    build(folder, &collection, ends);
    let mut scoring = Scoring::default();
    if seed.is_multiple_of(4) {
        let ranks: Vec<f32> = (0..documents).map(|docid| (docid % 17) as f32).collect();
        rank(folder, &ranks);
        scoring.score = Score::Wang(Wang::default());
    }
    let generation = Generation::open(folder).unwrap();
    Snapshot::new(generation, scoring).unwrap()
}

type Query = (String, Wanted);

/// Unlike queries, open together.
fn queries(seeds: &[u32], algorithms: &[Algorithm]) -> Vec<Query> {
    const KS: [usize; 5] = [10, 0, 1, 100, 100_000];
    let query = |(number, &seed): (usize, &u32)| {
        let numbers = (0..1 + seed % 5).map(|at| (seed / 7 + at * 13) % 63);
        let words: Vec<String> = numbers.map(|n| term(if n % 4 == 0 { 7 } else { n })).collect();
        let algorithm = algorithms[seed as usize % algorithms.len()];
        let mode = Mode::ALL[number % 3];
        (
            words.join(" "),
            Wanted { k: KS[seed as usize / 3 % KS.len()], mode, algorithm, ..Wanted::default() },
        )
    };
    seeds.iter().enumerate().map(query).collect()
}

type Bits = (bool, Vec<(u32, u32)>);

fn bits(known: bool, hits: &[Hit]) -> Bits {
    (known, hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect())
}

/// The answers by the rules: every posting scored, then cut back, and by AND+OR's own rule.
fn expected(snapshot: &Arc<Snapshot>, queries: &[Query]) -> Vec<Bits> {
    let mut searcher = Searcher::new();
    let mut search = |text: &str, mode| {
        let wanted =
            Wanted { k: usize::MAX, mode, algorithm: Algorithm::Exhaustive, ..Wanted::default() };
        let (hits, known) = searcher.search(snapshot, &wanted, text).unwrap();
        bits(known, hits)
    };
    let mut answers = Vec::new();
    for (text, Wanted { k, mode, .. }) in queries {
        let any = search(text, Mode::Or);
        let all = search(text, Mode::And);
        let mut answer = match mode {
            Mode::Or => any,
            Mode::AndOr if all.1.len() < *k => any,
            _ => all,
        };
        answer.1.truncate(*k);
        answers.push(answer);
    }
    answers
}

/// Stores answers by their numbers, each once.
fn keep(answers: &mut [Option<Bits>], more: &mut Vec<Answer>) {
    for Answer { number, hits, known, .. } in more.drain(..) {
        let place = &mut answers[number as usize];
        assert!(place.is_none(), "query {number} was answered twice");
        *place = Some(bits(known, &hits));
    }
}

/// Answers queries with the engines of some workers, which go on in the order of `turns`.
fn by_turns(
    snapshot: &Arc<Snapshot>,
    (name, make): &(String, Make),
    workers: usize,
    queries: &[Query],
    turns: &[usize],
) -> Vec<Bits> {
    let wakers = Wakers::new(workers);
    let engines = make(&wakers);
    let mut engines: Vec<_> =
        (0..workers).map(|worker| engines.engine(worker, snapshot).unwrap()).collect();
    let mut planner = Planner::default();
    let mut waiting = (0..).zip(queries).collect::<VecDeque<_>>();
    let mut answers = vec![None; queries.len()];
    let mut left = 100_000;
    let mut taken = Vec::new();
    while answers.iter().any(Option::is_none) {
        left -= 1;
        assert!(left > 0, "{name} does not come to an end");
        let engine = &mut engines[turns[left % turns.len()] % workers];
        if engine.room()
            && let Some((number, (text, wanted))) = waiting.pop_front()
        {
            engine.submit(number, planner.plan(snapshot, *wanted, text).unwrap());
            engine.waiting(waiting.len());
        }
        engine.let_go();
        engine.advance().unwrap();
        engine.take(&mut taken);
        keep(&mut answers, &mut taken);
        if left % 64 == 0 {
            // Workers missing in `turns` go on too.
            for engine in &mut engines {
                engine.let_go();
                engine.advance().unwrap();
                engine.take(&mut taken);
                keep(&mut answers, &mut taken);
            }
        }
    }
    answers.into_iter().flatten().collect()
}

/// Answers queries with a thread for each worker.
fn by_threads(
    snapshot: &Arc<Snapshot>,
    make: &Make,
    workers: usize,
    queries: &[Query],
) -> Vec<Bits> {
    let wakers = Wakers::new(workers);
    let engines = make(&wakers);
    let waiting = Mutex::new((0..).zip(queries).collect::<VecDeque<_>>());
    let answers = Mutex::new(vec![None; queries.len()]);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let engines = &engines;
            let waiting = &waiting;
            let answers = &answers;
            let done = &done;
            scope.spawn(move || {
                let mut engine = engines.engine(worker, snapshot).unwrap();
                let mut planner = Planner::default();
                let mut taken = Vec::new();
                while done.load(Ordering::SeqCst) < queries.len() {
                    if engine.room() {
                        let next = waiting.lock().unwrap().pop_front();
                        if let Some((number, (text, wanted))) = next {
                            engine.submit(number, planner.plan(snapshot, *wanted, text).unwrap());
                        }
                    }
                    engine.let_go();
                    if engine.advance().unwrap() != Pace::Busy {
                        std::thread::yield_now();
                    }
                    engine.take(&mut taken);
                    done.fetch_add(taken.len(), Ordering::SeqCst);
                    keep(&mut answers.lock().unwrap(), &mut taken);
                }
            });
        }
    });
    answers.into_inner().unwrap().into_iter().flatten().collect()
}

#[derive(Clone, Debug)]
pub(crate) struct MixedQueries {
    seed: u64,
    documents: u32,
    end: prop::sample::Index,
    seeds: Vec<u32>,
    turns: Vec<usize>,
}

pub(crate) fn mixed_queries() -> impl Strategy<Value = MixedQueries> {
    (
        any::<u64>(),
        prop::sample::select(vec![1u32, 300, 6000]),
        any::<prop::sample::Index>(),
        prop::collection::vec(any::<u32>(), 12),
        prop::collection::vec(0..60usize, 1..40),
    )
        .prop_map(|(seed, documents, end, seeds, turns)| MixedQueries {
            seed,
            documents,
            end,
            seeds,
            turns,
        })
}

/// Workers go on in any order.
pub(crate) fn check_turns(
    mixed: &MixedQueries,
    crews: Vec<(String, Make)>,
    algorithms: &[Algorithm],
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let end = mixed.end.index(mixed.documents as usize);
    let ends = Vec::from_iter(Some(end).filter(|&end| end > 0));
    let snapshot = snapshot(folder.path(), mixed.seed, mixed.documents, &ends);
    let queries = queries(&mixed.seeds, algorithms);
    let expected = expected(&snapshot, &queries);
    for crew in crews {
        for workers in [1, 2, 5] {
            let found = by_turns(&snapshot, &crew, workers, &queries, &mixed.turns);
            prop_assert_eq!(&found, &expected, "{}, {} workers", crew.0, workers);
        }
    }
    Ok(())
}

/// Each worker has a thread.
pub(crate) fn check_threads(crews: Vec<(String, Make)>, algorithms: &[Algorithm]) {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 9000, &[4000]);
    let seeds: Vec<u32> = (0..120u32).map(|n| n.wrapping_mul(2_654_435_761) >> 2).collect();
    let queries = queries(&seeds, algorithms);
    let expected = expected(&snapshot, &queries);
    assert!(expected.iter().any(|(known, hits)| *known && hits.len() > 1000));
    for (name, make) in crews {
        for workers in [1, 3] {
            let found = by_threads(&snapshot, &make, workers, &queries);
            assert!(found == expected, "{name}, {workers} workers");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn oracle_engines_answer_mixed_queries_in_any_order(mixed in mixed_queries()) {
        check_turns(&mixed, crews(), &Algorithm::ALL)?;
    }
}

#[test]
fn oracle_engines_of_threads_answer_mixed_queries() {
    check_threads(crews(), &Algorithm::ALL);
}

/// A query wakes a worker that sleeps.
pub(crate) fn check_waking(model: Model) {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 9000, &[]);
    let wakers = Wakers::new(2);
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = woken.clone();
    wakers.set(1, move || _ = counter.fetch_add(1, Ordering::SeqCst));
    let engines = model.engines(&wakers);
    let mut crew = [0, 1].map(|worker| engines.engine(worker, &snapshot).unwrap());
    while crew[1].advance().unwrap() != Pace::Idle {}
    // An AND query has a task for each block of its shortest list.
    let wanted = Wanted { mode: Mode::And, ..Wanted::default() };
    crew[0].submit(0, Planner::default().plan(&snapshot, wanted, &term(7)).unwrap());
    crew[0].advance().unwrap();
    assert!(woken.load(Ordering::SeqCst) > 0, "{model:?}");
}

#[test]
fn whoever_sleeps_is_woken_by_a_query() {
    check_waking(fgqp(5, 0.0, 0));
}
