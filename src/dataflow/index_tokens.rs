//! Feeds the indexers that take tokens (wei11, section III.D), on the CPU or on devices.
//!
//! - In: token groups, exchanged by owner; each indexer gets one of every piece. Out: the indexer's
//!   part of a run, at the position of the run's last piece; and a stream without records whose
//!   frontier tells which pieces are absorbed.
//! - Groups wait until every earlier piece has been taken. Consecutive pieces are gathered to a parsed
//!   block of [`Build::parse_block`] bytes of text; it goes to the indexer early when the run or the
//!   input ends with it, or when nothing more may be under way: the index does not depend on where
//!   blocks end.
//! - A worker runs any number of indexers side by side. None of them is waited for: a block's
//!   capability is kept until the indexer is done with it.
//! - A run that closes is encoded before the next one begins: there is memory for one.
//! - Work per activation: a block of each indexer.

use super::build::Build;
use super::control::{Cause, Guard};
use super::index::ClosedRun;
use crate::dictionary::closed::Wake;
use crate::dictionary::group::Local;
use crate::dictionary::indexer::{ParsedBlock, TokenIndexer};
use crate::dictionary::parsed::PieceGroup;
use crate::dictionary::stream::TokenGroup;
use crate::order::{Placement, Position, Sequencer};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::scheduling::activate::SyncActivator;

/// How long an operator that waits for others sleeps.
const PAUSE: Duration = Duration::from_micros(500);

/// What one indexer has done, once the job has ended.
#[derive(Clone, Debug, Default)]
pub struct IndexerWork {
    /// The indexer.
    pub owner: u32,
    /// Blocks that it took.
    pub blocks: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Bytes of the suffixes of those tokens.
    pub characters: u64,
    /// Seconds in which it, or its device, had something to do.
    pub busy: f64,
    /// Seconds of its worker's time.
    pub worked: f64,
    /// Seconds in which it had nothing to do before its last block, waiting for parsers, and for the
    /// runs that it closed to be encoded.
    pub waited: f64,
    /// By split of a block's first piece: bytes of text, and seconds in which it was busy.
    pub splits: BTreeMap<u32, (u64, f64)>,
}

/// See the [module](self).
pub trait IndexTokens<'scope> {
    /// Returns closed runs and the frontier of what is absorbed.
    fn index_tokens(
        self,
        build: &Arc<Build>,
    ) -> (StreamVec<'scope, u64, ClosedRun>, StreamVec<'scope, u64, ()>);
}

impl<'scope> IndexTokens<'scope> for StreamVec<'scope, u64, Local<TokenGroup>> {
    fn index_tokens(
        self,
        build: &Arc<Build>,
    ) -> (StreamVec<'scope, u64, ClosedRun>, StreamVec<'scope, u64, ()>) {
        let build = build.clone();
        let scope = self.scope();
        let worker = scope.index();
        let mut builder = OperatorBuilder::new("IndexTokens".to_owned(), scope);
        let owners = build.owners.clone();
        let to_owner =
            Exchange::new(move |Local(g): &Local<TokenGroup>| owners.worker(g.owner) as u64);
        let mut input = builder.new_input(self, to_owner);
        let (runs_out, runs) = builder.new_output();
        let (absorbed_out, absorbed) = builder.new_output::<Vec<()>>();
        let mut runs_out = OutputBuilder::from(runs_out);
        drop(absorbed_out);
        let address = builder.operator_info().address;
        let wake = wake_of(scope.worker().sync_activator_for(address.to_vec()));
        let activator = scope.activator_for(address);
        builder.build(move |_| {
            let guard = Guard::new(&build.control, "IndexTokens", worker);
            let mut lanes = Vec::new();
            for owner in build.owners.on_worker(worker) {
                lanes.extend(guard.work(|| Lane::new(owner, &build, wake.clone())));
            }
            move |frontiers| {
                let frontier = &frontiers[0];
                input.for_each(|cap, data| {
                    for Local(group) in data.drain(..) {
                        let caps = (cap.retain(0), cap.retain(1));
                        // A lane is missing only if the job has failed.
                        if let Some(lane) = lanes.iter_mut().find(|l| l.owner == group.owner) {
                            lane.waiting.insert(*cap.time(), (caps.0, caps.1, group));
                        }
                    }
                });
                let arrived = |time: &u64| !frontier.less_equal(time);
                let (mut now, mut later) = (false, false);
                for lane in &mut lanes {
                    let closed = guard.work(|| lane.step(&build, arrived, frontier.is_empty()));
                    let Some(closed) = closed else { return };
                    if let Some((cap, run)) = closed {
                        runs_out.activate().session(&cap).give(run);
                    }
                    now |= lane.can_go_on(arrived);
                    later |= lane.waits();
                }
                if now {
                    activator.activate();
                } else if later {
                    activator.activate_after(PAUSE);
                }
            }
        });
        (runs, absorbed)
    }
}

/// Has an operator scheduled by another thread.
pub(super) fn wake_of(activator: SyncActivator) -> Wake {
    Arc::new(move || {
        // A worker that is gone waits for nothing.
        _ = activator.activate();
    })
}

/// A block that an indexer has, and the capability of its first piece: while it is held, no piece of
/// the block or behind it counts as absorbed.
struct UnderWay {
    _absorbed: Capability<u64>,
    split: u32,
    text_bytes: u64,
    bytes: usize,
}

