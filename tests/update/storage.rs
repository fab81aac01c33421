//! An update that dies, or finds the disk full, at any of its storage operations leaves the index
//! as it was or changed whole; the next one comes to the end that it would have come to.

use super::{Model, assert_as_built, lines, updated};
use crate::support::sound::{ask, check};
use crate::support::*;
use millrace::{Index, Writer};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An index, a copy of it, and a change of this many documents that their run is written again.
struct Case {
    scratch: Scratch,
    index: PathBuf,
    before: PathBuf,
    input: PathBuf,
    queries: Vec<String>,
}

impl Case {
    fn new() -> Self {
        let scratch = Scratch::new();
        let index = scratch.path("index");
        let before = scratch.path("before");
        let document = |n: u32, text: &str| (format!("d{n}"), format!("{text} number{n}"));
        let old: Vec<_> = (0..60).map(|n| document(n, "old mill")).collect();
        let new: Vec<_> = (45..70).map(|n| document(n, "new race")).collect();
        build(&index, args![scratch.write("old.jsonl", lines(&old))]);
        copy_folder(&index, &before);
        let expected = scratch.path("expected");
        build(&expected, args![scratch.write("all.jsonl", lines(&updated(&old, &new)))]);
        let queries = ["mill race".to_string(), "number50 new old".to_string()].to_vec();
        let input = scratch.write("new.jsonl", lines(&new));
        Self { scratch, index, before, input, queries }
    }

    fn update(&self, fault: &str) -> Job {
        let job =
            millrace(args!["update", "--quiet", "--index", self.index, "-w", "1", self.input]);
        job.env("MILLRACE_FAULT", fault)
    }

    fn operations(&self) -> u64 {
        let outcome = self.update("count").run();
        let (_, count) = outcome.stderr.rsplit_once("storage operations: ").expect("a count");
        count.trim().parse().unwrap()
    }

    /// Whether the index is changed; it is that, or as it was.
    fn is_new(&self, when: &str) -> bool {
        check(&self.index).unwrap_or_else(|problems| panic!("{when}: {problems:?}"));
        let ask = |index: &std::path::Path| ask(index, true, &self.queries).unwrap();
        let found = ask(&self.index);
        let is_new = found == ask(&self.scratch.path("expected"));
        assert!(is_new || found == ask(&self.before), "{when}");
        is_new
    }

    fn fail(&self, fault: &str, n: u64) -> bool {
        std::fs::remove_dir_all(&self.index).unwrap();
        copy_folder(&self.before, &self.index);
        let when = format!("{fault}@{n}");
        let outcome = self.update(&when).run();
        match (fault, outcome.status) {
            ("crash", None) => {}
            ("fail", Some(0 | 1)) => {}
            _ => panic!("{when}: {outcome:?}"),
        }
        let is_new = self.is_new(&when);
        self.update("count").ok();
        assert!(self.is_new(&format!("after {when}")));
        let left = std::fs::read_dir(&self.index).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> =
            left.filter(|name| name.starts_with("gen-") || name.ends_with(".tmp")).collect();
        assert_eq!(left.len(), 2, "the point before and the live one, after {when}: {left:?}");
        is_new
    }
}

fn fail_at(nth: impl Fn(u64) -> u64) {
    let case = Case::new();
    let operations = case.operations();
    assert!(operations > 40, "{operations}");
    let mut published = 0;
    for (at, fault) in [(0, "crash"), (nth(operations) / 2, "fail")] {
        for n in (0..operations - at).rev().step_by(nth(operations) as usize) {
            published += u32::from(case.fail(fault, n));
        }
    }
    println!("{operations} storage operations; the change was live after {published}");
    assert!(published > 0, "the last operations follow the publishing");
}

