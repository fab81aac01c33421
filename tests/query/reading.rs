//! Queries are read as they are meant, in every form that they come in, or refused.

mod columns;
mod weights;

use crate::support::fixture::{Fixture, bits, hits};
use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Documents of which each query below finds one.
const DOCUMENTS: &str = "{\"id\": \"d0\", \"text\": \"dark matter in galaxies\"}\n\
    {\"id\": \"d1\", \"text\": \"the family tree\"}\n\
    {\"id\": \"d2\", \"text\": \"number 10001 and the year 2016\"}\n\
    {\"id\": \"d3\", \"text\": \"a caf\u{e9} in the obama era\"}\n\
    {\"id\": \"d4\", \"text\": \"milling mills and more of the dark\"}\n";

struct Asked {
    scratch: Scratch,
    index: std::path::PathBuf,
}

impl Asked {
    fn new() -> Self {
        let scratch = Scratch::new();
        let index = scratch.path("index");
        build(&index, args![scratch.write("docs.jsonl", DOCUMENTS)]);
        Self { scratch, index }
    }

    fn job(&self, more: &[&str]) -> Job {
        let job = args!["query", "--index", self.index, "-w", "1", "--format", "jsonl"];
        millrace(job).args(more)
    }

    /// The name and the text of each query of a file, or of a pipe.
    fn file(&self, bytes: impl AsRef<[u8]>, more: &[&str]) -> Outcome {
        let path = self.scratch.write("queries", bytes);
        self.job(more).arg(&path).run()
    }

    fn pipe(&self, bytes: impl AsRef<[u8]>, more: &[&str]) -> Outcome {
        self.job(more).stdin(bytes.as_ref()).run()
    }
}

fn asked(outcome: &Outcome) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    outcome.json_lines().iter().map(|found| (text(&found["qid"]), text(&found["query"]))).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(qid, text)| (qid.to_string(), text.to_string())).collect()
}

#[test]
fn compressed_queries_are_unpacked() {
    let of = Asked::new();
    let expected = pairs(&[("q1", "dark matter"), ("q2", "family tree")]);
    for (name, bytes) in packed("q1\tdark matter\nq2\tfamily tree\n") {
        assert_eq!(asked(&of.file(&bytes, &[]).expect_status(0)), expected, "{name}");
        assert_eq!(asked(&of.pipe(&bytes, &[]).expect_status(0)), expected, "{name} in a pipe");
        let cut = &bytes[..bytes.len() - 3];
        of.file(cut, &[]).expect_status(1).says("reading the queries");
        let path = of.scratch.write("queries", &bytes);
        let bench = args!["bench", "queries", "--index", of.index, "--passes", "1", path];
        assert_eq!(millrace(bench).ok().json_lines()[0]["queries"], 2, "{name}");
    }
    // Forms are recognised by what is in the file.
    for (name, bytes) in packed("301 dark matter\n302 family tree\n") {
        let expected = pairs(&[("301", "dark matter"), ("302", "family tree")]);
        assert_eq!(asked(&of.file(&bytes, &[]).expect_status(0)), expected, "{name}");
    }
    let text = pairs(&[("1", "BZh9 was a name")]);
    assert_eq!(asked(&of.file("BZh9 was a name\n", &[]).expect_status(0)), text);
}

