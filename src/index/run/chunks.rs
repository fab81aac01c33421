//! Hands over lists that come one after the other in chunks with their layout.

use super::lay::{ChunkLayout, LaidChunk, ListStretch};
use crate::index::error::IndexError;
use crate::index::lexicon::TermCoder;
use crate::index::list::Form;
use std::path::Path;

/// Encoded lists in a payload, on their way, and their positions, if there are any.
pub(crate) struct ListChunks<'a, G> {
    layout: ChunkLayout,
    /// Those of the chunk, which come before what they belong to.
    pub(crate) positions: Vec<u8>,
    chunk_bytes: usize,
    /// The generation's, for messages.
    folder: &'a Path,
    give: G,
}

impl<'a, G: FnMut(LaidChunk) -> Result<(), IndexError>> ListChunks<'a, G> {
    /// Gives chunks of about this many bytes to `give`.
    pub(crate) fn new(form: Form, folder: &'a Path, chunk_bytes: usize, give: G) -> Self {
        let positions = Vec::new();
        Self { layout: ChunkLayout::new(form), positions, chunk_bytes, folder, give }
    }

    /// For lists that follow others, whose terms were coded up to there.
    pub(crate) fn behind(self, form: Form, coder: TermCoder) -> Self {
        Self { layout: ChunkLayout::behind(form, coder), ..self }
    }

    /// The payload has another part of the list of a term of this collection at its end: hands the
    /// chunk over if it is large enough.
    pub(crate) fn go_on(
        &mut self,
        collection: u16,
        payload: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        if payload.len() + self.positions.len() < self.chunk_bytes {
            return Ok(());
        }
        self.layout.with_positions(self.positions.len()).part(collection, payload.len());
        self.give(payload, false)
    }

    /// The payload has the end of the list of a term: its postings and its bytes.
    ///
    /// # Errors
    /// `Refused` for what cannot be a term, or stand in this order; whatever `give` returns.
    pub(crate) fn end(
        &mut self,
        term: (u16, &[u8]),
        df: u32,
        bytes: u64,
        payload: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        let layout = self.layout.with_positions(self.positions.len());
        let laid = layout.list(term, df, bytes, payload.len());
        laid.map_err(|reason| IndexError::refused(self.folder, reason))?;
        let LaidChunk { stretches, terms, .. } = self.layout.chunk();
        let tables = terms.len() + stretches.len() * size_of::<ListStretch>();
        let bytes = payload.len() + self.positions.len() + tables;
        if bytes < self.chunk_bytes { Ok(()) } else { self.give(payload, false) }
    }

    pub(crate) fn finish(mut self, payload: &mut Vec<u8>) -> Result<(), IndexError> {
        self.give(payload, true)
    }

    fn give(&mut self, payload: &mut Vec<u8>, ends: bool) -> Result<(), IndexError> {
        let room = if ends { 0 } else { self.chunk_bytes + self.chunk_bytes / 4 };
        let payload = std::mem::replace(payload, Vec::with_capacity(room));
        let positions = std::mem::take(&mut self.positions);
        (self.give)(LaidChunk { ends, positions, ..self.layout.take(payload) })
    }
}
