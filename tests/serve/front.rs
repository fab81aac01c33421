//! A front over several groups: no query is lost, and each is answered once, whatever ends.

use super::{index_of, records, without_time};
use crate::cluster::{Hosts, together};
use crate::support::http::{Serving, serve_job};
use crate::support::sound::{ends_soon, signal};
use crate::support::{Job, Random, Scratch, args, drain, millrace};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

/// A port that stays the same when its group starts again.
fn port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn group(index: &Path, at: &str, more: &[&str]) -> Job {
    millrace(args!["serve", "--index", index, "-w", "1", "--listen", at]).args(more)
}

fn front(addresses: &[&str], more: &[&str]) -> Serving {
    let groups: Vec<String> = addresses.iter().map(|at| format!("http://{at}")).collect();
    let job = millrace(args!["serve", "--groups", groups.join(","), "--listen", "127.0.0.1:0"]);
    Serving::of(job.args(more))
}

/// Waits until so many groups are in.
fn wait_for(front: &Serving, ready: &str) {
    let start = Instant::now();
    loop {
        let says = String::from_utf8(front.get("/ready").body).unwrap();
        if says.contains(ready) {
            return;
        }
        assert!(start.elapsed() < SOON, "{says}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const QUERIES: [&str; 6] = ["water mill", "old", "stone river", "*", "rare tall", "wheel"];

/// Asks until it is told to end, in single queries and in lists; every answer has to be there once,
/// and right. Returns how many there were.
fn ask_on(front: &Serving, right: &[Value], seed: u64, over: &AtomicBool) -> usize {
    let mut random = Random::new(seed);
    let mut answers = 0;
    while !over.load(Ordering::Relaxed) {
        let picked: Vec<usize> = (0..3).map(|_| random.below(QUERIES.len())).collect();
        let qids: Vec<String> = (0..3).map(|n| format!("{seed}-{answers}-{n}")).collect();
        let objects = picked
            .iter()
            .zip(&qids)
            .map(|(&query, qid)| serde_json::json!({"query": QUERIES[query], "qid": qid, "k": 20}));
        let found = match random.below(2) {
            0 => {
                let query = QUERIES[picked[0]].replace(' ', "+");
                let path = format!("/v1/search?q={query}&qid={}&k=20", qids[0]);
                vec![front.get(&path).expect(200).json()]
            }
            _ => {
                let list = Value::Array(objects.collect()).to_string();
                let found = front.post("/v1/search", list).expect(200).json();
                found.as_array().unwrap().clone()
            }
        };
        assert!(found.len() == 1 || found.len() == 3);
        for ((found, query), qid) in found.into_iter().zip(picked).zip(qids) {
            assert_eq!(found["qid"], *qid);
            assert_eq!(found["hits"], right[query]["hits"], "{found}");
            answers += 1;
        }
    }
    answers
}

/// Runs `work` while four clients ask.
fn under_load(front: &Serving, index: &Path, work: impl FnOnce()) {
    let alone = Serving::of(serve_job(index, &["-w", "1"]));
    let ask = |query: &&str| {
        let path = format!("/v1/search?q={}&k=20", query.replace(' ', "+"));
        without_time(alone.get(&path).expect(200).json())
    };
    let right: Vec<Value> = QUERIES.iter().map(ask).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (right, over) = (&right, &over);
        let ask = |seed| scope.spawn(move || ask_on(front, right, seed, over));
        let clients: Vec<_> = (1..5).map(ask).collect();
        // The clients end even if it fails.
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        over.store(true, Ordering::Relaxed);
        let answers: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        worked.unwrap();
        assert!(answers > 100, "{answers}");
    });
}

/// What a front counts of itself, all groups together.
fn counted(front: &Serving, name: &str) -> u64 {
    let metrics = String::from_utf8(front.get("/metrics").expect(200).body).unwrap();
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn groups_that_start_again_one_after_the_other_lose_no_query() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(1, 400));
    let addresses = [port(), port()];
    let start = |at: &String| Serving::of(group(&index, at, &[]));
    let mut groups: Vec<Serving> = addresses.iter().map(start).collect();
    let front = front(&[&addresses[0], &addresses[1]], &[]);
    wait_for(&front, "2 of 2");
    under_load(&front, &index, || {
        for _ in 0..2 {
            for (group, at) in groups.iter_mut().zip(&addresses) {
                std::thread::sleep(Duration::from_millis(300));
                signal(&group.child, "TERM");
                assert_eq!(ends_soon(&mut group.child, at), 0);
                *group = start(at);
                wait_for(&front, "2 of 2");
            }
        }
    });
    assert!(counted(&front, "millrace_requests_total") > 100);
    assert_eq!(counted(&front, "millrace_group_in"), 2);
}

#[test]
fn a_group_that_is_killed_or_stops_is_left_and_comes_back() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 400));
    let addresses = [port(), port()];
    let start = |at: &String| Serving::of(group(&index, at, &[]));
    let mut groups: Vec<Serving> = addresses.iter().map(start).collect();
    let front = front(&[&addresses[0], &addresses[1]], &[]);
    wait_for(&front, "2 of 2");
    under_load(&front, &index, || {
        std::thread::sleep(Duration::from_millis(1000));
        for (group, at) in groups.iter_mut().zip(&addresses) {
            signal(&group.child, "KILL");
            ends_soon(&mut group.child, at);
            wait_for(&front, "1 of 2");
            *group = start(at);
            wait_for(&front, "2 of 2");
            // What it does not answer another one does.
            signal(&group.child, "STOP");
            wait_for(&front, "1 of 2");
            signal(&group.child, "CONT");
            wait_for(&front, "2 of 2");
        }
    });
    assert!(counted(&front, "millrace_hedges_total") > 0);
    // Without any group a query is refused, and not waited for.
    drop(groups);
    wait_for(&front, "0 of 2");
    front.get("/ready").expect(503);
    let refused = front.get("/v1/search?q=mill").expect(503);
    assert!(refused.json()["error"].as_str().unwrap().contains("none of the groups"));
}

