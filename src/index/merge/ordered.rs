//! Renumbers the documents of a run. The greatest tf of each is found if the order asks for it, the
//! documents are sorted and copied one by one, through the map, and every list is decoded, sorted
//! by the new numbers in memory and encoded again.
//!
//! There is one run without deleted documents: more are merged first.

#[cfg(test)]
mod tests;

use super::lengths::Lengths;
use super::parts::Joint;
use super::renumbering::{LIST_BYTES, POSITIONS_BYTES};
use super::sort::sort;
use super::source::{Base, BlockPostings, ListSource, Target};
use super::topics::{self, DocumentTerms};
use super::{MergeInput, Merging, WRITER_BYTES};
use crate::index::columns::ColumnsSource;
use crate::index::documents::fields::FieldLengths;
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location, RunDocuments};
use crate::index::error::IndexError;
use crate::index::files::storage::{self, FileEntry, Stop};
use crate::index::format::FileKind;
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::LexiconStream;
use crate::index::list::MAX_BLOCK;
use crate::index::order::{DocumentOrder, GlobalEntry, OrderEntry};
use crate::index::scores::write_scores;
use crate::score::wang::GlobalParameters;
use crate::text::fields::split;
use std::mem;
use std::path::Path;

/// Documents that are written between two looks at `stop`.
const AT_ONCE: usize = 1 << 10;
/// Bytes of the windows by which all lists are read once.
const WINDOW_BYTES: usize = 1 << 20;
/// Memory for each document: old and new docid, greatest tf, PageRank and global score, old and
/// new.
const DOCUMENT_BYTES: u64 = 28;

pub(in crate::index) struct Reordered {
    pub(in crate::index) run: RunEntry,
    pub(in crate::index) files: Vec<FileEntry>,
    pub(in crate::index) order: OrderEntry,
}

/// Writes a run of a generation as its run `number`, which is free, with its documents in an
/// `order`, and with the given PageRanks, by docid; the old one goes unless it `stays`.
///
/// Memory: that of [`Merging`], of which some is for the documents and some for the lists.
///
/// # Errors
/// `Lacks` if the memory does not suffice; `Damaged`, `List`, `Newer`, `Storage`, `Stopped`.
pub(in crate::index) fn reorder(
    generation: &Path,
    run: &RunEntry,
    stays: bool,
    number: u32,
    order: &DocumentOrder,
    ranks: Option<&[f32]>,
    merging: &Merging,
) -> Result<Reordered, IndexError> {
    let threads = threads_for(generation, run, order, merging)?;
    let table = RunDocuments::open_unverified(generation, run)?;
    let of_globals = match *order {
        DocumentOrder::Global { wang, bm25 } => {
            let documents = run.documents;
            let tokens = run.tokens;
            Some(GlobalParameters { wang, bm25, documents, tokens })
        }
        _ => None,
    };
    let mut ranks = ranks.map(<[f32]>::to_vec);
    let mut globals = None;
    if let Some(of) = &of_globals {
        let ranks = ranks.get_or_insert_with(|| vec![1.0; run.documents as usize]);
        globals = Some(self::globals(generation, run, &table, ranks, of, &merging.stop)?);
    }
    let mut docids: Vec<u32> = match order {
        DocumentOrder::Topic => by_topics(generation, run, threads, &merging.stop)?,
        _ => (0..run.documents).collect(),
    };
    sort(order, &mut docids, &table, globals.as_deref().unwrap_or_default());
    let mut written = write_documents((generation, run), &table, &docids, number, &merging.stop)?;
    drop(table);
    let of_all = || Box::new(docids.iter().copied()) as Box<dyn Iterator<Item = u32>>;
    let sources = [ColumnsSource { generation, run, docids: Box::new(of_all) }];
    let (carried, kinds) = merging.carry(&sources, (generation, number), run.documents)?;
    written.files.extend(carried);
    let (mut entry, mut files) = write_lists(generation, run, stays, &docids, number, merging)?;
    written.complete(generation, &mut entry, &mut files)?;
    if let Some(ranks) = ranks {
        let sorted = |scores: &[f32]| -> Vec<f32> {
            docids.iter().map(|&docid| scores[docid as usize]).collect()
        };
        let globals = globals.as_deref().map(sorted);
        let (ranks, globals) = (sorted(&ranks), globals.as_deref());
        let name = entry.file(FileKind::Scores);
        files.push(write_scores(generation, &name, &ranks, globals)?);
    }
    let fields = (!run.field_tokens.is_empty()).then_some(FileKind::Fields);
    let own = FileKind::OF_DOCUMENTS.into_iter().chain(fields).chain(kinds);
    for kind in own.filter(|_| !stays) {
        storage::remove_file(&run.path(generation, kind))?;
    }
    let global = of_globals.as_ref().map(GlobalEntry::new);
    let order = OrderEntry { name: order.name().to_string(), global };
    Ok(Reordered { run: entry, files, order })
}

