//! Tests of each operator of a build in a small dataflow of its own: it passes on what it gets,
//! holds its frontier while something is open, and ends the job when it fails.

mod reading;

use crate::dataflow::build::context::Build;
use crate::dataflow::build::documents::write_documents;
use crate::dataflow::build::encode::encode;
use crate::dataflow::build::feed::RunShare;
use crate::dataflow::build::flush::flush;
use crate::dataflow::build::index::index;
use crate::dataflow::harness::{WorkerStep, build, failure, pass, plan_of};
use crate::dataflow::query::local::Local;
use crate::dictionary::closed::{ClosedError, ClosedShare, ClosedTerms};
use crate::dictionary::group::TermGroup;
use crate::dictionary::parsed::Regroup;
use crate::dictionary::tally::Tally;
use crate::index::documents::Location;
use crate::index::documents::pieces::{PieceDocuments, Skipped};
use crate::index::list::Form;
use crate::index::run::{ChunkLayout, LaidChunk, MakerGuard, RunPart};
use crate::input::splits::InputPlan;
use crate::order::{PieceCounts, Position};
use crate::text::analysis::Analysis;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::dataflow::operators::vec::Map;

fn empty(folder: &Path) -> Build {
    build(InputPlan::new(&[], None).unwrap(), folder)
}

fn at(block: u64, piece: u64) -> u64 {
    Position::new(0, block, piece).unwrap().0
}

fn group(texts: &[&str]) -> TermGroup {
    let owners = Arc::new(crate::dictionary::owners::Owners::in_turn(1));
    let mut tally = Tally::new(Analysis::default(), owners, 1 << 16);
    texts.iter().for_each(|text| _ = tally.document(text.as_bytes()));
    tally.finish().pop().unwrap()
}

#[test]
fn index_takes_pieces_in_order_and_closes_the_last_run() {
    let folder = tempfile::tempdir().unwrap();
    let shared = empty(folder.path());
    let given = shared.clone();
    let passed = pass(
        || {
            let local = |texts: &[&str]| Local(group(texts));
            vec![
                // The second piece comes first, and an earlier one may come.
                WorkerStep { records: vec![(at(1, 0), local(&["mill"]))], then: Some(at(1, 0)) },
                WorkerStep {
                    records: vec![(at(1, 1), local(&["river mill", "mill"]))],
                    then: Some(at(2, 0)),
                },
                WorkerStep { records: vec![], then: None },
            ]
        },
        move |stream| index(stream, &given.plan, &given.wiring).0,
        |Local(RunShare { part, number, mut share, .. })| {
            let mut terms = Vec::new();
            let mut postings = Vec::new();
            while share.terms.advance(&mut postings).unwrap() {
                terms.push((share.terms.term().1.to_vec(), postings.len()));
            }
            assert!(number == 0 && share.last);
            (part, terms)
        },
    );
    assert!(!shared.wiring.control.stopped());
    assert!(passed.records[0].is_empty() && passed.records[1].is_empty(), "the run goes on");
    // The operator keeps the capability of the last piece, at whose time the run will go out.
    assert_eq!(passed.frontier, [Some(at(1, 0)), Some(at(1, 1)), None]);
    let (time, (part, terms)) = &passed.records[2][0];
    assert_eq!((*time, part.documents, part.run, part.owner), (at(1, 1), 3, 0, 0));
    assert_eq!(*terms, [(b"l".to_vec(), 3), (b"er".to_vec(), 1)]);
}

#[test]
fn index_fails_when_docids_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = empty(folder.path());
    // One run has all of them.
    Arc::get_mut(&mut shared.plan).unwrap().budget.run_limit = u64::MAX;
    let given = shared.clone();
    pass(
        || {
            let large = |number: u64| {
                let mut group = group(&["mill"]);
                group.counts =
                    Arc::new(PieceCounts { documents: u32::MAX - 1, ..(*group.counts).clone() });
                (at(number, 0), Local(group))
            };
            vec![WorkerStep { records: vec![large(0), large(1)], then: None }]
        },
        move |stream| index(stream, &given.plan, &given.wiring).0,
        |_| (),
    );
    assert_eq!(failure(&shared.wiring.control).unwrap().0, "Index");
}

/// Terms of one posting each, of trie collection 0, or errors.
struct Terms(Vec<Result<&'static str, &'static str>>, usize);

impl ClosedTerms for Terms {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        let Some(term) = self.0.get(self.1) else { return Ok(false) };
        (*term)?;
        postings.clear();
        crate::codec::folded::put(0, 1, postings);
        self.1 += 1;
        Ok(true)
    }

    fn term(&self) -> (u16, &[u8]) {
        (0, self.0[self.1 - 1].unwrap().as_bytes())
    }
}

/// Encodes a share of a run with these terms; returns what ends with each chunk, the share and the
/// part of the owner, and its terms.
fn encode_terms(
    shared: &Build,
    terms: &'static [Result<&'static str, &'static str>],
    last: bool,
) -> crate::dataflow::harness::HarnessPassed<(u32, [bool; 2], u64)> {
    let given = shared.clone();
    pass(
        || {
            let step = |records, then| WorkerStep { records, then };
            vec![step(vec![(at(0, 0), ())], Some(at(4, 0))), step(vec![], None)]
        },
        move |stream| {
            let runs = Map::map(stream, move |()| {
                Local(RunShare {
                    part: RunPart { documents: 1, ..RunPart::default() },
                    number: 3,
                    share: ClosedShare { terms: Box::new(Terms(terms.to_vec(), 0)), last },
                    lengths: Arc::new(vec![1]),
                    unwritten: Arc::new(()),
                    busy: Arc::default(),
                })
            });
            encode(runs, &given.plan, &given.wiring)
        },
        |Local(chunk)| (chunk.share, [chunk.ends_share, chunk.ends], chunk.ended().0),
    )
}

