//! Are queries answered rightly, in order, in the right form, and at once?

use crate::util::*;
use millrace::text::analysis::Analysis;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// BM25 as the contract has it, over all documents, one by one.
struct Naive {
    docs: Vec<BTreeMap<String, u32>>,
    lengths: Vec<u32>,
    df: HashMap<String, u32>,
    mean: f64,
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
        let (mut counted, mut lengths, mut df) = (Vec::new(), Vec::new(), HashMap::new());
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

    /// The best hits: docid and score.
    fn search(&self, query: &str, setting: Setting) -> Vec<(u32, f32)> {
        let mut terms: Vec<(String, u32)> = Vec::new();
        Analysis::default().terms(query.as_bytes(), |term| {
            match terms.iter_mut().find(|(t, _)| t == term) {
                Some((_, times)) => *times += 1,
                None => terms.push((term.to_string(), 1)),
            }
        });
        let any = |doc: &BTreeMap<_, _>| terms.iter().any(|(t, _)| doc.contains_key(t));
        let all = |doc: &BTreeMap<_, _>| any(doc) && terms.iter().all(|(t, _)| doc.contains_key(t));
        match setting.mode {
            "or" => self.rank(&terms, setting, any),
            "and" => self.rank(&terms, setting, all),
            _ => match self.rank(&terms, setting, all) {
                hits if hits.len() >= setting.k => hits,
                _ => self.rank(&terms, setting, any),
            },
        }
    }

    fn rank(
        &self,
        terms: &[(String, u32)],
        setting: Setting,
        wanted: impl Fn(&BTreeMap<String, u32>) -> bool,
    ) -> Vec<(u32, f32)> {
        let Setting { k, k1, b, idf, .. } = setting;
        let n = self.docs.len() as f64;
        let mut hits = Vec::new();
        for (docid, doc) in self.docs.iter().enumerate().filter(|(_, doc)| wanted(doc)) {
            let length = f64::from(self.lengths[docid]);
            let norm = (k1 * (1.0 - b + b * length / self.mean)) as f32;
            let mut score = 0f32;
            for (term, times) in terms {
                let Some(&tf) = doc.get(term) else { continue };
                let df = f64::from(self.df[term]);
                let odds = (n - df + 0.5) / (df + 0.5);
                let idf = if idf == "lucene" { (1.0 + odds).ln() } else { odds.ln().max(1e-6) };
                let weight = (f64::from(*times) * idf * (k1 + 1.0)) as f32;
                score += (weight * tf as f32) / (tf as f32 + norm);
            }
            hits.push((docid as u32, score));
        }
        hits.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
        hits.truncate(k);
        hits
    }
}

/// A collection, its index, and what it should answer.
struct Fixture {
    scratch: Scratch,
    index: PathBuf,
    collection: Collection,
}

impl Fixture {
    fn new(seed: u64, count: usize) -> Self {
        let scratch = Scratch::new();
        let collection = Collection::new(seed, count, 40);
        let index = scratch.path("index");
        build(&index, args![scratch.write("c.jsonl", collection.jsonl())]);
        Self { scratch, index, collection }
    }

    fn query(&self, more: &[&str]) -> Job {
        millrace(args!["query", "--quiet", "--index", self.index]).args(more)
    }

    /// Queries of all kinds, without line ends or tabs.
    fn queries(&self, seed: u64, count: usize) -> Vec<String> {
        let mut random = Random::new(seed);
        let words = &self.collection.words;
        (0..count)
            .map(|number| {
                let count = 1 + random.below(5);
                let phrase = words.phrase(&mut random, count);
                match number % 12 {
                    0 => format!("{phrase} {phrase} {}", words.draw(&mut random)),
                    1 => "the of and".to_string(),
                    2 => format!("{phrase} zzzunheardof"),
                    3 => "zzzunheardof qqqunheardof".to_string(),
                    4 => format!("The, {}; of!", phrase.to_uppercase()),
                    5 => "?!".to_string(),
                    _ => phrase,
                }
            })
            .collect()
    }
}

/// Docid and score of every hit of an answer in JSON.
fn hits(answer: &Value) -> Vec<(u32, f32)> {
    let hits = answer["hits"].as_array().unwrap();
    let number = |hit: &Value| hit["docid"].as_u64().unwrap() as u32;
    hits.iter().map(|hit| (number(hit), hit["score"].as_f64().unwrap() as f32)).collect()
}

/// Docids, and scores to the bit.
fn bits(hits: &[(u32, f32)]) -> Vec<(u32, u32)> {
    hits.iter().map(|&(docid, score)| (docid, score.to_bits())).collect()
}

