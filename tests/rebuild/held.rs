//! A rollback holds: rebuilds do not publish again what was rolled back, until their sources or
//! settings are others, or somebody says so.

use super::{Place, snapshot};
use crate::support::*;
use serde_json::Value;
use std::fs;

const KEEP: &str = "[keep]\ngenerations = 3\n[guard]\nmin_documents = 0\nmin_tokens = \"0\"\n";

/// An index whose generations 1, 2 and 3 have 40, 45 and 50 documents.
fn three(more: &str) -> Place {
    let place = Place::new(&format!("{KEEP}{more}"));
    for end in [0, 45, 50] {
        if end > 0 {
            place.write("c.jsonl", 40..end);
        }
        place.once();
    }
    place
}

impl Place {
    fn rollback(&self, more: &[&str]) -> Outcome {
        millrace(args!["rollback", "--index", self.index()]).args(more).ok()
    }

    /// A rebuild that leaves all as it is, because of a rollback; returns the record.
    fn held(&self) -> Value {
        let before = snapshot(&self.index());
        let last = self.once();
        assert_eq!(last["outcome"], "unchanged", "{last}");
        assert!(
            last["reason"].as_str().is_some_and(|why| why.starts_with("held since 20")),
            "{last}"
        );
        assert_eq!(snapshot(&self.index()), before);
        last
    }

    fn is_marked(&self) -> bool {
        self.index().join("HELD").exists()
    }
}

#[test]
fn a_rollback_holds() {
    let place = three("[status]\nprometheus = \"m.prom\"\nhtml = \"page.html\"\n");
    let said = place.rollback(&["--json"]);
    assert!(said.text().contains("\"from\":3,\"held\":3,"), "{said:?}");
    assert!(said.stderr.contains("rebuilds leave it so, until --release"), "{said:?}");
    let back = format!("millrace rollback --index {} --to 3\n", place.index().display());
    assert!(said.stderr.ends_with(&back), "{said:?}");
    let listed = millrace(args!["info", "--index", place.index()]).ok();
    let rows: Vec<&str> = listed.text().lines().filter(|row| row.starts_with("kept  ")).collect();
    assert_eq!(rows.len(), 2, "{listed:?}");
    for (row, of) in rows.iter().zip([("generation 1, 20", "40"), ("generation 3, 20", "50")]) {
        assert!(row.contains(of.0) && row.ends_with(&format!(", {} documents", of.1)), "{row}");
    }
    millrace(args!["check", "--index", place.index()]).ok();
    let last = place.held();
    assert_eq!((&last["generation"], &last["documents"]["live"]), (&2.into(), &45.into()));
    assert_eq!((&last["inputs"]["unchanged"], &last["inputs"]["changed"]), (&2.into(), &1.into()));
    let plan = place.plan();
    assert_eq!((&plan["how"], &plan["held"]["generation"]), (&"nothing".into(), &3.into()));
    // It is shown by whatever shows how the index stands, and alarms who asks for a fresh one.
    assert_eq!(place.status()["held"]["generation"], 3);
    let alarm = millrace(args!["rebuild", &place.job, "--status", "--max-age", "365d"]).run();
    let alarm = alarm.expect_status(1).says("held since 20").says("when generation 3 was rolled");
    assert_eq!(alarm.stderr.lines().count(), 1, "{alarm:?}");
    let history = millrace(args!["info", "--history", "--index", place.index()]).ok();
    assert!(history.text().lines().last().unwrap().contains("generation 3 was rolled back"));
    let metrics = fs::read_to_string(place.scratch.path("m.prom")).unwrap();
    assert!(
        metrics.contains("millrace_rebuild_held{")
            && metrics.contains("held_since_timestamp_seconds{")
    );
    assert!(
        metrics
            .lines()
            .any(|line| line.starts_with("millrace_rebuild_held{") && line.ends_with(" 1"))
    );
    let page = fs::read_to_string(place.scratch.path("page.html")).unwrap();
    assert!(page.contains("\"held\":{\"generation\":3,"));

    // Further back, and forth to one that was left on the way, it is still 3 that is held.
    place.rollback(&[]);
    assert_eq!((place.documents(), &place.held()["generation"]), (40, &1.into()));
    place.rollback(&["--to", "2"]);
    assert_eq!((place.documents(), place.status()["held"]["generation"].as_u64()), (45, Some(3)));
    place.held();
    // The files' times do not count, nor does what a rebuild remembers of them.
    let path = place.scratch.path("docs/a.jsonl");
    fs::write(&path, fs::read(&path).unwrap()).unwrap();
    fs::remove_file(place.index().join("rebuild/files.json")).unwrap();
    place.held();
    place.rollback(&["--to", "3"]);
    assert!(!place.is_marked() && place.status()["held"].is_null());
    let last = place.once();
    assert_eq!((&last["outcome"], &last["reason"]), (&"unchanged".into(), &Value::Null));
}

