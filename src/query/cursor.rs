//! Cursors: a query's places in the lists of its terms ([`RunTerm`]), each with one decoded block.

use super::kernels::{
    BlockRoom, CandidateShares, DocidBlock, FoundDocids, Matches, NO_DOCID, ScoredPostings,
    SoughtDocids, add_documents, first_block, first_posting, match_block, scores, share_out,
};
pub(crate) use super::norms::Norms;
use crate::codec::prefetch::prefetch_bytes;
use crate::cpu::Level;
use crate::index::block_bounds::BlockCodes;
use crate::index::list::{ListError, ListView, MAX_BLOCK, PackedBlock, SegmentColumns};
use crate::index::positions::ListPositions;
use crate::index::run::dense::DenseList;
use crate::query::phrase::Phrase;
use crate::score::block_codes::CODES;
use crate::score::weight::Weight;

#[derive(Clone, Copy, Debug)]
pub struct RunTerm<'a> {
    pub weight: Weight,
    /// `None` if no document of the run has the term.
    pub list: Option<ListView<'a>>,
}

/// A search of one run: what all of its steps need to know.
#[derive(Clone, Copy)]
pub struct RunSearch<'a> {
    pub(crate) terms: &'a [RunTerm<'a>],
    /// The docid of the run's first document, from which those of the lists count.
    pub(crate) first_docid: u32,
    pub(crate) documents: u32,
    /// Of the run's documents.
    pub(crate) norms: Norms<'a>,
    /// The norms of fields, by their numbers; empty if no weight names one.
    pub(crate) fields: &'a [Norms<'a>],
    pub(crate) level: Level,
    /// The bounds of blocks of documents, if the run has any and the weights are linear.
    pub(crate) blocks: Option<BlockBounds<'a>>,
    /// For each term the bitmap of its list, if there is one; empty if nobody asked for them.
    pub(crate) dense: &'a [Option<DenseList>],
    /// The phrases of the query, by their numbers, and for each term where it stands in documents,
    /// if it is in a phrase and the run has that.
    pub(crate) phrases: &'a [Phrase],
    pub(crate) positions: &'a [Option<ListPositions<'a>>],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBounds<'a> {
    /// What codes stand for.
    pub(crate) impacts: &'a [u32; CODES],
    /// For each term those of its list, if it has any.
    pub(crate) lists: &'a [Option<BlockCodes<'a>>],
}

impl<'a> RunSearch<'a> {
    /// The norms that go with a weight.
    #[inline]
    pub(crate) fn norms_for(&self, weight: Weight) -> &Norms<'a> {
        // A weight of the query's norms has number 0, and there may be no fields.
        if weight.field() == 0 { &self.norms } else { &self.fields[weight.field()] }
    }
}

/// No block; the one after it is block 0.
const NONE: usize = usize::MAX;

const PART: usize = 128;

/// From this many on a block's term frequencies are all decoded: that costs about five reads alone.
const FEW_TFS: usize = 5;

/// Bytes to prefetch of a block in which few documents are looked for.
const FETCHED: usize = 192;

/// The decoded block of one list. The tail counts as the block behind the last full one.
///
/// Most indexes use only the first 128 numbers of the arrays. The fields between keep these parts
/// from the same place of a page, where they would evict each other.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Cursor {
    pub(crate) docids: BlockRoom,
    tail_tfs: [u32; MAX_BLOCK],
    apart: [u8; 640],
    tfs: [u32; MAX_BLOCK],
    /// The places of the candidates in the list.
    pub(crate) positions: BlockRoom,
    apart_too: [u8; 576],
    pub(super) scores: [f32; MAX_BLOCK],
    shares: CandidateShares,
    pub(crate) len: usize,
    /// The first posting of the block that is not used up.
    pub(crate) at: usize,
    pub(crate) block: usize,
    /// Its line; arbitrary for the tail.
    line: PackedBlock,
    tfs_block: usize,
    block_len: usize,
    columns: SegmentColumns,
    lines: [PackedBlock; MAX_BLOCK + 16],
}

