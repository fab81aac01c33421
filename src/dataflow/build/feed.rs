//! Feeds the indexers of a worker: each gets its groups of all pieces in the order of the input,
//! and gives parts of runs.
//!
//! - In: groups, exchanged by owner; each owner gets one of every piece. Out: an owner's part of a
//!   run, at the position of the run's last piece; and a stream without records whose frontier
//!   tells which pieces are absorbed.
//! - Groups wait until every earlier piece has been taken; what may be under way bounds them. From
//!   the pieces' counts each owner knows docids and borders of runs without asking anybody.
//! - A run that closes is encoded before the next one begins: there is memory for one.
//! - A worker has a `Lane` for each of its owners. None is waited for: one that holds pieces which
//!   it is not done with keeps their capabilities, and is looked at again when it is woken, or
//!   after a pause.
//! - Work per activation: a step of each lane.

use crate::dataflow::build::context::{BuildPlan, BuildWiring, PAUSE};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::closed::{ClosedTerms, Wake};
use crate::dictionary::parsed::OwnedGroup;
use crate::index::run::RunPart;
use crate::order::{PiecePlacement, Sequencer};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::scheduling::activate::SyncActivator;

pub(crate) struct ClosedRun {
    pub part: RunPart,
    pub terms: Box<dyn ClosedTerms>,
    /// The codes of the documents' lengths, by piece.
    pub lengths: Vec<Arc<[u8]>>,
    /// True while the run is not encoded.
    pub busy: Rc<Cell<bool>>,
}

/// Closed runs, and the frontier of what is absorbed.
pub(crate) type Indexed<'scope> = (StreamVec<'scope, u64, ClosedRun>, StreamVec<'scope, u64, ()>);

pub(crate) type OwnerGroups<'scope, G> = StreamVec<'scope, u64, Local<G>>;

/// While this is held a piece does not count as absorbed.
pub(crate) type Absorbed = Capability<u64>;

/// With the capability that it goes out with.
pub(crate) type Closed = (Capability<u64>, ClosedRun);

/// One owner on its worker.
pub(crate) trait Lane: Sized + 'static {
    type Group: OwnedGroup;

    fn head(&mut self) -> &mut FeedHead<Self::Group>;

    /// Takes pieces that have `arrived` with all earlier ones; `over`: no more will come. Returns a
    /// run that closes.
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

/// The pieces that wait for an owner, and the state of its run.
pub(crate) struct FeedHead<G> {
    pub(crate) owner: u32,
    waiting: BTreeMap<u64, (Capability<u64>, Capability<u64>, G)>,
    sequencer: Sequencer,
    lengths: Vec<Arc<[u8]>>,
    /// The run ends with what was taken.
    closing: Option<(Capability<u64>, PiecePlacement)>,
    /// Of the last piece; the last run goes out with it.
    last: Option<Capability<u64>>,
    /// A run of this owner is not encoded.
    busy: Rc<Cell<bool>>,
}

impl<G: OwnedGroup> FeedHead<G> {
    fn new(owner: u32, plan: &BuildPlan) -> Self {
        let sequencer = Sequencer::new(plan.first_run, plan.budget.run_limit);
        let (waiting, lengths, closing, last, busy) = Default::default();
        Self { owner, waiting, sequencer, lengths, closing, last, busy }
    }

    /// Whether nothing may be taken now: a run is to close, or is not encoded.
    pub(crate) fn is_held(&self) -> bool {
        self.busy.get() || self.closing.is_some()
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
        let time = *entry.key();
        let (runs, absorbed, group) = entry.remove();
        let placement = self.sequencer.place(&group.counts())?;
        self.lengths.push(group.lengths().clone());
        if placement.closes {
            self.closing = Some((runs, placement));
            self.last = None;
        } else {
            self.last = Some(runs);
        }
        Ok(Some(OwnerTurn { time, absorbed, group, first: placement.first }))
    }

    /// No piece will come any more: the open run ends, if it has documents.
    pub(crate) fn end(&mut self) {
        if self.closing.is_none() {
            let open = self.sequencer.open_run();
            let cap = self.last.take().filter(|_| open.run_documents > 0);
            self.closing = cap.map(|cap| (cap, open));
        }
    }

    pub(crate) fn closes(&self) -> bool {
        self.closing.is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    pub(crate) fn close(
        &mut self,
        close: impl FnOnce() -> Result<Box<dyn ClosedTerms>, Cause>,
    ) -> Result<Option<Closed>, Cause> {
        let Some((cap, placement)) = self.closing.take() else { return Ok(None) };
        self.busy.set(true);
        let run = ClosedRun {
            part: RunPart {
                run: placement.run,
                first_docid: placement.run_first,
                documents: placement.run_documents,
                owner: self.owner as usize,
            },
            terms: close()?,
            lengths: std::mem::take(&mut self.lengths),
            busy: self.busy.clone(),
        };
        Ok(Some((cap, run)))
    }
}

/// `new` makes the lane of an owner; its `Wake` has the lane looked at, from any thread.
pub(crate) fn feed<'scope, L: Lane>(
    groups: OwnerGroups<'scope, L::Group>,
    plan: &Arc<BuildPlan>,
    wiring: &BuildWiring,
    name: &'static str,
    new: impl Fn(FeedHead<L::Group>, &Wake) -> Result<L, Cause> + 'static,
) -> Indexed<'scope> {
    let plan = plan.clone();
    let control = wiring.control.clone();
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
        let guard = OperatorGuard::new(&control, name, worker);
        let mut lanes: Vec<L> = Vec::new();
        for owner in plan.owners.on_worker(worker) {
            let head = FeedHead::new(owner, &plan);
            lanes.extend(guard.work(|| new(head, &wake)));
        }
        move |frontiers| {
            let frontier = &frontiers[0];
            input.for_each(|cap, data| {
                for Local(group) in data.drain(..) {
                    let caps = (cap.retain(0), cap.retain(1));
                    // A lane is missing only if the job has failed.
                    let heads = &mut lanes.iter_mut().map(L::head);
                    if let Some(head) = heads.find(|head| head.owner == group.owner()) {
                        head.waiting.insert(*cap.time(), (caps.0, caps.1, group));
                    }
                }
            });
            let arrived = |time: &u64| !frontier.less_equal(time);
            let mut now = false;
            let mut later = false;
            for lane in &mut lanes {
                let over = frontier.is_empty();
                let Some(closed) = guard.work(|| lane.step(arrived, over)) else { return };
                if let Some((cap, run)) = closed {
                    runs_out.activate().session(&cap).give(run);
                }
                now |= lane.is_free() && !lane.head().is_held() && lane.head().is_ready(arrived);
                later |= lane.waits() || lane.head().is_busy();
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
