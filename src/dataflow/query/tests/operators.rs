//! Tests of the other operators of queries, each in a small dataflow of its own: it passes on what
//! it gets, holds its frontier while something is open, and ends the job when it fails.

use super::tests::{context, numbered, snapshot};
use crate::dataflow::control::JobError;
use crate::dataflow::crossing::{Crossing, CrossingRecord};
use crate::dataflow::harness::{Failure, WorkerStep, failure, pass};
use crate::dataflow::query::ask::ask;
use crate::dataflow::query::batch::NumberedQuery;
use crate::dataflow::query::collect::{AnswerWriter, Sink, collect};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::desk::Request;
use crate::dataflow::query::gather::gather;
use crate::dataflow::query::lay_out::{AnswerOut, LaidOutAnswer};
use crate::dataflow::query::local::Local;
use crate::dataflow::query::look_up::{PlansByNumber, look_up};
use crate::dataflow::query::messages::{CountedTerms, Question, ShardHit, ShardHits, StageHits};
use crate::dataflow::query::tell::tell;
use crate::dataflow::query::weigh::weigh;
use crate::index::testing::term;
use crate::query::answers::output::AnswerForm;
use crate::query::engines::shard::Shard;
use crate::query::reading::asked::Query;
use crate::query::top_k::NamedHit;
use crate::query::wanted::Wanted;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::{Stream, StreamVec};

/// The context of process 0 of two.
fn of_two(folder: &std::path::Path) -> Arc<Context> {
    let mut context = context(&snapshot(folder, 1, 30), 1);
    let shard = Shard { process: 0, processes: 2 };
    Arc::get_mut(&mut context).unwrap().shard = shard;
    context
}

/// Records as they come from other processes.
fn cross<'scope, T: CrossingRecord + 'static>(
    stream: StreamVec<'scope, u64, T>,
) -> Stream<'scope, u64, Crossing<T>> {
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Cross", |_, _| {
        |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                data.drain(..).for_each(|record| session.give(record));
            });
        }
    })
}

/// Records that go to other processes.
fn arrive<'scope, T: CrossingRecord + 'static>(
    stream: Stream<'scope, u64, Crossing<T>>,
) -> StreamVec<'scope, u64, T> {
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Arrive", |_, _| {
        |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                data.0.drain(..).for_each(|record| session.give(record.ok().unwrap()));
            });
        }
    })
}

fn step<I>(time: u64, records: Vec<I>, then: Option<u64>) -> WorkerStep<I> {
    WorkerStep { records: records.into_iter().map(|record| (time, record)).collect(), then }
}

#[test]
fn ask_asks_every_process_once() {
    for ended in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let context = of_two(folder.path());
        let snapshot = context.snapshot();
        if ended {
            context.control.cancel();
        }
        let given = context.clone();
        let passed = pass(
            move || vec![step(3, vec![numbered(&snapshot, 7, "a mill")], Some(4))],
            move |stream| arrive(ask(stream, &given)),
            |asked: Question| (asked.worker, asked.number, asked.query.text),
        );
        let expected = [0, 1].map(|worker| (3, (worker, 7, "a mill".to_string())));
        let expected = if ended { &expected[..0] } else { &expected[..] };
        assert_eq!(passed.records[0], expected);
        assert_eq!(passed.frontier, [Some(4)]);
    }
}

#[test]
fn look_counts_terms_for_every_process_and_keeps_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let context = of_two(folder.path());
    let planned = Arc::new(PlansByNumber::default());
    let given = context.clone();
    let plans = planned.clone();
    let passed = pass(
        || {
            let text = format!("{} nowhere", term(7));
            let question = Question::new(0, 5, Wanted::default(), &Query::new("", text));
            vec![step(2, vec![question], Some(3))]
        },
        move |stream| arrive(look_up(cross(stream), &given, &plans)),
        |counted: CountedTerms| (counted.worker, counted.number, counted.dfs),
    );
    assert_eq!(passed.frontier, [Some(3)]);
    let counts: Vec<_> = passed.records[0].iter().map(|(_, record)| record).collect();
    assert_eq!((counts.len(), counts[0].0, counts[1].0), (2, 0, 1));
    for (_, number, dfs) in counts {
        assert!(*number == 5 && dfs[0] >= 15 && dfs[1] == 0, "{dfs:?}");
    }
    assert_eq!(planned.lock().unwrap()[&5].terms().len(), 2);
}

