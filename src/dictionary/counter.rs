//! Which terms does a piece have, and how often does each document have them? Counts term after
//! term; what is made of the counts is the business of the layouts: [`tally`](super::tally) lays out
//! postings, [`regroup`](super::regroup) tokens.
//!
//! Counting needs no table of its own: each term remembers the last document that it was seen in
//! and where its posting there lies. Whether a token is a stop word, and whether its term is new in
//! the document, is as good as random, so that counting has no branch that depends on it.

use super::memo::{Memo, NO_TERM};
use crate::codec::prefetch::prefetch;
use crate::order::PieceCounts;
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::scan::{Key, Scanner, Stretches};
use crate::text::tokenizer::for_each_token;
use std::hint::select_unpredictable;

/// Where a term was last seen; all zero when it never was.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct State {
    /// The last document with the term, counted as [`Counts::document`] is.
    document: u32,
    /// Where the posting of that document lies, while its piece is counted.
    slot: u32,
    /// The term's place among the terms of that document's piece.
    ordinal: u32,
}

/// A term of the piece.
#[derive(Clone, Copy, Default)]
pub(super) struct Touched {
    pub(super) term: u32,
    /// Its postings.
    pub(super) postings: u32,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Posting {
    /// The place of the term among those of the piece.
    pub(super) ordinal: u32,
    /// The document, counted from the piece's first.
    pub(super) document: u32,
    pub(super) tf: u32,
}

/// Tokens that are looked up together: the cache misses of one overlap those of the others.
const TOGETHER: usize = 32;

/// Counts the terms of a piece.
pub(super) struct Counter {
    scanner: Scanner,
    pub(super) counts: Counts,
    /// Codes of the lengths of the piece's documents.
    pub(super) lengths: Vec<u8>,
}

/// What [`Counter`] has counted.
pub(super) struct Counts {
    /// Tokens that are not looked up yet; their slots of the memo are on the way to the cache.
    keys: [Key; TOGETHER],
    waiting: usize,
    pub(super) memo: Memo,
    states: Vec<State>,
    /// The piece's terms in order of appearance: the first `terms`; then room.
    touched: Vec<Touched>,
    terms: usize,
    /// The piece's postings in order of documents: the first `used`; then room.
    postings: Vec<Posting>,
    used: usize,
    /// The last document before the piece, and the current one. Documents are counted from 1 and
    /// from piece to piece, so that what states say of earlier pieces is out of date by itself.
    before: u32,
    document: u32,
    /// Indexed tokens of the current document so far.
    tokens: u32,
}

impl Counts {
    /// Looks up and counts the tokens that wait.
    fn count_waiting(&mut self) {
        let keys = self.keys;
        let mut terms = [NO_TERM; TOGETHER];
        for (term, &key) in terms.iter_mut().zip(&keys[..self.waiting]) {
            *term = self.memo.term_of_key(key);
            if let Some(state) = self.states.get(*term as usize) {
                prefetch(state);
            }
        }
        self.count(&terms[..self.waiting]);
        self.waiting = 0;
    }

    /// Counts at most [`TOGETHER`] tokens by their terms; stop words as if they were one.
    #[inline(always)]
    fn count(&mut self, terms: &[u32]) {
        if self.states.len() < self.memo.len() {
            self.states.resize(self.memo.len() + self.memo.len() / 4, State::default());
        }
        if self.postings.len() < self.used + TOGETHER {
            self.postings.resize(2 * self.used + 1024, Posting::default());
        }
        if self.touched.len() < self.terms + TOGETHER {
            self.touched.resize(2 * self.terms + 1024, Touched::default());
        }
        let document = self.document - self.before - 1;
        for &term in terms {
            self.tokens += u32::from(term != NO_TERM);
            let state = &mut self.states[term as usize];
            let new_here = state.document != self.document;
            let new = state.document <= self.before;
            state.document = self.document;
            state.ordinal = select_unpredictable(new, self.terms as u32, state.ordinal);
            state.slot = select_unpredictable(new_here, self.used as u32, state.slot);
            self.terms += usize::from(new);
            self.used += usize::from(new_here);
            let touched = &mut self.touched[state.ordinal as usize];
            let postings = select_unpredictable(new, 0, touched.postings);
            *touched = Touched { term, postings: postings + u32::from(new_here) };
            let posting = &mut self.postings[state.slot as usize];
            let tf = select_unpredictable(new_here, 0, posting.tf) + 1;
            *posting = Posting { ordinal: state.ordinal, document, tf };
        }
    }

