//! A rebuild holds to its memory, whatever has changed.

use crate::support::*;
use std::process::Command;

const DOCUMENTS: usize = 300_000;

/// The greatest resident memory of a rebuild, in bytes, as far as somebody sees who looks again and
/// again.
fn peak(job: &str) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["rebuild", job, "--once", "--quiet"])
        .spawn()
        .unwrap();
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        peak = peak.max(kib.unwrap_or(0u64) << 10);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// All documents change, which have names of their own, one name, or one name and one text: 460 MB
/// were taken of a million of one name.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "peaks are read as Linux tells them")]
fn changed_documents_hold_to_the_memory() {
    for (one_name, one_text) in [(false, true), (true, false), (true, true)] {
        let scratch = Scratch::new();
        let write = |word: &str| {
            let line = |n| {
                let name = if one_name { "x".to_string() } else { format!("d{n}") };
                let text = if one_text { word.to_string() } else { format!("{word}{n}") };
                format!("{{\"id\": \"{name}\", \"text\": \"{text}\"}}\n")
            };
            scratch.write("docs.jsonl", (0..DOCUMENTS).map(line).collect::<String>());
        };
        write("mill");
        let keys = "index = \"idx\"\n[[input]]\npaths = [\"docs.jsonl\"]\n\
                    [build]\nmemory = \"64M\"\nworkers = 2\ngpus = \"none\"\n";
        let job = scratch.write("job.toml", keys);
        let job = job.to_str().unwrap();
        peak(job);
        write("race");
        let taken = peak(job);
        let index = scratch.path("idx");
        assert_eq!(info(&index)["documents"], DOCUMENTS);
        // A tenth more is allowed, and code, of which an unoptimised program has much.
        let code = if cfg!(debug_assertions) { 16 << 20 } else { 4 << 20 };
        let most = (64 << 20) * 11 / 10 + code;
        let case = format!("one name {one_name}, one text {one_text}");
        println!("{case}: {taken} bytes of {most}");
        assert!(taken <= most, "{case}: {taken} bytes, and {most} are allowed");
    }
}
