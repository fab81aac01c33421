//! A build or a merge that dies, is killed, or finds the disk full, at any instant, leaves a whole
//! index.

use crate::support::sound::{Answers, OldAndNew, assert_sound, ends_soon, fails_soon, signal};
use crate::support::{Job, Outcome, Random, args, copy_folder, millrace, today};
use millrace::Generation;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs of a collection, before they are merged.
const RUNS: usize = 5;

/// A build whose files are runs of their own, or a merge of such runs.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Build,
    /// Of an index that was built with `--no-merge`.
    Merge,
}

/// So that there are all files that a run may have of its own.
const MORE: [&str; 8] =
    ["--positions", "--field", "text", "--column", "id", "--store", "--store-fields", "id"];

/// What a job begins with and what it makes.
struct Case {
    set: OldAndNew,
    kind: Kind,
    old: Answers,
    new: Answers,
    /// A copy of the index with the old generation.
    before: PathBuf,
    /// One document.
    small: PathBuf,
}

impl Case {
    fn new(kind: Kind) -> Self {
        let set = OldAndNew::new(48, 12, RUNS);
        let answers = |of| {
            set.build(of).args(MORE).ok();
            set.answers()
        };
        let (new, old) = (answers(&set.new), answers(&set.old));
        assert!(old != new && old.iter().any(|hits| !hits.is_empty()));
        let new = if kind == Kind::Merge { old.clone() } else { new };
        let build = set.build(&set.old).env("MILLRACE_RUN_LIMIT", "1").args(MORE);
        if kind == Kind::Merge { build.arg("--no-merge") } else { build }.ok();
        assert!(set.answers() == old);
        let before = set.scratch.path("before");
        copy_folder(&set.index(), &before);
        let small = set.scratch.write("small.jsonl", "{\"id\":\"a\",\"text\":\"small\"}\n");
        Self { set, kind, old, new, before, small }
    }

    /// The next job removes whatever is left.
    fn recover(&self, when: &str) {
        self.set.build(&self.small).run().expect_status(0);
        self.set.assert_tidy(when);
        let live = Generation::open(&self.set.index()).unwrap();
        assert_eq!(live.manifest().runs.iter().map(|run| run.documents).sum::<u32>(), 1, "{when}");
    }

    /// Makes the old generation live: a copy takes a tenth of the time of a build.
    fn reset(&self) {
        std::fs::remove_dir_all(self.set.index()).unwrap();
        copy_folder(&self.before, &self.set.index());
    }

    fn job(&self) -> Job {
        match self.kind {
            Kind::Build => {
                let build = self.set.build(&self.set.new).env("MILLRACE_RUN_LIMIT", "1");
                build.args(MORE)
            }
            // So little memory that there are several passes.
            Kind::Merge => {
                millrace(args!["merge", "--quiet", "--memory", "1M", "--index", self.set.index()])
            }
        }
    }

    /// How many storage operations the job does.
    fn count(&self) -> u64 {
        let outcome = self.job().env("MILLRACE_FAULT", "count").ok();
        let (_, count) = outcome.stderr.rsplit_once("storage operations: ").expect("a count");
        count.trim().parse().unwrap()
    }

    /// The job with a fault at an operation.
    fn fails_at(&self, fault: &str, n: u64) -> Outcome {
        self.job().env("MILLRACE_FAULT", format!("{fault}@{n}")).run()
    }

    /// Which generation is live: 0 for the old one.
    fn live(&self, when: &str) -> usize {
        assert_sound(&self.set.index(), when);
        let answers = self.set.answers();
        let runs = Generation::open(&self.set.index()).unwrap().runs().len();
        match self.kind {
            Kind::Build => [&self.old, &self.new].iter().position(|a| **a == answers).expect(when),
            Kind::Merge => {
                assert!(answers == self.old, "{when}");
                [RUNS, 1].iter().position(|&n| n == runs).expect(when)
            }
        }
    }
}