#[test]
fn files_of_json_are_queries_and_never_words() {
    let of = Asked::new();
    let expected = pairs(&[("a", "dark matter"), ("b", "family tree")]);
    for text in [
        "[{\"qid\": \"a\", \"query\": \"dark matter\"}, {\"qid\": \"b\", \"query\": \"family tree\"}]",
        "[\n  {\n    \"_id\": \"a\",\n    \"text\": \"dark matter\"\n  },\n  {\"id\": \"b\", \"question\": \"family tree\"}\n]\n",
        "\u{feff}{\"a\": {\"query\": \"dark matter\"}, \"b\": \"family tree\"}\n",
        "{\n \"a\": {\"title\": \"dark matter\"},\n \"b\": \"family tree\"\n}\n",
        "{\n\"qid\": \"a\",\n\"query\": \"dark matter\"}\n{\n\"qid\": \"b\", \"query\": \"family tree\"}\n",
        "{\"qid\": \"a\", \"query\": null, \"text\": \"dark matter\"}\n{\"qid\":\"b\",\"query\":\"family tree\",\"k\":null}\n",
    ] {
        for outcome in
            [of.file(text, &[]), of.pipe(text, &[]), of.file(text, &["--query-format", "json"])]
        {
            assert_eq!(asked(&outcome.expect_status(0)), expected, "{text}");
        }
    }
    let texts = of.file("[\"dark matter\", \"family tree\"]", &[]).expect_status(0);
    assert_eq!(asked(&texts), pairs(&[("1", "dark matter"), ("2", "family tree")]));
    let numbers = of.pipe("{\"qid\": 7, \"query\": \"x\"}\n{\"id\": 8.5, \"text\": \"y\"}\n", &[]);
    assert_eq!(asked(&numbers.expect_status(0)), pairs(&[("7", "x"), ("8.5", "y")]));
    // Brackets and braces that are no JSON.
    let words = of.file("[solved] rust\nb\n", &[]).expect_status(0);
    assert_eq!(asked(&words)[0], ("1".into(), "[solved] rust".into()));
    assert_eq!(asked(&of.pipe("[\nb\n", &[]).expect_status(0)), pairs(&[("1", "["), ("2", "b")]));
    for (text, place) in [
        (
            "[{\"qid\": \"a\", \"query\": \"x\"},\n {\"qid\": \"b\", \"query\": ]",
            "line 2 of the queries (byte 52)",
        ),
        ("[{\"query\": \"x\"}", "(byte 15)"),
        ("[\"a\" b]\n", "(byte 5)"),
        ("{\n\"qid\": \"a\",\n\"query\" \"x\"}\n", "line 3 of the queries (byte 22)"),
    ] {
        let outcome = of.file(text, &[]).expect_status(1).says("breaks here").says(place);
        assert!(outcome.json_lines().iter().all(|line| line["hits"].is_null()), "{text}");
    }
    // Lines of foreign fields are no names of queries.
    let foreign =
        "{\"number\": \"1\", \"statement\": \"x\"}\n{\"number\": \"2\", \"statement\": \"y\"}\n";
    of.file(foreign, &[])
        .expect_status(1)
        .says("has neither query, text, question, title nor vector");
    of.pipe(foreign, &[]).expect_status(1).says("has the fields `number`, `statement`");
    let map = "{\"q1\": \"x\"}\n{\"q2\": \"y\"}\n";
    of.pipe(map, &[]).expect_status(1).says("after an object that has all queries");
    of.file("[{\"query\": \"x\"}, 3]", &[]).expect_status(1).says("neither an object nor a text");
}

#[test]
fn fields_that_are_not_known_are_named_once() {
    let of = Asked::new();
    let text = "{\"_id\":\"a\",\"text\":\"dark\",\"reasoning\":\"x\",\"gold_ids\":[\"d1\"]}\n\
                {\"qid\":\"b\",\"query\":\"family\",\"language\":\"en\"}\n";
    let outcome = of.file(text, &[]).expect_status(0).says("reasoning, gold_ids");
    assert_eq!(outcome.stderr.matches("unknown fields are ignored").count(), 1);
    assert_eq!(asked(&outcome), pairs(&[("a", "dark"), ("b", "family")]));
    let cased =
        of.pipe("{\"Query\": \"dark\"}\n{\"query\": \"x\", \"K\": 3}\n", &[]).expect_status(1);
    cased.says("differs from `query` in case").says("differs from `k` in case");
}

