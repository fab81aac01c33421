//! Commands that are told of a rebuild: they end with the job, and in their time.

use super::Place;
use crate::support::sound::signal;
use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

/// A job whose command is this script.
fn place(script: &str, more: &str) -> Place {
    Place::new(&format!("[notify]\non_success = [\"sh\", \"-c\", \"{script}\"]\n{more}\n"))
}

fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Whether the process whose number stands in a file has ended.
fn has_ended(path: &Path) -> bool {
    let number = std::fs::read_to_string(path).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
    // Nobody may have waited for it yet.
    state.map_or(true, |state| state.contains(") Z "))
}

#[test]
fn a_signal_ends_the_command_too() {
    let work = "while [ ! -e number ]; do :; done; echo > here; while :; do sleep 0.05; done";
    // What the command has started ends with it, and is given the time for it. A shell lets what
    // runs behind it hear no SIGINT.
    let behind = format!("(trap 'echo > end; exit' TERM; {work}) & echo $! > number; wait");
    let alone = format!("trap 'echo > end; exit 1' INT; echo $$ > number; {work}");
    for (name, number, script) in [("TERM", 143, behind), ("INT", 130, alone)] {
        let place = place(&script, "");
        let mut child = millrace(args!["rebuild", &place.job, "--once"]).spawn();
        wait_for(&place.scratch.path("here"));
        signal(&child, name);
        assert_eq!(wait(&mut child, "the rebuild"), Some(number), "{name}");
        let last = place.status()["last"].clone();
        assert_eq!(last["outcome"], "published");
        let told = last["notify"].as_str().unwrap();
        assert!(told.contains("`sh` was ended since the job was asked to end"), "{told}");
        assert!(has_ended(&place.scratch.path("number")), "{name}");
        assert!(place.scratch.path("end").exists(), "{name}");
        assert_eq!(place.documents(), 40);
    }
}

#[test]
fn a_command_that_takes_too_long_is_killed() {
    let place =
        place("trap '' TERM; echo $$ > number; while :; do sleep 0.05; done", "timeout = \"1s\"");
    let began = Instant::now();
    let outcome = place.run("--once").expect_status(0);
    outcome.says("the command `sh` was ended after 1 s: signal: 9 (SIGKILL)");
    assert!(began.elapsed().as_secs() >= 11, "it is asked to end before");
    assert!(has_ended(&place.scratch.path("number")));
    let last = place.status()["last"].clone();
    assert!(last["notify"].as_str().unwrap().contains("after 1 s"), "{last}");
    assert_eq!(last["outcome"], "published");
    let history = std::fs::read_to_string(place.index().join("rebuild/history.jsonl")).unwrap();
    assert_eq!(history.lines().count(), 2);
    // It counts as one rebuild.
    assert_eq!(place.status()["failures"], 0);
    let missing = Place::new("[notify]\non_success = [\"/no/such/program\"]\n");
    missing.run("--once").expect_status(0).says("`/no/such/program` cannot be run");
}

/// An operator of one of several workers fails, which is no request to end the job.
#[test]
fn a_failure_is_told_to_the_end() {
    let tell = "sleep 0.3; echo $MILLRACE_GENERATION: $MILLRACE_REASON > told";
    let job = |script: &str| {
        Place::new(&format!("[notify]\non_failure = [\"sh\", \"-c\", \"{script}\"]\n"))
    };
    let place = job(tell);
    let told = |generation: &str, says: &str, what: &str| {
        let outcome = place.run("--once").expect_status(1);
        outcome.says(says);
        let told = std::fs::read_to_string(place.scratch.path("told")).unwrap();
        assert!(told.starts_with(&format!("{generation}: cannot read the input: ")), "{told}");
        assert!(told.contains(what), "{told}");
        assert_eq!(place.status()["last"]["notify"], Value::Null);
    };
    place.write("b.jsonl", 0..0);
    told("", "idx: there is no generation yet", "b.jsonl: this input is empty");
    place.write("b.jsonl", 30..40);
    place.once();
    place.write("b.jsonl", 0..0);
    told("1", "idx: generation 1 stays live", "b.jsonl: this input is empty");
    std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
    place.scratch.write("docs/c.jsonl.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1]);
    told("1", "idx: generation 1 stays live", "c.jsonl.gz: compressed stream cut short");

    let place = job("echo $$ > number; while :; do sleep 0.05; done");
    place.write("b.jsonl", 0..0);
    let mut child = millrace(args!["rebuild", &place.job, "--once"]).spawn();
    wait_for(&place.scratch.path("number"));
    signal(&child, "TERM");
    assert_eq!(wait(&mut child, "the rebuild"), Some(1));
    let last = place.status()["last"].clone();
    assert!(last["notify"].as_str().unwrap().contains("since the job was asked to end"), "{last}");
}
