//! The commands of docs/serve.md and the clients of `examples/serve` work as they stand.

use super::records;
use crate::support::http::Serving;
use crate::support::{Scratch, args, millrace};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn server(scratch: &Scratch) -> Serving {
    let own = json!({"id": "d1", "text": "a water mill", "year": 1900}).to_string();
    let page = json!({"id": "http://example.org/a", "text": "mill"}).to_string();
    let file = scratch.write("records.jsonl", records(1, 60) + &own + "\n" + &page + "\n");
    let index = scratch.path("index");
    let columns = ["--column", "year:int", "--column", "tags:word[]", "--store", "-w", "1"];
    millrace(args!["build", "--index", &index, file]).args(columns).ok();
    Serving::new(&index, &["-w", "1", "--writable"])
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_commands_of_the_page_work() {
    let page = read("docs/serve.md");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let commands: Vec<&str> = blocks.flat_map(str::lines).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let scratch = Scratch::new();
    let server = server(&scratch);
    if Command::new("curl").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no curl");
    }
    let address = server.address.to_string();
    for command in commands {
        let command = command.replace("127.0.0.1:8080", &address);
        let script = command.replacen("curl ", "curl --silent --show-error --fail ", 1);
        let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{command}: {told}");
        serde_json::from_slice::<Value>(&ran.stdout)
            .unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

#[test]
fn the_client_in_python_works() {
    let scratch = Scratch::new();
    let server = server(&scratch);
    let program = format!(
        r#"
import sys
sys.path.insert(0, sys.argv[1])
from client import Client
client = Client("http://{}")
found = client.search("mill", k=2, count=True)
assert len(found["hits"]) == 2 and found["found"] > 2, found
assert len(client.search_all([{{"query": "mill"}}, {{"query": "water"}}])) == 2
assert client.add([{{"id": "new", "contents": "axolotl"}}])["documents"] == 1
assert [hit["name"] for hit in client.search("axolotl")["hits"]] == ["new"]
assert client.document("new")["text"] == "axolotl"
client.delete("new")
assert client.search("axolotl")["hits"] == []
try:
    client.search("mill", k=-1)
except ValueError as error:
    assert "whole number" in str(error), error
else:
    raise AssertionError("it was refused")
"#,
        server.address
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/serve");
    let python = Command::new("python3").arg("-B").args(["-c", &program]).arg(folder).output();
    let Ok(ran) = python else { return eprintln!("skipped: there is no python3") };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The table has the metrics of a server and of a front, and no others.
#[test]
fn the_table_of_metrics_is_true() {
    let scratch = Scratch::new();
    let server = server(&scratch);
    let group = format!("http://{}", server.address);
    let job = millrace(args!["serve", "--groups", group, "--listen", "127.0.0.1:0"]);
    let front = Serving::of(job);
    let mut found = BTreeSet::new();
    for server in [&server, &front] {
        server.get("/live").expect(200);
        let text = String::from_utf8(server.get("/metrics").expect(200).body).unwrap();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE millrace_"));
        found.extend(types.map(|of| of.replace(" counter", "_total")));
    }
    let found: BTreeSet<&str> = found.iter().filter_map(|of| of.split(' ').next()).collect();
    let page = read("docs/serve.md");
    let table = page.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let told = table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
    assert_eq!(told.collect::<BTreeSet<_>>(), found);
}

/// What is described is what there is: every path and method is answered, and every parameter is
/// known.
#[test]
fn the_description_is_true() {
    let description: Value = serde_json::from_str(&read("examples/serve/openapi.json")).unwrap();
    let scratch = Scratch::new();
    let server = server(&scratch);
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let asked = path.replace("{name}", "d1");
        for (method, what) in
            methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            described.insert(path.clone());
            let answer = server.ask(&method.to_uppercase(), &asked, &[], b"[]");
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(!text.contains("no such"), "{method} {path}: {text}");
            for parameter in what["parameters"].as_array().unwrap_or(&Vec::new()) {
                let name = parameter["name"].as_str().unwrap();
                let answer =
                    server.ask(&method.to_uppercase(), &format!("{asked}?{name}=x"), &[], b"[]");
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                assert!(!text.contains("not known here"), "{method} {path} {name}: {text}");
            }
        }
    }
    assert_eq!(described.len(), 9, "{described:?}");
    assert!(read("docs/serve.md").contains("examples/serve/openapi.json"));
}
