//! Do the experiments of `bench` have every point of the papers' figures, and do their figures agree
//! with each other? What they measure is not judged.

use crate::queries::Fixture;
use crate::util::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// Rows whose field has this value.
fn of<'a>(rows: &'a [Value], field: &str, value: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row[field] == value).collect()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// A collection with queries of 2 to 4 terms of one document, so that AND finds some.
fn fixture(documents: usize) -> (Fixture, std::path::PathBuf) {
    let fixture = Fixture::new(41, documents);
    let mut random = Random::new(410);
    let lines: Vec<String> =
        (0..9).map(|number| fixture.collection.words.phrase(&mut random, 2 + number % 3)).collect();
    let path = fixture.scratch.write("q", lines.join("\n"));
    (fixture, path)
}

#[test]
fn parallelism_has_the_figures_of_the_paper() {
    let (fixture, queries) = fixture(400);
    let bench = |more: &[&str]| {
        let job = millrace(args!["bench", "parallelism", "--index", fixture.index]);
        let quick = ["-w", "2", "--passes", "1", "--seconds", "0.002", "--light", "5"];
        job.args(quick).args(more).arg(&queries)
    };
    let rows = bench(&["--only", "models"]).ok().json_lines();
    let names = |figure: &str| -> BTreeSet<String> {
        let name = |row: &&Value| {
            format!("{}-{}", row["model"].as_str().unwrap(), row["delta"].as_u64().unwrap_or(0))
        };
        let rows = of(&rows, "figure", figure);
        rows.iter().filter(|row| row["workers"] == 2).map(name).collect()
    };
    let all = "docp-pi-0 docp-pi-free-0 docp-ui-0 docp-ui-free-0 fgqp-150 fgqp-5 fgqp-always-150 \
               fgqp-always-5 inter-0";
    for figure in ["models-closed-loop", "models-light-load"] {
        assert_eq!(names(figure), all.split(' ').map(str::to_string).collect(), "{figure}");
    }
    for row in &rows {
        if row["figure"].as_str().unwrap().ends_with("closed-loop") {
            assert!(row["rate"].is_null(), "{row}");
            let over = number(row, "throughput_over_inter");
            let degradation = number(row, "throughput_degradation_percent");
            assert!((100.0 - 100.0 * over - degradation).abs() < 1e-6, "{row}");
            assert!(number(row, "processing_us") <= number(row, "mean_us"), "{row}");
        } else {
            assert!(number(row, "rate") > 0.0 && number(row, "latency_gain_over_inter") > 0.0);
        }
    }
    // Everything is cut where that is asked for: 8 thresholds, and `inter` on one worker and on two.
    let rows = bench(&["--only", "delta", "--cut-us", "0"]).ok().json_lines();
    for figure in ["delta-closed-loop", "delta-light-load"] {
        let rows = of(&rows, "figure", figure);
        let cut = rows.iter().filter(|row| row["model"] == "fgqp-always").count();
        assert_eq!((rows.len(), cut), (10, 8), "{figure}");
    }
    // Only some models are compared.
    let rows = bench(&["--only", "length", "--models", "fgqp-always"]).ok().json_lines();
    let models: BTreeSet<&str> = rows.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(models, BTreeSet::from(["fgqp-always", "inter"]));
    for figure in ["load-of-4", "length"] {
        assert!(!of(&rows, "figure", figure).is_empty(), "{figure}");
    }
    bench(&["--skip", "100"]).fails(2).says("multiple of 128");
    bench(&["--models", "all"]).fails(2);
}

