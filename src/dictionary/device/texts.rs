//! The texts of a piece's documents, or its lines, for the kernels of `invert.cu`, which find the
//! words. Counts of the piece and lengths of its documents are known only later.

use super::lines::{AsLines, DeviceLines, LineShape};
use super::text_buffers::{TextBuffer, TextBuffers};
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use std::cell::Cell;
use std::sync::Arc;

pub(crate) const SEPARATOR: u8 = b' ';

/// The texts of a piece's documents, each with a [`SEPARATOR`] behind it; or its lines, of which
/// the device finds the texts.
#[derive(Debug, Default)]
pub struct PieceText {
    pub bytes: TextBuffer,
    /// The beginning of each text; the last one ends with the bytes.
    pub starts: Vec<u32>,
    /// Set if the bytes are lines.
    pub lines: Option<DeviceLines>,
}

impl PieceText {
    fn of(buffers: &Arc<TextBuffers>) -> Self {
        Self { bytes: TextBuffer::of(buffers), starts: Vec::new(), lines: None }
    }

    /// The same texts as lines, a string of JSON each. No text takes more than the line from which
    /// it came.
    pub(crate) fn as_lines(&self, of: &DeviceLines) -> Self {
        let mut bytes = self.bytes.beside(0);
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len() as u32]);
        for (&start, end) in self.starts.iter().zip(ends) {
            let mut rest = &self.bytes[start as usize..end as usize - 1];
            bytes.extend([b"\""]);
            while let Some(at) = memchr::memchr3(b'"', b'\\', b'\n', rest) {
                let escape: &[u8] = match rest[at] {
                    b'"' => b"\\\"",
                    b'\\' => b"\\\\",
                    _ => b"\\n",
                };
                bytes.extend([&rest[..at], escape]);
                rest = &rest[at + 1..];
            }
            bytes.extend([rest, b"\"\n"]);
        }
        let lines = DeviceLines { shape: LineShape::of_strings(), longest: u32::MAX, ..*of };
        Self { bytes, starts: Vec::new(), lines: Some(lines) }
    }

    /// 0 for lines, where it is not known yet.
    pub(crate) fn documents(&self) -> u32 {
        self.starts.len() as u32
    }
}

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
pub struct TextGatherer {
    text: PieceText,
    /// Bytes and documents of the last piece: the next one's are about as many.
    last: (usize, usize),
    buffers: Arc<TextBuffers>,
    as_lines: Option<Arc<AsLines>>,
    /// The lines of this piece do not go to the device, since it could not read earlier ones.
    pauses: Cell<bool>,
    /// If it changes texts.
    analysis: Option<Analysis>,
}

impl TextGatherer {
    pub fn new(buffers: Arc<TextBuffers>) -> Self {
        let text = PieceText::of(&buffers);
        let pauses = Cell::new(false);
        Self { text, last: (0, 0), buffers, as_lines: None, pauses, analysis: None }
    }

    /// The device gets texts as this analysis prepares them.
    #[must_use]
    pub(crate) fn prepared_by(self, analysis: &Analysis) -> Self {
        let analysis = analysis.prepares().then(|| analysis.clone());
        Self { analysis, ..self }
    }

    /// The first piece is expected to have so many bytes.
    #[must_use]
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        Self { last: (bytes, 0), ..self }
    }

    /// The device is given lines where it takes them.
    #[must_use]
    pub(crate) fn with_lines(self, as_lines: Option<Arc<AsLines>>) -> Self {
        Self { as_lines, ..self }
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
    type Group = TextGroup;

    const COUNTED_LATER: bool = true;

    fn hashes_later(&self) -> bool {
        self.analysis.is_none()
    }

    fn line_buffer(&self) -> Option<TextBuffer> {
        let takes = self.as_lines.as_ref().is_some_and(|lines| lines.takes());
        self.pauses.set(!takes);
        takes.then(|| TextBuffer::of(&self.buffers))
    }

    fn lines(&mut self, bytes: TextBuffer, lines: DeviceLines) {
        self.text.bytes = bytes;
        self.text.lines = Some(lines);
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

    fn finish(&mut self) -> Vec<TextGroup> {
        let text = self.take();
        if let Some(as_lines) = &self.as_lines {
            as_lines.went(text.lines.is_some());
            // What is no lines of a shape among others that are: batches are one or the other.
            if !self.pauses.take() && !text.starts.is_empty() {
                as_lines.has_failed();
            }
        }
        vec![TextGroup { text, counts: Arc::default(), lengths: Arc::default() }]
    }
}
