//! Fields of records that an index keeps, against the records.

use super::{Records, WORDS};
use crate::support::{Random, Scratch, args, assert_same_index, millrace, run_path};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

const FIELDS: [&str; 4] = ["author", "meta", "note", "x y"];

/// Lines of JSON, and what they say in the fields, by name.
fn records(seed: u64, from: usize, count: usize) -> (String, Records) {
    let mut random = Random::new(seed);
    let (mut jsonl, mut all) = (String::new(), Records::new());
    for number in from..from + count {
        let text: Vec<&str> = (0..1 + random.below(30)).map(|_| random.pick(&WORDS)).collect();
        let mut record = super::Record::new();
        let author = match random.below(4) {
            0 => json!(["Ada", "Bo \u{fc}"]),
            1 => Value::Null,
            _ => format!("\"{}\"\t\\", random.pick(&WORDS)).into(),
        };
        record.insert("author".into(), author);
        let meta = json!({"n": random.below(1 << 40), "deep": [{"a": null}, [], 1.5, true, "\n"]});
        record.insert("meta".into(), meta);
        if random.below(3) == 0 {
            let long = random.pick(&WORDS).repeat(random.below(3000));
            record.insert("note".into(), long.into());
        }
        if random.below(2) == 0 {
            record.insert("x y".into(), random.below(9).into());
        }
        let name = format!("d{number}");
        let mut line = record.clone();
        line.insert("id".into(), name.clone().into());
        line.insert("text".into(), text.join(" ").into());
        writeln!(jsonl, "{}", Value::from(line)).unwrap();
        all.insert(name, record);
    }
    (jsonl, all)
}

/// What is said of all hits, and of some documents, is what the records say.
fn assert_kept(index: &Path, records: &Records, what: &str) {
    millrace(args!["check", "--index", index]).ok();
    let job = millrace(args!["query", "--index", index, "--quiet", "-k", "5000"]);
    let asked = ["--query", &WORDS.join(" "), "--format", "jsonl", "--return", &FIELDS.join(",")];
    let found = job.args(asked).ok().json_lines();
    let hits = found[0]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), records.len(), "{what}");
    for hit in hits {
        let record = &records[hit["name"].as_str().unwrap()];
        for field in FIELDS {
            let expected = record.get(field).unwrap_or(&Value::Null);
            assert_eq!(&hit["values"][field], expected, "{what}: {field} of {hit}");
        }
    }
    for (name, record) in records.iter().step_by(97) {
        let shown = millrace(args!["show", "--json", "--index", index, name]).ok().json_lines();
        let there: Value = record.clone().into_iter().filter(|of| !of.1.is_null()).collect();
        assert_eq!(shown[0]["stored"], there, "{what}: {name}");
    }
}

#[test]
fn oracle_fields_are_those_of_the_records() {
    let scratch = Scratch::new();
    let (jsonl, mut all) = records(5, 0, 700);
    let file = scratch.write("d.jsonl", &jsonl);
    let fields = ["--store-fields", &FIELDS.join(",")];
    let whole = scratch.path("whole");
    millrace(args!["build", "--index", whole, file, "-w", "1"]).args(fields).ok();
    for (name, more, limit) in [
        ("merged", &["-w", "3"][..], Some("9000")),
        ("runs", &["--store", "--no-merge", "-w", "2"], Some("9000")),
        ("texts", &["--store", "--column", "note", "-w", "2"], None),
    ] {
        let index = scratch.path(name);
        let job = millrace(args!["build", "--index", index, file]).args(fields).args(more);
        limit.into_iter().fold(job, |job, limit| job.env("MILLRACE_RUN_LIMIT", limit)).ok();
        assert_kept(&index, &all, name);
        if name == "merged" {
            assert_same_index(&whole, &index, &[]);
        }
    }
    let index = scratch.path("runs");
    let shown = millrace(args!["show", "--index", index, "d7"]).ok();
    assert!(shown.text().contains("\nstored    meta: {\"deep\":"), "{}", shown.text());
    assert!(millrace(args!["info", "--index", index]).ok().text().contains("author"));
    let tsv = ["--query", "water", "--format", "tsv", "--return", "author,x y"];
    let tsv = millrace(args!["query", "--index", index, "--quiet"]).args(tsv).ok();
    for line in tsv.text().lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(cells.len(), 7, "{line}");
        let author = match &all[cells[2]]["author"] {
            Value::String(text) => text.replace('\t', "_"),
            Value::Null => String::new(),
            list => list.to_string(),
        };
        assert_eq!(cells[5], author);
    }

    // Documents come and go, and are ordered.
    let (more, new) = records(6, 690, 40);
    let new_file = scratch.write("new.jsonl", more);
    millrace(args!["update", "--index", index, new_file]).ok();
    all.extend(new);
    assert_kept(&index, &all, "updated");
    for name in ["d9", "d27", "d700"] {
        millrace(args!["delete", "--index", index, name]).ok();
        all.remove(name);
    }
    assert_kept(&index, &all, "deleted");
    millrace(args!["merge", "--index", index, "--order", "name", "--now"]).ok();
    assert_kept(&index, &all, "ordered");
}

