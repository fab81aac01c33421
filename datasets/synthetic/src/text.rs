//! Makes prose of terms. A clause has 5 to 13 tokens and ends with a comma, another mark or a full
//! stop; sentences begin with a capital letter; one sentence in eight ends its paragraph.
//!
//! The last token of every clause is one of the document's *topics*: a few terms, drawn like all
//! others but never stop words, that come again and again as the terms of a real text do. The other
//! tokens have so many more stop words that the share of every term in the collection stays that of
//! its law.
//!
//! In a clustered collection some of these other tokens, too, are drawn from a list: that of the
//! document's cluster, a run of neighbouring documents. The list is drawn like all others from the
//! law of the collection, so that the share of every term stays.
//!
//! The loop over the tokens of a clause is where the time goes: it draws, copies 16 bytes and
//! moves on by the length of the word; one token in eight is spelled instead.

#![forbid(unsafe_code)]

use crate::random::{Purpose, Random};
use crate::syllables::{LONGEST_BYTES, Letters};
use crate::words::Word;
use crate::zipf::DIRECT;
use crate::{Model, Recipe};

const SHORTEST_CLAUSE: u32 = 5;
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

/// Terms of a cluster's list. A frequent term is in it many times.
const CLUSTER_TERMS: u32 = 512;

/// Room for the longest clause, with its marks, and more.
const CLAUSE_ROOM: usize = 4096;

const _: () = assert!(
    CLAUSE_ROOM > (SHORTEST_CLAUSE + CLAUSE_LENGTHS) as usize * (LONGEST_BYTES + 1) + 1024,
    "a clause fits"
);

/// What prose is written with in a format.
pub(super) struct Style {
    /// What now and then stands around a clause.
    around: [(&'static str, &'static str); 8],
    /// What stands behind a clause, with equal probability.
    ends: [End; 256],
}

/// What stands behind a clause: up to 14 bytes, how many they are, and 1 if the next begins a
/// sentence. It is copied whole.
#[derive(Clone, Copy)]
struct End([u8; 16]);

impl End {
    const fn new(parts: [&str; 2], sentence: bool) -> Self {
        let mut bytes = [0; 16];
        let mut len = 0;
        let mut part = 0;
        while part < 2 {
            let mut at = 0;
            while at < parts[part].len() {
                bytes[len] = parts[part].as_bytes()[at];
                (len, at) = (len + 1, at + 1);
            }
            part += 1;
        }
        assert!(len <= 14, "the end of a clause is too long");
        bytes[14] = len as u8;
        bytes[15] = sentence as u8;
        Self(bytes)
    }
}

impl Style {
    /// Takes what stands between paragraphs, what now and then stands around a clause, and what
    /// now and then stands behind it instead of a comma.
    pub(super) const fn new(
        paragraph: &'static str,
        around: [(&'static str, &'static str); 8],
        between: [&'static str; 4],
    ) -> Self {
        let mut ends = [End::new([", ", ""], false); 256];
        let mut n = 0;
        // 112 of 256 clauses end a sentence, and 14 of those a paragraph; 14 have a rare mark.
        while n < 126 {
            ends[n] = match n {
                0..8 => End::new(["?", " "], true),
                8..12 => End::new(["!", " "], true),
                12..98 => End::new([".", " "], true),
                98..112 => End::new([".", paragraph], true),
                _ => End::new([between[n % 4], ""], false),
            };
            n += 1;
        }
        Self { around, ends }
    }
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
    cluster: Option<Cluster>,
    /// The ranks that were written, if someone wants them.
    kept: Option<Vec<u32>>,
}

/// What the documents of a cluster are about.
struct Cluster {
    /// File and number of the cluster.
    place: (u32, u64),
    terms: Vec<u32>,
    /// The part of 2^32 by which a token comes from here.
    share: u32,
}

impl<'m> Text<'m> {
    pub(super) fn new(model: &'m Model, random: Random) -> Self {
        let topics = [0; TOPICS];
        let kept = None;
        let cluster = None;
        Self { model, buffer: Vec::new(), len: 0, random, topics, topics_used: 1, cluster, kept }
    }

