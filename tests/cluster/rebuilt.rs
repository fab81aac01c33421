//! The processes of an index follow its sources together, or not at all.

use super::*;

const JOB: &str = "index = \"idx\"\n[[input]]\npaths = [\"docs/*\"]\n[build]\nmemory = \"64M\"\nworkers = 1\ngpus = \"none\"\n";

fn write(scratch: &Scratch, file: usize, words: &str) {
    let line = |n: usize| format!("{{\"id\": \"{file}-{n}\", \"contents\": \"{words} {n}\"}}\n");
    scratch.write(format!("docs/{file}.jsonl"), (0..20).map(line).collect::<String>());
}

/// Both processes of a rebuild; the second has this in its environment.
fn rebuild(scratch: &Scratch, job: &Path, fault: &str) -> Vec<Outcome> {
    let hosts = Hosts::new(scratch, 2);
    let args = args!["rebuild", job, "--once"];
    let job = |process| match (process, fault) {
        (1, fault) if !fault.is_empty() => hosts.job(process, &args).env("MILLRACE_FAULT", fault),
        _ => hosts.job(process, &args),
    };
    Running::start((0..2).map(job)).end()
}

/// What queries find.
fn found(scratch: &Scratch) -> String {
    let hosts = Hosts::new(scratch, 2);
    let queries = scratch.write("queries", "river\n");
    let index = scratch.path("idx");
    let args = args!["query", "--index", index, "--quiet", "-w", "1", "--format", "tsv", queries];
    let mut outcomes = Running::start((0..2).map(|process| hosts.job(process, &args))).end();
    outcomes.swap_remove(0).expect_status(0).text().to_string()
}

#[test]
fn all_is_rebuilt_together_or_not_at_all() {
    let scratch = Scratch::new();
    (0..4).for_each(|file| write(&scratch, file, "mill"));
    let job = scratch.write("job.toml", JOB);
    let status = || -> serde_json::Value {
        // It fails where the last attempt did.
        let outcome = millrace(args!["rebuild", &job, "--status"]).run();
        serde_json::from_slice::<serde_json::Value>(&outcome.stdout).unwrap()
    };
    let both = |outcomes: Vec<Outcome>| outcomes.into_iter().for_each(|o| drop(o.expect_status(0)));
    for (outcome, generation) in [("published", 1), ("unchanged", 1)] {
        both(rebuild(&scratch, &job, ""));
        let last = status()["last"].clone();
        assert_eq!((&last["outcome"], &last["generation"]), (&outcome.into(), &generation.into()));
        assert_eq!(last["documents"]["live"], 80);
    }
    write(&scratch, 3, "river");
    // The second process has no room on its disk: nothing is published.
    for outcome in rebuild(&scratch, &job, "fail@5") {
        assert!(outcome.expect_status(1).stderr.contains("No space left on device"));
    }
    assert_eq!(status()["last"]["outcome"], "failed");
    assert_eq!(found(&scratch), "");
    both(rebuild(&scratch, &job, ""));
    let last = status()["last"].clone();
    assert_eq!((&last["outcome"], &last["inputs"]["changed"]), (&"published".into(), &1.into()));
    assert_eq!(found(&scratch).lines().count(), 10);
    // The same files in another format are other documents: whole files.
    let other = JOB.replace(
        "[build]",
        "format = \"text\"\n[guard]\nmin_documents = 0\nmin_tokens = \"0\"\n[build]",
    );
    scratch.write("job.toml", &other);
    both(rebuild(&scratch, &job, ""));
    let last = status()["last"].clone();
    assert_eq!((&last["inputs"]["changed"], &last["documents"]["live"]), (&4.into(), &4.into()));
    millrace(args!["check", "--index", scratch.path("idx")]).ok();
    // A rollback holds.
    for word in ["brook", "stone"] {
        millrace(args!["rollback", "--index", scratch.path("idx")]).ok();
        both(rebuild(&scratch, &job, ""));
        let last = status()["last"].clone();
        assert_eq!(
            (&last["outcome"], &last["documents"]["live"]),
            (&"unchanged".into(), &80.into())
        );
        assert!(last["reason"].as_str().unwrap().starts_with("held since "), "{last}");
        assert_eq!(found(&scratch).lines().count(), 10);
        write(&scratch, 3, word);
        both(rebuild(&scratch, &job, ""));
        let last = status()["last"].clone();
        assert_eq!(
            (&last["outcome"], &last["documents"]["live"]),
            (&"published".into(), &4.into())
        );
        assert!(!scratch.path("idx/HELD").exists());
        write(&scratch, 3, "river");
        scratch.write(
            "job.toml",
            JOB.replace("[build]", "[guard]\nmin_documents = 0\nmin_tokens = \"0\"\n[build]"),
        );
        both(rebuild(&scratch, &job, ""));
        scratch.write("job.toml", &other);
        both(rebuild(&scratch, &job, ""));
    }
    // One process alone goes on from there.
    write(&scratch, 4, "river");
    millrace(args!["rebuild", &job, "--once"]).ok();
    let last = status()["last"].clone();
    assert_eq!((&last["inputs"]["added"], &last["documents"]["live"]), (&1.into(), &5.into()));
    assert_eq!((&last["incremental"], found(&scratch).lines().count()), (&true.into(), 2));
}
