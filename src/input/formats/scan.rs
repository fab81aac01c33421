//! Finds where a JSON string ends, and what it is without its escapes.
//!
//! [`Scan`] has two ways to answer, chosen once from what the processor can do: AVX-512 (with
//! VBMI2) and one for every machine. They give the same answers; `benches/input.rs` of the
//! experiments measures them. A string ends at a quote that is not escaped. A line feed ends it
//! too, because it ends the record; the caller sees which of the two it was.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::buffers::TextBuffer;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{Level, level};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    Portable,
    /// 64 bytes a register, escapes translated and squeezed out in the register. Only
    /// [`Scan::all`] makes it.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Work that scans strings, which is compiled for each way of scanning.
pub(crate) trait Scanning {
    type Outcome;

    fn run(self, scan: Scan) -> Self::Outcome;
}

impl Scan {
    /// Does work with the instructions of this way, so that no short string costs a call.
    pub(crate) fn run<W: Scanning>(self, work: W) -> W::Outcome {
        match self {
            Scan::Portable => work.run(Scan::Portable),
            // SAFETY: `Scan::all` alone makes this variant, where the processor has what it needs.
            #[cfg(target_arch = "x86_64")]
            Scan::Avx512 => unsafe { x86::run_avx512(work) },
        }
    }

    pub(crate) fn best() -> Self {
        Scan::all().last().unwrap_or(Scan::Portable)
    }

    /// The fastest last.
    pub(crate) fn all() -> impl Iterator<Item = Scan> {
        #[cfg(target_arch = "x86_64")]
        let all = [Some(Scan::Portable), (level() == Level::Avx512).then_some(Scan::Avx512)];
        #[cfg(not(target_arch = "x86_64"))]
        let all = [Some(Scan::Portable)];
        all.into_iter().flatten()
    }

    /// Finds the first quote, backslash or line feed in `bytes` from `at` on; without one, the end.
    #[inline]
    pub(crate) fn find(self, bytes: &[u8], at: usize) -> usize {
        match self {
            Scan::Portable => find_portable(bytes, at),
            // SAFETY: `Scan::all` alone makes this variant, where the processor has what it needs.
            #[cfg(target_arch = "x86_64")]
            Scan::Avx512 => unsafe { x86::find_avx512(bytes, at) },
        }
    }

    /// Appends to `out` what the string's bytes from `at` on stand for, up to the first place where
    /// a quote, a line feed, the end of `bytes`, or a backslash that it leaves to the caller
    /// stands, and returns that place. `at` must not be inside of an escape.
    ///
    /// Which backslashes are left to the caller depends on the way of scanning; those of `\u` and
    /// of bad escapes always are.
    #[inline]
    pub(crate) fn copy(self, bytes: &[u8], at: usize, out: &mut TextBuffer) -> usize {
        match self {
            Scan::Portable => copy_portable(bytes, at, out),
            // SAFETY: `Scan::all` alone makes this variant, where the processor has what it needs.
            #[cfg(target_arch = "x86_64")]
            Scan::Avx512 => unsafe { x86::copy_avx512(bytes, at, out) },
        }
    }
}

/// What the byte behind a backslash stands for; 0 if that is not one byte, or not an escape.
pub(crate) const fn simple_escape(byte: u8) -> u8 {
    match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => 0,
    }
}

pub(crate) fn find_portable(bytes: &[u8], at: usize) -> usize {
    match memchr::memchr3(b'"', b'\\', b'\n', &bytes[at..]) {
        Some(found) => at + found,
        None => bytes.len(),
    }
}

pub(crate) fn copy_portable(bytes: &[u8], at: usize, out: &mut TextBuffer) -> usize {
    let stop = find_portable(bytes, at);
    out.extend([&bytes[at..stop]]);
    stop
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The plainest form of `copy`, which handles all escapes of one byte.
    fn plain_copy(bytes: &[u8], mut at: usize) -> (usize, Vec<u8>) {
        let mut out = Vec::new();
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1).map_or(0, |b| simple_escape(*b))) {
                (b'"' | b'\n', _) | (b'\\', 0) => break,
                (b'\\', byte) => {
                    out.push(byte);
                    at += 2;
                }
                (byte, _) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
        (at, out)
    }

    /// `copy`, with the simple escapes that it leaves handled as its caller does.
    fn full_copy(scan: Scan, bytes: &[u8], mut at: usize) -> (usize, Vec<u8>) {
        let mut out = TextBuffer::default();
        loop {
            at = scan.copy(bytes, at, &mut out);
            let simple = bytes.get(at + 1).map_or(0, |b| simple_escape(*b));
            if bytes.get(at) != Some(&b'\\') || simple == 0 {
                return (at, out.to_vec());
            }
            out.extend([&[simple]]);
            at += 2;
        }
    }

    /// Bytes with backslashes as dense as `choice` says.
    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let letter = prop_oneof![
            30 => Just(b'a'), 4 => Just(b'\\'), 1 => Just(b'n'), 1 => any::<u8>(),
        ];
        let escape = prop_oneof![
            4 => Just(&b"\\n"[..]), 1 => Just(&b"\\\""[..]), 3 => Just(&b"\\\\"[..]),
            1 => Just(&b"\\\xee"[..]), 1 => Just(&b"\\u00e9"[..]), 9 => Just(&b"plain text"[..]),
            3 => Just(&b"x"[..]),
        ];
        prop_oneof![
            proptest::collection::vec(letter, 0..300),
            proptest::collection::vec(escape, 0..80).prop_map(|parts| parts.concat()),
        ]
    }

    proptest! {
        #[test]
        fn law_every_way_copies_alike(bytes in texts(), skip in 0usize..70) {
            let at = skip.min(bytes.len());
            let expected = plain_copy(&bytes, at);
            for scan in Scan::all() {
                prop_assert_eq!(&full_copy(scan, &bytes, at), &expected, "{:?}", scan);
            }
        }

        #[test]
        fn law_every_way_finds_alike(bytes in texts(), skip in 0usize..70) {
            let at = skip.min(bytes.len());
            let first = bytes[at..].iter().position(|b| b"\"\\\n".contains(b));
            for scan in Scan::all() {
                prop_assert_eq!(scan.find(&bytes, at), first.map_or(bytes.len(), |f| at + f));
            }
        }
    }

    #[test]
    fn escapes_may_cross_every_border_of_a_step() {
        for before in 0..200 {
            for tail in ["\\\\\\\"x\"", "\\n\\u0041", "\\", "\\x", "\\\n", "\"", ""] {
                for after in [0, 200] {
                    let text = ["a".repeat(before), tail.into(), "b".repeat(after)].concat();
                    let expected = plain_copy(text.as_bytes(), 0);
                    for scan in Scan::all() {
                        assert_eq!(
                            full_copy(scan, text.as_bytes(), 0),
                            expected,
                            "{scan:?} {text}"
                        );
                    }
                }
            }
        }
    }
}
