//! Finds the terms of a piece and hands them on in batches. The layouts count them:
//! [`tally`](super::tally) makes postings, [`regroup`](super::regroup) tokens.

mod fields;

use super::memo::{Memo, MemoTerm, NO_TERM};
use super::vector::{self, Vector};
use crate::dictionary::device::members::hash_of_token;
use crate::dictionary::strings::mixed::{Mixed, StretchMeaning};
use crate::order::{DOCUMENT_TIMES, LONG_BYTES, PieceCounts};
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::fields::FieldTexts;
use crate::text::scan::{Scanner, Stretches, TOGETHER, TokenKey, key_of, stretch_key};
use crate::text::tokenizer::Tokenizer;

/// The current document. Documents are counted from 1 and from piece to piece, so that what is kept
/// with a term is out of date by itself when the next piece begins.
#[derive(Clone, Copy, Default)]
pub(crate) struct Now {
    /// The last document before the piece.
    pub(crate) before: u32,
    pub(crate) document: u32,
}

pub(crate) trait TokenCounting: Default {
    /// Kept with each term.
    type State: Copy + Default;

    /// Prefetches what [`count`](Self::count) needs of a term.
    fn prefetch(&self, terms: &[MemoTerm<Self::State>], term: u32);

    /// Counts at most [`TOGETHER`] tokens of the current document by their terms; stop words as if
    /// they were one term.
    fn count(&mut self, terms: &mut [MemoTerm<Self::State>], tokens: &[u32], now: Now);

    /// Gives at most [`TOGETHER`] terms, `tokens`, their frequencies in the current document, which
    /// has not had them so far.
    fn weigh(
        &mut self,
        _terms: &mut [MemoTerm<Self::State>],
        _tokens: &[u32],
        _tfs: &[u32],
        _now: Now,
    ) {
        unreachable!("vectors are tallied");
    }

    /// Takes tokens that were counted in the order of the text, if that is kept.
    #[inline(always)]
    fn follow(&mut self, _tokens: &[u32]) {}

    /// What follows of the document is another part of it.
    fn end_part(&mut self) {}

    /// What follows is text of another field than what came before.
    fn begin_field(&mut self) {}

    fn end_document(&mut self, terms: &mut [MemoTerm<Self::State>], now: Now);

    /// The same without what it knows of terms.
    #[must_use]
    fn anew(self) -> Self {
        Self::default()
    }

    /// Begins the next piece. Returns true if the last one had more than `keep` postings or terms,
    /// so that its scratch is freed.
    fn reset(&mut self, keep: usize) -> bool;
}

pub(crate) struct Counter<C: TokenCounting> {
    scanner: Scanner,
    found: FormCounter<C>,
    /// Codes of the lengths of the piece's documents.
    pub(crate) lengths: Vec<u8>,
    /// Likewise of the lengths of each field of the index.
    field_lengths: Vec<Vec<u8>>,
    /// A piece with more postings or terms leaves buffers that are not kept.
    keep: usize,
    /// What a long document may take.
    pub(crate) most_bytes: u64,
    /// What the last document would take, if that is more.
    pub(crate) needed: Option<u64>,
    /// Where parts of the next document begin.
    parts: Vec<usize>,
}

struct FormCounter<C: TokenCounting> {
    tokenizer: Tokenizer,
    memo: Memo<C::State>,
    mixed: Mixed,
    counting: C,
    now: Now,
    /// Indexed tokens of the current document so far.
    tokens: u32,
    /// Of each field of the index.
    field_tokens: Vec<u32>,
    /// Terms that are known when the document takes too much memory.
    most_terms: usize,
    /// Keys and stretches that the document may have, if their order is kept.
    most_tokens: u64,
    /// Keys and stretches of the document, before that and after it; the latter are not counted.
    fitting: u64,
    over: u64,
}

impl<C: TokenCounting> FormCounter<C> {
    /// Whether the document has so many terms that no more are learned.
    #[inline(always)]
    fn is_over(&mut self, tokens: usize) -> bool {
        let is_over = self.memo.len() > self.most_terms || self.fitting > self.most_tokens;
        *(if is_over { &mut self.over } else { &mut self.fitting }) += tokens as u64;
        is_over
    }

    fn count(&mut self, term: u32) {
        self.tokens += u32::from(term != NO_TERM);
        self.counting.count(self.memo.terms_mut(), &[term], self.now);
        self.counting.follow(&[term]);
    }
}

