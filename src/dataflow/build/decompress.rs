//! Decompresses the blocks of a split and cuts its stream into pieces.
//!
//! - In: blocks of the same worker, in order. Out: pieces at the position (split, block, piece),
//!   each for the parser that has the least to do.
//! - While there is no room in the job's [`Flow`](super::flow::Flow), nothing is decompressed; of
//!   the first split that is not done, one piece may always be under way, for all others wait for
//!   it.
//! - Memory: a piece that grows, and a decoder. A piece that grows long, for it holds a long
//!   document, waits until its split is the first that is not done, so that there is one such at a
//!   time. A zstd window beyond `Budget::window_log` waits until its split is the first that is not
//!   done, so that there is one at a time, and counts as under way.
//! - Work per activation: pieces until every parser has enough to do, at most [`MOST_AT_ONCE`];
//!   this worker parses too, and while it does, the others must not run dry.

use super::read::ReadAhead;
use crate::dataflow::build::context::Build;
use crate::dataflow::control::{Cause, Guard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::indexer::Indexing;
use crate::input::cutter::Cutter;
use crate::input::piece::Piece;
use crate::input::streams::decoder::DecodeError;
use crate::input::streams::decoder::zstd::MOST_WINDOW_LOG;
use crate::input::streams::split_stream::{FileBlock, SplitStream};
use crate::order::{Budget, Position};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{ProbeHandle, StreamVec};

/// A piece on its way to a parser.
pub(crate) type Assigned = Local<(usize, Piece)>;

/// Blocks or pieces that one activation is done with at most.
pub(crate) const MOST_AT_ONCE: usize = 256;
/// How long an operator that waits for others sleeps.
const PAUSE: Duration = Duration::from_micros(500);

pub(crate) trait Decompress<'scope> {
    /// Decompresses and cuts; `absorbed` follows the far end of the dataflow.
    fn decompress(
        self,
        build: &Arc<Build>,
        feed: Rc<ReadAhead>,
        absorbed: ProbeHandle<u64>,
    ) -> StreamVec<'scope, u64, Assigned>;
}

impl<'scope> Decompress<'scope> for StreamVec<'scope, u64, FileBlock> {
    fn decompress(
        self,
        build: &Arc<Build>,
        feed: Rc<ReadAhead>,
        absorbed: ProbeHandle<u64>,
    ) -> StreamVec<'scope, u64, Assigned> {
        let build = build.clone();
        let scope = self.scope();
        let worker = scope.index();
        self.unary(Pipeline, "Decompress", move |_, info| {
            let guard = Guard::new(&build.control, "Decompress", worker);
            let longest_ahead = build.longest_ahead();
            let activator = scope.activator_for(info.address);
            let mut blocks: VecDeque<(Capability<u64>, FileBlock)> = VecDeque::new();
            // Time of the last piece that went out.
            let mut last = None;
            let mut stream: Option<SplitStream> = None;
            // Bytes of its decoder's window that count as under way.
            let mut window = 0;
            // Whether its split has given a piece.
            let mut fed = false;
            move |input, output| {
                input.for_each(|cap, data| {
                    for block in data.drain(..) {
                        blocks.push_back((cap.retain(0), block));
                    }
                });
                let mut cut = false;
                for _ in 0..MOST_AT_ONCE {
                    if blocks.is_empty() {
                        feed.short.set(cut);
                        return;
                    }
                    let (cap, block) = blocks.front_mut().expect("there is a block");
                    let first = is_first(&absorbed, block.split);
                    feed.first.set(first);
                    let unblocked = first && last.is_none_or(|time| !absorbed.less_equal(&time));
                    let behind = match (first, build.wiring.indexing) {
                        (true, _) => 0,
                        // A device takes text sooner than one reader brings it: those of the next
                        // files use most of the room.
                        (false, Indexing::Texts) => splits_behind(&absorbed, block.split),
                        (false, _) => 1,
                    };
                    if !unblocked && !build.wiring.flow.has_room_behind(behind) {
                        return activator.activate_after(PAUSE);
                    }
                    if !first
                        && let Some(stream) = &stream
                        && stream.held_bytes() > longest_ahead
                    {
                        return activator.activate_after(PAUSE);
                    }
                    let step = guard.work(|| {
                        let stream = stream.get_or_insert_with(|| {
                            let format = build.plan.splits[block.split].format;
                            let (max_document, budget) = (build.max_document, &build.budget);
                            let pieces = budget.piece_bytes();
                            let cutter = Cutter::of_pieces(format, max_document, pieces)
                                .with_buffers(build.wiring.buffers.clone());
                            SplitStream::new(cutter, budget.window_log())
                        });
                        stream.step(block)
                    });
                    let Some((piece, done)) = step else { return };
                    let read = stream.as_ref().expect("it was made above");
                    if guard.work(|| accept(&build, read, block, done)).is_none() {
                        return;
                    }
                    if let Some(bytes) = stream.as_ref().and_then(SplitStream::wanted_window) {
                        let input = block.input;
                        if guard.work(|| check_window(&build, input, bytes)).is_none() {
                            return;
                        }
                        if !first {
                            return activator.activate_after(PAUSE);
                        }
                        let stream = stream.as_mut().expect("it wants a window");
                        build.wiring.flow.hold(bytes as usize);
                        build.wiring.flow.absorbed(std::mem::replace(&mut window, bytes as usize));
                        stream.allow_window(bytes);
                        continue;
                    }
                    let mut busy = false;
                    if let Some(piece) = piece {
                        cut = true;
                        let parser;
                        (parser, busy) = build.wiring.flow.assign(worker, piece.bytes.len());
                        last = Some(*cap.time());
                        if !std::mem::replace(&mut fed, true) {
                            build.wiring.claims.feeds();
                        }
                        output.session(&*cap).give(Local((parser, piece)));
                        let next = guard.work(|| Ok(Position::next_piece(*cap.time())?));
                        let Some(next) = next else { return };
                        cap.downgrade(&next.0);
                    }
                    if done {
                        let (_, block) = blocks.pop_front().expect("there is a block");
                        feed.taken(block.bytes);
                        if block.ends_split {
                            stream = None;
                            build.wiring.flow.absorbed(std::mem::take(&mut window));
                            build.wiring.claims.close(std::mem::take(&mut fed));
                        }
                    }
                    if busy {
                        break;
                    }
                }
                if !blocks.is_empty() {
                    activator.activate();
                }
            }
        })
    }
}

