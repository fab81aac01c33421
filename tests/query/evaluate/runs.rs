//! Ties, runs in JSON, warnings, several tests at once, and fusion by weights.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Twelve queries; each has `a` judged, and the run has as many lines as `lines` makes of it.
fn twelve(lines: impl Fn(usize) -> String) -> String {
    (1..=12).map(lines).collect()
}

fn measures(job: Job) -> Value {
    job.args(["--json", "--quiet"]).ok().json_lines()[0]["measures"].clone()
}

/// By name P@1 takes the greater and Judged@1 the lesser; by rank both take the same document.
#[test]
fn ties_go_by_name_or_by_the_ranks_of_the_file() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n2 0 a 1\n");
    let lines = "2 Q0 a 2 1 t\n1 Q0 b 2.0 2 t\n2 Q0 b 1 1 t\n1 Q0 a 1.0 2 t\n";
    let trec = scratch.write("trec", lines);
    let tsv = scratch.write("tsv", "2\t2\ta\t7\t1\n1\t2\tb\t8\t2\n2\t1\tb\t8\t1\n1\t1\ta\t7\t2\n");
    let json = scratch.write("json", r#"{"2": {"b": 1, "a": 1}, "1": {"a": 2, "b": 2}}"#);
    let none = scratch.write("none", "2 Q0 b - 1 t\n1 Q0 a - 2 t\n2 Q0 a - 1 t\n1 Q0 b - 2 t\n");
    for run in [&trec, &tsv, &json, &none] {
        let job = |ties: &str| {
            let job = millrace(args!["evaluate", "--qrels", qrels, "--ties", ties, run]);
            measures(job.args(["-m", "P@1", "-m", "Judged@1", "-m", "RR", "-m", "RR@2"]))
        };
        let by_name = job("trec_eval");
        let values = ["P@1", "Judged@1", "RR", "RR@2"].map(|name| by_name[name].as_f64().unwrap());
        assert_eq!(values, [0.0, 1.0, 0.5, 1.0], "{}", run.display());
        let by_rank = job("run");
        let values = ["P@1", "Judged@1", "RR", "RR@2"].map(|name| by_rank[name].as_f64().unwrap());
        assert_eq!(values, [0.5, 0.5, 0.75, 0.75], "{}", run.display());
    }
    millrace(args!["evaluate", "--qrels", qrels, "--ties", "name", trec])
        .fails(2)
        .says("trec_eval");
}

/// Said only where the printed figure depends on it: not within the first k, not among documents of
/// the same level, not with a single score.
#[test]
fn ties_over_a_cutoff_are_told() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n1 0 c 0\n");
    let job = |lines: &str, measure: &str| {
        let run = scratch.write("run", lines);
        millrace(args!["evaluate", "--qrels", qrels, "-m", measure, run]).ok().stderr
    };
    let tied = "1 Q0 x 1 3 t\n1 Q0 a 2 2 t\n1 Q0 b 3 2 t\n1 Q0 c 4 2 t\n";
    for (measure, told) in [
        ("P@2", "P@2 is 0.0000 to 0.5000"),
        ("Judged@2", "Judged@2 is 0.0000 to 0.5000"),
        ("Success@3", "Success@3 is 0.0000 to 1.0000"),
        ("nDCG@2", "nDCG@2 is 0.0000 to 0.6309"),
    ] {
        let said = job(tied, measure);
        assert!(said.contains("on both sides of a cutoff") && said.contains(told), "{said}");
    }
    for (lines, measure) in [
        (tied, "P@1"),
        (tied, "P@4"),
        (tied, "AP"),
        ("1 Q0 a 1 3 t\n1 Q0 x 2 2 t\n1 Q0 y 3 2 t\n", "P@2"),
        ("1 Q0 a 1 3 t\n1 Q0 b 2 2.5 t\n1 Q0 c 3 2 t\n", "P@2"),
    ] {
        assert!(!job(lines, measure).contains("cutoff"), "{lines} {measure}");
    }
}

