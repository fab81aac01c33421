//! `huang` on a device answers as the CPU does: the whole job, on pretended devices.

use crate::support::fixture::Fixture;
use crate::support::pretended::{HUANG, pretended};
use std::path::Path;

#[test]
fn huang_is_for_devices() {
    let fixture = Fixture::new(76, 30);
    let refused: [(&[&str], &str); 7] = [
        (&["--algorithm", "huang"], "goes with --device gpu"),
        (&["--query-threads", "64"], "goes with --algorithm huang"),
        (&["--traversal", "bmw", "--algorithm", "ding09"], "goes with --algorithm huang"),
        (&["--threshold", "own"], "goes with --algorithm huang"),
        (&["--algorithm", "huang", "--device", "gpu", "--query-threads", "96"], "32, 64, 128"),
        (&["--algorithm", "huang", "--device", "gpu", "--traversal", "maxscore"], "wand, bmw"),
        (&["--algorithm", "huang", "--device", "gpu", "--gpu-partition"], "does not go with"),
    ];
    for (more, why) in refused {
        fixture.query(more).stdin("x\n").fails(2).says(why);
    }
}

/// The whole job, on pretended devices.
#[test]
fn pretended_huang_answers_as_the_cpu_does() {
    let Some(folder) = pretended(&HUANG) else { return };
    let fixture = Fixture::new(79, 500);
    let index = fixture.scratch.path("newpfd");
    let build = crate::support::millrace(["build", "--quiet", "--codec", "newpfd"]);
    let docs = fixture.scratch.path("c.jsonl");
    build.args(["--block-size", "64", "--index"]).args([&index, &docs]).ok();
    let queries = fixture.queries(80, 16).join("\n");
    let ask = |index: &Path, more: &[&str]| {
        let job = crate::support::millrace(["query", "--quiet", "--format", "tsv", "--index"]);
        let job = job.args([index]).args(more).stdin(queries.clone());
        let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "2");
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache"))
    };
    let path = fixture.scratch.path("report.json");
    let report = path.to_str().unwrap();
    // In 4 KB hardly any list has room, so that nearly all travel. With 256 threads the devices
    // have shared memory for two terms.
    for (asked, docids, memory, gpus) in [
        (&["--mode", "or", "-k", "5", "--traversal", "bmw"], "..", "4K", "2"),
        (&["--mode", "or", "-k", "5", "--query-threads", "256"], "..", "16M", "1"),
        (&["--mode", "and-or", "-k", "40", "--query-threads", "32"], "100..450", "16M", "2"),
    ] {
        let common = [&asked[..4], &["--docids", docids]].concat();
        let device = ["--device", "gpu", "--algorithm", "huang", "--gpu-memory", memory];
        let more = [&common[..], &device, &asked[4..], &["--gpus", gpus, "--report", report]];
        let found = ask(&index, &more.concat()).ok().text().to_owned();
        let expected = ask(&index, &[&common[..], &["--algorithm", "exhaustive"]].concat());
        assert_eq!(found, expected.ok().text(), "{asked:?} {memory}");
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        let gpu = &report["gpu"];
        assert!(gpu["answered"].as_u64() > Some(0) && gpu["list_bytes"].as_u64() > Some(0));
        assert_eq!((&gpu["without_lists"], &gpu["lost"]), (&0.into(), &0.into()), "{gpu}");
        assert_eq!(gpu["unsuited"].as_u64() > Some(0), asked[5] == "256", "{gpu}");
    }
    let refused = ask(&fixture.index, &["--device", "gpu", "--algorithm", "huang"]);
    refused.fails(1).says("bp128");
}
