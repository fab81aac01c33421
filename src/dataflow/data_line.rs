//! The line of timely's records between two processes: its messages are sealed (`cluster::wire`),
//! so that nothing that was damaged on the way reaches an operator, and a break is noticed at once.
//!
//! What timely writes goes out in messages of up to [`MOST_BYTES`]; the kind of each says whether
//! it holds records or is the last. A line that ends without a last message is broken.
//! timely can only panic then, so the job is failed before.

use super::control::{Control, JobError};
use crate::cluster::PeerFailure;
use crate::cluster::control_lines::lost;
use crate::cluster::hosts::Hosts;
use crate::cluster::wire::{Opener, SealedLine, Sealer};
use crate::crew::lock;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timely::communication::allocator::zero_copy::stream::Stream;

/// Bytes of records in one message.
const MOST_BYTES: usize = 1 << 20;

const RECORDS: u8 = 0;
const LAST: u8 = 1;

/// A process that ends says why on its control line, which may arrive a little later.
const GRACE: Duration = Duration::from_millis(700);

pub(super) struct DataLine {
    stream: TcpStream,
    shared: Arc<SharedLines>,
}

struct SharedLines {
    process: usize,
    hosts: Hosts,
    control: Arc<Control>,
    /// Each is used by one thread of timely's.
    sending: Mutex<LineSender>,
    receiving: Mutex<Receiving>,
}

struct LineSender {
    sealer: Sealer,
    over: bool,
}

struct Receiving {
    opener: Opener,
    message: Vec<u8>,
    /// Bytes of the message that timely has read.
    given: usize,
    over: bool,
}

impl DataLine {
    /// `control` fails when the line to `process` breaks.
    pub(super) fn new(
        line: SealedLine,
        process: usize,
        hosts: &Hosts,
        control: &Arc<Control>,
    ) -> Self {
        let SealedLine { stream, sealer, opener } = line;
        let sending = LineSender { sealer, over: false };
        let receiving = Receiving { opener, message: Vec::new(), given: 0, over: false };
        let shared = Arc::new(SharedLines {
            process,
            hosts: hosts.clone(),
            control: control.clone(),
            sending: Mutex::new(sending),
            receiving: Mutex::new(receiving),
        });
        Self { stream, shared }
    }

    /// Ends the job; returns the error for timely.
    fn broken(&self, error: io::Error) -> io::Error {
        let SharedLines { process, hosts, control, .. } = &*self.shared;
        let start = Instant::now();
        // Damage has no other reason; a process that is gone may have told one.
        while error.kind() != ErrorKind::InvalidData
            && !control.stopped()
            && start.elapsed() < GRACE
        {
            std::thread::sleep(GRACE / 50);
        }
        let PeerFailure { process, address, message } = lost(hosts, *process, &error);
        let message = format!("{message}, on the connection for records");
        control.fail(JobError::Peer(PeerFailure { process, address, message }));
        error
    }
}

impl Receiving {
    fn next(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        // Between two messages a line may be silent for as long as it likes.
        let kind = loop {
            match self.opener.read(stream, MOST_BYTES, &mut self.message) {
                Ok(kind) => break kind,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        };
        self.given = 0;
        match kind {
            RECORDS => Ok(()),
            LAST => {
                self.over = true;
                Ok(())
            }
            _ => Err(io::Error::new(ErrorKind::InvalidData, "what it says makes no sense")),
        }
    }
}

impl Read for DataLine {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut receiving = lock(&self.shared.receiving);
        while receiving.given == receiving.message.len() && !receiving.over {
            if let Err(error) = receiving.next(&mut self.stream) {
                drop(receiving);
                return Err(self.broken(error));
            }
        }
        let Receiving { message, given, .. } = &mut *receiving;
        let read = (&message[*given..]).read(to)?;
        *given += read;
        Ok(read)
    }
}

impl Write for DataLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(MOST_BYTES)];
        if part.is_empty() {
            return Ok(0);
        }
        let written = lock(&self.shared.sending).sealer.write(&mut self.stream, RECORDS, part);
        written.map(|()| part.len()).map_err(|error| self.broken(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Stream for DataLine {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, shared: self.shared.clone() })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    /// Sends the last message before it closes the line for writing.
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut sending = lock(&self.shared.sending);
        if how != Shutdown::Read && !std::mem::replace(&mut sending.over, true) {
            sending.sealer.write(&mut self.stream.try_clone()?, LAST, &[])?;
        }
        self.stream.shutdown(how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Both ends of a line, and a stream into which a test may write instead.
    fn pair(control: &Arc<Control>) -> (DataLine, DataLine) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let answerer = listener.accept().unwrap().0;
        let hosts = Hosts::local(2, 0);
        let line =
            |stream, process| DataLine::new(SealedLine::unproved(stream), process, &hosts, control);
        (line(caller, 1), line(answerer, 0))
    }

    #[test]
    fn records_arrive_and_a_last_message_ends_them() {
        let control = Arc::new(Control::default());
        let (mut out, mut back) = pair(&control);
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 / 5) as u8).collect();
        let copy = bytes.clone();
        let writing = std::thread::spawn(move || {
            out.write_all(&copy).unwrap();
            out.flush().unwrap();
            out.shutdown(Shutdown::Write).unwrap();
        });
        let mut read = Vec::new();
        back.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        writing.join().unwrap();
        assert!(!control.stopped());
    }

    #[test]
    fn a_line_that_breaks_ends_the_job_at_once() {
        for damage in [false, true] {
            let control = Arc::new(Control::default());
            let (mut out, mut back) = pair(&control);
            out.write_all(b"some").unwrap();
            if damage {
                out.stream.write_all(&[7; 100]).unwrap();
            }
            drop(out);
            let start = Instant::now();
            let mut read = Vec::new();
            back.read_to_end(&mut read).unwrap_err();
            assert_eq!(read, b"some");
            let JobError::Peer(why) = control.take_failure().unwrap() else { panic!() };
            let expected = if damage {
                "what came from it is damaged (part 2 is not what was sent there"
            } else {
                "it has ended (the connection was closed), on the connection for records"
            };
            assert!(why.message.contains(expected), "{why}");
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }

    #[test]
    fn a_message_that_stops_ends_the_job_and_a_line_without_messages_does_not() {
        let control = Arc::new(Control::default());
        let (mut out, mut back) = pair(&control);
        back.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            back.read_to_end(&mut read).unwrap_err();
            read
        });
        out.write_all(b"some").unwrap();
        // Several times as long as a read waits.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!control.stopped());
        let mut sealed = Vec::new();
        lock(&out.shared.sending).sealer.write(&mut sealed, RECORDS, b"more").unwrap();
        out.stream.write_all(&sealed[..sealed.len() - 1]).unwrap();
        assert_eq!(reading.join().unwrap(), b"some");
        let JobError::Peer(why) = control.take_failure().unwrap() else { panic!() };
        assert!(why.message.contains("damaged (part 3 stops before its end)"), "{why}");
    }
}
