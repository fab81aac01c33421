//! How do terms become prose? A clause has 5 to 13 tokens and ends with a comma, another mark or a
//! full stop; sentences begin with a capital letter; a paragraph has 8 sentences on average.
//!
//! The last token of every clause is one of the document's *topics*: a few terms, drawn like all
//! others but never stop words, that come again and again as the terms of a real text do. The other
//! tokens have so many more stop words that the share of every term in the collection stays that of
//! its law.
//!
//! The loop over the tokens of a clause is where the time goes: it draws, copies 16 bytes and
//! moves on by the length of the word; one token in eight is spelled instead.

#![forbid(unsafe_code)]

use super::Model;
use super::random::Random;
use super::syllables::LONGEST_BYTES;
use super::words::STOP_WORDS;
use super::zipf::DIRECT;

/// Tokens of the shortest clause.
const SHORTEST_CLAUSE: u32 = 5;
/// Lengths that a clause may have.
const CLAUSE_LENGTHS: u32 = 9;

/// By this factor stop words are drawn more often than their share, since topics are none. The mean
/// clause has 9 tokens.
pub(super) const STOP_WORDS_BOOST: f64 = {
    let mean = SHORTEST_CLAUSE as f64 + (CLAUSE_LENGTHS - 1) as f64 / 2.0;
    mean / (mean - 1.0)
};

/// Topics that a document has at most.
const TOPICS: usize = 16;
/// Tokens for which a document has one more topic.
const TOKENS_A_TOPIC: u32 = 32;

/// Room for the longest clause, with its marks, and more.
const CLAUSE_ROOM: usize = 4096;

const _: () = assert!(
    CLAUSE_ROOM > (SHORTEST_CLAUSE + CLAUSE_LENGTHS) as usize * (LONGEST_BYTES + 1) + 1024,
    "a clause fits"
);

/// What prose is written with in a format.
pub(super) struct Style {
    /// Between paragraphs.
    pub(super) paragraph: &'static str,
    /// What now and then stands around a clause.
    pub(super) around: [(&'static str, &'static str); 8],
    /// What now and then stands between clauses, instead of a comma.
    pub(super) between: [&'static str; 4],
}

/// Writes documents into a buffer.
pub(super) struct Text<'m> {
    model: &'m Model,
    /// Zeros behind `len`, or what was written earlier.
    buffer: Vec<u8>,
    len: usize,
    pub(super) random: Random,
    topics: [u32; TOPICS],
    topics_used: u32,
    /// The ranks that were written, if someone wants them.
    kept: Option<Vec<u32>>,
}

impl<'m> Text<'m> {
    pub(super) fn new(model: &'m Model, random: Random) -> Self {
        let (topics, kept) = ([0; TOPICS], None);
        Self { model, buffer: Vec::new(), len: 0, random, topics, topics_used: 1, kept }
    }

    /// Lets the ranks be kept from here on, in the order of the text.
    pub(super) fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The ranks that were kept since the last call.
    pub(super) fn take_kept(&mut self) -> Vec<u32> {
        self.kept.replace(Vec::new()).unwrap_or_default()
    }

    /// Begins a document of `tokens` tokens.
    pub(super) fn begin(&mut self, random: Random, tokens: u32) {
        self.random = random;
        self.topics_used = (tokens / TOKENS_A_TOPIC).clamp(2, TOPICS as u32);
        for topic in &mut self.topics[..self.topics_used as usize] {
            *topic = loop {
                let rank = self.model.ranks.draw(&mut self.random);
                if rank >= STOP_WORDS.len() as u32 {
                    break rank;
                }
            };
        }
    }

    /// What was written.
    pub(super) fn written(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Forgets all but the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives memory back beyond `bytes`.
    pub(super) fn shrink(&mut self, bytes: usize) {
        self.buffer.truncate(bytes.max(self.len));
        self.buffer.shrink_to(bytes);
    }

    /// Makes room for `bytes` more.
    #[inline]
    fn room(&mut self, bytes: usize) {
        if self.buffer.len() < self.len + bytes {
            self.buffer.resize((self.len + bytes) * 3 / 2, 0);
        }
    }

    /// Writes bytes as they are.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len());
        self.buffer[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Writes `count` tokens, the last of them a topic, with a blank behind each. The caller has made
    /// room.
    #[inline]
    fn clause(&mut self, count: u32) {
        let model = self.model;
        let mut random = self.random.clone();
        let mut at = self.len;
        for _ in 1..count {
            let symbol = model.ranks.symbol(random.bits());
            if symbol < DIRECT {
                let word = model.words.direct(symbol);
                self.buffer[at..][..16].copy_from_slice(word.bytes());
                at += word.len();
                if let Some(kept) = &mut self.kept {
                    kept.push(symbol);
                }
            } else {
                let rank = model.ranks.in_segment(symbol, &mut random);
                self.len = at;
                self.word(rank);
                at = self.len;
            }
        }
        self.len = at;
        let topic = self.topics[random.below(self.topics_used) as usize % TOPICS];
        self.random = random;
        self.word(topic);
    }

    /// Writes the word of a rank and a blank. The caller has made room.
    fn word(&mut self, rank: u32) {
        if let Some(kept) = &mut self.kept {
            kept.push(rank);
        }
        if rank < DIRECT {
            let word = self.model.words.direct(rank);
            self.buffer[self.len..][..16].copy_from_slice(word.bytes());
            self.len += word.len();
        } else {
            let word = self.model.words.spelled(rank);
            let (bytes, len) = word.padded();
            self.buffer[self.len..][..LONGEST_BYTES].copy_from_slice(bytes);
            self.len += len;
            self.buffer[self.len] = b' ';
            self.len += 1;
        }
    }

    /// Writes `count` tokens without marks, the first with a capital letter: a title, or the text of
    /// a link.
    pub(super) fn phrase(&mut self, mut count: u32) {
        let start = self.len;
        while count > 0 {
            let now = count.min(SHORTEST_CLAUSE + CLAUSE_LENGTHS);
            self.room(CLAUSE_ROOM);
            self.clause(now);
            count -= now;
        }
        if self.len > start {
            self.buffer[start].make_ascii_uppercase();
            self.len -= 1;
        }
    }

    /// Writes `left` tokens of sentences and paragraphs.
    pub(super) fn prose(&mut self, mut left: u32, style: &Style) {
        let mut capital = true;
        while left > 0 {
            self.room(CLAUSE_ROOM);
            let bits = self.random.bits();
            let eight = |shift: u32| (bits >> shift) as u32 & 255;
            let count = (SHORTEST_CLAUSE + (eight(0) * CLAUSE_LENGTHS >> 8)).min(left);
            left -= count;
            // One clause in 32 has something around it.
            let around = (eight(8) < 8).then(|| style.around[eight(8) as usize % 8]);
            if let Some((open, _)) = around {
                self.push(open.as_bytes());
            }
            let start = self.len;
            self.clause(count);
            if capital {
                self.buffer[start].make_ascii_uppercase();
            }
            self.len -= 1;
            if let Some((_, close)) = around {
                self.push(close.as_bytes());
            }
            capital = left == 0 || eight(16) < 115;
            if capital {
                let end = match eight(24) {
                    0..10 => "?",
                    10..14 => "!",
                    _ => ".",
                };
                self.push(end.as_bytes());
                if left > 0 {
                    let paragraph = eight(32) < 32;
                    self.push(if paragraph { style.paragraph } else { " " }.as_bytes());
                }
            } else {
                let rare = eight(24) < 24;
                self.push(
                    if rare { style.between[eight(32) as usize % 4] } else { ", " }.as_bytes(),
                );
            }
        }
    }
}
