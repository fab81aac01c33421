//! Finds what changed between the documents that the live generation has of some files, and those
//! that the files have now.
//!
//! ```text
//! cut by ranges of names -> for each range:
//! feed (old, new) -> (exchange by name) -> reduce: who stays, and what changed -> note
//! ```
//!
//! All documents are one differential collection, keyed by the hashes of their names. Of the
//! documents of a name and a content as many stay as there are on both sides, the first ones by
//! docid and by place; the others are gone or came. Of a name, one that is gone and one that came
//! are a change.
//!
//! - In: the documents of both sides. Out: [`Changes`], once the dataflows are complete.
//! - Memory: what the caller allows: both sides are written to scratch files by ranges of names,
//!   each of which has a dataflow of its own; but all documents of one name are held together.
//!   Beside that 8 bytes for each document that stays, and 3 bits for each other.
//! - Work per activation: `CHUNK` documents.

use crate::crew::lock;
use crate::dataflow::control::{Control, JobError, OperatorGuard};
use crate::dataflow::rebuild::seen::SeenDocuments;
use crate::dataflow::rebuild::touched::TouchedDocuments;
use crate::dataflow::workers;
use crate::index::deletions::DocidSet;
use crate::index::documents::name_hash;
use crate::index::error::IndexError;
use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use differential_dataflow::AsCollection;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, StreamVec};

/// Documents that are fed at a time.
const CHUNK: u64 = 1 << 14;

/// Memory that a document takes in the dataflow, about (seen: 95 of a million on each side).
const DOCUMENT_BYTES: u64 = 128;

/// A docid, or the number of a new document and this bit.
type Either = u64;

const NEW: Either = 1 << 32;

/// The hash of the content of a document, and which one it is.
type Side = (u64, Either);

/// An old document, a new one, or both: then either one that stays, or a change.
type Fate = (Option<u32>, Option<u32>, bool);

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
    /// Docid and new number of each document that stays, rising: its place may be another.
    pub kept: Vec<(u32, u32)>,
}

impl Changes {
    /// Documents that are gone, but for those whose name has another content.
    pub(crate) fn removed(&self) -> u64 {
        u64::from(self.deleted.len()) - self.changed
    }
}

/// What is compared.
pub(crate) struct Sides {
    pub old: TouchedDocuments,
    pub new: SeenDocuments,
}

/// A document of either side as it lies in a scratch file.
#[derive(Clone, Copy, AnyBitPattern, NoUninit)]
#[repr(C)]
struct PairRow {
    name: [u64; 2],
    content: u64,
    side: Either,
}

const ROW_BYTES: usize = size_of::<PairRow>();

/// The documents of both sides whose names are in a range of hashes.
struct PairFile {
    file: File,
    path: PathBuf,
    rows: u64,
}

/// Files of ranges that are open at a time, at most.
const MOST_RANGES: u64 = 512;

/// Bytes that are written to the file of a range at a time.
const CUT_BYTES: usize = 32 << 10;

/// What was found of a range of names.
#[derive(Default)]
struct Found {
    changed: u64,
    deleted: Vec<u32>,
    wanted: Vec<u32>,
    kept: Vec<(u32, u32)>,
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
    let bytes = (sides.old.len() + u64::from(sides.new.len())) * DOCUMENT_BYTES;
    let ranges = bytes.div_ceil(memory_bytes.max(DOCUMENT_BYTES)).clamp(1, MOST_RANGES);
    let cut = cut(sides, folder, ranges).map_err(|error| JobError::Operator {
        operator: "CutDocuments",
        worker: 0,
        source: error.into(),
    })?;
    let mut all = Changes::default();
    for range in cut {
        let found = of_range(Arc::new(range), workers, control)?;
        let Found { changed, deleted, wanted, kept } = found;
        all.changed += changed;
        all.added += wanted.len() as u64 - changed;
        all.deleted = all.deleted.with(documents, deleted);
        all.wanted = all.wanted.with(sides.new.len(), wanted);
        all.kept.extend(kept);
    }
    all.kept.sort_unstable();
    Ok(all)
}

/// Writes both sides to files by so many ranges of the hashes of names.
fn cut(sides: &Sides, folder: &Path, ranges: u64) -> Result<Vec<PairFile>, IndexError> {
    let mut files = Vec::new();
    for number in 0..ranges {
        let path = folder.join(format!("pairs-{number:03}"));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(IndexError::storage("write", &path))?;
        files.push((BufWriter::with_capacity(CUT_BYTES, file), path, 0));
    }
    let mut put = |name: u128, content, side| {
        let range = ((u128::from((name >> 64) as u64) * u128::from(ranges)) >> 64) as usize;
        let (file, path, rows) = &mut files[range];
        *rows += 1;
        let row = PairRow { name: [name as u64, (name >> 64) as u64], content, side };
        file.write_all(bytemuck::bytes_of(&row)).map_err(IndexError::storage("write", path))
    };
    sides.old.read(0..sides.old.len(), |docid, name, content| {
        put(name_hash(name), content, docid.into())
    })?;
    let mut new = sides.new.reader()?;
    for number in 0..sides.new.len() {
        let document = new.get(number)?;
        put(document.name(), document.content, NEW | u64::from(number))?;
    }
    let whole = |(file, path, rows): (BufWriter<File>, PathBuf, u64)| {
        let file = file.into_inner();
        let file = file.map_err(|error| IndexError::storage("write", &path)(error.into_error()))?;
        Ok(PairFile { file, path, rows })
    };
    files.into_iter().map(whole).collect()
}