/// Terms that have keys, and their impacts.
struct PairsBatch {
    keys: [TokenKey; TOGETHER],
    spreads: [u32; TOGETHER],
    impacts: [u32; TOGETHER],
    len: usize,
}

impl Default for PairsBatch {
    fn default() -> Self {
        let keys = [TokenKey::default(); TOGETHER];
        Self { keys, spreads: [0; TOGETHER], impacts: [0; TOGETHER], len: 0 }
    }
}

impl<C: TokenCounting> FormCounter<C> {
    fn weigh(&mut self, terms: &[u32], impacts: &[u32]) {
        self.tokens += impacts.iter().sum::<u32>();
        self.counting.weigh(self.memo.terms_mut(), terms, impacts, self.now);
    }

    /// The cache misses of one term overlap those of the others.
    fn weigh_all(&mut self, batch: &mut PairsBatch) {
        let len = std::mem::take(&mut batch.len);
        let mut terms = [NO_TERM; TOGETHER];
        let terms = &mut terms[..len];
        let Self { memo, counting, .. } = self;
        let prefetch = |list: &[MemoTerm<C::State>], term| counting.prefetch(list, term);
        let mut unknown =
            memo.terms_of_keys(&batch.keys[..len], &batch.spreads[..len], terms, prefetch);
        while unknown != 0 {
            let at = unknown.trailing_zeros() as usize;
            terms[at] = memo.term_of_key(batch.keys[at]);
            unknown &= unknown - 1;
        }
        self.weigh(terms, &batch.impacts[..len]);
    }
}

impl<C: TokenCounting> FormCounter<C> {
    /// A whole token without a key.
    fn long_by(&mut self, token: &[u8], count: impl Fn(&mut Self, u32) + Copy) {
        if self.is_over(1) {
            return;
        }
        let mut lower = [0u8; 255];
        if let Some(lower) = lower.get_mut(..token.len()) {
            lower.copy_from_slice(token);
            lower.make_ascii_lowercase();
            let term = self.memo.term_of_long(lower);
            count(self, term);
        } else {
            self.mixed_by(token, count);
        }
    }

    fn mixed_by(&mut self, bytes: &[u8], count: impl Fn(&mut Self, u32) + Copy) {
        let key = stretch_key(bytes);
        let piece = self.memo.piece;
        if let Some(known) = key.and_then(|key| self.mixed.get(&key)) {
            let StretchMeaning { has_token, term, bytes, hash } = known.meaning;
            if term != NO_TERM && std::mem::replace(&mut known.seen, piece) != piece {
                self.memo.see_form(hash, bytes as usize, term);
            }
            // A stop word has its place too.
            if has_token {
                count(self, term);
            }
            return;
        }
        let mut meaning = StretchMeaning::default();
        let mut tokens = 0;
        let mut is_over = false;
        let bytes = self.memo.analysis().folded(bytes);
        self.tokenizer.for_each_token(&bytes, |token| {
            is_over |= self.is_over(1);
            if is_over {
                return;
            }
            let term = self.memo.term_of_token(token);
            count(self, term);
            tokens += 1;
            if key.is_some() {
                let (hash, bytes) = hash_of_token(token);
                meaning = StretchMeaning { has_token: true, term, bytes: bytes as u32, hash };
            }
        });
        if let Some(key) = key
            && tokens <= 1
            && !is_over
        {
            self.mixed.put(key, meaning, piece);
        }
    }
}

impl<C: TokenCounting> Stretches for FormCounter<C> {
    /// The cache misses of one overlap those of the others.
    #[inline(always)]
    fn ahead(&self) -> impl Fn(TokenKey) -> u32 {
        self.memo.prefetch()
    }

    #[inline(always)]
    fn keys(&mut self, keys: &[TokenKey], spreads: &[u32]) {
        if self.is_over(keys.len()) {
            return;
        }
        let mut terms = [NO_TERM; TOGETHER];
        let terms = &mut terms[..keys.len()];
        let Self { memo, counting, now, tokens, .. } = self;
        let unknown = memo.terms_of_keys(keys, spreads, terms, |list, term| {
            counting.prefetch(list, term);
        });
        let mut count = |list: &mut [MemoTerm<C::State>], terms: &[u32]| {
            *tokens += terms.iter().map(|&term| u32::from(term != NO_TERM)).sum::<u32>();
            counting.count(list, terms, *now);
        };
        if unknown == 0 {
            count(memo.terms_mut(), terms);
        } else {
            memo.learn_keys(keys, unknown, terms, count);
        }
        counting.follow(terms);
    }

