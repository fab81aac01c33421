//! How does a split become pieces? Its files, block by block, through a decoder and a cutter.

use super::Compression;
use super::cutter::Cutter;
use super::decoder::{DecodeError, Decoder};
use super::piece::Piece;
use std::error::Error;

/// Any error of a decoder that cannot be made.
type Cause = Box<dyn Error + Send + Sync>;

/// Some bytes of an input file.
pub struct FileBlock {
    /// Number of the split.
    pub split: usize,
    /// Number of the block in its split.
    pub block: u64,
    /// Number of the input.
    pub input: u32,
    /// The input's compression, known from its first bytes.
    pub compression: Compression,
    /// As in the file.
    pub bytes: Vec<u8>,
    /// The input ends with this block.
    pub ends_input: bool,
    /// The split ends with this block.
    pub ends_split: bool,
}

/// The stream of one split.
pub struct SplitStream {
    cutter: Cutter,
    /// See [`Budget::window_log`](crate::order::Budget::window_log).
    window_log: u32,
    decoder: Option<Decoder>,
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
    /// The stream of a split of files that the `cutter` cuts; a window of more than 2 to the `window_log`
    /// waits until it is [allowed](Self::allow_window).
    pub fn new(cutter: Cutter, window_log: u32) -> Self {
        Self {
            cutter,
            window_log,
            decoder: None,
            at: 0,
            input: None,
            broken: None,
            ended: false,
            finished: false,
            wanted: None,
        }
    }

    /// Where the rest of the input cannot be decoded: a few words, the byte of its content, and why.
    pub fn broken(&self) -> Option<(&'static str, u64, &DecodeError)> {
        self.broken.as_ref().map(|(offset, error)| (reason(error), *offset, error))
    }

    /// Bytes of content that the input has had so far.
    pub fn stream_bytes(&self) -> u64 {
        self.cutter.stream_bytes()
    }

    /// Bytes of the piece that grows.
    pub fn held_bytes(&self) -> usize {
        self.cutter.held_bytes()
    }

    /// The bytes of the window without which the stream does not go on.
    pub fn wanted_window(&self) -> Option<u64> {
        self.wanted
    }

    /// Lets the current input have windows of `bytes`.
    pub fn allow_window(&mut self, bytes: u64) {
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
    pub fn step(&mut self, block: &FileBlock) -> Result<(Option<Piece>, bool), Cause> {
        if self.input != Some(block.input) {
            self.input = Some(block.input);
            self.decoder = Some(Decoder::new(block.compression, self.window_log)?);
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
            let before = buffer.len();
            let result = decoder.decode(&block.bytes[self.at..], buffer);
            let (grown, full) = (buffer.len() - before, buffer.len() == buffer.capacity());
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
            self.ended = self.at == block.bytes.len() && !full;
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
        DecodeError::Garbage => "bytes behind the last gzip member",
        _ => "damaged compressed stream",
    }
}
