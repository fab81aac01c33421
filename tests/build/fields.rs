//! Fields of documents, against a look at each text.

use crate::phrases::dumped;
use crate::support::{Random, Scratch, args, assert_same_index, cut_lines, info, millrace};
use millrace::{BuildOptions, IndexFields, OwnedDocument, Writer, build};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const WORDS: [&str; 10] =
    ["alpha", "abc", "42", "the", "of", "rare", "naïve", "über", "b", "withmorethansixteenletters"];
const STOP_WORDS: [&str; 3] = ["the", "of", "über"];
/// `note` is no text of a document by itself, `tags` neither, and nothing has `none`.
const FIELDS: [&str; 4] = ["title", "tags", "none", "note"];
const GAP: u32 = 100;
const FILES: usize = 8;

/// By the name of a document where a term stands in it.
type Postings = BTreeMap<String, Vec<u32>>;

#[derive(Clone)]
struct Parts {
    /// What is found without naming a field, and the parts of each field.
    text: Vec<String>,
    fields: BTreeMap<&'static str, Vec<String>>,
}

#[derive(Clone, Default)]
struct Collection {
    jsonl: String,
    documents: BTreeMap<String, Parts>,
}

impl Collection {
    fn new(seed: u64, numbers: std::ops::Range<usize>) -> Self {
        let mut random = Random::new(seed);
        let mut collection = Self::default();
        for number in numbers {
            let mut text = |most: usize| -> String {
                let words = (0..random.below(most)).map(|_| match random.below(40) {
                    0..5 => format!("r{}", random.below(300)),
                    // Cut in front of the number of a field.
                    5 => "x".repeat(253) + ["y", "é", "yz", "z", "yé"][random.below(5)],
                    6 => "é".repeat(127) + ["a", ""][random.below(2)],
                    7..20 => random.pick(&WORDS[..4]).to_string(),
                    _ => random.pick(&WORDS).to_string(),
                });
                words.collect::<Vec<_>>().join(" ")
            };
            let most = [4, 30, 300][number % 3];
            let (title, list, note) = (text(6), [text(most), text(most / 2)], text(9));
            let tags: Vec<String> = (0..number % 4).map(|_| text(3)).collect();
            let name = format!("d{number}");
            let mut line = json!({"id": name, "note": note, "text": list, "tags": tags});
            let mut fields = BTreeMap::from([("tags", tags), ("note", vec![note])]);
            let mut texts = list.to_vec();
            if number % 5 > 0 {
                line["title"] = json!(title);
                fields.insert("title", vec![title.clone()]);
                // Members of the line are in the order of their names.
                texts.push(title);
            }
            writeln!(collection.jsonl, "{line}").unwrap();
            collection.documents.insert(name, Parts { text: texts, fields });
        }
        collection
    }

    /// The postings of all terms as they are shown, by name.
    fn postings(&self) -> BTreeMap<String, Postings> {
        let mut all: BTreeMap<String, Postings> = BTreeMap::new();
        for (name, parts) in &self.documents {
            let fields = parts.fields.iter().map(|(field, parts)| (Some(*field), parts));
            for (field, parts) in std::iter::once((None, &parts.text)).chain(fields) {
                for (term, places) in places(parts, field) {
                    all.entry(term).or_default().insert(name.clone(), places);
                }
            }
        }
        all
    }

    fn tokens(&self, field: &str) -> u64 {
        let all = self.postings();
        let of_field = all.iter().filter(|(term, _)| term.starts_with(&format!("{field}:")));
        of_field.flat_map(|(_, postings)| postings.values()).map(|tfs| tfs.len() as u64).sum()
    }
}

fn cut(word: &str, most: usize) -> &str {
    let end = (0..=most.min(word.len())).rev().find(|&end| word.is_char_boundary(end));
    &word[..end.unwrap()]
}

