//! Queries of fields, boosts and BM25F, against a look at each text.

mod plain;

use self::plain::{Ask, Asked, Documents, Score, Scored};
use crate::support::{Outcome, Random, Scratch, args, millrace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Fields by number; none of them is all text.
const FIELDS: [&str; 3] = ["title", "text", "notes"];

fn of_each(option: &str) -> Vec<String> {
    FIELDS.map(|name| [option.to_string(), name.to_string()]).concat()
}

fn build(index: &Path, file: &Path, more: &[&str], limit: Option<u64>) {
    let fields = [of_each("--field"), of_each("--text-field")].concat();
    let job = millrace(args!["build", "--index", index, "--positions", "--stemmer", "none"]);
    let mut job = job.args(["--stopwords", "none"]).args(fields).args(more).arg(file);
    if let Some(limit) = limit {
        job = job.env("MILLRACE_RUN_LIMIT", limit.to_string());
    }
    job.ok();
}

/// The options of a score, and what they say.
fn scores() -> Vec<(&'static [&'static str], Scored)> {
    let all = |weight| [(None, weight)].to_vec();
    let of = |weights: [f64; 3]| -> Vec<(Option<usize>, f64)> {
        let fields = (0..3).zip(weights).filter(|of| of.1 > 0.0);
        fields.map(|(field, weight)| (Some(field), weight)).collect()
    };
    let usual = [0.75; 4];
    vec![
        (&[], Scored { score: Score::Bm25, fields: all(1.0), k1: 1.2, b: usual }),
        (
            &["--boost", "title=3,text=1"],
            Scored { score: Score::Bm25, fields: of([3.0, 1.0, 0.0]), k1: 1.2, b: usual },
        ),
        (
            &["--boost", "notes=2.5", "--b", "0.4", "--k1", "0.9"],
            Scored { score: Score::Bm25, fields: of([0.0, 0.0, 2.5]), k1: 0.9, b: [0.4; 4] },
        ),
        (
            &["--boost", "*=0.5,title=2", "--b", "0.6,title=0.2"],
            Scored {
                score: Score::Bm25,
                fields: vec![(None, 0.5), (Some(0), 2.0)],
                k1: 1.2,
                b: [0.2, 0.6, 0.6, 0.6],
            },
        ),
        (
            &["--score", "bm25f"],
            Scored { score: Score::Bm25F, fields: of([1.0; 3]), k1: 1.2, b: usual },
        ),
        (
            &["--score", "bm25f", "--boost", "notes=2,title=4", "--b", "title=0.3", "--k1", "2"],
            Scored {
                score: Score::Bm25F,
                fields: of([4.0, 0.0, 2.0]),
                k1: 2.0,
                b: [0.3, 0.75, 0.75, 0.75],
            },
        ),
        (
            &["--score", "bm25f", "--boost", "*=2,text=0.5", "--b", "text=0"],
            Scored {
                score: Score::Bm25F,
                fields: vec![(None, 2.0), (Some(1), 0.5)],
                k1: 1.2,
                b: [0.75, 0.0, 0.75, 0.75],
            },
        ),
    ]
}

/// Words with a mode, and trees.
fn queries(documents: &Documents, random: &mut Random, trees: bool) -> Vec<Asked> {
    let one = |random: &mut Random| {
        let field = [None, None, Some(0), Some(1), Some(2)][random.below(5)];
        let words = if random.below(4) == 0 { 2 + random.below(2) } else { 1 };
        let words = (0..words).map(|_| documents.word(random)).collect();
        Ask { field, words, boost: random.pick(&[1.0, 1.0, 2.5]) }
    };
    let query = |random: &mut Random| match trees {
        false => {
            let words: Vec<String> =
                (0..1 + random.below(4)).map(|_| documents.word(random)).collect();
            Asked::Words(words)
        }
        true => {
            let mut list = |most: usize| (0..random.below(most)).map(|_| one(random)).collect();
            let (all, mut any, none): (Vec<Ask>, Vec<Ask>, Vec<Ask>) = (list(3), list(4), list(2));
            if all.is_empty() && any.is_empty() {
                any.push(one(random));
            }
            Asked::Tree { all, any, none }
        }
    };
    (0..24).map(|_| query(random)).collect()
}

