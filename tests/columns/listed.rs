//! Orders by columns, facets and `*`, against a look at each record.

use super::{FILTERS, Passes, Record, Records, WORDS, build, day, rate, records, year};
use crate::cluster::together;
use crate::support::{Scratch, args, millrace};
use serde_json::{Value, json};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

type Hit = (String, String);

type Order = fn(&Record, &Record) -> Ordering;

/// Those with a value in their order, then those without.
fn last<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Ordering {
    match (&a, &b) {
        (Some(a), Some(b)) => a.partial_cmp(b).unwrap(),
        _ => a.is_none().cmp(&b.is_none()),
    }
}

fn falls<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Ordering {
    match (&a, &b) {
        (Some(_), Some(_)) => last(b, a),
        _ => last(a, b),
    }
}

fn who(record: &Record) -> Option<&str> {
    record.get("who").and_then(Value::as_str)
}

const ORDERS: [(&str, Order); 7] = [
    ("year", |a, b| last(year(a), year(b))),
    ("year:desc", |a, b| falls(year(a), year(b))),
    ("rate:asc", |a, b| last(rate(a), rate(b))),
    ("rate:desc", |a, b| falls(rate(a), rate(b))),
    ("day:desc", |a, b| falls(day(a), day(b))),
    ("who", |a, b| last(who(a), who(b))),
    ("who:desc", |a, b| falls(who(a), who(b))),
];

/// Records that have a word each besides, in most.
fn with_words(seed: u64, from: usize, count: usize) -> (String, Records) {
    let (jsonl, mut all) = records(seed, from, count);
    let mut lines = String::new();
    for line in jsonl.lines() {
        let mut line: Record = serde_json::from_str(line).unwrap();
        let name = line["id"].as_str().unwrap().to_string();
        let number: usize = name[1..].parse().unwrap();
        if !number.is_multiple_of(5) {
            let word = Value::from(format!("w\u{e9}{}", number * 7 % 23));
            line.insert("who".into(), word.clone());
            all.get_mut(&name).unwrap().insert("who".into(), word);
        }
        lines += &format!("{}\n", Value::from(line));
    }
    (lines, all)
}

/// Facets of some documents by hand: of `tags:3,year,rate,day,who`.
fn facets(of: &[&Record]) -> Value {
    let words = |words: Vec<&str>, most: usize| {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(word, count)| (Reverse(*count), word.to_string()));
        counts.truncate(most);
        let told = |(value, count): (&str, u64)| json!({"value": value, "count": count});
        counts.into_iter().map(told).collect::<Vec<_>>()
    };
    let tags = of.iter().flat_map(|record| {
        let mut tags: Vec<&str> =
            record["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
        // A document counts once.
        tags.sort_unstable();
        tags.dedup();
        tags
    });
    let numbers = |values: Vec<f64>, shown: &dyn Fn(f64) -> Value| {
        let count = values.len();
        let least = values.iter().copied().reduce(f64::min);
        let greatest = values.iter().copied().reduce(f64::max);
        let sum: f64 = values.iter().sum();
        let mean = (count > 0).then(|| format!("{:.9}", sum / count as f64));
        json!({"count": count, "least": least.map(shown), "greatest": greatest.map(shown),
            "mean": mean})
    };
    let years = of.iter().filter_map(|record| year(record)).map(|year| year as f64).collect();
    let rates = of.iter().filter_map(|record| rate(record)).collect();
    let days: Vec<&str> = of.iter().filter_map(|record| day(record)).collect();
    json!({
        "tags": words(tags.collect(), 3),
        "year": numbers(years, &|year| (year as i64).into()),
        "rate": numbers(rates, &Value::from),
        "day": {"count": days.len(), "least": days.iter().min(), "greatest": days.iter().max()},
        "who": words(of.iter().filter_map(|record| who(record)).collect(), 10),
    })
}

const FACETS: &str = "tags:3,year,rate,day,who";

struct Found {
    hits: Vec<Hit>,
    found: u64,
    facets: Value,
}

