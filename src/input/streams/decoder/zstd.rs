//! Decompresses a Zstandard stream of any number of frames (RFC 8878), as its bytes come in.
//!
//! A frame says in its header how large its window is, the memory that inflating it takes. The
//! header is read before the frame is begun, so that who decodes decides whether there is room now;
//! a window that is too large for now is no damage.
//!
//! Web archives may begin with a dictionary for all that follows, in a frame of its own, packed or
//! not (the use of Zstandard in WARC files, as IIPC describes it).

use super::{Decode, DecodeError, MOST_WINDOW_LOG, Output, TakenBytes};
use zstd::stream::raw::{DParameter, Decoder, Operation};

pub(super) struct Zstd {
    decoder: Decoder<'static>,
    open: bool,
    /// The last output was filled, so that the library may hold more.
    full: bool,
    /// The header of the next frame, as far as it came; given to the library when all is there.
    head: Vec<u8>,
    allowed: u64,
    /// The frame of a dictionary, as far as it came, at the begin of the stream.
    dictionary: Option<Vec<u8>>,
}

/// The head of a frame with a dictionary: its magic number and its length.
const DICTIONARY: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const DICTIONARY_HEAD: usize = 8;
/// A longer one is damage.
const MOST_DICTIONARY: usize = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
enum ZstdWindow {
    /// More bytes have to come.
    More,
    /// This many bytes; 0 for what has none.
    Bytes(u64),
}

impl Zstd {
    /// Makes a decoder that begins no frame with a window over 2^`window_log` bytes unless it is
    /// [allowed](Decode::allow).
    pub(super) fn new(window_log: u32) -> Result<Self, DecodeError> {
        let decoder = decoder_with(&[])?;
        let head = Vec::new();
        let allowed = 1 << window_log;
        let dictionary = Some(Vec::new());
        Ok(Self { decoder, open: false, full: false, head, allowed, dictionary })
    }

    /// Takes what belongs to a dictionary; returns the bytes of `input` that do.
    fn dictionary(&mut self, input: &[u8]) -> Result<usize, DecodeError> {
        let Some(held) = &mut self.dictionary else { return Ok(0) };
        let mut at = 0;
        loop {
            let known = held.len().min(DICTIONARY.len());
            if held[..known] != DICTIONARY[..known] {
                // Another frame.
                self.head = self.dictionary.take().unwrap_or_default();
                return Ok(at);
            }
            let length = held.get(4..DICTIONARY_HEAD).and_then(|length| length.try_into().ok());
            let length = length.map_or(0, u32::from_le_bytes) as usize;
            if length > MOST_DICTIONARY {
                return Err(DecodeError::Damaged {
                    what: "zstd dictionary (it is too long)".into(),
                });
            }
            let missing = match held.len() {
                0..DICTIONARY_HEAD => 1,
                len => DICTIONARY_HEAD + length - len,
            };
            if missing == 0 {
                self.decoder = decoder_with(&held[DICTIONARY_HEAD..])?;
                self.dictionary = None;
                return Ok(at);
            }
            if at == input.len() {
                return Ok(at);
            }
            let end = input.len().min(at + missing);
            held.extend_from_slice(&input[at..end]);
            at = end;
        }
    }

    /// Lets the library work on `input`, or on the header.
    fn run(&mut self, input: Option<&[u8]>, out: &mut Output<'_>) -> Result<usize, DecodeError> {
        let status = self.decoder.run_on_buffers(input.unwrap_or(&self.head), out.rest());
        let status = status.map_err(damaged)?;
        out.advance(status.bytes_written);
        // Between frames the library asks for the next header, which need not come.
        if status.bytes_read + status.bytes_written > 0 {
            self.open = status.remaining != 0;
        }
        self.full = out.is_full();
        Ok(status.bytes_read)
    }
}

