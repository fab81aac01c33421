//! The texts of a piece's documents for the kernels of `invert.cu`, which find the words. Counts of
//! the piece and lengths of its documents are known only later.

use crate::buffers::{TextBuffer, TextBuffers};
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::text::analysis::Analysis;
use std::sync::Arc;

pub(crate) const SEPARATOR: u8 = b' ';

/// The texts of a piece's documents, each with a [`SEPARATOR`] behind it.
#[derive(Debug, Default)]
pub struct PieceText {
    pub bytes: TextBuffer,
    /// The beginning of each text; the last one ends with the bytes.
    pub starts: Vec<u32>,
}

impl PieceText {
    fn of(buffers: &Arc<TextBuffers>) -> Self {
        Self { bytes: TextBuffer::of(buffers), starts: Vec::new() }
    }

    pub(crate) fn documents(&self) -> u32 {
        self.starts.len() as u32
    }
}

impl PieceGroup for PieceText {
    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * self.starts.capacity()
    }
}

/// Gathers the texts of one piece after the other.
pub struct TextGatherer {
    text: PieceText,
    /// Bytes and documents of the last piece: the next one's are about as many.
    last: (usize, usize),
    buffers: Arc<TextBuffers>,
    /// If it changes texts.
    analysis: Option<Analysis>,
}

impl TextGatherer {
    pub fn new(buffers: Arc<TextBuffers>) -> Self {
        let text = PieceText::of(&buffers);
        Self { text, last: (0, 0), buffers, analysis: None }
    }

    /// The device gets texts as this analysis prepares them.
    #[must_use]
    pub(crate) fn prepared_by(self, analysis: &Analysis) -> Self {
        let analysis = analysis.prepares().then(|| analysis.clone());
        Self { analysis, ..self }
    }

    pub fn take(&mut self) -> PieceText {
        let text = std::mem::replace(&mut self.text, PieceText::of(&self.buffers));
        // A few thousand bytes more save moving the last ones.
        let ample = |len: usize| len + len / 16;
        self.last = (ample(text.bytes.len()), ample(text.starts.len()));
        text
    }
}

impl Regroup for TextGatherer {
    type Group = PieceText;

    fn hashes_later(&self) -> bool {
        self.analysis.is_none()
    }

    /// Its length is not known, and 0 stands for it. Panics if the piece would have 4 GiB or more.
    fn document(&mut self, text: &[u8]) -> u32 {
        let prepared = self.analysis.as_ref().map(|analysis| analysis.prepared(text));
        let text = prepared.as_deref().unwrap_or(text);
        if self.text.starts.is_empty() {
            let (bytes, documents) = self.last;
            self.text.bytes.reserve(bytes.max(text.len() + 1));
            self.text.starts.reserve(documents);
        }
        let start = u32::try_from(self.text.bytes.len()).expect("a piece has less than 4 GiB");
        self.text.starts.push(start);
        self.text.bytes.extend([text, &[SEPARATOR]]);
        0
    }

    fn documents(&self) -> u32 {
        self.text.documents()
    }

    fn finish(&mut self) -> Vec<PieceText> {
        vec![self.take()]
    }
}
