//! Queries with operators and counts, through the program.

use crate::support::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const TEXTS: [(&str, &str); 6] = [
    ("a", "The mill stands by the river"),
    ("b", "A river of water"),
    ("c", "water mill, wind mill"),
    ("d", "state of the art"),
    ("e", "the state and the river and the mill and the water"),
    ("f", "nothing"),
];

fn indexed(scratch: &Scratch) -> PathBuf {
    let line = |(id, text): (&str, &str)| format!("{}\n", json!({"id": id, "text": text}));
    let input = scratch.write("c.jsonl", TEXTS.map(line).concat());
    let index = scratch.path("index");
    build(&index, args![input]);
    index
}

/// The names of the hits, sorted, and the count.
fn asked(index: &Path, query: &str, more: &[&str]) -> (Vec<String>, u64) {
    let job = millrace(args!["query", "--quiet", "--index", index, "--format", "jsonl", "--count"]);
    let out = job.args(more).args(args!["--query", query]).ok();
    let answer: Value = serde_json::from_str(out.text().trim()).unwrap();
    let hits = answer["hits"].as_array().unwrap();
    let mut names: Vec<String> =
        hits.iter().map(|hit| hit["name"].as_str().unwrap().to_string()).collect();
    names.sort();
    (names, answer["found"].as_u64().unwrap())
}

#[test]
fn signs_and_groups_say_what_matches() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    for (query, mode, names) in [
        ("+mill river", "or", "a c e"),
        ("mill -river", "or", "c"),
        ("+mill -wind river", "or", "a e"),
        ("mill AND river", "or", "a e"),
        ("mill NOT water", "or", "a"),
        ("+(mill OR river) +water", "or", "b c e"),
        ("(mill AND wind) OR (water AND river)", "or", "b c e"),
        ("state-of-the-art", "or", "d e"),
        ("state-of-the-art", "and", "d"),
        ("mill water", "and", "c e"),
        ("+the mill", "or", "a c e"),
        ("mill (river OR wind)", "and", "a c e"),
        ("+nowhere mill", "or", ""),
        ("-mill river water", "or", "b"),
        ("the", "or", ""),
    ] {
        let (found, count) = asked(&index, query, &["--syntax", "operators", "--mode", mode]);
        assert_eq!(found.join(" "), names, "{query} ({mode})");
        assert_eq!(count, found.len() as u64, "{query}");
        let (none, again) =
            asked(&index, query, &["--syntax", "operators", "--mode", mode, "-k", "0"]);
        assert_eq!((none.len(), again), (0, count), "{query}");
    }
    // Without operators nothing changes, and words are counted too.
    let (words, count) = asked(&index, "mill -river", &[]);
    assert_eq!((words.join(" "), count), ("a b c e".into(), 4));
    assert_eq!(asked(&index, "mill", &["--docids", "1..4"]), (vec!["c".into()], 1));
}

#[test]
fn scores_are_sums_of_what_matches() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    let scores = |query: &str, more: &[&str]| -> String {
        let job = millrace(args!["query", "--quiet", "--index", index, "--format", "tsv"]);
        job.args(more).args(args!["--query", query]).ok().text().to_string()
    };
    let operators = ["--syntax", "operators"];
    assert_eq!(scores("mill river mill", &operators), scores("mill river mill", &[]));
    assert_eq!(scores("+mill +river", &operators), scores("mill river", &["--mode", "and"]));
    assert_eq!(
        scores("mill^2 river^0.5", &operators),
        scores("mill^2 river^0.5", &["--query-format", "weights"])
    );
    // What is excluded adds nothing.
    let all = scores("mill river", &["--mode", "and"]);
    let without = scores("+mill +river -wind", &operators);
    assert_eq!(all, without);
    let counted = scores("mill -water", &["--syntax", "operators", "--count"]);
    let lines: Vec<Vec<&str>> = counted.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["1", "0", "!found", "1", "0"]);
    assert_eq!(lines[1][..4], ["1", "1", "a", "0"]);
}

