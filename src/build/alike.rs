//! What the parts of an index have alike: documents with the name of an earlier one, and terms.
//! Every process reads its part where it is. Hashes cross to process 0, from all at once, in ranges
//! that fit its memory; its threads look for equal ones. Of names 32 bits cross, as the look-up has
//! them in order, and of those names that share them with another 128, so that few names are read.

use super::error::BuildError;
use crate::crew::{Crew, cores};
use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::documents::duplicates::Duplicates;
use crate::index::error::IndexError;
use crate::index::generations::manifest::Manifest;
use crate::index::merge::count_distinct_terms;
use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash3_128;

/// A range of all hashes: number `part` of this many.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct HashRange {
    part: u32,
    parts: u32,
}

/// What process 0 asks of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Hashes of names, rising: u32.
    Names(HashRange),
    /// The names that have one of these hashes, which rise: [`SharedName`].
    Shared(Vec<u32>),
    /// Hashes of different terms, rising: [`TermHash`].
    Terms(HashRange),
}

/// Documents of a part that have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct SharedName {
    name: [u64; 2],
    /// In the part.
    first: u32,
    /// The next one; `u32::MAX` if there is none.
    second: u32,
    documents: u64,
}

type TermHash = [u64; 2];

/// Bytes of hashes that process 0 has at a time, at most: of names, and of terms.
const NAMES_BYTES: u64 = 32 << 20;
const TERMS_BYTES: u64 = 1 << 30;
/// Bytes that a process sends at a time.
const SENT_BYTES: u64 = 128 << 20;
/// Memory to read the terms of a part in.
const LEXICON_BYTES: u64 = 16 << 20;

impl HashRange {
    /// Ranges for this many hashes of this many bytes in all parts, and in the largest.
    fn all(all: u64, largest: u64, most: u64) -> impl Iterator<Item = Self> {
        let parts = all.div_ceil(most.max(1)).max(largest.div_ceil(SENT_BYTES)).max(1) as u32;
        (0..parts).map(move |part| Self { part, parts })
    }

    /// The first hash of the range, by its first 32 bits, or the end of all.
    fn start(self) -> u64 {
        (u64::from(self.part) << 32) / u64::from(self.parts)
    }

    fn hashes(self) -> Range<u64> {
        self.start()..Self { part: self.part + 1, ..self }.start()
    }
}

fn bytes_of<T: NoUninit>(sent: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(sent).to_vec()
}

/// The answer of a part, whose generation lies in a folder, as bytes.
pub(super) fn answer(folder: &Path, manifest: &Manifest, ask: &Ask) -> Result<Vec<u8>, IndexError> {
    match ask {
        Ask::Names(range) => names(folder, manifest, *range).map(|hashes| bytes_of(&hashes)),
        Ask::Shared(hashes) => shared(folder, manifest, hashes).map(|names| bytes_of(&names)),
        Ask::Terms(range) => terms(folder, manifest, *range).map(|hashes| bytes_of(&hashes)),
    }
}

fn names(folder: &Path, manifest: &Manifest, range: HashRange) -> Result<Vec<u32>, IndexError> {
    let mut hashes = Vec::new();
    for run in &manifest.runs {
        let documents = RunDocuments::open_mapped(folder, run)?;
        documents.hashed_names(range.hashes(), |[hash, _]| {
            hashes.push(hash);
            Ok(())
        })?;
    }
    // Runs are in order, which this finds and merges.
    hashes.sort();
    Ok(hashes)
}

fn shared(
    folder: &Path,
    manifest: &Manifest,
    hashes: &[u32],
) -> Result<Vec<SharedName>, IndexError> {
    let mut named = Vec::new();
    for run in &manifest.runs {
        let documents = RunDocuments::open_mapped(folder, run)?;
        for hash in hashes.iter().copied().map(u64::from) {
            documents.hashed_names(hash..hash + 1, |[_, docid]| {
                let name = XxHash3_128::oneshot(&documents.name(docid)?);
                let name = [name as u64, (name >> 64) as u64];
                named.push((name, run.first_docid + docid));
                Ok(())
            })?;
        }
    }
    named.sort_unstable();
    let same = named.chunk_by(|(name, _), (other, _)| name == other);
    let of_name = |same: &[(TermHash, u32)]| SharedName {
        name: same[0].0,
        first: same[0].1,
        second: same.get(1).map_or(u32::MAX, |(_, docid)| *docid),
        documents: same.len() as u64,
    };
    Ok(same.map(of_name).collect())
}