impl Decode for Zstd {
    fn allow(&mut self, bytes: u64) {
        self.allowed = self.allowed.max(bytes);
    }

    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
        let mut at = self.dictionary(input)?;
        while (at < input.len() || self.full) && !out.is_full() {
            if self.open || self.full {
                at += self.run(Some(&input[at..]), out)?;
                continue;
            }
            // Between frames: a header, byte by byte.
            let held = self.head.len();
            let begin = at;
            let window = loop {
                match window(&self.head) {
                    ZstdWindow::More if at == input.len() => return Ok(at),
                    ZstdWindow::More => {
                        self.head.push(input[at]);
                        at += 1;
                    }
                    ZstdWindow::Bytes(bytes) => break bytes,
                }
            };
            if window > self.allowed {
                self.head.truncate(held);
                return match begin {
                    0 => Err(DecodeError::Window { bytes: window }),
                    // What stood before is done with; the next call begins here.
                    _ => Ok(begin),
                };
            }
            while !self.head.is_empty() {
                let taken = self.run(None, out)?;
                self.head.drain(..taken);
            }
            self.open = true;
        }
        Ok(at)
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        let is_begun = self.dictionary.as_ref().is_some_and(|held| !held.is_empty());
        let whole = !self.open && self.head.is_empty() && !is_begun;
        if whole { Ok(()) } else { Err(DecodeError::CutShort) }
    }
}

/// A decoder of frames that need a dictionary, if this is one.
fn decoder_with(dictionary: &[u8]) -> Result<Decoder<'static>, DecodeError> {
    let unpacked;
    let dictionary = match dictionary {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            unpacked = zstd::bulk::decompress(dictionary, MOST_DICTIONARY).map_err(damaged)?;
            &unpacked
        }
        [0x37, 0xa4, 0x30, 0xec, ..] => dictionary,
        // Some other frame that is to be skipped.
        _ => &[],
    };
    let mut decoder = Decoder::with_dictionary(dictionary).map_err(damaged)?;
    decoder.set_parameter(DParameter::WindowLogMax(MOST_WINDOW_LOG)).map_err(damaged)?;
    Ok(decoder)
}

/// Reads the header of a frame (RFC 8878, section 3.1.1.1).
fn window(head: &[u8]) -> ZstdWindow {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let Some((magic, rest)) = head.split_first_chunk::<4>() else { return ZstdWindow::More };
    if *magic != MAGIC {
        // A frame to be skipped, or damage, which the library finds.
        return ZstdWindow::Bytes(0);
    }
    let Some((&descriptor, rest)) = rest.split_first() else { return ZstdWindow::More };
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let Some(&byte) = rest.first() else { return ZstdWindow::More };
        let base = 1u64 << (10 + (byte >> 3));
        return ZstdWindow::Bytes(base + base / 8 * u64::from(byte & 7));
    }
    // The window is the content, whose size stands behind the number of a dictionary.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let bytes = 1 << (descriptor >> 6);
    let Some(size) = rest.get(dictionary..dictionary + bytes) else { return ZstdWindow::More };
    let size = size.iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte));
    ZstdWindow::Bytes(size + if bytes == 2 { 256 } else { 0 })
}

