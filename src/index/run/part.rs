//! Encodes one owner's part of a closed run, or a share of it: the lists of its terms, in the order
//! of the lexicon, in chunks that the writer of the run puts together with those of the other
//! shares and owners ([`RunWriter`](super::RunWriter)).
//!
//! Memory: a chunk, one list as bytes, and a byte for each document of the run, which all owners
//! share.

use super::lay::{ChunkLayout, LaidChunk, RunPart};
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::index::list::{Form, ListEncoder};
use std::sync::Arc;

pub(crate) const CHUNK_BYTES: usize = 256 << 10;

pub(crate) struct PartEncoder {
    part: RunPart,
    terms: Box<dyn ClosedTerms>,
    /// The list of the present term of `terms` is not encoded to its end.
    in_list: bool,
    encoder: ListEncoder,
    layout: ChunkLayout,
    lengths: Arc<Vec<u8>>,
    bytes: Vec<u8>,
    /// Where the current list goes on in `bytes`.
    at: usize,
}

impl PartEncoder {
    /// `lengths` are the codes of the lengths of all documents of the run (`score::bounds`).
    pub(crate) fn new(
        part: RunPart,
        terms: Box<dyn ClosedTerms>,
        lengths: Arc<Vec<u8>>,
        form: Form,
    ) -> Self {
        let encoder = ListEncoder::of_form(form);
        let layout = ChunkLayout::new(form);
        let bytes = Vec::new();
        Self { part, terms, in_list: false, encoder, layout, lengths, bytes, at: 0 }
    }

    /// The next chunk. The last one says that it is, and none may be asked for behind it.
    ///
    /// # Errors
    /// Of the dictionary; postings that do not decode, which is a bug.
    pub(crate) fn chunk(&mut self) -> Result<LaidChunk, ClosedError> {
        let mut ends = false;
        self.encoder.payload().reserve(CHUNK_BYTES + (CHUNK_BYTES >> 2));
        while self.encoder.payload().len() < CHUNK_BYTES {
            if !self.in_list {
                if !self.terms.advance(&mut self.bytes)? {
                    ends = true;
                    break;
                }
                (self.at, self.in_list) = (0, true);
            }
            let term = self.terms.term();
            self.encoder
                .push_folded(&self.bytes, &mut self.at, &self.lengths, CHUNK_BYTES)
                .ok_or("postings of an open run do not decode: this is a bug")?;
            self.in_list = self.at < self.bytes.len();
            if self.in_list {
                self.layout.part(term.0, self.encoder.payload().len());
            } else {
                let (df, bytes) = self.encoder.finish_folded(&self.bytes);
                self.layout.list(term, df, bytes, self.encoder.payload().len())?;
            }
        }
        let payload = std::mem::take(self.encoder.payload());
        Ok(LaidChunk { part: self.part, ends, ..self.layout.take(payload) })
    }
}
