//! The control lines, one between process 0 and each of the others: messages beside timely's
//! records, and whether a process is still there.
//!
//! Messages are [sealed](super::wire). A thread of its own sends
//! a heartbeat every half second, as soon as a process has all its lines; one that is silent for
//! [`SILENCE`] after its first, or whose line ends before it has said how its job went, has gone.
//! Process 0 passes on why a process failed, so that all end with the reason.

use super::PeerFailure;
use super::hosts::Hosts;
use super::wire::{Opener, SealedLine, Sealer};
use crate::crew::{lock, spawn};
use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The silence after which a process has gone.
pub(crate) const SILENCE: Duration = Duration::from_millis(2500);
/// Time between two heartbeats.
const PULSE: Duration = Duration::from_millis(500);
/// How long a process that is done waits for the others to say the same.
const FAREWELL: Duration = Duration::from_secs(12);
/// How long a failed process waits for the others to hear why.
const PARTING: Duration = Duration::from_secs(2);
/// Time between two checks whether the job goes on.
const PATIENCE: Duration = Duration::from_millis(20);
const MOST_BYTES: usize = 1 << 28;

const ALIVE: u8 = 0;
const BODY: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;
const CLOSED: u8 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerOutcome {
    Done,
    /// The rest is not wanted: a quiet end.
    Closed,
    /// For a reason of its own.
    Failed(String),
    /// Because another process did.
    Peer(PeerFailure),
}

pub(crate) struct ControlLines {
    hosts: Hosts,
    lines: Arc<Vec<Option<Mutex<ControlSender>>>>,
    inbox: Mutex<Receiver<(usize, Vec<u8>)>>,
    readers: Vec<JoinHandle<()>>,
    pulse: JoinHandle<()>,
    over: Arc<AtomicBool>,
}