#[test]
fn fields_are_kept_of_every_format_and_job_file() {
    let scratch = Scratch::new();
    let told = |index: &Path, name: &str| {
        let row = millrace(args!["show", "--json", "--index", index, name]).ok().json_lines();
        row[0]["stored"].clone()
    };
    let csv = scratch.write("d.csv", "id,text,Place,n\n1,water,\"x, y\",\n2,mill,,7\n");
    let trec = "<DOC><DOCNO>t</DOCNO><DATE>1 May</DATE><DATE>2 May</DATE><TEXT>mill</TEXT></DOC>\n";
    let trec = scratch.write("d.trec", trec);
    let html = "<html><head><title>A &amp; B</title></head><body>mill</body></html>";
    let html = scratch.write("d.html", html);
    let index = scratch.path("index");
    let fields = ["--store-fields", "Place,n", "--store-fields", "date,title"];
    millrace(args!["build", "--index", index, csv, trec, html]).args(fields).ok();
    assert_eq!(told(&index, "1"), json!({"Place": "x, y"}));
    assert_eq!(told(&index, "2"), json!({"n": "7"}));
    assert_eq!(told(&index, "t"), json!({"date": ["1 May", "2 May"]}));
    assert_eq!(told(&index, "d.html"), json!({"title": "A & B"}));

    let docs = scratch.write("d.jsonl", "{\"id\":\"1\",\"text\":\"mill\",\"a\":1,\"b\":2}\n");
    let job = |fields: &str| {
        let text = format!(
            "index = \"followed\"\n[[input]]\npaths = [{docs:?}]\n[build]\nstore-fields = {fields}\n"
        );
        let file = scratch.write("job.toml", text);
        millrace(args!["rebuild", "--once", file]).run()
    };
    let followed = scratch.path("followed");
    job("[\"a\"]").expect_status(0);
    assert_eq!(told(&followed, "1"), json!({"a": 1}));
    job("[\"b\", \"a\"]").expect_status(0);
    assert_eq!(told(&followed, "1"), json!({"a": 1, "b": 2}));
    job("7").expect_status(2).says("job.toml");

    let vectors = scratch.write("v.jsonl", "{\"id\":\"1\",\"vector\":{\"a\":1},\"b\":[2]}\n");
    let index = scratch.path("vectors");
    let build = ["--format", "vectors", "--store-fields", "b"];
    millrace(args!["build", "--index", index, vectors]).args(build).ok();
    millrace(args!["check", "--index", index]).ok();
    assert_eq!(told(&index, "1"), json!({"b": [2]}));
}

#[test]
fn wrong_names_and_damage_are_told() {
    let scratch = Scratch::new();
    let docs = scratch.write("d.jsonl", "{\"id\":\"1\",\"text\":\"mill\",\"author\":\"Ada\"}\n");
    let index = scratch.path("index");
    for (fields, why) in [("a,a", "there twice"), ("a,,b", "no name"), ("a\nb", "no name")] {
        let build = args!["build", "--index", index, "--store-fields", fields, docs];
        millrace(build).fails(2).says("--store-fields").says(why);
    }
    let fields = ["--store-fields", "author,title,id", "--column", "year:int", "--column", "id"];
    let built = millrace(args!["build", "--index", index, docs]).args(fields).ok();
    let lacking = "as columns or to be kept: title, year; the first record has author, id, text\n";
    assert_eq!(built.says(lacking).stderr.matches("to be kept").count(), 1);
    // Documents that come later need not have what others have.
    let more = scratch.write("more.jsonl", "{\"id\":\"1\",\"text\":\"mill\",\"title\":\"a\"}\n");
    let both = millrace(args!["build", "--index", scratch.path("both"), docs, more]).args(fields);
    both.ok().says("to be kept: year; the first");
    let updated = millrace(args!["update", "--index", scratch.path("both"), docs]).ok();
    assert!(!updated.stderr.contains("to be kept"), "{updated:?}");
    let ask = |name: &str| {
        let asked = ["--query", "mill", "--format", "jsonl", "--return", name];
        millrace(args!["query", "--index", index]).args(asked)
    };
    let near = "no column and no stored field of the index: there are author, year, title, id\n";
    ask("autor").fails(2).says(near);
    ask("author,nothing").fails(2).says("`nothing`");
    let filtered = ["--filter", "author = 'Ada'"];
    ask("author").args(filtered).fails(2).says("is no column");
    assert!(ask("author").ok().text().contains("\"values\":{\"author\":\"Ada\"}"));
    let path = run_path(&index, 0, "texts");
    let good = std::fs::read(&path).unwrap();
    let mut bytes = good;
    bytes[66] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    ask("author").fails(1).says("000000.texts: byte");
    millrace(args!["check", "--index", index]).fails(1).says("000000.texts");
}

