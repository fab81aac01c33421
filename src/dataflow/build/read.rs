//! Reads the input, all workers together: an idle one claims what is next.
//!
//! - Out, for the decompressor of the same worker: the pieces of a stretch of a file whose records
//!   end with marks, at the position (split, stretch, piece), which this worker parses itself. So
//!   pieces come nearly in the order of the input, few wait for earlier ones, and their bytes are
//!   still in the core's cache. Or a split that one worker has to read from first to last, at the
//!   position (split, 0, 0): the decompressor reads it, and none follows before it is done.
//! - A stretch is claimed while there is room in the job's [`Flow`](super::flow::Flow); the first
//!   of the input that is not absorbed always is. A split is claimed when a parser is idle though
//!   nearly all open splits feed parsers: what comes from a later split waits for all earlier
//!   ones, and has left the caches by then. So plain files are read by one or two workers,
//!   compressed ones by as many as it takes, with at most
//!   [`Budget::open_files`](crate::order::Budget::open_files) open. A worker that waits holds a
//!   capability for the first unclaimed place only.
//! - Memory: a piece. One that grows long, for it holds a long document, waits until all before it
//!   is absorbed, so that there is one such at a time.
//! - Work per activation: a stretch.

use crate::crew::lock;
use crate::dataflow::build::context::{Build, InputRead, PAUSE, Progress};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::input::cutter::Cutter;
use crate::input::error::InputError;
use crate::input::hash::InputHash;
use crate::input::piece::Piece;
use crate::input::streams::shared_file::{SharedFile, StretchReading};
use crate::input::{Compression, Format};
use crate::order::Position;
use crate::schedule::claims::{Claim, ClaimPlace};
use crate::settings::SettingError;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};
use timely::scheduling::Activator;

pub(crate) enum TakenInput {
    /// For the parser of this worker.
    Piece(Piece),
    /// To be read by this worker from first to last.
    Split(usize),
}

#[derive(Default)]
pub(crate) struct InHand {
    is_open: Cell<bool>,
    reader: RefCell<Option<Activator>>,
    /// The decompressor has nothing left, and parsers need more pieces.
    pub short: Cell<bool>,
}

impl InHand {
    pub(crate) fn done(&self) {
        self.is_open.set(false);
        if let Some(reader) = &*self.reader.borrow() {
            reader.activate();
        }
    }
}

/// `absorbed` follows the far end of the dataflow. The second value is for the decompressor of the
/// same worker.
pub(crate) fn read<'scope>(
    scope: Scope<'scope, u64>,
    build: &Build,
    absorbed: ProbeHandle<u64>,
) -> (StreamVec<'scope, u64, TakenInput>, Rc<InHand>) {
    let in_hand = Rc::new(InHand::default());
    let build = build.clone();
    let shared = in_hand.clone();
    let stream = source(scope, "Read", move |capability, info| {
        let worker = scope.index();
        let guard = OperatorGuard::new(&build.wiring.control, "Read", worker);
        let activator = scope.activator_for(info.address.clone());
        *shared.reader.borrow_mut() = Some(scope.activator_for(info.address));
        let mut capability = Some(capability);
        let mut reader = SplitReader::new(build, absorbed, worker);
        let mut taken = Vec::new();
        move |output| {
            let Some(cap) = capability.as_mut().filter(|_| !shared.is_open.get()) else { return };
            let step = guard.work(|| reader.step(&mut taken));
            for (position, taken) in taken.drain(..) {
                shared.is_open.set(matches!(taken, TakenInput::Split(_)));
                output.session(&cap.delayed(&position)).give(taken);
            }
            match step {
                Some(ReadStep::Went(next)) => {
                    activator.activate();
                    cap.downgrade(&next.0);
                }
                Some(ReadStep::Waits(next)) => {
                    activator.activate_after(PAUSE);
                    cap.downgrade(&next.0);
                }
                Some(ReadStep::Over) | None => capability = None,
            }
        }
    });
    (stream, in_hand)
}

/// Nothing before the given position will be taken.
enum ReadStep {
    Went(Position),
    Waits(Position),
    Over,
}

struct SplitReader {
    build: Build,
    absorbed: ProbeHandle<u64>,
    worker: usize,
    cutter: Cutter,
    open: Option<OpenStretch>,
}

struct OpenStretch {
    file: Arc<SharedFile>,
    number: u64,
    reading: StretchReading,
    /// Of its next piece.
    position: Position,
    next: ClaimPlace,
}

fn position_of((split, stretch): ClaimPlace) -> Result<Position, SettingError> {
    Position::new(split as u64, stretch, 0)
}

