//! How do the tokens of a piece come to lie by trie collection (wei11, section III.C, step 5)?
//!
//! While the piece is parsed, the terms of its tokens are noted in document order. A counting sort
//! by owner and collection then gives the order of the streams, in which tokens of one collection
//! stay in document order, and the streams are written from end to end. What the piece counts is
//! what [`Tally`](super::tally::Tally) counts, so that runs end at the same documents.

use super::counter::{Counter, FIRST_POSTING_BYTES, count_term};
use super::memo::NO_TERM;
use super::owners::Owners;
use super::parsed::Regroup;
use super::stream::{StreamWriter, TokenGroup};
use crate::codec::folded;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::sync::Arc;

/// The rank of stop words, behind those of all collections.
const STOP_WORDS: u32 = TRIE_COLLECTIONS as u32;

/// A token of the piece: the ordinal of its term, and its document, counted from the piece's first.
#[derive(Clone, Copy, Default)]
struct Token {
    ordinal: u32,
    document: u32,
}

/// Lays the tokens of one piece after the other out as streams.
pub struct TokenTally {
    owners: Arc<Owners>,
    counter: Counter<Vec<u32>>,
    /// Where the tokens of each document end among those of the piece.
    ends: Vec<usize>,
    /// Bytes of the text so far.
    text_bytes: u64,
    /// Scratch of the layout: the rank of each term's collection, where the tokens of each rank go,
    /// and all tokens in order.
    ranks: Vec<u32>,
    starts: Vec<u32>,
    sorted: Vec<Token>,
    /// Bytes of the streams of the piece before, by owner.
    stream_bytes: Vec<usize>,
}

impl TokenTally {
    /// What the piece counts, and in `starts[r + 1]` the tokens of the collection of rank `r`. Stop
    /// words have the rank behind all collections.
    fn count(&mut self) -> PieceCounts {
        let mut counts = self.counter.piece_counts();
        let piece = &self.counter.counts;
        self.ranks.clear();
        // For each term the document of its last posting so far, plus one.
        let mut last = vec![0; piece.touched().len()];
        for touched in piece.touched() {
            self.ranks.push(if touched.term == NO_TERM {
                STOP_WORDS
            } else {
                let term = piece.memo.term(touched.term);
                count_term(&mut counts, term, piece.memo.suffix(term).len());
                u32::from(self.owners.rank(term.collection))
            });
        }
        self.starts.clear();
        self.starts.resize(STOP_WORDS as usize + 2, 0);
        for posting in piece.postings() {
            let rank = self.ranks[posting.ordinal as usize];
            self.starts[rank as usize + 1] += posting.tf;
            if rank != STOP_WORDS {
                let last = &mut last[posting.ordinal as usize];
                counts.list_bytes += match *last {
                    0 => FIRST_POSTING_BYTES,
                    // The document before is `behind - 1`.
                    behind => folded::bytes(posting.document - behind, posting.tf) as u64,
                };
                *last = posting.document + 1;
            }
        }
        counts
    }

    /// Sorts the tokens by rank.
    fn sort(&mut self) {
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        let piece = &self.counter.counts;
        self.sorted.resize(piece.log.len(), Token::default());
        let mut begin = 0;
        for (document, &end) in (0u32..).zip(&self.ends) {
            for &ordinal in &piece.log[begin..end] {
                let place = &mut self.starts[self.ranks[ordinal as usize] as usize];
                self.sorted[*place as usize] = Token { ordinal, document };
                *place += 1;
            }
            begin = end;
        }
    }

    /// Writes the streams of all owners, in the order of ranks.
    fn write(&mut self) -> Vec<StreamWriter> {
        let mut writers: Vec<_> = (0u32..)
            .zip(&self.stream_bytes)
            .map(|(owner, &bytes)| StreamWriter::new(owner, bytes + bytes / 16))
            .collect();
        let (memo, touched) = (&self.counter.counts.memo, self.counter.counts.touched());
        // Sorting has moved each start to the end of its collection.
        let mut rest = &self.sorted[..];
        let mut done = 0;
        for (&end, collection) in self.starts.iter().zip(self.owners.in_order()) {
            let (tokens, behind) = rest.split_at((end - done) as usize);
            (rest, done) = (behind, end);
            let writer = &mut writers[self.owners.of(collection) as usize];
            for token in tokens {
                let suffix = memo.suffix(memo.term(touched[token.ordinal as usize].term));
                writer.token(collection, token.document, suffix);
            }
        }
        writers
    }
}

impl Regroup for TokenTally {
    type Group = TokenGroup;

