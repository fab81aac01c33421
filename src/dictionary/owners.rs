//! The owner of each trie collection, and the worker that runs it.

use crate::text::trie_collection::TRIE_COLLECTIONS;

/// Owners, which stay for the life of a job, and the order in which the tokens of a piece are laid
/// out for `wei11`: by owner, then by collection. Nothing in an index depends on it.
#[derive(Debug)]
pub struct Owners {
    owner: Box<[u32]>,
    order: Box<[u16]>,
    /// The place of each collection in that order.
    rank: Box<[u16]>,
    workers: Box<[usize]>,
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
        Self { owner, order, rank, workers }
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