/// One indexer and what waits for it.
struct Lane {
    owner: u32,
    indexer: Box<dyn TokenIndexer>,
    /// The indexer wakes the operator when it is done with a block.
    is_woken: bool,
    sequencer: Sequencer,
    waiting: BTreeMap<u64, (Capability<u64>, Capability<u64>, TokenGroup)>,
    /// The block that is being gathered, its text, and its part of what is under way.
    block: ParsedBlock,
    text_bytes: u64,
    gathered: Option<UnderWay>,
    under_way: VecDeque<UnderWay>,
    /// The run ends with what was taken.
    closing: Option<(Capability<u64>, Placement)>,
    /// The capability of the last piece, with which the last run goes out.
    last: Option<Capability<u64>>,
    lengths: Vec<Arc<[u8]>>,
    busy: Rc<Cell<bool>>,
    work: IndexerWork,
    /// Since when the indexer has had nothing to do, or has worked on its first block.
    since: Instant,
    build: Arc<Build>,
}

impl Lane {
    fn new(owner: u32, build: &Arc<Build>, wake: Wake) -> Result<Self, Cause> {
        let mut indexer = (build.make_indexer)(owner)?;
        Ok(Self {
            owner,
            is_woken: indexer.wake_by(wake),
            indexer,
            sequencer: Sequencer::new(build.budget.run_limit),
            waiting: BTreeMap::new(),
            block: Vec::new(),
            text_bytes: 0,
            gathered: None,
            under_way: VecDeque::new(),
            closing: None,
            last: None,
            lengths: Vec::new(),
            busy: Rc::new(Cell::new(false)),
            work: IndexerWork { owner, ..IndexerWork::default() },
            since: Instant::now(),
            build: build.clone(),
        })
    }

    /// Whether there is a piece that it can take at once.
    fn can_go_on(&self, arrived: impl Fn(&u64) -> bool) -> bool {
        let ready = self.waiting.first_key_value().is_some_and(|(time, _)| arrived(time));
        let free = self.under_way.len() < self.indexer.most_blocks();
        ready && free && !self.busy.get() && self.closing.is_none()
    }

    /// Whether it has to be looked at again, though nothing arrives and nobody wakes the operator.
    fn waits(&self) -> bool {
        let for_indexer = !self.under_way.is_empty() || self.closing.is_some();
        (for_indexer && !self.is_woken) || !self.block.is_empty() || self.busy.get()
    }

    /// Gives the indexer what there is, and takes what it is done with. Returns a run that closes.
    fn step(
        &mut self,
        build: &Build,
        arrived: impl Fn(&u64) -> bool,
        over: bool,
    ) -> Result<Option<(Capability<u64>, ClosedRun)>, Cause> {
        self.advance(build)?;
        if self.busy.get() {
            return Ok(None);
        }
        if self.closing.is_none() && self.under_way.len() < self.indexer.most_blocks() {
            self.gather(build, &arrived)?;
            let ends = over && self.waiting.is_empty();
            let full = self.text_bytes >= build.parse_block || !build.flow.has_room(false);
            if full || ends || self.closing.is_some() {
                self.append()?;
                self.advance(build)?;
            }
            if ends && self.closing.is_none() {
                let (run, run_first, run_documents) = self.sequencer.open_run();
                let placement = Placement { run, run_first, first: 0, run_documents, closes: true };
                let cap = self.last.take().filter(|_| run_documents > 0);
                self.closing = cap.map(|cap| (cap, placement));
            }
        }
        if !self.under_way.is_empty() {
            return Ok(None);
        }
        let Some((cap, placement)) = self.closing.take() else { return Ok(None) };
        self.busy.set(true);
        let run = ClosedRun {
            owner: self.owner as usize,
            run: placement.run,
            first_docid: placement.run_first,
            documents: placement.run_documents,
            terms: self.indexer.close()?,
            lengths: std::mem::take(&mut self.lengths),
            busy: self.busy.clone(),
        };
        Ok(Some((cap, run)))
    }

    /// Lets the indexer go on, and forgets the blocks that it is done with.
    fn advance(&mut self, build: &Build) -> Result<(), Cause> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let left = self.indexer.advance()?;
        let end = Instant::now();
        self.work.worked += (end - start).as_secs_f64();
        while self.under_way.len() > left {
            let done = self.under_way.pop_front().expect("there is a block");
            build.flow.absorbed(done.bytes);
            let seconds = (end - self.since).as_secs_f64();
            self.since = end;
            self.work.busy += seconds;
            let split = self.work.splits.entry(done.split).or_default();
            *split = (split.0 + done.text_bytes, split.1 + seconds);
        }
        Ok(())
    }

    /// Takes pieces for the block while there are any that all earlier ones precede.
    fn gather(&mut self, build: &Build, arrived: impl Fn(&u64) -> bool) -> Result<(), Cause> {
        while self.closing.is_none() && self.text_bytes < build.parse_block {
            let Some(entry) = self.waiting.first_entry() else { break };
            if !arrived(entry.key()) {
                break;
            }
            let split = Position::split_of(*entry.key());
            let (runs_cap, absorbed_cap, group) = entry.remove();
            let placement = self.sequencer.place(&group.counts)?;
            self.text_bytes += group.text_bytes;
            self.lengths.push(group.lengths.clone());
            self.work.tokens += u64::from(group.tokens);
            self.work.characters += group.bytes.len() as u64 - 2 * u64::from(group.tokens);
            let gathered = self.gathered.get_or_insert_with(|| UnderWay {
                _absorbed: absorbed_cap,
                split,
                text_bytes: 0,
                bytes: 0,
            });
            gathered.text_bytes += group.text_bytes;
            gathered.bytes += group.memory_bytes();
            self.block.push((group, placement.first));
            if placement.closes {
                (self.closing, self.last) = (Some((runs_cap, placement)), None);
            } else {
                self.last = Some(runs_cap);
            }
        }
        Ok(())
    }

    /// Hands the block on.
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

impl Drop for Lane {
    fn drop(&mut self) {
        let mut done = self.build.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        done.indexers.push(std::mem::take(&mut self.work));
    }
}
