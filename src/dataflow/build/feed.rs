//! Feeds the indexers of a worker: each gets its groups of all pieces in the order of the input,
//! and gives parts of runs.
//!
//! - In: groups, exchanged by owner; each owner gets one of every piece. Out: shares of an owner's
//!   part of a run, in their order, at the position of the run's last piece; and a stream without
//!   records whose frontier tells which pieces are absorbed.
//! - Groups wait until every earlier piece has been taken; what may be under way bounds them. From
//!   the pieces' counts each owner knows docids and borders of runs without asking anybody.
//! - A run that closes is encoded before the next one begins: there is memory for one. Its shares
//!   wait for the writer: at most `BuildPlan::unwritten_shares` are under way, and none while one
//!   of the run before is.
//! - A worker has a `Lane` for each of its owners. None is waited for: one that holds pieces which
//!   it is not done with keeps their capabilities, and is looked at again when it is woken, or
//!   after a pause.
//! - Work per activation: a step of each lane, and one for each share that may go.

use crate::dataflow::build::context::{BuildPlan, BuildWiring, PAUSE};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::closed::{ClosedShare, Wake};
use crate::dictionary::parsed::OwnedGroup;
use crate::index::run::{MakerGuard, RunPart};
use crate::order::{PiecePlacement, Sequencer};
use std::collections::BTreeMap;
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::scheduling::activate::SyncActivator;

/// A share of an owner's part of a closed run, on its way to a worker that encodes it.
pub(crate) struct RunShare {
    pub part: RunPart,
    /// Counted from 0 in the part.
    pub number: u32,
    pub share: ClosedShare,
    /// The codes of the lengths of all documents of the run.
    pub lengths: Arc<Vec<u8>>,
    /// Dropped when its chunks are written.
    pub unwritten: MakerGuard,
    /// Dropped when it is encoded, behind its terms.
    pub busy: Arc<()>,
}

/// Shares of closed runs, and the frontier of what is absorbed.
pub(crate) type Indexed<'scope> =
    (StreamVec<'scope, u64, Local<RunShare>>, StreamVec<'scope, u64, ()>);

pub(crate) type OwnerGroups<'scope, G> = StreamVec<'scope, u64, Local<G>>;

/// While this is held a piece does not count as absorbed.
pub(crate) type Absorbed = Capability<u64>;

/// With the capability that it goes out with.
pub(crate) type Closed = (Capability<u64>, RunShare);

/// One owner on its worker.
pub(crate) trait Lane: Sized + 'static {
    type Group: OwnedGroup;

    fn head(&mut self) -> &mut FeedHead<Self::Group>;

    /// Takes pieces that have `arrived` with all earlier ones; `over`: no more will come. Returns a
    /// share of a run that closes.
    fn step(&mut self, arrived: impl Fn(&u64) -> bool, over: bool)
    -> Result<Option<Closed>, Cause>;

    fn is_free(&self) -> bool {
        true
    }

    /// Whether it has to be looked at again though nothing arrives or wakes it.
    fn waits(&self) -> bool {
        false
    }
}

/// Has an operator scheduled by any thread.
pub(crate) fn wake_of(activator: SyncActivator) -> Wake {
    Arc::new(move || {
        // A worker that is gone waits for nothing.
        _ = activator.activate();
    })
}

/// The next piece of an owner.
pub(crate) struct OwnerTurn<G> {
    pub(crate) time: u64,
    pub(crate) absorbed: Absorbed,
    pub(crate) group: G,
    /// The docid of its first document, within the run.
    pub(crate) first: u32,
}

/// A run that ends with what was taken.
struct ClosingRun {
    cap: Capability<u64>,
    placement: PiecePlacement,
    /// Made for its first share.
    lengths: Option<Arc<Vec<u8>>>,
    /// Shares that were given.
    shares: u32,
}

impl ClosingRun {
    fn new(cap: Capability<u64>, placement: PiecePlacement) -> Self {
        Self { cap, placement, lengths: None, shares: 0 }
    }
}

