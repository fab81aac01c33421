//! Reads the postings of lists for the encoder without holding a list.

mod long;

use super::lengths::Lengths;
use crate::codec::folded;
use crate::dictionary::strings::short;
use crate::index::deletions::Deletions;
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileKind, HEADER_BYTES, POSTINGS_SLACK};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::{LexiconStream, TermEntry};
use crate::index::list::{
    BEFORE_FIRST, Form, ListEncoder, ListError, ListView, MAX_BLOCK, SegmentColumns, WholeBlock,
    decode_tail,
};
use crate::index::positions::{PositionsEncoder, PositionsSource};
use crate::index::run::{PostingsHeader, check_agreement};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ARRAY_WINDOW_BYTES: usize = 4 << 10;
/// Bytes that a block may take: 5 a value and 4 more at the end, and the slack of wide loads.
const BLOCK_BYTES: usize = 2 * 5 * MAX_BLOCK + 4 + SLACK;
/// The most bytes of a tail: two integers for each posting.
const TAIL_BYTES: u64 = 2 * 10 * (MAX_BLOCK as u64 - 1);
const SLACK: usize = POSTINGS_SLACK as usize;

/// Takes the postings of lists.
pub(super) trait Target {
    /// Takes postings in the order of docids, with their `values` if the run has positions, of each
    /// its first position and the gaps between the others. `first` is the place of the merged run's
    /// first document among the lengths, and this many of its `documents` come before docid 0.
    /// `codes` is scratch.
    fn take(
        &mut self,
        first: u32,
        documents: u32,
        postings: BlockPostings<'_>,
        codes: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError>;

    /// Takes the postings of a block as it is, where `documents` of the merged run come before
    /// docid 0; false if it cannot.
    fn take_whole(&mut self, _documents: u32, _block: &WholeBlock<'_>) -> bool {
        false
    }

    /// Calls `drain` with the lists so far, if there are any.
    fn drain(
        &mut self,
        _drain: &mut impl FnMut(&mut Encoders) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        Ok(())
    }
}

/// Some postings of a list.
#[derive(Clone, Copy)]
pub(super) struct BlockPostings<'a> {
    pub(super) docids: &'a [u32],
    pub(super) tfs: &'a [u32],
    pub(super) values: &'a [u32],
}

/// What writes the merged lists, and their positions.
pub(super) struct Encoders {
    pub(super) lists: ListEncoder,
    pub(super) positions: Option<PositionsEncoder>,
}

impl Encoders {
    pub(super) fn new(form: Form) -> Self {
        let positions = form.has_positions().then(|| PositionsEncoder::new(form.block_len()));
        Self { lists: ListEncoder::of_form(form), positions }
    }
}

pub(super) struct ListEncoding<'a> {
    pub(super) lengths: &'a Lengths,
    pub(super) encoders: &'a mut Encoders,
}

impl Target for ListEncoding<'_> {
    #[inline]
    fn take(
        &mut self,
        first: u32,
        documents: u32,
        BlockPostings { docids, tfs, values }: BlockPostings<'_>,
        codes: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError> {
        self.lengths.of(u64::from(first) + u64::from(documents), docids, codes)?;
        // Sums are below the documents of all runs together, which fit a u32.
        self.encoders.lists.push_all(documents, docids, tfs, &codes[..docids.len()]);
        if let Some(positions) = &mut self.encoders.positions {
            positions.push(tfs, values);
        }
        Ok(())
    }

    #[inline]
    fn take_whole(&mut self, documents: u32, block: &WholeBlock<'_>) -> bool {
        self.encoders.lists.push_block(documents, block)
    }

    fn drain(
        &mut self,
        drain: &mut impl FnMut(&mut Encoders) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        drain(self.encoders)
    }
}

/// The lists of one run, read in their order.
#[derive(Debug)]
pub(super) struct ListSource {
    path: PathBuf,
    payload: FileWindow,
    header: PostingsHeader,
    documents: u32,
    base: Base,
    /// Of a run with positions those of its lists, and the values of a block.
    positions: Option<PositionsSource>,
    values: Vec<u32>,
    columns: SegmentColumns,
    docids: [u32; MAX_BLOCK],
    tfs: [u32; MAX_BLOCK],
}

