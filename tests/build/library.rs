//! The library serves a program of its own: builds from memory and query services, several of both
//! at once, one of them cancelled, and remarks, figures and errors that are typed.

use crate::support::{Scratch, args, files, millrace};
use millrace::inside::index::DocumentRow;
use millrace::inside::papers::MODELS;
use millrace::inside::query::Model;
use millrace::{
    Asker, BuildError, BuildOptions, BuildReport, Generation, Index, JobError, Note, OwnedDocument,
    Query, QueryOptions, QueryReport, QueryService, Scoring, Sink, Snapshot, build,
};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// A document of `terms` terms that no other one has.
fn rare(number: usize, terms: usize) -> OwnedDocument {
    let text = (0..terms).map(|i| format!("t{:x} ", number * terms + i)).collect::<String>();
    OwnedDocument::new(format!("d{number}"), text)
}

fn small(index: &Path) -> BuildReport {
    let texts = ["the mill by the river", "a river and a stream", "the wind turns the mill"];
    let documents =
        texts.iter().enumerate().map(|(i, text)| OwnedDocument::new(format!("{i}"), *text));
    let documents: Vec<_> = documents.collect();
    let mut options = BuildOptions::of_documents(index, documents);
    options.workers = 2;
    build(options).unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A wait in a test ends after this, and the test fails.
const LONG: Duration = Duration::from_secs(60);

/// A query service that runs, and what it is asked through.
struct Running {
    asker: Asker,
    /// Texts of queries and names of their documents.
    answers: Receiver<(String, Vec<String>)>,
    service: JoinHandle<Result<QueryReport, JobError>>,
}

impl Running {
    fn start(index: &Path, model: Model) -> Self {
        let snapshot = Snapshot::open(index, Scoring::default()).unwrap();
        let workers = NonZeroUsize::new(2).unwrap();
        let options = QueryOptions { model, workers, ..QueryOptions::default() };
        let (service, asker) = QueryService::new(snapshot, options);
        let (sender, answers) = channel();
        // Nobody receives when the test has failed.
        let sink = Sink::values(move |answer| {
            let answer = answer.unwrap();
            let names = answer.hits.iter().map(|hit| hit.name.to_string()).collect();
            _ = sender.send((answer.query.text.clone(), names));
        });
        Self { asker, answers, service: spawn(move || service.run(sink)) }
    }

    /// Asks for the mill, which two of the three small documents have.
    fn answers(&self) {
        assert!(self.asker.ask(Ok(Ok(Query::new("q", "mill")))));
        let answer = self.answers.recv_timeout(LONG).unwrap();
        assert_eq!(answer, ("mill".to_string(), vec!["0".to_string(), "2".to_string()]));
    }

    fn end(self) -> QueryReport {
        drop(self.asker);
        // An answer that nobody asked for would be here.
        assert_eq!(self.answers.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
        self.service.join().unwrap().unwrap()
    }
}

#[test]
fn two_builds_one_cancelled_and_three_services_run_at_once() {
    const DOCUMENTS: usize = 4000;
    let scratch = Scratch::new();
    let kept = scratch.path("kept");
    let cancelled = scratch.path("cancelled");
    let alone = scratch.path("alone");
    small(&cancelled);
    let before = files(&cancelled);
    let options = |index: &Path, documents: Box<dyn Iterator<Item = OwnedDocument> + Send>| {
        let mut options = BuildOptions::of_documents(index, documents);
        (options.workers, options.memory) = (2, 64 << 20);
        options
    };
    // The first build waits in its midst until the second one was cancelled and has ended. It has
    // several runs, so that a merge comes behind that.
    let (go_on, wait) = channel::<()>();
    let first = (0..DOCUMENTS).map(move |number| {
        if number == DOCUMENTS / 2 {
            wait.recv_timeout(LONG).unwrap();
        }
        rare(number, 60)
    });
    let mut first = options(&kept, Box::new(first));
    // The second one would never end.
    let mut second = options(&cancelled, Box::new((0..).map(|number| rare(number, 60))));
    let under_way = [&mut first, &mut second].map(|build| {
        let (sender, under_way) = channel();
        build.progress = Some(Box::new(move |snapshot| {
            if snapshot.documents > 0 {
                // It is reported again and again.
                _ = sender.send(());
            }
        }));
        under_way
    });
    let fgqp = Model::Fgqp { delta: 5, cutting: Default::default(), patience: Duration::ZERO };
    let models = [Model::Inter, Model::Handed { model: MODELS[0], barrier: false }, fgqp];
    let services = models.map(|model| Running::start(&cancelled, model));
    let control = second.control.clone();
    let first = spawn(|| build(first));
    let second = spawn(|| build(second));
    under_way.iter().for_each(|build| build.recv_timeout(LONG).unwrap());
    services.iter().for_each(Running::answers);
    control.cancel();
    let error = second.join().unwrap().unwrap_err();
    assert!(matches!(error, BuildError::Job(JobError::Cancelled)), "{error}");
    services.iter().for_each(Running::answers);
    go_on.send(()).unwrap();
    let report = first.join().unwrap().unwrap();
    services.iter().for_each(Running::answers);
    for report in services.map(Running::end) {
        assert_eq!((report.queries, report.hits, report.unknown), (3, 6, 0));
    }
    assert_eq!((report.documents, report.runs), (DOCUMENTS as u64, 1));
    assert!(report.runs_before_merge > 1, "{}", report.runs_before_merge);
    // What was live is live, and nothing else is left.
    assert!(files(&cancelled) == before);
    let expected = ["CURRENT", "LOCK", "gen-000001", "runs"].map(String::from);
    assert_eq!(names(&cancelled), BTreeSet::from(expected));
    // And the build that went on is what it would have been.
    build(options(&alone, Box::new((0..DOCUMENTS).map(|number| rare(number, 60))))).unwrap();
    assert!(files(&kept) == files(&alone));
}

#[test]
fn what_is_worth_a_remark_is_told() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", "{\"id\": 1, \"contents\": \"a mill\"}\nno JSON\n");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let told = notes.clone();
    let mut options = BuildOptions::of_paths(scratch.path("index"), [input]);
    options.workers = 1;
    options.notes = Some(Arc::new(move |note: &Note| told.lock().unwrap().push(note.clone())));
    let report = build(options).unwrap();
    assert_eq!((report.documents, report.skipped.values().sum::<u64>()), (1, 1));
    let notes = notes.lock().unwrap();
    assert!(
        matches!(&notes[..], [Note::Skipped(text)] if text.contains("c.jsonl: byte 32")),
        "{notes:?}"
    );
    let written = serde_json::to_value(&report).unwrap();
    assert_eq!(written["documents"], 1);
    assert_eq!(written["placement"]["by"], "turn");
}

#[test]
fn documents_in_memory_are_named_and_known_as_such() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let documents = [("", "one"), ("name\nwith a line feed", "two"), ("", "")];
    let documents = documents.map(|(name, text)| OwnedDocument::new(name, text));
    let mut options = BuildOptions::of_documents(&index, documents);
    options.workers = 1;
    let report = build(options).unwrap();
    assert_eq!((report.documents, report.empty_documents), (3, 1));
    let generation = Generation::open(&index).unwrap();
    let name =
        |docid| String::from_utf8_lossy(&generation.documents().name(docid).unwrap()).into_owned();
    assert_eq!([0, 1, 2].map(name), ["memory:1", "name\nwith a line feed", "memory:3"]);
    assert_eq!(DocumentRow::of(&generation, 0).unwrap().input, "(memory)");
}

