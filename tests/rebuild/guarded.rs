//! A rebuild refuses what a build refuses, and carries no damage from generation to generation.

use super::Place;
use crate::support::run_path;
use crate::support::*;
use std::path::PathBuf;

fn documents(field: &str, numbers: std::ops::Range<u32>, more: &str) -> String {
    let line = |n| format!("{{\"id\": \"d{n}\", \"{field}\": \"mill {n} race river{more}\"}}\n");
    numbers.map(line).collect()
}

/// A generation without text, or with little of it, does not take the place of one with text.
#[test]
fn an_index_does_not_lose_its_text() {
    let place = Place::new("");
    place.once();
    // The field of the text has another name, in all files and then in all but one.
    place.scratch.write("docs/a.jsonl", documents("unheard_of", 0..30, ""));
    place.scratch.write("docs/b.jsonl", documents("unheard_of", 30..40, ""));
    let said = place.fails(40);
    assert!(
        said.contains("no text in any of 40 documents") && said.contains("unheard_of"),
        "{said}"
    );
    place.scratch.write("docs/b.jsonl", documents("contents", 30..40, ""));
    let said = place.fails(40);
    assert!(
        said.contains(" tokens, fewer than ") && said.contains("(50% of the 160 before)"),
        "{said}"
    );
    // What has a limit of its own, or none.
    let job = std::fs::read_to_string(&place.job).unwrap();
    for (limit, is_refused) in [("41", true), ("\"26%\"", true), ("40", false), ("\"0\"", false)] {
        place.scratch.write("job.toml", format!("{job}[guard]\nmin_tokens = {limit}\n"));
        if is_refused {
            place.fails(40);
        } else {
            assert_eq!(place.once()["documents"]["live"], 40);
        }
    }
    // Without a guard there has to be some text all the same.
    place.scratch.write("docs/b.jsonl", documents("unheard_of", 30..40, ""));
    assert!(place.fails(40).contains("no text in any of 40 documents"));
}

/// Documents of the same name are refused wherever they come from, as by a strict build.
#[test]
fn a_strict_rebuild_refuses_names_that_come_twice() {
    let place = Place::new("strict = true\n");
    place.once();
    place.scratch.write("docs/c.jsonl", documents("contents", 3..4, " other"));
    let said = place.fails(40);
    assert!(said.contains("1 documents have the name of an earlier one"), "{said}");
    std::fs::remove_file(place.scratch.path("docs/c.jsonl")).unwrap();
    assert_eq!(place.once()["outcome"], "unchanged");
}

/// A link that leads nowhere fails a strict rebuild, and is named by another one.
#[test]
fn what_cannot_be_read_is_told() {
    let place = Place::new("");
    let job = std::fs::read_to_string(&place.job).unwrap().replace("docs/*", "docs");
    place.scratch.write("job.toml", &job);
    place.once();
    std::os::unix::fs::symlink("nowhere", place.scratch.path("docs/x.jsonl")).unwrap();
    let outcome = place.run("--once");
    assert!(outcome.stderr.contains("x.jsonl: dangling link"), "{outcome:?}");
    place.scratch.write("job.toml", format!("{job}strict = true\n"));
    assert!(place.fails(40).contains("1 file cannot be read, the first of them "));
}

fn files(place: &Place, ending: &str) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(place.index().join("runs")).unwrap();
    let mut files: Vec<_> = runs.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().unwrap() == ending);
    files.sort();
    files
}

