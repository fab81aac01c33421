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
    let rows = bench(&["--only", "load,length", "--models", "fgqp-always"]).ok().json_lines();
    let models: BTreeSet<&str> = rows.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(models, BTreeSet::from(["fgqp-always", "inter"]));
    for figure in ["load", "load-of-4", "length"] {
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
