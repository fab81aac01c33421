//! The lengths of a run's documents, from which bounds are made, in one copy for all owners.

use crate::crew::lock;
use std::sync::{Arc, Mutex, Weak};

/// The codes of the lengths (`score::bounds`) of the documents of runs that are being encoded.
/// Memory: a byte a document, and one for each field, as long as an owner needs it.
#[derive(Debug, Default)]
pub(crate) struct RunLengths {
    /// By number of the run. Owners may be at different runs.
    runs: Mutex<Vec<(u32, Weak<Vec<u8>>)>>,
}

impl RunLengths {
    /// The codes of a run, by docid counted from its first, and behind them those of each of so
    /// many `fields`. The first owner to come joins those of the `pieces`, which are the same for
    /// all owners.
    pub(crate) fn of_run(&self, run: u32, pieces: Vec<Arc<[u8]>>, fields: usize) -> Arc<Vec<u8>> {
        let mut runs = lock(&self.runs);
        runs.retain(|(_, codes)| codes.strong_count() > 0);
        let known = runs.iter().find(|(number, _)| *number == run);
        if let Some(codes) = known.and_then(|(_, codes)| codes.upgrade()) {
            return codes;
        }
        let column = |piece: &Arc<[u8]>, column: usize| {
            let documents = piece.len() / (fields + 1);
            documents * column..documents * (column + 1)
        };
        let mut codes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        for number in 0..=fields {
            pieces.iter().for_each(|piece| codes.extend_from_slice(&piece[column(piece, number)]));
        }
        let codes = Arc::new(codes);
        runs.push((run, Arc::downgrade(&codes)));
        codes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_share_a_copy_while_they_need_it() {
        let lengths = RunLengths::default();
        let pieces = |codes: &[&[u8]]| codes.iter().map(|&piece| Arc::from(piece)).collect();
        let first = lengths.of_run(0, pieces(&[&[1, 2], &[], &[3]]), 0);
        let next = lengths.of_run(1, pieces(&[&[9]]), 0);
        assert_eq!((&first[..], &next[..]), (&[1, 2, 3][..], &[9][..]));
        assert!(Arc::ptr_eq(&first, &lengths.of_run(0, pieces(&[&[1, 2, 3]]), 0)));
        drop(first);
        assert_eq!(lengths.of_run(0, pieces(&[&[1], &[2, 3]]), 0).len(), 3);
        let columns = lengths.of_run(2, pieces(&[&[1, 2, 3, 4], &[], &[5, 6]]), 1);
        assert_eq!(&columns[..], [1, 2, 5, 3, 4, 6]);
        assert!(Arc::ptr_eq(&next, &lengths.of_run(1, Vec::new(), 0)));
    }
}
