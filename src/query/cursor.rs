//! Where does a query stand in the lists of its terms? [`RunTerm`] names a list, [`Scratch`] keeps
//! all memory that queries need from one to the next, and a cursor holds the one block of its list
//! that is decoded.

use super::kernels::{Block, Matches, NO_DOCID, Room, first_block, match_block, scores};
use crate::codec::level::{Level, level};
use crate::index::list::{BLOCK, ListError, ListView};

/// A term of a query in one run.
#[derive(Clone, Copy, Debug)]
pub struct RunTerm<'a> {
    /// Weight of the term (`score::bm25`), 0 or more.
    pub weight: f32,
    /// Its list, or `None` if no document of the run has the term.
    pub list: Option<ListView<'a>>,
}

/// The memory of a worker's queries. It grows to what the largest query took and is used again, so
/// that in the long run no query allocates.
#[derive(Debug)]
pub struct Scratch {
    pub(super) level: Level,
    /// One for each term; more if an earlier query had more.
    pub(super) cursors: Vec<Cursor>,
    /// Numbers of the terms, shortest list first.
    pub(super) order: Vec<usize>,
    /// Sums of the documents of a window, all [`UNMATCHED`](super::kernels::UNMATCHED) between
    /// queries.
    pub(super) accumulators: Vec<f32>,
    /// Matched documents of a window.
    pub(super) touched: Vec<u32>,
    /// What the last list searched had of the candidates.
    pub(super) matches: Matches,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// No memory yet.
    pub fn new() -> Self {
        Scratch {
            level: level(),
            cursors: Vec::new(),
            order: Vec::new(),
            accumulators: Vec::new(),
            touched: Vec::new(),
            matches: Matches::default(),
        }
    }

    /// Brings `count` cursors to the beginning of their lists.
    pub(super) fn reset_cursors(&mut self, count: usize) {
        if self.cursors.len() < count {
            self.cursors.resize_with(count, Cursor::default);
        }
        self.cursors[..count].iter_mut().for_each(Cursor::reset);
    }
}

/// Checks what a search was called with; it is the caller's mistake if this is not so.
pub(super) fn check_run(first_docid: u32, documents: u32, norms: &[f32]) {
    assert!(norms.len() >= documents as usize, "{} norms of {documents} documents", norms.len());
    assert!(first_docid.checked_add(documents).is_some(), "{documents} from {first_docid} on");
}

/// No block; the one after it is block 0.
const NONE: usize = usize::MAX;

/// The decoded block of one list, and what a search keeps beside it. The tail counts as the block
/// behind the last full one.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Cursor {
    /// The docids of the block, then [`NO_DOCID`].
    pub(super) docids: [u32; BLOCK],
    tfs: [u32; BLOCK],
    tail_tfs: [u32; BLOCK],
    /// What each posting of the block adds to the score of its document.
    pub(super) scores: [f32; BLOCK],
    /// Where in the list each of the candidates was found.
    pub(super) positions: Room,
    /// How many docids the block has.
    pub(super) len: usize,
    /// The first posting of the block that is not used up.
    pub(super) at: usize,
    /// The block that `docids` holds.
    pub(super) block: usize,
    /// The block that `tfs` holds.
    tfs_block: usize,
}

impl Default for Cursor {
    fn default() -> Self {
        Cursor {
            docids: [0; BLOCK],
            tfs: [0; BLOCK],
            tail_tfs: [0; BLOCK],
            scores: [0.0; BLOCK],
            positions: [0; BLOCK + 16],
            len: 0,
            at: 0,
            block: NONE,
            tfs_block: NONE,
        }
    }
}

impl Cursor {
    fn reset(&mut self) {
        (self.len, self.at, self.block, self.tfs_block) = (0, 0, NONE, NONE);
    }

    /// Decodes a block, or the tail; `len` is 0 if that is empty.
    pub(super) fn load(
        &mut self,
        list: &ListView<'_>,
        block: usize,
        documents: u32,
    ) -> Result<(), ListError> {
        if block < list.full_blocks() {
            list.decode_block(block, documents, &mut self.docids)?;
            self.len = BLOCK;
        } else {
            self.len = list.decode_tail(documents, &mut self.docids, &mut self.tail_tfs)?;
            self.docids[self.len..].fill(NO_DOCID);
        }
        self.block = block;
        Ok(())
    }