/// The pieces that wait for an owner, and the state of its run.
pub(crate) struct FeedHead<G> {
    pub(crate) owner: u32,
    wiring: Arc<BuildWiring>,
    waiting: BTreeMap<u64, G>,
    /// Of what waits.
    absorbed: Option<Absorbed>,
    /// Of what waits, and of the open run, which goes out at its last piece.
    runs: Option<Capability<u64>>,
    sequencer: Sequencer,
    lengths: Vec<Arc<[u8]>>,
    /// Fields of the index.
    fields: usize,
    closing: Option<ClosingRun>,
    /// Shares that are not encoded have it too.
    busy: Arc<()>,
    /// Shares that are not written have it too.
    unwritten: Arc<()>,
    most_unwritten: usize,
}

impl<G: OwnedGroup> FeedHead<G> {
    fn new(owner: u32, plan: &BuildPlan, wiring: Arc<BuildWiring>) -> Self {
        let sequencer = Sequencer::new(plan.first_run, plan.budget.run_limit);
        let most_unwritten = plan.unwritten_shares();
        let (waiting, absorbed, runs, lengths, closing, busy, unwritten) = Default::default();
        Self {
            owner,
            wiring,
            waiting,
            absorbed,
            runs,
            sequencer,
            lengths,
            fields: plan.input.index_fields.len(),
            closing,
            busy,
            unwritten,
            most_unwritten,
        }
    }

    /// A piece has come. Of all that wait the least capability is kept: all workers hear of each.
    fn put(&mut self, cap: &InputCapability<u64>, group: G) {
        let time = *cap.time();
        for (number, held) in [&mut self.runs, &mut self.absorbed].into_iter().enumerate() {
            if held.as_ref().is_none_or(|held| *held.time() > time) {
                *held = Some(cap.retain(number));
            }
        }
        self.waiting.insert(time, group);
    }

