//! The paper's indexer builds what `fast` builds, to the byte, with any parsers and indexers.

use crate::cluster::{files_below, together};
use crate::support::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Builds with the paper's indexer; runs end after about every `limit` bytes of cost, if one is
/// given.
fn build_wei11(index: &Path, limit: Option<u64>, more: &[OsString]) {
    let job =
        millrace(args!["build", "--quiet", "--indexer", "wei11", "--index", index]).args(more);
    match limit {
        Some(limit) => job.env("MILLRACE_RUN_LIMIT", limit.to_string()).ok(),
        None => job.ok(),
    };
}

fn build_fast(index: &Path, limit: Option<u64>, more: &[OsString]) {
    let job = millrace(args!["build", "--quiet", "--index", index]).args(more);
    match limit {
        Some(limit) => job.env("MILLRACE_RUN_LIMIT", limit.to_string()).ok(),
        None => job.ok(),
    };
}

#[test]
fn any_workers_parsers_indexers_and_blocks() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(11, 9000, 90).unname(7).jsonl());
    for (limit, least_runs) in [(None, 1), (Some(500_000), 3)] {
        let fast = scratch.path(format!("fast-{least_runs}"));
        build_fast(&fast, limit, &args!["--no-merge", "-w", "2", input]);
        assert!(info(&fast)["runs"].as_u64().unwrap() >= least_runs);
        let roles: [&[&str]; 9] = [
            &["-w", "1"],
            &["-w", "1", "--cpu-indexers", "3", "--parse-block", "1"],
            &["-w", "2", "--readers", "1"],
            &["-w", "2", "--parsers", "1", "--cpu-indexers", "1"],
            &["-w", "3", "--parse-block", "1M"],
            &["-w", "3", "--parsers", "2", "--cpu-indexers", "7", "--parse-block", "2M"],
            &["-w", "4", "--parsers", "1", "--cpu-indexers", "2", "--parse-block", "8G"],
            &["-w", "4", "--parsers", "3", "--cpu-indexers", "1", "--memory", "64M"],
            &["-w", "2", "--cpu-indexers", "40"],
        ];
        for (number, roles) in roles.iter().enumerate() {
            // One run ends where the memory says, several where the test says.
            if limit.is_none() && roles.contains(&"64M") {
                continue;
            }
            let index = scratch.path(format!("wei11-{least_runs}-{number}"));
            let more = args!["--no-merge", input];
            let given = roles.iter().map(OsString::from);
            build_wei11(&index, limit, &Vec::from_iter(given.chain(more)));
            // A run ends with a piece, and the memory says how long these are.
            let fast = match roles.contains(&"64M") {
                true => scratch.path("fast-64M"),
                false => fast.clone(),
            };
            if !fast.exists() {
                build_fast(&fast, limit, &args!["--no-merge", "--memory", "64M", input]);
            }
            assert_same_index(&fast, &index, &[]);
        }
    }
}

#[test]
fn placement_changes_no_byte() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(17, 9000, 90).jsonl());
    let first = scratch.path("first");
    build_fast(&first, None, &args!["-w", "1", input]);
    for sample in ["0", "64K", "1M", "1G"] {
        for indexer in ["fast", "wei11"] {
            let index = scratch.path(format!("{indexer}-{sample}"));
            let report = scratch.path("report.json");
            let job = millrace(args!["build", "--indexer", indexer, "--index", index, input]);
            let more = args!["-w", "3", "--sample", sample, "--report", report, "--gpus", "none"];
            let outcome = job.args(more).ok();
            assert_same_index(&first, &index, &[]);
            let report: serde_json::Value =
                serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
            let placement = &report["placement"];
            if sample == "0" {
                assert_eq!(placement["by"], "turn");
                continue;
            }
            assert_eq!(placement["by"], "sample");
            let heaviest = placement["cpu_heaviest"].as_f64().unwrap();
            assert!((1.0..1.5).contains(&heaviest), "{placement}");
            if indexer == "wei11" {
                outcome.says("millrace: placement: ").says("to 3 CPU indexers");
                // The owners' shares are about what the sample promised.
                let tokens: Vec<u64> = report["indexers"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row["tokens"].as_u64().unwrap())
                    .collect();
                let most = tokens.iter().max().unwrap();
                let all = tokens.iter().sum::<u64>();
                assert!(2 * most < all, "{tokens:?}");
                assert_eq!(report["tokens"], all);
            }
        }
    }
}