/// Compares what has names in a range.
fn of_range(
    pairs: Arc<PairFile>,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Found, JobError> {
    let shared = control.clone();
    let found = Arc::new(Mutex::new(Found::default()));
    let result = found.clone();
    workers::run(workers, control, move |worker| {
        let count = worker.peers();
        worker.dataflow_named::<u64, _, _>("changes", |scope| {
            let documents = feed(scope, &pairs, count, &shared).as_collection();
            let found = found.clone();
            let fates = documents.reduce(|_, sides, fates| fates_of(sides, fates));
            fates.inspect_batch(move |_, fates| lock(&found).note(fates));
        });
    })?;
    let mut found = lock(&result);
    Ok(std::mem::take(&mut *found))
}

/// What becomes of the documents of a name, by rising content.
fn fates_of(sides: &[(&Side, isize)], fates: &mut Vec<(Fate, isize)>) {
    let (mut gone, mut came) = (Vec::new(), Vec::new());
    let number = |((_, side), _): &(&Side, isize)| *side as u32;
    for same in sides.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
        let (old, new) = same.split_at(same.partition_point(|((_, side), _)| *side < NEW));
        let stay = old.iter().zip(new);
        let fate = |(old, new)| ((Some(number(old)), Some(number(new)), true), 1);
        fates.extend(stay.map(fate));
        gone.extend(old.iter().skip(new.len()).map(number));
        came.extend(new.iter().skip(old.len()).map(number));
    }
    let fate = |at| ((gone.get(at).copied(), came.get(at).copied(), false), 1);
    fates.extend((0..gone.len().max(came.len())).map(fate));
}

impl Found {
    fn note(&mut self, fates: &[((u128, Fate), u64, isize)]) {
        for ((_, (old, new, stays)), _, _) in fates {
            if let (Some(old), Some(new), true) = (*old, *new, *stays) {
                self.kept.push((old, new));
                continue;
            }
            self.changed += u64::from(old.is_some() && new.is_some());
            self.deleted.extend(old);
            self.wanted.extend(new);
        }
    }
}

/// Gives the share of this worker, of so many, of the documents of a range.
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
            let read = guard.work(|| {
                rows.resize((share.start - start) as usize, PairRow::zeroed());
                let bytes = bytemuck::cast_slice_mut(&mut rows);
                let read = pairs.file.read_exact_at(bytes, start * ROW_BYTES as u64);
                Ok(read.map_err(IndexError::storage("read", &pairs.path))?)
            });
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
    use crate::dataflow::rebuild::seen::SeenDocument;
    use crate::index::documents::Location;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Names and contents.
    type Documents = [(u32, u64)];

    fn compare(old: &Documents, new: &Documents, workers: usize, memory: u64) -> Changes {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: u32| format!("n{name}").into_bytes();
        let old = old.iter().map(|&(of, content)| (name(of), content));
        let old = TouchedDocuments::of_run(folder.path(), old.collect());
        let place = Location::default();
        let new = new.iter().map(|&(of, content)| SeenDocument::new(&name(of), content, place));
        let new = SeenDocuments::of_rows(folder.path(), &new.collect::<Vec<_>>());
        let documents = old.len() as u32;
        let sides = Sides { old, new };
        let control = Arc::new(Control::default());
        changes(&sides, documents, folder.path(), memory, workers, &control).unwrap()
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn oracle_counting(
            old in prop::collection::vec((0u32..40, 0u64..3), 0..80),
            new in prop::collection::vec((0u32..40, 0u64..3), 0..80),
            workers in 1usize..=4,
            memory in 1_000u64..40_000,
        ) {
            let changes = compare(&old, &new, workers, memory);
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
        let expected = compare(&old, &new, 1, 1 << 20);
        for (workers, memory) in [(1, 20_000), (2, 14_000), (4, 200_000), (3, 5_000)] {
            let found = compare(&old, &new, workers, memory);
            assert!(found == expected, "{workers} workers, {memory} bytes");
        }
    }

    /// Of equal documents the first ones stay, in their order.
    #[test]
    fn each_kind_of_change() {
        let old = [(1, 5), (2, 5), (3, 5), (4, 5), (4, 5)];
        let new = [(4, 7), (4, 5), (2, 6), (1, 5), (5, 1)];
        let changes = compare(&old, &new, 1, 1 << 20);
        assert_eq!((changes.added, changes.changed, changes.removed()), (1, 2, 1));
        assert_eq!(changes.deleted.docids().collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(changes.wanted.docids().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(changes.kept, [(0, 3), (3, 1)]);
    }
}
