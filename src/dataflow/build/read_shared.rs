//! Reads files whose records end with marks, all workers together: each takes the next stretch when
//! it has nothing to parse, and parses it itself.
//!
//! - Out: the pieces of a stretch at the position (split, stretch, piece), for the parser of the
//!   same worker. So pieces come nearly in the order of the input, few wait for earlier ones, and
//!   their bytes have not left the core's cache.
//! - A stretch is claimed while there is room in the job's [`Flow`](super::flow::Flow); the first
//!   of the input that is not absorbed always is. A worker that waits holds a capability for the
//!   first unclaimed one only.
//! - Memory: a piece. One that grows long, for it holds a long document, waits until all before it
//!   is absorbed, so that there is one such at a time.
//! - Work per activation: a stretch.

use super::decompress::Assigned;
use crate::crew::lock;
use crate::dataflow::build::context::{Build, InputRead, Progress};
use crate::dataflow::control::{Cause, Guard};
use crate::dataflow::query::local::Local;
use crate::input::cutter::Cutter;
use crate::input::error::InputError;
use crate::input::piece::Piece;
use crate::input::streams::shared_file::{Reading, SharedFile};
use crate::input::{Compression, Format};
use crate::order::Position;
use crate::schedule::claims::{Claim, Place, Stretch};
use crate::settings::SettingError;
use std::sync::Arc;
use std::time::Duration;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// How long a worker that has to wait for others does so before it looks again.
const PAUSE: Duration = Duration::from_micros(500);

/// Reads the files among the splits that all read together; `absorbed` follows the far end of the
/// dataflow.
pub(crate) fn read_shared<'scope>(
    scope: Scope<'scope, u64>,
    build: &Arc<Build>,
    absorbed: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Assigned> {
    let build = build.clone();
    let worker = scope.index();
    source(scope, "ReadShared", move |capability, info| {
        let guard = Guard::new(&build.control, "ReadShared", worker);
        let activator = scope.activator_for(info.address);
        // Who does not parse reads none.
        let mut capability = build.wiring.flow.parses(worker).then_some(capability);
        let piece_bytes = build.budget.piece_bytes();
        let as_lines = build.wiring.as_lines.clone();
        // Of any format: each file tells its own.
        let mut cutter = Cutter::of_pieces(Format::Jsonl, build.max_document, piece_bytes)
            .with_buffers(build.wiring.buffers.clone())
            .with_texts(as_lines.map(|as_lines| (build.wiring.texts.clone(), as_lines)));
        let mut open: Option<Open> = None;
        let mut pieces = Vec::new();
        move |output| {
            let Some(cap) = capability.as_mut() else { return };
            let step = guard.work(|| {
                let stretch = match &mut open {
                    Some(stretch) => stretch,
                    none => match claim(&build, worker, &absorbed)? {
                        Claim::Taken(stretch) => {
                            none.insert(Open::new(&build, stretch, &mut cutter)?)
                        }
                        Claim::Wait(next) => {
                            activator.activate_after(PAUSE);
                            return Ok(Some(position_of(next)?));
                        }
                        Claim::Over => return Ok(None),
                    },
                };
                let most_held = match is_first(&absorbed, stretch.position) {
                    true => usize::MAX,
                    false => build.longest_ahead(),
                };
                let whole = stretch.read(&build, &mut cutter, most_held, &mut pieces)?;
                for piece in pieces.drain(..) {
                    build.wiring.flow.take(worker, piece.bytes.len());
                    let at = cap.delayed(&stretch.position.0);
                    output.session(&at).give(Local((worker, piece)));
                    stretch.position = Position::next_piece(stretch.position.0)?;
                }
                if !whole {
                    activator.activate_after(PAUSE);
                    return Ok(Some(stretch.position));
                }
                activator.activate();
                let next = open.take().expect("it was read").end(&build)?;
                Ok(Some(position_of(next)?))
            });
            match step {
                Some(Some(next)) => cap.downgrade(&next.0),
                Some(None) | None => capability = None,
            }
        }
    })
}

/// The position of the first piece of a place.
fn position_of((split, stretch): Place) -> Result<Position, SettingError> {
    Position::new(split as u64, stretch, 0)
}

/// Whether all before a position is absorbed.
fn is_first(absorbed: &ProbeHandle<u64>, position: Position) -> bool {
    !absorbed.less_than(&position.0)
}

/// Claims a stretch, if the worker may.
fn claim(
    build: &Build,
    worker: usize,
    absorbed: &ProbeHandle<u64>,
) -> Result<Claim<Stretch<SharedFile>>, InputError> {
    let flow = &build.wiring.flow;
    let first = |place| position_of(place).is_ok_and(|start| is_first(absorbed, start));
    build.wiring.claims.claim_stretch(
        build.plan.splits.len(),
        // Splits that one worker reads, if some are open, come before, and need room themselves.
        |place, streams| flow.is_idle(worker) && (flow.has_room(!streams) || first(place)),
        |split| build.open_shared(split),
    )
}

