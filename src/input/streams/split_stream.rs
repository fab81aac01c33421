//! How does a split become pieces? Its files, block by block, through a decoder and a cutter.

use super::decoder::{DecodeError, Decoder};
use crate::input::Compression;
use crate::input::cutter::Cutter;
use crate::input::piece::Piece;
use std::error::Error;

/// So many bytes of a block are put behind those that are held at a time: a member of a web archive
/// has 4,000 on average.
const JOINED_BYTES: usize = 16 << 10;

/// Any error of a decoder that cannot be made.
type Cause = Box<dyn Error + Send + Sync>;

/// Some bytes of an input file.
pub(crate) struct FileBlock {
    pub split: usize,
    /// Number of the block in its split.
    pub block: u64,
    pub input: u32,
    /// The input's compression, known from its first bytes.
    pub compression: Compression,
    pub bytes: Vec<u8>,
    /// The input ends with this block.
    pub ends_input: bool,
    /// The split ends with this block.
    pub ends_split: bool,
}

/// The last bytes of blocks, which a decoder takes only with those that follow them.
#[derive(Default)]
struct Held {
    /// Those, and some of the current block.
    bytes: Vec<u8>,
    /// How many of them come from earlier blocks.
    earlier: usize,
    at: usize,
}

impl Held {
    /// Holds the rest of a block; tells how many bytes.
    fn hold(&mut self, rest: &[u8]) -> usize {
        self.bytes.extend_from_slice(rest);
        self.earlier = rest.len();
        rest.len()
    }

    /// Takes some of what follows; tells how many bytes.
    fn extend(&mut self, rest: &[u8]) -> usize {
        let n = rest.len().min(JOINED_BYTES);
        self.bytes.extend_from_slice(&rest[..n]);
        n
    }

    /// So many bytes more are decoded. When those of earlier blocks are, nothing is held any more,
    /// and the bytes that are left are taken from the current block: tells how many.
    fn pass(&mut self, bytes: usize) -> usize {
        self.at += bytes;
        if self.at < self.earlier {
            return 0;
        }
        let left = self.bytes.len() - self.at;
        self.clear();
        left
    }

    fn carry(&mut self) {
        self.bytes.drain(..self.at);
        (self.earlier, self.at) = (self.bytes.len(), 0);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        (self.earlier, self.at) = (0, 0);
    }
}

pub(crate) struct SplitStream {
    cutter: Cutter,
    /// See [`Budget::window_log`](crate::order::Budget::window_log).
    window_log: u32,
    decoder: Option<Decoder>,
    /// Bytes of the current block that are decoded or held.
    at: usize,
    held: Held,
    input: Option<u32>,
    /// The rest of the input cannot be decoded: from which byte of its stream on, and why.
    broken: Option<(u64, DecodeError)>,
    /// The last of the input is out of the decoder; what remains is to end it.
    ended: bool,
    /// The decoder was told that the input is at its end.
    finished: bool,
    /// The decoder needs a window that is not allowed yet.
    wanted: Option<u64>,
}

impl SplitStream {
    /// The stream of a split of files that the `cutter` cuts; a window of more than 2 to the
    /// `window_log` waits until it is [allowed](Self::allow_window).
    pub(crate) fn new(cutter: Cutter, window_log: u32) -> Self {
        Self {
            cutter,
            window_log,
            decoder: None,
            at: 0,
            held: Held::default(),
            input: None,
            broken: None,
            ended: false,
            finished: false,
            wanted: None,
        }
    }

    /// Where the rest of the input cannot be decoded: a few words, the byte of its content, and
    /// why.
    pub(crate) fn broken(&self) -> Option<(&'static str, u64, &DecodeError)> {
        self.broken.as_ref().map(|(offset, error)| (reason(error), *offset, error))
    }

    /// Bytes of content that the input has had so far.
    pub(crate) fn stream_bytes(&self) -> u64 {
        self.cutter.stream_bytes()
    }

    /// Bytes of the piece that grows.
    pub(crate) fn held_bytes(&self) -> usize {
        self.cutter.held_bytes()
    }

    /// The bytes of the window without which the stream does not go on.
    pub(crate) fn wanted_window(&self) -> Option<u64> {
        self.wanted
    }

    /// Lets the current input have windows of `bytes`.
    pub(crate) fn allow_window(&mut self, bytes: u64) {
        self.wanted = None;
        if let Some(decoder) = &mut self.decoder {
            decoder.allow_window(bytes);
        }
    }

