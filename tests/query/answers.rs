//! Queries are answered rightly, and in their order.

mod operators;

use crate::support::fixture::{Fixture, bits, hits};
use crate::support::*;
use millrace::inside::text::Analysis;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// BM25 as the contract has it, over all documents, one by one.
struct Naive {
    docs: Vec<BTreeMap<String, u32>>,
    lengths: Vec<u32>,
    df: HashMap<String, u32>,
    mean: f64,
}

/// A query and the documents that have any of its terms.
struct Matches {
    terms: Vec<(String, u32)>,
    docs: Vec<(u32, Vec<u32>)>,
}

#[derive(Clone, Copy)]
struct Setting {
    k: usize,
    mode: &'static str,
    k1: f64,
    b: f64,
    idf: &'static str,
}

const DEFAULT: Setting = Setting { k: 10, mode: "or", k1: 1.2, b: 0.75, idf: "lucene" };

impl Naive {
    fn new(docs: &[Doc]) -> Self {
        let mut counted = Vec::new();
        let mut lengths = Vec::new();
        let mut df = HashMap::new();
        for doc in docs {
            let mut terms = BTreeMap::new();
            Analysis::default().terms(doc.text.as_bytes(), |term| {
                *terms.entry(term.to_string()).or_insert(0) += 1;
            });
            terms.keys().for_each(|term| *df.entry(term.clone()).or_insert(0) += 1);
            lengths.push(terms.values().sum());
            counted.push(terms);
        }
        let tokens: u64 = lengths.iter().map(|&l: &u32| u64::from(l)).sum();
        let mean = tokens as f64 / docs.len() as f64;
        Self { docs: counted, lengths, df, mean }
    }

    /// The query's terms, by first appearance, with their number; and of each document with any of
    /// them how often it has each.
    fn matches(&self, query: &str) -> Matches {
        let mut terms: Vec<(String, u32)> = Vec::new();
        Analysis::default().terms(query.as_bytes(), |term| {
            match terms.iter_mut().find(|(t, _)| t == term) {
                Some((_, times)) => *times += 1,
                None => terms.push((term.to_string(), 1)),
            }
        });
        let mut docs = Vec::new();
        for (doc, docid) in self.docs.iter().zip(0..) {
            let tfs: Vec<u32> =
                terms.iter().map(|(t, _)| doc.get(t).copied().unwrap_or(0)).collect();
            if tfs.iter().any(|&tf| tf > 0) {
                docs.push((docid, tfs));
            }
        }
        Matches { terms, docs }
    }

    /// The best hits: docid and score.
    fn search(&self, matches: &Matches, setting: Setting) -> Vec<(u32, f32)> {
        let any = |_: &[u32]| true;
        let all = |tfs: &[u32]| tfs.iter().all(|&tf| tf > 0);
        match setting.mode {
            "or" => self.rank(matches, setting, any),
            "and" => self.rank(matches, setting, all),
            _ => match self.rank(matches, setting, all) {
                hits if hits.len() >= setting.k => hits,
                _ => self.rank(matches, setting, any),
            },
        }
    }

    fn rank(
        &self,
        matches: &Matches,
        setting: Setting,
        wanted: impl Fn(&[u32]) -> bool,
    ) -> Vec<(u32, f32)> {
        let Setting { k, k1, b, idf, .. } = setting;
        let n = self.docs.len() as f64;
        let weight = |(term, times): &(String, u32)| {
            let df = f64::from(self.df.get(term).copied().unwrap_or(0));
            let odds = (n - df + 0.5) / (df + 0.5);
            let idf = if idf == "lucene" { (1.0 + odds).ln() } else { odds.ln().max(1e-6) };
            (f64::from(*times) * idf * (k1 + 1.0)) as f32
        };
        let weights: Vec<f32> = matches.terms.iter().map(weight).collect();
        let mut hits = Vec::new();
        for (docid, tfs) in matches.docs.iter().filter(|(_, tfs)| wanted(tfs)) {
            let length = f64::from(self.lengths[*docid as usize]);
            let norm = (k1 * (1.0 - b + b * length / self.mean)) as f32;
            let mut score = 0f32;
            for (&tf, &weight) in tfs.iter().zip(&weights).filter(|&(&tf, _)| tf > 0) {
                score += (weight * tf as f32) / (tf as f32 + norm);
            }
            hits.push((*docid, score));
        }
        hits.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
        hits.truncate(k);
        hits
    }
}

