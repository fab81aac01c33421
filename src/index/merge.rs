//! Merges many runs to one, byte for byte as if it had been built in one go. Terms are merged in
//! order, and the lists of a term are decoded and encoded again, end to end: except for blocks that
//! come out as they are, most of those of the first run, and for lists that are short even
//! together, of which only each first gap changes. Reads of lists are verified by the checksums of
//! their pages.
//!
//! Everything is read by positioned reads through windows that share the memory, never through the
//! map. Of a list no more than a window is held, except for what the encoder keeps: the 10 to 17
//! bytes of each block, and of codecs with segments the postings of one. The documents are copied
//! first; their lengths, which the lists' bounds are made of, are read again from there. When the
//! windows would become too small to be of use, neighbouring runs are merged to scratch runs first,
//! in as few passes as possible.
//!
//! Documents that a generation leaves out go here: the others are renumbered.
//!
//! Where there is memory for it, several threads merge neighbouring trie collections each, or terms
//! of a large one, and lay out the result; one places each part in the run, and others gather, sum
//! and write, as when a run is flushed (`index/run/write.rs`).

mod documents;
mod lengths;
mod ordered;
mod parts;
mod renumbering;
mod sort;
mod source;
mod terms;
#[cfg(test)]
mod tests;
mod topics;
mod verify;

pub(super) use ordered::{Reordered, reorder};
pub(crate) use verify::verify;

use crate::crew::beside;
use crate::index::columns::{Column, ColumnsSource, carry};
use crate::index::deletions::{Deletions, LiveRun};
use crate::index::documents::lookup::NameColumn;
use crate::index::error::IndexError;
use crate::index::files::storage::{self, FileEntry, Stop};
use crate::index::format::FileKind;
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::LexiconStream;
use crate::index::list::Form;
use crate::index::texts::carry_texts;
use lengths::Lengths;
use parts::Joint;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terms::TermMerge;
use tracing::info;

/// Memory that writing takes: the run's buffers and tables and the encoder's payload.
const WRITER_BYTES: u64 = 3 << 20;
/// Smaller windows of a run in all would be filled too often.
const LEAST_RUN_BYTES: u64 = 64 << 10;
/// More than this gains nothing for the windows of a run.
const MOST_RUN_BYTES: u64 = 4 << 20;
/// The part of a run's memory that goes to its lexicon.
const LEXICON_SHARE: u64 = 8;
/// Memory of a run beside its windows: whole pages of lists, their checksums, and tables of the
/// lexicon.
const RUN_OVERHEAD_BYTES: u64 = 20 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Merging {
    /// Memory, in bytes, at least 4 MB; besides, 34 bytes for every block of the longest list, and
    /// for each thread 2 MB if its codec has segments.
    pub memory_bytes: u64,
    /// Threads that work, at most. The bytes of the run do not depend on them.
    pub threads: usize,
    /// How the merged lists are coded, whatever forms those of the runs have.
    pub form: Form,
    /// Those that all runs have. Memory: besides, the values of one.
    pub columns: Vec<Column>,
    /// What all runs keep of each record.
    pub record_parts: usize,
    pub stop: Stop,
}

