//! Turns a split into pieces: its files go, block by block, through a decoder and a cutter.

use super::decoder::{DecodeError, Decoder, Output};
use super::encoded::{TextDecoder, TextEncoding, Transcoder};
use crate::input::Compression;
use crate::input::cutter::Cutter;
use crate::input::piece::Piece;
use std::io;

pub(crate) struct FileBlock {
    pub input: u32,
    /// Known from the input's first bytes.
    pub compression: Compression,
    /// The encoding that was asked for.
    pub encoding: Option<TextEncoding>,
    pub bytes: Vec<u8>,
    pub ends_input: bool,
    pub ends_split: bool,
}

pub(crate) struct SplitStream {
    cutter: Cutter,
    /// See [`Budget::window_log`](crate::order::Budget::window_log).
    window_log: u32,
    decoder: Option<TextDecoder>,
    /// Bytes of the current block that are decoded.
    at: usize,
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
        let (decoder, at, input, broken, ended, finished, wanted) = Default::default();
        Self { cutter, window_log, decoder, at, input, broken, ended, finished, wanted }
    }

    /// Where the rest cannot be decoded: a few words, the byte of the content, and why.
    pub(crate) fn broken(&self) -> Option<(&'static str, u64, &DecodeError)> {
        self.broken.as_ref().map(|(offset, error)| (reason(error), *offset, error))
    }

    /// The encoding of the input, if it was found and is not UTF-8.
    pub(crate) fn encoding(&self) -> Option<TextEncoding> {
        self.decoder.as_ref()?.encoding()
    }

    pub(crate) fn stream_bytes(&self) -> u64 {
        self.cutter.stream_bytes()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.cutter.held_bytes()
    }

    /// The bytes of the window without which the stream does not go on.
    pub(crate) fn wanted_window(&self) -> Option<u64> {
        self.wanted
    }

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
    pub(crate) fn step(&mut self, block: &FileBlock) -> io::Result<(Option<Piece>, bool)> {
        if self.input != Some(block.input) {
            self.input = Some(block.input);
            let decoder = Decoder::new(block.compression, self.window_log)?;
            let tells = self.cutter.format().documents_tell_encoding();
            let transcoder = (!tells).then(|| Transcoder::new(block.encoding));
            self.decoder = Some(TextDecoder::new(decoder, transcoder));
            self.broken = None;
            self.finished = false;
            self.cutter.begin(block.input);
        }
        if let Some(piece) = self.cutter.grown(0) {
            return Ok((Some(piece), false));
        }
        let decoder = self.decoder.as_mut().expect("a decoder was made for the input");
        while !self.ended && self.broken.is_none() {
            let buffer = self.cutter.buffer();
            let mut out = Output::new(buffer.room(0));
            let result = decoder.decode(&block.bytes[self.at..], &mut out);
            let grown = out.made().len();
            let full = out.is_full();
            buffer.advance(grown);
            match result {
                Ok(taken) => self.at += taken,
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
            self.ended = self.at == block.bytes.len() && !full && !decoder.holds_more();
            if self.ended && block.ends_input && decoder.ends() {
                self.ended = false;
            }
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
        self.ended = false;
        Ok((if block.ends_split { self.cutter.end_split() } else { None }, true))
    }
}

fn reason(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::CutShort => "compressed stream cut short",
        DecodeError::Garbage => "bytes after the last gzip member",
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
        let mut pieces = Vec::new();
        let mut at = 0;
        for number in 0.. {
            let n = blocks[number % blocks.len()].min(file.len() - at);
            // The last may be empty, as where a file ends with a block.
            let ends = n < blocks[number % blocks.len()];
            let block = FileBlock {
                input: 0,
                compression: Compression::Gzip,
                encoding: None,
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

        /// Members that blocks cut are inflated step by step.
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
