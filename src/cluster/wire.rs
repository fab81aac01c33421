//! The wire: a line between two processes on which every message arrives whole, once, unchanged and
//! in order; with a secret, between processes that know it, and unread by all others.
//!
//! ```text
//! u32 bytes of the message, u8 its kind | 16 bytes tag
//! up to 65,519 bytes of the message | 16 bytes tag, until all are there
//! ```
//!
//! Heads and parts are numbered together from 0, for each direction; a number is never sent. A head
//! has a tag of its own, so that a damaged length is found before anybody waits for bytes that
//! never come. Without a secret the tag is a checksum (XXH3, 128 bits, seeded with the number).
//!
//! With one the line follows the Noise protocol (Perrin, *The Noise Protocol Framework*, revision
//! 34, 2018), of which `snow` has every step: a handshake with fresh keys and the secret as the key
//! that both have before ([`PATTERN`]), bound to the caller's [greeting](super::hello); then each
//! direction is encrypted with a key of its own, AES-256-GCM with the number as nonce. Who does not
//! know the secret can neither read a message, nor make, change, repeat, leave out or move one; who
//! learns it later cannot read what was heard before.

use super::ClusterError;
use snow::{HandshakeState, StatelessTransportState};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash3_128;

/// AES-GCM goes three times as fast as ChaCha20-Poly1305 on the processors of servers, and the
/// hash is one that is made by the same crate.
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = 5;
/// Noise has messages of up to 65,535 bytes.
const PART_BYTES: usize = 65_535 - TAG_BYTES;
/// What is sealed is written when so many bytes are there.
const WRITE_BYTES: usize = 1 << 20;
/// A shorter secret could be guessed.
const LEAST_SECRET_BYTES: usize = 16;
const MOST_SECRET_BYTES: u64 = 1 << 20;

/// What all processes of a job know, and nobody else; or nothing.
#[derive(Clone)]
pub struct Secret(Option<[u8; KEY_BYTES]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_given() { "Secret(given)" } else { "Secret(none)" })
    }
}

impl Secret {
    /// Messages have checksums only.
    pub fn none() -> Self {
        Self(None)
    }

    /// The content of a plain file, from 16 bytes to 1 MiB.
    pub fn read(path: &Path) -> Result<Self, ClusterError> {
        // Looked at before it is opened: that would wait for the writer of a pipe.
        let read = || match fs::metadata(path)? {
            file if file.is_file() && file.len() <= MOST_SECRET_BYTES => fs::read(path),
            _ => Err(io::Error::other("a secret is a plain file of at most 1 MiB")),
        };
        let bytes = read().map_err(|source| {
            let path = path.to_path_buf();
            ClusterError::SecretFile { path, source }
        })?;
        if bytes.len() < LEAST_SECRET_BYTES {
            let path = path.to_path_buf();
            let found = bytes.len();
            return Err(ClusterError::ShortSecret { path, least: LEAST_SECRET_BYTES, found });
        }
        Ok(Self(Some(blake3::derive_key("millrace cluster 2026: secret of a job", &bytes))))
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// One side of a handshake that begins with the greeting of who calls. Without a secret it
    /// finds damage alone.
    pub(super) fn handshake(&self, calls: bool, greeting: &[u8]) -> io::Result<Handshake> {
        let key = self.0.unwrap_or_default();
        let pattern = PATTERN.parse().map_err(io::Error::other)?;
        let builder = snow::Builder::new(pattern).psk(0, &key);
        let builder = builder.and_then(|builder| builder.prologue(greeting));
        let state = builder.and_then(|builder| match calls {
            true => builder.build_initiator(),
            false => builder.build_responder(),
        });
        let state = state.map_err(io::Error::other)?;
        Ok(Handshake { state, encrypts: self.is_given() })
    }
}

/// A step of it is on the wire as its length, u16, and its bytes.
pub(super) struct Handshake {
    state: HandshakeState,
    encrypts: bool,
}

impl Handshake {
    pub(super) fn write(&mut self, stream: &mut impl Write, payload: &[u8]) -> io::Result<()> {
        let mut step = vec![0; payload.len() + KEY_BYTES + TAG_BYTES];
        let bytes = self.state.write_message(payload, &mut step).map_err(io::Error::other)?;
        let length = u16::try_from(bytes).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes(), &step[..bytes]].concat())
    }

    /// Instead of a step, where that of the other cannot be read.
    pub(super) fn refuse(stream: &mut impl Write) -> io::Result<()> {
        stream.write_all(&[0, 0])
    }

    /// Reads a step; `None` if it was damaged, or not made by who knows the secret.
    pub(super) fn read(&mut self, stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut step = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut step)?;
        let mut payload = vec![0; step.len()];
        Ok(self.state.read_message(&step, &mut payload).ok().map(|bytes| {
            payload.truncate(bytes);
            payload
        }))
    }

    /// The line after both steps.
    pub(super) fn line(self, stream: TcpStream) -> io::Result<SealedLine> {
        let noise = self.state.into_stateless_transport_mode().map_err(io::Error::other)?;
        let noise = self.encrypts.then(|| Arc::new(noise));
        let sealer = Sealer { seal: Seal(noise.clone()), next: 0, sealed: Vec::new() };
        let opener = Opener { seal: Seal(noise), next: 0, sealed: Vec::new() };
        Ok(SealedLine { stream, sealer, opener })
    }
}

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

