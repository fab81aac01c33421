//! The long attack (`make campaign`): jobs are killed, and refused their storage, at one storage
//! call after the other, and indexes are changed at thousands of places with all checksums made
//! good again. It takes long and runs by name only; `CAMPAIGN_PART=20` does every twentieth of it.
//!
//! Whatever happens, the index is whole and holds what it held or what the job was to make; a job
//! that fails says why in a line and leaves nothing behind, and one that is killed is made good by
//! the next.

mod mutations;

use crate::cluster::{Hosts, Running};
use crate::rebuild::Place;
use crate::support::sound::{Answers, OldAndNew, ask, assert_sound, current};
use crate::support::{Job, Outcome, args, copy_folder, millrace};
use millrace::Generation;
use std::any::Any;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs of the indexes that are merged, and files of those that are built, each of which is a run.
const MERGED_RUNS: usize = 24;
const BUILT_RUNS: usize = 6;
/// Kills of each of the five kinds of jobs, at least: 1,000 in all.
const LEAST_KILLS: u64 = 200;
/// What each storage call meets, and what the job then says.
const FAULTS: [(&str, &str); 4] = [
    ("crash", ""),
    ("fail", "No space left on device"),
    ("short", "No space left on device"),
    ("eio", "Input/output error"),
];

/// Every this many-th fault is tried.
fn part() -> usize {
    std::env::var("CAMPAIGN_PART").ok().and_then(|part| part.parse().ok()).unwrap_or(1)
}

/// What is live: the answers to some queries; of a merge, which changes none, the number of runs.
type State = Option<(Answers, usize)>;

/// Starts the processes of a job, of which the numbered one meets the fault; none if it is empty.
type Start = Box<dyn Fn(&str, usize) -> Vec<Outcome>>;

/// A job, what it begins with and what it makes.
struct Subject {
    index: PathBuf,
    /// A copy of the index as the job finds it.
    before: PathBuf,
    queries: Vec<String>,
    start: Start,
    processes: usize,
    is_merge: bool,
    old: State,
    new: State,
    /// Generations after the job.
    generations: usize,
    /// What the files of the job lie in.
    _scratch: Box<dyn Any>,
}

impl Subject {
    /// Takes the index as it is, and looks what the job makes of it.
    fn new(
        scratch: Box<dyn Any>,
        (index, queries): (PathBuf, Vec<String>),
        (processes, is_merge): (usize, bool),
        start: Start,
    ) -> Self {
        let before = index.with_extension("before");
        copy_folder(&index, &before);
        let mut subject = Self {
            index,
            before,
            queries,
            start,
            processes,
            is_merge,
            old: None,
            new: None,
            generations: 0,
            _scratch: scratch,
        };
        subject.old = subject.state();
        let outcomes = (subject.start)("", 0);
        assert!(outcomes.iter().all(|outcome| outcome.status == Some(0)), "{outcomes:?}");
        (subject.new, subject.generations) = (subject.state(), subject.generations());
        assert!(subject.old != subject.new, "the job changes nothing");
        subject
    }