#[test]
fn numbers_before_a_colon_are_names_if_all_lines_have_them() {
    let of = Asked::new();
    let text = "10001:dark matter\n10002:family tree\n";
    let expected = pairs(&[("10001", "dark matter"), ("10002", "family tree")]);
    let outcome = of.file(text, &[]).expect_status(0);
    assert_eq!(asked(&outcome), expected);
    outcome
        .says("every line is `number:text`")
        .says("the query 10001 with the words `dark matter`");
    // A pipe is not looked at before its first answer, unless the form is asked for.
    assert_eq!(asked(&of.pipe(text, &[]).expect_status(0))[0].0, "1");
    assert_eq!(asked(&of.pipe(text, &["--query-format", "colon"]).expect_status(0)), expected);
    let priorities = "10001:1:dark matter\n10002:4:family tree\n";
    let outcome = of.file(priorities, &[]).expect_status(0).says("`number:priority:text`");
    assert_eq!(asked(&outcome), expected);
    assert_eq!(
        asked(&of.pipe(priorities, &["--query-format", "colon"]).expect_status(0)),
        expected
    );
    for words in
        ["12:30 train\n7:15 bus\n", "1:dark\n", "1:a\n1:b\n", "1:a\nb\n", "2016 a\n2012 b\n"]
    {
        let outcome = of.file(words, &[]).expect_status(0);
        let first = words.lines().next().unwrap();
        assert_eq!(asked(&outcome)[0], ("1".into(), first.into()), "{words}");
        assert!(!outcome.stderr.contains("is read so"), "{words}");
    }
}

#[test]
fn forms_that_are_asked_for_hold_for_all_lines() {
    let of = Asked::new();
    let words =
        of.pipe("{dark} matter\n1\tx\n<b>\n", &["--query-format", "words"]).expect_status(0);
    assert_eq!(asked(&words), pairs(&[("1", "{dark} matter"), ("2", "1\tx"), ("3", "<b>")]));
    let tsv = of.pipe("a\tdark\nmatter\n", &["--query-format", "tsv"]).expect_status(1);
    assert_eq!(asked(&tsv)[0], ("a".into(), "dark".into()));
    tsv.says("line 2 of the queries (byte 7): a line is `qid TAB text` here");
    of.pipe("dark\n", &["--query-format", "topics"]).expect_status(1).says("has no <top>");
    of.pipe("dark\n", &["--query-format", "json"]).expect_status(1).says("is no JSON");
    of.pipe("dark\n", &["--query-format", "xml"]).expect_status(2).says("give words, tsv");
}

#[test]
fn encodings_are_told_by_marks_declarations_and_names() {
    let of = Asked::new();
    let text = "q1\tcaf\u{e9}\nq2\tdark\n";
    let expected = pairs(&[("q1", "caf\u{e9}"), ("q2", "dark")]);
    let wide = |of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect::<Vec<u8>>();
    let full: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let little = wide(u16::to_le_bytes);
    for marked in [
        [b"\xff\xfe", &little[..]].concat(),
        [b"\xfe\xff", &wide(u16::to_be_bytes)[..]].concat(),
        [&b"\xff\xfe\0\0"[..], &full].concat(),
    ] {
        assert_eq!(asked(&of.file(&marked, &[]).expect_status(0)), expected);
        assert_eq!(asked(&of.pipe(&marked, &["--encoding", "latin1"]).expect_status(0)), expected);
    }
    assert_eq!(asked(&of.file(&little, &["--encoding", "utf-16le"]).expect_status(0)), expected);
    of.file(&little, &[]).expect_status(1).says("this is UTF-16");
    assert_eq!(asked(&of.file(&latin, &["--encoding", "latin1"]).expect_status(0)), expected);
    let outcome = of.file(&latin, &[]).expect_status(0);
    outcome.says("line 1 of the queries has bytes that are no UTF-8");
    of.file(&latin, &["--encoding", "klingon"]).expect_status(2).says("`klingon` is no encoding");
    for ends in ["\r", "\r\n"] {
        let text = text.replace('\n', ends);
        assert_eq!(asked(&of.file(&text, &[]).expect_status(0)), expected, "{ends:?}");
        assert_eq!(asked(&of.pipe(&text, &[]).expect_status(0)), expected, "{ends:?}");
    }
    let xml = b"<?xml version='1.0' encoding='iso-8859-1'?><topics><topic number='1'>\
                <title>caf\xe9</title></topic></topics>";
    for more in [&[][..], &["--encoding", "koi8-r"]] {
        assert_eq!(asked(&of.pipe(xml, more).expect_status(0)), pairs(&[("1", "caf\u{e9}")]));
    }
    // Also that of UTF-8 comes before what is asked for; that of UTF-16 in ASCII is wrong.
    for name in ["utf-8", "UTF-16", "utf-32"] {
        let xml = format!(
            "<?xml version='1.0' encoding='{name}'?><topics><topic number='1'>\
             <title>caf\u{e9}</title></topic></topics>"
        );
        let outcome = of.file(&xml, &["--encoding", "latin1"]).expect_status(0);
        assert_eq!(asked(&outcome), pairs(&[("1", "caf\u{e9}")]), "{name}");
    }
    // What is cut at the end is named as no character.
    for (cut, name) in
        [(&little[..little.len() - 3], "utf-16le"), (&full[..full.len() - 6], "utf-32")]
    {
        let outcome = of.pipe(cut, &["--encoding", name]).expect_status(0);
        assert_eq!(asked(&outcome)[1].1, "dar\u{fffd}", "{name}");
        of.pipe(cut, &[]).expect_status(1).says("this is UTF-16 or UTF-32");
    }
    // Judgements, too.
    let qrels: Vec<u8> = "\u{feff}q2 0 d0 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let qrels = of.scratch.write("qrels", qrels);
    let job = of.job(&["--qrels", qrels.to_str().unwrap()]).stdin("q2\tdark matter\n");
    job.ok().says("1.0000");
}