fn found(answer: &Value) -> Found {
    let hit = |hit: &Value| (hit["name"].as_str().unwrap().to_string(), hit["score"].to_string());
    let hits = answer["hits"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(hit);
    let mut facets = answer["facets"].clone();
    if let Some(day) = facets["day"].as_object_mut() {
        let mean = day.remove("mean").unwrap();
        let mean = mean.as_str().unwrap_or_default();
        let within = |end: &str| day[end].as_str().unwrap_or_default().to_string();
        assert!(*within("least") <= *mean && mean[..mean.len().min(10)] <= *within("greatest"));
    }
    // The reader of JSON may be off by the last bit.
    for column in ["year", "rate"] {
        if let Some(mean) = facets[column]["mean"].as_f64() {
            facets[column]["mean"] = format!("{mean:.9}").into();
        }
    }
    Found { hits: hits.collect(), found: answer["found"].as_u64().unwrap_or_default(), facets }
}

/// Compares all answers with orders and facets with those without, sorted and counted by hand.
fn assert_listed(index: &Path, records: &Records, more: &[&str], filters: &[(&str, Passes)]) {
    let all = 5000;
    let texts = ["water mill", "old stone tall wheel", "rare nowhere", "nowhere", "*"];
    let orders = ORDERS.iter().map(|order| Some(order.0)).chain([None]);
    let mut asked = Vec::new();
    for text in texts {
        for filter in filters.iter().map(|filter| Some(filter.0)).chain([None]) {
            for mode in ["or", "and"] {
                asked.push(json!({"query": text, "mode": mode, "k": all, "filter": filter}));
            }
            for (at, sort) in orders.clone().enumerate() {
                let mode = ["or", "and", "and-or"][at % 3];
                for k in [0, 7, all] {
                    asked.push(json!({"query": text, "mode": mode, "k": k, "filter": filter,
                        "sort": sort, "facets": FACETS, "count": true}));
                }
            }
        }
    }
    let lines: Vec<String> = asked.iter().map(Value::to_string).collect();
    let job = millrace(args!["query", "--index", index, "--format", "jsonl", "--count", "-"]);
    let answers: Vec<Found> =
        job.args(more).stdin(lines.join("\n")).ok().json_lines().iter().map(found).collect();
    assert_eq!(answers.len(), asked.len());
    let plain = |of: &Value, mode: &str| {
        let is_it = |other: &Value| {
            let same = |field: &str| of[field] == other[field];
            other.get("facets").is_none()
                && other["mode"] == mode
                && same("query")
                && same("filter")
        };
        &answers[asked.iter().position(is_it).unwrap()].hits
    };
    for (of, answer) in asked.iter().zip(&answers) {
        let filter = filters.iter().find(|filter| of["filter"] == filter.0);
        let passes = |name: &str| filter.is_none_or(|(_, passes)| passes(&records[name]));
        if of.get("facets").is_none() {
            assert_eq!(answer.found, answer.hits.len() as u64, "{of}");
            if of["query"] == "*" {
                let mut names: Vec<_> = records.keys().filter(|name| passes(name)).collect();
                let mut hits: Vec<_> = answer.hits.iter().map(|hit| &hit.0).collect();
                names.sort();
                hits.sort();
                assert_eq!(hits, names, "{of}");
                assert!(answer.hits.iter().all(|hit| hit.1 == "0.0"), "{of}");
            }
            continue;
        }
        let k = of["k"].as_u64().unwrap() as usize;
        let mode = of["mode"].as_str().unwrap();
        let mut expected = plain(of, if mode == "or" { "or" } else { "and" });
        if mode == "and-or" && expected.len() < k {
            expected = plain(of, "or");
        }
        let mut expected = expected.clone();
        let what = format!("{of}, {more:?}");
        assert_eq!(answer.found, expected.len() as u64, "{what}");
        let matching: Vec<&Record> = expected.iter().map(|hit| &records[&hit.0]).collect();
        assert_eq!(answer.facets, facets(&matching), "{what}");
        if let Some((_, order)) = ORDERS.iter().find(|order| of["sort"] == order.0) {
            // By score and docid before.
            expected.sort_by(|a, b| order(&records[&a.0], &records[&b.0]));
        }
        expected.truncate(k);
        assert_eq!(answer.hits, expected, "{what}");
    }
}

/// In every way to answer, in an index of one run, of several, and with deletions.
#[test]
fn oracle_orders_and_facets_are_those_by_hand() {
    let scratch = Scratch::new();
    let (jsonl, mut all) = with_words(21, 0, 900);
    let file = scratch.write("d.jsonl", jsonl);
    let whole = scratch.path("whole");
    build(&whole, &file, &["--column", "who"], None);
    assert_listed(&whole, &all, &["-w", "1"], &FILTERS[..3]);
    assert_listed(&whole, &all, &["-w", "3"], &FILTERS[10..12]);
    let runs = scratch.path("runs");
    build(&runs, &file, &["--column", "who", "--no-merge", "--positions"], Some(10_000));
    for more in [
        &["-w", "3", "--parallelism", "fgqp", "--cut-us", "0"][..],
        &["-w", "2", "--parallelism", "docp-ui", "--barrier"],
        &["-w", "3", "--parallelism", "docp-pi"],
        &["--algorithm", "blocks", "--score", "ql"],
    ] {
        assert_listed(&runs, &all, more, &FILTERS[4..5]);
    }
    let gone: Vec<String> = (0..900).step_by(7).map(|number| format!("d{number}")).collect();
    let names = scratch.write("gone", gone.join("\n"));
    millrace(args!["delete", "--index", runs, "--file", names]).ok();
    all.retain(|name, _| !gone.contains(name));
    assert_listed(&runs, &all, &["-w", "2"], &FILTERS[1..4]);
    // Trees and phrases.
    for query in ["+water -mill (old OR rare)", "\"water mill\"", "\"old stone\" OR rare", " * "] {
        let ask = |more: &[&str]| {
            let job = millrace(args!["query", "--index", runs, "--query", query, "--quiet"]);
            let job = job.args(["--syntax", "operators", "--format", "jsonl", "--count"]);
            found(&job.args(more).ok().json_lines()[0])
        };
        let plain = ask(&["-k", "5000", "--filter", "not tags = a"]);
        let filtered = ["-k", "9", "--filter", "not tags = a", "--facets", FACETS];
        let sorted = ask(&[&filtered[..], &["--sort", "who:desc"]].concat());
        let matching: Vec<&Record> = plain.hits.iter().map(|hit| &all[&hit.0]).collect();
        assert!(matching.len() > 9, "{query}");
        assert_eq!((sorted.found, &sorted.facets), (plain.found, &facets(&matching)), "{query}");
        let mut expected = plain.hits;
        expected.sort_by(|a, b| falls(who(&all[&a.0]), who(&all[&b.0])));
        assert_eq!(sorted.hits, expected[..9], "{query}");
    }
}

fn without_times(answers: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(answers).unwrap();
    let answer = |line: &str| {
        let mut answer: Value = serde_json::from_str(line).unwrap();
        answer.as_object_mut().unwrap().remove("us");
        answer
    };
    text.lines().map(answer).collect()
}

#[test]
fn several_processes_sort_count_and_return_as_one() {
    let scratch = Scratch::new();
    for (seed, from) in [(3, 0), (4, 400), (5, 800)] {
        scratch.write(format!("in/{from}.jsonl"), with_words(seed, from, 400).0);
    }
    let [one, two] = ["one", "two"].map(|name| scratch.path(name));
    let build = |index: &Path| {
        let columns = ["year:int", "tags:word[]", "rate:float", "day:date", "who"];
        let columns = columns.iter().flat_map(|column| args!["--column", column]);
        let build = args!["build", "--index", index].into_iter().chain(columns);
        build.chain(args![scratch.path("in")]).collect::<Vec<_>>()
    };
    millrace(build(&one)).ok();
    together(&scratch, 2, &build(&two));
    let mut lines = Vec::new();
    for text in ["water mill rare", "*", "nowhere", "old stone"] {
        for (at, (sort, _)) in ORDERS.iter().enumerate() {
            let mode = ["or", "and", "and-or"][at % 3];
            lines
                .push(json!({"query": text, "mode": mode, "k": 20, "sort": sort, "facets": FACETS,
                "return": "tags,year,day,who", "offset": at % 4}));
            lines.push(json!({"query": text, "mode": mode, "k": 400, "facets": ["who:4"],
                "filter": "year > 1980", "sort": sort}));
        }
        lines.push(json!({"query": text, "k": 30, "return": ["rate"], "count": true}));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let queries = scratch.write("queries", lines.join("\n"));
    let ask = |index: &Path, more: &[&str]| -> Vec<OsString> {
        let ask = args!["query", "--index", index, "--format", "jsonl", queries];
        ask.into_iter().chain(more.iter().map(Into::into)).collect()
    };
    let expected = without_times(&millrace(ask(&one, &[])).ok().stdout);
    assert!(expected.len() > 50 && expected.iter().all(|answer| answer.get("error").is_none()));
    for more in [&["-w", "1"][..], &["-w", "3", "--parallelism", "fgqp"]] {
        let found = without_times(&together(&scratch, 2, &ask(&two, more)));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{more:?}");
        }
    }
    // In other forms too.
    let ask = |index: &Path| {
        let ask =
            args!["query", "--index", index, "--query", "*", "--sort", "who:desc", "-k", "50"];
        let more = args!["--format", "tsv", "--return", "who,tags", "--count"];
        ask.into_iter().chain(more).collect::<Vec<_>>()
    };
    let expected = millrace(ask(&one)).ok().stdout;
    assert!(together(&scratch, 2, &ask(&two)) == expected);
}

#[test]
fn an_offset_goes_on_where_the_hits_before_end() {
    let scratch = Scratch::new();
    let (jsonl, _) = with_words(5, 0, 200);
    let index = scratch.path("index");
    build(&index, &scratch.write("d.jsonl", jsonl), &["--column", "who"], None);
    let ask = |more: Value, options: &[&str]| {
        let mut query = json!({"qid": "d3", "query": WORDS.join(" "), "k": 300});
        query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let job = millrace(args!["query", "--index", index, "--format", "jsonl", "-"]);
        let answer = job.args(options).stdin(query.to_string()).ok().json_lines().remove(0);
        answer["hits"].as_array().unwrap().clone()
    };
    for more in [json!({}), json!({"sort": "who"}), json!({"query": "*", "return": "year"})] {
        for options in [&[][..], &["--remove-query"]] {
            let all = ask(more.clone(), options);
            assert!(all.len() > 50, "{more}");
            assert_eq!(all.iter().all(|hit| hit["name"] != "d3"), !options.is_empty(), "{more}");
            for (offset, k) in [(0, 5), (3, 5), (all.len() - 2, 5), (5000, 5), (7, 1)] {
                let mut more = more.clone();
                more.as_object_mut()
                    .unwrap()
                    .extend([("offset".to_string(), offset.into()), ("k".to_string(), k.into())]);
                let end = (offset + k).min(all.len());
                assert_eq!(ask(more.clone(), options), all[offset.min(end)..end], "{more}");
            }
        }
    }
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let scratch = Scratch::new();
    let (jsonl, _) = with_words(3, 0, 30);
    let index = scratch.path("index");
    build(&index, &scratch.write("d.jsonl", jsonl), &["--column", "who"], None);
    let ask =
        |more: &[&str]| millrace(args!["query", "--index", index, "--query", "water"]).args(more);
    for (more, why) in [
        (
            &["--sort", "yaer"][..],
            "--sort names `yaer`, which is no column of the index: there are year, ",
        ),
        (&["--sort", "tags:desc"], "hits may be sorted by year, rate, day, who"),
        (&["--sort", "year:up"], "names `year:up`"),
        (&["--facets", "yaer:3", "--format", "jsonl"], "--facets names `yaer`"),
        (&["--facets", "tags:0", "--format", "jsonl"], "`tags:0` counts 0 values"),
        (&["--facets", "tags"], "--facets goes with --format jsonl"),
        (&["--facets", "tags", "--format", "tsv"], "--facets goes with --format jsonl"),
        (&["--facets", "tags", "--format", "text"], "--facets goes with --format jsonl"),
    ] {
        ask(more).fails(2).says(why);
    }
    let sorted = ask(&["--format", "text", "--sort", "who"]).ok();
    assert!(sorted.text().contains("\n  1. d"), "{}", sorted.text());
    let queries = [
        json!({"query": "*", "sort": "nowhere"}),
        json!({"query": "*", "sort": "tags"}),
        json!({"query": "*", "facets": "year:0"}),
        json!({"query": "*", "facets": [1]}),
        json!({"query": "*", "return": ["nowhere"]}),
        json!({"query": "*", "offset": -1}),
        json!({"query": "*", "sort": 3}),
        json!({"query": "*", "k": 2}),
    ];
    let lines = queries.map(|query| query.to_string()).join("\n");
    let job = millrace(args!["query", "--index", index, "--format", "jsonl", "--sort", "who", "-"]);
    let outcome = job.stdin(lines).run().expect_status(1);
    let lines: Vec<Value> = outcome.json_lines();
    for (line, why) in lines.iter().zip([
        "names `nowhere`, which is no column",
        "hits may be sorted by",
        "counts 0 values",
        "`facets` that are neither a text nor a list of texts",
        "names `nowhere`",
        "an `offset` that is no whole number from 0 on",
        "a `sort` that is no text",
    ]) {
        assert!(line["error"].as_str().unwrap().contains(why), "{line}");
    }
    assert_eq!(lines[7]["hits"].as_array().unwrap().len(), 2);
    // A star beside something is none, and a word of an index of other terms may be asked for.
    let star = ask(&["--format", "jsonl"]).ok().json_lines().remove(0);
    let job = millrace(args!["query", "--index", index, "--format", "jsonl", "--query", "water *"]);
    assert_eq!(job.ok().json_lines()[0]["hits"], star["hits"]);
    let job = millrace(args!["query", "--index", index, "--query", "applypipeline:off *"]);
    assert_eq!(job.ok().text(), "");
}

#[test]
fn documents_that_pass_a_filter_are_deleted() {
    let scratch = Scratch::new();
    let (jsonl, mut all) = with_words(6, 0, 500);
    let index = scratch.path("index");
    let file = scratch.write("d.jsonl", jsonl);
    build(&index, &file, &["--column", "who", "--no-merge"], Some(8000));
    let delete = |more: &[&str]| millrace(args!["delete", "--index", index]).args(more);
    for (more, why) in [
        (&["--filter", "yaer > 3"][..], "the filter names `yaer`"),
        (&["--filter", "year >"], "ends where a value is expected"),
        (&["--filter", "year > 3", "d1"], "cannot be used with"),
        (&["--filter", "year > 3", "--file", "x"], "cannot be used with"),
    ] {
        delete(more).fails(2).says(why);
    }
    let names = || {
        let job = millrace(args!["query", "--index", index, "--query", "*", "-k", "1000"]);
        let job = job.args(["--format", "jsonl"]);
        let hits = found(&job.ok().json_lines()[0]).hits;
        hits.into_iter().map(|hit| hit.0).collect::<Vec<_>>()
    };
    let mut before = names();
    assert_eq!(before.len(), 500);
    delete(&["--filter", "exists tags or not exists tags"]).fails(1).says("--allow-shrink");
    for (filter, passes) in &FILTERS[2..9] {
        let count = all.values().filter(|record| passes(record)).count();
        let said = match count {
            0 => "nothing changed".to_string(),
            1 => "1 document deleted".to_string(),
            count => format!("{count} documents deleted"),
        };
        delete(&["--filter", filter, "--dry-run", "--allow-shrink"]).ok().says(&said);
        assert_eq!(names(), before, "{filter}");
        delete(&["--filter", filter, "--allow-shrink"]).ok().says(&said);
        all.retain(|_, record| !passes(record));
        before.retain(|name| all.contains_key(name));
        assert_eq!(names(), before, "{filter}");
        millrace(args!["check", "--index", index]).ok();
    }
    assert!(before.len() > 5, "{}", before.len());
    delete(&["--filter", "tags = nowhere"]).ok().says("nothing changed");
}
