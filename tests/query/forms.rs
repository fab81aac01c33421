//! Answers, measurements, reports and records have exactly the form that the contract names.

use crate::support::fixture::{Fixture, bits, hits};
use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Number and text of a query, and docid and score of its hits.
type Expected = (&'static str, &'static str, Vec<(usize, f32)>);

#[test]
fn forms_are_exact() {
    let scratch = Scratch::new();
    let input = concat!(
        r#"{"id": "plain", "contents": "alpha beta gamma"}"#,
        "\n",
        r#"{"id": "with space\tand\u00a0tab", "contents": "alpha alpha beta delta epsilon zeta"}"#,
        "\n",
        r#"{"id": "\u5317\u4eac", "contents": "gamma"}"#,
        "\n",
        r#"{"contents": "Beta: eta theta."}"#,
        "\n",
        r#"{"id": 17, "contents": ""}"#,
        "\n",
    );
    let index = scratch.path("index");
    build(&index, args![scratch.write("c.jsonl", input)]);
    let queries =
        "first one\talpha gammas\n\n   \nbeta\r\nq3\tnothing here\nalpha theta\ttab\n\tgamma\n";
    // Score of each (query, docid) by the contract.
    let lengths = [3.0, 6.0, 1.0, 3.0, 0.0f64];
    let mean = lengths.iter().sum::<f64>() / 5.0;
    let part = |df: f64, tf: f32, docid: usize| {
        let idf = (1.0 + (5.0 - df + 0.5) / (df + 0.5)).ln();
        let norm = (1.2 * (0.25 + 0.75 * lengths[docid] / mean)) as f32;
        (idf * 2.2) as f32 * tf / (tf + norm)
    };
    let expected: [Expected; 5] = [
        (
            "first one",
            "alpha gammas",
            vec![
                (0, part(2.0, 1.0, 0) + part(2.0, 1.0, 0)),
                (1, part(2.0, 2.0, 1)),
                (2, part(2.0, 1.0, 2)),
            ],
        ),
        ("2", "beta", vec![(0, part(3.0, 1.0, 0)), (1, part(3.0, 1.0, 1)), (3, part(3.0, 1.0, 3))]),
        ("q3", "nothing here", vec![]),
        ("alpha theta", "tab", vec![]),
        ("5", "gamma", vec![(0, part(2.0, 1.0, 0)), (2, part(2.0, 1.0, 2))]),
    ];
    let names = ["plain", "with space\tand\u{a0}tab", "北京", "c.jsonl:4", "17"];
    let words = ["plain", "with_space_and_tab", "北京", "c.jsonl:4", "17"];
    let mut trec = String::new();
    let mut tsv = String::new();
    let mut json = Vec::new();
    for (qid, text, mut found) in expected {
        found.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
        let qid_word = qid.replace(' ', "_");
        let mut hits = Vec::new();
        for ((docid, score), rank) in found.into_iter().zip(1..) {
            trec += &format!("{qid_word} Q0 {} {rank} {score} millrace\n", words[docid]);
            tsv += &format!("{qid_word}\t{rank}\t{}\t{docid}\t{score}\n", words[docid]);
            hits.push((rank, names[docid], docid, score));
        }
        json.push((qid, text, hits));
    }
    // The default is TREC.
    let job = millrace(args!["query", "--quiet", "--index", index]).stdin(queries);
    assert_eq!(job.ok().text(), trec);
    let unknown = "2 queries with no indexed term";
    let trec_job = millrace(args!["query", "--index", index, "--format", "trec"]).stdin(queries);
    let outcome = trec_job.ok().says(unknown);
    assert_eq!(outcome.text(), trec);
    let job = millrace(args!["query", "--index", index, "--format", "tsv"]).stdin(queries);
    assert_eq!(job.ok().says(unknown).text(), tsv);
    let job = millrace(args!["query", "--index", index, "--format", "jsonl"]).stdin(queries);
    let answers = job.ok().says(unknown).json_lines();
    assert_eq!(answers.len(), json.len());
    for (answer, (qid, text, hits)) in answers.iter().zip(json) {
        let answer = answer.as_object().unwrap();
        let keys: Vec<&str> = answer.keys().map(String::as_str).collect();
        assert_eq!(keys, ["hits", "qid", "query", "us"]);
        assert_eq!((&answer["qid"], &answer["query"]), (&qid.into(), &text.into()));
        assert!(answer["us"].as_f64().unwrap() > 0.0);
        let found: Vec<_> = answer["hits"].as_array().unwrap().iter().collect();
        assert_eq!(found.len(), hits.len(), "{qid}");
        for (hit, (rank, name, docid, score)) in found.into_iter().zip(hits) {
            let keys: Vec<&str> = hit.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["docid", "name", "rank", "score"]);
            let rank: i32 = rank;
            let docid: u64 = docid as u64;
            assert_eq!(hit["rank"], rank);
            assert_eq!(hit["name"], name);
            assert_eq!(hit["docid"], docid);
            assert_eq!(hit["score"].to_string(), score.to_string());
        }
    }
}

