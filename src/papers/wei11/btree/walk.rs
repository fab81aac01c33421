//! Walks through a [`Forest`] in the order of the lexicon, by trie collection, then by suffix, so
//! that nothing is sorted.

use super::NONE;
use super::forest::Forest;
use std::ops::Range;

pub(crate) struct TreeWalk {
    /// The trie collections that come next.
    collections: Range<u16>,
    collection: u16,
    /// From the root down: a node and the next of its terms.
    path: Vec<(u32, u32)>,
}

impl TreeWalk {
    /// Through the trees of these trie collections.
    pub(crate) fn of(collections: Range<u16>) -> Self {
        Self { collections, collection: 0, path: Vec::new() }
    }

    /// Moves behind the next term, puts its suffix into `suffix` and returns its trie collection
    /// and its number.
    pub(crate) fn next(&mut self, forest: &Forest, suffix: &mut Vec<u8>) -> Option<(u16, u32)> {
        loop {
            let Some((at, i)) = self.path.last_mut() else {
                self.collection = self.collections.next()?;
                self.descend(forest, forest.root(self.collection));
                continue;
            };
            let node = forest.node(*at);
            if *i == node.count {
                self.path.pop();
                continue;
            }
            let term = *i as usize;
            *i += 1;
            suffix.clear();
            let cache = node.caches[term].to_be_bytes();
            let cached = cache.iter().position(|&byte| byte == 0).unwrap_or(cache.len());
            suffix.extend_from_slice(&cache[..cached]);
            if node.strings[term] != NONE {
                forest.strings().append(node.strings[term], suffix);
            }
            self.descend(forest, node.children[term + 1]);
            return Some((self.collection, node.postings[term]));
        }
    }

    fn descend(&mut self, forest: &Forest, mut at: u32) {
        while at != NONE {
            self.path.push((at, 0));
            at = forest.node(at).children[0];
        }
    }
}
