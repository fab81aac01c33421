//! Finds what changed between two tables of documents.
//!
//! ```text
//! feed (old - 1, new + 1) -> consolidate -> (exchange by name) -> resolve
//! ```
//!
//! The documents of a table are a differential collection of pairs of name and content hash; the
//! old one is subtracted from the new one, and what consolidation leaves is what changed. Both are
//! fed in the order of names and in lock-step: a worker has a slice of all names, cuts it into
//! chunks, and chunk number `t` of all slices has the time `t`. So an unchanged document meets
//! itself at one time, and a chunk leaves the dataflow soon after it came in. The trace behind
//! `consolidate` has no reader and keeps nothing.
//!
//! - In: two sorted tables. Out: [`Changes`], once the dataflow is complete.
//! - Memory: the pairs of `AHEAD` chunks of about `CHUNK` entries for each worker, beside the
//!   changes themselves. One table after the other would take all of it.
//! - Work per activation: a chunk.

use crate::crew::lock;
use crate::dataflow::control::{Control, JobError, OperatorGuard};
use crate::dataflow::rebuild::changed::{Changes, Pair};
use crate::dataflow::rebuild::table::Table;
use crate::dataflow::workers;
use crate::index::error::IndexError;
use differential_dataflow::AsCollection;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::{Operator, source};
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// Entries of both tables in a chunk, about.
const CHUNK: u64 = 1 << 15;

/// Chunks of a worker that may be under way.
const AHEAD: u64 = 2;

/// A pair, its time, and the change of its count.
type PairUpdate = (Pair, u64, isize);

/// How the names of two tables are cut: by worker, then by chunk.
struct NamesCut {
    old: Table,
    new: Table,
    workers: u128,
    chunks: u64,
}

impl NamesCut {
    fn new(old: Table, new: Table, workers: usize, chunk: u64) -> Self {
        // Two at least, so that the width of a chunk is a u128.
        let chunks = (old.len() + new.len()).div_ceil(chunk * workers as u64).max(2);
        Self { old, new, workers: workers as u128, chunks }
    }

    /// Names are hashes, so that slices and chunks of equal width hold about as many.
    fn width(&self) -> u128 {
        u128::MAX / (self.workers * u128::from(self.chunks)) + 1
    }

    fn owner(&self, name: u128) -> u64 {
        (name / self.width() / u128::from(self.chunks)) as u64
    }

    /// As numbers in the old table and in the new.
    fn entries(&self, worker: usize, chunk: u64) -> Result<[Range<u64>; 2], IndexError> {
        let number = worker as u128 * u128::from(self.chunks) + u128::from(chunk);
        let range = |table: &Table| {
            let border = |number: u128| match number.checked_mul(self.width()) {
                Some(name) => table.first_from(name),
                None => Ok(table.len()),
            };
            Ok::<_, IndexError>(border(number)?..border(number + 1)?)
        };
        Ok([range(&self.old)?, range(&self.new)?])
    }
}

