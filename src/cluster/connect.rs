//! The making of a job's lines: each process calls those with smaller numbers and is called by
//! those with greater ones, for a bounded time.

use super::ClusterError;
use super::control_lines::{SILENCE, send_failure};
use super::hello::{Hello, LineKind, PROTOCOL, build_id};
use super::hosts::Hosts;
use super::wire::{Handshake, SealedLine, Secret};
use crate::crew::{lock, spawn};
use crate::shown::chain;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub hosts: Hosts,
    pub job: &'static str,
    /// The format version of the index.
    pub format: u32,
    /// Whether the job needs data lines.
    pub data: bool,
    /// How long to wait for the others.
    pub wait: Duration,
    pub secret: Secret,
}

/// The lines of this process, by the number of the process at the other end.
#[derive(Debug, Default)]
pub(crate) struct ProcessLines {
    /// Between process 0 and each other.
    pub control: Vec<Option<SealedLine>>,
    /// To all others, if the job needs them.
    pub data: Vec<Option<SealedLine>>,
}

enum ConnectEvent {
    Line(LineKind, usize, SealedLine),
    Failed(ClusterError),
}

/// Time between two calls.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time of a greeting.
const GREETING: Duration = Duration::from_secs(5);

/// Makes all lines of this process. `stopped` tells whether the job has ended meanwhile.
///
/// # Errors
/// All of [`ClusterError`] but those of the host file. Processes that came before are told.
pub(crate) fn connect(
    call: &Call,
    stopped: impl Fn() -> bool,
) -> Result<ProcessLines, ClusterError> {
    let n = call.hosts.processes();
    let mut lines = ProcessLines {
        control: (0..n).map(|_| None).collect(),
        data: (0..n).map(|_| None).collect(),
    };
    let made = make_lines(call, &mut lines, stopped);
    if let Err(error) = &made {
        for line in lines.control.iter_mut().flatten() {
            // Who does not receive it sees that the line ends.
            let SealedLine { stream, sealer, .. } = line;
            _ = send_failure(stream, sealer, call.hosts.process(), &chain(error));
        }
    }
    made.map(|()| lines)
}

fn make_lines(
    call: &Call,
    lines: &mut ProcessLines,
    stopped: impl Fn() -> bool,
) -> Result<(), ClusterError> {
    let hosts = &call.hosts;
    let start = Instant::now();
    let me = hosts.process();
    let build = build_id()?;
    let kinds =
        if call.data { &[LineKind::Control, LineKind::Data][..] } else { &[LineKind::Control] };
    let mut wanted = BTreeSet::new();
    for &kind in kinds {
        let others = (0..hosts.processes()).filter(|&other| other != me);
        wanted.extend(
            others.filter(|&o| kind == LineKind::Data || me == 0 || o == 0).map(|o| (kind, o)),
        );
    }
    let shared = Arc::new(Calling {
        call: call.clone(),
        build,
        over: AtomicBool::new(false),
        troubles: Arc::default(),
    });
    let over = Over(&shared.over);
    let (sender, events) = channel();
    if wanted.iter().any(|&(_, other)| other > me) {
        let address = hosts.address(me);
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|source| ClusterError::Listen { address: address.to_string(), source })?;
        let shared = shared.clone();
        let sender = sender.clone();
        spawn("answer", move || shared.answer_calls(&listener, &sender))
            .map_err(ClusterError::Start)?;
    }
    let troubles = shared.troubles.clone();
    for &(kind, other) in wanted.iter().filter(|&&(_, other)| other < me) {
        let shared = shared.clone();
        let sender = sender.clone();
        spawn("call", move || shared.call_until_answered(kind, other, &sender))
            .map_err(ClusterError::Start)?;
    }
    while !wanted.is_empty() {
        if stopped() {
            return Err(ClusterError::Stopped);
        }
        match events.recv_timeout(PAUSE) {
            Ok(ConnectEvent::Line(kind, other, stream)) => {
                if !wanted.remove(&(kind, other)) {
                    return Err(ClusterError::Twice { process: other });
                }
                let place = match kind {
                    LineKind::Control => &mut lines.control[other],
                    LineKind::Data => &mut lines.data[other],
                };
                *place = Some(stream);
            }
            Ok(ConnectEvent::Failed(error)) => return Err(error),
            // This thread holds a sender itself.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if start.elapsed() > call.wait && !wanted.is_empty() {
            let absent = wanted.into_iter().map(|(_, other)| other).collect();
            let absent = names_of(absent, hosts, &lock(&troubles));
            return Err(ClusterError::Absent { absent, seconds: call.wait.as_secs() });
        }
    }
    drop(over);
    for SealedLine { stream, .. } in lines.data.iter().flatten() {
        // Greetings are over: a line may now be silent for long, but not within a message.
        for set in [stream.set_read_timeout(Some(SILENCE)), stream.set_write_timeout(None)] {
            set.map_err(ClusterError::Line)?;
        }
    }
    Ok(())
}

