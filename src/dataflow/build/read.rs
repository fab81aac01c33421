//! Reads whole blocks of the input's files, those that one worker has to read from first to last
//! (for the others see [`read_shared`](super::read_shared)).
//!
//! - Out: blocks of up to [`BLOCK_BYTES`] at the position (split, block), in order; the last of a
//!   split says so.
//! - Each worker that reads nothing claims the next split when a parser has nothing to do, though
//!   nearly all open splits feed parsers: what comes from a later split waits for all of the
//!   earlier ones, and has left the caches by then. So plain files are read by one or two workers,
//!   compressed ones by as many as it takes. Splits are opened in order; at most
//!   [`Budget::open_files`](crate::order::Budget::open_files) are open. A worker that waits holds a
//!   capability for the first unclaimed split only.
//! - Memory: `Build::blocks_ahead`, for it waits until the decompressor has taken blocks.
//! - Work per activation: as many, so that the worker has read ahead when it turns to parsing.

use crate::crew::lock;
use crate::dataflow::build::context::{Build, InputRead, Progress};
use crate::dataflow::control::{Cause, Guard};
use crate::input::hash::InputHash;
use crate::input::splits::{Opened, Split};
use crate::input::streams::split_stream::FileBlock;
use crate::order::{BLOCK_BYTES, Position};
use crate::schedule::claims::Claim;
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, StreamVec};
use timely::scheduling::Activator;

/// How the decompressor of the same worker tells the reader to go on.
#[derive(Default)]
pub(crate) struct ReadAhead {
    /// Blocks that were read and not yet taken.
    pub queued: Cell<usize>,
    /// The split is the first that is not done.
    pub first: Cell<bool>,
    reader: RefCell<Option<Activator>>,
    /// The decompressor has no blocks left, and parsers that need more pieces.
    pub short: Cell<bool>,
    /// Blocks whose bytes were taken, to be filled again.
    spare: RefCell<Vec<Vec<u8>>>,
}

impl ReadAhead {
    /// Tells that a block was taken, and gives its buffer back.
    pub(crate) fn taken(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.borrow_mut().push(buffer);
        self.queued.set(self.queued.get() - 1);
        if let Some(reader) = &*self.reader.borrow() {
            reader.activate();
        }
    }
}

/// How long a worker that found no split to open waits before it looks again.
const CLAIM_PAUSE: Duration = Duration::from_millis(1);

/// The split that a worker reads.
struct Current {
    split: usize,
    inputs: Range<u32>,
    block: u64,
    file: Option<(u32, Opened, InputHash)>,
    /// The block, as far as it was read.
    bytes: Vec<u8>,
}

/// Makes the reading operator; the returned feed goes to the decompressor of the same worker.
pub(crate) fn read<'scope>(
    scope: Scope<'scope, u64>,
    build: &Arc<Build>,
) -> (StreamVec<'scope, u64, FileBlock>, Rc<ReadAhead>) {
    let feed = Rc::new(ReadAhead::default());
    let (build, shared) = (build.clone(), feed.clone());
    let stream = source(scope, "Read", move |capability, info| {
        let guard = Guard::new(&build.control, "Read", scope.index());
        let activator = scope.activator_for(info.address.clone());
        *shared.reader.borrow_mut() = Some(scope.activator_for(info.address));
        let mut capability = Some(capability);
        let mut current: Option<Current> = None;
        move |output| {
            while shared.queued.get() < build.blocks_ahead(shared.first.get()) {
                let Some(cap) = capability.as_mut() else { return };
                let step = guard.work(|| {
                    if current.is_none() {
                        let (splits, most) = (build.plan.splits.len(), build.budget.open_files);
                        let hungry = build.wiring.flow.is_hungry();
                        let open = |split| build.open_shared(split);
                        match build.wiring.claims.claim(splits, most, hungry, open)? {
                            Claim::Over => return Ok(Step::Over),
                            Claim::Wait((split, stretch)) => {
                                cap.downgrade(&Position::new(split as u64, stretch, 0)?.0);
                                return Ok(Step::Wait);
                            }
                            Claim::Taken(split) => {
                                cap.downgrade(&Position::new(split as u64, 0, 0)?.0);
                                let Split { inputs, .. } = build.plan.splits[split].clone();
                                let (block, file, bytes) = (0, None, Vec::new());
                                shared.spare.borrow_mut().clear();
                                current = Some(Current { split, inputs, block, file, bytes });
                            }
                        }
                    }
                    let reading = current.as_mut().expect("a split was claimed");
                    let Some(block) = reading.next_block(&build, &shared.spare)? else {
                        return Ok(Step::Wait);
                    };
                    cap.downgrade(&Position::new(block.split as u64, block.block, 0)?.0);
                    if block.ends_split {
                        current = None;
                    }
                    Ok(Step::Block(block))
                });
                match step {
                    Some(Step::Block(block)) => {
                        shared.queued.set(shared.queued.get() + 1);
                        output.session(&*cap).give(block);
                    }
                    Some(Step::Wait) => return activator.activate_after(CLAIM_PAUSE),
                    Some(Step::Over) | None => capability = None,
                }
            }
        }
    });
    (stream, feed)
}

enum Step {
    Block(FileBlock),
    /// Too many splits are open, or a pipe has no more bytes yet.
    Wait,
    Over,
}

impl Current {
    /// Reads on; `None` while the rest of the block is not there, which only pipes do.
    fn next_block(
        &mut self,
        build: &Build,
        spare: &RefCell<Vec<Vec<u8>>>,
    ) -> Result<Option<FileBlock>, Cause> {
        let (input, file, hash) = match &mut self.file {
            Some(file) => file,
            none => {
                // The numbers of inputs go on when the input is open.
                let input = self.inputs.clone().next().expect("a split has inputs");
                let Some(opened) = build.plan.open(input)? else { return Ok(None) };
                self.inputs.next();
                none.insert((input, opened, Default::default()))
            }
        };
        let bytes = &mut self.bytes;
        if bytes.capacity() == 0 {
            *bytes = spare.borrow_mut().pop().unwrap_or_default();
        }
        bytes.reserve_exact(BLOCK_BYTES - bytes.len());
        let room = (BLOCK_BYTES - bytes.len()) as u64;
        match file.reader.by_ref().take(room).read_to_end(bytes) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
            read => read.map_err(|e| build.plan.read_error(*input, e))?,
        };
        let bytes = std::mem::take(bytes);
        let n = bytes.len();
        hash.update(&bytes);
        file.read += n as u64;
        Progress::add(&build.progress.read_bytes, n as u64);
        let ends_input = n < BLOCK_BYTES;
        let (input, compression) = (*input, file.compression);
        if ends_input {
            file.check_unchanged().map_err(|e| build.plan.read_error(input, e))?;
            let mut done = lock(&build.done);
            let (bytes, hash) = (file.read, hash.clone().digest());
            done.inputs.push(InputRead { input, bytes, hash, compression });
            self.file = None;
        }
        let block = self.block;
        self.block += 1;
        let ends_split = ends_input && self.inputs.is_empty();
        let split = self.split;
        Ok(Some(FileBlock { split, block, input, compression, bytes, ends_input, ends_split }))
    }
}