/// What was held is not gone back to unless it is named, and what is kept stays.
#[test]
fn a_held_index_keeps_what_it_has() {
    let place = three("");
    let job = fs::read_to_string(&place.job).unwrap().replace("generations = 3", "generations = 1");
    place.scratch.write("job.toml", job);
    place.rollback(&[]);
    place.rollback(&[]);
    place.held();
    let merge = millrace(args!["merge", "--index", place.index(), "--order", "name"]).ok();
    assert!(merge.stderr.contains("generation 4"), "{merge:?}");
    place.held();
    let none = millrace(args!["rollback", "--index", place.index(), "--to", "1"]).fails(1);
    assert!(none.stderr.contains("generation 1 is not kept; kept are 3, 2"), "{none:?}");
    place.rollback(&[]);
    assert_eq!(place.documents(), 45);
    place.held();
    millrace(args!["rollback", "--index", place.index()])
        .fails(1)
        .says("no generation before 2 is kept; kept are 3");
    place.rollback(&["--to", "3"]);
    assert_eq!((place.documents(), place.is_marked()), (50, false));
}

/// An input or a setting that is another one, and a job that publishes by name.
#[test]
fn what_ends_a_hold() {
    let line = "{\"id\": \"d99\", \"contents\": \"river\"}\n";
    let with = |place: &Place, more: &str| {
        let job = fs::read_to_string(&place.job).unwrap();
        let job = job.replace("[build]\n", &format!("{more}[build]\n"));
        place.scratch.write("job.toml", job);
    };
    let set = |place: &Place, more: &str| {
        let job = fs::read_to_string(&place.job).unwrap();
        place.scratch.write("job.toml", job.replace("[build]\n", &format!("[build]\n{more}\n")));
    };
    // Each has the documents that are live then, and whether a rebuild publishes them.
    type Change<'a> = &'a dyn Fn(&Place);
    let changes: [(&str, Change, u64, bool); 13] = [
        ("a file is new", &|p| drop(p.scratch.write("docs/d.jsonl", line)), 51, true),
        ("a file has changed", &|p| p.write("c.jsonl", 40..49), 49, true),
        ("a byte has changed", &|p| p.write("b.jsonl", 31..41), 50, true),
        ("a file is gone", &|p| fs::remove_file(p.scratch.path("docs/b.jsonl")).unwrap(), 40, true),
        (
            "a file has another name",
            &|p| {
                let path = p.scratch.path("docs/b.jsonl");
                fs::rename(&path, path.with_file_name("bb.jsonl")).unwrap();
            },
            50,
            true,
        ),
        ("another stemmer", &|p| set(p, "stemmer = \"none\""), 50, true),
        ("another codec", &|p| set(p, "codec = \"vbyte\""), 50, true),
        ("an order", &|p| set(p, "order = \"name\""), 50, true),
        ("another field", &|p| with(p, "text-field = \"id\"\n"), 50, true),
        ("another encoding", &|p| with(p, "encoding = \"latin1\"\n"), 50, true),
        (
            "a release",
            &|p| drop(p.rollback(&["--release"]).says("rebuilds publish again")),
            50,
            true,
        ),
        (
            "a build",
            &|p| {
                let docs = p.scratch.path("docs");
                let build = args!["build", "-w", "1", "--index", p.index(), docs];
                let lists = p.scratch.path("lists.ciff");
                millrace(args!["export", "--index", p.index(), lists]).ok();
                let import = args!["import", "--index", p.index(), lists];
                // What a job file keeps is not replaced by mistake.
                let before = snapshot(&p.index());
                for job in [&build[..], &import] {
                    let refused = millrace(job).fails(1).says("millrace rebuild JOB.toml --once");
                    assert_eq!(refused.stderr.lines().count(), 1);
                    assert_eq!(snapshot(&p.index()), before);
                }
                fs::remove_dir_all(p.index().join("rebuild")).unwrap();
                millrace(&build).ok();
                assert!(!p.is_marked());
            },
            50,
            false,
        ),
        (
            "a rebuild from nothing",
            &|p| {
                assert_eq!(p.run("--from-nothing").status, Some(0));
                assert!(!p.is_marked());
            },
            50,
            false,
        ),
    ];
    let made = three("");
    made.rollback(&[]);
    let (docs, index, job) =
        (made.scratch.path("docs"), made.index(), fs::read_to_string(&made.job).unwrap());
    let [old_docs, old_index] = ["old-docs", "old-idx"].map(|name| made.scratch.path(name));
    copy_folder(&docs, &old_docs);
    copy_folder(&index, &old_index);
    for (what, change, live, publishes) in changes {
        fs::remove_dir_all(&docs).unwrap();
        fs::remove_dir_all(&index).unwrap();
        copy_folder(&old_docs, &docs);
        copy_folder(&old_index, &index);
        made.scratch.write("job.toml", &job);
        made.held();
        change(&made);
        let last = made.once();
        let outcome = if publishes { "published" } else { "unchanged" };
        assert_eq!(
            (&last["outcome"], &last["documents"]["live"]),
            (&outcome.into(), &live.into()),
            "{what}: {last}"
        );
        assert!(
            !made.is_marked() && !last["reason"].to_string().contains("held"),
            "{what}: {last}"
        );
        assert_eq!(made.once()["outcome"], "unchanged", "{what}");
        millrace(args!["check", "--index", made.index()]).ok();
    }
    made.rollback(&["--release"]).says("no rollback holds");
    millrace(args!["rollback", "--index", made.index(), "--release", "--to", "1"]).fails(2);
}

