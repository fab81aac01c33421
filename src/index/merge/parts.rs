//! How do several threads merge runs to one? Trie collections that are neighbours are a *part*;
//! threads take parts in order and merge them to chunks, and the caller's thread writes the chunks
//! of the least part that is not written. What waits is bounded, its terms and suffixes included; the
//! part that is being written may always go on by a few chunks, so that the writer never starves.

#![forbid(unsafe_code)]

use super::lengths::Lengths;
use super::ordered::LIST_BYTES;
use super::source::{Base, Encoding, ListSource, Renumbering};
use super::terms::TermMerge;
use super::{
    Input, LEAST_RUN_BYTES, LENGTHS_SHARE, LEXICON_SHARE, MOST_RUN_BYTES, Merging,
    RUN_OVERHEAD_BYTES,
};
use crate::index::error::IndexError;
use crate::index::format::{Kind, run_file};
use crate::index::lexicon::LexiconStream;
use crate::index::list::ListEncoder;
use crate::index::manifest::RunEntry;
use crate::index::run::RunWriter;
use crate::index::storage::{self, Durability, FileEntry};
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A chunk goes to the writer when it has so many bytes of lists, or of terms.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks of the part that is being written wait for the writer too when they are so many.
const MOST_AHEAD: usize = 4;
/// Parts for each thread, so that all end at about the same time.
const PARTS: usize = 16;
/// The part of a thread's memory that chunks may take.
const CHUNKS_SHARE: u64 = 4;
/// A thread has no use for less memory than this for each run.
const LEAST_THREAD_BYTES: u64 = 4 * LEAST_RUN_BYTES;

/// Runs that become one.
pub(super) struct Joint<'a> {
    /// The lengths of the documents of all runs that are merged in the end, in a file.
    pub(super) lengths: &'a Path,
    pub(super) inputs: &'a [Input],
    /// The generation of the merged run, and its number there.
    pub(super) to: &'a Path,
    pub(super) number: u32,
    pub(super) durability: Durability,
    /// For all windows and what waits for the writer.
    pub(super) memory_bytes: u64,
    pub(super) merging: &'a Merging,
    /// The docid of each document of the only run, if documents are numbered anew.
    pub(super) numbers: Option<&'a [u32]>,
}

/// Encoded lists of neighbouring terms.
#[derive(Default)]
struct Chunk {
    /// The lists that end here.
    ended: Vec<Ended>,
    /// Suffixes of their terms, end to end.
    suffixes: Vec<u8>,
    /// Bytes of lists, end to end; the last may go on in the next chunk.
    payload: Vec<u8>,
}

struct Ended {
    /// Bytes of the whole list, and where it ends in the payload.
    bytes: u64,
    end: u32,
    df: u32,
    collection: u16,
    suffix_bytes: u8,
}

impl Chunk {
    /// Bytes of what says which lists end here.
    fn term_bytes(&self) -> usize {
        self.ended.len() * size_of::<Ended>() + self.suffixes.len()
    }

    /// Bytes of memory.
    fn memory_bytes(&self) -> u64 {
        let terms = self.ended.capacity() * size_of::<Ended>() + self.suffixes.capacity();
        (terms + self.payload.capacity()) as u64
    }
}

