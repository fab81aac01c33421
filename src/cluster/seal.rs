//! Seals of messages on lines, so that each arrives whole, once, unchanged and in order.
//!
//! ```text
//! u32 bytes of the message | u64 its number on this line, from 0 | 16 bytes tag |
//! u32 CRC-32 of this head
//! the message
//! ```
//!
//! All numbers are in network order. The head has a checksum of its own, so that a damaged length
//! is found before anybody waits for bytes that never come. Without a secret the tag is a checksum
//! (XXH3, 128 bits, seeded with the number), which finds damage. With one it is a keyed hash (the
//! first 16 bytes of BLAKE3's, O'Connor et al., *BLAKE3*, 2020, section 2.3) of number and message,
//! under a key derived for this line and direction from the secret and both greetings with their
//! nonces: who does not know the secret can neither make a message, nor change, repeat, leave out
//! or move one.

use super::ClusterError;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use twox_hash::XxHash3_128;

pub(super) const HEAD_BYTES: usize = 4 + 8 + TAG_BYTES + 4;
const TAG_BYTES: usize = 16;
pub(super) const GREETING_TAG_BYTES: usize = blake3::OUT_LEN;
/// A shorter secret could be guessed.
const LEAST_SECRET_BYTES: usize = 16;
const MOST_SECRET_BYTES: u64 = 1 << 20;

/// What all processes of a job know, and nobody else; or nothing.
#[derive(Clone)]
pub struct Secret(Option<[u8; blake3::KEY_LEN]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_given() { "Secret(given)" } else { "Secret(none)" })
    }
}

#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Call = 1,
    Answer = 2,
    Confirm = 3,
    /// The key of what the caller sends.
    FromCaller = 4,
    /// The key of what the other sends.
    FromAnswerer = 5,
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

    /// A checksum if there is no secret.
    pub(super) fn tag(&self, purpose: Purpose, greetings: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.unwrap_or_default());
        hasher.update(&[purpose as u8]);
        for greeting in greetings {
            hasher.update(&(greeting.len() as u64).to_be_bytes());
            hasher.update(greeting);
        }
        hasher.finalize()
    }

    /// Compares in constant time.
    pub(super) fn verify(
        &self,
        purpose: Purpose,
        greetings: &[&[u8]],
        tag: [u8; GREETING_TAG_BYTES],
    ) -> bool {
        self.tag(purpose, greetings) == blake3::Hash::from_bytes(tag)
    }

    /// The two ends of a line for the process that was called, or that called.
    pub(crate) fn ends(&self, called: bool, greetings: [&[u8]; 2]) -> (Sealer, Opener) {
        let key = |purpose| SealKey(self.0.map(|_| *self.tag(purpose, &greetings).as_bytes()));
        let caller = key(Purpose::FromCaller);
        let answerer = key(Purpose::FromAnswerer);
        let (out, back) = if called { (answerer, caller) } else { (caller, answerer) };
        (Sealer { key: out, next: 0 }, Opener { key: back, next: 0 })
    }
}

#[derive(Clone)]
struct SealKey(Option<[u8; blake3::KEY_LEN]>);

impl SealKey {
    fn tag(&self, number: u64, message: &[u8]) -> [u8; TAG_BYTES] {
        match &self.0 {
            None => XxHash3_128::oneshot_with_seed(number, message).to_be_bytes(),
            Some(key) => {
                let mut hasher = blake3::Hasher::new_keyed(key);
                hasher.update(&number.to_be_bytes()).update(message);
                let mut tag = [0; TAG_BYTES];
                tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
                tag
            }
        }
    }