/// Every operation, one after the other, on half of the cores each. A job dies at each, and is
/// refused its storage, or a write is cut short, at one of this many, each day at another one.
fn at_every_operation(kind: Kind, one_of: u64) {
    let operations = Case::new(kind).count();
    println!("{operations} storage operations");
    assert!(operations > 30);
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            let case = Case::new(kind);
            let mut jobs = 0;
            let mut published = 0;
            for n in (half..operations).step_by(2) {
                let is_refused = (n + today()).is_multiple_of(one_of);
                let faults = if is_refused { &["crash", "fail", "short"][..] } else { &["crash"] };
                for fault in faults {
                    published += fail_once(&case, fault, n);
                    jobs += 1;
                }
            }
            (jobs, published)
        })
    });
    let halves = halves.map(|half| half.join().unwrap());
    let [jobs, published] = [halves[0].0 + halves[1].0, halves[0].1 + halves[1].1];
    println!("{published} jobs of {jobs} published");
    assert!(published > 0, "the last operations follow the renaming");
}

/// Lets one operation of a job fail, which finds the old generation live; returns whether the new
/// one then is all the same. Where anything is left, the next job removes it.
fn fail_once(case: &Case, fault: &str, n: u64) -> u64 {
    let when = format!("{fault}@{n}");
    let before = std::fs::read(case.set.index().join("CURRENT")).unwrap();
    let outcome = case.fails_at(fault, n);
    let current = std::fs::read(case.set.index().join("CURRENT")).unwrap();
    let live = case.live(&when);
    assert_eq!(live == 0, current == before, "{when}");
    assert!(outcome.stdout.is_empty());
    match (fault, outcome.status) {
        ("crash", None) => {}
        // What is removed at the end may stay; the index is published.
        ("fail" | "short", Some(0)) => assert_eq!(live, 1, "{when}: {outcome:?}"),
        ("fail" | "short", Some(1)) => {
            assert!(outcome.stderr.contains("No space left on device"), "{outcome:?}");
            let index = case.set.index();
            assert!(outcome.stderr.contains(index.to_str().unwrap()), "no file: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
            if live == 0 {
                case.set.assert_nothing_else(&when);
            } else {
                // Whether the new name has reached the disk is not known: the old one must stay.
                let old = String::from_utf8(before).unwrap();
                assert!(index.join(old.trim_end()).is_dir(), "{when}");
            }
        }
        _ => panic!("{when}: {outcome:?}"),
    }
    if live == 1 || fault == "crash" {
        case.recover(&format!("after {when}"));
        case.reset();
    }
    live as u64
}

#[test]
fn a_build_may_fail_at_every_operation() {
    at_every_operation(Kind::Build, 3);
}

#[test]
fn a_merge_may_fail_at_every_operation() {
    at_every_operation(Kind::Merge, 3);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_builds_and_merges_that_fail_at_every_operation() {
    at_every_operation(Kind::Build, 1);
    at_every_operation(Kind::Merge, 1);
}

#[test]
fn jobs_may_be_killed_or_asked_to_end_at_any_time() {
    let set = OldAndNew::new(6000, 80, 6);
    let (new, old) = set.both_answers();
    let job = || set.build(&set.new).env("MILLRACE_RUN_LIMIT", "1000000");
    let start = Instant::now();
    job().ok();
    let whole = start.elapsed();
    set.build(&set.old).ok();
    let mut random = Random::new(7);
    let mut published = [0; 2];
    for round in 0..24 {
        let name = ["KILL", "INT", "KILL", "TERM"][round % 4];
        let mut child = job().spawn();
        drop(child.stdin.take());
        std::thread::sleep(whole.mul_f64(random.share() * 1.1));
        // It may have ended.
        if child.try_wait().unwrap().is_none() {
            signal(&child, name);
        }
        let status = ends_soon(&mut child, name);
        let when = format!("round {round}, {name}, exit status {status}");
        let expected = match name {
            "KILL" => 137,
            "INT" => 130,
            _ => 143,
        };
        assert_sound(&set.index(), &when);
        let answers = set.answers();
        let live = [&old, &new].iter().position(|a| **a == answers).expect(&when);
        published[live] += 1;
        match status {
            0 => assert_eq!(live, 1, "{when}"),
            _ => assert_eq!(status, expected, "{when}"),
        }
        if name != "KILL" {
            assert_eq!(live, usize::from(status == 0), "{when}");
            set.assert_tidy(&when);
        }
        set.build(&set.old).ok();
        set.assert_tidy(&when);
    }
    println!(
        "after {} jobs the old generation was live, after {} the new",
        published[0], published[1]
    );
    assert!(published[0] > 0);
}

#[test]
fn a_file_that_may_not_grow_ends_the_job() {
    let set = OldAndNew::new(3000, 60, 3);
    set.build(&set.old).ok();
    let old = set.answers();
    // Blocks of 512 bytes; the signal that the limit sends is ignored, so that writes fail.
    for blocks in [0, 8, 64, 200] {
        let binary = env!("CARGO_BIN_EXE_millrace");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &script, "sh", binary, "build", "--quiet", "-w", "2", "--index"])
            .args([&set.index(), &set.new])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        let named = ["/gen-", "/runs/"].iter().any(|folder| message.contains(folder));
        assert!(message.contains("File too large") && named, "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        set.assert_tidy("after a limit of files");
        assert!(set.answers() == old);
    }
}

#[test]
fn a_full_disk_ends_the_job() {
    let set = OldAndNew::new(40_000, 12, 3);
    let disk = set.scratch.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1200k", "none"]).arg(&disk);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: a small disk cannot be mounted here");
    }
    let result = std::panic::catch_unwind(|| fill(&set, &disk));
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    result.unwrap();
}

