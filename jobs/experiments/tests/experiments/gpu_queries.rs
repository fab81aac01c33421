//! The experiments on GPUs run and answer as the CPU does, on pretended devices, so that times say
//! nothing.

use crate::{Fixture, number, of, rows};
use millrace::inside::codec::ListCodec;
use millrace::inside::index::DocumentOrder;
use millrace::inside::score::{Bm25, Wang};
use pretended::{DING09, HUANG, QUERY, WANG, pretended};
use serde_json::Value;
use std::path::Path;

/// What pretends a device, as the tests of the program have it.
#[path = "../../../../tests/support/pretended/mod.rs"]
mod pretended;

/// The rows of experiments of an engine on two devices.
fn on_devices(fixture: &Fixture, folder: &Path, more: &str) -> Vec<Value> {
    let quick = "--sample 3 --seconds 0.01 --gpu-memory 16M";
    let mut job = fixture.job("gpu-queries", &format!("{quick} {more}"));
    job.env("LD_LIBRARY_PATH", folder).env("PRETENDED_GPUS", "2");
    job.env("MILLRACE_CACHE", fixture.scratch.path().join("cache"));
    rows(job)
}

/// Checks that there are rows of this name, and that no answer is wrong.
fn are_right(rows: &[Value], name: &str, count: usize) {
    let rows = of(rows, "row", name);
    assert_eq!(rows.len(), count, "{name}: {rows:?}");
    assert!(rows.iter().all(|row| row["wrong"].is_null() || row["wrong"] == 0), "{rows:?}");
}

#[test]
fn the_usual_engine_is_compared_and_timed() {
    let Some(folder) = pretended(&QUERY) else { return };
    let fixture = Fixture::usual(300);
    let rows = on_devices(&fixture, &folder, "--only and-10");
    // The name of another way begins so, too.
    are_right(&rows, "check", 2);
    assert!(number(of(&rows, "row", "and-10")[0], "queries_per_s") > 0.0, "{rows:?}");
    assert!(number(of(&rows, "row", "load")[0], "lists") > 0.0, "{rows:?}");
}

#[test]
fn ding09_has_its_tables() {
    let Some(folder) = pretended(&DING09) else { return };
    let fixture = Fixture::new(300, ListCodec::Pfor, 64, DocumentOrder::Input);
    are_right(&on_devices(&fixture, &folder, "--only ding09-check"), "ding09-check", 6);
    let rows = on_devices(&fixture, &folder, "--only ding09-table");
    are_right(&rows, "ding09-table1", 1);
    are_right(&rows, "ding09-table2", 3);
    are_right(&rows, "ding09-table3", 4);
    for row in of(&rows, "row", "ding09-table3") {
        let shares = row["shares"].as_object().unwrap().values();
        let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{row}");
    }
}

#[test]
fn huang_has_its_tables() {
    let Some(folder) = pretended(&HUANG) else { return };
    let fixture = Fixture::new(300, ListCodec::NewPfd, 64, DocumentOrder::Input);
    let rows = on_devices(&fixture, &folder, "--only huang-table1-10-32");
    are_right(&rows, "huang-table1", 4);
    assert!(of(&rows, "row", "huang-table1").iter().all(|row| number(row, "over_all_cores") > 0.0));
    let rows = on_devices(&fixture, &folder, "--only huang-figure3");
    let shares = of(&rows, "row", "huang-figure3");
    assert!((number(shares[shares.len() - 1], "share_upto") - 1.0).abs() < 1e-6, "{rows:?}");
    let rows = on_devices(&fixture, &folder, "--only huang-table2-one-64");
    for row in of(&rows, "row", "huang-table2") {
        let way =
            of(&rows, "row", "huang-figure6").into_iter().filter(|of| of["way"] == row["way"]);
        let least = way.map(|of| number(of, "us")).fold(f64::INFINITY, f64::min);
        assert_eq!(least, number(row, "lbd_us"), "{rows:?}");
    }
    let rows = on_devices(&fixture, &folder, "--only huang-table3-64");
    let several = of(&rows, "row", "huang-table3").into_iter().filter(|row| row["gpus"] == 2);
    assert_eq!(several.filter(|row| number(row, "one_us") > 0.0).count(), 4, "{rows:?}");
}

#[test]
fn wang_is_compared_and_has_its_figures() {
    let Some(folder) = pretended(&WANG) else { return };
    let order = DocumentOrder::Global { wang: Wang::default(), bm25: Bm25::default() };
    let fixture = Fixture::new(300, ListCodec::Bp128, 128, order);
    let rows = on_devices(&fixture, &folder, "--only wang-figure10");
    assert!(of(&rows, "row", "wang-figure10").len() <= 4, "{rows:?}");
    let rows = on_devices(&fixture, &folder, "--only wang-figure4");
    assert!(of(&rows, "row", "wang-figure4").iter().any(|row| row["dq_mb"].is_number()));
    let rows = on_devices(&fixture, &folder, "--only wang-check");
    assert!(of(&rows, "row", "wang-check").iter().any(|row| number(row, "continued") > 0.0));
}
