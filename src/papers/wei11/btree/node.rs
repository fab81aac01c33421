//! A node of the B-tree: 31 terms in 512 bytes, which a warp of 32 threads reads in four lines of
//! 128 bytes (Table II of the paper).
//!
//! ```text
//! byte    0  terms in the node
//!         4  31 strings      where in the pool the bytes behind the first four lie, or NONE
//!       128  leaf            1 or 0
//!       132  31 postings     numbers of the terms' records
//!       256  32 children     numbers of nodes, NONE where there is none
//!       384  31 caches       the first four bytes of each term
//!       508  padding
//! ```
//!
//! A cache is a big-endian number, padded with zeros, so that numbers are ordered as terms are:
//! terms hold no NUL. Caches of no term, and the padding, are above those of all terms: UTF-8 has
//! no byte of 255. So 32 comparisons count the terms below another one, whatever the node holds.

use super::NONE;
use std::mem::{offset_of, size_of};

/// Least children of an inner node that is not the root.
pub(crate) const DEGREE: usize = 16;

pub(crate) const MOST_TERMS: usize = 2 * DEGREE - 1;

pub(crate) const NO_TERM: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Node {
    pub count: u32,
    /// See [`strings`](super::strings).
    pub strings: [u32; MOST_TERMS],
    pub leaf: u32,
    pub postings: [u32; MOST_TERMS],
    pub children: [u32; MOST_TERMS + 1],
    /// The first bytes of each term; the last one is the padding.
    pub caches: [u32; MOST_TERMS + 1],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeTerm {
    pub cache: u32,
    pub string: u32,
    pub postings: u32,
}

const _: () = assert!(
    size_of::<Node>() == 512
        && offset_of!(Node, strings) == 4
        && offset_of!(Node, leaf) == 128
        && offset_of!(Node, postings) == 132
        && offset_of!(Node, children) == 256
        && offset_of!(Node, caches) == 384
);

/// Moves `list[at..count]` one place up and puts `value` at `at`.
#[inline]
fn insert(list: &mut [u32], count: usize, at: usize, value: u32) {
    list.copy_within(at..count, at + 1);
    list[at] = value;
}

impl Node {
    pub(crate) const EMPTY_LEAF: Self = Self {
        count: 0,
        strings: [NONE; MOST_TERMS],
        leaf: 1,
        postings: [NONE; MOST_TERMS],
        children: [NONE; MOST_TERMS + 1],
        caches: [NO_TERM; MOST_TERMS + 1],
    };

    pub(crate) fn above(child: u32) -> Self {
        let mut node = Self { leaf: 0, ..Self::EMPTY_LEAF };
        node.children[0] = child;
        node
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.count as usize == MOST_TERMS
    }

    /// Puts a term before the `at`-th of a leaf that is not full.
    pub(crate) fn insert_term(&mut self, at: usize, term: NodeTerm) {
        let NodeTerm { cache, string, postings } = term;
        let count = self.count as usize;
        insert(&mut self.caches, count, at, cache);
        insert(&mut self.strings, count, at, string);
        insert(&mut self.postings, count, at, postings);
        self.count += 1;
    }

    /// Splits off the upper half of a full node, behind its middle term, which is returned too.
    pub(crate) fn split(&mut self) -> (Self, NodeTerm) {
        const MIDDLE: usize = DEGREE - 1;
        let mut upper = Self { count: MIDDLE as u32, leaf: self.leaf, ..Self::EMPTY_LEAF };
        upper.caches[..MIDDLE].copy_from_slice(&self.caches[DEGREE..MOST_TERMS]);
        upper.strings[..MIDDLE].copy_from_slice(&self.strings[DEGREE..]);
        upper.postings[..MIDDLE].copy_from_slice(&self.postings[DEGREE..]);
        upper.children[..DEGREE].copy_from_slice(&self.children[DEGREE..]);
        let middle = NodeTerm {
            cache: self.caches[MIDDLE],
            string: self.strings[MIDDLE],
            postings: self.postings[MIDDLE],
        };
        self.caches[MIDDLE..].fill(NO_TERM);
        self.strings[MIDDLE..].fill(NONE);
        self.postings[MIDDLE..].fill(NONE);
        self.children[DEGREE..].fill(NONE);
        self.count = MIDDLE as u32;
        (upper, middle)
    }

    /// Puts the middle term of the `at`-th child, which was split, before the `at`-th term, and the
    /// child's upper half behind it. The node is not full.
    pub(crate) fn insert_split(&mut self, at: usize, middle: NodeTerm, upper: u32) {
        let children = self.count as usize + 1;
        insert(&mut self.children, children, at + 1, upper);
        self.insert_term(at, middle);
    }
}
