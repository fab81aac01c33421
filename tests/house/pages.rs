//! Reports as pages, drawn by a headless browser: the first screen says what was found, charts are
//! there, in light and dark, wide and narrow; nothing is fetched.

use crate::support::browser::{browse, check_looks, held, looks};
use crate::support::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// A page and what it has to show: a part of the sentence, and the titles of its charts in order.
struct Shown {
    page: PathBuf,
    sentence: &'static str,
    charts: Vec<&'static str>,
}

/// A folder with a collection, queries and judgements, and the pages of jobs on them.
struct Pages {
    scratch: Scratch,
    shown: Vec<Shown>,
}

impl Pages {
    fn new() -> Self {
        let scratch = Scratch::new();
        let document = |n: usize| {
            let length = 20 + n % 50;
            let mut words: Vec<String> =
                (1..length).map(|w| format!("w{}", n * w * w % 701)).collect();
            words.extend(vec![format!("w{}", n % 60); n % 7]);
            json!({"id": format!("d{n}"), "contents": words.join(" ")}).to_string() + "\n"
        };
        scratch.write("c.jsonl", (0..4000).map(document).collect::<String>());
        scratch.write("more.jsonl", "{\"id\": \"x\", \"contents\": \"mill\"}\n{\"id\"\n");
        let query = |n: usize| format!("q{n}\tw{} w{} <img src=x onerror=alert(1)>\n", n, n * n);
        scratch.write("queries.tsv", (1..400).map(query).collect::<String>());
        scratch.write("log.tsv", "1\tmill\n");
        let judged = |n: usize| format!("q{n} 0 d{} 1\nq{n} 0 d{} 2\n", n * 7, n * 11);
        scratch.write("qrels.txt", (1..60).map(judged).collect::<String>());
        Self { scratch, shown: Vec::new() }
    }

    fn path(&self, name: &str) -> OsString {
        self.scratch.path(name).into()
    }