fn fill(set: &OldAndNew, disk: &Path) {
    let index = disk.join("index");
    let small = set.scratch.write("small.jsonl", "{\"id\":\"a\",\"text\":\"small\"}\n");
    set.build_into(&index, &small).ok();
    let ballast = disk.join("ballast");
    // Less and less room: the large collection never fits, and at last not one file does.
    for kilobytes in [0, 300, 600, 900, 1030] {
        std::fs::write(&ballast, vec![1; kilobytes << 10]).unwrap();
        for runs in ["1", "1000000000"] {
            let build = set.build_into(&index, &set.new).env("MILLRACE_RUN_LIMIT", runs);
            fails_soon(build).says("No space left on device").says("disk/index/");
            assert_sound(&index, "on a full disk");
            let names = std::fs::read_dir(&index).unwrap().count();
            assert_eq!(names, 4, "debris with {kilobytes} KB less");
        }
    }
    std::fs::remove_file(&ballast).unwrap();
    set.build_into(&index, &small).ok();
    assert_sound(&index, "with room again");
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let old = set.answers();
    let index = set.index();
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let root = index.metadata().unwrap().uid() == 0;
    let run = |arguments: &[&Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        if root {
            // What is forbidden does not hold for the superuser: somebody else tries.
            command.uid(65534).gid(65534);
        }
        command.args(arguments).output()
    };
    allow(index.parent().unwrap(), 0o755);
    if !run(&["--version".as_ref()]).is_ok_and(|output| output.status.success()) {
        return println!("skipped: only the superuser can run the binary here");
    }
    allow(&index, 0o555);
    let fails = |arguments: &[&Path], what: &Path| {
        let output = run(arguments).unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("Permission denied"), "{message}");
        assert!(message.contains(what.to_str().unwrap()), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    let build =
        |index: &Path| fails(&["build".as_ref(), "--index".as_ref(), index, &set.new], index);
    build(&index);
    let below = index.join("not/there");
    fails(&["build".as_ref(), "--index".as_ref(), &below, &set.new], &index.join("not"));
    fails(&["merge".as_ref(), "--index".as_ref(), &index], &index);
    allow(&index, 0o755);
    assert!(set.answers() == old);
    set.assert_tidy("after nothing was written");
    // What may not be read.
    let input = set.new.join("000.jsonl");
    let index = set.scratch.path("other");
    std::fs::create_dir(&index).unwrap();
    allow(&index, 0o777);
    allow(&input, 0);
    fails(&["build".as_ref(), "--index".as_ref(), &index, &input], &input);
    allow(&input, 0o644);
}
