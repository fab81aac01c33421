//! A device ranks by learned weights as the CPU does: the whole job, on a device and on pretended
//! devices, with the same documents in the same order with the same scores, to the bit.

use super::found;
use crate::query::deletions::delete;
use crate::support::pretended::{QUERY, pretended};
use crate::support::sound::OldAndNew;
use crate::support::{Job, Random, Scratch, args, millrace};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An index of vectors, and queries for it.
struct Vectors {
    scratch: Scratch,
    index: PathBuf,
}

fn has_bounds(vectors: &Vectors) -> bool {
    vectors.index.join("runs/000000.bounds").exists()
}

fn term(number: usize) -> String {
    format!("t{number}")
}

/// Frequent terms more often.
fn some_term(random: &mut Random) -> String {
    term((300.0 * random.share().powi(3)) as usize)
}

impl Vectors {
    /// Weights up to `most`, hundredths of which are kept. Most terms of a document are of its
    /// topic, if there are any; documents of a topic stand together.
    fn new(documents: usize, topics: usize, most: f64, random: &mut Random) -> Self {
        let scratch = Scratch::new();
        let line = |docid: usize| {
            let mut vector = serde_json::Map::new();
            for number in 0..random.below(60) {
                let weight = 0.01 + random.share().powi(4) * most;
                let topic = docid * topics / documents;
                let of_topic = term(299 - (topic * 7 + random.below(9)) % 300);
                let any = some_term(random);
                let is_of_topic = topics > 0 && number % 4 > 0;
                vector.insert(if is_of_topic { of_topic } else { any }, weight.into());
            }
            serde_json::json!({"id": docid, "vector": vector}).to_string()
        };
        let lines: Vec<String> = (0..documents).map(line).collect();
        let index = scratch.path("index");
        let file = scratch.write("v.jsonl", lines.join("\n"));
        millrace(args!["import", "--quiet", "--index", index, "--format", "vectors", file]).ok();
        Self { scratch, index }
    }
}

/// Weighted queries; `weight` draws a weight.
fn queries(count: usize, random: &mut Random, weight: fn(&mut Random) -> f64) -> String {
    let query = |_| {
        let terms = 1 + random.below(24);
        let words: Vec<String> =
            (0..terms).map(|_| format!("{}^{:.4}", some_term(random), weight(random))).collect();
        words.join(" ") + "\n"
    };
    (0..count).map(query).collect()
}

fn whole(random: &mut Random) -> f64 {
    1.0 + random.below(200) as f64
}

fn fraction(random: &mut Random) -> f64 {
    0.01 + random.share() * 3.0
}

/// A query job for learned weights that answers in lines.
fn ask(index: &Path, queries: &str, more: &[&str]) -> Job {
    let job = millrace(args!["query", "--quiet", "--index", index]).args(["--score", "impact"]);
    job.args(["--query-format", "weights", "--format", "tsv"]).args(more).stdin(queries)
}

#[test]
fn a_device_ranks_by_learned_weights_as_the_cpu_does() {
    if found().is_none() {
        return;
    }
    let mut random = Random::new(91);
    // This many documents that a threshold is needed. Topics have bounds of blocks.
    let [plain, by_topics] = [0, 150].map(|topics| Vectors::new(60_000, topics, 9.0, &mut random));
    assert_eq!([&plain, &by_topics].map(has_bounds), [false, true]);
    let weights: [fn(&mut Random) -> f64; 2] = [whole, fraction];
    let both = [&plain, &by_topics].into_iter().flat_map(|vectors| weights.map(|w| (vectors, w)));
    for (vectors, weight) in both {
        let queries = queries(200, &mut random, weight);
        for k in ["1", "10", "1000", "10000"] {
            let of = |more: &[&str]| {
                let job = ask(&vectors.index, &queries, &["-k", k]).args(more);
                job.ok().text().to_owned()
            };
            let expected = of(&["--algorithm", "exhaustive"]);
            let alone: [&[&str]; 4] = [
                &[],
                &["--gpu-partition"],
                // As graphs.
                &["--batch", "2", "--delay-ms", "0"],
                // Hardly any list has room.
                &["--gpu-memory", "2M"],
            ];
            for more in alone {
                assert!(of(&[&["--device", "gpu"], more].concat()) == expected, "{k} {more:?}");
            }
        }
    }
}