    /// Runs a job whose words that begin with `@` are files of the folder.
    fn add(
        &mut self,
        name: &str,
        job: &str,
        status: i32,
        sentence: &'static str,
        charts: &[&'static str],
    ) {
        let words = job.split_whitespace();
        let args: Vec<OsString> = words
            .map(|word| word.strip_prefix('@').map_or(word.into(), |file| self.path(file)))
            .collect();
        let page = self.scratch.path(format!("{name}.html"));
        let job = millrace(args).arg("--report").arg(&page);
        let done = job.run();
        assert_eq!(done.status, Some(status), "{name}: {}", done.stderr);
        self.shown.push(Shown { page, sentence, charts: charts.to_vec() });
    }

    fn check(&self) {
        let steps: Vec<Value> = self.shown.iter().flat_map(|shown| looks(&shown.page)).collect();
        let Some(found) = browse(&steps) else { return };
        for (shown, found) in self.shown.iter().zip(found.chunks(3)) {
            let name = shown.page.file_name().unwrap().to_string_lossy();
            let seen = check_looks(&name, found);
            let sentence = seen["sentence"].as_str().unwrap();
            assert!(sentence.contains(shown.sentence), "{name}: {sentence}");
            let charts: Vec<&str> = seen["charts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|chart| chart["title"].as_str().unwrap())
                .collect();
            // A job that ends at once is looked at too seldom for what changes over its time.
            let is_there = |title: &&&str| {
                let changes = title.ends_with("in a second") || **title == WORK;
                !changes || charts.contains(*title)
            };
            let expected: Vec<&str> = shown.charts.iter().filter(is_there).copied().collect();
            assert_eq!(charts, expected, "{name}");
            assert_eq!(seen["last"], "Command", "{name}");
        }
    }
}

const WORK: &str = "Work by operator over time";

#[test]
fn builds_and_queries_draw_their_pictures() {
    let mut pages = Pages::new();
    pages.add(
        "build",
        "build --index @i --memory 64M -w 2 @c.jsonl",
        0,
        "has 4,000 documents and 701 terms",
        &["Text that was parsed in a second", WORK],
    );
    pages.add(
        "again",
        "build --index @i --no-merge @c.jsonl @more.jsonl",
        0,
        "1 record was skipped",
        &["Text that was parsed in a second", WORK],
    );
    let query = "query --index @i -w 2 --batch 8";
    let charts =
        ["Queries by the time that they took", "Queries that were answered in a second", WORK];
    pages.add("query", &format!("{query} @queries.tsv"), 0, "399 queries were answered", &charts);
    pages.add(
        "measured",
        &format!("{query} --qrels @qrels.txt @queries.tsv"),
        0,
        "nDCG@10 is 0.",
        &charts,
    );
    pages.add("failed", "build --index @none @not-there", 1, "The job build failed", &[]);
    pages.add("strict", "build --index @none --strict @more.jsonl", 1, "The job build failed", &[]);
    pages.check();
    let report = held(&pages.shown[2].page);
    let slowest = report["latency_us"]["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 10);
    assert!(slowest.is_sorted_by_key(|slow| -slow["took"].as_f64().unwrap()), "{slowest:?}");
    assert!(slowest[0]["query"].as_str().unwrap().ends_with("<img src=x onerror=alert(1)>"));
    assert_eq!(report["progress"].as_array().unwrap().last().unwrap()["done"], 399);
    let report = held(&pages.shown[1].page);
    let parsed = &report["progress"].as_array().unwrap().last().unwrap()["done"];
    assert_eq!(*parsed, report["uncompressed_bytes"]);
}

#[test]
fn measures_and_settings_draw_their_pictures() {
    let mut pages = Pages::new();
    build(&pages.scratch.path("i"), [pages.path("c.jsonl")]);
    for (name, more) in [("a", "--k1 1.2"), ("b", "--k1 3 --b 0.1"), ("c", "--score ql")] {
        let run =
            format!("query --index {} {more} --tag {name}", pages.scratch.path("i").display());
        let job = millrace(run.split_whitespace()).arg(pages.path("queries.tsv"));
        pages.scratch.write(format!("{name}.run"), job.ok().stdout);
    }
    pages.add(
        "one",
        "evaluate --qrels @qrels.txt @a.run",
        0,
        "over 59 judged queries",
        &["nDCG@10 of a.run, query by query"],
    );
    pages.add(
        "three",
        "evaluate --qrels @qrels.txt --queries @queries.tsv @a.run @b.run @c.run",
        0,
        "of 3 runs by nDCG@10",
        &["b.run minus a.run, query by query", "c.run minus a.run, query by query"],
    );
    pages.add(
        "alike",
        "evaluate --qrels @qrels.txt -m AP @a.run @a.run",
        0,
        "of 2 runs by AP",
        &["a.run minus a.run, query by query"],
    );
    let tune = "tune --index @i --qrels @qrels.txt -k 20 @queries.tsv";
    pages.add("map", &format!("{tune} --k1 0.9,1.2 --b 0.4,0.75"), 0, "of 4 settings of bm25", &[]);
    pages.add(
        "line",
        &format!("{tune} --score ql --mu 100,1000"),
        0,
        "settings of ql",
        &["nDCG@10 by mu"],
    );
    pages.add(
        "maps",
        &format!("{tune} --score bm25plus --k1 1.2 --b 0.4,0.75 --score-delta 0.5,1"),
        0,
        "of 4 settings of bm25plus",
        &[],
    );
    pages.check();
    let report = held(&pages.shown[1].page);
    assert_eq!(report["measures"][0], "nDCG@10");
    assert_eq!(report["texts"].as_object().unwrap().len(), 59);
    let [first, second] = [&report["runs"][0], &report["runs"][1]];
    assert_eq!(first["per_query"].as_object().unwrap().len(), 59);
    let against = &second["against"]["measures"]["nDCG@10"];
    let difference = against["difference"].as_f64().unwrap();
    let interval: Vec<f64> = serde_json::from_value(against["interval"].clone()).unwrap();
    assert!(interval[0] <= difference && difference <= interval[1], "{against}");
    millrace(args![
        "evaluate",
        "--qrels",
        pages.path("qrels.txt"),
        "--queries",
        "q",
        pages.path("a.run")
    ])
    .fails(2);
}

#[test]
fn rebuilds_are_shown_by_date() {
    let mut pages = Pages::new();
    let charts = ["Time of each rebuild", "Documents that were live after it"];
    let job = "index = \"i\"\n[[input]]\npaths = [\"c.jsonl\"]\n[build]\nmemory = \"64M\"\n[status]\nhtml = \"status.html\"\n";
    pages.scratch.write("job.toml", job);
    pages.add(
        "first",
        "rebuild @job.toml --once",
        0,
        "generation 1 is live with 4,000 documents",
        &charts,
    );
    pages.add("same", "rebuild @job.toml --once", 0, "nothing had changed", &charts);
    pages.scratch.write("c.jsonl", "{\"id\": \"x\", \"contents\": \"mill\"}\n");
    pages.add("guarded", "rebuild @job.toml --once", 1, "The job rebuild failed", &charts);
    pages.add("status", "rebuild @job.toml --status", 1, "The job rebuild failed", &charts);
    pages.add("history", "info --index @i --history", 0, "failed: ", &charts);
    let guards = json!({"min_documents": "90%", "min_tokens": "50%", "max_skipped": "1%"});
    let report = held(&pages.shown[2].page);
    assert_eq!([&report["guards"], &report["failed"]], [&guards, &json!(true)]);
    let outcomes = report["history"].as_array().unwrap().iter().map(|night| &night["outcome"]);
    assert_eq!(outcomes.collect::<Vec<_>>(), ["published", "unchanged", "failed"]);
    // The page of the job file has the same without a job.
    let status = held(&pages.scratch.path("status.html"));
    assert_eq!([&status["history"], &status["guards"]], [&report["history"], &guards]);
    pages.check();
}

#[test]
fn every_other_job_has_a_sentence_and_four_numbers() {
    let mut pages = Pages::new();
    build(&pages.scratch.path("i"), [pages.path("more.jsonl")]);
    build(&pages.scratch.path("i"), ["--no-merge".into(), pages.path("c.jsonl")]);
    pages.scratch.write("a.run", "1 Q0 a 1 2.5 x\n2 Q0 a 1 2.5 x\n");
    for (job, sentence) in [
        ("rollback --index @i", "is live again"),
        ("info --index @i", "of the index has 1 document"),
        ("show --index @i --docid 0", "Document 0 was shown"),
        ("show --index @i --term mill", "The term mill was shown"),
        ("explain --index @i --docid 0 mill", "The score of document 0"),
        ("dump --index @i terms", "of terms were printed"),
        ("merge --index @i --codec vbyte", "became one"),
        ("merge --index @i", "nothing to merge"),
        ("check --index @i", "is sound"),
        ("cache --index @i --memory 1M @log.tsv", "is planned for"),
        ("export --index @i @i.ciff", "were exported"),
        ("import --index @j @i.ciff", "were imported"),
        ("demo", "was indexed and asked"),
        ("devices", "GPU"),
        ("fuse @a.run @a.run", "became one by"),
        ("bench queries --index @i --passes 1 @queries.tsv", "queries a second"),
        ("bench generate --documents 20 --output @made", "were made"),
    ] {
        let name = format!("{}-{}", job.split(" --").next().unwrap(), pages.shown.len());
        let bench = ["Queries by the time that they took"];
        let charts: &[&str] = if job.starts_with("bench q") { &bench } else { &[] };
        pages.add(&name, job, 0, sentence, charts);
    }
    let postings = run_path(&pages.scratch.path("i"), 0, "postings");
    let mut bytes = fs::read(&postings).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(postings, bytes).unwrap();
    pages.add("damaged", "check --index @i", 1, "is damaged", &[]);
    pages.check();
}

#[test]
fn charts_are_read_by_keys_tables_and_printers() {
    let mut pages = Pages::new();
    build(&pages.scratch.path("i"), [pages.path("c.jsonl")]);
    pages.add("query", "query --index @i @queries.tsv", 0, "399", &[]);
    let Shown { page, .. } = &pages.shown[0];
    let open = "document.querySelectorAll('details').forEach((one) => (one.open = true)); document.querySelector('.plot').focus()";
    let table = "[...document.querySelectorAll('figure')[0].querySelectorAll('.wide tbody td')].map((one) => Number(one.textContent.replaceAll(',', '')))";
    let printed = "(dispatchEvent(new Event('beforeprint')), getComputedStyle(document.body).backgroundColor)";
    let after =
        "(dispatchEvent(new Event('afterprint')), getComputedStyle(document.body).backgroundColor)";
    let Some(found) = browse(&[
        json!({"page": page, "dark": true, "evaluate": open}),
        json!({"dark": true, "keys": ["ArrowRight", "ArrowRight"], "evaluate": "document.querySelector('output').textContent"}),
        json!({"dark": true, "evaluate": table}),
        json!({"dark": true, "evaluate": "document.documentElement.scrollWidth - innerWidth"}),
        json!({"dark": true, "print": true, "evaluate": printed}),
        json!({"dark": true, "evaluate": after}),
    ]) else {
        return;
    };
    let told = found[1]["value"].as_str().unwrap();
    assert!(told.starts_with("time ") && told.contains(": queries "), "{told}");
    let counts: Vec<u64> = serde_json::from_value(found[2]["value"].clone()).unwrap();
    assert_eq!(counts.iter().sum::<u64>(), 399, "{counts:?}");
    assert_eq!(found[3]["value"], 0);
    assert_eq!(found[4]["value"], "rgb(255, 255, 255)");
    assert_ne!(found[5]["value"], found[4]["value"]);
    assert!(found.iter().all(|step| step["errors"] == json!([])), "{found:?}");
}
