//! Undoes the codings of the body of an HTTP response: chunks, gzip, deflate, br, zstd.
//!
//! Crawlers undo codings and keep the fields that name them, or the other way round. So a coding is
//! undone only if the bytes look like it, gzip and zstd even if no field names them; a body that
//! does not look like its coding is taken as it is. One that was packed twice is unpacked twice.
//! What comes out before damage is good; a body that is compressed beyond doubt, and of which
//! nothing comes out, is no text and is refused.
//!
//! The decoders of gzip and deflate, and all buffers, are used again; br and zstd, which crawlers
//! hardly ask for, make decoders of their own.

use super::http::Response;
use crate::input::Compression;
use crate::input::formats::KEPT_BUFFER_BYTES;
use crate::input::streams::decoder::gzip::Gzip;
use crate::input::streams::decoder::{Decode, DecodeError, Decoder, Output, TakenBytes};
use crate::input::turns::Turn;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

/// A decoded body grows by this many bytes at least.
const STEP_BYTES: usize = 64 << 10;

/// The largest window of a zstd body; RFC 9659 allows no more.
const ZSTD_WINDOW_LOG: u32 = 23;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// Decoded, it has more bytes than are taken.
    TooLong,
    /// It has this many bytes, more than are held.
    TooLarge { bytes: u64 },
    /// It is compressed, and nothing can be inflated.
    NotInflated { coding: &'static str },
}

pub(crate) struct BodyDecoder {
    pub(super) most: u64,
    /// Bytes of a body that are held; the others are only counted.
    longest: u64,
    /// Room for what long bodies become.
    pub(super) turn: Turn,
    joined: Vec<u8>,
    decoded: Vec<u8>,
    gzip: Gzip,
    inflate: Decompress,
}

impl BodyDecoder {
    pub(crate) fn new(most: u64, turn: Turn) -> Self {
        let longest = turn.longest().min(most);
        let inflate = Decompress::new(true);
        let (joined, decoded, gzip) = Default::default();
        Self { most, longest, turn, joined, decoded, gzip, inflate }
    }

    pub(crate) fn decode<'a>(&'a mut self, response: &Response<'a>) -> Result<&'a [u8], BodyError> {
        // The last coding that is named was done last.
        let mut names = response.content_encoding.rsplit(|&byte| byte == b',');
        let mut next = || names.next().unwrap_or_default().trim_ascii();
        let mut packed = std::mem::take(&mut self.joined);
        let is_joined = response.is_chunked() && join_chunks(response.body, &mut packed);
        let body = if is_joined { &packed[..] } else { response.body };
        let undone = self.undo(body, next());
        self.joined = packed;
        if !undone? {
            return Ok(if is_joined { &self.joined } else { response.body });
        }
        std::mem::swap(&mut self.joined, &mut self.decoded);
        let packed = std::mem::take(&mut self.joined);
        let undone = self.undo(&packed, next());
        self.joined = packed;
        Ok(if undone? { &self.decoded } else { &self.joined })
    }