/// The names of processes, each with its last trouble.
fn names_of(
    processes: BTreeSet<usize>,
    hosts: &Hosts,
    troubles: &BTreeMap<usize, String>,
) -> String {
    let named = processes.into_iter().map(|process| match troubles.get(&process) {
        Some(trouble) => format!("{} ({trouble})", hosts.name(process)),
        None => hosts.name(process),
    });
    named.collect::<Vec<_>>().join(", ")
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Calling {
    call: Call,
    build: String,
    over: AtomicBool,
    /// The last trouble with each process.
    troubles: Arc<Mutex<BTreeMap<usize, String>>>,
}

impl Calling {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn hello(&self, other: usize, line: LineKind) -> Hello {
        let Call { hosts, job, format, secret, .. } = &self.call;
        let processes = hosts.processes();
        let mut hello =
            Hello::new(&self.build, *format, job, processes, hosts.process(), other, line);
        hello.secret = secret.is_given();
        hello
    }

    fn trouble(&self, other: usize, trouble: String) {
        let mut troubles = lock(&self.troubles);
        troubles.insert(other, trouble);
    }

    /// Takes calls; a caller that does not greet as millrace gets no answer.
    fn answer_calls(self: &Arc<Self>, listener: &TcpListener, events: &Sender<ConnectEvent>) {
        while !self.is_over() {
            match listener.accept() {
                Ok((stream, from)) => {
                    let shared = self.clone();
                    let events = events.clone();
                    // Who is not answered calls again.
                    _ = spawn("answer", move || {
                        if let Ok(event) = shared.answer(stream, &from.to_string()) {
                            // The job may have ended.
                            _ = events.send(event);
                        }
                    });
                }
                // Including errors of callers that have gone.
                Err(_) => thread::sleep(PAUSE / 10),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream, from: &str) -> io::Result<ConnectEvent> {
        prepare(&stream)?;
        let secret = &self.call.secret;
        let (theirs, called) = Hello::read(&mut stream)?;
        let mut handshake = secret.handshake(false, &called)?;
        let genuine = theirs.protocol == PROTOCOL && handshake.read(&mut stream)?.is_some();
        let ours = self.hello(theirs.process, theirs.line);
        let answered = ours.write(&mut stream)?;
        match genuine {
            true => handshake.write(&mut stream, &answered)?,
            false => Handshake::refuse(&mut stream)?,
        }
        if secret.is_given() && !genuine {
            // A stranger ends no job.
            self.trouble(theirs.process, format!("{from} does not know the secret"));
            return Err(ErrorKind::PermissionDenied.into());
        }
        if let Err(error) = ours.agree(&theirs, from) {
            return Ok(ConnectEvent::Failed(error));
        }
        if !genuine {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut line = handshake.line(stream)?;
        line.opener.read(&mut line.stream, 0, &mut Vec::new())?;
        Ok(ConnectEvent::Line(theirs.line, theirs.process, line))
    }

    fn greet(
        &self,
        mut stream: TcpStream,
        line: LineKind,
        other: usize,
    ) -> io::Result<ConnectEvent> {
        prepare(&stream)?;
        let secret = &self.call.secret;
        let address = self.call.hosts.address(other);
        let ours = self.hello(other, line);
        let mut handshake = secret.handshake(true, &ours.write(&mut stream)?)?;
        handshake.write(&mut stream, &[])?;
        let (theirs, answered) = Hello::read(&mut stream)?;
        let unproved = theirs.protocol != PROTOCOL || !secret.is_given();
        if unproved && let Err(error) = ours.agree(&theirs, address) {
            return Ok(ConnectEvent::Failed(error));
        }
        if handshake.read(&mut stream)?.is_none_or(|proved| proved != answered) {
            if secret.is_given() {
                let address = address.to_string();
                return Ok(ConnectEvent::Failed(ClusterError::WrongSecret { address }));
            }
            return Err(io::Error::new(ErrorKind::InvalidData, "the greeting was damaged"));
        }
        if let Err(error) = ours.agree(&theirs, address) {
            return Ok(ConnectEvent::Failed(error));
        }
        let mut sealed = handshake.line(stream)?;
        sealed.sealer.write(&mut sealed.stream, 0, &[])?;
        Ok(ConnectEvent::Line(line, other, sealed))
    }

    fn call_until_answered(&self, line: LineKind, other: usize, events: &Sender<ConnectEvent>) {
        while !self.is_over() {
            match self.call_once(line, other) {
                Ok(event) => {
                    _ = events.send(event);
                    return;
                }
                Err(error) => self.trouble(other, error.to_string()),
            }
            thread::sleep(PAUSE);
        }
    }

    fn call_once(&self, line: LineKind, other: usize) -> io::Result<ConnectEvent> {
        let address = self.call.hosts.address(other);
        let mut last = io::Error::other("the host has no address");
        for at in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&at, GREETING) {
                Ok(stream) => {
                    if stream.local_addr()? == stream.peer_addr()? {
                        // Nobody listens, and the system gave the call the port that it calls.
                        return Err(io::Error::other("nobody listens there"));
                    }
                    return self.greet(stream, line, other);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GREETING))?;
    stream.set_write_timeout(Some(GREETING))
}
