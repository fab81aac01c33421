//! An index of an earlier version of the analysis, or of the lists of names, is asked as it was
//! made; a rebuild makes it anew once, says why, and mixes nothing.

use super::Place;
use crate::support::sealed::Manifest;
use crate::support::*;
use std::path::Path;

/// Makes an index that of a program which did not record a version.
fn make_older(index: &Path, entry: &str) {
    let generation = generation(index);
    let mut manifest = Manifest::read(&generation);
    let settings = manifest.0["settings"].as_object_mut().unwrap();
    assert_eq!(settings.remove(entry), Some(2.into()));
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
        let said = outcome.stderr.lines().filter(|line| line.contains(why)).count();
        assert_eq!(said, 1, "{outcome:?}");
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