    /// Undoes one coding, of this name if the bytes do not say another. False if there is none.
    fn undo(&mut self, body: &[u8], name: &[u8]) -> Result<bool, BodyError> {
        let coding = match name {
            _ if body.starts_with(b"\x1f\x8b\x08") => Coding::Gzip,
            name if name.eq_ignore_ascii_case(b"deflate") => Coding::Deflate,
            name if name.eq_ignore_ascii_case(b"br") => Coding::Brotli,
            _ if body.starts_with(b"\x28\xb5\x2f\xfd") => Coding::Zstd,
            _ => return Ok(false),
        };
        self.decoded.clear();
        let mut whole_zstd = false;
        let mut out = BodyOut {
            bytes: &mut self.decoded,
            counted: 0,
            most: self.most,
            longest: self.longest,
            turn: &mut self.turn,
        };
        match coding {
            Coding::Gzip => {
                self.gzip.reset();
                let gzip = &mut self.gzip;
                out.fill(body, |input, out| gzip.decode(input, out))?;
            }
            Coding::Zstd => {
                if let Ok(mut zstd) = Decoder::new(Compression::Zstd, ZSTD_WINDOW_LOG) {
                    let mut damaged = false;
                    out.fill(body, |input, out| {
                        zstd.decode(input, out).inspect_err(|_| damaged = true)
                    })?;
                    whole_zstd = !damaged && zstd.finish().is_ok();
                }
            }
            Coding::Deflate => {
                // Some servers leave the zlib header out.
                self.inflate.reset(has_zlib_header(body));
                let inflate = &mut self.inflate;
                out.fill(body, |input, out| deflate(inflate, input, out))?;
            }
            Coding::Brotli => out.fill_brotli(body)?,
        }
        if out.counted > 0 {
            return Err(BodyError::TooLarge { bytes: out.all() });
        }
        match coding {
            _ if !self.decoded.is_empty() => Ok(true),
            // The first bytes of these leave no doubt; nothing but an empty body gives nothing.
            Coding::Gzip if !self.gzip.is_whole() => Err(BodyError::NotInflated { coding: "gzip" }),
            Coding::Zstd if !whole_zstd => Err(BodyError::NotInflated { coding: "zstd" }),
            Coding::Gzip | Coding::Zstd => Ok(true),
            Coding::Deflate | Coding::Brotli => Ok(false),
        }
    }

    /// Gives back buffers that one very long body made, and keeps the room that was taken for it:
    /// of what it became not all is done.
    pub(crate) fn shrink(&mut self) {
        for buffer in [&mut self.joined, &mut self.decoded] {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
    }
}

enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

struct BodyOut<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bytes that were not held.
    counted: u64,
    most: u64,
    longest: u64,
    turn: &'a mut Turn,
}

impl BodyOut<'_> {
    /// Bytes of the body so far.
    fn all(&self) -> u64 {
        self.bytes.len() as u64 + self.counted
    }

    /// Makes the body longer, by bytes that are not yet its; tells where these begin.
    fn grow(&mut self) -> Result<usize, BodyError> {
        if self.all() > self.most {
            return Err(BodyError::TooLong);
        }
        let longest = self.longest as usize;
        if self.bytes.len() > longest {
            self.counted += (self.bytes.len() - longest) as u64;
            self.bytes.truncate(longest);
        }
        if self.bytes.len() == self.bytes.capacity() {
            self.turn.take(self.bytes.len());
            // Not twice as much: a long body counts in full.
            self.bytes.reserve_exact(STEP_BYTES.max(self.bytes.len() / 8));
        }
        let len = self.bytes.len();
        let room = self.bytes.capacity();
        self.bytes.resize(room.min(len + STEP_BYTES), 0);
        Ok(len)
    }

    /// Decodes `input` until it ends, leads nowhere, or is damaged.
    fn fill(
        &mut self,
        mut input: &[u8],
        mut decode: impl FnMut(&[u8], &mut Output<'_>) -> TakenBytes,
    ) -> Result<(), BodyError> {
        loop {
            let before = self.grow()?;
            let mut out = Output::new(&mut self.bytes[before..]);
            let taken = decode(input, &mut out);
            let made = out.made().len();
            let full = out.is_full();
            self.bytes.truncate(before + made);
            let Ok(taken) = taken else { return Ok(()) };
            input = &input[taken..];
            let stuck = taken == 0 && made == 0;
            if stuck || input.is_empty() && !full {
                return Ok(());
            }
        }
    }

    #[cfg(not(feature = "formats"))]
    fn fill_brotli(&mut self, _: &[u8]) -> Result<(), BodyError> {
        Err(BodyError::NotInflated { coding: "br" })
    }

    #[cfg(feature = "formats")]
    fn fill_brotli(&mut self, input: &[u8]) -> Result<(), BodyError> {
        let mut decoder = brotli_decompressor::Decompressor::new(input, STEP_BYTES);
        loop {
            let before = self.grow()?;
            let read = decoder.read(&mut self.bytes[before..]).unwrap_or(0);
            self.bytes.truncate(before + read);
            if read == 0 {
                return Ok(());
            }
        }
    }
}