#[test]
fn oracle_every_setting_equals_naive_scoring() {
    let fixture = Fixture::new(21, 3000);
    let naive = Naive::new(&fixture.collection.docs);
    let queries = fixture.queries(210, 240);
    let matches: Vec<Matches> = queries.iter().map(|query| naive.matches(query)).collect();
    let lines = queries.join("\n") + "\n";
    let mut settings = Vec::new();
    for mode in ["or", "and", "and-or"] {
        for k in [1, 3, 10, 5000] {
            settings.push(Setting { mode, k, ..DEFAULT });
        }
        settings.push(Setting { mode, idf: "robertson", ..DEFAULT });
    }
    for (k1, b) in [(0.0, 0.75), (1.2, 0.0), (1.2, 1.0), (0.9, 0.4), (100.0, 0.5), (1e9, 1.0)] {
        settings.push(Setting { k1, b, k: 20, ..DEFAULT });
    }
    for setting in settings {
        let Setting { k, mode, k1, b, idf } = setting;
        let k = k.to_string();
        let k1 = k1.to_string();
        let b = b.to_string();
        let more = ["--mode", mode, "-k", &k, "--k1", &k1, "--b", &b, "--idf", idf];
        let answers =
            fixture.query(&more).args(["--format", "jsonl"]).stdin(&*lines).ok().json_lines();
        assert_eq!(answers.len(), queries.len());
        for ((query, matches), answer) in queries.iter().zip(&matches).zip(&answers) {
            let expected = naive.search(matches, setting);
            assert_eq!(bits(&hits(answer)), bits(&expected), "{more:?} `{query}`");
        }
    }
}

#[test]
fn equal_scores_go_by_docid() {
    let scratch = Scratch::new();
    let docs: Vec<Doc> = (0..900)
        .map(|n| {
            let text = ["mill race", "race mill", "wheel", ""][n % 4].to_string();
            Doc { name: Some(format!("{}", 900 - n)), text }
        })
        .collect();
    let index = scratch.path("index");
    build(&index, args![scratch.write("c.jsonl", jsonl(&docs))]);
    let alike: Vec<u32> = (0..900).filter(|n| n % 4 < 2).collect();
    for mode in ["or", "and", "and-or"] {
        for k in [1, 2, 7, 128, 449, 450, 451] {
            let job = millrace(args!["query", "--quiet", "--index", index, "--format", "jsonl"]);
            let job = job.args(["--mode", mode, "-k", &k.to_string()]).stdin("mill races\n");
            let answer = &job.ok().json_lines()[0];
            let docids: Vec<u32> = hits(answer).into_iter().map(|(docid, _)| docid).collect();
            assert_eq!(docids, alike[..k.min(450)], "{mode} {k}");
        }
    }
}

