//! Encodes the postings lists of a closed run, in the order of the lexicon.
//!
//! - In: an owner's part of a run. Out: chunks of encoded lists for the one writer, at the same
//!   position; the last of a run says so.
//! - Chunks wait for the writer: at most `Build::unwritten_chunks` of each owner are under way.
//!   Of many owners it often needs the chunks of one, so that a few would make it wait. The owners of
//!   one worker go on side by side, for the writer may need any of them.
//! - Memory: those chunks, one list as bytes, and a byte for each document of the run, which all
//!   owners share.
//! - Work per activation: `AT_ONCE` chunks of each owner, so that the writer's worker writes between.

use super::build::Build;
use super::control::{Cause, Guard};
use super::feed::{ClosedRun, wake_of};
use super::local::Local;
use crate::codec::folded;
use crate::dictionary::closed::{Advance, Wake};
use crate::index::list::ListEncoder;
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
    pub owner: usize,
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
/// Chunks of an owner that one activation makes at most.
const AT_ONCE: u64 = 4;

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
            let wake = wake_of(scope.worker().sync_activator_for(info.address.to_vec()));
            let activator = scope.activator_for(info.address);
            // Each owner of this worker has one run here at most.
            let mut open: Vec<(Capability<u64>, Encoding)> = Vec::new();
            let mut sent = vec![0u64; build.owners.len()];
            move |input, output| {
                input.for_each(|cap, data| {
                    for run in data.drain(..) {
                        let encoding = guard.work(|| Ok(Encoding::new(run, &build, &wake)));
                        open.extend(encoding.map(|encoding| (cap.retain(0), encoding)));
                    }
                });
                let (mut more, mut look) = (false, false);
                open.retain_mut(|(cap, encoding)| {
                    let owner = encoding.run.owner;
                    let written = build.encoded[owner].written_chunks.load(Ordering::Acquire);
                    let room = (written + build.unwritten_chunks()).saturating_sub(sent[owner]);
                    for _ in 0..room.min(AT_ONCE) {
                        let chunk = guard.work(|| encoding.chunk());
                        let Some(Some(chunk)) = chunk else {
                            look |= !encoding.is_woken;
                            return chunk.is_some();
                        };
                        let ends_run = chunk.ends_run;
                        encoding.count(&chunk, &build);
                        sent[owner] += 1;
                        output.session(&*cap).give(Local(chunk));
                        if ends_run {
                            return false;
                        }
                    }
                    more |= room > AT_ONCE;
                    // Nobody tells when there is room again.
                    look |= room <= AT_ONCE;
                    true
                });
                if more {
                    activator.activate();
                } else if look {
                    activator.activate_after(PAUSE);
                }
            }
        })
    }
}

/// A run on its way out.
struct Encoding {
    run: ClosedRun,
    /// The dictionary wakes the operator when its next term is there.
    is_woken: bool,
    /// The list of the term that `run.terms` stands at is not encoded to its end.
    in_list: bool,
    encoder: ListEncoder,
    /// The codes of the documents' lengths.
    lengths: Arc<Vec<u8>>,
    bytes: Vec<u8>,
    /// Where the current list goes on in `bytes`, and its last docid plus one.
    at: usize,
    expected: u32,
}

impl Encoding {
    fn new(mut run: ClosedRun, build: &Build, wake: &Wake) -> Self {
        let is_woken = run.terms.wake_by(wake.clone());
        let lengths = build.lengths.of_run(run.run, std::mem::take(&mut run.lengths));
        let (encoder, bytes) = (ListEncoder::of_form(build.form), Vec::new());
        Self { run, is_woken, in_list: false, encoder, lengths, bytes, at: 0, expected: 0 }
    }

    /// Counts the lists that end in a chunk.
    fn count(&self, chunk: &Chunk, build: &Build) {
        let encoded = &build.encoded[chunk.owner];
        let ended = || chunk.lists.iter().filter(|list| list.ends);
        encoded.terms.fetch_add(ended().count() as u64, Ordering::Relaxed);
        let postings = ended().map(|list| u64::from(list.df)).sum();
        encoded.postings.fetch_add(postings, Ordering::Relaxed);
        encoded.characters.fetch_add(chunk.suffixes.len() as u64, Ordering::Relaxed);
    }

    /// The next chunk; `None` while the dictionary has not even a part of one.
    fn chunk(&mut self) -> Result<Option<Chunk>, Cause> {
        let mut chunk = Chunk {
            run: self.run.run,
            first_docid: self.run.first_docid,
            documents: self.run.documents,
            owner: self.run.owner,
            ..Chunk::default()
        };
        std::mem::swap(self.encoder.payload(), &mut chunk.payload);
        self.encoder.payload().reserve(CHUNK_BYTES + (CHUNK_BYTES >> 2));
        while self.encoder.payload().len() < CHUNK_BYTES {
            if !self.in_list {
                match self.run.terms.advance(&mut self.bytes)? {
                    Advance::Term => (self.at, self.expected, self.in_list) = (0, 0, true),
                    Advance::Later => break,
                    Advance::End => {
                        chunk.ends_run = true;
                        self.run.busy.set(false);
                        break;
                    }
                }
            }
            let (collection, suffix) = self.run.terms.term();
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
                self.in_list = false;
            }
            list.here = self.encoder.payload().len() - before;
            chunk.lists.push(list);
        }
        std::mem::swap(self.encoder.payload(), &mut chunk.payload);
        Ok((chunk.ends_run || !chunk.lists.is_empty()).then_some(chunk))
    }
}
