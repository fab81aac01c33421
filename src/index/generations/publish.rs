//! Publishes generations, so that a job killed at any instant leaves the old one or the new one
//! whole: everything of the new one is synced, then one rename replaces `CURRENT`.
//!
//! Syncs that need not follow each other go on side by side. These four do:
//!
//! 1. all files and folders of the new generation, and the next `KEPT` and `CURRENT`;
//! 2. the folder of the index, once `KEPT` is replaced, if it has to be;
//! 3. the same once `CURRENT` is replaced; and a shorter `KEPT`;
//! 4. the same once `KEPT` is replaced.

use crate::index::error::IndexError;
use crate::index::files::storage;
use crate::index::format::{CURRENT, HELD, KEPT, RUNS, generation_name};
use crate::index::generations::folder::{IndexLock, TEMPORARY, current, entries, generations};
use crate::index::generations::held::{held, marked};
use crate::index::generations::in_use::Unused;
use crate::index::generations::keep::kept;
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::run_files::unnamed;
use std::path::{Path, PathBuf};
use tracing::info;

impl IndexLock {
    /// Removes debris: every generation that is neither live nor kept nor in use, runs that none of
    /// the others names, and `CURRENT.tmp`. Files that no job writes are left alone. `Damaged` if
    /// `CURRENT` cannot be read, for then it is unknown what is live.
    pub(crate) fn remove_debris(&self) -> Result<(), IndexError> {
        self.abandon(None)
    }

    /// Removes what a failed job has written; `before` was live when it began, and stays even if
    /// another is live now: then the job failed while it published, and it is unknown whether the
    /// change of `CURRENT` has reached the disk.
    pub(crate) fn abandon(&self, before: Option<&Path>) -> Result<(), IndexError> {
        let live = current(self.index())?;
        let keep: Vec<_> = live.as_deref().into_iter().chain(before).collect();
        storage::caught(self.index(), || {
            for path in left(self.index(), &keep)? {
                // It may be in use since it was looked at.
                if let Some(_unused) = Unused::claim(&path) {
                    storage::remove_tree(&path)?;
                }
            }
            // What is in use since then names its runs too.
            storage::remove_files(&unnamed(self.index(), &[])?, 1)?;
            // A first job that failed leaves nothing.
            let runs = self.index().join(RUNS);
            match entries(&runs) {
                Ok(inside) if inside.is_empty() => storage::remove_empty(&runs),
                _ => Ok(()),
            }
        })
    }

    /// Removes all generations but those to `keep`, of a disk that has no `CURRENT`.
    pub(crate) fn retain(&self, keep: &[u32]) -> Result<(), IndexError> {
        for (number, path) in generations(self.index())? {
            if !keep.contains(&number)
                && let Some(_unused) = Unused::claim(&path)
            {
                storage::remove_tree(&path)?;
            }
        }
        storage::remove_files(&unnamed(self.index(), &[])?, 1)
    }

    /// Makes generation `number` live, whose manifest is written, and removes all others but those
    /// that are [kept](Self::keeping). What of it is `unsynced` is synced before.
    ///
    /// # Errors
    /// `Damaged` if the manifest is not good. The live generation is the old one after an error,
    /// or, if only the last sync failed, the new one. Once that has succeeded there is no error: an
    /// old generation that cannot be removed is left to the next job.
    pub(crate) fn publish(&self, number: u32, unsynced: Vec<PathBuf>) -> Result<(), IndexError> {
        let name = generation_name(number);
        let path = self.index().join(&name);
        let manifest = Summary::read(&path)?;
        if manifest.generation != number {
            let found = format!("the manifest of generation {}", manifest.generation);
            return Err(IndexError::refused(&path, found));
        }
        self.go_live(number, unsynced, || _ = self.remove_debris())?;
        info!(generation = number, index = %self.index().display(), "published");
        Ok(())
    }

    fn go_live(
        &self,
        number: u32,
        mut unsynced: Vec<PathBuf>,
        clean: impl FnOnce(),
    ) -> Result<(), IndexError> {
        let index = self.index().to_path_buf();
        let all = self.kept_before(number)?;
        let next_kept = all.map(|all| self.stage_kept(&all)).transpose()?;
        unsynced.extend(next_kept.clone());
        unsynced.extend([self.stage_current(number)?, index.clone()]);
        storage::sync_all(&unsynced)?;
        if let Some(next) = next_kept {
            storage::rename(&next, &index.join(KEPT))?;
            storage::sync_dir(&index)?;
        }
        self.hand_on(number)?;
        self.switch(number, || {
            // What cannot be removed now is removed later, and so is what is kept too long.
            let few = self.kept_behind(number).ok().flatten();
            let next_kept = few.and_then(|few| self.stage_kept(&few).ok());
            let unsynced: Vec<_> =
                std::iter::once(index.clone()).chain(next_kept.clone()).collect();
            // None is tried again: the next sync may succeed though nothing was written.
            storage::sync_all(&unsynced)?;
            if !self.merges() {
                _ = self.release();
            }
            if let Some(next) = next_kept {
                let renamed = storage::rename(&next, &index.join(KEPT));
                _ = renamed.and_then(|()| storage::sync_dir(&index));
            }
            clean();
            Ok(())
        })
    }
}

