//! Writes a lexicon in one go.

use super::code::CodedTerms;
use super::{MOST_SPARSE, POSITIONS, SparseEntry};
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, Spill, StorageFile};
use crate::index::format::{DIRECTORY_ENTRIES, FileHeader, FileKind};
use crate::index::list::Form;
use std::path::Path;

/// Bytes of the block index that stay in memory; that of more than a million terms goes through a
/// file beside the lexicon.
const INDEX_IN_MEMORY: usize = 1 << 20;

/// Writes the lexicon of a run in at most 1.6 MB of memory.
#[derive(Debug)]
pub(crate) struct LexiconWriter {
    file: StorageFile,
    index: Spill,
    /// First block of each collection up to that of the last term.
    directory: Vec<u32>,
    /// That of the last term; 0 if there is none.
    collection: u16,
    blocks: u32,
    terms: u64,
    postings: u64,
    list_bytes: u64,
    form: Form,
}

impl LexiconWriter {
    /// Creates the file `name` in the folder of a generation, for lists of a form.
    pub(crate) fn create(generation: &Path, name: &str, form: Form) -> Result<Self, IndexError> {
        let file = StorageFile::create(generation, name)?;
        let index = Spill::beside(file.path(), ".blocks", INDEX_IN_MEMORY);
        Ok(Self {
            file,
            index,
            directory: Vec::with_capacity(DIRECTORY_ENTRIES),
            collection: 0,
            blocks: 0,
            terms: 0,
            postings: 0,
            list_bytes: 0,
            form,
        })
    }

    /// Adds terms that were laid out and begin a block, or follow the last ones in theirs.
    /// Their lists begin at byte `at` of the lists, and the last of them ends, or goes on, at byte
    /// `end`; their positions begin at byte `positions` of these. `Refused` if the collection is an
    /// earlier one.
    pub(crate) fn coded_terms(
        &mut self,
        coded: &CodedTerms<'_>,
        at: u64,
        end: u64,
        positions: u64,
    ) -> Result<(), IndexError> {
        if coded.collection < self.collection {
            return Err(IndexError::refused(self.file.path(), "terms come in rising order"));
        }
        let begin = self.file.body_bytes();
        for block in coded.blocks {
            let terms = begin + block.terms as u64;
            let lists = at + block.lists as u64;
            let positions = positions + block.positions as u64;
            self.begin_block(coded.collection, [terms, lists, positions])?;
        }
        self.file.write(coded.bytes)?;
        self.terms += coded.terms;
        self.postings += coded.postings;
        self.list_bytes = end;
        Ok(())
    }

    /// Begins a block of terms; the entry says where it, its lists and their positions begin.
    fn begin_block(&mut self, collection: u16, entry: [u64; 3]) -> Result<(), IndexError> {
        self.directory.resize(
            self.directory.len().max(usize::from(collection) + 1),
            // Collections without terms begin where the next one does.
            self.blocks,
        );
        let Some(blocks) = self.blocks.checked_add(1) else {
            return Err(IndexError::refused(
                self.file.path(),
                "a run has below 2^32 blocks of terms",
            ));
        };
        let words = if self.form.has_positions() { 3 } else { 2 };
        for number in &entry[..words] {
            self.index.push(&number.to_le_bytes())?;
        }
        self.blocks = blocks;
        self.collection = collection;
        Ok(())
    }

    pub(crate) fn terms(&self) -> u64 {
        self.terms
    }

    pub(crate) fn postings(&self) -> u64 {
        self.postings
    }

    /// Writes the block index, the directory and the header, and syncs the file if it has to last.
    pub(crate) fn finish(mut self) -> Result<FileEntry, IndexError> {
        let block_bytes = self.file.body_bytes();
        self.file.pad()?;
        self.index.pour(&mut self.file)?;
        self.directory.resize(DIRECTORY_ENTRIES, self.blocks);
        let own = (0..).zip(self.directory.windows(2)).filter(|(_, pair)| pair[0] < pair[1]);
        let own = own.map(|(collection, pair)| [collection, pair[0]]);
        let end = [DIRECTORY_ENTRIES as u32 - 1, self.blocks];
        let sparse: Vec<SparseEntry> = own.take(MOST_SPARSE + 1).chain([end]).collect();
        match sparse.len() <= MOST_SPARSE + 1 {
            true => self.file.write(bytemuck::cast_slice(&sparse))?,
            false => self.file.write(bytemuck::cast_slice(&self.directory))?,
        }
        self.file.pad()?;
        let blocks = u64::from(self.blocks);
        self.file.finish(FileHeader {
            kind: FileKind::Lexicon,
            values: [self.terms, blocks, block_bytes, self.postings, self.list_bytes],
            // At most 512.
            last: self.form.block_len() as u32
                | if self.form.has_positions() { POSITIONS } else { 0 },
        })
    }
}
