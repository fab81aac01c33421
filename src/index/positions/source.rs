//! Reads the positions of lists in their order for a merge.

use super::{START_BYTES, check_place, parse};
use crate::codec::positions as codec;
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::TermEntry;
use crate::index::list::ListError;
use crate::index::run::PostingsHeader;
use std::path::{Path, PathBuf};

const ARRAY_WINDOW_BYTES: usize = 4 << 10;

/// The positions of one run, read list by list and block by block. Reads are verified.
#[derive(Debug)]
pub(crate) struct PositionsSource {
    path: PathBuf,
    payload: FileWindow,
    /// On where the blocks of long lists begin.
    starts: FileWindow,
    header: PostingsHeader,
    /// Of the list: the bytes of its first block, how many blocks it has, and where they end.
    start: u64,
    blocks: u64,
    blocks_end: u64,
    block: u64,
    /// A block that is longer than the window.
    long: Vec<u8>,
}

impl PositionsSource {
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        lists: &PostingsHeader,
        window_bytes: usize,
    ) -> Result<Self, IndexError> {
        let path = run.path(generation, FileKind::Positions);
        let mut payload = FileWindow::open(&path, window_bytes.max(HEADER_BYTES))?;
        let length = payload.length();
        let first = usize::try_from(length).map_or(HEADER_BYTES, |length| length.min(HEADER_BYTES));
        let header = parse(&path, payload.read(0, first)?, length, lists)?;
        let payload = payload.verifying(header.layout())?;
        let starts = FileWindow::open(&path, ARRAY_WINDOW_BYTES)?.verifying(header.layout())?;
        let (start, blocks, blocks_end, block, long) = Default::default();
        Ok(Self { path, payload, starts, header, start, blocks, blocks_end, block, long })
    }

    /// Goes to the positions of a list.
    pub(crate) fn begin(&mut self, term: &TermEntry, block_len: usize) -> Result<(), IndexError> {
        check_place(&self.path, &self.header, term)?;
        self.start = HEADER_BYTES as u64 + term.positions;
        self.blocks = u64::from(term.df).div_ceil(block_len as u64);
        self.block = 0;
        let starts = START_BYTES as u64 * self.blocks.saturating_sub(1);
        let Some(end) = term.position_bytes.checked_sub(starts) else {
            let found = term.position_bytes;
            return Err(self.wrong(ListError::CutShort { offset: 0, expected: starts, found }));
        };
        self.blocks_end = end;
        Ok(())
    }

    fn wrong(&self, error: ListError) -> IndexError {
        IndexError::list(&self.path, self.start)(error)
    }

    /// Where a block begins, or the one before it ends.
    fn block_start(&mut self, block: u64) -> Result<u64, IndexError> {
        if block == 0 || block >= self.blocks {
            return Ok(if block == 0 { 0 } else { self.blocks_end });
        }
        let at = self.start + self.blocks_end + START_BYTES as u64 * (block - 1);
        let bytes = self.starts.read(at, START_BYTES)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into())
    }

    /// Reads the values of the next block of the list, whose term frequencies are these.
    pub(crate) fn next(&mut self, tfs: &[u32], values: &mut Vec<u32>) -> Result<(), IndexError> {
        let start = self.block_start(self.block)?;
        let end = self.block_start(self.block + 1)?;
        self.block += 1;
        let damaged = ListError::Positions { offset: start };
        let bytes = end.checked_sub(start).filter(|_| end <= self.blocks_end);
        let count: u64 = tfs.iter().map(|&tf| u64::from(tf)).sum();
        let fits = |bytes: &u64| codec::may_hold(*bytes as usize, count, tfs.len());
        let Some(bytes) = bytes.filter(fits) else { return Err(self.wrong(damaged)) };
        values.clear();
        values.resize(count as usize, 0);
        let at = self.start + start;
        let here = match bytes <= self.payload.capacity() as u64 {
            true => self.payload.read(at, bytes as usize)?,
            false => {
                self.long.clear();
                while (self.long.len() as u64) < bytes {
                    let done = self.long.len() as u64;
                    let more = self.payload.read(at + done, (bytes - done) as usize)?;
                    self.long.extend_from_slice(more);
                }
                &self.long
            }
        };
        let is_read = codec::decode(here, values).is_some();
        if is_read { Ok(()) } else { Err(self.wrong(damaged)) }
    }
}
