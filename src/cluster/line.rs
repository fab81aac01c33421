//! A line after the greeting: a TCP connection on which every message is sealed.

use super::seal::{Opener, Sealer};
use std::io::{self, Write};
use std::net::TcpStream;

pub struct SealedLine {
    pub(crate) stream: TcpStream,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

impl std::fmt::Debug for SealedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SealedLine").field(&self.stream).finish()
    }
}

pub(crate) fn write_sealed(
    stream: &mut impl Write,
    sealer: &mut Sealer,
    message: &[u8],
) -> io::Result<()> {
    let head = sealer.head(message);
    // One write for both: without delay the connection would send the head by itself.
    let mut bytes = Vec::with_capacity(head.len() + message.len());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(message);
    stream.write_all(&bytes)
}
