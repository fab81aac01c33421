//! The owner of each trie collection, and the worker that runs it.

use super::shared::{SharedCollection, head_of};
use crate::text::trie_collection::{FIRST_THREE_LETTERS, TRIE_COLLECTIONS};
use std::collections::BTreeMap;

/// What the trie collections of a sample weigh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectionWeights {
    /// By collection.
    pub(crate) all: Vec<u64>,
    /// Of each collection that no three letters make small, by its number and by the
    /// [heads](head_of) of its terms, as far as these are known.
    pub(crate) heads: BTreeMap<(u16, u32), u64>,
}

impl Default for CollectionWeights {
    fn default() -> Self {
        Self { all: vec![0; TRIE_COLLECTIONS], heads: BTreeMap::new() }
    }
}

impl CollectionWeights {
    pub(crate) fn add_term(&mut self, collection: u16, suffix: &[u8], weight: u64) {
        self.all[usize::from(collection)] += weight;
        if collection < FIRST_THREE_LETTERS {
            *self.heads.entry((collection, head_of(suffix))).or_default() += weight;
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.all.iter_mut().zip(&other.all).for_each(|(sum, weight)| *sum += weight);
        for (&head, weight) in &other.heads {
            *self.heads.entry(head).or_default() += weight;
        }
    }

    /// The heads of a collection and their weights.
    pub(crate) fn heads_of(&self, collection: u16) -> impl Iterator<Item = (u32, u64)> + Clone {
        let heads = self.heads.range((collection, 0)..=(collection, u32::MAX));
        heads.map(|(&(_, head), &weight)| (head, weight))
    }
}

/// Owners, which stay for the life of a job, and the order in which the tokens of a piece are laid
/// out for `wei11`: by owner, then by collection. Nothing in an index depends on it.
#[derive(Debug)]
pub struct Owners {
    owner: Box<[u32]>,
    order: Box<[u16]>,
    /// The place of each collection in that order.
    rank: Box<[u16]>,
    workers: Box<[usize]>,
    shared: Vec<SharedCollection>,
}

impl Owners {
    /// Owner `i` runs on worker `workers[i]`. Panics if an owner has no worker.
    pub(crate) fn new(owner: impl Fn(u16) -> u32, workers: impl Into<Box<[usize]>>) -> Self {
        let workers = workers.into();
        let owner: Box<[u32]> = (0..TRIE_COLLECTIONS as u16).map(owner).collect();
        assert!(owner.iter().all(|&o| (o as usize) < workers.len()), "every owner has a worker");
        let mut order: Box<[u16]> = (0..TRIE_COLLECTIONS as u16).collect();
        order.sort_by_key(|&c| owner[usize::from(c)]);
        let mut rank = vec![0; TRIE_COLLECTIONS].into_boxed_slice();
        for (place, &collection) in order.iter().enumerate() {
            rank[usize::from(collection)] = place as u16;
        }
        Self { owner, order, rank, workers, shared: Vec::new() }
    }

    /// Some collections have all owners, for those who go [by terms](Self::of_term).
    #[must_use]
    pub(crate) fn sharing(self, shared: Vec<SharedCollection>) -> Self {
        Self { shared, ..self }
    }

    pub(crate) fn shared(&self) -> &[SharedCollection] {
        &self.shared
    }

    /// The owner of a term, of whose suffix `suffix` may be asked.
    #[inline]
    pub(crate) fn of_term<'a>(&self, collection: u16, suffix: impl FnOnce() -> &'a [u8]) -> u32 {
        if collection < FIRST_THREE_LETTERS
            && let Some(shared) = self.shared.iter().find(|shared| shared.collection == collection)
        {
            return shared.owner(head_of(suffix()));
        }
        self.of(collection)
    }

    /// Deals the collections out to one owner on each of `workers` in turn: neighbours, which have
    /// similar numbers of tokens, go to different workers.
    pub fn in_turn(workers: usize) -> Self {
        Self::new(|collection| u32::from(collection) % workers as u32, Vec::from_iter(0..workers))
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    #[inline]
    pub(crate) fn of(&self, collection: u16) -> u32 {
        self.owner[usize::from(collection)]
    }

    /// The place of a collection in the layout of a piece.
    #[inline]
    pub(crate) fn rank(&self, collection: u16) -> u16 {
        self.rank[usize::from(collection)]
    }

    /// All collections in the order of their ranks.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = u16> {
        self.order.iter().copied()
    }

    #[inline]
    pub(crate) fn worker(&self, owner: u32) -> usize {
        self.workers[owner as usize]
    }

    pub(crate) fn on_worker(&self, worker: usize) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.workers).filter(move |&(_, &w)| w == worker).map(|(owner, _)| owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_ranks_follow_owner_then_collection(owners in 1u32..9, workers in 1usize..5, seed in 0u32..1000) {
            let owner = |c: u16| (u32::from(c) * 7 + seed) / 5 % owners;
            let places: Vec<usize> = (0..owners as usize).map(|o| o % workers).collect();
            let map = Owners::new(owner, places);
            let mut order: Vec<u16> = (0..TRIE_COLLECTIONS as u16).collect();
            order.sort_by_key(|&c| map.rank(c));
            prop_assert!(order.windows(2).all(|w| (map.of(w[0]), w[0]) < (map.of(w[1]), w[1])));
            let mut all: Vec<u32> = (0..workers).flat_map(|w| map.on_worker(w)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, Vec::from_iter(0..owners));
            prop_assert!((0..owners).all(|o| map.worker(o) == o as usize % workers));
        }
    }
}