fn deflate(inflate: &mut Decompress, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
    let before = inflate.total_in();
    let made = inflate.total_out();
    let status = inflate.decompress(input, out.rest(), FlushDecompress::None);
    out.advance((inflate.total_out() - made) as usize);
    let status =
        status.map_err(|e| DecodeError::Damaged { what: format!("deflate data ({e})") })?;
    // What stands behind the stream is nothing.
    if status == Status::StreamEnd {
        return Ok(input.len());
    }
    Ok((inflate.total_in() - before) as usize)
}

fn has_zlib_header(body: &[u8]) -> bool {
    let Some(&[first, second]) = body.first_chunk() else { return false };
    first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// Joins the chunks of `body` in `joined`; tells whether it looks like chunks at all. Behind a
/// chunk that is broken the rest is taken as it is.
fn join_chunks(body: &[u8], joined: &mut Vec<u8>) -> bool {
    joined.clear();
    let mut rest = body;
    let mut first = true;
    loop {
        let Some((size, data)) = chunk_size(rest) else {
            joined.extend_from_slice(rest);
            return !first;
        };
        if size == 0 {
            return true;
        }
        let Some((chunk, after)) = data.split_at_checked(size) else {
            joined.extend_from_slice(data);
            return true;
        };
        let after_line_end = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n"));
        if first && after_line_end.is_none() && !after.is_empty() {
            return false;
        }
        joined.extend_from_slice(chunk);
        first = false;
        rest = after_line_end.unwrap_or(after);
        if rest.is_empty() {
            return true;
        }
    }
}

/// The size in the line that begins a chunk, and what follows the line.
fn chunk_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    /// Extensions of a chunk, which nobody uses, may be so long.
    const MOST_LINE_BYTES: usize = 200;
    let line = &bytes[..bytes.len().min(MOST_LINE_BYTES)];
    let length = memchr::memchr(b'\n', line)?;
    let size = line[..length].trim_ascii();
    let digits = size.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let behind = size[digits..].trim_ascii_start();
    if !(1..=8).contains(&digits) || !(behind.is_empty() || behind[0] == b';') {
        return None;
    }
    let size = size[..digits].iter().fold(0usize, |size, digit| {
        size << 4 | char::from(*digit).to_digit(16).map_or(0, |digit| digit as usize)
    });
    Some((size, &bytes[length + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(data: &[u8], header: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len() + 100);
        flate2::Compress::new(flate2::Compression::fast(), header)
            .compress_vec(data, &mut out, flate2::FlushCompress::Finish)
            .unwrap();
        out
    }

    fn chunked(data: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in data.chunks(size) {
            write!(out, "{:x}\r\n", chunk.len()).unwrap();
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }

    fn response<'a>(transfer: &'a str, content: &'a str, body: &'a [u8]) -> Response<'a> {
        Response {
            transfer_encoding: transfer.as_bytes(),
            content_encoding: content.as_bytes(),
            body,
            ..Response::default()
        }
    }

    #[test]
    fn codings_are_undone() {
        let text = b"<p>one two three ".repeat(9000);
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        let mut decoder = BodyDecoder::new(1 << 20, Turn::alone());
        for (content, body) in [
            ("", text.clone()),
            ("gzip", gzip(&text)),
            ("X-GZIP", gzip(&text)),
            ("", gzip(&text)),
            ("deflate", zlib(&text, true)),
            ("Deflate", zlib(&text, false)),
            ("zstd", zstd),
            ("gzip", text.clone()),
            ("deflate", text.clone()),
            ("br", text.clone()),
            ("utf-8", text.clone()),
            ("gzip, gzip", gzip(&gzip(&text))),
            ("", gzip(&gzip(&text))),
            ("gzip", gzip(&zstd::encode_all(&text[..], 1).unwrap())),
            ("deflate, gzip", gzip(&zlib(&text, true))),
            ("gzip, deflate", zlib(&gzip(&text), true)),
            ("br, gzip", gzip(&text)),
        ] {
            let plain = response("", content, &body);
            assert!(decoder.decode(&plain).unwrap() == text, "{content}");
            let chunks = chunked(&body, 1000);
            assert!(decoder.decode(&response("Chunked", content, &chunks)).unwrap() == text);
            // The field lies.
            assert!(decoder.decode(&response("chunked", content, &body)).unwrap() == text);
        }
        decoder.shrink();
    }

    #[test]
    fn brotli_is_undone() {
        // One block that is stored, and an empty one that is the last.
        let body = b"\x0b\x09\x80hello, hello, hello\x03";
        let mut decoder = BodyDecoder::new(100, Turn::alone());
        assert_eq!(decoder.decode(&response("", "br", body)).unwrap(), b"hello, hello, hello");
    }

    #[test]
    fn a_body_that_is_cut_gives_what_it_has() {
        let text: Vec<u8> = (0..30_000u32).flat_map(|i| i.to_be_bytes()).collect();
        let body = gzip(&text);
        let mut decoder = BodyDecoder::new(1 << 20, Turn::alone());
        let cut = decoder.decode(&response("", "gzip", &body[..body.len() / 2])).unwrap();
        assert!(!cut.is_empty() && text.starts_with(cut));
        let chunks = chunked(&text, 7000);
        let cut = decoder.decode(&response("chunked", "", &chunks[..50_000])).unwrap();
        assert!(cut.len() > 49_000 && text.starts_with(cut));
    }

    #[test]
    fn a_bomb_is_too_long() {
        let text = vec![b' '; 3 << 20];
        let mut decoder = BodyDecoder::new(1 << 20, Turn::alone());
        for (content, body) in
            [("gzip", gzip(&text)), ("deflate", zlib(&text, true)), ("", gzip(&gzip(&text)))]
        {
            let decoded = decoder.decode(&response("", content, &body));
            assert_eq!(decoded, Err(BodyError::TooLong), "{content}");
        }
    }

    #[test]
    fn chunks_are_joined() {
        let mut joined = Vec::new();
        for (body, is, expected) in [
            ("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", true, "abcde"),
            ("3 \nabc\n2\nde\n0\n", true, "abcde"),
            ("3\r\nabc\r\nrest", true, "abcrest"),
            ("3\r\nabc", true, "abc"),
            ("A\r\nabc", true, "abc"),
            ("3\r\nabcd", false, ""),
            ("<p>", false, "<p>"),
            ("face off\r\n", false, "face off\r\n"),
            ("", false, ""),
            ("123456789\r\nx", false, "123456789\r\nx"),
            ("0\r\n\r\n", true, ""),
        ] {
            assert_eq!(join_chunks(body.as_bytes(), &mut joined), is, "{body:?}");
            assert_eq!(joined, expected.as_bytes(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn law_any_body_is_decoded(
            body in proptest::collection::vec(any::<u8>(), 0..200),
            coding in 0usize..5,
            flip in any::<proptest::sample::Index>(),
        ) {
            let mut decoder = BodyDecoder::new(1000, Turn::alone());
            let mut wrapped = match coding {
                0 => gzip(&body),
                1 => zlib(&body, true),
                2 => chunked(&body, 20),
                3 => zstd::encode_all(&body[..], 1).unwrap(),
                _ => body,
            };
            if !wrapped.is_empty() {
                let at = flip.index(wrapped.len());
                wrapped[at] ^= 4;
            }
            for content in ["", "gzip", "deflate", "br", "zstd"] {
                let _ = decoder.decode(&response("chunked", content, &wrapped));
            }
        }
    }
}