    /// Decodes until a piece is whole or the block is done with; tells which. Neither, if it
    /// [wants a window](Self::wanted_window).
    ///
    /// # Errors
    /// When a decoder cannot be made. What is wrong with the input is [told](Self::broken).
    pub(crate) fn step(&mut self, block: &FileBlock) -> Result<(Option<Piece>, bool), Cause> {
        if self.input != Some(block.input) {
            self.input = Some(block.input);
            self.decoder = Some(Decoder::new(block.compression, self.window_log)?);
            self.broken = None;
            self.finished = false;
            self.held.clear();
            self.cutter.begin(block.input);
        }
        if let Some(piece) = self.cutter.grown(0) {
            return Ok((Some(piece), false));
        }
        let decoder = self.decoder.as_mut().expect("a decoder was made for the input");
        while !self.ended && self.broken.is_none() {
            let rest = &block.bytes[self.at..];
            let held = !self.held.bytes.is_empty();
            if held && self.at == 0 {
                self.at += self.held.extend(rest);
            }
            let enough = self.cutter.enough();
            let buffer = self.cutter.buffer();
            let before = buffer.len();
            let input = if held { &self.held.bytes[self.held.at..] } else { rest };
            let is_last = block.ends_input && (!held || self.at == block.bytes.len());
            let result = if is_last {
                decoder.decode(input, buffer).map(|taken| (taken, false))
            } else {
                decoder.decode_on(input, enough, buffer)
            };
            let (grown, full) = (buffer.len() - before, buffer.len() == buffer.capacity());
            // It waits for more than this block has.
            let mut waits = false;
            match result {
                Ok((taken, wants_more)) if !held => {
                    self.at += taken;
                    if wants_more {
                        self.at += self.held.hold(&block.bytes[self.at..]);
                        waits = true;
                    }
                }
                Ok((taken, wants_more)) => {
                    self.at -= self.held.pass(taken);
                    if wants_more && !self.held.bytes.is_empty() {
                        let added = self.held.extend(&block.bytes[self.at..]);
                        self.at += added;
                        waits = added == 0;
                    }
                }
                Err(DecodeError::Window { bytes }) => {
                    self.wanted = Some(bytes);
                    return Ok((None, false));
                }
                Err(error) => {
                    self.cutter.skip_rest(reason(&error), error.to_string());
                    let at = self.cutter.stream_bytes() + grown as u64;
                    self.broken = Some((at, error));
                }
            }
            if let Some(piece) = self.cutter.grown(grown) {
                return Ok((Some(piece), false));
            }
            let is_done = waits || self.held.bytes.is_empty();
            self.ended = self.at == block.bytes.len() && !full && is_done;
        }
        if block.ends_input {
            if !self.finished
                && self.broken.is_none()
                && let Err(error) = decoder.finish()
            {
                self.cutter.skip_rest(reason(&error), error.to_string());
                self.broken = Some((self.cutter.stream_bytes(), error));
            }
            self.finished = true;
            if let Some(piece) = self.cutter.end_input() {
                return Ok((Some(piece), false));
            }
        }
        self.at = 0;
        self.held.carry();
        self.ended = false;
        Ok((if block.ends_split { self.cutter.end_split() } else { None }, true))
    }
}

fn reason(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::CutShort => "compressed stream cut short",
        DecodeError::Garbage => "bytes behind the last gzip member",
        _ => "damaged compressed stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Format;
    use proptest::prelude::*;
    use std::io::Write;

    /// What a file, which comes in blocks, is cut into: the bytes of its pieces, and whether it can
    /// be decoded.
    fn pieces(file: &[u8], blocks: &[usize]) -> (Vec<Vec<u8>>, Option<(&'static str, u64)>) {
        let cutter = Cutter::of_pieces(Format::Tsv, 1 << 20, 1 << 14);
        let mut stream = SplitStream::new(cutter, 20);
        let (mut pieces, mut at) = (Vec::new(), 0);
        for number in 0.. {
            let n = blocks[number % blocks.len()].min(file.len() - at);
            // The last may be empty, as where a file ends with a block.
            let ends = n < blocks[number % blocks.len()];
            let block = FileBlock {
                split: 0,
                block: number as u64,
                input: 0,
                compression: Compression::Gzip,
                bytes: file[at..at + n].to_vec(),
                ends_input: ends,
                ends_split: ends,
            };
            at += n;
            loop {
                let (piece, done) = stream.step(&block).unwrap();
                pieces.extend(piece.map(|piece| piece.bytes.to_vec()));
                if done {
                    break;
                }
            }
            if ends {
                break;
            }
        }
        (pieces, stream.broken().map(|(reason, offset, _)| (reason, offset)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Members that blocks cut are put together, or inflated step by step where they are long.
        #[test]
        fn law_pieces_do_not_depend_on_blocks(
            parts in prop::collection::vec((any::<u64>(), prop_oneof![
                9 => 0usize..3_000, 3 => 3_000usize..40_000, 1 => 150_000usize..300_000,
            ]), 1..12),
            blocks in prop::collection::vec(prop_oneof![
                1 => 1usize..50, 3 => 1_000usize..20_000, 3 => 30_000usize..400_000,
            ], 1..5),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut file = Vec::new();
            for (mut seed, bytes) in parts {
                let mut e = flate2::GzBuilder::new().write(&mut file, flate2::Compression::fast());
                for at in 0..bytes {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    // Some of it looks like the begin of a member.
                    let byte = [0x1f, 0x8b, 8, (seed >> 56) as u8][(seed >> 40 & 3) as usize];
                    e.write_all(&[if at % 90 == 89 { b'\n' } else { byte }]).unwrap();
                }
                e.finish().unwrap();
            }
            if let Some(cut) = cut {
                file.truncate(cut.index(file.len()));
            }
            let blocks = if blocks.iter().sum::<usize>() < file.len() / 200 { vec![file.len() / 9] } else { blocks };
            prop_assert!(pieces(&file, &blocks) == pieces(&file, &[file.len() + 1]));
        }
    }
}
