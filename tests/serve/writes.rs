//! What was answered is in the index, and the next search of the server sees it.

use super::{index_of, names, records, search};
use crate::support::http::{HttpAnswer, Serving, serve_job};
use crate::support::{Scratch, args, info, millrace};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn line(name: &str, text: &str) -> String {
    format!("{}\n", json!({"id": name, "text": text, "year": 2026}))
}

#[test]
fn a_write_is_seen_by_the_next_search() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(1, 60));
    let server = Serving::new(&index, &["-w", "2", "--writable"]);
    for number in 0..12 {
        let name = format!("new {}", number % 5);
        let word = format!("zebra{number}");
        let body = line(&name, &format!("{word} mill"));
        let written = server.post("/v1/documents", body).expect(200).json();
        assert_eq!((&written["documents"], &written["wrong"]), (&1.into(), &0.into()));
        let found = search(&server, &[("q", &word), ("return", "year")]).expect(200).json();
        assert_eq!(names(&found), [&*name]);
        assert_eq!(found["hits"][0]["values"]["year"], 2026);
        if number >= 5 {
            let before = format!("zebra{}", number - 5);
            assert!(names(&search(&server, &[("q", &before)]).expect(200).json()).is_empty());
        }
    }
    let counts = |answer: HttpAnswer| {
        let told = answer.expect(200).json();
        [&told["documents"], &told["absent"]].map(|count| count.as_u64().unwrap())
    };
    let delete = |path: &str| counts(server.ask("DELETE", path, &[], b""));
    assert_eq!(delete("/v1/documents/new%201"), [1, 0]);
    assert_eq!(delete("/v1/documents/new%201"), [0, 1]);
    assert_eq!(delete("/v1/documents?name=new%202"), [1, 0]);
    let list = "[\"new 3\", \"nobody\", \"new 3\"]";
    assert_eq!(counts(server.post("/v1/documents/delete", list)), [1, 1]);
    let begun = server.ask("DELETE", "/v1/documents/nobody?wait=none", &[], b"").expect(202).json();
    assert!(begun["accepted"] == true && begun["documents"].is_null(), "{begun}");
    let left = search(&server, &[("q", "zebra7 zebra8 zebra9 zebra10 zebra11")]).expect(200);
    let mut left = names(&left.json());
    left.sort();
    assert_eq!(left, ["new 0", "new 4"]);
    let begun = server.post("/v1/documents?wait=none", line("later", "giraffe")).expect(202);
    assert!(begun.json()["generation"].is_null());
    // It is committed before what comes behind it.
    server.post("/v1/documents", line("latest", "gazelle")).expect(200);
    assert_eq!(names(&search(&server, &[("q", "giraffe")]).expect(200).json()), ["later"]);
    drop(server);
    millrace(args!["check", "--index", &index]).ok();
    assert_eq!(info(&index)["documents"], 60 + 4);
}

/// Names, texts and kept fields are where they were when the index was built.
#[test]
fn lines_are_read_as_the_index_was() {
    let scratch = Scratch::new();
    let index = scratch.path("idx");
    let product = |sku: &str, blurb: &str| {
        format!("{}\n", json!({"id": "no", "sku": sku, "blurb": blurb, "note": [blurb, 7]}))
    };
    let input = scratch.write("in.jsonl", product("a", "lamp") + &product("b", "chair"));
    let build = args!["build", "--quiet", "--index", &index, "--id-field", "sku"];
    let more = args!["--text-field", "blurb", "--store-fields", "note", input];
    millrace([&build[..], &more].concat()).ok();
    let server = Serving::new(&index, &["-w", "1", "--writable"]);
    server.post("/v1/documents", product("c", "unicorn")).expect(200);
    let found = search(&server, &[("q", "unicorn"), ("return", "note")]).expect(200).json();
    assert_eq!(names(&found), ["c"]);
    assert_eq!(found["hits"][0]["values"]["note"], json!(["unicorn", 7]));
    let wrong = server.post("/v1/documents", "{\"id\": \"d\"}").expect(400).json();
    assert_eq!(wrong["errors"][0]["error"], "it has no name: sku");
}

