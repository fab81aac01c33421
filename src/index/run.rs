//! How is one run written and read? A lexicon and a file of postings lists, which need nothing else
//! (`docs/FORMAT.md`, Lexicon and Postings).

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{
    HEADER_BYTES, Header, Kind, POSTINGS_SLACK, check_length, lexicon_name, padding, postings_name,
    run_name,
};
use crate::index::lexicon::{Lexicon, LexiconWriter};
use crate::index::list::{BLOCK, ListError, ListView};
use crate::index::manifest::RunEntry;
use crate::index::map::Map;
use crate::index::storage::{Durability, FileEntry, StorageFile};
use std::path::Path;

/// Writes a run, list after list in the order of the lexicon.
#[derive(Debug)]
pub struct RunWriter {
    name: String,
    lexicon: LexiconWriter,
    postings: StorageFile,
    terms: u64,
    count: u64,
}

/// A run that is written.
#[derive(Clone, Debug)]
pub struct FinishedRun {
    /// The run, as the manifest lists it.
    pub entry: RunEntry,
    /// Its files.
    pub files: Vec<FileEntry>,
}

impl RunWriter {
    /// Creates the files of run `number` in the folder of a generation.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(
        generation: &Path,
        number: u32,
        durability: Durability,
    ) -> Result<Self, IndexError> {
        let name = run_name(number);
        Ok(Self {
            lexicon: LexiconWriter::create(generation, &lexicon_name(&name), durability)?,
            postings: StorageFile::create(generation, &postings_name(&name), durability)?,
            name,
            terms: 0,
            count: 0,
        })
    }

    /// Appends bytes of the current list.
    ///
    /// # Errors
    /// `Storage`.
    #[inline]
    pub fn list_bytes(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        self.postings.write(bytes)
    }

    /// Ends the current list: its term, its postings, its bytes.
    ///
    /// # Errors
    /// `Storage`; `Refused` if the term is out of order.
    #[inline]
    pub fn end_list(
        &mut self,
        collection: u16,
        suffix: &[u8],
        df: u32,
        bytes: u64,
    ) -> Result<(), IndexError> {
        self.terms += 1;
        self.count += u64::from(df);
        self.lexicon.term(collection, suffix, df, bytes)
    }

    /// Ends the run, whose documents are `documents` from docid `first_docid` on.
    ///
    /// # Errors
    /// `Storage`.
    pub fn finish(mut self, first_docid: u32, documents: u32) -> Result<FinishedRun, IndexError> {
        let bytes = self.postings.body_bytes();
        self.postings.pad()?;
        self.postings.write(&[0; POSTINGS_SLACK as usize])?;
        let values = [self.terms, self.count, bytes, 0, 0];
        let postings = self.postings.finish(Header { kind: Kind::Postings, values })?;
        let lexicon = self.lexicon.finish()?;
        let entry = RunEntry {
            name: self.name,
            first_docid,
            documents,
            terms: self.terms,
            postings: self.count,
        };
        Ok(FinishedRun { entry, files: vec![lexicon, postings] })
    }
}

/// A run, mapped.
#[derive(Debug)]
pub struct Run {
    entry: RunEntry,
    lexicon: Lexicon,
    postings: Map,
    list_bytes: u64,
}

impl Run {
    /// Maps a run. The lexicon is verified whole, the postings' header and length; their checksum
    /// only if `verify` asks for it, since lists are checked as they are read.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open(
        generation: &Path,
        run: &RunEntry,
        lexicon_entry: &FileEntry,
        postings_entry: &FileEntry,
        verify: bool,
    ) -> Result<Self, IndexError> {
        let lexicon = Lexicon::open(generation, lexicon_entry)?;
        let postings = Map::open(&generation.join(postings_name(&run.name)))?;
        let path = postings.path();
        let header = Header::parse(path, Kind::Postings, postings.bytes())?;
        header.check_unused(path, 3)?;
        let [lists, count, list_bytes, ..] = header.values;
        let whole = list_bytes
            .checked_add(padding(list_bytes))
            .and_then(|n| n.checked_add(POSTINGS_SLACK + HEADER_BYTES as u64));
        check_length(path, postings.bytes().len() as u64, whole)?;
        check_length(path, postings.bytes().len() as u64, Some(postings_entry.bytes))?;
        if verify {
            postings.verify(postings_entry.bytes, postings_entry.crc32)?;
        }
        for (at, expected, found) in [
            (16, run.terms, lists),
            (24, run.postings, count),
            (16, lexicon.header().terms, lists),
            (24, lexicon.header().postings, count),
            (32, lexicon.header().list_bytes, list_bytes),
        ] {
            if expected != found {
                return Err(IndexError::damaged(path, at, expected, found));
            }
        }
        Ok(Self { entry: run.clone(), lexicon, postings, list_bytes })
    }

    /// The run, as the manifest lists it.
    pub fn entry(&self) -> &RunEntry {
        &self.entry
    }

    /// Docid of its first document.
    pub fn first_docid(&self) -> u32 {
        self.entry.first_docid
    }

    /// Its documents.
    pub fn documents(&self) -> u32 {
        self.entry.documents
    }

    /// The list of a term, given by its trie collection and the bytes that this does not imply.
    ///
    /// # Errors
    /// `Damaged`.
    #[inline]
    pub fn find(&self, collection: u16, suffix: &[u8]) -> Result<Option<ListView<'_>>, IndexError> {
        let Some(term) = self.lexicon.find(collection, suffix)? else { return Ok(None) };
        let end = term.offset.checked_add(term.bytes).filter(|&end| end <= self.list_bytes);
        if end.is_none() || term.df > self.entry.documents {
            let expected = format!(
                "a list within {} bytes of lists and {} documents",
                self.list_bytes, self.entry.documents
            );
            let found = format!("{} bytes at {}, df {}", term.bytes, term.offset, term.df);
            return Err(IndexError::damaged(self.postings.path(), 32, expected, found));
        }
        // A list may read past its end, into the next or the slack, but not past the file.
        let start = HEADER_BYTES as u64 + term.offset;
        let list = ListView::new(term.df, term.bytes, self.postings.from(start));
        list.map(Some).map_err(|e| self.list_error(start, e))
    }

    /// Finds out which of some terms' lists is damaged, after an algorithm has met `source` in one
    /// of them.
    #[cold]
    pub fn blame<'t>(
        &self,
        terms: impl Iterator<Item = (u16, &'t [u8])>,
        source: ListError,
    ) -> IndexError {
        let (mut docids, mut tfs) = ([0; BLOCK], [0; BLOCK]);
        for (collection, suffix) in terms {
            let term = match self.lexicon.find(collection, suffix) {
                Ok(Some(term)) => term,
                Ok(None) => continue,
                Err(error) => return error,
            };
            let start = HEADER_BYTES as u64 + term.offset;
            let mut read = || -> Result<(), ListError> {
                let list = ListView::new(term.df, term.bytes, self.postings.from(start))?;
                for block in 0..list.full_blocks() {
                    list.decode_block(block, self.entry.documents, &mut docids)?;
                    list.decode_tfs(block, &mut tfs)?;
                }
                list.decode_tail(self.entry.documents, &mut docids, &mut tfs).map(drop)
            };
            if let Err(source) = read() {
                return self.list_error(start, source);
            }
        }
        self.list_error(HEADER_BYTES as u64, source)
    }

    #[cold]
    fn list_error(&self, start: u64, source: ListError) -> IndexError {
        IndexError::List { path: self.postings.path().to_path_buf(), start, source }
    }
}