#[test]
fn scores_of_all_forms_read_back_as_the_same() {
    let fixture = Fixture::new(22, 1500);
    let lines = fixture.queries(220, 400).join("\n");
    let ask = |format| fixture.query(&["--format", format, "-k", "50"]).stdin(&*lines).ok();
    let json: Vec<(u32, u32)> =
        ask("jsonl").json_lines().iter().flat_map(|a| bits(&hits(a))).collect();
    let tsv: Vec<(u32, u32)> = ask("tsv")
        .text()
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[3].parse().unwrap(), fields[4].parse::<f32>().unwrap().to_bits())
        })
        .collect();
    assert!(json.len() > 1000);
    assert_eq!(json, tsv);
    for (line, &(_, score)) in ask("trec").text().lines().zip(&json) {
        let text = line.split(' ').nth(4).unwrap();
        assert_eq!(text.parse::<f32>().unwrap().to_bits(), score);
        // The shortest form.
        assert_eq!(text, f32::from_bits(score).to_string());
    }
}

#[test]
fn bench_queries_prints_one_line() {
    let fixture = Fixture::new(31, 500);
    let path = fixture.scratch.write("q", fixture.queries(310, 40).join("\n"));
    let bench =
        |more: &[&str]| millrace(args!["bench", "queries", "--index", fixture.index]).args(more);
    for more in [
        &["--mode", "or", "-k", "10"][..],
        &["--mode", "and", "-k", "100", "--passes", "1", "--algorithm", "exhaustive"],
    ] {
        let lines = bench(more).arg(&path).ok().json_lines();
        assert_eq!(lines.len(), 1);
        let fields = lines[0].as_object().unwrap();
        let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(keys, ["mean_us", "p50_us", "p95_us", "p99_us", "queries", "queries_per_s"]);
        assert_eq!(fields["queries"], 40);
        let number = |name: &str| fields[name].as_f64().unwrap();
        assert!(number("mean_us") > 0.0 && number("queries_per_s") > 0.0);
        assert!(0.0 < number("p50_us") && number("p50_us") <= number("p95_us"));
        assert!(number("p95_us") <= number("p99_us"));
    }
    bench(&[]).fails(1).says("no queries");
    bench(&["--passes", "0"]).arg(&path).fails(2);
    millrace(["bench", "nothing"]).fails(2);
}

#[test]
fn reports_and_quiet() {
    let fixture = Fixture::new(32, 500);
    let report = fixture.scratch.path("report.json");
    let job = millrace(args!["query", "--index", fixture.index, "-w", "2", "--report", report]);
    let outcome = job.stdin("ka\nzzzunheardof\n").ok().says("2 queries");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!((&report["job"], &report["queries"]), (&"query".into(), &2.into()));
    assert_eq!(report["queries_without_indexed_term"], 1);
    assert_eq!(report["hits"], outcome.text().lines().count());
    check_report(&report, 2, &["Answer", "Batch", "Collect"]);
    let latency = &report["latency_us"];
    assert!(
        latency["p50"].as_f64() <= latency["p99"].as_f64()
            && latency["p99"].as_f64() <= latency["max"].as_f64()
    );
    let classes = latency["distribution"].as_array().unwrap().iter();
    assert_eq!(classes.map(|class| class["queries"].as_u64().unwrap()).sum::<u64>(), 2);
    let quiet = fixture.query(&[]).stdin("ka\nzzzunheardof\n").ok();
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, outcome.stdout);
}

