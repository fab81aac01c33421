//! The GPU indexer: tokens in, runs out (Wei and JaJa, *A fast algorithm for constructing inverted
//! files on heterogeneous platforms*, IPDPS 2011, section III.D.2).
//!
//! The host's side of `kernels/wei11/btree.cu`, which never waits:
//!
//! 1. A parsed block goes to the device through a pinned buffer; the kernel that inserts its tokens
//!    is launched behind the copy. Several blocks are under way: the next one is there when the one
//!    before is inserted. What is too large for a buffer goes in parts (`cut`).
//! 2. Before a launch the host makes sure that no arena can be full in the midst of it, from the
//!    counters of the last launch that is done and what comes on top ([`TreeUsage::with`]). If
//!    there is no room the device is emptied: what it holds becomes a part of the run on the host,
//!    and the arenas begin again. Parts take less memory than the run may cost the host
//!    (`order::Budget`), which counts every term and posting, of any owner.
//! 3. When the run closes, the device's terms are collected in the order of the lexicon and come
//!    back chunk by chunk (`fetch`); they are dealt in shares, which all workers encode meanwhile,
//!    and in which parts are joined by terms (`join`).
//!
//! The host reaches the device through [`Trees`] alone. These work on a CUDA device ([`cuda`]), or,
//! in tests, on an emulated one, which is done late and fails when told to.

pub(crate) mod cuda;
mod cut;
mod fetch;
mod join;
pub(crate) mod opening;

use self::cut::{PlacedGroup, cut};
use self::fetch::{Fetch, FetchedPart};
use self::join::DeviceRun;
use crate::dictionary::closed::{ClosedError, ClosedShare, SHARE_BYTES, Wake};
use crate::gpu::floor::machine::UnderWay;
use crate::papers::wei11::gpu::btree::block::{MOST_BLOCK_BYTES, TokenBlock};
use crate::papers::wei11::gpu::btree::room::{ComingTokens, TreeRoom, TreeUsage};
use crate::papers::wei11::gpu::btree::trees::{Trees, usage};
use crate::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use crate::papers::wei11::stream::TokenGroup;
use std::collections::VecDeque;

struct LaunchedBlock {
    insert: Box<dyn UnderWay>,
    coming: ComingTokens,
    ends_block: bool,
}

/// The part of a run that a device indexes.
pub(crate) struct GpuIndexer {
    trees: Trees,
    /// Blocks that are not wholly under way.
    waiting: VecDeque<VecDeque<PlacedGroup>>,
    launched: VecDeque<LaunchedBlock>,
    /// As of the last launch that is done.
    usage: TreeUsage,
    documents: u32,
    /// What was brought back of the run.
    parts: Vec<FetchedPart>,
    emptying: Option<(Fetch, FetchedPart)>,
    /// Until all of it is dealt.
    closing: Option<DeviceRun>,
    /// Of each share of a closed run, about.
    pub(crate) share_bytes: u64,
    /// The device holds a run that was closed.
    stale: bool,
}

/// Blocks under way or waiting: one is inserted, one is copied next, one waits.
const MOST_BLOCKS: usize = 3;

impl GpuIndexer {
    pub(crate) fn new(trees: Trees) -> Self {
        let (waiting, launched, usage, documents) = Default::default();
        let (parts, emptying, closing, stale) = Default::default();
        let share_bytes = SHARE_BYTES;
        Self {
            trees,
            waiting,
            launched,
            usage,
            documents,
            parts,
            emptying,
            closing,
            share_bytes,
            stale,
        }
    }

    /// Times that the device was emptied in the open run.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Takes the counters of launches that are done.
    fn look(&mut self) -> Result<(), ClosedError> {
        while let Some(first) = self.launched.front()
            && first.insert.is_done()?
        {
            let done = self.launched.pop_front().expect("there was one");
            self.usage = usage(&*done.insert);
            if self.usage.full != 0 {
                let full = self.usage.full;
                return Err(format!(
                    "an arena was full in the midst of a launch ({full:#x}): this is a bug"
                )
                .into());
            }
        }
        Ok(())
    }

    /// Goes on emptying the device; true when that is done.
    fn empty(&mut self) -> Result<bool, ClosedError> {
        let Some((fetch, part)) = &mut self.emptying else { return Ok(true) };
        if !fetch.advance(&mut self.trees, part)? {
            return Ok(false);
        }
        self.trees.clear()?;
        self.parts.extend(self.emptying.take().map(|(_, part)| part));
        self.usage = TreeUsage::default();
        Ok(true)
    }

    fn coming(&self) -> ComingTokens {
        let mut all = ComingTokens { documents: self.documents, ..ComingTokens::default() };
        for launched in &self.launched {
            all.tokens += launched.coming.tokens;
            all.bytes += launched.coming.bytes;
        }
        all
    }

