//! The plan of a cache follows the logs of queries, and a log is read and searched for only once.

use super::Place;
use crate::support::*;
use millrace::Generation;
use millrace::inside::index::CachePlan;
use serde_json::Value;
use std::fmt::Write as _;

const JOB: &str = "[guard]\nmin_documents = 0\n[logs]\nqueries = [\"logs/*\"]\nwindow = \"2d\"\nmemory = \"3K\"\n";

/// Documents of some numbers, with words that some of them have.
fn documents(numbers: std::ops::Range<usize>) -> String {
    let line = |number: usize| {
        let own = (2..12).filter(|n| number.is_multiple_of(*n)).map(|n| format!(" word{n}"));
        format!("{{\"id\": \"{number}\", \"text\": \"mill{}\"}}\n", own.collect::<String>())
    };
    numbers.map(line).collect()
}

/// The queries of a day, in which one is more frequent than others.
fn log(day: usize) -> String {
    let mut text = String::new();
    for n in 2..12 {
        for _ in 0..1 + (n * 5 + day * 3) % 7 {
            _ = writeln!(text, "q\tmill word{n}");
        }
    }
    text + "q\tnowhere\n"
}

/// What `millrace cache` plans by these logs, and what the rebuild has planned, which stays.
fn plans(place: &Place, days: &[usize]) -> [CachePlan; 2] {
    let read = || CachePlan::read(Generation::open(&place.index()).unwrap().path()).unwrap();
    let found = read().expect("a plan");
    let all = place.scratch.write("all", days.iter().map(|day| log(*day)).collect::<String>());
    let cache = args!["cache", "--quiet", "--index", place.index(), "--memory", "3K", all];
    millrace(cache).ok();
    let expected = read().expect("a plan");
    found.write(&generation(&place.index())).unwrap();
    [expected, found]
}

fn same_as_of_all(place: &Place, days: &[usize]) {
    let [expected, found] = plans(place, days);
    assert_eq!(found, expected);
    assert!(!found.cached.lists().is_empty() && found.cached_bytes <= 3 << 10);
}

fn counts(record: &Value) -> [u64; 3] {
    ["logs", "read", "searched"].map(|name| record["logs"][name].as_u64().unwrap())
}