    /// The piece's terms by their ordinals, in order of appearance; [`NO_TERM`] may be among them.
    pub(super) fn touched(&self) -> &[Touched] {
        &self.touched[..self.terms]
    }

    /// The piece's postings in order of documents, those of [`NO_TERM`] too.
    pub(super) fn postings(&self) -> &[Posting] {
        &self.postings[..self.used]
    }

    /// The ordinal of [`NO_TERM`], if the piece has stop words.
    fn stop_words(&self) -> Option<u32> {
        let state = self.states.get(NO_TERM as usize)?;
        (state.document > self.before).then_some(state.ordinal)
    }
}

impl Stretches for Counts {
    #[inline(always)]
    fn key(&mut self, key: Key) {
        self.memo.prefetch(key);
        self.keys[self.waiting] = key;
        self.waiting += 1;
        if self.waiting == TOGETHER {
            self.count_waiting();
        }
    }

    fn long(&mut self, token: &[u8]) {
        self.count_waiting();
        let mut lower = [0u8; 255];
        if let Some(lower) = lower.get_mut(..token.len()) {
            lower.copy_from_slice(token);
            lower.make_ascii_lowercase();
            let token = std::str::from_utf8(lower).expect("a long token is ASCII");
            let term = self.memo.term_of_token(token);
            self.count(&[term]);
        } else {
            self.mixed(token);
        }
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.count_waiting();
        for_each_token(bytes, |token| {
            let term = self.memo.term_of_token(token);
            self.count(&[term]);
        });
    }
}

impl Counter {
    /// Makes a counter whose memo takes at most `memo_bytes` from piece to piece.
    pub(super) fn new(analysis: Analysis, memo_bytes: usize) -> Self {
        let counts = Counts {
            keys: [Key::default(); TOGETHER],
            waiting: 0,
            memo: Memo::new(analysis, memo_bytes),
            states: Vec::new(),
            touched: Vec::new(),
            terms: 0,
            postings: Vec::new(),
            used: 0,
            before: 0,
            document: 0,
            tokens: 0,
        };
        Self { scanner: Scanner::new(), counts, lengths: Vec::new() }
    }

    /// Counts the next document of the piece; returns its length: its indexed tokens.
    pub(super) fn document(&mut self, text: &[u8]) -> u32 {
        self.counts.document += 1;
        self.counts.tokens = 0;
        self.scanner.scan(text, &mut self.counts);
        self.counts.count_waiting();
        self.lengths.push(code_below(self.counts.tokens));
        self.counts.tokens
    }

    /// Documents of the piece so far.
    pub(super) fn documents(&self) -> u32 {
        self.counts.document - self.counts.before
    }

    /// What is known of the piece's counts before its terms are looked at. The piece has no more
    /// documents.
    pub(super) fn piece_counts(&mut self) -> PieceCounts {
        let forms = self.counts.memo.end_piece();
        let counts = &self.counts;
        let stop_words = counts.stop_words().map_or(0, |o| counts.touched[o as usize].postings);
        PieceCounts {
            documents: self.documents(),
            postings: (counts.used - stop_words as usize) as u64,
            list_bytes: 0,
            forms,
        }
    }

    /// Begins the next piece. Tells whether the piece was so large that its scratch is not worth
    /// keeping.
    pub(super) fn reset(&mut self) -> bool {
        let counts = &mut self.counts;
        (counts.terms, counts.used) = (0, 0);
        counts.before = counts.document;
        self.lengths.clear();
        // Long before documents can no longer be counted.
        const FEW_LEFT: u32 = u32::MAX / 2;
        if counts.memo.forget_if_full() || counts.document > FEW_LEFT {
            counts.states = Vec::new();
            (counts.before, counts.document) = (0, 0);
        }
        // A piece with a huge document leaves buffers that no other piece needs.
        const KEEP: usize = 1 << 19;
        let large = counts.postings.capacity() > KEEP;
        if large {
            counts.postings = Vec::new();
            counts.touched = Vec::new();
            self.scanner = Scanner::new();
        }
        large
    }
}

/// Bytes that a term's first posting of a piece counts. It is written by the owner, who knows the
/// gap: 4 bytes do for nearly all, and what is more is paid by the slack of the list's slices.
pub(super) const FIRST_POSTING_BYTES: u64 = 4;
