//! Makes a deletions file: every list of the run is searched for postings of deleted documents,
//! skipping blocks without any.

use super::Run;
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES};
use crate::index::generations::manifest::{Deleted, RunEntry};
use crate::index::lexicon::LexiconStream;
use crate::index::list::{BEFORE_FIRST, ListError, ListView, MAX_BLOCK, SegmentColumns};
use std::path::Path;

const WINDOW_BYTES: usize = 64 << 10;

/// Writes and syncs the deletions file of the run `run`, whose files are in the generation's
/// folder. `docids`, in any order and counted from the run's first, are all documents that this
/// generation leaves out. Notes them in the run's entry, and the file in `files`, in the place of
/// an earlier one.
///
/// # Errors
/// `Refused` if there is no such document; `Damaged`, `List`, `Storage`, `Newer`, `Older`.
pub(crate) fn write_deletions(
    generation: &Path,
    run: &mut RunEntry,
    files: &mut Vec<FileEntry>,
    docids: &[u32],
) -> Result<(), IndexError> {
    let name = run.file(FileKind::Deletions);
    let path = generation.join(&name);
    let mut bits = vec![0u64; (run.documents as usize).div_ceil(64)];
    for &docid in docids {
        if docid >= run.documents {
            let documents = run.documents;
            let reason = format!("document {docid} of a run of {documents} cannot be deleted");
            return Err(IndexError::refused(&path, reason));
        }
        bits[docid as usize / 64] |= 1 << (docid % 64);
    }
    // The old file may have a second name in another generation: it is removed, not written.
    if files.iter().any(|file| file.name == name) {
        crate::index::files::storage::remove_file(&path)?;
        files.retain(|file| file.name != name);
    }
    run.deleted = None;
    let deletions = count(generation, run, bits)?;
    if deletions.totals.documents == 0 {
        return Ok(());
    }
    run.deleted = Some(deletions.totals);
    let mut file = StorageFile::create(generation, &name)?;
    file.write(bytemuck::cast_slice(&deletions.bits))?;
    file.write(bytemuck::cast_slice(&deletions.lists))?;
    file.write(bytemuck::cast_slice(&deletions.counts))?;
    file.pad()?;
    let Deleted { documents, tokens, postings } = deletions.totals;
    let lists = deletions.lists.len() as u64;
    let values = [run.documents.into(), documents.into(), tokens, postings, lists];
    files.push(file.finish(FileHeader { kind: FileKind::Deletions, values, last: 0 })?);
    Ok(())
}

/// Counts what the documents of `bits` have.
fn count(generation: &Path, entry: &RunEntry, bits: Vec<u64>) -> Result<Deletions, IndexError> {
    let run = Run::open_unverified(generation, entry)?;
    let documents = RunDocuments::open_unverified(generation, entry)?;
    let mut deletions =
        Deletions::new(entry.documents, Deleted::default(), bits, Vec::new(), Vec::new());
    for (docid, &tokens) in (0..).zip(documents.lengths()) {
        if deletions.contains(docid) {
            deletions.totals.documents += 1;
            deletions.totals.tokens += u64::from(tokens);
        }
    }
    if deletions.totals.documents == 0 {
        return Ok(deletions);
    }
    let mut terms = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
    while terms.advance()? {
        let list = terms.term().list;
        let wrong = IndexError::list(run.postings_path(), HEADER_BYTES as u64 + list.offset);
        let found = of_list(&run.list(list)?, run.documents(), &deletions).map_err(wrong)?;
        if found > 0 {
            deletions.lists.push(list.offset);
            deletions.counts.push(found);
            deletions.totals.postings += u64::from(found);
        }
    }
    Ok(deletions)
}

fn of_list(list: &ListView<'_>, documents: u32, deletions: &Deletions) -> Result<u32, ListError> {
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    let block_len = list.block_len();
    let count = |docids: &[u32]| docids.iter().filter(|docid| deletions.contains(**docid)).count();
    let mut found = 0;
    let mut previous = BEFORE_FIRST;
    for block in 0..list.full_blocks() {
        let last = list.last_docid(block);
        // Docids of a block lie behind those of the one before, up to its last.
        let from = previous.wrapping_add(1);
        if deletions.before(last.saturating_add(1)) > deletions.before(from) {
            let docids = &mut docids[..block_len];
            list.decode_block(block, documents, &mut columns, docids)?;
            found += count(docids);
        }
        previous = last;
    }
    let tail = list.decode_tail(documents, &mut docids, &mut tfs)?;
    Ok((found + count(&docids[..tail])) as u32)
}
