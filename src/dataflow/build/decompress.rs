//! Reads a split from first to last, decompresses it, and cuts its stream into pieces.
//!
//! - In: what the same worker has taken of the input. Out: pieces at the position (split, block,
//!   piece), each for the parser that has the least to do; those of stretches for this worker.
//! - While there is no room in the job's [`Flow`](super::flow::Flow), nothing is decompressed,
//!   but one piece of the first split that is not done, for which all others wait.
//! - Memory: a block, a piece that grows, and a decoder. A piece that grows long, for it holds a
//!   long document, waits until its split is the first that is not done, and so does a zstd window
//!   beyond `Budget::window_log`, which counts as under way: there is one of each at a time.
//! - Work per activation: pieces until every parser has enough to do, at most [`MOST_AT_ONCE`];
//!   this worker parses too, and meanwhile the others must not run dry.

use super::read::{InHand, TakenInput};
use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildPlan, BuildWiring, InputRead, PAUSE, Progress};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::indexer::Indexing;
use crate::index::documents::pieces::LargeDocument;
use crate::input::error::InputError;
use crate::input::hash::InputHash;
use crate::input::piece::Piece;
use crate::input::splits::{OpenedInput, Split};
use crate::input::streams::decoder::MOST_WINDOW_LOG;
use crate::input::streams::split_stream::{FileBlock, SplitStream};
use crate::order::{BLOCK_BYTES, Budget, Position};
use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::rc::Rc;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{ProbeHandle, StreamVec};

pub(crate) type Assigned = Local<(usize, Piece)>;

/// Blocks or pieces that one activation handles at most.
pub(crate) const MOST_AT_ONCE: usize = 256;

/// `absorbed` follows the far end of the dataflow.
pub(crate) fn decompress<'scope>(
    stream: StreamVec<'scope, u64, TakenInput>,
    build: &Build,
    in_hand: Rc<InHand>,
    absorbed: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Assigned> {
    let build = build.clone();
    let scope = stream.scope();
    let worker = scope.index();
    stream.unary(Pipeline, "Decompress", move |_, info| {
        let guard = OperatorGuard::new(&build.wiring.control, "Decompress", worker);
        let activator = scope.activator_for(info.address);
        let mut open: Option<(Capability<u64>, OpenSplit)> = None;
        let mut last = None;
        move |input, output| {
            input.for_each(|cap, data| {
                for taken in data.drain(..) {
                    match taken {
                        TakenInput::Piece(piece) => {
                            let at = cap.retain(0);
                            output.session(&at).give(Local((worker, piece)));
                        }
                        TakenInput::Split(split) => {
                            open = Some((cap.retain(0), OpenSplit::new(&build, split)));
                        }
                    }
                }
            });
            let mut cut = false;
            for _ in 0..MOST_AT_ONCE {
                let Some((cap, reading)) = &mut open else {
                    in_hand.short.set(cut);
                    return;
                };
                let first = is_first(&absorbed, reading.split);
                build.wiring.flow.set_waiting(worker, !first && reading.awaits_all(&build.plan));
                let unblocked = first && last.is_none_or(|time| !absorbed.less_equal(&time));
                if !unblocked && !has_room(&build.wiring, &absorbed, reading.split, first) {
                    return activator.activate_after(PAUSE);
                }
                let Some(step) = guard.work(|| reading.step(&build, first)) else { return };
                let mut busy = false;
                match step {
                    DecompressStep::Waits => return activator.activate_after(PAUSE),
                    DecompressStep::Went => {}
                    DecompressStep::Piece(piece) => {
                        cut = true;
                        let parser;
                        (parser, busy) = build.wiring.flow.assign(worker, piece.bytes.len());
                        last = Some(*cap.time());
                        output.session(&*cap).give(Local((parser, piece)));
                        let next = guard.work(|| Ok(Position::next_piece(*cap.time())?));
                        let Some(next) = next else { return };
                        cap.downgrade(&next.0);
                    }
                }
                if reading.is_done() {
                    reading.close(&build.wiring);
                    open = None;
                    in_hand.done();
                } else if reading.block.is_none() {
                    let next =
                        guard.work(|| Ok(Position::new(reading.split as u64, reading.blocks, 0)?));
                    let Some(next) = next else { return };
                    cap.downgrade(&next.0);
                }
                if busy {
                    break;
                }
            }
            if open.is_some() {
                activator.activate();
            }
        }
    })
}

