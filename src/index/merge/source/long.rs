//! Lists that are longer than a window are read block by block: a window goes over the blocks, and
//! one over each of the arrays that describe them.

use super::{
    ARRAY_WINDOW_BYTES, BLOCK_BYTES, Encoders, ListSource, SLACK, TAIL_BYTES, Target, block_of,
};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::lexicon::TermEntry;
use crate::index::list::{
    BEFORE_FIRST, BlockSource, Form, ListError, ListLayout, MOST_SHARED_BYTES, PackedBlock,
    RECORD_BYTES, Segment, WholeBlock, decode_tail,
};
use crate::score::bounds::BOUND_BYTES;

impl ListSource {
    pub(super) fn append_long(
        &mut self,
        start: u64,
        list: TermEntry,
        target: &mut impl Target,
        mut drain: impl FnMut(&mut Encoders) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let path = self.path.clone();
        let wrong = |error| IndexError::list(&path, start)(error);
        let form = self.header.form;
        let block_len = form.block_len();
        let layout = ListLayout::new(form, list.df, list.bytes).map_err(wrong)?;
        let full = u64::from(layout.full);
        let mut long = LongList::open(self, start, layout)?;
        let mut notes = LongList::window(self)?;
        let mut bounds = LongList::window(self)?;
        for block in 0..full {
            let (line, last) = long.line(self, block, &mut notes)?;
            let layout = &long.layout;
            // `docids` below refuses widths and sizes that are too great; until then they must not
            // lead astray.
            let bytes = line.bytes().min(BLOCK_BYTES - SLACK);
            if long.offset + bytes as u64 > layout.last_docids {
                let (offset, expected) = (long.offset, bytes as u64);
                let found = layout.last_docids - offset;
                return Err(wrong(ListError::CutShort { offset, expected, found }));
            }
            let payload = self.payload.read(start + long.offset, bytes + SLACK)?;
            let mut source = BlockSource::alone(payload);
            if form.has_segments() {
                source.columns = self.columns.lists(long.segment.shared());
            }
            let docids = &mut self.docids[..block_len];
            line.docids(source, self.documents, docids).map_err(wrong)?;
            let is_taken = !form.has_segments() && self.positions.is_none() && {
                let at = start + layout.heads + form.head_bytes() as u64 * block;
                let head = notes.read(at, form.head_bytes())?;
                let at = start + layout.bounds + BOUND_BYTES as u64 * block;
                let bound = bounds.read(at, BOUND_BYTES)?;
                let bound = *bound.first_chunk().expect("the window has room for a bound");
                let whole = WholeBlock { line, bytes: payload, head, bound };
                self.base.push_whole(&whole, target)
            };
            if !is_taken {
                let tfs = &mut self.tfs[..block_len];
                line.tfs(source, tfs).map_err(wrong)?;
                let postings = block_of(&mut self.positions, docids, tfs, &mut self.values)?;
                self.base.push(postings, target)?;
            }
            target.drain(&mut drain)?;
            long.skip(form, block, bytes, last);
        }
        let LongList { layout, offset, previous, .. } = long;
        let tail = layout.last_docids - offset;
        if tail > TAIL_BYTES {
            return Err(wrong(ListError::Rest { offset: offset + TAIL_BYTES, found: tail }));
        }
        let count = layout.tail_len as usize;
        let bytes = self.payload.read(start + offset, tail as usize)?;
        let docids = &mut self.docids;
        let tfs = &mut self.tfs;
        decode_tail(bytes, offset, count, previous, self.documents, docids, tfs).map_err(wrong)?;
        let (docids, tfs) = (&docids[..count], &tfs[..count]);
        let postings = block_of(&mut self.positions, docids, tfs, &mut self.values)?;
        self.base.push(postings, target)?;
        target.drain(&mut drain)
    }
}

/// A list that is read block by block, and where its next block is.
struct LongList {
    start: u64,
    layout: ListLayout,
    last_docids: FileWindow,
    segment: OpenSegment,
    offset: u64,
    /// The last docid before it.
    previous: u32,
}