#[test]
fn oracle_every_setting_equals_naive_scoring() {
    let fixture = Fixture::new(21, 3000);
    let naive = Naive::new(&fixture.collection.docs);
    let queries = fixture.queries(210, 240);
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
        let (k, k1, b) = (k.to_string(), k1.to_string(), b.to_string());
        let more = ["--mode", mode, "-k", &k, "--k1", &k1, "--b", &b, "--idf", idf];
        let answers =
            fixture.query(&more).args(["--format", "jsonl"]).stdin(&*lines).ok().json_lines();
        assert_eq!(answers.len(), queries.len());
        for (query, answer) in queries.iter().zip(&answers) {
            let expected = naive.search(query, setting);
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
    let expected: [(&str, &str, Vec<(usize, f32)>); 5] = [
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
    let (mut trec, mut tsv, mut json) = (String::new(), String::new(), Vec::new());
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
            let (rank, docid): (i32, u64) = (rank, docid as u64);
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
    let none = ask("0");
    assert_eq!(none.len(), 30);
    assert!(none.iter().all(|answer| answer["hits"].as_array().unwrap().is_empty()));
    for (few, all) in ask("4").iter().zip(&most) {
        let all = all["hits"].as_array().unwrap();
        assert_eq!(few["hits"].as_array().unwrap()[..], all[..all.len().min(4)]);
    }
}

/// A query job at the other ends of pipes; its answers come line by line.
struct Conversation {
    child: std::process::Child,
    stdin: Option<std::process::ChildStdin>,
    answers: std::sync::mpsc::Receiver<String>,
}

impl Conversation {
    fn begin(mut job: Job) -> Self {
        let mut child = job.spawn();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, answers }
    }

    fn ask(&mut self, line: &str) -> Value {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
        match self.answers.recv_timeout(Duration::from_secs(20)) {
            Ok(answer) => serde_json::from_str(&answer).unwrap(),
            Err(_) => {
                self.child.kill().unwrap();
                panic!("no answer to `{line}` while standard input is open");
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        wait(&mut self.child, "query at the end of its input")
    }
}

#[test]
fn an_answer_comes_before_the_next_query_is_written() {
    let fixture = Fixture::new(25, 300);
    let queries = fixture.queries(250, 60);
    let expected: Vec<Value> =
        fixture.query(&["--format", "jsonl"]).stdin(queries.join("\n")).ok().json_lines();
    for workers in ["1", "2", "4"] {
        let job = fixture.query(&["--format", "jsonl", "-w", workers]);
        let mut talk = Conversation::begin(job);
        let start = Instant::now();
        for (query, expected) in queries.iter().zip(&expected) {
            let answer = talk.ask(query);
            assert_eq!(
                (&answer["query"], &answer["hits"]),
                (&expected["query"], &expected["hits"])
            );
        }
        // 60 times the delay of 5 ms is 0.3 s; the bound leaves room for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert_eq!(talk.end(), Some(0));
    }
}

#[test]
fn a_batch_waits_for_its_delay_and_no_longer() {
    let fixture = Fixture::new(26, 100);
    let job = fixture.query(&["--format", "jsonl", "--delay-ms", "700", "--batch", "2"]);
    let mut talk = Conversation::begin(job);
    talk.ask("warm\nup");
    talk.answers.recv_timeout(Duration::from_secs(20)).expect("the second of a full batch");
    let start = Instant::now();
    talk.ask("alone");
    assert!(start.elapsed() >= Duration::from_millis(600), "{:?}", start.elapsed());
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_reader_that_goes_ends_the_job_quietly() {
    let fixture = Fixture::new(27, 2000);
    let lines = fixture.queries(270, 20_000).join("\n");
    for workers in ["1", "3"] {
        let mut job = fixture.query(&["-w", workers]);
        let mut child = job.spawn();
        let (mut stdin, bytes) = (child.stdin.take().unwrap(), lines.clone().into_bytes());
        // The job may go while this writes.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.ends_with(" millrace\n"), "{line}");
        drop(stdout);
        assert_eq!(wait(&mut child, "query without a reader"), Some(0));
        writing.join().unwrap();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "");
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
    build(&index, args![scratch.write("c.jsonl", "")]);
    for mode in ["or", "and", "and-or"] {
        let job = millrace(args!["query", "--index", index, "--mode", mode, "--format", "jsonl"]);
        let answers = job.stdin("mill\nthe\n").ok().json_lines();
        assert!(answers.len() == 2 && answers.iter().all(|a| hits(a).is_empty()));
    }
    let blank = "{\"id\": 1}\n{\"id\": 2, \"contents\": \"the\"}\n";
    build(&index, args![scratch.write("blank.jsonl", blank)]);
    let job = millrace(args!["query", "--index", index]).stdin("mill\n");
    assert_eq!(job.ok().says("1 queries with no indexed term").text(), "");
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
    let postings = generation(&fixture.index).join("runs/000000.postings");
    let mut bytes = std::fs::read(&postings).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&postings, bytes).unwrap();
    fixture.query(&["--verify"]).stdin("ka\n").fails(1).says("000000.postings");
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
    let quiet = fixture.query(&[]).stdin("ka\nzzzunheardof\n").ok();
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, outcome.stdout);
}

/// Checks what every job reports.
pub(crate) fn check_report(report: &Value, workers: u64, operators: &[&str]) {
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(report["workers"], workers);
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
        // The input went away, or changed.
        std::fs::write(input, "short").unwrap();
        let outcome = show(&index).args(["--docid", "8999"]).run().expect_status(1);
        outcome.says(input.to_str().unwrap());
        std::fs::remove_file(input).unwrap();
        show(&index).args(["--docid", "8999"]).run().expect_status(1).says("c.jsonl");
    }
}
