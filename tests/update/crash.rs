//! An update that dies, or finds the disk full, at any of its storage operations leaves the index
//! as it was or changed whole; the next one comes to the end that it would have come to.

use super::{lines, updated};
use crate::support::sound::{ask, check};
use crate::support::*;
use std::path::PathBuf;
use std::time::Duration;

/// An index, a copy of it, and a change of so many documents that their run is written anew.
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
        let mut job = case.update("");
        let mut child = job.spawn();
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        _ = child.kill();
        child.wait().unwrap();
        published += u32::from(case.is_new(&format!("kill {kill}")));
    }
    println!("{published} of 8 were published before they were killed");
}
