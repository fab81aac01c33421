//! `--candidates` ranks the documents of a run, all of them and no others, with the scores that a
//! query has.

use crate::support::*;
use millrace::Generation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const DOCUMENTS: usize = 600;

struct Asked {
    scratch: Scratch,
    index: PathBuf,
    queries: String,
}

fn asked() -> Asked {
    let scratch = Scratch::new();
    let collection = Collection::new(77, DOCUMENTS, 30);
    let input = scratch.write("c.jsonl", collection.jsonl());
    let index = scratch.path("index");
    let kept_apart = args!["--no-merge", "--memory", "64M", "--stemmer", "none", input];
    build(&index, kept_apart);
    let mut random = Random::new(5);
    let words = |n: usize, random: &mut Random| collection.words.phrase(random, n).to_lowercase();
    let queries = (1..30).map(|n| format!("q{n}\t{}\n", words(1 + n % 5, &mut random)));
    let queries = queries.collect::<String>() + "none\tzzzz\nempty\t\u{2014}\n";
    Asked { scratch, index, queries }
}

/// Name and score of each hit of each query, in order.
fn run_of(index: &Path, queries: &str, more: &[&str]) -> BTreeMap<String, Vec<(String, f32)>> {
    let job = millrace(args!["query", "--quiet", "--index", index, "--query-format", "tsv"]);
    let out = job.args(more).stdin(queries).ok();
    let mut run = BTreeMap::<String, Vec<_>>::new();
    for line in out.text().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let hits = run.entry(fields[0].to_string()).or_default();
        hits.push((fields[2].to_string(), fields[4].parse().unwrap()));
        assert_eq!(fields[3], hits.len().to_string(), "{line}");
    }
    run
}

#[test]
fn given_documents_have_the_scores_of_a_query_and_the_others_come_last() {
    let Asked { scratch, index, queries } = asked();
    let generation = Generation::open(&index).unwrap();
    let name = |docid| String::from_utf8(generation.documents().name(docid).unwrap().to_vec());
    let names: Vec<String> = (0..DOCUMENTS as u32).map(|docid| name(docid).unwrap()).collect();
    let mut random = Random::new(8);
    let mut given = String::new();
    let mut of_query = BTreeMap::<&str, BTreeSet<usize>>::new();
    for query in queries.lines().map(|line| line.split_once('\t').unwrap().0) {
        for _ in 0..random.below(40) {
            let docid = random.below(DOCUMENTS);
            if of_query.entry(query).or_default().insert(docid) {
                given += &format!("{query} Q0 {} 0 0 x\n", names[docid]);
            }
        }
    }
    let file = scratch.write("first.run", given);
    let file = file.to_str().unwrap();
    let everything = DOCUMENTS.to_string();
    for score in ["bm25", "ql", "dph"] {
        let all = run_of(&index, &queries, &["-k", &everything, "--score", score]);
        let mut expected = BTreeMap::new();
        for (&query, given) in &of_query {
            let hits = all.get(query).map(Vec::as_slice).unwrap_or_default();
            let is_given = |name: &str| given.iter().any(|&docid| names[docid] == name);
            let mut ranked: Vec<(String, f32)> =
                hits.iter().filter(|(name, _)| is_given(name)).cloned().collect();
            for &docid in given {
                if !hits.iter().any(|(name, _)| *name == names[docid]) {
                    ranked.push((names[docid].clone(), 0.0));
                }
            }
            expected.insert(query.to_string(), ranked);
        }
        for more in [
            &["-w", "1"][..],
            &["-w", "3"],
            &["-w", "2", "--parallelism", "fgqp"],
            &["-w", "2", "--parallelism", "docp-ui"],
        ] {
            let more = [&["--candidates", file, "--score", score], more].concat();
            assert_eq!(run_of(&index, &queries, &more), expected, "{more:?}");
        }
        let few = run_of(&index, &queries, &["--candidates", file, "--score", score, "-k", "3"]);
        expected.values_mut().for_each(|hits| hits.truncate(3));
        assert_eq!(few, expected, "{score}");
    }
}

#[test]
fn a_query_alone_and_names_that_are_not_there_are_told() {
    let Asked { scratch, index, queries } = asked();
    let file =
        scratch.write("a.run", "q1 Q0 no-such 1 2 x\nq1 Q0 neither 2 1 x\nq2 Q0 gone 1 1 x\n");
    let out = millrace(args!["query", "--index", index, "--candidates", file, "--quiet"])
        .stdin(queries.as_str())
        .ok();
    assert_eq!(out.text(), "");
    out.says("3 candidates are not in the index: gone, neither, no-such");
    for wrong in ["--mode", "--algorithm"] {
        let value = if wrong == "--mode" { "and" } else { "wand" };
        millrace(args!["query", "--index", index, "--candidates", file, wrong, value])
            .stdin("a")
            .fails(2)
            .says("--candidates");
    }
}
