//! Weights of terms in queries: what is none is refused, and the order is that in which they are
//! written.

use super::Asked;
use crate::support::fixture::hits;
use crate::support::*;

#[test]
fn a_query_with_a_wrong_weight_is_refused_alone() {
    let of = Asked::new();
    let weights = ["--query-format", "weights"];
    let one = "{\"id\": \"v0\", \"vector\": {\"mill\": 2, \"^\": 3, \"dark\": 1}}\n";
    let vectors = of.scratch.path("vectors");
    let file = of.scratch.write("vectors.jsonl", one);
    build(&vectors, args!["--format", "vectors", file]);
    for weight in ["-1", "", "abc", "1,5", "inf"] {
        let text = format!("a\tmill\nb\t\u{e9}^2 mill^{weight} dark\nc\tmill^0 dark^2\n");
        let marked = text.replace('\t', "\tapplypipeline:off ");
        let says = |character| format!("behind `mill^` (character {character}): `{weight}` is");
        let names = |outcome: &Outcome| -> Vec<String> {
            let answers = outcome.json_lines();
            let answered = answers.iter().filter(|answer| answer["hits"].is_array());
            answered.map(|answer| answer["qid"].as_str().unwrap().to_string()).collect()
        };
        let of_vectors = || millrace(args!["query", "--index", vectors, "--format", "jsonl"]);
        for (outcome, character) in [
            (of.pipe(&marked, &[]), 28),
            (of.file(&text, &weights), 10),
            (of_vectors().stdin(&*text).run(), 10),
            (of_vectors().stdin(&*marked).run(), 28),
        ] {
            let outcome = outcome.expect_status(1).says(says(character));
            assert_eq!(names(&outcome), ["a", "c"], "{text}");
            outcome.says("line 2 of the queries");
        }
        let asked = format!("mill^{weight}");
        let outcome = of.job(&["--query", &asked, weights[0], weights[1]]).run();
        outcome.expect_status(1).says(says(6));
        // Words have no weights.
        of.job(&["--query", &asked]).ok();
        let explain = args!["explain", "--index", vectors, "--docid", "0", asked];
        millrace(explain).fails(1).says(says(6));
        let path = of.scratch.write("q.tsv", &marked);
        let bench = args!["bench", "queries", "--index", of.index, path];
        millrace(bench).fails(1).says(says(28));
        let rm3 = args!["query", "--index", of.index, "--rm3", "2,2,0.5", path];
        millrace(rm3).run().expect_status(1).says("one line was not").says(says(28));
    }
    let outcome = millrace(args!["query", "--index", vectors, "--score", "impact"]);
    let outcome = outcome.args(["--format", "jsonl"]).stdin("^ mill^0\n^^2 mill^0.0\nmill^0\n");
    let scores: Vec<Vec<f32>> = outcome
        .ok()
        .json_lines()
        .iter()
        .map(|answer| hits(answer).iter().map(|hit| hit.1).collect())
        .collect();
    assert_eq!(scores, [vec![3.0], vec![6.0], vec![]]);
}

/// The last digit tells.
#[test]
fn weights_are_added_up_in_the_order_in_which_they_are_written() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let one = "{\"id\": \"v0\", \"vector\": {\"a\": 1, \"b\": 1, \"c\": 1}}\n";
    build(&index, args!["--format", "vectors", scratch.write("v.jsonl", one)]);
    let score = |query: String| {
        let job = args!["query", "--index", index, "--score", "impact", "--format", "jsonl"];
        hits(&millrace(job).stdin(query).ok().json_lines()[0])[0].1
    };
    let weights = [("c", 0.6f32), ("b", 16_777_216.0), ("a", 0.6)];
    let mut seen = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]] {
        let terms = order.map(|at| weights[at]);
        let sum = terms.iter().fold(0.0, |sum: f32, (_, weight)| sum + weight);
        let json = terms.map(|(term, weight)| format!("\"{term}\": {weight}")).join(", ");
        let text = terms.map(|(term, weight)| format!("{term}^{weight}")).join(" ");
        assert_eq!(score(format!("{{\"vector\": {{{json}}}}}\n")), sum, "{json}");
        assert_eq!(score(format!("applypipeline:off {text}\n")), sum, "{text}");
        assert_eq!(score(format!("{text}\n")), sum, "{text}");
        seen.push(sum.to_bits());
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 1);
}
