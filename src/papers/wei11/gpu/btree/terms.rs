//! The terms that come back from a device when a run ends: in the order of the lexicon, column by
//! column, for a range of collections at a time.

use std::ops::Range;

/// Terms, bytes of their suffixes, bytes of their lists.
pub(crate) type TermSums = [u64; 3];

/// Where each collection begins, and the sums of all.
pub(crate) fn starts(sums: &[TermSums]) -> (Vec<TermSums>, TermSums) {
    let mut all = TermSums::default();
    let starts = sums
        .iter()
        .map(|sums| {
            let start = all;
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            start
        })
        .collect();
    (starts, all)
}

/// Cuts collections into ranges of at most `most`; a range of one collection may have more.
pub(crate) fn ranges(sums: &[TermSums], most: TermSums) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut here = TermSums::default();
    for (i, sums) in sums.iter().enumerate() {
        let with: Vec<u64> = here.iter().zip(sums).map(|(a, b)| a + b).collect();
        if i > start && with.iter().zip(most).any(|(&with, most)| with > most) {
            ranges.push(start..i);
            start = i;
            here = *sums;
        } else {
            here = [with[0], with[1], with[2]];
        }
    }
    if start < sums.len() {
        ranges.push(start..sums.len());
    }
    ranges
}

/// Terms of some collections, in the order of the lexicon.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TermColumns<'a> {
    pub lengths: &'a [u8],
    pub dfs: &'a [u32],
    /// Docids of last postings, counted from the run's first document.
    pub lasts: &'a [u32],
    pub list_bytes: &'a [u32],
    /// Suffixes, end to end.
    pub suffixes: &'a [u8],
    /// In the form of [`folded`](crate::codec::folded), end to end.
    pub lists: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeTerm<'a> {
    /// Without the prefix that its collection implies.
    pub suffix: &'a [u8],
    pub df: u32,
    pub last: u32,
    /// In the form of [`folded`](crate::codec::folded).
    pub list: &'a [u8],
}

impl<'a> Iterator for TermColumns<'a> {
    type Item = TreeTerm<'a>;

    fn next(&mut self) -> Option<TreeTerm<'a>> {
        let (suffix, suffixes) =
            self.suffixes.split_at_checked(usize::from(*self.lengths.first()?))?;
        let (list, lists) = self.lists.split_at_checked(*self.list_bytes.first()? as usize)?;
        let term = TreeTerm { suffix, df: *self.dfs.first()?, last: *self.lasts.first()?, list };
        *self = Self {
            lengths: &self.lengths[1..],
            dfs: &self.dfs[1..],
            lasts: &self.lasts[1..],
            list_bytes: &self.list_bytes[1..],
            suffixes,
            lists,
        };
        Some(term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_fits() {
        let sums = [[1, 5, 9], [0, 0, 0], [2, 7, 1], [9, 9, 9], [1, 1, 1]];
        assert_eq!(starts(&sums).0[3], [3, 12, 10]);
        assert_eq!(starts(&sums).1, [13, 22, 20]);
        assert_eq!(ranges(&sums, [13, 22, 20]), vec![Range { start: 0, end: 5 }]);
        assert_eq!(ranges(&sums, [3, 12, 10]), [0..3, 3..4, 4..5]);
        assert_eq!(ranges(&sums, [0, 0, 0]), [0..1, 1..2, 2..3, 3..4, 4..5]);
        assert!(ranges(&[], [1, 1, 1]).is_empty());
    }

    #[test]
    fn columns_give_terms() {
        let mut columns = TermColumns {
            lengths: &[2, 0],
            dfs: &[1, 2],
            lasts: &[5, 6],
            list_bytes: &[1, 2],
            suffixes: b"ab",
            lists: &[7, 8, 9],
        };
        assert_eq!(columns.next(), Some(TreeTerm { suffix: b"ab", df: 1, last: 5, list: &[7] }));
        assert_eq!(columns.next(), Some(TreeTerm { suffix: b"", df: 2, last: 6, list: &[8, 9] }));
        assert_eq!(columns.next(), None);
    }
}