impl ListSource {
    pub(super) fn open(
        generation: &Path,
        run: &RunEntry,
        lexicon: &LexiconStream,
        base: Base,
        window_bytes: usize,
        with_positions: bool,
    ) -> Result<Self, IndexError> {
        let path = run.path(generation, FileKind::Postings);
        let window_bytes = if with_positions { window_bytes / 2 } else { window_bytes };
        let positions_bytes = window_bytes;
        let window_bytes = window_bytes.max(TAIL_BYTES as usize).max(BLOCK_BYTES);
        let mut payload = FileWindow::open(&path, window_bytes)?;
        let length = payload.length();
        let first = usize::try_from(length).map_or(HEADER_BYTES, |length| length.min(HEADER_BYTES));
        let header = PostingsHeader::parse(&path, payload.read(0, first)?, length)?;
        check_agreement(run, lexicon.path(), lexicon.header(), &path, &header)?;
        // Blocks are copied with bounds that are not checked.
        let payload = payload.verifying(header.layout())?;
        let documents = run.documents;
        let columns = SegmentColumns::default();
        let docids = [0; MAX_BLOCK];
        let tfs = [0; MAX_BLOCK];
        let positions = with_positions
            .then(|| PositionsSource::open(generation, run, &header, positions_bytes))
            .transpose()?;
        let values = Vec::new();
        Ok(Self { path, payload, header, documents, base, positions, values, columns, docids, tfs })
    }

    /// Hands on all postings of a list, and calls `drain` with the output now and then.
    pub(super) fn append(
        &mut self,
        list: TermEntry,
        target: &mut impl Target,
        drain: impl FnMut(&mut Encoders) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let start = self.start(&list)?;
        self.columns.close();
        if let Some(positions) = &mut self.positions {
            positions.begin(&list, self.header.form.block_len())?;
        }
        if list.bytes + POSTINGS_SLACK <= self.payload.capacity() as u64 {
            self.append_short(start, list, target)
        } else {
            self.append_long(start, list, target, drain)
        }
    }

    #[inline]
    fn start(&self, list: &TermEntry) -> Result<u64, IndexError> {
        let end = list.offset.checked_add(list.bytes);
        if end.is_none_or(|end| end > self.header.list_bytes) {
            let expected = format!("lists inside of {} bytes", self.header.list_bytes);
            let found = format!("one of {} bytes from {} on", list.bytes, list.offset);
            return Err(IndexError::damaged(&self.path, 32, expected, found));
        }
        Ok(HEADER_BYTES as u64 + list.offset)
    }

    /// Whether a list is nothing but a tail.
    #[inline]
    pub(super) fn is_tail(&self, list: &TermEntry) -> bool {
        self.base.deletions.is_none()
            && self.positions.is_none()
            && (list.df as usize) < self.header.form.block_len()
    }

    /// Appends a list that [is a tail](Self::is_tail) to another one whose last docid is `last`, or
    /// [`BEFORE_FIRST`]: only the first gap changes. Returns the last docid.
    pub(super) fn append_tail(
        &mut self,
        list: TermEntry,
        last: u32,
        to: &mut Vec<u8>,
    ) -> Result<u32, IndexError> {
        let start = self.start(&list)?;
        let Self { path, payload, documents, base, docids, tfs, .. } = self;
        let wrong = |error| IndexError::list(path, start)(error);
        let df = list.df as usize;
        let size = usize::try_from(list.bytes).unwrap_or(usize::MAX);
        let bytes = payload.read(start, size)?;
        let gaps = &mut docids[..df];
        let tfs = &mut tfs[..df];
        let mut at = 0;
        let count = folded::get_many(bytes, &mut at, gaps, tfs);
        let all = gaps.iter().map(|&gap| u64::from(gap) + 1).sum::<u64>();
        let is_whole = count == Some(df) && at == size && df > 0;
        if !is_whole || all > u64::from(*documents) {
            let error = decode_tail(bytes, 0, df, BEFORE_FIRST, *documents, gaps, tfs).err();
            return Err(wrong(error.unwrap_or(ListError::Empty)));
        }
        // Sums are below the documents of all runs together, which fit a u32.
        let first = base.documents + gaps[0];
        let first_bytes = folded::bytes(gaps[0], tfs[0] + 1);
        folded::put(first.wrapping_sub(last).wrapping_sub(1), tfs[0] + 1, to);
        short::push(&bytes[first_bytes..], to);
        Ok(base.documents + (all - 1) as u32)
    }

