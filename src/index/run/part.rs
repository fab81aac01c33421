//! Encodes one owner's part of a closed run, or a share of it: the lists of its terms, in the order
//! of the lexicon, in chunks that the writer of the run puts together with those of the other
//! shares and owners ([`RunWriter`](super::RunWriter)).
//!
//! Memory: a chunk, one list as bytes, and a byte for each document of the run, which all owners
//! share.

use super::lay::{ChunkLayout, LaidChunk, RunPart};
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::index::lexicon::TermCoder;
use crate::index::list::{Form, ListEncoder};
use crate::index::positions::PositionsEncoder;
use crate::text::fields::split;
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
    /// Fields of which there are lengths, and where those of the current list begin.
    fields: usize,
    column: usize,
    bytes: Vec<u8>,
    /// Where the current list goes on in `bytes`.
    at: usize,
    positions: Option<PartPositions>,
}

/// The positions of the lists, in a run that has them.
struct PartPositions {
    encoder: PositionsEncoder,
    /// As `bytes` and `at`.
    bytes: Vec<u8>,
    at: usize,
}

impl PartEncoder {
    /// `lengths` are the codes of the lengths of all documents of the run (`score::bounds`), and
    /// behind them those of each field.
    pub(crate) fn new(
        part: RunPart,
        terms: Box<dyn ClosedTerms>,
        lengths: Arc<Vec<u8>>,
        form: Form,
    ) -> Self {
        let encoder = ListEncoder::of_form(form);
        let behind = terms.behind();
        let coder = behind.map(|(of, before)| TermCoder::behind(of, &before.last, before.terms));
        let layout = ChunkLayout::behind(form, coder.unwrap_or_default());
        let positions = form.has_positions().then(|| PartPositions {
            encoder: PositionsEncoder::new(form.block_len()),
            bytes: Vec::new(),
            at: 0,
        });
        let fields = (lengths.len() / part.documents.max(1) as usize).saturating_sub(1);
        let (in_list, column, bytes, at) = Default::default();
        Self {
            part,
            terms,
            in_list,
            encoder,
            layout,
            lengths,
            fields,
            column,
            bytes,
            at,
            positions,
        }
    }

    /// The next chunk. The last one says that it is, and none may be asked for behind it.
    ///
    /// # Errors
    /// Of the dictionary; postings that do not decode, which is a bug.
    pub(crate) fn chunk(&mut self) -> Result<LaidChunk, ClosedError> {
        let mut ends = false;
        self.encoder.payload().reserve(CHUNK_BYTES + (CHUNK_BYTES >> 2));
        let payload_of = |positions: &Option<PartPositions>| {
            positions.as_ref().map_or(0, |positions| positions.encoder.payload.len())
        };
        while self.encoder.payload().len() + payload_of(&self.positions) < CHUNK_BYTES {
            if !self.in_list {
                if !self.terms.advance(&mut self.bytes)? {
                    ends = true;
                    break;
                }
                (self.at, self.in_list) = (0, true);
                let (_, field) = split(self.fields, self.terms.term().1);
                self.column = field.map_or(0, usize::from) * self.part.documents as usize;
                if let Some(positions) = &mut self.positions {
                    self.terms.positions(&mut positions.bytes);
                    positions.at = 0;
                }
            }
            let term = self.terms.term();
            let positions = &mut self.positions;
            let enough = |payload: usize, positions: &Option<PartPositions>| {
                payload + payload_of(positions) >= CHUNK_BYTES
            };
            self.encoder
                .push_folded(
                    &self.bytes,
                    &mut self.at,
                    &self.lengths[self.column..],
                    |tfs, payload| {
                        if let Some(PartPositions { encoder, bytes, at }) = positions {
                            encoder.push_folded(tfs, bytes, at)?;
                        }
                        Some(enough(payload, positions))
                    },
                )
                .ok_or("postings of an open run do not decode: this is a bug")?;
            self.in_list = self.at < self.bytes.len();
            if let Some(positions) = &mut self.positions {
                if !self.in_list {
                    positions.encoder.finish()?;
                }
                self.layout.with_positions(positions.encoder.payload.len());
            }
            if self.in_list {
                self.layout.part(term.0, self.encoder.payload().len());
            } else {
                let (df, bytes) = self.encoder.finish_folded(&self.bytes);
                self.layout.list(term, df, bytes, self.encoder.payload().len())?;
            }
        }
        let payload = std::mem::take(self.encoder.payload());
        let positions = self.positions.as_mut();
        let positions = positions.map(|positions| std::mem::take(&mut positions.encoder.payload));
        let positions = positions.unwrap_or_default();
        Ok(LaidChunk { part: self.part, ends, positions, ..self.layout.take(payload) })
    }
}
