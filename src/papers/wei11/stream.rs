//! The tokens of a piece for one indexer: the paper's regrouped stream (wei11, section III.C, step
//! 5), by trie collection, in document order, without the prefix that the collection implies.
//!
//! ```text
//! stream of a collection:  token, token, ...
//! token:                   gap, length, that many bytes of the suffix    (figure 6)
//! gap:                     documents since the token before, of the first one since the piece's
//!                          first document: one byte; 255 adds 255 and another gap byte follows
//! length:                  one byte
//! ```
//!
//! The paper writes each document's id once in front of its tokens. A gap for each token takes
//! about as many bytes, since most documents have one or two tokens of a collection, and lets a
//! reader begin at any token whose document is known.

use crate::dictionary::parsed::{OwnedGroup, PieceGroup};
#[cfg(test)]
use crate::dictionary::strings::short;
use crate::order::PieceCounts;
use std::sync::Arc;

/// The gap byte that says that the gap goes on.
pub(crate) const MORE: u8 = 255;

/// The tokens of one piece that belong to one indexer, and what every indexer must know of the
/// piece.
#[derive(Default)]
pub struct TokenGroup {
    pub owner: u32,
    /// For the indexer's sequencer.
    pub counts: Arc<PieceCounts>,
    /// The codes of its documents' lengths (`score::bounds`).
    pub lengths: Arc<[u8]>,
    /// Bytes of text in the whole piece.
    pub text_bytes: u64,
    pub tokens: u32,
    /// Trie collections that have tokens, ascending, and the end of each one's stream in `bytes`.
    pub collections: Vec<(u16, u32)>,
    pub bytes: Vec<u8>,
}

impl TokenGroup {
    #[inline]
    pub(crate) fn stream(&self, i: usize) -> Option<(u16, &[u8])> {
        let &(collection, end) = self.collections.get(i)?;
        let start = i.checked_sub(1).map_or(0, |before| self.collections[before].1);
        Some((collection, &self.bytes[start as usize..end as usize]))
    }

    /// Ascending.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (u16, &[u8])> {
        (0..self.collections.len()).filter_map(|i| self.stream(i))
    }
}

impl PieceGroup for TokenGroup {
    fn memory_bytes(&self) -> usize {
        self.collections.capacity() * size_of::<(u16, u32)>() + self.bytes.capacity()
    }

    fn counts(&self) -> Arc<PieceCounts> {
        self.counts.clone()
    }
}

impl OwnedGroup for TokenGroup {
    fn owner(&self) -> u32 {
        self.owner
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

/// Writes the streams of one group token by token, as [`regroup`](super::regroup) does.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct StreamWriter {
    group: TokenGroup,
    collection: u16,
    /// The document of the token before.
    document: u32,
}

#[cfg(test)]
impl StreamWriter {
    /// Begins a group that is expected to take `bytes` bytes.
    pub(crate) fn new(owner: u32, bytes: usize) -> Self {
        let bytes = Vec::with_capacity(bytes);
        let group = TokenGroup { owner, bytes, ..TokenGroup::default() };
        Self { group, collection: 0, document: 0 }
    }

    /// Begins the stream of a collection. Collections ascend; one that gets no token is left out.
    #[inline]
    pub(crate) fn collection(&mut self, collection: u16) {
        self.end_stream();
        debug_assert!(self.group.collections.last().is_none_or(|&(last, _)| last < collection));
        self.collection = collection;
        self.document = 0;
    }

    fn end_stream(&mut self) {
        let group = &mut self.group;
        let end = u32::try_from(group.bytes.len()).expect("a piece's tokens stay below 4 GiB");
        if end > group.collections.last().map_or(0, |&(_, end)| end) {
            group.collections.push((self.collection, end));
        }
    }

    /// As [`collection`](Self::collection), where it is another, and [`push`](Self::push).
    pub(crate) fn token(&mut self, collection: u16, document: u32, suffix: &[u8]) {
        if self.collection != collection || self.group.bytes.is_empty() {
            self.collection(collection);
        }
        self.push(document, suffix);
    }

    /// Appends a token to the current stream. Documents, counted from the piece's first, come in
    /// order.
    ///
    /// # Panics
    /// When the suffix has more than 255 bytes, which the analysis rules out, or the streams reach
    /// 4 GiB, which the bound on a document rules out.
    #[inline]
    pub(crate) fn push(&mut self, document: u32, suffix: &[u8]) {
        debug_assert!(document >= self.document);
        let mut gap = document - self.document;
        self.document = document;
        self.group.tokens += 1;
        let bytes = &mut self.group.bytes;
        while gap >= u32::from(MORE) {
            bytes.push(MORE);
            gap -= u32::from(MORE);
        }
        let length = u8::try_from(suffix.len()).expect("the analysis cuts terms at 255 bytes");
        // Nearly all suffixes are short: one copy of a fixed size does for all of the token.
        const SHORT: usize = 14;
        if suffix.len() <= SHORT {
            let mut padded = [0; 2 + SHORT];
            (padded[0], padded[1]) = (gap as u8, length);
            short::copy(suffix, &mut padded[2..]);
            let end = bytes.len() + 2 + suffix.len();
            bytes.extend_from_slice(&padded);
            bytes.truncate(end);
        } else {
            bytes.extend_from_slice(&[gap as u8, length]);
            bytes.extend_from_slice(suffix);
        }
    }

