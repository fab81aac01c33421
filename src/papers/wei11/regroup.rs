//! Lays the tokens of a piece out by trie collection (wei11, section III.C, step 5).
//!
//! Counting has found the postings of the piece, in document order. A pass over them adds up what
//! each collection's stream takes, and a second one writes the tokens straight to their places,
//! each as often as its document has it. So the tokens of a document lie by term, in the order of
//! counting; the paper keeps the order of the text, on which nothing depends. Counts are those of
//! [`Tally`](crate::dictionary::tally::Tally), so that runs end at the same documents.

use super::stream::{MORE, TokenGroup};
use crate::codec::folded;
use crate::codec::prefetch::prefetch;
use crate::dictionary::counter::{Counter, FIRST_POSTING_BYTES, Now, TokenCounting};
use crate::dictionary::memo::{MemoTerm, NO_TERM};
use crate::dictionary::owners::Owners;
use crate::dictionary::parsed::Regroup;
use crate::dictionary::strings::short;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use crate::text::fields::FieldTexts;
use crate::text::scan::TOGETHER;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::hint::select_unpredictable;
use std::sync::Arc;

/// Where a term was last seen; all zero when it never was.
#[derive(Clone, Copy, Default)]
struct LastSeen {
    /// The last document with the term, counted as [`Now`] counts.
    document: u32,
    /// Where the posting of that document lies, while its piece is counted.
    slot: u32,
    /// The term's place among the terms of that document's piece.
    ordinal: u32,
}

#[derive(Clone, Copy, Default)]
struct Posting {
    /// The place of the term among those of the piece.
    ordinal: u32,
    /// The document, counted from the piece's first.
    document: u32,
    tf: u32,
}

/// The postings of a piece in document order. Each term remembers the last document that it was
/// seen in and where its posting there lies. Whether a token is a stop word, and whether its term
/// is new in the document, is as good as random, so no branch depends on it.
#[derive(Default)]
struct RegroupedPostings {
    /// The piece's terms in order of appearance: the first `terms`; then room. [`NO_TERM`] may be
    /// among them.
    touched: Vec<u32>,
    terms: usize,
    /// The piece's postings in order of documents, those of [`NO_TERM`] too: the first `used`; then
    /// room.
    postings: Vec<Posting>,
    used: usize,
}

impl TokenCounting for RegroupedPostings {
    type State = LastSeen;

    #[inline(always)]
    fn count(&mut self, terms: &mut [MemoTerm<LastSeen>], tokens: &[u32], now: Now) {
        if self.postings.len() < self.used + TOGETHER {
            self.postings.resize(2 * self.used + 1024, Posting::default());
        }
        if self.touched.len() < self.terms + TOGETHER {
            self.touched.resize(2 * self.terms + 1024, 0);
        }
        for &term in tokens {
            let state = &mut terms[term as usize].state;
            let new_here = state.document != now.document;
            let new = state.document <= now.before;
            *state = LastSeen {
                document: now.document,
                slot: select_unpredictable(new_here, self.used as u32, state.slot),
                ordinal: select_unpredictable(new, self.terms as u32, state.ordinal),
            };
            self.terms += usize::from(new);
            self.used += usize::from(new_here);
            self.touched[state.ordinal as usize] = term;
            let posting = &mut self.postings[state.slot as usize];
            let tf = select_unpredictable(new_here, 0, posting.tf) + 1;
            let document = now.document - now.before - 1;
            *posting = Posting { ordinal: state.ordinal, document, tf };
        }
    }

    #[inline(always)]
    fn prefetch(&self, terms: &[MemoTerm<LastSeen>], term: u32) {
        prefetch(&terms[term as usize]);
    }

    fn end_document(&mut self, _: &mut [MemoTerm<LastSeen>], _: Now) {}

    fn reset(&mut self, keep: usize) -> bool {
        let large = self.postings.capacity() > keep;
        if large {
            *self = Self::default();
        }
        self.terms = 0;
        self.used = 0;
        large
    }
}

/// The rank of stop words, behind those of all collections.
const STOP_WORDS: u32 = TRIE_COLLECTIONS as u32;

/// Terms whose data is prefetched.
const AHEAD: usize = 16;

/// A token that is written with one copy.
type Short = [u8; 16];

