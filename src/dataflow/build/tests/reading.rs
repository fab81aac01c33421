//! The operators that read, decompress and parse.

use super::at;
use crate::dataflow::build::context::Build;
use crate::dataflow::build::decompress::Decompress;
use crate::dataflow::build::parse::Parse;
use crate::dataflow::build::read::{ReadAhead, read};
use crate::dataflow::harness::{Step, build, failure, pass, plan_of};
use crate::dataflow::query::local::Local;
use crate::dictionary::tally::Tally;
use crate::input::error::InputError;
use crate::input::piece::Piece;
use crate::input::streams::split_stream::FileBlock;
use crate::input::{Compression, Format};
use crate::text::analysis::Analysis;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::dataflow::operators::Probe;
use timely::dataflow::{ProbeHandle, StreamVec};

#[test]
fn read_gives_blocks_in_order_and_holds_what_it_has_not_read() {
    const BYTES: usize = 700_000;
    for gone in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..BYTES).map(|i| b"word \n"[i % 6]).collect();
        let plan = plan_of(folder.path(), "a.txt", &text);
        if gone {
            std::fs::remove_file(folder.path().join("a.txt")).unwrap();
        }
        let shared = Arc::new(build(plan, folder.path()));
        let given = shared.clone();
        let (found, over) = timely::execute_directly(move |worker| {
            let found = Rc::new(std::cell::RefCell::new(Vec::new()));
            let (kept, probe) = (found.clone(), ProbeHandle::new());
            let feed = worker.dataflow::<u64, _, _>(|scope| {
                let (blocks, feed) = read(scope, &given);
                let kept =
                    timely::dataflow::operators::Inspect::inspect_core(blocks, move |event| {
                        let Ok((stamp, blocks)) = event else { return };
                        let time = *stamp.least().unwrap();
                        kept.borrow_mut().extend(blocks.iter().map(|block: &FileBlock| {
                            (time, block.bytes.clone(), (block.ends_input, block.ends_split))
                        }));
                    });
                kept.probe_with(&probe);
                feed
            });
            for _ in 0..20 {
                worker.step();
            }
            // It reads no further ahead than it may; what is taken makes room.
            let before = found.borrow().len();
            assert!(gone || before >= 1 && before == feed.queued.get());
            if before < 3 && !gone {
                assert!(probe.less_than(&at(3, 0)), "the next block may come");
            }
            for _ in 0..before {
                feed.taken(Vec::new());
            }
            for _ in 0..20 {
                worker.step();
            }
            let over = probe.done();
            worker.installed_dataflows().into_iter().for_each(|flow| worker.drop_dataflow(flow));
            (found.take(), over)
        });
        assert!(over);
        if gone {
            let (operator, why) = failure(&shared.control).unwrap();
            assert!(operator == "Read" && why.contains("a.txt"), "{operator}: {why}");
            assert!(found.is_empty());
            continue;
        }
        assert!(!shared.control.stopped());
        let times: Vec<u64> = found.iter().map(|(time, _, _)| *time).collect();
        assert_eq!(times, [at(0, 0), at(1, 0), at(2, 0)]);
        assert!(found.iter().flat_map(|(_, bytes, _)| bytes.iter().copied()).eq(text));
        let ends: Vec<(bool, bool)> = found.iter().map(|(_, _, ends)| *ends).collect();
        assert_eq!(ends, [(false, false), (false, false), (true, true)]);
        assert_eq!(shared.done.lock().unwrap().inputs[0].bytes, BYTES as u64);
    }
}

fn block(number: u64, bytes: &[u8], compression: Compression, ends: bool) -> (u64, FileBlock) {
    let block = FileBlock {
        split: 0,
        block: number,
        input: 0,
        compression,
        bytes: bytes.to_vec(),
        ends_input: ends,
        ends_split: ends,
    };
    (at(number, 0), block)
}

