//! A server of several processes answers as one.

use super::{index_of, records, search, without_time};
use crate::cluster::Hosts;
use crate::support::http::Serving;
use crate::support::{Scratch, args, drain, millrace, wait};

#[test]
fn the_first_of_two_processes_listens_and_both_answer() {
    let scratch = Scratch::new();
    let whole = index_of(&scratch, &records(1, 120));
    let file = scratch.path("records.jsonl");
    let parts = scratch.path("parts");
    let (first, second) = (scratch.write("a.jsonl", ""), scratch.write("b.jsonl", ""));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    std::fs::write(&first, lines[..60].concat()).unwrap();
    std::fs::write(&second, lines[60..].concat()).unwrap();
    let columns = ["--column", "year:int", "--column", "tags:word[]", "--store", "--positions"];
    let columns = columns.map(std::ffi::OsString::from);
    let build = [args!["build", "--index", &parts, &first, &second].to_vec(), columns.to_vec()];
    crate::cluster::together(&scratch, 2, &build.concat());
    let hosts = Hosts::new(&scratch, 2);
    let serve = args!["serve", "--index", &parts, "--listen", "127.0.0.1:0", "-w", "1"];
    let mut other = hosts.job(1, &serve).spawn();
    drain(other.stderr.take().unwrap());
    let mut server = Serving::of(hosts.job(0, &serve));
    let alone = Serving::new(&whole, &["-w", "1"]);
    for parameters in [
        &[("q", "mill water")][..],
        &[("q", "old stone"), ("mode", "and"), ("count", "1"), ("return", "year,tags")],
        &[("q", "*"), ("sort", "year:desc"), ("k", "7"), ("facets", "tags,year")],
        &[("q", "rare"), ("filter", "year > 1980"), ("offset", "3"), ("k", "5")],
    ] {
        let [found, expected] =
            [&server, &alone].map(|server| search(server, parameters).expect(200).json());
        assert_eq!(without_time(found), without_time(expected), "{parameters:?}");
    }
    for path in ["/v1/documents?docid=1", "/v1/explain?q=mill&docid=1", "/v1/search?q=mil&prefix=1"]
    {
        server.get(path).expect(501);
    }
    search(&server, &[("q", "mill"), ("snippets", "1")]).expect(501);
    search(&server, &[("q", "mill"), ("k", "x")]).expect(400);
    assert_eq!(server.get("/v1/info").expect(200).json()["documents"], 120);
    let id = server.child.id().to_string();
    assert!(
        std::process::Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success()
    );
    assert_eq!(wait(&mut server.child, "process 0"), Some(0));
    assert_eq!(wait(&mut other, "process 1"), Some(0));
    let writes = [serve.to_vec(), args!["--writable"].to_vec()].concat();
    hosts.job(1, &writes).fails(2).says("--writable");
    millrace(args!["check", "--index", &parts]).ok();
}