/// Checksums if there is no secret.
struct Seal(Option<Arc<StatelessTransportState>>);

impl Seal {
    /// Appends a part and its tag.
    fn seal(&self, number: u64, part: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        let Some(noise) = &self.0 else {
            to.extend_from_slice(part);
            to.extend_from_slice(&checksum(number, part));
            return Ok(());
        };
        let at = to.len();
        to.resize(at + part.len() + TAG_BYTES, 0);
        noise.write_message(number, part, &mut to[at..]).map_err(io::Error::other).map(drop)
    }

    /// Appends a part whose tag fits; whether it does.
    fn open(&self, number: u64, sealed: &[u8], to: &mut Vec<u8>) -> bool {
        let Some((part, tag)) = sealed.split_last_chunk() else { return false };
        let Some(noise) = &self.0 else {
            to.extend_from_slice(part);
            return *tag == checksum(number, part);
        };
        let at = to.len();
        to.resize(at + part.len(), 0);
        noise.read_message(number, sealed, &mut to[at..]).is_ok()
    }
}

fn checksum(number: u64, part: &[u8]) -> [u8; TAG_BYTES] {
    XxHash3_128::oneshot_with_seed(number, part).to_be_bytes()
}

fn damaged(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

pub(crate) struct Sealer {
    seal: Seal,
    next: u64,
    sealed: Vec<u8>,
}

impl Sealer {
    /// Writes a message of less than 4 GiB.
    pub(crate) fn write(
        &mut self,
        stream: &mut impl Write,
        kind: u8,
        message: &[u8],
    ) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        let [a, b, c, d] = length.to_be_bytes();
        self.sealed.clear();
        // Written together: without delay the connection would send the head by itself.
        for part in std::iter::once(&[a, b, c, d, kind][..]).chain(message.chunks(PART_BYTES)) {
            if self.sealed.len() > WRITE_BYTES {
                stream.write_all(&self.sealed)?;
                self.sealed.clear();
            }
            self.seal.seal(self.next, part, &mut self.sealed)?;
            self.next += 1;
        }
        stream.write_all(&self.sealed)
    }
}

pub(crate) struct Opener {
    seal: Seal,
    next: u64,
    sealed: Vec<u8>,
}

