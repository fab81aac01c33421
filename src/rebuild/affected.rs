//! The choice of the runs of a new generation that are merged.
//!
//! A run of which too much is deleted is written anew by itself. Where there are too many runs,
//! those neighbours are merged that have the fewest documents, so that a large run is not touched
//! for the sake of small ones. Only neighbours, since docids follow the runs.

use crate::index::generations::manifest::RunEntry;
use crate::rebuild::job_file::keys::MergeKeys;
use std::ops::Range;

/// The places of the runs that are merged to one each, rising; a run that is written anew by itself
/// is a range of one.
pub(super) fn affected(runs: &[RunEntry], limits: &MergeKeys) -> Vec<Range<usize>> {
    let is_worn = |run: &RunEntry| {
        let deleted = run.deleted.map_or(0, |deleted| u64::from(deleted.documents));
        deleted > limits.deleted.most(u64::from(run.documents))
    };
    let joined = too_many(runs, limits.runs as usize);
    let worn = (0..runs.len()).filter(|place| !joined.contains(place) && is_worn(&runs[*place]));
    let mut groups: Vec<_> = worn.map(|place| place..place + 1).collect();
    if !joined.is_empty() {
        groups.push(joined);
    }
    groups.sort_unstable_by_key(|group| group.start);
    groups
}

fn too_many(runs: &[RunEntry], most: usize) -> Range<usize> {
    if runs.len() <= most {
        return 0..0;
    }
    let length = runs.len() - most + 1;
    let documents = |first: &usize| -> u64 {
        runs[*first..*first + length].iter().map(|run| u64::from(run.live_documents())).sum()
    };
    // Of equal ones the last, where the next new run comes.
    let first = (0..=runs.len() - length).rev().min_by_key(documents).unwrap_or(0);
    first..first + length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::guards::limit::Limit;
    use crate::index::generations::manifest::Deleted;

    fn run(&(documents, deleted): &(u32, u32)) -> RunEntry {
        let deleted = (deleted > 0).then(|| Deleted { documents: deleted, ..Default::default() });
        RunEntry { documents, deleted, ..RunEntry::default() }
    }

    /// At most so many runs, with a fifth deleted each.
    fn of(runs: &[(u32, u32)], most: u32) -> Vec<(usize, usize)> {
        let runs: Vec<_> = runs.iter().map(run).collect();
        let groups = affected(&runs, &MergeKeys { deleted: Limit::Percent(20.0), runs: most });
        groups.into_iter().map(|group| (group.start, group.end)).collect()
    }

    #[test]
    fn small_neighbours_are_merged_and_worn_runs_by_themselves() {
        assert!(of(&[(100, 20), (5, 1), (3, 0)], 3).is_empty());
        assert_eq!(of(&[(100, 21), (5, 1), (3, 1)], 3), [(0, 1), (2, 3)]);
        // The two smallest neighbours; what was deleted of one of them goes on the way.
        assert_eq!(of(&[(1000, 0), (7, 0), (5, 2), (900, 0), (800, 0)], 4), [(1, 3)]);
        assert_eq!(of(&[(1000, 300), (7, 0), (900, 0), (800, 0), (5, 2)], 3), [(0, 3), (4, 5)]);
        // What is left of a run counts.
        assert_eq!(of(&[(50, 0), (50, 0), (500, 490)], 2), [(1, 3)]);
        assert_eq!(of(&[(9, 0), (9, 0), (9, 0)], 1), [(0, 3)]);
    }
}