    pub(crate) fn finish(mut self, counts: Arc<PieceCounts>, lengths: Arc<[u8]>) -> TokenGroup {
        self.end_stream();
        TokenGroup { counts, lengths, ..self.group }
    }
}

/// The tokens of a stream as (document counted from the piece's first, suffix).
#[derive(Clone, Debug)]
pub(crate) struct StreamTokens<'a> {
    bytes: &'a [u8],
    document: u32,
}

impl<'a> StreamTokens<'a> {
    pub(crate) fn new(stream: &'a [u8]) -> Self {
        Self { bytes: stream, document: 0 }
    }

    /// Bytes that are not read.
    pub(crate) fn rest(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> Iterator for StreamTokens<'a> {
    type Item = (u32, &'a [u8]);

    /// `None` at the end, and where a token is cut short, which leaves a [`rest`](Self::rest).
    #[inline]
    fn next(&mut self) -> Option<(u32, &'a [u8])> {
        let mut document = self.document;
        let mut at = 0;
        let length = loop {
            let &[gap, next, ..] = self.bytes.get(at..)? else { return None };
            document = document.checked_add(u32::from(gap))?;
            at += 1;
            if gap < MORE {
                break usize::from(next);
            }
        };
        let suffix = self.bytes.get(at + 1..at + 1 + length)?;
        self.document = document;
        self.bytes = &self.bytes[at + 1 + length..];
        Some((document, suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Documents as gaps, and suffixes.
    fn stream() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
        let gap = prop_oneof![4 => 0u32..3, 1 => 250u32..260, 1 => 505u32..515, 1 => 0u32..5000];
        let suffix = prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..20),
            1 => prop::collection::vec(any::<u8>(), 250..256),
        ];
        prop::collection::vec((gap, suffix), 1..40)
    }

    proptest! {
        #[test]
        fn law_reads_what_it_wrote(streams in prop::collection::btree_map(0u16..17_613, stream(), 0..8)) {
            let mut writer = StreamWriter::new(3, 0);
            let mut expected = BTreeMap::new();
            for (&collection, tokens) in &streams {
                let mut document = 0;
                let mut list = Vec::new();
                for (gap, suffix) in tokens {
                    document += gap;
                    writer.token(collection, document, suffix);
                    list.push((document, &suffix[..]));
                }
                expected.insert(collection, list);
            }
            let lengths: Arc<[u8]> = Arc::from(&[1u8, 2][..]);
            let group = writer.finish(Arc::default(), lengths);
            prop_assert_eq!((group.owner, &group.lengths[..]), (3, &[1u8, 2][..]));
            prop_assert_eq!(group.tokens as usize, streams.values().map(Vec::len).sum::<usize>());
            let got: BTreeMap<u16, Vec<(u32, &[u8])>> =
                group.streams().map(|(c, bytes)| (c, StreamTokens::new(bytes).collect())).collect();
            prop_assert_eq!(group.collections.len(), got.len());
            prop_assert_eq!(got, expected);
        }

        /// Any bytes are read without a panic or a read beyond them.
        #[test]
        fn law_bad_bytes_end_the_stream(bytes in prop::collection::vec(prop_oneof![Just(255u8), 0u8..6, any::<u8>()], 0..300)) {
            let mut tokens = StreamTokens::new(&bytes);
            let read: usize = tokens.by_ref().map(|(_, suffix)| suffix.len() + 2).sum();
            prop_assert!(read + tokens.rest() <= bytes.len());
        }

        /// A stream that is cut anywhere gives a prefix of its tokens.
        #[test]
        fn law_a_cut_stream_is_a_prefix(tokens in stream(), cut in 0usize..10_000) {
            let mut writer = StreamWriter::new(0, 0);
            let mut document = 0;
            for (gap, suffix) in &tokens {
                document += gap;
                writer.token(7, document, suffix);
            }
            let group = writer.finish(Arc::default(), Arc::default());
            let (_, bytes) = group.stream(0).unwrap();
            let whole: Vec<_> = StreamTokens::new(bytes).collect();
            let cut = &bytes[..cut % (bytes.len() + 1)];
            let part: Vec<_> = StreamTokens::new(cut).collect();
            prop_assert_eq!(&whole[..part.len()], &part[..]);
            prop_assert_eq!(part.len() == whole.len(), cut.len() == bytes.len());
        }
    }
}
