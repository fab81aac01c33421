//! Encodes the postings lists of a closed run, in the order of the lexicon.
//!
//! - In: this worker's part of a run. Out: chunks of encoded lists for the one writer, at the same
//!   position; the last of a run says so.
//! - Chunks wait for the writer: at most `Build::unwritten_chunks` of each worker are under way.
//!   Of many owners it often needs the chunks of one, so that a few would make it wait.
//! - Memory: those chunks, one list as bytes, and a byte for each document of the run, which all
//!   workers share.
//! - Work per activation: as many chunks as may be under way.

use super::build::Build;
use super::control::{Cause, Guard};
use super::index::ClosedRun;
use crate::codec::folded;
use crate::dictionary::group::Local;
use crate::dictionary::run::SortedTerms;
use crate::index::list::ListEncoder;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;

/// Encoded lists of one owner, in the order of the lexicon.
#[derive(Default)]
pub struct Chunk {
    /// Number of the run.
    pub run: u32,
    /// Docid of the run's first document.
    pub first_docid: u32,
    /// The run's documents.
    pub documents: u32,
    /// The owner.
    pub worker: usize,
    /// The lists, or parts of lists.
    pub lists: Vec<ChunkList>,
    /// Suffixes of the terms whose lists end here, end to end.
    pub suffixes: Vec<u8>,
    /// Bytes of the lists, end to end.
    pub payload: Vec<u8>,
    /// The owner has no more of this run.
    pub ends_run: bool,
}

/// A list, or a part of one, in a [`Chunk`].
#[derive(Clone, Copy, Debug)]
pub struct ChunkList {
    /// Trie collection of the term.
    pub collection: u16,
    /// Bytes of its suffix.
    pub suffix_bytes: u8,
    /// The list ends in this chunk.
    pub ends: bool,
    /// Postings of the whole list, once it ends.
    pub df: u32,
    /// Bytes of the list in this chunk.
    pub here: usize,
    /// Bytes of the whole list, once it ends.
    pub bytes: u64,
}

/// A chunk goes out when it has this many bytes.
pub(super) const CHUNK_BYTES: usize = 256 << 10;
const PAUSE: Duration = Duration::from_micros(500);

/// See the [module](self).
pub trait Encode<'scope> {
    /// Encodes closed runs.
    fn encode(self, build: &Arc<Build>) -> StreamVec<'scope, u64, Local<Chunk>>;
}

impl<'scope> Encode<'scope> for StreamVec<'scope, u64, ClosedRun> {
    fn encode(self, build: &Arc<Build>) -> StreamVec<'scope, u64, Local<Chunk>> {
        let build = build.clone();
        let scope = self.scope();
        let worker = scope.index();
        self.unary(Pipeline, "Encode", move |_, info| {
            let guard = Guard::new(&build.control, "Encode", worker);
            let activator = scope.activator_for(info.address);
            let mut closed: VecDeque<(Capability<u64>, ClosedRun)> = VecDeque::new();
            let mut open: Option<(Capability<u64>, Encoding)> = None;
            let mut sent = 0u64;
            move |input, output| {
                input.for_each(|cap, data| {
                    for run in data.drain(..) {
                        closed.push_back((cap.retain(0), run));
                    }
                });
                while open.is_some() || !closed.is_empty() {
                    if sent - build.written_chunks[worker].load(Ordering::Acquire)
                        >= build.unwritten_chunks()
                    {
                        return activator.activate_after(PAUSE);
                    }
                    if open.is_none()
                        && let Some((cap, run)) = closed.pop_front()
                    {
                        let encoding = guard.work(|| Ok(Encoding::new(run, &build)));
                        open = encoding.map(|encoding| (cap, encoding));
                    }
                    let Some((cap, encoding)) = open.as_mut() else { return };
                    let Some(chunk) = guard.work(|| encoding.chunk(worker)) else { return };
                    let ends_run = chunk.ends_run;
                    sent += 1;
                    output.session(&*cap).give(Local(chunk));
                    if ends_run {
                        open = None;
                    }
                }
            }
        })
    }
}

/// A run on its way out.
struct Encoding {
    run: ClosedRun,
    sorted: SortedTerms,
    /// Terms that are done.
    next: usize,
    encoder: ListEncoder,
    /// The codes of the documents' lengths.
    lengths: Arc<Vec<u8>>,
    bytes: Vec<u8>,
    /// Where the current list goes on in `bytes`, and its last docid plus one.
    at: usize,
    expected: u32,
}

impl Encoding {
    fn new(mut run: ClosedRun, build: &Build) -> Self {
        let sorted = run.dictionary.sort();
        let lengths = build.lengths.of_run(run.run, run.dictionary.take_lengths());
        let (encoder, bytes) = (ListEncoder::of_form(build.form), Vec::new());
        Self { run, sorted, next: 0, encoder, lengths, bytes, at: 0, expected: 0 }
    }

    fn chunk(&mut self, worker: usize) -> Result<Chunk, Cause> {
        let mut chunk = Chunk {
            run: self.run.run,
            first_docid: self.run.first_docid,
            documents: self.run.documents,
            worker,
            ..Chunk::default()
        };
        std::mem::swap(self.encoder.payload(), &mut chunk.payload);
        self.encoder.payload().reserve(CHUNK_BYTES + (CHUNK_BYTES >> 2));
        loop {
            let dictionary = &self.run.dictionary;
            let Some((collection, suffix)) = dictionary.sorted_term(&self.sorted, self.next) else {
                chunk.ends_run = true;
                self.run.busy.set(false);
                break;
            };
            if self.at == 0 {
                dictionary.postings(&self.sorted, self.next, &mut self.bytes);
            }
            let before = self.encoder.payload().len();
            let mut list = ChunkList {
                collection,
                suffix_bytes: suffix.len() as u8,
                ends: true,
                df: 0,
                here: 0,
                bytes: 0,
            };
            while self.at < self.bytes.len() {
                let (gap, tf) = folded::get(&self.bytes, &mut self.at)
                    .ok_or("postings of an open run do not decode: this is a bug")?;
                let docid = self.expected + gap;
                self.encoder.push(docid, tf, self.lengths[docid as usize]);
                self.expected = docid + 1;
                if self.encoder.payload().len() >= CHUNK_BYTES {
                    list.ends = self.at == self.bytes.len();
                    break;
                }
            }
            if list.ends {
                (list.df, list.bytes) = self.encoder.finish();
                chunk.suffixes.extend_from_slice(suffix);
                self.next += 1;
                (self.at, self.expected) = (0, 0);
            }
            list.here = self.encoder.payload().len() - before;
            chunk.lists.push(list);
            if self.encoder.payload().len() >= CHUNK_BYTES {
                break;
            }
        }
        std::mem::swap(self.encoder.payload(), &mut chunk.payload);
        Ok(chunk)
    }
}