fn damaged(error: std::io::Error) -> DecodeError {
    DecodeError::Damaged { what: format!("zstd data ({error})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zstd::stream::raw::CParameter;

    /// A frame with a window of 2^`window_log` bytes; its content does not say its size.
    fn frame(window_log: u32, content: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        encoder.set_parameter(CParameter::WindowLog(window_log)).unwrap();
        std::io::Write::write_all(&mut encoder, content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn headers_tell_windows() {
        for log in [10, 20, 23, 24, 27] {
            let frame = frame(log, &[7; 1000]);
            assert_eq!(window(&frame), ZstdWindow::Bytes(1 << log));
            let known = (0..frame.len()).find(|&n| window(&frame[..n]) != ZstdWindow::More);
            assert_eq!(known, Some(6));
        }
        for bytes in [0, 1, 255, 256, 300, 65_791, 65_792, 100_000] {
            let content = vec![7; bytes];
            let frame = zstd::bulk::compress(&content, 1).unwrap();
            assert_eq!(window(&frame), ZstdWindow::Bytes(bytes as u64), "{bytes}");
        }
        assert_eq!(window(b"\x50\x2a\x4d\x18"), ZstdWindow::Bytes(0));
        assert_eq!(window(b"\x28\xb5\x2f\xfd\x00\x09"), ZstdWindow::Bytes(2048 + 256));
    }

    #[test]
    fn a_dictionary_at_the_begin_is_for_all_frames() {
        let texts: Vec<String> =
            (0..900).map(|n| format!("a page of the mill {n} by the weir {}", n * 7)).collect();
        let dictionary = zstd::dict::from_samples(&texts, 4096).unwrap();
        let frames = |n: usize| {
            let mut packer = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
            packer.compress(texts[n].as_bytes()).unwrap()
        };
        let packed = zstd::encode_all(&dictionary[..], 3).unwrap();
        for dictionary in [&dictionary, &packed] {
            let head = [&DICTIONARY[..], &(dictionary.len() as u32).to_le_bytes()].concat();
            let file = [&head[..], dictionary, &frames(1), &frames(2)].concat();
            for block in [1, 7, 1000, file.len()] {
                let mut decoder = Zstd::new(23).unwrap();
                let mut all = Vec::new();
                for part in file.chunks(block) {
                    let mut at = 0;
                    while at < part.len() {
                        let mut bytes = [0; 100];
                        let mut out = Output::new(&mut bytes);
                        at += decoder.decode(&part[at..], &mut out).unwrap();
                        all.extend_from_slice(out.made());
                    }
                }
                decoder.finish().unwrap();
                assert_eq!(all, (texts[1].clone() + &texts[2]).as_bytes(), "blocks of {block}");
            }
            let mut decoder = Zstd::new(23).unwrap();
            decoder.decode(&file[..head.len() + 9], &mut Output::new(&mut [0; 10])).unwrap();
            assert_eq!(decoder.finish(), Err(DecodeError::CutShort));
        }
        // Another frame of this kind is skipped, as all are elsewhere.
        let other = [&DICTIONARY[..], &3u32.to_le_bytes(), b"abc", &frame(20, b"x")].concat();
        let mut room = [0; 10];
        let mut out = Output::new(&mut room);
        Zstd::new(23).unwrap().decode(&other, &mut out).unwrap();
        assert_eq!(out.made(), b"x");
    }

    #[test]
    fn a_large_window_waits_to_be_allowed() {
        let file = [frame(20, b"one"), frame(27, b"two"), frame(24, b"three")].concat();
        for block in [1, 5, 7, file.len()] {
            let mut decoder = Zstd::new(23).unwrap();
            let mut all = Vec::new();
            let mut asked = Vec::new();
            for part in file.chunks(block) {
                let mut at = 0;
                while at < part.len() {
                    let mut bytes = [0; 100];
                    let mut out = Output::new(&mut bytes);
                    match decoder.decode(&part[at..], &mut out) {
                        Ok(taken) => at += taken,
                        Err(DecodeError::Window { bytes }) => {
                            assert!(out.made().is_empty());
                            asked.push((bytes, all.len()));
                            decoder.allow(bytes);
                        }
                        Err(other) => panic!("{other}"),
                    }
                    all.extend_from_slice(out.made());
                }
            }
            assert_eq!(all, b"onetwothree");
            assert_eq!(asked, [(1 << 27, 3)], "blocks of {block}");
            decoder.finish().unwrap();
        }
        let mut decoder = Zstd::new(23).unwrap();
        decoder.decode(&file[..3], &mut Output::new(&mut [0; 10])).unwrap();
        assert_eq!(decoder.finish(), Err(DecodeError::CutShort));
    }
}