    /// Decodes a block, or the tail, and makes its postings the positions.
    pub(super) fn load_positions(
        &mut self,
        list: &ListView<'_>,
        block: usize,
        documents: u32,
    ) -> Result<(), ListError> {
        self.load(list, block, documents)?;
        let first = (block * BLOCK) as u32;
        for (i, position) in self.positions[..self.len].iter_mut().enumerate() {
            *position = first + i as u32;
        }
        Ok(())
    }

    /// Reads the term frequencies of the block and sets what each posting adds to the score of its
    /// document.
    pub(super) fn score(
        &mut self,
        list: &ListView<'_>,
        weight: f32,
        norms: &[f32],
        level: Level,
    ) -> Result<(), ListError> {
        let tfs = if self.block < list.full_blocks() {
            list.decode_tfs(self.block, &mut self.tfs)?;
            self.tfs_block = self.block;
            &self.tfs
        } else {
            &self.tail_tfs
        };
        // Adding zero makes minus zero plus zero, and leaves any other weight alone.
        scores(level, weight + 0.0, (&self.docids, tfs), self.len, norms, &mut self.scores);
        Ok(())
    }

    /// The number of the block after the decoded one.
    pub(super) fn next_block(&self) -> usize {
        self.block.wrapping_add(1)
    }

    /// The first docid of the block that is not used up.
    pub(super) fn next_docid(&self) -> Option<u32> {
        self.docids[..self.len].get(self.at).copied()
    }

    /// Looks for `count` candidates, which rise from call to call, and puts those found into
    /// `matches`. `false` if the list ended before the last of them.
    pub(super) fn find(
        &mut self,
        level: Level,
        list: &ListView<'_>,
        documents: u32,
        (candidates, count): (&Room, usize),
        matches: &mut Matches,
    ) -> Result<bool, ListError> {
        matches.found = 0;
        let mut next = 0;
        while next < count {
            let from = if self.block == NONE { 0 } else { self.block };
            let block = first_block(level, list.last_docids(), from, candidates[next]);
            if block != self.block {
                self.load(list, block, documents)?;
            }
            if self.len == 0 || self.docids[self.len - 1] < candidates[next] {
                return Ok(false);
            }
            let first = (block * BLOCK) as u32;
            let block = Block { docids: &self.docids, len: self.len, first };
            next = match_block(level, candidates, (next, count), block, matches);
        }
        Ok(true)
    }

    /// Reads the term frequencies of the first `count` positions.
    pub(super) fn tfs_of_positions(
        &mut self,
        list: &ListView<'_>,
        count: usize,
        tfs: &mut [u32; BLOCK],
    ) -> Result<(), ListError> {
        let mut rest = &self.positions[..count];
        let mut tfs = &mut tfs[..count];
        while let Some(&first) = rest.first() {
            let block = first as usize / BLOCK;
            let end = (block * BLOCK + BLOCK) as u64;
            let here = rest.iter().take_while(|&&position| u64::from(position) < end).count();
            let (positions, out);
            (positions, rest) = rest.split_at(here);
            (out, tfs) = tfs.split_at_mut(here);
            let place = |position: &u32| *position as usize % BLOCK;
            if block == list.full_blocks() {
                for (tf, position) in out.iter_mut().zip(positions) {
                    *tf = self.tail_tfs[place(position)];
                }
            } else if here < FEW_TFS && block != self.tfs_block {
                let line = list.block(block)?;
                let bytes = list.bytes_of(&line);
                for (tf, position) in out.iter_mut().zip(positions) {
                    *tf = line.tf(bytes, place(position))?;
                }
            } else {
                if block != self.tfs_block {
                    list.decode_tfs(block, &mut self.tfs)?;
                    self.tfs_block = block;
                }
                for (tf, position) in out.iter_mut().zip(positions) {
                    *tf = self.tfs[place(position)];
                }
            }
        }
        Ok(())
    }
}

/// From this many on, all term frequencies of a block are decoded: that costs as much as reading
/// about five alone.
const FEW_TFS: usize = 5;