#[test]
fn parallelism_counts_tasks_by_size_of_a_skip() {
    let (fixture, queries) = fixture(1500);
    let index = fixture.scratch.path("blocks-of-64");
    let input = fixture.scratch.path("c.jsonl");
    build(&index, args!["--codec", "pfor", "--block-size", "64", input]);
    let job = millrace(args!["bench", "parallelism", "--index", index, "-w", "2"]);
    let job = job.args(["--only", "skips", "--passes", "1", "--seconds", "0.002", "--light", "5"]);
    let rows = job.arg(&queries).ok().json_lines();
    let skips: Vec<&Value> =
        of(&rows, "figure", "skips").into_iter().filter(|row| row["model"].is_null()).collect();
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

/// Whether a page shows a number between two texts. One that was printed and read again may be rounded the other way.
fn shows(page: &str, before: &str, value: f64, after: &str) -> bool {
    let digits = if value.fract() == 0.0 || value >= 1000.0 { 0 } else { 3 };
    let is_there = |value: f64| page.contains(&format!("{before}{value:.digits$}{after}"));
    [value, value * (1.0 + 1e-12), value * (1.0 - 1e-12)].into_iter().any(is_there)
}

#[test]
fn pages_are_drawn_from_the_rows_that_are_printed() {
    let (fixture, queries) = fixture(400);
    let (page, scratch) = (fixture.scratch.path("page.html"), two_files());
    let drawn = |bench: &str, args: &[&[std::ffi::OsString]]| {
        let job = millrace(["bench", bench]).args(args.concat()).arg("--report").arg(&page);
        let rows = job.ok().json_lines();
        (rows, std::fs::read_to_string(&page).unwrap())
    };
    // Of each point: the rows, the field of y, that of x, and the name of the curve.
    let check =
        |(rows, page): &(Vec<Value>, String), y: &str, x: &str, name: &dyn Fn(&Value) -> String| {
            let of: Vec<&Value> =
                rows.iter().filter(|row| !row[x].is_null() && !row[y].is_null()).collect();
            assert!(!of.is_empty(), "{y} by {x}");
            for row in of {
                let (before, after) =
                    (format!("<title>{}: ", name(row)), format!(" at {}</title>", row[x]));
                assert!(shows(page, &before, number(row, y), &after), "{row}: {page}");
            }
        };
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_string();
    let quick =
        args!["-w", "2", "--passes", "1", "--seconds", "0.002", "--light", "5", "--only", "delta"];
    let found = drawn("parallelism", &[&args!["--index", fixture.index], &quick, &args![queries]]);
    check(&found, "throughput_degradation_percent", "delta", &|row| text(row, "model"));
    let found = drawn(
        "pipeline",
        &[&args!["-w", "2", "--gpus", "none", "--only", "parsers", scratch.path("in")]],
    );
    let scenario = |row: &Value| format!("{}, gpu indexers 0", text(row, "scenario"));
    check(&found, "mb_per_s", "parsers", &scenario);
    let few =
        args!["--passes", "1", "--lists", "2", "--codec", "bp128", "--codec", "vbyte", "--json"];
    let found = drawn("codecs", &[&args!["--index", fixture.index], &few, &args![queries]]);
    let setting = |row: &Value| format!("{}, block {}", text(row, "codec"), row["block"]);
    // So many settings would hide each other.
    let mut found = found;
    found.0.retain(|row| row["default"] == true);
    for y in ["docids_per_s", "bytes_a_docid"] {
        check(&found, y, "length_from", &setting);
    }
    let few = args!["--passes", "1", "--json"];
    let found = drawn("cpu-queries", &[&args!["--index", fixture.index], &few, &args![queries]]);
    check(&found, "mean_us", "blocks_from", &|row| text(row, "algorithm"));
    for row in of(&found.0, "table", "huang table 1") {
        let mean = number(row, "mean_us");
        assert!(shows(&found.1, "<title>microseconds: ", mean, "</title>"), "{row}: {}", found.1);
    }
    // What fails has a report of the rows that there are, and of the error.
    let job = millrace(args!["bench", "codecs", "--index", fixture.index, "--report", page]);
    job.args(["--codec", "none"]).arg(&queries).fails(2);
    assert!(std::fs::read_to_string(&page).unwrap().contains("none: there is no such codec"));
}

/// A collection of two files, one of them compressed.
fn two_files() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("in/a.jsonl.gz", gzip(&Collection::new(18, 700, 60).jsonl(), 1));
    scratch.write("in/b.jsonl", Collection::new(19, 700, 60).jsonl());
    scratch
}

