//! Values of documents, and filters, against a look at each record.

mod kept;
mod listed;
mod stored;

use crate::cluster::together;
use crate::support::{Random, Scratch, args, assert_same_index, millrace};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;

const WORDS: [&str; 8] = ["water", "mill", "wheel", "river", "stone", "tall", "old", "rare"];
const TAGS: [&str; 5] = ["a", "b", "c d", "e,f", "\u{fc}ber"];
const COLUMNS: [&str; 4] = ["year:int", "tags:word[]", "rate:float", "day:date"];

type Record = Map<String, Value>;

/// Records by name.
type Records = BTreeMap<String, Record>;

fn records(seed: u64, from: usize, count: usize) -> (String, Records) {
    let mut random = Random::new(seed);
    let (mut jsonl, mut all) = (String::new(), Records::new());
    for number in from..from + count {
        let words = 1 + random.below(12);
        let text: Vec<&str> = (0..words)
            .map(|_| if random.below(40) == 0 { "rare" } else { random.pick(&WORDS[..7]) })
            .collect();
        let mut record = Record::new();
        if random.below(8) > 0 {
            record.insert("year".into(), (1950 + random.below(70)).into());
        }
        let tags: Vec<&str> = (0..random.below(4)).map(|_| random.pick(&TAGS)).collect();
        record.insert("tags".into(), tags.into());
        if random.below(2) > 0 {
            record.insert("rate".into(), (random.below(400) as f64 / 8.0 - 9.0).into());
        }
        if random.below(3) > 0 {
            let (month, day) = (1 + random.below(12), 1 + random.below(28));
            record.insert("day".into(), format!("2021-{month:02}-{day:02}").into());
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

fn build(index: &Path, file: &Path, more: &[&str], run_limit: Option<u64>) {
    let columns = COLUMNS.iter().flat_map(|column| ["--column", column]);
    let mut job = millrace(args!["build", "--index", index, file]).args(columns).args(more);
    if let Some(limit) = run_limit {
        job = job.env("MILLRACE_RUN_LIMIT", limit.to_string());
    }
    job.ok();
    millrace(args!["check", "--index", index]).ok();
}

struct Hit {
    name: String,
    score: String,
    values: Value,
}

/// Hits, and how many were found.
fn ask(index: &Path, text: &str, more: &[&str]) -> (Vec<Hit>, u64) {
    let returned = ["--format", "jsonl", "--return", "year,tags,rate,day", "--count"];
    let job = millrace(args!["query", "--index", index, "--query", text, "--quiet"]);
    answer(&job.args(returned).args(more).ok().json_lines()[0])
}

fn answer(answer: &Value) -> (Vec<Hit>, u64) {
    let hit = |hit: &Value| Hit {
        name: hit["name"].as_str().unwrap().into(),
        score: hit["score"].to_string(),
        values: hit["values"].clone(),
    };
    let hits = answer["hits"].as_array().unwrap().iter().map(hit).collect();
    (hits, answer["found"].as_u64().unwrap())
}

fn assert_values(hits: &[Hit], records: &Records, what: &str) {
    for Hit { name, values, .. } in hits {
        let record = &records[name];
        for column in ["year", "tags", "rate", "day"] {
            let expected = record.get(column).cloned().unwrap_or(Value::Null);
            assert_eq!(values[column], expected, "{what}: {column} of {name}");
        }
    }
}

type Passes = fn(&Record) -> bool;

fn year(record: &Record) -> Option<u64> {
    record.get("year").and_then(Value::as_u64)
}

fn has_tag(record: &Record, tag: &str) -> bool {
    record["tags"].as_array().unwrap().iter().any(|of| of == tag)
}

fn day(record: &Record) -> Option<&str> {
    record.get("day").and_then(Value::as_str)
}

fn rate(record: &Record) -> Option<f64> {
    record.get("rate").and_then(Value::as_f64)
}

/// Filters by hand.
const FILTERS: [(&str, Passes); 13] = [
    ("year >= 1990", |r| year(r).is_some_and(|year| year >= 1990)),
    ("not year >= 1990", |r| year(r).is_none_or(|year| year < 1990)),
    ("year != 1990", |r| year(r).is_some_and(|year| year != 1990)),
    ("year in (1960, 1961,1999) or rate > 20", |r| {
        matches!(year(r), Some(1960 | 1961 | 1999)) || rate(r).is_some_and(|rate| rate > 20.0)
    }),
    ("tags = 'c d' and (year < 1970 or not exists year)", |r| {
        has_tag(r, "c d") && year(r).is_none_or(|year| year < 1970)
    }),
    ("tags not in (a, \"e,f\")", |r| {
        r["tags"] != json!([]) && !has_tag(r, "a") && !has_tag(r, "e,f")
    }),
    ("tags >= c", |r| ["c d", "e,f", "\u{fc}ber"].iter().any(|tag| has_tag(r, tag))),
    ("exists rate and not exists day", |r| rate(r).is_some() && day(r).is_none()),
    ("rate <= -0.5", |r| rate(r).is_some_and(|rate| rate <= -0.5)),
    ("day >= 2021-06 AND day < 2021-07-10T00:00:00Z", |r| {
        day(r).is_some_and(|day| ("2021-06-01".."2021-07-10").contains(&day))
    }),
    // Few pass, and none.
    ("year = 1966 and tags = a and rate > 0", |r| {
        year(r) == Some(1966) && has_tag(r, "a") && rate(r).is_some_and(|rate| rate > 0.0)
    }),
    ("tags = nowhere", |_| false),
    ("exists year or not exists year", |_| true),
];

fn bits(hits: &[Hit]) -> Vec<(&str, &str)> {
    hits.iter().map(|hit| (&*hit.name, &*hit.score)).collect()
}

/// A query, with all that it asks for.
struct Asked {
    mode: &'static str,
    text: &'static str,
    filter: Option<usize>,
    k: usize,
}

/// Compares all answers under filters with all answers without, filtered by hand.
fn assert_filtered(index: &Path, records: &Records, more: &[&str], filters: &[(&str, Passes)]) {
    let mut asked = Vec::new();
    let all = 5000;
    for mode in ["or", "and", "and-or"] {
        for text in ["water mill", "rare", "old stone tall wheel", "rare nowhere"] {
            asked.push(Asked { mode, text, filter: None, k: all });
            let filters = 0..filters.len();
            asked.extend(filters.flat_map(|filter| {
                [10, all].map(|k| Asked { mode, text, filter: Some(filter), k })
            }));
        }
    }
    let line = |(number, asked): (usize, &Asked)| {
        let filter = asked.filter.map(|filter| filters[filter].0);
        json!({"qid": number.to_string(), "query": asked.text, "mode": asked.mode, "k": asked.k,
            "filter": filter})
        .to_string()
    };
    let lines: Vec<String> = asked.iter().enumerate().map(line).collect();
    let returned = ["--format", "jsonl", "--return", "year,tags,rate,day", "--count", "-"];
    let job = millrace(args!["query", "--index", index]).args(more).args(returned);
    let answers: Vec<(Vec<Hit>, u64)> =
        job.stdin(lines.join("\n")).ok().json_lines().iter().map(answer).collect();
    let whole = |mode: &str, text: &str| {
        let is_it = |of: &Asked| of.mode == mode && of.text == text && of.filter.is_none();
        &answers[asked.iter().position(is_it).unwrap()]
    };
    for (Asked { mode, text, filter, k }, (hits, found)) in asked.iter().zip(&answers) {
        assert_values(hits, records, text);
        let Some((filter, passes)) = filter.map(|filter| filters[filter]) else {
            assert_eq!(*found, hits.len() as u64);
            continue;
        };
        let what = format!("{filter}: {text}, {mode}, {more:?}");
        let passing = |mode| {
            let mut hits = bits(&whole(mode, text).0);
            hits.retain(|(name, _)| passes(&records[*name]));
            hits
        };
        // What is filled up with any word is what passes, not what there is.
        let mut expected = passing(if *mode == "or" { "or" } else { "and" });
        if *mode == "and-or" && expected.len() < *k {
            expected = passing("or");
        }
        assert_eq!(*found, expected.len() as u64, "{what}");
        expected.truncate(*k);
        assert_eq!(bits(hits), expected, "{what}");
    }
}

/// The same values and the same bytes for any number of workers and runs; and filters of every kind
/// in every way to answer.
#[test]
fn oracle_answers_are_those_of_filtering_by_hand() {
    let scratch = Scratch::new();
    let (jsonl, records) = records(11, 0, 1500);
    let file = scratch.write("d.jsonl", jsonl);
    let whole = scratch.path("whole");
    build(&whole, &file, &["-w", "1"], None);
    for (name, more, limit) in [
        ("workers", &["-w", "3"][..], None),
        ("merged", &["-w", "2"], Some(20_000)),
        ("runs", &["-w", "2", "--no-merge"], Some(20_000)),
        ("name", &["--order", "name"], None),
    ] {
        let index = scratch.path(name);
        build(&index, &file, more, limit);
        if limit.is_none() && more.len() == 2 && name == "workers" || name == "merged" {
            assert_same_index(&whole, &index, &[]);
        }
    }
    assert_filtered(&whole, &records, &[], &FILTERS);
    for (name, more) in [
        ("runs", &["--algorithm", "maxscore"][..]),
        ("runs", &["--algorithm", "blocks", "-w", "1"]),
        ("name", &["--algorithm", "exhaustive"]),
        ("merged", &["--parallelism", "fgqp", "--cut-us", "0", "-w", "2"]),
        ("runs", &["--parallelism", "docp-pi", "-w", "2"]),
        ("whole", &["--score", "ql"]),
    ] {
        assert_filtered(&scratch.path(name), &records, more, &FILTERS[3..5]);
        assert_filtered(&scratch.path(name), &records, more, &FILTERS[10..11]);
    }
    // Operators, phrases and fields too.
    let phrased = scratch.path("phrased");
    build(&phrased, &file, &["--positions", "--field", "text", "--no-merge"], Some(20_000));
    for (query, more) in [
        ("+water -mill (old OR rare)", &["--syntax", "operators"][..]),
        ("\"water mill\" +wheel", &["--syntax", "operators"]),
        ("\"old stone\"", &["--syntax", "operators"]),
        ("text:mill +river", &["--syntax", "operators"]),
        ("water mill", &["--boost", "text=2,*=1", "--mode", "and"]),
        ("rare mill", &["--score", "bm25f"]),
    ] {
        let more = [more, &["-k", "5000"]].concat();
        let all = ask(&phrased, query, &more).0;
        assert!(!all.is_empty(), "{query}");
        for (filter, passes) in &FILTERS[..8] {
            let (hits, found) = ask(&phrased, query, &[&more[..], &["--filter", filter]].concat());
            let expected: Vec<_> = all.iter().filter(|hit| passes(&records[&hit.name])).collect();
            let name = |hit: &Hit| (hit.name.clone(), hit.score.clone());
            let expected: Vec<_> = expected.into_iter().map(name).collect();
            assert_eq!(hits.iter().map(name).collect::<Vec<_>>(), expected, "{query} {filter}");
            assert_eq!(found, expected.len() as u64, "{query} {filter}");
        }
    }
}

#[test]
fn several_processes_filter_and_boost_as_one() {
    let scratch = Scratch::new();
    let files = [(3, 0), (4, 400)].map(|(seed, from)| {
        scratch.write(format!("in/{from}.jsonl"), records(seed, from, 400).0);
    });
    assert_eq!(files.len(), 2);
    let [one, two] = ["one", "two"].map(|name| scratch.path(name));
    let build = |index: &Path| {
        let build = args!["build", "--index", index, "--positions", "--field", "text"];
        let columns = args!["--column", "year:int", "--column", "tags:word[]"];
        build.into_iter().chain(columns).chain(args![scratch.path("in")]).collect::<Vec<_>>()
    };
    millrace(build(&one)).ok();
    together(&scratch, 2, &build(&two));
    for more in [
        &["--filter", "year >= 1990 and tags = \"c d\"", "--count"][..],
        &["--filter", "not exists year", "--mode", "and-or"],
        &["--boost", "text=2,*=1", "--filter", "year < 2000"],
        &["--score", "bm25f", "--mode", "and"],
        &["--syntax", "operators", "--filter", "year in (1970, 1971, 1980)"],
    ] {
        let ask = |index: &Path| {
            let ask = args!["query", "--index", index, "--query", "water mill rare", "-k", "300"];
            let ask = ask.into_iter().chain(args!["--format", "tsv"]);
            ask.chain(more.iter().map(Into::into)).collect::<Vec<_>>()
        };
        let expected = millrace(ask(&one)).ok().stdout;
        assert!(!expected.is_empty(), "{more:?}");
        assert!(together(&scratch, 2, &ask(&two)) == expected, "{more:?}");
    }
}

#[test]
fn values_stay_with_documents_that_come_go_and_are_ordered() {
    let scratch = Scratch::new();
    let (jsonl, mut all) = records(5, 0, 400);
    let file = scratch.write("d.jsonl", jsonl);
    let index = scratch.path("index");
    build(&index, &file, &["-w", "2", "--no-merge"], Some(4000));
    let gone: Vec<String> = (0..400).step_by(7).map(|number| format!("d{number}")).collect();
    let names = scratch.write("gone", gone.join("\n"));
    millrace(args!["delete", "--index", index, "--file", names]).ok();
    all.retain(|name, _| !gone.contains(name));
    // Some replace others, and few are packed.
    let (jsonl, new) = records(6, 390, 30);
    let new_file = scratch.write("new.jsonl", jsonl);
    millrace(args!["update", "--index", index, new_file]).ok();
    all.extend(new);
    let assert_all = |what: &str| {
        millrace(args!["check", "--index", index]).ok();
        let text = WORDS.join(" ");
        let (hits, _) = ask(&index, &text, &["-k", "1000"]);
        let mut names: Vec<_> = hits.iter().map(|hit| hit.name.clone()).collect();
        names.sort();
        assert!(names.iter().eq(all.keys()), "{what}");
        assert_values(&hits, &all, what);
        assert_filtered(&index, &all, &[], &FILTERS[4..5]);
    };
    assert_all("updated");
    for more in [&[][..], &["--order", "name"], &["--order", "length", "--codec", "rice"]] {
        millrace(args!["merge", "--index", index]).args(more).ok();
        assert_all(&format!("{more:?}"));
    }
    let info = millrace(args!["info", "--index", index]).ok();
    COLUMNS.iter().for_each(|column| assert!(info.text().contains(column), "{column}"));
}

#[test]
fn a_job_file_has_columns_and_filters_come_with_queries() {
    let scratch = Scratch::new();
    let (jsonl, mut all) = records(8, 0, 200);
    let file = scratch.write("in.jsonl", &jsonl);
    let columns = |list: &str| {
        format!("index = 'index'\n[[input]]\npaths = ['in.jsonl']\n[build]\ncolumn = [{list}]\n")
    };
    let quoted = COLUMNS.map(|column| format!("'{column}'")).join(",");
    let job = scratch.write("job.toml", columns(&quoted));
    let rebuild = || millrace(args!["rebuild", job, "--once"]).ok();
    let index = scratch.path("index");
    rebuild();
    let check = |all: &Records| {
        let (hits, _) = ask(&index, &WORDS.join(" "), &["-k", "1000"]);
        assert_eq!(hits.len(), all.len());
        assert_values(&hits, all, "rebuilt");
    };
    check(&all);
    let (more, new) = records(9, 200, 20);
    std::fs::write(&file, jsonl + &more).unwrap();
    all.extend(new);
    rebuild();
    check(&all);
    scratch.write("job.toml", columns("'year'"));
    rebuild().says("the columns are others");

    let queries = [
        json!({"qid": "1", "query": "water", "filter": "year = nineteen"}),
        json!({"qid": "2", "query": "water", "filter": "year >= 1"}),
        json!({"qid": "3", "query": "water", "filter": "yaer >= 1"}),
        json!({"qid": "4", "query": "water"}),
    ];
    let queries = queries.map(|query| query.to_string()).join("\n");
    let job = millrace(args!["query", "--index", index, "--filter", "not exists year", "-"]);
    let outcome = job.stdin(queries).run().expect_status(1);
    let outcome = outcome.says("names `yaer`, which is no column of the index: there are year");
    let text = String::from_utf8(outcome.stdout).unwrap();
    let of = |qid: &str| text.lines().filter(|line| line.split(' ').next() == Some(qid)).count();
    // Words of a year are any words here.
    assert_eq!((of("1"), of("3")), (0, 0));
    assert!(of("2") == 10 && of("4") > 0);
}

#[test]
fn values_are_found_in_every_format() {
    let scratch = Scratch::new();
    let json = [
        r#"{"id":"1","text":"mill","year":1999,"tags":["a","b"]}"#,
        r#"{"id":"2","text":"mill","year":"2001"}"#,
        r#"{"id":"3","text":"mill","year":"x","tags":"c"}"#,
    ];
    let trec = "<DOC><DOCNO>1</DOCNO><YEAR>1999</YEAR><TAGS>a</TAGS><tags> b </tags><TEXT>mill</TEXT></DOC>\n\
                <DOC><DOCNO>2</DOCNO><year>2001</year><TEXT>mill</TEXT></DOC>\n\
                <DOC><DOCNO>3</DOCNO><year>x</year><tags>c</tags><TEXT>mill</TEXT></DOC>\n";
    let warc = |n: u32, more: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-TREC-ID: {n}\r\nContent-Type: text/plain\r\n\
             {more}Content-Length: 4\r\n\r\nmill\r\n\r\n"
        )
    };
    let warc = warc(1, "Year: 1999\r\nTags: a\r\nTags: b\r\n")
        + &warc(2, "Year: 2001\r\n")
        + &warc(3, "Year: x\r\nTags: c\r\n");
    let csv = "id,text,year,tags\n1,mill,1999,a\n2,mill,2001,\n3,mill,x,c\n";
    for (name, content, tags) in [
        ("a.jsonl", json.join("\n"), "a,b"),
        ("a.json", format!("[{}]", json.join(",\n")), "a,b"),
        ("a.trec", trec.to_string(), "a,b"),
        ("a.warc", warc, "a,b"),
        ("a.csv", csv.to_string(), "a"),
    ] {
        let file = scratch.write(name, &content);
        let index = scratch.path(format!("{name}-index"));
        let columns = ["--column", "year:int", "--column", "tags:word[]"];
        let job = millrace(args!["build", "--index", index, file]).args(columns);
        let place = format!("{name}: byte ");
        job.ok().says("1 values do not fit").says(place).says("`x` is no value of year:int");
        millrace(args!["check", "--index", index]).ok();
        let job = millrace(args!["query", "--index", index, "--query", "mill", "--format", "tsv"]);
        let found = job.args(["--return", "year,tags", "--quiet"]).ok();
        let rows: HashMap<&str, Vec<&str>> = found
            .text()
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .map(|row| (row[2], row[5..].to_vec()))
            .collect();
        assert_eq!(rows["1"], ["1999", tags], "{name}");
        assert_eq!(rows["2"], ["2001", ""], "{name}");
        assert_eq!(rows["3"], ["", "c"], "{name}");
        let strict = scratch.path(format!("{name}-strict"));
        let job = millrace(args!["build", "--strict", "--index", strict, file]).args(columns);
        job.fails(1).says("`x` is no value of year:int");
    }
}

#[test]
fn what_cannot_be_is_refused_and_a_damaged_file_is_named() {
    let scratch = Scratch::new();
    let (jsonl, _) = records(3, 0, 50);
    let file = scratch.write("d.jsonl", jsonl);
    let index = scratch.path("index");
    let columns = |list: &[&str]| {
        let list = list.iter().flat_map(|column| ["--column", column]);
        millrace(args!["build", "--index", index, file]).args(list.collect::<Vec<_>>())
    };
    columns(&["year:number"]).fails(2).says("`number` is no kind of values");
    columns(&["year", "year:int"]).fails(2).says("the column year is there twice");
    columns(&COLUMNS).ok();
    let ask =
        |more: &[&str]| millrace(args!["query", "--index", index, "--query", "water"]).args(more);
    for (more, why) in [
        (&["--filter", "yaer > 3"][..], "no column of the index: there are year, "),
        (&["--filter", "year > soon"], "which is no int"),
        (&["--filter", "year >"], "ends where a value is expected"),
        (&["--return", "yaer", "--format", "tsv"], "--return names `yaer`"),
        (&["--return", "year"], "--return goes with --format jsonl or tsv"),
        (&["--return", "year", "--format", "binary"], "--return goes with"),
    ] {
        ask(more).fails(2).says(why);
    }
    let path = crate::support::run_path(&index, 0, "columns");
    let good = std::fs::read(&path).unwrap();
    for at in [0, 70, good.len() / 2, good.len() - 9] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        ask(&["--filter", "year > 0 or exists tags or rate > 0 or exists day"])
            .fails(1)
            .says("000000.columns: byte");
        ask(&["--sort", "year", "--facets", "tags,rate,day", "--format", "jsonl"])
            .fails(1)
            .says("000000.columns: byte");
        millrace(args!["check", "--index", index]).run().expect_status(1).says("000000.columns");
        millrace(args!["merge", "--index", index, "--order", "name"]).fails(1).says("columns");
        ask(&["--verify"]).fails(1).says("000000.columns");
    }
}
