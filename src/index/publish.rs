//! How does a new generation replace the live one, so that a job killed at any instant leaves one of
//! them whole? Everything of the new one is synced, then `CURRENT` is replaced by one rename.
//!
//! Only the holder of the [`IndexLock`] writes below the folder of an index. Readers do not wait for it:
//! a generation that one has open is not removed (`in_use`), and a reader that finds a file gone
//! while it opens a generation looks at `CURRENT` again.

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{
    CURRENT, CURRENT_TMP, KEPT_TMP, LOCK, RUNS, generation_name, generation_number,
};
use crate::index::in_use::Unused;
use crate::index::keep::kept;
use crate::index::manifest::Summary;
use crate::index::{plain, shards, storage};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::info;

/// The right to write to an index, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct IndexLock {
    index: PathBuf,
    /// Older generations that stay, if the one that is replaced may be one of them.
    pub(super) keep: Option<usize>,
    /// The lock goes when the file is closed.
    _lock: File,
}

/// How often a lock is asked for, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Tells whether a job is writing to the index in the folder `index`.
pub fn is_being_written(index: &Path) -> bool {
    let lock = File::open(index.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl IndexLock {
    /// Takes the lock of the index in the folder `index`, which is created if it is not there.
    ///
    /// # Errors
    /// `Locked` if another build or merge has it; `Storage`.
    pub fn acquire(index: &Path) -> Result<Self, IndexError> {
        storage::create_dirs(index)?;
        let path = index.join(LOCK);
        let lock = storage::open_lock(&path)?;
        let mut attempt = 1;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { index: index.to_path_buf(), keep: None, _lock: lock }),
                // A check that only asks holds it for some microseconds.
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(IndexError::Locked { path: index.to_path_buf() });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(IndexError::Storage { operation: "lock", path, source });
                }
            }
        }
    }

    /// Returns the folder of the index.
    pub fn index(&self) -> &Path {
        &self.index
    }

    /// Removes what jobs have left behind that did not end well: every generation that is neither live nor
    /// kept nor in use, and `CURRENT.tmp`. Files that no job writes are left alone.
    ///
    /// # Errors
    /// `Damaged` if `CURRENT` cannot be read, for then nobody knows what is live; `Storage`.
    pub fn remove_debris(&self) -> Result<(), IndexError> {
        self.abandon(None)
    }

    /// Removes what a job that failed has written; `before` was live when it began. That one stays
    /// even if another is live now, for then the job failed while it published, and nobody knows
    /// whether the change of `CURRENT` has reached the disk.
    ///
    /// # Errors
    /// As [`remove_debris`](Self::remove_debris).
    pub fn abandon(&self, before: Option<&Path>) -> Result<(), IndexError> {
        let live = current(&self.index)?;
        let keep: Vec<_> = live.as_deref().into_iter().chain(before).collect();
        for path in debris(&self.index, &keep)? {
            // It may be in use since it was looked at.
            if let Some(_unused) = Unused::claim(&path) {
                storage::remove_tree(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the folder of an index in which nothing else is. Who waits for the lock finds none.
    ///
    /// # Errors
    /// `Storage`.
    pub fn remove_index(self) -> Result<(), IndexError> {
        storage::remove_file(&self.index.join(LOCK))?;
        storage::remove_empty(&self.index)
    }

    /// Makes the folder of the next generation, with an empty folder for its runs. Returns the
    /// generation's number and its folder.
    ///
    /// # Errors
    /// `Damaged` if `CURRENT` cannot be read; `Storage`.
    pub fn next_generation(&self) -> Result<(u32, PathBuf), IndexError> {
        let (number, path) = self.next_folder()?;
        storage::create_dir(&path.join(RUNS))?;
        Ok((number, path))
    }

    /// Makes the folder of the next generation, which will have shards elsewhere. Returns its number
    /// and the folder.
    ///
    /// # Errors
    /// As [`next_generation`](Self::next_generation).
    pub fn next_folder(&self) -> Result<(u32, PathBuf), IndexError> {
        let live = current(&self.index)?;
        let taken = generations(&self.index)?.into_iter().map(|(number, _)| number);
        let live = live.as_deref().and_then(number_of);
        let number = taken.chain(live).max().unwrap_or(0).checked_add(1).ok_or_else(|| {
            IndexError::refused(&self.index, "there are no more numbers of generations")
        })?;
        let path = self.index.join(generation_name(number));
        storage::create_dir(&path)?;
        Ok((number, path))
    }

    /// Makes generation `number` the live one and removes all others but those that are
    /// [kept](Self::keeping). Its files are finished, that
    /// is synced, and its manifest is written.
    ///
    /// # Errors
    /// `Damaged` if the generation's manifest is not good; `Storage`. The live generation is the old
    /// one after an error, or, when only the last sync failed, the new one. Once that has succeeded
    /// there is no error: an old generation that cannot be removed is left to the next job.
    pub fn publish(&self, number: u32) -> Result<(), IndexError> {
        let name = generation_name(number);
        let path = self.index.join(&name);
        let manifest = Summary::read(&path)?;
        if manifest.generation != number || manifest.shards > 0 {
            let found = format!("the manifest of generation {}", manifest.generation);
            return Err(IndexError::refused(&path, found));
        }
        storage::sync_dir(&path.join(RUNS))?;
        storage::sync_dir(&path)?;
        self.keep_all()?;
        self.switch(number)?;
        info!(generation = number, index = %self.index.display(), "published");
        let _ = self.keep_few();
        let _ = self.remove_debris();
        Ok(())
    }

    /// Makes `CURRENT` name generation `number`.
    pub(super) fn switch(&self, number: u32) -> Result<(), IndexError> {
        let name = generation_name(number);
        let next = self.index.join(CURRENT_TMP);
        storage::write_whole(&next, format!("{name}\n").as_bytes())?;
        storage::sync_dir(&self.index)?;
        storage::rename(&next, &self.index.join(CURRENT))?;
        storage::sync_dir(&self.index)
    }
}

/// Returns the folder of the live generation of the index in the folder `index`; none if nothing was
/// published there yet.
///
/// # Errors
/// `Damaged` if `CURRENT` names no generation; `Storage`.
pub fn current(index: &Path) -> Result<Option<PathBuf>, IndexError> {
    let path = index.join(CURRENT);
    let bytes = match plain::read_plain(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(IndexError::storage("read", &path))?,
    };
    let text = std::str::from_utf8(&bytes).ok();
    let name = text.and_then(|text| text.strip_suffix('\n'));
    match name.filter(|name| generation_number(name).is_some()) {
        Some(name) => Ok(Some(index.join(name))),
        None => {
            let found = bytes[..bytes.len().min(32)].escape_ascii().to_string();
            Err(IndexError::damaged(
                &path,
                0,
                "the name of a generation, such as gen-000001",
                found,
            ))
        }
    }
}

/// Returns the number of the generation in a folder.
pub(crate) fn number_of(generation: &Path) -> Option<u32> {
    generation_number(generation.file_name()?.to_str()?)
}

/// Returns what [`IndexLock::remove_debris`] removes when the generations in the folders `keep` stay, and those
/// that are in use.
pub(crate) fn debris(index: &Path, keep: &[&Path]) -> Result<Vec<PathBuf>, IndexError> {
    let kept = kept(index)?.into_iter().map(|number| index.join(generation_name(number)));
    let kept: Vec<PathBuf> = kept.collect();
    let keep: Vec<&Path> = keep.iter().copied().chain(kept.iter().map(PathBuf::as_path)).collect();
    let mut debris: Vec<_> = generations(index)?.into_iter().map(|(_, path)| path).collect();
    debris.retain(|path| !keep.contains(&path.as_path()));
    for name in [CURRENT_TMP, KEPT_TMP] {
        let next = index.join(name);
        if next.symlink_metadata().is_ok() {
            debris.push(next);
        }
    }
    debris.extend(shards::debris(index, &keep)?);
    debris.retain(|path| Unused::claim(path).is_some());
    Ok(debris)
}

/// Returns all generations in the folder of an index, by number.
pub(super) fn generations(index: &Path) -> Result<Vec<(u32, PathBuf)>, IndexError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(index).map_err(IndexError::storage("read the folder", index))? {
        let path = entry.map_err(IndexError::storage("read the folder", index))?.path();
        if let Some(number) = number_of(&path) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generation::Generation;
    use crate::index::testing::{build, collection, write_generation};

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| name(e).unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn one_job_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("not/there/yet");
        let lock = IndexLock::acquire(&index).unwrap();
        let error = IndexLock::acquire(&index).unwrap_err();
        assert!(matches!(error, IndexError::Locked { .. }), "{error}");
        drop(lock);
        IndexLock::acquire(&index).unwrap();
    }

    #[test]
    fn a_new_generation_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        assert_eq!(current(index).unwrap(), None);
        for number in 1..4 {
            build(index, &collection(number.into(), 20, 20), &[]);
            let name = generation_name(number);
            assert_eq!(current(index).unwrap(), Some(index.join(&name)));
            assert_eq!(names(index), ["CURRENT", "LOCK", &name]);
        }
        assert_eq!(fs::read(index.join(CURRENT)).unwrap(), b"gen-000003\n");
    }

    /// Does what a job does step by step, stops before each step as a killed one would, and lets the
    /// next job come.
    #[test]
    fn a_job_that_stops_at_any_step_leaves_a_whole_generation() {
        let (old, new) = (collection(1, 30, 40), collection(2, 50, 60));
        let steps: [fn(&Path, &Path); 5] = [
            |_, generation| fs::write(generation.join("runs/000000.lexicon"), "part").unwrap(),
            |_, generation| {
                fs::remove_file(generation.join("runs/000000.lexicon")).unwrap();
                write_generation(generation, 2, &collection(2, 50, 60), &[7]);
            },
            |index, _| fs::write(index.join(CURRENT_TMP), "gen-00").unwrap(),
            |index, _| fs::write(index.join(CURRENT_TMP), "gen-000002\n").unwrap(),
            |index, _| fs::rename(index.join(CURRENT_TMP), index.join(CURRENT)).unwrap(),
        ];
        for stop in 0..=steps.len() {
            let folder = tempfile::tempdir().unwrap();
            let index = folder.path();
            build(index, &old, &[]);
            let lock = IndexLock::acquire(index).unwrap();
            let (number, generation) = lock.next_generation().unwrap();
            assert_eq!(number, 2);
            for step in &steps[..stop] {
                step(index, &generation);
            }
            drop(lock);

            let live = if stop == steps.len() { (2, &new) } else { (1, &old) };
            let open = || Generation::open(index, true).unwrap();
            assert_eq!(open().manifest().generation, live.0, "stopped at {stop}");
            assert_eq!(open().documents().len() as usize, live.1.len());

            let lock = IndexLock::acquire(index).unwrap();
            lock.remove_debris().unwrap();
            assert_eq!(names(index), ["CURRENT", "LOCK", &generation_name(live.0)]);
            assert_eq!(open().manifest().generation, live.0);
            assert_eq!(lock.next_generation().unwrap().0, live.0 + 1);
        }
    }

    #[test]
    fn what_no_job_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        for name in ["notes.txt", "gen-1", "generation"] {
            fs::write(index.join(name), "mine").unwrap();
        }
        build(index, &collection(1, 3, 3), &[]);
        let all = ["CURRENT", "LOCK", "gen-000001", "gen-1", "generation", "notes.txt"];
        assert_eq!(names(index), all);
    }

    #[test]
    fn nothing_is_removed_while_nobody_knows_what_is_live() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(1, 3, 3), &[]);
        for text in ["", "gen-000001", "gen-000001\n\n", "gen-1\n", "../gen-000001\n", "\u{ff}\n"] {
            fs::write(index.join(CURRENT), text).unwrap();
            let error = current(index).unwrap_err();
            assert!(error.to_string().contains("CURRENT: byte 0: expected"), "{error}");
            let lock = IndexLock::acquire(index).unwrap();
            lock.remove_debris().unwrap_err();
            lock.next_generation().unwrap_err();
            assert!(index.join("gen-000001").exists());
        }
    }

    #[test]
    fn only_a_whole_generation_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let lock = IndexLock::acquire(index).unwrap();
        let (number, generation) = lock.next_generation().unwrap();
        lock.publish(number).unwrap_err();
        write_generation(&generation, number + 1, &collection(1, 3, 3), &[]);
        lock.publish(number).unwrap_err();
        assert_eq!(current(index).unwrap(), None);
    }
}
