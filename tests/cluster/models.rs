//! Every model of parallelism answers in several processes as in one.

use super::*;

/// Several processes have every model, and queries that ask for unlike things side by side.
#[test]
fn every_model_answers_as_one_process() {
    let scratch = Scratch::new();
    let (input, texts) = collection(&scratch);
    let whole = scratch.path("whole");
    let index = scratch.path("index");
    build(&whole, args![input]);
    together(&scratch, 2, &args!["build", "--quiet", "--index", index, input]);
    let mut lines = String::new();
    for (number, text) in std::fs::read_to_string(texts).unwrap().lines().enumerate() {
        let k = [10, 3, 1, 500][number % 4];
        let mut mode = ["and-or", "or", "and"][number % 3];
        let mut query = text.split('\t').next_back().unwrap().to_string();
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut syntax = "words";
        if let [first, .., last] = words[..]
            && number % 5 < 2
        {
            syntax = "operators";
            mode = ["or", "and"][number % 2];
            query = format!("+{first} {} -(zzz AND {last})", words[1..].join(" "));
        }
        let query = serde_json::json!({"qid": number, "query": query, "k": k, "mode": mode,
            "syntax": syntax, "count": number % 7 < 4});
        lines += &format!("{query}\n");
    }
    let queries = scratch.write("mixed", lines);
    let ask = |index: &Path, more: &[&str]| {
        let mut ask = args!["query", "--quiet", "--index", index, "--format", "jsonl"].to_vec();
        ask.extend(args!["--batch", "9", queries]);
        ask.extend(more.iter().map(OsString::from));
        ask
    };
    let expected = without_times(millrace(ask(&whole, &["-w", "1"])).ok().stdout);
    assert!(expected.lines().count() > 60);
    for model in [
        &["--parallelism", "inter"][..],
        &["--parallelism", "docp-ui"],
        &["--parallelism", "docp-ui", "--barrier"],
        &["--parallelism", "docp-pi"],
        &["--parallelism", "fgqp"],
        &["--parallelism", "fgqp", "--cut-us", "0", "--delta", "0", "--spin-us", "0"],
    ] {
        for workers in ["1", "3"] {
            let more = [model, &["-w", workers]].concat();
            let found = without_times(together(&scratch, 2, &ask(&index, &more)));
            assert_eq!(expected, found, "{more:?}");
        }
    }
}

/// A line that is no query is process 0's matter alone.
#[test]
fn a_line_that_is_no_query_ends_nothing_in_several_processes() {
    let scratch = Scratch::new();
    let (input, texts) = collection(&scratch);
    let index = scratch.path("index");
    together(&scratch, 2, &args!["build", "--quiet", "--index", index, input]);
    let texts = std::fs::read_to_string(texts).unwrap();
    let queries = scratch.write("with", format!("{{wrong\n{texts}"));
    let hosts = Hosts::new(&scratch, 2);
    let ask = args!["query", "--quiet", "--index", index, "--format", "jsonl", queries];
    let outcomes = Running::start((0..2).map(|process| hosts.job(process, &ask))).end();
    let mut outcomes = outcomes.into_iter();
    let first = outcomes.next().unwrap().expect_status(1).says("line 1 of the queries");
    let answers = first.json_lines();
    assert_eq!(answers.len(), 1 + texts.lines().count());
    assert!(answers[0]["error"].is_string() && answers[1]["hits"].is_array());
    outcomes.next().unwrap().expect_status(0);
}