/// Sources that have gone back to what is live end a hold too, once and for all.
#[test]
fn a_hold_that_ended_does_not_come_back() {
    let place = three("");
    place.rollback(&[]);
    place.held();
    place.write("c.jsonl", 40..45);
    let last = place.once();
    assert_eq!((&last["outcome"], &last["reason"]), (&"unchanged".into(), &Value::Null));
    assert!(!place.is_marked());
    place.write("c.jsonl", 40..50);
    assert_eq!(place.once()["outcome"], "published");
    // A rebuild that fails has not ended it.
    place.rollback(&[]);
    place.scratch.write("docs/d.jsonl", "");
    assert_eq!(place.run("--once").status, Some(1));
    assert!(place.is_marked());
    fs::remove_file(place.scratch.path("docs/d.jsonl")).unwrap();
    place.held();
}

/// Damage of the mark is found, by every job that goes by it, and healed as other damage is.
#[test]
fn a_damaged_mark_is_named() {
    let place = three("");
    place.rollback(&[]);
    let path = place.index().join("HELD");
    let sound = fs::read(&path).unwrap();
    let damages = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let checked = millrace(args!["check", "--index", place.index()]).fails(1);
        assert!(checked.stderr.contains("/HELD: byte "), "{checked:?}");
    };
    for at in (0..sound.len()).step_by(sound.len() / 12) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        damages(&bytes);
        damages(&sound[..at]);
    }
    let before = snapshot(&place.index());
    let said = place.run("--once").expect_status(1).says("/HELD: byte ").says("--from-nothing");
    assert!(said.stderr.contains("the index is damaged"), "{said:?}");
    millrace(args!["merge", "--index", place.index()]).fails(1).says("/HELD: byte ");
    millrace(args!["rollback", "--index", place.index()]).fails(1).says("/HELD: byte ");
    millrace(args!["rebuild", &place.job, "--status"]).fails(1).says("/HELD: byte ");
    assert_eq!(snapshot(&place.index()), before);
    assert_eq!(place.run("--from-nothing").status, Some(0));
    assert_eq!((place.documents(), place.is_marked()), (50, false));
    place.rollback(&[]);
    fs::write(&path, &sound[..40]).unwrap();
    place.rollback(&["--release"]);
    assert!(!place.is_marked());
    assert_eq!(place.once()["documents"]["live"], 50);
}