    fn launch(&mut self) -> Result<(), ClosedError> {
        while !self.waiting.is_empty() {
            if std::mem::take(&mut self.stale) {
                self.trees.clear()?;
            }
            let Some(pieces) = self.next_pieces()? else { return Ok(()) };
            let waiting = self.waiting.front_mut().expect("it has these pieces");
            let taken: Vec<(&TokenGroup, u32)> =
                waiting.iter().take(pieces).map(|(group, first)| (group, *first)).collect();
            let block = TokenBlock::of(&taken);
            let coming = load(&taken);
            let Some(insert) = self.trees.insert(&taken, &block)? else { return Ok(()) };
            waiting.drain(..pieces);
            let ends_block = waiting.is_empty();
            if ends_block {
                self.waiting.pop_front();
            }
            self.launched.push_back(LaunchedBlock { insert, coming, ends_block });
        }
        Ok(())
    }

    /// How many pieces of the first block go into one launch. None if they have to wait, for room
    /// or until the device is emptied.
    fn next_pieces(&mut self) -> Result<Option<usize>, ClosedError> {
        let room = self.trees.room();
        let warps = self.trees.warps();
        let most = self.trees.most();
        let most_bytes = most.bytes.min(MOST_BLOCK_BYTES as usize);
        let before = self.coming();
        let waiting = self.waiting.front_mut().expect("there is a block");
        loop {
            let mut taken = 0;
            let mut bytes = 0;
            let mut segments = 0;
            let mut coming = before;
            let mut needed = TreeRoom::default();
            for (group, _) in waiting.iter() {
                bytes += group.bytes.len();
                segments += group.collections.len();
                coming.bytes += group.bytes.len() as u64;
                coming.tokens += u64::from(group.tokens);
                needed = self.usage.with(&coming, warps);
                if bytes > most_bytes || segments > most.segments || !room.holds(needed) {
                    break;
                }
                taken += 1;
            }
            if taken > 0 {
                return Ok(Some(taken));
            }
            let first = &waiting[0].0;
            let halves = first.bytes.len() / 2;
            let one = first.tokens == 1;
            if first.bytes.len() > most_bytes && !one {
                split(waiting, most_bytes);
            } else if first.collections.len() > most.segments {
                split(waiting, halves);
            } else if !self.launched.is_empty() {
                // What launches really take is known when they are done.
                return Ok(None);
            } else if self.usage.terms > 0 {
                let fetch = Fetch::begin(&mut self.trees, true, self.share_bytes)?;
                self.emptying = Some((fetch, FetchedPart::default()));
                return Ok(None);
            } else if !one {
                split(waiting, halves);
            } else {
                return Err(self.trees.too_small(needed).into());
            }
        }
    }

    fn begin_close(&mut self) -> Result<DeviceRun, ClosedError> {
        let parts = std::mem::take(&mut self.parts);
        let mut rest = None;
        if self.usage.terms > 0 {
            rest = Some(Fetch::begin(&mut self.trees, false, self.share_bytes)?);
            self.stale = true;
        }
        self.usage = TreeUsage::default();
        self.documents = 0;
        Ok(DeviceRun::new(parts, rest))
    }

    fn open_blocks(&self) -> usize {
        let launched = self.launched.iter().filter(|launched| launched.ends_block).count();
        self.waiting.len() + launched
    }
}

fn split(waiting: &mut VecDeque<PlacedGroup>, most_bytes: usize) {
    let Some(first) = waiting.pop_front() else { return };
    for part in cut(&first, most_bytes).into_iter().rev() {
        waiting.push_front(part);
    }
}

fn load(pieces: &[(&TokenGroup, u32)]) -> ComingTokens {
    ComingTokens {
        tokens: pieces.iter().map(|(group, _)| u64::from(group.tokens)).sum(),
        bytes: pieces.iter().map(|(group, _)| group.bytes.len() as u64).sum(),
        documents: 0,
    }
}

impl TokenIndexer for GpuIndexer {
    fn append(&mut self, block: ParsedBlock) -> Result<(), ClosedError> {
        for (group, first) in &block {
            self.documents = self.documents.max(first + group.lengths.len() as u32);
        }
        // Pieces without tokens of this indexer only say how many documents there are.
        let pieces: VecDeque<PlacedGroup> =
            block.into_iter().filter(|(group, _)| group.tokens > 0).collect();
        if !pieces.is_empty() {
            self.waiting.push_back(pieces);
        }
        self.advance().map(drop)
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        self.look()?;
        if self.empty()? {
            self.launch()?;
        }
        Ok(self.open_blocks())
    }

    fn most_blocks(&self) -> usize {
        MOST_BLOCKS
    }

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        let mut run = match self.closing.take() {
            Some(run) => run,
            None => self.begin_close()?,
        };
        let share = run.next(&mut self.trees, self.share_bytes)?;
        if share.as_ref().is_none_or(|share| !share.last) {
            self.closing = Some(run);
        }
        Ok(share)
    }

    fn wake_by(&mut self, wake: Wake) -> bool {
        self.trees.wake_by(wake);
        true
    }
}