impl Opener {
    /// Reads the next message, of at most `most` bytes, and returns its kind.
    ///
    /// A stream with a timeout may fail with `WouldBlock` or `TimedOut` before a message begins;
    /// nothing was read then. Within a message a timeout is damage, since each is written at once:
    /// a byte was lost, and both ends would wait for ever.
    ///
    /// # Errors
    /// `UnexpectedEof` if the line ends; `InvalidData` if the message is damaged; those of the
    /// stream.
    pub(crate) fn read(
        &mut self,
        stream: &mut impl Read,
        most: usize,
        message: &mut Vec<u8>,
    ) -> io::Result<u8> {
        let mut head = [0; HEAD_BYTES + TAG_BYTES];
        let begun = loop {
            match stream.read(&mut head) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(begun) => break begun,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.whole(stream, &mut head[begun..])?;
        message.clear();
        self.open(&head, message)?;
        let [a, b, c, d, kind] = message[..] else {
            return Err(damaged("a message has no head".into()));
        };
        let bytes = u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes > most {
            let what = format!("a message has {bytes} bytes, the longest may have {most}");
            return Err(damaged(what));
        }
        message.clear();
        // The buffer grows with what comes.
        let mut sealed = std::mem::take(&mut self.sealed);
        while message.len() < bytes {
            sealed.resize(PART_BYTES.min(bytes - message.len()) + TAG_BYTES, 0);
            self.whole(stream, &mut sealed)?;
            self.open(&sealed, message)?;
        }
        self.sealed = sealed;
        Ok(kind)
    }

    fn whole(&self, stream: &mut impl Read, to: &mut [u8]) -> io::Result<()> {
        stream.read_exact(to).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                damaged(format!("part {} stops before its end", self.next))
            }
            _ => error,
        })
    }

    fn open(&mut self, sealed: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        match self.seal.open(number, sealed, to) {
            true => Ok(()),
            false => Err(damaged(format!(
                "part {number} is not what was sent there, or not by a process that knows the secret"
            ))),
        }
    }
}

#[cfg(test)]
impl SealedLine {
    /// Without a handshake.
    pub(crate) fn unproved(stream: TcpStream) -> Self {
        let sealer = Sealer { seal: Seal(None), next: 0, sealed: Vec::new() };
        let opener = Opener { seal: Seal(None), next: 0, sealed: Vec::new() };
        Self { stream, sealer, opener }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn secret(text: &str) -> Secret {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, text).unwrap();
        Secret::read(&path).unwrap()
    }

    fn secrets() -> [Secret; 2] {
        [Secret::none(), secret("0123456789abcdef")]
    }