fn places(parts: &[String], field: Option<&str>) -> BTreeMap<String, Vec<u32>> {
    let mut places: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut at = 0;
    for part in parts {
        for word in part.split(' ').filter(|word| !word.is_empty()) {
            if !STOP_WORDS.contains(&word) {
                let term = cut(word, 255);
                let shown = field.map(|field| format!("{field}:{}", cut(term, 254)));
                places.entry(shown.unwrap_or_else(|| term.to_string())).or_default().push(at);
            }
            at += 1;
        }
        at += GAP;
    }
    places
}

/// What an index holds is what the texts say, and it is sound.
fn assert_holds(index: &Path, collection: &Collection, what: &str) {
    let (found, expected) = (dumped(index), collection.postings());
    for (term, postings) in &expected {
        assert_eq!(found.get(term), Some(postings), "{what}: {term}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
    millrace(args!["check", "--index", index]).ok();
    let tokens: Vec<u64> = serde_json::from_value(info(index)["field_tokens"].clone()).unwrap();
    assert_eq!(tokens, FIELDS.map(|field| collection.tokens(field)), "{what}");
}

struct Set {
    scratch: Scratch,
    collection: Collection,
}

impl Set {
    fn new(seed: u64, documents: usize) -> Self {
        let scratch = Scratch::new();
        let collection = Collection::new(seed, 0..documents);
        let parts = cut_lines(collection.jsonl.as_bytes(), FILES);
        (0..).zip(parts).for_each(|(n, part)| drop(scratch.write(format!("{n}.jsonl"), part)));
        scratch.write("stop", STOP_WORDS.join("\n"));
        Self { scratch, collection }
    }

    fn build(&self, index: &Path, more: &[&str], run_limit: Option<u64>) {
        let fields = FIELDS.iter().flat_map(|field| ["--field", field]);
        let mut job = self.plain(index, more).args(fields);
        if let Some(limit) = run_limit {
            job = job.env("MILLRACE_RUN_LIMIT", limit.to_string());
        }
        job.ok().says("no document has text of the field `none`");
    }

    fn plain(&self, index: &Path, more: &[&str]) -> crate::support::Job {
        millrace(args!["build", "--index", index, "--positions", "--stemmer", "none"])
            .args(args!["--stopwords", self.scratch.path("stop")])
            .args(more)
            .args((0..FILES).map(|n| self.scratch.path(format!("{n}.jsonl"))))
    }
}

/// The same postings, and the same bytes where these are promised, for any number of workers, any
/// memory, runs, codec and order; and when documents have come and gone.
#[test]
fn oracle_fields_are_those_of_the_texts() {
    let set = Set::new(3, 900);
    let whole = set.scratch.path("whole");
    set.build(&whole, &["-w", "1"], None);
    assert_holds(&whole, &set.collection, "whole");
    for (name, more, limit) in [
        ("workers", &["-w", "3"][..], None),
        ("merged", &["-w", "2"], Some(60_000)),
        ("little", &["-w", "2", "--memory", "64M"], Some(20_000)),
        ("runs", &["-w", "2", "--no-merge"], Some(60_000)),
        ("name", &["--order", "name"], None),
        ("rice", &["--codec", "rice", "--block-size", "512"], None),
        ("newpfd", &["--codec", "newpfd", "--block-size", "64"], None),
    ] {
        let index = set.scratch.path(name);
        set.build(&index, more, limit);
        assert_holds(&index, &set.collection, name);
        if matches!(name, "workers" | "merged" | "little") {
            assert_same_index(&whole, &index, &[]);
        }
    }

    let index = set.scratch.path("runs");
    assert!(info(&index)["runs"].as_u64().unwrap() > 3);
    let gone: Vec<String> = (0..900).step_by(5).map(|number| format!("d{number}")).collect();
    let names = set.scratch.write("gone", gone.join("\n"));
    millrace(args!["delete", "--index", index, "--file", names]).ok();
    let mut collection = set.collection.clone();
    collection.documents.retain(|name, _| !gone.contains(name));
    assert_holds(&index, &collection, "deleted");
    // Some replace others.
    let new = Collection::new(4, 880..940);
    let new_file = set.scratch.write("new.jsonl", &new.jsonl);
    millrace(args!["update", "--index", index, new_file]).ok();
    collection.documents.extend(new.documents);
    assert_holds(&index, &collection, "updated");
    for more in [&[][..], &["--order", "name"], &["--codec", "vbyte"], &["--memory", "4M"]] {
        millrace(args!["merge", "--index", index]).args(more).ok();
        assert_holds(&index, &collection, &format!("merged {more:?}"));
    }
}

/// What is found without naming a field has the bytes that it has without fields, and so have
/// documents in any order.
#[test]
fn all_text_is_as_without_fields() {
    let set = Set::new(5, 300);
    for more in [&[][..], &["--order", "topic"]] {
        let [with, without] = ["with", "without"].map(|name| set.scratch.path(name));
        set.build(&with, more, None);
        set.plain(&without, more).ok();
        let rows = |index: &Path, what: &str| {
            let text = millrace(args!["dump", "--index", index, what]).ok().text().to_string();
            let is_of_field =
                |line: &&str| FIELDS.iter().any(|f| line.contains(&format!("\"{f}:")));
            text.lines().filter(|line| !is_of_field(line)).map(str::to_string).collect::<Vec<_>>()
        };
        for what in ["terms", "postings", "documents"] {
            assert_eq!(rows(&with, what), rows(&without, what), "{what} {more:?}");
        }
        let files = [&with, &without].map(|index| crate::support::files(index));
        for kind in ["lengths", "names", "ends", "locations", "lookup"] {
            let name = format!("runs/000000.{kind}");
            assert!(files[0].get(&name) == files[1].get(&name), "{kind} {more:?}");
        }
    }
}

#[test]
fn a_length_of_a_field_may_be_long() {
    let scratch = Scratch::new();
    let words = |count: usize| "w ".repeat(count);
    let mut lines = String::new();
    for (name, title, body) in [("a", 65_534, 1), ("b", 65_535, 70_000), ("c", 0, 65_536)] {
        let line = json!({"id": name, "title": words(title), "body": words(body)});
        writeln!(lines, "{line}").unwrap();
    }
    let file = scratch.write("a.jsonl", &lines);
    let index = scratch.path("index");
    let build =
        args!["build", "--index", index, "--field", "body", "--field", "title", "--no-merge"];
    millrace(build).arg(file).env("MILLRACE_RUN_LIMIT", "1").ok();
    let tokens = || info(&index)["field_tokens"].clone();
    for job in [&["check"][..], &["merge"], &["merge", "--order", "length"], &["check"]] {
        millrace(job).args(args!["--index", index]).ok();
        assert_eq!(tokens(), json!([1 + 70_000 + 65_536, 65_534 + 65_535]));
    }
    let names = scratch.write("gone", "b\n");
    millrace(args!["delete", "--index", index, "--file", names]).ok();
    assert_eq!(tokens(), json!([1 + 65_536, 65_534]));
    millrace(args!["check", "--index", index]).ok();
    let shown = millrace(args!["show", "--index", index, "--term", "body:W"]).ok();
    assert!(shown.text().contains("term      body:w\ndf        2 of 2"), "{}", shown.text());
}

#[test]
fn formats_have_fields() {
    let page = "<title>Mill &amp; race</title><h1>Of <b>wa</b>ter</h1><p>wheel<h2>dry</h2>";
    let trec = "<DOC><DOCNO>1</DOCNO><TITLE>mill</TITLE><TEXT>wheel <P>dry</P></TEXT></DOC>";
    let wiki = "<mediawiki><page><title>Mill race</title><ns>0</ns><revision><text>'''wheel'''</text></revision></page></mediawiki>";
    let warc = format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}\r\n\r\n",
        page.len()
    );
    let of_page: &[(&str, &str)] =
        &[("title", "mill race"), ("headings", "water dry"), ("body", "water wheel dry")];
    let json = r#"{"id":"1","title":"mill","ti\u0074le":"race","text":"wheel","other":["dry",{"a":"no"},7,"water"]}"#;
    let of_json: &[(&str, &str)] =
        &[("title", "mill race"), ("other", "dry water"), ("text", "wheel")];
    let of_trec: &[(&str, &str)] = &[("title", "mill"), ("text", "wheel dry"), ("p", "dry")];
    let of_wiki: &[(&str, &str)] = &[("title", "mill race"), ("text", "wheel")];
    let of_csv: &[(&str, &str)] = &[("title", "mill"), ("other", "dry, wheel")];
    let csv = "id,Title,text,Other\n1,mill,wheel,\"dry, wheel\"\n";
    for (file, content, expected) in [
        ("a.jsonl", json, of_json),
        ("a.json", &format!("[{json}]"), of_json),
        ("a.csv", csv, of_csv),
        ("a.html", page, of_page),
        ("a.warc", &warc, of_page),
        ("a.trec", trec, of_trec),
        ("a.xml", wiki, of_wiki),
    ] {
        let scratch = Scratch::new();
        let path = scratch.write(file, content);
        let index = scratch.path("index");
        let fields = expected.iter().flat_map(|(field, _)| ["--field", field]);
        let build = args!["build", "--index", index, "--stemmer", "none"];
        let format = if file == "a.trec" { "trec" } else { "auto" };
        millrace(build).args(fields).args(["--format", format]).arg(path).ok();
        let mut found: Vec<String> = millrace(args!["dump", "--index", index, "terms"])
            .ok()
            .json_lines()
            .iter()
            .map(|row| row["term"].as_str().unwrap().to_string())
            .filter(|term| term.contains(':'))
            .collect();
        let mut all: Vec<String> = Vec::new();
        for (field, words) in expected {
            let words = words.split([' ', ',']).filter(|word| !word.is_empty());
            all.extend(words.map(|word| format!("{field}:{word}")));
        }
        all.sort();
        found.sort();
        assert_eq!(found, all, "{file}");
        millrace(args!["check", "--index", index]).ok();
    }
}