/// What [`IndexLock::remove_debris`] removes when the generations in the folders `keep` stay.
pub(crate) fn debris(index: &Path, keep: &[&Path]) -> Result<Vec<PathBuf>, IndexError> {
    let mut debris = left(index, keep)?;
    debris.extend(unnamed(index, &debris)?);
    Ok(debris)
}

/// The debris except for files of runs.
fn left(index: &Path, keep: &[&Path]) -> Result<Vec<PathBuf>, IndexError> {
    let kept = kept(index)?.into_iter().map(|number| index.join(generation_name(number)));
    let kept: Vec<PathBuf> = kept.collect();
    let keep: Vec<&Path> = keep.iter().copied().chain(kept.iter().map(PathBuf::as_path)).collect();
    let mut debris: Vec<_> = generations(index)?.into_iter().map(|(_, path)| path).collect();
    debris.retain(|path| !keep.contains(&path.as_path()));
    for name in [CURRENT, KEPT, HELD] {
        let next = index.join(format!("{name}{TEMPORARY}"));
        if next.symlink_metadata().is_ok() {
            debris.push(next);
        }
    }
    if let (Ok(Some(_)), Ok(None)) = (marked(index), held(index)) {
        debris.push(index.join(HELD));
    }
    debris.retain(|path| Unused::claim(path).is_some());
    Ok(debris)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::format::CURRENT;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection, write_generation};
    use std::{fs, io};

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
            assert_eq!(names(index), ["CURRENT", "LOCK", &name, "runs"]);
        }
        assert_eq!(fs::read(index.join(CURRENT)).unwrap(), b"gen-000003\n");
    }

    /// Stops before each step of a job as a killed one would, and lets the next job come.
    #[test]
    fn a_job_that_stops_at_any_step_leaves_a_whole_generation() {
        let old = collection(1, 30, 40);
        let new = collection(2, 50, 60);
        let steps: [fn(&Path, &Path); 5] = [
            |index, _| fs::write(index.join("runs/000001.lexicon"), "part").unwrap(),
            |index, generation| {
                fs::remove_file(index.join("runs/000001.lexicon")).unwrap();
                write_generation(generation, 2, &collection(2, 50, 60), &[7]);
            },
            |index, _| fs::write(index.join("CURRENT.tmp"), "gen-00").unwrap(),
            |index, _| fs::write(index.join("CURRENT.tmp"), "gen-000002\n").unwrap(),
            |index, _| fs::rename(index.join("CURRENT.tmp"), index.join(CURRENT)).unwrap(),
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
            let open = || Generation::open(index).unwrap();
            assert_eq!(open().manifest().generation, live.0, "stopped at {stop}");
            assert_eq!(open().documents().len() as usize, live.1.len());

            let lock = IndexLock::acquire(index).unwrap();
            lock.remove_debris().unwrap();
            assert_eq!(names(index), ["CURRENT", "LOCK", &generation_name(live.0), "runs"]);
            let files = open().manifest().files.len();
            assert_eq!(names(&index.join("runs")).len(), files - 1, "but the inputs");
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
        let all = ["CURRENT", "LOCK", "gen-000001", "gen-1", "generation", "notes.txt", "runs"];
        assert_eq!(names(index), all);
    }

    #[test]
    fn nothing_is_removed_while_nobody_knows_what_is_live() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(1, 3, 3), &[]);
        for (text, at) in [
            ("", 0),
            ("gen-000001", 10),
            ("gen-000001\n\n", 10),
            ("gen-1\n", 5),
            ("../gen-000001\n", 0),
            ("gen=000001\n", 3),
            ("gen-0x0001\n", 5),
            ("\u{ff}\n", 0),
        ] {
            fs::write(index.join(CURRENT), text).unwrap();
            let error = current(index).unwrap_err().to_string();
            assert!(error.contains(&format!("CURRENT: byte {at}: expected")), "{error}");
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
        lock.publish(number, Vec::new()).unwrap_err();
        write_generation(&generation, number + 1, &collection(1, 3, 3), &[]);
        lock.publish(number, Vec::new()).unwrap_err();
        assert_eq!(current(index).unwrap(), None);
    }
}