fn file(scratch: &Scratch, queries: &[Asked]) -> PathBuf {
    let mut lines = String::new();
    for (number, query) in queries.iter().enumerate() {
        writeln!(lines, "{}", json!({"id": number.to_string(), "query": query.json(&FIELDS)}))
            .unwrap();
    }
    scratch.write("q.jsonl", lines)
}

/// Names with scores, best first.
fn hits(answer: &Value) -> Vec<(String, f64)> {
    let hits = answer["hits"].as_array().unwrap();
    let hit = |hit: &Value| (hit["name"].as_str().unwrap().into(), hit["score"].as_f64().unwrap());
    hits.iter().map(hit).collect()
}

/// All hits are those of the plain evaluation, and the best are the first of them.
fn check(index: &Path, documents: &Documents, seed: u64, workers: &str) {
    let scratch = Scratch::new();
    let mut random = Random::new(seed);
    for (options, scored) in scores() {
        let by_mode = [("or", false), ("and", false), ("and-or", false), ("or", true)];
        for (mode, trees) in by_mode {
            let asked = queries(documents, &mut random, trees);
            let path = file(&scratch, &asked);
            let ask = |more: &[&str]| {
                let job = millrace(args!["query", "--index", index, path, "--format", "jsonl"]);
                let job = job.args(["--mode", mode, "--count", "-w", workers]).args(options);
                job.args(more).ok().json_lines()
            };
            let all = ask(&["-k", "9999"]);
            assert_eq!(all.len(), asked.len());
            for (answer, query) in all.iter().zip(&asked) {
                let told = || format!("{options:?} {mode} {}", query.json(&FIELDS));
                // No query has this many documents.
                let mut expected = documents.evaluate(&scored, query, mode == "and");
                if mode == "and-or" {
                    expected = documents.evaluate(&scored, query, false);
                }
                let found: BTreeMap<String, f64> = hits(answer).into_iter().collect();
                assert_eq!(answer["found"], json!(expected.len()), "{}", told());
                assert!(found.keys().eq(expected.keys()), "{}", told());
                for (name, score) in &expected {
                    let close = (found[name] - score).abs() <= 2e-5 * score;
                    assert!(close, "{} {name}: {} {score}", told(), found[name]);
                }
            }
            for k in ["3", "20"] {
                for (best, answer) in ask(&["-k", k]).iter().zip(&all) {
                    let all = hits(answer);
                    let few = all.len().min(k.parse().unwrap());
                    if mode != "and-or" {
                        assert_eq!(hits(best), all[..few], "{options:?} {mode} {best}");
                        assert_eq!(best["found"], answer["found"]);
                    }
                }
            }
        }
    }
}

#[test]
fn oracle_queries_of_fields_find_what_a_look_at_each_text_finds() {
    let scratch = Scratch::new();
    let documents = Documents::new(5, 500);
    let lines = scratch.write("d.jsonl", documents.jsonl());
    for (name, more, limit, workers) in [
        ("whole", &["-w", "2"][..], None, "1"),
        ("runs", &["--no-merge", "-w", "1"], Some(15_000), "3"),
    ] {
        let index = scratch.path(name);
        build(&index, &lines, more, limit);
        check(&index, &documents, 17, workers);
    }
    // Documents go and come.
    let index = scratch.path("runs");
    let (mut left, gone) = documents.without(|number| number % 4 == 1);
    let names = scratch.write("gone", gone.join("\n"));
    millrace(args!["delete", "--index", index, "--file", names]).ok();
    check(&index, &left, 18, "2");
    let new = Documents::new(6, 30);
    let update = args!["update", "--index", index, scratch.write("new.jsonl", new.jsonl())];
    millrace(update).args(of_each("--text-field")).ok();
    left.replace(new);
    check(&index, &left, 19, "1");
    millrace(args!["merge", "--index", index]).ok();
    check(&index, &left, 20, "2");
}