#[test]
fn pipeline_has_the_tables_of_the_paper() {
    let scratch = two_files();
    let bench = args!["bench", "pipeline", "-w", "2", "--gpus", "none", "--codec", "vbyte"];
    let outcome = millrace(bench).arg(scratch.path("in")).ok();
    let rows = outcome.json_lines();
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
        let (characters, terms) = (number(work, "characters"), number(work, "terms"));
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
        let (parsers, indexers) = (number(row, "parsers_s"), number(row, "indexers_s"));
        assert!(
            0.0 < parsers && parsers <= indexers && indexers <= number(row, "total_s"),
            "{row}"
        );
    }
    let regrouping = of("regrouping")[0];
    let gain = number(regrouping, "index_in_text_s") / number(regrouping, "index_by_block_s");
    assert!((number(regrouping, "gain") - gain).abs() < 1e-9);
    assert!(of("inflating")[0]["text_bytes"].as_u64().unwrap() > 10_000);
    // Nothing is kept unless that is asked for, and a figure is there for people too.
    assert!(of("rates").is_empty());
    let lines = outcome.stderr.lines().filter(|line| line.starts_with("regrouping: ")).count();
    assert_eq!(lines, 1, "{}", outcome.stderr);
    let job = millrace(args!["bench", "pipeline", "--gpus", "none", "--gpu-indexers", "8"]);
    job.arg(scratch.path("in")).fails(1).says("--gpu-indexers: no GPU can be used");
}

