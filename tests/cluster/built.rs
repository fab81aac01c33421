//! What several processes build, on one disk or several, is what one would.

use super::*;

/// Documents of one file are built by all processes, and those without a name have that of their
/// line, wherever a process begins.
#[test]
fn one_large_file_is_built_by_all() {
    let scratch = Scratch::new();
    let collection = Collection::new(4, 3000, 400);
    let mut input = jsonl(&collection.docs);
    let mut lines = 0u64;
    let mut text = String::new();
    for line in std::str::from_utf8(input.as_ref()).unwrap().lines() {
        // Every third has no name, and some lines are none.
        lines += 1;
        text += &match lines % 3 {
            0 => line.replacen("\"id\"", "\"nothing\"", 1),
            _ => line.to_string(),
        };
        text += if lines.is_multiple_of(100) { "\n\nbroken\n" } else { "\n" };
    }
    input = text.repeat(1 + (14 << 20) / text.len()).into();
    let input = scratch.write("large.jsonl", input);
    let whole = scratch.path("whole");
    let index = scratch.path("index");
    let build = |index: &Path| args!["build", "--quiet", "--index", index, "-w", "2", input];
    millrace(build(&whole)).ok();
    together(&scratch, 3, &build(&index));
    let (one, several) = (info(&whole), info(&index));
    for number in ["documents", "terms", "tokens", "skipped", "duplicate_names", "input_files"] {
        assert_eq!(one[number], several[number], "{number}");
    }
    let held = several["processes"].as_array().unwrap();
    assert!(held.len() == 3 && held.iter().all(|held| held["documents"].as_u64() > Some(100)));
    let dump =
        |index: &Path| millrace(args!["dump", "--index", index, "documents"]).ok().stdout.clone();
    assert!(dump(&whole) == dump(&index), "names, lengths and places");
    millrace(args!["check", "--index", index]).ok();
}

