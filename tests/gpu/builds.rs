//! A build whose device fails in the midst of it ends well, and so does one on two devices.

use super::{found, usable};
use crate::support::sound::OldAndNew;
use crate::support::*;

/// A fault in a kernel ends the job with status 1, says that the device is lost, and leaves the
/// live generation as it is; the next process builds on the same device.
#[test]
fn a_fault_in_the_midst_of_a_build_leaves_the_live_generation() {
    let Some(device) = found() else { return };
    let set = OldAndNew::new(60, 20, 4);
    set.build(&set.old).ok();
    let old = set.answers();
    let live = std::fs::read(set.index().join("CURRENT")).unwrap();
    // The kernels of this fault are cached apart from those that jobs use.
    let cache = set.index().with_file_name("kernels");
    let build = |workers: &str| {
        let index = set.index();
        let input = &set.new;
        let build = millrace(args!["build", "-w", workers, "--quiet", "--index", index, input]);
        // The device owns every term.
        let build = build.args([
            "--indexer",
            "wei11",
            "--gpus",
            "1",
            "--gpu-indexers",
            "1",
            "--cpu-indexers",
            "0",
        ]);
        build.env("MILLRACE_CACHE", &cache)
    };
    for workers in ["1", "2", "4"] {
        let outcome = build(workers).env("MILLRACE_FAULT", "trap@2").fails(1);
        let outcome = outcome.says(&device);
        outcome.says("the device is lost to this process");
        assert_eq!(std::fs::read(set.index().join("CURRENT")).unwrap(), live);
        set.assert_tidy("trap");
    }
    assert_eq!(set.answers(), old);
    build("2").ok();
    assert_ne!(std::fs::read(set.index().join("CURRENT")).unwrap(), live);
}

/// Two devices build what none builds.
#[test]
fn two_devices_build_the_same_index() {
    if found().is_none() {
        return;
    }
    let devices = usable().len();
    if devices < 2 {
        let required = std::env::var_os("MILLRACE_REQUIRE_TWO_GPUS").is_some_and(|v| !v.is_empty());
        assert!(!required, "MILLRACE_REQUIRE_TWO_GPUS is set, and there is one");
        eprintln!("skipped: two GPUs are needed, and there is one");
        return;
    }
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(12, 9000, 90).jsonl());
    let job = |name: &str, more: &[&str]| {
        let index = scratch.path(name);
        let job = millrace(args!["build", "--quiet", "--no-merge", "--index", index]);
        job.args(more).arg(&input).env("MILLRACE_RUN_LIMIT", "300000").ok();
        index
    };
    let fast = job("fast", &["-w", "2"]);
    for (n, more) in [
        &["-w", "2", "--gpus", "2"][..],
        &["-w", "4", "--gpus", "2", "--gpu-indexers", "5", "--cpu-indexers", "0"],
        &["-w", "3", "--gpus", "2", "--parse-block", "1M", "--sample", "0"],
    ]
    .iter()
    .enumerate()
    {
        let both = job(&format!("both-{n}"), &[&["--indexer", "wei11"], *more].concat());
        assert_same_index(&fast, &both, &[]);
    }
}
