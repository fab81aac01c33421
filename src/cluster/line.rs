//! What is a line once both ends have greeted each other? A TCP connection on which every message
//! is sealed.

use super::seal::{Opener, Sealer};
use std::io::{self, Write};
use std::net::TcpStream;

/// A line to another process.
pub struct SealedLine {
    pub(super) stream: TcpStream,
    pub(super) sealer: Sealer,
    opener: Opener,
}

impl std::fmt::Debug for SealedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SealedLine").field(&self.stream).finish()
    }
}

impl SealedLine {
    /// Makes a line of a connection and its two ends.
    pub(crate) fn new(stream: TcpStream, (sealer, opener): (Sealer, Opener)) -> Self {
        Self { stream, sealer, opener }
    }

    /// Takes the line apart: the connection, what seals messages that go out, and what opens those
    /// that come in.
    pub(crate) fn into_parts(self) -> (TcpStream, Sealer, Opener) {
        (self.stream, self.sealer, self.opener)
    }
}

/// Writes a message with its head.
pub(crate) fn write_sealed(
    stream: &mut impl Write,
    sealer: &mut Sealer,
    message: &[u8],
) -> io::Result<()> {
    let head = sealer.head(message);
    // One write for both: a connection without delay would send the head by itself.
    let mut bytes = Vec::with_capacity(head.len() + message.len());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(message);
    stream.write_all(&bytes)
}
