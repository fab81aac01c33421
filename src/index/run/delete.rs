//! Deletes documents of a run. Their postings are counted once there are many such documents: then
//! every list of the run is searched for them, skipping blocks without any.

use super::Run;
use crate::crew::{Crew, cores};
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::documents::fields::FieldLengths;
use crate::index::error::IndexError;
use crate::index::format::FileKind;
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::{LexiconStream, parts_of};
use std::path::Path;
use std::sync::Arc;

const WINDOW_BYTES: usize = 64 << 10;

/// Deleted documents that are not counted are at most a part in this many of a run.
const UNCOUNTED: u64 = 100;

/// Adds documents of the run `run`, whose files are in the generation's folder, to those that the
/// generation leaves out, and notes them in the run's entry. `docids` come in any order, and count
/// from the run's first. No list is looked at unless more than 1 % of the documents would be
/// deleted and not counted: then all that are deleted are counted. Returns those that were not
/// deleted before, rising.
///
/// # Errors
/// `Refused` if there is no such document; `Damaged`, `List`, `Storage`, `Newer`, `Older`.
pub(crate) fn delete(
    generation: &Path,
    run: &mut RunEntry,
    deletions: &mut Arc<Deletions>,
    docids: &[u32],
) -> Result<Vec<u32>, IndexError> {
    let mut docids = docids.to_vec();
    docids.sort_unstable();
    docids.dedup();
    if let Some(docid) = docids.last().filter(|docid| **docid >= run.documents) {
        let path = run.path(generation, FileKind::Postings);
        let reason = format!("document {docid} of a run of {} cannot be deleted", run.documents);
        return Err(IndexError::refused(&path, reason));
    }
    docids.retain(|&docid| !deletions.contains(docid));
    if docids.is_empty() {
        return Ok(docids);
    }
    let documents = RunDocuments::open_mapped(generation, run)?;
    let mut deleted = run.deleted.unwrap_or_default();
    deleted.documents += docids.len() as u32;
    for &docid in &docids {
        deleted.tokens += u64::from(documents.length(docid)?);
    }
    if let Some(fields) = FieldLengths::open(generation, run)? {
        for &docid in &docids {
            for (sum, length) in run.field_tokens.iter_mut().zip(fields.of_document(docid)?) {
                *sum = sum.saturating_sub(length.into());
            }
        }
    }
    let Deletions { counted, since, .. } = &**deletions;
    let since = since.with(run.documents, docids.iter().copied());
    if UNCOUNTED * u64::from(since.len()) > u64::from(run.documents) {
        let counted = counted.with(run.documents, since.docids());
        let mut all = Deletions { counted, ..Deletions::default() };
        count(generation, run, &mut all)?;
        deleted.counted = all.counted.len();
        deleted.postings = all.counts.iter().map(|&count| u64::from(count)).sum();
        *deletions = Arc::new(all);
    } else {
        Arc::make_mut(deletions).since = since;
    }
    run.deleted = Some(deleted);
    Ok(docids)
}

/// Bytes of lists for which a thread is worth starting, and parts of a lexicon for each.
const LEAST_BYTES: u64 = 1 << 18;
const PARTS: usize = 8;

fn count(generation: &Path, entry: &RunEntry, all: &mut Deletions) -> Result<(), IndexError> {
    let run = Run::open_unverified(generation, entry)?;
    run.lexicon().check()?;
    let lexicon = run.lexicon().path();
    let threads = cores();
    let parts = parts_of(lexicon, LEAST_BYTES, threads * PARTS, |_, lists| lists)?;
    let of_part = |(): &mut (), part: usize| {
        let mut found = Vec::new();
        let mut terms = LexiconStream::open_range(lexicon, WINDOW_BYTES, &parts[part])?;
        while terms.advance()? {
            let list = terms.term().list;
            let count = run.count(&list, &all.counted)?;
            found.extend((count > 0).then_some((list.offset, count)));
        }
        Ok::<_, IndexError>(found)
    };
    let found = Crew::new("count").in_order(threads, parts.len(), of_part)?;
    (all.lists, all.counts) = found.into_iter().flatten().unzip();
    Ok(())
}
