//! The values of `evaluate` are those of ir_measures 0.4.3 (which asks trec_eval 9).

use crate::support::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

mod runs;

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
    // A best value on the border is said, and others beyond are tried.
    let narrow = |more: &[&str]| {
        let job = millrace(args!["tune", "--index", index, "--qrels", qrels, &queries]);
        job.args(["--json", "--k1", "0.5,2", "--b", "0.4"]).args(more).ok()
    };
    let first = narrow(&[]).says("the best k1 is on the border of the values that were tried: --w");
    let wide = narrow(&["--wider"]);
    assert!(!wide.stderr.contains("--wider goes on"), "{wide:?}");
    let [first, wide] = [first, wide].map(|job| job.json_lines().remove(0));
    assert!(wide["best"]["k1"].as_f64() > first["best"]["k1"].as_f64(), "{wide}");
    assert!(wide["best"]["mean"].as_f64() >= first["best"]["mean"].as_f64(), "{wide}");
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
    let held = browser::held(&page);
    let mus: Vec<&Value> = held["grid"].as_array().unwrap().iter().map(|row| &row["mu"]).collect();
    assert_eq!(mus, [100.0, 1000.0]);
    let against = &held["cross_validated"]["against_default"];
    let [p, difference] = ["t_test_p", "difference"].map(|name| against[name].as_f64().unwrap());
    let found = match difference < 0.0 {
        _ if p >= 0.05 => "not clearly better or worse than the default",
        true => "worse than the default",
        false => "better than the default",
    };
    let verdict = format!("verdict   on other queries, chosen settings are {found} (p ");
    let last = lines[lines.len() - 1];
    assert!(
        last.starts_with(&verdict) && last.ends_with("so few folds make p less certain"),
        "{lines:?}"
    );
    let wrong = |more: &[&str], says: &str| {
        let job = millrace(args!["tune", "--index", index, "--qrels", qrels, queries]).args(more);
        job.fails(2).says(says);
    };
    wrong(&["--folds", "1"], "--folds must be from 2 to the number of judged queries, which is 52");
    wrong(&["--k1=-1"], "k1");
    wrong(&["--mu", "9"], "--mu does not go with --score bm25");
    wrong(&["--score", "dph"], "--score: dph has no parameters");
    wrong(&["--b", "1.5"], "b");
}

/// `-0.0` is the sum of nothing, and means and differences that round to nothing have no sign.
#[test]
fn no_zero_has_a_sign() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n2 0 a 1\n3 0 a 0\n");
    let some = scratch.write("some", "1 Q0 a 1 1 t\n");
    let none = scratch.write("none", "1 Q0 x 1 1 t\n3 Q0 a 1 1 t\n");
    let measures = ["nDCG@10", "nDCG", "AP", "RR", "ERR@10", "RBP", "Rprec", "Bpref", "P@5"];
    for runs in [vec![&some], vec![&none], vec![&some, &none], vec![&none, &none]] {
        let job = millrace(args!["evaluate", "--per-query", "--qrels", qrels]);
        let job = measures.iter().fold(job, |job, name| job.args(["-m", name]));
        let job = runs.iter().fold(job, |job, run| job.arg(run));
        let text = job.ok().text().to_string();
        assert!(text.contains("0.0000") && !text.contains("-0.0000"), "{text}");
        let job = millrace(args!["evaluate", "--json", "--qrels", qrels]);
        let job = measures.iter().fold(job, |job, name| job.args(["-m", name]));
        let json = runs.iter().fold(job, |job, run| job.arg(run)).ok();
        let signed = ["-0.0,", "-0.0}"].iter().any(|zero| json.text().contains(zero));
        assert!(json.text().contains(":0.0,") && !signed, "{}", json.text());
    }
}

