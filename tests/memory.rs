//! Does a job keep to its memory, whatever the input holds?

use crate::util::*;
use std::io::Write as _;

/// Bytes of each body once it is inflated.
const BODY_BYTES: usize = 24 << 20;

/// Small files, each with a page that inflates to a thousand times its size.
fn bombs(scratch: &Scratch, files: usize) {
    for number in 0..files {
        let gzip = flate2::Compression::fast();
        let mut body = flate2::write::GzEncoder::new(Vec::new(), gzip);
        write!(body, "<p>word{number}<!--").unwrap();
        body.write_all(&vec![b'x'; BODY_BYTES]).unwrap();
        body.write_all(b"-->end").unwrap();
        let body = body.finish().unwrap();
        let mut http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec();
        http.extend_from_slice(&body);
        let mut record = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/{number}\r\nContent-Length: {}\r\n\r\n",
            http.len()
        )
        .into_bytes();
        record.extend_from_slice(&http);
        record.extend_from_slice(b"\r\n\r\n");
        scratch.write(format!("input/{number}.warc"), record);
    }
}

/// Each of four workers inflated a body of its own before they took turns: 145 MB.
#[test]
fn bodies_that_inflate_take_turns() {
    let scratch = Scratch::new();
    bombs(&scratch, 6);
    let (index, report) = (scratch.path("index"), scratch.path("report.json"));
    let build = millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "4"]);
    build.args(args!["--gpus", "none", "--report", &report, scratch.path("input")]).ok();
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["documents"], 6);
    let peak = report["peak_memory_bytes"].as_u64().unwrap();
    // The memory, a tenth of it, and one body with its text.
    let most = (64 << 20) * 11 / 10 + 2 * BODY_BYTES as u64;
    assert!(peak <= most, "{peak} bytes are more than {most}");
}

/// The list of the files took 1.1 KB for each: 308 MB.
#[test]
#[ignore = "takes long: make campaign"]
fn campaign_many_small_files() {
    let scratch = Scratch::new();
    for number in 0..100_000 {
        scratch
            .write(format!("input/{:03}/{number:06}.txt", number / 1000), format!("mill {number}"));
    }
    // Second names make the list three times as long.
    let more = ["a", "b"].map(|name| scratch.path(name));
    for folder in &more {
        for part in std::fs::read_dir(scratch.path("input")).unwrap() {
            let part = part.unwrap();
            std::fs::create_dir_all(folder.join(part.file_name())).unwrap();
            for file in std::fs::read_dir(part.path()).unwrap() {
                let file = file.unwrap().path();
                let name = file.strip_prefix(scratch.path("input")).unwrap();
                std::fs::hard_link(&file, folder.join(name)).unwrap();
            }
        }
    }
    let (index, report) = (scratch.path("index"), scratch.path("report.json"));
    // The second build looks at what the first has made.
    for _ in 0..2 {
        let build = millrace(args!["build", "--index", &index, "--memory", "128M", "-w", "2"]);
        let inputs = args![scratch.path("input"), &more[0], &more[1]];
        build.args(args!["--gpus", "none", "--quiet", "--report", &report]).args(inputs).ok();
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["documents"], 300_000);
        let peak = report["peak_memory_bytes"].as_u64().unwrap();
        println!("300,000 files at 128M: {peak} bytes");
        assert!(peak <= (128 << 20) * 11 / 10, "{peak} bytes");
    }
}
