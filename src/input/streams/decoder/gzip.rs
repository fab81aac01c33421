//! Inflates a gzip stream of any number of members (RFC 1952), as its bytes come in.

use super::{Decode, DecodeError, Output, TakenBytes};
use crate::input::streams::whole::WholeDecoder;
use flate2::{Decompress, FlushDecompress, Status};

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const FLAG_HEADER_CRC: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
/// A header longer than this is taken for damage.
const MOST_HEADER_BYTES: usize = 1 << 17;
const TRAILER_BYTES: usize = 8;
/// Behind a member of more compressed bytes than this, the next is not tried as a whole: it would
/// most likely be inflated twice.
const SMALL_MEMBER: usize = 128 << 10;

enum GzipState {
    /// Between members; the header's bytes so far.
    Header,
    /// At the beginning of a member's data.
    Data,
    Body,
    Trailer,
    /// Behind the last member: zero padding, which is ignored.
    Padding,
}

pub(crate) struct Gzip {
    state: GzipState,
    inflate: Decompress,
    /// Inflates small members, if it could be made.
    whole: Option<WholeDecoder>,
    /// Compressed bytes of the last member's data.
    last_member: usize,
    /// Bytes of a header or trailer that the last block cut.
    held: Vec<u8>,
    members: u64,
    crc: crc32fast::Hasher,
    length: u32,
}

impl Default for Gzip {
    fn default() -> Self {
        let state = GzipState::Header;
        let inflate = Decompress::new(false);
        let whole = WholeDecoder::new();
        let (last_member, held, members, crc, length) = Default::default();
        Self { state, inflate, whole, last_member, held, members, crc, length }
    }
}

impl Decode for Gzip {
    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
        let mut at = 0;
        while at < input.len() {
            match self.state {
                GzipState::Header => at += self.header(&input[at..])?,
                GzipState::Data | GzipState::Body if out.is_full() => break,
                GzipState::Data => at += self.data(&input[at..], out),
                GzipState::Body => at += self.body(&input[at..], out)?,
                GzipState::Trailer => at += self.trailer(&input[at..])?,
                GzipState::Padding => match input[at..].iter().position(|&b| b != 0) {
                    None => at = input.len(),
                    Some(_) => return Err(DecodeError::Garbage),
                },
            }
        }
        Ok(at)
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        if self.is_whole() { Ok(()) } else { Err(DecodeError::CutShort) }
    }
}

impl Gzip {
    pub(crate) fn reset(&mut self) {
        self.state = GzipState::Header;
        self.last_member = 0;
        self.held.clear();
        self.members = 0;
    }

    /// Whether all members that have come are whole, and one is.
    pub(crate) fn is_whole(&self) -> bool {
        match self.state {
            GzipState::Padding => true,
            GzipState::Header => self.held.is_empty() && self.members > 0,
            _ => false,
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<usize, DecodeError> {
        let before = self.held.len();
        if before == 0 && self.members > 0 && input[0] == 0 {
            self.state = GzipState::Padding;
            return Ok(0);
        }
        let input = &input[..input.len().min(MOST_HEADER_BYTES)];
        // Nearly always all of it is there, and nothing need be held: members may be small.
        let bytes = if before == 0 {
            input
        } else {
            self.held.extend_from_slice(input);
            &self.held
        };
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(if self.members > 0 {
                DecodeError::Garbage
            } else {
                DecodeError::Damaged { what: "gzip header".into() }
            });
        }
        match header_len(bytes) {
            Some(len) => {
                self.held.clear();
                self.state = GzipState::Data;
                self.crc.reset();
                self.length = 0;
                Ok(len - before)
            }
            None if bytes.len() >= MOST_HEADER_BYTES => {
                Err(DecodeError::Damaged { what: "gzip header without an end".into() })
            }
            None if before == 0 => {
                self.held.extend_from_slice(input);
                Ok(input.len())
            }
            None => Ok(self.held.len() - before),
        }
    }

    /// Inflates the member's data if all of it is there, has room and is good. Otherwise nothing is
    /// done with it yet: it is inflated step by step, and that finds what is wrong.
    fn data(&mut self, input: &[u8], out: &mut Output<'_>) -> usize {
        if self.last_member <= SMALL_MEMBER
            && let Some(whole) = &mut self.whole
            && let Some((taken, made)) = whole.inflate(input, out.rest())
        {
            self.made(&out.rest()[..made]);
            out.advance(made);
            self.last_member = taken;
            self.state = GzipState::Trailer;
            return taken;
        }
        self.inflate.reset(false);
        self.state = GzipState::Body;
        0
    }

    fn made(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.length = self.length.wrapping_add(bytes.len() as u32);
    }

    fn body(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<usize, DecodeError> {
        let taken = self.inflate.total_in();
        let made = self.inflate.total_out();
        let status = self.inflate.decompress(input, out.rest(), FlushDecompress::None);
        let taken = (self.inflate.total_in() - taken) as usize;
        let made = (self.inflate.total_out() - made) as usize;
        self.made(&out.rest()[..made]);
        out.advance(made);
        let status =
            status.map_err(|e| DecodeError::Damaged { what: format!("gzip data ({e})") })?;
        if status == Status::StreamEnd {
            self.state = GzipState::Trailer;
            self.last_member = self.inflate.total_in() as usize;
        }
        if taken == 0 && made == 0 && status != Status::StreamEnd {
            return Err(DecodeError::Damaged { what: "gzip data that leads nowhere".into() });
        }
        Ok(taken)
    }

    fn trailer(&mut self, input: &[u8]) -> Result<usize, DecodeError> {
        let n = (TRAILER_BYTES - self.held.len()).min(input.len());
        self.held.extend_from_slice(&input[..n]);
        if let Some(trailer) = self.held.first_chunk::<TRAILER_BYTES>() {
            let [a, b, c, d, e, f, g, h] = *trailer;
            let crc = u32::from_le_bytes([a, b, c, d]);
            let length = u32::from_le_bytes([e, f, g, h]);
            let got = self.crc.clone().finalize();
            if (crc, length) != (got, self.length) {
                return Err(DecodeError::Damaged {
                    what: format!("gzip checksum (expected {crc:08x}, found {got:08x})"),
                });
            }
            self.held.clear();
            self.members += 1;
            self.state = GzipState::Header;
        }
        Ok(n)
    }
}

/// The length of the header that `bytes` begin with; `None` if it goes on behind them.
fn header_len(bytes: &[u8]) -> Option<usize> {
    let flags = *bytes.get(3)?;
    let mut at = 10;
    if flags & FLAG_EXTRA != 0 {
        let extra = u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        at += 2 + usize::from(extra);
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            at += memchr::memchr(0, bytes.get(at..)?)? + 1;
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        at += 2;
    }
    (bytes.len() >= at).then_some(at)
}
