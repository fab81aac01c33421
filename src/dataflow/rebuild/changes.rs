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
//!   each of which has a dataflow of its own, or several by ranges of contents where many documents
//!   have one name; but all of one name and one content are held together. Beside that 8 bytes for
//!   each document that stays, and 3 bits for each other.
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
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{Scope, StreamVec};

/// Documents that are fed at a time.
const CHUNK: u64 = 1 << 14;

/// Memory that a document takes in the dataflow, about (seen: 100, and 275 of one name).
const DOCUMENT_BYTES: u64 = 256;

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
    let bytes = (sides.old.len() + u64::from(sides.new.len())) * DOCUMENT_BYTES;
    let error = |error: IndexError| JobError::Operator {
        operator: "CutDocuments",
        worker: 0,
        source: error.into(),
    };
    let mut all = Changes::default();
    for range in sides.cut(folder, ranges_of(bytes, memory_bytes)).map_err(error)? {
        // Names are spread evenly over the ranges, so some come very often if one is much larger.
        let bytes = range.rows * DOCUMENT_BYTES;
        let is_whole = bytes <= memory_bytes + memory_bytes / 4;
        let mut names = HashMap::new();
        let parts = match is_whole {
            true => vec![range],
            false => range.cut(folder, ranges_of(bytes, memory_bytes)).map_err(error)?,
        };
        for part in parts {
            let mut found = of_range(Arc::new(part), is_whole, names, workers, control)?;
            names = std::mem::take(&mut found.names);
            all.changed += found.changed;
            all.deleted = all.deleted.with(documents, found.deleted);
            all.wanted = all.wanted.with(sides.new.len(), found.wanted);
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

/// Takes a document into the file of a range, by a hash that tells the range.
type PutRow<'a> = &'a mut dyn FnMut(u64, PairRow) -> Result<(), IndexError>;

/// Writes documents to files by so many ranges of hashes.
fn cut(
    folder: &Path,
    name: &str,
    ranges: u64,
    each: impl FnOnce(PutRow<'_>) -> Result<(), IndexError>,
) -> Result<Vec<PairFile>, IndexError> {
    let mut files = Vec::new();
    for number in 0..ranges {
        let path = folder.join(format!("{name}-{number:03}"));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(IndexError::storage("write", &path))?;
        files.push((BufWriter::with_capacity(CUT_BYTES, file), path, 0));
    }
    each(&mut |hash, row| {
        let range = ((u128::from(hash) * u128::from(ranges)) >> 64) as usize;
        let (file, path, rows) = &mut files[range];
        *rows += 1;
        file.write_all(bytemuck::bytes_of(&row)).map_err(IndexError::storage("write", path))
    })?;
    let whole = |(file, path, rows): (BufWriter<File>, PathBuf, u64)| {
        let file = file.into_inner();
        let file = file.map_err(|error| IndexError::storage("write", &path)(error.into_error()))?;
        Ok(PairFile { file, path, rows })
    };
    files.into_iter().map(whole).collect()
}

impl Sides {
    /// By so many ranges of the hashes of names.
    fn cut(&self, folder: &Path, ranges: u64) -> Result<Vec<PairFile>, IndexError> {
        cut(folder, "pairs", ranges, |put| {
            let mut put = |name: u128, content, side| {
                let name = [name as u64, (name >> 64) as u64];
                put(name[1], PairRow { name, content, side })
            };
            self.old.read(0..self.old.len(), |docid, name, content| {
                put(name_hash(name), content, docid.into())
            })?;
            let mut new = self.new.reader()?;
            for number in 0..self.new.len() {
                let document = new.get(number)?;
                put(document.name(), document.content, NEW | u64::from(number))?;
            }
            Ok(())
        })
    }
}

impl PairFile {
    /// By so many ranges of contents.
    fn cut(&self, folder: &Path, ranges: u64) -> Result<Vec<Self>, IndexError> {
        cut(folder, "contents", ranges, |put| {
            let mut rows = Vec::new();
            for start in (0..self.rows).step_by(CHUNK as usize) {
                self.read(start..self.rows.min(start + CHUNK), &mut rows)?;
                rows.iter().try_for_each(|row| put(row.content, *row))?;
            }
            Ok(())
        })
    }

    fn read(&self, wanted: Range<u64>, rows: &mut Vec<PairRow>) -> Result<(), IndexError> {
        rows.resize((wanted.end - wanted.start) as usize, PairRow::zeroed());
        let read = self
            .file
            .read_exact_at(bytemuck::cast_slice_mut(rows), wanted.start * ROW_BYTES as u64);
        read.map_err(IndexError::storage("read", &self.path))
    }
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
    let found = Arc::new(Mutex::new(Found { is_whole, names, ..Found::default() }));
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
        for ((name, (old, new, stays)), _, _) in fates {
            if let (Some(old), Some(new), true) = (*old, *new, *stays) {
                self.kept.push((old, new));
                continue;
            }
            match self.is_whole {
                true => self.changed += u64::from(old.is_some() && new.is_some()),
                false => {
                    let [gone, came] = self.names.entry(*name).or_default();
                    *gone += u64::from(old.is_some());
                    *came += u64::from(new.is_some());
                }
            }
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
    use crate::dataflow::rebuild::seen::SeenDocument;
    use crate::index::documents::Location;
    use proptest::prelude::*;

    /// Names and contents.
    type Documents = [(u32, u64)];

    fn compare(old: &Documents, new: &Documents, workers: usize, memory: u64) -> Changes {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: u32| format!("n{name}").into_bytes();
        // As hashes of contents are.
        let spread = |content: u64| content.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let old = old.iter().map(|&(of, content)| (name(of), spread(content)));
        let old = TouchedDocuments::of_run(folder.path(), old.collect());
        let place = Location::default();
        let new =
            new.iter().map(|&(of, content)| SeenDocument::new(&name(of), spread(content), place));
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
            // Some names come often, and have many contents.
            old in prop::collection::vec((prop_oneof![0u32..40, 0u32..2], 0u64..6), 0..80),
            new in prop::collection::vec((prop_oneof![0u32..40, 0u32..2], 0u64..6), 0..80),
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
