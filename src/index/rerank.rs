//! Replaces the PageRanks of an index: the live generation is published once more with all its
//! files linked but the static scores, which are written.

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::files::storage::{self, Durability};
use crate::index::format::Kind;
use crate::index::generations::folder::IndexLock;
use crate::index::generations::manifest::Manifest;
use crate::index::scores::write_scores;
use std::path::Path;

/// Publishes the generation in the folder `from`, whose manifest is `old`, with one PageRank for
/// each document by docid, deleted ones too. That generation is not kept. Documents that were
/// ordered by other ranks keep their docids, but count as ordered no more.
///
/// # Errors
/// `Refused` if a rank is negative or not a number; as [`IndexLock::publish`]. What was written is
/// debris then, which [`IndexLock::abandon`] removes.
///
/// # Panics
/// If there are not as many ranks as documents.
pub(crate) fn publish_ranks(
    lock: &IndexLock,
    from: &Path,
    old: &Manifest,
    ranks: &[f32],
    (command, workers): (&str, u32),
) -> Result<Manifest, IndexError> {
    let documents = old.runs.last().map_or(0, |run| run.first_docid + run.documents);
    assert_eq!(ranks.len(), documents as usize, "a rank for each document");
    let (number, to) = lock.next_generation()?;
    let mut files = Vec::with_capacity(old.files.len() + old.runs.len());
    for file in old.files.iter().filter(|file| !file.name.ends_with(Kind::Scores.extension())) {
        storage::link_or_copy(&from.join(&file.name), &to.join(&file.name))?;
        files.push(file.clone());
    }
    for run in &old.runs {
        let ranks = &ranks[run.first_docid as usize..][..run.documents as usize];
        files.push(write_scores(&to, &run.name, ranks, None, Durability::Lasting)?);
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = Manifest {
        generation: number,
        created: Manifest::now(),
        command: command.to_string(),
        workers,
        files,
        order: old.order.clone().filter(|order| order.global.is_none()),
        ..old.clone()
    };
    manifest.write(&to)?;
    lock.publish(number)?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::folder::current;
    use crate::index::generations::generation::Generation;
    use crate::index::inspect::check::check;
    use crate::index::scores::ranks_of;
    use crate::index::testing::{build, collection};

    #[test]
    fn ranks_are_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(3, 60, 30), &[25]);
        let before = Generation::open(index, true).unwrap().manifest().clone();
        for factor in [1.0, 0.5] {
            let from = current(index).unwrap().unwrap();
            let old = Manifest::read(&from).unwrap();
            let ranks: Vec<f32> = (0..60).map(|docid| factor * docid as f32).collect();
            let lock = IndexLock::acquire(index).unwrap();
            let new = publish_ranks(&lock, &from, &old, &ranks, ("ranks", 1)).unwrap();
            drop(lock);
            let live = current(index).unwrap().unwrap();
            assert_eq!(ranks_of(&live, &new).unwrap(), Some(ranks));
            assert!(!from.exists());
            check(index).unwrap();
            assert_eq!((new.generation, &new.runs), (old.generation + 1, &before.runs));
            assert_eq!(new.files.len(), before.files.len() + 2);
        }
        let (from, lock) = (current(index).unwrap().unwrap(), IndexLock::acquire(index).unwrap());
        let old = Manifest::read(&from).unwrap();
        let wrong = publish_ranks(&lock, &from, &old, &[-1.0; 60], ("ranks", 1));
        assert!(matches!(wrong, Err(IndexError::Refused { .. })), "{wrong:?}");
        lock.abandon(Some(&from)).unwrap();
        assert_eq!(current(index).unwrap(), Some(from));
    }
}
