//! Processes end together when one of them is killed or fails, and what they leave is whole.

use super::*;

/// Kills process `victim` of two at each of its storage operations in turn.
fn kill_everywhere(victim: usize, step: usize) {
    let scratch = Scratch::new();
    let old = scratch.write("old.tsv", "a\told words\nb\tmore old words\n");
    let new = [
        scratch.write("new/1.tsv", "a\tnew words\nb\tnew\n"),
        scratch.write("new/2.tsv", "c\tnew words\nd\tnew\n"),
    ];
    let index = scratch.path("index");
    let build =
        |input: &Path| args!["build", "--keep", "0", "--quiet", "--index", index, "-w", "1", input];
    let mut crashes = 0;
    for operation in (0..).step_by(step) {
        together(&scratch, 2, &build(&old));
        let live = files_below(&index);
        let hosts = Hosts::new(&scratch, 2);
        let running = Running::start((0..2).map(|process| {
            let job = hosts.job(process, &build(new[0].parent().unwrap()));
            let fault = format!("crash@{operation}");
            if process == victim { job.env("MILLRACE_FAULT", fault) } else { job }
        }));
        let outcomes = running.end_soon(victim);
        if outcomes[victim].status == Some(0) {
            break;
        }
        crashes += 1;
        let survivor = &outcomes[1 - victim];
        let says = format!("process {victim} ({}): it has ended", hosts.addresses[victim]);
        let shards = info(&index)["documents"].as_u64().unwrap();
        if shards == 2 {
            assert_eq!(survivor.status, Some(1), "{survivor:?}");
            assert!(survivor.stderr.contains(&says), "{survivor:?}");
            for (path, bytes) in live {
                assert!(std::fs::read(&path).unwrap() == bytes, "{}", path.display());
            }
        } else {
            // It was published before; who was to hear it may have been killed.
            assert_eq!(shards, 4);
        }
        millrace(args!["check", "--index", index]).ok();
    }
    assert!(crashes > 3);
    // The job after the last crash has removed what was left.
    let check = millrace(args!["check", "--index", index]).ok();
    assert!(!check.stderr.contains("left from a job"), "{check:?}");
}

#[test]
fn a_signal_to_one_ends_all() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    together(
        &scratch,
        2,
        &args!["build", "--keep", "0", "--quiet", "--index", index, "-w", "1", input],
    );
    let ask = args!["query", "--index", index, "-w", "1"];
    for (victim, status) in [(0, 143), (1, 143)] {
        let hosts = Hosts::new(&scratch, 2);
        let mut running = Running::start((0..2).map(|process| hosts.job(process, &ask)));
        let first = &mut running.0[0].0;
        first.stdin.as_mut().unwrap().write_all(b"common words\n").unwrap();
        first.stdout.as_mut().unwrap().read_exact(&mut [0; 20]).unwrap();
        sound::signal(&running.0[victim].0, "TERM");
        for (process, outcome) in running.end_soon(victim).into_iter().enumerate() {
            let outcome = outcome.expect_status(if process == victim { status } else { 1 });
            outcome.says("ended by signal 15");
        }
    }
}

/// An operator that fails in one process ends all with its reason.
#[test]
fn what_fails_in_one_process_is_told_by_all() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let index = scratch.path("index");
    together(
        &scratch,
        2,
        &args!["build", "--keep", "0", "--quiet", "--index", index, "-w", "1", input],
    );
    let ask = args!["query", "--index", index, "-w", "2", queries];
    for (fault, victim) in [
        ("error:Answer", 1),
        ("error:Gather", 0),
        ("panic:LookUp", 1),
        ("panic:Receive", 0),
        ("error:Ask", 0),
        ("error:Batch", 0),
    ] {
        let hosts = Hosts::new(&scratch, 2);
        let jobs = (0..2).map(|process| {
            let job = hosts.job(process, &ask);
            if process == victim { job.env("MILLRACE_FAULT", fault) } else { job }
        });
        let start = Instant::now();
        for outcome in Running::start(jobs).end() {
            let (kind, operator) = fault.split_once(':').unwrap();
            let outcome = outcome.expect_status(1);
            outcome.says(format!("injected {kind} in {operator}"));
        }
        assert!(start.elapsed() < SOON, "{fault}");
    }
}

#[test]
fn process_0_at_any_step_of_a_build() {
    kill_everywhere(0, 2);
}

#[test]
fn another_process_at_any_step_of_a_build() {
    kill_everywhere(1, 3);
}
