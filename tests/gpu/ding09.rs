//! `ding09` on a device answers as the CPU does: the whole job, on a pretended device.

use crate::support::fixture::Fixture;
use crate::support::pretended::{DING09, pretended};
use std::path::Path;

#[test]
fn ding09_is_for_devices() {
    let fixture = Fixture::new(76, 30);
    let refused: [(&[&str], &str); 7] = [
        (&["--algorithm", "ding09"], "goes with --device gpu"),
        (&["--merge-levels", "2"], "goes with --algorithm ding09"),
        (&["--splitters", "16"], "goes with --algorithm ding09"),
        (&["--algorithm", "ding09", "--splitters", "12"], "give a power of two from 2 to 65536"),
        (&["--algorithm", "ding09", "--device", "gpu", "--merge-levels", "5"], "0..=4"),
        (&["--algorithm", "ding09", "--device", "gpu", "--gpu-partition"], "does not go with"),
        (&["--algorithm", "ding9"], "ding09"),
    ];
    for (more, why) in refused {
        fixture.query(more).stdin("x\n").fails(2).says(why);
    }
    let bench = ["--algorithm", "ding09"];
    let job = crate::support::millrace(["bench", "queries", "--index"]).args([&fixture.index]);
    job.args(bench).stdin("x\n").fails(2).says("goes with --device gpu");
}

/// The whole job, on a pretended device.
#[test]
fn pretended_ding09_answers_as_the_cpu_does() {
    let Some(folder) = pretended(&DING09) else { return };
    let fixture = Fixture::new(77, 500);
    let index = fixture.scratch.path("pfor");
    let build = crate::support::millrace(["build", "--quiet", "--codec", "pfor"]);
    let docs = fixture.scratch.path("c.jsonl");
    build.args(["--block-size", "64", "--index"]).args([&index, &docs]).ok();
    let queries = fixture.queries(78, 16).join("\n");
    let ask = |index: &Path, more: &[&str]| {
        let job = crate::support::millrace(["query", "--quiet", "--format", "tsv", "--index"]);
        let job = job.args([index]).args(more).stdin(queries.clone());
        let job = job.env("LD_LIBRARY_PATH", &folder);
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache"))
    };
    let path = fixture.scratch.path("report.json");
    let report = path.to_str().unwrap();
    // In 4 KB hardly any list has room, so that nearly all travel.
    for (mode, k, docids, memory) in
        [("or", "5", "..", "16M"), ("and", "5", "..", "4K"), ("and-or", "40", "100..450", "16M")]
    {
        let asked = ["--mode", mode, "-k", k, "--docids", docids];
        let of = |more: &[&str]| ask(&index, &[&asked[..], more].concat()).ok().text().to_owned();
        let device = ["--device", "gpu", "--algorithm", "ding09", "--gpu-memory", memory];
        let found = of(&[&device[..], &["--report", report]].concat());
        assert_eq!(found, of(&["--algorithm", "exhaustive"]), "{mode} {k} {memory}");
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        let gpu = &report["gpu"];
        assert!(gpu["answered"].as_u64() > Some(0) && gpu["lost"] == 0, "{gpu}");
        assert!(gpu["without_lists"] == 0 && gpu["list_bytes"].as_u64() > Some(0), "{gpu}");
    }
    let refused = ask(&fixture.index, &["--device", "gpu", "--algorithm", "ding09"]);
    refused.fails(1).says("bp128");
}
