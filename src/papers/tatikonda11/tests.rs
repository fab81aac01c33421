use super::copied::Copied;
use super::shares::Docp;
use super::small_adaptive::SmallAdaptive;
use crate::dataflow::query::collect::Sink;
use crate::dataflow::query::service::{QueryOptions, QueryService};
use crate::index::error::IndexError;
use crate::index::testing::term;
use crate::query::engines::engine::tests::snapshot;
use crate::query::engines::engine::{
    Answer, Engines, HandedModel, Model, Pace, QueryEngine, Wakers,
};
use crate::query::engines::shard::Shard;
use crate::query::engines::share::share_of;
use crate::query::plan::{Plan, Planner};
use crate::query::reading::lines::{Lines, Query};
use crate::query::searcher::Searcher;
use crate::query::searcher::tests::oracles::{PartsCase, parts};
use crate::query::searcher::tests::{bits, by_parts, check_estimate, plan};
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::{Algorithm, Mode, Wanted};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn the_estimate_for_small_adaptive_counts_documents() {
    check_estimate(Algorithm::Handed(&SmallAdaptive));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn oracle_copies_put_together_find_what_one_search_finds(case in parts()) {
        check_copies(&case)?;
    }
}

fn check_copies(case: &PartsCase) -> Result<(), TestCaseError> {
    let fixture = case.fixture();
    let snapshot = fixture.snapshot();
    let share = |number| share_of(&(0..case.documents), number, case.shares);
    let copy = |number| Copied::new(snapshot.generation(), &share(number)).unwrap();
    let copied: Vec<Copied> = (0..case.shares).map(copy).collect();
    let mut whole = Searcher::new();
    for algorithm in [Algorithm::Auto, Algorithm::MaxScore, Algorithm::Handed(&SmallAdaptive)] {
        for mode in Mode::ALL {
            for k in [1, 10, 1000] {
                let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
                for text in case.texts() {
                    let expected = bits(whole.search(&snapshot, &wanted, &text).unwrap().0);
                    let plan = plan(&snapshot, &wanted, &text);
                    let merged = by_parts(case.shares, &plan, &mut |number, stage| {
                        whole.find_in(&plan, &copied[number], stage).unwrap().to_vec()
                    });
                    prop_assert_eq!(bits(&merged), expected, "{:?} {:?} {}", algorithm, mode, k);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_barrier_lets_one_query_in_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 900, &[]);
    let plan = || Planner::default().plan(&snapshot, Wanted::default(), &term(7)).unwrap();
    for barrier in [true, false] {
        let engines = Docp { copies: false }.engines(barrier, &Wakers::new(2));
        let mut crew = [0, 1].map(|worker| engines.engine(worker, &snapshot).unwrap());
        assert!(crew[0].room() && crew[0].room());
        assert_eq!(crew[1].room(), !barrier);
        crew[1].let_go();
        crew[0].submit(0, plan());
        assert_eq!(crew.each_mut().map(|engine| engine.room()), [!barrier; 2]);
        crew.iter_mut().for_each(|engine| engine.let_go());
        let mut answers = Vec::new();
        for (worker, answered) in [(1, 0), (0, 1)] {
            crew[worker].advance().unwrap();
            crew.iter_mut().for_each(|engine| engine.take(&mut answers));
            assert_eq!(answers.len(), answered);
        }
        // The room stays with the worker that has the answer until it lets go of it.
        assert_eq!((crew[0].room(), crew[1].room()), (true, !barrier));
        crew.iter_mut().for_each(|engine| engine.let_go());
        assert!(crew[1].room());
    }
}

/// Each worker copies its share of the new generation.
#[test]
fn copies_move_with_a_service_between_two_batches() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = snapshot(folders[0].path(), 1, 300, &[20]);
    let two = snapshot(folders[1].path(), 2, 500, &[20]);
    let wanted = Wanted { k: 1000, ..Wanted::default() };
    let expected = [&one, &two]
        .map(|snapshot| Searcher::new().search(snapshot, &wanted, &term(7)).unwrap().0.to_vec());
    assert!(expected[1].len() > expected[0].len() && expected[0].len() > 100);
    let model = Model::Handed { model: &Docp { copies: true }, barrier: false };
    let workers = NonZeroUsize::new(2).unwrap();
    let options =
        QueryOptions { wanted, delay: Duration::ZERO, model, workers, ..QueryOptions::default() };
    let (service, asker) = QueryService::new(one.clone(), options);
    let mover = service.mover();
    let (sender, answers) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            service.run(Sink::values(move |answer| {
                // The test has what it wants when nothing receives.
                _ = sender.send(answer.unwrap());
            }))
        });
        for expected in &expected {
            for _ in 0..3 {
                assert!(asker.ask(Ok(Ok(Query::new("q", term(7))))));
                let answer = answers.recv_timeout(Duration::from_secs(20)).unwrap();
                let hits: Vec<_> = answer
                    .hits
                    .iter()
                    .map(|hit| Hit { docid: hit.docid, score: hit.score })
                    .collect();
                assert_eq!(hits, *expected);
            }
            mover.move_to(two.clone());
        }
        drop(asker);
        assert_eq!(running.join().unwrap().unwrap().queries, 6);
    });
}

/// Counts the queries that the engines of all workers have at once.
struct Counted {
    engines: Box<dyn Engines>,
    /// Now, and at most.
    open: Arc<Mutex<(usize, usize)>>,
}

struct CountedEngine {
    engine: Box<dyn QueryEngine>,
    open: Arc<Mutex<(usize, usize)>>,
}

impl Engines for Counted {
    fn engine(&self, at: usize, of: &Arc<Snapshot>) -> Result<Box<dyn QueryEngine>, IndexError> {
        let engine = self.engines.engine(at, of)?;
        Ok(Box::new(CountedEngine { engine, open: self.open.clone() }))
    }
}

impl QueryEngine for CountedEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        let (now, most) = &mut *self.open.lock().unwrap();
        *now += 1;
        *most = (*most).max(*now);
        self.engine.submit(number, plan);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        self.engine.advance()
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        let before = answers.len();
        self.engine.take(answers);
        self.open.lock().unwrap().0 -= answers.len() - before;
    }

    fn room(&mut self) -> bool {
        let has = self.engine.room();
        // Others look for room meanwhile.
        std::thread::sleep(Duration::from_micros(50));
        has
    }

    fn let_go(&mut self) {
        self.engine.let_go();
    }
}

#[test]
fn with_a_barrier_one_query_is_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 1, 900, &[20]);
    let lines: String = (0..300).map(|n| format!("{} {}\n", term(n % 40), term(7))).collect();
    for (barrier, one) in [(true, true), (false, false)] {
        let open = Arc::<Mutex<(usize, usize)>>::default();
        let of = |wakers: &Arc<Wakers>| {
            let engines = Docp { copies: false }.engines(barrier, wakers);
            Box::new(Counted { engines, open: open.clone() }) as Box<dyn Engines>
        };
        let workers = NonZeroUsize::new(4).unwrap();
        let options = QueryOptions { workers, ..QueryOptions::default() };
        let (service, asker) =
            QueryService::with_engines(snapshot.clone(), Shard::WHOLE, options, of);
        asker.ask_in_background(Lines::new(std::io::Cursor::new(lines.clone()))).unwrap();
        assert_eq!(service.run(Sink::values(|_| ())).unwrap().queries, 300);
        let (now, most) = *open.lock().unwrap();
        assert!(now == 0 && (most == 1) == one, "barrier {barrier}: {now} and {most}");
    }
}
