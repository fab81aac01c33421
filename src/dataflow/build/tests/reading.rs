//! The operators that read, decompress and parse.

use super::at;
use crate::dataflow::build::context::Build;
use crate::dataflow::build::decompress::decompress;
use crate::dataflow::build::parse::parse;
use crate::dataflow::build::read::read;
use crate::dataflow::harness::{WorkerStep, build, failure, pass, plan_of};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::tally::Tally;
use crate::input::Format;
use crate::input::hash::InputHash;
use crate::input::piece::Piece;
use crate::text::analysis::Analysis;
use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::Operator;

/// What one worker reads and cuts of the input of a build, whose far end absorbs each piece at
/// once.
fn pieces(shared: &Build) -> Vec<(u64, Piece)> {
    let build = shared.clone();
    let control = shared.wiring.control.clone();
    timely::execute_directly(move |worker| {
        let found = Rc::new(RefCell::new(Vec::new()));
        let probe = ProbeHandle::new();
        let kept = found.clone();
        let given = build.clone();
        worker.dataflow::<u64, _, _>(|scope| {
            let (taken, in_hand) = read(scope, &build, probe.clone());
            let pieces = decompress(taken, &build, in_hand, probe.clone());
            let kept = pieces.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Pipeline,
                "Keep",
                move |_, _| {
                    move |input, _| {
                        input.for_each(|cap, data| {
                            for Local((parser, piece)) in data.drain(..) {
                                given.wiring.flow.parsed(parser, piece.bytes.len(), 0);
                                kept.borrow_mut().push((*cap.time(), piece));
                            }
                        });
                    }
                },
            );
            kept.probe_with(&probe);
        });
        let mut steps = 0;
        while !probe.done() && !control.stopped() && steps < 1000 {
            worker.step_or_park(Some(Duration::from_millis(1)));
            steps += 1;
        }
        assert!(probe.done() || control.stopped());
        worker.installed_dataflows().into_iter().for_each(|flow| worker.drop_dataflow(flow));
        found.take()
    })
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Checks the pieces of a file, and what is noted of it.
fn check(folder: &Path, name: &str, content: &[u8], text: &[u8], times: &[u64]) {
    let shared = build(plan_of(folder, name, content), folder);
    let found = pieces(&shared);
    assert!(!shared.wiring.control.stopped(), "{name}");
    assert_eq!(found.iter().map(|(time, _)| *time).collect::<Vec<_>>(), times, "{name}");
    assert!(found.iter().flat_map(|(_, piece)| &*piece.bytes).eq(text), "{name}");
    let read = shared.progress.done.lock().unwrap().inputs.remove(0);
    let mut hash = InputHash::default();
    hash.update(content);
    assert_eq!((read.bytes, read.hash), (content.len() as u64, hash.digest()), "{name}");
}

#[test]
fn what_is_read_comes_in_order_and_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"id\": \"1\", \"text\": \"a mill\"}\n".repeat(80_000);
    let text = text.as_bytes();
    // Three stretches of 1 MiB, of two pieces each except for the last.
    let times = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)].map(|(stretch, piece)| at(stretch, piece));
    check(folder.path(), "a.jsonl", text, text, &times);
    // All of it comes out of one block.
    let times = [0, 1, 2, 3, 4].map(|piece| at(0, piece));
    check(folder.path(), "a.jsonl.gz", &gzip(text), text, &times);
    // A document, of three blocks.
    check(folder.path(), "a.txt", &text[..700_000], &text[..700_000], &[at(2, 0)]);
}

#[test]
fn what_cannot_be_read_ends_the_job() {
    let folder = tempfile::tempdir().unwrap();
    for (name, operator) in [("a.jsonl", "Read"), ("a.txt", "Decompress")] {
        let plan = plan_of(folder.path(), name, b"{}\n");
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let shared = build(plan, folder.path());
        assert!(pieces(&shared).is_empty());
        let (failed, why) = failure(&shared.wiring.control).unwrap();
        assert!(failed == operator && why.contains(name), "{failed}: {why}");
    }
    // A frame that asks for a window of 2 GiB, and an empty last block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00];
    let shared = build(plan_of(folder.path(), "a.jsonl.zst", &frame), folder.path());
    assert!(pieces(&shared).is_empty());
    let (failed, why) = failure(&shared.wiring.control).unwrap();
    assert!(failed == "Decompress" && why.contains("a window of 2048 MiB"), "{failed}: {why}");
}

fn piece(text: &str) -> Piece {
    Piece {
        input: 0,
        format: Format::Jsonl,
        offset: 0,
        bytes: text.as_bytes().into(),
        files: Vec::new(),
        head: Arc::default(),
        ends_input: true,
        skipped: Default::default(),
    }
}

#[test]
fn parse_gives_groups_and_holds_pieces_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    for ended in [false, true] {
        let plan = plan_of(folder.path(), "a.jsonl", b"");
        let shared = build(plan, folder.path());
        if ended {
            shared.wiring.control.cancel();
        }
        let given = shared.clone();
        let passed = pass(
            || {
                let text = "{\"text\": \"mill mill river\"}\nno JSON\n{\"text\": \"a mill\"}\n";
                let assigned = |block| (at(block, 0), Local((0, piece(text))));
                vec![WorkerStep { records: vec![assigned(0), assigned(1)], then: Some(at(2, 0)) }]
            },
            move |stream| {
                let tally = Tally::new(Analysis::default(), given.plan.owners.clone(), 1 << 16);
                parse(stream, &given, Rc::default(), tally).0
            },
            |Local(group)| (group.counts.documents, group.counts.postings, group.terms.len()),
        );
        if ended {
            // A job that has ended gets nothing more.
            assert!(passed.records[0].is_empty());
            continue;
        }
        assert_eq!(passed.records[0], [(at(0, 0), (2, 3, 2)), (at(1, 0), (2, 3, 2))]);
        assert_eq!(passed.frontier, [Some(at(2, 0))]);
        assert_eq!(shared.progress.documents.load(Ordering::Relaxed), 4);
    }
}
