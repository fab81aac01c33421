//! Reads a file that may be compressed as a plain stream.
//!
//! For files that are read whole on one thread, such as judgements, runs and topics. Collections go
//! through the operators of the dataflow instead, which read and decompress side by side.

use super::decoder::{Decoder, Output};
use super::encoded::{TextDecoder, TextEncoding, Transcoder};
use crate::input::Compression;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const BLOCK_BYTES: usize = 256 << 10;
/// Windows of Zstandard up to 2 to this power are read, as in collections.
const WINDOW_LOG: u32 = 27;

/// A file's bytes, decompressed as its first bytes say. Each read gives what is there: nothing
/// waits for bytes that a pipe does not have yet, except the rest of a mark that has begun.
pub struct Unpacked {
    file: Box<dyn Read + Send>,
    /// `None` before the first bytes were read.
    decoder: Option<TextDecoder>,
    /// That of the stream, if it is known.
    encoding: Option<TextEncoding>,
    /// What was read and not yet decoded: `block[at..filled]`.
    block: Vec<u8>,
    at: usize,
    filled: usize,
    /// What was decoded and not yet given out: `out[given..made]`.
    out: Vec<u8>,
    given: usize,
    made: usize,
    ended: bool,
}

impl Unpacked {
    /// `-` is standard input; a folder is an error.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == crate::input::splits::STDIN {
            return Self::new(Box::new(io::stdin()));
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder"));
        }
        Self::new(Box::new(file))
    }

    /// As [`open`](Self::open), in UTF-8 from an encoding.
    pub(crate) fn decoded(path: &Path, encoding: TextEncoding) -> io::Result<Self> {
        Ok(Self { encoding: Some(encoding), ..Self::open(path)? })
    }

    /// The first bytes of the stream will tell how it is compressed.
    pub fn new(file: Box<dyn Read + Send>) -> io::Result<Self> {
        let block = vec![0; BLOCK_BYTES];
        let out = vec![0; BLOCK_BYTES];
        Ok(Self {
            file,
            decoder: None,
            encoding: None,
            block,
            at: 0,
            filled: 0,
            out,
            given: 0,
            made: 0,
            ended: false,
        })
    }

    /// Reads once, behind what was not yet decoded.
    fn read_more(&mut self) -> io::Result<()> {
        let bytes = loop {
            match self.file.read(&mut self.block[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.filled += bytes;
        self.ended = bytes == 0;
        Ok(())
    }

    /// Decodes until there is something to give out, or nothing is left.
    fn fill(&mut self) -> io::Result<()> {
        self.given = 0;
        self.made = 0;
        while self.decoder.is_none() {
            if !self.ended && Compression::may_begin(&self.block[..self.filled]) {
                self.read_more()?;
                continue;
            }
            let compression = Compression::by_content(&self.block[..self.filled]);
            let decoder = Decoder::new(compression, WINDOW_LOG).map_err(io::Error::other)?;
            let decoder = self.decoder.insert(TextDecoder::new(decoder, None));
            if let Some(encoding) = self.encoding {
                decoder.transcode(Transcoder::new(Some(encoding)));
            }
        }
        while let Some(decoder) = &mut self.decoder {
            let mut out = Output::new(&mut self.out);
            let taken = decoder.decode(&self.block[self.at..self.filled], &mut out);
            self.made = out.made().len();
            self.at += taken.map_err(damaged)?;
            if self.made > 0 {
                return Ok(());
            }
            if decoder.holds_more() || self.ended && decoder.ends() {
                continue;
            }
            if self.ended {
                return decoder.finish().map_err(damaged);
            }
            if self.at == self.filled {
                self.at = 0;
                self.filled = 0;
                self.read_more()?;
            }
        }
        Ok(())
    }
}

fn damaged(error: super::decoder::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.given == self.made {
            self.fill()?;
        }
        let n = into.len().min(self.made - self.given);
        into[..n].copy_from_slice(&self.out[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        Unpacked::new(Box::new(io::Cursor::new(bytes)))?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn every_compression_gives_the_same_bytes() {
        for len in [0, 1, 7, 100, 700_000] {
            let bytes: Vec<u8> = (0..len).map(|i: u32| (i.wrapping_mul(i) >> 7) as u8).collect();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&bytes).unwrap();
            assert_eq!(read(bytes.clone()).unwrap(), bytes);
            assert_eq!(read(gzip.finish().unwrap()).unwrap(), bytes);
            assert_eq!(read(zstd::encode_all(&bytes[..], 1).unwrap()).unwrap(), bytes);
        }
    }

    #[test]
    fn a_stream_that_is_cut_short_is_an_error() {
        let whole = zstd::encode_all(&[b'x'; 1000][..], 1).unwrap();
        let error = read(whole[..whole.len() - 2].to_vec()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
