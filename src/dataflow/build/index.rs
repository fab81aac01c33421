//! Keeps the terms and postings of the open run: the lane of [`feed`](super::feed) for the postings
//! of `fast`. Each piece is appended at once.
//!
//! Work per step: at most `MOST_AT_ONCE` groups, or `MOST_BYTES` of them, for every worker has a
//! group of each piece while it parses a few of the pieces.

use super::feed::{Closed, FeedHead, Indexed, Lane, feed};
use crate::dataflow::build::context::{BuildPlan, BuildWiring};
use crate::dataflow::control::Cause;
use crate::dataflow::query::local::Local;
use crate::dictionary::closed::SHARE_BYTES;
use crate::dictionary::group::TermGroup;
use crate::dictionary::owners::Owners;
use crate::dictionary::parsed::PieceGroup;
use crate::dictionary::run::{RunDictionary, RunShares};
use crate::dictionary::shared::SharedCollection;
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
    let owners = plan.owners.clone();
    feed(stream, plan, wiring, "Index", move |head, _| {
        let (wiring, owners) = (given.clone(), owners.clone());
        let (dictionary, postings, closing) = Default::default();
        Ok(PostingsLane { head, dictionary, postings, closing, owners, wiring })
    })
}

struct PostingsLane {
    head: FeedHead<TermGroup>,
    dictionary: RunDictionary,
    /// Of all owners in the open run.
    postings: u64,
    /// A run that closes, how many bytes its shares have, and of how many shared collections it is
    /// known what precedes them.
    closing: Option<(RunShares, u64, usize)>,
    owners: Arc<Owners>,
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
            self.postings += turn.group.counts.postings;
            self.dictionary.append(&turn.group, turn.first);
        }
        if over && self.head.is_empty() && !self.head.is_busy() {
            self.head.end();
        }
        let Some(run) = self.head.closing_run() else { return Ok(None) };
        let Self { dictionary, postings, closing, wiring, owners, head } = self;
        let owner = head.owner;
        let closing = closing.get_or_insert_with(|| {
            let all = std::mem::take(postings);
            // What is spread evenly is encoded faster by those who have it (4 % of a build).
            let is_large = dictionary.postings() * owners.len() as u64 > 2 * all;
            let bytes = if is_large { SHARE_BYTES } else { u64::MAX };
            let shares = RunShares::from(std::mem::take(dictionary));
            for &SharedCollection { collection, .. } in owners.shared() {
                wiring.shared.put(run, collection, owner, shares.terms_of(collection));
            }
            (shares, bytes, 0)
        });
        let (shares, bytes, known) = closing;
        for &SharedCollection { collection, .. } in &owners.shared()[*known..] {
            let Some(before) = wiring.shared.before(run, collection, owner) else {
                return Ok(None);
            };
            shares.follow(collection, before);
            *known += 1;
        }
        let closed = head.close(|| Ok(Some(shares.next(*bytes))))?;
        if closed.as_ref().is_some_and(|(_, run)| run.share.last) {
            self.closing = None;
        }
        Ok(closed)
    }
}
