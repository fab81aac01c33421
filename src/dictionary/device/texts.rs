//! What does a parser hand on when a device finds the words? The texts of a piece's documents, as
//! the kernels of `invert.cu` read them; what the piece counts, and its documents' lengths, are
//! known only later.

use super::lines::{AsLines, DeviceLines};
use super::text_buffers::{TextBuffer, TextBuffers};
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::order::PieceCounts;
use std::sync::Arc;

/// What stands behind each text.
pub(crate) const SEPARATOR: u8 = b' ';

/// The texts of a piece's documents, each with a [`SEPARATOR`] behind it; or its lines, of which
/// the device finds the texts.
#[derive(Debug, Default)]
pub struct PieceText {
    pub bytes: TextBuffer,
    /// Where each text begins; the end of the last is that of the bytes.
    pub starts: Vec<u32>,
    /// What is known of the lines, if these are lines.
    pub lines: Option<DeviceLines>,
}

impl PieceText {
    fn of(buffers: &Arc<TextBuffers>) -> Self {
        Self { bytes: TextBuffer::of(buffers), starts: Vec::new(), lines: None }
    }

    /// Documents; of lines nobody knows yet.
    pub(crate) fn documents(&self) -> u32 {
        self.starts.len() as u32
    }
}

/// A piece on its way to a device.
pub struct TextGroup {
    pub text: PieceText,
    counts: Arc<PieceCounts>,
    lengths: Arc<[u8]>,
}

impl PieceGroup for TextGroup {
    fn memory_bytes(&self) -> usize {
        self.text.bytes.capacity() + 4 * self.text.starts.capacity()
    }

    fn owner(&self) -> u32 {
        0
    }

    fn counts(&self) -> &Arc<PieceCounts> {
        &self.counts
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

/// Gathers the texts of one piece after the other.
pub struct Texts {
    text: PieceText,
    /// Bytes and documents of the last piece: the next one's are about as many.
    last: (usize, usize),
    buffers: Arc<TextBuffers>,
    as_lines: Option<Arc<AsLines>>,
}

impl Texts {
    /// Texts go to such buffers.
    pub fn new(buffers: Arc<TextBuffers>) -> Self {
        Self { text: PieceText::of(&buffers), last: (0, 0), buffers, as_lines: None }
    }

    /// The same, and the first piece is expected to have so many bytes.
    #[must_use]
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        Self { last: (bytes, 0), ..self }
    }

    /// The same, and the device is given lines where it takes them.
    #[must_use]
    pub(crate) fn with_lines(self, as_lines: Option<Arc<AsLines>>) -> Self {
        Self { as_lines, ..self }
    }

    /// The texts of a piece; the next one can begin.
    pub fn take(&mut self) -> PieceText {
        let text = std::mem::replace(&mut self.text, PieceText::of(&self.buffers));
        // A few thousand bytes more save moving the last ones.
        let ample = |len: usize| len + len / 16;
        self.last = (ample(text.bytes.len()), ample(text.starts.len()));
        text
    }
}

impl Regroup for Texts {
    type Group = TextGroup;

    const COUNTED_LATER: bool = true;

    fn line_buffer(&self) -> Option<TextBuffer> {
        let takes = self.as_lines.as_ref().is_some_and(|lines| lines.takes());
        takes.then(|| TextBuffer::of(&self.buffers))
    }

    fn lines(&mut self, bytes: TextBuffer, lines: DeviceLines) {
        (self.text.bytes, self.text.lines) = (bytes, Some(lines));
    }

    /// Keeps the text; its length is not known, and 0 stands for it.
    ///
    /// # Panics
    /// If the piece would have 4 GiB or more.
    fn document(&mut self, text: &[u8]) -> u32 {
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

    fn finish(&mut self) -> Vec<TextGroup> {
        let text = self.take();
        if let Some(as_lines) = &self.as_lines {
            as_lines.went(text.lines.is_some());
        }
        vec![TextGroup { text, counts: Arc::default(), lengths: Arc::default() }]
    }
}
