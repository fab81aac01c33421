//! Decodes the bytes of a file to the stream that its documents stand in.

#[cfg(feature = "formats")]
mod bzip2;
pub(crate) mod gzip;
#[cfg(feature = "formats")]
mod xz;
#[cfg(feature = "formats")]
mod zstd;

use self::gzip::Gzip;
use crate::input::Compression;
use std::{fmt, io};

/// What is wrong with a compressed stream. What was decoded before is good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    CutShort,
    Damaged {
        /// What they should have been.
        what: String,
    },
    /// A frame needs more memory than is allowed now; it is sound.
    Window {
        bytes: u64,
    },
    /// Behind the last member of gzip.
    Garbage,
    /// The library was compiled without the feature `formats`.
    LeftOut,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort => f.write_str("the compressed stream is cut short"),
            Self::Damaged { what } => write!(f, "damaged {what}"),
            Self::Window { bytes } => write!(f, "this needs a window of {bytes} bytes"),
            Self::LeftOut => f.write_str(
                "this is compressed by zstd, bzip2 or xz, which is read with the feature `formats` of millrace",
            ),
            Self::Garbage => f.write_str("bytes after the last gzip member are not gzip"),
        }
    }
}

impl From<DecodeError> for io::Error {
    fn from(error: DecodeError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error.to_string())
    }
}

/// The bytes of some input that are done with.
pub(crate) type TakenBytes = Result<usize, DecodeError>;

/// Where decoded bytes go: the first of some bytes, in the order in which they come.
#[derive(Debug)]
pub struct Output<'a> {
    bytes: &'a mut [u8],
    made: usize,
}

impl<'a> Output<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, made: 0 }
    }

    pub fn made(&self) -> &[u8] {
        &self.bytes[..self.made]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.made == self.bytes.len()
    }

    /// The room that is left, to be written before [`advance`](Self::advance).
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.made..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.made += bytes;
    }
}

/// The largest window of a stream that is read, as a power of two: 128 MiB, as `zstd --long=27`
/// writes and the tool of zstd itself reads without being asked.
pub(crate) const MOST_WINDOW_LOG: u32 = 27;

/// A decoder of one kind of compression.
pub(crate) trait Decode: Send {
    /// Takes windows of this many bytes, which were [asked for](DecodeError::Window).
    fn allow(&mut self, _bytes: u64) {}

    /// As [`Decoder::decode`].
    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes;

    /// Is told that the input ends.
    fn finish(&mut self) -> Result<(), DecodeError>;
}

struct Plain;

impl Decode for Plain {
    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
        let n = input.len().min(out.rest().len());
        out.rest()[..n].copy_from_slice(&input[..n]);
        out.advance(n);
        Ok(n)
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Decompresses one file, of any number of members, frames or streams, as its blocks come in.
pub struct Decoder(Box<dyn Decode>);

impl Decoder {
    /// A decoder that begins no window of more than 2^`window_log` bytes unless it is allowed.
    ///
    /// # Errors
    /// When a library has no memory for it, or this one was compiled without it.
    #[cfg_attr(not(feature = "formats"), allow(unused_variables))]
    pub fn new(compression: Compression, window_log: u32) -> Result<Self, DecodeError> {
        Ok(Self(match compression {
            Compression::None => Box::new(Plain),
            Compression::Gzip => Box::new(Gzip::default()),
            #[cfg(feature = "formats")]
            Compression::Zstd => Box::new(zstd::Zstd::new(window_log)?),
            #[cfg(feature = "formats")]
            Compression::Bzip2 => Box::new(bzip2::Bzip2::default()),
            #[cfg(feature = "formats")]
            Compression::Xz => Box::new(xz::Xz::new(window_log)?),
            #[cfg(not(feature = "formats"))]
            _ => return Err(DecodeError::LeftOut),
        }))
    }

    pub(crate) fn allow_window(&mut self, bytes: u64) {
        self.0.allow(bytes);
    }

    /// Decodes from `input` to `out`, as far as that has room. Returns the bytes of `input` that
    /// are done with; the rest is to be given again.
    ///
    /// # Errors
    /// Damage; `out` has what stood before it. `Window` before anything is done; the same input may
    /// be given again when the window is allowed.
    pub fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<usize, DecodeError> {
        self.0.decode(input, out)
    }

    /// Is told that the input ends.
    pub(crate) fn finish(&mut self) -> Result<(), DecodeError> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use std::io::Write;

    fn gzip(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let mut e = flate2::GzBuilder::new()
                .filename(vec![b'n'; i % 7])
                .extra(vec![7; i * 3])
                .write(&mut file, flate2::Compression::fast());
            e.write_all(part).unwrap();
            e.finish().unwrap();
        }
        file
    }

    fn bzip2(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        for part in parts {
            let mut e = ::bzip2::write::BzEncoder::new(&mut file, ::bzip2::Compression::fast());
            e.write_all(part).unwrap();
            e.finish().unwrap();
        }
        file
    }

    fn xz(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        for part in parts {
            let mut e = liblzma::write::XzEncoder::new(&mut file, 0);
            e.write_all(part).unwrap();
            e.finish().unwrap();
        }
        file
    }

    fn zstd(parts: &[Vec<u8>]) -> Vec<u8> {
        parts.iter().flat_map(|p| ::zstd::encode_all(&p[..], 1).unwrap()).collect()
    }

