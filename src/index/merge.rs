//! How do many runs become one, byte for byte as if it had been built in one go? Terms are merged in
//! order, and the lists of a term are decoded and encoded again, end to end.
//!
//! Everything is read by positioned reads through windows that share the memory; the map is never
//! used, and of a list never more than a window is held, but for the 13 bytes of each block (17
//! if the codec is not bp128) that the encoder keeps. The lengths of the documents, which the lists' bounds are made of, come from
//! the documents' table. When the windows would become too small to be of use, neighbouring runs are
//! merged to scratch runs first, in as few passes as possible.

#![forbid(unsafe_code)]

mod lengths;
mod published;
mod source;
mod terms;
#[cfg(test)]
mod tests;

pub use published::{Merged, merge_index};

use crate::index::error::IndexError;
use crate::index::format::{lexicon_name, postings_name, run_name};
use crate::index::lexicon::LexiconStream;
use crate::index::list::{Form, ListEncoder};
use crate::index::manifest::RunEntry;
use crate::index::run::RunWriter;
use crate::index::storage::{self, Durability, FileEntry};
use lengths::Lengths;
use source::ListSource;
use std::path::{Path, PathBuf};
use terms::TermMerge;

/// What writing takes of the memory: the run's buffers and tables and the encoder's payload.
const WRITER_BYTES: u64 = 3 << 20;
/// Windows of a run that are smaller than this in all would be filled too often.
const LEAST_RUN_BYTES: u64 = 64 << 10;
/// Windows of a run gain nothing from more than this.
const MOST_RUN_BYTES: u64 = 4 << 20;
/// The part of a run's memory that goes to its lexicon.
const LEXICON_SHARE: u64 = 8;
/// The part of the memory that the documents' lengths may take.
const LENGTHS_SHARE: u64 = 4;
/// What a run takes beside its windows.
const RUN_OVERHEAD_BYTES: u64 = 6 << 10;
/// The encoder's payload is written when it is this long, in bytes.
const PAYLOAD_BYTES: usize = 64 << 10;

/// A run that is to be merged.
#[derive(Clone, Debug)]
struct Input {
    generation: PathBuf,
    run: RunEntry,
    /// Whether it is removed once it is merged.
    remove: bool,
}

/// Merges the runs of a generation that is not published yet, and leaves one run in their place, run
/// 0. Returns its entry and those of its files. The runs are in docid order without gaps, and the
/// documents' table is there.
///
/// Memory: about `memory_bytes`, or 4 MB if that is less, and 34 bytes for every 128 postings of the
/// longest list.
///
/// # Errors
/// `Refused` if there are gaps between the runs; `Damaged`, `List`, `Newer`, `Storage`.
pub fn merge_in_place(
    generation: &Path,
    runs: &[RunEntry],
    memory_bytes: u64,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    let number = |run: &RunEntry| run.name.parse::<u32>().unwrap_or(0);
    let free = runs.iter().map(number).max().map_or(0, |last| last + 1);
    let inputs = inputs(generation, runs, true);
    let (mut run, mut files) = merge(generation, inputs, generation, free, memory_bytes, None)?;
    if free != 0 {
        run.name = run_name(0);
        let names = [lexicon_name(&run.name), postings_name(&run.name)];
        for (file, name) in files.iter_mut().zip(names) {
            storage::rename(&generation.join(&file.name), &generation.join(&name))?;
            file.name = name;
        }
    }
    Ok((run, files))
}

/// Merges runs of the generation in the folder `from`, which stay, to run `number` in the folder of
/// the generation `to`. Numbers from there on are free in `to`. The lists are coded in the given
/// form, or as they were. Else as [`merge_in_place`].
///
/// # Errors
/// As [`merge_in_place`].
pub fn merge_runs(
    from: &Path,
    runs: &[RunEntry],
    to: &Path,
    number: u32,
    memory_bytes: u64,
    form: Option<Form>,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    merge(from, inputs(from, runs, false), to, number, memory_bytes, form)
}

/// Counts the different terms of the runs of a generation.
///
/// Memory: about `memory_bytes`, but at least 8 KB for each run.
///
/// # Errors
/// `Damaged`, `Newer`, `Storage`.
pub fn count_distinct_terms(
    generation: &Path,
    runs: &[RunEntry],
    memory_bytes: u64,
) -> Result<u64, IndexError> {
    let window = (memory_bytes / runs.len().max(1) as u64).min(MOST_RUN_BYTES) as usize;
    let open = |run: &RunEntry| {
        LexiconStream::open(&generation.join(lexicon_name(&run.name)), window.max(4 << 10))
    };
    let streams = runs.iter().map(open).collect::<Result<_, _>>()?;
    let mut terms = TermMerge::new(streams)?;
    let mut distinct = 0;
    while terms.take_term() {
        distinct += 1;
        while terms.source_of_term().is_some() {
            terms.advance()?;
        }
    }
    Ok(distinct)
}

