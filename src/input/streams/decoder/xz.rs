//! Decompresses an xz file of any number of streams, as its bytes come in.

use super::{DecodeError, Output};
use liblzma::stream::{Action, CONCATENATED, Status, Stream};

/// Memory that a decoder takes beside its dictionary.
const BESIDE_BYTES: u64 = 1 << 20;

pub struct Xz {
    decoder: Stream,
    /// All streams are at their end, once the input is.
    ended: bool,
}

impl Xz {
    /// Makes a decoder that refuses streams with a dictionary over 2^`window_log` bytes.
    pub(crate) fn new(window_log: u32) -> Result<Self, DecodeError> {
        let most = (1 << window_log) + BESIDE_BYTES;
        let decoder = Stream::new_stream_decoder(most, CONCATENATED).map_err(damaged)?;
        Ok(Self { decoder, ended: false })
    }

    /// See [`Decoder::decode`](super::Decoder::decode); a dictionary beyond the limit is damage.
    pub(crate) fn decode(
        &mut self,
        input: &[u8],
        out: &mut Output<'_>,
    ) -> Result<usize, DecodeError> {
        let mut at = 0;
        while !out.is_full() {
            let read = self.decoder.total_in();
            let written = self.decoder.total_out();
            let status = self.decoder.process(&input[at..], out.rest(), Action::Run);
            let read = (self.decoder.total_in() - read) as usize;
            let written = (self.decoder.total_out() - written) as usize;
            at += read;
            out.advance(written);
            match status.map_err(damaged)? {
                Status::StreamEnd => break,
                _ if read == 0 && written == 0 => break,
                _ => {}
            }
        }
        Ok(at)
    }

    pub(crate) fn finish(&mut self) -> Result<(), DecodeError> {
        if self.ended {
            return Ok(());
        }
        // Everything is out of the decoder, so that one byte is room enough to hear of the end.
        let status = self.decoder.process(&[], &mut [0], Action::Finish);
        match status {
            Ok(Status::StreamEnd) => {
                self.ended = true;
                Ok(())
            }
            _ => Err(DecodeError::CutShort),
        }
    }
}

fn damaged(error: liblzma::stream::Error) -> DecodeError {
    use liblzma::stream::Error::{Mem, MemLimit};
    let what = match error {
        MemLimit => {
            "xz data (its dictionary is larger than this job may hold; give the build more memory)"
        }
        Mem => "xz data (no memory for its decoder)",
        _ => "xz data",
    };
    DecodeError::Damaged { what: format!("{what}: {error}") }
}
