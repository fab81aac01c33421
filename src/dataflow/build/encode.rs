//! Encodes the postings lists of a closed run, in the order of the lexicon.
//!
//! - In: an owner's part of a run. Out: chunks of encoded lists for the one writer, at the same
//!   position; the last of a run says so.
//! - Chunks wait for the writer: at most `BuildPlan::unwritten_chunks` of each owner are under way.
//!   Of many owners the writer often needs the chunks of one, so that a few would make it wait. The
//!   owners of one worker go on side by side, for the writer may need any of them.
//! - Memory: those chunks, one list as bytes, and a byte for each document of the run, which all
//!   owners share.
//! - Work per activation: `AT_ONCE` chunks of each owner, so that the writer's worker writes
//!   between.

use super::feed::{ClosedRun, wake_of};
use crate::dataflow::build::context::{BuildPlan, BuildWiring, Encoded, PAUSE};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::closed::Wake;
use crate::index::run::{LaidChunk, PartEncoder};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;

/// Chunks of an owner that one activation makes at most.
const AT_ONCE: u64 = 4;

pub(crate) fn encode<'scope>(
    stream: StreamVec<'scope, u64, ClosedRun>,
    plan: &Arc<BuildPlan>,
    wiring: &Arc<BuildWiring>,
) -> StreamVec<'scope, u64, Local<LaidChunk>> {
    let plan = plan.clone();
    let wiring = wiring.clone();
    let scope = stream.scope();
    let worker = scope.index();
    stream.unary(Pipeline, "Encode", move |_, info| {
        let guard = OperatorGuard::new(&wiring.control, "Encode", worker);
        let wake = wake_of(scope.worker().sync_activator_for(info.address.to_vec()));
        let activator = scope.activator_for(info.address);
        // Each owner of this worker has one run here at most.
        let mut open: Vec<(Capability<u64>, RunEncoding)> = Vec::new();
        let mut sent = vec![0u64; plan.owners.len()];
        move |input, output| {
            input.for_each(|cap, data| {
                for run in data.drain(..) {
                    let encoding = guard.work(|| Ok(RunEncoding::new(run, &plan, &wiring, &wake)));
                    open.extend(encoding.map(|encoding| (cap.retain(0), encoding)));
                }
            });
            let mut more = false;
            let mut look = false;
            open.retain_mut(|(cap, encoding)| {
                let owner = encoding.encoder.part().owner;
                let written = wiring.encoded[owner].written_chunks.load(Ordering::Acquire);
                let room = (written + plan.unwritten_chunks()).saturating_sub(sent[owner]);
                for _ in 0..room.min(AT_ONCE) {
                    let chunk = guard.work(|| encoding.encoder.chunk());
                    let Some(Some(mut chunk)) = chunk else {
                        look |= !encoding.is_woken;
                        return chunk.is_some();
                    };
                    let ends = chunk.ends;
                    let encoded = &wiring.encoded[owner];
                    count(&chunk, encoded);
                    let written = encoded.written_chunks.clone();
                    chunk.guard = Some(Arc::new(Unwritten(written)));
                    sent[owner] += 1;
                    output.session(&*cap).give(Local(chunk));
                    if ends {
                        encoding.busy.set(false);
                        return false;
                    }
                }
                more |= room > AT_ONCE;
                // Nothing wakes the operator when there is room again.
                look |= room <= AT_ONCE;
                true
            });
            if more {
                activator.activate();
            } else if look {
                activator.activate_after(PAUSE);
            }
        }
    })
}

struct RunEncoding {
    encoder: PartEncoder,
    /// The dictionary wakes the operator when its next term is there.
    is_woken: bool,
    /// True until the part is encoded.
    busy: Rc<Cell<bool>>,
}

impl RunEncoding {
    fn new(run: ClosedRun, plan: &BuildPlan, wiring: &BuildWiring, wake: &Wake) -> Self {
        let ClosedRun { part, mut terms, lengths, busy } = run;
        let is_woken = terms.wake_by(wake.clone());
        let lengths = wiring.lengths.of_run(part.run, lengths);
        let encoder = PartEncoder::new(part, terms, lengths, plan.form);
        Self { encoder, is_woken, busy }
    }
}

/// Counts a chunk as written when it is dropped.
pub(crate) struct Unwritten(pub(crate) Arc<AtomicU64>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Counts the lists that end in a chunk.
pub(crate) fn count(chunk: &LaidChunk, encoded: &Encoded) {
    let (terms, postings) = chunk.ended();
    encoded.terms.fetch_add(terms, Ordering::Relaxed);
    encoded.postings.fetch_add(postings, Ordering::Relaxed);
    encoded.characters.fetch_add(chunk.suffix_bytes, Ordering::Relaxed);
}