    fn new(analysis: Analysis, owners: Arc<Owners>, memo_bytes: usize) -> Self {
        let stream_bytes = vec![0; owners.len()];
        let counter = Counter::new(analysis, memo_bytes);
        let (ends, text_bytes, ranks, starts, sorted) = Default::default();
        Self { owners, counter, ends, text_bytes, ranks, starts, sorted, stream_bytes }
    }

    fn document(&mut self, text: &[u8]) -> u32 {
        let length = self.counter.document(text);
        self.text_bytes += text.len() as u64;
        self.ends.push(self.counter.counts.log.len());
        length
    }

    fn documents(&self) -> u32 {
        self.counter.documents()
    }

    fn finish(&mut self) -> Vec<TokenGroup> {
        let counts = Arc::new(self.count());
        self.sort();
        let lengths: Arc<[u8]> = Arc::from(&*self.counter.lengths);
        let text_bytes = std::mem::take(&mut self.text_bytes);
        let finish = |writer: StreamWriter| TokenGroup {
            text_bytes,
            ..writer.finish(counts.clone(), lengths.clone())
        };
        let groups: Vec<_> = self.write().into_iter().map(finish).collect();
        for (bytes, group) in self.stream_bytes.iter_mut().zip(&groups) {
            *bytes = group.bytes.len();
        }
        self.ends.clear();
        self.counter.counts.log.clear();
        if self.counter.reset() || self.sorted.capacity() > KEEP_TOKENS {
            (self.ends, self.ranks, self.sorted) = Default::default();
            self.counter.counts.log = Vec::new();
            self.stream_bytes.fill(0);
        }
        groups
    }
}

/// A piece of more tokens, which only a long document makes, leaves buffers that no other needs.
const KEEP_TOKENS: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::super::stream::Tokens;
    use super::super::tally::Tally;
    use super::*;
    use crate::text::trie_collection::{implied_prefix, trie_collection};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Terms of each collection, in document order.
    type Streams = BTreeMap<u16, Vec<(u32, String)>>;

    fn read(groups: &[TokenGroup], owners: &Owners) -> Streams {
        let mut streams = Streams::new();
        for (owner, group) in (0u32..).zip(groups) {
            assert_eq!(group.owner, owner);
            assert!(group.collections.is_sorted());
            let mut tokens = 0;
            for (collection, bytes) in group.streams() {
                assert_eq!(owners.of(collection), owner);
                let (prefix, len) = implied_prefix(collection);
                let term = |suffix| String::from_utf8([&prefix[..len], suffix].concat()).unwrap();
                let mut stream = Tokens::new(bytes);
                let list: Vec<_> =
                    stream.by_ref().map(|(document, suffix)| (document, term(suffix))).collect();
                assert_eq!(stream.rest(), 0);
                tokens += list.len();
                assert!(streams.insert(collection, list).is_none());
            }
            assert_eq!(group.tokens as usize, tokens);
        }
        streams
    }

    proptest! {
        /// The streams are the documents' terms by collection, and what the piece counts is what the
        /// layout of postings counts.
        #[test]
        fn oracle_regroups_like_a_map(
            pieces in prop::collection::vec(prop::collection::vec("([a-cTH0-9 \u{e9}]{0,80}|[a-z]{30,90}|x{250,300})", 0..20), 1..4),
            owners in 1usize..5, memo_bytes in 0usize..300_000, gaps in any::<bool>(),
        ) {
            let owners = Arc::new(Owners::in_turn(owners));
            let analysis = Analysis::default();
            let mut tally = TokenTally::new(analysis.clone(), owners.clone(), memo_bytes);
            let mut postings = Tally::new(analysis.clone(), owners.clone(), memo_bytes);
            for mut texts in pieces {
                if gaps {
                    // Documents that are far apart.
                    let last = texts.pop();
                    texts.resize(texts.len() + 600, String::new());
                    texts.extend(last);
                }
                let mut expected = Streams::new();
                for (document, text) in (0u32..).zip(&texts) {
                    analysis.terms(text.as_bytes(), |term| {
                        let stream = expected.entry(trie_collection(term)).or_default();
                        stream.push((document, term.to_string()));
                    });
                    let length = tally.document(text.as_bytes());
                    prop_assert_eq!(postings.document(text.as_bytes()), length);
                }
                prop_assert_eq!(tally.documents() as usize, texts.len());
                let groups = tally.finish();
                let others = postings.finish();
                prop_assert_eq!(groups.len(), others.len());
                for (group, other) in groups.iter().zip(&others) {
                    prop_assert_eq!(&group.lengths, &other.lengths);
                    prop_assert_eq!(&*group.counts, &*other.counts);
                }
                prop_assert_eq!(read(&groups, &owners), expected);
            }
        }
    }
}
