//! Reports of experiments as pages, drawn by a headless browser.

use super::{Fixture, browser, experiments, fails};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Puts a value at a field, whose name may have a `/` for each object.
fn put(row: &mut Value, field: &str, value: Value) {
    let pointer: Vec<&str> = field.split('/').collect();
    let place = pointer.iter().fold(row, |at, name| &mut at[*name]);
    *place = value;
}

/// Rows that a figure shows: it says itself what they have to have.
fn rows_of(figure: &Value) -> Vec<Value> {
    let list = |name: &str| -> Vec<String> {
        let text = figure[name].as_str().unwrap_or("");
        text.split(" | ").filter(|part| !part.is_empty()).map(str::to_string).collect()
    };
    let row = |at: usize| {
        let mut row = json!({"experiment": figure["e"]});
        list("has").iter().chain(&list("by")).for_each(|field| put(&mut row, field, json!("a")));
        for (field, value) in figure["of"].as_object().into_iter().flatten() {
            put(&mut row, field, value.clone());
        }
        list("x").iter().chain(&list("y")).for_each(|field| put(&mut row, field, json!(at * at)));
        row
    };
    (1..5).map(row).collect()
}

/// Every figure is drawn of rows such as it asks for, with the paper's numbers beside them.
#[test]
fn figures_are_drawn_by_a_browser() {
    let text = include_str!("../../figures.json");
    let figures: Vec<Value> = serde_json::from_str(text).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let (mut drawn, mut papers) = (0, Vec::new());
    let mut lines = String::new();
    for (at, figure) in figures.iter().enumerate() {
        let of_one = rows_of(figure);
        let one = path(&format!("{at}.json"));
        std::fs::write(&one, json!({"rows": of_one}).to_string()).unwrap();
        lines.extend(of_one.iter().map(|row| format!("{row}\n")));
        drawn += 1;
        papers.extend(
            figure["paper"].as_object().into_iter().flatten().map(|(name, _)| name.clone()),
        );
    }
    std::fs::write(path("lines.jsonl"), lines).unwrap();
    let page = path("page.html");
    let draw = |more: &[PathBuf]| {
        let mut job = experiments("figures", "");
        job.args(more).arg("--report").arg(&page).output().unwrap()
    };
    assert_eq!(draw(&[path("lines.jsonl")]).status.code(), Some(0));
    let size = std::fs::metadata(&page).unwrap().len();
    let Some(found) = browser::browse(&browser::looks(&page)) else { return };
    let seen = browser::check_looks("figures", &found);
    assert_eq!(seen["figures"], drawn);
    let text = seen["text"].as_str().unwrap().to_lowercase();
    for paper in papers {
        assert!(text.contains(&format!("the paper: {}", paper.to_lowercase())), "{paper}");
    }
    assert!(size < 300_000 + 2 * 200 * figures.len() as u64, "{size}");
    // A figure alone, out of a report.
    assert_eq!(draw(&[path("0.json"), path("7.json")]).status.code(), Some(0));
    let found = browser::browse(&browser::looks(&page)).unwrap();
    assert_eq!(browser::check_looks("two", &found)["figures"], 2);
    fails(experiments("figures", "rows.jsonl"), 2, "--report");
}

/// A report is a page if its name says so, for an experiment that fails too.
#[test]
fn reports_of_experiments_are_pages() {
    let fixture = Fixture::usual(300);
    let page = fixture.scratch.path().join("page.html");
    let mut job = fixture.job("codecs", "--passes 1 --lists 2");
    assert!(job.arg("--report").arg(&page).output().unwrap().status.success());
    let broken = fixture.scratch.path().join("broken.html");
    let mut job = experiments("codecs", "--index not-there not-there");
    assert!(!job.arg("--report").arg(&broken).output().unwrap().status.success());
    assert_eq!(browser::held(&page)["rows"][0]["experiment"], "codecs");
    let steps = [browser::looks(&page), browser::looks(&broken)].concat();
    let Some(found) = browser::browse(&steps) else { return };
    let seen = browser::check_looks("page", &found[..3]);
    assert_eq!(seen["figures"], 4);
    let seen = browser::check_looks("broken", &found[3..]);
    assert!(seen["text"].as_str().unwrap().contains("not-there: there is no index"), "{seen}");
}