/// Lists of many blocks are searched by bounds.
#[test]
fn oracle_the_best_of_many_documents_are_those_of_all() {
    let scratch = Scratch::new();
    let documents = Documents::new(8, 12_000);
    let lines = scratch.write("d.jsonl", documents.jsonl());
    let index = scratch.path("i");
    build(&index, &lines, &["-w", "2"], None);
    let asked = queries(&documents, &mut Random::new(3), false);
    let path = file(&scratch, &asked);
    for (options, _) in scores() {
        for mode in ["or", "and", "and-or"] {
            let ask = |k: &str, more: &[&str]| {
                let job = millrace(args!["query", "--index", index, path, "--format", "jsonl"]);
                let job = job.args(["--mode", mode, "-w", "2", "-k", k]).args(options);
                job.args(more).ok().json_lines().iter().map(hits).collect::<Vec<_>>()
            };
            let all = ask("12000", &["--algorithm", "exhaustive"]);
            for k in ["1", "30"] {
                for more in [&[][..], &["--algorithm", "maxscore"], &["--count"]] {
                    for (best, all) in ask(k, more).iter().zip(&all) {
                        if mode != "and-or" {
                            let few = all.len().min(k.parse().unwrap());
                            assert_eq!(best, &all[..few], "{options:?} {mode} {k}");
                        }
                    }
                }
            }
        }
    }
}

fn small(scratch: &Scratch) -> PathBuf {
    let lines = [
        json!({"id": "1", "title": "water mill", "text": "a mill by the water"}),
        json!({"id": "2", "title": "wind", "text": "mill and wind mill"}),
        json!({"id": "3", "title": "mill river", "text": "no such thing"}),
    ];
    let file = lines.map(|line| line.to_string()).join("\n");
    let index = scratch.path("i");
    let more = args!["--field", "title", "--field", "text", scratch.write("d.jsonl", file)];
    millrace(args!["build", "--index", index, "--positions"]).args(more).ok();
    index
}

#[test]
fn fields_are_named_in_queries() {
    let scratch = Scratch::new();
    let index = small(&scratch);
    let ask = |query: &str, more: &[&str]| -> Outcome {
        let job = millrace(args!["query", "--index", index, "--query", query, "--format", "jsonl"]);
        job.args(["--syntax", "operators"]).args(more).run()
    };
    for (query, found) in [
        ("title:mill", &["1", "3"][..]),
        ("+title:mill -text:mill", &["3"]),
        ("title:\"water mill\"", &["1"]),
        ("title:(+mill -river)", &["1"]),
        ("\"mill river\"", &["3"]),
        ("text:\"wind mill\" title:nothing", &["2"]),
        ("mill\\:x title\\:wind", &["1", "2", "3"]),
    ] {
        let answer = &ask(query, &[]).expect_status(0).json_lines()[0];
        let mut names: Vec<String> = hits(answer).into_iter().map(|hit| hit.0).collect();
        names.sort();
        assert_eq!(names, found, "{query}");
    }
    ask("titel:mill", &[])
        .expect_status(1)
        .says("names the field `titel`, and the index has title, text; write `\\:`");
    ask("mill", &["--boost", "titel=2"])
        .expect_status(1)
        .says("no field `titel`: there is title, text");
    ask("mill", &["--boost", "title"]).expect_status(2).says("give fields with numbers");
    ask("mill", &["--score", "ql", "--b", "title=0.5"]).expect_status(2);
    ask("mill", &["--score", "wang", "--boost", "title=1"])
        .expect_status(2)
        .says("boost does not go with");
    // Those that have a part for the mean length of all tokens.
    for score in ["ql", "dph", "bm25plus", "tfidf"] {
        ask("mill", &["--score", score, "--boost", "title=2,text=1"]).expect_status(0);
    }
}

