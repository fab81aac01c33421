//! Tests of the operators of queries, each in a small dataflow of its own: they pass on what they
//! get, hold the frontier while something is open, and fail as a whole. Then tests of services.

use super::super::control::JobError;
use super::super::sole_time::SoleTime;
use super::*;
use crate::dataflow::query::batch::NumberedQuery;
use crate::dataflow::query::context::{AnswerLayout, Hooks, QueryTally};
use crate::dataflow::query::inbox::Asker;
use crate::dataflow::query::local::Local;
use crate::dataflow::query::service::{QueryOptions, QueryService, Sink};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::testing::{build, collection, term};
use crate::query::answers::output::AnswerForm;
use crate::query::engines::engine::{Answer, Model, Pace, QueryEngine};
use crate::query::engines::shard::Shard;
use crate::query::plan::Plan;
use crate::query::reading::lines::{Lines, Query};
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::top_k::Hit;
use crate::query::wanted::Wanted;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::generic::operator::Operator;

pub(super) fn snapshot(folder: &Path, seed: u64, documents: u32) -> Arc<Snapshot> {
    let mut documents = collection(seed, documents, 40);
    for document in documents.iter_mut().step_by(2) {
        document.insert(term(7), 1);
    }
    build(folder, &documents, &[20]);
    Snapshot::new(Generation::open(folder).unwrap(), Scoring::default()).unwrap()
}

pub(super) fn context(snapshot: &Arc<Snapshot>, workers: usize) -> Arc<Context> {
    Arc::new(Context {
        most_open: None,
        shed: None,
        wanted: Wanted::default(),
        algorithms: &[],
        remove_query: false,
        batch: 2,
        delay: Duration::ZERO,
        workers,
        shard: Shard::WHOLE,
        snapshot: Arc::new(Mutex::new(snapshot.clone())),
        opened: Mutex::default(),
        stream: Arc::default(),
        layout: AnswerLayout::Text(AnswerForm::Tsv),
        hooks: Hooks::default(),
        tally: QueryTally::default(),
        control: Arc::default(),
    })
}

fn wiring(engines: Box<dyn Engines>, sink: Sink) -> (Arc<Wiring>, Asker) {
    let (asker, inbox) = Asker::new(16);
    let wakers = Wakers::new(1);
    let wiring = Wiring {
        inbox,
        writer: AnswerWriter::new(Some(sink)),
        engines,
        whole: Arc::new(QueryDesk::new(wakers.clone())),
        shards: ShardWiring::new(&wakers),
        following: None,
        wakers,
    };
    (Arc::new(wiring), asker)
}

/// Answers without hits, in backward order, once it may; or fails.
#[derive(Clone, Default)]
struct Gate {
    open: Arc<AtomicBool>,
    broken: Arc<AtomicBool>,
    numbers: Vec<u64>,
}

impl Engines for Gate {
    fn engine(&self, _: usize, _: &Arc<Snapshot>) -> Result<Box<dyn QueryEngine>, IndexError> {
        Ok(Box::new(self.clone()))
    }
}

impl QueryEngine for Gate {
    fn submit(&mut self, number: u64, _: Plan) {
        self.numbers.push(number);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(IndexError::io("gate")(std::io::Error::other("it broke")));
        }
        Ok(if self.numbers.is_empty() { Pace::Idle } else { Pace::Soon })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        if self.open.load(Ordering::SeqCst) {
            let answer = |number| Answer { number, known: true, ..Answer::default() };
            answers.extend(self.numbers.drain(..).rev().map(answer));
        }
    }

    fn room(&mut self) -> bool {
        true
    }
}

pub(super) fn numbered(snapshot: &Arc<Snapshot>, number: u64, text: &str) -> Local<NumberedQuery> {
    let place = number as u32;
    let query = Ok(Query::new(number.to_string(), text));
    let (snapshot, listing, came) = (snapshot.clone(), None, Instant::now());
    Local(NumberedQuery { place, number, query, snapshot, listing, came, waiter: None })
}

