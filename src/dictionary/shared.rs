//! Trie collections that all owners share, since one alone has more terms than its owner's part:
//! those of a language whose letters are not a to z, numbers, or the terms of a model that all begin
//! with one letter. Each owner has a range of the terms, by their first bytes. The ranges rise with
//! the owners, so that lists are still laid out one behind another; the lexicon of a range goes on
//! behind the range before, of which its owner learns here.

use crate::crew::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The first bytes of a suffix, which are in the order of suffixes.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    let mut head = [0; 4];
    let bytes = suffix.len().min(head.len());
    head[..bytes].copy_from_slice(&suffix[..bytes]);
    u32::from_be_bytes(head)
}

/// A collection in as many ranges as there are owners.
#[derive(Clone, Debug)]
pub(crate) struct SharedCollection {
    pub(crate) collection: u16,
    /// The first head of each range but the first.
    starts: Vec<u32>,
}

impl SharedCollection {
    /// Cuts a collection for some `owners` by what its heads weigh, which rise. Returns the weights
    /// of the ranges too.
    pub(crate) fn cut(
        collection: u16,
        owners: usize,
        heads: impl Iterator<Item = (u32, u64)> + Clone,
    ) -> (Self, Vec<u64>) {
        let all = heads.clone().map(|(_, weight)| u128::from(weight)).sum::<u128>().max(1);
        let mut starts = Vec::new();
        let mut weights = vec![0; owners];
        let mut before = 0;
        for (head, weight) in heads {
            // By the middle of what has the head.
            let middle = before + u128::from(weight) / 2;
            let range = ((middle * owners as u128 / all) as usize).min(owners - 1);
            starts.resize(range.max(starts.len()), head);
            weights[range] += weight;
            before += u128::from(weight);
        }
        starts.resize(owners - 1, u32::MAX);
        (Self { collection, starts }, weights)
    }

    #[inline]
    pub(crate) fn owner(&self, head: u32) -> u32 {
        self.starts.partition_point(|start| *start <= head) as u32
    }
}

/// The terms of a part of a shared collection in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedTerms {
    pub(crate) terms: usize,
    /// The last suffix, if there is a term.
    pub(crate) last: Vec<u8>,
}

/// What the owners have of shared collections in closed runs.
#[derive(Debug, Default)]
pub(crate) struct SharedRuns {
    /// By run and collection, then by owner.
    parts: Mutex<BTreeMap<(u32, u16), BTreeMap<u32, SharedTerms>>>,
}

impl SharedRuns {
    pub(crate) fn put(&self, run: u32, collection: u16, owner: u32, terms: SharedTerms) {
        lock(&self.parts).entry((run, collection)).or_default().insert(owner, terms);
    }

    /// What precedes the part of an owner; nothing until all owners before have said it.
    pub(crate) fn before(&self, run: u32, collection: u16, owner: u32) -> Option<SharedTerms> {
        let mut before = SharedTerms::default();
        if owner == 0 {
            return Some(before);
        }
        let parts = lock(&self.parts);
        let parts = parts.get(&(run, collection))?.range(..owner);
        if parts.clone().count() < owner as usize {
            return None;
        }
        for (_, part) in parts.filter(|(_, part)| part.terms > 0) {
            before.terms += part.terms;
            before.last.clone_from(&part.last);
        }
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_ranges_rise_and_have_what_they_weigh(
            terms in prop::collection::btree_map("[a-dж]{0,6}", 1u64..100, 0..60),
            owners in 1usize..6,
        ) {
            let mut heads: BTreeMap<u32, u64> = BTreeMap::new();
            for (term, weight) in &terms {
                *heads.entry(head_of(term.as_bytes())).or_default() += weight;
            }
            let (shared, weights) = SharedCollection::cut(0, owners, heads.iter().map(|(&head, &weight)| (head, weight)));
            let mut found = vec![0; owners];
            let mut last = 0;
            for (term, weight) in &terms {
                let owner = shared.owner(head_of(term.as_bytes()));
                prop_assert!(owner >= last);
                last = owner;
                found[owner as usize] += weight;
            }
            prop_assert_eq!(&found, &weights);
            // None has more than its part and the half of two heads.
            let most = heads.values().max().copied().unwrap_or(0);
            let part = terms.values().sum::<u64>() / owners as u64;
            prop_assert!(found.iter().all(|weight| *weight <= part + most + 1));
        }
    }

    #[test]
    fn an_owner_waits_for_all_before_it() {
        let runs = SharedRuns::default();
        let part = |terms, last: &str| SharedTerms { terms, last: last.into() };
        assert_eq!(runs.before(3, 0, 0), Some(SharedTerms::default()));
        runs.put(3, 0, 1, part(0, ""));
        assert_eq!(runs.before(3, 0, 2), None);
        runs.put(3, 0, 0, part(4, "b"));
        assert_eq!(runs.before(3, 0, 2), Some(part(4, "b")));
        runs.put(3, 0, 2, part(2, "d"));
        assert_eq!(runs.before(3, 0, 3), Some(part(6, "d")));
        assert_eq!(runs.before(4, 0, 1), None);
    }
}
