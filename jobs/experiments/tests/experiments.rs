//! Each experiment has every point of its figures, and its rows agree with each other. What they
//! measure is not judged.

#[path = "../../../tests/support/browser/mod.rs"]
mod browser;
#[path = "experiments/figures.rs"]
mod figures;
#[path = "experiments/gpu_queries.rs"]
mod gpu_queries;

use flate2::{Compression, write::GzEncoder};
use millrace::inside::codec::ListCodec;
use millrace::inside::index::{DocumentOrder, Form};
use millrace::inside::papers::{Cost, Features};
use millrace::inside::score::{Bm25, Wang};
use millrace::{BuildOptions, build};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Documents of words that are the rarer the greater their number is.
fn documents(seed: u64, count: usize, tokens: usize) -> String {
    let mut state = seed | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let part = (state >> 11) as f64 / (1u64 << 53) as f64;
        format!("word{}", (900f64.powf(part)) as u32)
    };
    let mut document = |number: usize| {
        let text: Vec<String> = (0..tokens).map(|_| word()).collect();
        format!("{{\"id\": \"d{seed}-{number}\", \"contents\": \"{}\"}}\n", text.join(" "))
    };
    (0..count).map(&mut document).collect()
}

/// A collection, its index, and queries of 2 to 4 terms, most of which have documents with all of
/// them.
struct Fixture {
    scratch: TempDir,
    index: PathBuf,
    queries: PathBuf,
}

impl Fixture {
    fn new(count: usize, codec: ListCodec, block: usize, order: DocumentOrder) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let [index, input, queries] =
            ["index", "c.jsonl", "q"].map(|name| scratch.path().join(name));
        std::fs::write(&input, documents(41, count, 40)).unwrap();
        let mut options = BuildOptions::of_paths(&index, [&input]);
        options.form = Form::new(codec, block).unwrap();
        options.order = Some(order);
        options.workers = 2;
        build(options).unwrap();
        let query = |n: usize| format!("word1 word{} word{} word{}", n + 2, n % 5, n % 3);
        let all: Vec<String> = (0..9).map(query).collect();
        std::fs::write(&queries, all.join("\n")).unwrap();
        Self { scratch, index, queries }
    }

    fn usual(count: usize) -> Self {
        Self::new(count, ListCodec::Bp128, 128, DocumentOrder::Input)
    }

    /// The rows of an experiment on the index.
    fn rows(&self, name: &str, more: &str) -> Vec<Value> {
        rows(self.job(name, more))
    }

    fn job(&self, name: &str, more: &str) -> Command {
        let mut job = experiments(name, more);
        job.arg("--index").arg(&self.index).arg(&self.queries);
        job
    }
}

fn experiments(name: &str, more: &str) -> Command {
    let mut job = Command::new(env!("CARGO_BIN_EXE_experiments"));
    job.arg(name).args(more.split_whitespace());
    job
}

/// What a run that succeeds prints.
#[track_caller]
fn rows(mut job: Command) -> Vec<Value> {
    let done = job.output().unwrap();
    assert!(done.status.success(), "{job:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Checks that a run fails with this status, and says so.
#[track_caller]
fn fails(mut job: Command, status: i32, says: &str) {
    let done = job.output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(status), "{job:?}: {message}");
    assert!(message.contains(says), "{message}");
}

/// Rows whose field has this value.
fn of<'a>(rows: &'a [Value], field: &str, value: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row[field] == value).collect()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn parallelism_has_the_figures_of_the_paper() {
    let fixture = Fixture::usual(400);
    let bench = |more: &str| {
        let quick = "-w 2 --passes 2";
        fixture.job("parallelism", &format!("{quick} {more}"))
    };
    let found = rows(bench("--only models"));
    let name = |row: &Value| {
        format!("{}-{}", row["model"].as_str().unwrap(), row["delta"].as_u64().unwrap_or(0))
    };
    let names = found.iter().filter(|row| row["workers"] == 2).map(name);
    let all = "docp-pi-0 docp-ui-0 fgqp-150 fgqp-5 fgqp-always-150 fgqp-always-5 inter-0";
    assert_eq!(names.collect::<BTreeSet<_>>(), all.split(' ').map(str::to_string).collect());
    for row in &found {
        assert_eq!((&row["rate"], &row["queries"]), (&Value::Null, &9.into()), "{row}");
        let over = number(row, "throughput_over_inter");
        let degradation = number(row, "throughput_degradation_percent");
        assert!((100.0 - 100.0 * over - degradation).abs() < 1e-6, "{row}");
        assert!(number(row, "processing_us") <= number(row, "mean_us"), "{row}");
        let [from, to] = [0, 1].map(|end| row["queries_per_s_from_to"][end].as_f64().unwrap());
        assert!((from..=to).contains(&number(row, "queries_per_s")), "{row}");
        if row["workers"] == 1 {
            assert_eq!(number(row, "processing_gain_over_inter_1"), 1.0, "{row}");
        }
    }
    // 8 thresholds, and `inter` on one worker and on two.
    let found = rows(bench("--only delta"));
    let cut = found.iter().filter(|row| row["model"] == "fgqp-always").count();
    assert_eq!((found.len(), cut), (18, 8));
    // Only some models are compared.
    let found = rows(bench("--only length --models fgqp-always"));
    let models: BTreeSet<&str> = found.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(models, BTreeSet::from(["fgqp-always", "inter"]));
    for figure in ["load-of-4", "length"] {
        assert!(!of(&found, "figure", figure).is_empty(), "{figure}");
    }
    fails(bench("--skip 100"), 2, "multiple of 128");
    fails(bench("--models all"), 2, "invalid value");
}

