//! How is a run written in one go?

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{Header, Kind, POSTINGS_SLACK, run_file, run_name};
use crate::index::lexicon::LexiconWriter;
use crate::index::list::Form;
use crate::index::manifest::RunEntry;
use crate::index::storage::{Durability, FileEntry, StorageFile};
use std::path::Path;

/// Writes a run, list after list.
///
/// Memory: at most 2 MB, however many lists come and however long they are.
#[derive(Debug)]
pub struct RunWriter {
    number: u32,
    lexicon: LexiconWriter,
    postings: StorageFile,
    /// Where the current list begins among the lists.
    list_start: u64,
    form: Form,
}

impl RunWriter {
    /// Creates run `number` in the folder of a generation.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(generation: &Path, number: u32) -> Result<Self, IndexError> {
        Self::create_with(generation, number, Durability::Lasting)
    }

    /// Creates a run; a [`Scratch`](Durability::Scratch) one need not outlive a crash, unless
    /// [`sync_run`](super::sync_run) follows.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create_with(
        generation: &Path,
        number: u32,
        durability: Durability,
    ) -> Result<Self, IndexError> {
        let name = run_name(number);
        let lexicon =
            LexiconWriter::create(generation, &run_file(&name, Kind::Lexicon), durability)?;
        let postings =
            StorageFile::create(generation, &run_file(&name, Kind::Postings), durability)?;
        Ok(Self { number, lexicon, postings, list_start: 0, form: Form::BP128 })
    }

    /// Says that the lists are coded so; if nothing is said, with bp128 in blocks of 128.
    pub fn coded_as(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Appends bytes to the current list, which may come in any number of parts.
    ///
    /// # Errors
    /// `Storage`.
    #[inline]
    pub fn list_bytes(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        self.postings.write(bytes)
    }

    /// Ends the current list: says which term it belongs to, and how many postings and bytes it has.
    ///
    /// # Errors
    /// `Refused` if other than `bytes` bytes came, and for what
    /// [`LexiconWriter::term`] refuses; `Storage`.
    #[inline]
    pub fn end_list(
        &mut self,
        collection: u16,
        suffix: &[u8],
        df: u32,
        bytes: u64,
    ) -> Result<(), IndexError> {
        let end = self.postings.body_bytes();
        if end - self.list_start != bytes {
            let came = end - self.list_start;
            let reason = format!("a list of {bytes} bytes came as {came} bytes");
            return Err(IndexError::refused(self.postings.path(), reason));
        }
        self.lexicon.term(collection, suffix, df, bytes)?;
        self.list_start = end;
        Ok(())
    }

    /// Writes what is left and syncs both files, if they have to last. The run covers `documents`
    /// documents from `first_docid` on. Returns its entry, which
    /// [`complete`](crate::index::documents::DocumentsEntry::complete) completes, and those of its
    /// files.
    ///
    /// # Errors
    /// `Refused` if a list has not ended; `Storage`.
    pub fn finish(
        mut self,
        first_docid: u32,
        documents: u32,
    ) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
        let list_bytes = self.postings.body_bytes();
        if list_bytes != self.list_start {
            return Err(IndexError::refused(self.postings.path(), "the last list has not ended"));
        }
        let (terms, postings) = (self.lexicon.terms(), self.lexicon.postings());
        self.postings.pad()?;
        self.postings.write(&[0; POSTINGS_SLACK as usize])?;
        let [codec, block_len] = self.form.numbers();
        let header = Header {
            kind: Kind::Postings,
            values: [terms, postings, list_bytes, codec, block_len],
        };
        let files = vec![self.lexicon.finish()?, self.postings.finish(header)?];
        let name = run_name(self.number);
        Ok((
            RunEntry { name, first_docid, documents, terms, postings, ..RunEntry::default() },
            files,
        ))
    }
}