    /// Both ends of a line; none where one does not believe the other.
    fn ends(caller: &Secret, called: &Secret, greetings: [&[u8]; 2]) -> Option<[SealedLine; 2]> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        let mut ours = caller.handshake(true, greetings[0]).unwrap();
        let mut theirs = called.handshake(false, greetings[1]).unwrap();
        let mut wire = Vec::new();
        ours.write(&mut wire, b"one").unwrap();
        assert_eq!(theirs.read(&mut &wire[..]).unwrap()?, b"one");
        wire.clear();
        theirs.write(&mut wire, b"two").unwrap();
        assert_eq!(ours.read(&mut &wire[..]).unwrap()?, b"two");
        Some([ours.line(stream).unwrap(), theirs.line(other).unwrap()])
    }

    fn pair(secret: &Secret) -> [SealedLine; 2] {
        ends(secret, secret, [b"hello"; 2]).unwrap()
    }

    fn sealed(sealer: &mut Sealer, message: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        sealer.write(&mut bytes, 7, message).unwrap();
        bytes
    }

    #[test]
    fn messages_arrive_in_order() {
        for secret in secrets() {
            let [mut one, mut two] = pair(&secret);
            let mut message = Vec::new();
            let lengths = [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * WRITE_BYTES];
            for (length, kind) in lengths.into_iter().zip(0..) {
                let text: Vec<u8> = (0..length).map(|i| (i * 7 / 5) as u8).collect();
                let mut wire = Vec::new();
                one.sealer.write(&mut wire, kind, &text).unwrap();
                let begin = &text[..length.min(100)];
                let is_seen = wire.windows(100).any(|bytes| bytes == begin);
                assert_eq!(is_seen, length >= 100 && !secret.is_given());
                let read = two.opener.read(&mut &wire[..], length, &mut message);
                assert_eq!(read.unwrap(), kind);
                assert!(message == text);
                let wire = sealed(&mut two.sealer, &text);
                assert_eq!(one.opener.read(&mut &wire[..], length, &mut message).unwrap(), 7);
                assert!(message == text);
            }
            let wire = sealed(&mut one.sealer, b"four");
            let error = two.opener.read(&mut &wire[..], 3, &mut message).unwrap_err();
            assert_eq!(error.to_string(), "a message has 4 bytes, the longest may have 3");
        }
    }

    #[test]
    fn nothing_is_taken_twice_or_out_of_its_place() {
        for secret in secrets() {
            for again in [true, false] {
                let [mut one, mut two] = pair(&secret);
                let [first, _, third] =
                    [b"1", b"2", b"3"].map(|text| sealed(&mut one.sealer, text));
                two.opener.read(&mut &first[..], 10, &mut Vec::new()).unwrap();
                let next = if again { first } else { third };
                let error = two.opener.read(&mut &next[..], 10, &mut Vec::new()).unwrap_err();
                assert!(error.to_string().starts_with("part 2 is not what was sent"), "{error}");
            }
        }
        // Nor on another line, nor the other way.
        let [_, known] = secrets();
        let [mut one, _] = pair(&known);
        let [_, mut other] = pair(&known);
        let wire = sealed(&mut one.sealer, b"go");
        for opener in [&mut other.opener, &mut one.opener] {
            opener.read(&mut &wire[..], 10, &mut Vec::new()).unwrap_err();
        }
    }

    #[test]
    fn who_does_not_know_the_secret_says_nothing() {
        let [none, known] = secrets();
        let other = secret("0123456789abcdeF");
        for (one, two) in [(&known, &other), (&known, &none), (&none, &known)] {
            assert!(ends(one, two, [b"hello"; 2]).is_none());
        }
        // A greeting that was changed on the way.
        for secret in [none, known] {
            assert!(ends(&secret, &secret, [b"hello", b"Hello"]).is_none());
        }
    }

    #[test]
    fn a_secret_has_to_be_there_and_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (bytes, is_read) in [(16, true), (1 << 20, true), ((1 << 20) + 1, false)] {
            fs::write(&path, vec![b'x'; bytes]).unwrap();
            assert_eq!(Secret::read(&path).is_ok(), is_read, "{bytes}");
        }
        for place in [folder.path(), Path::new("/dev/zero"), &path] {
            let error = crate::shown::chain(&Secret::read(place).unwrap_err());
            assert!(error.contains("a secret is a plain file of at most 1 MiB"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = Secret::read(&path).unwrap_err();
        assert!(matches!(error, ClusterError::SecretFile { .. }));
        fs::write(&path, "0123456789abcde").unwrap();
        let error = Secret::read(&path).unwrap_err().to_string();
        assert!(error.contains("expected 16 bytes or more, found 15"), "{error}");
    }

    proptest! {
        #[test]
        fn law_no_changed_bit_is_taken(
            text in prop::collection::vec(any::<u8>(), 0..100),
            flip in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            // Handshakes take longest.
            static LINES: LazyLock<[[SealedLine; 2]; 2]> = LazyLock::new(|| secrets().map(|s| pair(&s)));
            for [one, two] in &*LINES {
                let seal = Seal(one.sealer.seal.0.clone());
                let mut bytes = sealed(&mut Sealer { seal, next: 0, sealed: Vec::new() }, &text);
                let at = flip.index(bytes.len());
                bytes[at] ^= 1 << bit;
                let seal = Seal(two.opener.seal.0.clone());
                let mut opener = Opener { seal, next: 0, sealed: Vec::new() };
                let read = opener.read(&mut &bytes[..], 1 << 20, &mut Vec::new());
                prop_assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
            }
        }
    }
}