#[test]
fn one_query_is_asked_for_by_its_words() {
    let of = Asked::new();
    for text in ["dark matter", "17\tdark", "{\"query\": \"x\"}", "<top>", "10001:dark", "a\nb"] {
        let outcome = of.job(&["--query", text]).ok();
        assert_eq!(asked(&outcome), pairs(&[("1", text)]));
    }
    of.job(&["--query", "x", "file"]).fails(2).says("cannot be used with");
    let missing = of.job(&["it's dark"]).fails(1);
    assert!(missing.stderr.trim_end().ends_with("to ask for these words: --query 'it'\\''s dark'"));
    of.job(&["-k", "0", "--query", "x"]).fails(2).says("from 1 on");
    let outcome = of.pipe("{\"query\": \"dark\", \"k\": 0}\ndark\n", &[]).expect_status(1);
    outcome.says("has a `k` that is no whole number from 1 on");
}

#[test]
fn names_that_come_twice_are_told_or_refused() {
    let of = Asked::new();
    let text = "a\tdark\nb c\tfamily\na\tobama\n";
    of.pipe(text, &[]).expect_status(0).says("two queries have the name a");
    let qrels = of.scratch.write("qrels", "a 0 d0 1\nb_c 0 d1 1\n");
    let measured = ["--qrels", qrels.to_str().unwrap()];
    let refused = of.pipe(text, &measured).expect_status(2).says("two queries have the name a");
    assert_eq!(asked(&refused).len(), 2);
    let path = of.scratch.write("queries", text);
    let tune = args!["tune", "--index", of.index, "--qrels", qrels, "--folds", "2", path];
    millrace(tune).fails(2).says("two queries have the name a");
    // White space in a name is no border, wherever it is written or looked up.
    for form in ["trec", "jsonl", "tsv"] {
        let more = ["--format", form, "--qrels", measured[1]];
        let job = millrace(args!["query", "--index", of.index]).args(more);
        let outcome = job.stdin("a\tdark matter\nb c\tfamily\n").ok();
        let out = String::from_utf8_lossy(&outcome.stdout);
        assert!(form != "trec" || out.contains("b_c Q0 d1 1 "), "{out}");
        outcome.says("1.0000");
    }
}

