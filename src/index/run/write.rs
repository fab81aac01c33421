//! Writes the lexicon, the lists and the positions of a run from the chunks of its *sources*, each
//! of which has all lists of some trie collections, or neighbouring ones of a collection that some
//! sources share: the owners of a build, the parts that threads of a merge claim, a device, or a
//! caller that has all lists one after the other.
//!
//! Chunks of a source, or of each of its shares, come in the order of the lexicon, so that the next
//! lists are always those of the least collection at the head of a source's queue. Chunks have a
//! layout ([`LaidChunk`]): only the place of each stretch is decided here; threads gather, sum and
//! write the bytes.

use super::WrittenRun;
use super::lay::{LaidChunk, ListStretch, MakerGuard};
use crate::index::error::IndexError;
use crate::index::files::storage::{
    FilledFile, GatheredFile, SharedBytes, StorageFile, WRITE_BUFFER_BYTES,
};
use crate::index::format::{
    FileHeader, FileKind, LIST_ALIGNMENT, POSTINGS_SLACK, run_file, run_name,
};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::{BlockStart, CodedTerms, LexiconWriter};
use crate::index::list::Form;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

pub(crate) struct NewRun<'a> {
    /// The generation's.
    pub(crate) folder: &'a Path,
    pub(crate) number: u32,
    pub(crate) form: Form,
    /// The file of the lists, if those who have room in it put them there.
    pub(crate) lists: Option<Arc<FilledFile>>,
    /// Otherwise this many threads write the lists, or the caller.
    pub(crate) threads: usize,
}

impl<'a> NewRun<'a> {
    /// A run that is published, whose lists the caller gives one after the other.
    pub(crate) fn alone(folder: &'a Path, number: u32, form: Form) -> Self {
        Self { folder, number, form, lists: None, threads: 0 }
    }
}

/// Where the file ends a part may wait for the chunks of others with bytes of this one. Of chunks
/// with this many bytes of lists one or two wait; many smaller ones, whose makers need them to go
/// on, only until they are placed.
const LARGE: usize = WRITE_BUFFER_BYTES / 2;

/// The lists of a chunk, until all of them are written.
struct Payload {
    bytes: Vec<u8>,
    _guard: Option<MakerGuard>,
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct ChunkHead {
    stretches: Vec<ListStretch>,
    terms: Vec<u8>,
    blocks: Vec<BlockStart>,
    /// None if the lists are in place already.
    payload: Option<SharedBytes>,
    positions: SharedBytes,
    ends: bool,
    placed: PlacedCounts,
    _guard: Option<MakerGuard>,
}

#[derive(Default)]
struct PlacedCounts {
    stretches: usize,
    terms: usize,
    blocks: usize,
    payload: usize,
    positions: usize,
}

impl ChunkHead {
    fn new(chunk: LaidChunk) -> Self {
        let LaidChunk { stretches, terms, blocks, payload, positions, placed, ends, guard, .. } =
            chunk;
        let is_large = payload.len() >= LARGE;
        let (of_payload, _guard) = if is_large { (guard, None) } else { (None, guard) };
        let payload = Payload { bytes: payload, _guard: of_payload };
        let payload = placed.is_none().then(|| Arc::new(payload) as SharedBytes);
        let placed = PlacedCounts::default();
        let positions = Arc::new(positions);
        Self { stretches, terms, blocks, payload, positions, ends, placed, _guard }
    }

    fn next(&self) -> Option<&ListStretch> {
        self.stretches.get(self.placed.stretches)
    }
}

#[derive(Default)]
struct ChunkQueue {
    /// The first of them has a stretch that is not placed.
    chunks: VecDeque<ChunkHead>,
    /// Number of the share whose chunks are taken, and the chunks of those behind it.
    share: u32,
    early: BTreeMap<u32, Vec<LaidChunk>>,
    ended: bool,
    /// No collection before this one follows.
    last: u16,
}

impl ChunkQueue {
    /// Takes a chunk when its share is the next, and then those of shares behind it that have come.
    fn push(&mut self, chunk: LaidChunk) {
        if chunk.share != self.share {
            self.early.entry(chunk.share).or_default().push(chunk);
            return;
        }
        let ends_share = chunk.ends_share;
        self.chunks.push_back(ChunkHead::new(chunk));
        if ends_share {
            self.share += 1;
            self.early.remove(&self.share).into_iter().flatten().for_each(|next| self.push(next));
        }
    }

    /// Drops chunks of which all is placed.
    fn pass(&mut self) {
        while let Some(head) = self.chunks.front()
            && head.next().is_none()
        {
            self.ended = head.ends;
            self.chunks.pop_front();
        }
    }

    /// The collection that has to be next before the next chunk is placed, and whether that chunk
    /// is there; nothing at the end.
    fn turn(&self) -> Option<(u16, bool)> {
        match self.chunks.front().and_then(ChunkHead::next) {
            Some(stretch) => Some((stretch.collection, true)),
            None => (!self.ended).then_some((self.last, false)),
        }
    }
}

pub(crate) struct RunWriter {
    number: u32,
    form: Form,
    lexicon: LexiconWriter,
    postings: GatheredFile,
    positions: Option<GatheredFile>,
    sources: Vec<ChunkQueue>,
    /// Of each source that has not ended the collection of its [turn](ChunkQueue::turn), its
    /// number, and whether the chunk is there: of two with the same collection the first one has
    /// the lesser terms.
    turns: BTreeSet<(u16, usize, bool)>,
}

impl RunWriter {
    /// Creates the files of a run, except for a given one of lists. `sources` has for each the trie
    /// collection before which it has none.
    pub(crate) fn create(run: NewRun<'_>, sources: Vec<u16>) -> Result<Self, IndexError> {
        let NewRun { folder, number, form, lists, threads } = run;
        let name = run_name(number);
        let lexicon = run_file(&name, FileKind::Lexicon);
        let lexicon = LexiconWriter::create(folder, &lexicon, form)?;
        let gathered = |kind, threads| {
            let name = run_file(&name, kind);
            StorageFile::create(folder, &name).map(|file| GatheredFile::new(file, threads))
        };
        let postings = match lists {
            Some(file) => GatheredFile::by_others(file),
            None => gathered(FileKind::Postings, threads)?,
        };
        let positions = form.has_positions().then(|| gathered(FileKind::Positions, threads));
        let positions = positions.transpose()?;
        let turns = (0..).zip(&sources).map(|(source, &last)| (last, source, false)).collect();
        let sources =
            sources.into_iter().map(|last| ChunkQueue { last, ..ChunkQueue::default() }).collect();
        Ok(Self { number, form, lexicon, postings, positions, sources, turns })
    }

