//! Decompresses an xz file of any number of streams, as its bytes come in.

use super::{Decode, DecodeError, Output, TakenBytes};
use liblzma::stream::{Action, CONCATENATED, Error, Status, Stream};

/// Memory that a decoder takes beside its dictionary.
const BESIDE_BYTES: u64 = 1 << 20;

/// The format has no larger dictionaries than 1.5 GiB, and a filter beside one.
const MOST_MIB: u64 = 2048;

pub(super) struct Xz {
    decoder: Stream,
    /// All streams are at their end, once the input is.
    ended: bool,
    /// Bytes that the next block needs, if they are not allowed yet.
    wanted: Option<u64>,
}

impl Xz {
    /// Makes a decoder that takes dictionaries of up to 2^`window_log` bytes; a larger one has to
    /// be [allowed](Decode::allow).
    pub(super) fn new(window_log: u32) -> Result<Self, DecodeError> {
        let most = (1 << window_log) + BESIDE_BYTES;
        let decoder = Stream::new_stream_decoder(most, CONCATENATED).map_err(damaged)?;
        Ok(Self { decoder, ended: false, wanted: None })
    }

    /// Finds how many bytes the block needs before which the decoder has stopped: the library tells
    /// whether a limit is enough. Then it goes on with this one.
    fn needed(&mut self) -> Result<u64, DecodeError> {
        let mut limits = (1..=MOST_MIB).map(|mib| mib << 20);
        let needed = limits.find(|limit| self.decoder.set_memlimit(*limit).is_ok());
        needed.ok_or_else(|| DecodeError::Damaged { what: "xz data (its dictionary)".into() })
    }
}

impl Decode for Xz {
    fn allow(&mut self, bytes: u64) {
        self.wanted = self.wanted.filter(|wanted| *wanted > bytes);
    }

    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
        let mut at = 0;
        let mut is_begun = false;
        if let Some(bytes) = self.wanted {
            return Err(DecodeError::Window { bytes });
        }
        while !out.is_full() {
            let read = self.decoder.total_in();
            let written = self.decoder.total_out();
            let status = self.decoder.process(&input[at..], out.rest(), Action::Run);
            let read = (self.decoder.total_in() - read) as usize;
            let written = (self.decoder.total_out() - written) as usize;
            at += read;
            is_begun |= read + written > 0;
            out.advance(written);
            if let Err(Error::MemLimit) = status {
                let bytes = self.needed()?;
                self.wanted = Some(bytes);
                // What stood before is done with; the next call begins here.
                return if is_begun { Ok(at) } else { Err(DecodeError::Window { bytes }) };
            }
            match status.map_err(damaged)? {
                Status::StreamEnd => break,
                _ if read == 0 && written == 0 => break,
                _ => {}
            }
        }
        Ok(at)
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
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

fn damaged(error: Error) -> DecodeError {
    let what = match error {
        Error::Mem => "xz data (no memory for its decoder)",
        _ => "xz data",
    };
    DecodeError::Damaged { what: format!("{what}: {error}") }
}