/// Plans a query for itself, and weighs it by what two shards have counted.
fn weigh_counts(dfs: [Vec<u64>; 2]) -> (Vec<(u64, u32)>, Option<Failure>) {
    let folder = tempfile::tempdir().unwrap();
    let context = of_two(folder.path());
    let planned = Arc::new(PlansByNumber::default());
    let given = context.clone();
    let plans = planned.clone();
    pass(
        || {
            let text = format!("{} {}", term(7), term(8));
            vec![step(0, vec![Question::new(0, 5, Wanted::default(), &Query::new("", text))], None)]
        },
        move |stream| arrive(look_up(cross(stream), &given, &plans)),
        |_: CountedTerms| (),
    );
    let given = context.clone();
    let passed = pass(
        move || {
            let counted = dfs.map(|dfs| CountedTerms { worker: 0, number: 5, dfs });
            vec![step(4, counted.into(), Some(5))]
        },
        move |stream| weigh(cross(stream), &given, &planned),
        |Local(request)| match request {
            Request::Planned(number, plan) => (number, plan.terms()[1].df),
            Request::Text(_) => panic!("it was planned"),
        },
    );
    (passed.records[0].iter().map(|(_, record)| *record).collect(), failure(&context.control))
}

#[test]
fn weigh_waits_for_all_shards_and_fails_where_they_differ() {
    let (weighed, failed) = weigh_counts([vec![3, 4], vec![5, 6]]);
    assert_eq!((weighed, failed), (vec![(5, 10)], None));
    let (weighed, failed) = weigh_counts([vec![3, 4], vec![5]]);
    let (operator, why) = failed.unwrap();
    assert!(weighed.is_empty() && operator == "Weigh" && why.contains("different terms"), "{why}");
}

#[derive(Clone)]
enum Coming {
    Query(NumberedQuery),
    Hits(ShardHits),
}

#[test]
fn gather_puts_shards_together_and_holds_queries_that_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let context = of_two(folder.path());
    let snapshot = context.snapshot();
    let given = context.clone();
    let passed = pass(
        move || {
            let query = |number| Coming::Query(numbered(&snapshot, number, "mill").0);
            let hits = |number, docid, score| {
                let hit = NamedHit { name: format!("d{docid}"), docid, score };
                let hits = vec![ShardHit { named: hit, key: None, values: Default::default() }];
                let first = StageHits { hits, ..StageHits::default() };
                Coming::Hits(ShardHits { number, known: true, first, any: StageHits::default() })
            };
            // The second query lacks the hits of a shard.
            let coming =
                vec![hits(0, 40, 2.0), query(0), query(1), hits(1, 3, 1.0), hits(0, 4, 1.5)];
            vec![step(6, coming, Some(7))]
        },
        move |stream| {
            let queries = stream.clone().flat_map(|coming| match coming {
                Coming::Query(query) => Some(Local(query)),
                Coming::Hits(_) => None,
            });
            let hits = stream.flat_map(|coming| match coming {
                Coming::Query(_) => None,
                Coming::Hits(hits) => Some(Local(hits)),
            });
            gather(queries, tell(hits), &given)
        },
        |Local(answered)| match answered.out {
            AnswerOut::Text(text) => (answered.place, String::from_utf8(text).unwrap()),
            AnswerOut::Value(_) => panic!("text was asked for"),
        },
    );
    assert!(!context.control.stopped());
    let [(6, (0, text))] = &passed.records[0][..] else { panic!("{:?}", passed.records) };
    let names: Vec<&str> = text.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!(names, ["d40", "d4"]);
    assert_eq!(passed.frontier, [Some(6)], "a query is open");
}

/// Fails in every write, like this.
struct Broken(io::ErrorKind);

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn text(place: u32, text: &str) -> Local<LaidOutAnswer> {
    Local(LaidOutAnswer { place, out: AnswerOut::Text(text.into()) })
}

#[test]
fn collect_writes_whole_batches_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&snapshot(folder.path(), 1, 30), 1);
    let written = folder.path().join("out");
    let file = std::fs::File::create(&written).unwrap();
    let given = context.clone();
    let writer = AnswerWriter::new(Some(Sink::text(AnswerForm::Tsv, file)));
    let passed = pass(
        || {
            vec![
                step(0, vec![text(1, "b ")], Some(0)),
                WorkerStep { records: vec![(0, text(0, "a ")), (1, text(0, "c"))], then: Some(1) },
                step(1, vec![], None),
            ]
        },
        move |stream| collect(stream, &given, &writer),
        |()| (),
    );
    assert_eq!(passed.frontier, [Some(0), Some(1), None]);
    assert_eq!(std::fs::read_to_string(written).unwrap(), "a b c");
    assert_eq!(context.tally.batches.load(Ordering::Relaxed), 2);
}

#[test]
fn collect_ends_the_job_when_nothing_can_be_written() {
    for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::StorageFull] {
        let folder = tempfile::tempdir().unwrap();
        let context = context(&snapshot(folder.path(), 1, 30), 1);
        let given = context.clone();
        let writer = AnswerWriter::new(Some(Sink::text(AnswerForm::Tsv, Broken(kind))));
        pass(
            || vec![step(0, vec![text(0, "a")], None)],
            move |stream| collect(stream, &given, &writer),
            |()| (),
        );
        match context.control.take_failure().unwrap() {
            JobError::OutputClosed => assert_eq!(kind, io::ErrorKind::BrokenPipe),
            JobError::Operator { operator, .. } => {
                assert_eq!((operator, kind), ("Collect", io::ErrorKind::StorageFull));
            }
            error => panic!("{error}"),
        }
    }
}
