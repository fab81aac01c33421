//! Rebuilds of an index of learned vectors, which keep its factor.

use crate::support::*;
use serde_json::{Value, json};

const JOB: &str = "index = \"idx\"\n[[input]]\npaths = [\"docs/*\"]\nformat = \"vectors\"\n[guard]\nmin_documents = \"0%\"\nmin_tokens = \"0%\"\n";

fn line(n: u32, weight: f64) -> String {
    json!({"id": format!("d{n}"), "vector": {"mill": weight, format!("t{n}"): 2}}).to_string()
        + "\n"
}

fn rebuilt(scratch: &Scratch, job: &str) -> (Outcome, Value) {
    let job = scratch.write("job.toml", job);
    let outcome = millrace(args!["rebuild", job, "--once"]).ok();
    (outcome, info(&scratch.path("idx")))
}

fn postings(scratch: &Scratch, name: &str) -> Vec<Value> {
    let dump = millrace(args!["dump", "--index", scratch.path(name), "postings"]).ok();
    dump.json_lines()
}

#[test]
fn a_rebuild_keeps_the_factor_and_reads_what_changed() {
    let scratch = Scratch::new();
    let all =
        |range: std::ops::Range<u32>, weight| range.map(|n| line(n, weight)).collect::<String>();
    scratch.write("docs/a.jsonl", all(0..40, 1.5));
    scratch.write("docs/b.jsonl", all(40..60, 2.25));
    let (_, first) = rebuilt(&scratch, JOB);
    assert_eq!(first["settings"]["impact_factor"], "100");
    assert_eq!(first["settings"]["format"], "vectors");
    // Whole numbers alone, which would tell another factor.
    scratch.write("docs/0.jsonl", all(60..65, 7.0));
    scratch.write("docs/b.jsonl", all(40..50, 3.0));
    let (said, second) = rebuilt(&scratch, JOB);
    assert!(!said.stderr.contains("built again"), "{said:?}");
    assert_eq!(second["settings"]["impact_factor"], "100");
    assert_eq!(second["documents"], 55);
    assert!(second["runs"].as_u64() > Some(1), "{second}");
    let list = |rows: &[Value]| {
        let mill = rows.iter().find(|row| row["term"] == "mill").unwrap();
        let list =
            mill["postings"].as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap());
        let mut impacts: Vec<u64> = list.collect();
        impacts.sort_unstable();
        impacts
    };
    let expected = [vec![150; 40], vec![300; 10], vec![700; 5]].concat();
    assert_eq!(list(&postings(&scratch, "idx")), expected);
    let folder = scratch.path("docs");
    millrace(args!["build", "--format", "vectors", "--factor", "100", "--index"])
        .args(args![scratch.path("whole"), folder])
        .ok();
    assert_eq!(list(&postings(&scratch, "whole")), expected);
    // Nothing but a file that is gone.
    std::fs::remove_file(scratch.path("docs/0.jsonl")).unwrap();
    let (_, third) = rebuilt(&scratch, JOB);
    assert_eq!(third["documents"], 50);
    // Another factor, and texts, need another index.
    let (said, other) = rebuilt(&scratch, &format!("{JOB}[build]\nfactor = 10.0\n"));
    assert!(said.stderr.contains("the factor of the weights is another one"), "{said:?}");
    assert_eq!(other["settings"]["impact_factor"], "10");
    let text = "{\"id\":1,\"contents\":\"mill\"}\n";
    ["a", "b"].iter().for_each(|name| _ = scratch.write(format!("docs/{name}.jsonl"), text));
    let (said, texts) = rebuilt(&scratch, &JOB.replace("format = \"vectors\"\n", ""));
    assert!(
        said.stderr.contains("learned vectors where the index has texts, or the other way"),
        "{said:?}"
    );
    assert_eq!(texts["settings"]["impact_factor"], Value::Null);
}

#[test]
fn an_import_is_rebuilt_and_mixed_inputs_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.write("docs/a.jsonl", (0..30).map(|n| line(n, 1.0)).collect::<String>());
    let index = scratch.path("idx");
    let import = args!["import", "--format", "vectors", "--factor", "4", "--index", index, file];
    millrace(import).ok();
    scratch.write("docs/b.jsonl", line(30, 2.0));
    let (said, manifest) = rebuilt(&scratch, JOB);
    assert!(!said.stderr.contains("built again"), "{said:?}");
    assert_eq!(manifest["settings"]["impact_factor"], "4");
    assert_eq!(manifest["documents"], 31);
    let mixed = format!("{JOB}[[input]]\npaths = [\"docs/a.jsonl\"]\n");
    let job = scratch.write("job.toml", mixed);
    let outcome = millrace(args!["rebuild", job, "--once"]);
    outcome.fails(2).says("job.toml:").says("an index has only one of them");
}
