//! Where do an owner's lists lie in their run, as far as that is known before the lists of the
//! other owners are? In *stretches*, whose inside is as it will be in the files: the one writer
//! only says where each begins.
//!
//! A collection has one owner, and a list with a full block begins at a multiple of 16 bytes. So a
//! stretch begins with a collection, with such a list, and with a chunk.

#![forbid(unsafe_code)]

use crate::index::files::storage::{FilledFile, ZEROS};
use crate::index::format::LIST_ALIGNMENT;
use crate::index::lexicon::{BlockStart, TermCoder};
use crate::index::list::Form;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPart {
    pub run: u32,
    /// Docid of the run's first document.
    pub first_docid: u32,
    pub documents: u32,
    pub owner: usize,
}

/// A list that is encoded, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedList {
    pub collection: u16,
    pub ends: bool,
    /// Postings of the whole list, once it ends.
    pub df: u32,
    pub here: usize,
    /// Bytes of the whole list, once it ends.
    pub bytes: u64,
}

/// Neighbouring lists, or parts of lists, and what the lexicon has of their terms.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub collection: u16,
    /// Begins at a multiple of 16 bytes; others follow directly on the stretch before.
    pub is_aligned: bool,
    pub payload_bytes: usize,
    pub term_bytes: usize,
    /// Blocks of terms that begin here.
    pub blocks: usize,
    pub terms: u64,
    pub postings: u64,
}

/// What stands from byte `at` of the lists of a run on: the lists of these stretches, which lie end
/// to end in the `payload`, and zeros before those that begin at a multiple of 16 bytes.
pub(crate) fn padded<'a>(
    stretches: &[Stretch],
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

/// Encoded lists of one owner, in the order of the lexicon, laid out.
#[derive(Clone, Default)]
pub struct LaidChunk {
    pub part: RunPart,
    /// The stretches, one behind another.
    pub stretches: Vec<Stretch>,
    /// Bytes of the lists, end to end.
    pub payload: Vec<u8>,
    /// The file of the lists of the run, if their bytes are where they belong there already; then
    /// there is no payload.
    pub placed: Option<Arc<FilledFile>>,
    /// Bytes of the terms, end to end.
    pub terms: Vec<u8>,
    /// The beginnings of blocks, each from the beginning of its stretch on.
    pub blocks: Vec<BlockStart>,
    /// Bytes of the suffixes of the terms.
    pub suffix_bytes: u64,
    /// The owner has no more of this run.
    pub ends_run: bool,
    /// All of the run comes from one place, whoever owns which collection.
    pub whole: bool,
    /// While chunks live that have this, there is no memory for more: who made them may wait.
    pub held: Option<Arc<()>>,
    /// Is dropped when all lists have been gathered to be written.
    pub unwritten: Option<Arc<Unwritten>>,
}

impl LaidChunk {
    /// How many lists end here, and how many postings they have.
    pub(crate) fn ended(&self) -> (u64, u64) {
        let ended = |(terms, postings), s: &Stretch| (terms + s.terms, postings + s.postings);
        self.stretches.iter().fold((0, 0), ended)
    }
}

/// A chunk whose memory is needed; counts it when it is not any more.
pub struct Unwritten(Arc<AtomicU64>);

impl Unwritten {
    /// Adds one to a counter when it is dropped.
    pub(crate) fn new(counter: Arc<AtomicU64>) -> Self {
        Self(counter)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Lays out the lists of one owner's part of a run.
pub(crate) struct Layout {
    form: Form,
    coder: TermCoder,
    /// A list has begun and not ended; so many bytes of it came.
    in_list: bool,
    came: u64,
}

impl Layout {
    pub(crate) fn new(form: Form) -> Self {
        Self::behind(form, TermCoder::default())
    }

    /// For lists that follow others, whose terms were coded up to there.
    pub(crate) fn behind(form: Form, coder: TermCoder) -> Self {
        Self { form, coder, in_list: false, came: 0 }
    }

    /// Adds the next list, or part of a list, of the term with this suffix; its bytes are added to
    /// the payload by the caller.
    ///
    /// # Errors
    /// What cannot be a term or stand in this order, and a list without a full block that comes in
    /// parts.
    pub(crate) fn add(
        &mut self,
        to: &mut LaidChunk,
        list: &EncodedList,
        suffix: &[u8],
    ) -> Result<(), &'static str> {
        let EncodedList { collection, ends, df, here, bytes, .. } = *list;
        let stretch = |is_aligned| Stretch {
            collection,
            is_aligned,
            payload_bytes: 0,
            term_bytes: 0,
            blocks: 0,
            terms: 0,
            postings: 0,
        };
        if to.stretches.last().is_none_or(|last| last.collection != collection) {
            to.stretches.push(stretch(false));
        }
        let is_long = !ends || df as usize >= self.form.block_len();
        if !self.in_list {
            let last = to.stretches.last_mut().expect("there is one");
            if self.coder.begins_block(collection) {
                to.blocks.push(BlockStart { terms: last.term_bytes, lists: last.payload_bytes });
                last.blocks += 1;
            }
            if is_long {
                to.stretches.push(stretch(true));
            }
        } else if !is_long {
            return Err("a list without a full block came in parts");
        }
        let last = to.stretches.last_mut().expect("there is one");
        last.payload_bytes += here;
        self.in_list = !ends;
        self.came += here as u64;
        if ends {
            if std::mem::take(&mut self.came) != bytes {
                return Err("a list came with other bytes than it has");
            }
            let before = to.terms.len();
            self.coder.code(collection, suffix, (df, bytes), &mut to.terms)?;
            last.term_bytes += to.terms.len() - before;
            last.terms += 1;
            last.postings += u64::from(df);
            to.suffix_bytes += suffix.len() as u64;
        }
        Ok(())
    }
}
