//! The plan of a cache of lists is what the log asks for, and is refused where it does not belong.

use crate::support::*;
use millrace::Generation;
use millrace::inside::index::{CachePlan, CachePolicy};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Documents with a word that all have, and others that every second, third, ... has.
fn documents() -> String {
    let line = |number: usize| {
        let own = (2..12).filter(|n| number.is_multiple_of(*n)).map(|n| format!(" word{n}"));
        let mill = " mill".repeat(1 + number * 5 % 7);
        format!("{{\"id\": \"{number}\", \"text\": \"{}{mill}\"}}\n", own.collect::<String>())
    };
    (0..3000).map(line).collect()
}

const LOG: &str =
    "mill word2\nmill word2\nword2 word3\nmill\nmill word5\nmill nowhere\n1\tword3 word9 mill\n";

fn read(index: &Path) -> CachePlan {
    CachePlan::read(Generation::open(index).unwrap().path()).unwrap().expect("a plan")
}

#[test]
fn plans_are_about_the_terms_of_the_log() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", documents());
    let index = scratch.path("index");
    build(&index, args!["--order", "global", &input]);
    let log = scratch.write("log", LOG);
    let cache =
        |more: &[&str]| millrace(args!["cache", "--index", index, "-w", "2"]).args(more).arg(&log);

    // What each term's list has, by what the documents have.
    let of_terms: BTreeMap<u32, (u32, &str)> = [
        (3000, (5, "mill")),
        (1500, (3, "word2")),
        (1000, (2, "word3")),
        (600, (1, "word5")),
        (334, (1, "word9")),
    ]
    .into();
    let outcome = cache(&["--memory", "1M", "--cache", "qtf"]).ok();
    let said = outcome.stderr.clone();
    assert!(said.contains("5 lists"), "{said}");
    assert!(
        said.contains("6 queries of the log; those that find no document did not count: 1"),
        "{said}"
    );
    let plan = read(&index);
    assert_eq!((plan.policy, plan.lambda, plan.k, plan.queries), (CachePolicy::Qtf, 1.0, 10, 6));
    let lists = plan.cached.lists();
    assert_eq!(lists.len(), of_terms.len());
    for list in lists {
        let (queries, term) = of_terms[&list.entry.df];
        assert_eq!((list.run, list.queries), (0, queries), "{term}");
        assert_eq!(list.blocks, list.entry.df.div_ceil(128), "{term}");
    }
    assert!(lists.is_sorted_by(|a, b| a.queries >= b.queries));
    assert_eq!(plan.cached_bytes, lists.iter().map(|list| list.entry.bytes).sum::<u64>());
    let all = plan.cached_bytes;

    // The best documents for the one term stand at the beginning, so the search ends early.
    let one = scratch.write("one", "mill\n");
    millrace(args!["cache", "--quiet", "--index", index, "--memory", "1M", "-k", "1", one]).ok();
    let plan = read(&index);
    assert_eq!((plan.policy, plan.k, plan.queries), (CachePolicy::Vfb, 1, 1));
    let lists = plan.cached.lists();
    assert!(lists.len() == 1 && (2..24).contains(&lists[0].blocks), "{lists:?}");
    cache(&["--memory", "1M", "--lambda", "0.5"]).ok();
    for list in read(&index).cached.lists() {
        assert!(list.blocks % 2 == 0 && list.blocks * 128 <= list.entry.df / 2 + 256, "{list:?}");
        assert!(list.blocks <= list.entry.df.div_ceil(256), "{list:?}");
    }
    let half = (all / 2).to_string();
    for policy in ["vfb", "qtf", "qtfdf"] {
        cache(&["--memory", &half, "--cache", policy]).ok();
        let plan = read(&index);
        assert!(plan.cached_bytes <= all / 2 && !plan.cached.lists().is_empty(), "{policy}");
    }
    cache(&["--memory", "0"]).ok();
    assert!(read(&index).cached.lists().is_empty());

    let plan = info(&index)["cache_plan"].clone();
    assert_eq!((&plan["cache"], &plan["generation"]), (&"vfb".into(), &1.into()));
    millrace(args!["check", "--index", index]).ok();
    // It lies with its generation: another one has none, and a rollback brings it back.
    build(&index, args!["--keep", "1", &input]);
    assert!(info(&index)["cache_plan"].is_null());
    millrace(args!["rollback", "--index", index]).ok();
    assert_eq!(info(&index)["cache_plan"]["generation"], 1);
    // One that is put where it does not belong is refused.
    let first = fs::read(generation(&index).join("cache.plan")).unwrap();
    build(&index, args![&input]);
    fs::write(generation(&index).join("cache.plan"), first).unwrap();
    millrace(args!["check", "--index", index]).fails(1).says("the plan is about generation 1");
    cache(&["--memory", "1M"]).ok();
    millrace(args!["check", "--index", index]).ok();
    // Without global order every document is visited that may have all terms, in every run.
    let apart = scratch.path("apart");
    let more = scratch.write("d.jsonl", documents());
    let job = args!["build", "--quiet", "--index", apart, "--no-merge", &input, more];
    millrace(job).env("MILLRACE_RUN_LIMIT", "1").ok();
    millrace(args!["cache", "--quiet", "--index", apart, "--memory", "1M", "-k", "1", &log]).ok();
    let plan = read(&apart);
    let open = Generation::open(&apart).unwrap();
    assert!(open.runs().len() > 1);
    for run in 0..open.runs().len() {
        let lists = plan.cached.lists().iter().filter(|list| list.run as usize == run);
        let longest = lists.max_by_key(|list| list.entry.df).unwrap();
        assert_eq!(longest.entry.df, open.runs()[run].documents());
        assert_eq!(longest.blocks, longest.entry.df.div_ceil(128));
    }

    // A byte that is wrong.
    let path = generation(&index).join("cache.plan");
    let mut bytes = fs::read(&path).unwrap();
    bytes[70] ^= 1;
    fs::write(&path, bytes).unwrap();
    for job in ["check", "info"] {
        millrace(args![job, "--index", index]).fails(1).says("cache.plan: byte 0: expected a file");
    }
    cache(&["--memory", "1M", "--lambda", "2"]).fails(2).says("expected a number from 0 to 1");
    cache(&["--memory", "1M", "--lambda", "1", "--cache", "qtf"]).fails(2);
    cache(&["--memory", "1M", "--cache", "lru"]).fails(2).says("give vfb, qtf, qtfdf");
    let nothing = scratch.write("nothing", "nowhere\n");
    let job = millrace(args!["cache", "--index", index, "--memory", "1M", nothing]);
    job.fails(1).says("no query of the log has a document with all its terms");
}
