//! Feeds the indexers that take tokens (wei11, section III.D), on the CPU or on devices: the lane
//! of [`feed`] for [`TokenIndexer`].
//!
//! Consecutive pieces are gathered to a parsed block of [`TokenLanes::parse_block`] bytes of text;
//! it goes to the indexer early when the run or the input ends with it, or when nothing more may be
//! under way: the index does not depend on where blocks end. No indexer is waited for: a block's
//! capability is kept until the indexer is done with it.
//!
//! Work per step: a block.

use super::indexer::{ParsedBlock, TokenIndexer};
use super::regroup::TokenTally;
use super::stream::TokenGroup;
use crate::crew::lock;
use crate::dataflow::build::context::Build;
use crate::dataflow::build::feed::{Absorbed, Closed, FeedHead, Indexed, Lane, OwnerGroups, feed};
use crate::dataflow::build::handed::{HandedLane, Joined, Joining};
use crate::dataflow::control::Cause;
use crate::dictionary::closed::Wake;
use crate::dictionary::indexer::IndexerWork;
use crate::dictionary::parsed::PieceGroup;
use crate::order::Position;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub(super) type MakeIndexer =
    Box<dyn Fn(u32) -> Result<Box<dyn TokenIndexer>, Cause> + Send + Sync>;

/// The indexers of tokens of one build.
pub(super) struct TokenLanes {
    pub(super) make: MakeIndexer,
    /// Of text that an indexer takes together, if memory allows it.
    pub(super) parse_block: u64,
}

impl HandedLane for TokenLanes {
    fn join<'scope>(self: Arc<Self>, at: Joining<'_, 'scope>) -> Joined<'scope> {
        let build = at.build().clone();
        let plan = &build.plan;
        let memo_bytes = plan.budget.memo() as usize;
        let tally = TokenTally::new(plan.analysis.clone(), plan.owners.clone(), memo_bytes);
        let (groups, batches) = at.parse(tally);
        (self.feed(groups, &build), batches)
    }
}

impl TokenLanes {
    pub(super) fn feed<'scope>(
        self: Arc<Self>,
        groups: OwnerGroups<'scope, TokenGroup>,
        build: &Build,
    ) -> Indexed<'scope> {
        let given = build.clone();
        feed(groups, &build.plan, &build.wiring, "IndexTokens", move |head, wake| {
            TokensLane::new(head, &given, &self, wake)
        })
    }
}

/// A block that an indexer has, and the capability of its first piece: while it is held, nothing
/// from there on counts as absorbed.
struct BlockUnderWay {
    _absorbed: Absorbed,
    split: u32,
    text_bytes: u64,
    bytes: usize,
}

struct TokensLane {
    head: FeedHead<TokenGroup>,
    indexer: Box<dyn TokenIndexer>,
    is_woken: bool,
    /// The block that is gathered, its text, and its bytes under way.
    block: ParsedBlock,
    text_bytes: u64,
    gathered: Option<BlockUnderWay>,
    under_way: VecDeque<BlockUnderWay>,
    work: IndexerWork,
    /// Since when the indexer has been idle, or has worked on its first block.
    since: Instant,
    parse_block: u64,
    build: Build,
}

impl Lane for TokensLane {
    type Group = TokenGroup;

    fn head(&mut self) -> &mut FeedHead<TokenGroup> {
        &mut self.head
    }

    fn step(
        &mut self,
        arrived: impl Fn(&u64) -> bool,
        over: bool,
    ) -> Result<Option<Closed>, Cause> {
        self.advance()?;
        if !self.head.is_held() && self.is_free() {
            self.gather(&arrived)?;
            let ends = over && self.head.is_empty();
            let full =
                self.text_bytes >= self.parse_block || !self.build.wiring.flow.has_room(false);
            if full || ends || self.head.closes() {
                self.append()?;
                self.advance()?;
            }
            if ends {
                self.head.end();
            }
        }
        if !self.under_way.is_empty() {
            return Ok(None);
        }
        let indexer = &mut self.indexer;
        self.head.close(|| indexer.close())
    }

    fn is_free(&self) -> bool {
        self.under_way.len() < self.indexer.most_blocks()
    }

    fn waits(&self) -> bool {
        (!self.under_way.is_empty() && !self.is_woken) || !self.block.is_empty()
    }
}

impl TokensLane {
    fn new(
        head: FeedHead<TokenGroup>,
        build: &Build,
        lanes: &TokenLanes,
        wake: &Wake,
    ) -> Result<Self, Cause> {
        let owner = head.owner;
        let mut indexer = (lanes.make)(owner)?;
        Ok(Self {
            head,
            is_woken: indexer.wake_by(wake.clone()),
            indexer,
            block: Vec::new(),
            text_bytes: 0,
            gathered: None,
            under_way: VecDeque::new(),
            work: IndexerWork { owner, ..IndexerWork::default() },
            since: Instant::now(),
            parse_block: lanes.parse_block,
            build: build.clone(),
        })
    }

    fn advance(&mut self) -> Result<(), Cause> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let left = self.indexer.advance()?;
        let end = Instant::now();
        self.work.worked += (end - start).as_secs_f64();
        while self.under_way.len() > left {
            let done = self.under_way.pop_front().expect("there is a block");
            self.build.wiring.flow.absorbed(done.bytes);
            let seconds = (end - self.since).as_secs_f64();
            self.since = end;
            self.work.busy += seconds;
            let split = self.work.splits.entry(done.split).or_default();
            *split = (split.0 + done.text_bytes, split.1 + seconds);
        }
        Ok(())
    }

    fn gather(&mut self, arrived: impl Fn(&u64) -> bool) -> Result<(), Cause> {
        while self.text_bytes < self.parse_block {
            let Some(turn) = self.head.next(&arrived)? else { break };
            let group = turn.group;
            self.text_bytes += group.text_bytes;
            self.work.tokens += u64::from(group.tokens);
            let gathered = self.gathered.get_or_insert_with(|| BlockUnderWay {
                _absorbed: turn.absorbed,
                split: Position::split_of(turn.time),
                text_bytes: 0,
                bytes: 0,
            });
            gathered.text_bytes += group.text_bytes;
            gathered.bytes += group.memory_bytes();
            self.block.push((group, turn.first));
        }
        Ok(())
    }

    fn append(&mut self) -> Result<(), Cause> {
        let Some(gathered) = self.gathered.take() else { return Ok(()) };
        let start = Instant::now();
        if self.under_way.is_empty() {
            if self.work.blocks > 0 {
                self.work.waited += (start - self.since).as_secs_f64();
            }
            self.since = start;
        }
        self.work.blocks += 1;
        self.text_bytes = 0;
        self.under_way.push_back(gathered);
        self.indexer.append(std::mem::take(&mut self.block))?;
        self.work.worked += start.elapsed().as_secs_f64();
        Ok(())
    }
}

impl Drop for TokensLane {
    fn drop(&mut self) {
        let mut done = lock(&self.build.progress.done);
        done.indexers.push(std::mem::take(&mut self.work));
    }
}