    fn long(&mut self, token: &[u8]) {
        self.long_by(token, Self::count);
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.mixed_by(bytes, Self::count);
    }
}

impl<C: TokenCounting> Counter<C> {
    /// The memo takes at most `memo_bytes` from piece to piece.
    pub(crate) fn new(analysis: Analysis, memo_bytes: usize) -> Self {
        let found = FormCounter {
            tokenizer: analysis.tokenizer,
            memo: Memo::new(analysis, memo_bytes),
            mixed: Mixed::new(memo_bytes / 4),
            counting: C::default(),
            now: Now::default(),
            tokens: 0,
            field_tokens: Vec::new(),
            most_terms: usize::MAX,
            most_tokens: u64::MAX,
            fitting: 0,
            over: 0,
        };
        // Some 32 bytes each take no more than the memo, and no piece has more but with a huge
        // document.
        let keep = (memo_bytes / 32).min(1 << 19);
        let most_bytes = u64::MAX;
        let (lengths, field_lengths, needed, parts) = Default::default();
        let scanner = Scanner::new();
        Self { scanner, found, lengths, field_lengths, keep, most_bytes, needed, parts }
    }

    /// The index has this many fields.
    pub(crate) fn with_fields(&mut self, fields: usize) {
        self.found.memo.with_fields(fields);
        self.found.field_tokens.resize(fields, 0);
        self.field_lengths.resize_with(fields, Vec::new);
    }

    /// Indexed tokens of each field in the last document.
    pub(crate) fn field_tokens(&self) -> &[u32] {
        &self.found.field_tokens
    }

    /// The codes of the lengths of the piece's documents, and behind them those of each field.
    pub(crate) fn all_lengths(&self) -> Vec<u8> {
        let fields = self.field_lengths.iter().flatten();
        self.lengths.iter().chain(fields).copied().collect()
    }

    /// Whether tokens are counted in the order of the text.
    pub(crate) fn keep_order(&mut self, in_order: bool) {
        self.scanner = Scanner::new().in_order(in_order);
    }

    /// Where the parts of the next document begin, which matters only in order.
    pub(crate) fn parts(&mut self, starts: &[usize]) {
        self.parts.clear();
        self.parts.extend_from_slice(starts);
    }

    /// Counts the next document of the piece; returns its indexed tokens. No more of one that
    /// takes too much.
    pub(crate) fn document(&mut self, text: &[u8], fields: &FieldTexts) -> u32 {
        let mut parts = std::mem::take(&mut self.parts);
        if !self.scanner.is_in_order() {
            parts.clear();
        }
        let field_bytes = fields.text.len();
        let length = self.counted_document(text, field_bytes, |scanner, found, text| {
            let mut start = 0;
            for end in parts.iter().copied().chain([text.len()]) {
                let text = found.memo.analysis().lowered(&text[start..end]);
                match found.tokenizer {
                    // It is not cut where others are, and has no keys.
                    Tokenizer::Whitespace => found.mixed(&text),
                    _ => scanner.scan(&text, found),
                }
                found.counting.end_part();
                start = end;
            }
            // What only samples the input knows none.
            if !fields.is_empty() && found.memo.fields() > 0 {
                found.fields(scanner, fields);
            }
        });
        for (codes, &tokens) in self.field_lengths.iter_mut().zip(&self.found.field_tokens) {
            codes.push(code_below(tokens));
        }
        parts.clear();
        self.parts = parts;
        length
    }

    /// Counts the next document of the piece, a vector; returns the sum of its impacts. As
    /// [`document`](Self::document) for the rest.
    pub(crate) fn vector(&mut self, vector: Vector<'_>) -> u32 {
        self.counted_document(vector.bytes(), 0, |_, found, pairs| {
            let mut pairs = str::from_utf8(pairs).expect("a vector is UTF-8");
            let mut batch = PairsBatch::default();
            while !pairs.is_empty() {
                let (impact, term) = vector::take(&mut pairs);
                if impact == 0 || found.is_over(1) {
                    continue;
                }
                match key_of(term.as_bytes()) {
                    Some(key) => {
                        batch.spreads[batch.len] = found.memo.prefetch()(key);
                        batch.keys[batch.len] = key;
                        batch.impacts[batch.len] = impact;
                        batch.len += 1;
                        if batch.len == TOGETHER {
                            found.weigh_all(&mut batch);
                        }
                    }
                    None => {
                        let term = found.memo.term_of_long(term.as_bytes());
                        found.weigh(&[term], &[impact]);
                    }
                }
            }
            found.weigh_all(&mut batch);
        })
    }

