//! Input that other programs write, and of which nothing is to be misread without a word: names and
//! texts in fields of other names.

use crate::support::*;
use std::path::Path;

/// Builds an index of a file without stemming, in which each word is a term.
fn build_of(scratch: &Scratch, name: &str, bytes: impl AsRef<[u8]>, more: &[&str]) -> Outcome {
    let input = scratch.write(name, bytes);
    let job = millrace(args!["build", "--index", scratch.path("index"), "--stemmer", "none"]);
    job.args(args!["--stopwords", "none", "--memory", "64M", "-w", "1"]).args(more).arg(input).run()
}

/// The names of an index, in order.
fn names(index: &Path) -> String {
    let rows = millrace(args!["dump", "--index", index, "documents"]).ok().json_lines();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap().to_string()).collect();
    names.join(" ")
}

/// The terms of an index, sorted.
fn terms(index: &Path) -> String {
    let rows = millrace(args!["dump", "--index", index, "terms"]).ok().json_lines();
    let mut terms: Vec<_> =
        rows.iter().map(|row| row["term"].as_str().unwrap().to_string()).collect();
    terms.sort();
    terms.join(" ")
}

/// The manifest of the live generation.
fn manifest(index: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(generation(index).join("manifest.json")).unwrap())
        .unwrap()
}

fn is_silent(outcome: &Outcome, what: &str) {
    assert!(!outcome.stderr.contains(what), "`{what}` is in\n{outcome:?}");
}

#[test]
fn documents_are_named_by_other_fields_where_there_is_no_usual_one() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let lines = "{\"doc_id\":\"a\",\"text\":\"one\"}\n{\"doc_id\":\"x\",\"docno\":\"b\",\"text\":\"two\"}\n";
    let outcome = build_of(&scratch, "a.jsonl", lines, &[]).expect_status(0);
    is_silent(&outcome, "have no name");
    assert_eq!(names(&index), "a b");
    build_of(&scratch, "a.csv", "cord_uid,abstract\nc,one\nd,two\n", &[]).expect_status(0);
    assert_eq!((names(&index), terms(&index)), ("c d".into(), "one two".into()));
    // What nobody knows as a name is told, with what could be one.
    let line =
        |n: u32| format!("{{\"key\":\"k{n}\",\"lang\":\"en\",\"text\":\"mill race {n}\"}}\n");
    let lines: String = (0..90).map(line).collect();
    let outcome = build_of(&scratch, "k.jsonl", &lines, &[]).expect_status(0);
    let outcome = outcome.says("most documents of ").says("k.jsonl have no name");
    outcome.says("these fields could be names: key\n");
    let outcome = build_of(&scratch, "k.jsonl", &lines, &["--id-field", "key"]).expect_status(0);
    is_silent(&outcome, "have no name");
    // And so are names that repeat.
    let line = |n: u32| format!("{{\"id\":{},\"part\":\"p{n}\",\"text\":\"mill race\"}}\n", n / 3);
    let lines: String = (0..90).map(line).collect();
    let outcome = build_of(&scratch, "r.jsonl", &lines, &[]).expect_status(0);
    let outcome = outcome.says("60 documents have the name of an earlier one");
    outcome.says("these fields could be names: part\n");
    let lines: String =
        (0..300).map(|n: u32| format!("{{\"id\":{},\"text\":\"a b c\"}}\n", n.max(2))).collect();
    is_silent(&build_of(&scratch, "r.jsonl", lines, &[]).expect_status(0), "an earlier one;");
}