#[test]
fn trees_in_json_say_the_same() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    let lines = [
        json!({"qid": "x", "query": {"all": ["mill"], "none": ["river"]}, "count": true}),
        json!({"qid": "y", "query": {"any": ["mill", "water", "river"], "at_least": 2}}),
        json!({"qid": "z", "query": "mill -river", "syntax": "operators", "k": 0, "count": true}),
        json!({"qid": "w", "query": {"none": ["mill"]}}),
        json!({"qid": "v", "query": {"any": [{"term": "mill", "boost": 2}, {"near": 1}]}}),
    ];
    let job = millrace(args!["query", "--index", index, "--format", "jsonl"]);
    let out = job.stdin(lines.map(|line| format!("{line}\n")).concat()).run();
    let answers: Vec<Value> =
        out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names = |at: usize| -> Vec<&str> {
        let hits = answers[at]["hits"].as_array().unwrap();
        hits.iter().map(|hit| hit["name"].as_str().unwrap()).collect()
    };
    assert_eq!((names(0), &answers[0]["found"]), (vec!["c"], &json!(1)));
    let mut some = names(1);
    some.sort_unstable();
    assert_eq!((some, answers[1].get("found")), (vec!["a", "b", "c", "e"], None));
    assert_eq!((names(2).len(), &answers[2]["found"]), (0, &json!(1)));
    out.expect_status(1)
        .says("the query w excludes documents and names none that are to be found (at `query`)")
        .says("the query v has a node with `near`")
        .says("(at `query.any[1]`)");
}

#[test]
fn what_is_wrong_is_refused() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    let query = |more: &[&str]| millrace(args!["query", "--index", index]).args(more);
    for (text, why) in [
        ("mill (river", "has a `(` without a `)` behind it (character 6)"),
        ("\"water mill\"", "has a phrase, and the index was built without positions of words"),
        ("-mill", "excludes documents and names none that are to be found (character 1)"),
        ("mil*", "has a `*`: words are not completed (character 4)"),
        ("title:mill", "names the field `title`, and the index has none"),
    ] {
        query(&["--syntax", "operators", "--query", text]).fails(1).says(why);
    }
    query(&["--syntax", "operators", "--mode", "and-or", "--query", "a -b"])
        .fails(1)
        .says("has operators, which do not go together with the mode and-or");
    query(&["-k", "0", "--query", "mill"]).fails(2).says("or 0 with --count");
    query(&["--count", "--query", "mill"]).fails(2).says("--count goes with --format jsonl, tsv");
    query(&["--syntax", "lucene", "--query", "mill"]).fails(2).says("operators");
    // Without the option, the remark says that there is one.
    query(&["--query", "mill -river"]).ok().says("--syntax operators");
}

#[test]
fn explanations_and_snippets_know_operators() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    let explain = |name: &str| {
        millrace(args!["explain", "--index", index, "--syntax", "operators"])
            .args(args![name, "+mill -wind river"])
            .ok()
            .text()
            .to_string()
    };
    assert!(explain("e").contains("of 2 documents that match the query"));
    assert!(explain("c").contains("not among the 2 documents that match the query"));
    let out = millrace(args!["query", "--index", index, "--format", "jsonl", "--snippets"])
        .args(args!["--syntax", "operators", "--query", "+mill -wind"])
        .ok();
    let answer: Value = serde_json::from_str(out.text().trim()).unwrap();
    assert!(answer["hits"][0]["snippet"].as_str().unwrap().contains("mill"));
}

#[test]
fn an_expanded_query_excludes_what_it_did() {
    let scratch = Scratch::new();
    let index = indexed(&scratch);
    let out = millrace(args!["query", "--index", index, "--format", "jsonl", "--rm3", "2,5,0.5"])
        .args(args!["--syntax", "operators", "--query", "river -state"])
        .ok();
    let answer: Value = serde_json::from_str(out.text().trim()).unwrap();
    let names: Vec<&Value> =
        answer["hits"].as_array().unwrap().iter().map(|hit| &hit["name"]).collect();
    assert!(names.contains(&&json!("c")), "the mill of another hit brings it: {names:?}");
    assert!(!names.contains(&&json!("e")) && !names.contains(&&json!("d")), "{names:?}");
}
