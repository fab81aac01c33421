//! Tests of the other operators of queries, each in a small dataflow of its own: it passes on what
//! it gets, holds its frontier while something is open, and ends the job when it fails.

use super::tests::{context, snapshot};
use crate::dataflow::control::JobError;
use crate::dataflow::harness::{WorkerStep, pass};
use crate::dataflow::query::collect::{AnswerWriter, Sink, collect};
use crate::dataflow::query::lay_out::{AnswerOut, LaidOutAnswer};
use crate::dataflow::query::local::Local;
use crate::query::answers::output::AnswerForm;
use std::io;
use std::sync::atomic::Ordering;

fn step<I>(time: u64, records: Vec<I>, then: Option<u64>) -> WorkerStep<I> {
    WorkerStep { records: records.into_iter().map(|record| (time, record)).collect(), then }
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
    Local(LaidOutAnswer { place, out: AnswerOut::Text(text.into()), counted: None })
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
