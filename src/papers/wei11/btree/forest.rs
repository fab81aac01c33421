//! Finds or inserts terms in the B-trees: searches from the root of the trie collection down,
//! inserts at the leaf that was reached, and splits full nodes on the way (section III.D.2 of the
//! paper, which has the same steps for one thread and for 32).
//!
//! All nodes of all trees lie in one arena, in chunks that never move, so that growing copies
//! nothing. A term costs 16 to 34 bytes in nodes and one or more words in the pool.

use super::NONE;
#[cfg(test)]
use super::below::Portable;
use super::below::Vectors;
use super::node::{MOST_TERMS, Node, NodeTerm};
use super::strings::{SoughtString, Strings};
use crate::codec::prefetch::prefetch;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::cmp::Ordering;

/// Nodes of a chunk, as a power of two.
const CHUNK_BITS: u32 = 8;

#[derive(Default)]
struct NodeArena {
    chunks: Vec<Vec<Node>>,
    used: u32,
}

impl NodeArena {
    #[inline(always)]
    fn get(&self, node: u32) -> &Node {
        &self.chunks[(node >> CHUNK_BITS) as usize][node as usize % (1 << CHUNK_BITS)]
    }

    #[inline(always)]
    fn get_mut(&mut self, node: u32) -> &mut Node {
        &mut self.chunks[(node >> CHUNK_BITS) as usize][node as usize % (1 << CHUNK_BITS)]
    }

    fn push(&mut self, node: Node) -> u32 {
        let number = self.used;
        assert!(number < NONE, "a run's nodes have 32 bits");
        if number.is_multiple_of(1 << CHUNK_BITS) {
            self.chunks.push(Vec::with_capacity(1 << CHUNK_BITS));
        }
        self.chunks[(number >> CHUNK_BITS) as usize].push(node);
        self.used += 1;
        number
    }
}

/// The trees of all trie collections. Terms are numbered from 0 as they come.
pub struct Forest {
    roots: Box<[u32]>,
    nodes: NodeArena,
    strings: Strings,
    terms: u32,
}

impl Default for Forest {
    fn default() -> Self {
        Self {
            roots: vec![NONE; TRIE_COLLECTIONS].into_boxed_slice(),
            nodes: NodeArena::default(),
            strings: Strings::default(),
            terms: 0,
        }
    }
}

enum TreePlace {
    Found(u32),
    Before(usize),
}

impl Forest {
    #[cfg(test)]
    pub(crate) fn terms(&self) -> u32 {
        self.terms
    }

    pub fn nodes(&self) -> u32 {
        self.nodes.used
    }

    pub(crate) fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Or [`NONE`].
    #[inline]
    pub(crate) fn root(&self, collection: u16) -> u32 {
        self.roots[usize::from(collection)]
    }

    /// Panics if there is no such node.
    #[inline]
    pub(crate) fn node(&self, node: u32) -> &Node {
        self.nodes.get(node)
    }

    /// The number of a term, and whether it is new: then it is inserted and its number is that of
    /// the terms before it.
    #[cfg(test)]
    pub(crate) fn find_or_insert(&mut self, collection: u16, suffix: &[u8]) -> (u32, bool) {
        self.find_or_insert_by::<Portable>(collection, suffix)
    }

    #[inline(always)]
    pub(super) fn find_or_insert_by<V: Vectors>(
        &mut self,
        collection: u16,
        suffix: &[u8],
    ) -> (u32, bool) {
        let query = SoughtString::new(suffix);
        let mut at = self.roots[usize::from(collection)];
        if at == NONE || self.nodes.get(at).is_full() {
            at = self.new_root(collection);
        }
        loop {
            let node = self.nodes.get(at);
            let i = match self.search::<V>(node, &query) {
                TreePlace::Found(term) => return (term, false),
                TreePlace::Before(i) => i,
            };
            if node.leaf != 0 {
                return (self.insert(at, i, &query), true);
            }
            let child = node.children[i];
            let below = self.nodes.get(child);
            // The caches come first; the children are prefetched while these are compared.
            prefetch(&below.children[16]);
            if below.is_full() {
                // The middle term is in this node now, which is searched again.
                self.split(at, i);
            } else {
                at = child;
            }
        }
    }

    #[inline(always)]
    fn search<V: Vectors>(&self, node: &Node, query: &SoughtString<'_>) -> TreePlace {
        let mut low = V::below(&node.caches, query.cache);
        // Of 31 terms at most 31 are below, and the padding is no term's cache.
        if node.caches[low] != query.cache {
            return TreePlace::Before(low);
        }
        let mut high = V::below(&node.caches, query.cache + 1);
        while low < high {
            let middle = (low + high) / 2;
            match self.strings.compare(node.strings[middle], query) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return TreePlace::Found(node.postings[middle]),
            }
        }
        TreePlace::Before(low)
    }

    #[inline(never)]
    fn insert(&mut self, leaf: u32, i: usize, query: &SoughtString<'_>) -> u32 {
        let term = self.terms;
        self.terms = term.checked_add(1).expect("run limits keep the terms of a run below 2^32");
        let string = self.strings.push(query);
        let new = NodeTerm { cache: query.cache, string, postings: term };
        self.nodes.get_mut(leaf).insert_term(i, new);
        term
    }

    /// Makes a root where there is none, and one above a root that is full.
    #[cold]
    fn new_root(&mut self, collection: u16) -> u32 {
        let old = self.roots[usize::from(collection)];
        let root = if old == NONE { Node::EMPTY_LEAF } else { Node::above(old) };
        let root = self.nodes.push(root);
        self.roots[usize::from(collection)] = root;
        if old != NONE {
            self.split(root, 0);
        }
        root
    }

    /// Splits the `i`-th child, which is full, of a node that is not.
    #[cold]
    fn split(&mut self, parent: u32, i: usize) {
        debug_assert!(i <= MOST_TERMS && !self.nodes.get(parent).is_full());
        let child = self.nodes.get(parent).children[i];
        let (upper, middle) = self.nodes.get_mut(child).split();
        let upper = self.nodes.push(upper);
        self.nodes.get_mut(parent).insert_split(i, middle, upper);
    }
}
