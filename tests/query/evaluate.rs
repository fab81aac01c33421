//! The values of `evaluate` are those of ir_measures 0.4.3 (which asks trec_eval 9).

use crate::support::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/query/evaluate").join(name)
}

/// A made-up run with ties, unjudged documents, negative levels, a query without hits and one
/// without judgements: every measure, for every query, as ir_measures has it.
#[test]
fn golden_values_of_every_query() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(golden("expected.json")).unwrap()).unwrap();
    let names: Vec<&String> = expected["measures"].as_object().unwrap().keys().collect();
    let mut job = millrace(args!["evaluate", "--json", "--qrels", golden("qrels.txt")]);
    for name in &names {
        job = job.args(["-m", name]);
    }
    let outcome = job.arg(golden("run.txt")).ok();
    let got = &outcome.json_lines()[0];
    assert_eq!(got["run"], golden("run.txt").to_str().unwrap());
    assert_eq!(got["queries"], 20);
    assert_eq!(got["per_query"].as_object().unwrap().len(), 20);
    let mut far = Vec::new();
    let mut compare = |what: &str, got: &Value, expected: &Value| {
        let got = got.as_f64().unwrap();
        let expected = expected.as_f64().unwrap();
        if (got - expected).abs() > 1e-6 {
            far.push(format!("{what}: {got}, not {expected}"));
        }
    };
    for name in names {
        compare(name, &got["measures"][name], &expected["measures"][name]);
        for (qid, values) in expected["per_query"].as_object().unwrap() {
            compare(&format!("{qid} {name}"), &got["per_query"][qid][name], &values[name]);
        }
    }
    assert!(far.is_empty(), "{far:#?}");
    outcome.says("1 of 20 judged queries have no document in this run").says("1 query has no");
}

/// What ir_measures says of our own runs, k = 1000, of public collections.
#[test]
fn golden_means_of_public_collections() {
    const NAMES: [&str; 9] =
        ["nDCG@10", "AP", "RR", "P@10", "R@100", "R@1000", "Success@10", "Bpref", "Judged@10"];
    for (collection, expected) in [
        ("cacm", "0.4927 0.3522 0.7232 0.3673 0.7219 0.9278 0.9615 0.9278 0.3673"),
        ("cisi", "0.3839 0.2173 0.6435 0.3500 0.4456 0.9300 0.8947 0.9300 0.3500"),
        ("cranfield", "0.3682 0.3063 0.5289 0.2320 0.7382 0.9515 0.8578 0.2699 0.3044"),
        ("vaswani", "0.4342 0.2869 0.6897 0.3505 0.6039 0.9307 0.8817 0.9307 0.3505"),
    ] {
        let Some(folder) = shared(&format!("collections/{collection}")) else { continue };
        let scratch = Scratch::new();
        let index = scratch.path("index");
        build(&index, args![folder.join("corpus.jsonl")]);
        let qrels = folder.join("qrels.txt");
        let evaluate = |form: &str| {
            let queries = folder.join("queries.tsv");
            let job = args!["query", "--quiet", "--index", index, "-k", "1000", "--format", form];
            let run = millrace(job).arg(queries).ok().stdout;
            let job = millrace(args!["evaluate", "--json", "--qrels", qrels, "-"]);
            job.stdin(run).ok().json_lines().remove(0)
        };
        let got = evaluate("trec");
        for (name, expected) in NAMES.iter().zip(expected.split(' ')) {
            let expected: f64 = expected.parse().unwrap();
            let value = got["measures"][name].as_f64().unwrap();
            assert!(
                (value - expected).abs() < 5e-5,
                "{collection} {name}: {value}, not {expected}"
            );
        }
        assert_eq!(got["measures"], evaluate("jsonl")["measures"], "{collection}");
        assert_eq!(got["measures"], evaluate("tsv")["measures"], "{collection}");
    }
}