/// What cannot be read cannot be compared with the sources: it is held until somebody says so.
#[test]
fn a_damaged_generation_is_rolled_back_all_the_same() {
    let place = three("");
    fs::write(place.index().join("gen-000003/manifest.json"), "{}").unwrap();
    place.rollback(&[]);
    place.held();
    place.write("d.jsonl", 60..61);
    place.held();
    place.rollback(&["--release"]);
    assert_eq!(place.once()["documents"]["live"], 51);
}

/// What is live, and whether that is held.
#[cfg(debug_assertions)]
fn state(index: &std::path::Path) -> (String, bool) {
    sound::assert_sound(index, "a hold");
    let current = fs::read_to_string(index.join("CURRENT")).unwrap();
    let mark = fs::read(index.join("HELD")).unwrap_or(b"{\"live\": []}".to_vec());
    let mark: Value = serde_json::from_slice(&mark).unwrap();
    let of = |live: &Value| current == format!("gen-{:06}\n", live.as_u64().unwrap());
    let is_held = mark["live"].as_array().unwrap().iter().any(of);
    (current, is_held)
}

/// Lets every `nth` storage operation of the jobs that begin, hand on and end a hold be the last
/// one, or fail.
#[cfg(debug_assertions)]
fn fail_at(nth: usize) {
    let place = three("");
    let index = place.index();
    let old = place.scratch.path("old");
    let rollback = args!["rollback", "--index", &index];
    for (job, is_held) in [
        (rollback.to_vec(), false),
        (rollback.to_vec(), true),
        ([&rollback[..], &args!["--to", "3"]].concat(), true),
        ([&rollback[..], &args!["--release"]].concat(), true),
        (args!["merge", "--quiet", "--index", &index].to_vec(), true),
    ] {
        if is_held {
            place.rollback(&["--to", "2"]);
        }
        let was = state(&index);
        copy_folder(&index, &old);
        let counted = millrace(&job).env("MILLRACE_FAULT", "count").ok();
        let (_, count) = counted.stderr.rsplit_once("storage operations: ").unwrap();
        let is = state(&index);
        let mut seen = Vec::new();
        let count: usize = count.trim().parse().unwrap();
        for (n, fault) in (0..count).rev().step_by(nth).zip(["crash", "fail"].iter().cycle()) {
            fs::remove_dir_all(&index).unwrap();
            copy_folder(&old, &index);
            let outcome = millrace(&job).env("MILLRACE_FAULT", format!("{fault}@{n}")).run();
            let when = format!("{job:?} {fault}@{n}: {outcome:?}");
            let now = state(&index);
            assert!(now == was || now == is, "{now:?}, {was:?} before, {is:?} after: {when}");
            if outcome.status == Some(1) && now.0 != was.0 {
                assert!(outcome.stderr.contains(" is live, but a step after that "), "{when}");
            }
            assert_eq!(place.run("--once").status, Some(0), "{when}");
            let then = state(&index);
            match now.1 {
                true => assert_eq!(then, now, "{when}"),
                // Generation 3, or what is made of its sources.
                false => assert!(!then.1 && place.documents() == 50, "{then:?} {when}"),
            }
            seen.push(now);
        }
        assert!(nth > 1 || seen.contains(&was) && seen.contains(&is), "{job:?}: {seen:?}");
        fs::remove_dir_all(&index).unwrap();
        copy_folder(&old, &index);
        fs::remove_dir_all(&old).unwrap();
        if is_held {
            place.rollback(&["--to", "3"]);
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_hold_is_there_or_not_wherever_a_job_dies() {
    fail_at(3);
}

#[cfg(debug_assertions)]
#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_holds_wherever_a_job_dies() {
    fail_at(1);
}
