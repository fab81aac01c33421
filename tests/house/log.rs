//! What jobs say while they work: steps, as text or as lines of JSON, and messages.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

const ONE: &str = "{\"id\": \"one\", \"contents\": \"mill race\"}\n";

fn build_job(index: &Path) -> Job {
    millrace(args!["build", "--index", index])
}

#[test]
fn what_happens_inside_is_told_to_who_asks() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = scratch.write("c.jsonl", ONE);
    let told = build_job(&index).arg(&input).env("MILLRACE_LOG", "debug").ok();
    let told = told.says("reading path=").says("wrote a run").says("published generation=1");
    assert!(told.stderr.contains("millrace::index::generations::publish"), "{told:?}");
    let told = build_job(&index).arg(&input).env("MILLRACE_LOG", "warn,millrace::index=info").ok();
    assert!(told.says("published generation=2").stderr.lines().count() == 2);
    let told = build_job(&index).arg(&input).env("MILLRACE_LOG", "").ok();
    assert_eq!(told.stderr.lines().count(), 1, "{told:?}");
    let told = build_job(&index).arg(&input).env("MILLRACE_LOG", "noisy");
    told.fails(2).says("MILLRACE_LOG=noisy: give off, error, warn");
}

/// All that a job writes to standard error, as objects of JSON.
fn told_as_json(job: Job, status: i32) -> Vec<Value> {
    let told = job.args(["--log", "json"]).run().expect_status(status);
    told.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn messages_and_steps_are_lines_of_json_for_who_asks() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let odd = scratch.write("a \"\u{1b}[1m\n.jsonl", format!("{ONE}{{\"id\"\n"));
    let job = || build_job(&index).args(args!["-w", "1", &odd]);
    let told = told_as_json(job(), 0);
    for line in &told {
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        assert!(time.as_second() > 1_700_000_000 && line["message"].is_string(), "{line}");
        assert!(["info", "warn"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    let skipped = told[0]["message"].as_str().unwrap();
    assert!(skipped.starts_with("skipped: ") && skipped.contains("a \"\u{1b}[1m\n.jsonl: byte"));
    let step = told.iter().find(|line| line["message"] == "published").unwrap();
    assert_eq!(step["target"], "millrace::index::generations::publish");
    assert_eq!((&step["generation"], &step["level"]), (&1.into(), &"info".into()));
    assert!(told.last().unwrap()["message"].as_str().unwrap().contains("1 document, 2 terms"));
    // The variable decides which steps are logged, and who wants quiet gets errors.
    let many = told_as_json(job().env("MILLRACE_LOG", "debug"), 0);
    assert!(many.len() > told.len() && many.iter().any(|line| line["level"] == "debug"));
    let few = told_as_json(job().env("MILLRACE_LOG", "off"), 0);
    assert!(few.len() == 2 && few.iter().all(|line| line.get("target").is_none()), "{few:?}");
    assert_eq!(told_as_json(job().arg("--quiet"), 0), [Value::Null; 0]);
    let failed = told_as_json(job().args(["--quiet", "--strict"]), 1);
    assert_eq!((failed.len(), &failed[0]["level"]), (1, &"error".into()), "{failed:?}");
    let wrong = told_as_json(job().env("MILLRACE_LOG", "noisy"), 2);
    assert!(wrong[0]["message"].as_str().unwrap().starts_with("MILLRACE_LOG=noisy"));
    // Results stay what they are, and so do messages as text.
    let query = || millrace(args!["query", "--index", index, "--query", "mill"]);
    let asked = query().args(["--log", "JSON"]).ok();
    assert_eq!(asked.stdout, query().arg("--quiet").ok().stdout);
    assert!(asked.stderr.starts_with("{\"level\":\"info\",\"message\":\""), "{asked:?}");
    assert!(
        query().args(["--log", "text"]).ok().says(": 1 query, 1 hit").stderr.lines().count() == 1
    );
    for job in ["info", "check", "merge", "dump"] {
        let more = if job == "dump" { &["terms"][..] } else { &[] };
        told_as_json(millrace(args![job, "--index", index]).args(more), 0);
    }
    millrace(args!["info", "--index", index, "--log", "xml"])
        .fails(2)
        .says("possible values: text, json");
}