    /// Tells which document comes next, so that it is about what its neighbours are about.
    pub(super) fn enter(&mut self, file: u32, number: u64) {
        let Recipe { seed, clustering, cluster, .. } = self.model.recipe;
        if clustering == 0.0 {
            return;
        }
        let place = (file, number / u64::from(cluster.get()));
        if self.cluster.as_ref().is_some_and(|cluster| cluster.place == place) {
            return;
        }
        let mut random = Random::new(seed, Purpose::Clusters, place.0.into(), place.1);
        let terms = (0..CLUSTER_TERMS).map(|_| self.model.content_term(&mut random)).collect();
        let share = (clustering * f64::from(u32::MAX)) as u32;
        self.cluster = Some(Cluster { place, terms, share });
    }

    /// Lets the ranks be recorded from here on, in the order of the text.
    pub(super) fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The ranks that were recorded since the last call.
    pub(super) fn take_kept(&mut self) -> Vec<u32> {
        self.kept.replace(Vec::new()).unwrap_or_default()
    }

    /// Begins a document of `tokens` tokens.
    pub(super) fn begin(&mut self, random: Random, tokens: u32) {
        self.random = random;
        self.topics_used = (tokens / TOKENS_A_TOPIC).clamp(2, TOPICS as u32);
        for topic in &mut self.topics[..self.topics_used as usize] {
            *topic = self.model.content_term(&mut self.random);
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

    /// Writes `count` tokens, the last of them a topic, with a blank behind each. The caller has
    /// made room.
    #[inline]
    fn clause(&mut self, count: u32) {
        let ranks = &self.model.ranks;
        let words = &self.model.words;
        let mut random = self.random.clone();
        let mut at = self.len;
        let buffer = &mut self.buffer[..];
        for token in 1..=count {
            let rank = match &self.cluster {
                _ if token == count => {
                    self.topics[random.below(self.topics_used) as usize % TOPICS]
                }
                Some(cluster) if random.below(u32::MAX) < cluster.share => {
                    cluster.terms[random.below(CLUSTER_TERMS) as usize]
                }
                _ => {
                    let symbol = ranks.symbol(random.bits());
                    if symbol < DIRECT {
                        symbol
                    } else {
                        // A copy, so that the numbers of all other tokens stay in registers.
                        let mut aside = random.clone();
                        let rank = ranks.in_segment(symbol, &mut aside);
                        random = aside;
                        rank
                    }
                }
            };
            at = if rank < DIRECT {
                put(buffer, at, words.direct(rank))
            } else {
                put_spelled(buffer, at, &words.spelled(rank))
            };
            if let Some(kept) = &mut self.kept {
                kept.push(rank);
            }
        }
        (self.random, self.len) = (random, at);
    }

    /// Writes `count` tokens without marks, the first with a capital letter: a title, or the text
    /// of a link.
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
        if left == 0 {
            return;
        }
        // 32 where a sentence begins, the bit that makes a letter of ASCII small.
        let mut capital = 32;
        let mut end_bytes = 0;
        while left > 0 {
            self.room(CLAUSE_ROOM);
            let bits = self.random.bits();
            let eight = |shift: u32| (bits >> shift) as u32 & 255;
            let count = (SHORTEST_CLAUSE + ((eight(0) * CLAUSE_LENGTHS) >> 8)).min(left);
            left -= count;
            // One clause in 32 has something around it.
            let around = (eight(8) < 8).then(|| style.around[eight(8) as usize % 8]);
            if let Some((open, _)) = around {
                self.push(open.as_bytes());
            }
            let start = self.len;
            self.clause(count);
            let first = &mut self.buffer[start];
            *first &= !(capital * u8::from(first.is_ascii_lowercase()));
            self.len -= 1;
            if let Some((_, close)) = around {
                self.push(close.as_bytes());
            }
            // How it ends could not be guessed, so there is no branch.
            let End(end) = &style.ends[eight(16) as usize];
            self.buffer[self.len..][..16].copy_from_slice(end);
            end_bytes = usize::from(end[14]);
            self.len += end_bytes;
            capital = end[15] * 32;
        }
        self.len -= end_bytes;
        self.push(b".");
    }
}

/// Writes a word of the table and a blank; returns where it ends.
#[inline(always)]
fn put(buffer: &mut [u8], at: usize, word: &Word) -> usize {
    buffer[at..][..16].copy_from_slice(word.bytes());
    at + word.len()
}

/// Writes a word that was spelled and a blank; returns where it ends.
#[inline(always)]
fn put_spelled(buffer: &mut [u8], at: usize, word: &Letters) -> usize {
    let (bytes, len) = word.padded();
    buffer[at..][..LONGEST_BYTES].copy_from_slice(bytes);
    buffer[at + len] = b' ';
    at + len + 1
}