#[derive(Clone, Copy)]
#[repr(align(32))]
struct PieceTerm {
    /// The token as a stream has it, with a gap of 0; zeros behind. Without a suffix if it is
    /// longer.
    token: Short,
    bytes: u32,
    /// The rank of its collection, or [`STOP_WORDS`].
    rank: u32,
    term: u32,
    /// The document of its last posting so far, plus one.
    behind: u32,
}

#[derive(Clone, Copy, Default)]
struct Stream {
    /// Its bytes, while they are added up; then the place of its next token.
    at: u32,
    /// The document of the token before.
    document: u32,
    tokens: u32,
}

impl Stream {
    /// The gap to the stream's next document.
    #[inline(always)]
    fn step(&mut self, document: u32) -> u32 {
        let gap = document - self.document;
        self.document = document;
        gap
    }
}

/// Lays the tokens of one piece after the other out as streams.
pub struct TokenTally {
    owners: Arc<Owners>,
    counter: Counter<RegroupedPostings>,
    text_bytes: u64,
    /// Scratch of the layout: terms by their ordinals, streams by rank, and all streams end to end.
    words: Vec<PieceTerm>,
    streams: Vec<Stream>,
    bytes: Vec<u8>,
}

impl TokenTally {
    /// Terms of `analysis` are remembered in at most `memo_bytes` from piece to piece.
    pub fn new(analysis: Analysis, owners: Arc<Owners>, memo_bytes: usize) -> Self {
        let counter = Counter::new(analysis, memo_bytes);
        let (text_bytes, words, streams, bytes) = Default::default();
        Self { owners, counter, text_bytes, words, streams, bytes }
    }

    fn find_words(&mut self) {
        let (counted, memo, _) = self.counter.counted();
        let touched = &counted.touched[..counted.terms];
        self.words.clear();
        for (i, &number) in touched.iter().enumerate() {
            if let Some(ahead) = touched.get(i + 2 * AHEAD) {
                prefetch(memo.term(*ahead));
            }
            let mut word =
                PieceTerm { token: [0; 16], bytes: 0, rank: STOP_WORDS, term: number, behind: 0 };
            if number != NO_TERM {
                let term = memo.term(number);
                let suffix = memo.suffix(term);
                word.rank = u32::from(self.owners.rank(term.suffix.collection));
                word.bytes = 2 + suffix.len() as u32;
                word.token[1] =
                    u8::try_from(suffix.len()).expect("the analysis cuts terms at 255 bytes");
                if let Some(to) = word.token.get_mut(2..2 + suffix.len()) {
                    short::copy(suffix, to);
                }
            }
            self.words.push(word);
        }
    }

    /// Adds up what each stream takes, and what the piece's postings count.
    fn measure(&mut self, counts: &mut PieceCounts) {
        self.streams.clear();
        self.streams.resize(STOP_WORDS as usize + 1, Stream::default());
        let (counted, ..) = self.counter.counted();
        for posting in &counted.postings[..counted.used] {
            let word = &mut self.words[posting.ordinal as usize];
            counts.postings += u64::from(word.rank != STOP_WORDS);
            let stream = &mut self.streams[word.rank as usize];
            stream.at += posting.tf * word.bytes + stream.step(posting.document) / u32::from(MORE);
            stream.tokens += posting.tf;
            counts.list_bytes += match word.behind {
                _ if word.rank == STOP_WORDS => 0,
                0 => FIRST_POSTING_BYTES,
                behind => folded::bytes(posting.document - behind, posting.tf) as u64,
            };
            word.behind = posting.document + 1;
        }
    }

    /// Gives each stream its place; returns the groups of all owners, without their bytes.
    fn place(&mut self) -> Vec<TokenGroup> {
        let mut groups: Vec<_> = (0..self.owners.len() as u32)
            .map(|owner| TokenGroup { owner, ..TokenGroup::default() })
            .collect();
        let mut end = 0u32;
        let mut owner_start = 0;
        let mut owner_before = 0;
        for (stream, collection) in self.streams.iter_mut().zip(self.owners.in_order()) {
            let owner = self.owners.of(collection);
            if owner != owner_before {
                owner_start = end;
                owner_before = owner;
            }
            let start = end;
            end = end.checked_add(stream.at).expect("a piece's tokens stay below 4 GiB");
            stream.at = start;
            stream.document = 0;
            if end > start {
                let group = &mut groups[owner as usize];
                group.tokens += stream.tokens;
                group.collections.push((collection, end - owner_start));
            }
        }
        // Short tokens are written as if they were long.
        self.bytes.resize(end as usize + size_of::<Short>(), 0);
        groups
    }

