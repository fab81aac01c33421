//! Finds what changed between the documents that the live generation has of some files, and those
//! that the files have now.
//!
//! ```text
//! by file: who stays there -> all others -> cut by ranges of names -> for each range:
//! feed (old, new) -> (exchange by name) -> reduce: who stays, and what changed -> note
//! ```
//!
//! Of the documents of a name and a content as many stay as there are on both sides: those that
//! stay in their file ([`by_file`]), and of the others the first ones by docid and by place. What
//! is left is gone or came; of a name, one that is gone and one that came are a change. All that
//! does not stay in its file is one differential collection, keyed by the hashes of the names.
//!
//! - In: the documents of both sides. Out: [`Changes`], once the dataflows are complete.
//! - Memory: what the caller allows: what is not known to stay is written to scratch files by
//!   ranges of names, each of which has a dataflow of its own, or several by ranges of contents
//!   where many documents have one name. Documents that follow one another with one name and one
//!   content are one row; what else has one name and one content is held together. Beside that 8
//!   bytes for each document that stays in another file, 28 for neighbours that moved alike in
//!   their own, and 3 bits for each other document.
//! - Work per activation: `CHUNK` documents.

use crate::crew::lock;
use crate::dataflow::control::{Control, JobError, OperatorGuard};
use crate::dataflow::rebuild::by_file::by_file;
use crate::dataflow::rebuild::pairs::{MOST_RANGES, NEW, PairFile, PairRow, Stretch, numbers};
use crate::dataflow::rebuild::seen::SeenDocuments;
use crate::dataflow::rebuild::touched::TouchedDocuments;
use crate::dataflow::workers;
use crate::index::deletions::DocidSet;
use crate::index::documents::moves::Relocated;
use crate::index::error::IndexError;
use differential_dataflow::AsCollection;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, StreamVec};

/// Documents that are fed at a time, and for which a worker is worth starting.
const CHUNK: u64 = if cfg!(test) { 1 << 4 } else { 1 << 14 };

/// Memory that a thread takes which compares files, about.
const FILE_BYTES: u64 = 5 << 20;

/// Memory that a document takes in the dataflow, about (seen: 100, and 275 of one name).
const DOCUMENT_BYTES: u64 = 256;

/// The hash of the content of some documents, and which ones they are.
type Side = (u64, Stretch);

/// The first of this many old documents, of as many new ones, or both: then either such that stay,
/// or changes.
type Fate = (Option<u32>, Option<u32>, u32, bool);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The name is new, or more frequent than it was.
    pub added: u64,
    /// The name has another content.
    pub changed: u64,
    /// Docids of documents that are gone or have changed.
    pub deleted: DocidSet,
    /// Numbers of the documents that were read and are new or have changed.
    pub wanted: DocidSet,
    /// Documents that stay at another place in their file, which is the input, by rising docids.
    pub moved: Vec<Relocated>,
    /// Docid and new number of each other document that stays and was compared with those of all
    /// files, rising: its place may be another.
    pub kept: Vec<(u32, u32)>,
}

impl Changes {
    /// Documents that are gone, except for those whose name has another content.
    pub(crate) fn removed(&self) -> u64 {
        u64::from(self.deleted.len()) - self.changed
    }
}

/// What is compared.
pub(crate) struct Sides {
    pub old: TouchedDocuments,
    pub new: SeenDocuments,
}

/// What was found of a range of names.
#[derive(Default)]
struct Found {
    changed: u64,
    deleted: Vec<Range<u32>>,
    wanted: Vec<Range<u32>>,
    kept: Vec<(u32, u32)>,
    /// All documents of each of the names are in the range. Otherwise, how many are gone and have
    /// come of each name, in this range and those before.
    is_whole: bool,
    names: HashMap<u128, [u64; 2]>,
}

