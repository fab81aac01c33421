//! A server of the program, and a client of HTTP/1.1 as small as tests need.

use super::{Job, args, drain, millrace};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// A server that runs until it is dropped, at a port that was free.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

/// An answer: status, head and body.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {}", self.head, String::from_utf8_lossy(&self.body));
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| {
            line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
        };
        self.head.lines().find(named).map(|line| line.split_once(':').unwrap().1.trim())
    }
}

pub(crate) fn serve_job(index: &Path, more: &[&str]) -> Job {
    millrace(args!["serve", "--index", index, "--listen", "127.0.0.1:0"]).args(more)
}

impl Serving {
    pub(crate) fn new(index: &Path, more: &[&str]) -> Self {
        Self::of(serve_job(index, more))
    }

    /// Waits until the server says where it answers.
    pub(crate) fn of(mut job: Job) -> Self {
        let mut child = job.spawn();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "the server has ended");
            if let Some((_, address)) = line.trim().split_once("answers at http://") {
                break address.parse().unwrap();
            }
        };
        // A full pipe would stop it.
        drain(told);
        Self { child, address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, heads: &[&str], body: &[u8]) -> HttpAnswer {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !heads.iter().any(|head| head.starts_with("Host:")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for more in heads {
            head += &format!("{more}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        // A server may answer before it has all of a body that it refuses.
        _ = stream.write_all(body);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap_or_else(|error| panic!("{path}: {error}"));
        answer_of(&all)
    }

    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.ask("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> HttpAnswer {
        self.ask("POST", path, &[], body.as_ref())
    }
}

/// Reads an answer behind which the connection was closed.
pub(crate) fn answer_of(all: &[u8]) -> HttpAnswer {
    let end = all.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(all)));
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let answer = HttpAnswer { status, head, body: Vec::new() };
    let mut rest = &all[end + 4..];
    let mut body = Vec::new();
    if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&rest[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            body.extend_from_slice(&rest[line + 2..][..size]);
            rest = &rest[line + 2 + size + 2..];
        }
    } else {
        body.extend_from_slice(rest);
    }
    HttpAnswer { body, ..answer }
}

impl Drop for Serving {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
