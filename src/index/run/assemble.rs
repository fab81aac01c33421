//! Writes a run of what its owners have encoded: joins their lists in the order of the lexicon.
//!
//! The chunks of an owner come in the order of the lexicon and a trie collection has one owner, so the
//! next lists are always those of the least collection at the head of the owners' queues. Chunks are laid
//! out ([`LaidChunk`]), so that only the place of each stretch is decided here; bytes are gathered, summed and written
//! by threads.

#![forbid(unsafe_code)]

use super::WrittenRun;
use super::lay::{LaidChunk, Stretch, Unwritten};
use super::part::{CHUNK_BYTES, RunPart};
use super::write::end_run;
use crate::index::error::IndexError;
use crate::index::format::{Kind, LIST_ALIGNMENT, run_file, run_name};
use crate::index::lexicon::{BlockStart, CodedTerms, LexiconWriter};
use crate::index::list::Form;
use crate::index::storage::{Durability, GatheredFile, Source, StorageFile};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who made a chunk may make more when this is dropped.
type Guards = (Option<Arc<()>>, Option<Arc<Unwritten>>);

/// The lists of a chunk, until all of them are gathered to be written.
struct Payload {
    bytes: Vec<u8>,
    _guards: Guards,
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A chunk that is being placed.
struct OpenChunk {
    stretches: Vec<Stretch>,
    terms: Vec<u8>,
    blocks: Vec<BlockStart>,
    payload: Source,
    ends_run: bool,
    /// How much of each is placed.
    placed: Placed,
    _guards: Guards,
}

#[derive(Default)]
struct Placed {
    stretches: usize,
    terms: usize,
    blocks: usize,
    payload: usize,
}

#[derive(Default)]
struct Owner {
    chunks: VecDeque<OpenChunk>,
    ended: bool,
    /// The collection of its last stretch: no earlier one follows.
    last: u16,
}

/// The files of a run.
struct Files {
    lexicon: LexiconWriter,
    postings: GatheredFile,
}

/// A run that is being written. Its files are not synced: a merge may make them superfluous.
pub struct RunAssembler {
    directory: PathBuf,
    form: Form,
    owners: Vec<Owner>,
    files: Option<Files>,
    /// The file of the lists, if it is there already.
    ahead: Option<StorageFile>,
    part: RunPart,
    threads: usize,
}

impl RunAssembler {
    /// Writes the run of `part`, which so many `owners` have parts of, into the folder of a generation,
    /// with lists of a `form`; so many `threads` write the lists, or who calls.
    pub fn new(directory: &Path, form: Form, owners: usize, part: RunPart, threads: usize) -> Self {
        let owners = (0..owners).map(|_| Owner::default()).collect();
        let (directory, files, ahead) = (directory.to_path_buf(), None, None);
        Self { directory, form, owners, files, ahead, part, threads }
    }

    /// Writes the lists to a file that is there already, if there is one, and empty.
    #[must_use]
    pub(crate) fn ahead(self, ahead: Option<StorageFile>) -> Self {
        Self { ahead, ..self }
    }

    /// Takes the next chunk of its owner.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn take(&mut self, chunk: LaidChunk) {
        let LaidChunk { stretches, terms, blocks, payload, ends_run, held, unwritten, .. } = chunk;
        // A part of the file may wait for the chunks of others with bytes of this one. It keeps a few large chunks of
        // an owner waiting, but not many small ones, which the owner needs to go on.
        let (guards, none) = ((held, unwritten), (None, None));
        let is_small = payload.len() < CHUNK_BYTES;
        let (_guards, of_payload) = if is_small { (guards, none) } else { (none, guards) };
        let payload: Source = Arc::new(Payload { bytes: payload, _guards: of_payload });
        let placed = Placed::default();
        let open = OpenChunk { stretches, terms, blocks, payload, ends_run, placed, _guards };
        self.owners[chunk.part.owner].chunks.push_back(open);
    }