impl Joint<'_> {
    /// Merges the runs; removes those that are to be removed.
    pub(super) fn merge(&self) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
        let first_docid = self.inputs.first().map_or(0, |input| input.run.first_docid);
        let documents = self.inputs.iter().map(Input::documents).sum();
        self.merging.stop.expect(self.inputs.iter().map(|input| input.run.postings).sum());
        let mut writer = RunWriter::create_with(self.to, self.number, self.durability)?;
        writer = writer.coded_as(self.merging.form);
        let runs = self.inputs.len().max(1) as u64;
        // All threads need the same lengths.
        let whole = Lengths::whole(self.lengths, self.memory_bytes / LENGTHS_SHARE)?;
        let memory = self.memory_bytes - whole.as_ref().map_or(0, |codes| codes.len() as u64);
        let open = |memory: u64| match &whole {
            Some(codes) => Lengths::shared(self.lengths, codes),
            None => Lengths::open(self.lengths, memory / LENGTHS_SHARE),
        };
        // Beside its windows a thread has a list in memory to sort it.
        let list = self.numbers.map_or(0, |numbers| LIST_BYTES * numbers.len() as u64);
        let affordable = memory / (runs * LEAST_THREAD_BYTES + list);
        let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
        let threads = self.merging.threads.min(affordable);
        let memory = memory.saturating_sub(list * threads.max(1) as u64);
        match threads {
            0 | 1 => {
                let mut lengths = open(memory)?;
                let memory = memory.saturating_sub(lengths.memory_bytes());
                let all = 0..TRIE_COLLECTIONS as u16;
                self.merge_part(all, memory, &mut lengths, |chunk| write(&mut writer, &chunk))?;
            }
            threads => self.merge_parts(threads, memory, &open, &mut writer)?,
        }
        let merged = writer.finish(first_docid, documents)?;
        for Input { generation, run, remove, .. } in self.inputs {
            if *remove {
                storage::remove_file(&generation.join(run_file(&run.name, Kind::Lexicon)))?;
                storage::remove_file(&generation.join(run_file(&run.name, Kind::Postings)))?;
            }
        }
        Ok(merged)
    }

    /// Merges parts on threads and writes what they make.
    fn merge_parts(
        &self,
        threads: usize,
        memory: u64,
        open: &(impl Fn(u64) -> Result<Lengths, IndexError> + Sync),
        writer: &mut RunWriter,
    ) -> Result<(), IndexError> {
        let parts = self.cut(threads * PARTS)?;
        let memory = memory / threads as u64;
        let (chunks, memory) = (memory / CHUNKS_SHARE, memory - memory / CHUNKS_SHARE);
        let queue = Queue::new(parts.len(), chunks * threads as u64, self.inputs.len());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let _on_panic = OnPanic(&queue);
                    let result = open(memory).and_then(|mut lengths| {
                        let windows = memory.saturating_sub(lengths.memory_bytes());
                        while let Some(part) = queue.claim() {
                            let collections = parts[part].clone();
                            let seen =
                                self.merge_part(collections, windows, &mut lengths, |chunk| {
                                    queue.push(part, chunk);
                                    Ok(())
                                })?;
                            queue.end(part, &seen);
                        }
                        Ok(())
                    });
                    if let Err(error) = result {
                        queue.fail(error);
                    }
                });
            }
            let written = queue.write_all(writer);
            if written.is_err() {
                queue.stop();
            }
            written
        })?;
        self.check_totals(&queue.take_seen())
    }

    /// Cuts the collections into at most `parts` parts with lists of about as many bytes.
    fn cut(&self, parts: usize) -> Result<Vec<Range<u16>>, IndexError> {
        let mut weights = vec![0u64; TRIE_COLLECTIONS];
        for Input { generation, run, .. } in self.inputs {
            let path = generation.join(run_file(&run.name, Kind::Lexicon));
            let starts = LexiconStream::open(&path, 0)?.collection_starts()?;
            for (weight, start) in weights.iter_mut().zip(starts.windows(2)) {
                *weight = weight.saturating_add(start[1].saturating_sub(start[0]));
            }
        }
        let share = weights.iter().fold(0, |sum: u64, &w| sum.saturating_add(w)) / parts as u64 + 1;
        let (mut cut, mut start, mut sum) = (Vec::new(), 0u16, 0u64);
        for (collection, weight) in (0u16..).zip(weights) {
            sum = sum.saturating_add(weight);
            if sum >= share {
                cut.push(start..collection + 1);
                (start, sum) = (collection + 1, 0);
            }
        }
        if usize::from(start) < TRIE_COLLECTIONS {
            cut.push(start..TRIE_COLLECTIONS as u16);
        }
        Ok(cut)
    }

    /// Merges some collections of all runs with `memory_bytes` for the windows. Returns how many
    /// terms and postings each run had there.
    fn merge_part(
        &self,
        collections: Range<u16>,
        memory_bytes: u64,
        lengths: &mut Lengths,
        mut emit: impl FnMut(Chunk) -> Result<(), IndexError>,
    ) -> Result<Vec<(u64, u64)>, IndexError> {
        let share = memory_bytes / self.inputs.len().max(1) as u64;
        let share = share.clamp(LEAST_RUN_BYTES, MOST_RUN_BYTES);
        let first = self.inputs.first().map_or(0, |input| input.base);
        let (mut streams, mut lists) = (Vec::new(), Vec::new());
        for Input { generation, run, deletions, base, .. } in self.inputs {
            let lexicon_window = (share / LEXICON_SHARE) as usize;
            let postings_window = (share - share / LEXICON_SHARE - RUN_OVERHEAD_BYTES) as usize;
            let path = generation.join(run_file(&run.name, Kind::Lexicon));
            let stream = LexiconStream::open_part(&path, lexicon_window, collections.clone())?;
            let base = Base::new(first, base - first, deletions.clone());
            lists.push(ListSource::open(generation, run, &stream, base, postings_window)?);
            streams.push(stream);
        }
        let mut terms = TermMerge::new(streams)?;
        let mut renumbering = self.numbers.map(Renumbering::new);
        let mut encoder = ListEncoder::of_form(self.merging.form);
        let mut chunk = Chunk::default();
        // Read since the last chunk.
        let postings = Cell::new(0);
        let mut emit = |chunk: &mut Chunk, payload: &mut Vec<u8>| {
            let room = match payload.len() {
                // Lists of a posting or two: their terms fill the chunk.
                short @ ..CHUNK_BYTES => short + short / 4,
                _ => CHUNK_BYTES + CHUNK_BYTES / 4,
            };
            chunk.payload = std::mem::replace(payload, Vec::with_capacity(room));
            self.merging.stop.check()?;
            self.merging.stop.pass(postings.take());
            emit(std::mem::take(chunk))
        };
        while terms.take_term() {
            while let Some((source, list)) = terms.source_of_term() {
                postings.set(postings.get() + u64::from(list.df));
                if let Some(collected) = &mut renumbering {
                    lists[source].append(list, collected, |_| Ok(()))?;
                } else {
                    let encoding = &mut Encoding { lengths, encoder: &mut encoder };
                    lists[source].append(list, encoding, |payload| match payload.len() {
                        ..CHUNK_BYTES => Ok(()),
                        _ => emit(&mut chunk, payload),
                    })?;
                }
                terms.advance()?;
            }
            if let Some(collected) = &mut renumbering {
                let encoding = Encoding { lengths, encoder: &mut encoder };
                collected.pour(encoding, |payload| match payload.len() {
                    ..CHUNK_BYTES => Ok(()),
                    _ => emit(&mut chunk, payload),
                })?;
            }
            // All of its documents may have been left out.
            if encoder.df() == 0 {
                continue;
            }
            let (df, bytes) = encoder.finish();
            let (collection, suffix) = terms.taken();
            let end = u32::try_from(encoder.payload().len());
            let end = end.expect("a chunk goes long before it has 4 GiB");
            let suffix_bytes = suffix.len() as u8;
            chunk.ended.push(Ended { bytes, end, df, collection, suffix_bytes });
            chunk.suffixes.extend_from_slice(suffix);
            if end as usize >= CHUNK_BYTES || chunk.term_bytes() >= CHUNK_BYTES {
                emit(&mut chunk, encoder.payload())?;
            }
        }
        emit(&mut chunk, encoder.payload())?;
        Ok(terms.seen())
    }

    /// The parts of each lexicon have to be all of it. Each part has found its header and the entry
    /// of the run to agree.
    fn check_totals(&self, seen: &[(u64, u64)]) -> Result<(), IndexError> {
        for (Input { generation, run, .. }, &(terms, postings)) in self.inputs.iter().zip(seen) {
            for (offset, expected, found) in [(16, terms, run.terms), (40, postings, run.postings)]
            {
                if expected != found {
                    let path = generation.join(run_file(&run.name, Kind::Lexicon));
                    return Err(IndexError::damaged(&path, offset, expected, found));
                }
            }
        }
        Ok(())
    }
}