#[test]
fn weights_are_of_terms_of_the_index() {
    let of = Asked::new();
    let score = |text: &str, more: &[&str]| {
        let outcome = of.pipe(text, more).expect_status(0);
        assert!(!outcome.stderr.contains("operator"), "{}", outcome.stderr);
        let answer = outcome.json_lines().remove(0);
        hits(&answer).iter().map(|hit| hit.1).collect::<Vec<_>>()
    };
    let plain = score("mill\n", &[]);
    assert_eq!(plain.len(), 1);
    let twice: Vec<f32> = plain.iter().map(|score| score * 2.0).collect();
    assert_eq!(score("{\"vector\": {\"mill\": 2}}\n", &[]), twice);
    assert_eq!(score("applypipeline:off mill^2\n", &[]), twice);
    assert_eq!(score("x\tmill^2\n", &["--query-format", "weights"]), twice);
    // Terms are not stemmed, and the weight of a word is none unless that is asked for.
    assert_eq!(score("{\"vector\": {\"mills\": 2}}\n", &[]), Vec::<f32>::new());
    assert_eq!(
        of.job(&["--query", "mills^1.5", "--query-format", "weights"]).ok().json_lines()[0]["hits"],
        Value::Array(Vec::new())
    );
    let warned = of.pipe("mill^2\nmill*\n", &[]).expect_status(0);
    assert_eq!(warned.stderr.matches("`mill^2` is searched for as words alone").count(), 1);
    warned.says("`--query-format weights` takes terms");
    of.pipe("dark AND \"matter\"\n", &[]).expect_status(0).says("words alone: `--mode and` finds");
    of.job(&["--query", "dark | matter"]).ok().says("words alone: `--mode or` finds");
}

#[test]
fn expanded_queries_are_asked_again_to_the_bit() {
    let fixture = Fixture::new(94, 200);
    let queries = fixture.queries(940, 20).join("\n");
    let expanded = fixture.query(&["--format", "jsonl", "--rm3", "5,10,0.6"]).stdin(queries).ok();
    let again = fixture.query(&["--format", "jsonl"]).stdin(expanded.stdout.clone()).ok();
    let (expanded, again) = (expanded.json_lines(), again.json_lines());
    assert_eq!(expanded.len(), 20);
    for (expanded, again) in expanded.iter().zip(&again) {
        assert!(expanded["vector"].is_object());
        assert_eq!(expanded["vector"], again["vector"]);
        assert_eq!(bits(&hits(expanded)), bits(&hits(again)), "{}", expanded["query"]);
    }
    assert!(expanded.iter().any(|answer| hits(answer).len() > 5));
}

#[test]
fn the_document_with_the_name_of_the_query_is_removed() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let documents: Vec<String> = (0..9)
        .map(|n| format!("{{\"_id\": \"q{n}\", \"text\": \"dark matter {}\"}}\n", "x ".repeat(n)))
        .collect();
    build(&index, args![scratch.write("c.jsonl", documents.concat())]);
    let queries =
        scratch.write("q.jsonl", "{\"_id\": \"q1\", \"text\": \"dark matter\"}\nq20\tdark\n");
    let names = |more: &[&str]| -> Vec<Vec<String>> {
        let job = millrace(args!["query", "--index", index, "-k", "4", "--format", "jsonl"]);
        let name = |hit: &Value| hit["name"].as_str().unwrap().to_string();
        let answers = job.args(more).arg(&queries).ok().json_lines();
        answers.iter().map(|a| a["hits"].as_array().unwrap().iter().map(name).collect()).collect()
    };
    let all = names(&[]);
    assert_eq!(all[0], ["q0", "q1", "q2", "q3"]);
    for mode in ["or", "and", "and-or"] {
        for workers in ["1", "3"] {
            let kept = names(&["--remove-query", "--mode", mode, "-w", workers]);
            assert_eq!(kept[0], ["q0", "q2", "q3", "q4"], "{mode}");
            assert_eq!(kept[1], all[1]);
        }
    }
    let qrels = scratch.write("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\tq0\t1\nq20\tq2\t1\n");
    let tune = |more: &[&str]| {
        let job = args!["tune", "--index", index, "--qrels", qrels, "--folds", "2", "--k1", "1.2"];
        let job = millrace(job).args(["--b", "0.75", "-m", "P@2", "--json"]).args(more);
        job.arg(&queries).ok().json_lines()[0]["default"]["mean"].as_f64().unwrap()
    };
    assert_eq!((tune(&[]), tune(&["--remove-query"])), (0.25, 0.25));
}

