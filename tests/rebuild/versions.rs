//! An index of an earlier version of the analysis, or of the lists of names, is asked as it was
//! made; a rebuild makes it again once, says why, and mixes nothing.

use super::Place;
use crate::support::sealed::Manifest;
use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Makes an index that of a program which did not record a version.
fn make_older(index: &Path, entry: &str) {
    let generation = generation(index);
    let mut manifest = Manifest::read(&generation);
    let settings = manifest.0["settings"].as_object_mut().unwrap();
    assert!(settings.remove(entry).is_some_and(|version| version != 1));
    std::fs::write(generation.join("manifest.json"), manifest.encode()).unwrap();
}

fn terms(index: &Path) -> usize {
    let text = "cafe\u{301}s Wort\u{ad}trennung";
    millrace(args!["show", "--index", index, "--analyze", text]).ok().text().lines().count()
}

#[test]
fn an_index_of_an_earlier_version_is_made_anew_once() {
    for (entry, why, older) in
        [("analysis", "cuts text into words in another way", 4), ("lists", "by other names", 2)]
    {
        let place = Place::new("");
        place.once();
        assert_eq!(terms(&place.index()), 2);
        make_older(&place.index(), entry);
        assert_eq!(terms(&place.index()), older);
        // Only one source has changed, and all are read.
        place.write("b.jsonl", 30..50);
        let planned = place.plan();
        assert!(planned.to_string().contains(why), "{planned}");
        let outcome = place.run("--once").expect_status(0);
        let notes = outcome.stderr.lines().filter(|line| line.contains("is built again: "));
        assert!(notes.filter(|line| line.contains(why)).count() == 1, "{outcome:?}");
        assert!(place.status()["last"]["reason"].as_str().unwrap().contains(why));
        assert_eq!(terms(&place.index()), 2);
        assert_eq!(place.documents(), 50);
        let again = place.run("--once").expect_status(0);
        assert!(!again.stderr.contains(why), "{again:?}");
        // What is changed from now on is changed as usual.
        place.write("b.jsonl", 30..45);
        let part = place.run("--once").expect_status(0);
        assert!(!part.stderr.contains(why), "{part:?}");
    }
}

/// The index of a program of format 4, whose manifest alone is there.
fn put_format_4(index: &Path) {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/build/golden/format-4");
    _ = std::fs::remove_dir_all(index);
    copy_folder(&old, index);
}

/// Says that the live generation is of another format, and makes the checksum good again.
fn make_format(index: &Path, format: u32) {
    let generation = generation(index);
    let mut manifest = Manifest::read(&generation);
    manifest.0["format"] = format.into();
    std::fs::write(generation.join("manifest.json"), manifest.encode()).unwrap();
}

const OLDER: &str = "the index is of an older format, which this program does not read";

#[test]
fn an_index_of_an_older_format_is_made_anew_from_its_sources() {
    for more in ["", "[links]\nfrom = \"html\"\n[pagerank]\n"] {
        let place = Place::new(more);
        place.write("a.jsonl", 0..145);
        put_format_4(&place.index());
        let status = place.status();
        assert_eq!((&status["generation"], &status["last"]), (&1.into(), &Value::Null));
        assert_eq!(status["generation_made"], "2026-11-29T11:57:23Z");
        let planned = place.plan();
        assert_eq!(
            (&planned["how"]["whole"], &planned["documents"]),
            (&OLDER.into(), &Value::Null)
        );
        let told = place.run("--once").expect_status(0);
        assert!(told.stderr.contains(&format!("the index is built again: {OLDER}")), "{told:?}");
        assert_eq!(place.documents(), 155);
        let last = place.status()["last"].clone();
        assert_eq!((&last["outcome"], &last["reason"]), (&"published".into(), &OLDER.into()));
        let history = millrace(args!["info", "--history", "--index", place.index()]).ok();
        assert!(history.text().contains("generation 2") && history.text().contains(OLDER));
        // It is kept, and not gone back to.
        let rollback = || millrace(args!["rollback", "--index", place.index()]);
        for job in [rollback(), rollback().args(["--to", "1"])] {
            job.fails(1).says("gen-000001/manifest.json: format version 4 is older than 5");
        }
        assert_eq!(place.documents(), 155);
        millrace(args!["check", "--index", place.index()]).ok();
        let again = place.run("--once").expect_status(0);
        assert!(again.stderr.contains("unchanged  generation 2"), "{again:?}");
        assert_eq!(place.status()["last"]["reason"], Value::Null);
    }
}

#[test]
fn guards_compare_with_what_an_older_format_held() {
    let place = Place::new("");
    let says = "40 documents, fewer than 144 (90% of the 160 before): nothing was published";
    put_format_4(&place.index());
    for option in ["--once", "--from-nothing"] {
        let told = place.run(option).expect_status(1);
        assert!(told.stderr.contains(says), "{told:?}");
        assert_eq!(place.status()["generation"], 1);
    }
    let build = args!["build", "--index", place.index(), place.scratch.path("docs")];
    millrace(&build).fails(1).says("a job file keeps this index");
    std::fs::remove_dir_all(place.index().join("rebuild")).unwrap();
    millrace(&build).args(["--min-documents", "90%"]).fails(1).says(says);
    let report = place.scratch.path("report.json");
    millrace(&build).args(args!["--report", report]).ok();
    let place = Place::new("[guard]\nmin_documents = 10\nmin_tokens = \"0\"\n");
    put_format_4(&place.index());
    place.run("--from-nothing").expect_status(0);
    assert_eq!(place.documents(), 40);
}

#[test]
fn a_newer_format_is_refused_and_one_that_is_not_sealed_is_damage() {
    let place = Place::new("");
    place.once();
    make_format(&place.index(), 4);
    let told = place.run("--once").expect_status(0);
    assert!(told.stderr.contains(OLDER), "{told:?}");
    make_format(&place.index(), 6);
    let before = super::snapshot(&place.index());
    for option in ["--once", "--dry-run", "--from-nothing"] {
        let told = place.run(option).expect_status(1);
        assert!(told.stderr.contains("format version 6 is newer than 5"), "{told:?}");
        assert!(super::snapshot(&place.index()) == before, "{option}");
    }
    // A changed digit is no older format.
    make_format(&place.index(), 5);
    let path = generation(&place.index()).join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"format\": 5", "\"format\": 4", 1)).unwrap();
    let told = place.run("--once").expect_status(1);
    assert!(told.stderr.contains(": expected format 5, found 4"), "{told:?}");
    place.run("--from-nothing").expect_status(0);
    assert_eq!(place.documents(), 40);
}
