//! A build with GPU indexers makes the index of one without, to the byte.

use super::found;
use crate::support::*;

#[test]
fn an_index_does_not_depend_on_devices() {
    let Some(_) = found() else { return };
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(11, 9000, 90).jsonl());
    for limit in [None, Some(300_000u32)] {
        let job = |name: &str, more: &[&str]| {
            let index = scratch.path(format!("{name}-{limit:?}"));
            let job = millrace(args!["build", "--quiet", "--no-merge", "--index", index]);
            let job = job.args(more).arg(&input);
            let job = match limit {
                Some(limit) => job.env("MILLRACE_RUN_LIMIT", limit.to_string()),
                None => job,
            };
            job.ok();
            index
        };
        let fast = job("fast", &["-w", "2"]);
        assert_eq!(info(&fast)["runs"].as_u64().unwrap() > 2, limit.is_some());
        // Where pieces end, and with them runs, depends on the memory.
        let small = job("small", &["-w", "2", "--memory", "256M"]);
        for (n, more) in [
            &["-w", "1", "--gpus", "1"][..],
            &["-w", "3", "--gpus", "1", "--parse-block", "1M"],
            &["-w", "2", "--gpus", "1", "--cpu-indexers", "0"],
            &["-w", "2", "--gpus", "1", "--gpu-indexers", "3", "--sample", "0"],
            &["-w", "4", "--parsers", "2", "--cpu-indexers", "1", "--memory", "256M"],
        ]
        .iter()
        .enumerate()
        {
            let expected = if more.contains(&"256M") { &small } else { &fast };
            let wei11 = job(&format!("wei11-{n}"), &[&["--indexer", "wei11"], *more].concat());
            assert_same_index(expected, &wei11, &[]);
        }
    }
}

/// Without a device too: what is asked for and is not there is an error before anything is written.
#[test]
fn gpus_that_are_not_there_are_an_error() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", "{\"id\": \"one\", \"contents\": \"mill race\"}\n");
    let index = scratch.path("index");
    let job = |more: &[&str]| millrace(args!["build", "--index", index]).args(more).arg(&input);
    let wei11 = ["--indexer", "wei11"];
    job(&[&wei11[..], &["--gpus", "999"]].concat())
        .fails(1)
        .says("--gpus: 999 GPUs were asked for");
    let none = [&wei11[..], &["--gpus", "none", "--gpu-indexers", "1"]].concat();
    job(&none).fails(1).says("--gpu-indexers: 1 indexers").says("none may be used");
    let fast = ["--indexer", "fast", "--gpus", "1"];
    job(&fast).fails(2).says("the indexer fast uses no GPU");
    // Who asks for GPUs and names no indexer wants the one that has them.
    job(&["--gpus", "999"]).fails(2).says("the indexer gpu uses one GPU");
    job(&["--gpu-indexers", "1"]).fails(2).says("--indexer wei11");
    assert!(!index.exists());
    // With none asked for there is nothing to say; with auto there is, where none can be used.
    let quiet = job(&[&wei11[..], &["--gpus", "none"]].concat()).ok();
    assert!(!quiet.stderr.contains("GPU is used"), "{quiet:?}");
    let devices = millrace(args!["devices", "--json"]).ok();
    let devices: serde_json::Value = serde_json::from_slice(&devices.stdout).unwrap();
    let usable = devices["devices"].as_array().unwrap().iter().any(|d| d["usable"] == true);
    let auto = job(&wei11).ok();
    assert_eq!(auto.stderr.contains("no GPU is used: "), !usable, "{auto:?}");
    assert!(!job(&[]).ok().stderr.contains("GPU"));
}