#[test]
fn encode_gives_chunks_and_fails_with_the_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    for last in [false, true] {
        let shared = empty(folder.path());
        let passed = encode_terms(&shared, &[Ok("a"), Ok("b")], last);
        assert_eq!(passed.records[0], [(at(0, 0), (3, [true, last], 2))]);
        assert_eq!(passed.frontier, [Some(at(4, 0)), None]);
        let encoded = &shared.wiring.encoded[0];
        assert_eq!(encoded.terms.load(Ordering::Relaxed), 2);
    }

    let shared = empty(folder.path());
    encode_terms(&shared, &[Ok("a"), Err("the device has gone")], true);
    assert_eq!(
        failure(&shared.wiring.control),
        Some(("Encode", "the device has gone".to_string()))
    );
}

/// A chunk with a list of one posting for each of some terms of trie collection 0.
fn chunk(layout: &mut ChunkLayout, suffixes: &[u8], ends: bool, guard: MakerGuard) -> LaidChunk {
    for (n, suffix) in suffixes.chunks(1).enumerate() {
        layout.list((0, suffix), 1, 1, n + 1).unwrap();
    }
    LaidChunk {
        part: RunPart { documents: 1, ..RunPart::default() },
        ends,
        guard: Some(guard),
        ..layout.take(vec![0; suffixes.len()])
    }
}

#[test]
fn flush_writes_a_run_when_its_owners_have_ended_it_and_fails_without_a_folder() {
    for folder_is_there in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        if folder_is_there {
            std::fs::create_dir(folder.path().join("runs")).unwrap();
        }
        let shared = empty(folder.path());
        let given = shared.clone();
        let held = Arc::new(());
        let guard = held.clone();
        let passed = pass(
            move || {
                let mut layout = ChunkLayout::new(Form::default());
                let mut step = |number, suffixes: &[u8], ends_run| WorkerStep {
                    records: vec![(
                        at(number, 0),
                        Local(chunk(&mut layout, suffixes, ends_run, guard.clone())),
                    )],
                    then: Some(at(number + 1, 0)),
                };
                vec![step(0, b"ac", false), step(1, b"x", true)]
            },
            move |stream| flush(stream, &given),
            |()| (),
        );
        if !folder_is_there {
            assert_eq!(failure(&shared.wiring.control).unwrap().0, "Flush");
            continue;
        }
        assert_eq!(passed.frontier, [Some(at(1, 0)), Some(at(2, 0))]);
        assert!(!shared.wiring.control.stopped());
        let done = shared.progress.done.lock().unwrap();
        assert_eq!((done.runs[0].0.terms, done.runs[0].0.postings), (3, 3));
        assert_eq!(Arc::strong_count(&held), 1, "both chunks are written");
    }
}

/// The documents of a piece: one with this name.
fn batch(name: &str, skipped: Vec<Skipped>) -> Local<PieceDocuments> {
    let mut batch = PieceDocuments::new(0, skipped.into_iter().collect());
    let location = Location { offset: 0, bytes: 3, input: 0 };
    batch.push(name, 1, location, Some((2, 7)));
    batch.counts = Arc::new(PieceCounts { documents: 1, ..PieceCounts::default() });
    Local(batch)
}

#[test]
fn documents_are_written_in_order_and_strict_builds_fail_where_something_is_skipped() {
    for strict in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let mut shared = build(plan_of(folder.path(), "a.jsonl", b""), folder.path());
        Arc::get_mut(&mut shared.plan).unwrap().strict = strict;
        let given = shared.clone();
        let passed = pass(
            || {
                let bad = Skipped {
                    input: 0,
                    offset: 5,
                    line: 2,
                    reason: "bad JSON",
                    detail: "no object".into(),
                };
                vec![
                    WorkerStep {
                        records: vec![(at(1, 0), batch("b", vec![]))],
                        then: Some(at(1, 0)),
                    },
                    WorkerStep {
                        records: vec![(at(3, 0), batch("c", vec![bad]))],
                        then: Some(at(4, 0)),
                    },
                    WorkerStep { records: vec![], then: None },
                ]
            },
            move |stream| write_documents(stream, &given),
            |()| (),
        );
        assert_eq!(passed.frontier[0], Some(at(1, 0)), "an earlier piece may come");
        if strict {
            let (operator, why) = failure(&shared.wiring.control).unwrap();
            assert_eq!(operator, "Documents");
            assert!(why.ends_with("a.jsonl: byte 5 (line 2): no object"), "{why}");
            continue;
        }
        assert_eq!(passed.frontier[1..], [Some(at(4, 0)), None]);
        let done = shared.progress.done.lock().unwrap().documents.take().unwrap();
        assert_eq!((done.documents, done.tokens, done.runs.len()), (2, 4, 1));
        assert_eq!(done.skipped.get("bad JSON"), Some(&1));
    }
}