impl LongList {
    fn open(source: &ListSource, start: u64, layout: ListLayout) -> Result<Self, IndexError> {
        let last_docids = Self::window(source)?;
        let (segment, previous) = (OpenSegment::default(), BEFORE_FIRST);
        Ok(Self { start, layout, last_docids, segment, offset: 0, previous })
    }

    /// On one of the arrays of the list.
    fn window(source: &ListSource) -> Result<FileWindow, IndexError> {
        FileWindow::open(&source.path, ARRAY_WINDOW_BYTES)?.verifying(source.header.layout())
    }

    /// What the arrays say of a block, and its last docid; opens the segment that begins there.
    fn line(
        &mut self,
        source: &mut ListSource,
        block: u64,
        notes: &mut FileWindow,
    ) -> Result<(PackedBlock, u32), IndexError> {
        let form = source.header.form;
        let last = self.last_docids.read(self.start + self.layout.last_docids + 4 * block, 4)?;
        let last = u32::from_le_bytes([last[0], last[1], last[2], last[3]]);
        if !form.has_segments() {
            let head_bytes = form.head_bytes();
            let at = self.start + self.layout.heads + head_bytes as u64 * block;
            let head = notes.read(at, head_bytes)?.as_chunks().0;
            return Ok((PackedBlock::of_form(form, self.offset, head, self.previous, last), last));
        }
        let number = block as usize;
        if number.is_multiple_of(form.segment_blocks()) {
            let blocks = (self.layout.full as usize - number).min(form.segment_blocks());
            let number = number / form.segment_blocks();
            let at = self.start + self.layout.places + (RECORD_BYTES * number) as u64;
            let record = notes.read(at, RECORD_BYTES)?.as_chunks().0.first_chunk();
            let segment = &mut self.segment;
            segment.segment =
                Segment::parse(form, record.expect("the window has room for a record"));
            let at = at - self.start;
            segment.read(&mut source.payload, self.start, &self.layout, at, self.offset)?;
            source
                .columns
                .open(form, number, blocks, &segment.segment, segment.shared())
                .map_err(IndexError::list(&source.path, self.start))?;
            self.offset += segment.segment.shared_bytes();
        }
        let segment = &self.segment.segment;
        Ok((PackedBlock::of_segment(form, segment, number, self.previous, last), last))
    }

    /// Goes behind a block.
    fn skip(&mut self, form: Form, block: u64, bytes: usize, last: u32) {
        self.offset += bytes as u64;
        // A segment is padded where it ends.
        let in_segment = form.segment_blocks() as u64;
        if (block + 1).is_multiple_of(in_segment) || block + 1 == u64::from(self.layout.full) {
            self.offset = self.offset.next_multiple_of(4).min(self.layout.last_docids);
        }
        self.previous = last;
    }
}

#[derive(Debug, Default)]
struct OpenSegment {
    segment: Segment,
    bytes: Vec<u8>,
}

impl OpenSegment {
    /// Reads the shared part of the segment of the list at `start`, whose record stands at
    /// `record`, and which has to begin at `offset`.
    fn read(
        &mut self,
        payload: &mut FileWindow,
        start: u64,
        layout: &ListLayout,
        record: u64,
        offset: u64,
    ) -> Result<(), IndexError> {
        let path = payload.path().to_path_buf();
        let wrong = |error| IndexError::list(&path, start)(error);
        let found = self.segment.offset;
        if found != offset {
            return Err(wrong(ListError::Place {
                offset: record,
                expected: offset / 4,
                found: found / 4,
            }));
        }
        let expected = self.segment.shared_bytes();
        let found = layout.last_docids - offset;
        let most = found.min(MOST_SHARED_BYTES);
        if expected > most {
            return Err(wrong(ListError::CutShort { offset, expected, found: most }));
        }
        self.bytes.clear();
        while (self.bytes.len() as u64) < expected {
            let rest = expected as usize - self.bytes.len();
            let at = start + offset + self.bytes.len() as u64;
            self.bytes.extend_from_slice(payload.read(at, rest)?);
        }
        Ok(())
    }

    /// Of the gaps and of the term frequencies.
    fn shared(&self) -> [&[u8]; 2] {
        let (gaps, tfs) = self.bytes.split_at(self.segment.shared[0] as usize);
        [gaps, tfs]
    }
}
