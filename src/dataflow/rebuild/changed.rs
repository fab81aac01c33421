//! Tells which documents are new, which are gone, and which stay.
//!
//! Documents are pairs of name and content, and any number may be equal. `dataflow::changes` counts
//! what changed of each pair; here the counts are given to documents. Of equal documents the first
//! ones stay, by docid; a new document and one that is gone, of one name, are a change.

use super::table::TableEntry;

/// The hashes of name and content.
pub(crate) type Pair = (u128, u64);

/// A set of numbers below a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    words: Vec<u64>,
    count: u64,
}

impl Numbers {
    /// Adds a number; false if it was there.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = number as usize / 64;
        let bit = 1 << (number % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u64::from(fresh);
        fresh
    }

    #[cfg(test)]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.words).flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    fn unite(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
        self.count = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The name is new, or more frequent than it was.
    pub added: u64,
    /// The name has another content.
    pub changed: u64,
    /// Docids of documents that are gone or have changed.
    pub deleted: Numbers,
    /// Numbers in the new table of documents that are new or have changed.
    pub wanted: Numbers,
    /// Docid and new number of each document that stays: its place in its input may be another.
    pub kept: Vec<(u32, u32)>,
    /// The most pairs that were compared at a time.
    pub held_pairs: usize,
}

impl Changes {
    /// Documents that are gone, but for those whose name has another content.
    pub(crate) fn removed(&self) -> u64 {
        self.deleted.len() - self.changed
    }

    /// Adds what another worker found among other names.
    pub(crate) fn unite(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.deleted.unite(&other.deleted);
        self.wanted.unite(&other.wanted);
        self.kept.extend(other.kept);
        self.held_pairs = self.held_pairs.max(other.held_pairs);
    }

    /// Gives counts to documents. `old` and `new` are all entries of a range of names, sorted;
    /// `counts` are, sorted, the pairs that are more (above zero) or less frequent in `new` than in
    /// `old`.
    ///
    /// # Panics
    /// When the counts are not those of the entries.
    pub(crate) fn resolve(
        &mut self,
        old: &[TableEntry],
        new: &[TableEntry],
        counts: &[(Pair, isize)],
    ) {
        let mut old = old;
        let mut new = new;
        let mut counts = counts;
        while let Some(name) = least(old, new) {
            let before = split(&mut old, |entry| entry.name == name);
            let after = split(&mut new, |entry| entry.name == name);
            let counted = split(&mut counts, |((counted, _), _)| *counted == name);
            self.resolve_name(before, after, counted);
        }
        assert!(counts.is_empty(), "a count of a name that no document has");
    }

    fn resolve_name(
        &mut self,
        mut old: &[TableEntry],
        mut new: &[TableEntry],
        counts: &[(Pair, isize)],
    ) {
        let mut gone = 0u64;
        let mut came = 0u64;
        let mut counts = counts;
        loop {
            let content = match (old.first(), new.first()) {
                (None, None) => break,
                (Some(one), None) | (None, Some(one)) => one.content,
                (Some(a), Some(b)) => a.content.min(b.content),
            };
            let before = split(&mut old, |entry| entry.content == content);
            let after = split(&mut new, |entry| entry.content == content);
            let counted = split(&mut counts, |((_, counted), _)| *counted == content);
            let more: isize = counted.iter().map(|&(_, more)| more).sum();
            assert_eq!(more, after.len() as isize - before.len() as isize, "counts of documents");
            let stay = before.len().min(after.len());
            // Of the entries of a pair, sorted by input, the first stay.
            for entry in &before[stay..] {
                self.deleted.insert(entry.number);
                gone += 1;
            }
            for entry in &after[stay..] {
                self.wanted.insert(entry.number);
                came += 1;
            }
            self.kept.extend(before.iter().zip(after).map(|(old, new)| (old.number, new.number)));
        }
        assert!(counts.is_empty(), "a count of a content that no document has");
        let changed = gone.min(came);
        self.changed += changed;
        self.added += came - changed;
    }
}

fn least(old: &[TableEntry], new: &[TableEntry]) -> Option<u128> {
    let names = [old.first(), new.first()];
    names.into_iter().flatten().map(|entry| entry.name).min()
}

fn split<'a, T>(rest: &mut &'a [T], is_in: impl FnMut(&T) -> bool) -> &'a [T] {
    let (front, back) = rest.split_at(rest.partition_point(is_in));
    *rest = back;
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: u128, content: u64, number: u32) -> TableEntry {
        TableEntry { name, content, input: 0, number }
    }

    #[test]
    fn sets_of_numbers() {
        let mut set = Numbers::default();
        let fresh = [0, 63, 64, 500, 64].map(|number| set.insert(number));
        assert_eq!(fresh, [true, true, true, true, false]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 500]);
        assert!(set.contains(500) && !set.contains(501) && !set.contains(100_000));
        let mut other = Numbers::default();
        other.insert(1);
        other.unite(&set);
        assert_eq!((other.len(), other.iter().next()), (5, Some(0)));
    }

    #[test]
    fn each_kind_of_change() {
        let old = [entry(1, 5, 0), entry(2, 5, 1), entry(3, 5, 2), entry(4, 5, 3), entry(4, 5, 4)];
        let new = [entry(1, 5, 3), entry(2, 6, 2), entry(4, 5, 1), entry(4, 7, 0), entry(5, 1, 4)];
        let counts =
            [((2, 5), -1), ((2, 6), 1), ((3, 5), -1), ((4, 5), -1), ((4, 7), 1), ((5, 1), 1)];
        let mut changes = Changes::default();
        changes.resolve(&old, &new, &counts);
        assert_eq!((changes.added, changes.changed, changes.removed()), (1, 2, 1));
        assert_eq!(changes.deleted.iter().collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(changes.wanted.iter().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(changes.kept, [(0, 3), (3, 1)]);
    }

    #[test]
    #[should_panic(expected = "counts of documents")]
    fn wrong_counts_are_noticed() {
        Changes::default().resolve(&[entry(1, 5, 0)], &[], &[]);
    }
}