#[test]
fn runs_are_compared_with_the_first() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n2 0 a 1\n3 0 a 1\n");
    let line = |qid, name, score| format!("{qid} Q0 {name} 1 {score} t\n");
    let first = [line(1, "x", 2), line(1, "a", 1), line(2, "x", 2), line(2, "a", 1)].concat();
    let second = [line(1, "a", 2), line(2, "a", 1), line(3, "a", 1)].concat();
    let first = scratch.write("first", first);
    let second = scratch.write("second", second);
    let job = |more: &[&str]| {
        millrace(args!["evaluate", "-m", "RR", "--qrels", qrels, first, second]).args(more)
    };
    let runs = job(&["--json"]).ok().json_lines();
    assert_eq!(runs.len(), 2);
    assert!(runs[0].get("against").is_none());
    let against = &runs[1]["against"];
    assert_eq!(against["run"], first.to_str().unwrap());
    let rr = &against["measures"]["RR"];
    assert_eq!(rr["better"], 3);
    assert_eq!(rr["worse"], 0);
    assert!((rr["difference"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    // Of the 8 ways to swap three values two reach the sum.
    assert_eq!(rr["randomisation_p"], 0.25);
    // t = (2/3) / (1/6) = 4 with two degrees of freedom.
    assert!((rr["t_test_p"].as_f64().unwrap() - 0.057_190_958).abs() < 1e-8, "{rr}");
    let text = job(&["--per-query", "--quiet"]).ok();
    let rows: Vec<Vec<&str>> =
        text.text().lines().map(|l| l.split_whitespace().collect()).collect();
    let a = first.to_str().unwrap();
    let b = second.to_str().unwrap();
    assert!(rows.contains(&vec![a, "2", "0.5000"]), "{rows:?}");
    assert!(rows.contains(&vec![b, "3", "1.0000"]), "{rows:?}");
    assert!(rows.contains(&vec!["RR", "0.3333", "1.0000"]), "{rows:?}");
    assert!(rows.contains(&vec!["RR", "+0.6667", "3", "0", "0.0572", "0.2500"]), "{rows:?}");
}

#[test]
fn what_cannot_be_evaluated_is_an_error() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n");
    let run = scratch.write("run", "1 Q0 a 1 1 t\n");
    let other = scratch.write("other", "2 Q0 a 1 1 t\n");
    let broken = scratch.write("broken", "1 Q0 a 1 1 t\n1 Q0 b 2\n");
    let job = |run: &Path| millrace(args!["evaluate", "--qrels", qrels, run]);
    job(&other).fails(1).says("no query of this run has judgements in");
    job(&broken).fails(1).says("broken: line 2: expected `qid Q0 document rank score tag`");
    job(&scratch.path("missing")).fails(1).says("missing");
    job(&scratch.path("")).fails(1).says("folder");
    job(&run).args(["-m", "P"]).fails(2).says("it needs a cutoff");
    millrace(args!["evaluate", "--qrels", "-", "-"]).fails(2).says("only once");
    millrace(args!["evaluate", "--qrels", run, run])
        .fails(1)
        .says("line 1: expected `qid iteration");
    let packed = scratch.write("run.gz", gzip(b"1 Q0 a 1 1 t\n", 1));
    assert!(job(&packed).ok().text().contains("nDCG@10"));
}

/// A fused run is a run: it can be evaluated, and its lines are those of the definition.
#[test]
fn runs_are_fused() {
    let scratch = Scratch::new();
    let one = scratch.write("one", "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\n");
    let two = scratch.write("two", "q1\tb\t1\nq2\tc\t1\n");
    let fuse = || millrace(args!["fuse", one, two]);
    let text = |job: Job| String::from_utf8(job.ok().stdout).unwrap();
    let b = 1.0 / 62.0 + 1.0 / 61.0;
    let a = 1.0 / 61.0;
    let expected = format!("q1 Q0 b 1 {b} fused\nq1 Q0 a 2 {a} fused\nq2 Q0 c 1 {a} fused\n");
    assert_eq!(text(fuse()), expected);
    let expected = "q1 Q0 a 1 1 x\nq2 Q0 c 1 1 x\n";
    assert_eq!(text(fuse().args(["--method", "combsum", "-k", "1", "--tag", "x"])), expected);
    let qrels = scratch.write("qrels", "q1 0 b 1\nq2 0 c 1\n");
    let fused = text(fuse());
    let means = millrace(args!["evaluate", "--json", "--qrels", qrels, "-"]).stdin(fused).ok();
    assert_eq!(means.json_lines()[0]["measures"]["RR"], 1.0);
    millrace(args!["fuse", one]).fails(2).says("two runs or more");
    fuse().args(["--method", "combsum", "--rrf-k", "3"]).fails(2).says("goes with --method rrf");
    fuse().args(["--rrf-k", "-1"]).fails(2);
    fuse().arg(scratch.path("missing")).fails(1).says("missing");
}

/// Each pair of the grid has what `query` and `evaluate` find for it, and what was held out is put
/// together of them.
#[test]
fn tune_finds_what_evaluate_finds() {
    let Some(folder) = shared("collections/cacm") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![folder.join("corpus.jsonl")]);
    let qrels = folder.join("qrels.txt");
    let queries = folder.join("queries.tsv");
    let tune = args!["tune", "--index", index, "--qrels", qrels, "--json", "-w", "2"];
    let job = millrace(tune).args(["--k1", "0.5,2", "--b", "0.3,0.9", "--folds", "4"]);
    let found = job.arg(&queries).ok().says("5 settings of k1 and b").json_lines().remove(0);
    let grid = found["grid"].as_array().unwrap();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (pair, expected) in
        grid.iter().zip([[0.5, 0.3], [0.5, 0.9], [2.0, 0.3], [2.0, 0.9], [1.2, 0.75]])
    {
        assert_eq!([&pair["k1"], &pair["b"]].map(|number| number.as_f64().unwrap()), expected);
        let [k1, b] = expected.map(|number| number.to_string());
        let ask = args![
            "query", "--quiet", "-k", "1000", "--k1", k1, "--b", b, "--index", index, queries
        ];
        let run = millrace(ask).ok().stdout;
        let job = millrace(args!["evaluate", "--json", "-m", "nDCG@10", "--qrels", qrels, "-"]);
        let evaluated = job.stdin(run).ok().json_lines().remove(0);
        let mean = evaluated["measures"]["nDCG@10"].as_f64().unwrap();
        assert!((pair["mean"].as_f64().unwrap() - mean).abs() < 1e-12, "{pair}: {mean}");
        let values = evaluated["per_query"].as_object().unwrap();
        columns.push(values.values().map(|value| value["nDCG@10"].as_f64().unwrap()).collect());
    }
    let best = grid.iter().map(|pair| pair["mean"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(found["best"]["mean"], best);
    assert_eq!(found["default"], grid[4]);
    // What is held out can be no better than the best for each query, and the folds make the mean.
    let validated = &found["cross_validated"];
    let folds = validated["folds"].as_array().unwrap();
    let all: f64 = folds.iter().map(|fold| fold["queries"].as_f64().unwrap()).sum();
    let sum = |fold: &Value| fold["queries"].as_f64().unwrap() * fold["test"].as_f64().unwrap();
    let mean = validated["mean"].as_f64().unwrap();
    assert!((folds.iter().map(sum).sum::<f64>() / all - mean).abs() < 1e-9);
    assert_eq!((folds.len(), all as usize), (4, columns[0].len()));
    let bound: f64 = (0..all as usize)
        .map(|query| columns.iter().map(|column| column[query]).fold(0.0, f64::max))
        .sum();
    assert!(mean <= bound / all);
    // Other scores have other parameters.
    let job = millrace(args![
        "tune", "--index", index, "--qrels", qrels, "--score", "bm25plus", "--json", &queries
    ]);
    let job = job.args(["--k1", "0.9", "--b", "0.4", "--score-delta", "0,0.3"]);
    let found = job.ok().says("3 settings of score-delta, k1 and b").json_lines().remove(0);
    assert_eq!(found["score"], "bm25plus");
    let deltas: Vec<f64> = found["grid"]
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| {
            let delta = setting["score-delta"].as_f64().unwrap();
            let run = millrace(args!["query", "--quiet", "-k", "1000", "--index", index, &queries])
                .args(["--score", "bm25plus", "--score-delta", &delta.to_string()])
                .args(["k1", "b"].map(|name| format!("--{name}={}", setting[name])))
                .ok()
                .stdout;
            let job = millrace(args!["evaluate", "--json", "-m", "nDCG@10", "--qrels", qrels, "-"]);
            let evaluated = job.stdin(run).ok().json_lines().remove(0);
            let mean = evaluated["measures"]["nDCG@10"].as_f64().unwrap();
            assert!((setting["mean"].as_f64().unwrap() - mean).abs() < 1e-12, "{setting}: {mean}");
            delta
        })
        .collect();
    assert_eq!(deltas, [0.0, 0.3, 1.0]);
    let page = scratch.path("tune.html");
    let job =
        millrace(args!["tune", "--index", index, "--qrels", qrels, "--report", page, &queries]);
    let told = job.args(["--score", "ql", "--mu", "100,1000", "-m", "AP"]).ok();
    let lines: Vec<&str> = told.text().lines().collect();
    assert!(lines[0].trim_start().starts_with("mu") && lines[0].ends_with("AP"), "{lines:?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<th>mean</th><th>mu</th>"), "{page}");
    let wrong = |more: &[&str], says: &str| {
        let job = millrace(args!["tune", "--index", index, "--qrels", qrels, queries]).args(more);
        job.fails(2).says(says);
    };
    wrong(&["--folds", "1"], "--folds is 2 to the number of judged queries, which is 52");
    wrong(&["--k1=-1"], "k1");
    wrong(&["--mu", "9"], "--mu does not go with --score bm25");
    wrong(&["--score", "dph"], "--score: dph has no parameters");
    wrong(&["--b", "1.5"], "b");
}