/// Beside the postings of all documents, turned over.
#[test]
fn oracle_vectors_are_those_of_the_postings() {
    let scratch = Scratch::new();
    let (jsonl, all) = records(8, 0, 300);
    let file = scratch.write("d.jsonl", &jsonl);
    for (name, codec) in [("a", "bp128"), ("b", "pfor"), ("c", "vbyte")] {
        let index = scratch.path(name);
        let job = millrace(args!["build", "--index", index, file, "--no-merge", "--codec", codec]);
        job.args(["--field", "author", "--field", "text"]).env("MILLRACE_RUN_LIMIT", "9000").ok();
        for gone in ["d3", "d150"] {
            millrace(args!["delete", "--index", index, gone]).ok();
        }
        let dump = millrace(args!["dump", "--index", index, "--format", "tsv", "postings"]).ok();
        let mut expected = vec![String::new(); all.len()];
        for line in dump.text().lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let docid: usize = cells[1].parse().unwrap();
            writeln!(expected[docid], "{}\t{}", cells[0], cells[2]).unwrap();
        }
        assert!(expected[0].contains("text:"), "{}", expected[0]);
        for docid in (0..300).step_by(23).chain([299]) {
            let number = docid.to_string();
            let show = args!["show", "--index", index, "--vector", "--docid", number];
            assert_eq!(millrace(show).ok().text(), expected[docid], "{docid}");
            let show = args!["show", "--index", index, "--vector", "--json", format!("d{docid}")];
            let row = millrace(show).ok().json_lines().remove(0);
            assert_eq!(row["docid"], docid);
            let terms = row["vector"].as_object().unwrap();
            assert_eq!(terms.len(), expected[docid].lines().count());
            for line in expected[docid].lines() {
                let (term, tf) = line.split_once('\t').unwrap();
                assert_eq!(terms[term].to_string(), tf);
            }
        }
        millrace(args!["show", "--index", index, "--vector", "d3"]).fails(1).says("d3");
        millrace(args!["show", "--index", index, "--vector", "--term", "x"]).fails(2);
    }
}

/// Words of a snippet are marked if and only if the query has them.
#[test]
fn oracle_highlights_are_the_words_of_the_query() {
    let scratch = Scratch::new();
    let (jsonl, _) = records(9, 0, 200);
    let upper = jsonl.replace("wheel", "Wheels,").replace("old", "(OLD)");
    let file = scratch.write("d.jsonl", upper);
    let index = scratch.path("index");
    millrace(args!["build", "--index", index, file, "--store", "--positions"]).ok();
    for (query, words) in [
        ("water wheels", &["water", "Wheels"][..]),
        ("\"old mill\" -river +stone", &["OLD", "mill", "stone"]),
        ("tall nowhere", &["tall"]),
    ] {
        let ask = ["--query", query, "--format", "jsonl", "--snippets", "--syntax", "operators"];
        let job = millrace(args!["query", "--index", index, "--quiet", "-k", "40"]);
        let hits = job.args(ask).ok().json_lines()[0]["hits"].clone();
        let hits = hits.as_array().unwrap();
        assert!(hits.len() > 5, "{query}");
        for hit in hits {
            let snippet = hit["snippet"].as_str().unwrap();
            let mut expected = Vec::new();
            let mut start = 0;
            for word in snippet.split(|letter: char| !letter.is_alphanumeric()) {
                if words.contains(&word) {
                    expected.push(json!([start, start + word.len()]));
                }
                start += word.len() + 1;
            }
            assert_eq!(hit["highlights"], Value::from(expected), "{query}: {snippet}");
        }
    }
}