    fn write(&mut self) {
        let (counted, memo, _) = self.counter.counted();
        for posting in &counted.postings[..counted.used] {
            let word = &self.words[posting.ordinal as usize];
            if word.rank == STOP_WORDS {
                continue;
            }
            let stream = &mut self.streams[word.rank as usize];
            let mut gap = stream.step(posting.document);
            let mut at = stream.at as usize;
            while gap >= u32::from(MORE) {
                self.bytes[at] = MORE;
                at += 1;
                gap -= u32::from(MORE);
            }
            for _ in 0..posting.tf {
                let bytes = word.bytes as usize;
                if let Some(&behind) = BEHIND.get(bytes) {
                    // What lies behind the token may have been written.
                    let to = self.bytes[at..].first_chunk_mut().expect("there is room at the end");
                    let token = u128::from_le_bytes(word.token) | u128::from(gap);
                    *to = (u128::from_le_bytes(*to) & behind | token).to_le_bytes();
                } else {
                    let suffix = memo.suffix(memo.term(word.term));
                    self.bytes[at] = gap as u8;
                    self.bytes[at + 1] = word.token[1];
                    self.bytes[at + 2..at + bytes].copy_from_slice(suffix);
                }
                at += bytes;
                gap = 0;
            }
            stream.at = at as u32;
        }
    }
}

/// By the length of a short token, the bits of the bytes behind it.
const BEHIND: [u128; size_of::<Short>() + 1] = {
    let mut behind = [0; size_of::<Short>() + 1];
    let mut length = 0;
    while length < size_of::<Short>() {
        behind[length] = u128::MAX << (8 * length);
        length += 1;
    }
    behind
};

impl Regroup for TokenTally {
    type Group = TokenGroup;

    fn document(&mut self, text: &[u8]) -> u32 {
        self.text_bytes += text.len() as u64;
        self.counter.document(text, FieldTexts::NONE)
    }

    fn hold(&mut self, bytes: u64) {
        self.counter.most_bytes = bytes;
    }

    fn over(&self) -> Option<u64> {
        self.counter.needed
    }

    fn documents(&self) -> u32 {
        self.counter.documents()
    }

    fn finish(&mut self) -> Vec<TokenGroup> {
        let mut counts = self.counter.piece_counts();
        self.find_words();
        self.measure(&mut counts);
        let mut groups = self.place();
        self.write();
        let counts = Arc::new(counts);
        let lengths = Arc::from(&*self.counter.lengths);
        let mut rest = &self.bytes[..];
        for group in &mut groups {
            let end = group.collections.last().map_or(0, |&(_, end)| end as usize);
            let (bytes, behind) = rest.split_at(end);
            rest = behind;
            group.bytes = bytes.to_vec();
            group.text_bytes = self.text_bytes;
            group.counts = Arc::clone(&counts);
            group.lengths = Arc::clone(&lengths);
        }
        self.text_bytes = 0;
        if self.counter.reset() {
            (self.words, self.bytes) = Default::default();
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::StreamTokens;
    use super::*;
    use crate::dictionary::tally::Tally;
    use crate::text::trie_collection::{implied_prefix, trie_collection};
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use std::collections::BTreeMap;

    /// By collection, document and alphabet.
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
                let mut stream = StreamTokens::new(bytes);
                let mut list: Vec<_> =
                    stream.by_ref().map(|(document, suffix)| (document, term(suffix))).collect();
                assert!(list.is_sorted_by_key(|&(document, _)| document));
                list.sort();
                assert_eq!(stream.rest(), 0);
                tokens += list.len();
                assert!(streams.insert(collection, list).is_none());
            }
            assert_eq!(group.tokens as usize, tokens);
        }
        streams
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/regroup.txt")
        ))]

        /// The streams are the documents' terms by collection, and the counts are those of the
        /// layout of postings.
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
                expected.values_mut().for_each(|stream| stream.sort());
                prop_assert_eq!(read(&groups, &owners), expected);
            }
        }
    }
}
