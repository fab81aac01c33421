//! The commands of the README and of the first steps work as they are pasted.

use crate::support::http::Serving;
use crate::support::*;
use std::path::Path;

#[test]
fn the_tour_works_as_it_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |page| std::fs::read_to_string(root.join(page)).unwrap();
    let readme = read("README.md");
    assert!(readme.lines().count() <= 140);
    let from = readme.find("## Two minutes").expect("the commands begin");
    let commands = readme[from..].split("\n## From Python").next().unwrap();
    let tour = format!("{commands}{}", read("docs/first-steps.md"));
    // Every other part between fences is code. The first steps' rebuild writes into the checkout,
    // and processes need ports that are free.
    let apart = ["cargo ", "export ", "datasets/rebuild", "local-cluster", "serve ", "curl "];
    let lines: Vec<&str> = tour
        .split("```")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .filter(|line| apart.iter().all(|word| !line.contains(word)))
        .collect();
    assert!(lines.len() > 20, "{lines:?}");
    let scratch = Scratch::new();
    let folder = scratch.path("").display().to_string();
    let script = lines.join("\n").replace("/tmp/", &folder);
    let program = Path::new(env!("CARGO_BIN_EXE_millrace")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let ran = std::process::Command::new("sh")
        .args(["-ec", &script])
        .current_dir(root)
        .env("PATH", path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}");
    for part in ["400 documents", "9 queries", "1 hit", "(all built anew)", "sound: ", "held out"] {
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert!(told.contains(part) || printed.contains(part), "{part}: {told}");
    }
    // The server's line and the request, at a port that is free.
    let line = |of: &str| readme.lines().find(|line| line.starts_with(of)).expect(of);
    assert!(line("millrace serve ").starts_with("millrace serve --index /tmp/tiny &"));
    let server = Serving::new(&scratch.path("tiny"), &["-w", "1"]);
    let (_, asked) = line("curl ").split_once("'http://127.0.0.1:8080").expect("its address");
    let found = server.get(asked.trim_end_matches('\'')).expect(200).json();
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(3), "{found}");
}
