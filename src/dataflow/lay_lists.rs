//! Lays out lists that a device has encoded, and their terms, as [`encode`](super::encode) does with those that it encodes.
//!
//! - In: chunks of lists of a whole run, in the order of the lexicon. Out: the same, laid out, at the same position.
//! - Memory: nothing that stays.
//! - Work per activation: what has come.

use super::build_context::Build;
use super::control::{Cause, Guard};
use super::encode::count;
use super::local::Local;
use super::sole_time::SoleTime;
use crate::index::run::{EncodedChunk, LaidChunk, Layout};
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;

/// Makes the operator.
pub(super) fn lay_lists<'scope>(
    lists: StreamVec<'scope, u64, Local<EncodedChunk>>,
    build: &Arc<Build>,
) -> StreamVec<'scope, u64, Local<LaidChunk>> {
    let build = build.clone();
    let worker = lists.scope().index();
    lists.unary(Pipeline, "LayLists", move |_, _| {
        let guard = Guard::new(&build.control, "LayLists", worker);
        let mut layout = Layout::new(build.form);
        move |input, output| {
            input.for_each(|cap, data| {
                for Local(chunk) in data.drain(..) {
                    let laid = guard.work(|| {
                        let laid = layout.lay(chunk).map_err(Cause::from)?;
                        if laid.ends_run {
                            layout = Layout::new(build.form);
                        }
                        count(&laid, &build.wiring.encoded[laid.part.owner]);
                        Ok(laid)
                    });
                    // There is none only if the job has failed.
                    if let Some(laid) = laid {
                        output.session(&cap.retain(0)).give(Local(laid));
                    }
                }
            });
        }
    })
}
