//! Topics as evaluations have them are read, and answers are measured at once.

use crate::support::fixture::Fixture;
use crate::support::*;
use serde_json::Value;

fn asked(answers: &[Value]) -> Vec<(&str, &str)> {
    answers.iter().map(|a| (a["qid"].as_str().unwrap(), a["query"].as_str().unwrap())).collect()
}

const ROBUST: &str = "<top>\n\n<num> Number: 301\n<title> first\nwords\n<desc> Description:\nlonger &amp; more\n\
                      </top>\n<top>\n<num> Number: 302\n<title> second\n</top>\n";
const COVID: &str = "<topics><topic number=\"301\"><query>first words</query><question>longer &amp; more\
                     </question></topic><topic number=\"302\"><query>second</query></topic></topics>";
const BEIR: &str = "{\"_id\": \"301\", \"text\": \"first words\", \"metadata\": {\"url\": \"x\"}}\n\
                    {\"_id\": \"302\", \"text\": \"second\"}\n";
const BLANKS: &str = "301 first words\n302  second\n";
const TABS: &str = "301\tfirst words\n302\tsecond\n";

/// All forms of the same two topics are the same queries.
#[test]
fn all_forms_of_topics_are_the_same_queries() {
    let fixture = Fixture::new(91, 100);
    for (name, file) in
        [("robust", ROBUST), ("covid", COVID), ("beir", BEIR), ("blanks", BLANKS), ("tabs", TABS)]
    {
        let path = fixture.scratch.write(name, file);
        let job = args!["query", "--index", fixture.index, "--format", "jsonl", path];
        let outcome = millrace(job).ok();
        let answers = outcome.json_lines();
        assert_eq!(asked(&answers), [("301", "first words"), ("302", "second")], "{name}");
        assert_eq!(outcome.stderr.contains("every line is `qid text`"), name == "blanks", "{name}");
        if name == "blanks" {
            continue;
        }
        // Through a pipe nothing is looked at before it is read.
        let answers = fixture.query(&["--format", "jsonl"]).stdin(file).ok().json_lines();
        assert_eq!(asked(&answers), [("301", "first words"), ("302", "second")], "{name}");
    }
    let fields = fixture.query(&["--format", "jsonl", "--topic-fields", "desc,title"]);
    let answers = fields.stdin(ROBUST).ok().json_lines();
    assert_eq!(asked(&answers), [("301", "longer & more first words"), ("302", "second")]);
    fixture.query(&["--topic-fields", "a b"]).fails(2).says("give names of fields");
}

/// What is no query is an error of its place, and what comes behind it is answered.
#[test]
fn markup_is_never_a_query() {
    let fixture = Fixture::new(92, 100);
    let query = || fixture.query(&["--format", "jsonl"]);
    let outcome = query().stdin("<html>words</html>\n").run().expect_status(1);
    outcome.says("line 1 of the queries (byte 0)").says("has no <top>, <topic> or <query>");
    let outcome = query().stdin("some words\n<top> words\nother words\n").run().expect_status(1);
    let outcome = outcome.says("line 2 of the queries (byte 11)");
    let answers = outcome.json_lines();
    assert_eq!((answers.len(), &answers[2]["query"]), (3, &"other words".into()));
    let cut = "<top>\n<num>1\n<title> a\n</top>\n<top>\n<num>2\n<title> b\n";
    let outcome = query().stdin(cut).run().expect_status(1);
    let outcome = outcome.says("line 5 of the queries (byte 30)").says("no end tag");
    assert_eq!(asked(&outcome.json_lines()[..1]), [("1", "a")]);
    // A line without a blank stands in no file of `qid text`, so that the whole file is plain
    // texts.
    let path = fixture.scratch.write("plain", "49ers game\n2012 olympics\nwords\n");
    let answers = query().arg(&path).ok().json_lines();
    assert_eq!(asked(&answers)[0], ("1", "49ers game"));
}

#[test]
fn what_looks_like_an_operator_is_said_once() {
    let fixture = Fixture::new(93, 100);
    let said = |queries: &str| {
        fixture
            .query(&[])
            .stdin(queries)
            .ok()
            .stderr
            .matches("is searched for as words alone")
            .count()
    };
    assert_eq!(said("plain words\nwell-known a - b\nhttp://x.y/z 3:4\n"), 0);
    for query in ["\"a phrase\" b", "a -b", "+a b", "title:a"] {
        assert_eq!(said(&format!("{query}\n{query}\n")), 1, "{query}");
    }
}

/// The topics that come with a collection, measured by its judgements, are what `evaluate` says of
/// the run that was written.
#[test]
fn answers_are_measured_as_they_are_written() {
    let Some(folder) = shared("formats/trec-vaswani") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![folder.join("doc-text.trec")]);
    let qrels = folder.join("qrels");
    let report = scratch.path("report");
    let topics = folder.join("query-text.trec");
    let ask = |form: &str| {
        let job = args!["query", "--quiet", "--index", index, "-k", "1000", "--tag", "run-7"];
        millrace(job).args(["--format", form]).arg(&topics)
    };
    for form in ["trec", "jsonl", "tsv"] {
        let plain = ask(form).ok().stdout;
        let outcome = ask(form).arg("--qrels").arg(&qrels).arg("--report").arg(&report).ok();
        // Times differ from run to run.
        assert!(form == "jsonl" || outcome.stdout == plain, "{form}");
        let job = millrace(args!["evaluate", "--json", "--qrels", qrels, "-"]);
        let expected = job.stdin(plain).ok().json_lines().remove(0);
        let told: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(told["measures"], expected["measures"], "{form}");
        assert!(expected["measures"]["AP"].as_f64().unwrap() > 0.25);
        let ap = format!("{:.4}", expected["measures"]["AP"].as_f64().unwrap());
        outcome.says(&ap);
    }
    let run = String::from_utf8(ask("trec").ok().stdout).unwrap();
    assert!(run.lines().all(|line| line.ends_with(" run-7")));
    let missing = scratch.path("missing");
    ask("trec").arg("--qrels").arg(&missing).fails(1).says("missing");
    for tag in ["", "a b", "a\tb"] {
        let job = millrace(args!["query", "--index", index, "--tag", tag]);
        job.fails(2).says("give one word");
    }
}