#[test]
fn messages_name_no_file_for_documents_in_memory() {
    let scratch = Scratch::new();
    let built = |texts: &[&str]| {
        let documents: Vec<_> = texts.iter().map(|text| OwnedDocument::new("a", *text)).collect();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let noted = notes.clone();
        let mut options = BuildOptions::of_documents(scratch.path("index"), documents);
        options.max_document = 100;
        options.notes = Some(Arc::new(move |note| noted.lock().unwrap().push(note.to_string())));
        let error = build(options).err();
        let chain = error.iter().flat_map(|error| {
            std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
        });
        let said: Vec<String> = chain.map(ToString::to_string).collect();
        (said.join(": "), notes.lock().unwrap().join("; "))
    };
    let (empty, _) = built(&[]);
    assert!(empty.contains("the documents: this input is empty"), "{empty}");
    let (no_text, _) = built(&["", "the of"]);
    assert!(no_text.ends_with("they have no word that is indexed"), "{no_text}");
    let (fine, skipped) = built(&["mill", &"mill ".repeat(50)]);
    assert!(skipped.contains("skipped: the documents: byte "), "{skipped}");
    assert_eq!(
        (fine.as_str(), [empty, no_text, skipped].concat().contains("(memory)")),
        ("", false)
    );
}

#[test]
fn no_document_is_lost_when_their_iterator_panics() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let documents = (0..100).map(|number| match number {
        50 => panic!("the database has gone"),
        number => rare(number, 3),
    });
    let error = build(BuildOptions::of_documents(&index, documents)).unwrap_err();
    let cause = std::error::Error::source(&error).and_then(|e| e.source()).unwrap().to_string();
    assert!(cause.contains("panicked"), "{error}: {cause}");
    assert_eq!(names(&index), BTreeSet::from(["LOCK".to_string()]));
}