/// Runs the answer operator alone: lets two batches in, and the engine answer after a while.
fn through_answer(gate: Gate, breaks: bool) -> (Vec<(u64, u32)>, Option<JobError>) {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 1, 30);
    let context = context(&snapshot, 1);
    let (wiring, _asker) = wiring(Box::new(gate.clone()), Sink::values(|_| ()));
    let control = context.control.clone();
    let found = timely::execute_directly(move |worker| {
        let found = Rc::new(RefCell::new(Vec::new()));
        let records = found.clone();
        let probe = ProbeHandle::new();
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, queries) = scope.new_input::<Vec<Local<NumberedQuery>>>();
            let answered = answer(
                queries,
                &context,
                &*wiring.engines,
                &wiring.wakers,
                &wiring.whole,
                lay_out::answer,
            );
            let kept = answered.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Pipeline,
                "Keep",
                move |_, _| {
                    move |input, _| {
                        input.for_each(|cap, data| {
                            let batch = *cap.time();
                            let places = data.drain(..).map(|Local(answer)| (batch, answer.place));
                            records.borrow_mut().extend(places);
                        });
                    }
                },
            );
            kept.probe_with(&probe);
            input
        });
        input.send(numbered(&snapshot, 0, "a"));
        input.send(numbered(&snapshot, 1, "b"));
        input.advance_to(1);
        input.send(numbered(&snapshot, 2, "c"));
        input.advance_to(2);
        for _ in 0..50 {
            worker.step();
        }
        assert!(probe.less_than(&1), "no batch is complete without its answers");
        assert!(found.borrow().is_empty());
        gate.broken.store(breaks, Ordering::SeqCst);
        gate.open.store(true, Ordering::SeqCst);
        for _ in 0..50 {
            worker.step();
        }
        if breaks {
            let dataflows = worker.installed_dataflows();
            dataflows.into_iter().for_each(|dataflow| worker.drop_dataflow(dataflow));
        } else {
            assert!(!probe.less_than(&2), "both batches are complete");
        }
        found.take()
    });
    (found, control.take_failure())
}

#[test]
fn answers_leave_when_they_are_there_and_batches_are_held_until_then() {
    let (found, failure) = through_answer(Gate::default(), false);
    assert_eq!(found, [(1, 2), (0, 1), (0, 0)]);
    assert!(failure.is_none());
}

#[test]
fn an_engine_that_fails_ends_the_job() {
    let (found, failure) = through_answer(Gate::default(), true);
    assert!(found.is_empty());
    match failure {
        Some(JobError::Operator { operator: "Answer", source, .. }) => {
            assert_eq!(source.to_string(), "gate");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn queries_become_batches_that_bear_their_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let one = snapshot(folder.path(), 1, 30);
    let two = snapshot(folder.path(), 2, 40);
    let context = context(&one, 1);
    let (wiring, asker) = wiring(Box::new(Gate::default()), Sink::values(|_| ()));
    let seen = timely::execute_directly(move |worker| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let records = seen.clone();
        let probe = ProbeHandle::new();
        worker.dataflow::<u64, _, _>(|scope| {
            let queries = batch(scope, &context, &wiring.inbox, probe.clone());
            let kept = queries.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Pipeline,
                "Keep",
                move |_, _| {
                    move |input, _| {
                        input.for_each(|cap, data| {
                            for Local(query) in data.drain(..) {
                                let documents = query.snapshot.generation().documents().len();
                                let kept = (*cap.time(), query.place, query.number, documents);
                                records.borrow_mut().push(kept);
                            }
                        });
                    }
                },
            );
            kept.probe_with(&probe);
        });
        for round in 0..2 {
            for text in ["a", "b", "c"] {
                assert!(asker.ask(Ok(Ok(Query::new("q", text)))));
            }
            while seen.borrow().len() < 3 * (round + 1) {
                worker.step();
            }
            *context.snapshot.lock().unwrap() = two.clone();
        }
        drop(asker);
        while worker.has_dataflows() {
            worker.step();
        }
        seen.take()
    });
    let of_one = [(0, 0, 0, 30), (0, 1, 1, 30), (1, 0, 2, 30)];
    let of_two = [(2, 0, 3, 40), (2, 1, 4, 40), (3, 0, 5, 40)];
    assert_eq!(seen, [of_one, of_two].concat());
}

fn options(model: Model, workers: usize) -> QueryOptions {
    let workers = NonZeroUsize::new(workers).unwrap();
    QueryOptions { model, workers, ..QueryOptions::default() }
}