/// All documents of the name go, and none of another.
#[test]
fn several_documents_with_the_name_of_the_query_are_removed() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let documents: Vec<String> = ["a", "q", "b", "q", "c", "q", "d"]
        .iter()
        .enumerate()
        .map(|(n, name)| {
            format!("{{\"id\": \"{name}\", \"text\": \"dark matter {}\"}}\n", "x ".repeat(n))
        })
        .collect();
    build(&index, args![scratch.write("c.jsonl", documents.concat())]);
    let names = |workers: &str, k: &str| -> Vec<String> {
        let job = args!["query", "--index", index, "--remove-query", "-w", workers, "-k", k];
        let answers = millrace(job).args(["--format", "jsonl"]).stdin("q\tdark matter\n");
        let answers = answers.ok().json_lines();
        let hits = answers[0]["hits"].as_array().unwrap();
        hits.iter().map(|hit| hit["name"].as_str().unwrap().to_string()).collect()
    };
    for workers in ["1", "3"] {
        assert_eq!(names(workers, "7"), ["a", "b", "c", "d"]);
        // One hit more is looked for, so that fewer than k may be left.
        assert_eq!(names(workers, "2"), ["a", "b"]);
        assert_eq!(names(workers, "3"), ["a", "b"]);
    }
}

/// The inputs that were reported are read or refused; nothing is misread in silence.
#[test]
fn reported_queries_are_read_or_refused() {
    let ask = |folder: &Path, file: &str| {
        let scratch = Scratch::new();
        let index = scratch.path("index");
        build(&index, args![folder.join("docs.jsonl")]);
        let job = args!["query", "--index", index, "--format", "jsonl", folder.join(file)];
        millrace(job).run()
    };
    let names =
        |outcome: &Outcome| -> Vec<String> { asked(outcome).into_iter().map(|q| q.0).collect() };
    let Some(folder) = shared("reports/23-query-gz") else { return };
    for file in ["q.tsv.gz", "q.tsv.zst", "q.tsv.bz2", "q.tsv.xz"] {
        assert_eq!(names(&ask(&folder, file)), ["q1", "q2"], "{file}");
    }
    let folder = shared("reports/24b-query-json-array-one-line").unwrap();
    assert_eq!(names(&ask(&folder, "one.json").expect_status(0)), ["a", "b"]);
    let folder = shared("reports/26-query-qid-colon").unwrap();
    assert_eq!(names(&ask(&folder, "q.txt").expect_status(0)), ["10001", "10002", "10003"]);
    let folder = shared("reports/27-query-encodings").unwrap();
    for (file, queries) in
        [("bom.tsv", 2), ("u16.tsv", 2), ("cr.tsv", 2), ("ls.tsv", 2), ("l1.tsv", 1)]
    {
        let outcome = ask(&folder, file).expect_status(0);
        assert_eq!(names(&outcome).len(), queries, "{file}");
        assert_eq!(outcome.stderr.contains("no UTF-8"), file == "l1.tsv", "{file}");
    }
    let folder = shared("reports/30-query-operators").unwrap();
    let outcome = ask(&folder, "q.tsv").expect_status(0);
    assert_eq!(outcome.json_lines().len(), 9);
    assert_eq!(outcome.stderr.matches("is searched for as words alone").count(), 1);
    assert_eq!(names(&ask(&folder, "lt.txt").expect_status(0)), ["1", "2"]);
    let folder = shared("reports/72-topics-variants").unwrap();
    for (file, text) in [
        ("clef-old.topics", "dark matter"),
        ("clef-new.topics", "dark matter"),
        ("cdata.topics", "dark & matter <x>"),
        ("session.topics", "dark matter"),
        ("latin1-xml.topics", "caf\u{e9} dark"),
    ] {
        let outcome = ask(&folder, file).expect_status(0);
        let texts: Vec<String> = asked(&outcome).into_iter().map(|query| query.1).collect();
        assert_eq!(texts, [text], "{file}");
    }
}