enum DecompressStep {
    Went,
    Piece(Piece),
    /// A pipe has no more bytes yet, or what comes next has to wait.
    Waits,
}

struct OpenSplit {
    split: usize,
    /// Inputs that are not open.
    inputs: Range<u32>,
    file: Option<(u32, OpenedInput, InputHash)>,
    /// The next block, as far as it is read.
    bytes: Vec<u8>,
    blocks: u64,
    /// The last block, until it is decompressed.
    block: Option<FileBlock>,
    stream: SplitStream,
    /// Bytes of its decoder's window that count as under way.
    window: usize,
    fed: bool,
}

impl OpenSplit {
    fn new(build: &Build, split: usize) -> Self {
        let Split { inputs, format, .. } = build.plan.input.splits[split].clone();
        let cutter = build.plan.cutter(format, build.wiring.buffers.clone());
        Self {
            split,
            inputs,
            file: None,
            bytes: Vec::with_capacity(BLOCK_BYTES),
            blocks: 0,
            block: None,
            stream: SplitStream::new(cutter, build.plan.budget.window_log()),
            window: 0,
            fed: false,
        }
    }

    /// Whether it goes on only when all earlier splits are absorbed.
    fn awaits_all(&self, plan: &BuildPlan) -> bool {
        self.stream.held_bytes() > plan.longest_ahead() || self.stream.wanted_window().is_some()
    }

    /// Goes on until a piece is whole or a block is done; `first`: all earlier splits are absorbed.
    fn step(&mut self, build: &Build, first: bool) -> Result<DecompressStep, Cause> {
        if !first && self.awaits_all(&build.plan) {
            return Ok(DecompressStep::Waits);
        }
        if self.block.is_none() {
            self.block = self.next_block(build)?;
        }
        let Some(block) = &self.block else { return Ok(DecompressStep::Waits) };
        let (piece, done) = self.stream.step(block).map_err(|source| {
            let path = build.plan.input.path(block.input).to_string();
            InputError::Io { path, source }
        })?;
        accept(&build.plan, &self.stream, block, done)?;
        if done
            && block.ends_input
            && let Some(encoding) = self.stream.encoding()
        {
            lock(&build.plan.input.encodings).insert(block.input, encoding);
        }
        if let Some(bytes) = self.stream.wanted_window() {
            check_window(&build.plan, block.input, bytes)?;
            if !first {
                return Ok(DecompressStep::Waits);
            }
            build.wiring.flow.hold(bytes as usize);
            build.wiring.flow.absorbed(std::mem::replace(&mut self.window, bytes as usize));
            self.stream.allow_window(bytes);
            return Ok(DecompressStep::Went);
        }
        if done {
            self.bytes = self.block.take().expect("it was there").bytes;
            self.bytes.clear();
        }
        let Some(piece) = piece else { return Ok(DecompressStep::Went) };
        if !std::mem::replace(&mut self.fed, true) {
            build.wiring.claims.feeds();
        }
        Ok(DecompressStep::Piece(piece))
    }

    /// `None` while the rest of the block is not there, which only pipes do.
    fn next_block(&mut self, build: &Build) -> Result<Option<FileBlock>, Cause> {
        let (input, file, hash) = match &mut self.file {
            Some(file) => file,
            none => {
                // The numbers of inputs go on when the input is open.
                let input = self.inputs.clone().next().expect("a split has inputs");
                let Some(opened) = build.plan.input.open(input)? else { return Ok(None) };
                self.inputs.next();
                none.insert((input, opened, Default::default()))
            }
        };
        let room = (BLOCK_BYTES - self.bytes.len()) as u64;
        match file.reader.by_ref().take(room).read_to_end(&mut self.bytes) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
            read => read.map_err(|e| build.plan.input.read_error(*input, e))?,
        };
        let bytes = std::mem::take(&mut self.bytes);
        hash.update(&bytes);
        file.read += bytes.len() as u64;
        Progress::add(&build.progress.read_bytes, bytes.len() as u64);
        let ends_input = bytes.len() < BLOCK_BYTES;
        let input = *input;
        let compression = file.compression;
        if ends_input {
            file.check_unchanged().map_err(|e| build.plan.input.read_error(input, e))?;
            let bytes = file.read;
            let hash = hash.clone().digest();
            let read = InputRead { input, bytes, hash, compression, cut: None };
            lock(&build.progress.done).inputs.push(read);
            self.file = None;
        }
        self.blocks += 1;
        let ends_split = ends_input && self.inputs.is_empty();
        let encoding =
            build.plan.input.stream_encoding(input, build.plan.input.splits[self.split].format);
        Ok(Some(FileBlock { input, compression, encoding, bytes, ends_input, ends_split }))
    }

    fn is_done(&self) -> bool {
        self.blocks > 0 && self.file.is_none() && self.inputs.is_empty() && self.block.is_none()
    }

    fn close(&self, wiring: &BuildWiring) {
        wiring.flow.absorbed(self.window);
        wiring.claims.close(self.fed);
    }
}

