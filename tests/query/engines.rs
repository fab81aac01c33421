//! Every engine returns what `exhaustive` returns: the same documents in the same order with the
//! same scores, to the bit.

use crate::support::*;
use serde_json::json;
use std::path::Path;

/// Modes with their engines beside `exhaustive`.
const ENGINES: [(&[&str], &[&str]); 2] = [
    (&["or", "and-or"], &["auto", "maxscore", "blocks", "wand", "bmw"]),
    (&["and"], &["galloping", "small-adaptive"]),
];

/// The answers to queries in all these modes and for each k, by one engine. A name says the mode
/// and k.
fn answers(
    index: &Path,
    queries: &[String],
    (engine, modes, ks): (&str, &[&str], &[usize]),
    more: &[&str],
) -> String {
    let mut lines = String::new();
    for (mode, k) in modes.iter().flat_map(|mode| ks.iter().map(move |k| (mode, k))) {
        for query in queries {
            let qid = format!("{mode}-{k}");
            let line = json!({"qid": qid, "query": query, "k": k, "mode": mode,
                              "algorithm": engine});
            lines += &format!("{line}\n");
        }
    }
    let job = millrace(args!["query", "--quiet", "--format", "tsv", "--index", index]);
    job.args(more).stdin(lines).ok().text().to_string()
}

/// Compares all engines on an index, with some settings.
fn compare(index: &Path, queries: &[String]) {
    let settings: [&[&str]; 5] = [
        &[],
        &["--k1", "0"],
        &["--k1", "0.9", "--b", "0"],
        &["--k1", "3", "--b", "1"],
        &["--idf", "robertson"],
    ];
    for (number, setting) in settings.into_iter().enumerate() {
        let ks = if number == 0 { &[1, 10, 100, 1000, 100_000][..] } else { &[10] };
        for (modes, engines) in ENGINES {
            let asked = |engine| answers(index, queries, (engine, modes, ks), setting);
            let expected = asked("exhaustive");
            for (mode, k) in modes.iter().flat_map(|mode| ks.iter().map(move |k| (mode, k))) {
                let qid = format!("{mode}-{k}\t");
                let found = expected.lines().filter(|line| line.starts_with(&qid)).count();
                assert!(found > 5, "{qid} {setting:?}");
            }
            for engine in engines {
                assert!(asked(engine) == expected, "{engine} {setting:?}");
            }
        }
    }
}

#[test]
fn on_one_run_and_on_many() {
    let scratch = Scratch::new();
    let collection = Collection::new(16, 14_000, 90);
    let input = scratch.write("c.jsonl", collection.jsonl());
    let mut random = Random::new(160);
    let mut queries: Vec<String> = (0..60)
        .map(|_| {
            let count = 1 + random.below(5);
            collection.words.phrase(&mut random, count)
        })
        .collect();
    // Long ones, with terms that are asked more than once.
    for count in [10, 20, 30] {
        let phrase = collection.words.phrase(&mut random, count);
        queries.extend([format!("{phrase} {phrase}"), phrase]);
    }
    let one = scratch.path("one");
    let many = scratch.path("many");
    build(&one, args![input]);
    compare(&one, &queries);
    let job = millrace(args!["build", "--quiet", "--index", many, "--no-merge", input]);
    job.env("MILLRACE_RUN_LIMIT", "1").ok();
    compare(&many, &queries);
    let asked = |index| answers(index, &queries, ("bmw", &["or"], &[10]), &[]);
    assert_eq!(asked(&one), asked(&many));
}

#[test]
fn on_collections_with_queries_of_people() {
    for name in ["cacm", "cranfield"] {
        let Some(folder) = shared(&format!("collections/{name}")) else { continue };
        let scratch = Scratch::new();
        let index = scratch.path("index");
        build(&index, args![folder.join("corpus.jsonl")]);
        let queries = std::fs::read_to_string(folder.join("queries.tsv")).unwrap();
        let queries = queries.lines().map(|line| line.split_once('\t').unwrap().1.to_string());
        compare(&index, &queries.collect::<Vec<_>>());
    }
}