    #[inline(always)]
    fn counted_document(
        &mut self,
        text: &[u8],
        field_bytes: usize,
        count: impl FnOnce(&mut Scanner, &mut FormCounter<C>, &[u8]),
    ) -> u32 {
        self.found.now.document += 1;
        self.found.tokens = 0;
        // A `memset` of no bytes at the address of an empty vector, where no page is, costs 100 ns
        // on processors with AVX-512: its masked store is one that the processor has to look into.
        if !self.found.field_tokens.is_empty() {
            self.found.field_tokens.fill(0);
        }
        let of_text = DOCUMENT_TIMES * (text.len() + field_bytes) as u64;
        let before = self.found.memo.len();
        let is_long = text.len() + field_bytes > LONG_BYTES;
        let terms = (self.most_bytes.saturating_sub(of_text) / LONG_TERM_BYTES) as usize;
        self.found.most_terms = if is_long { before.saturating_add(terms) } else { usize::MAX };
        let ordered = is_long && self.scanner.is_in_order();
        let tokens = self.most_bytes.saturating_sub(of_text) / ORDERED_TOKEN_BYTES;
        self.found.most_tokens = if ordered { tokens } else { u64::MAX };
        self.found.fitting = 0;
        self.found.over = 0;
        count(&mut self.scanner, &mut self.found, text);
        self.found.counting.end_document(self.found.memo.terms_mut(), self.found.now);
        let FormCounter { fitting, over, .. } = self.found;
        self.needed = (over > 0).then(|| {
            // The rest has no more new terms than what came before it.
            let more = (over as f64 / fitting.max(1) as f64 * terms as f64) as u64;
            let ordered = if ordered { ORDERED_TOKEN_BYTES * (fitting + over) } else { 0 };
            of_text + ordered + LONG_TERM_BYTES * (terms as u64 + more + 1)
        });
        self.lengths.push(code_below(self.found.tokens));
        self.found.tokens
    }

    pub(crate) fn documents(&self) -> u32 {
        self.found.now.document - self.found.now.before
    }

    /// What was counted, the terms with what is kept with them, and the documents' numbers.
    pub(crate) fn counted(&mut self) -> (&mut C, &mut Memo<C::State>, Now) {
        (&mut self.found.counting, &mut self.found.memo, self.found.now)
    }

    /// The counts of the piece, which has no more documents, as far as they are known without its
    /// terms.
    pub(crate) fn piece_counts(&mut self) -> PieceCounts {
        self.found.mixed.end_piece();
        let forms = self.found.memo.end_piece();
        PieceCounts { documents: self.documents(), postings: 0, list_bytes: 0, forms }
    }

    /// Begins the next piece. Returns true if the last one was so large that its scratch is freed.
    pub(crate) fn reset(&mut self) -> bool {
        self.lengths.clear();
        self.field_lengths.iter_mut().for_each(Vec::clear);
        // Those of a document that was left out are not of the next one.
        self.parts.clear();
        let now = &mut self.found.now;
        now.before = now.document;
        // Long before documents can no longer be counted.
        const FEW_LEFT: u32 = u32::MAX / 2;
        if now.document > FEW_LEFT {
            *now = Now::default();
            self.found.counting = std::mem::take(&mut self.found.counting).anew();
            self.found.memo.forget();
            self.found.mixed.forget();
        }
        if self.found.memo.forget_if_full() {
            self.found.mixed.forget();
        }
        let large = self.found.counting.reset(self.keep);
        if large {
            self.scanner = Scanner::new().in_order(self.scanner.is_in_order());
        }
        large
    }
}

/// Bytes that a long document takes for each of its terms, until they are in the run.
const LONG_TERM_BYTES: u64 = 300;

/// The same for each token whose position is kept: its term, its place, and that as bytes.
const ORDERED_TOKEN_BYTES: u64 = 12;

/// Bytes that a term's first posting of a piece counts. The owner, who knows the gap, writes it: 4
/// bytes do for nearly all, and the slack of the list's slices pays for more.
pub(crate) const FIRST_POSTING_BYTES: u64 = 4;