impl Default for Cursor {
    fn default() -> Self {
        let line = PackedBlock::new(0, [0; 2], 0, 0);
        Cursor {
            docids: [NO_DOCID; MAX_BLOCK + 16],
            tail_tfs: [0; MAX_BLOCK],
            apart: [0; 640],
            tfs: [0; MAX_BLOCK],
            positions: [0; MAX_BLOCK + 16],
            apart_too: [0; 576],
            scores: [0.0; MAX_BLOCK],
            shares: CandidateShares::NONE,
            len: 0,
            at: 0,
            block: NONE,
            line,
            tfs_block: NONE,
            block_len: 0,
            columns: SegmentColumns::default(),
            lines: [line; MAX_BLOCK + 16],
        }
    }
}

impl Cursor {
    pub(crate) fn reset(&mut self) {
        self.len = 0;
        self.at = 0;
        self.block = NONE;
        self.tfs_block = NONE;
        self.columns.close();
    }

    /// Decodes a block, or the tail; `len` is 0 if that is empty.
    #[inline]
    pub(crate) fn load(
        &mut self,
        list: &ListView<'_>,
        block: usize,
        documents: u32,
    ) -> Result<(), ListError> {
        if block < list.full_blocks() {
            let line = list.block(block)?;
            return self.load_line(list, block, line, documents);
        }
        self.len = list.decode_tail(documents, &mut self.docids, &mut self.tail_tfs)?;
        self.begin_block(list, block);
        Ok(())
    }

    #[inline]
    pub(super) fn load_line(
        &mut self,
        list: &ListView<'_>,
        block: usize,
        line: PackedBlock,
        documents: u32,
    ) -> Result<(), ListError> {
        self.line = line;
        self.len = list.block_len();
        let docids = &mut self.docids[..self.len];
        list.docids_of(&self.line, &mut self.columns, documents, docids)?;
        self.begin_block(list, block);
        Ok(())
    }

    /// Sets which block was decoded and drops its postings that are not wanted.
    #[inline]
    fn begin_block(&mut self, list: &ListView<'_>, block: usize) {
        self.block_len = list.block_len();
        self.fill_up();
        self.block = block;
        if let Some(&last) = self.docids[..self.len].last()
            && last >= list.wanted().end
        {
            self.cut_back(list.wanted().end);
        }
    }

    #[cold]
    fn cut_back(&mut self, end: u32) {
        self.len = self.docids[..self.len].partition_point(|&docid| docid < end);
        self.fill_up();
    }

    /// Puts the required [`NO_DOCID`]s behind the docids of the block.
    #[inline(always)]
    fn fill_up(&mut self) {
        let end = self.len.max(1).next_multiple_of(PART);
        if self.len < end {
            self.docids[self.len..end].fill(NO_DOCID);
        }
        if let Some(sixteen) = self.docids[end..].first_chunk_mut::<16>() {
            *sixteen = [NO_DOCID; 16];
        }
    }

    #[inline]
    fn load_tfs(&mut self, list: &ListView<'_>, block: usize) -> Result<(), ListError> {
        if self.tfs_block != block {
            let line = if block == self.block { self.line } else { list.block(block)? };
            let tfs = &mut self.tfs[..list.block_len()];
            list.tfs_of(&line, &mut self.columns, tfs)?;
            self.tfs_block = block;
        }
        Ok(())
    }

    /// Reads the term frequencies of the block; false of the tail, whose own are there.
    #[inline]
    fn load_own_tfs(&mut self, list: &ListView<'_>) -> Result<bool, ListError> {
        let is_full = self.block < list.full_blocks();
        if is_full {
            self.load_tfs(list, self.block)?;
        }
        Ok(is_full)
    }

    /// Reads the term frequencies of the block and scores its postings.
    #[inline]
    pub(super) fn score(
        &mut self,
        list: &ListView<'_>,
        weight: Weight,
        norms: &[f32],
        level: Level,
    ) -> Result<(), ListError> {
        let tfs = if self.load_own_tfs(list)? { &self.tfs } else { &self.tail_tfs };
        scores(level, weight, &self.docids, tfs, self.len, norms, &mut self.scores);
        Ok(())
    }

