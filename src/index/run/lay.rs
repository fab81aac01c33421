//! The layout of the lists of a source in their run, as far as that is known before the lists of
//! the other sources are: in *stretches*, whose inside is as in the files, so that the one writer
//! only says where each begins.
//!
//! A list with a full block begins at a multiple of 16 bytes. So a stretch begins with a
//! collection, with such a list, and with a chunk.

use crate::index::files::storage::{FilledFile, ZEROS};
use crate::index::format::LIST_ALIGNMENT;
use crate::index::lexicon::{BlockStart, TermCoder};
use crate::index::list::Form;
use std::any::Any;
use std::sync::Arc;

/// A maker that waits for this to be dropped may go on then.
pub(crate) type MakerGuard = Arc<dyn Any + Send + Sync>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPart {
    pub run: u32,
    pub first_docid: u32,
    pub documents: u32,
    pub owner: usize,
}

/// Neighbouring lists, or parts of lists, and the numbers of their terms for the lexicon.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListStretch {
    pub collection: u16,
    /// Begins at a multiple of 16 bytes; others follow directly on the stretch before.
    pub is_aligned: bool,
    pub payload_bytes: usize,
    /// Of the positions of the lists.
    pub position_bytes: usize,
    pub term_bytes: usize,
    /// Blocks of terms that begin here.
    pub blocks: usize,
    pub terms: u64,
    pub postings: u64,
}

/// The bytes from byte `at` of the lists of a run on: the lists of these stretches, which lie end
/// to end in the `payload`, and zeros before those that begin at a multiple of 16 bytes.
pub(crate) fn padded<'a>(
    stretches: &[ListStretch],
    mut at: u64,
    mut payload: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    stretches.iter().flat_map(move |stretch| {
        let zeros = if stretch.is_aligned { at.next_multiple_of(LIST_ALIGNMENT) - at } else { 0 };
        at += zeros + stretch.payload_bytes as u64;
        let lists = payload.split_off(..stretch.payload_bytes);
        [&ZEROS[..zeros as usize], lists.expect("stretches have as many bytes as their lists")]
    })
}

/// Encoded lists of one source, in the order of the lexicon, with their layout.
#[derive(Clone, Default)]
pub struct LaidChunk {
    pub part: RunPart,
    /// One behind another.
    pub stretches: Vec<ListStretch>,
    pub payload: Vec<u8>,
    /// The positions of the lists likewise, in a run that has them.
    pub positions: Vec<u8>,
    /// The file of the lists of the run, if their bytes are in place there; then there is no
    /// payload.
    pub placed: Option<Arc<FilledFile>>,
    /// End to end.
    pub terms: Vec<u8>,
    /// Each counted from the beginning of its stretch.
    pub blocks: Vec<BlockStart>,
    pub suffix_bytes: u64,
    /// Number of the share of its source that it is of: those that encode shares of one source give
    /// their chunks in any order to each other, and a chunk that ends a share, but not the source,
    /// is followed by the first of the next share.
    pub share: u32,
    pub ends_share: bool,
    /// Its source has no more of the run.
    pub ends: bool,
    /// All of the run comes from one source, whatever the owners of collections.
    pub whole: bool,
    /// Dropped when the chunk is not needed any more: its maker may wait for the memory.
    pub guard: Option<MakerGuard>,
}

impl LaidChunk {
    /// The lists that end here, and their postings.
    pub(crate) fn ended(&self) -> (u64, u64) {
        let ended = |(terms, postings), s: &ListStretch| (terms + s.terms, postings + s.postings);
        self.stretches.iter().fold((0, 0), ended)
    }
}

/// Lays out lists of one source of a run, or some neighbouring ones.
pub(crate) struct ChunkLayout {
    form: Form,
    coder: TermCoder,
    /// A list has begun and not ended, of which `came` bytes are there.
    in_list: bool,
    came: u64,
    chunk: LaidChunk,
    /// Bytes of the payload of the chunk that are laid out.
    at: usize,
    /// Bytes of the positions of the chunk, and how many of them are laid out.
    positions: usize,
    positions_at: usize,
    /// Those of the list so far.
    positions_came: u64,
}