fn terms(
    folder: &Path,
    manifest: &Manifest,
    range: HashRange,
) -> Result<Vec<TermHash>, IndexError> {
    let live = manifest.runs.iter().map(|run| LiveRun { run, deletions: Arc::default() });
    let runs: Vec<_> = live.map(|live| (folder, live)).collect();
    let mut hashes = Vec::new();
    count_distinct_terms(&runs, LEXICON_BYTES, |(collection, suffix)| {
        let hash = XxHash3_128::oneshot_with_seed(collection.into(), suffix);
        if range.hashes().contains(&((hash >> 96) as u64)) {
            hashes.push([(hash >> 64) as u64, hash as u64]);
        }
        Ok(true)
    })?;
    hashes.sort_unstable();
    Ok(hashes)
}

/// Reads what a process has sent.
fn received<T: AnyBitPattern>(process: usize, bytes: &[u8]) -> Result<Vec<T>, BuildError> {
    let (all, bytes) = (bytes.chunks_exact(size_of::<T>()), bytes.len());
    match all.remainder() {
        [] => Ok(all.map(bytemuck::pod_read_unaligned).collect()),
        _ => Err(BuildError::Sent { process, bytes }),
    }
}

/// Gives `look` all of what processes have sent, in order, in parts whose first 32 bits, `upper`,
/// are neighbours, by several threads.
fn in_parts<T: Copy + Ord + Sync, R: Send>(
    lists: &[Vec<T>],
    upper: impl Fn(&T) -> u32 + Sync,
    look: impl Fn(&[T]) -> R + Sync,
) -> Result<Vec<R>, BuildError> {
    let threads = cores().max(1);
    let (first, last) = lists.iter().fold((u32::MAX, 0), |(first, last), list| {
        (
            list.first().map_or(first, |least| first.min(upper(least))),
            list.last().map_or(last, |most| last.max(upper(most))),
        )
    });
    let width = u64::from(last.saturating_sub(first)) + 1;
    let border = |part: usize| u64::from(first) + width * part as u64 / threads as u64;
    let work = |(): &mut (), part: usize| {
        let mut all = Vec::new();
        for list in lists {
            let [start, end] = [part, part + 1]
                .map(|part| list.partition_point(|one| u64::from(upper(one)) < border(part)));
            all.extend_from_slice(&list[start..end]);
        }
        // They are in order in each list.
        all.sort();
        Ok::<_, IndexError>(look(&all))
    };
    Ok(Crew::new("alike").in_order(threads, threads, work)?)
}