    /// Adds the scores of the block's postings of the 64 documents from `first` on, whose norms are
    /// given, to their sums.
    #[inline]
    pub(super) fn add_documents(
        &mut self,
        list: &ListView<'_>,
        weight: Weight,
        first: u32,
        norms: &[f32; 64],
        level: Level,
        sums: &mut [f32; 64],
    ) -> Result<(), ListError> {
        let tfs = if self.load_own_tfs(list)? { &self.tfs } else { &self.tail_tfs };
        let postings = ScoredPostings { weight, docids: &self.docids, tfs, len: self.len };
        add_documents(level, postings, first, norms, sums);
        Ok(())
    }

    /// Decodes the next block; `false` behind the last, which stays, used up.
    pub(super) fn load_next(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
    ) -> Result<bool, ListError> {
        let block = self.next_block();
        if block > list.full_blocks() {
            self.at = self.len;
            return Ok(false);
        }
        self.at = 0;
        list.line_ahead(block + 1);
        self.load(list, block, documents)?;
        let start = list.wanted().start;
        if self.docids[0] < start {
            self.at = self.docids[..self.len].partition_point(|&docid| docid < start);
        }
        Ok(self.len > 0)
    }

    /// Goes to the first posting from `docid` on, which must not be before the cursor.
    #[inline]
    pub(super) fn seek(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        docid: u32,
        level: Level,
    ) -> Result<(), ListError> {
        if !self.reaches(docid) {
            self.skip_to(first_block(list.last_docids(), self.next_block(), docid));
            self.load_next(list, documents)?;
        }
        self.seek_in_block(docid, level);
        Ok(())
    }

    #[inline]
    pub(crate) fn reaches(&self, docid: u32) -> bool {
        self.len > 0 && self.docids[self.len - 1] >= docid
    }

    /// Goes to the first posting of the decoded block from `docid` on, or behind its last.
    #[inline]
    pub(crate) fn seek_in_block(&mut self, docid: u32, level: Level) {
        self.at = first_posting(level, &self.docids, self.at, self.len, docid).min(self.len);
    }

    /// The term frequency of the current posting.
    #[inline]
    pub(super) fn tf(&mut self, list: &ListView<'_>) -> Result<u32, ListError> {
        if self.block >= list.full_blocks() {
            return Ok(self.tail_tfs[self.at]);
        }
        if self.tfs_block != self.block && self.line.has_single_tfs() {
            return self.line.tf(list.source(&self.line, &mut self.columns)?, self.at);
        }
        self.load_tfs(list, self.block)?;
        Ok(self.tfs[self.at])
    }

    /// The term frequencies of a block; of the tail, if that was loaded.
    pub(super) fn tfs_at(
        &mut self,
        list: &ListView<'_>,
        block: usize,
    ) -> Result<&[u32], ListError> {
        if block == list.full_blocks() {
            return Ok(&self.tail_tfs[..list.tail_len()]);
        }
        self.load_tfs(list, block)?;
        Ok(&self.tfs[..list.block_len()])
    }

    /// Reads the term frequencies of a block, or of the tail, and returns their number. Panics if
    /// there is no room for them.
    pub(super) fn tfs_of_block(
        &mut self,
        list: &ListView<'_>,
        block: usize,
        documents: u32,
        tfs: &mut [u32],
    ) -> Result<usize, ListError> {
        if block == list.full_blocks() {
            return list.decode_tail(documents, &mut self.docids, tfs);
        }
        let len = list.block_len();
        list.decode_tfs(block, &mut self.columns, &mut tfs[..len])?;
        Ok(len)
    }

    /// Lets [`find`](Self::find) look for candidates from `docid` on, even backwards.
    #[inline]
    pub(super) fn go_back(&mut self, list: &ListView<'_>, docid: u32) {
        let last_docids = list.last_docids();
        let before = self.block.checked_sub(1).and_then(|block| last_docids.get(block));
        if self.block != NONE && before.is_some_and(|last| u32::from_le_bytes(*last) >= docid) {
            self.skip_to(first_block(last_docids, 0, docid));
        }
    }

    pub(super) fn next_block(&self) -> usize {
        self.block.wrapping_add(1)
    }

    /// Makes `block` the next; the cursor has no block until it is loaded.
    pub(super) fn skip_to(&mut self, block: usize) {
        self.block = block.wrapping_sub(1);
        self.len = 0;
    }

    /// The first docid of the block that is not used up.
    pub(crate) fn next_docid(&self) -> Option<u32> {
        self.docids[..self.len].get(self.at).copied()
    }

