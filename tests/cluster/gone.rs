//! Processes that are killed or fall silent are named by all others, which end.

use super::*;

/// Three processes at work.
fn at_work(hosts: &Hosts, index: &Path, job: &[OsString]) -> Running {
    let mut running = Running::start((0..3).map(|process| hosts.job(process, job)));
    if job[0] == "query" {
        // An answer says that all are at work.
        let first = &mut running.0[0].0;
        first.stdin.as_mut().unwrap().write_all(b"common words\n").unwrap();
        first.stdout.as_mut().unwrap().read_exact(&mut [0; 20]).unwrap();
        return running;
    }
    let start = Instant::now();
    let parts = || std::fs::read_dir(index.join("gen-000001")).into_iter().flatten().flatten();
    let begun = |process| parts().any(|part| part.path().join(process).exists());
    while !["0", "1", "2"].into_iter().all(begun) {
        assert!(start.elapsed() < SOON, "nobody builds");
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

/// Ends or stops each of three processes in turn: the others name it, and end.
fn without_each(signal: &str, says: &str) {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let built = scratch.path("index");
    together(&scratch, 3, &args!["build", "--quiet", "--index", built, "-w", "1", input]);
    let query = args!["query", "--index", built, "-w", "2"];
    // Enough that no process is done before it is stopped.
    let text = std::fs::read(input.join("0.jsonl")).unwrap().repeat(100);
    for number in 0..6 {
        scratch.write(format!("large/{number}.jsonl"), &text);
    }
    for victim in 0..3 {
        let index = scratch.path(format!("index-{victim}"));
        let build = args!["build", "--quiet", "--index", index, "-w", "1", scratch.path("large")];
        for job in [&query[..], &build] {
            let hosts = Hosts::new(&scratch, 3);
            let mut running = at_work(&hosts, &index, job);
            sound::signal(&running.0[victim].0, signal);
            let start = Instant::now();
            let (mut gone, _) = running.0.remove(victim);
            let says =
                format!("process {victim} ({}): it has ended{says}", hosts.addresses[victim]);
            let mut named = 0;
            for (child, command) in running.0 {
                let outcome = outcome(child, command).expect_status(1);
                named += usize::from(outcome.stderr.contains(&says));
            }
            // In a build one may find before it hears of it that what it writes to was removed.
            assert!(named == 2 || named == 1 && job[0] == "build", "{named} say `{says}`");
            assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
            gone.kill().unwrap();
            gone.wait().unwrap();
        }
        assert!(!index.join("CURRENT").exists());
    }
}

#[test]
fn a_process_that_is_killed_is_named_by_others() {
    without_each("KILL", " (");
}

#[test]
fn a_process_that_falls_silent_is_named_by_others() {
    without_each("STOP", " (nothing came from it for 2.5 s)");
}

/// As by Ctrl-Z in a terminal: nobody is silent while the others wait.
#[test]
fn a_job_that_is_stopped_as_a_whole_goes_on() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    together(&scratch, 3, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
    let hosts = Hosts::new(&scratch, 3);
    let mut running = at_work(&hosts, &index, &args!["query", "--index", index, "-w", "1"]);
    for name in ["STOP", "CONT"] {
        for (child, _) in &running.0 {
            sound::signal(child, name);
        }
        std::thread::sleep(Duration::from_secs(4));
    }
    running.0[0].0.stdin.as_mut().unwrap().write_all(b"the\n").unwrap();
    for outcome in running.end() {
        outcome.expect_status(0);
    }
}

/// Who has all its lines hears nothing of process 0 until that has all of its own.
#[test]
fn who_comes_late_is_waited_for() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    let hosts = Hosts::new(&scratch, 3);
    let build = args!["build", "--quiet", "--index", index, "-w", "1", input];
    let mut running = Running::start((0..2).map(|process| hosts.job(process, &build)));
    std::thread::sleep(Duration::from_secs(4));
    running.0.extend(Running::start([hosts.job(2, &build)]).0);
    for outcome in running.end() {
        outcome.expect_status(0);
    }
}