#[test]
fn parallelism_counts_tasks_by_size_of_a_skip() {
    let fixture = Fixture::new(1500, ListCodec::Pfor, 64, DocumentOrder::Input);
    let quick = "-w 2 --only skips --passes 1";
    let rows = fixture.rows("parallelism", quick);
    let skips = of(&rows, "figure", "skips");
    let sizes: Vec<u64> = skips.iter().map(|row| row["skip"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [512, 256, 128, 64]);
    let tasks: Vec<f64> = skips.iter().map(|row| number(row, "tasks_a_query")).collect();
    assert!(tasks.is_sorted() && tasks[3] > tasks[0], "{tasks:?}");
    for (row, tasks_of) in skips.iter().zip(&tasks) {
        assert_eq!(row["queries"], skips[0]["queries"]);
        assert!((number(row, "tasks_over_those_of_longest") - tasks_of / tasks[0]).abs() < 1e-9);
        assert!(number(row, "skips_a_list_and_task") >= 1.0, "{row}");
        assert!(number(row, "overlaps_a_list_and_task") <= 1.0 + 1e-9, "{row}");
        let share = number(row, "creation_us_a_query") / number(row, "whole_us_a_query");
        assert!((number(row, "creation_share") - share).abs() < 1e-9, "{row}");
    }
}

/// A collection of two files, one of them compressed.
fn two_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("a.jsonl.gz")).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(documents(18, 700, 60).as_bytes()).unwrap();
    packed.finish().unwrap();
    std::fs::write(folder.path().join("b.jsonl"), documents(19, 700, 60)).unwrap();
    folder
}