/// Whether there is room for a piece of a split, which may be the `first` that is not done.
fn has_room(wiring: &BuildWiring, absorbed: &ProbeHandle<u64>, split: usize, first: bool) -> bool {
    wiring.flow.has_room_behind(match (first, wiring.indexing) {
        (true, _) => 0,
        // A device outruns one reader: pieces of the next files use most of the room.
        (false, Indexing::Texts) => splits_behind(absorbed, split),
        (false, _) => 1,
    })
}

fn is_first(absorbed: &ProbeHandle<u64>, split: usize) -> bool {
    // A split number that does not fit a position is not reached yet.
    Position::new(split as u64, 0, 0).is_ok_and(|start| !absorbed.less_than(&start.0))
}

/// How many splits behind the first that is not done a split is.
fn splits_behind(absorbed: &ProbeHandle<u64>, split: usize) -> usize {
    let first = absorbed.with_frontier(|frontier| frontier.first().copied());
    let first = first.map_or(0, Position::split_of) as usize;
    split.saturating_sub(first).max(1)
}

impl BuildPlan {
    /// The error of a document that is longer than this build holds.
    pub(crate) fn refuse_large(&self, large: &LargeDocument) -> Cause {
        let LargeDocument { input, offset, bytes, takes, ref name } = *large;
        let name = match &**name {
            "" => String::new(),
            name => format!(" {name}"),
        };
        let least = Budget::least_for_document(takes, self.workers) >> 20;
        InputError::Large { path: self.input.path(input), offset, name, bytes, least }.into()
    }
}

/// Refuses a stream that breaks off and input without any content, unless they are allowed; a file
/// that is a document and was found in a folder may be empty.
fn accept(
    plan: &BuildPlan,
    read: &SplitStream,
    block: &FileBlock,
    done: bool,
) -> Result<(), Cause> {
    let path = || plan.input.path(block.input);
    if !plan.allow_cut
        && let Some((reason, offset, error)) = read.broken()
    {
        let fault = error.clone();
        return Err(InputError::Broken { path: path(), reason, offset, fault }.into());
    }
    let inputs = &plan.input.inputs;
    let input = block.input as usize;
    let may_be_empty =
        plan.allow_empty || inputs.was_found(input) && inputs.format(input).file_is_document();
    if done && block.ends_input && !may_be_empty && read.stream_bytes() == 0 {
        return Err(InputError::Empty { path: path() }.into());
    }
    Ok(())
}

/// Refuses a window for which there will never be room.
fn check_window(plan: &BuildPlan, input: u32, bytes: u64) -> Result<(), Cause> {
    let path = plan.input.path(input);
    if bytes > 1 << MOST_WINDOW_LOG {
        let found = bytes.div_ceil(1 << 20);
        let most = 1 << (MOST_WINDOW_LOG - 20);
        return Err(format!(
            "{path}: inflating this needs a window of {found} MiB, and the largest that is read has \
             {most} MiB; compress it again, with zstd --long={MOST_WINDOW_LOG} at most, or xz \
             --lzma2=dict={most}MiB"
        )
        .into());
    }
    let workers = plan.workers;
    if bytes > plan.budget.longest_window(workers) {
        let found = bytes >> 20;
        let least = Budget::least_for_window(bytes, workers) >> 20;
        return Err(format!(
            "{path}: inflating this needs a window of {found} MiB; give the build a memory of \
             {least}M or more"
        )
        .into());
    }
    Ok(())
}