#[test]
fn an_update_may_fail_at_operations_of_all_its_stages() {
    fail_at(|operations| operations / 5);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_updates_that_fail_at_every_operation() {
    fail_at(|_| 1);
}

#[test]
fn an_update_that_is_killed_leaves_a_whole_index() {
    let case = Case::new();
    let mut random = Random::new(19);
    let mut published = 0;
    for kill in 0..8 {
        std::fs::remove_dir_all(&case.index).unwrap();
        copy_folder(&case.before, &case.index);
        let mut job = case.update("count");
        let mut child = job.spawn();
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        _ = child.kill();
        child.wait().unwrap();
        published += u32::from(case.is_new(&format!("kill {kill}")));
    }
    println!("{published} of 8 were published before they were killed");
}

const COMMITS: u32 = 60;

/// What a commit has: some names come again, so that runs lose all of their documents.
fn committed(n: u32) -> (String, String) {
    (format!("c{}", n % 17), format!("old race number{n}"))
}

/// Not a test by itself: commits, and merges beside, in the index that the variable names. A commit
/// that fails is tried once more.
#[test]
#[ignore = "run by those below"]
fn a_program_that_commits() {
    let Some(index) = std::env::var_os("MILLRACE_TEST_INDEX") else { return };
    let mut writer = Writer::new(index);
    (writer.workers, writer.memory) = (1, 64 << 20);
    for n in 0..COMMITS {
        let (name, text) = committed(n);
        writer.update(name, text);
        let told = writer.commit(false).or_else(|_| writer.commit(false)).unwrap();
        assert!(told.runs <= 16);
        told.remarks.iter().for_each(|remark| println!("remark: {remark}"));
    }
    drop(writer);
    millrace::inside::fault::report();
}

/// An index that the program above commits to.
struct Commits {
    scratch: Scratch,
    before: Model,
}

impl Commits {
    fn new() -> Self {
        let scratch = Scratch::new();
        let before: Model = (0..40).map(|n| (format!("d{n}"), format!("mill {n}"))).collect();
        build(&scratch.path("before"), args![scratch.write("old.jsonl", lines(&before))]);
        Self { scratch, before }
    }

    /// Starts the program with an index as it was.
    fn start(&self, fault: &str) -> std::process::Child {
        let index = self.scratch.path("index");
        _ = std::fs::remove_dir_all(&index);
        copy_folder(&self.scratch.path("before"), &index);
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "update::storage::a_program_that_commits",
                "--ignored",
                "--nocapture",
            ])
            .env("MILLRACE_TEST_INDEX", index)
            .env("MILLRACE_FAULT", fault)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The index is one after this many commits, which are returned, and takes another one.
    fn check(&self, when: &str) -> u32 {
        let index = self.scratch.path("index");
        let open = Index::open(&index).unwrap();
        let has = |n: &u32| !open.search(&format!("number{n}"), 1).unwrap().is_empty();
        let commits = (0..COMMITS).rev().find(has).map_or(0, |n| n + 1);
        drop(open);
        let new: Model = (0..commits).map(committed).collect();
        let queries = ["mill old race".to_string(), "number3 number57 mill".to_string()];
        let mut model = updated(&self.before, &new);
        assert_as_built(&index, &model, &queries, when);
        let more = vec![("c3".to_string(), "mill".to_string())];
        let input = self.scratch.write("more.jsonl", lines(&more));
        millrace(args!["update", "--index", index, input]).ok();
        model = updated(&model, &more);
        assert_as_built(&index, &model, &queries, &format!("updated after {when}"));
        let left = std::fs::read_dir(&index).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left.filter(|name| name.starts_with("gen-")).collect();
        assert_eq!(left.len(), 2, "the build and the live one, after {when}: {left:?}");
        commits
    }

    fn operations(&self) -> u64 {
        let output = self.start("count").wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(self.check("count"), COMMITS);
        let told = String::from_utf8(output.stderr).unwrap();
        let (_, count) = told.rsplit_once("storage operations: ").expect("a count");
        count.lines().next().unwrap().trim().parse().unwrap()
    }
}

fn commits_fail_at(steps: u64) {
    let case = Commits::new();
    let operations = case.operations();
    let mut remarks = 0;
    for n in (0..steps).map(|step| operations * step / steps) {
        let output = case.start(&format!("fail@{n}")).wait_with_output().unwrap();
        assert!(output.status.success(), "fail@{n}: {output:?}");
        assert_eq!(case.check(&format!("fail@{n}")), COMMITS);
        remarks += u32::from(String::from_utf8_lossy(&output.stdout).contains("remark: "));
        let crashed = case.start(&format!("crash@{n}")).wait_with_output().unwrap();
        assert!(!crashed.status.success(), "crash@{n}: {crashed:?}");
        case.check(&format!("crash@{n}"));
    }
    println!("{operations} storage operations; {remarks} of {steps} merges failed");
}

#[test]
fn commits_and_merges_beside_may_fail_at_some_operations() {
    commits_fail_at(5);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_commits_and_merges_beside_that_fail() {
    commits_fail_at(400);
}

#[test]
fn a_writer_that_is_killed_leaves_a_whole_index() {
    let case = Commits::new();
    let mut random = Random::new(23);
    let commits = (0..4).map(|kill| {
        let mut child = case.start("count");
        std::thread::sleep(Duration::from_millis(200 + random.below(1500) as u64));
        _ = child.kill();
        child.wait().unwrap();
        case.check(&format!("kill {kill}"))
    });
    println!("{:?} commits came before the kills", commits.collect::<Vec<_>>());
}
