//! The server, asked by requests.

mod docs;
mod front;
mod guard;
mod page;
mod processes;
mod robust;
mod search;
mod writes;

use crate::support::http::{HttpAnswer, Serving};
use crate::support::{Random, Scratch, args, millrace};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const WORDS: [&str; 8] = ["water", "mill", "wheel", "river", "stone", "tall", "old", "rare"];

/// Records with a text, a year, tags and a title.
fn records(seed: u64, count: usize) -> String {
    let mut random = Random::new(seed);
    let mut jsonl = String::new();
    for number in 0..count {
        let words = 1 + random.below(12);
        let text: Vec<&str> = (0..words).map(|_| random.pick(&WORDS)).collect();
        let tags: Vec<&str> =
            (0..random.below(3)).map(|_| random.pick(&["a", "b", "c d"])).collect();
        let mut record = json!({"id": format!("d/{number}?"), "title": random.pick(&WORDS)});
        record["text"] = text.join(" ").into();
        record["tags"] = tags.into();
        if random.below(5) > 0 {
            record["year"] = (1950 + random.below(70)).into();
        }
        writeln!(jsonl, "{record}").unwrap();
    }
    jsonl
}

fn index_of(scratch: &Scratch, records: &str) -> PathBuf {
    let file = scratch.write("records.jsonl", records);
    let index = scratch.path("index");
    let columns = ["--column", "year:int", "--column", "tags:word[]", "--store", "--positions"];
    millrace(args!["build", "--index", &index, file, "-w", "1"]).args(columns).ok();
    index
}

/// A path with parameters, which are encoded.
fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn search(server: &Serving, parameters: &[(&str, &str)]) -> HttpAnswer {
    server.get(&address("/v1/search", parameters))
}

fn names(answer: &Value) -> Vec<String> {
    let hits = answer["hits"].as_array().unwrap_or_else(|| panic!("{answer}"));
    hits.iter().map(|hit| hit["name"].as_str().unwrap().to_string()).collect()
}

/// What the program answers to one query with these options, without its time.
fn by_query(index: &Path, text: &str, more: &[&str]) -> Value {
    let job = millrace(args!["query", "--index", index, "-w", "1", "--format", "jsonl"]);
    let outcome = job.args(more).args(["--query", text]).ok();
    without_time(serde_json::from_str(outcome.text()).unwrap())
}

fn without_time(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("us");
    answer
}
