//! Reports say what happened, and each of their fields is documented.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs a job with a report, and reads that.
fn reported(scratch: &Scratch, args: &[&str], status: i32) -> Value {
    let path = scratch.path("report.json");
    let job = millrace(args).arg("--report").arg(&path);
    if status == 0 {
        job.ok()
    } else {
        job.fails(status)
    };
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The numbers of an array.
fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn fields_agree_and_are_documented() {
    let scratch = Scratch::new();
    let tiny = |name: &str| format!("{}/datasets/tiny/{name}", env!("CARGO_MANIFEST_DIR"));
    let broken = scratch.write("broken.jsonl", "{\"id\": 1, \"text\": \"mill race\"}\n{\"id\"\n");
    let [index, broken] = [&scratch.path("index"), &broken].map(|path| path.display().to_string());
    let documents = tiny("a.jsonl");
    let queries = tiny("queries.tsv");
    let qrels = tiny("qrels.txt");
    let run = scratch.path("run.trec").display().to_string();
    let ciff = scratch.path("index.ciff").display().to_string();
    let built = ["build", "--index", &index, "--no-merge"];
    let first = reported(&scratch, &[&built[..], &[&documents]].concat(), 0);
    let second = reported(&scratch, &[&built[..], &[&documents, &broken]].concat(), 0);
    assert_eq!(first["before"], Value::Null);
    for field in ["generation", "documents", "terms", "postings", "tokens", "index_bytes"] {
        assert_eq!(second["before"][field], first[field], "{field}");
    }
    assert_eq!(second["skipped"]["bad JSON"], 1);
    assert!(
        second["skipped_examples"][0].as_str().unwrap().contains("broken.jsonl: byte 31 (line 2)")
    );
    // What operators did in all, they did at some time.
    for operator in second["operators"].as_array().unwrap() {
        let rows = second["timeline"]["operators"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == operator["operator"]).unwrap();
        let seconds: f64 = numbers(&row["seconds"]).iter().sum();
        assert!((seconds - operator["seconds"].as_f64().unwrap()).abs() < 1e-6, "{operator} {row}");
    }

    let mut reports = vec![first, second];
    for args in [
        &["query", "--index", &index, "--qrels", &qrels, &queries][..],
        &["check", "--index", &index],
        &["info", "--index", &index],
        &["show", "--index", &index, "--docid", "0"],
        &["explain", "--index", &index, "--docid", "0", "mill"],
        &["dump", "--index", &index, "terms"],
        &["tune", "--index", &index, "--qrels", &qrels, "--k1", "1", "--b", "0.5", &queries],
        &["cache", "--index", &index, "--memory", "1M", &queries],
        &["export", "--index", &index, &ciff],
        &["rollback", "--index", &index],
        &["merge", "--index", &index, "--codec", "vbyte"],
        &["import", "--index", &index, &ciff],
    ] {
        reports.push(reported(&scratch, args, 0));
    }
    std::fs::write(&run, millrace(["query", "--index", &index, &queries]).ok().stdout).unwrap();
    reports.push(reported(&scratch, &["evaluate", "--qrels", &qrels, &run], 0));
    let failed = reported(&scratch, &[&built[..], &["--strict", &broken]].concat(), 1);
    assert!(failed["error"].as_str().unwrap().contains("broken.jsonl: byte 31"), "{failed}");
    reports.push(failed);

    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate.md"))
            .unwrap();
    let documented: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    for report in &reports {
        for (field, _) in report.as_object().unwrap() {
            assert!(
                documented.contains(field.as_str()),
                "{} of {}: docs/operate.md",
                field,
                report["job"]
            );
        }
        for field in [
            "schema",
            "job",
            "began",
            "ended",
            "seconds",
            "host",
            "command",
            "version",
            "commit",
            "peak_memory_bytes",
        ] {
            assert!(report.get(field).is_some(), "{field}: {report}");
        }
    }
}