/// Counts what all parts have alike, of which process 0 has the manifests; `ask` gets what each
/// process answers.
pub(super) fn count(
    parts: &[Manifest],
    memory: u64,
    ask: impl Fn(Ask) -> Result<Vec<Vec<u8>>, BuildError>,
) -> Result<(Duplicates, u64), BuildError> {
    let sizes = |bytes: u64, number: fn(&Manifest) -> u64| {
        let sizes = parts.iter().map(|part| bytes * number(part));
        (sizes.clone().sum::<u64>(), sizes.max().unwrap_or(0))
    };
    let mut next = 0u32;
    let first_docids = parts.iter().map(|part| {
        let first = next;
        next = part.runs.iter().fold(next, |next, run| next.saturating_add(run.documents));
        first
    });
    let first_docids: Vec<u32> = first_docids.collect();
    let all_of = |answers: Vec<Vec<u8>>| answers.into_iter().enumerate();
    let mut duplicates = Duplicates::default();
    let (all, largest) = sizes(4, |part| part.statistics.documents);
    for range in HashRange::all(all, largest, NAMES_BYTES.min(memory / 8)) {
        let sent = all_of(ask(Ask::Names(range))?);
        let lists = sent.map(|(process, bytes)| received::<u32>(process, &bytes));
        let lists: Vec<Vec<u32>> = lists.collect::<Result<_, _>>()?;
        let repeated = |hashes: &[u32]| {
            let same = hashes.chunk_by(u32::eq).filter(|same| same.len() > 1);
            same.map(|same| same[0]).collect::<Vec<u32>>()
        };
        let hashes = in_parts(&lists, |hash| *hash, repeated)?.concat();
        drop(lists);
        if hashes.is_empty() {
            continue;
        }
        let sent = all_of(ask(Ask::Shared(hashes))?);
        let names = sent.map(|(process, bytes)| {
            let mut names = received::<SharedName>(process, &bytes)?;
            let first = first_docids[process];
            for name in &mut names {
                name.first = name.first.saturating_add(first);
                name.second = name.second.saturating_add(first);
            }
            Ok(names)
        });
        let names: Vec<Vec<SharedName>> = names.collect::<Result<_, BuildError>>()?;
        let found = in_parts(&names, |name| (name.name[0] >> 32) as u32, same_names)?;
        duplicates = found.into_iter().fold(duplicates, Duplicates::unite);
    }
    let mut distinct = 0;
    let (all, largest) = sizes(16, |part| part.statistics.terms);
    for range in HashRange::all(all, largest, TERMS_BYTES.min(memory / 8)) {
        let sent = all_of(ask(Ask::Terms(range))?);
        let lists = sent.map(|(process, bytes)| received::<TermHash>(process, &bytes));
        let lists: Vec<Vec<TermHash>> = lists.collect::<Result<_, _>>()?;
        let different = |hashes: &[TermHash]| hashes.chunk_by(TermHash::eq).count() as u64;
        distinct += in_parts(&lists, |hash| (hash[0] >> 32) as u32, different)?.iter().sum::<u64>();
    }
    Ok((duplicates, distinct))
}

/// The documents that have the name of an earlier one, of names in order.
fn same_names(names: &[SharedName]) -> Duplicates {
    let mut found = Duplicates::default();
    for same in names.chunk_by(|name, other| name.name == other.name) {
        found.count += same.iter().map(|name| name.documents).sum::<u64>() - 1;
        let second = same.get(1).map_or(u32::MAX, |next| next.first).min(same[0].second);
        if second < u32::MAX {
            found.first = found.first.into_iter().chain([(second, same[0].first)]).min();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{collection, write_generation};
    use std::collections::BTreeSet;

    /// Documents are called by their numbers in their part.
    #[test]
    fn names_and_terms_that_parts_have_alike_are_found() {
        let parts = [5000, 300, 0, 70].map(|documents| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("runs")).unwrap();
            let documents = collection(u64::from(documents), documents, 80);
            let cuts = [documents.len() / 3];
            let manifest = write_generation(folder.path(), 1, &documents, &cuts);
            (folder, manifest, documents)
        });
        let terms = parts.iter().flat_map(|(_, _, documents)| documents);
        let terms: BTreeSet<_> = terms.flat_map(|document| document.keys()).collect();
        let manifests = parts.each_ref().map(|(_, manifest, _)| manifest.clone());
        for memory in [1 << 30, 40_000] {
            let ask = |ask: Ask| {
                let answers = parts.iter().map(|(folder, manifest, _)| {
                    answer(folder.path(), manifest, &ask).map_err(BuildError::from)
                });
                answers.collect()
            };
            let (duplicates, distinct) = count(&manifests, memory, ask).unwrap();
            assert_eq!((duplicates.count, duplicates.first), (370, Some((5000, 0))));
            assert_eq!(distinct, terms.len() as u64);
        }
        let error = count(&manifests, 1 << 30, |_| Ok(vec![vec![0; 5]])).unwrap_err();
        assert!(matches!(error, BuildError::Sent { process: 0, bytes: 5 }), "{error}");
    }
}