#[test]
fn runs_in_json_are_those_of_trec() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", "1 0 a 1\n2 0 d\u{e9} 1\n\"3{: 0 a 1\n");
    let trec =
        "1 Q0 a 1 1.5 t\n1 Q0 b 2 1 t\n2 Q0 x 1 -1 t\n2 Q0 d\u{e9} 2 -2.5e1 t\n\"3{: Q0 a 1 2 t\n";
    let trec = scratch.write("trec", trec);
    let line = r#"{"1":{"a":1.5,"b":1},"2":{"x":-1,"d\u00e9":-2.5e1},"\"3{:":{"a":2},"4":{}}"#;
    let several = line.replace(',', ",\n  ").replace(":{", " :\n {");
    let evaluate = |run: &Path| millrace(args!["evaluate", "--qrels", qrels, run]);
    let expected = measures(evaluate(&trec));
    for json in [
        scratch.write("line", line),
        scratch.write("several", format!("\n{several}\n\n")),
        scratch.write("marked", format!("\u{feff}{line}")),
        scratch.write("packed", gzip(line.as_bytes(), 1)),
    ] {
        assert_eq!(measures(evaluate(&json)), expected, "{}", json.display());
        let fused = |run: &Path| millrace(args!["fuse", run, run]).ok().stdout;
        assert_eq!(fused(&json), fused(&trec), "{}", json.display());
    }
    assert_eq!(measures(evaluate(Path::new("-")).stdin(line)), expected);
    for (bad, what) in [
        (r#"{"1":{"a":"x"}}"#, "expected f32 at line 1 column"),
        (r#"{"1":{"a":null}}"#, "expected f32 at line 1 column"),
        (r#"{"1":{"a":1},"2":3}"#, "an object of queries, each an object with a number for each"),
        (r#"{"1":{"a":1}"#, "EOF while parsing an object"),
        (r#"{"1":{"a":1}} more"#, "trailing characters"),
        (r#"{"1":{"a":1,"a":2}}"#, "query 1 has document a more than once"),
    ] {
        evaluate(&scratch.write("bad", bad)).fails(1).says("bad: ").says(what);
    }
}

#[test]
fn candidates_come_from_json() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let line = |n: usize| format!("{{\"id\":\"d{n}\",\"text\":\"water mill {n}\"}}\n");
    build(&index, args![scratch.write("docs.jsonl", (0..9).map(line).collect::<String>())]);
    let run = scratch.write("run.json", r#"{"1": {"d3": 2.5, "d7": 1}}"#);
    let job = millrace(args!["query", "--index", index, "--candidates", run]);
    let told = job.stdin("1\twater\n2\tmill\n").ok();
    let names: Vec<&str> = told.text().lines().map(|l| l.split(' ').nth(2).unwrap()).collect();
    assert_eq!(names, ["d3", "d7"]);
}

/// With nine of ten judged queries that find nothing judged among the first ten, of ten or more.
#[test]
fn a_run_that_finds_next_to_nothing_is_warned_of() {
    let scratch = Scratch::new();
    let warning = "have no judged document among their first 10";
    for (queries, lost, is_told) in
        [(9, 8, false), (10, 8, false), (10, 9, true), (12, 10, false), (12, 11, true)]
    {
        let qrels: String = (1..=queries).map(|q| format!("{q} 0 a 1\n")).collect();
        let other = |q: usize, n: usize| format!("{q} Q0 x{n} {n} {} t\n", 99 - n);
        let others = |q: usize| -> String {
            (0..if q <= lost { 10 } else { 9 }).map(|n| other(q, n)).collect()
        };
        let run = (1..=queries).map(|q| format!("{}{q} Q0 a 11 1 t\n", others(q)));
        let run = scratch.write("run", run.collect::<String>());
        let qrels = scratch.write("qrels", qrels);
        let said = millrace(args!["evaluate", "--qrels", qrels, "-m", "AP", run]).ok().stderr;
        assert_eq!(said.contains(warning), is_told, "{queries} {lost}: {said}");
        assert!(!is_told || said.contains(&format!("{lost} of {queries} judged queries")));
    }
    let index = scratch.path("index");
    let line = |n: usize| format!("{{\"id\":\"d{n}\",\"text\":\"water{} mill{n}\"}}\n", n % 2);
    build(&index, args![scratch.write("docs.jsonl", (1..=24).map(line).collect::<String>())]);
    let judged = |shift: usize| twelve(|q| format!("{q} 0 d{} 1\n{q} 0 d{q} 0\n", q + shift));
    let queries = |shift: usize| twelve(|q| format!("{q}\tmill{}\n", q + shift));
    let right = scratch.write("right", queries(0));
    let wrong = scratch.write("wrong", queries(1));
    let qrels = scratch.write("qrels", judged(12));
    for (queries, is_told) in [(&right, false), (&wrong, true)] {
        let query = args!["query", "--index", index, "--qrels", qrels, queries];
        assert_eq!(millrace(query).ok().stderr.contains("none of the documents"), is_told);
        let tune = args!["tune", "--index", index, "--qrels", qrels, "--folds", "2", queries];
        let tune = || millrace(&tune).args(["--k1", "1", "--b", "0.5"]);
        let told = tune().ok();
        let last: Vec<&str> = told.text().lines().rev().take(2).collect();
        assert_eq!(last[0].starts_with("warning   with the best setting: 12 of 12"), is_told);
        assert_eq!(last[1].starts_with("verdict"), is_told, "{last:?}");
        let json = tune().arg("--json").ok();
        assert_eq!(json.json_lines()[0].get("warning").is_some(), is_told);
        assert_eq!(json.stderr.contains(warning), is_told);
    }
}

/// statsmodels 0.14: `multipletests(p, method="holm")`, worked out by hand here: sorted, the least
/// p counts for all runs, the next for one less, and none is below the one before.
#[test]
fn p_of_several_runs_is_adjusted() {
    let scratch = Scratch::new();
    let qrels = scratch.write("qrels", twelve(|q| format!("{q} 0 a 1\n")));
    let run = |name: &str, better: usize| {
        let line = |q: usize| match q <= better {
            true => format!("{q} Q0 a 1 2 t\n{q} Q0 x 2 1 t\n"),
            false => format!("{q} Q0 x 1 2 t\n{q} Q0 a 2 1 t\n"),
        };
        scratch.write(name, twelve(line))
    };
    let [base, one, many, same] =
        [("base", 0), ("one", 3), ("many", 8), ("same", 0)].map(|(name, better)| run(name, better));
    let job = |runs: &[&Path]| {
        let job = millrace(args!["evaluate", "--qrels", qrels, "-m", "RR", "-m", "NumRet"]);
        runs.iter().fold(job, |job, run| job.arg(run))
    };
    let rows = job(&[&base, &one, &many, &same]).arg("--json").ok().json_lines();
    let of = |run: usize, p: &str| rows[run]["against"]["measures"]["RR"][p].as_f64();
    for p in ["t_test_p", "randomisation_p"] {
        let holm = format!("{p}_holm");
        let [one, many] = [of(1, p).unwrap(), of(2, p).unwrap()];
        assert!(many < one, "{p}");
        assert_eq!(of(2, &holm), Some(many * 3.0));
        assert_eq!(of(1, &holm), Some((one * 2.0).max(many * 3.0).min(1.0)));
    }
    assert_eq!([of(3, "t_test_p"), of(3, "t_test_p_holm")], [None, None]);
    assert_eq!(of(3, "randomisation_p_holm"), Some(1.0));
    let text = job(&[&base, &one, &many]).ok();
    assert!(text.text().contains("Holm (t-test)  Holm (randomisation)"), "{}", text.text());
    let two = job(&[&base, &one]);
    assert!(!two.ok().text().contains("Holm"));
    let two = job(&[&base, &one]).arg("--json").ok().json_lines();
    let row = &two[1]["against"]["measures"];
    assert!(row["RR"].get("t_test_p_holm").is_none());
    // A count is a sum, and so is its difference.
    assert_eq!(two[0]["measures"]["NumRet"], 24.0);
    assert_eq!(row["NumRet"]["difference"], 0.0);
}

#[test]
fn runs_are_fused_by_weights_and_other_methods() {
    let scratch = Scratch::new();
    let one = scratch.write("one", "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n");
    let two = scratch.write("two", "q Q0 b 1 9 t\nq Q0 d 2 8 t\nq Q0 c 3 1 t\np Q0 z 1 5 t\n");
    let fuse = |args: &[&str]| millrace(args!["fuse", one, two]).args(args);
    let sums = |args: &[&str]| -> Vec<(String, f64)> {
        let text = fuse(args).ok();
        let rows = text.text().lines().filter(|line| line.starts_with('q'));
        let words = rows.map(|line| line.split(' ').collect::<Vec<_>>());
        words.map(|words| (words[2].to_string(), words[4].parse().unwrap())).collect()
    };
    let d = 7.0 / 8.0;
    let [b, c] = [2.0 / 62.0 + 1.0 / 61.0, 2.0 / 63.0 + 1.0 / 63.0];
    for (args, expected) in [
        ("--method combmnz", [("b", 3.0), ("a", 1.0), ("d", d), ("c", 0.0)]),
        ("--method combmax", [("a", 1.0), ("b", 1.0), ("d", d), ("c", 0.0)]),
        ("--method combmin", [("a", 1.0), ("d", d), ("b", 0.5), ("c", 0.0)]),
        ("--method combsum --weights 1,0.5", [("a", 1.0), ("b", 1.0), ("d", d / 2.0), ("c", 0.0)]),
        ("--method combmnz --weights 2,1", [("b", 4.0), ("a", 2.0), ("d", d), ("c", 0.0)]),
        ("--method combmax --weights 0,2", [("b", 2.0), ("d", 2.0 * d), ("a", 0.0), ("c", 0.0)]),
        ("--weights=2,1", [("b", b), ("c", c), ("a", 2.0 / 61.0), ("d", 1.0 / 62.0)]),
    ] {
        let expected = expected.map(|(name, sum)| (name.to_string(), sum));
        assert_eq!(sums(&args.split(' ').collect::<Vec<_>>()), expected, "{args}");
    }
    assert_eq!(sums(&["--weights", "1,1"]), sums(&[]));
    for wrong in ["1", "1,2,3", "-1,1", "1,NaN", "1,inf", "0,0"] {
        let job = fuse(&["--weights", wrong]).fails(2);
        job.says("--weights: expected a number for each run, 0 or more");
    }
    fuse(&["--weights", "x,1"]).fails(2).says("--weights");
    fuse(&["--method", "combmax", "--rrf-k", "3"]).fails(2).says("goes with --method rrf");
    // Nothing is written where a later query is wrong.
    let twice = scratch.write("twice", "q Q0 a 1 3 t\nr Q0 b 2 2 t\nr Q0 b 3 1 t\n");
    let job = millrace(args!["fuse", one, twice]).fails(1).says("document b more than once");
    assert!(job.stdout.is_empty());
}

/// The cases of reports that are kept beside the repository.
#[test]
fn reported_runs_of_other_depth_are_fused() {
    let Some(folder) = shared("reports/114-fuse-depth") else { return };
    let [a, b] = ["a", "b"].map(|name| folder.join(name));
    let fuse = |runs: [&Path; 2], method: &str| {
        let told = millrace(args!["fuse", "--method", method, runs[0], runs[1]]).ok();
        let mut lines: Vec<String> = told.text().lines().map(str::to_string).collect();
        // Queries are in the order in which the runs name them.
        lines.sort();
        lines.join("\n")
    };
    for method in ["rrf", "combsum", "combmnz", "combmax", "combmin"] {
        let text = fuse([&a, &b], method);
        assert!(!text.contains("NaN") && text.contains("\n2 Q0 x ") && text.contains("\n4 Q0 r "));
        assert_eq!(text, fuse([&b, &a], method), "{method}");
    }
}
