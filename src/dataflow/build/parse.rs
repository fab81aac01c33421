//! Parses pieces: finds documents, tokens and terms, and regroups them, as postings or as tokens,
//! by owner and trie collection; for a device it passes on texts.
//!
//! - In: pieces, each at the worker that it was assigned to. Out: one group for each owner, for
//!   its index operator, and the piece's documents; both at the piece's position, at once.
//! - Memory: the memo's bound, and scratch in the size of a piece; of long documents a few at a
//!   time ([`turns`](crate::input::turns)).
//! - Work per activation: one piece.

use super::decompress::{Assigned, decompress};
use super::read::{InHand, read};
use crate::dataflow::build::context::{Build, Progress};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::index::documents::pieces::PieceDocuments;
use crate::input::parser::PieceParser;
use std::collections::VecDeque;
use std::rc::Rc;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

pub(crate) type Parsed<'scope, G> =
    (StreamVec<'scope, u64, Local<G>>, StreamVec<'scope, u64, Local<PieceDocuments>>);

/// Reads and parses the whole input; groups are as `regroup` makes them. `absorbed` follows the far
/// end of the dataflow.
pub(crate) fn parse_input<'scope, R: Regroup + 'static>(
    scope: Scope<'scope, u64>,
    build: &Build,
    absorbed: &ProbeHandle<u64>,
    regroup: R,
) -> Parsed<'scope, R::Group> {
    let (taken, in_hand) = read(scope, build, absorbed.clone());
    let pieces = decompress(taken, build, in_hand.clone(), absorbed.clone());
    parse(pieces, build, in_hand, regroup)
}

/// `in_hand` is what the same worker reads.
pub(crate) fn parse<'scope, R: Regroup + 'static>(
    stream: StreamVec<'scope, u64, Assigned>,
    build: &Build,
    in_hand: Rc<InHand>,
    regroup: R,
) -> Parsed<'scope, R::Group> {
    let build = build.clone();
    let scope = stream.scope();
    let worker = scope.index();
    let mut builder = OperatorBuilder::new("Parse".to_owned(), scope);
    let to_parser = Exchange::new(|Local((parser, _)): &Assigned| *parser as u64);
    let mut input = builder.new_input(stream, to_parser);
    let (groups_out, groups) = builder.new_output();
    let (batches_out, batches) = builder.new_output();
    let mut groups_out = OutputBuilder::from(groups_out);
    let mut batches_out = OutputBuilder::from(batches_out);
    let activator = scope.activator_for(builder.operator_info().address);
    builder.build(move |_| {
        let guard = OperatorGuard::new(&build.wiring.control, "Parse", worker);
        let mut waiting = VecDeque::new();
        let mut parser =
            PieceParser::new(regroup, build.plan.max_document, build.wiring.turns.clone());
        move |_frontiers| {
            input.for_each(|cap, data| {
                for Local((_, piece)) in data.drain(..) {
                    waiting.push_back((cap.retain(0), cap.retain(1), piece));
                }
            });
            // Other parsers would idle while this worker, which reads for them, parses: it reads on
            // before, once for each time that it gave them something.
            if build.plan.workers > 1 && in_hand.short.take() {
                return activator.activate();
            }
            let Some((groups_cap, batches_cap, mut piece)) = waiting.pop_front() else {
                return;
            };
            let bytes = piece.bytes.len();
            let input = piece.input;
            let parsed = guard.work(|| {
                Ok(parser.parse(&build.plan.input, build.plan.wanted.as_ref(), &mut piece))
            });
            // The next user of the buffer has it before anything waits.
            drop(piece);
            let Some((groups, batch)) = parsed else { return };
            if let Some(large) = batch.skipped.large() {
                guard.work(|| Err::<(), _>(build.plan.refuse_large(large)));
                return;
            }
            let seen = parser.take_seen();
            let not_utf8 = parser.take_not_utf8();
            if not_utf8.documents > 0 {
                let added = guard
                    .work(|| Ok(build.plan.input.add_not_utf8(not_utf8, build.plan.strict)?));
                let Some(()) = added else { return };
            }
            if !seen.is_empty() {
                build.plan.input.add_seen(input, seen);
            }
            let parsed = groups.iter().map(PieceGroup::memory_bytes).sum::<usize>() + batch.bytes();
            build.wiring.flow.parsed(worker, bytes, parsed);
            Progress::add(&build.progress.parsed_bytes, bytes as u64);
            Progress::add(&build.progress.documents, u64::from(batch.documents()));
            let mut output = groups_out.activate();
            output.session(&groups_cap).give_iterator(groups.into_iter().map(Local));
            let mut output = batches_out.activate();
            output.session(&batches_cap).give(Local(batch));
            if !waiting.is_empty() {
                activator.activate();
            }
        }
    });
    (groups, batches)
}