    /// Makes docids from block `block` on, given by number, the candidates.
    #[inline]
    pub(crate) fn number_positions(&mut self, block: usize, kept: &[u32]) {
        let first = (block * self.block_len) as u32;
        for (position, &number) in self.positions.iter_mut().zip(kept) {
            *position = first + number;
        }
    }

    /// Looks for candidates, which rise from call to call. Sets their docids, numbers and positions
    /// and returns how many were found, and `false` if the list ended before the last of the
    /// candidates.
    ///
    /// Candidates are divided among the blocks before the first is decoded, so that no
    /// hard-to-predict branch waits for decoding, nor one block's decoding for another's.
    pub(crate) fn find(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        sought: SoughtDocids<'_>,
        into: FoundDocids<'_>,
        level: Level,
    ) -> Result<(usize, bool), ListError> {
        let from = if self.block == NONE { 0 } else { self.block };
        let FoundDocids { docids, kept } = into;
        share_out(level, list.last_docids(), from, sought, &mut self.shares);
        // All blocks are prefetched before the first is decoded.
        let blocks = &self.shares.blocks[..self.shares.len];
        for (line, &block) in self.lines.iter_mut().zip(blocks) {
            if (block as usize) < list.full_blocks() {
                *line = list.block(block as usize)?;
                prefetch_bytes(list.bytes_of(line), FETCHED);
            }
        }
        let mut found = 0;
        let mut next = 0;
        for share in 0..self.shares.len {
            let block = self.shares.blocks[share] as usize;
            let end = self.shares.ends[share] as usize;
            if end <= next {
                // Only damage makes last docids fall; no candidate is looked for twice.
                continue;
            }
            if block == self.block {
            } else if block < list.full_blocks() {
                self.load_line(list, block, self.lines[share], documents)?;
            } else {
                self.load(list, block, documents)?;
            }
            if self.len > 0 {
                let first = (block * self.block_len) as u32;
                let block = DocidBlock { docids: &self.docids, len: self.len, first };
                let positions = &mut self.positions;
                let mut matches = Matches { found, docids, kept, positions };
                match_block(level, sought.docids, next, end, block, &mut matches);
                found = matches.found;
            }
            next = end;
        }
        docids[found..found + 16].fill(NO_DOCID);
        let is_tail = self.block == list.full_blocks();
        let last = sought.docids[sought.count - 1];
        let ended = is_tail && (self.len == 0 || self.docids[self.len - 1] < last);
        Ok((found, !ended))
    }

    /// Reads the term frequencies of the first positions, as many as `tfs` has room for.
    pub(super) fn tfs_of_positions(
        &mut self,
        list: &ListView<'_>,
        mut tfs: &mut [u32],
    ) -> Result<(), ListError> {
        let mut done = 0;
        let block_len = list.block_len();
        while let [first, .., last] | [first @ last] = self.positions[done..done + tfs.len()] {
            let block = first as usize / block_len;
            let here = if last as usize / block_len == block {
                tfs.len()
            } else {
                let rest = self.positions[done..].iter();
                rest.take_while(|&&position| position as usize / block_len == block).count()
            };
            let out;
            (out, tfs) = tfs.split_at_mut(here);
            let places = done..done + here;
            done += here;
            if block == list.full_blocks() {
                pick(&self.tail_tfs[..block_len], &self.positions[places], out);
            } else if here >= FEW_TFS || block == self.tfs_block || !self.line.has_single_tfs() {
                self.load_tfs(list, block)?;
                pick(&self.tfs[..block_len], &self.positions[places], out);
            } else {
                let line = if block == self.block { self.line } else { list.block(block)? };
                let source = list.source(&line, &mut self.columns)?;
                for (tf, &position) in out.iter_mut().zip(&self.positions[places]) {
                    *tf = line.tf(source, position as usize % block_len)?;
                }
            }
        }
        Ok(())
    }
}

/// The numbers at some positions of a block, whose length is a power of two.
#[inline]
fn pick(block: &[u32], positions: &[u32], out: &mut [u32]) {
    let last = block.len() - 1;
    for (number, &position) in out.iter_mut().zip(positions) {
        *number = block[position as usize & last];
    }
}