    /// Places what can be placed; tells whether that was all of the run.
    ///
    /// # Errors
    /// `Storage`; `Refused` if collections come in another order.
    pub fn write(&mut self) -> Result<bool, IndexError> {
        loop {
            let mut least: Option<(u16, usize)> = None;
            // What may still come of owners that have nothing here.
            let mut awaited = u16::MAX;
            for (number, owner) in self.owners.iter_mut().enumerate() {
                while let Some(open) = owner.chunks.front()
                    && open.placed.stretches == open.stretches.len()
                {
                    owner.ended = open.ends_run;
                    owner.chunks.pop_front();
                }
                match owner.chunks.front() {
                    Some(open) => {
                        let collection = open.stretches[open.placed.stretches].collection;
                        if least.is_none_or(|(c, _)| collection < c) {
                            least = Some((collection, number));
                        }
                    }
                    None if owner.ended => {}
                    None => awaited = awaited.min(owner.last),
                }
            }
            match least {
                // A collection has one owner: an equal one is not awaited from another.
                Some((collection, number)) if collection < awaited => {
                    self.files()?;
                    let owner = &mut self.owners[number];
                    owner.last = collection;
                    let open = owner.chunks.front_mut().expect("the least has a chunk");
                    let files = self.files.as_mut().expect("they were made");
                    files.place(open, collection)?;
                }
                None if awaited == u16::MAX => return Ok(true),
                _ => return Ok(false),
            }
        }
    }

    /// Ends the run, all of which is placed; one whose documents have no terms has empty files.
    ///
    /// # Errors
    /// `Storage`.
    pub fn finish(mut self) -> Result<WrittenRun, IndexError> {
        self.files()?;
        let Files { lexicon, postings } = self.files.expect("they were made");
        let (postings, sums) = postings.end()?;
        let RunPart { run, first_docid, documents, .. } = self.part;
        let pour = |file: &mut StorageFile| file.write(bytemuck::cast_slice(&sums));
        end_run((run, first_docid, documents), self.form, (lexicon, postings), pour)
    }

    /// Makes the files when they are first needed.
    fn files(&mut self) -> Result<(), IndexError> {
        if self.files.is_none() {
            let (directory, scratch) = (&self.directory, Durability::Scratch);
            let name = run_name(self.part.run);
            let lexicon =
                LexiconWriter::create(directory, &run_file(&name, Kind::Lexicon), scratch)?;
            let lexicon = lexicon.with_blocks_of(self.form.block_len());
            let postings = match self.ahead.take() {
                Some(postings) => postings,
                None => StorageFile::create(directory, &run_file(&name, Kind::Postings), scratch)?,
            };
            let postings = GatheredFile::new(postings, self.threads)?;
            self.files = Some(Files { lexicon, postings });
        }
        Ok(())
    }
}

impl Files {
    /// Places the stretches of one collection from the head of a chunk.
    fn place(&mut self, open: &mut OpenChunk, collection: u16) -> Result<(), IndexError> {
        while let Some(stretch) = open.stretches.get(open.placed.stretches)
            && stretch.collection == collection
        {
            if stretch.is_aligned {
                let end = self.postings.body_bytes().next_multiple_of(LIST_ALIGNMENT);
                self.postings.fill(end)?;
            }
            let placed = &mut open.placed;
            let payload = placed.payload..placed.payload + stretch.payload_bytes;
            let terms = placed.terms..placed.terms + stretch.term_bytes;
            let blocks = placed.blocks..placed.blocks + stretch.blocks;
            let at = self.postings.body_bytes();
            let coded = CodedTerms {
                collection,
                terms: stretch.terms,
                postings: stretch.postings,
                bytes: &open.terms[terms.clone()],
                blocks: &open.blocks[blocks.clone()],
            };
            self.lexicon.coded_terms(&coded, (at, at + stretch.payload_bytes as u64))?;
            self.postings.append(&open.payload, payload.clone())?;
            placed.stretches += 1;
            (placed.payload, placed.terms, placed.blocks) = (payload.end, terms.end, blocks.end);
        }
        Ok(())
    }
}
