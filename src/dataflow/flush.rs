//! Writes runs: the one writer joins the owners' lists in the order of the lexicon.
//!
//! - In: chunks of all owners, exchanged to the last worker, for worker 0 has the documents' table to
//!   end while the last run is written; those of an owner come in the order of the
//!   lexicon, and a trie collection has one owner, so the next list is that of the least collection
//!   at the head of the owners' queues. Out: a stream without records.
//! - Memory: the chunks that the owners may have under way, and the writers' buffers.
//! - Work per activation: all lists that can be written.

use super::build::{Build, Progress};
use super::control::{Cause, Guard};
use super::encode::Chunk;
use super::local::Local;
use crate::index::manifest::RunEntry;
use crate::index::run::RunWriter;
use crate::index::storage::{Durability, FileEntry};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;

/// A run that is written, and its files. They are not synced: a merge may make them superfluous.
pub type RunDone = (RunEntry, Vec<FileEntry>);

/// See the [module](self).
pub trait Flush<'scope> {
    /// Writes runs; they are noted in [`Build::done`].
    fn flush(self, build: &Arc<Build>) -> StreamVec<'scope, u64, ()>;
}

impl<'scope> Flush<'scope> for StreamVec<'scope, u64, Local<Chunk>> {
    fn flush(self, build: &Arc<Build>) -> StreamVec<'scope, u64, ()> {
        let build = build.clone();
        let worker = self.scope().index();
        let writing = build.writing as u64;
        let to_writer = Exchange::new(move |_: &Local<Chunk>| writing);
        self.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_writer, "Flush", move |_, _| {
            let guard = Guard::new(&build.control, "Flush", worker);
            // An owner that is ahead may have begun the next run.
            let mut runs: BTreeMap<u32, Joining> = BTreeMap::new();
            move |input, _output| {
                input.for_each(|_, data| {
                    for Local(chunk) in data.drain(..) {
                        let owners = build.owners.len();
                        let run =
                            runs.entry(chunk.run).or_insert_with(|| Joining::new(owners, &chunk));
                        run.owners[chunk.owner].chunks.push_back(Open {
                            chunk,
                            next: 0,
                            suffix: 0,
                            at: 0,
                        });
                    }
                });
                while let Some(mut entry) = runs.first_entry() {
                    let done = guard.work(|| {
                        let run = entry.get_mut();
                        if !run.write(&build)? {
                            return Ok(false);
                        }
                        let done = run.finish(&build)?;
                        let mut shared = build.done.lock().unwrap_or_else(|p| p.into_inner());
                        shared.runs.push(done);
                        Progress::add(&build.progress.runs, 1);
                        Ok(true)
                    });
                    if done != Some(true) {
                        return;
                    }
                    entry.remove();
                }
            }
        })
    }
}

/// A chunk that is being written.
struct Open {
    chunk: Chunk,
    next: usize,
    suffix: usize,
    at: usize,
}

#[derive(Default)]
struct Owner {
    chunks: VecDeque<Open>,
    ended: bool,
}

/// A run that is being written.
struct Joining {
    owners: Vec<Owner>,
    writer: Option<RunWriter>,
    run: u32,
    first_docid: u32,
    documents: u32,
}

impl Joining {
    fn new(owners: usize, chunk: &Chunk) -> Self {
        let owners = (0..owners).map(|_| Owner::default()).collect();
        let &Chunk { run, first_docid, documents, .. } = chunk;
        Self { owners, writer: None, run, first_docid, documents }
    }

    /// Writes what can be written; tells whether that was all of the run.
    fn write(&mut self, build: &Build) -> Result<bool, Cause> {
        loop {
            let mut least: Option<(u16, usize)> = None;
            for (number, owner) in self.owners.iter_mut().enumerate() {
                while let Some(open) = owner.chunks.front()
                    && open.next == open.chunk.lists.len()
                {
                    owner.ended = open.chunk.ends_run;
                    owner.chunks.pop_front();
                    build.encoded[number].written_chunks.fetch_add(1, Ordering::Release);
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
            let open = self.owners[number].chunks.front_mut().expect("the least has a chunk");
            write_collection(Self::writer(&mut self.writer, build, self.run)?, open, collection)?;
        }
    }

    /// The writer, made when it is first needed.
    fn writer<'a>(
        writer: &'a mut Option<RunWriter>,
        build: &Build,
        run: u32,
    ) -> Result<&'a mut RunWriter, Cause> {
        if writer.is_none() {
            let made = RunWriter::create_with(&build.directory, run, Durability::Scratch)?;
            *writer = Some(made.coded_as(build.form));
        }
        Ok(writer.as_mut().expect("a writer was made"))
    }

    /// Ends the run; one whose documents have no terms has empty files.
    fn finish(&mut self, build: &Build) -> Result<RunDone, Cause> {
        Self::writer(&mut self.writer, build, self.run)?;
        let writer = self.writer.take().expect("a writer was made");
        Ok(writer.finish(self.first_docid, self.documents)?)
    }
}

/// Writes the lists of one collection from the head of a chunk.
fn write_collection(writer: &mut RunWriter, open: &mut Open, collection: u16) -> Result<(), Cause> {
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
