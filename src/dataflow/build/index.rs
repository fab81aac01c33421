//! Keeps the terms and postings of the open run: the lane of [`feed`](super::feed) for the postings
//! of `fast`. Each piece is appended at once.
//!
//! Work per step: at most `MOST_AT_ONCE` groups, or `MOST_BYTES` of them, for every worker has a
//! group of each piece while it parses a few of the pieces.

use super::feed::{Closed, FeedHead, Indexed, Lane, feed};
use crate::dataflow::build::context::{BuildPlan, BuildWiring};
use crate::dataflow::control::Cause;
use crate::dataflow::query::local::Local;
use crate::dictionary::closed::ClosedShare;
use crate::dictionary::group::TermGroup;
use crate::dictionary::parsed::PieceGroup;
use crate::dictionary::run::{RunDictionary, SortedRun};
use std::sync::Arc;
use timely::dataflow::StreamVec;

const MOST_AT_ONCE: usize = 256;
/// Bytes of them: more than the groups of one owner that all workers make while one of them parses
/// a piece, or the owner would fall behind, and find its groups out of the caches.
const MOST_BYTES: usize = 4 << 20;

pub(crate) fn index<'scope>(
    stream: StreamVec<'scope, u64, Local<TermGroup>>,
    plan: &Arc<BuildPlan>,
    wiring: &Arc<BuildWiring>,
) -> Indexed<'scope> {
    let given = wiring.clone();
    feed(stream, plan, wiring, "Index", move |head, _| {
        Ok(PostingsLane { head, dictionary: RunDictionary::default(), wiring: given.clone() })
    })
}

struct PostingsLane {
    head: FeedHead<TermGroup>,
    dictionary: RunDictionary,
    wiring: Arc<BuildWiring>,
}

impl Lane for PostingsLane {
    type Group = TermGroup;

    fn head(&mut self) -> &mut FeedHead<TermGroup> {
        &mut self.head
    }

    fn step(
        &mut self,
        arrived: impl Fn(&u64) -> bool,
        over: bool,
    ) -> Result<Option<Closed>, Cause> {
        let mut bytes = 0;
        for _ in 0..MOST_AT_ONCE {
            if bytes >= MOST_BYTES {
                break;
            }
            let Some(turn) = self.head.next(&arrived)? else { break };
            bytes += turn.group.memory_bytes();
            self.wiring.flow.absorbed(turn.group.memory_bytes());
            self.dictionary.append(&turn.group, turn.first);
        }
        if over && self.head.is_empty() && !self.head.is_busy() {
            self.head.end();
        }
        let dictionary = &mut self.dictionary;
        self.head
            .close(|| Ok(Some(ClosedShare::whole(SortedRun::from(std::mem::take(dictionary))))))
    }
}