/// Values are counted as `update` counts them, which reads the same lines from a file.
#[test]
fn values_that_do_not_fit_are_told() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(6, 20));
    let body = [("a", json!("soon")), ("b", json!(7)), ("c", json!([1, {"x": 2}, 3.5]))]
        .map(|(id, year)| json!({"id": id, "text": "mill", "year": year}).to_string() + "\n");
    let file = scratch.write("new.jsonl", body.concat());
    let update = args!["update", "--index", &index, "--dry-run", file];
    millrace(update).ok().says("3 values do not fit their columns");
    let server = Serving::new(&index, &["-w", "1", "--writable"]);
    let told = server.post("/v1/documents", body.concat()).expect(200).json();
    assert_eq!([&told["documents"], &told["wrong"], &told["misfits"]], [3, 0, 3], "{told}");
    assert_eq!(told["errors"][0]["line"], 1);
    assert_eq!(told["errors"][0]["error"], "`soon` is no value of year:int: it is left out");
}

/// Deletes of one name that come at once: each document is deleted by one of them.
#[test]
fn deletes_that_share_a_commit_are_counted_by_request() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(7, 60));
    let server = Serving::new(&index, &["-w", "1", "--writable"]);
    let names: Vec<String> = (0..8).map(|number| format!("shared {number}")).collect();
    for _ in 0..3 {
        let lines: String = names.iter().map(|name| line(name, "tapir")).collect();
        server.post("/v1/documents", lines).expect(200);
        let deleted = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let told = server.post("/v1/documents/delete", json!(names).to_string());
                    let told = told.expect(200).json();
                    let [gone, absent] = ["documents", "absent"].map(|of| told[of].as_u64());
                    assert_eq!(gone.unwrap() + absent.unwrap(), 8, "{told}");
                    deleted.fetch_add(gone.unwrap() as usize, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(deleted.load(Ordering::SeqCst), 8);
    }
}

#[test]
fn lines_that_are_no_documents_are_told() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 10));
    let server = Serving::new(&index, &["-w", "1", "--writable", "--max-body", "4K"]);
    let body = format!("{}\n{{\"id\": 3,\n{{\"text\": \"x\"}}\n", line("good", "ibex"));
    let written = server.post("/v1/documents", body).expect(200).json();
    assert_eq!((&written["documents"], &written["wrong"]), (&1.into(), &2.into()));
    let errors = written["errors"].as_array().unwrap();
    assert_eq!((&errors[0]["line"], &errors[1]["line"]), (&3.into(), &4.into()));
    assert!(errors[1]["error"].as_str().unwrap().contains("no name"), "{written}");
    server.post("/v1/documents", "{").expect(400);
    server.post("/v1/documents", "").expect(200);
    server.post("/v1/documents?wait=yes", line("a", "b")).expect(400);
    server.post("/v1/documents/delete", "{}").expect(400);
    let found = server.post("/v1/documents", "x".repeat(5000)).expect(413).json();
    assert!(found["error"].as_str().unwrap().contains("--max-body"), "{found}");
    // Most of the documents cannot be taken away by mistake.
    let all: Vec<String> = (0..10).map(|number| format!("d/{number}?")).collect();
    let refused = server.post("/v1/documents/delete", json!(all).to_string()).expect(409).json();
    assert!(refused["error"].as_str().unwrap().contains("may be a mistake"), "{refused}");
    // What was refused does not come with the next commit.
    server.post("/v1/documents", line("other", "okapi")).expect(200);
    drop(server);
    assert_eq!(info(&index)["documents"], 12);
    let server = Serving::new(&index, &["-w", "1"]);
    server.post("/v1/documents", line("a", "b")).expect(403);
    server.ask("DELETE", "/v1/documents/a", &[], b"").expect(403);
}