#[test]
fn wrong_options_are_typed_and_name_no_command_line() {
    let scratch = Scratch::new();
    let options = || BuildOptions::of_documents(scratch.path("index"), [rare(0, 1)]);
    let fails = |change: fn(&mut BuildOptions)| {
        let mut options = options();
        change(&mut options);
        let error = build(options).unwrap_err();
        assert!(!error.to_string().contains("--"), "{error}");
        let BuildError::Options(error) = error else { panic!("{error}") };
        error.setting().to_string()
    };
    let error = fails(|options| options.memory = 1 << 20);
    assert_eq!(error, "memory");
    let error = fails(|options| options.max_document = 4 << 30);
    assert_eq!(error, "max-document");
    let error = fails(|options| options.pipeline.readers = Some(0));
    assert_eq!(error, "readers");
    let error = fails(|options| options.pipeline.cpu_indexers = Some(1));
    assert_eq!(error, "cpu-indexers");
    assert!(!scratch.path("index").exists(), "nothing was written");
}

/// The examples are programs; here they are called.
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/build_with_progress.rs"]
mod build_with_progress;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/game/do_query.rs"]
mod game;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/index_and_search.rs"]
mod index_and_search;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/live_updates.rs"]
mod live_updates;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/query_service.rs"]
mod query_service;

/// What an example has printed.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn example_game() {
    let scratch = Scratch::new();
    let line = "{\"id\":\"1\",\"text\":\"the wind mill\"}\n{\"id\":\"2\",\"text\":\"mill wind\"}\n";
    let index = scratch.path("index");
    let job = args!["build", "--index", index, "--positions", "--stopwords", "none", "-"];
    millrace(job).stdin(line).ok();
    let queries = "COUNT\t\"wind mill\"\nTOP_10\t+wind mill\nTOP_10_COUNT\twind -the\nUNLOCK\tx\nCOUNT\ta:b\n";
    let mut out = Vec::new();
    game::run(index.to_str().unwrap(), queries.as_bytes(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "1\n1\n1\nUNSUPPORTED\nUNSUPPORTED\n");
}

#[test]
fn example_build_with_progress() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", "{\"id\": 1, \"contents\": \"a mill\"}\n");
    let index = scratch.path("index");
    let printed = Printed::default();
    let out = printed.clone();
    // An input that does not end before the build: nobody cancels it.
    let (end, input_of_user) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
    build_with_progress::run(index, vec![input], input_of_user, move || Box::new(out.clone()))
        .unwrap();
    drop(end);
    let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("32 of 32 bytes, 1 documents\n"), "{text}");
    assert!(text.contains("1 documents, 1 terms in "), "{text}");
}

#[test]
fn example_index_and_search_and_query_service() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let mut found = Vec::new();
    index_and_search::run(&index, "a river with a mill", &mut found).unwrap();
    let found = String::from_utf8(found).unwrap();
    let names: Vec<&str> = found.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(names, ["mill", "wind"], "{found}");

    let printed = Printed::default();
    let queries =
        "wind mill\nbread\n{\"qid\": \"3\", \"query\": \"mill bread\", \"mode\": \"or\"}\n";
    query_service::run(&index, queries.as_bytes(), printed.clone()).unwrap();
    let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["wind mill: wind", "bread: bread"], "{text}");
    assert!(lines[2].starts_with("mill bread: bread") && lines[2].contains("wind"), "{text}");
}

#[test]
fn example_live_updates() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let text = |n: u32| OwnedDocument::new(format!("d{n}"), format!("water mill {n}"));
    build(BuildOptions::of_documents(&index, (0..100).map(text))).unwrap();
    let mut printed = Vec::new();
    live_updates::run(index.clone(), (20, 1), "mill", 2, &mut printed).unwrap();
    let text = String::from_utf8(printed).unwrap();
    assert!(text.starts_with("minute 1: 20 commits: p50 "), "{text}");
    assert!(text.contains(" searches: p50 ") && text.ends_with(" bytes on disk\n"), "{text}");
    assert_eq!(Index::open(&index).unwrap().search("river", 50).unwrap().len(), 20);
}