    /// # Panics
    /// If there is no such source.
    pub(crate) fn take(&mut self, source: usize, chunk: LaidChunk) {
        let queue = &mut self.sources[source];
        if let Some((collection, is_there)) = queue.turn() {
            self.turns.remove(&(collection, source, is_there));
        }
        queue.push(chunk);
        queue.pass();
        let turn = queue.turn();
        self.turns.extend(turn.map(|(collection, is_there)| (collection, source, is_there)));
    }

    /// Places what can be placed; true if that was all of the run.
    ///
    /// # Errors
    /// `Storage`; `Refused` if collections come in another order.
    pub(crate) fn write(&mut self) -> Result<bool, IndexError> {
        while let Some(&(_, source, is_there)) = self.turns.first() {
            if !is_there {
                return Ok(false);
            }
            self.turns.pop_first();
            self.place(source)?;
            let queue = &mut self.sources[source];
            queue.pass();
            let turn = queue.turn();
            self.turns.extend(turn.map(|(collection, is_there)| (collection, source, is_there)));
        }
        Ok(true)
    }

    /// Writes the next chunk of the only source.
    pub(crate) fn put(&mut self, chunk: LaidChunk) -> Result<(), IndexError> {
        self.take(0, chunk);
        self.write().map(drop)
    }

    /// Places the stretches of one collection, the next of a source.
    fn place(&mut self, source: usize) -> Result<(), IndexError> {
        let ChunkQueue { chunks, last, .. } = &mut self.sources[source];
        let head = chunks.front_mut().expect("a chunk whose turn it is");
        *last = head.next().map_or(*last, |stretch| stretch.collection);
        while let Some(stretch) = head.stretches.get(head.placed.stretches)
            && stretch.collection == *last
        {
            let mut at = self.postings.body_bytes();
            if stretch.is_aligned {
                at = at.next_multiple_of(LIST_ALIGNMENT);
            }
            let end = at + stretch.payload_bytes as u64;
            let placed = &mut head.placed;
            let payload = placed.payload..placed.payload + stretch.payload_bytes;
            let positions = placed.positions..placed.positions + stretch.position_bytes;
            let terms = placed.terms..placed.terms + stretch.term_bytes;
            let blocks = placed.blocks..placed.blocks + stretch.blocks;
            let coded = CodedTerms {
                collection: stretch.collection,
                terms: stretch.terms,
                postings: stretch.postings,
                bytes: &head.terms[terms.clone()],
                blocks: &head.blocks[blocks.clone()],
            };
            let before = self.positions.as_ref().map_or(0, GatheredFile::body_bytes);
            self.lexicon.coded_terms(&coded, at, end, before)?;
            match &head.payload {
                Some(source) => {
                    let zeros = at - self.postings.body_bytes();
                    self.postings.append(zeros as usize, source, payload.clone())?;
                }
                None => self.postings.pass(end),
            }
            if let Some(file) = &mut self.positions {
                file.append(0, &head.positions, positions.clone())?;
            }
            placed.stretches += 1;
            placed.payload = payload.end;
            placed.positions = positions.end;
            placed.terms = terms.end;
            placed.blocks = blocks.end;
        }
        self.positions.as_ref().map_or(Ok(()), GatheredFile::check)?;
        self.postings.check()
    }

    /// Ends the run, all of which is placed and which has this many `documents` from `first_docid`
    /// on, and syncs the files if they have to last.
    /// [`complete`](crate::index::documents::DocumentsEntry::complete) completes its entry.
    pub(crate) fn finish(self, first_docid: u32, documents: u32) -> Result<WrittenRun, IndexError> {
        let Self { number, form, lexicon, postings, positions, .. } = self;
        let (terms, count) = (lexicon.terms(), lexicon.postings());
        let numbers = form.numbers();
        let finish = |gathered: GatheredFile, kind| {
            let mut file = gathered.end()?;
            let sums = file.take_sums()?;
            let bytes = file.body_bytes();
            file.pad()?;
            file.write(&[0; POSTINGS_SLACK as usize])?;
            sums.map_or(Ok(()), |sums| sums.pour(&mut file))?;
            file.pad()?;
            let values = [terms, count, bytes, numbers[0], numbers[1]];
            file.finish(FileHeader { kind, values, last: 0 })
        };
        let mut files = vec![lexicon.finish()?, finish(postings, FileKind::Postings)?];
        let positions = positions.map(|positions| finish(positions, FileKind::Positions));
        files.extend(positions.transpose()?);
        let name = run_name(number);
        let run = RunEntry { name, first_docid, documents, terms, ..RunEntry::default() };
        Ok((RunEntry { postings: count, ..run }, files))
    }
}