/// A stretch that the worker reads.
struct Open {
    stretch: Stretch<SharedFile>,
    reading: Reading,
    position: Position,
}

impl Open {
    fn new(
        build: &Build,
        stretch: Stretch<SharedFile>,
        cutter: &mut Cutter,
    ) -> Result<Self, Cause> {
        let (file, (_, number)) = (&stretch.file, stretch.place);
        // The first asks for what all will read next, the others for one more.
        let workers = build.workers as u64;
        let ahead = if number == 0 { 1 } else { workers };
        (ahead..=workers).for_each(|ahead| file.will_need(number + ahead));
        let reading = file.begin(number, cutter);
        let reading = reading.map_err(|e| build.plan.read_error(file.input(), e))?;
        let position = position_of(stretch.place)?;
        Ok(Self { stretch, reading, position })
    }

    /// Reads on; tells whether all is read.
    fn read(
        &mut self,
        build: &Build,
        cutter: &mut Cutter,
        most_held: usize,
        pieces: &mut Vec<Piece>,
    ) -> Result<bool, InputError> {
        let file = &self.stretch.file;
        file.read(&mut self.reading, cutter, most_held, |piece| pieces.push(piece))
            .map_err(|e| build.plan.read_error(file.input(), e))
    }

    /// Ends it, when all is read; nothing before the returned place will be claimed.
    fn end(self, build: &Build) -> Result<Place, InputError> {
        let Stretch { file, place: (_, number), next } = self.stretch;
        let input = file.input();
        let hash = file.end(self.reading).map_err(|e| build.plan.read_error(input, e))?;
        Progress::add(&build.progress.read_bytes, file.stretch_len(number));
        if let Some(hash) = hash {
            let (bytes, compression) = (file.bytes(), Compression::None);
            lock(&build.done).inputs.push(InputRead { input, bytes, hash, compression });
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::harness::{build, failure, plan_of};
    use crate::dataflow::sole_time::SoleTime;
    use crate::input::hash::InputHash;
    use std::cell::RefCell;
    use std::rc::Rc;
    use timely::container::CapacityContainerBuilder;
    use timely::dataflow::channels::pact::Pipeline;
    use timely::dataflow::operators::Probe;
    use timely::dataflow::operators::generic::operator::Operator;

    #[test]
    fn read_shared_gives_the_pieces_of_stretches_and_says_where_the_input_ends() {
        for gone in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            // Three stretches of 1 MiB, of two pieces each but for the last.
            let text = "{\"id\": \"1\", \"text\": \"a mill\"}\n".repeat(80_000);
            let plan = plan_of(folder.path(), "a.jsonl", text.as_bytes());
            if gone {
                std::fs::remove_file(folder.path().join("a.jsonl")).unwrap();
            }
            let shared = Arc::new(build(plan, folder.path()));
            let given = shared.clone();
            let (found, over) = timely::execute_directly(move |worker| {
                let found = Rc::new(RefCell::new(Vec::new()));
                let (kept, probe, flow) = (found.clone(), ProbeHandle::new(), given.clone());
                worker.dataflow::<u64, _, _>(|scope| {
                    let pieces = read_shared(scope, &given, probe.clone());
                    pieces
                        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                            Pipeline,
                            "Keep",
                            move |_, _| {
                                move |input, _| {
                                    input.for_each(|cap, data| {
                                        for Local((parser, piece)) in data.drain(..) {
                                            flow.wiring.flow.parsed(parser, piece.bytes.len(), 0);
                                            kept.borrow_mut().push((*cap.time(), piece));
                                        }
                                    });
                                }
                            },
                        )
                        .probe_with(&probe);
                });
                let mut steps = 0;
                while !probe.done() && steps < 1000 {
                    worker.step_or_park(Some(Duration::from_millis(1)));
                    steps += 1;
                }
                let over = probe.done();
                worker
                    .installed_dataflows()
                    .into_iter()
                    .for_each(|flow| worker.drop_dataflow(flow));
                (found.take(), over)
            });
            assert!(over);
            if gone {
                let (operator, why) = failure(&shared.control).unwrap();
                assert!(operator == "ReadShared" && why.contains("a.jsonl"), "{operator}: {why}");
                continue;
            }
            assert!(!shared.control.stopped());
            let times: Vec<u64> = found.iter().map(|(time, _)| *time).collect();
            let at = |(stretch, piece)| Position::new(0, stretch, piece).unwrap().0;
            assert_eq!(times, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)].map(at));
            assert!(found.iter().flat_map(|(_, piece)| &*piece.bytes).eq(text.as_bytes()));
            let read = shared.done.lock().unwrap().inputs[0];
            assert_eq!(read.bytes, text.len() as u64);
            let mut hash = InputHash::default();
            hash.update(text.as_bytes());
            assert_eq!(read.hash, hash.digest());
        }
    }
}
