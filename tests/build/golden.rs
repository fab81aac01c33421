//! An index that a program of this format once wrote is opened, this program still writes the same
//! bytes, and an index of the format before is refused with one line.
//!
//! `tests/build/golden/format-5` was written by
//! `millrace build --index format-5 --block-size 64 - <input.jsonl`, without its `LOCK`;
//! `tests/build/golden/format-4` is what a program of format 4 says of the same, without the files.

use crate::support::sound::{ask, assert_sound};
use crate::support::{Scratch, args, generation, millrace, vectors_by_topics};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/build/golden").join(name)
}

#[test]
fn an_old_index_is_read_and_written_as_it_was() {
    let old = golden("format-5");
    assert_sound(&old, "golden");
    let queries = ["mill water".to_string(), "北京 runs".to_string()];
    let answers = ask(&old, true, &queries).unwrap();
    assert!(answers.iter().all(|hits| hits.len() == 20), "{answers:?}");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let job = millrace(args!["build", "--quiet", "--index", new, "--block-size", "64", "-"]);
    job.stdin(std::fs::read(golden("input.jsonl")).unwrap()).ok();
    let found = crate::support::files(&new);
    let expected = crate::support::files(&old);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in expected {
        assert!(found[&name] == bytes, "{name}");
    }
    assert!(ask(&new, true, &queries).unwrap() == answers);
    assert!(generation(&old).ends_with("gen-000001"));
}

/// `tests/build/golden/positions` was written by
/// `millrace build --positions --index positions - <input.jsonl`, without its `LOCK`.
#[test]
fn positions_are_read_and_written_as_they_were() {
    let old = golden("positions");
    assert_sound(&old, "positions");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let job = millrace(args!["build", "--quiet", "--positions", "--index", new, "-"]);
    job.stdin(std::fs::read(golden("input.jsonl")).unwrap()).ok();
    let found = crate::support::files(&new);
    let expected = crate::support::files(&old);
    assert!(expected.contains_key("runs/000000.positions"));
    assert!(found == expected, "{:?}", found.keys());
    let phrases = ["mill water".to_string(), "the race".to_string()];
    let answers = ask(&old, true, &phrases).unwrap();
    assert!(answers.iter().all(|hits| hits.len() > 1), "{answers:?}");
    assert!(ask(&new, true, &phrases).unwrap() == answers);
}

