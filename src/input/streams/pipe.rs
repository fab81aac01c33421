//! Reads a pipe without waiting for its writer. A thread of its own waits, and who asks too
//! early is told so, so that a job can end while its input is silent.

use crate::crew::spawn;
use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

/// What is read at a time, in bytes.
const PART_BYTES: usize = 64 << 10;
/// Parts that wait to be asked for.
const PARTS_AHEAD: usize = 4;

/// Standard input, a named pipe, a terminal: anything that may keep its reader waiting.
///
/// Memory: [`PARTS_AHEAD`] parts and two in hands. Its thread ends with the stream, or with the
/// process.
pub(crate) struct Pipe {
    parts: Receiver<io::Result<Vec<u8>>>,
    /// The current part, and how much of it was given out.
    part: Vec<u8>,
    given: usize,
}

impl Pipe {
    /// Starts the thread, which opens the stream and reads ahead; `start` comes first.
    pub(crate) fn new<R: Read>(
        start: Vec<u8>,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, parts) = sync_channel(PARTS_AHEAD);
        let read = move || {
            let sender = Sender(sender);
            let mut stream = match open() {
                Ok(stream) => stream,
                Err(error) => {
                    _ = sender.0.send(Err(error));
                    return;
                }
            };
            loop {
                let mut part = vec![0; PART_BYTES];
                let sent = match stream.read(&mut part) {
                    Ok(0) => return,
                    Ok(n) => {
                        part.truncate(n);
                        sender.0.send(Ok(part))
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    Err(e) => sender.0.send(Err(e)),
                };
                if sent.is_err() {
                    return;
                }
            }
        };
        spawn("input", read)?;
        Ok(Self { parts, part: start, given: 0 })
    }

    /// The first `N` bytes, or all if there are fewer; they will be read again.
    pub(crate) fn peek<const N: usize>(&mut self) -> io::Result<&[u8]> {
        while self.part.len() - self.given < N {
            match self.next() {
                Some(part) => {
                    let part = part?;
                    self.part.extend_from_slice(&part);
                }
                None => break,
            }
        }
        let rest = &self.part[self.given..];
        Ok(&rest[..rest.len().min(N)])
    }

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        match self.parts.try_recv() {
            Ok(part) => Some(part),
            Err(TryRecvError::Empty) => Some(Err(ErrorKind::WouldBlock.into())),
            Err(TryRecvError::Disconnected) => None,
        }
    }
}

/// Tells that the stream panicked: its end would look like the end of the input.
struct Sender(SyncSender<io::Result<Vec<u8>>>);

impl Drop for Sender {
    fn drop(&mut self) {
        if thread::panicking() {
            // Nobody may listen any more.
            _ = self.0.send(Err(io::Error::other("the input panicked while it was read")));
        }
    }
}

impl Read for Pipe {
    /// Gives out what is there; `WouldBlock` if that is nothing yet.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.given == self.part.len() {
            let Some(part) = self.next() else { return Ok(0) };
            self.part = part?;
            self.given = 0;
        }
        let n = (&self.part[self.given..]).read(to)?;
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn wait<R>(mut attempt: impl FnMut() -> io::Result<R>) -> R {
        loop {
            match attempt() {
                Err(e) if e.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                done => return done.unwrap(),
            }
        }
    }

    #[test]
    fn tells_who_asks_too_early() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = Pipe::new(b"ab".to_vec(), move || Ok(reader)).unwrap();
        assert_eq!(pipe.peek::<4>().unwrap_err().kind(), ErrorKind::WouldBlock);
        writer.write_all(b"c").unwrap();
        assert_eq!(wait(|| pipe.peek::<3>().map(<[u8]>::to_vec)), b"abc");
        let mut all = Vec::new();
        assert_eq!(pipe.read_to_end(&mut all).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(all, b"abc", "what was there is kept");
        writer.write_all(b"de").unwrap();
        drop(writer);
        wait(|| pipe.read_to_end(&mut all));
        assert_eq!(all, b"abcde");
        assert_eq!(pipe.peek::<4>().unwrap(), b"");
    }

    #[test]
    fn passes_long_streams_and_errors_on() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| (i * 7 / 5) as u8).collect();
        let copy = bytes.clone();
        let mut pipe = Pipe::new(Vec::new(), move || Ok(io::Cursor::new(copy))).unwrap();
        let mut all = Vec::new();
        wait(|| pipe.read_to_end(&mut all));
        assert!(all == bytes);
        let refused = || Err::<io::Empty, _>(ErrorKind::PermissionDenied.into());
        let mut pipe = Pipe::new(Vec::new(), refused).unwrap();
        let kind = loop {
            match pipe.peek::<4>().unwrap_err().kind() {
                ErrorKind::WouldBlock => thread::yield_now(),
                kind => break kind,
            }
        };
        assert_eq!(kind, ErrorKind::PermissionDenied);
    }
}
