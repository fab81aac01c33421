//! Which terms does a piece have, and how often does each document have them? Counts term after
//! term; what is made of the counts is the business of the layouts: [`tally`](super::tally) lays out
//! postings, [`regroup`](super::regroup) tokens.
//!
//! Counting needs no table of its own: each term remembers the last document that it was seen in
//! and where its posting there lies.

use super::hash::prefetch;
use super::memo::{Memo, NO_TERM, Term};
use crate::order::{PieceCounts, SKETCH_UNIT_BYTES};
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::scan::{Key, Scanner, Stretches};
use crate::text::tokenizer::for_each_token;

/// What a term has in the piece so far; all zero when it has nothing.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    /// The last document with the term, plus one.
    pub(super) document: u32,
    /// Where the posting of that document lies.
    slot: u32,
    pub(super) postings: u32,
    /// While the piece is laid out: where the term goes next.
    pub(super) place: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Posting {
    pub(super) term: u32,
    pub(super) document: u32,
    pub(super) tf: u32,
}

/// Who wants to know of every token, in document order.
pub(super) trait TokenLog: Default {
    fn token(&mut self, term: u32);
}

impl TokenLog for () {
    #[inline(always)]
    fn token(&mut self, _term: u32) {}
}

impl TokenLog for Vec<u32> {
    #[inline(always)]
    fn token(&mut self, term: u32) {
        self.push(term);
    }
}

/// Tokens that are looked up together: the cache misses of one overlap those of the others.
const TOGETHER: usize = 32;

/// Counts the terms of a piece.
pub(super) struct Counter<L> {
    scanner: Scanner,
    pub(super) counts: Counts<L>,
    /// Codes of the lengths of the piece's documents.
    pub(super) lengths: Vec<u8>,
}

/// What [`Counter`] has counted.
pub(super) struct Counts<L> {
    /// Tokens that are not looked up yet; their slots of the memo are on the way to the cache.
    keys: [Key; TOGETHER],
    waiting: usize,
    pub(super) memo: Memo,
    pub(super) states: Vec<State>,
    pub(super) postings: Vec<Posting>,
    /// Terms that the piece has, in order of appearance.
    pub(super) touched: Vec<u32>,
    /// The current document, plus one.
    document: u32,
    /// Its indexed tokens so far.
    tokens: u32,
    pub(super) log: L,
}

impl<L: TokenLog> Counts<L> {
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
        for &term in &terms[..self.waiting] {
            self.count(term);
        }
        self.waiting = 0;
    }

    #[inline(always)]
    fn count(&mut self, term: u32) {
        if term == NO_TERM {
            return;
        }
        if term as usize >= self.states.len() {
            self.states.resize(self.memo.len(), State::default());
        }
        self.tokens += 1;
        self.log.token(term);
        let state = &mut self.states[term as usize];
        if state.document == self.document {
            self.postings[state.slot as usize].tf += 1;
            return;
        }
        if state.postings == 0 {
            self.touched.push(term);
        }
        state.postings += 1;
        state.document = self.document;
        state.slot = self.postings.len() as u32;
        self.postings.push(Posting { term, document: self.document - 1, tf: 1 });
    }
}

impl<L: TokenLog> Stretches for Counts<L> {
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
            self.count(term);
        } else {
            self.mixed(token);
        }
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.count_waiting();
        for_each_token(bytes, |token| {
            let term = self.memo.term_of_token(token);
            self.count(term);
        });
    }
}

impl<L: TokenLog> Counter<L> {
    /// Makes a counter whose memo takes at most `memo_bytes` from piece to piece.
    pub(super) fn new(analysis: Analysis, memo_bytes: usize) -> Self {
        let counts = Counts {
            keys: [Key::default(); TOGETHER],
            waiting: 0,
            memo: Memo::new(analysis, memo_bytes),
            states: Vec::new(),
            postings: Vec::new(),
            touched: Vec::new(),
            document: 0,
            tokens: 0,
            log: L::default(),
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
        self.counts.document
    }

    /// What is known of the piece's counts before its terms are looked at.
    pub(super) fn piece_counts(&self) -> PieceCounts {
        PieceCounts {
            documents: self.counts.document,
            postings: self.counts.postings.len() as u64,
            ..PieceCounts::default()
        }
    }

    /// Begins the next piece. Tells whether the piece was so large that its scratch is not worth
    /// keeping.
    pub(super) fn reset(&mut self) -> bool {
        let counts = &mut self.counts;
        for &term in &counts.touched {
            counts.states[term as usize] = State::default();
        }
        counts.touched.clear();
        counts.postings.clear();
        counts.document = 0;
        self.lengths.clear();
        if counts.memo.forget_if_full() {
            counts.states = Vec::new();
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

/// Adds a term of the piece to its counts.
#[inline]
pub(super) fn count_term(counts: &mut PieceCounts, term: &Term, suffix_bytes: usize) {
    counts.terms.add(term.hash);
    for more in 1..=suffix_bytes / SKETCH_UNIT_BYTES {
        counts.terms.add(term.hash.wrapping_mul(2 * more as u64 + 1).rotate_left(17));
    }
}

/// Bytes that a term's first posting of a piece counts. It is written by the owner, who knows the
/// gap: 4 bytes do for nearly all, and what is more is paid by the slack of the list's slices.
pub(super) const FIRST_POSTING_BYTES: u64 = 4;