#[test]
fn fields_are_refused_by_name() {
    let scratch = Scratch::new();
    let file = scratch.write("a.jsonl", "{\"id\":\"1\",\"title\":\"mill\"}\n");
    let vectors = scratch.write("v.jsonl", "{\"id\":\"1\",\"vector\":{\"mill\":2}}\n");
    let index = scratch.path("index");
    let refused = |more: &[&str], file: &Path, why: &str| {
        let job = args!["build", "--index", index, file];
        let outcome = millrace(job).args(more).run();
        assert!(outcome.stderr.contains(why), "{more:?}: {}", outcome.stderr);
        assert!(!index.join("CURRENT").exists());
    };
    refused(&["--field", "a:b"], &file, "--field: expected a letter or digit");
    refused(&["--field", "a", "--field", "a"], &file, "`a` is given twice");
    let wei11 = ["--field", "title", "--indexer", "wei11"];
    refused(&wei11, &file, "the indexer wei11 knows no fields");
    refused(&["--field", "title", "--format", "tsv"], &file, "the format tsv has no fields");
    let of_vectors = ["--field", "title", "--format", "vectors"];
    refused(&of_vectors, &vectors, "vectors has no fields");
    millrace(args!["build", "--index", index, "--field", "title", file]).ok();
    let ciff = scratch.path("a.ciff");
    let export = millrace(args!["export", "--index", index, ciff]).ok();
    let export = export.says("CIFF knows no fields: it has all text, and title left out");
    assert!(export.stderr.contains("1 term"), "{}", export.stderr);
}