/// How many threads find topics; `Lacks` if the memory does not suffice for the order.
fn threads_for(
    from: &Path,
    run: &RunEntry,
    order: &DocumentOrder,
    merging: &Merging,
) -> Result<usize, IndexError> {
    let count = u64::from(run.documents);
    let has_positions = merging.form.has_positions();
    let of_list = LIST_BYTES + if has_positions { POSITIONS_BYTES } else { 0 };
    let mut least = WRITER_BYTES + (1 << 20) + (DOCUMENT_BYTES + of_list) * count;
    let of_thread = topics::TERM_BYTES * run.terms;
    let threads = merging.threads_of(of_thread.max(1));
    if *order == DocumentOrder::Topic {
        let of_documents = topics::DOCUMENT_BYTES * count + 4 * run.postings;
        least = least.max(of_documents + threads as u64 * of_thread);
    }
    if merging.memory_bytes < least {
        let reason = format!(
            "to order {count} documents takes at least {} MiB of memory, and {} MiB are given",
            least.div_ceil(1 << 20),
            merging.memory_bytes >> 20
        );
        return Err(IndexError::lacks(from, reason));
    }
    Ok(threads)
}

/// Writes the documents of a run, in the order of `docids`, as those of run `number`.
fn write_documents(
    (generation, run): (&Path, &RunEntry),
    table: &RunDocuments,
    docids: &[u32],
    number: u32,
    stop: &Stop,
) -> Result<DocumentsEntry, IndexError> {
    let mut writer = DocumentsWriter::create(generation, number, run.first_input)?;
    let fields = FieldLengths::open(generation, run)?;
    if fields.is_some() {
        writer = writer.with_fields(generation, number, run.field_tokens.len())?;
    }
    for docids in docids.chunks(AT_ONCE) {
        stop.check()?;
        for &docid in docids {
            let at = docid as usize;
            let location = table.location(docid).unwrap_or_default();
            let input = location.input.saturating_add(run.first_input);
            let name = table.name(docid)?;
            let name = std::str::from_utf8(&name)
                .map_err(|_| IndexError::refused(generation, "a document's name is UTF-8"))?;
            let location = Location { input, ..location };
            if let Some(fields) = &fields {
                let lengths = fields.of_document(docid)?;
                lengths.into_iter().for_each(|length| writer.push_field(length));
            }
            writer.push(name, table.lengths()[at], location, table.hashes()[at])?;
        }
    }
    writer.finish()
}

