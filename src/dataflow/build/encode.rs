//! Encodes the postings lists of a closed run, in the order of the lexicon.
//!
//! - In: shares of the owners' parts of a run. The first of a part is encoded by the owner's
//!   worker, and each next one by the next worker, so that one owner's lists are the work of all.
//!   Out: chunks of encoded lists for the one writer, at the same position; the last of a share
//!   says so, and the last of a part.
//! - Chunks wait for the writer: at most `BuildPlan::unwritten_chunks` of each share are under way.
//!   Of many owners the writer often needs the chunks of one, so that a few would make it wait. The
//!   shares of one worker go on side by side, for the writer may need any of them; the one with the
//!   least collection goes first.
//! - Memory: those chunks, one list as bytes, and a byte for each document of the run, which all
//!   owners share.
//! - Work per activation: `AT_ONCE` chunks, so that the writer's worker writes between.

use super::feed::RunShare;
use crate::dataflow::build::context::{BuildPlan, BuildWiring, Encoded, PAUSE};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::index::list::Form;
use crate::index::run::{LaidChunk, MakerGuard, PartEncoder};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;

/// Chunks that one activation makes at most.
const AT_ONCE: usize = 4;

pub(crate) fn encode<'scope>(
    stream: StreamVec<'scope, u64, Local<RunShare>>,
    plan: &Arc<BuildPlan>,
    wiring: &Arc<BuildWiring>,
) -> StreamVec<'scope, u64, Local<LaidChunk>> {
    let plan = plan.clone();
    let wiring = wiring.clone();
    let scope = stream.scope();
    let worker = scope.index();
    let owners = plan.owners.clone();
    // The channel takes the number modulo that of the workers.
    let deal = Exchange::new(move |Local(share): &Local<RunShare>| {
        owners.worker(share.part.owner as u32) as u64 + u64::from(share.number)
    });
    stream.unary(deal, "Encode", move |_, info| {
        let guard = OperatorGuard::new(&wiring.control, "Encode", worker);
        let activator = scope.activator_for(info.address);
        let most = plan.unwritten_chunks();
        let mut open: Vec<(Capability<u64>, ShareEncoding)> = Vec::new();
        move |input, output| {
            input.for_each(|cap, data| {
                let shares = data.drain(..).map(|Local(share)| share);
                open.extend(shares.map(|s| (cap.retain(0), ShareEncoding::new(s, plan.form))));
            });
            open.sort_by_key(|(_, encoding)| encoding.place);
            let mut left = AT_ONCE;
            open.retain_mut(|(cap, encoding)| {
                while left > 0 && encoding.unwritten() < most {
                    left -= 1;
                    let Some(chunk) = guard.work(|| encoding.chunk()) else { return false };
                    count(&chunk, &wiring.encoded[chunk.part.owner]);
                    let ends = chunk.ends_share;
                    output.session(&*cap).give(Local(chunk));
                    if ends {
                        return false;
                    }
                }
                true
            });
            if left == 0 && !open.is_empty() {
                activator.activate();
            } else if !open.is_empty() {
                // Nothing wakes the operator when there is room again.
                activator.activate_after(PAUSE);
            }
        }
    })
}

struct ShareEncoding {
    encoder: PartEncoder,
    /// The run, and the last collection that a chunk had.
    place: (u32, u16),
    number: u32,
    last: bool,
    unwritten: MakerGuard,
    /// Dropped behind the terms.
    _busy: Arc<()>,
}

impl ShareEncoding {
    fn new(given: RunShare, form: Form) -> Self {
        let RunShare { part, number, share, lengths, unwritten, busy } = given;
        let encoder = PartEncoder::new(part, share.terms, lengths, form);
        let place = (part.run, 0);
        Self { encoder, place, number, last: share.last, unwritten, _busy: busy }
    }

    /// Its chunks that are not written.
    fn unwritten(&self) -> usize {
        Arc::strong_count(&self.unwritten) - 1
    }

    fn chunk(&mut self) -> Result<LaidChunk, Cause> {
        let mut chunk = self.encoder.chunk()?;
        self.place.1 = chunk.stretches.last().map_or(self.place.1, |last| last.collection);
        chunk.share = self.number;
        chunk.ends_share = chunk.ends;
        chunk.ends &= self.last;
        chunk.guard = Some(self.unwritten.clone());
        Ok(chunk)
    }
}

/// Counts the lists that end in a chunk.
pub(crate) fn count(chunk: &LaidChunk, encoded: &Encoded) {
    let (terms, postings) = chunk.ended();
    encoded.terms.fetch_add(terms, Ordering::Relaxed);
    encoded.postings.fetch_add(postings, Ordering::Relaxed);
    encoded.characters.fetch_add(chunk.suffix_bytes, Ordering::Relaxed);
}
