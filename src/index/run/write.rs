//! How is a run written in one go?

#![forbid(unsafe_code)]

use super::WrittenRun;
use crate::index::error::IndexError;
use crate::index::files::storage::{Durability, StorageFile};
use crate::index::format::{Header, Kind, POSTINGS_SLACK, list_start, run_file, run_name};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::LexiconWriter;
use crate::index::list::Form;
use std::path::Path;

/// Writes a run, list after list.
///
/// Memory: at most 2 MB, however many lists come and however long they are.
#[derive(Debug)]
pub(crate) struct RunWriter {
    number: u32,
    lexicon: LexiconWriter,
    postings: StorageFile,
    /// Where the current list begins among the lists, if one has begun and not ended.
    list_start: u64,
    in_list: bool,
    form: Form,
}

impl RunWriter {
    /// Creates run `number` in the folder of a generation.
    pub(crate) fn create(generation: &Path, number: u32) -> Result<Self, IndexError> {
        Self::create_with(generation, number, Durability::Lasting)
    }

    /// Creates a run; a [`Scratch`](Durability::Scratch) one need not outlive a crash, unless
    /// [`sync_run`](super::sync_run) follows.
    pub(crate) fn create_with(
        generation: &Path,
        number: u32,
        durability: Durability,
    ) -> Result<Self, IndexError> {
        let name = run_name(number);
        let lexicon =
            LexiconWriter::create(generation, &run_file(&name, Kind::Lexicon), durability)?;
        let postings = run_file(&name, Kind::Postings);
        let postings = StorageFile::create(generation, &postings, durability)?.with_sums();
        let (list_start, in_list, form) = (0, false, Form::BP128);
        Ok(Self { number, lexicon, postings, list_start, in_list, form })
    }

    /// Says that the lists are coded so; if nothing is said, with bp128 in blocks of 128.
    pub(crate) fn coded_as(mut self, form: Form) -> Self {
        self.lexicon = self.lexicon.with_blocks_of(form.block_len());
        self.form = form;
        self
    }

    /// Appends a part of a list that goes on behind it: only lists with a full block come in parts,
    /// and parts are of full blocks.
    #[inline]
    pub(crate) fn list_part(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        if !self.in_list && !bytes.is_empty() {
            self.begin_list(u32::MAX)?;
        }
        self.postings.write(bytes)
    }

    /// Begins a list of `df` postings, or of more than a block.
    fn begin_list(&mut self, df: u32) -> Result<(), IndexError> {
        let end = self.postings.body_bytes();
        // A file that long cannot have been written.
        self.list_start = list_start(end, df, self.form.block_len() as u32).unwrap_or(end);
        self.in_list = true;
        self.postings.fill(self.list_start)
    }

    /// Ends a list with the bytes that are left of it: says which term it belongs to, and how many
    /// postings and bytes it has in all.
    ///
    /// # Errors
    /// `Refused` if other than `bytes` bytes came, or parts of a list without a full block, and for
    /// what [`LexiconWriter::term`] refuses; `Storage`.
    #[inline]
    pub(crate) fn end_list(
        &mut self,
        collection: u16,
        suffix: &[u8],
        df: u32,
        bytes: u64,
        rest: &[u8],
    ) -> Result<(), IndexError> {
        if !self.in_list {
            self.begin_list(df)?;
        } else if (df as usize) < self.form.block_len() {
            let reason = "a list without a full block came in parts";
            return Err(IndexError::refused(self.postings.path(), reason));
        }
        self.postings.write(rest)?;
        let came = self.postings.body_bytes() - self.list_start;
        if came != bytes {
            let reason = format!("a list of {bytes} bytes came as {came} bytes");
            return Err(IndexError::refused(self.postings.path(), reason));
        }
        self.lexicon.term(collection, suffix, df, bytes)?;
        self.in_list = false;
        Ok(())
    }

    /// Writes what is left and syncs both files, if they have to last. The run covers `documents`
    /// documents from `first_docid` on. Returns its entry, which
    /// [`complete`](crate::index::documents::DocumentsEntry::complete) completes, and those of its
    /// files.
    ///
    /// # Errors
    /// `Refused` if a list has not ended; `Storage`.
    pub(crate) fn finish(
        mut self,
        first_docid: u32,
        documents: u32,
    ) -> Result<WrittenRun, IndexError> {
        if self.in_list {
            return Err(IndexError::refused(self.postings.path(), "the last list has not ended"));
        }
        let sums = self.postings.end_sums()?;
        let pour = |file: &mut StorageFile| sums.map_or(Ok(()), |sums| sums.pour(file));
        let run = (self.number, first_docid, documents);
        end_run(run, self.form, (self.lexicon, self.postings), pour)
    }
}

/// Ends the files of a run whose terms and lists are written; `pour` appends the checksums of the
/// pages of the lists. A run is its number, its first docid and its documents.
pub(super) fn end_run(
    (number, first_docid, documents): (u32, u32, u32),
    form: Form,
    (lexicon, mut postings): (LexiconWriter, StorageFile),
    pour: impl FnOnce(&mut StorageFile) -> Result<(), IndexError>,
) -> Result<WrittenRun, IndexError> {
    let list_bytes = postings.body_bytes();
    let (terms, all_postings) = (lexicon.terms(), lexicon.postings());
    postings.pad()?;
    postings.write(&[0; POSTINGS_SLACK as usize])?;
    pour(&mut postings)?;
    postings.pad()?;
    let [codec, block_len] = form.numbers();
    let values = [terms, all_postings, list_bytes, codec, block_len];
    let header = Header { kind: Kind::Postings, values, last: 0 };
    let files = vec![lexicon.finish()?, postings.finish(header)?];
    let name = run_name(number);
    let run = RunEntry {
        name,
        first_docid,
        documents,
        terms,
        postings: all_postings,
        ..RunEntry::default()
    };
    Ok((run, files))
}