impl ControlLines {
    /// Begins to listen on the lines that [`connect`](super::connect::connect) made. The others may
    /// have to `wait` for their last line before they say anything. `end` is called when another
    /// process makes this one end: with `None` for a quiet end.
    pub(crate) fn start(
        hosts: Hosts,
        control: Vec<Option<SealedLine>>,
        wait: Duration,
        end: impl Fn(Option<PeerFailure>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (sender, inbox) = channel();
        let end: Arc<dyn Fn(Option<PeerFailure>) + Send + Sync> = Arc::new(end);
        let mut readers = Vec::new();
        let mut lines = Vec::new();
        for (process, line) in control.into_iter().enumerate() {
            let Some(line) = line else {
                lines.push(None);
                continue;
            };
            let SealedLine { stream, sealer, opener } = line;
            stream.set_read_timeout(Some(SILENCE))?;
            stream.set_write_timeout(Some(SILENCE))?;
            let reader = MessageReader {
                process,
                hosts: hosts.clone(),
                unheard: Some((Instant::now(), wait)),
                stream: stream.try_clone()?,
                opener,
                inbox: sender.clone(),
                end: end.clone(),
            };
            readers.push(spawn(format!("process-{process}"), move || reader.run())?);
            lines.push(Some(Mutex::new(ControlSender { stream, sealer })));
        }
        let lines = Arc::new(lines);
        let over = Arc::new(AtomicBool::new(false));
        let pulse = {
            let lines = Arc::clone(&lines);
            let over = over.clone();
            spawn("pulse", move || beat(&lines, &over))?
        };
        let inbox = Mutex::new(inbox);
        Ok(Self { hosts, lines, inbox, readers, pulse, over })
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(crate) fn send(&self, to: usize, bytes: &[u8]) -> Result<(), PeerFailure> {
        let line = self.lines.get(to).and_then(Option::as_ref);
        let sent = line.ok_or(ErrorKind::NotConnected.into()).and_then(|line| {
            let mut line = lock(line);
            line.write(BODY, bytes)
        });
        sent.map_err(|error| lost(&self.hosts, to, &error))
    }

    /// The next message of the job from any process; `None` when it is `stopped`.
    pub(crate) fn receive(&self, stopped: impl Fn() -> bool) -> Option<(usize, Vec<u8>)> {
        let inbox = lock(&self.inbox);
        while !stopped() {
            match inbox.recv_timeout(PATIENCE) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => {}
                // All lines have ended well, so nothing will come.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Tells the others how the job of this process ended, and waits a little for them to end too.
    pub(crate) fn finish(self, outcome: &PeerOutcome) {
        self.over.store(true, Ordering::Relaxed);
        self.pulse.thread().unpark();
        _ = self.pulse.join();
        let (kind, origin, text) = match outcome {
            PeerOutcome::Done => (DONE, None, ""),
            PeerOutcome::Closed => (CLOSED, None, ""),
            PeerOutcome::Failed(text) => (FAILED, Some(self.hosts.process()), text.as_str()),
            PeerOutcome::Peer(peer) => (FAILED, Some(peer.process), peer.message.as_str()),
        };
        for line in self.lines.iter().flatten() {
            let mut line = lock(line);
            let ControlSender { stream, sealer } = &mut *line;
            // Who does not receive it has no need to.
            _ = match origin {
                Some(origin) => send_failure(stream, sealer, origin, text),
                None => write(stream, sealer, kind, &[]),
            };
            _ = line.stream.shutdown(Shutdown::Write);
        }
        let patience = if kind == DONE { FAREWELL } else { PARTING };
        let start = Instant::now();
        while self.readers.iter().any(|reader| !reader.is_finished()) && start.elapsed() < patience
        {
            thread::sleep(PATIENCE / 10);
        }
    }
}

pub(super) fn send_failure(
    stream: &mut TcpStream,
    sealer: &mut Sealer,
    origin: usize,
    text: &str,
) -> io::Result<()> {
    let mut bytes = (origin as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    write(stream, sealer, FAILED, &bytes)
}

struct ControlSender {
    stream: TcpStream,
    sealer: Sealer,
}

impl ControlSender {
    fn write(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        write(&mut self.stream, &mut self.sealer, kind, bytes)
    }
}

fn write(stream: &mut TcpStream, sealer: &mut Sealer, kind: u8, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > MOST_BYTES {
        return Err(io::Error::other("the message is too long"));
    }
    sealer.write(stream, kind, bytes)
}

pub(crate) fn lost(hosts: &Hosts, process: usize, error: &io::Error) -> PeerFailure {
    let message = match error.kind() {
        ErrorKind::UnexpectedEof => "it has ended (the connection was closed)".to_string(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("it has ended (nothing came from it for {} s)", SILENCE.as_secs_f32())
        }
        ErrorKind::InvalidData => format!("what came from it is damaged ({error})"),
        _ => format!("it has ended ({error})"),
    };
    PeerFailure { process, address: hosts.address(process).to_string(), message }
}

fn beat(lines: &[Option<Mutex<ControlSender>>], over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        for line in lines.iter().flatten() {
            let mut line = lock(line);
            // The reader of this line sees that it is broken.
            _ = line.write(ALIVE, &[]);
        }
        thread::park_timeout(PULSE);
    }
}

struct MessageReader {
    process: usize,
    hosts: Hosts,
    /// Since when it has said nothing at all, and how long it may.
    unheard: Option<(Instant, Duration)>,
    stream: TcpStream,
    opener: Opener,
    inbox: Sender<(usize, Vec<u8>)>,
    end: Arc<dyn Fn(Option<PeerFailure>) + Send + Sync>,
}

impl MessageReader {
    fn run(mut self) {
        loop {
            match self.read() {
                Ok((ALIVE, _)) => {}
                Ok((BODY, bytes)) => {
                    // It fails when this job has ended.
                    _ = self.inbox.send((self.process, bytes));
                }
                Ok((DONE, _)) => break,
                Ok((CLOSED, _)) => {
                    (self.end)(None);
                    break;
                }
                Ok((FAILED, bytes)) => {
                    (self.end)(Some(self.failure(&bytes)));
                    break;
                }
                Ok(_) => {
                    let error = io::Error::other("what it says makes no sense");
                    return (self.end)(Some(lost(&self.hosts, self.process, &error)));
                }
                Err(error) => return (self.end)(Some(lost(&self.hosts, self.process, &error))),
            }
        }
        // Closing a line before all of it is read may lose what was sent the other way.
        while self.read().is_ok() {}
    }

    fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut bytes = Vec::new();
        loop {
            match self.opener.read(&mut self.stream, MOST_BYTES, &mut bytes) {
                Ok(kind) => {
                    self.unheard = None;
                    return Ok((kind, bytes));
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                        && self.unheard.is_some_and(|(since, most)| since.elapsed() < most) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn failure(&self, bytes: &[u8]) -> PeerFailure {
        let (origin, text) = match bytes {
            [a, b, c, d, text @ ..] => (u32::from_be_bytes([*a, *b, *c, *d]) as usize, text),
            text => (self.process, text),
        };
        let message = String::from_utf8_lossy(text).into_owned();
        PeerFailure { process: origin, address: self.hosts.address(origin).to_string(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    type Ends = Arc<Mutex<Vec<Option<PeerFailure>>>>;

    /// The control lines of processes 0 and 1, and what ended each.
    fn pair() -> ([ControlLines; 2], [Ends; 2]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let answerer = listener.accept().unwrap().0;
        let ends: [Ends; 2] = Default::default();
        let start = |me: usize, control| {
            let ends = ends[me].clone();
            let end = move |why| ends.lock().unwrap().push(why);
            ControlLines::start(Hosts::local(2, me), control, SILENCE, end).unwrap()
        };
        let line = |stream| Some(SealedLine::unproved(stream));
        let links = [start(0, vec![None, line(answerer)]), start(1, vec![line(caller), None])];
        (links, ends)
    }

    fn wait_for(ends: &Ends) -> Option<PeerFailure> {
        let start = Instant::now();
        loop {
            if let Some(end) = ends.lock().unwrap().first() {
                return end.clone();
            }
            assert!(start.elapsed() < Duration::from_secs(5), "nobody noticed");
            thread::sleep(PATIENCE);
        }
    }

    #[test]
    fn messages_arrive_and_a_job_that_is_done_ends_nobody() {
        let ([zero, one], ends) = pair();
        zero.send(1, b"go").unwrap();
        zero.send(1, &vec![7; 1 << 20]).unwrap();
        assert_eq!(one.receive(|| false), Some((0, b"go".to_vec())));
        assert_eq!(one.receive(|| false), Some((0, vec![7; 1 << 20])));
        one.send(0, b"").unwrap();
        assert_eq!(zero.receive(|| false), Some((1, Vec::new())));
        assert_eq!(zero.receive(|| true), None);
        let other = thread::spawn(move || one.finish(&PeerOutcome::Done));
        zero.finish(&PeerOutcome::Done);
        other.join().unwrap();
        assert!(ends.iter().all(|ends| ends.lock().unwrap().is_empty()));
    }

    #[test]
    fn the_reason_of_a_failure_travels() {
        let ([zero, one], ends) = pair();
        one.finish(&PeerOutcome::Failed("the disk is full".into()));
        let why = wait_for(&ends[0]).unwrap();
        assert_eq!(why.to_string(), "process 1 (localhost:2102): the disk is full");
        zero.finish(&PeerOutcome::Peer(why));
        let ([zero, _one], ends) = pair();
        let address = "localhost:2103".to_string();
        let why = PeerFailure { process: 2, address, message: "it has ended".into() };
        zero.finish(&PeerOutcome::Peer(why));
        assert_eq!(wait_for(&ends[1]).unwrap().process, 2);
        let ([zero, _one], ends) = pair();
        zero.finish(&PeerOutcome::Closed);
        assert_eq!(wait_for(&ends[1]), None);
    }

    #[test]
    fn a_line_that_ends_without_a_word_is_noticed() {
        let ([zero, one], ends) = pair();
        for line in one.lines.iter().flatten() {
            line.lock().unwrap().stream.shutdown(Shutdown::Both).unwrap();
        }
        let why = wait_for(&ends[0]).unwrap().to_string();
        assert!(why.contains("process 1 (localhost:2102): it has ended"), "{why}");
        drop(zero);
        assert_eq!(one.receive(|| true), None);
    }
}