#[test]
fn writers_share_commits_and_a_kill_loses_nothing_that_was_answered() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(3, 40));
    let mut kept: Vec<String> = Vec::new();
    for round in 0..3 {
        let mut server = Serving::new(&index, &["-w", "1", "--writable"]);
        let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let written: Vec<Vec<String>> = std::thread::scope(|scope| {
            let write = |thread: usize| {
                let (server, stop, answered) = (&server, &stop, &answered);
                move || {
                    let mut names = Vec::new();
                    for number in 0.. {
                        let name = format!("r{round} t{thread} n{number}");
                        let body = line(&name, "quagga");
                        let sent = std::panic::catch_unwind(|| server.post("/v1/documents", body));
                        match sent {
                            Ok(answer) if answer.status == 200 => names.push(name),
                            _ => break,
                        }
                        answered.fetch_add(1, Ordering::SeqCst);
                        if stop.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                    names
                }
            };
            let threads: Vec<_> = (0..6).map(|thread| scope.spawn(write(thread))).collect();
            while answered.load(Ordering::SeqCst) < 30 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // SIGKILL in the midst of commits.
            let id = server.child.id().to_string();
            assert!(
                std::process::Command::new("kill").args(["-9", &id]).status().unwrap().success()
            );
            stop.store(true, Ordering::SeqCst);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        _ = server.child.wait();
        kept.extend(written.into_iter().flatten());
        millrace(args!["check", "--index", &index]).ok();
        let generations = info(&index)["generation"].as_u64().unwrap();
        assert!((generations as usize) < 2 * kept.len(), "{generations} for {}", kept.len());
    }
    let server = Serving::new(&index, &["-w", "1"]);
    let found = names(&search(&server, &[("q", "quagga"), ("k", "10000")]).expect(200).json());
    for name in &kept {
        assert!(found.contains(name), "{name} was answered and is lost");
    }
}

/// Every step of a commit fails once, as on a full disk.
#[cfg(debug_assertions)]
#[test]
fn a_write_that_fails_is_told_and_takes_no_effect() {
    let scratch = Scratch::new();
    let mut failed = 0;
    for step in [1, 5, 9, 14, 20, 27] {
        let index = scratch.path(format!("index{step}"));
        let file = scratch.write("few.jsonl", records(4, 10));
        millrace(args!["build", "--index", &index, file, "-w", "1"]).ok();
        let job = serve_job(&index, &["-w", "1", "--writable"]);
        let server = Serving::of(job.env("MILLRACE_FAULT", format!("fail@{step}")));
        let answer = server.post("/v1/documents", line("a", "walrus"));
        let seen = names(&search(&server, &[("q", "walrus")]).expect(200).json());
        match answer.status {
            200 => assert_eq!(seen, ["a"]),
            500 => {
                failed += 1;
                assert!(seen.is_empty(), "step {step}: {answer:?}");
                let error = answer.json()["error"].as_str().unwrap().to_string();
                assert!(error.contains("space") || error.contains("index"), "{error}");
            }
            status => panic!("{status}: {answer:?}"),
        }
        // The server goes on, and what failed does not come with the next one.
        server.post("/v1/documents", line("b", "lemur")).expect(200);
        let found = search(&server, &[("q", "walrus lemur")]).expect(200).json();
        let expected: &[&str] = if answer.status == 200 { &["a", "b"] } else { &["b"] };
        let mut found = names(&found);
        found.sort();
        assert_eq!(found, expected, "step {step}");
        drop(server);
        millrace(args!["check", "--index", &index]).ok();
    }
    assert!(failed > 2, "{failed}");
}

#[test]
fn generations_of_other_jobs_are_followed_under_load() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(5, 30));
    let server = Serving::new(&index, &["-w", "2"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ask = || {
            let mut last = 0;
            while !stop.load(Ordering::SeqCst) {
                let answer = search(&server, &[("q", "tapir"), ("k", "1000")]).expect(200).json();
                let count = names(&answer).len();
                assert!(count >= last, "{count} after {last}");
                last = count;
            }
            last
        };
        let asking: Vec<_> = (0..2).map(|_| scope.spawn(ask)).collect();
        for number in 0..15 {
            let file = scratch.write("more.jsonl", line(&format!("more {number}"), "tapir"));
            millrace(args!["update", "--index", &index, file, "--wait", "-w", "1"]).ok();
        }
        let seen = || {
            let answer: Value = search(&server, &[("q", "tapir"), ("k", "100")]).expect(200).json();
            names(&answer).len()
        };
        let began = std::time::Instant::now();
        while seen() < 15 {
            assert!(began.elapsed().as_secs() < 60);
        }
        stop.store(true, Ordering::SeqCst);
        asking.into_iter().for_each(|thread| _ = thread.join().unwrap());
    });
}