/// Changes a byte in the middle, as another program would.
fn damage(path: &std::path::Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

/// Damage of any file of a run is found before the run is carried over, also when nothing else is
/// to be done and when the run was carried over before; a rebuild from nothing heals it.
#[test]
fn damage_does_not_spread() {
    let place = Place::new("");
    place.once();
    place.write("c.jsonl", 40..45);
    place.once();
    for (round, kind) in
        (0..).zip(["postings", "lexicon", "names", "ends", "locations", "hashes", "lengths"])
    {
        damage(&files(&place, kind)[0]);
        if round % 2 == 0 {
            place.write("c.jsonl", 40..46 + round);
        }
        let said = place.run("--once");
        assert_eq!(said.status, Some(1), "{kind}: {said:?}");
        let name = format!(".{kind}: byte ");
        let heal = format!("To heal it: millrace rebuild {} --from-nothing", place.job.display());
        assert!(said.stderr.contains(&name) && said.stderr.contains(&heal), "{kind}: {said:?}");
        let healed = place.run("--from-nothing");
        assert_eq!(healed.status, Some(0), "{kind}: {healed:?}");
        millrace(args!["check", "--index", place.index()]).ok();
        assert_eq!(place.once()["outcome"], "unchanged", "{kind}");
        place.write("c.jsonl", 40..50 + round);
        assert_eq!(place.once()["incremental"], true, "{kind}");
    }
}

/// What is read again after so long: a change that leaves the time of the file is found then.
#[test]
fn files_are_verified_again_after_a_while() {
    let place = Place::new("");
    place.once();
    place.once();
    let path = &files(&place, "postings")[0];
    let time = path.metadata().unwrap().modified().unwrap();
    damage(path);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    assert_eq!(place.once()["outcome"], "unchanged", "it was verified a moment ago");
    let job = std::fs::read_to_string(&place.job).unwrap();
    place.scratch.write("job.toml", format!("{job}[verify]\nevery = \"0\"\n"));
    assert!(
        place.run("--once").stderr.contains(".postings: byte 0: expected a file with checksum")
    );
    // What is remembered may be lost, and may be anything.
    place.scratch.write("job.toml", job);
    place.scratch.write("idx/rebuild/verified.json", "{");
    assert_eq!(place.run("--once").status, Some(1));
    assert_eq!(place.run("--from-nothing").status, Some(0));
    assert_eq!(place.once()["outcome"], "unchanged");
}

/// Whatever names the live generation, or describes it, may be gone or damaged.
#[test]
fn a_rebuild_from_nothing_heals_everything() {
    let place = Place::new("[keep]\ngenerations = 2\n");
    place.once();
    place.write("c.jsonl", 40..45);
    place.once();
    let at = |name: &str| place.index().join(name);
    let live = |name: &str| generation(&place.index()).join(name);
    let heals = |what: &str, says: &str| {
        let said = place.run("--once");
        assert_eq!(said.status, Some(1), "{what}: {said:?}");
        let tells = said.stderr.contains(says) && said.stderr.contains("--from-nothing");
        assert!(tells, "{what}: {said:?}");
        let healed = place.run("--from-nothing");
        assert_eq!(healed.status, Some(0), "{what}: {healed:?}");
        millrace(args!["check", "--index", place.index()]).ok();
        assert_eq!((place.documents(), &place.once()["outcome"]), (45, &"unchanged".into()));
    };
    std::fs::write(at("CURRENT"), "gen-00000x\n").unwrap();
    heals("a byte of CURRENT", "CURRENT: byte 9: expected the name of a generation");
    std::fs::write(at("CURRENT"), "").unwrap();
    heals("an empty CURRENT", "CURRENT: byte 0: expected the name of a generation");
    std::fs::write(at("CURRENT"), "gen-000077\n").unwrap();
    heals("another number", "CURRENT: byte 4: expected the number of a generation whose folder is");
    std::fs::write(at("KEPT"), "gen-0000\n").unwrap();
    heals("KEPT", "KEPT: byte 0: expected names of generations");
    damage(&live("manifest.json"));
    heals("the manifest", "manifest.json: byte ");
    std::fs::remove_file(run_path(&place.index(), 0, "names")).unwrap();
    heals("a file that is gone", ".names: cannot read");
    std::fs::remove_dir_all(live("")).unwrap();
    heals("a folder that is gone", "CURRENT: byte 4");
    // It is asked for, not done; and it obeys the guards.
    let plan = place.run("--from-nothing");
    assert_eq!(plan.status, Some(0));
    let plan = millrace(args!["rebuild", &place.job, "--from-nothing", "--dry-run"]).ok();
    assert!(plan.text().contains("this is a rebuild from nothing"), "{plan:?}");
    millrace(args!["rebuild", &place.job, "--from-nothing", "--status"]).fails(2);
    let line = || {
        let history = millrace(args!["info", "--history", "--index", place.index()]).ok();
        history.text().lines().last().unwrap().to_string()
    };
    let generation = info(&place.index())["generation"].clone();
    assert_eq!(place.run("--from-nothing").status, Some(0));
    assert!(line().contains("  45 documents (all built anew)  files "), "{}", line());
    place.write("a.jsonl", 0..1);
    let refused = place.run("--from-nothing");
    assert!(refused.stderr.contains("fewer than 41 (90% of the 45 before)"), "{refused:?}");
    assert_eq!(place.documents(), 45);
    assert_eq!(place.run("--once").status, Some(1));
    let stays = format!(
        ": nothing was published; generation {} stays live",
        1 + generation.as_u64().unwrap()
    );
    assert!(line().contains(" s  failed     ") && line().ends_with(&stays), "{}", line());
    assert!(!line().contains("(+"), "{}", line());
}
