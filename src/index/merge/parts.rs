//! Merges runs to one by several threads. Neighbouring trie collections are a *part*, or
//! neighbouring terms of a collection that is larger than that; threads claim parts in order,
//! merge them and lay out the result, and the caller's thread places it in the run
//! ([`RunWriter`]). What a thread has made and is not written is bounded. The thread with the
//! least unwritten part waits for nobody, since all that it makes is placed at once.

use super::lengths::Lengths;
use super::renumbering::{LIST_BYTES, POSITIONS_BYTES, Renumbering};
use super::source::{Base, Encoders, ListEncoding, ListSource};
use super::terms::TermMerge;
use super::{
    LEAST_RUN_BYTES, LEXICON_SHARE, MOST_RUN_BYTES, MergeInput, Merging, RUN_OVERHEAD_BYTES,
    superfluous,
};
use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::storage::{self, FileEntry};
use crate::index::format::{FileKind, POSTINGS_SLACK};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::{
    LexiconStream, TermCoder, TermEntry, TermRange, cut, expect_totals, pieces_of,
};
use crate::index::list::BEFORE_FIRST;
use crate::index::positions::RunPositions;
use crate::index::run::{LaidChunk, ListChunks, MakerGuard, NewRun, RunWriter};
use crate::text::fields::split;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, ScopedJoinHandle, panicking, scope};

/// A chunk is given away when it has this many bytes: the more, the more memory there is.
const LEAST_CHUNK_BYTES: usize = 128 << 10;
const MOST_CHUNK_BYTES: usize = 256 << 10;
/// A thread's part of the memory for unwritten output holds this many chunks, if it suffices.
const CHUNKS: u64 = 16;
const LEAST_CHUNKS: u64 = 4;
/// Parts for each thread, so that all end at about the same time.
const PARTS: u64 = 16;
const MOST_PARTS: u64 = 1 << 12;
/// Of less weight there are no parts: each opens the files of all runs.
const LEAST_PART_WEIGHT: u64 = if cfg!(test) { 1 } else { 32 << 10 };
/// A term costs as much time as lists of this many times its bytes.
const TERM_COST: u64 = 6;
/// The part of a thread's memory that chunks may take, and the most that they take.
const CHUNKS_SHARE: u64 = 4;
const MOST_CHUNKS_BYTES: u64 = 64 << 20;
/// A thread has no use for less memory than this for each run.
const LEAST_THREAD_BYTES: u64 = 4 * LEAST_RUN_BYTES;
/// Threads that merge for each that writes.
const MERGERS: usize = 4;

pub(super) struct Joint<'a> {
    /// Of the documents of all runs that are merged in the end, and of each of their fields.
    pub(super) lengths: &'a [Lengths],
    pub(super) inputs: &'a [MergeInput],
    /// The generation of the merged run, and its number there.
    pub(super) to: &'a Path,
    pub(super) number: u32,
    /// For all windows and unwritten output.
    pub(super) memory_bytes: u64,
    pub(super) merging: &'a Merging,
    /// The docid of each document of the only run, if documents are renumbered.
    pub(super) numbers: Option<&'a [u32]>,
}

struct MergePart {
    terms: TermRange,
    /// Where it goes on in a collection that others have begun: how many terms they have, and the
    /// last of these.
    behind: Option<(usize, Vec<u8>)>,
    /// Of their terms and of their lists in each run, about.
    bytes: Vec<[u64; 2]>,
}

/// A thread that merges waits for one to make another chunk.
struct Credit(Sender<()>);

impl Drop for Credit {
    fn drop(&mut self) {
        // A thread that has ended makes no more chunks.
        _ = self.0.send(());
    }
}

/// A chunk and the number of its part, or why there will be no more.
type SentChunk = Result<(usize, LaidChunk), IndexError>;