impl Merging {
    /// Writes columns and texts of run `number` in the folder `to`, as far as there are any, of
    /// those of other runs. Returns the files and their kinds.
    fn carry(
        &self,
        sources: &[ColumnsSource<'_>],
        to: (&Path, u32),
        documents: u32,
    ) -> Result<(Vec<FileEntry>, Vec<FileKind>), IndexError> {
        let (mut files, mut kinds) = (Vec::new(), Vec::new());
        if !self.columns.is_empty() {
            files.push(carry(sources, &self.columns, to, documents, &self.stop)?);
            kinds.push(FileKind::Columns);
        }
        if self.record_parts > 0 {
            files.push(carry_texts(sources, to, (documents, self.record_parts), &self.stop)?);
            kinds.push(FileKind::Texts);
        }
        Ok((files, kinds))
    }

    /// Threads that may work if each takes this many bytes, at most a quarter of the memory in all.
    fn threads_of(&self, bytes: u64) -> usize {
        let affordable = usize::try_from(self.memory_bytes / 4 / bytes).unwrap_or(usize::MAX);
        self.threads.min(affordable).max(1)
    }
}

#[derive(Clone, Debug)]
struct MergeInput {
    generation: PathBuf,
    run: RunEntry,
    /// Remove it once it is merged.
    remove: bool,
    deletions: Option<Arc<Deletions>>,
    /// Documents of the last run that come of the runs before it.
    base: u32,
}

/// Merges neighbouring runs of the generation in the folder `from`, in docid order without gaps, to
/// run `number` of the generation in `to`, where numbers from there on are free. Their files go as
/// soon as they are not needed, except for those of runs that have `to_stay`.
///
/// # Errors
/// `Refused` if there are gaps between the runs; `Damaged`, `List`, `Newer`, `Storage`, `Stopped`.
pub(crate) fn merge_runs(
    from: &Path,
    runs: &[LiveRun<'_>],
    to_stay: impl Fn(&RunEntry) -> bool,
    to: &Path,
    number: u32,
    merging: &Merging,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    merge(inputs(from, runs, to_stay), to, number, merging)
}

/// Counts the different terms of some runs, each in the folder of its generation, without those
/// that only counted ones of the deleted documents have, as far as one `counts`.
///
/// Memory: about `memory_bytes`, but at least 8 KB for each run.
pub(crate) fn count_distinct_terms(
    runs: &[(&Path, LiveRun<'_>)],
    memory_bytes: u64,
    mut counts: impl FnMut((u16, &[u8])) -> Result<bool, IndexError>,
) -> Result<u64, IndexError> {
    let window = (memory_bytes / runs.len().max(1) as u64).min(MOST_RUN_BYTES) as usize;
    let open = |(generation, live): &(&Path, LiveRun<'_>)| {
        let path = live.run.path(generation, FileKind::Lexicon);
        LexiconStream::open(&path, window.max(4 << 10))
    };
    let streams = runs.iter().map(open).collect::<Result<_, _>>()?;
    let mut terms = TermMerge::new(streams)?;
    let mut distinct = 0;
    while terms.take_term() {
        let mut live = false;
        while let Some((source, list)) = terms.source_of_term() {
            live |= list.df > runs[source].1.deletions.counted_in(&list);
            terms.advance()?;
        }
        distinct += u64::from(live && counts(terms.taken())?);
    }
    Ok(distinct)
}

fn inputs(
    generation: &Path,
    runs: &[LiveRun<'_>],
    to_stay: impl Fn(&RunEntry) -> bool,
) -> Vec<MergeInput> {
    let mut base = 0u32;
    let input = |LiveRun { run, deletions }: &LiveRun<'_>| {
        let deletions = (!deletions.is_empty()).then(|| deletions.clone());
        let generation = generation.to_path_buf();
        let remove = !to_stay(run);
        let run = RunEntry::clone(run);
        let input = MergeInput { generation, run, remove, deletions, base };
        // Docids that do not fit are refused before any is used.
        base = base.saturating_add(input.run.live_documents());
        input
    };
    runs.iter().map(input).collect()
}

/// Refuses gaps in docid order, and documents that do not fit one run.
fn check_order(inputs: &[MergeInput]) -> Result<(), IndexError> {
    let mut next = inputs.first().map_or(0, |input| input.run.first_docid);
    for MergeInput { generation, run, .. } in inputs {
        let Some(end) = run.first_docid.checked_add(run.documents) else {
            return Err(IndexError::refused(generation, "runs have at most 2^32 - 1 documents"));
        };
        if run.first_docid != next {
            let reason = format!("run {} does not follow the run before it", run.name);
            return Err(IndexError::refused(generation, reason));
        }
        next = end;
    }
    Ok(())
}

/// Merges the documents, then the lists; a thread removes the documents that are merged and writes
/// the look-up of their names meanwhile.
fn merge(
    inputs: Vec<MergeInput>,
    to: &Path,
    number: u32,
    merging: &Merging,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    check_order(&inputs)?;
    info!(runs = inputs.len(), generation = %to.display(), "merging");
    let (mut documents, names) = documents::merge(&inputs, to, number, merging)?;
    let fields = (!documents.field_tokens.is_empty()).then_some(FileKind::Fields);
    let of_documents: Vec<_> = FileKind::OF_DOCUMENTS.into_iter().chain(fields).collect();
    let mut gone = superfluous(&inputs, &of_documents);
    let sources: Vec<_> = inputs.iter().map(MergeInput::columns).collect();
    let (files, kinds) = merging.carry(&sources, (to, number), documents.documents)?;
    drop(sources);
    documents.files.extend(files);
    gone.extend(superfluous(&inputs, &kinds));
    let count = documents.documents;
    let rest = || storage::remove_files(&gone, 1).and_then(|()| names.write(count));
    let bytes = NameColumn::memory(count);
    let (mut run, mut files) = std::thread::scope(|scope| {
        if merging.threads < 2 || bytes > merging.memory_bytes / 4 {
            documents.files.push(rest()?);
            return merge_lists(inputs, to, number, merging);
        }
        let lookup = beside(scope, rest);
        let lists = Merging { memory_bytes: merging.memory_bytes - bytes, ..merging.clone() };
        let merged = merge_lists(inputs, to, number, &lists);
        documents.files.push(lookup()?);
        merged
    })?;
    documents.complete(to, &mut run, &mut files)?;
    Ok((run, files))
}

impl MergeInput {
    /// Its columns, without those of deleted documents.
    fn columns(&self) -> ColumnsSource<'_> {
        let documents = self.run.documents;
        let deletions = self.deletions.as_deref();
        let is_left = move |docid: &u32| deletions.is_none_or(|gone| !gone.contains(*docid));
        let docids =
            move || Box::new((0..documents).filter(is_left)) as Box<dyn Iterator<Item = u32>>;
        ColumnsSource { generation: &self.generation, run: &self.run, docids: Box::new(docids) }
    }
}

fn superfluous(inputs: &[MergeInput], kinds: &[FileKind]) -> Vec<PathBuf> {
    let of_input = |MergeInput { generation, run, .. }: &MergeInput| {
        kinds.iter().map(|&kind| run.path(generation, kind)).collect::<Vec<_>>()
    };
    inputs.iter().filter(|input| input.remove).flat_map(of_input).collect()
}

fn merge_lists(
    mut inputs: Vec<MergeInput>,
    to: &Path,
    number: u32,
    merging: &Merging,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    // The allocator rounds the windows up.
    let memory_bytes = merging.memory_bytes - merging.memory_bytes / 16;
    let memory_bytes = memory_bytes.saturating_sub(WRITER_BYTES);
    let fields = inputs.first().map_or(0, |input| input.run.field_tokens.len());
    let (lengths, memory_bytes) =
        Lengths::of_run(to, number, fields, memory_bytes, merging.threads)?;
    let lengths = &lengths[..];
    let joint = |inputs: &[MergeInput], number| {
        let numbers = None;
        Joint { lengths, inputs, to, number, memory_bytes, merging, numbers }.merge()
    };
    // At least 2, so that each pass leaves fewer runs.
    let most_runs = usize::try_from(memory_bytes / LEAST_RUN_BYTES).unwrap_or(usize::MAX).max(2);
    let mut scratch = number;
    while inputs.len() > most_runs {
        let groups = inputs.len().div_ceil(most_runs);
        let mut merged = Vec::with_capacity(groups);
        for group in 0..groups {
            let group = &inputs[inputs.len() * group / groups..inputs.len() * (group + 1) / groups];
            if let [single] = group {
                merged.push(single.clone());
                continue;
            }
            scratch += 1;
            let (run, _) = joint(group, scratch)?;
            let generation = to.to_path_buf();
            let base = group[0].base;
            merged.push(MergeInput { generation, run, remove: true, deletions: None, base });
        }
        inputs = merged;
    }
    joint(&inputs, number)
}
