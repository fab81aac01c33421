//! An upper bound of what a block takes of the arenas of a device, which the host checks before a
//! launch, so that no arena is full in the middle of a block.
//!
//! The trees have at least 15 terms in every node but the root. A list of `b` bytes takes slices of
//! at most 16 + 8/3 `b` bytes: each slice but the last is used except for 4 of at least 16 bytes,
//! and the last one is no longer than the others together. A warp takes arenas by chunks, of which
//! it leaves less than an eighth, and one chunk of each arena when it ends. The constants are those
//! of `kernels/wei11/btree.cu`.

use crate::codec::vbyte;
use crate::papers::wei11::btree::node::DEGREE;
use crate::text::trie_collection::TRIE_COLLECTIONS;

/// Units of each arena that a warp takes at once.
const CHUNK: TreeRoom = TreeRoom { nodes: 8, string_words: 256, records: 64, slice_units: 1024 };
const UNIT_BYTES: TreeRoom = TreeRoom { nodes: 512, string_words: 8, records: 32, slice_units: 8 };

pub(crate) const COUNTERS: usize = 9;

/// Units of the four arenas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeRoom {
    /// Of 512 bytes.
    pub nodes: u64,
    /// Of 8 bytes.
    pub string_words: u64,
    /// Of 32 bytes.
    pub records: u64,
    /// Of 8 bytes.
    pub slice_units: u64,
}

impl TreeRoom {
    fn each(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            nodes: f(self.nodes, other.nodes),
            string_words: f(self.string_words, other.string_words),
            records: f(self.records, other.records),
            slice_units: f(self.slice_units, other.slice_units),
        }
    }

    fn all(self) -> [u64; 4] {
        [self.nodes, self.string_words, self.records, self.slice_units]
    }

    pub(super) fn units(self) -> [u32; 4] {
        // More have no numbers, and are never taken.
        self.all().map(|units| units.min(u64::from(u32::MAX) - 1) as u32)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.each(UNIT_BYTES, |units, bytes| units * bytes).all().iter().sum()
    }

    /// At most `bytes`, in the proportion in which English text fills the arenas.
    pub(crate) fn of_bytes(bytes: u64) -> Self {
        let share =
            |percent: u64, unit: u64| (bytes / 100 * percent / unit).min(u64::from(u32::MAX) - 1);
        Self {
            nodes: share(30, UNIT_BYTES.nodes),
            string_words: share(15, UNIT_BYTES.string_words),
            records: share(30, UNIT_BYTES.records),
            slice_units: share(25, UNIT_BYTES.slice_units),
        }
    }

    pub(crate) fn holds(self, other: Self) -> bool {
        self.all().iter().zip(other.all()).all(|(&have, need)| have >= need)
    }
}

/// The counters of a run, once a launch is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    pub taken: TreeRoom,
    /// How often each arena was full, 16 bits each: the run is lost.
    pub full: u64,
    pub terms: u64,
    pub postings: u64,
    /// Without the last posting of each term.
    pub list_bytes: u64,
}

impl From<[u64; COUNTERS]> for TreeUsage {
    fn from(
        [nodes, string_words, records, slice_units, _, full, terms, postings, list_bytes]: [u64; COUNTERS],
    ) -> Self {
        let taken = TreeRoom { nodes, string_words, records, slice_units };
        Self { taken, full, terms, postings, list_bytes }
    }
}

/// Tokens still to be indexed, or under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComingTokens {
    pub tokens: u64,
    pub bytes: u64,
    /// Of the run, with those of these tokens.
    pub documents: u32,
}

impl TreeUsage {
    /// Upper bound of the arenas' use once what comes is indexed by `warps` warps.
    pub(crate) fn with(&self, coming: &ComingTokens, warps: u32) -> TreeRoom {
        let terms = self.terms + coming.tokens;
        let roots = terms.min(TRIE_COLLECTIONS as u64);
        // A gap below the number of documents; a second byte of a tf stands for 128 tokens.
        let posting_bytes = vbyte::bytes(2 * u64::from(coming.documents) + 1) as u64 + 1;
        let list_bytes = self.list_bytes + coming.tokens * posting_bytes;
        let words = (coming.bytes + 2 * coming.tokens) / 8;
        let chunked = |units: u64| units + units / 7 + 1;
        let needed = TreeRoom {
            nodes: roots + terms / (DEGREE as u64 - 1),
            string_words: self.taken.string_words + chunked(words),
            records: terms,
            slice_units: chunked(2 * terms.min(list_bytes) + list_bytes / 3 + 1),
        };
        needed.each(CHUNK, |units, chunk| units + chunk * u64::from(warps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_are_as_large_as_they_were_asked_for() {
        for bytes in [0, 1 << 20, 100 << 30, 1 << 60] {
            let room = TreeRoom::of_bytes(bytes);
            assert!(
                room.bytes() <= bytes
                    && room.all().iter().all(|&units| units < u64::from(u32::MAX))
            );
        }
        assert!(TreeRoom::of_bytes(1 << 30).bytes() > (1 << 30) / 100 * 99);
        let small = TreeRoom { records: 1, ..TreeRoom::default() };
        assert!(small.holds(TreeRoom::default()) && !TreeRoom::default().holds(small));
    }

    #[test]
    fn what_comes_is_never_less_than_what_is_there() {
        let usage = TreeUsage::from([10, 20, 30, 40, 7, 0, 5, 9, 11]);
        let none = usage.with(&ComingTokens::default(), 0);
        assert_eq!((none.records, none.nodes, none.string_words), (5, 5, 21));
        let some = usage.with(&ComingTokens { tokens: 1, bytes: 2, documents: 1 }, 3);
        assert_eq!(some.records, 6 + 3 * 64);
        assert!(some.holds(none));
    }
}
