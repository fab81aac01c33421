//! A run: an index of its own over one range of docids, with its documents, a lexicon, and the
//! postings lists in the lexicon's order (`docs/index-format.md`, Postings). Docids count from the
//! run's first. The lexicon and the lists are written here, the documents beside.

mod chunks;
mod delete;
pub(crate) mod dense;
pub(crate) mod lay;
mod live;
pub(crate) mod part;
pub(crate) mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use chunks::ListChunks;
pub(crate) use delete::delete;
pub(crate) use lay::{ChunkLayout, LaidChunk, MakerGuard, RunPart, padded};
pub(crate) use part::{CHUNK_BYTES, PartEncoder};
pub(crate) use read::Run;
pub(crate) use write::{NewRun, RunWriter};

use crate::index::documents::DocumentsEntry;
use crate::index::error::IndexError;
use crate::index::files::pages::PageLayout;
use crate::index::files::storage::FileEntry;
use crate::index::format::{
    FileHeader, FileKind, HEADER_BYTES, PAGE_BYTES, POSTINGS_SLACK, check_length, list_pages,
    padding,
};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::LexiconHeader;
use crate::index::list::Form;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostingsHeader {
    pub lists: u64,
    pub postings: u64,
    pub list_bytes: u64,
    pub form: Form,
}

impl PostingsHeader {
    /// Parses the first bytes of a file, and checks the file's length against them.
    pub(crate) fn parse(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Self, IndexError> {
        Self::parse_as(FileKind::Postings, path, bytes, file_bytes)
    }

    /// The same of positions, whose bytes are those of the lists there.
    pub(crate) fn parse_as(
        kind: FileKind,
        path: &Path,
        bytes: &[u8],
        file_bytes: u64,
    ) -> Result<Self, IndexError> {
        let header = FileHeader::parse(path, kind, bytes)?;
        let [lists, postings, list_bytes, codec, block_len] = header.values;
        let form = Form::of_numbers([codec, block_len]).ok_or_else(|| {
            let found = format!("{codec} and {block_len}");
            IndexError::damaged(path, 40, "the numbers of a codec and of its blocks", found)
        })?;
        let header = Self { lists, postings, list_bytes, form };
        // No file is longer than that, and sums below it do not overflow.
        let expected = (list_bytes < 1 << 62).then(|| {
            let sums = 4 * list_pages(list_bytes);
            header.sums_start() + sums + padding(sums)
        });
        check_length(path, file_bytes, expected)?;
        Ok(header)
    }

    /// The pages of the lists, of which each has a checksum.
    pub(crate) fn layout(&self) -> PageLayout {
        let end = if self.list_bytes == 0 { 0 } else { HEADER_BYTES as u64 + self.list_bytes };
        PageLayout { page_bytes: PAGE_BYTES, end, sums: self.sums_start() }
    }

    /// Where the checksums of the pages begin in the file.
    pub(crate) fn sums_start(&self) -> u64 {
        HEADER_BYTES as u64 + self.list_bytes + padding(self.list_bytes) + POSTINGS_SLACK
    }
}

pub(crate) type WrittenRun = (RunEntry, Vec<FileEntry>);

/// Joins the lists of runs with their documents, which were written apart: those of run k are the
/// k-th `documents`. Returns the runs by docid.
pub(crate) fn join(
    generation: &Path,
    mut lists: Vec<WrittenRun>,
    documents: Vec<DocumentsEntry>,
) -> Result<Vec<WrittenRun>, IndexError> {
    lists.sort_by_key(|(run, _)| run.first_docid);
    if lists.len() != documents.len() {
        let reason = format!("{} runs have the documents of {}", lists.len(), documents.len());
        return Err(IndexError::refused(generation, reason));
    }
    for ((run, files), documents) in lists.iter_mut().zip(documents) {
        documents.complete(generation, run, files)?;
    }
    Ok(lists)
}

pub(crate) fn check_agreement(
    entry: &RunEntry,
    lexicon_path: &Path,
    lexicon: &LexiconHeader,
    postings_path: &Path,
    postings: &PostingsHeader,
) -> Result<(), IndexError> {
    // The place of a number, its value, and the value that it has to have.
    let numbers = [
        (lexicon_path, 16, lexicon.terms, entry.terms),
        (lexicon_path, 40, lexicon.postings, entry.postings),
        (postings_path, 16, postings.lists, entry.terms),
        (postings_path, 24, postings.postings, entry.postings),
        (postings_path, 32, postings.list_bytes, lexicon.list_bytes),
        (lexicon_path, 56, lexicon.block_len.into(), postings.form.block_len() as u64),
    ];
    match numbers.iter().find(|(_, _, found, expected)| found != expected) {
        Some((path, offset, found, expected)) => {
            Err(IndexError::damaged(path, *offset, expected, found))
        }
        None => Ok(()),
    }
}