#[test]
fn pipeline_has_the_tables_of_the_paper() {
    let folder = two_files();
    let cache = tempfile::tempdir().unwrap();
    let bench = |more: &str| {
        let mut job = experiments("pipeline", &format!("--gpus none {more}"));
        job.arg(folder.path()).env("MILLRACE_CACHE", cache.path());
        job
    };
    let rows = rows(bench("-w 2 --codec vbyte"));
    let of = |figure: &str| of(&rows, "figure", figure);
    let scenario = |name: &str| of("parsers").iter().filter(|r| r["scenario"] == name).count();
    assert_eq!((scenario("cpu"), scenario("no indexers")), (1, 1));
    // Tables III to V: one indexer on the CPU, and two.
    let collection = of("collection")[0];
    assert_eq!(collection["documents"], 1400);
    let works = of("work of the cpu side");
    assert_eq!(works.len(), 2);
    for work in works {
        assert_eq!(
            (&work["tokens"], &work["terms"]),
            (&collection["tokens"], &collection["terms"])
        );
        // Each term once, most of them without what their collection implies.
        let characters = number(work, "characters");
        let terms = number(work, "terms");
        assert!(characters > 0.5 * terms && characters < 20.0 * terms, "{work}");
        assert!(characters < number(work, "tokens"), "{work}");
    }
    for row in of("indexers") {
        assert_eq!(row["codec"], "vbyte");
        let steps = ["preprocessing_s", "indexing_s", "postprocessing_s"];
        let sum: f64 = steps.iter().map(|step| number(row, step)).sum();
        assert!((number(row, "sum_s") - sum).abs() < 1e-9, "{row}");
        assert!(number(row, "indexing_s") <= number(row, "total_indexer_s"), "{row}");
        assert!(number(row, "total_indexer_s") <= number(row, "job_s") + 0.01, "{row}");
        let bytes = number(collection, "uncompressed_bytes") / 1e6;
        for (mb_per_s, seconds) in
            [("indexing_mb_per_s", "indexing_s"), ("total_indexer_mb_per_s", "total_indexer_s")]
        {
            let product = number(row, mb_per_s) * number(row, seconds);
            assert!((product / bytes - 1.0).abs() < 1e-6, "{row}");
        }
    }
    // Small files share a block, which counts for the first of them.
    assert!(of("files").iter().any(|row| row["split"] == 0));
    // Table VI.
    let whole = of("whole");
    let indexers: Vec<_> = whole.iter().map(|row| row["indexer"].clone()).collect();
    assert_eq!(indexers, ["fast", "wei11"]);
    for row in whole {
        let parsers = number(row, "parsers_s");
        let indexers = number(row, "indexers_s");
        assert!(
            0.0 < parsers && parsers <= indexers && indexers <= number(row, "total_s"),
            "{row}"
        );
    }
    let regrouping = of("regrouping")[0];
    let gain = number(regrouping, "index_in_text_s") / number(regrouping, "index_by_block_s");
    assert!((number(regrouping, "gain") - gain).abs() < 1e-9);
    // Nothing is stored unless that is asked for.
    assert!(of("rates").is_empty());
    let kept = cache.path().join("rates.json");
    assert!(!kept.exists());
    // Without a GPU its rates are not known, and those that somebody has measured stay.
    let of_a_gpu =
        r#"{"device":"a GPU","rates":{"parser":1e6,"cpu":2e6,"gpu":3e6,"gpu_tree":4e6}}"#;
    for before in [None, Some(of_a_gpu)] {
        before.iter().for_each(|text| std::fs::write(&kept, text).unwrap());
        let measured = &crate::rows(bench("-w 2 --only rates"))[0];
        assert!(measured["device"].is_null() && number(measured, "cpu") > 0.0, "{measured}");
        for unknown in ["gpu", "gpu_tree", "kept"] {
            assert!(measured.get(unknown).is_none(), "{measured}");
        }
        assert_eq!(std::fs::read_to_string(&kept).ok().as_deref(), before);
    }
    fails(bench("--gpu-indexers 8"), 1, "--gpu-indexers: no GPU can be used");
}

#[test]
fn codecs_on_shuffled_docids_have_the_same_postings() {
    let fixture = Fixture::usual(400);
    let sums = |more: &str| -> Vec<Value> {
        let rows = fixture.rows("codecs", &format!("--passes 1 --lists 2 {more}"));
        rows.into_iter().filter(|row| row["length_from"].is_null()).collect()
    };
    let plain = sums("");
    let shuffled = sums("--shuffle 1");
    assert_eq!(plain.len(), shuffled.len());
    for (plain, shuffled) in plain.iter().zip(&shuffled) {
        assert_eq!((&plain["shuffled"], &shuffled["shuffled"]), (&false.into(), &true.into()));
        for same in ["codec", "block", "levels", "lists", "postings"] {
            assert_eq!(plain[same], shuffled[same]);
        }
        let all = number(plain, "bytes_a_docid");
        let codes = number(plain, "codes_a_docid");
        assert_eq!(codes < all, plain["codec"] == "rice", "{plain}");
        assert!(codes > 0.0);
    }
    let differ = |a: &Value, b: &Value| a["bytes_a_docid"] != b["bytes_a_docid"];
    assert!(plain.iter().zip(&shuffled).any(|(a, b)| differ(a, b)));
    // Figure 3 of ding09: PForDelta by levels.
    for level in [0, 4] {
        assert!(plain.iter().any(|row| row["codec"] == "pfor-blocks" && row["levels"] == level));
    }
}