/// The decompressor behind blocks that were read.
fn decompress<'scope>(
    build: &Arc<Build>,
    blocks: usize,
    stream: StreamVec<'scope, u64, FileBlock>,
) -> StreamVec<'scope, u64, crate::dataflow::build::decompress::Assigned> {
    // As the reader has done.
    _ = build.wiring.claims.claim(1, 1, true, |_| Ok::<_, InputError>(None));
    let feed = Rc::new(ReadAhead::default());
    feed.queued.set(blocks);
    stream.decompress(build, feed, ProbeHandle::new())
}

#[test]
fn decompress_cuts_pieces_and_holds_those_that_grow() {
    let folder = tempfile::tempdir().unwrap();
    let line = "{\"id\": \"1\", \"text\": \"a mill\"}\n";
    let text = line.repeat(20_000);
    let plan = plan_of(folder.path(), "a.jsonl", text.as_bytes());
    let shared = Arc::new(build(plan, folder.path()));
    let (given, bytes) = (shared.clone(), text.clone().into_bytes());
    let passed = pass(
        move || {
            let (head, tail) = bytes.split_at(250_000);
            let none = Compression::None;
            vec![
                Step { records: vec![block(0, head, none, false)], then: Some(at(1, 0)) },
                Step { records: vec![block(1, tail, none, true)], then: None },
            ]
        },
        move |stream| decompress(&given, 2, stream),
        |Local((parser, piece))| (parser, piece.offset, piece.bytes.len()),
    );
    assert!(!shared.control.stopped());
    assert!(passed.records[0].is_empty(), "no piece is whole");
    assert_eq!(passed.frontier, [Some(at(1, 0)), None]);
    let pieces = &passed.records[1];
    assert_eq!(pieces.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [at(1, 0), at(1, 1)]);
    let mut offset = 0;
    for (_, (parser, from, bytes)) in pieces {
        assert_eq!((*parser, *from, bytes % line.len()), (0, offset as u64, 0));
        offset += bytes;
    }
    assert_eq!(offset, text.len());
}

#[test]
fn decompress_fails_where_no_window_will_do() {
    let folder = tempfile::tempdir().unwrap();
    // A frame that asks for a window of 2 GiB, and an empty last block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00];
    let shared = Arc::new(build(plan_of(folder.path(), "a.jsonl.zst", &frame), folder.path()));
    let given = shared.clone();
    let passed = pass(
        move || {
            let records = vec![block(0, &frame, Compression::Zstd, true)];
            vec![Step { records, then: None }]
        },
        move |stream| decompress(&given, 1, stream),
        |_| (),
    );
    let (operator, why) = failure(&shared.control).unwrap();
    assert!(operator == "Decompress" && why.contains("a window of 2048 MiB"), "{operator}: {why}");
    assert!(passed.records[0].is_empty());
}

fn piece(text: &str) -> Piece {
    Piece {
        input: 0,
        format: Format::Jsonl,
        offset: 0,
        bytes: text.as_bytes().to_vec().into(),
        files: Vec::new(),
        head: Arc::default(),
        ends_input: true,
        skipped: Vec::new(),
    }
}

#[test]
fn parse_gives_groups_and_holds_pieces_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    for ended in [false, true] {
        let plan = plan_of(folder.path(), "a.jsonl", b"");
        let shared = Arc::new(build(plan, folder.path()));
        if ended {
            shared.control.cancel();
        }
        let given = shared.clone();
        let passed = pass(
            || {
                let text = "{\"text\": \"mill mill river\"}\nno JSON\n{\"text\": \"a mill\"}\n";
                let assigned = |block| (at(block, 0), Local((0, piece(text))));
                vec![Step { records: vec![assigned(0), assigned(1)], then: Some(at(2, 0)) }]
            },
            move |stream| {
                let tally = Tally::new(Analysis::default(), given.owners.clone(), 1 << 16);
                stream.parse(&given, Rc::default(), tally).0
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
