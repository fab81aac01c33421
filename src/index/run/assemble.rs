//! Writes a run of what its owners have encoded: joins their lists in the order of the lexicon.
//!
//! The chunks of an owner come in the order of the lexicon and a trie collection has one owner, so the
//! next list is always that of the least collection at the head of the owners' queues.

use super::part::{EncodedChunk, RunPart};
use super::{RunWriter, WrittenRun};
use crate::index::error::IndexError;
use crate::index::list::Form;
use crate::index::storage::Durability;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// A chunk that is being written.
struct OpenChunk {
    chunk: EncodedChunk,
    next: usize,
    suffix: usize,
    at: usize,
}

#[derive(Default)]
struct Owner {
    chunks: VecDeque<OpenChunk>,
    ended: bool,
}

/// A run that is being written. Its files are not synced: a merge may make them superfluous.
pub struct RunAssembler {
    directory: PathBuf,
    form: Form,
    owners: Vec<Owner>,
    writer: Option<RunWriter>,
    run: u32,
    first_docid: u32,
    documents: u32,
    threaded: bool,
}

impl RunAssembler {
    /// Writes the run of `part`, which so many `owners` have parts of, into the folder of a generation,
    /// with lists of a `form`.
    pub fn new(directory: &Path, form: Form, owners: usize, part: RunPart) -> Self {
        let RunPart { run, first_docid, documents, .. } = part;
        let owners = (0..owners).map(|_| Owner::default()).collect();
        let directory = directory.to_path_buf();
        let (writer, threaded) = (None, false);
        Self { directory, form, owners, writer, run, first_docid, documents, threaded }
    }

    /// Has a thread of its own write the lists: they come faster than one thread writes them.
    #[must_use]
    pub fn threaded(self, threaded: bool) -> Self {
        Self { threaded, ..self }
    }

    /// Takes the next chunk of its owner.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn take(&mut self, chunk: EncodedChunk) {
        let owner = &mut self.owners[chunk.part.owner];
        owner.chunks.push_back(OpenChunk { chunk, next: 0, suffix: 0, at: 0 });
    }

    /// Writes what can be written; tells whether that was all of the run. `written` is called with the
    /// owner of each chunk that is written to its end.
    ///
    /// # Errors
    /// Those of [`RunWriter`].
    pub fn write(&mut self, mut written: impl FnMut(usize)) -> Result<bool, IndexError> {
        loop {
            let mut least: Option<(u16, usize)> = None;
            for (number, owner) in self.owners.iter_mut().enumerate() {
                while let Some(open) = owner.chunks.front()
                    && open.next == open.chunk.lists.len()
                {
                    owner.ended = open.chunk.ends_run;
                    owner.chunks.pop_front();
                    written(number);
                }
                match owner.chunks.front() {
                    Some(open) => {
                        let collection = open.chunk.lists[open.next].collection;
                        if least.is_none_or(|(c, _)| collection < c) {
                            least = Some((collection, number));
                        }
                    }
                    None if owner.ended => {}
                    None => return Ok(false),
                }
            }
            let Some((collection, number)) = least else { return Ok(true) };
            let place = (&*self.directory, self.run, self.threaded);
            let writer = writer(&mut self.writer, place, self.form)?;
            let open = self.owners[number].chunks.front_mut().expect("the least has a chunk");
            write_collection(writer, open, collection)?;
        }
    }

    /// Ends the run, all of which is written; one whose documents have no terms has empty files.
    ///
    /// # Errors
    /// Those of [`RunWriter::finish`].
    pub fn finish(mut self) -> Result<WrittenRun, IndexError> {
        let place = (&*self.directory, self.run, self.threaded);
        writer(&mut self.writer, place, self.form)?;
        let writer = self.writer.take().expect("a writer was made");
        writer.finish(self.first_docid, self.documents)
    }
}

/// The writer, made when it is first needed.
fn writer<'a>(
    writer: &'a mut Option<RunWriter>,
    (directory, run, threaded): (&Path, u32, bool),
    form: Form,
) -> Result<&'a mut RunWriter, IndexError> {
    match writer {
        Some(writer) => Ok(writer),
        none => {
            let made = RunWriter::create_with(directory, run, Durability::Scratch)?;
            let made = made.coded_as(form);
            Ok(none.insert(if threaded { made.with_thread()? } else { made }))
        }
    }
}

/// Writes the lists of one collection from the head of a chunk.
fn write_collection(
    writer: &mut RunWriter,
    open: &mut OpenChunk,
    collection: u16,
) -> Result<(), IndexError> {
    let chunk = &open.chunk;
    while let Some(list) = chunk.lists.get(open.next)
        && list.collection == collection
    {
        let bytes = &chunk.payload[open.at..open.at + list.here];
        open.at += list.here;
        if list.ends {
            let suffix = &chunk.suffixes[open.suffix..][..usize::from(list.suffix_bytes)];
            open.suffix += suffix.len();
            writer.end_list(list.collection, suffix, list.df, list.bytes, bytes)?;
        } else {
            writer.list_part(bytes)?;
        }
        open.next += 1;
    }
    Ok(())
}
