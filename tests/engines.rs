//! Does every engine return what `exhaustive` returns: the same documents in the same order with the
//! same scores to the bit?

use crate::util::*;
use std::path::Path;

/// The engines of OR and AND.
const OR: [&str; 4] = ["auto", "maxscore", "wand", "bmw"];
const AND: [&str; 2] = ["galloping", "small-adaptive"];

/// The answers of an engine.
fn answers(index: &Path, queries: &Path, more: &[&str]) -> String {
    let job = millrace(args!["query", "--quiet", "--format", "tsv", "--index", index, queries]);
    job.args(more).ok().text().to_string()
}

/// Compares all engines on an index, with some settings.
fn compare(index: &Path, queries: &Path) {
    let settings: [&[&str]; 5] = [
        &[],
        &["--k1", "0"],
        &["--k1", "0.9", "--b", "0"],
        &["--k1", "3", "--b", "1"],
        &["--idf", "robertson"],
    ];
    for (number, setting) in settings.into_iter().enumerate() {
        for k in ["1", "10", "100", "1000", "100000"] {
            if number > 0 && k.len() != 2 {
                continue;
            }
            for (mode, engines) in [("or", &OR[..]), ("and", &AND[..]), ("and-or", &OR[..])] {
                let asked = |engine: &str| {
                    let more = ["--mode", mode, "-k", k, "--algorithm", engine];
                    answers(index, queries, &[&more[..], setting].concat())
                };
                let expected = asked("exhaustive");
                assert!(expected.lines().count() > 5, "{mode} {k} {setting:?}");
                for engine in engines {
                    assert!(asked(engine) == expected, "{engine} {mode} {k} {setting:?}");
                }
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
    let mut queries: String = (0..60)
        .map(|_| {
            let count = 1 + random.below(5);
            collection.words.phrase(&mut random, count) + "\n"
        })
        .collect();
    // Long ones, with terms that are asked more than once.
    for count in [10, 20, 30] {
        let phrase = collection.words.phrase(&mut random, count);
        queries += &format!("{phrase}\n{phrase} {phrase}\n");
    }
    let queries = scratch.write("queries", queries);
    let (one, many) = (scratch.path("one"), scratch.path("many"));
    build(&one, args![input]);
    compare(&one, &queries);
    let job = millrace(args!["build", "--quiet", "--index", many, "--no-merge", input]);
    job.env("MILLRACE_RUN_LIMIT", "1").ok();
    compare(&many, &queries);
    let more = ["--algorithm", "bmw"];
    assert_eq!(answers(&one, &queries, &more), answers(&many, &queries, &more));
}

#[test]
fn on_collections_with_queries_of_people() {
    for name in ["cacm", "cranfield"] {
        let Some(folder) = shared(&format!("collections/{name}")) else { continue };
        let scratch = Scratch::new();
        let index = scratch.path("index");
        build(&index, args![folder.join("corpus.jsonl")]);
        compare(&index, &folder.join("queries.tsv"));
    }
}