impl SplitReader {
    fn new(build: Build, absorbed: ProbeHandle<u64>, worker: usize) -> Self {
        // Of any format: each file tells its own.
        let cutter = build.plan.cutter(Format::Jsonl, build.wiring.buffers.clone());
        Self { build, absorbed, worker, cutter, open: None }
    }

    fn is_first(&self, position: Position) -> bool {
        !self.absorbed.less_than(&position.0)
    }

    fn step(&mut self, taken: &mut Vec<(u64, TakenInput)>) -> Result<ReadStep, Cause> {
        if self.open.is_none() {
            match self.claim()? {
                Claim::Stretch { file, place, next } => {
                    self.open = Some(self.begin(file, place, next)?);
                }
                Claim::Split { split, next } => {
                    taken.push((position_of((split, 0))?.0, TakenInput::Split(split)));
                    return Ok(ReadStep::Went(position_of(next)?));
                }
                Claim::Wait(next) => return Ok(ReadStep::Waits(position_of(next)?)),
                Claim::Over => return Ok(ReadStep::Over),
            }
        }
        let mut stretch = self.open.take().expect("it was begun");
        if self.read(&mut stretch, taken)? {
            return Ok(ReadStep::Went(position_of(self.end(stretch)?)?));
        }
        let position = stretch.position;
        self.open = Some(stretch);
        Ok(ReadStep::Waits(position))
    }

    fn claim(&self) -> Result<Claim<SharedFile>, InputError> {
        let Build { plan, wiring, .. } = &self.build;
        let worker = self.worker;
        let flow = &wiring.flow;
        let first = |place| position_of(place).is_ok_and(|start| self.is_first(start));
        wiring.claims.claim(
            plan.input.splits.len(),
            plan.budget.open_files,
            flow.is_hungry(),
            // Open splits that one worker reads come before, and need room too.
            |place, streams| flow.is_idle(worker) && (flow.has_room(!streams) || first(place)),
            |split| match wiring.all_read || plan.input.splits[split].part.is_some() {
                true => plan.open_shared(split),
                false => Ok(None),
            },
        )
    }

    fn begin(
        &mut self,
        file: Arc<SharedFile>,
        place: ClaimPlace,
        next: ClaimPlace,
    ) -> Result<OpenStretch, Cause> {
        let position = position_of(place)?;
        let number = place.1;
        // The first asks for what all will read next, the others for one more.
        let workers = self.build.plan.workers as u64;
        let ahead = if number == 0 { 1 } else { workers };
        (ahead..=workers).for_each(|ahead| file.will_need(number + ahead));
        let reading = file.begin(number, &mut self.cutter);
        let reading = reading.map_err(|e| self.build.plan.input.read_error(file.input(), e))?;
        Ok(OpenStretch { file, number, reading, position, next })
    }

    /// Tells whether all is read.
    fn read(
        &mut self,
        stretch: &mut OpenStretch,
        taken: &mut Vec<(u64, TakenInput)>,
    ) -> Result<bool, Cause> {
        let most_held = match self.is_first(stretch.position) {
            true => usize::MAX,
            false => self.build.plan.longest_ahead(),
        };
        let OpenStretch { file, reading, position, .. } = stretch;
        let mut pieces = Vec::new();
        let whole = file
            .read(reading, &mut self.cutter, most_held, |piece| pieces.push(piece))
            .map_err(|e| self.build.plan.input.read_error(file.input(), e))?;
        self.build.wiring.flow.set_waiting(self.worker, !whole);
        for piece in pieces {
            self.build.wiring.flow.take(self.worker, piece.bytes.len());
            taken.push((position.0, TakenInput::Piece(piece)));
            *position = Position::next_piece(position.0)?;
        }
        Ok(whole)
    }

    /// Ends a stretch that is read; nothing before the returned place will be claimed.
    fn end(&self, stretch: OpenStretch) -> Result<ClaimPlace, InputError> {
        let OpenStretch { file, number, reading, next, .. } = stretch;
        let build = &self.build;
        let input = file.input();
        let hashes = file.end(reading).map_err(|e| build.plan.input.read_error(input, e))?;
        Progress::add(&build.progress.read_bytes, file.stretch_len(number));
        if let Some(hashes) = hashes {
            let (bytes, hash) = (file.bytes(), InputHash::of_chunks(&hashes));
            let (compression, cut) = (Compression::None, file.is_part().then_some(hashes));
            let read = InputRead { input, bytes, hash, compression, cut };
            lock(&build.progress.done).inputs.push(read);
        }
        Ok(next)
    }
}