#[test]
fn small_probabilities_are_not_shown_as_none() {
    let scratch = Scratch::new();
    let lines = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<String>();
    let qrels = scratch.write("qrels", lines(&|q| format!("{q} 0 a 1\n{q} 0 b 1\n")));
    let bad = scratch.write("bad", lines(&|q| format!("{q} Q0 x 1 2 t\n{q} Q0 a 2 1 t\n")));
    let more = |q| if q % 2 == 0 { format!("{q} Q0 b 2 1 t\n") } else { String::new() };
    let good = scratch.write("good", lines(&|q| format!("{q} Q0 a 1 2 t\n{}", more(q))));
    let job = || millrace(args!["evaluate", "--qrels", qrels, "-m", "AP", bad, good]);
    let row = job().ok().text().lines().last().unwrap().to_string();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[0], &words[4..]), ("AP", &["<0.0001", "<0.0001"][..]), "{row}");
    let json = job().args(["--json"]).ok().json_lines();
    let ap = &json[1]["against"]["measures"]["AP"];
    for p in ["t_test_p", "randomisation_p"] {
        let p = ap[p].as_f64().unwrap();
        assert!(p > 0.0 && p < 0.0001, "{ap}");
    }
}

/// The values are 0, as in trec_eval, but not without a word.
#[test]
fn a_run_without_any_judged_document_is_remarked_on() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 D1 1\n1 0 D0 0\n2 0 D2 1\n");
    let stranger = scratch.write("stranger", "2 Q0 d2 1 1 t\n1 Q0 d1 1 1 t\n");
    let crossed = scratch.write("crossed", "2 Q0 D1 1 1 t\n1 Q0 D2 1 1 t\n");
    let known = scratch.write("known", "1 Q0 D0 1 1 t\n2 Q0 d2 1 1 t\n");
    let job = |run: &Path| millrace(args!["evaluate", "--qrels", qrels, "-m", "AP", run]);
    let warning = "none of the documents of this run is judged for its query";
    let told = job(&stranger).ok().says(warning).says("For query 1 the run has `d1` and");
    let told = told.says("has `D0`; are the names the same?");
    let values: Vec<&str> = told.text().split_whitespace().collect();
    assert_eq!(values[2..], ["AP", "0.0000", "queries", "2"]);
    job(&crossed).ok().says(warning);
    assert!(!job(&known).ok().stderr.contains(warning));
}

/// One of each: the name that is read, ours, and the value.
#[test]
fn names_of_trec_eval_are_read_and_those_of_ir_measures_written() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n1 0 b 2\n");
    let run = scratch.write("run", "# made by hand\n1 Q0 x 1 3 a tag\n1 Q0 b 2 2 of words\n");
    for (read, written) in [
        ("ndcg_cut_10", "nDCG@10"),
        ("map", "AP"),
        ("map_cut_5", "AP@5"),
        ("recip_rank", "RR"),
        ("P_10", "P@10"),
        ("recall_1000", "R@1000"),
        ("success_1", "Success@1"),
        ("Rprec", "Rprec"),
        ("bpref", "Bpref"),
    ] {
        let values = |name: &str| {
            let job = millrace(args!["evaluate", "--json", "--qrels", qrels, "-m", name, run]);
            job.ok().json_lines()[0]["measures"].clone()
        };
        let found = values(read);
        assert_eq!(found.as_object().unwrap().keys().collect::<Vec<_>>(), [written]);
        assert_eq!(found, values(written));
    }
    let job = millrace(args!["evaluate", "--qrels", qrels, "-m", "gm_map", run]);
    job.fails(2).says("`gm_map` is not a measure").says("ndcg_cut_10");
    let job = millrace(args!["evaluate", "--qrels", qrels, "-m", "AP,P@5", run]);
    job.fails(2).says("each of several has its own -m");
}