#[test]
fn pretended_devices_rank_by_learned_weights_as_the_cpu_does() {
    let Some(folder) = pretended(&QUERY) else { return };
    let mut random = Random::new(92);
    let vectors = Vectors::new(700, 0, 9.0, &mut random);
    let on_devices = |job: Job| {
        let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "2");
        job.env("MILLRACE_CACHE", vectors.scratch.path("cache"))
    };
    let path = vectors.scratch.path("report.json");
    let path = path.to_str().unwrap();
    let alone: [&[&str]; 3] = [
        &["--gpu-memory", "16M"],
        &["--gpu-memory", "16M", "--gpu-partition"],
        &["--gpu-memory", "16K", "--batch", "3", "--delay-ms", "0"],
    ];
    // Lists with bounds of blocks, by which windows are chosen if a batch has many queries.
    let by_topics = Vectors::new(1500, 4, 9.0, &mut random);
    assert!(has_bounds(&by_topics) && !has_bounds(&vectors));
    let one: [&[&str]; 1] = [&["--gpu-memory", "16M", "--gpus", "1"]];
    let some = whole as fn(&mut Random) -> f64;
    for (vectors, count, weight, k, alone) in [
        (&vectors, 8, some, "7", &alone[..]),
        (&vectors, 8, fraction, "40", &alone),
        (&by_topics, 36, fraction, "7", &one),
    ] {
        let queries = queries(count, &mut random, weight);
        let asked = ["-k", k, "--algorithm", "exhaustive"];
        let expected = ask(&vectors.index, &queries, &asked).ok();
        for more in alone {
            let device = [&["-k", k, "--device", "gpu", "--report", path][..], more].concat();
            let found = on_devices(ask(&vectors.index, &queries, &device)).ok();
            assert_eq!(found.text(), expected.text(), "{k} {more:?}");
            let report = std::fs::read_to_string(path).unwrap();
            let gpu = &serde_json::from_str::<Value>(&report).unwrap()["gpu"];
            let is_small = more.contains(&"16K");
            assert!(is_small || gpu["answered"] == count, "{gpu}");
            assert_eq!(gpu["lost"], 0, "{gpu}");
        }
    }
    // A query of more terms than a device takes, and one without a positive weight.
    let many: Vec<String> = (0..140).map(|n| term(n) + "^2").collect();
    let queries =
        format!("{}\n{}\n{} {}^7\n", many.join(" "), many[..128].join(" "), term(1), term(2));
    let expected = ask(&vectors.index, &queries, &["--algorithm", "exhaustive"]).ok();
    let device = ["--device", "gpu", "--gpu-memory", "16M", "--report", path];
    let found = on_devices(ask(&vectors.index, &queries, &device)).ok();
    assert_eq!(found.text(), expected.text());
    let report = std::fs::read_to_string(path).unwrap();
    let gpu = &serde_json::from_str::<Value>(&report).unwrap()["gpu"];
    assert_eq!((&gpu["answered"], &gpu["unsuited"]), (&2.into(), &1.into()), "{gpu}");
    let and = ["--device", "gpu", "--mode", "and"];
    let says = on_devices(ask(&vectors.index, &queries, &and)).ok();
    says.says(
        "the score impact is computed by the CPU alone, except for --mode or: no GPU is used",
    );
}

/// Term frequencies of a text are weights too: several runs, and documents that are left out, by
/// every score that devices have only in their own way.
#[test]
fn pretended_devices_rank_runs_with_deleted_documents_by_weights() {
    let Some(folder) = pretended(&QUERY) else { return };
    let set = OldAndNew::new(400, 16, 4);
    let index = set.index();
    set.build(&set.old).env("MILLRACE_RUN_LIMIT", "1").arg("--no-merge").ok();
    assert!(crate::support::info(&index)["runs"].as_u64() >= Some(3));
    assert!(!delete(&index).is_empty());
    let queries = set.queries.join("\n");
    let path = set.scratch.path("report.json");
    let all = [("impact", "or"), ("bm25plus", "or"), ("bm25l", "and"), ("dph", "and-or")];
    for (score, mode) in all.into_iter().chain([("ql", "or"), ("ql", "and"), ("dph", "or")]) {
        let of = |more: &[&str]| {
            let job = millrace(args!["query", "--quiet", "--index", index, "--format", "tsv"]);
            let job = job.args(["--score", score, "--mode", mode, "-k", "30"]).args(more);
            let job = job.arg("--report").arg(&path).stdin(queries.clone());
            let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "2");
            job.env("MILLRACE_CACHE", set.scratch.path("cache")).ok().text().to_owned()
        };
        let expected = of(&["--algorithm", "exhaustive"]);
        assert!(expected.lines().count() > 5, "{score} {mode}: {expected}");
        let device = ["--device", "gpu", "--gpu-memory", "16M"];
        for more in [&[][..], &["--gpu-partition"]] {
            assert_eq!(of(&[&device, more].concat()), expected, "{score} {mode} {more:?}");
            let report = std::fs::read_to_string(&path).unwrap();
            let gpu = &serde_json::from_str::<Value>(&report).unwrap()["gpu"];
            let by_cpu = ["unsuited", "without_lists", "lost", "slow"].map(|why| &gpu[why]);
            assert!(by_cpu.iter().all(|&queries| queries == 0), "{score} {mode} {gpu}");
        }
        let part = ["--docids", "50..170"];
        assert_eq!(of(&[&device[..], &part].concat()), of(&part), "{score} {mode}");
    }
}