#[test]
fn every_format_and_compression() {
    let scratch = Scratch::new();
    let collection = Collection::new(12, 900, 60);
    let lines = collection.jsonl();
    scratch.write("in/a.jsonl", &lines);
    scratch.write("in/b.jsonl.gz", gzip(&lines, 3));
    scratch.write("in/c.tsv.zst", zstd(&tsv(&Collection::new(13, 700, 40).docs), 1));
    for (number, doc) in collection.docs.iter().take(60).enumerate() {
        scratch.write(format!("in/texts/{number}.txt"), &doc.text);
        scratch.write(format!("in/pages/{number}.html"), format!("<p>{}</p>", doc.text));
    }
    let fast = scratch.path("fast");
    let wei11 = scratch.path("wei11");
    build_fast(&fast, None, &args![scratch.path("in")]);
    assert!(info(&fast)["documents"].as_u64().unwrap() > 2500);
    for workers in ["1", "2", "4"] {
        build_wei11(&wei11, None, &args!["-w", workers, scratch.path("in")]);
        assert_same_index(&fast, &wei11, &[]);
    }
    // From a pipe.
    let fast = scratch.path("fast-stdin");
    let wei11 = scratch.path("wei11-stdin");
    for (index, indexer) in [(&fast, "fast"), (&wei11, "wei11")] {
        let build = args!["build", "--quiet", "--indexer", indexer, "--index", index, "-"];
        millrace(build).stdin(gzip(&lines, 1)).ok();
    }
    assert_same_index(&fast, &wei11, &[]);
}

#[test]
fn real_collections() {
    let Some(collections) = shared("collections") else { return };
    let scratch = Scratch::new();
    for name in ["cacm", "cisi", "cranfield", "vaswani"] {
        let fast = scratch.path("fast");
        let wei11 = scratch.path("wei11");
        for stemmer in ["english", "porter"] {
            let input = collections.join(name);
            build_fast(&fast, None, &args!["--stemmer", stemmer, input]);
            build_wei11(&wei11, None, &args!["--stemmer", stemmer, "-w", "3", input]);
            assert_same_index(&fast, &wei11, &[]);
        }
    }
}

/// Collections of terms in which the work is as unevenly spread as it can be.
#[test]
fn skewed_collections() {
    let scratch = Scratch::new();
    let mut random = Random::new(14);
    let letters = |n: usize, random: &mut Random| -> String {
        (0..n).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    // Everything in one trie collection: with many terms, with one, with long ones, with the
    // longest.
    let many: Vec<String> =
        (0..30_000).map(|_| format!("mill{}", letters(5, &mut random))).collect();
    let one = vec!["mill".to_string(); 200_000];
    let long: Vec<String> = (0..2000)
        .map(|i| format!("{}{i:04}", "mill".repeat(62 - i % 3)))
        .map(|term| term + &letters(10, &mut random))
        .collect();
    // A term each for collections of single letters, digits and others; most indexers own nothing.
    let few: Vec<String> = "a 1 é zzzz millrace".split(' ').map(str::to_string).collect();
    for (name, terms) in [("many", many), ("one", one), ("long", long), ("few", few)] {
        let docs: Vec<String> = terms
            .chunks(997)
            .map(|terms| serde_json::json!({ "text": terms.join(" ") }).to_string() + "\n")
            .collect();
        let input = scratch.write(format!("{name}.jsonl"), docs.concat());
        let fast = scratch.path("fast");
        let wei11 = scratch.path("wei11");
        build_fast(&fast, None, &args!["--stemmer", "none", input]);
        for roles in [["-w", "1", "--cpu-indexers", "1"], ["-w", "3", "--cpu-indexers", "5"]] {
            let roles = roles.iter().map(OsString::from);
            let more = args!["--stemmer", "none", input];
            build_wei11(&wei11, None, &Vec::from_iter(roles.chain(more)));
            assert_same_index(&fast, &wei11, &[]);
        }
    }
}

#[test]
fn several_processes() {
    let scratch = Scratch::new();
    let bytes = Collection::new(15, 3000, 60).jsonl();
    let parts = cut_lines(&bytes, 4);
    for (number, part) in parts.iter().enumerate() {
        scratch.write(format!("in/{number}.jsonl"), part);
    }
    let fast = scratch.path("fast");
    let wei11 = scratch.path("wei11");
    for (index, indexer) in [(&fast, "fast"), (&wei11, "wei11")] {
        let more = args!["--indexer", indexer, "-w", "2", scratch.path("in")];
        let build = args!["build", "--quiet", "--index", index].into_iter().chain(more);
        together(&scratch, 2, &Vec::from_iter(build));
    }
    let files = |index: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let all = files_below(index).into_iter();
        let named = all.filter(|(path, _)| path.parent().is_some_and(|p| p.ends_with("runs")));
        named.map(|(path, bytes)| (path.strip_prefix(index).unwrap().into(), bytes)).collect()
    };
    assert_eq!(files(&fast).len(), 2 * 8, "the files of a run of each process");
    assert!(files(&fast) == files(&wei11), "the runs differ");
}

#[test]
fn wrong_roles_are_refused() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(16, 10, 10).jsonl());
    for (more, message) in [
        ("--indexer wei11 -w 2 --parsers 3", "give 1 to 2"),
        ("--indexer wei11 --parsers 0", "--parsers: 0 parsers"),
        ("--indexer wei11 --cpu-indexers 0", "nobody would index"),
        ("--indexer wei11 --readers 0", "nobody would read"),
        ("--cpu-indexers 2", "--indexer wei11"),
    ] {
        let job = millrace(args!["build", "--index", scratch.path("i"), input]);
        let job = job.args(more.split(' ')).args(["--gpus", "none"]);
        job.fails(2).says(message);
        assert!(!scratch.path("i").exists());
    }
}
