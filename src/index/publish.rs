//! How does a new generation replace the live one, so that a crash at any instant leaves one of the
//! two?
//!
//! Everything under the new folder is synced, files first, then folders; then one rename of
//! `CURRENT.tmp` to `CURRENT` makes it live. Who writes holds the lock of the index, which the
//! system releases when the process ends in any way.

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{CURRENT, CURRENT_TMP, LOCK, RUNS, generation_name, generation_number};
use crate::index::manifest::Manifest;
use crate::index::storage;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder of the live generation; `None` if there is none.
///
/// # Errors
/// `Storage`, or `Damaged` if `CURRENT` does not name a generation.
pub fn current(index: &Path) -> Result<Option<PathBuf>, IndexError> {
    let path = index.join(CURRENT);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(IndexError::storage("read", &path)(e)),
    };
    let name = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n'));
    match name.filter(|name| generation_number(name).is_some()) {
        Some(name) => Ok(Some(index.join(name))),
        None => {
            let found = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
            Err(IndexError::damaged(&path, 0, "the name of a generation and a line end", found))
        }
    }
}

/// The right to write an index, held while it lives.
#[derive(Debug)]
pub struct IndexLock {
    index: PathBuf,
    /// Locked; closing it unlocks.
    _file: File,
}

impl IndexLock {
    /// Takes the lock of the index in the folder `index`, which is made if it is not there.
    ///
    /// # Errors
    /// `Locked` if another process holds it; `Storage`.
    pub fn acquire(index: &Path) -> Result<Self, IndexError> {
        fs::create_dir_all(index).map_err(IndexError::storage("create the folder", index))?;
        let path = index.join(LOCK);
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(IndexError::storage("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { index: index.to_path_buf(), _file: file }),
            Err(TryLockError::WouldBlock) => Err(IndexError::Locked { path: index.to_path_buf() }),
            Err(TryLockError::Error(e)) => Err(IndexError::storage("lock", &path)(e)),
        }
    }

    /// The folder of the index.
    pub fn index(&self) -> &Path {
        &self.index
    }

    /// Removes what jobs that died left behind: generations that are not live, and an unfinished
    /// `CURRENT`. Files of other names are somebody else's and stay.
    ///
    /// # Errors
    /// `Storage`, or `Damaged` if `CURRENT` is.
    pub fn remove_debris(&self) -> Result<(), IndexError> {
        let live = current(&self.index)?;
        for (path, name) in self.entries()? {
            if name == CURRENT_TMP {
                storage::remove_file(&path)?;
            } else if generation_number(&name).is_some() && live.as_ref() != Some(&path) {
                storage::remove_tree(&path)?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<(PathBuf, String)>, IndexError> {
        let failed = |e| IndexError::storage("list", &self.index)(e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.index).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            entries.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
        }
        entries.sort();
        Ok(entries)
    }

    /// Makes the folder of the next generation.
    ///
    /// # Errors
    /// `Storage`.
    pub fn next_generation(&self) -> Result<NewGeneration<'_>, IndexError> {
        let numbers = self.entries()?.into_iter().filter_map(|(_, name)| generation_number(&name));
        let number = numbers.max().unwrap_or(0) + 1;
        let directory = self.index.join(generation_name(number));
        storage::create_dir(&directory)?;
        let new = NewGeneration { lock: self, number, directory, live: false };
        storage::create_dir(&new.directory.join(RUNS))?;
        Ok(new)
    }
}

/// A generation that is being written. Dropped without being published, it is removed.
#[derive(Debug)]
pub struct NewGeneration<'a> {
    lock: &'a IndexLock,
    number: u32,
    directory: PathBuf,
    live: bool,
}

impl NewGeneration<'_> {
    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the generation live. Its files are written and synced; `manifest` is written here.
    /// Older generations are removed.
    ///
    /// # Errors
    /// `Storage`. The live generation is then the old one, or the new one if the error came after
    /// the rename; either is whole.
    pub fn publish(mut self, manifest: &Manifest) -> Result<(), IndexError> {
        let index = &self.lock.index;
        manifest.write(&self.directory)?;
        storage::sync_dir(&self.directory.join(RUNS))?;
        storage::sync_dir(&self.directory)?;
        storage::sync_dir(index)?;
        let (current_path, tmp) = (index.join(CURRENT), index.join(CURRENT_TMP));
        storage::write_whole(&tmp, format!("{}\n", generation_name(self.number)).as_bytes())?;
        self.live = true;
        if let Err(error) = storage::rename(&tmp, &current_path) {
            // What `CURRENT` says counts, not what the rename returned.
            self.live = !current(index).is_ok_and(|live| live.as_ref() != Some(&self.directory));
            return Err(error);
        }
        storage::sync_dir(index)?;
        self.lock.remove_debris()
    }
}

impl Drop for NewGeneration<'_> {
    fn drop(&mut self) {
        if !self.live {
            // What cannot be removed now is removed by the next job.
            _ = fs::remove_file(self.lock.index.join(CURRENT_TMP));
            _ = fs::remove_dir_all(&self.directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let lock = IndexLock::acquire(folder.path()).unwrap();
        let second = IndexLock::acquire(folder.path()).unwrap_err();
        assert!(matches!(second, IndexError::Locked { .. }), "{second}");
        drop(lock);
        IndexLock::acquire(folder.path()).unwrap();
    }

    #[test]
    fn debris_goes_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("gen-000003/runs")).unwrap();
        fs::create_dir_all(at("gen-000004/runs")).unwrap();
        fs::write(at("gen-000004/runs/000000.lexicon"), "x").unwrap();
        fs::write(at(CURRENT), "gen-000003\n").unwrap();
        fs::write(at(CURRENT_TMP), "gen-0").unwrap();
        fs::write(at("notes.txt"), "mine").unwrap();
        let lock = IndexLock::acquire(folder.path()).unwrap();
        lock.remove_debris().unwrap();
        assert!(at("gen-000003").exists() && at("notes.txt").exists());
        assert!(!at("gen-000004").exists() && !at(CURRENT_TMP).exists());
        let new = lock.next_generation().unwrap();
        assert_eq!(new.number(), 4);
        drop(new);
        assert!(!at("gen-000004").exists(), "an unpublished generation is removed");
        assert_eq!(current(folder.path()).unwrap(), Some(at("gen-000003")));
    }

    #[test]
    fn a_foreign_current_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(current(folder.path()).unwrap(), None);
        for text in ["", "gen-000001", "gen-1\n", "../elsewhere\n", "gen-000001\n\n"] {
            fs::write(folder.path().join(CURRENT), text).unwrap();
            current(folder.path()).unwrap_err();
        }
    }
}