#[test]
fn texts_are_in_other_fields_where_there_is_no_usual_one() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let words = "lighthouse breakwater harbour quay";
    for field in
        "segment abstract content full_text description document article paragraph".split(' ')
    {
        let line = format!("{{\"id\":\"a\",\"{field}\":\"{words}\",\"title\":\"short\"}}\n");
        let outcome = build_of(&scratch, "f.jsonl", &line, &[]).expect_status(0);
        is_silent(&outcome, "not indexed");
        assert_eq!(terms(&index), "breakwater harbour lighthouse quay short", "{field}");
        let input = &manifest(&index)["inputs"][0];
        assert_eq!(input["taken_fields"], serde_json::json!(["title", field]));
        // Snippets and texts are read again as they were indexed.
        let queries = scratch.write("q", "quay\n");
        let asked =
            args!["query", "--index", index, "--format", "jsonl", "--rm3", "5,5,0.5", &queries];
        assert_eq!(millrace(asked).ok().json_lines()[0]["hits"][0]["name"], "a");
        // Beside a usual one it is not taken, wherever it stands.
        let line = line.replace(
            "\"title\":\"short\"",
            "\"body\":\"short and long enough to be the text of it\"",
        );
        is_silent(&build_of(&scratch, "f.jsonl", line, &[]).expect_status(0), "not indexed");
        assert!(terms(&index).starts_with("and be enough"), "{field}");
    }
    let line = format!(
        "{{\"id\":\"a\",\"txt\":\"{words}\",\"title\":\"short\",\"x\":{{\"y\":\"{words}\"}}}}\n"
    );
    let outcome = build_of(&scratch, "f.jsonl", &line, &[]).expect_status(0);
    let outcome = outcome.says("93 % of the bytes of strings in ");
    outcome.says("f.jsonl are in fields that are not indexed: txt, x\n");
    // It is said once for all files.
    scratch.write("in/f.jsonl", &line);
    scratch.write("in/g.jsonl", &line);
    scratch.write("in/h.csv", format!("id,title,other\n1,a,{words}\n"));
    let outcome = millrace(args!["build", "--index", index, scratch.path("in")]).ok();
    let outcome = outcome.says("f.jsonl and 2 more files are in fields");
    outcome.says("not indexed: txt, x, other\n");
    // Who asks for fields knows of the others.
    let outcome = build_of(&scratch, "f.jsonl", &line, &["--text-field", "title"]).expect_status(0);
    is_silent(&outcome, "not indexed");
}

#[test]
fn the_text_of_each_record_is_decided_by_itself_for_any_pieces() {
    let scratch = Scratch::new();
    let mut random = Random::new(51);
    let mut lines = String::new();
    for n in 0..9000u32 {
        let words: Vec<String> = (0..40).map(|_| format!("w{}", random.below(500))).collect();
        let text = words.join(" ");
        lines += &match n % 4 {
            0 => format!("{{\"id\":{n},\"text\":\"{text}\"}}\n"),
            1 => format!("{{\"abstract\":\"{text}\",\"doc_id\":{n}}}\n"),
            2 => format!("{{\"uid\":\"u{n}\",\"content\":[\"{text}\",\"end\"],\"title\":\"t\"}}\n"),
            _ => format!("{{\"abstract\":\"no\",\"id\":{n},\"contents\":\"{text}\"}}\n"),
        };
    }
    let input = scratch.write("m.jsonl", &lines);
    let packed = scratch.write("p/m.jsonl.gz", gzip(lines.as_bytes(), 3));
    let first = scratch.path("first");
    build(&first, args![&input, "-w", "1"]);
    for (n, more) in [vec!["-w", "4"], vec!["-w", "2", "--indexer", "wei11"]].iter().enumerate() {
        let index = scratch.path(format!("other-{n}"));
        build(&index, args![&input].iter().cloned().chain(more.iter().map(Into::into)));
        assert_same_index(&first, &index, &[]);
    }
    build(&scratch.path("packed"), args![packed, "-w", "3"]);
    assert_eq!(terms(&first), terms(&scratch.path("packed")));
    assert_eq!(names(&first), names(&scratch.path("packed")));
    assert!(!terms(&first).split(' ').any(|term| term == "no"));
}

#[test]
fn reported_files_of_fields_and_lists_are_read() {
    let Some(reports) = shared("reports") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let read = |name: &str| {
        let bytes = std::fs::read(reports.join(name)).unwrap();
        build_of(&scratch, Path::new(name).file_name().unwrap().to_str().unwrap(), bytes, &[])
    };
    let outcome = read("06-json-array-text/c.jsonl").expect_status(0);
    assert_eq!(names(&index), "a c e");
    outcome.says("the field `contents` is not a string");
    assert_eq!(terms(&index), "first kept para plain second title x");
    for field in "abstract article content description document full_text paragraph".split(' ') {
        let outcome = read(&format!("67-other-text-fields/{field}.jsonl")).expect_status(0);
        is_silent(&outcome, "not indexed");
        assert_eq!(terms(&index), "breakwater lighthouse long other short text the title");
    }
    read("67-other-text-fields/txt.jsonl")
        .expect_status(0)
        .says("fields that are not indexed: txt");
}
