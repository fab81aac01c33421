//! Checks that an index is whole, and asks it, for tests that make jobs fail.

use super::{Collection, Job, Outcome, Scratch, args, cut_lines, millrace};
use millrace::inside::index::{Stop, check_watched};
use millrace::inside::score::Bm25;
use millrace::{
    Algorithm, Generation, IndexError, Mode, Scoring, Searcher, Snapshot, Syntax, Wanted,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A job that is made to fail ends within this time, or it hangs.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Every document of the answers, with the bits of its score.
pub(crate) type Answers = Vec<Vec<(Vec<u8>, u32)>>;

/// The answers of an index to `queries`; opens it again.
pub(crate) fn ask(index: &Path, verify: bool, queries: &[String]) -> Result<Answers, IndexError> {
    let bm25 = Bm25::new(1.2, 0.75).unwrap();
    let wanted =
        Wanted { k: 20, mode: Mode::Or, algorithm: Algorithm::MaxScore, ..Wanted::default() };
    let scoring = Scoring { bm25, ..Scoring::default() };
    let snapshot = Snapshot::new(Generation::open(index)?, scoring)?;
    if verify {
        snapshot.generation().verify()?;
    }
    let mut searcher = Searcher::new();
    let documents = snapshot.generation().documents();
    let mut answers = Answers::new();
    // Where words stand is asked for, too, if that is known.
    let has_positions = snapshot.generation().manifest().settings.positions;
    let phrase = |query: &String| {
        let words: Vec<&str> = query.split(' ').take(2).collect();
        (format!("\"{}\"~99", words.join(" ")), Syntax::Operators)
    };
    let phrases = queries.iter().filter(|_| has_positions).map(phrase);
    let words = queries.iter().map(|query| (query.clone(), Syntax::Words));
    for (query, syntax) in words.chain(phrases) {
        let (hits, _) = searcher.search(&snapshot, &Wanted { syntax, ..wanted }, &query)?;
        let row =
            |hit: &millrace::Hit| Ok((documents.name(hit.docid)?.to_vec(), hit.score.to_bits()));
        answers.push(hits.iter().map(row).collect::<Result<_, IndexError>>()?);
    }
    Ok(answers)
}

/// Two collections with different answers to the same queries, as files of JSON lines, and an
/// index.
pub(crate) struct OldAndNew {
    pub(crate) scratch: Scratch,
    pub(crate) queries: Vec<String>,
    pub(crate) old: PathBuf,
    pub(crate) new: PathBuf,
}

impl OldAndNew {
    /// Each has `documents` in `files` files, which are runs of their own where [`many_runs`] is
    /// asked for.
    ///
    /// [`many_runs`]: Self::many_runs
    pub(crate) fn new(documents: usize, mean: usize, files: usize) -> Self {
        let scratch = Scratch::new();
        let collections = [11, 12].map(|seed| Collection::new(seed, documents, mean));
        let mut random = crate::support::Random::new(13);
        let phrase = |_| collections[0].words.phrase(&mut random, 3);
        let queries = (0..12).map(phrase).collect();
        for (name, collection) in ["old", "new"].iter().zip(&collections) {
            for (number, part) in cut_lines(&collection.jsonl(), files).into_iter().enumerate() {
                scratch.write(format!("{name}/{number:03}.jsonl"), part);
            }
        }
        let old = scratch.path("old");
        let new = scratch.path("new");
        Self { scratch, queries, old, new }
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.scratch.path("index")
    }

    /// A build of these inputs, with two workers.
    pub(crate) fn build(&self, input: &Path) -> Job {
        self.build_into(&self.index(), input)
    }

    pub(crate) fn build_into(&self, index: &Path, input: &Path) -> Job {
        self.build_with("2", index, input)
    }

    pub(crate) fn build_with(&self, workers: &str, index: &Path, input: &Path) -> Job {
        millrace(args!["build", "-w", workers, "--memory", "64M", "--index", index, input])
            .args(["--quiet", "--keep", "0"])
    }

    pub(crate) fn answers(&self) -> Answers {
        ask(&self.index(), false, &self.queries).unwrap()
    }

    /// The answers of the new and those of the old collection, which is then live.
    pub(crate) fn both_answers(&self) -> (Answers, Answers) {
        self.build(&self.new).ok();
        let new = self.answers();
        self.build(&self.old).ok();
        let old = self.answers();
        assert!(old != new && old.iter().any(|hits| !hits.is_empty()));
        (new, old)
    }

    /// Checks that the index is whole and nothing else is in its folder.
    #[track_caller]
    pub(crate) fn assert_tidy(&self, when: &str) {
        assert_sound(&self.index(), when);
        self.assert_nothing_else(when);
    }

    #[track_caller]
    pub(crate) fn assert_nothing_else(&self, when: &str) {
        let index = self.index();
        let current = std::fs::read_to_string(index.join("CURRENT")).unwrap();
        let generation = current.strip_suffix('\n').unwrap();
        let expected = ["CURRENT", "LOCK", generation, "runs"].map(String::from);
        assert_eq!(names(&index), BTreeSet::from(expected), "{when}");
        let live = Generation::open(&index).unwrap();
        let listed = live.manifest().files.iter().map(|file| file.name.clone());
        let expected: BTreeSet<String> = listed.chain(["manifest.json".into()]).collect();
        let mut found = names(&index.join(generation));
        let runs = names(&index.join("runs"));
        found.extend(runs.iter().map(|name| format!("runs/{name}")));
        assert_eq!(found, expected, "{when}");
    }
}

/// What is wrong with an index.
pub(crate) fn check(index: &Path) -> Result<(), Vec<IndexError>> {
    check_watched(index, 1, &Stop::default()).map(drop)
}

/// The folder of the live generation, if one was published.
pub(crate) fn current(index: &Path) -> Option<PathBuf> {
    let name = std::fs::read_to_string(index.join("CURRENT")).ok()?;
    Some(index.join(name.strip_suffix('\n').unwrap()))
}

/// Checks every byte of an index.
#[track_caller]
pub(crate) fn assert_sound(index: &Path, when: &str) {
    if let Err(problems) = check(index) {
        panic!("{when}: {problems:#?}");
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Sends a signal by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let status = std::process::Command::new("kill").args(["-s", name, &id]).status();
    assert!(status.unwrap().success());
}

/// Waits for a child that has to end soon; returns its exit status, or the signal that ended it as
/// shells tell it.
#[track_caller]
pub(crate) fn ends_soon(child: &mut Child, what: &str) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let start = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().or_else(|| Some(128 + status.signal()?)).unwrap();
        }
        if start.elapsed() > SOON {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("hangs: {what}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a job that has to end soon and to fail, with one line that says why.
#[track_caller]
pub(crate) fn fails_soon(job: Job) -> Outcome {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(job.run()));
    let outcome = receiver.recv_timeout(SOON).expect("the job hangs").expect_status(1);
    assert!(outcome.stdout.is_empty(), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(outcome.stderr.starts_with("millrace: "), "{outcome:?}");
    outcome
}
