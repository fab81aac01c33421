//! Older generations that are kept, and rollbacks to them.
//!
//! `INDEX/KEPT` names the kept generations, a line each, the one that was live last at the end, and
//! then its checksum. What neither it nor `CURRENT` names is debris. A job killed between any two
//! steps of publishing loses none that is to be kept:
//!
//! 1. `KEPT` names what it named, and the live generation;
//! 2. `CURRENT` names the new generation;
//! 3. `KEPT` names the last few of those, and what it names no more is removed.

use crate::index::error::IndexError;
use crate::index::files::{plain, storage};
use crate::index::format::{KEPT, generation_name, generation_number};
use crate::index::generations::folder::{IndexLock, current, generations, number_of};
use crate::index::generations::held::{Hold, held};
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::summary::Summary;
use crate::shown::now;
use std::path::{Path, PathBuf};

/// The kept generations of the index in the folder `index` beside the live one, the one that was
/// live last at the end. `Damaged` if `KEPT` names something else than generations that are there.
pub(crate) fn kept(index: &Path) -> Result<Vec<u32>, IndexError> {
    let live = current(index)?.as_deref().and_then(number_of);
    Ok(listed(index)?.into_iter().filter(|number| Some(*number) != live).collect())
}

/// What stands in `KEPT`.
fn listed(index: &Path) -> Result<Vec<u32>, IndexError> {
    let path = index.join(KEPT);
    let bytes = match plain::read(&path) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        read => read?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let damaged = |at: usize, expected: &str, found: &str| {
        Err(IndexError::damaged(&path, at as u64, expected, found.escape_default()))
    };
    // Earlier programs wrote no checksum.
    let (names, sum) = text.split_at(text.find(SUM).unwrap_or(text.len()));
    let numbers: Option<Vec<u32>> = names.lines().map(generation_number).collect();
    let Some(numbers) = numbers.filter(|_| names.is_empty() || names.ends_with('\n')) else {
        return damaged(0, "names of generations, such as gen-000001", &text);
    };
    if !sum.is_empty() && sum != sum_of(names) {
        return damaged(names.len(), sum_of(names).trim_end(), sum);
    }
    let mut folders = numbers.iter().map(|&number| generation_name(number));
    match folders.find(|name| !index.join(name).is_dir()) {
        None => Ok(numbers),
        // It was replaced meanwhile.
        Some(_) if plain::read(&path).is_ok_and(|now| now != bytes) => listed(index),
        Some(name) => {
            let at = names.find(&name).unwrap_or_default() + 4;
            damaged(at, "the number of a generation whose folder is there", &name)
        }
    }
}

/// Begins the last line of `KEPT`.
const SUM: &str = "crc32 ";

/// The last line behind these names.
fn sum_of(names: &str) -> String {
    format!("{SUM}{:08x}\n", crc32fast::hash(names.as_bytes()))
}

