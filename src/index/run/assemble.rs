//! Writes a run of what its owners have encoded: joins their lists in the order of the lexicon.
//!
//! The chunks of an owner come in the order of the lexicon and a trie collection has one owner, so
//! the next lists are always those of the least collection at the head of the owners' queues.
//! Chunks are laid out ([`LaidChunk`]), so that only the place of each stretch is decided here.

#![forbid(unsafe_code)]

use super::WrittenRun;
use super::files::{OpenChunk, RunFiles};
use super::lay::{LaidChunk, RunPart, Unwritten};
use super::part::CHUNK_BYTES;
use crate::index::error::IndexError;
use crate::index::files::storage::{Durability, FilledFile, Source};
use crate::index::list::Form;
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

/// A chunk whose turn it is, or will be.
struct Head {
    open: OpenChunk,
    ends_run: bool,
    _guards: Guards,
}

#[derive(Default)]
struct Owner {
    chunks: VecDeque<Head>,
    ended: bool,
    /// The collection of its last stretch: no earlier one follows.
    last: u16,
}

/// A run that is being written. Its files are not synced: a merge may make them superfluous.
pub(crate) struct RunAssembler {
    directory: PathBuf,
    form: Form,
    owners: Vec<Owner>,
    files: Option<RunFiles>,
    /// The file of the lists, if it is there already.
    lists: Option<Arc<FilledFile>>,
    part: RunPart,
    threads: usize,
}

impl RunAssembler {
    /// Writes the run of `part`, which so many `owners` have parts of, into the folder of a
    /// generation, with lists of a `form`; so many `threads` write the lists, or who calls.
    pub(crate) fn new(
        directory: &Path,
        form: Form,
        owners: usize,
        part: RunPart,
        threads: usize,
    ) -> Self {
        let owners = (0..owners).map(|_| Owner::default()).collect();
        let (directory, files, lists) = (directory.to_path_buf(), None, None);
        Self { directory, form, owners, files, lists, part, threads }
    }

    /// Takes the next chunk of its owner.
    ///
    /// # Panics
    /// If there is no such owner.
    pub(crate) fn take(&mut self, chunk: LaidChunk) {
        let LaidChunk {
            stretches, terms, blocks, payload, placed, ends_run, held, unwritten, ..
        } = chunk;
        // A part of the file may wait for the chunks of others with bytes of this one. It keeps a
        // few large chunks of an owner waiting, but not many small ones, which the owner needs to
        // go on.
        let (guards, none) = ((held, unwritten), (None, None));
        let is_small = payload.len() < CHUNK_BYTES;
        let (_guards, of_payload) = if is_small { (guards, none) } else { (none, guards) };
        let payload: Option<Source> = match placed {
            // Whoever has placed lists has taken room for them in the order of the run.
            Some(file) => {
                if self.files.is_none() {
                    self.lists = Some(file);
                }
                None
            }
            None => Some(Arc::new(Payload { bytes: payload, _guards: of_payload })),
        };
        let open = OpenChunk::new((stretches, terms, blocks), payload);
        self.owners[chunk.part.owner].chunks.push_back(Head { open, ends_run, _guards });
    }

    /// Places what can be placed; tells whether that was all of the run.
    ///
    /// # Errors
    /// `Storage`; `Refused` if collections come in another order.
    pub(crate) fn write(&mut self) -> Result<bool, IndexError> {
        loop {
            let mut least: Option<(u16, usize)> = None;
            // What may still come of owners that have nothing here.
            let mut awaited = u16::MAX;
            for (number, owner) in self.owners.iter_mut().enumerate() {
                while let Some(head) = owner.chunks.front()
                    && head.open.collection().is_none()
                {
                    owner.ended = head.ends_run;
                    owner.chunks.pop_front();
                }
                match owner.chunks.front().and_then(|head| head.open.collection()) {
                    Some(collection) => {
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
                    let head = owner.chunks.front_mut().expect("the least has a chunk");
                    self.files.as_mut().expect("they were made").place(&mut head.open)?;
                }
                None if awaited == u16::MAX => return Ok(true),
                _ => return Ok(false),
            }
        }
    }

    /// Ends the run, all of which is placed; one whose documents have no terms has empty files.
    pub(crate) fn finish(mut self) -> Result<WrittenRun, IndexError> {
        self.files()?;
        let RunPart { first_docid, documents, .. } = self.part;
        self.files.expect("they were made").finish(first_docid, documents)
    }

    /// Makes the files when they are first needed.
    fn files(&mut self) -> Result<(), IndexError> {
        if self.files.is_none() {
            let (run, lists) = ((self.part.run, self.form), self.lists.take());
            let scratch = Durability::Scratch;
            let files = RunFiles::create(&self.directory, run, scratch, lists, self.threads)?;
            self.files = Some(files);
        }
        Ok(())
    }
}