/// Bytes from 1 to 31 are numbers of fields, where there are fields.
#[test]
fn tokens_between_white_space_have_no_numbers_of_fields() {
    let scratch = Scratch::new();
    let line = json!({"id": "1", "text": "mill\u{1}race x\u{2}", "title": "a\u{1f}b"});
    let file = scratch.write("a.jsonl", format!("{line}\n"));
    let index = scratch.path("index");
    let build = args!["build", "--index", index, "--tokenizer", "whitespace", file];
    let terms = || -> Vec<String> {
        let rows = millrace(args!["dump", "--index", index, "terms"]).ok().json_lines();
        let mut terms: Vec<String> =
            rows.iter().map(|row| row["term"].as_str().unwrap().to_string()).collect();
        terms.sort();
        terms
    };
    millrace(build.clone()).ok();
    assert_eq!(terms(), ["a\u{1f}b", "mill\u{1}race", "x\u{2}"]);
    millrace(build).args(["--field", "title"]).ok();
    assert_eq!(terms(), ["a", "b", "mill", "race", "title:a", "title:b", "x"]);
    millrace(args!["check", "--index", index]).ok();
    let query = millrace(args!["query", "--index", index, "--format", "tsv"]);
    assert_eq!(query.stdin("x\u{2}mill\n").ok().text().lines().count(), 1);
}

