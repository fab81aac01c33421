//! The greeting by which both ends of a new line check that they belong to the same job.
//!
//! On the wire: `millrace`, the length of the greeting as u32 in network order, and the greeting as
//! JSON, so that another version of millrace can still be told what does not fit; then a step of
//! the handshake ([`wire`](super::wire)). That of the caller is bound to the greeting before it,
//! and that of the other has the answer as its payload. At last the caller sends an empty message,
//! which proves that this is no replay.

use super::ClusterError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};

const MAGIC: &[u8; 8] = b"millrace";
const MOST_BYTES: u32 = 4096;
/// The version of all messages on lines.
pub(super) const PROTOCOL: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum LineKind {
    /// Messages of the job, heartbeats, and the reason of the end.
    Control,
    /// Records between timely's workers.
    Data,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(super) protocol: u32,
    build: String,
    format: u32,
    job: String,
    processes: usize,
    pub process: usize,
    /// The number that it takes the other process for.
    pub meant: usize,
    pub line: LineKind,
    #[serde(default)]
    pub(super) secret: bool,
}

impl Hello {
    /// The greeting of process `process` to process `meant`; `build` is [`build_id`].
    pub(crate) fn new(
        build: &str,
        format: u32,
        job: &str,
        processes: usize,
        process: usize,
        meant: usize,
        line: LineKind,
    ) -> Self {
        let build = build.to_string();
        let job = job.to_string();
        let protocol = PROTOCOL;
        Self { protocol, build, format, job, processes, process, meant, line, secret: false }
    }

    /// Returns the text of the greeting.
    pub(crate) fn write(&self, stream: &mut impl Write) -> io::Result<Vec<u8>> {
        let text = serde_json::to_vec(self)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&text);
        stream.write_all(&bytes)?;
        Ok(text)
    }

    /// Also returns the text of the greeting.
    ///
    /// # Errors
    /// Those of the stream; `InvalidData` if the bytes are no greeting.
    pub(crate) fn read(stream: &mut impl Read) -> io::Result<(Self, Vec<u8>)> {
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        let [.., a, b, c, d] = head;
        let length = u32::from_be_bytes([a, b, c, d]);
        if !head.starts_with(MAGIC) || length > MOST_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "not a process of millrace"));
        }
        let mut text = vec![0; length as usize];
        stream.read_exact(&mut text)?;
        Ok((serde_json::from_slice(&text)?, text))
    }

    /// Compares this greeting with that of the process at `address`.
    pub(crate) fn agree(&self, other: &Self, address: &str) -> Result<(), ClusterError> {
        let same = "install the same build of millrace everywhere";
        let start = "start all processes of a job alike";
        let hosts = "give all processes the same host file and the same number of processes";
        let secret = "give all processes the same secret";
        let rows: [(&'static str, String, String, &'static str); 7] = [
            ("protocol", other.protocol.to_string(), self.protocol.to_string(), same),
            ("build", other.build.clone(), self.build.clone(), same),
            ("index format", other.format.to_string(), self.format.to_string(), same),
            ("secret", other.secret.to_string(), self.secret.to_string(), secret),
            ("job", other.job.clone(), self.job.clone(), start),
            ("number of processes", other.processes.to_string(), self.processes.to_string(), start),
            ("at this address process", other.meant.to_string(), self.process.to_string(), hosts),
        ];
        for (what, theirs, ours, remedy) in rows {
            if theirs != ours {
                let process = other.process;
                let address = address.to_string();
                return Err(ClusterError::Mismatch {
                    process,
                    address,
                    what,
                    theirs,
                    ours,
                    remedy,
                });
            }
        }
        Ok(())
    }
}

pub(crate) fn build_id() -> Result<String, ClusterError> {
    let hash = || -> io::Result<String> {
        // The kernel's link leads to the running file even if it was replaced.
        let file =
            File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?;
        let hash = blake3::Hasher::new().update_reader(file)?.finalize();
        Ok(hash.to_hex()[..16].to_string())
    };
    hash().map_err(ClusterError::Executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(process: usize, meant: usize) -> Hello {
        Hello::new("b", 1, "build", 3, process, meant, LineKind::Control)
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        hello(2, 0).write(&mut bytes).unwrap();
        assert_eq!(Hello::read(&mut &bytes[..]).unwrap().0, hello(2, 0));
        for end in 0..bytes.len() {
            Hello::read(&mut &bytes[..end]).unwrap_err();
        }
        for foreign in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], b"millrace\xff\xff\xff\xff{}"]
        {
            let error = Hello::read(&mut &foreign[..]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn every_difference_is_named() {
        let ours = hello(0, 2);
        ours.agree(&hello(2, 0), "a:1").unwrap();
        type Change = fn(&mut Hello);
        let theirs: [(&str, Change); 7] = [
            ("protocol 9, this process 3", |h| h.protocol = 9),
            ("build c, this process b", |h| h.build = "c".into()),
            ("index format 2", |h| h.format = 2),
            ("secret true, this process false", |h| h.secret = true),
            ("job query, this process build", |h| h.job = "query".into()),
            ("number of processes 2, this process 3", |h| h.processes = 2),
            ("at this address process 1, this process 0", |h| h.meant = 1),
        ];
        for (says, change) in theirs {
            let mut other = hello(2, 0);
            change(&mut other);
            let error = ours.agree(&other, "a:1").unwrap_err().to_string();
            assert!(error.contains("process 2 (a:1)") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_build_has_one_id() {
        let id = build_id().unwrap();
        assert_eq!((id.len(), &id), (16, &build_id().unwrap()));
    }
}