/// Writes the lists of a run likewise, behind its documents.
fn write_lists(
    generation: &Path,
    run: &RunEntry,
    stays: bool,
    docids: &[u32],
    number: u32,
    merging: &Merging,
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    let mut numbers = vec![0; docids.len()];
    for (number, &docid) in (0..).zip(docids) {
        numbers[docid as usize] = number;
    }
    let input = MergeInput {
        generation: generation.to_path_buf(),
        run: run.clone(),
        remove: !stays,
        deletions: None,
        base: 0,
    };
    let of_documents = DOCUMENT_BYTES * u64::from(run.documents);
    let memory_bytes = merging.memory_bytes - WRITER_BYTES - of_documents;
    let fields = run.field_tokens.len();
    let (lengths, memory_bytes) =
        Lengths::of_run(generation, number, fields, memory_bytes, merging.threads)?;
    let joint = Joint {
        lengths: &lengths,
        inputs: &[input],
        to: generation,
        number,
        memory_bytes,
        merging,
        numbers: Some(&numbers),
    };
    joint.merge()
}

fn globals(
    generation: &Path,
    run: &RunEntry,
    documents: &RunDocuments,
    ranks: &[f32],
    parameters: &GlobalParameters,
    stop: &Stop,
) -> Result<Vec<f32>, IndexError> {
    let mut greatest_tfs = vec![0; run.documents as usize];
    each_postings(generation, run, stop, |_, docids, tfs| {
        for (&docid, &tf) in docids.iter().zip(tfs) {
            let greatest = &mut greatest_tfs[docid as usize];
            *greatest = tf.max(*greatest);
        }
    })?;
    let mut ranks = ranks.to_vec();
    parameters.wang.scale().put(&mut ranks);
    let greatest = ranks.iter().copied().fold(0.0, f32::max);
    let mean = parameters.mean();
    let of_documents = greatest_tfs.iter().zip(ranks).zip(documents.lengths());
    let global = |((&tf, rank), &length)| {
        parameters.wang.global(rank, greatest, tf, parameters.bm25.norm(length, mean))
    };
    Ok(of_documents.map(global).collect())
}

fn by_topics(
    generation: &Path,
    run: &RunEntry,
    threads: usize,
    stop: &Stop,
) -> Result<Vec<u32>, IndexError> {
    // Behind the first, each moves from where a document's terms begin to where they end.
    let mut starts = vec![0; run.documents as usize + 1];
    each_postings(generation, run, stop, |_, docids, _| {
        docids.iter().for_each(|&docid| starts[docid as usize + 1] += 1);
    })?;
    let mut sum = 0;
    for start in &mut starts {
        sum += mem::replace(start, sum);
    }
    let mut terms = vec![0; sum];
    each_postings(generation, run, stop, |term, docids, _| {
        for &docid in docids {
            let place = &mut starts[docid as usize + 1];
            terms[*place] = term;
            *place += 1;
        }
    })?;
    DocumentTerms { starts, terms }.order(run.terms as usize, threads, stop)
}

/// Gives `take` all postings of a run, except for those of fields, list by list: the list's number,
/// docids, frequencies. The list's reader has compared docids with the number of documents.
fn each_postings(
    generation: &Path,
    run: &RunEntry,
    stop: &Stop,
    take: impl FnMut(u32, &[u32], &[u32]),
) -> Result<(), IndexError> {
    let lexicon = run.path(generation, FileKind::Lexicon);
    let mut terms = LexiconStream::open(&lexicon, WINDOW_BYTES)?;
    let base = Base::new(0, 0, None);
    let mut lists = ListSource::open(generation, run, &terms, base, WINDOW_BYTES, false)?;
    let mut taken = EachPosting { take, list: 0 };
    let fields = run.field_tokens.len();
    while terms.advance()? {
        stop.check()?;
        // Fields do not change the order.
        if split(fields, terms.term().suffix).1.is_some() {
            continue;
        }
        lists.append(terms.term().list, &mut taken, |_| Ok(()))?;
        taken.list += 1;
    }
    Ok(())
}

struct EachPosting<F> {
    take: F,
    list: u32,
}

impl<F: FnMut(u32, &[u32], &[u32])> Target for EachPosting<F> {
    fn take(
        &mut self,
        _: u32,
        _: u32,
        BlockPostings { docids, tfs, .. }: BlockPostings<'_>,
        _: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError> {
        (self.take)(self.list, docids, tfs);
        Ok(())
    }
}