/// Whether nothing of an earlier split is under way.
fn is_first(absorbed: &ProbeHandle<u64>, split: usize) -> bool {
    // A split number that does not fit a position has not come this far.
    Position::new(split as u64, 0, 0).is_ok_and(|start| !absorbed.less_than(&start.0))
}

/// How many splits lie between one that is not the first that is not done, and that, which counts
/// too.
fn splits_behind(absorbed: &ProbeHandle<u64>, split: usize) -> usize {
    let first = absorbed.with_frontier(|frontier| frontier.first().copied());
    let first = first.map_or(0, Position::split_of) as usize;
    split.saturating_sub(first).max(1)
}

/// A file cannot be inflated in this memory.
#[derive(Debug, thiserror::Error)]
enum WindowError {
    #[error("{path}: inflating this needs a window of {} MiB; give the build a memory of {}M or more", bytes >> 20, least >> 20)]
    Memory { path: String, bytes: u64, least: u64 },
    #[error(
        "{path}: inflating this needs a window of {} MiB, and the largest that is read has {} MiB; compress it anew, with zstd --long={MOST_WINDOW_LOG} at most",
        bytes.div_ceil(1 << 20), 1 << (MOST_WINDOW_LOG - 20)
    )]
    TooLarge { path: String, bytes: u64 },
}

/// Input that would put less in the place of more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputRefused {
    /// A compressed file is cut short or damaged.
    #[error(
        "{path}: {reason} behind byte {offset} of its content: nothing was published; allow cut input to take what comes before"
    )]
    Broken {
        path: String,
        reason: &'static str,
        /// Bytes of its content before that.
        offset: u64,
        source: DecodeError,
    },
    #[error("{path}: this input is empty: nothing was published; allow empty input to take it")]
    Empty { path: String },
}

/// Refuses a stream that breaks off and input without any content, unless they are allowed. A file
/// that is a document and was found in a folder may be empty.
fn accept(build: &Build, read: &SplitStream, block: &FileBlock, done: bool) -> Result<(), Cause> {
    let path = || build.plan.path(block.input);
    if !build.allow_cut
        && let Some((reason, offset, error)) = read.broken()
    {
        let source = error.clone();
        return Err(InputRefused::Broken { path: path(), reason, offset, source }.into());
    }
    let (inputs, input) = (&build.plan.inputs, block.input as usize);
    let may_be_empty =
        build.allow_empty || inputs.was_found(input) && inputs.format(input).file_is_document();
    if done && block.ends_input && !may_be_empty && read.stream_bytes() == 0 {
        return Err(InputRefused::Empty { path: path() }.into());
    }
    Ok(())
}

/// Refuses a window for which there will never be room.
fn check_window(build: &Build, input: u32, bytes: u64) -> Result<(), Cause> {
    let path = build.plan.path(input);
    if bytes > 1 << MOST_WINDOW_LOG {
        return Err(WindowError::TooLarge { path, bytes }.into());
    }
    let workers = build.workers;
    if bytes > build.budget.longest_window(workers) {
        let least = Budget::least_for_window(bytes, workers);
        return Err(WindowError::Memory { path, bytes, least }.into());
    }
    Ok(())
}