/// Ends all threads when its thread panics; the scope passes the panic on behind them.
struct OnPanic<'a>(&'a Sender<SentChunk>);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if panicking() {
            _ = self.0.send(Err(IndexError::Stopped));
        }
    }
}

fn write_all(mut run: RunWriter, chunks: Receiver<SentChunk>) -> Result<RunWriter, IndexError> {
    for sent in chunks {
        let (part, chunk) = sent?;
        run.take(part, chunk);
        run.write()?;
    }
    Ok(run)
}

impl Joint<'_> {
    /// Merges the runs, and removes those that are to be removed.
    pub(super) fn merge(&self) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
        let first_docid = self.inputs.first().map_or(0, |input| input.run.first_docid);
        let documents = self.inputs.iter().map(|input| input.run.live_documents()).sum();
        self.merging.stop.expect(self.inputs.iter().map(|input| input.run.postings).sum());
        let runs = self.inputs.len().max(1) as u64;
        // Beside its windows a thread sorts a list in memory.
        let has_positions = self.merging.form.has_positions();
        let of_posting = LIST_BYTES + if has_positions { POSITIONS_BYTES } else { 0 };
        let list = self.numbers.map_or(0, |numbers| of_posting * numbers.len() as u64);
        let affordable = self.memory_bytes / (runs * LEAST_THREAD_BYTES + list);
        let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
        let threads = self.merging.threads.min(affordable).max(1);
        let memory = self.memory_bytes.saturating_sub(list * threads as u64);
        let run = NewRun {
            folder: self.to,
            number: self.number,
            form: self.merging.form,
            lists: None,
            threads: if threads > 1 { threads.div_ceil(MERGERS) } else { 0 },
        };
        let run = self.merge_parts(threads, memory, run)?;
        let merged = run.finish(first_docid, documents)?;
        let kinds = [FileKind::Lexicon, FileKind::Postings, FileKind::Positions];
        let has_positions = self.merging.form.has_positions();
        let kinds = if has_positions { &kinds[..] } else { &kinds[..2] };
        let gone = superfluous(self.inputs, kinds);
        storage::remove_files(&gone, self.merging.threads)?;
        Ok(merged)
    }

    fn merge_parts(
        &self,
        threads: usize,
        memory: u64,
        run: NewRun<'_>,
    ) -> Result<RunWriter, IndexError> {
        let memory = memory / threads as u64;
        let chunks = (memory / CHUNKS_SHARE).min(MOST_CHUNKS_BYTES);
        let memory = memory - chunks;
        let chunk_bytes = usize::try_from(chunks / CHUNKS).unwrap_or(usize::MAX);
        let chunk_bytes = chunk_bytes.clamp(LEAST_CHUNK_BYTES, MOST_CHUNK_BYTES);
        let credit = (chunks / (chunk_bytes as u64 * 5 / 4)).max(LEAST_CHUNKS);
        let mut parts = self.cut(threads as u64, chunks)?;
        self.count(threads, memory, &mut parts)?;
        let run = RunWriter::create(
            run,
            parts.iter().map(|part| part.terms.collections.start).collect(),
        )?;
        let next = AtomicUsize::new(0);
        let merge = |out: &Sender<SentChunk>| {
            let mut seen = vec![(0, 0); self.inputs.len()];
            let (back, credits) = channel();
            (0..credit).for_each(|_| _ = back.send(()));
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(number) else { return Ok(seen) };
                let give = |chunk| {
                    credits.recv().expect("this thread may give credit, too");
                    let guard: Option<MakerGuard> = Some(Arc::new(Credit(back.clone())));
                    let chunk = LaidChunk { guard, ..chunk };
                    out.send(Ok((number, chunk))).map_err(|_| IndexError::Stopped)
                };
                let of_part = self.merge_part(part, memory, chunk_bytes, give)?;
                for (sum, seen) in seen.iter_mut().zip(of_part) {
                    *sum = (sum.0 + seen.0, sum.1 + seen.1);
                }
            }
        };
        let (run, seen) = scope(|scope| {
            let (out, chunks) = channel();
            let start = |_| {
                let out = out.clone();
                Builder::new().spawn_scoped(scope, move || {
                    let _on_panic = OnPanic(&out);
                    merge(&out).map_err(|error| _ = out.send(Err(error)))
                })
            };
            let threads: io::Result<Vec<_>> = (0..threads.min(parts.len())).map(start).collect();
            drop(out);
            let no_thread = IndexError::storage("start a thread that merges", self.to);
            let threads = threads.map_err(no_thread)?;
            let run = write_all(run, chunks);
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|cause| resume_unwind(cause))
            };
            let seen: Vec<_> = threads.into_iter().map(join).collect();
            run.map(|run| (run, seen))
        })?;
        // Each part has compared the header of its lexicon with the entry of the run.
        for (number, MergeInput { generation, run, .. }) in self.inputs.iter().enumerate() {
            let seen = seen.iter().flatten().map(|seen: &Vec<_>| seen[number]);
            let (terms, postings) =
                seen.fold((0, 0), |sum: (u64, u64), seen| (sum.0 + seen.0, sum.1 + seen.1));
            let lexicon = run.path(generation, FileKind::Lexicon);
            expect_totals(&lexicon, run, terms, postings)?;
        }
        Ok(run)
    }

    /// Cuts the collections into parts of about equal cost, at least [`PARTS`] for each of the
    /// `threads` if there is enough to merge, and this many that each thread has a whole one
    /// before `chunks` bytes of its own wait.
    fn cut(&self, threads: u64, chunks: u64) -> Result<Vec<MergePart>, IndexError> {
        let mut starts = Vec::new();
        for MergeInput { generation, run, .. } in self.inputs {
            let path = run.path(generation, FileKind::Lexicon);
            starts.push(LexiconStream::collection_starts(&path)?);
        }
        let between = |starts: &Vec<[u64; 2]>, from: usize, to: usize| {
            let from = starts[from];
            let to = starts[to];
            [0, 1].map(|i| to[i].saturating_sub(from[i]))
        };
        let weight = |from: usize, to: usize| {
            let bytes = starts.iter().map(|starts| between(starts, from, to));
            let weights =
                bytes.map(|[terms, lists]| terms.saturating_mul(TERM_COST).saturating_add(lists));
            weights.fold(0, u64::saturating_add)
        };
        let all = weight(0, TRIE_COLLECTIONS);
        let parts =
            (threads * PARTS).max(all / (chunks / 2).max(1)).min(MOST_PARTS.max(threads * PARTS));
        let parts = parts.min(all / LEAST_PART_WEIGHT);
        let bytes = |collections: &Range<u16>| {
            let [from, to] = [collections.start, collections.end].map(usize::from);
            starts.iter().map(|starts| between(starts, from, to)).collect::<Vec<_>>()
        };
        // What documents that are left out leave of a collection's terms is known too late.
        let is_cut = threads > 1 && self.inputs.iter().all(|input| input.deletions.is_none());
        let mut cut_parts: Vec<MergePart> = Vec::new();
        for collections in cut(parts, weight) {
            let last = collections.end - 1;
            let pieces = if is_cut { pieces_of(all, parts, &collections, weight) } else { 0 };
            let weight = |terms: u64, lists: u64| terms.saturating_mul(TERM_COST) + lists;
            let of_inputs = bytes(&(last..collections.end)).into_iter().zip(self.inputs);
            let largest = of_inputs.max_by_key(|([terms, lists], _)| weight(*terms, *lists));
            let cuts = largest.map_or(Ok(Vec::new()), |(_, input)| {
                let path = input.run.path(&input.generation, FileKind::Lexicon);
                LexiconStream::cuts(&path, last, pieces, weight)
            });
            let cuts = cuts?;
            let pieces = cuts.len() as u64 + 1;
            cut_parts.extend(TermRange::cut(collections, cuts).into_iter().map(|terms| {
                let pieces = if terms.collections.contains(&last) { pieces } else { 1 };
                let bytes = bytes(&terms.collections).into_iter();
                let bytes = bytes.map(|of_run| of_run.map(|bytes| bytes / pieces)).collect();
                MergePart { terms, behind: None, bytes }
            }));
        }
        Ok(cut_parts)
    }

    /// Counts the terms of parts of a collection, for those behind them.
    fn count(
        &self,
        threads: usize,
        memory: u64,
        parts: &mut [MergePart],
    ) -> Result<(), IndexError> {
        let count = |(): &mut (), number: usize| {
            let part: &MergePart = &parts[number];
            let mut last = Vec::new();
            if part.terms.to.is_none() {
                return Ok((0, last));
            }
            let share = memory / threads as u64 / self.inputs.len().max(1) as u64;
            let window = |bytes: u64| bytes.min(share).min(MOST_RUN_BYTES);
            let mut terms = TermMerge::new(self.streams(part, window)?)?;
            let mut count = 0;
            while terms.take_term() {
                count += 1;
                last.clear();
                last.extend_from_slice(terms.taken().1);
                while terms.source_of_term().is_some() {
                    terms.advance()?;
                }
            }
            Ok::<_, IndexError>((count, last))
        };
        let counts = Crew::new("terms").in_order(threads, parts.len(), count)?;
        let mut before = (0, Vec::new());
        for (part, (count, last)) in parts.iter_mut().zip(counts) {
            if part.terms.from.is_empty() {
                before = (0, Vec::new());
            }
            part.behind = (before.0 > 0).then(|| before.clone());
            if count > 0 {
                before = (before.0 + count, last);
            }
        }
        Ok(())
    }

    /// Opens the terms of a part in all runs, with windows of so many bytes for bytes of terms.
    fn streams(
        &self,
        part: &MergePart,
        window: impl Fn(u64) -> u64,
    ) -> Result<Vec<LexiconStream>, IndexError> {
        let open = |(MergeInput { generation, run, .. }, &[bytes, _]): (&MergeInput, &[u64; 2])| {
            let path = run.path(generation, FileKind::Lexicon);
            LexiconStream::open_range(&path, window(bytes) as usize, &part.terms)
        };
        self.inputs.iter().zip(&part.bytes).map(open).collect()
    }

    /// Opens the terms and lists of a part in all runs, with windows of so much memory together.
    fn open_part(
        &self,
        part: &MergePart,
        memory_bytes: u64,
    ) -> Result<(Vec<LexiconStream>, Vec<ListSource>), IndexError> {
        let share = memory_bytes / self.inputs.len().max(1) as u64;
        let share = share.clamp(LEAST_RUN_BYTES, MOST_RUN_BYTES);
        let first = self.inputs.first().map_or(0, |input| input.base);
        // Reads behind the part are wasted.
        let streams = self.streams(part, |bytes| (share / LEXICON_SHARE).min(bytes))?;
        let mut lists = Vec::new();
        for ((input, &[_, list_bytes]), stream) in self.inputs.iter().zip(&part.bytes).zip(&streams)
        {
            let MergeInput { generation, run, deletions, base, .. } = input;
            let postings_window = share - share / LEXICON_SHARE - RUN_OVERHEAD_BYTES;
            let postings_window = postings_window.min(list_bytes.saturating_add(POSTINGS_SLACK));
            let base = Base::new(first, base - first, deletions.clone());
            let positions = self.numbers.is_none() && self.merging.form.has_positions();
            let window = postings_window as usize;
            lists.push(ListSource::open(generation, run, stream, base, window, positions)?);
        }
        Ok((streams, lists))
    }

    /// The positions of the only run, if documents are renumbered and it has any.
    fn old_positions(&self) -> Result<Option<RunPositions>, IndexError> {
        let [input] = self.inputs else { return Ok(None) };
        let is_read = self.numbers.is_some() && self.merging.form.has_positions();
        let open = || RunPositions::of_run(&input.generation, &input.run);
        is_read.then(open).transpose()
    }

    /// Merges some collections of all runs with `memory_bytes` for the windows, to chunks of about
    /// `chunk_bytes`. Returns the number of terms and postings that each run had there.
    fn merge_part(
        &self,
        part: &MergePart,
        memory_bytes: u64,
        chunk_bytes: usize,
        mut give: impl FnMut(LaidChunk) -> Result<(), IndexError>,
    ) -> Result<Vec<(u64, u64)>, IndexError> {
        let (streams, mut lists) = self.open_part(part, memory_bytes)?;
        let mut terms = TermMerge::new(streams)?;
        let old = self.old_positions()?;
        let block_len = self.merging.form.block_len();
        let renumbering = |numbers| Renumbering::new(numbers, old.as_ref(), block_len);
        let mut renumbering = self.numbers.map(renumbering);
        let mut encoders = Encoders::new(self.merging.form);
        // Read since the last chunk.
        let postings = Cell::new(0);
        let give = |chunk| {
            self.merging.stop.check()?;
            self.merging.stop.pass(postings.take());
            give(chunk)
        };
        let form = self.merging.form;
        let mut laying = ListChunks::new(form, self.to, chunk_bytes, give);
        if let Some((terms, last)) = &part.behind {
            let coder = TermCoder::behind(part.terms.collections.start, last, *terms);
            laying = laying.behind(form, coder);
        }
        let mut entries = Vec::new();
        while terms.take_term() {
            let (collection, suffix) = terms.taken();
            let (_, field) = split(self.lengths.len() - 1, suffix);
            let lengths = &self.lengths[field.map_or(0, usize::from)];
            entries.clear();
            while let Some((source, list)) = terms.source_of_term() {
                entries.push((source, list));
                terms.advance()?;
            }
            let df = entries.iter().map(|(_, list)| u64::from(list.df)).sum::<u64>();
            postings.set(postings.get() + df);
            let is_tail = |(source, list): &(usize, TermEntry)| lists[*source].is_tail(list);
            if df < block_len as u64 && renumbering.is_none() && entries.iter().all(is_tail) {
                let payload = encoders.lists.payload();
                let before = payload.len();
                let mut last = BEFORE_FIRST;
                for &(source, list) in &entries {
                    last = lists[source].append_tail(list, last, payload)?;
                }
                let bytes = (payload.len() - before) as u64;
                laying.end(terms.taken(), df as u32, bytes, payload)?;
                continue;
            }
            let mut drain = |encoders: &mut Encoders| {
                if let Some(positions) = &mut encoders.positions {
                    laying.positions.append(&mut positions.payload);
                }
                laying.go_on(collection, encoders.lists.payload())
            };
            for &(source, list) in &entries {
                if let Some(collected) = &mut renumbering {
                    collected.begin(list);
                    lists[source].append(list, collected, |_| Ok(()))?;
                } else {
                    let encoding = &mut ListEncoding { lengths, encoders: &mut encoders };
                    lists[source].append(list, encoding, &mut drain)?;
                    drain(&mut encoders)?;
                }
            }
            if let Some(collected) = &mut renumbering {
                let encoding = ListEncoding { lengths, encoders: &mut encoders };
                collected.pour(encoding, &mut drain)?;
            }
            // All of its documents may have been left out.
            if encoders.lists.df() > 0 {
                let (df, bytes) = encoders.lists.finish();
                if let Some(positions) = &mut encoders.positions {
                    let ended = positions.finish();
                    ended.map_err(|why| IndexError::refused(self.to, why))?;
                    laying.positions.append(&mut positions.payload);
                }
                laying.end(terms.taken(), df, bytes, encoders.lists.payload())?;
            }
        }
        laying.finish(encoders.lists.payload())?;
        Ok(terms.seen())
    }
}