/// Values that the first hits cannot have are named, with the `-k` that is enough.
#[test]
fn too_few_hits_for_a_measure_are_remarked_on() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let lines: String =
        (0..30).map(|n| format!("{{\"id\":\"d{n}\",\"text\":\"water mill {n}\"}}\n")).collect();
    build(&index, args![scratch.write("docs.jsonl", lines)]);
    let qrels = scratch.write("qrels", "1 0 d17 1\n2 0 d9 1\n");
    let queries = scratch.write("queries.tsv", "1\twater\n2\tmill\n");
    let query = |k: &str| {
        millrace(args!["query", "--index", index, "--qrels", qrels, "-k", k, queries]).ok()
    };
    let few = "AP, RR, R@100, R@1000, Bpref: only the first 10 hits of a query count here";
    query("10").says(few).says("-k 1000 is enough");
    assert!(!query("1000").stderr.contains("count here"));
    let evaluate = |run: &[u8], measures: &str| {
        let measures = measures.split(',').flat_map(|measure| ["-m", measure]);
        millrace(args!["evaluate", "--qrels", qrels, "-"]).args(measures).stdin(run).ok()
    };
    let run = query("10").stdout;
    evaluate(&run, "AP,R@5,R@100").says("-: AP, R@100: only the first 10 hits of a query count");
    evaluate(&run, "AP").says("-k 1000 is enough");
    // What no cutoff explains: rankings of several lengths, enough hits, counts of hits, and all
    // that is relevant among them.
    let uneven = run.split_inclusive(|&byte| byte == b'\n').skip(1).flatten().copied();
    let uneven: Vec<u8> = uneven.collect();
    let whole = query("20").stdout;
    let others = [(&run, "P@10,R@5"), (&run, "NumRet,SetP"), (&whole, "AP,R@100")];
    for (run, measures) in others.into_iter().chain([(&uneven, "AP,R@100")]) {
        assert!(!evaluate(run, measures).stderr.contains("count here"), "{measures}");
    }
    let tune = |k: &str| {
        let job = millrace(args!["tune", "--index", index, "--qrels", qrels, "-k", k, queries]);
        job.args(["--k1", "1", "--b", "0.5", "--folds", "2"]).ok()
    };
    tune("5").says("nDCG@10: only the first 5 hits of a query count here").says("-k 10 is enough");
    assert!(!tune("10").stderr.contains("count here"));
}

/// A run that is fused of runs with infinite scores can be measured.
#[test]
fn infinite_scores_are_fused() {
    let scratch = Scratch::new();
    let one = scratch.write("one", "1 Q0 d1 1 5 A\n1 Q0 d2 2 4 A\n");
    let two = scratch.write("two", "1 Q0 d1 1 inf B\n1 Q0 d2 2 1 B\n1 Q0 d3 3 -inf B\n");
    let fused = millrace(args!["fuse", "--method", "combsum", one, two]).ok().stdout;
    let text = String::from_utf8(fused).unwrap();
    assert_eq!(text, "1 Q0 d1 1 2 fused\n1 Q0 d2 2 0.5 fused\n1 Q0 d3 3 0 fused\n");
    let qrels = scratch.write("qrels", "1 0 d1 1\n");
    let job = millrace(args!["evaluate", "--json", "-m", "RR", "--qrels", qrels, "-"]);
    assert_eq!(job.stdin(text).ok().json_lines()[0]["measures"]["RR"], 1.0);
}

/// The cases of reports that are kept beside the repository.
#[test]
fn reported_runs_are_measured_and_fused() {
    if let Some(folder) = shared("reports/44-eval-negzero") {
        let job = millrace(args!["evaluate", "--qrels", folder.join("q"), folder.join("r")]);
        let told = job.args(["--per-query", "-m", "nDCG", "-m", "AP"]).ok();
        assert!(!told.text().contains("-0.0") && told.text().contains("0.0000"));
    }
    if let Some(folder) = shared("reports/62-fuse-inf") {
        let files = args!["fuse", "--method", "combsum", folder.join("a"), folder.join("b")];
        let text = String::from_utf8(millrace(files).ok().stdout).unwrap();
        assert_eq!(text, "1 Q0 d1 1 2 fused\n1 Q0 d2 2 0 fused\n");
    }
}