/// Documents that a program has, and a rebuild, have fields too; a text that a field alone has is
/// content of its document.
#[test]
fn programs_and_rebuilds_have_fields() {
    let scratch = Scratch::new();
    let index = scratch.path("memory");
    let document = |name: &str, title: &str| {
        let document = OwnedDocument::new(name, "all text").with_field("contents", "mill");
        document.with_field("contents", "race").with_field("title", title)
    };
    let mut options = BuildOptions::of_documents(&index, [document("a", "x"), document("b", "y")]);
    options.index_fields = IndexFields::new(["title", "contents"]).unwrap();
    build(options).unwrap();
    let terms = |index: &Path| -> Vec<String> {
        let rows = millrace(args!["dump", "--index", index, "postings"]).ok().json_lines();
        let shown = |row: &Value| format!("{} {}", row["term"].as_str().unwrap(), row["postings"]);
        let mut terms: Vec<String> = rows.iter().map(shown).collect();
        terms.retain(|row| row.contains(':'));
        terms.sort();
        terms
    };
    let of_both = ["contents:mill [[0,1],[1,1]]", "contents:race [[0,1],[1,1]]"];
    assert_eq!(terms(&index), [&of_both[..], &["title:x [[0,1]]", "title:y [[1,1]]"]].concat());
    let writer = Writer::new(&index);
    writer.update_document(document("b", "z"));
    writer.commit(false).unwrap();
    let expected =
        ["contents:mill [[0,1],[1,1]]", "contents:race [[0,1],[1,1]]", "title:x [[0,1]]"];
    assert_eq!(terms(&index), [&expected[..], &["title:z [[1,1]]"]].concat());
    millrace(args!["check", "--index", index]).ok();

    let line = |title: &str| format!("{{\"id\":\"1\",\"text\":\"t\",\"note\":\"{title}\"}}\n");
    scratch.write("a.jsonl", line("old"));
    let job = |fields: &str| {
        let job = format!(
            "index = \"rebuilt\"\n[[input]]\npaths = [\"a.jsonl\"]\n[build]\nfield = {fields}\n"
        );
        let job = scratch.write("job.toml", job);
        millrace(args!["rebuild", "--once", job]).ok();
        terms(&scratch.path("rebuilt"))
    };
    assert_eq!(job("\"note\""), ["note:old [[0,1]]"]);
    scratch.write("a.jsonl", line("newer"));
    assert_eq!(job("\"note\"").last().unwrap(), "note:newer [[0,1]]");
    assert_eq!(job("[\"text\", \"note\"]"), ["note:newer [[0,1]]", "text:t [[0,1]]"]);
}