#[test]
fn explanations_add_up() {
    let scratch = Scratch::new();
    let index = small(&scratch);
    for options in [
        &["--boost", "title=3,text=1"][..],
        &["--score", "bm25f", "--boost", "title=3,text=1"],
        &["--score", "bm25f", "--boost", "*=1,title=2"],
    ] {
        for query in
            ["mill water", "+title:mill water", "\"wind mill\" mill", "title:\"water mill\""]
        {
            let asked = args!["--syntax", "operators", "--json", query];
            let job = millrace(args!["explain", "--index", index, "--docid", "0"]).args(options);
            let told: Value = serde_json::from_str(job.args(asked).ok().text()).unwrap();
            let rows = told["terms"].as_array().unwrap();
            let sum: f64 = rows.iter().map(|row| row["score"].as_f64().unwrap()).sum();
            let score = told["score"].as_f64().unwrap();
            assert!((sum - score).abs() < 1e-5 * score, "{options:?} {query}: {told}");
            assert!(rows.iter().any(|row| row["term"].as_str().unwrap().starts_with("title:")));
        }
    }
}

#[test]
fn rm3_and_candidates_know_fields() {
    let scratch = Scratch::new();
    let index = small(&scratch);
    let ask = |query: &str, more: &[&str]| {
        let job = millrace(args!["query", "--index", index, "--query", query, "--format", "jsonl"]);
        hits(&job.args(more).ok().json_lines()[0])
    };
    let boost = ["--boost", "title=3,text=1"];
    let names = |hits: Vec<(String, f64)>| hits.into_iter().map(|hit| hit.0).collect::<Vec<_>>();
    let with = |more: &[&'static str]| [&boost[..], more].concat();
    assert_eq!(names(ask("river", &with(&["--rm3", "1,5,0.5"])))[0], "3");
    let named = with(&["--rm3", "1,5,0.5", "--syntax", "operators"]);
    assert_eq!(names(ask("title:wind -river", &named)), ["2", "1"]);
    let run = scratch.write("run", "1 Q0 2 1 1 x\n1 Q0 3 2 1 x\n");
    let job = millrace(args!["query", "--index", index, "--query", "mill water"]);
    let job = job.args(boost).args(args!["--candidates", run, "--format", "jsonl"]);
    assert_eq!(names(hits(&job.ok().json_lines()[0])), ["3", "2"]);
}

#[test]
fn weights_of_fields_are_tuned() {
    let scratch = Scratch::new();
    let index = small(&scratch);
    let queries = scratch.write("q.tsv", "a\tmill\nb\twind\nc\triver\nd\twater\n");
    let qrels = scratch.write("qrels", "a 0 3 1\nb 0 2 1\nc 0 3 1\nd 0 1 1\n");
    let tune = |more: &[&str]| {
        let job = millrace(args!["tune", "--index", index, "--qrels", qrels, "--folds", "2"]);
        job.args(more).arg(&queries)
    };
    let told = tune(&["--score", "bm25f", "--json"]).ok();
    let told: Value = serde_json::from_str(told.text()).unwrap();
    assert_eq!(told["grid"].as_array().unwrap().len(), 5 * 4 * 4 * 4 + 1);
    assert_eq!(told["default"]["boost:title"], Value::Null);
    assert!(told["best"]["boost:title"].is_number() && told["best"]["b:text"].is_number());
    let more = ["--boost", "title=1,5", "--boost", "text=1", "--k1", "1.2", "--b", "0.75"];
    let told = tune(&more).ok();
    assert!(
        told.text().contains("with k1 1.2 b 0.75 boost:title 5 boost:text 1"),
        "{}",
        told.text()
    );
}