#[test]
fn the_plan_follows_the_logs_of_the_window() {
    let place = Place::new(JOB);
    std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
    place.scratch.write("docs/a.jsonl", documents(0..1500));
    let day = |day: usize| {
        let text = match day {
            // Three servers in one day, or a log that is packed.
            3 => {
                return (0..3).for_each(|part| {
                    let lines = log(3)
                        .lines()
                        .skip(part)
                        .step_by(3)
                        .fold(String::new(), |all, line| all + line + "\n");
                    place.scratch.write(format!("logs/2026-11-03-{part}.tsv"), lines);
                });
            }
            day => zstd::encode_all(log(day).as_bytes(), 1).unwrap(),
        };
        place.scratch.write(format!("logs/queries-202611{day:02}.zst"), text);
    };
    // A log whose name states no day.
    place.scratch.write("logs/queries", log(1));
    let said = millrace(args!["rebuild", &place.job, "--once"]).fails(1).stderr.clone();
    assert!(said.contains("job.toml:11:12: ") && said.contains("there is no date"), "{said}");
    assert!(!place.index().join("CURRENT").exists(), "that is told before anything is built");
    std::fs::remove_file(place.scratch.path("logs/queries")).unwrap();

    day(1);
    day(2);
    let record = place.once();
    assert_eq!(counts(&record), [2, 2, 2]);
    let logs = &record["logs"];
    assert_eq!(logs["days"], serde_json::json!(["2026-11-01", "2026-11-02"]));
    let lines = (log(1) + &log(2)).lines().count();
    assert_eq!((&logs["queries"], &logs["distinct"]), (&lines.into(), &11.into()));
    assert_eq!(logs["without_answer"], 2);
    same_as_of_all(&place, &[1, 2]);
    assert!(place.once()["logs"].is_null(), "nothing has changed");

    // Another day: only that is read, and the first leaves the window.
    day(3);
    let record = place.once();
    assert_eq!((&record["outcome"], counts(&record)), (&"unchanged".into(), [4, 3, 3]));
    assert_eq!(record["logs"]["days"], serde_json::json!(["2026-11-02", "2026-11-03"]));
    assert!(record["logs"]["changed"].as_u64().unwrap() > 0);
    same_as_of_all(&place, &[2, 3]);
    // A day without a log; what has left has left no trace.
    day(5);
    assert_eq!(counts(&place.once()), [1, 1, 1]);
    same_as_of_all(&place, &[5]);
    assert_eq!(std::fs::read_dir(place.index().join("rebuild/logs")).unwrap().count(), 2);

    // A few documents more: earlier days stay what they were, and the plan is one of the new
    // generation.
    place.scratch.write("docs/b.jsonl", documents(1500..1600));
    let record = place.once();
    assert_eq!((&record["outcome"], counts(&record)), (&"published".into(), [1, 0, 0]));
    let [_, found] = plans(&place, &[5]);
    assert_eq!(found.of.generation, 2);
    assert!(found.cached.lists().iter().all(|list| list.run == 0));
    // Many more: the queries, which are known, are searched for again.
    place.scratch.write("docs/c.jsonl", documents(1600..2000));
    assert_eq!(counts(&place.once()), [1, 0, 1]);
    same_as_of_all(&place, &[5]);
    // What is known can be lost.
    std::fs::remove_dir_all(place.index().join("rebuild/logs")).unwrap();
    assert_eq!(counts(&place.once()), [1, 1, 1]);
    millrace(args!["check", "--index", place.index()]).ok();
}

/// A job may ask for an order, which is made again whenever something has changed, and for nothing
/// else.
#[test]
fn an_index_in_order_follows_its_sources() {
    let more = "order = \"global\"\n[guard]\nmin_documents = 0\n[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\n[logs]\nqueries = [\"logs/*\"]\n";
    let place = Place::new(more);
    place.scratch.write("links.tsv", "d1\td2\nd2\td3\nd3\td2\n");
    place.scratch.write("logs/2026-11-01", "mill race\n");
    for (round, changed) in [(0, true), (1, false), (2, true), (3, false)] {
        if round == 2 {
            place.scratch.write("docs/b.jsonl", "{\"id\": \"d31\", \"contents\": \"mill\"}\n");
        }
        let record = place.once();
        let outcome = if changed { "published" } else { "unchanged" };
        assert_eq!(record["outcome"], outcome, "{round}: {record}");
        assert_eq!(record["generation"], 1 + round / 2, "a night publishes once");
        assert_eq!((record["ranks"].is_null(), record["logs"].is_null()), (!changed, !changed));
        let generation = Generation::open(&place.index()).unwrap();
        assert_eq!(generation.runs().len(), 1);
        assert_eq!(generation.manifest().order.as_ref().unwrap().name, "global");
        assert_eq!(&*generation.documents().name(0).unwrap(), b"d2");
        CachePlan::read(generation.path()).unwrap().expect("a plan");
    }
    let ranks = std::fs::read_to_string(place.index().join("rebuild/ranks.tsv")).unwrap();
    let names: Vec<&str> = ranks.lines().skip(1).map(|l| l.split('\t').next().unwrap()).collect();
    assert_eq!((names.len(), names[0]), (31, "d2"), "in the order of docids");
    let asked = args![
        "query",
        "--algorithm",
        "wang",
        "--score",
        "wang",
        "--mode",
        "and",
        "-k",
        "1",
        "--index",
        place.index()
    ];
    let hit = millrace(asked).stdin("1\tmill\n").ok();
    assert!(hit.text().contains(" d2 "), "{hit:?}");
    millrace(args!["check", "--index", place.index()]).ok();
}