/// `tests/build/golden/fields` was written by
/// `millrace build --positions --field text --field id --index fields - <input.jsonl`, without its
/// `LOCK`.
#[test]
fn fields_are_read_and_written_as_they_were() {
    let old = golden("fields");
    assert_sound(&old, "fields");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let fields = ["--field", "text", "--field", "id"];
    let job = millrace(args!["build", "--quiet", "--positions", "--index", new, "-"]).args(fields);
    job.stdin(std::fs::read(golden("input.jsonl")).unwrap()).ok();
    let found = crate::support::files(&new);
    let expected = crate::support::files(&old);
    assert!(expected.contains_key("runs/000000.fields"));
    assert!(found == expected, "{:?}", found.keys());
    let dump = |index: &Path| {
        millrace(args!["dump", "--index", index, "postings"]).ok().text().to_string()
    };
    assert!(dump(&old).contains(r#"{"term":"id:doc","#) && dump(&old) == dump(&new));
}

/// `tests/build/golden/columns` was written by `millrace build --index columns --column year:int
/// --column tags:word[] --column rate:float --column day:date --column host - <columns.jsonl`,
/// without its `LOCK`.
#[test]
fn columns_are_read_and_written_as_they_were() {
    let old = golden("columns");
    assert_sound(&old, "columns");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let columns = ["year:int", "tags:word[]", "rate:float", "day:date", "host"];
    let job = millrace(args!["build", "--quiet", "--index", new, "-"]);
    let job = job.args(columns.iter().flat_map(|column| ["--column", column]));
    job.stdin(std::fs::read(golden("columns.jsonl")).unwrap()).ok();
    let found = crate::support::files(&new);
    let expected = crate::support::files(&old);
    assert!(expected.contains_key("runs/000000.columns"));
    assert!(found == expected, "{:?}", found.keys());
    let job = millrace(args!["query", "--index", old, "--query", "mill", "--format", "tsv"]);
    let more = ["--filter", "year > 1950 and tags = 'water wheel'", "--return", "day,rate,host"];
    let answers = job.args(more).ok();
    let first = answers.text().lines().next().unwrap();
    assert_eq!(first.split('\t').count(), 8, "{first}");
}

/// `tests/build/golden/texts` was written by `millrace build --index texts --store
/// --store-fields day,tags - <columns.jsonl`, without its `LOCK`. What Zstandard makes of the
/// blocks depends on its version.
#[test]
fn texts_are_read_and_written_as_they_were() {
    let old = golden("texts");
    assert_sound(&old, "texts");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let kept = ["--store", "--store-fields", "day,tags"];
    let job = millrace(args!["build", "--quiet", "--index", new, "-"]).args(kept);
    job.stdin(std::fs::read(golden("columns.jsonl")).unwrap()).ok();
    let (found, expected) = (crate::support::files(&new), crate::support::files(&old));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let of_texts = |name: &str| name.ends_with(".texts") || name.ends_with("manifest.json");
    assert!(expected.iter().all(|(name, bytes)| of_texts(name) || found[name] == *bytes));
    let said = |index: &Path| {
        let asked = ["--query", "mill", "--format", "jsonl", "--snippets", "--return", "day,tags"];
        let hits = millrace(args!["query", "--index", index]).args(asked).ok().json_lines();
        hits[0]["hits"].clone()
    };
    assert_eq!(said(&old), said(&new));
    let of = |key: &str| said(&old).as_array().unwrap().iter().all(|hit| !hit[key].is_null());
    assert!(of("snippet") && of("values") && said(&old)[0]["values"]["tags"].is_array());
}

/// `tests/build/golden/vectors` was written by
/// `millrace build --format vectors --factor 1 --index vectors -`, without its `LOCK`.
#[test]
fn bounds_of_vectors_are_read_and_written_as_they_were() {
    let old = golden("vectors");
    assert_sound(&old, "vectors");
    let scratch = Scratch::new();
    let new = scratch.path("index");
    let job =
        args!["build", "--quiet", "--format", "vectors", "--factor", "1", "--index", new, "-"];
    millrace(job).stdin(vectors_by_topics(1024)).ok();
    let found = crate::support::files(&new);
    let expected = crate::support::files(&old);
    assert!(expected.contains_key("runs/000000.bounds"));
    assert!(found == expected, "{:?}", found.keys());
    let ask = |index: &Path, algorithm| {
        let score = ["--score", "impact", "--algorithm", algorithm, "-k", "20"];
        let job = millrace(args!["query", "--format", "tsv", "--index", index]).args(score);
        job.stdin("topic1 often\ntopic0 topic1\n").ok().text().to_owned()
    };
    let expected = ask(&old, "exhaustive");
    assert_eq!(expected.lines().count(), 40);
    assert_eq!(ask(&old, "blocks"), expected);
    let told = millrace(args!["info", "--index", old]).ok();
    assert!(told.text().contains("runs/000000.bounds"), "{told:?}");
}

#[test]
fn an_index_of_format_4_is_refused_with_one_line() {
    let old = golden("format-4");
    for job in ["info", "check", "merge", "query"] {
        // A merge would make a file of its own.
        let scratch = Scratch::new();
        let index = scratch.path("index");
        std::fs::create_dir_all(index.join("gen-000001")).unwrap();
        for name in ["CURRENT", "gen-000001/manifest.json"] {
            std::fs::copy(old.join(name), index.join(name)).unwrap();
        }
        let outcome = millrace(args![job, "--quiet", "--index", index]).run().expect_status(1);
        let line = "format version 4 is older than 5, the only one that this program reads";
        assert!(outcome.stderr.contains(line), "{job}: {outcome:?}");
        // A check also counts its problems.
        let lines = if job == "check" { 2 } else { 1 };
        assert_eq!(outcome.stderr.lines().count(), lines, "{job}: {outcome:?}");
    }
}
