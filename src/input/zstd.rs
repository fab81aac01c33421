//! How is a Zstandard stream of any number of frames (RFC 8878) decompressed, as its bytes come in?

use super::decoder::DecodeError;
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Decompresses frame after frame.
pub struct Zstd {
    decoder: Decoder<'static>,
    /// Inside a frame.
    open: bool,
    /// The last output was filled, so that the library may hold more.
    full: bool,
}

impl Zstd {
    /// Makes a decoder that refuses frames with a window over 2^`window_log` bytes.
    ///
    /// # Errors
    /// When the library has no memory for it.
    pub fn new(window_log: u32) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new().map_err(damaged)?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log)).map_err(damaged)?;
        Ok(Self { decoder, open: false, full: false })
    }

    /// Decompresses from `input`, and appends to `out` as far as its capacity goes. Returns the
    /// bytes of `input` that are done with.
    ///
    /// # Errors
    /// Damage, or a window beyond the limit; `out` has what stood before it.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, DecodeError> {
        let mut at = 0;
        while (at < input.len() || self.full) && out.len() < out.capacity() {
            let start = out.len();
            // The library writes into initialised memory.
            out.resize(out.capacity(), 0);
            let status = self.decoder.run_on_buffers(&input[at..], &mut out[start..]);
            match status {
                Ok(status) => {
                    out.truncate(start + status.bytes_written);
                    at += status.bytes_read;
                    // Between frames the library asks for the next header, which need not come.
                    if status.bytes_read + status.bytes_written > 0 {
                        self.open = status.remaining != 0;
                    }
                    self.full = out.len() == out.capacity();
                }
                Err(error) => {
                    out.truncate(start);
                    return Err(damaged(error));
                }
            }
        }
        Ok(at)
    }

    /// Is told that the input ends.
    ///
    /// # Errors
    /// When it ends inside a frame.
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.open { Err(DecodeError::CutShort) } else { Ok(()) }
    }
}

fn damaged(error: std::io::Error) -> DecodeError {
    DecodeError::Damaged { what: format!("zstd data ({error})") }
}
