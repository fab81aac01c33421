//! Reads files of lines, all workers together: each takes the next stretch when it has nothing to parse, and parses it itself.
//!
//! - Out: the pieces of a stretch at the position (split, stretch, piece), for the parser of the same worker. So pieces
//!   come nearly in the order of the input, few wait for earlier ones, and their bytes have not left the core's cache.
//! - A stretch is claimed while there is room in the job's [`Flow`](super::flow::Flow); the first of the input that is not
//!   absorbed always is. A worker that waits holds a capability for the first unclaimed one only.
//! - Memory: a piece.
//! - Work per activation: a stretch.

use super::build_context::{Build, InputRead, Progress};
use super::control::{Cause, Guard, lock};
use super::decompress::Assigned;
use super::local::Local;
use crate::input::cutter::Cutter;
use crate::input::piece::Piece;
use crate::input::{Compression, Format};
use crate::order::Position;
use crate::schedule::claims::{Claim, Place, Stretch};
use std::sync::Arc;
use std::time::Duration;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// How long a worker that may claim nothing waits before it looks again.
const PAUSE: Duration = Duration::from_micros(500);

/// Reads the files of lines among the splits; `absorbed` follows the far end of the dataflow.
pub fn read_lines<'scope>(
    scope: Scope<'scope, u64>,
    build: &Arc<Build>,
    absorbed: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Assigned> {
    let build = build.clone();
    let worker = scope.index();
    source(scope, "ReadLines", move |capability, info| {
        let guard = Guard::new(&build.control, "ReadLines", worker);
        let activator = scope.activator_for(info.address);
        // Who does not parse reads none.
        let mut capability = build.wiring.flow.parses(worker).then_some(capability);
        let piece_bytes = build.budget.piece_bytes();
        // Of any format: each file tells its own.
        let mut cutter = Cutter::of_pieces(Format::Jsonl, build.max_document, piece_bytes)
            .with_buffers(build.wiring.buffers.clone());
        let mut pieces = Vec::new();
        move |output| {
            let Some(cap) = capability.as_mut() else { return };
            let step = guard.work(|| {
                let Some((claim, next)) = claim(&build, worker, &absorbed)? else {
                    return Ok(None);
                };
                let next = Position::new(next.0 as u64, next.1, 0)?;
                if let Some(stretch) = claim {
                    read(&build, &stretch, &mut cutter, &mut pieces)?;
                    let (split, stretch) = stretch.place;
                    let mut position = Position::new(split as u64, stretch, 0)?;
                    for piece in pieces.drain(..) {
                        build.wiring.flow.take(worker, piece.bytes.len());
                        let at = cap.delayed(&position.0);
                        output.session(&at).give(Local((worker, piece)));
                        position = Position::next_piece(position.0)?;
                    }
                    activator.activate();
                } else {
                    activator.activate_after(PAUSE);
                }
                Ok(Some(next))
            });
            match step {
                Some(Some(next)) => cap.downgrade(&next.0),
                Some(None) | None => capability = None,
            }
        }
    })
}

/// Claims a stretch, if the worker may, and tells what is unclaimed then; nothing, if all is claimed.
fn claim(
    build: &Build,
    worker: usize,
    absorbed: &ProbeHandle<u64>,
) -> Result<Option<(Option<Stretch>, Place)>, Cause> {
    let (flow, splits) = (&build.wiring.flow, &build.plan.splits);
    let is_first = |(split, stretch): Place| {
        // A number that does not fit a position has not come this far.
        Position::new(split as u64, stretch, 0).is_ok_and(|start| !absorbed.less_than(&start.0))
    };
    let claimed = build.wiring.claims.claim_stretch(
        splits.len(),
        // Splits that one worker reads, if some are open, come before, and need room themselves.
        |place, streams| flow.is_idle(worker) && (flow.has_room(!streams) || is_first(place)),
        |split| build.plan.open_lines(&splits[split], build.budget.piece_bytes()),
    )?;
    Ok(match claimed {
        Claim::Taken(stretch) => {
            let next = stretch.next;
            Some((Some(stretch), next))
        }
        Claim::Wait(next) => Some((None, next)),
        Claim::Over => None,
    })
}

/// Reads a stretch.
fn read(
    build: &Build,
    Stretch { file, place, .. }: &Stretch,
    cutter: &mut Cutter,
    pieces: &mut Vec<Piece>,
) -> Result<(), Cause> {
    let (input, (_, stretch)) = (file.input(), *place);
    // The first asks for what all will read next, the others for one more.
    let workers = build.workers as u64;
    let ahead = if stretch == 0 { 1 } else { workers };
    (ahead..=workers).for_each(|ahead| file.will_need(stretch + ahead));
    let hash = file
        .read(stretch, cutter, |piece| pieces.push(piece))
        .map_err(|e| build.plan.read_error(input, e))?;
    Progress::add(&build.progress.read_bytes, file.stretch_len(stretch));
    if let Some(hash) = hash {
        let (bytes, compression) = (file.bytes(), Compression::None);
        lock(&build.done).inputs.push(InputRead { input, bytes, hash, compression });
    }
    Ok(())
}
