//! Compresses the bytes of a block as whole gzip members or as whole frames of Zstandard. Each
//! stands on its own, so that any thread may compress blocks, and a file is blocks end to end.

#![forbid(unsafe_code)]

use crate::collection::Compression;
use flate2::{Compress, FlushCompress, Status};
use std::io;

/// The head of a gzip member: deflate, no name, no time, no system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Compresses, and keeps what can be used again.
pub(super) enum Compressor {
    None,
    Gzip(Compress),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Gzip(level) => {
                Self::Gzip(Compress::new(flate2::Compression::new(level), false))
            }
            Compression::Zstd(level) => {
                let mut compressor = zstd::bulk::Compressor::new(level)?;
                compressor.include_checksum(true)?;
                Self::Zstd(compressor)
            }
        })
    }

    /// Appends `bytes` to `out` as one member or frame.
    pub(super) fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::None => out.extend_from_slice(bytes),
            Self::Gzip(deflate) => {
                deflate.reset();
                out.extend_from_slice(&GZIP_HEAD);
                let mut read = 0;
                loop {
                    out.reserve((bytes.len() - read) / 2 + 1024);
                    let status =
                        deflate.compress_vec(&bytes[read..], out, FlushCompress::Finish)?;
                    read = deflate.total_in() as usize;
                    if status == Status::StreamEnd {
                        break;
                    }
                }
                out.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
                // The length modulo 2^32, as the format has it.
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            }
            Self::Zstd(compressor) => {
                let start = out.len();
                out.resize(start + zstd::zstd_safe::compress_bound(bytes.len()), 0);
                let written = compressor.compress_to_buffer(bytes, &mut out[start..])?;
                out.truncate(start + written);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn both() -> Vec<u8> {
        let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8 & 15).collect();
        [&b"first"[..], b"", &text].concat()
    }

    fn appended(compression: Compression) -> Vec<u8> {
        let mut compressor = Compressor::new(compression).unwrap();
        let mut out = Vec::new();
        let both = both();
        for part in [&both[..5], &[], &both[5..]] {
            compressor.append(part, &mut out).unwrap();
        }
        out
    }

    #[test]
    fn members_decompress_to_what_they_were() {
        assert_eq!(appended(Compression::None), both());
        for level in [0, 1, 6, 9] {
            let mut found = Vec::new();
            let compressed = appended(Compression::Gzip(level));
            flate2::read::MultiGzDecoder::new(&compressed[..]).read_to_end(&mut found).unwrap();
            assert!(found == both(), "level {level}");
        }
        for level in [1, 3, 12] {
            let found = zstd::decode_all(&appended(Compression::Zstd(level))[..]).unwrap();
            assert!(found == both(), "level {level}");
        }
    }
}