    /// Compares in constant time.
    fn verify(&self, number: u64, message: &[u8], tag: [u8; TAG_BYTES]) -> bool {
        let right = self.tag(number, message);
        right.iter().zip(tag).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

fn damaged(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

pub(crate) struct Sealer {
    key: SealKey,
    next: u64,
}

impl Sealer {
    pub(crate) fn head(&mut self, message: &[u8]) -> [u8; HEAD_BYTES] {
        let bytes = u32::try_from(message.len()).expect("messages are below 4 GiB");
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&bytes.to_be_bytes());
        head[4..12].copy_from_slice(&self.next.to_be_bytes());
        head[12..28].copy_from_slice(&self.key.tag(self.next, message));
        let crc = crc32fast::hash(&head[..28]);
        head[28..].copy_from_slice(&crc.to_be_bytes());
        self.next += 1;
        head
    }
}

pub(crate) struct Opener {
    key: SealKey,
    next: u64,
}

impl Opener {
    /// Reads the next message, of less than `most` bytes.
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
        most: u32,
        message: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        let begun = loop {
            match stream.read(&mut head) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(begun) => break begun,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let number = self.next;
        let amid = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                damaged(format!("message {number} stops before its end"))
            }
            _ => error,
        };
        stream.read_exact(&mut head[begun..]).map_err(amid)?;
        let ([a, b, c, d], rest) = head.split_first_chunk().expect("a head is long enough");
        let bytes = u32::from_be_bytes([*a, *b, *c, *d]);
        let (found, rest) = rest.split_first_chunk().expect("a head is long enough");
        let found = u64::from_be_bytes(*found);
        let (tag, crc) = rest.split_first_chunk::<TAG_BYTES>().expect("a head is long enough");
        if crc != crc32fast::hash(&head[..HEAD_BYTES - 4]).to_be_bytes() {
            return Err(damaged(format!("the header of message {number} is damaged")));
        }
        if found != number {
            // One is missing, came twice, or came too early.
            return Err(damaged(format!("expected message {number}, found message {found}")));
        }
        if bytes >= most {
            let what = format!("message {number} has {bytes} bytes, the longest may have {most}");
            return Err(damaged(what));
        }
        message.clear();
        // The buffer grows with what comes.
        if stream.take(bytes.into()).read_to_end(message).map_err(amid)? < bytes as usize {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if !self.key.verify(number, message, *tag) {
            return Err(damaged(format!(
                "message {number} is damaged, or not of a process that knows the secret"
            )));
        }
        self.next += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret(text: &str) -> Secret {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, text).unwrap();
        Secret::read(&path).unwrap()
    }

    fn secrets() -> [Secret; 2] {
        [Secret::none(), secret("0123456789abcdef")]
    }

    const GREETINGS: [&[u8]; 2] = [b"one", b"two"];

    fn sealed(sealer: &mut Sealer, message: &[u8]) -> Vec<u8> {
        [&sealer.head(message)[..], message].concat()
    }

    #[test]
    fn messages_arrive_in_order() {
        for secret in secrets() {
            let (mut out, mut back) = secret.ends(false, GREETINGS);
            let (mut answers, mut opener) = secret.ends(true, GREETINGS);
            let mut message = Vec::new();
            for text in [&b"go"[..], b"", &[7; 100_000]] {
                let bytes = sealed(&mut out, text);
                opener.read(&mut &bytes[..], 1 << 20, &mut message).unwrap();
                assert_eq!(message, text);
                let bytes = sealed(&mut answers, text);
                back.read(&mut &bytes[..], 1 << 20, &mut message).unwrap();
                assert_eq!(message, text);
            }
            // Repeated, then with one missing.
            let first = sealed(&mut out, b"1");
            opener.read(&mut &first[..], 10, &mut message).unwrap();
            let error = opener.read(&mut &first[..], 10, &mut message).unwrap_err();
            assert_eq!(error.to_string(), "expected message 4, found message 3");
            sealed(&mut out, b"2");
            let third = sealed(&mut out, b"3");
            let error = opener.read(&mut &third[..], 10, &mut message).unwrap_err();
            assert_eq!(error.to_string(), "expected message 4, found message 5");
        }
    }

    #[test]
    fn who_does_not_know_the_secret_says_nothing() {
        let [none, known] = secrets();
        let other = secret("0123456789abcdeF");
        for (one, two) in [(&known, &other), (&known, &none), (&none, &known)] {
            let (mut out, _) = one.ends(false, GREETINGS);
            let (_, mut opener) = two.ends(true, GREETINGS);
            let bytes = sealed(&mut out, b"go");
            let error = opener.read(&mut &bytes[..], 10, &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains("knows the secret"), "{error}");
            let tag = *one.tag(Purpose::Call, &GREETINGS).as_bytes();
            assert!(!two.verify(Purpose::Call, &GREETINGS, tag));
            assert!(one.verify(Purpose::Call, &GREETINGS, tag));
        }
        // Nothing can be repeated on another line or the other way.
        let (mut out, _) = known.ends(false, GREETINGS);
        let bytes = sealed(&mut out, b"go");
        for (called, greetings) in [(true, [&b"one"[..], b"another"]), (false, GREETINGS)] {
            let (_, mut opener) = known.ends(called, greetings);
            opener.read(&mut &bytes[..], 10, &mut Vec::new()).unwrap_err();
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
            for secret in secrets() {
                let (mut out, _) = secret.ends(false, GREETINGS);
                let (_, mut opener) = secret.ends(true, GREETINGS);
                let mut bytes = sealed(&mut out, &text);
                let at = flip.index(bytes.len());
                bytes[at] ^= 1 << bit;
                let error = opener.read(&mut &bytes[..], 1 << 20, &mut Vec::new()).unwrap_err();
                prop_assert_eq!(error.kind(), ErrorKind::InvalidData);
            }
        }
    }
}