/// Checks what every job reports.
pub(crate) fn check_report(report: &Value, workers: u64, operators: &[&str]) {
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!((&report["schema"], &report["workers"]), (&2.into(), &workers.into()));
    for name in ["host", "command", "version"] {
        assert!(
            report[name].as_str().is_some_and(|text| !text.is_empty()),
            "{name}: {}",
            report[name]
        );
    }
    let time = |name: &str| report[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let between = time("ended").duration_since(time("began")).as_secs_f64();
    assert!((between - report["seconds"].as_f64().unwrap()).abs() < 1e-3, "{between}");
    assert!(report["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
    let shares = report["operators"].as_array().unwrap();
    for name in operators {
        assert!(shares.iter().any(|share| share["operator"] == *name), "no {name} in {shares:?}");
    }
    let mut sum = 0.0;
    for share in shares {
        assert_eq!(share["seconds_by_worker"].as_array().unwrap().len() as u64, workers);
        sum += share["share"].as_f64().unwrap();
    }
    assert!((sum - 1.0).abs() < 1e-6, "shares add up to {sum}");
}

#[test]
fn show_prints_the_record() {
    let scratch = Scratch::new();
    let collection = Collection::new(33, 9000, 40).unname(10);
    let bytes = collection.jsonl();
    assert!(bytes.len() > 2 << 20, "{}", bytes.len());
    let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
    let inputs = [
        scratch.write("c.jsonl", &bytes),
        scratch.write("gz/c.jsonl.gz", gzip(&bytes, 4)),
        scratch.write("zst/c.jsonl.zst", zstd(&bytes, 2)),
    ];
    let show = |index: &Path| millrace(args!["show", "--index", index]);
    for (number, input) in inputs.iter().enumerate() {
        let index = scratch.path(format!("index-{number}"));
        build(&index, args![input]);
        for docid in [0, 1, 10, 4567, 8998, 8999] {
            let name = match &collection.docs[docid].name {
                Some(name) => name.clone(),
                None => format!("c.jsonl:{}", docid + 1),
            };
            let by_docid = show(&index).args(["--docid", &docid.to_string()]).ok();
            let by_name = show(&index).arg(&name).ok();
            assert_eq!(by_docid.text(), by_name.text());
            let (head, record) = by_docid.text().split_once("\n\n").unwrap();
            assert_eq!(record, format!("{}\n", lines[docid]), "{}", input.display());
            let field = |name: &str| {
                let line = head.lines().find(|line| line.starts_with(name)).unwrap();
                line[name.len()..].trim().to_string()
            };
            assert_eq!(field("docid"), docid.to_string());
            assert_eq!(field("name"), name);
            assert_eq!(field("input"), input.to_str().unwrap());
            let offset: usize = lines[..docid].iter().map(|line| line.len() + 1).sum();
            assert_eq!(field("offset"), offset.to_string());
            assert_eq!(field("bytes"), lines[docid].len().to_string());
        }
        show(&index).arg("no such name").fails(1).says("no such name");
        show(&index).args(["--docid", "9000"]).fails(1).says("9000");
        // Another text of the same length, behind a link or not, is not what was indexed.
        let other = bytes.iter().map(|byte| if *byte == b'e' { b'a' } else { *byte });
        let other: Vec<u8> = other.collect();
        let other = vec![other.clone(), gzip(&other, 4), zstd(&other, 2)].swap_remove(number);
        let sound = std::fs::read(input).unwrap();
        std::fs::write(input, &other).unwrap();
        show(&index).args(["--docid", "8998"]).run().expect_status(1).says("has changed since");
        let beside = scratch.write("beside", &other);
        std::fs::remove_file(input).unwrap();
        std::os::unix::fs::symlink(&beside, input).unwrap();
        let outcome = show(&index).args(["--docid", "8998"]).run().expect_status(1);
        assert!(outcome.text().ends_with("\n\n"), "no record: {outcome:?}");
        outcome.says("has changed since").says(format!("a link to {}", beside.display()));
        // What is behind a link may be what was indexed.
        std::fs::write(&beside, &sound).unwrap();
        show(&index).args(["--docid", "8998"]).ok();
        std::fs::remove_file(&beside).unwrap();
        let gone = show(&index).args(["--docid", "8998"]).run().expect_status(1);
        gone.says(format!("a link to {}", beside.display()));
        std::fs::remove_file(input).unwrap();
        // The input went away, or changed.
        std::fs::write(input, "short").unwrap();
        let outcome = show(&index).args(["--docid", "8999"]).run().expect_status(1);
        outcome.says(input.to_str().unwrap());
        std::fs::remove_file(input).unwrap();
        show(&index).args(["--docid", "8999"]).run().expect_status(1).says("c.jsonl");
    }
}
