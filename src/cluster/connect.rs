//! How do the lines of a job come about? Each process calls those with smaller numbers and is called
//! by those with greater ones, for a bounded time.

use super::ClusterError;
use super::hello::{Hello, Line, build_id};
use super::hosts::Hosts;
use super::links::send_failure;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What a process needs to know to call the others.
#[derive(Clone, Debug)]
pub struct Call {
    /// Where all are.
    pub hosts: Hosts,
    /// The job.
    pub job: &'static str,
    /// The format version of the index.
    pub format: u32,
    /// Whether the job needs data lines.
    pub data: bool,
    /// How long to wait for the others.
    pub wait: Duration,
}

/// The lines of this process, by the number of the process at the other end.
#[derive(Debug, Default)]
pub struct Lines {
    /// To process 0, or from process 0 to all others.
    pub control: Vec<Option<TcpStream>>,
    /// To all others, if the job needs them.
    pub data: Vec<Option<TcpStream>>,
}

/// What the threads that make lines report.
enum Event {
    Line(Line, usize, TcpStream),
    Failed(ClusterError),
}

/// A call is tried again after this time.
const PAUSE: Duration = Duration::from_millis(50);
/// A greeting that takes longer does not come.
const GREETING: Duration = Duration::from_secs(5);

/// Makes all lines of this process. `stopped` tells whether the job has ended meanwhile.
///
/// # Errors
/// All of [`ClusterError`] but those of the host file. Processes that have come before are told.
pub fn connect(call: &Call, stopped: impl Fn() -> bool) -> Result<Lines, ClusterError> {
    let n = call.hosts.processes();
    let mut lines =
        Lines { control: (0..n).map(|_| None).collect(), data: (0..n).map(|_| None).collect() };
    let made = make_lines(call, &mut lines, stopped);
    if let Err(error) = &made {
        for stream in lines.control.iter_mut().flatten() {
            // Who does not hear it sees that the line ends.
            _ = send_failure(stream, call.hosts.process(), &chain(error));
        }
    }
    made.map(|()| lines)
}

fn chain(error: &ClusterError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn make_lines(
    call: &Call,
    lines: &mut Lines,
    stopped: impl Fn() -> bool,
) -> Result<(), ClusterError> {
    let (hosts, start) = (&call.hosts, Instant::now());
    let me = hosts.process();
    let build = build_id()?;
    let kinds = if call.data { &[Line::Control, Line::Data][..] } else { &[Line::Control] };
    let mut wanted = BTreeSet::new();
    for &kind in kinds {
        let others = (0..hosts.processes()).filter(|&other| other != me);
        wanted
            .extend(others.filter(|&o| kind == Line::Data || me == 0 || o == 0).map(|o| (kind, o)));
    }
    let shared = Arc::new(Calling { call: call.clone(), build, over: AtomicBool::new(false) });
    let over = Over(&shared.over);
    let (sender, events) = channel();
    if wanted.iter().any(|&(_, other)| other > me) {
        let address = hosts.address(me);
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|source| ClusterError::Listen { address: address.to_string(), source })?;
        let (shared, sender) = (shared.clone(), sender.clone());
        thread::spawn(move || shared.answer_calls(&listener, &sender));
    }
    let troubles: Arc<Mutex<BTreeMap<usize, String>>> = Arc::default();
    for &(kind, other) in wanted.iter().filter(|&&(_, other)| other < me) {
        let (shared, sender, troubles) = (shared.clone(), sender.clone(), troubles.clone());
        thread::spawn(move || {
            shared.call_until_answered((kind, other), &sender, |trouble| {
                let mut troubles = troubles.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                troubles.insert(other, trouble);
            });
        });
    }
    while !wanted.is_empty() {
        if stopped() {
            return Err(ClusterError::Stopped);
        }
        match events.recv_timeout(PAUSE) {
            Ok(Event::Line(kind, other, stream)) => {
                if !wanted.remove(&(kind, other)) {
                    return Err(ClusterError::Twice { process: other });
                }
                let place = match kind {
                    Line::Control => &mut lines.control[other],
                    Line::Data => &mut lines.data[other],
                };
                *place = Some(stream);
            }
            Ok(Event::Failed(error)) => return Err(error),
            // This thread holds a sender itself.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if start.elapsed() > call.wait && !wanted.is_empty() {
            let troubles = troubles.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let absent: BTreeSet<usize> = wanted.into_iter().map(|(_, other)| other).collect();
            let named = absent.into_iter().map(|other| match troubles.get(&other) {
                Some(trouble) => format!("{} ({trouble})", hosts.name(other)),
                None => hosts.name(other),
            });
            let absent = named.collect::<Vec<_>>().join(", ");
            return Err(ClusterError::Absent { absent, seconds: call.wait.as_secs() });
        }
    }
    drop(over);
    for stream in lines.data.iter().flatten() {
        // Greetings are over; from now on a line may be silent for long.
        for unset in [stream.set_read_timeout(None), stream.set_write_timeout(None)] {
            unset.map_err(|source| ClusterError::Line { source })?;
        }
    }
    Ok(())
}

