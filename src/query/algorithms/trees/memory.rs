//! The memory of searches by trees.

use std::ops::Range;

/// The documents of a window, a bit each.
pub(super) type Bits = Vec<u64>;

#[derive(Debug, Default)]
pub(crate) struct TreeMemory {
    /// Bitmaps that are not used.
    pub(super) spare: Vec<Bits>,
    /// By document of the window; arbitrary where none matches.
    pub(super) sums: Vec<f32>,
    /// The same for the frequencies of a word in several fields.
    pub(super) frequencies: Vec<f32>,
    /// Of each document, the number of optional parts that match, where two at least have to.
    pub(super) matched: Vec<u32>,
    /// By the number of the phrase.
    phrases: Vec<FoundPhrase>,
    pub(super) searched: PhraseMemory,
    pub(super) few: FewMemory,
    pub(super) blends: BlendMemory,
}

/// Room for one phrase after the other.
#[derive(Debug, Default)]
pub(super) struct PhraseMemory {
    /// By the number of the word.
    pub(super) positions: Vec<PositionsMemory>,
    pub(super) starts: Vec<u32>,
}

impl PhraseMemory {
    /// Begins a phrase of this many words.
    pub(super) fn begin(&mut self, words: usize) {
        self.positions.resize_with(words.max(self.positions.len()), PositionsMemory::default);
        self.positions.iter_mut().for_each(|memory| memory.block = None);
    }
}

/// Offsets in the window of the documents that have a phrase, rising, and how often each has it.
pub(super) type FoundPhrase = Vec<(u32, u32)>;

impl TreeMemory {
    pub(super) fn phrase(&mut self, number: usize) -> &mut FoundPhrase {
        if self.phrases.len() <= number {
            self.phrases.resize(number + 1, Vec::new());
        }
        &mut self.phrases[number]
    }
}

/// The candidates that are left, and room for a mark on each.
#[derive(Debug, Default)]
pub(crate) struct FewMemory {
    pub(super) docids: Vec<u32>,
    pub(super) marks: Vec<bool>,
    pub(super) scores: Vec<f32>,
    pub(super) frequencies: Vec<f32>,
}

/// By document of a window: what each word scores there, and the sums of those that are known; and
/// the documents that may still be among the best.
#[derive(Debug, Default)]
pub(crate) struct BlendMemory {
    pub(super) words: Vec<Vec<f32>>,
    pub(super) sums: Vec<f32>,
    pub(super) found: Vec<u32>,
}

impl BlendMemory {
    /// Begins a window of this many documents.
    pub(super) fn begin(&mut self, words: usize, documents: usize) {
        self.words.resize(words, Vec::new());
        self.words.iter_mut().for_each(|scores| scores.resize(documents, 0.0));
        self.sums.clear();
        self.sums.resize(documents, 0.0);
        self.found.clear();
    }
}

/// The positions of one term of a phrase.
#[derive(Debug, Default)]
pub(crate) struct PositionsMemory {
    /// The block that is open.
    pub(super) block: Option<usize>,
    /// Where the positions of each of its postings begin among those of the block, and end.
    pub(super) starts: Vec<u32>,
    /// The positions of the block.
    pub(super) all: usize,
    pub(super) is_whole: bool,
    /// The sums of all values of the block up to each, if it was read whole, and scratch.
    pub(super) sums: Vec<u32>,
    pub(super) ends: Vec<u32>,
    /// Those of the posting if it was read alone; then room.
    pub(super) alone: Vec<u32>,
    /// Where those of the posting are in the sums.
    pub(super) of_posting: Range<usize>,
    /// The positions of the posting, where they are asked for one by one.
    pub(super) found: Vec<u32>,
}
