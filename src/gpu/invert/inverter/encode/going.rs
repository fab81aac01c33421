//! Encoded lists on their way to the file while a device encodes the next ones. The driving thread
//! hands on chunks. The threads that take lists to the host ask for one part after the other, which
//! is cut at that time; when all parts of a chunk are taken its memory goes back.

use super::parts::{EncodedRanks, InOrder, ListCutter, ListPart, RunTerms};
use crate::crew::lock;
use crate::gpu::invert::machine::{DeviceMemory, MOST_TAKEN, TextParcel};
use crate::index::files::storage::FilledFile;
use crate::index::run::LaidChunk;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// Goes back when it is dropped.
pub(super) struct Lent {
    memory: Option<DeviceMemory>,
    back: Sender<DeviceMemory>,
}

impl Lent {
    pub(super) fn new(memory: DeviceMemory, back: &Sender<DeviceMemory>) -> Self {
        Self { memory: Some(memory), back: back.clone() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // If the receiver is gone it is freed.
        _ = self.memory.take().map(|memory| self.back.send(memory));
    }
}

/// A chunk without memory has no byte.
pub(super) type OnDevice = EncodedRanks<Option<Lent>>;

struct EncodeState {
    chunks: VecDeque<Arc<OnDevice>>,
    cutter: ListCutter,
    number: usize,
    is_over: bool,
    /// Nobody will come for parts any more.
    is_left: bool,
}

pub(super) struct Going<'a, F> {
    terms: &'a RunTerms,
    /// Set before the first chunk that has bytes.
    pub(super) file: OnceLock<Arc<FilledFile>>,
    state: Mutex<EncodeState>,
    changed: Condvar,
    given: Mutex<InOrder<F>>,
}

impl<'a, F: FnMut(LaidChunk) + Send> Going<'a, F> {
    /// `emit` gets the lexicon's data of parts in their order.
    pub(super) fn new(terms: &'a RunTerms, emit: F) -> Self {
        let chunks = VecDeque::new();
        let cutter = ListCutter::new(MOST_TAKEN);
        let state = EncodeState { chunks, cutter, number: 0, is_over: false, is_left: false };
        let given = Mutex::new(InOrder::new(emit));
        let file = OnceLock::new();
        Self { terms, file, state: Mutex::new(state), changed: Condvar::new(), given }
    }

    pub(super) fn hand_on(&self, chunk: OnDevice) {
        let mut state = lock(&self.state);
        if !state.is_left {
            state.chunks.push_back(Arc::new(chunk));
            self.changed.notify_all();
        }
    }

    fn file(&self) -> &Arc<FilledFile> {
        self.file.get().expect("it was opened before")
    }

    /// The file could not be written, which the receiver of the parts is told, or the job has
    /// ended.
    pub(super) fn is_futile(&self) -> bool {
        self.file.get().is_some_and(|file| file.is_over())
    }

    /// Waits for the next part; None if there will be no more.
    pub(super) fn next(&self) -> Option<Box<dyn TextParcel + '_>> {
        let mut state = lock(&self.state);
        loop {
            if self.is_futile() {
                return None;
            }
            let EncodeState { chunks, cutter, number, is_over, .. } = &mut *state;
            let Some(chunk) = chunks.front() else {
                if *is_over {
                    return None;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let room = |bytes| self.file().room(bytes);
            let Some(part) = cutter.part(self.terms, chunk, room) else {
                chunks.pop_front();
                continue;
            };
            let number = std::mem::replace(number, *number + 1);
            let chunk = chunk.clone();
            return Some(Box::new(OnePart { of: self, chunk, part, number }));
        }
    }

    pub(super) fn end(&self) {
        lock(&self.state).is_over = true;
        self.changed.notify_all();
    }

    /// What is left goes back.
    pub(super) fn leave(&self) {
        let mut state = lock(&self.state);
        state.is_left = true;
        state.chunks.clear();
    }
}

/// Called when dropped, so that whatever happens nobody waits in vain.
pub(super) struct Finally<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

struct OnePart<'a, F> {
    of: &'a Going<'a, F>,
    chunk: Arc<OnDevice>,
    part: ListPart,
    number: usize,
}

impl<F: FnMut(LaidChunk) + Send> TextParcel for OnePart<'_, F> {
    fn memory(&self) -> &DeviceMemory {
        let lent = self.chunk.lists.as_ref().and_then(|lent| lent.memory.as_ref());
        lent.expect("a part has bytes, and its chunk has them until it is taken")
    }

    fn bytes(&self) -> Range<u64> {
        self.part.bytes.clone()
    }

    fn take(self: Box<Self>, bytes: &[u8]) {
        let Self { of, chunk, part, number } = *self;
        let laid = of.terms.place(&chunk, part, bytes, of.file());
        // Its memory may be needed.
        drop(chunk);
        lock(&of.given).give(number, laid);
    }
}