#[test]
fn answers_come_in_the_order_of_queries() {
    let fixture = Fixture::new(23, 1000);
    let queries = fixture.queries(230, 6000);
    let lines: String = queries.iter().zip(0..).map(|(q, n)| format!("q{n}\t{q}\n")).collect();
    let path = fixture.scratch.write("queries.tsv", &lines);
    let path = path.to_str().unwrap();
    let mut first = None;
    for more in [
        &["-w", "1"][..],
        &["-w", "2"],
        &["-w", "4"],
        &["-w", "3", "--batch", "1"],
        &["-w", "2", "--batch", "7", "--delay-ms", "0"],
        &["-w", "4", "--batch", "100000", "--delay-ms", "50"],
    ] {
        let from_file = fixture.query(more).args(["--format", "tsv", path]).ok();
        let first = first.get_or_insert_with(|| from_file.text().to_string());
        assert!(*first == from_file.text(), "{more:?}: other answers, or in another order");
        let json = fixture.query(more).args(["--format", "jsonl"]).stdin(&*lines).ok().json_lines();
        let qids: Vec<&str> = json.iter().map(|a| a["qid"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..queries.len()).map(|n| format!("q{n}")).collect();
        assert_eq!(qids, expected, "{more:?}");
    }
    // - is standard input too.
    let stdin = fixture.query(&["--format", "tsv", "-"]).stdin(&*lines).ok();
    assert!(first.as_deref() == Some(stdin.text()));
}

#[test]
fn k_of_any_size() {
    let fixture = Fixture::new(24, 300);
    let lines = fixture.queries(240, 30).join("\n");
    let ask =
        |k: &str| fixture.query(&["--format", "jsonl", "-k", k]).stdin(&*lines).ok().json_lines();
    let most = ask("300");
    for huge in ["301", "1000000000000", "18446744073709551615"] {
        for (a, b) in most.iter().zip(&ask(huge)) {
            assert_eq!(a["hits"], b["hits"], "-k {huge}");
        }
    }
    fixture.query(&["-k", "0"]).stdin(&*lines).fails(2).says("from 1 on");
    for (few, all) in ask("4").iter().zip(&most) {
        let all = all["hits"].as_array().unwrap();
        assert_eq!(few["hits"].as_array().unwrap()[..], all[..all.len().min(4)]);
    }
}

#[test]
fn queries_that_are_not_text() {
    let fixture = Fixture::new(28, 100);
    let bytes = b"q1\t\xff\xfe bad\xc3 bytes\nq2\t\0nul\nq3\tthe\n".to_vec();
    let answers = fixture.query(&["--format", "jsonl"]).stdin(bytes).ok().json_lines();
    let qids: Vec<&str> = answers.iter().map(|a| a["qid"].as_str().unwrap()).collect();
    assert_eq!(qids, ["q1", "q2", "q3"]);
    // No query at all, and one without a line end.
    assert_eq!(fixture.query(&[]).ok().text(), "");
    assert_eq!(fixture.query(&["--format", "jsonl"]).stdin("x").ok().json_lines().len(), 1);
    // A query longer than any query is an error, not endless memory.
    fixture.query(&[]).stdin(vec![b'x'; 3 << 20]).fails(1).says("line 1 of the queries");
    // A long one is a query: 100,000 words.
    let long = "mill ".repeat(100_000);
    assert_eq!(fixture.query(&["--format", "jsonl"]).stdin(long).ok().json_lines().len(), 1);
}

#[test]
fn an_empty_index_has_no_hits() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args!["--allow-empty", scratch.write("c.jsonl", "")]);
    for mode in ["or", "and", "and-or"] {
        let job = millrace(args!["query", "--index", index, "--mode", mode, "--format", "jsonl"]);
        let answers = job.stdin("mill\nthe\n").ok().json_lines();
        assert!(answers.len() == 2 && answers.iter().all(|a| hits(a).is_empty()));
    }
    let blank = "{\"id\": 1}\n{\"id\": 2, \"contents\": \"the\"}\n";
    let blank = scratch.write("blank.jsonl", blank);
    let refused =
        millrace(args!["build", "--quiet", "--index", index, blank]).run().expect_status(1);
    assert!(refused.stderr.contains("no text in any of 2 documents"), "{refused:?}");
    let job = millrace(args!["query", "--index", index]).stdin("mill\n");
    assert_eq!(job.ok().says("1 query with no indexed term").text(), "");
}

#[test]
fn wrong_options_and_missing_files() {
    let fixture = Fixture::new(29, 50);
    for more in [
        &["--mode", "xor"][..],
        &["--format", "xml"],
        &["--k1=-1"],
        &["--k1", "nan"],
        &["--b", "1.5"],
        &["--b=-0.1"],
        &["--idf", "bm25"],
        &["-k", "-1"],
        &["-k", "many"],
        &["--batch", "0"],
        &["--delay-ms", "soon"],
        &["--algorithm", "magic"],
        &["--parallelism", "all"],
        &["--device", "gpu9"],
        &["-w", "0"],
        &["--no-such-option"],
        &["one", "two"],
    ] {
        fixture.query(more).stdin("x\n").fails(2);
    }
    let missing = fixture.scratch.path("no-index");
    let job = millrace(args!["query", "--index", missing]).stdin("x\n");
    job.fails(1).says(missing.to_str().unwrap());
    let missing = fixture.scratch.path("no-queries");
    fixture.query(&[missing.to_str().unwrap()]).fails(1).says("no-queries");
    fixture.query(&[fixture.index.to_str().unwrap()]).fails(1).says("folder");
    // A folder that is no index.
    let job = millrace(args!["query", "--index", fixture.scratch.path("")]).stdin("x\n");
    job.fails(1);
}

