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