/// What the bench measures is what placement uses from then on, unless it is told otherwise.
#[test]
fn rates_of_a_machine_are_measured_and_kept() {
    let scratch = two_files();
    let (cache, input) = (scratch.path("cache"), scratch.path("in"));
    let job = |args: &[std::ffi::OsString]| {
        millrace(args).args(["-w", "2", "--gpus", "none"]).arg(&input).env("MILLRACE_CACHE", &cache)
    };
    let placed = |more: &[&str]| -> Value {
        let (index, report) = (scratch.path("index"), scratch.path("report.json"));
        let build = args!["build", "--indexer", "wei11", "--index", index, "--report", report];
        job(&build).args(more).ok();
        let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        report["placement"].clone()
    };
    let before = placed(&[]);
    assert_eq!(
        (&before["rates_from"], &before["rates"]["parser"]),
        (&"default".into(), &8e6.into())
    );
    let rows = job(&args!["bench", "pipeline", "--only", "rates"]).ok().json_lines();
    let measured = &rows[0];
    assert!(measured["device"].is_null() && number(measured, "parser") > 0.0, "{measured}");
    let after = placed(&[]);
    assert_eq!(after["rates_from"], "measured");
    for rate in ["parser", "cpu", "gpu", "gpu_tree"] {
        assert_eq!(after["rates"][rate], measured[rate]);
    }
    let given = placed(&["--rates", "1,2,3,4"]);
    assert_eq!((&given["rates_from"], &given["rates"]["cpu"]), (&"given".into(), &2e6.into()));
    // What is kept is not believed.
    let kept = cache.join("rates.json");
    let build = || job(&args!["build", "--indexer", "wei11", "--index", scratch.path("index")]);
    for wrong in
        ["", "{}", r#"{"device": null, "rates": {"parser": 0, "cpu": 1, "gpu": 1, "gpu_tree": 1}}"#]
    {
        std::fs::write(&kept, wrong).unwrap();
        build().fails(1).says(kept.to_str().unwrap()).says("measure them again");
    }
    // Another indexer does not ask.
    let index = scratch.path("fast");
    job(&args!["build", "--index", index]).ok();
}

#[test]
fn codecs_on_shuffled_docids_have_the_same_postings() {
    let (fixture, queries) = fixture(400);
    let bench = |more: &[&str]| {
        let job = millrace(args!["bench", "codecs", "--index", fixture.index, "--passes", "1"]);
        job.args(["--lists", "2", "--codec", "rice", "--codec", "pfor", "--codec", "pfor-blocks"])
            .args(more)
            .arg(&queries)
            .ok()
    };
    let sums = |more: &[&str]| -> Vec<Value> {
        let rows = bench(&[&["--json"], more].concat()).json_lines();
        rows.into_iter().filter(|row| row["length_from"].is_null()).collect()
    };
    let (plain, shuffled) = (sums(&[]), sums(&["--shuffle", "1"]));
    assert_eq!(plain.len(), shuffled.len());
    for (plain, shuffled) in plain.iter().zip(&shuffled) {
        assert_eq!((&plain["shuffled"], &shuffled["shuffled"]), (&false.into(), &true.into()));
        for same in ["codec", "block", "levels", "lists", "postings"] {
            assert_eq!(plain[same], shuffled[same]);
        }
        let (all, codes) = (number(plain, "bytes_a_docid"), number(plain, "codes_a_docid"));
        assert_eq!(codes < all, plain["codec"] == "rice", "{plain}");
        assert!(codes > 0.0);
    }
    let differ = |a: &Value, b: &Value| a["bytes_a_docid"] != b["bytes_a_docid"];
    assert!(plain.iter().zip(&shuffled).any(|(a, b)| differ(a, b)));
    let table = bench(&[]);
    let figure = table.text().split("ding09, figure 3").nth(1).unwrap();
    for row in ["rice ", "pfor/0 ", "pfor/4 ", "pfor-blocks/0 "] {
        assert!(figure.contains(row), "{row}\n{figure}");
    }
}

#[test]
fn cpu_queries_say_what_they_were_measured_with() {
    let (fixture, queries) = fixture(400);
    let index = fixture.scratch.path("newpfd");
    let input = fixture.scratch.path("c.jsonl");
    build(&index, args!["--codec", "newpfd", "--block-size", "64", input]);
    for (more, idf) in [(&[][..], "robertson"), (&["--idf", "lucene"], "lucene")] {
        let job = millrace(args!["bench", "cpu-queries", "--index", index, "--passes", "1"]);
        let rows = job.args(["--json"]).args(more).arg(&queries).ok().json_lines();
        let setting = &of(&rows, "table", "setting")[0];
        assert_eq!((&setting["codec"], &setting["block"]), (&"newpfd".into(), &64.into()));
        assert_eq!((&setting["idf"], &setting["documents"]), (&idf.into(), &400.into()));
        assert!(number(setting, "blocks_a_query") > 0.0);
        assert_eq!(of(&rows, "table", "huang table 1").len(), 15);
    }
}

#[test]
fn ceilings_find_the_same_whoever_looks_and_as_much_as_a_build() {
    let (fixture, _) = fixture(200);
    let input = fixture.scratch.path("c.jsonl");
    let bench = |input: &std::path::Path| {
        let job = millrace(args!["bench", "ceilings", "-w", "1,2", "--memory", "256M"]);
        job.args(["--repeat", "1"]).arg(input)
    };
    let rows = bench(&input).ok().json_lines();
    let stages = "read hash copy lines documents texts tokens count append encode build";
    let bytes = std::fs::metadata(&input).unwrap().len() as f64;
    for threads in [1, 2] {
        let of: Vec<&Value> = rows.iter().filter(|row| row["threads"] == threads).collect();
        let names: Vec<&str> = of.iter().map(|row| row["stage"].as_str().unwrap()).collect();
        assert_eq!(names.join(" "), stages);
        assert!(
            of.iter().all(|row| number(row, "bytes") == bytes && number(row, "gb_per_s") > 0.0)
        );
        let (texts, encode, build) = (of[5], of[9], of[10]);
        assert_eq!((&encode["lines"], &texts["documents"]), (&200.into(), &encode["documents"]));
        for counted in ["documents", "tokens", "postings"] {
            assert_eq!(encode[counted], build[counted], "{counted} with {threads} threads");
        }
    }
    bench(&fixture.scratch.path("gone.jsonl")).fails(1).says("gone.jsonl");
    let other = fixture.scratch.write("a.txt", "no JSON\n");
    bench(&other).fails(1).says("a.txt: the stages are those of JSON lines");
}

/// What is said of the papers names files; those that are gone mislead.
#[test]
fn the_files_that_the_page_of_papers_names_are_there() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(folder.join("docs/papers.md")).unwrap();
    let is_path = |word: &&str| {
        ["src/", "kernels/", "jobs/", "tests/", "scripts/"].iter().any(|at| word.starts_with(at))
    };
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 40, "{named:?}");
    let gone: Vec<_> = named.iter().filter(|path| !folder.join(path).exists()).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// A figure is worth little if nobody knows what it is to be compared with.
#[test]
fn every_page_of_measurements_says_at_its_head_what_it_repeats() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measurements");
    let papers =
        ["wei11", "tatikonda11", "ding09", "wang", "huang"].map(|name| format!("`{name}`"));
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let head = text.split("\n\n").nth(1).unwrap_or_default();
        let repeats = head.starts_with("Repeats ") && papers.iter().any(|name| head.contains(name));
        let said = repeats || head.starts_with("Our own");
        assert!(said, "{}: begin with what is repeated, or with Our own", path.display());
        pages += 1;
    }
    assert!(pages > 0);
}
