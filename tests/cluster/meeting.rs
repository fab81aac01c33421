//! Processes that do not come together, or should not, say so.

use super::*;

/// The version of the format (docs/index-format.md).
const VERSION: u32 = 3;

#[test]
fn a_process_that_does_not_come_is_named() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let hosts = Hosts::new(&scratch, 3);
    let index = scratch.path("index");
    let arguments = args!["build", "--index", index, "-w", "1", input];
    let job = |process: usize, wait: &str| hosts.job_waiting(wait, process, &arguments);
    let absent = |process: usize| format!("process {process} ({})", hosts.addresses[process]);
    // Process 1 calls before process 0 is there, so that it is told what process 0 waits for: it
    // would wait far longer itself.
    let listener = TcpListener::bind(&hosts.addresses[0]).unwrap();
    let called = Running::start([job(1, "60")]);
    drop(accept(&listener));
    drop(listener);
    let waiting = Running::start([job(0, "3")]);
    for outcome in [waiting, called].into_iter().flat_map(Running::end) {
        outcome.expect_status(1).says(absent(2)).says("did not come within 3 s");
    }
    job(1, "1").fails(1).says(absent(0)).says("refused").says("did not come within 1 s");
    assert!(!index.exists());
}

/// Calls process 0 as another program might; returns the line and what is said there.
pub(super) fn call(address: &str, greeting: &[u8]) -> (TcpStream, Vec<u8>) {
    let start = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < SOON, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.write_all(greeting).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut head = [0; 12];
    let said = match stream.read_exact(&mut head) {
        Ok(()) => {
            let mut said = vec![0; u32::from_be_bytes(head[8..].try_into().unwrap()) as usize];
            stream.read_exact(&mut said).unwrap();
            said
        }
        Err(_) => Vec::new(),
    };
    (stream, said)
}

fn greeting(text: &str) -> Vec<u8> {
    let mut bytes = b"millrace".to_vec();
    bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[test]
fn another_build_is_refused_and_a_stranger_is_not_heard() {
    let scratch = Scratch::new();
    let (input, _) = collection(&scratch);
    let index = scratch.path("index");
    let hosts = Hosts::new(&scratch, 2);
    let arguments = args!["build", "--index", index, "-w", "1", input];
    let first = Running::start([hosts.job(0, &arguments)]);
    for stranger in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"millrace\xff\xff\xff\xff", b""] {
        let mut head = [0; 1];
        let (mut line, said) = call(&hosts.addresses[0], &[stranger, &[b' '; 12]].concat());
        assert!(said.is_empty() && line.read(&mut head).is_ok_and(|n| n == 0));
    }
    let hello = |build: &str, process: usize, meant: usize| {
        greeting(&format!(
            r#"{{"protocol":1,"build":"{build}","format":{VERSION},"job":"build","processes":2,"process":{process},"meant":{meant},"line":"Control"}}"#
        ))
    };
    let (_line, said) = call(&hosts.addresses[0], &hello("another", 1, 0));
    // It says who it is, so that the other side can tell the same.
    assert!(String::from_utf8(said).unwrap().contains("\"build\":\""));
    let outcome = first.end().remove(0).expect_status(1);
    outcome.says("process 1").says("has protocol 1, this process 3").says("the same build");

    // The other way round: process 1 calls something that is another build.
    let hosts = Hosts::new(&scratch, 2);
    let listener = TcpListener::bind(&hosts.addresses[0]).unwrap();
    let second = Running::start([hosts.job(1, &arguments)]);
    let mut line = accept(&listener);
    line.write_all(&hello("another", 0, 1)).unwrap();
    second.end().remove(0).expect_status(1).says("process 0").says("has protocol 1");
    assert!(!index.exists());
}

#[test]
fn processes_of_different_jobs_do_not_come_together() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let index = scratch.path("index");
    together(&scratch, 2, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
    let before = files_below(&index);
    let build = |more: &[&str]| {
        let more = more.iter().map(OsString::from);
        args!["build", "--index", index, "-w", "1", input]
            .into_iter()
            .chain(more)
            .collect::<Vec<_>>()
    };
    let ask = |k: &str| args!["query", "--index", index, "-w", "1", "-k", k, queries];
    let other = scratch.write("other.tsv", "a\tb\n");
    let cases: [(Vec<OsString>, Vec<OsString>, &str); 5] = [
        (build(&[]), build(&["--fold"]), "the folding of words true, process 0 false"),
        (build(&[]), build(&["--stemmer", "porter"]), "the stemmer porter, process 0 english"),
        (build(&[]), build(&[other.to_str().unwrap()]), "an input with hash"),
        (ask("3").into(), ask("4").into(), "-k 4, process 0 3"),
        (build(&[]), ask("3").into(), "job"),
    ];
    for (first, second, says) in cases {
        let hosts = Hosts::new(&scratch, 2);
        for outcome in Running::start([hosts.job(0, &first), hosts.job(1, &second)]).end() {
            outcome.expect_status(1).says(says);
        }
    }
    assert_eq!(files_below(&index), before);
}

#[test]
fn input_that_cannot_be_shared_or_read_ends_all() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let blank = scratch.write("blank.jsonl", "[]\n");
    let hosts = Hosts::new(&scratch, 2);
    let missing = scratch.path("missing.jsonl");
    let job = |p, input: &Path| hosts.job(p, &args!["build", "--index", index, "-w", "1", input]);
    for outcome in Running::start((0..2).map(|p| job(p, Path::new("-")))).end() {
        outcome.expect_status(2).says("standard input");
    }
    let outcomes = Running::start([job(0, &blank), job(1, &missing)]).end();
    assert!(
        outcomes.iter().all(|outcome| outcome.stderr.contains("missing.jsonl")),
        "{outcomes:?}"
    );
    for outcome in Running::start((0..2).map(|p| job(p, &blank))).end() {
        outcome.expect_status(1).says("no document in 3 bytes of the input");
    }
    millrace(args!["info", "--index", index]).fails(1).says("no index");
}