pub(crate) fn changes(
    old: Table,
    new: Table,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Changes, JobError> {
    in_chunks(old, new, workers, CHUNK, control)
}

fn in_chunks(
    old: Table,
    new: Table,
    workers: usize,
    chunk: u64,
    control: &Arc<Control>,
) -> Result<Changes, JobError> {
    let cut = Arc::new(NamesCut::new(old, new, workers, chunk));
    let found = Arc::new(Mutex::new(Changes::default()));
    let shared = control.clone();
    let result = found.clone();
    workers::run(workers, control, move |worker| {
        worker.dataflow_named::<u64, _, _>("changes", |scope| {
            let probe = ProbeHandle::new();
            let updates = feed(scope, &cut, &shared, probe.clone()).as_collection().consolidate();
            resolve_changes(updates.inner, &cut, &shared, &found).probe_with(&probe);
        });
    })?;
    let mut found = lock(&result);
    Ok(std::mem::take(&mut *found))
}

fn feed<'scope>(
    scope: Scope<'scope, u64>,
    cut: &Arc<NamesCut>,
    control: &Arc<Control>,
    probe: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, PairUpdate> {
    let cut = cut.clone();
    let worker = scope.index();
    let guard = OperatorGuard::new(control, "FeedDocuments", worker);
    source(scope, "FeedDocuments", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let mut chunk = 0;
        move |output| {
            let Some(cap) = capability.as_mut() else { return };
            if chunk >= AHEAD && probe.less_than(&(chunk - AHEAD + 1)) {
                return activator.activate();
            }
            let entries = guard.work(|| {
                let [old, new] = cut.entries(worker, chunk)?;
                Ok([cut.old.entries(old)?, cut.new.entries(new)?])
            });
            let Some([old, new]) = entries else {
                capability = None;
                return;
            };
            let mut session = output.session(&*cap);
            let update = |more: isize| {
                move |entry: &crate::dataflow::rebuild::table::TableEntry| {
                    ((entry.name, entry.content), chunk, more)
                }
            };
            session.give_iterator(old.iter().map(update(-1)).chain(new.iter().map(update(1))));
            drop(session);
            chunk += 1;
            match chunk < cut.chunks {
                true => {
                    cap.downgrade(&chunk);
                    activator.activate();
                }
                false => capability = None,
            }
        }
    })
}