#[test]
fn verify_reads_the_postings_first() {
    let fixture = Fixture::new(30, 500);
    let plain = fixture.query(&[]).stdin("ka ro\n").ok().stdout;
    assert_eq!(fixture.query(&["--verify"]).stdin("ka ro\n").ok().stdout, plain);
    let postings = fixture.index.join("runs/000000.postings");
    let mut bytes = std::fs::read(&postings).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&postings, bytes).unwrap();
    fixture.query(&["--verify"]).stdin("ka\n").fails(1).says("000000.postings");
}

#[test]
fn late_queries_say_so_in_every_format_and_input_can_be_held_back() {
    let scratch = Scratch::new();
    let docs = scratch.write("docs", Collection::new(5, 60, 20).jsonl());
    let index = scratch.path("index");
    build(&index, [&docs]);
    let query = |more: &[&str], report: &str| {
        let report = scratch.path(report);
        let job = millrace(["query", "--index"]).arg(&index).arg("--report").arg(&report);
        let done = job.args(more).stdin("a\tone two\nb c\tthree\n").ok();
        let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        (done, report)
    };
    for (format, expected) in [
        ("trec", "a Q0 !late 0 0 millrace\nb_c Q0 !late 0 0 millrace\n"),
        ("tsv", "a\t0\t!late\t4294967295\t0\nb_c\t0\t!late\t4294967295\t0\n"),
        ("binary", "MRA1\u{1}\0\0\0"),
        ("jsonl", "{\"qid\":\"a\",\"query\":\"one two\",\"hits\":[],\"late\":true}\n"),
    ] {
        // Every query has waited for longer than no time at all.
        let late = ["--shed", "--deadline-ms", "0", "--format", format];
        let (done, report) = query(&late, "late.json");
        let shown = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(shown.starts_with(expected), "{format}: {shown}");
        assert_eq!((&report["queries"], &report["queries_left_late"]), (&0.into(), &2.into()));
        done.says("2 queries came too late");
        // Nothing is late in an hour.
        let (done, report) = query(&["--shed", "--deadline-ms", "3600000"], "soon.json");
        assert_eq!(report["queries_left_late"], 0);
        let (held, report) = query(&["--max-queue", "1", "--batch", "64"], "held.json");
        assert_eq!((held.text(), &report["batches"]), (done.text(), &2.into()));
    }
}

#[test]
fn jsonl_has_snippets_and_is_measured_though_a_line_was_refused() {
    let scratch = Scratch::new();
    let docs = "{\"id\":\"a\",\"text\":\"the mill race runs past the mill\"}\n{\"id\":\"b\",\"text\":\"a river\"}\n";
    let input = scratch.write("docs.jsonl", docs);
    let index = scratch.path("index");
    build(&index, args![input]);
    let qrels = scratch.write("qrels", "1 0 a 1\n");
    let job = args!["query", "--index", index, "--qrels", qrels, "--format", "jsonl", "--snippets"];
    // The answers that there are stand on standard output all the same.
    let outcome = millrace(job).stdin("1\tmills\n{\"broken\n").run().expect_status(1);
    let lines = outcome.json_lines();
    assert_eq!(lines[0]["hits"][0]["snippet"], "the mill race runs past the mill");
    assert!(lines[1]["error"].is_string());
    outcome.says("nDCG@10").says("one line was not a query");
    std::fs::remove_file(input).unwrap();
    let job = args!["query", "--quiet", "--index", index, "--format", "jsonl", "--snippets"];
    let gone = millrace(job).stdin("mills").ok().json_lines().remove(0);
    assert_eq!((&gone["hits"][0]["name"], gone["hits"][0].get("snippet")), (&"a".into(), None));
    let job = args!["query", "--index", index, "--snippets"];
    millrace(job).stdin("mills").fails(2).says("--snippets goes with --format jsonl");
    let job = args!["query", "--index", index, "--format", "text"];
    let list = millrace(job).stdin("7\tmills\n8\tzzz").ok();
    let list = list.text();
    assert!(list.starts_with("7: mills\n  1. a"), "{list}");
    assert!(list.contains("1 hit in ") && list.contains("\n\n8: zzz\nno hits in "), "{list}");
    let job = args!["query", "--index", index, "--format", "text", "--qrels", qrels];
    millrace(job).stdin("mills").fails(2).says("--format text goes with one process");
}
