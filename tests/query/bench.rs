//! `bench queries` reports what it prints, measured rates are used, and pages about measurements
//! name what is there.

use crate::support::fixture::Fixture;
use crate::support::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn a_report_has_the_row_that_is_printed() {
    let fixture = Fixture::new(41, 200);
    let queries = fixture.scratch.write("q", fixture.queries(410, 9).join("\n"));
    let of = |name: &str| {
        let report = fixture.scratch.path(name);
        let job = millrace(args!["bench", "queries", "--index", fixture.index, "--report", report]);
        let rows = job.arg(&queries).ok().json_lines();
        (rows, std::fs::read_to_string(report).unwrap())
    };
    let (rows, report) = of("report.json");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["job"], &report["rows"]), (&"bench queries".into(), &json!(rows)));
    assert!(of("report.html").1.contains("bench queries"));
    let report = fixture.scratch.path("failed.json");
    let job = millrace(args!["bench", "queries", "--index", "none", "--report", report]);
    job.arg(&queries).fails(1);
    assert!(std::fs::read_to_string(&report).unwrap().contains("\"failed\": true"));
}

/// What an experiment has measured is what placement uses from then on, unless an option says
/// otherwise.
#[test]
fn rates_that_are_kept_place_the_work() {
    let scratch = Scratch::new();
    scratch.write("in/a.jsonl", Collection::new(18, 700, 60).jsonl());
    let cache = scratch.path("cache");
    let input = scratch.path("in");
    let job = |args: &[std::ffi::OsString]| {
        millrace(args).args(["-w", "2", "--gpus", "none"]).arg(&input).env("MILLRACE_CACHE", &cache)
    };
    let placed = |more: &[&str]| -> Value {
        let index = scratch.path("index");
        let report = scratch.path("report.json");
        let build = args!["build", "--indexer", "wei11", "--index", index, "--report", report];
        job(&build).args(more).ok();
        let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        report["placement"].clone()
    };
    let before = placed(&[]);
    assert_eq!(
        (&before["rates_from"], &before["rates"]["parser"]),
        (&"default".into(), &8e6.into())
    );
    let kept = cache.join("rates.json");
    let measured = json!({"parser": 5e6, "cpu": 9e6, "gpu": 3e8, "gpu_tree": 2e5});
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(&kept, json!({"device": null, "rates": measured}).to_string()).unwrap();
    let after = placed(&[]);
    assert_eq!((&after["rates_from"], &after["rates"]), (&"measured".into(), &measured));
    let given = placed(&["--rates", "1,2,3,4"]);
    assert_eq!((&given["rates_from"], &given["rates"]["cpu"]), (&"given".into(), &2e6.into()));
    // What is stored is not believed.
    let build = || job(&args!["build", "--indexer", "wei11", "--index", scratch.path("index")]);
    for wrong in
        ["", "{}", r#"{"device": null, "rates": {"parser": 0, "cpu": 1, "gpu": 1, "gpu_tree": 1}}"#]
    {
        std::fs::write(&kept, wrong).unwrap();
        build().fails(1).says(kept.to_str().unwrap()).says("measure them again");
    }
    // Another indexer does not ask.
    let index = scratch.path("fast");
    job(&args!["build", "--index", index]).ok();
}

/// What is said of the papers names files; those that are gone mislead.
#[test]
fn the_files_that_the_page_of_papers_names_are_there() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(folder.join("docs/inside/papers.md")).unwrap();
    let is_path = |word: &&str| {
        ["src/", "kernels/", "jobs/", "tests/", "scripts/"].iter().any(|at| word.starts_with(at))
    };
    let named = text.split('`').skip(1).step_by(2).filter(is_path);
    // A command begins with the file.
    let named: BTreeSet<&str> = named.filter_map(|words| words.split(' ').next()).collect();
    assert!(named.len() > 40, "{named:?}");
    let gone: Vec<_> = named.iter().filter(|path| !folder.join(path).exists()).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// A figure says little if nobody knows what it is to be compared with.
#[test]
fn every_page_of_measurements_says_at_its_head_what_it_repeats() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measurements");
    let papers =
        ["wei11", "tatikonda11", "ding09", "wang", "huang"].map(|name| format!("`{name}`"));
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let head = text.split("\n\n").nth(1).unwrap_or_default();
        let repeats = head.starts_with("Repeats ") && papers.iter().any(|name| head.contains(name));
        let said = repeats || head.starts_with("Our own");
        assert!(said, "{}: begin with what is repeated, or with Our own", path.display());
        pages += 1;
    }
    assert!(pages > 0);
}