/// Writes the lists of a chunk.
fn write(writer: &mut RunWriter, chunk: &Chunk) -> Result<(), IndexError> {
    let (mut at, mut suffixes) = (0, &chunk.suffixes[..]);
    for list in &chunk.ended {
        let bytes = &chunk.payload[at..list.end as usize];
        at = list.end as usize;
        let (suffix, rest) = suffixes.split_at(usize::from(list.suffix_bytes));
        suffixes = rest;
        writer.end_list(list.collection, suffix, list.df, list.bytes, bytes)?;
    }
    writer.list_part(&chunk.payload[at..])
}

/// Chunks on their way from the threads to the writer.
struct Queue {
    state: Mutex<State>,
    /// A chunk or an end has come, or there is room again.
    changed: Condvar,
    parts: usize,
    /// Bytes that may wait, and then chunks of the part that is being written.
    most_bytes: u64,
}

struct State {
    /// The next part that a thread takes.
    claimed: usize,
    /// The part that is being written.
    head: usize,
    waiting: BTreeMap<usize, VecDeque<Chunk>>,
    bytes: u64,
    /// Parts that have no more chunks.
    ended: Vec<bool>,
    /// Terms and postings of each run.
    seen: Vec<(u64, u64)>,
    error: Option<IndexError>,
    stopped: bool,
}