    /// Whether nothing may be taken now: a run is to close, or is not encoded.
    pub(crate) fn is_held(&self) -> bool {
        self.is_busy() || self.closes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn is_ready(&self, arrived: impl Fn(&u64) -> bool) -> bool {
        self.waiting.first_key_value().is_some_and(|(time, _)| arrived(time))
    }

    /// The next piece, if all that precede it have come and the run goes on.
    pub(crate) fn next(
        &mut self,
        arrived: impl Fn(&u64) -> bool,
    ) -> Result<Option<OwnerTurn<G>>, Cause> {
        if self.is_held() {
            return Ok(None);
        }
        let Some(entry) = self.waiting.first_entry() else { return Ok(None) };
        if !arrived(entry.key()) {
            return Ok(None);
        }
        let (time, group) = entry.remove_entry();
        let next = self.waiting.first_key_value().map(|(time, _)| *time);
        let absorbed = taken(&mut self.absorbed, time, next);
        let placement = self.sequencer.place(&group.counts())?;
        self.lengths.push(group.lengths().clone());
        if placement.closes {
            let runs = taken(&mut self.runs, time, next);
            self.closing = Some(ClosingRun::new(runs, placement));
        } else if let Some(runs) = &mut self.runs {
            runs.downgrade(&time);
        }
        Ok(Some(OwnerTurn { time, absorbed, group, first: placement.first }))
    }

    /// No piece will come any more: the open run ends, if it has documents.
    pub(crate) fn end(&mut self) {
        if self.closing.is_none() {
            let open = self.sequencer.open_run();
            let cap = self.runs.take().filter(|_| open.run_documents > 0);
            self.closing = cap.map(|cap| ClosingRun::new(cap, open));
        }
    }

    pub(crate) fn closes(&self) -> bool {
        self.closing.is_some()
    }

    /// The number of the run that closes.
    pub(crate) fn closing_run(&self) -> Option<u32> {
        self.closing.as_ref().map(|closing| closing.placement.run)
    }

    /// Whether a run of this owner is not encoded.
    pub(crate) fn is_busy(&self) -> bool {
        Arc::strong_count(&self.busy) > 1
    }

    /// Goes on closing a run, if one closes: gives the `next` share, if it is there and may go.
    pub(crate) fn close(
        &mut self,
        next: impl FnOnce() -> Result<Option<ClosedShare>, Cause>,
    ) -> Result<Option<Closed>, Cause> {
        let Some(closing) = &mut self.closing else { return Ok(None) };
        let most = if closing.shares == 0 { 1 } else { self.most_unwritten };
        if Arc::strong_count(&self.unwritten) > most {
            return Ok(None);
        }
        let Some(share) = next()? else { return Ok(None) };
        let placement = closing.placement;
        let lengths = closing.lengths.get_or_insert_with(|| {
            let pieces = std::mem::take(&mut self.lengths);
            self.wiring.lengths.of_run(placement.run, pieces, self.fields)
        });
        let run = RunShare {
            part: RunPart {
                run: placement.run,
                first_docid: placement.run_first,
                documents: placement.run_documents,
                owner: self.owner as usize,
            },
            number: closing.shares,
            lengths: lengths.clone(),
            unwritten: Arc::new(self.unwritten.clone()),
            busy: self.busy.clone(),
            share,
        };
        closing.shares += 1;
        let cap = closing.cap.clone();
        if run.share.last {
            self.closing = None;
        }
        Ok(Some((cap, run)))
    }
}

/// The capability of a piece that is taken, from what is `held` for all that wait; `next` is the
/// first of those that still do.
fn taken(held: &mut Option<Capability<u64>>, time: u64, next: Option<u64>) -> Capability<u64> {
    let mut cap = held.take().expect("it is held for what waits");
    *held = next.map(|next| cap.delayed(&next));
    cap.downgrade(&time);
    cap
}

/// `new` makes the lane of an owner; its `Wake` has the lane looked at, from any thread.
pub(crate) fn feed<'scope, L: Lane>(
    groups: OwnerGroups<'scope, L::Group>,
    plan: &Arc<BuildPlan>,
    wiring: &Arc<BuildWiring>,
    name: &'static str,
    new: impl Fn(FeedHead<L::Group>, &Wake) -> Result<L, Cause> + 'static,
) -> Indexed<'scope> {
    let plan = plan.clone();
    let wiring = wiring.clone();
    let scope = groups.scope();
    let worker = scope.index();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let owners = plan.owners.clone();
    let to_owner =
        Exchange::new(move |Local(group): &Local<L::Group>| owners.worker(group.owner()) as u64);
    let mut input = builder.new_input(groups, to_owner);
    let (runs_out, runs) = builder.new_output();
    let (absorbed_out, absorbed) = builder.new_output::<Vec<()>>();
    let mut runs_out = OutputBuilder::from(runs_out);
    drop(absorbed_out);
    let address = builder.operator_info().address;
    let wake = wake_of(scope.worker().sync_activator_for(address.to_vec()));
    let activator = scope.activator_for(address);
    builder.build(move |_| {
        let guard = OperatorGuard::new(&wiring.control, name, worker);
        let mut lanes: Vec<L> = Vec::new();
        for owner in plan.owners.on_worker(worker) {
            let head = FeedHead::new(owner, &plan, wiring.clone());
            lanes.extend(guard.work(|| new(head, &wake)));
        }
        move |frontiers| {
            let frontier = &frontiers[0];
            input.for_each(|cap, data| {
                for Local(group) in data.drain(..) {
                    // A lane is missing only if the job has failed.
                    let heads = &mut lanes.iter_mut().map(L::head);
                    if let Some(head) = heads.find(|head| head.owner == group.owner()) {
                        head.put(&cap, group);
                    }
                }
            });
            let arrived = |time: &u64| !frontier.less_equal(time);
            let mut now = false;
            let mut later = false;
            for lane in &mut lanes {
                let over = frontier.is_empty();
                loop {
                    let Some(closed) = guard.work(|| lane.step(arrived, over)) else { return };
                    let Some((cap, run)) = closed else { break };
                    let more = !run.share.last;
                    runs_out.activate().session(&cap).give(Local(run));
                    if !more {
                        break;
                    }
                }
                now |= lane.is_free() && !lane.head().is_held() && lane.head().is_ready(arrived);
                later |= lane.waits() || lane.head().is_held();
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
