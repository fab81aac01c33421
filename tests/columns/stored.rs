//! Texts that an index keeps, against those of its files.

use super::{Records, build, records};
use crate::support::{Scratch, args, assert_same_index, millrace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What readers of texts say of an index.
fn said(index: &Path) -> Vec<String> {
    let asks: [&[&str]; 3] = [
        &["--format", "jsonl", "--snippets", "-k", "40"],
        &["--format", "text", "-k", "15"],
        &["--format", "trec", "--rm3", "6,8,0.4", "-k", "60"],
    ];
    let ask = |more: &&[&str]| {
        let job =
            millrace(args!["query", "--index", index, "--quiet"]).args(["--query", "water rare"]);
        let text = job.args(*more).ok().text().to_string();
        // Times differ.
        let lines = text.lines().map(|line| match line.split_once(",\"us\":") {
            Some((answer, _)) => answer.to_string(),
            None => line.split(" in ").next().unwrap_or_default().to_string(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    asks.iter().map(ask).collect()
}

fn texts(jsonl: &str) -> BTreeMap<String, String> {
    let text = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| record[key].as_str().unwrap().to_string();
        (of("id"), of("text"))
    };
    jsonl.lines().map(text).collect()
}

fn assert_texts(index: &Path, expected: &BTreeMap<String, String>, what: &str) {
    millrace(args!["check", "--index", index]).ok();
    for (name, text) in expected.iter().step_by(9) {
        let shown = millrace(args!["show", "--index", index, name]).ok();
        assert!(shown.text().contains(text), "{what}: {name}: {}", shown.text());
    }
}

#[test]
fn oracle_readers_of_texts_say_the_same_without_the_files() {
    let scratch = Scratch::new();
    let (jsonl, _): (String, Records) = records(21, 0, 900);
    let expected = texts(&jsonl);
    let file = scratch.write("d.jsonl", &jsonl);
    let [plain, whole] = ["plain", "whole"].map(|name| scratch.path(name));
    build(&plain, &file, &[], None);
    build(&whole, &file, &["--store", "-w", "1"], None);
    let from_files = said(&plain);
    for (name, more, limit) in [
        ("merged", &["--store", "-w", "3"][..], Some(9_000)),
        ("runs", &["--store", "--no-merge", "-w", "2"], Some(9_000)),
    ] {
        let index = scratch.path(name);
        build(&index, &file, more, limit);
        assert!(said(&index) == from_files, "{name}");
        if name == "merged" {
            assert_same_index(&whole, &index, &[]);
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(said(&whole) == from_files);
    assert_texts(&whole, &expected, "whole");
    millrace(args!["show", "--index", plain, "d7"]).run().expect_status(1);
    assert!(millrace(args!["info", "--index", whole]).ok().text().contains("texts"));

    // Documents come and go, and are ordered; deleted texts go at a merge.
    let index = scratch.path("runs");
    let mut all = expected;
    let secret = "{\"id\":\"secret\",\"text\":\"water xyzzyplugh\"}\n";
    let (more, _): (String, Records) = records(22, 880, 40);
    let new = scratch.write("new.jsonl", format!("{secret}{more}"));
    millrace(args!["update", "--index", index, new]).ok();
    std::fs::remove_file(new).unwrap();
    all.extend(texts(&more));
    assert_texts(&index, &all, "updated");
    for name in ["secret", "d9", "d27"] {
        millrace(args!["delete", "--index", index, name]).ok();
        all.remove(name);
    }
    millrace(args!["merge", "--index", index, "--order", "name", "--now"]).ok();
    assert_texts(&index, &all, "ordered");
    let shown = millrace(args!["show", "--index", index, "secret"]).run();
    assert_eq!(shown.status, Some(1));
}

#[test]
fn texts_of_a_stream_are_kept_and_vectors_have_none() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let line = "{\"id\":\"1\",\"text\":\"the \\u00fcber  Mill\\n\"}\n";
    millrace(args!["build", "--index", index, "--store", "-"]).stdin(line).ok();
    let shown = millrace(args!["show", "--index", index, "1"]).ok();
    assert!(shown.text().contains("the \u{fc}ber  Mill\n"), "{}", shown.text());
    let path = crate::support::run_path(&index, 0, "texts");
    let good = std::fs::read(&path).unwrap();
    let mut bytes = good.clone();
    bytes[70] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let shown = millrace(args!["show", "--index", index, "1"]).run();
    shown.expect_status(1).says("000000.texts: byte");
    millrace(args!["check", "--index", index]).run().expect_status(1).says("000000.texts");
    let vectors = scratch.write("v.jsonl", "{\"id\":\"1\",\"vector\":{\"a\":1}}\n");
    let other = scratch.path("vectors");
    millrace(args!["build", "--index", other, "--store", "--format", "vectors", vectors])
        .fails(2)
        .says("vectors have no texts");
}

/// Texts have hashes with those of fields, and with values, by which a file that changed is known.
#[test]
fn indexes_with_fields_and_values_are_sound_and_know_their_files() {
    let scratch = Scratch::new();
    let record = |title: &str, year: u32| {
        json!({"id": "a", "title": title, "text": "river stone", "year": year}).to_string()
    };
    let options: [&[&str]; 4] = [
        &["--field", "title"],
        &["--column", "year:int"],
        &["--store-fields", "year"],
        &["--field", "title", "--column", "year:int", "--store-fields", "year"],
    ];
    for (number, options) in options.into_iter().enumerate() {
        for store in [&[][..], &["--store"]] {
            let file = scratch.write("d.jsonl", record("mill", 1) + "\n");
            let index = scratch.path(format!("{number}-{}", store.len()));
            let job = millrace(args!["build", "--quiet", "--index", index, file]);
            job.args(options).args(store).ok();
            let check = || millrace(args!["check", "--index", index]).ok();
            let show = || millrace(args!["show", "--index", index, "a"]);
            check();
            assert!(show().ok().text().contains("river stone"), "{options:?}");
            // Of the same length.
            let other = if options[0] == "--field" { record("race", 1) } else { record("mill", 2) };
            std::fs::write(&file, other + "\n").unwrap();
            check();
            match store.is_empty() {
                true => _ = show().run().expect_status(1).says("the file has changed since"),
                false => _ = show().ok(),
            }
        }
    }
}

#[test]
fn a_rebuild_sees_that_values_alone_have_changed() {
    let scratch = Scratch::new();
    let job = "index = 'index'\n[[input]]\npaths = ['docs/*']\n[build]\ngpus = 'none'\n\
               column = ['year:int']\nstore-fields = ['author']\n";
    let job = scratch.write("job.toml", job);
    let index = scratch.path("index");
    let write = |years: [u32; 4], authors: [&str; 4]| {
        let all = (0..4).map(|n| (n, years[n], authors[n]));
        let json = all.clone().map(|(n, year, author)| {
            json!({"id": format!("j{n}"), "year": year, "author": author, "text": "mill"})
                .to_string()
                + "\n"
        });
        scratch.write("docs/a.jsonl", json.collect::<String>());
        let csv = all.map(|(n, year, author)| format!("c{n},{year},{author},mill\n"));
        let head = String::from("id,year,author,text\n");
        scratch.write("docs/b.csv", head + &csv.collect::<String>());
    };
    let rebuild = || {
        millrace(args!["rebuild", job, "--once"]).ok();
        millrace(args!["check", "--index", index]).ok();
        let status = std::fs::read_to_string(index.join("rebuild/history.jsonl")).unwrap();
        let last: Value = serde_json::from_str(status.lines().last().unwrap()).unwrap();
        last["documents"]["changed"].as_u64().unwrap()
    };
    let found = |filter: &str| {
        let job = millrace(args!["query", "--index", index, "--query", "mill", "--filter", filter]);
        let job = job.args(["--format", "jsonl", "--return", "author"]);
        let lines = job.ok().json_lines();
        let hits = lines[0]["hits"].as_array().unwrap().iter();
        let of = |hit: &Value| (hit["name"].clone(), hit["values"]["author"].clone());
        BTreeMap::from_iter(hits.map(of).map(|(name, author)| {
            (name.as_str().unwrap().to_owned(), author.as_str().unwrap().to_owned())
        }))
    };
    let named = |pairs: &[(&str, &str)]| {
        BTreeMap::from_iter(pairs.iter().map(|&(name, author)| (name.into(), author.into())))
    };
    write([1, 2, 3, 4], ["x", "y", "z", "w"]);
    rebuild();
    assert_eq!(found("year < 2"), named(&[("c0", "x"), ("j0", "x")]));
    write([1, 2, 0, 4], ["x", "y", "z", "w"]);
    assert_eq!(rebuild(), 2);
    assert_eq!(found("year < 2"), named(&[("c0", "x"), ("j0", "x"), ("c2", "z"), ("j2", "z")]));
    write([1, 2, 0, 4], ["v", "y", "z", "w"]);
    assert_eq!(rebuild(), 2);
    assert_eq!(found("year < 2"), named(&[("c0", "v"), ("j0", "v"), ("c2", "z"), ("j2", "z")]));
}