/// Resolves the changes of a chunk when the frontier has passed it.
fn resolve_changes<'scope>(
    stream: StreamVec<'scope, u64, PairUpdate>,
    cut: &Arc<NamesCut>,
    control: &Arc<Control>,
    found: &Arc<Mutex<Changes>>,
) -> StreamVec<'scope, u64, ()> {
    let cut = cut.clone();
    let found = found.clone();
    let worker = stream.scope().index();
    let guard = OperatorGuard::new(control, "ResolveChanges", worker);
    let owner = cut.clone();
    let by_name = Exchange::new(move |((name, _), _, _): &PairUpdate| owner.owner(*name));
    stream.unary_frontier::<CapacityContainerBuilder<_>, _, _, _>(
        by_name,
        "ResolveChanges",
        move |_, _| {
            let mut open: BTreeMap<u64, Vec<(Pair, isize)>> = BTreeMap::new();
            let mut next = 0;
            let mut changes = Some(Changes::default());
            move |(input, frontier), _output| {
                input.for_each(|_, updates| {
                    for (pair, time, more) in updates.drain(..) {
                        open.entry(time).or_default().push((pair, more));
                    }
                });
                let Some(mine) = changes.as_mut() else { return };
                let held = open.values().map(Vec::len).sum();
                mine.held_pairs = mine.held_pairs.max(held);
                while next < cut.chunks && !frontier.less_equal(&next) {
                    let mut counts = open.remove(&next).unwrap_or_default();
                    counts.sort_unstable();
                    let done = guard.work(|| {
                        let [old, new] = cut.entries(worker, next)?;
                        let old = cut.old.entries(old)?;
                        let new = cut.new.entries(new)?;
                        mine.resolve(&old, &new, &counts);
                        Ok(())
                    });
                    if done.is_none() {
                        return;
                    }
                    next += 1;
                }
                if next == cut.chunks {
                    let mine = changes.take().expect("looked at above");
                    lock(&found).unite(mine);
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::rebuild::table::{Sorter, TableEntry, name_hash};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::path::Path;

    fn table(folder: &Path, name: &str, documents: &[(u32, u64)]) -> Table {
        let mut sorter = Sorter::new(folder, 0);
        for (number, &(name, content)) in (0..).zip(documents) {
            let name = name_hash(&name.to_le_bytes());
            sorter.push(TableEntry { name, content, input: 0, number }).unwrap();
        }
        sorter.finish(&folder.join(name)).unwrap()
    }

    fn compare(old: &[(u32, u64)], new: &[(u32, u64)], workers: usize, chunk: u64) -> Changes {
        let folder = tempfile::tempdir().unwrap();
        let tables = (table(folder.path(), "old", old), table(folder.path(), "new", new));
        let control = Arc::new(Control::default());
        in_chunks(tables.0, tables.1, workers, chunk, &control).unwrap()
    }

    fn more(a: &[(u32, u64)], b: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let mut counts: HashMap<(u32, u64), usize> = HashMap::new();
        for document in b {
            *counts.entry(*document).or_default() += 1;
        }
        let mut left = Vec::new();
        for document in a {
            match counts.get_mut(document) {
                Some(count) if *count > 0 => *count -= 1,
                _ => left.push(*document),
            }
        }
        left.sort_unstable();
        left
    }

    fn of(numbers: impl Iterator<Item = u32>, documents: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let mut found: Vec<_> = numbers.map(|number| documents[number as usize]).collect();
        found.sort_unstable();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn oracle_counting(
            old in prop::collection::vec((0u32..40, 0u64..3), 0..80),
            new in prop::collection::vec((0u32..40, 0u64..3), 0..80),
            workers in 1usize..=4,
            chunk in 1u64..40,
        ) {
            let changes = compare(&old, &new, workers, chunk);
            prop_assert_eq!(of(changes.deleted.iter(), &old), more(&old, &new));
            prop_assert_eq!(of(changes.wanted.iter(), &new), more(&new, &old));
            prop_assert_eq!(changes.kept.len() as u64 + changes.deleted.len(), old.len() as u64);
            for &(before, after) in &changes.kept {
                prop_assert_eq!(old[before as usize], new[after as usize]);
                prop_assert!(!changes.deleted.contains(before));
                prop_assert!(!changes.wanted.contains(after));
            }
            prop_assert_eq!(changes.added + changes.changed, changes.wanted.len());
        }
    }

    #[test]
    fn the_answer_is_the_same_for_any_workers_and_chunks() {
        let old: Vec<(u32, u64)> = (0..600).map(|n| (n % 560, u64::from(n % 7))).collect();
        let new: Vec<(u32, u64)> = (20..620).map(|n| (n % 580, u64::from(n % 5))).collect();
        let expected = compare(&old, &new, 1, 1 << 20);
        for (workers, chunk) in [(1, 20), (2, 14), (4, 200), (3, 5)] {
            let mut found = compare(&old, &new, workers, chunk);
            found.kept.sort_unstable();
            let mut expected = expected.clone();
            expected.kept.sort_unstable();
            expected.held_pairs = found.held_pairs;
            assert!(found == expected, "{workers} workers, chunks of {chunk}");
        }
    }

    /// All of a large table changes, and yet only a few chunks of it are held at a time.
    #[test]
    fn what_is_under_way_is_bounded() {
        let old: Vec<(u32, u64)> = (0..20_000).map(|n| (n, 1)).collect();
        let new: Vec<(u32, u64)> = (0..20_000).map(|n| (n, 2)).collect();
        for workers in [1, 2] {
            let changes = compare(&old, &new, workers, 500);
            assert_eq!((changes.changed, changes.added, changes.removed()), (20_000, 0, 0));
            let most = 500 * (AHEAD as usize + 1) * 3 / 2;
            assert!(changes.held_pairs <= most, "{} pairs, {workers} workers", changes.held_pairs);
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_ends_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let old = table(folder.path(), "old", &[(1, 1), (2, 2)]);
        let new = table(folder.path(), "new", &[(1, 1)]);
        std::fs::write(folder.path().join("old"), "cut").unwrap();
        let error = changes(old, new, 2, &Arc::new(Control::default())).unwrap_err();
        assert!(matches!(
            error,
            JobError::Operator { operator: "FeedDocuments" | "ResolveChanges", .. }
        ));
    }
}
