//! Decompresses a bzip2 file of any number of streams, as its bytes come in.

use super::{Decode, DecodeError, Output, TakenBytes};
use bzip2::{Decompress, Status};

/// Decompresses stream after stream, since parallel compressors write many.
pub(super) struct Bzip2 {
    decoder: Decompress,
    open: bool,
    /// Whether a stream has ended, behind which padding may stand.
    any: bool,
}

impl Default for Bzip2 {
    fn default() -> Self {
        Self { decoder: Decompress::new(false), open: true, any: false }
    }
}

impl Decode for Bzip2 {
    fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> TakenBytes {
        let mut at = 0;
        while !out.is_full() {
            if !self.open {
                match input.get(at) {
                    None => break,
                    // The library wants a header; padding with zeros, which tapes leave, is none.
                    Some(0) => {
                        at += 1;
                        continue;
                    }
                    Some(_) => {
                        self.decoder = Decompress::new(false);
                        self.open = true;
                    }
                }
            }
            let read = self.decoder.total_in();
            let written = self.decoder.total_out();
            let status = self.decoder.decompress(&input[at..], out.rest());
            let written = (self.decoder.total_out() - written) as usize;
            out.advance(written);
            let status = status
                .map_err(|error| DecodeError::Damaged { what: format!("bzip2 data ({error})") })?;
            let read = (self.decoder.total_in() - read) as usize;
            at += read;
            if status == Status::StreamEnd {
                self.open = false;
                self.any = true;
            } else if read == 0 && written == 0 {
                break;
            }
        }
        Ok(at)
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        if self.open || !self.any { Err(DecodeError::CutShort) } else { Ok(()) }
    }
}
