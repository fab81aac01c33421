//! A rebuild that dies, or finds the disk full, at any of its storage operations leaves a whole
//! generation, and so do rebuilds and builds of one index that run at once; the next rebuild comes
//! to the end that it would have come to.

use super::Place;
use crate::support::sound::check;
use crate::support::*;
use millrace::Generation;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const JOB: &str = "[guard]\nmin_documents = 0\n[keep]\ngenerations = 1\n[merge]\nruns = 1\n[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\n";

/// An index, and sources of which some have changed since.
struct Case {
    place: Place,
    before: PathBuf,
    old: BTreeSet<String>,
    new: BTreeSet<String>,
}

impl Case {
    fn new() -> Self {
        let place = Place::new(JOB);
        place.scratch.write("links.tsv", "d1\td2\nd2\td1\nd31\td1\n");
        place.once();
        let before = place.scratch.path("before");
        let old = names(&place.index());
        copy_folder(&place.index(), &before);
        // One changes, one is new, some are gone.
        let line = |n: u32| format!("{{\"id\": \"d{n}\", \"contents\": \"river {n}\"}}\n");
        place.scratch.write("docs/b.jsonl", [31, 99].map(line).concat());
        let case = Self { place, before, old, new: BTreeSet::new() };
        case.place.once();
        Self { new: names(&case.place.index()), ..case }
    }

    /// Makes the index again what it was before.
    fn reset(&self) {
        std::fs::remove_dir_all(self.place.index()).unwrap();
        copy_folder(&self.before, &self.place.index());
    }

    fn rebuild(&self, fault: &str) -> Outcome {
        let job = millrace(args!["rebuild", &self.place.job, "--once", "--quiet"]);
        job.env("MILLRACE_FAULT", fault).run()
    }

    fn operations(&self) -> u64 {
        self.reset();
        let outcome = self.rebuild("count");
        let (_, count) = outcome.stderr.rsplit_once("storage operations: ").expect("a count");
        count.trim().parse().unwrap()
    }

    /// Lets an operation fail; returns whether the new documents are live all the same.
    fn fail(&self, fault: &str, n: u64) -> bool {
        self.reset();
        let when = format!("{fault}@{n}");
        let outcome = self.rebuild(&when);
        match (fault, outcome.status) {
            ("crash", None) => {}
            ("fail", Some(0 | 1)) => {}
            _ => panic!("{when}: {outcome:?}"),
        }
        if outcome.status == Some(1) {
            assert!(outcome.stderr.contains("No space left on device"), "{when}: {outcome:?}");
        }
        let live = names(&self.place.index());
        assert!(live == self.old || live == self.new, "{when}: {live:?}");
        // The next one ends well, whatever is left.
        let outcome = self.rebuild("count");
        assert_eq!(outcome.status, Some(0), "after {when}: {outcome:?}");
        let index = self.place.index();
        assert_eq!(names(&index), self.new, "after {when}");
        assert_eq!(ranked(&index), self.new, "after {when}");
        let runs = Generation::open(&index).unwrap().runs().len();
        assert_eq!(runs, 1, "after {when}");
        let left = std::fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().file_name());
        let left: BTreeSet<_> = left.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(left.iter().filter(|name| name.starts_with("gen-")).count(), 1, "{left:?}");
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "after {when}: {left:?}");
        assert!(!index.join("rebuild/work").exists(), "after {when}");
        live == self.new
    }
}

/// The names of the documents of a whole index, which have ranks if any has.
fn names(index: &Path) -> BTreeSet<String> {
    check(index).unwrap();
    let generation = Generation::open(index).unwrap();
    let deleted: BTreeSet<u32> = generation.deleted().collect();
    let documents: u32 = generation.manifest().runs.iter().map(|run| run.documents).sum();
    let docids = (0..documents).filter(|docid| !deleted.contains(docid));
    let name =
        |docid| String::from_utf8_lossy(&generation.documents().name(docid).unwrap()).into_owned();
    docids.map(name).collect()
}

/// The names that the file of ranks has.
fn ranked(index: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(index.join("rebuild/ranks.tsv")).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').next().unwrap().to_string()).collect()
}

/// Lets every `nth` operation fail, in either way; the last one dies.
fn fail_at(nth: impl Fn(u64) -> u64) {
    let case = Case::new();
    let operations = case.operations();
    assert!(operations > 60, "{operations}");
    let mut published = 0;
    for (at, fault) in [(0, "crash"), (nth(operations) / 2, "fail")] {
        for n in (0..operations - at).rev().step_by(nth(operations) as usize) {
            published += u32::from(case.fail(fault, n));
        }
    }
    println!("{operations} storage operations; the new documents were live after {published}");
    assert!(published > 0, "the last operations follow the publishing");
}

#[test]
fn a_rebuild_may_fail_at_operations_of_all_its_stages() {
    fail_at(|operations| operations / 3);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_rebuilds_that_fail_at_every_operation() {
    fail_at(|_| 1);
}

#[test]
fn rebuilds_and_merges_at_once_leave_a_whole_index() {
    let place = Place::new("[guard]\nmin_documents = 0\n");
    place.once();
    let index = place.index();
    for round in 0..2 {
        let line = |n: u32| format!("{{\"id\": \"d{n}\", \"contents\": \"river {n} {round}\"}}\n");
        place.scratch.write("docs/b.jsonl", (30..45 + round).map(line).collect::<String>());
        let rebuild = || millrace(args!["rebuild", &place.job, "--once", "--quiet"]);
        let merge = millrace(args!["merge", "--quiet", "--index", &index]);
        let mut jobs = [rebuild(), merge, rebuild()].map(|mut job| {
            let mut child = job.spawn();
            (drain(child.stderr.take().unwrap()), child)
        });
        for (said, child) in &mut jobs {
            let status = wait(child, "a job beside others");
            let said = std::mem::replace(said, drain(std::io::empty())).join().unwrap();
            let said = String::from_utf8_lossy(&said);
            // What a rebuild was looking at may be gone when a merge has published.
            let others = [
                "another rebuild is under way",
                "another job",
                "replaced the index",
                "No such file",
            ];
            let is_meant = said.is_empty() || others.iter().any(|other| said.contains(other));
            assert!(matches!(status, Some(0 | 1)) && is_meant, "{status:?}: {said}");
        }
        check(&index).unwrap();
        place.once();
        assert_eq!(names(&index).len(), 45 + round as usize);
        assert!(!index.join("rebuild/work").exists());
    }
}
