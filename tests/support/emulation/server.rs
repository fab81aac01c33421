//! The process that serves launches: requests go to its stdin, answers come from its stdout.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

pub(super) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Reads what it says on stderr, so that it never waits for that.
    stderr: Option<JoinHandle<String>>,
    id: u64,
    numbers: u32,
}

impl Server {
    pub(super) fn start(program: &Path) -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let mut child = Command::new(program)
            // What is left at the end is no leak.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut said = Vec::new();
            _ = stderr.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().unwrap(),
            stderr: Some(reader),
            id: STARTED.fetch_add(1, Ordering::Relaxed),
            child,
            numbers: 0,
        }
    }

    /// Tells it from the other servers of this process.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// A number that no buffer has.
    pub(super) fn new_number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// Sends a request.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(bytes));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.fail()),
        }
    }

    /// Receives an answer.
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.stdout.read_exact(bytes).map_err(|_| self.fail())
    }

    /// Whether it has ended.
    pub(super) fn has_failed(&self) -> bool {
        self.stderr.is_none()
    }

    /// What it said at its end.
    fn fail(&mut self) -> String {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        let said = self.stderr.take().map(|reader| reader.join().unwrap());
        format!("{status}\n{}", said.unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends when no more requests can come.
        self.stdin = None;
        _ = self.child.wait();
    }
}