/// A group of two processes ends as a whole when one of them dies.
#[test]
fn a_group_may_have_several_processes() {
    let scratch = Scratch::new();
    let text = records(3, 400);
    let index = index_of(&scratch, &text);
    let parts = scratch.path("parts");
    let half = text.match_indices('\n').nth(200).unwrap().0 + 1;
    let files = [scratch.write("a.jsonl", &text[..half]), scratch.write("b.jsonl", &text[half..])];
    let columns = ["--column", "year:int", "--column", "tags:word[]", "--store", "--positions"];
    let build = args!["build", "--index", parts, &files[0], &files[1], "-w", "1"].to_vec();
    together(&scratch, 2, &[build, columns.map(Into::into).to_vec()].concat());
    let addresses = [port(), port()];
    let serve = args!["serve", "--index", parts, "-w", "1", "--listen", &addresses[0]];
    let start = || -> (Serving, Child) {
        let hosts = Hosts::new(&scratch, 2);
        let mut other = hosts.job(1, &serve).spawn();
        drain(other.stderr.take().unwrap());
        (Serving::of(hosts.job(0, &serve)), other)
    };
    let (mut first, mut other) = start();
    let _whole = Serving::of(group(&index, &addresses[1], &[]));
    let front = front(&[&addresses[0], &addresses[1]], &[]);
    wait_for(&front, "2 of 2");
    under_load(&front, &index, || {
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(300));
            signal(&other, "KILL");
            ends_soon(&mut other, "the second process");
            assert_eq!(ends_soon(&mut first.child, "the first process"), 1);
            wait_for(&front, "1 of 2");
            (first, other) = start();
            wait_for(&front, "2 of 2");
        }
    });
    signal(&first.child, "TERM");
    ends_soon(&mut other, "the second process");
}

#[test]
fn a_front_sends_on_what_reads_and_says_who_may() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(4, 50));
    let token = scratch.write("token", "read-read-read-read\n").display().to_string();
    let group = Serving::of(serve_job(&index, &["-w", "1", "--read-token", &token]));
    let at = group.address.to_string();
    let front = front(&[&at], &["--max-body", "1K"]);
    wait_for(&front, "1 of 1");
    let bearer = ["Authorization: Bearer read-read-read-read"];
    for path in ["/v1/search?q=mill", "/v1/info", "/v1/documents?docid=1", "/v1/documents/d%2F1%3F"]
    {
        assert_eq!(front.get(path).expect(401).header("www-authenticate"), Some("Bearer"));
        let [here, there] = [&front, &group].map(|server| server.ask("GET", path, &bearer, b""));
        let (here, there) = (here.expect(200), there.expect(200));
        assert_eq!(here.header("content-type"), there.header("content-type"));
        let [mut here, mut there] = [here.json(), there.json()];
        for answer in [&mut here, &mut there] {
            answer.as_object_mut().unwrap().remove("us");
        }
        assert_eq!(here, there, "{path}");
    }
    let wrong = front.ask("GET", "/v1/search?k=x&q=mill", &bearer, b"").expect(400);
    assert_eq!(wrong.json()["parameter"], "k");
    front.get("/").expect(200);
    front.get("/page.js").expect(200);
    front.get("/live").expect(200);
    front.ask("HEAD", "/live", &[], b"").expect(200);
    front.get("/nowhere").expect(404);
    front.ask("PUT", "/v1/search", &[], b"").expect(405);
    for (method, path) in
        [("POST", "/v1/documents"), ("DELETE", "/v1/documents/a"), ("POST", "/v1/documents/delete")]
    {
        let refused = front.ask(method, path, &bearer, b"{\"id\": \"a\"}").expect(403);
        assert!(refused.json()["error"].as_str().unwrap().contains("changes nothing"));
    }
    front.post("/v1/search", vec![b' '; 2000]).expect(413);
    front.ask("GET", "/v1/search?q=mill", &["Host: example.org"], b"").expect(421);
    front.ask("GET", "/v1/info", &["Origin: http://example.org"], b"").expect(403);
}

#[test]
fn a_front_needs_groups_and_nothing_of_an_index() {
    let front = |more: &[&str]| millrace(["serve"]).args(more);
    let groups = "http://127.0.0.1:1,http://127.0.0.1:2";
    for (more, says) in [
        (&[][..], "--index"),
        (&["--groups", "127.0.0.1:1"], "http://"),
        (&["--groups", "https://127.0.0.1:1"], "http://"),
        (&["--groups", "http://127.0.0.1:1/v1"], "http://"),
        (&["--groups", "http://a:b@127.0.0.1:1"], "http://"),
        (&["--groups", groups, "--index", "x"], "--index"),
        (&["--groups", groups, "-k", "3"], "-k"),
        (&["--groups", groups, "-n", "2"], "--processes"),
        (&["--groups", groups, "-w", "2"], "--workers"),
        (&["--groups", groups, "--writable"], "--writable"),
        (&["--groups", groups, "--listen", "0.0.0.0:0"], "--read-token"),
    ] {
        front(more).fails(2).says(says);
    }
}