#[test]
fn codecs_are_all_measured() {
    let fixture = Fixture::usual(400);
    let lines = fixture.rows("codecs", "--passes 1 --lists 4");
    let (classes, sums): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| !line["length_from"].is_null());
    for codec in ["bp128", "newpfd", "pfor", "pfor-blocks", "rice", "vbyte"] {
        assert!(sums.iter().any(|sum| sum["codec"] == codec), "{codec}");
    }
    for sum in &sums {
        assert_eq!(sum["lists"], sums[0]["lists"]);
        for speed in ["gaps_per_s", "docids_per_s", "tfs_per_s"] {
            assert!(number(sum, speed) > 0.0, "{sum}");
        }
        let same = |line: &&&Value| ["codec", "block", "levels"].iter().all(|k| line[k] == sum[k]);
        let postings = classes.iter().filter(same).map(|line| line["postings"].as_u64().unwrap());
        assert_eq!(sum["postings"], postings.sum::<u64>());
    }
}

#[test]
fn what_fails_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut job = experiments("pipeline", "--only steps --gpus none --report");
    job.arg(&report).arg(folder.path());
    fails(job, 2, "--only steps: there are rates, parsers");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert!(report["job"] == "pipeline" && report["error"].as_str().unwrap().contains("steps"));
}

#[test]
fn scheduling_is_simulated_from_costs() {
    let folder = tempfile::tempdir().unwrap();
    let costs = folder.path().join("costs");
    let cost = |n: u32| {
        let features = Features::of([1 + n % 17 * 4000, 100 + n % 5]);
        let cpu = 20e-6 + f64::from(n % 17) * 30e-6;
        let seconds = [cpu, 60e-6 + cpu / 8.0];
        serde_json::to_string(&Cost { features, seconds, alone: seconds }).unwrap()
    };
    std::fs::write(&costs, (0..80).map(cost).collect::<Vec<_>>().join("\n")).unwrap();
    // Streams are ten deadlines long.
    let mut job = experiments("scheduling", "-w 2 --queries 200 --deadline-ms 2");
    job.arg(costs);
    let rows = rows(job);
    assert_eq!(of(&rows, "row", "highest").len(), 4);
    assert!(of(&rows, "row", "load").iter().all(|row| number(row, "mean_ms") > 0.0));
}

#[test]
fn wang_has_the_figures_that_need_no_gpu() {
    let fixture = Fixture::new(
        600,
        ListCodec::Bp128,
        128,
        DocumentOrder::Global { wang: Wang::default(), bm25: Bm25::default() },
    );
    let rows = fixture.rows("wang", "");
    assert!(number(&rows[0], "train") > 0.0);
    let visits = of(&rows, "row", "figure3")[0]["visits_by_offset"].as_array().unwrap();
    assert_eq!(visits.len(), 20);
    assert!(visits.is_sorted_by(|a, b| a.as_u64() >= b.as_u64()), "{visits:?}");
    let caches = of(&rows, "row", "figure7");
    assert_eq!(caches.len(), 5 * 6);
    for row in &caches {
        let hits = number(row, "hit_rate");
        let bytes = number(row, "transfer_bytes_per_query");
        assert!(number(row, "cached_bytes") <= number(row, "memory_bytes"), "{row}");
        assert!((hits == 1.0) == (bytes == 0.0), "{row}");
    }
    let threads = of(&rows, "row", "figure10");
    assert!(threads.len() >= 4 * 2 && threads.iter().all(|row| number(row, "queries_per_s") > 0.0));
}

#[test]
#[cfg(unix)]
fn a_step_with_an_empty_row_ends_the_script() {
    use std::os::unix::fs::PermissionsExt;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = |row: &str| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let text = format!("#!/bin/sh\n[ \"$1\" != pipeline ] || echo '{row}'\n");
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut script = Command::new(root.join("scripts/papers"));
        for name in ["MILLRACE", "EXPERIMENTS"] {
            script.env(name, &program);
        }
        script.env("SCRATCH", folder.path()).arg("wei11").arg(folder.path().join("out"));
        let ended = script.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        let kept = folder.path().join("out/wei11-rates.jsonl").exists();
        assert_eq!(ended.status.success(), kept, "{row}: {said}");
        assert_eq!(
            said.contains("wei11-rates: a row is empty"),
            !kept && !row.is_empty(),
            "{said}"
        );
        kept
    };
    for whole in [r#"{"k":10,"us":0.5}"#, r#"{"us":1,"rate":null,"skip":null,"delta":null}"#] {
        assert!(run(whole), "{whole}");
    }
    for empty in ["", r#"{"k":10,"us":null}"#, r#"{"rate":null,"us":null}"#, r#"{"curve":[]}"#] {
        assert!(!run(empty), "{empty}");
    }
}