impl ChunkLayout {
    pub(crate) fn new(form: Form) -> Self {
        Self::behind(form, TermCoder::default())
    }

    /// For lists that follow others, whose terms were coded up to there.
    pub(crate) fn behind(form: Form, coder: TermCoder) -> Self {
        let (in_list, came, chunk, at, positions) = Default::default();
        let (positions_at, positions_came) = Default::default();
        Self { form, coder, in_list, came, chunk, at, positions, positions_at, positions_came }
    }

    /// The chunk has this many bytes of positions with those of what is laid out next.
    pub(crate) fn with_positions(&mut self, bytes: usize) -> &mut Self {
        self.positions = bytes;
        self
    }

    /// Lays out a part, which is not the last, of the list of the next term, of this collection;
    /// the payload of the chunk has `payload_bytes` with it.
    pub(crate) fn part(&mut self, collection: u16, payload_bytes: usize) {
        self.extend(collection, true, payload_bytes);
        self.in_list = true;
    }

    /// Lays out the list of the next term, or its last part; the list has this many postings and
    /// bytes in all, and the payload of the chunk this many bytes with it.
    ///
    /// # Errors
    /// What cannot be a term or stand in this order; a list without a full block in parts.
    pub(crate) fn list(
        &mut self,
        (collection, suffix): (u16, &[u8]),
        df: u32,
        bytes: u64,
        payload_bytes: usize,
    ) -> Result<(), &'static str> {
        let is_long = df as usize >= self.form.block_len();
        if self.in_list && !is_long {
            return Err("a list without a full block came in parts");
        }
        self.extend(collection, is_long, payload_bytes);
        self.in_list = false;
        if std::mem::take(&mut self.came) != bytes {
            return Err("a list came with other bytes than it has");
        }
        let before = self.chunk.terms.len();
        let positions = std::mem::take(&mut self.positions_came);
        let positions = self.form.has_positions().then_some(positions);
        self.coder.code(collection, suffix, df, bytes, positions, &mut self.chunk.terms)?;
        self.chunk.suffix_bytes += suffix.len() as u64;
        let last = self.chunk.stretches.last_mut().expect("there is one");
        last.term_bytes += self.chunk.terms.len() - before;
        last.terms += 1;
        last.postings += u64::from(df);
        Ok(())
    }

    fn extend(&mut self, collection: u16, is_long: bool, payload_bytes: usize) {
        let LaidChunk { stretches, blocks, .. } = &mut self.chunk;
        let stretch = |is_aligned| ListStretch { collection, is_aligned, ..ListStretch::default() };
        if stretches.last().is_none_or(|last| last.collection != collection) {
            stretches.push(stretch(false));
        }
        if !self.in_list {
            let last = stretches.last_mut().expect("there is one");
            if self.coder.begins_block(collection) {
                blocks.push(BlockStart {
                    terms: last.term_bytes,
                    lists: last.payload_bytes,
                    positions: last.position_bytes,
                });
                last.blocks += 1;
            }
            if is_long {
                stretches.push(stretch(true));
            }
        }
        let here = payload_bytes - std::mem::replace(&mut self.at, payload_bytes);
        let positions = self.positions - std::mem::replace(&mut self.positions_at, self.positions);
        let last = stretches.last_mut().expect("there is one");
        last.payload_bytes += here;
        last.position_bytes += positions;
        self.came += here as u64;
        self.positions_came += positions as u64;
    }

    pub(crate) fn chunk(&self) -> &LaidChunk {
        &self.chunk
    }

    /// Ends the chunk, which has this payload; the next one begins.
    pub(crate) fn take(&mut self, payload: Vec<u8>) -> LaidChunk {
        self.at = 0;
        self.positions = 0;
        self.positions_at = 0;
        LaidChunk { payload, ..std::mem::take(&mut self.chunk) }
    }
}