fn inputs(generation: &Path, runs: &[RunEntry], remove: bool) -> Vec<Input> {
    let input =
        |run: &RunEntry| Input { generation: generation.to_path_buf(), run: run.clone(), remove };
    runs.iter().map(input).collect()
}

/// Merges in passes. `from` has the lengths of the documents.
fn merge(
    from: &Path,
    mut inputs: Vec<Input>,
    to: &Path,
    number: u32,
    memory_bytes: u64,
    form: Option<Form>,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    // The allocator rounds the windows up.
    let windows = (memory_bytes - memory_bytes / 16).saturating_sub(WRITER_BYTES);
    let mut lengths = Lengths::open(from, windows / LENGTHS_SHARE)?;
    let windows = windows.saturating_sub(lengths.memory_bytes());
    // At least 2, so that each pass leaves fewer runs.
    let most_runs = usize::try_from(windows / LEAST_RUN_BYTES).unwrap_or(usize::MAX).max(2);
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
            let (run, _) =
                merge_once(group, &mut lengths, to, scratch, Durability::Scratch, windows, form)?;
            merged.push(Input { generation: to.to_path_buf(), run, remove: true });
        }
        inputs = merged;
    }
    merge_once(&inputs, &mut lengths, to, number, Durability::Lasting, windows, form)
}

/// Merges all of `inputs` to run `number` in the folder of a generation, with `memory_bytes` for all
/// windows.
fn merge_once(
    inputs: &[Input],
    lengths: &mut Lengths,
    to: &Path,
    number: u32,
    durability: Durability,
    memory_bytes: u64,
    form: Option<Form>,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    let share = memory_bytes / inputs.len().max(1) as u64;
    let share = share.clamp(LEAST_RUN_BYTES, MOST_RUN_BYTES);
    let first_docid = inputs.first().map_or(0, |input| input.run.first_docid);
    let (mut streams, mut lists, mut documents) = (Vec::new(), Vec::new(), 0u32);
    for Input { generation, run, .. } in inputs {
        let base = (first_docid, documents);
        let joined = documents.checked_add(run.documents);
        let end = joined.and_then(|documents| first_docid.checked_add(documents));
        let (Some(joined), Some(_)) = (joined, end) else {
            return Err(IndexError::refused(generation, "runs have at most 2^32 - 1 documents"));
        };
        if run.first_docid != first_docid + documents {
            let reason = format!("run {} does not follow the run before it", run.name);
            return Err(IndexError::refused(generation, reason));
        }
        let lexicon_window = (share / LEXICON_SHARE) as usize;
        let postings_window = (share - share / LEXICON_SHARE - RUN_OVERHEAD_BYTES) as usize;
        let path = generation.join(lexicon_name(&run.name));
        let stream = LexiconStream::open(&path, lexicon_window)?;
        lists.push(ListSource::open(generation, run, &stream, base, postings_window)?);
        streams.push(stream);
        documents = joined;
    }
    let form = form.or(lists.first().map(ListSource::form)).unwrap_or_default();
    let mut writer = RunWriter::create_with(to, number, durability)?.coded_as(form);
    let mut encoder = ListEncoder::of_form(form);
    write_merged(&mut TermMerge::new(streams)?, &mut lists, lengths, &mut encoder, &mut writer)?;
    let merged = writer.finish(first_docid, documents)?;
    for Input { generation, run, remove } in inputs {
        if *remove {
            storage::remove_file(&generation.join(lexicon_name(&run.name)))?;
            storage::remove_file(&generation.join(postings_name(&run.name)))?;
        }
    }
    Ok(merged)
}

fn write_merged(
    terms: &mut TermMerge,
    lists: &mut [ListSource],
    lengths: &mut Lengths,
    encoder: &mut ListEncoder,
    writer: &mut RunWriter,
) -> Result<(), IndexError> {
    while terms.take_term() {
        while let Some((source, list)) = terms.source_of_term() {
            lists[source].append(list, lengths, encoder, |payload| {
                if payload.len() >= PAYLOAD_BYTES {
                    writer.list_bytes(payload)?;
                    payload.clear();
                }
                Ok(())
            })?;
            terms.advance()?;
        }
        let (df, bytes) = encoder.finish();
        writer.list_bytes(encoder.payload())?;
        encoder.payload().clear();
        let (collection, suffix) = terms.taken();
        writer.end_list(collection, suffix, df, bytes)?;
    }
    Ok(())
}