/// Compares both sides; there are so many `documents` in the live generation. Scratch files come
/// into `folder`.
pub(crate) fn changes(
    sides: &Sides,
    documents: u32,
    folder: &Path,
    memory_bytes: u64,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Changes, JobError> {
    let error = |error: IndexError| JobError::Operator {
        operator: "CutDocuments",
        worker: 0,
        source: error.into(),
    };
    let Sides { old, new } = sides;
    let threads = workers.min((memory_bytes / FILE_BYTES) as usize).max(1);
    let (moved, others) = by_file(old, new, folder, threads, control.stop()).map_err(error)?;
    let mut all = Changes { moved, ..Changes::default() };
    let by_name = |row: &PairRow| row.name[1];
    let ranges = match ranges_of(others.rows * DOCUMENT_BYTES, memory_bytes) {
        1 => vec![others],
        ranges => others.cut(folder, "names", ranges, by_name).map_err(error)?,
    };
    for range in ranges.into_iter().filter(|range| range.rows > 0) {
        // Names are spread evenly over the ranges, so some come very often if one is much larger.
        let bytes = range.rows * DOCUMENT_BYTES;
        let is_whole = bytes <= memory_bytes + memory_bytes / 4;
        let mut names = HashMap::new();
        let parts = match is_whole {
            true => vec![range],
            false => {
                let ranges = ranges_of(bytes, memory_bytes);
                range.cut(folder, "contents", ranges, |row| row.content).map_err(error)?
            }
        };
        for part in parts {
            let mut found = of_range(Arc::new(part), is_whole, names, workers, control)?;
            names = std::mem::take(&mut found.names);
            all.changed += found.changed;
            all.deleted = all.deleted.with(documents, found.deleted.into_iter().flatten());
            all.wanted = all.wanted.with(sides.new.len(), found.wanted.into_iter().flatten());
            all.kept.extend(found.kept);
        }
        all.changed += names.values().map(|[gone, came]| gone.min(came)).sum::<u64>();
    }
    all.added = u64::from(all.wanted.len()) - all.changed;
    all.kept.sort_unstable();
    Ok(all)
}

fn ranges_of(bytes: u64, memory_bytes: u64) -> u64 {
    bytes.div_ceil(memory_bytes.max(DOCUMENT_BYTES)).clamp(1, MOST_RANGES)
}

/// Compares what has names in a range, or with these `names` also contents in one.
fn of_range(
    pairs: Arc<PairFile>,
    is_whole: bool,
    names: HashMap<u128, [u64; 2]>,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Found, JobError> {
    let shared = control.clone();
    let workers = workers.min(pairs.rows.div_ceil(CHUNK) as usize).max(1);
    let found = Arc::new(Mutex::new(Found { is_whole, names, ..Found::default() }));
    let result = found.clone();
    workers::run(workers, control, move |worker| {
        let count = worker.peers();
        worker.dataflow_named::<u64, _, _>("changes", |scope| {
            let documents = feed(scope, &pairs, count, &shared).as_collection();
            let found = found.clone();
            let mut queues = FateQueues::default();
            let fates = documents.reduce(move |_, sides, fates| queues.fates_of(sides, fates));
            fates.inspect_batch(move |_, fates| lock(&found).note(fates));
        });
    })?;
    let mut found = lock(&result);
    Ok(std::mem::take(&mut *found))
}

/// Documents of one name that have no fate yet.
#[derive(Default)]
struct FateQueues {
    old: VecDeque<Range<u32>>,
    new: VecDeque<Range<u32>>,
    gone: VecDeque<Range<u32>>,
    came: VecDeque<Range<u32>>,
}

impl FateQueues {
    /// What becomes of the documents of a name, by rising content.
    fn fates_of(&mut self, sides: &[(&Side, isize)], fates: &mut Vec<(Fate, isize)>) {
        for same in sides.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            for ((_, side), _) in same {
                if *side < NEW { &mut self.old } else { &mut self.new }.push_back(numbers(*side));
            }
            pair(&mut self.old, &mut self.new, true, fates);
            self.gone.append(&mut self.old);
            self.came.append(&mut self.new);
        }
        pair(&mut self.gone, &mut self.came, false, fates);
        let gone = self.gone.drain(..).map(|gone| (Some(gone.start), None, gone.len()));
        let came = self.came.drain(..).map(|came| (None, Some(came.start), came.len()));
        let fate = |(old, new, count)| ((old, new, count as u32, false), 1);
        fates.extend(gone.chain(came).map(fate));
    }
}

/// Takes the first documents of both sides together, as long as both have some.
fn pair(
    old: &mut VecDeque<Range<u32>>,
    new: &mut VecDeque<Range<u32>>,
    stay: bool,
    fates: &mut Vec<(Fate, isize)>,
) {
    while let (Some(a), Some(b)) = (old.front_mut(), new.front_mut()) {
        let count = a.len().min(b.len()) as u32;
        fates.push(((Some(a.start), Some(b.start), count, stay), 1));
        a.start += count;
        b.start += count;
        for side in [&mut *old, &mut *new] {
            if side.front().is_some_and(Range::is_empty) {
                side.pop_front();
            }
        }
    }
}

impl Found {
    fn note(&mut self, fates: &[((u128, Fate), u64, isize)]) {
        for ((name, (old, new, count, stays)), _, _) in fates {
            let range = |first: u32| first..first + count;
            let (old, new) = (old.map(range), new.map(range));
            if let (Some(old), Some(new), true) = (&old, &new, *stays) {
                self.kept.extend(old.clone().zip(new.clone()));
                continue;
            }
            let [gone, came] =
                [&old, &new].map(|side| u64::from(*count) * u64::from(side.is_some()));
            match self.is_whole {
                true => self.changed += gone.min(came),
                false => {
                    let all = self.names.entry(*name).or_default();
                    *all = [all[0] + gone, all[1] + came];
                }
            }
            self.deleted.extend(old);
            self.wanted.extend(new);
        }
    }
}

/// Gives the share of this worker, of this many, of the documents of a range.
fn feed<'scope>(
    scope: Scope<'scope, u64>,
    pairs: &Arc<PairFile>,
    workers: usize,
    control: &Arc<Control>,
) -> StreamVec<'scope, u64, ((u128, Side), u64, isize)> {
    let pairs = pairs.clone();
    let worker = scope.index();
    let guard = OperatorGuard::new(control, "FeedDocuments", worker);
    source(scope, "FeedDocuments", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let border = |worker: usize| pairs.rows * worker as u64 / workers as u64;
        let mut share = border(worker)..border(worker + 1);
        let mut rows = Vec::new();
        move |output| {
            let Some(cap) = capability.as_ref() else { return };
            let start = share.start;
            share.start = share.end.min(start + CHUNK);
            let read = guard.work(|| Ok(pairs.read(start..share.start, &mut rows)?));
            if read.is_some() {
                let update = |row: &PairRow| {
                    let name = u128::from(row.name[1]) << 64 | u128::from(row.name[0]);
                    ((name, (row.content, row.side)), 0, 1)
                };
                output.session(cap).give_iterator(rows.iter().map(update));
            }
            match read.is_some() && !share.is_empty() {
                true => activator.activate(),
                false => capability = None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::rebuild::touched::GONE;
    use crate::index::documents::Location;
    use crate::index::documents::pieces::SeenDocument;
    use proptest::prelude::*;

    type Documents = [(u32, u64)];

    /// Compares in one file, or in several, of which the third is gone. Documents that moved in
    /// their file are among those that are `kept`.
    fn compare(
        old: &Documents,
        new: &Documents,
        files: u32,
        workers: usize,
        memory: u64,
    ) -> Changes {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: u32| format!("n{name}");
        // As hashes of contents are.
        let spread = |content: u64| content.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = |at: usize, all: usize, more| Location {
            offset: 10 * at as u64 + more,
            bytes: 9,
            input: (at * files as usize / all) as u32,
        };
        let document = |(at, &(of, content)): (usize, &(u32, u64))| {
            (name(of), spread(content), place(at, old.len(), 0))
        };
        let run = old.iter().enumerate().map(document).collect();
        let numbers = [Some(0), Some(1), Some(GONE), Some(3)];
        let touched = TouchedDocuments::of_runs(folder.path(), &[run], &numbers);
        let row = |(at, &(of, content)): (usize, &(u32, u64))| {
            SeenDocument::new(name(of).as_bytes(), spread(content), place(at, new.len(), 3))
        };
        let rows: Vec<_> = new.iter().enumerate().map(row).collect();
        let seen = SeenDocuments::of_rows(folder.path(), &rows);
        let documents = touched.len() as u32;
        let sides = Sides { old: touched, new: seen };
        let control = Arc::new(Control::default());
        let mut found =
            changes(&sides, documents, folder.path(), memory, workers, &control).unwrap();
        assert!(found.moved.is_sorted_by_key(Relocated::docid));
        for (docid, offset) in
            found.moved.drain(..).flat_map(|moved| moved.each().collect::<Vec<_>>())
        {
            let number = (10 * u64::from(docid)).wrapping_add(offset) / 10;
            found.kept.push((docid, number as u32));
        }
        found.kept.sort_unstable();
        found
    }

    fn more(a: &Documents, b: &Documents) -> Vec<(u32, u64)> {
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

    fn of(numbers: &DocidSet, documents: &Documents) -> Vec<(u32, u64)> {
        let mut found: Vec<_> = numbers.docids().map(|n| documents[n as usize]).collect();
        found.sort_unstable();
        found
    }

    /// Some names come often, and have many contents; some documents come several times.
    fn documents() -> impl Strategy<Value = Vec<(u32, u64)>> {
        let document = (prop_oneof![0u32..40, 0u32..2], 0u64..6);
        let some = (document, prop_oneof![3 => Just(1), 1 => 2usize..9]);
        prop::collection::vec(some, 0..60)
            .prop_map(|all| all.into_iter().flat_map(|(one, times)| vec![one; times]).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn oracle_counting(
            old in documents(),
            new in documents(),
            from_old in prop::collection::vec((0usize..1000, 0usize..200), 0..3),
            files in 1u32..=4,
            workers in 1usize..=4,
            memory in 1_000u64..40_000,
        ) {
            // Some are the same on both sides, one behind the other.
            let mut new = new;
            for (first, count) in from_old {
                let first = first.min(old.len());
                new.splice(first.min(new.len())..first.min(new.len()), old[first..].iter().take(count).copied());
            }
            let changes = compare(&old, &new, files, workers, memory);
            prop_assert_eq!(of(&changes.deleted, &old), more(&old, &new));
            prop_assert_eq!(of(&changes.wanted, &new), more(&new, &old));
            prop_assert_eq!(changes.kept.len() + changes.deleted.len() as usize, old.len());
            for &(before, after) in &changes.kept {
                prop_assert_eq!(old[before as usize], new[after as usize]);
                prop_assert!(!changes.deleted.contains(before));
                prop_assert!(!changes.wanted.contains(after));
            }
            // Of a name as many have changed as are gone, if as many came.
            let names = |documents: Vec<(u32, u64)>| {
                let mut counts: HashMap<u32, u64> = HashMap::new();
                documents.iter().for_each(|(name, _)| *counts.entry(*name).or_default() += 1);
                counts
            };
            let (gone, came) = (names(more(&old, &new)), names(more(&new, &old)));
            let of_name = |(name, gone): (&u32, &u64)| came.get(name).map_or(0, |came| *came.min(gone));
            prop_assert_eq!(changes.changed, gone.iter().map(of_name).sum::<u64>());
            prop_assert_eq!(changes.added + changes.changed, u64::from(changes.wanted.len()));
        }
    }

    #[test]
    fn the_answer_is_the_same_for_any_workers_and_memory() {
        let old: Vec<(u32, u64)> = (0..600).map(|n| (n % 560, u64::from(n % 7))).collect();
        let new: Vec<(u32, u64)> = (20..620).map(|n| (n % 580, u64::from(n % 5))).collect();
        let expected = compare(&old, &new, 4, 1, 1 << 20);
        for (workers, memory) in [(1, 20_000), (2, 14_000), (4, 200_000), (3, 5_000)] {
            let found = compare(&old, &new, 4, workers, memory);
            assert!(found == expected, "{workers} workers, {memory} bytes");
        }
    }

    /// Of equal documents the first ones stay, in their order.
    #[test]
    fn each_kind_of_change() {
        let old = [(1, 5), (2, 5), (3, 5), (4, 5), (4, 5)];
        let new = [(4, 7), (4, 5), (2, 6), (1, 5), (5, 1)];
        let changes = compare(&old, &new, 1, 1, 1 << 20);
        assert_eq!((changes.added, changes.changed, changes.removed()), (1, 2, 1));
        assert_eq!(changes.deleted.docids().collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(changes.wanted.docids().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(changes.kept, [(0, 3), (3, 1)]);
    }
}