#[test]
fn a_process_may_have_no_input() {
    let scratch = Scratch::new();
    let input = scratch.write("one.tsv", "a\tsome words\nb\tmore words\n");
    let index = scratch.path("index");
    together(&scratch, 3, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
    millrace(args!["check", "--index", index]).ok();
    let queries = scratch.write("queries", "words\nmore words\n");
    let ask = args!["query", "--index", index, "-w", "1", "--mode", "and", queries];
    let found = String::from_utf8(together(&scratch, 3, &ask)).unwrap();
    assert_eq!(found.lines().count(), 3, "{found}");
    let show = |what: &[&str]| millrace(args!["show", "--index", index]).args(what);
    assert!(show(&["--docid", "1"]).ok().text().contains("docid     1\nname      b"));
    assert!(show(&["b"]).ok().text().contains("docid     1\nname      b"));
    show(&["--docid", "2"]).fails(1).says("there are 2 documents");
    show(&["c"]).fails(1).says("no document is named `c`");
}

/// Every process has a disk of its own.
#[test]
fn runs_may_lie_on_different_disks() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let whole = scratch.path("whole");
    build(&whole, args![input]);
    let index = |process: usize| scratch.path(format!("disk-{process}/index"));
    // The second time every process finds something to replace.
    for generation in 1..3 {
        let hosts = Hosts::new(&scratch, 3);
        let job = |p| {
            hosts.job(
                p,
                &args!["build", "--keep", "0", "--quiet", "--index", index(p), "-w", "1", input],
            )
        };
        for outcome in Running::start((0..3).map(job)).end() {
            outcome.expect_status(0);
        }
        let names = |process: usize| {
            let below = files_below(&index(process)).into_iter();
            let names =
                below.map(|(path, _)| path.strip_prefix(index(process)).unwrap().to_owned());
            names.filter(|name| name.ends_with("manifest.json")).collect::<Vec<_>>()
        };
        // Each has a copy.
        let manifest = |process| {
            let name = format!("gen-00000{generation}/manifest.json");
            assert_eq!(names(process), [PathBuf::from(&name)]);
            std::fs::read(index(process).join(name)).unwrap()
        };
        assert!(manifest(0) == manifest(1) && manifest(0) == manifest(2));
        let runs = |process: usize| std::fs::read_dir(index(process).join("runs")).unwrap().count();
        assert_eq!([runs(0), runs(1), runs(2)], [8; 3]);
    }
    let ask = |index: &Path| args!["query", "--index", index, "-w", "1", queries];
    let hosts = Hosts::new(&scratch, 3);
    let outcomes = Running::start((0..3).map(|p| hosts.job(p, &ask(&index(p))))).end();
    assert_eq!(outcomes[0].text(), millrace(ask(&whole)).ok().text());
    millrace(args!["check", "--index", index(0)]).fails(1).says("process 1").says("process 2");
    assert_eq!(info(&whole)["terms"], info(&index(0))["terms"]);
    let show = |what: &[&str]| millrace(args!["show", "--index", index(0)]).args(what);
    show(&["--docid", "0"]).ok();
    show(&["nobody"]).fails(1).says("not here: the runs of process 1, process 2");
    show(&["--docid", "702"]).fails(1).says("process 2 holds this run, on another disk");
    let elsewhere = "process 1 holds this run, on another disk";
    millrace(ask(&index(0))).fails(1).says(elsewhere);
    millrace(args!["merge", "--index", index(0)]).fails(1).says(elsewhere);
    millrace(args!["delete", "--index", index(0), "first"]).fails(1).says(elsewhere);
    // The disk of another has no place for an index of its own.
    build(&scratch.path("disk-3/index"), args![input]);
    let disk = |process: usize| index([0, 3, 2][process]);
    let hosts = Hosts::new(&scratch, 3);
    let job = |p| hosts.job(p, &args!["build", "--quiet", "--index", disk(p), "-w", "1", input]);
    for outcome in Running::start((0..3).map(job)).end() {
        outcome.expect_status(1).says("an index is live here that is not the one of process 0");
    }

    // A run that is not there ends all.
    std::fs::remove_dir_all(index(2)).unwrap();
    let hosts = Hosts::new(&scratch, 3);
    let outcomes = Running::start((0..3).map(|p| hosts.job(p, &ask(&index(p))))).end();
    // Process 1 may hear of it only that another one has ended.
    let says = outcomes.into_iter().map(|outcome| outcome.expect_status(1).stderr.clone());
    let says: Vec<String> = says.collect();
    assert!(says[0].contains("disk-2") && says[2].contains("disk-2"), "{says:?}");
}

#[test]
fn strict_sees_duplicate_names_of_different_processes() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    let arguments = args!["build", "--strict", "--index", index, "-w", "1", input];
    let one = millrace(&arguments).fails(1).stderr;
    let hosts = Hosts::new(&scratch, 3);
    for outcome in Running::start((0..3).map(|p| hosts.job(p, &arguments))).end() {
        let message = one.trim().strip_prefix("millrace: ").unwrap();
        outcome.expect_status(1).says(message);
    }
}

#[test]
fn builds_of_one_and_of_several_replace_each_other() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    let several = |n| {
        together(
            &scratch,
            n,
            &args!["build", "--keep", "0", "--quiet", "--index", index, "-w", "1", input],
        );
    };
    let names = || {
        let entry = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = std::fs::read_dir(&index).unwrap().map(entry).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let runs = || std::fs::read_dir(index.join("runs")).unwrap().count();
    build(&index, args!["--keep", "0", input]);
    several(3);
    assert_eq!(names(), ["CURRENT", "LOCK", "gen-000002", "runs"]);
    assert_eq!(runs(), 3 * 8);
    // What a killed job leaves behind.
    std::fs::create_dir_all(index.join("gen-000007/parts-1/1/runs")).unwrap();
    std::fs::write(index.join("runs/000099.lexicon"), "part").unwrap();
    millrace(args!["check", "--index", index]).ok().says("gen-000007").says("000099.lexicon");
    several(2);
    assert_eq!(names(), ["CURRENT", "LOCK", "gen-000003", "runs"]);
    assert_eq!(runs(), 2 * 8);
    build(&index, args!["--keep", "0", input]);
    assert_eq!(names(), ["CURRENT", "LOCK", "gen-000004", "runs"]);
}
