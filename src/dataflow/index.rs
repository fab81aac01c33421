//! Keeps the terms and postings of the open run that this worker owns.
//!
//! - In: groups, exchanged by owner; each owner gets one of every piece. Out: the owner's part of a
//!   run, at the position of the run's last piece; and a stream without records whose frontier tells
//!   which pieces are absorbed.
//! - Groups wait until every earlier piece has been absorbed; the readers' windows bound them. From
//!   the pieces' counts each owner knows docids and run borders without asking anybody.
//! - A run that closes is encoded before the next one begins: there is memory for one.
//! - Work per activation: at most `MOST_AT_ONCE` groups, or `MOST_BYTES` of them, for every
//!   worker has a group of each piece while it parses a few of the pieces.

use super::build::Build;
use super::control::Guard;
use crate::dictionary::closed::ClosedTerms;
use crate::dictionary::group::{Group, Local};
use crate::dictionary::parsed::PieceGroup;
use crate::dictionary::run::{RunDictionary, SortedRun};
use crate::order::{Placement, Sequencer};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// One owner's part of a run that is complete.
pub struct ClosedRun {
    /// The owner.
    pub owner: usize,
    /// Number of the run.
    pub run: u32,
    /// Docid of its first document.
    pub first_docid: u32,
    /// Its documents.
    pub documents: u32,
    /// Terms and postings.
    pub terms: Box<dyn ClosedTerms>,
    /// The codes of the documents' lengths, piece by piece.
    pub lengths: Vec<Arc<[u8]>>,
    /// Set while the run is not encoded.
    pub busy: Rc<Cell<bool>>,
}

/// Groups that one activation appends at most.
const MOST_AT_ONCE: usize = 256;
/// Bytes of them.
const MOST_BYTES: usize = 512 << 10;

/// See the [module](self).
pub trait Index<'scope> {
    /// Returns closed runs and the frontier of what is absorbed.
    fn index(
        self,
        build: &Arc<Build>,
    ) -> (StreamVec<'scope, u64, ClosedRun>, StreamVec<'scope, u64, ()>);
}

impl<'scope> Index<'scope> for StreamVec<'scope, u64, Local<Group>> {
    fn index(
        self,
        build: &Arc<Build>,
    ) -> (StreamVec<'scope, u64, ClosedRun>, StreamVec<'scope, u64, ()>) {
        let build = build.clone();
        let scope = self.scope();
        let worker = scope.index();
        let mut builder = OperatorBuilder::new("Index".to_owned(), scope);
        let to_owner = Exchange::new(|Local(group): &Local<Group>| u64::from(group.owner));
        let mut input = builder.new_input(self, to_owner);
        let (runs_out, runs) = builder.new_output();
        let (absorbed_out, absorbed) = builder.new_output::<Vec<()>>();
        let mut runs_out = OutputBuilder::from(runs_out);
        drop(absorbed_out);
        let activator = scope.activator_for(builder.operator_info().address);
        builder.build(move |_| {
            let guard = Guard::new(&build.control, "Index", worker);
            let mut waiting: BTreeMap<u64, (Capability<u64>, Capability<u64>, Group)> =
                BTreeMap::new();
            let mut sequencer = Sequencer::new(build.budget.run_limit);
            let mut dictionary = RunDictionary::default();
            let mut lengths = Vec::new();
            // The capability of the last piece, with which the last run goes out.
            let mut last: Option<Capability<u64>> = None;
            let busy = Rc::new(Cell::new(false));
            move |frontiers| {
                let frontier = &frontiers[0];
                input.for_each(|cap, data| {
                    for Local(group) in data.drain(..) {
                        let caps = (cap.retain(0), cap.retain(1));
                        waiting.insert(*cap.time(), (caps.0, caps.1, group));
                    }
                });
                if busy.get() {
                    return activator.activate();
                }
                let mut close = |placement: Placement,
                                 dictionary: &mut RunDictionary,
                                 lengths: &mut Vec<Arc<[u8]>>,
                                 cap: &Capability<u64>| {
                    busy.set(true);
                    let run = ClosedRun {
                        owner: worker,
                        run: placement.run,
                        first_docid: placement.run_first,
                        documents: placement.run_documents,
                        terms: Box::new(SortedRun::from(std::mem::take(dictionary))),
                        lengths: std::mem::take(lengths),
                        busy: busy.clone(),
                    };
                    runs_out.activate().session(cap).give(run);
                };
                let mut bytes = 0;
                for _ in 0..MOST_AT_ONCE {
                    let Some(entry) = waiting.first_entry() else { break };
                    if frontier.less_equal(entry.key()) || busy.get() || bytes >= MOST_BYTES {
                        break;
                    }
                    let (runs_cap, _absorbed_cap, group) = entry.remove();
                    bytes += group.memory_bytes();
                    build.flow.absorbed(group.memory_bytes());
                    guard.work(|| {
                        let placement = sequencer.place(&group.counts)?;
                        dictionary.append(&group, placement.first);
                        lengths.push(group.lengths);
                        if placement.closes {
                            close(placement, &mut dictionary, &mut lengths, &runs_cap);
                        }
                        Ok(())
                    });
                    last = Some(runs_cap);
                }
                if waiting.first_key_value().is_some_and(|(time, _)| !frontier.less_equal(time)) {
                    activator.activate();
                } else if waiting.is_empty()
                    && frontier.is_empty()
                    && let Some(cap) = last.take()
                {
                    let (run, run_first, run_documents) = sequencer.open_run();
                    if run_documents > 0 {
                        let first = 0;
                        let placement =
                            Placement { run, run_first, first, run_documents, closes: true };
                        guard.work(|| {
                            close(placement, &mut dictionary, &mut lengths, &cap);
                            Ok(())
                        });
                    }
                }
            }
        });
        (runs, absorbed)
    }
}