/// Ends the threads that make lines when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the threads that make lines share.
struct Calling {
    call: Call,
    build: String,
    over: AtomicBool,
}

impl Calling {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn hello(&self, other: usize, line: Line) -> Hello {
        let Call { hosts, job, format, .. } = &self.call;
        let ends = (hosts.process(), other, line);
        Hello::new(&self.build, *format, job, hosts.processes(), ends)
    }

    /// Takes calls; who does not greet as a process of millrace is not answered.
    fn answer_calls(self: &Arc<Self>, listener: &TcpListener, events: &Sender<Event>) {
        while !self.is_over() {
            match listener.accept() {
                Ok((stream, from)) => {
                    let (shared, events) = (self.clone(), events.clone());
                    thread::spawn(move || {
                        if let Ok(event) = shared.answer(stream, &from.to_string()) {
                            // Nobody may wait any more.
                            _ = events.send(event);
                        }
                    });
                }
                // Also what a caller causes who has gone again.
                Err(_) => thread::sleep(PAUSE / 10),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream, from: &str) -> io::Result<Event> {
        prepare(&stream)?;
        let theirs = Hello::read(&mut stream)?;
        let ours = self.hello(theirs.process, theirs.line);
        ours.write(&mut stream)?;
        Ok(match ours.agree(&theirs, from) {
            Ok(()) => Event::Line(theirs.line, theirs.process, stream),
            Err(error) => Event::Failed(error),
        })
    }

    /// Calls process `other` until it answers; tells what went wrong the last time.
    fn call_until_answered(
        &self,
        (line, other): (Line, usize),
        events: &Sender<Event>,
        trouble: impl Fn(String),
    ) {
        while !self.is_over() {
            match self.call_once(line, other) {
                Ok(event) => {
                    _ = events.send(event);
                    return;
                }
                Err(error) => trouble(error.to_string()),
            }
            thread::sleep(PAUSE);
        }
    }

    fn call_once(&self, line: Line, other: usize) -> io::Result<Event> {
        let address = self.call.hosts.address(other);
        let mut last = io::Error::other("the host has no address");
        for at in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&at, GREETING) {
                Ok(mut stream) => {
                    if stream.local_addr()? == stream.peer_addr()? {
                        // Nobody listens, and the system gave the call the port that it calls.
                        return Err(io::Error::other("nobody listens there"));
                    }
                    prepare(&stream)?;
                    let ours = self.hello(other, line);
                    ours.write(&mut stream)?;
                    let theirs = Hello::read(&mut stream)?;
                    return Ok(match ours.agree(&theirs, address) {
                        Ok(()) => Event::Line(line, other, stream),
                        Err(error) => Event::Failed(error),
                    });
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