fn serve(service: QueryService) -> Result<String, JobError> {
    let text = Arc::new(Mutex::new(Vec::new()));
    struct Out(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Out {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    service.run(Sink::text(AnswerForm::Tsv, Out(text.clone())))?;
    Ok(String::from_utf8(text.lock().unwrap().clone()).unwrap())
}

/// An engine that answers whole, waits in each query until it may go on, and sends the worker that
/// has begun with one.
struct Held {
    began: Mutex<Sender<usize>>,
    open: Arc<AtomicBool>,
}

struct HeldEngine {
    worker: usize,
    began: Sender<usize>,
    open: Arc<AtomicBool>,
    number: Option<u64>,
    answer: Option<Answer>,
}

impl Engines for Held {
    fn engine(&self, worker: usize, _: &Arc<Snapshot>) -> Result<Box<dyn QueryEngine>, IndexError> {
        let began = self.began.lock().unwrap().clone();
        let open = self.open.clone();
        Ok(Box::new(HeldEngine { worker, began, open, number: None, answer: None }))
    }

    fn answers_whole(&self) -> bool {
        true
    }
}

impl QueryEngine for HeldEngine {
    fn submit(&mut self, number: u64, _: Plan) {
        self.number = Some(number);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        if let Some(number) = self.number.take() {
            self.began.send(self.worker).unwrap();
            let began = Instant::now();
            while !self.open.load(Ordering::SeqCst) && began.elapsed() < LIMIT {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.answer = Some(Answer { number, known: true, ..Answer::default() });
        }
        Ok(Pace::Idle)
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.extend(self.answer.take());
    }

    fn room(&mut self) -> bool {
        self.number.is_none()
    }
}

const LIMIT: Duration = Duration::from_secs(30);

/// Queries that come one by one while others are being answered go to workers that are free, and
/// the one that takes them in answers only when it is the last.
#[test]
fn whoever_takes_queries_in_is_the_last_to_answer_one() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 1, 30);
    let options = QueryOptions { delay: Duration::ZERO, ..options(Model::Inter, 4) };
    let (sender, began) = std::sync::mpsc::channel();
    let open = Arc::new(AtomicBool::new(false));
    let held = Held { began: Mutex::new(sender), open: open.clone() };
    let (service, asker) =
        QueryService::with_engines(snapshot, Shard::WHOLE, options, |_| Box::new(held));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| service.run(Sink::values(|_| ())));
        let mut workers = Vec::new();
        for _ in 0..4 {
            assert!(asker.ask(Ok(Ok(Query::new("q", term(7))))));
            workers.extend(began.recv_timeout(LIMIT));
        }
        open.store(true, Ordering::SeqCst);
        drop(asker);
        assert_eq!(running.join().unwrap().unwrap().queries, 4);
        assert_eq!(workers.last(), Some(&0), "{workers:?}");
        workers.sort_unstable();
        assert_eq!(workers, [0, 1, 2, 3]);
    });
}

/// Three services of one process, of which one is ended early, know nothing of each other.
#[test]
fn services_run_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 1, 900);
    let lines: String = (0..200).map(|n| format!("{} {}\n", term(n % 40), term(7))).collect();
    let ask = |model, workers| {
        let (service, asker) = QueryService::new(snapshot.clone(), options(model, workers));
        asker.ask_in_background(Lines::new(std::io::Cursor::new(lines.clone()))).unwrap();
        service
    };
    let expected = serve(ask(Model::Inter, 1)).unwrap();
    assert!(expected.lines().count() > 1000);
    let patience = Duration::from_micros(50);
    let fgqp = Model::Fgqp { delta: 5, cutting: Default::default(), patience };
    let (ended, asker) = QueryService::new(snapshot.clone(), options(Model::Inter, 2));
    let control = ended.control().clone();
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| serve(ended));
        let others = [ask(fgqp, 2), ask(fgqp, 3)];
        let others = others.map(|service| scope.spawn(|| serve(service)));
        assert!(asker.ask(Ok(Ok(Query::new("q", term(7))))));
        control.fail(JobError::Signal(15));
        assert!(matches!(ended.join().unwrap(), Err(JobError::Signal(15))));
        for other in others {
            assert!(other.join().unwrap().unwrap() == expected);
        }
    });
}

/// A service that has moved answers from what it has moved to, in every model, and loses nothing.
#[test]
fn a_service_moves_between_two_batches() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = snapshot(folders[0].path(), 1, 300);
    let two = snapshot(folders[1].path(), 2, 500);
    let wanted = Wanted { k: 1000, ..Wanted::default() };
    let expected = [&one, &two]
        .map(|snapshot| Searcher::new().search(snapshot, &wanted, &term(7)).unwrap().0.to_vec());
    assert!(expected[1].len() > expected[0].len() && expected[0].len() > 100);
    let fgqp = Model::Fgqp { delta: 5, cutting: Default::default(), patience: Duration::ZERO };
    for model in [Model::Inter, fgqp] {
        let options = QueryOptions { wanted, delay: Duration::ZERO, ..options(model, 2) };
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
                    assert!(hits == *expected && answer.hits.iter().all(|f| !f.name.is_empty()));
                    assert_eq!(answer.query.text, term(7));
                }
                mover.move_to(two.clone());
            }
            drop(asker);
            let report = running.join().unwrap().unwrap();
            assert_eq!((report.queries, report.unknown), (6, 0));
        });
    }
}