    fn append_short(
        &mut self,
        start: u64,
        list: TermEntry,
        target: &mut impl Target,
    ) -> Result<(), IndexError> {
        let Self {
            path,
            payload,
            header,
            documents,
            base,
            positions,
            values,
            columns,
            docids,
            tfs,
        } = self;
        let wrong = |error| IndexError::list(path, start)(error);
        let bytes = payload.read(start, list.bytes as usize + SLACK)?;
        let view = ListView::of_form(header.form, list.df, list.bytes, bytes).map_err(wrong)?;
        let block_len = view.block_len();
        for block in 0..view.full_blocks() {
            let docids = &mut docids[..block_len];
            let tfs = &mut tfs[..block_len];
            let line = view.block(block).map_err(wrong)?;
            view.docids_of(&line, columns, *documents, docids).map_err(wrong)?;
            if view.form().has_segments()
                || positions.is_some()
                || !base.push_whole(&view.whole_block(block, line), target)
            {
                view.tfs_of(&line, columns, tfs).map_err(wrong)?;
                base.push(block_of(positions, docids, tfs, values)?, target)?;
            }
        }
        let count = view.decode_tail(*documents, docids, tfs).map_err(wrong)?;
        let (docids, tfs) = (&docids[..count], &tfs[..count]);
        base.push(block_of(positions, docids, tfs, values)?, target)
    }
}

/// Some postings, the next block of their list or its tail, with their values.
fn block_of<'a>(
    positions: &mut Option<PositionsSource>,
    docids: &'a [u32],
    tfs: &'a [u32],
    values: &'a mut Vec<u32>,
) -> Result<BlockPostings<'a>, IndexError> {
    if let Some(positions) = positions
        && !tfs.is_empty()
    {
        positions.next(tfs, values)?;
    }
    Ok(BlockPostings { docids, tfs, values })
}

#[derive(Debug)]
pub(super) struct Base {
    /// Place of the merged run's first document among the lengths.
    first: u32,
    /// Documents of the merged run before those of this run.
    documents: u32,
    deletions: Option<Arc<Deletions>>,
    /// Scratch for the codes of lengths, and for the postings of other documents.
    codes: [u8; MAX_BLOCK],
    docids: [u32; MAX_BLOCK],
    tfs: [u32; MAX_BLOCK],
    values: Vec<u32>,
}

impl Base {
    pub(super) fn new(first: u32, documents: u32, deletions: Option<Arc<Deletions>>) -> Self {
        let docids = [0; MAX_BLOCK];
        let tfs = [0; MAX_BLOCK];
        let values = Vec::new();
        Self { first, documents, deletions, codes: [0; MAX_BLOCK], docids, tfs, values }
    }

    /// Hands on a block as it is, if possible.
    #[inline]
    fn push_whole(&self, block: &WholeBlock<'_>, target: &mut impl Target) -> bool {
        self.deletions.is_none() && target.take_whole(self.documents, block)
    }

    #[inline]
    fn push(
        &mut self,
        postings: BlockPostings<'_>,
        target: &mut impl Target,
    ) -> Result<(), IndexError> {
        let mut kept = postings;
        if let Some(deletions) = &self.deletions {
            let mut count = 0;
            let mut start = 0;
            self.values.clear();
            for (&docid, &tf) in postings.docids.iter().zip(postings.tfs) {
                let end = start + tf as usize;
                if !deletions.contains(docid) {
                    (self.docids[count], self.tfs[count]) = (docid - deletions.before(docid), tf);
                    self.values.extend_from_slice(postings.values.get(start..end).unwrap_or(&[]));
                    count += 1;
                }
                start = end;
            }
            let (docids, tfs) = (&self.docids[..count], &self.tfs[..count]);
            kept = BlockPostings { docids, tfs, values: &self.values };
        }
        target.take(self.first, self.documents, kept, &mut self.codes)
    }
}
