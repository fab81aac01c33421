//! The choice of the runs of a new generation that are merged (`docs/up-to-date.md`, Merging).
//!
//! A run of which too much is deleted is written again by itself. Where there are too many runs,
//! neighbours are merged of which the largest has at most half of the documents: so a document that
//! is written again then lies in a run that is at least twice as large, which can be only so often.
//! Of these neighbours those are taken that cost the fewest documents for each run that goes. Only
//! neighbours, since docids follow the runs.

use super::Draft;
use crate::index::error::IndexError;
use crate::index::generations::manifest::RunEntry;
use crate::index::merge::Merging;
use std::ops::Range;

/// The message where [`Draft::merge_some`] has lost PageRanks.
pub(crate) const LOST_RANKS: &str = "PageRanks of runs that were merged are lost, since others had \
     none: merge again and give those of all documents";

impl Draft {
    /// Merges runs from a place on so that at most this many are left in all, and those of which
    /// more is deleted than `most_deleted` says for this many documents. Returns whether PageRanks
    /// were lost ([`merge`](Self::merge)).
    pub(crate) fn merge_some(
        &mut self,
        from: usize,
        most: usize,
        most_deleted: impl Fn(u64) -> u64,
        merging: &Merging,
    ) -> Result<bool, IndexError> {
        let mut lost = false;
        let most = most.saturating_sub(from).max(1);
        // The last first, so that the places of those before it stay.
        for runs in due(&self.runs[from..], most, most_deleted).into_iter().rev() {
            let runs = from + runs.start..from + runs.end;
            self.verify(runs.clone(), merging)?;
            lost |= self.merge(runs, merging)?;
        }
        Ok(lost)
    }
}

/// The places of the runs that are merged to one each, rising; a run that is written again by
/// itself is a range of one.
pub(crate) fn due(
    runs: &[RunEntry],
    most: usize,
    most_deleted: impl Fn(u64) -> u64,
) -> Vec<Range<usize>> {
    let is_worn = |run: &RunEntry| {
        let deleted = run.deleted.map_or(0, |deleted| deleted.documents);
        u64::from(deleted) > most_deleted(run.documents.into())
    };
    let live = runs.iter().map(|run| u64::from(run.live_documents()));
    let joined = too_many(&live.collect::<Vec<_>>(), most);
    let worn = (0..runs.len()).filter(|place| !joined.contains(place) && is_worn(&runs[*place]));
    let mut groups: Vec<_> = worn.map(|place| place..place + 1).collect();
    if !joined.is_empty() {
        groups.push(joined);
    }
    groups.sort_unstable_by_key(|group| group.start);
    groups
}

/// The runs, of this many documents each, that are merged so that at most this many are left.
fn too_many(documents: &[u64], most: usize) -> Range<usize> {
    let runs = documents.len();
    if runs <= most {
        return 0..0;
    }
    let least = runs - most + 1;
    let all =
        (0..=runs - least).flat_map(|first| (first + least..=runs).map(move |end| first..end));
    let cost = |range: &Range<usize>| {
        let runs = &documents[range.clone()];
        let sum: u64 = runs.iter().sum();
        let largest = runs.iter().max().copied().unwrap_or(0);
        let by_run = sum as f64 / (runs.len() - 1).max(1) as f64;
        (2 * largest > sum, by_run)
    };
    let costs = all.map(|range| (cost(&range), range));
    // Of equal ones the last, where the next new run comes.
    let least = costs
        .rev()
        .min_by(|((grows, a), _), ((other, b), _)| grows.cmp(other).then(a.total_cmp(b)));
    least.map_or(0..0, |(_, range)| range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::manifest::Deleted;

    fn run(&(documents, deleted): &(u32, u32)) -> RunEntry {
        let deleted = (deleted > 0).then(|| Deleted { documents: deleted, ..Default::default() });
        RunEntry { documents, deleted, ..RunEntry::default() }
    }

    /// At most this many runs, with a fifth deleted each.
    fn of(runs: &[(u32, u32)], most: usize) -> Vec<(usize, usize)> {
        let runs: Vec<_> = runs.iter().map(run).collect();
        let groups = due(&runs, most, |documents| documents / 5);
        groups.into_iter().map(|group| (group.start, group.end)).collect()
    }

    #[test]
    fn small_neighbours_are_merged_and_worn_runs_by_themselves() {
        assert!(of(&[(100, 20), (5, 1), (3, 0)], 3).is_empty());
        assert_eq!(of(&[(100, 21), (5, 1), (3, 1)], 3), [(0, 1), (2, 3)]);
        // Two neighbours of about one size; what was deleted of one of them goes on the way.
        assert_eq!(of(&[(1000, 0), (4, 0), (6, 2), (900, 0), (800, 0)], 4), [(1, 3)]);
        // What is left of a run counts: all of these together cost the least for each that goes.
        assert_eq!(of(&[(50, 0), (50, 0), (500, 490)], 2), [(0, 3)]);
        assert_eq!(of(&[(50, 0), (50, 0), (500, 0)], 2), [(0, 2)]);
        assert_eq!(of(&[(9, 0), (9, 0), (9, 0)], 1), [(0, 3)]);
        // None doubles: the fewest documents.
        assert_eq!(of(&[(1000, 0), (100, 0), (10, 0)], 2), [(1, 3)]);
    }

    /// Commits of one document each behind ten million: few runs, and few documents written again.
    #[test]
    fn documents_are_written_again_a_few_times() {
        let mut runs = vec![10_000_000];
        let mut written = 0;
        for _ in 0..12_000 {
            runs.extend([1]);
            if runs.len() > 16 {
                let range = too_many(&runs, 10);
                let sum: u64 = runs[range.clone()].iter().sum();
                written += sum;
                runs.splice(range, [sum]);
                assert!(runs.len() <= 10, "{runs:?}");
            }
        }
        assert!(written <= 6 * 12_000, "{written}");
    }
}