fn text_of(numbers: &[u32]) -> String {
    let names: String = numbers.iter().map(|&number| generation_name(number) + "\n").collect();
    let sum = sum_of(&names);
    names + &sum
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledBack {
    pub from: u32,
    pub to: u32,
    /// The generation that rebuilds do not publish again ([`held`](super::held)).
    pub held: Option<u32>,
}

/// Makes a kept generation live: generation `to`, or the latest before the live one that was not
/// rolled back itself. The live one is kept until the next is published. Going back holds, until
/// the newest generation that was left is live again.
///
/// # Errors
/// `NotKept`; `Damaged` or `Newer` if the manifest of the generation is not good. The live
/// generation is the old one after an error, or, if only the last sync failed, the other one.
pub fn rollback(index: &Path, to: Option<u32>) -> Result<RolledBack, IndexError> {
    let none = || IndexError::NoIndex { path: index.to_path_buf() };
    // Taking the lock creates the folder, so there has to be an index.
    current(index)?.ok_or_else(none)?;
    let lock = IndexLock::acquire(index)?;
    let live = current(index)?.ok_or_else(none)?;
    let from = number_of(&live).ok_or_else(none)?;
    let kept = kept(index)?;
    let held = held(index)?;
    let left = held.as_ref().map(|held| held.generation);
    let is_before = |number: &u32| *number < from && Some(*number) != left;
    let target = match to {
        Some(to) => Some(to).filter(|to| kept.contains(to)),
        None => kept.iter().copied().filter(is_before).max(),
    };
    let Some(to) = target else {
        return Err(IndexError::NotKept {
            path: index.to_path_buf(),
            live: from,
            wanted: to,
            kept,
        });
    };
    let folder = index.join(generation_name(to));
    Manifest::read(&folder)?;
    let mut all = kept;
    all.push(from);
    lock.write_kept(&all)?;
    let is_back = left.map_or(to < from, |left| left != to);
    let since = now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let new = Hold { generation: from, since, live: Vec::new() };
    let mut held = is_back.then(|| held.unwrap_or(new));
    if let Some(hold) = held.as_mut().filter(|hold| !hold.live.contains(&to)) {
        hold.live.push(to);
        lock.hold(hold)?;
    }
    storage::sync(&lock.stage_current(to)?)?;
    lock.switch(to, || {
        storage::sync_dir(index)?;
        // `kept` leaves the live one out, wherever the job is killed.
        all.retain(|number| *number != to);
        lock.write_kept(&all)?;
        if held.is_none() {
            lock.release()?;
        }
        Ok(())
    })?;
    Ok(RolledBack { from, to, held: held.map(|held| held.generation) })
}

impl IndexLock {
    /// Lets [`publish`](Self::publish) keep the generation that it replaces, and `keep` older ones
    /// in all. Otherwise it [merges](Self::merges): it keeps those that are kept already, and not
    /// the one that it replaces.
    pub(crate) fn keeping(mut self, keep: usize) -> Self {
        self.keep = Some(keep);
        self
    }

    /// What is published has no new input, so that a rollback goes on to hold.
    pub(crate) fn merges(&self) -> bool {
        self.keep.is_none()
    }

    /// What `KEPT` has to name before generation `next` becomes live, if it does not: step 1.
    pub(crate) fn kept_before(&self, next: u32) -> Result<Option<Vec<u32>>, IndexError> {
        let live = self.live()?.as_deref().and_then(number_of);
        let listed = listed(self.index());
        let heals = self.heals && matches!(listed, Err(IndexError::Damaged { .. }));
        let mut all = match heals {
            // Whatever is whole and no commit may have been kept.
            true => {
                let there = generations(self.index())?.into_iter();
                there
                    .filter(|(_, path)| Summary::read(path).is_ok_and(|summary| !summary.is_commit))
                    .map(|(number, _)| number)
                    .collect()
            }
            false => listed?,
        };
        all.retain(|number| Some(*number) != live && *number != next);
        let replaced = live.filter(|_| self.keep.is_some_and(|keep| keep > 0));
        // One does not go back to a commit, but to the point before it.
        let is_point = |number: &u32| {
            let summary = Summary::read(&self.index().join(generation_name(*number)));
            summary.map_or(true, |summary| !summary.is_commit)
        };
        let replaced = replaced.filter(is_point);
        all.extend(replaced);
        Ok((heals || replaced.is_some()).then_some(all))
    }

    /// What `KEPT` has to name no longer than that, if it does, while generation `live` is: step 3.
    /// While a rollback holds all stay.
    pub(crate) fn kept_behind(&self, live: u32) -> Result<Option<Vec<u32>>, IndexError> {
        let Some(keep) = self.keep else { return Ok(None) };
        if held(self.index())?.is_some() {
            return Ok(None);
        }
        let mut few = listed(self.index())?;
        let all = few.len();
        few.retain(|number| *number != live);
        few.drain(..few.len().saturating_sub(keep));
        Ok((few.len() < all).then_some(few))
    }

    /// Keeps no more than are to be kept, whatever a job that was killed has left.
    pub(crate) fn keep_few(&self) -> Result<(), IndexError> {
        let live = current(self.index())?.as_deref().and_then(number_of);
        let few = live.map_or(Ok(None), |live| self.kept_behind(live))?;
        few.map_or(Ok(()), |few| self.write_kept(&few))
    }

    pub(crate) fn stage_kept(&self, numbers: &[u32]) -> Result<PathBuf, IndexError> {
        self.stage(KEPT, &text_of(numbers))
    }

    pub(crate) fn write_kept(&self, numbers: &[u32]) -> Result<(), IndexError> {
        self.replace(KEPT, &text_of(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{collection, write_generation};
    use std::fs;

    fn publish(index: &Path, documents: usize, keep: Option<usize>) -> u32 {
        let mut lock = IndexLock::acquire(index).unwrap();
        if let Some(keep) = keep {
            lock = lock.keeping(keep);
        }
        lock.remove_debris().unwrap();
        let (number, folder) = lock.next_generation().unwrap();
        write_generation(&folder, number, &collection(7, documents as u32, 30), &[]);
        lock.publish(number, Vec::new()).unwrap();
        number
    }

    fn state(index: &Path) -> (u32, usize, Vec<u32>) {
        let generation = Generation::open(index).unwrap();
        let documents = generation.documents().len() as usize;
        let folders = fs::read_dir(index).unwrap();
        let numbers = folders.filter_map(|entry| number_of(&entry.unwrap().path()));
        let kept = kept(index).unwrap();
        assert_eq!(numbers.count(), 1 + kept.len(), "what is kept is there, and nothing else");
        (generation.manifest().generation, documents, kept)
    }

    fn rolled_back(from: u32, to: u32, held: Option<u32>) -> RolledBack {
        RolledBack { from, to, held }
    }

    #[test]
    fn some_generations_are_kept_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        for (documents, keep, kept) in [
            (1, Some(1), vec![]),
            (2, Some(1), vec![1]),
            (3, Some(1), vec![2]),
            (4, Some(2), vec![2, 3]),
            (5, Some(2), vec![3, 4]),
            // A merge keeps what is kept, and not what it merged.
            (6, None, vec![3, 4]),
        ] {
            publish(index, documents, keep);
            assert_eq!(state(index), (documents as u32, documents, kept));
        }
        assert_eq!(rollback(index, None).unwrap(), rolled_back(6, 4, Some(6)));
        assert_eq!(state(index), (4, 4, vec![3, 6]));
        assert_eq!(rollback(index, None).unwrap(), rolled_back(4, 3, Some(6)));
        let error = rollback(index, None).unwrap_err().to_string();
        assert!(error.contains("no generation before 3 is kept; kept are 6, 4"), "{error}");
        let error = rollback(index, Some(5)).unwrap_err().to_string();
        assert!(error.contains("generation 5 is not kept; kept are 6, 4"), "{error}");
        assert_eq!(rollback(index, Some(6)).unwrap(), rolled_back(3, 6, None));
        assert_eq!(state(index), (6, 6, vec![4, 3]));
        assert_eq!(publish(index, 7, Some(1)), 7);
        assert_eq!(state(index), (7, 7, vec![6]));
        publish(index, 8, Some(0));
        assert_eq!(state(index), (8, 8, vec![]));
    }

    #[test]
    fn a_job_that_stops_at_any_step_loses_nothing_that_is_kept() {
        for stop in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let index = folder.path();
            publish(index, 1, Some(1));
            publish(index, 2, Some(1));
            let lock = IndexLock::acquire(index).unwrap().keeping(1);
            let (number, generation) = lock.next_generation().unwrap();
            write_generation(&generation, number, &collection(7, 3, 30), &[]);
            let steps: [&dyn Fn(); 3] = [
                &|| lock.write_kept(&lock.kept_before(number).unwrap().unwrap()).unwrap(),
                &|| {
                    lock.stage_current(number).unwrap();
                    lock.switch(number, || Ok(())).unwrap();
                },
                &|| lock.keep_few().unwrap(),
            ];
            steps[..stop].iter().for_each(|step| step());
            drop(lock);
            let lock = IndexLock::acquire(index).unwrap();
            lock.remove_debris().unwrap();
            drop(lock);
            let expected = match stop {
                0 | 1 => (2, 2, vec![1]),
                2 => (3, 3, vec![1, 2]),
                _ => (3, 3, vec![2]),
            };
            assert_eq!(state(index), expected, "stopped at {stop}");
            rollback(index, None).unwrap();
        }
    }

    #[test]
    fn what_is_kept_has_to_be_readable() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        publish(index, 1, Some(1));
        publish(index, 2, Some(1));
        for text in ["gen-1\n", "gen-000001", "x"] {
            fs::write(index.join(KEPT), text).unwrap();
            let error = rollback(index, None).unwrap_err();
            assert!(error.to_string().contains("KEPT: byte 0: expected"), "{error}");
            let lock = IndexLock::acquire(index).unwrap();
            lock.remove_debris().unwrap_err();
            assert!(index.join("gen-000001").exists());
        }
        // An earlier program wrote no checksum.
        for (text, error) in [
            ("gen-000001\n", None),
            ("", None),
            (
                "gen-000003\n",
                Some("KEPT: byte 4: expected the number of a generation whose folder"),
            ),
            ("gen-000001\ngen-000009\n", Some("KEPT: byte 15: expected the number")),
        ] {
            fs::write(index.join(KEPT), text).unwrap();
            let found = kept(index).map_err(|error| error.to_string());
            match error {
                None => assert_eq!(found.unwrap().len(), text.lines().count()),
                Some(error) => assert!(found.unwrap_err().contains(error), "{text}"),
            }
        }
        fs::write(index.join(KEPT), "gen-000001\n").unwrap();
        fs::write(index.join("gen-000001/manifest.json"), "{}").unwrap();
        rollback(index, None).unwrap_err();
        assert_eq!(state(index), (2, 2, vec![1]));
    }

    /// A bit may make another name of it, that of the live generation too.
    #[test]
    fn every_flipped_bit_of_kept_is_found_and_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        for documents in 1..4 {
            publish(index, documents, Some(2));
        }
        let path = index.join(KEPT);
        let sound = fs::read(&path).unwrap();
        for bit in 0..8 * sound.len() {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let lock = IndexLock::acquire(index).unwrap();
            for error in [kept(index).unwrap_err(), lock.remove_debris().unwrap_err()] {
                assert!(error.to_string().contains("KEPT: byte "), "{bit}: {error}");
            }
            drop(lock);
            crate::index::inspect::check::check(index).unwrap_err();
            rollback(index, None).unwrap_err();
            assert!(index.join("gen-000001").exists() && index.join("gen-000002").exists());
        }
        // Healing keeps whatever is whole.
        let mut lock = IndexLock::acquire(index).unwrap().keeping(2);
        lock.heals = true;
        let (number, next) = lock.next_generation().unwrap();
        write_generation(&next, number, &collection(7, 4, 30), &[]);
        lock.publish(number, Vec::new()).unwrap();
        drop(lock);
        assert_eq!(state(index), (4, 4, vec![2, 3]));
    }
}
