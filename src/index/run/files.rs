//! How do the two files of a run come into being from chunks that were laid out? Only the place of
//! each stretch is decided here; bytes are gathered, summed and written by threads.

#![forbid(unsafe_code)]

use super::WrittenRun;
use super::lay::Stretch;
use super::write::end_run;
use crate::index::error::IndexError;
use crate::index::files::storage::{Durability, FilledFile, GatheredFile, Source, StorageFile};
use crate::index::format::{Kind, LIST_ALIGNMENT, run_file, run_name};
use crate::index::lexicon::{BlockStart, CodedTerms, LexiconWriter};
use crate::index::list::Form;
use std::path::Path;
use std::sync::Arc;

/// A chunk that is being placed.
pub(crate) struct OpenChunk {
    stretches: Vec<Stretch>,
    terms: Vec<u8>,
    blocks: Vec<BlockStart>,
    payload: Option<Source>,
    /// How much of each is placed.
    placed: Placed,
}

#[derive(Default)]
struct Placed {
    stretches: usize,
    terms: usize,
    blocks: usize,
    payload: usize,
}

impl OpenChunk {
    /// Of the stretches, terms and blocks of a [`LaidChunk`](super::LaidChunk), whose lists are in
    /// the `payload`, or where they belong.
    pub(crate) fn new(
        (stretches, terms, blocks): (Vec<Stretch>, Vec<u8>, Vec<BlockStart>),
        payload: Option<Source>,
    ) -> Self {
        Self { stretches, terms, blocks, payload, placed: Placed::default() }
    }

    /// The collection of the next stretch, if there is one.
    pub(crate) fn collection(&self) -> Option<u16> {
        self.stretches.get(self.placed.stretches).map(|stretch| stretch.collection)
    }
}

/// The lexicon and the lists of a run that is being written.
pub(crate) struct RunFiles {
    number: u32,
    form: Form,
    lexicon: LexiconWriter,
    postings: GatheredFile,
}

impl RunFiles {
    /// Creates the files of run `number` in the folder of a generation, with lists of a `form`, but
    /// for that of the lists if those who have room in it put them there. Else so many `threads`
    /// write the lists, or who calls.
    pub(crate) fn create(
        generation: &Path,
        (number, form): (u32, Form),
        durability: Durability,
        lists: Option<Arc<FilledFile>>,
        threads: usize,
    ) -> Result<Self, IndexError> {
        let name = run_name(number);
        let lexicon = run_file(&name, Kind::Lexicon);
        let lexicon = LexiconWriter::create(generation, &lexicon, durability)?;
        let lexicon = lexicon.with_blocks_of(form.block_len());
        let postings = match lists {
            Some(file) => GatheredFile::by_others(file)?,
            None => {
                let name = run_file(&name, Kind::Postings);
                GatheredFile::new(StorageFile::create(generation, &name, durability)?, threads)?
            }
        };
        Ok(Self { number, form, lexicon, postings })
    }

    /// Places the stretches of one collection, the next of a chunk.
    ///
    /// # Errors
    /// `Refused` if an earlier collection was placed behind it; `Storage`.
    pub(crate) fn place(&mut self, open: &mut OpenChunk) -> Result<(), IndexError> {
        let collection = open.collection();
        while let Some(stretch) = open.stretches.get(open.placed.stretches)
            && collection == Some(stretch.collection)
        {
            let mut at = self.postings.body_bytes();
            if stretch.is_aligned {
                at = at.next_multiple_of(LIST_ALIGNMENT);
            }
            let end = at + stretch.payload_bytes as u64;
            let placed = &mut open.placed;
            let payload = placed.payload..placed.payload + stretch.payload_bytes;
            let terms = placed.terms..placed.terms + stretch.term_bytes;
            let blocks = placed.blocks..placed.blocks + stretch.blocks;
            let coded = CodedTerms {
                collection: stretch.collection,
                terms: stretch.terms,
                postings: stretch.postings,
                bytes: &open.terms[terms.clone()],
                blocks: &open.blocks[blocks.clone()],
            };
            self.lexicon.coded_terms(&coded, (at, end))?;
            match &open.payload {
                Some(source) => {
                    self.postings.fill(at)?;
                    self.postings.append(source, payload.clone())?;
                }
                None => self.postings.pass(end),
            }
            placed.stretches += 1;
            (placed.payload, placed.terms, placed.blocks) = (payload.end, terms.end, blocks.end);
        }
        self.postings.check()
    }

    pub(crate) fn place_all(&mut self, mut open: OpenChunk) -> Result<(), IndexError> {
        while open.collection().is_some() {
            self.place(&mut open)?;
        }
        Ok(())
    }

    /// Ends the run, which has so many `documents` from `first_docid` on.
    pub(crate) fn finish(self, first_docid: u32, documents: u32) -> Result<WrittenRun, IndexError> {
        let Self { number, form, lexicon, postings } = self;
        let (postings, sums) = postings.end()?;
        let pour = |file: &mut StorageFile| sums.map_or(Ok(()), |sums| sums.pour(file));
        end_run((number, first_docid, documents), form, (lexicon, postings), pour)
    }
}
