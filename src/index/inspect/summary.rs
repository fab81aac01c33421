//! Totals of a live generation, and its lists by length, for reports.

use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::format::{Kind, run_file};
use crate::index::generations::folder::current;
use crate::index::generations::manifest::read::read_manifest;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::lexicon::{LexiconStream, expect_totals, parts_of};
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// Bytes of a lexicon that a thread holds at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// Parts of a lexicon for each thread, so that all end at about the same time, and bytes of terms
/// that a thread reads before another one has begun.
const PARTS: usize = 4;
const LEAST_PART: u64 = 1 << 20;

/// The totals of a generation, or of a shard of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub generation: u32,
    pub documents: u64,
    pub terms: u64,
    pub postings: u64,
    pub tokens: u64,
    /// Bytes of all files but the manifest.
    pub index_bytes: u64,
}

impl Totals {
    pub fn of(manifest: &Manifest) -> Self {
        let statistics = &manifest.statistics;
        Self {
            generation: manifest.generation,
            documents: statistics.documents,
            terms: statistics.terms,
            postings: statistics.postings,
            tokens: statistics.tokens,
            index_bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        }
    }
}

/// The postings lists of a class of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListClass {
    /// They have fewer postings than this power of two, and at least half as many.
    pub below: u64,
    pub lists: u64,
    pub postings: u64,
    pub bytes: u64,
}

/// The totals of the live generation of the index in the folder `index`, or of a shard, given as
/// its number and how many there are. None if there is no such generation.
pub fn totals(index: &Path, shard: Option<(usize, usize)>) -> Result<Option<Totals>, IndexError> {
    let Some(folder) = current(index)? else { return Ok(None) };
    let folder = match (ShardedManifest::read(&folder)?, shard) {
        (None, None) => folder,
        (Some(manifest), Some((shard, of))) if manifest.shards.len() == of => {
            manifest.folder(index, shard)
        }
        _ => return Ok(None),
    };
    Ok(Some(Totals::of(&read_manifest(&folder)?)))
}

/// Counts the lists of the generation or shard in `folder` by their length, short ones first,
/// without empty classes. `threads` read the lexicons; postings are not read. A term has a list in
/// each run that it occurs in.
pub fn list_lengths(folder: &Path, threads: usize) -> Result<Vec<ListClass>, IndexError> {
    list_lengths_by((folder, &read_manifest(folder)?.runs), threads, LEAST_PART)
}

/// By parts with at least `least` bytes of terms.
fn list_lengths_by(
    (folder, runs): (&Path, &[RunEntry]),
    threads: usize,
    least: u64,
) -> Result<Vec<ListClass>, IndexError> {
    let path = |run: usize| folder.join(run_file(&runs[run].name, Kind::Lexicon));
    let mut parts = Vec::new();
    for run in 0..runs.len() {
        let cut = parts_of(&path(run), (least, PARTS * threads), |terms, _| terms)?;
        parts.extend(cut.into_iter().map(|collections| (run, collections)));
    }
    let of_runs: Vec<usize> = parts.iter().map(|&(run, _)| run).collect();
    let mut counted: Vec<_> = parts.iter().map(|_| Ok(Classes::default())).collect();
    let work = parts.into_iter().zip(&mut counted).collect();
    Crew::new("counter").share(threads - 1, work, |((run, collections), counted)| {
        *counted = count(&path(run), collections);
    });
    let (mut all, mut seen) = (Classes::default(), vec![(0, 0); runs.len()]);
    for (run, classes) in of_runs.into_iter().zip(counted) {
        for (all, class) in all.iter_mut().zip(classes?) {
            (0..all.len()).for_each(|i| all[i] += class[i]);
            seen[run].0 += class[0];
            seen[run].1 += class[1];
        }
    }
    for (number, run) in runs.iter().enumerate() {
        expect_totals(&path(number), run, seen[number])?;
    }
    let class = |(log, [lists, postings, bytes]): (u32, [u64; 3])| {
        let below = 1 << log;
        ListClass { below, lists, postings, bytes }
    };
    Ok((1..).zip(all).map(class).filter(|class| class.lists > 0).collect())
}

/// Lists, postings and bytes by class.
type Classes = [[u64; 3]; u32::BITS as usize];

fn count(path: &Path, collections: Range<u16>) -> Result<Classes, IndexError> {
    let mut classes = Classes::default();
    let mut terms = LexiconStream::open_part(path, WINDOW_BYTES, collections)?;
    while terms.advance()? {
        let list = terms.term().list;
        let class = &mut classes[list.df.ilog2() as usize];
        class[0] += 1;
        class[1] += u64::from(list.df);
        class[2] += list.bytes;
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing;

    #[test]
    fn lists_of_all_lengths_add_up_to_the_totals() {
        let scratch = tempfile::tempdir().unwrap();
        let index = scratch.path();
        assert_eq!(totals(index, None).unwrap(), None);
        let manifest = testing::build(index, &testing::collection(3, 500, 80), &[200]);
        let totals = totals(index, None).unwrap().unwrap();
        assert_eq!(totals.generation, manifest.generation);
        assert_eq!((totals.documents, totals.postings), (500, manifest.statistics.postings));
        let folder = current(index).unwrap().unwrap();
        let classes = list_lengths(&folder, 1).unwrap();
        for (threads, least) in [(2, LEAST_PART), (3, 1), (7, 20)] {
            let counted = list_lengths_by((&folder, &manifest.runs), threads, least);
            assert_eq!(counted.unwrap(), classes);
            for (terms, postings) in [(1, 0), (0, 1)] {
                let mut runs = manifest.runs.clone();
                (runs[1].terms, runs[1].postings) =
                    (runs[1].terms + terms, runs[1].postings + postings);
                let counted = list_lengths_by((&folder, &runs), threads, least);
                assert!(matches!(counted, Err(IndexError::Damaged { .. })), "{counted:?}");
            }
        }
        let terms: u64 = manifest.runs.iter().map(|run| run.terms).sum();
        assert!(manifest.runs.len() == 2 && classes.len() > 2);
        assert_eq!(classes.iter().map(|class| class.lists).sum::<u64>(), terms);
        assert_eq!(classes.iter().map(|class| class.postings).sum::<u64>(), totals.postings);
        for class in &classes {
            assert!(class.below.is_power_of_two() && class.bytes > 0);
            assert!(class.postings < class.lists * class.below);
            assert!(class.postings >= class.lists * class.below / 2);
        }
        assert_eq!(super::totals(index, Some((0, 2))).unwrap(), None);
    }
}