    /// Decodes in blocks of `block` bytes into buffers of `room` bytes.
    fn decode(
        compression: Compression,
        file: &[u8],
        block: usize,
        room: usize,
    ) -> (Vec<u8>, Result<(), DecodeError>) {
        let mut decoder = Decoder::new(compression, 23).unwrap();
        let mut all = Vec::new();
        for block in file.chunks(block) {
            let mut at = 0;
            while at < block.len() {
                let mut bytes = vec![0; room];
                let mut out = Output::new(&mut bytes);
                let result = decoder.decode(&block[at..], &mut out);
                all.extend_from_slice(out.made());
                match result {
                    Ok(n) => at += n,
                    Err(e) => return (all, Err(e)),
                }
            }
        }
        // What a decoder still holds comes out with an empty input.
        loop {
            let mut bytes = vec![0; room];
            let mut out = Output::new(&mut bytes);
            // Damage, too, may show only there.
            let result = decoder.decode(&[], &mut out);
            all.extend_from_slice(out.made());
            if let Err(e) = result {
                return (all, Err(e));
            }
            if out.made().is_empty() {
                return (all, decoder.finish());
            }
        }
    }

    #[test]
    fn zero_padding_is_ignored_and_garbage_is_named() {
        let mut file = gzip(&[b"abc".to_vec(), b"def".to_vec()]);
        file.extend_from_slice(&[0; 40]);
        assert_eq!(decode(Compression::Gzip, &file, 16, 100), (b"abcdef".to_vec(), Ok(())));
        file.push(1);
        let (got, error) = decode(Compression::Gzip, &file, 1000, 100);
        assert_eq!(got, b"abcdef");
        assert_eq!(error, Err(DecodeError::Garbage));
    }

    #[test]
    fn a_wrong_checksum_is_damage() {
        let mut file = gzip(&[b"abc".to_vec()]);
        let at = file.len() - 6;
        file[at] ^= 1;
        let (got, error) = decode(Compression::Gzip, &file, 1000, 100);
        assert_eq!(got, b"abc");
        assert!(matches!(error, Err(DecodeError::Damaged { .. })), "{error:?}");
    }

    #[test]
    fn an_empty_gzip_file_is_cut_short() {
        assert_eq!(decode(Compression::Gzip, b"", 10, 10).1, Err(DecodeError::CutShort));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/decoder.txt")
        ))]

        #[test]
        fn law_any_blocks_give_the_same_bytes(
            parts in prop::collection::vec(prop::collection::vec(0u8..4, 0..2000), 1..5),
            block in 1usize..300, room in 1usize..300,
        ) {
            let whole = parts.concat();
            for (compression, file) in [
                (Compression::None, whole.clone()),
                (Compression::Gzip, gzip(&parts)),
                (Compression::Zstd, zstd(&parts)),
                (Compression::Bzip2, bzip2(&parts)),
                (Compression::Xz, xz(&parts)),
            ] {
                prop_assert_eq!(decode(compression, &file, block, room), (whole.clone(), Ok(())));
            }
        }

        #[test]
        fn law_a_cut_keeps_what_stood_before(part in prop::collection::vec(any::<u8>(), 1..2000), cut in any::<prop::sample::Index>()) {
            for (compression, file) in [
                (Compression::Gzip, gzip(std::slice::from_ref(&part))),
                (Compression::Bzip2, bzip2(std::slice::from_ref(&part))),
                (Compression::Xz, xz(std::slice::from_ref(&part))),
            ] {
                let cut = cut.index(file.len());
                let (got, end) = decode(compression, &file[..cut], 100, 100);
                prop_assert!(part.starts_with(&got));
                prop_assert_eq!(end, Err(DecodeError::CutShort));
            }
        }

        /// A member that comes byte by byte is inflated step by step, one that comes at once as a
        /// whole if it is good. What an inflater says of damage depends on how far it looks ahead.
        #[test]
        fn law_damage_is_found_on_either_way(
            parts in prop::collection::vec(prop::collection::vec(0u8..9, 0..500), 1..4),
            flip in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let mut file = gzip(&parts);
            let at = flip.index(file.len());
            file[at] ^= 1 << bit;
            let (bytes, at_once) = decode(Compression::Gzip, &file, file.len(), 1 << 16);
            let (by_bytes, step_by_step) = decode(Compression::Gzip, &file, 1, 1 << 16);
            prop_assert_eq!(at_once.is_ok(), step_by_step.is_ok());
            if at_once.is_ok() {
                prop_assert_eq!(bytes, by_bytes);
            }
        }

        #[test]
        fn law_damage_never_panics(part in prop::collection::vec(0u8..9, 0..500), flip in any::<prop::sample::Index>(), bit in 0u8..8) {
            for (compression, mut file) in [
                (Compression::Gzip, gzip(std::slice::from_ref(&part))),
                (Compression::Zstd, zstd(std::slice::from_ref(&part))),
                (Compression::Bzip2, bzip2(std::slice::from_ref(&part))),
                (Compression::Xz, xz(std::slice::from_ref(&part))),
            ] {
                let at = flip.index(file.len());
                file[at] ^= 1 << bit;
                let _ = decode(compression, &file, 50, 64);
            }
        }
    }
}