impl State {
    /// Whether a chunk of `part` may be added. The writer takes those of the head, and so makes room.
    fn has_room(&self, part: usize, most_bytes: u64) -> bool {
        let ahead = || self.waiting.get(&part).map_or(0, VecDeque::len);
        self.bytes <= most_bytes || part == self.head && ahead() < MOST_AHEAD
    }
}

impl Queue {
    fn new(parts: usize, most_bytes: u64, runs: usize) -> Self {
        let state = State {
            claimed: 0,
            head: 0,
            waiting: BTreeMap::new(),
            bytes: 0,
            ended: vec![false; parts],
            seen: vec![(0, 0); runs],
            error: None,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), parts, most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part for a thread.
    fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        let part = state.claimed;
        state.claimed += 1;
        (part < self.parts && !state.stopped).then_some(part)
    }

    /// Hands a chunk to the writer; waits while there is no room for it.
    fn push(&self, part: usize, chunk: Chunk) {
        let mut state = self.lock();
        while !state.has_room(part, self.most_bytes) && !state.stopped {
            state = self.wait(state);
        }
        state.bytes += chunk.memory_bytes();
        state.waiting.entry(part).or_default().push_back(chunk);
        drop(state);
        self.changed.notify_all();
    }

    /// A part has no more chunks.
    fn end(&self, part: usize, seen: &[(u64, u64)]) {
        let mut state = self.lock();
        state.ended[part] = true;
        for (sum, seen) in state.seen.iter_mut().zip(seen) {
            *sum = (sum.0 + seen.0, sum.1 + seen.1);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn fail(&self, error: IndexError) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        state.stopped = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Lets all threads end.
    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn take_seen(self) -> Vec<(u64, u64)> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).seen
    }

    /// Writes all parts in order.
    fn write_all(&self, writer: &mut RunWriter) -> Result<(), IndexError> {
        let mut state = self.lock();
        while state.head < self.parts {
            if state.stopped {
                return state.error.take().map_or(Ok(()), Err);
            }
            let head = state.head;
            if let Some(chunk) = state.waiting.get_mut(&head).and_then(VecDeque::pop_front) {
                state.bytes -= chunk.memory_bytes();
                drop(state);
                write(writer, &chunk)?;
                self.changed.notify_all();
                state = self.lock();
            } else if state.ended[head] {
                state.waiting.remove(&head);
                state.head += 1;
                self.changed.notify_all();
            } else {
                state = self.wait(state);
            }
        }
        Ok(())
    }
}

/// Stops all when its thread panics; the scope passes the panic on when they have ended.
struct OnPanic<'a>(&'a Queue);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of lists of one posting: hardly any payload.
    fn chunk() -> Chunk {
        let list = || Ended { bytes: 2, end: 0, df: 1, collection: 0, suffix_bytes: 12 };
        let ended = std::iter::repeat_with(list).take(2000).collect();
        Chunk { ended, suffixes: vec![b'x'; 24_000], payload: vec![0; 4000] }
    }

    #[test]
    fn what_waits_counts_with_its_terms() {
        let bytes = chunk().memory_bytes();
        assert!(bytes >= 2000 * size_of::<Ended>() as u64 + 28_000, "{bytes}");
        let queue = Queue::new(3, 10 * bytes, 1);
        for _ in 0..11 {
            assert!(queue.lock().has_room(1, queue.most_bytes));
            queue.push(1, chunk());
        }
        let room = |part| queue.lock().has_room(part, queue.most_bytes);
        assert!(!room(1) && !room(2));
        // The part that is being written goes on, by a few chunks.
        for _ in 0..MOST_AHEAD {
            assert!(room(0));
            queue.push(0, chunk());
        }
        assert!(!room(0));
        assert_eq!(queue.lock().bytes, (11 + MOST_AHEAD as u64) * bytes);
    }
}
