//! A rebuild that is killed at any instant leaves the live generation, or the new one, whole.

use super::Place;
use crate::support::*;
use std::time::Duration;

#[test]
fn a_rebuild_that_is_killed_leaves_a_whole_generation() {
    killed(8);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_kills_of_rebuilds() {
    killed(200);
}

/// Kills this many rebuilds, each after another time.
fn killed(kills: usize) {
    let place =
        Place::new("[guard]\nmin_documents = 0\n[keep]\ngenerations = 1\n[merge]\nruns = 2\n");
    place.once();
    let mut random = Random::new(17);
    let mut live = 40;
    let mut published = 0;
    for kill in 0..kills {
        // Documents come at the end, and one in three changes.
        let end = 40 + kill as u32 + 1;
        let line = |n: u32| {
            let version = if n.is_multiple_of(3) { kill } else { 0 };
            format!("{{\"id\": \"d{n}\", \"contents\": \"mill {n} v{version}\"}}\n")
        };
        place.scratch.write("docs/b.jsonl", (30..end).map(line).collect::<String>());
        let mut job = millrace(args!["rebuild", &place.job, "--once"]);
        let mut child = job.spawn();
        std::thread::sleep(Duration::from_millis(random.below(400) as u64));
        _ = child.kill();
        child.wait().unwrap();
        millrace(args!["check", "--index", place.index()]).ok();
        let now = place.documents();
        assert!(
            now == live || now == u64::from(end),
            "kill {kill}: {now} documents, {live} before"
        );
        published += u64::from(now != live);
        live = now;
    }
    println!("{published} of {kills} were published before they were killed");
    let record = place.once();
    assert_eq!(record["documents"]["live"], 40 + kills as u64);
    let left: Vec<_> = std::fs::read_dir(place.index())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("gen-") || name.ends_with(".tmp"))
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!place.index().join("rebuild/work").exists());
}