    fn state(&self) -> State {
        current(&self.index)?;
        let answers = ask(&self.index, true, &self.queries).unwrap();
        let runs = Generation::open(&self.index).unwrap().runs().len();
        Some((answers, if self.is_merge { runs } else { 0 }))
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn generations(&self) -> usize {
        Self::names(&self.index).iter().filter(|name| name.starts_with("gen-")).count()
    }

    fn restore(&self) {
        _ = std::fs::remove_dir_all(&self.index);
        copy_folder(&self.before, &self.index);
    }

    /// How many storage calls a process of the job makes.
    fn count(&self, process: usize) -> u64 {
        self.restore();
        let outcomes = (self.start)("count", process);
        let said = &outcomes[process].stderr;
        let (_, count) = said.rsplit_once("storage operations: ").expect("a count");
        count.trim().parse().unwrap()
    }

    /// Lets one call fail; returns whether the job published all the same.
    fn fail(&self, (fault, message): (&str, &str), process: usize, n: u64) -> bool {
        self.restore();
        let fault_at = format!("{fault}@{n}");
        let outcomes = (self.start)(&fault_at, process);
        let when = format!("process {process}, {fault_at}: {outcomes:?}");
        if current(&self.index).is_some() {
            assert_sound(&self.index, &when);
        }
        let state = self.state();
        let published = state == self.new;
        assert!(published || state == self.old, "{when}");
        assert!(outcomes.iter().all(|o| matches!(o.status, None | Some(0 | 1))), "{when}");
        assert!(outcomes.iter().all(|o| !o.stderr.contains("report it")), "{when}");
        if outcomes.iter().all(|outcome| outcome.status == Some(0)) {
            assert!(published, "{when}");
        }
        let outcome = &outcomes[process];
        if fault == "crash" {
            let outcomes = (self.start)("", 0);
            assert!(outcomes.iter().all(|o| o.status == Some(0)), "after {when}: {outcomes:?}");
            assert!(self.state() == self.new, "after {when}");
            assert!(self.generations() <= self.generations.max(2), "after {when}");
            assert_sound(&self.index, &when);
        } else {
            assert!(outcome.status.is_some(), "{when}");
            if outcome.status == Some(1) && self.processes == 1 {
                assert!(outcome.stderr.contains(message), "{when}");
                assert_eq!(outcome.stderr.lines().count(), 1, "{when}");
            }
            if !published && self.processes == 1 {
                let mut left = Self::names(&self.index);
                left.retain(|name| !["LOCK", "rebuild"].contains(&name.as_str()));
                assert!(left.is_subset(&Self::names(&self.before)), "left {left:?}: {when}");
            }
        }
        published
    }
}

/// A build of this many files, which are runs of their own, until they are merged.
fn build(set: &OldAndNew, input: &Path) -> Job {
    millrace(args!["build", "-w", "2", "--memory", "64M", "--quiet", "--index", set.index(), input])
        .env("MILLRACE_RUN_LIMIT", "1")
}

fn with_fault(job: Job, fault: &str) -> Job {
    if fault.is_empty() { job } else { job.env("MILLRACE_FAULT", fault) }
}

/// `first build`, `build` over an index that keeps a generation, `merge`.
fn of_one_process(name: &str) -> Subject {
    let runs = if name == "merge" { MERGED_RUNS } else { BUILT_RUNS };
    let set = OldAndNew::new(5 * runs, 12, runs);
    let index = set.index();
    let queries = set.queries.clone();
    match name {
        "first build" => {}
        "build" => (0..2).for_each(|_| _ = build(&set, &set.old).ok()),
        _ => _ = build(&set, &set.old).arg("--no-merge").ok(),
    }
    let merge = args!["merge", "--quiet", "--memory", "1M", "--index", &index];
    let job = match name {
        "merge" => merge.to_vec(),
        _ => args!["build", "-w", "2", "--memory", "64M", "--quiet", "--index", &index, &set.new]
            .to_vec(),
    };
    let start = move |fault: &str, _| {
        let job = millrace(&job).env("MILLRACE_RUN_LIMIT", "1");
        vec![with_fault(job, fault).run()]
    };
    Subject::new(Box::new(set), (index, queries), (1, name == "merge"), Box::new(start))
}

/// A rebuild that adds, changes and deletes documents, links runs, merges some and ranks all.
fn of_rebuild() -> Subject {
    let job = "[guard]\nmin_documents = 0\n[merge]\nruns = 3\n[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\n";
    let place = Place::new(job);
    place.scratch.write("links.tsv", "d1\td2\nd2\td1\nd31\td1\n");
    let line =
        |n: u32, word: &str| format!("{{\"id\": \"d{n}\", \"contents\": \"mill {word} {n}\"}}\n");
    for round in 0..3u32 {
        let documents: String = (0..30 + 10 * round).map(|n| line(n, "river")).collect();
        place.scratch.write("docs/c.jsonl", documents);
        place.once();
    }
    let word = |n: u32| if n.is_multiple_of(5) { "stone" } else { "river" };
    place.scratch.write("docs/c.jsonl", (5..70).map(|n| line(n, word(n))).collect::<String>());
    let queries = ["mill", "river 7", "stone", "race 3"].map(String::from).to_vec();
    let index = place.index();
    let job = place.job.clone();
    let start = move |fault: &str, _| {
        let job = millrace(args!["rebuild", &job, "--once", "--quiet"]);
        vec![with_fault(job, fault).run()]
    };
    Subject::new(Box::new(place), (index, queries), (1, false), Box::new(start))
}

/// A build of two processes.
fn of_two_processes() -> Subject {
    let set = OldAndNew::new(80, 12, BUILT_RUNS);
    let index = set.index();
    let queries = set.queries.clone();
    let scratch = crate::support::Scratch::new();
    let old = set.old.clone();
    let new = set.new.clone();
    let folder = index.clone();
    let run = move |input: &Path, fault: &str, process: usize| {
        let hosts = Hosts::new(&scratch, 2);
        let arguments: Vec<OsString> =
            args!["build", "-w", "1", "--memory", "64M", "--quiet", "--index", &folder, input]
                .into();
        let jobs = [0, 1].map(|number| {
            let job = hosts.job_waiting("90", number, &arguments).env("MILLRACE_RUN_LIMIT", "1");
            if number == process { with_fault(job, fault) } else { job }
        });
        Running::start(jobs).end()
    };
    for outcome in run(&old, "", 0) {
        outcome.expect_status(0);
    }
    let start = move |fault: &str, process| run(&new, fault, process);
    Subject::new(Box::new(set), (index, queries), (2, false), Box::new(start))
}

/// Lets every storage call of a job meet every fault, on two threads.
fn at_every_call(name: &str, make: impl Fn() -> Subject + Sync) {
    const THREADS: u64 = 2;
    let run = |thread: u64| {
        let subject = make();
        let mut calls = 0;
        let mut faults = 0;
        let mut published = 0;
        for process in 0..subject.processes {
            let all = subject.count(process);
            calls += all;
            for n in (thread..all).step_by(THREADS as usize * part()) {
                for fault in FAULTS {
                    published += u64::from(subject.fail(fault, process, n));
                    faults += 1;
                }
            }
        }
        (calls, faults, published)
    };
    let done: Vec<(u64, u64, u64)> = std::thread::scope(|scope| {
        let run = &run;
        let threads = [0, 1].map(|thread| scope.spawn(move || run(thread)));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let calls = done[0].0;
    let faults = done.iter().map(|done| done.1).sum::<u64>();
    let published: u64 = done.iter().map(|done| done.2).sum();
    let kills = faults / FAULTS.len() as u64;
    println!(
        "{name}: {calls} storage calls; {kills} kills, as many times ENOSPC, half a write and EIO each; {published} of {faults} jobs had published"
    );
    assert!(published > 0 || part() > 1, "the last calls follow the renaming");
    assert!(kills >= LEAST_KILLS || part() > 1);
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_first_build() {
    at_every_call("first build", || of_one_process("first build"));
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_build() {
    at_every_call("build", || of_one_process("build"));
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_merge() {
    at_every_call("merge", || of_one_process("merge"));
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_rebuild() {
    at_every_call("rebuild", of_rebuild);
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_two_processes() {
    at_every_call("build of two processes", of_two_processes);
}
