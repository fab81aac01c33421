//! The folder of an index: its lock, its generations, and the one that `CURRENT` names.
//!
//! Only the holder of the [`IndexLock`] writes there. Readers need no lock: a generation that is
//! open is not removed (`in_use`), and a reader that finds a file gone while it opens a generation
//! looks at `CURRENT` again.

use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::files::{plain, storage};
use crate::index::format::{CURRENT, LOCK, RUNS, generation_name, generation_number};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The right to write to an index, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct IndexLock {
    index: PathBuf,
    /// Older generations that stay, if the one that is replaced may be one of them.
    pub(crate) keep: Option<usize>,
    /// What is published does not rest on what is live, and heals damage of what names that.
    pub(crate) heals: bool,
    _lock: File,
}

/// The end of the name of a file that is to take the place of another.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Attempts to lock, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) fn is_being_written(index: &Path) -> bool {
    let lock = File::open(index.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl IndexLock {
    /// [`acquire`](Self::acquire), once nobody else holds it, or `stop` is set.
    pub(crate) fn wait(index: &Path, stop: &Stop) -> Result<Self, IndexError> {
        loop {
            match Self::acquire(index) {
                Err(IndexError::Locked { .. }) => {
                    stop.check()?;
                    std::thread::sleep(PAUSE);
                }
                locked => return locked,
            }
        }
    }

    /// Locks the index in the folder `index`, which is created if it is not there.
    ///
    /// # Errors
    /// `Locked` if another job holds it, with its process if that has written it down.
    pub fn acquire(index: &Path) -> Result<Self, IndexError> {
        storage::create_dirs(index)?;
        let path = index.join(LOCK);
        let lock = storage::open_lock(&path)?;
        let mut attempt = 1;
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    // For messages of others alone: a full disk may not have room for it.
                    let process = format!("{}\n", std::process::id());
                    _ = lock.set_len(0).and_then(|()| lock.write_all_at(process.as_bytes(), 0));
                    let index = index.to_path_buf();
                    return Ok(Self { index, keep: None, heals: false, _lock: lock });
                }
                // [`is_being_written`] holds it for some microseconds.
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let process = fs::read_to_string(&path).ok();
                    let process = process.and_then(|process| process.trim().parse().ok());
                    return Err(IndexError::Locked { path: index.to_path_buf(), process });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(IndexError::Storage { operation: "lock", path, source });
                }
            }
        }
    }

    pub(crate) fn index(&self) -> &Path {
        &self.index
    }

    /// What is [`current`]; damage is an error unless what comes heals it.
    pub(crate) fn live(&self) -> Result<Option<PathBuf>, IndexError> {
        match current(&self.index) {
            Err(IndexError::Damaged { .. }) if self.heals => Ok(None),
            live => live,
        }
    }

    /// Removes the folder of an index that is empty. A job that waits for the lock finds none.
    pub(crate) fn remove_index(self) -> Result<(), IndexError> {
        storage::remove_file(&self.index.join(LOCK))?;
        storage::remove_empty(&self.index)
    }

    /// Makes the folder of the next generation, and that of all runs if it is not there.
    pub(crate) fn next_generation(&self) -> Result<(u32, PathBuf), IndexError> {
        let live = self.live()?;
        let taken = generations(&self.index)?.into_iter().map(|(number, _)| number);
        let live = live.as_deref().and_then(number_of);
        let number = taken.chain(live).max().unwrap_or(0).checked_add(1).ok_or_else(|| {
            IndexError::refused(&self.index, "there are no more numbers of generations")
        })?;
        let path = self.index.join(generation_name(number));
        storage::create_dir(&path)?;
        storage::create_dir(&self.index.join(RUNS))?;
        Ok((number, path))
    }

    /// Makes generation `number` live, for which `CURRENT` is [staged](Self::stage_current) and
    /// synced, and does what follows, first the sync of the folder. This decides for all jobs what
    /// is told from the rename on: that it is live, whatever fails.
    pub(crate) fn switch(
        &self,
        number: u32,
        follow: impl FnOnce() -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let current = self.index.join(CURRENT);
        storage::rename(&self.index.join(format!("{CURRENT}{TEMPORARY}")), &current)?;
        storage::caught(&self.index, follow).map_err(IndexError::live(number))
    }

    /// Writes the `CURRENT` that names generation `number` beside the old one, and does not sync
    /// it. Returns its path.
    pub(crate) fn stage_current(&self, number: u32) -> Result<PathBuf, IndexError> {
        self.stage(CURRENT, &(generation_name(number) + "\n"))
    }

    /// Writes what is to take the place of a small file of the index, beside it, and does not sync
    /// it. Returns its path.
    pub(crate) fn stage(&self, name: &str, text: &str) -> Result<PathBuf, IndexError> {
        let next = self.index.join(format!("{name}{TEMPORARY}"));
        storage::write_whole(&next, text.as_bytes())?;
        Ok(next)
    }

    /// Replaces a small file of the index by one rename, and syncs it.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<(), IndexError> {
        let next = self.stage(name, text)?;
        storage::sync(&next)?;
        storage::rename(&next, &self.index.join(name))?;
        storage::sync_dir(&self.index)
    }
}

/// The folder of the live generation of the index in the folder `index`; none if nothing was
/// published there yet, `Damaged` if `CURRENT` names no generation that is there.
pub fn current(index: &Path) -> Result<Option<PathBuf>, IndexError> {
    let path = index.join(CURRENT);
    let bytes = match plain::read(&path) {
        Err(error) if error.is_not_found() => return Ok(None),
        read => read?,
    };
    let text = std::str::from_utf8(&bytes).ok();
    let name = text.and_then(|text| text.strip_suffix('\n'));
    match name.filter(|name| generation_number(name).is_some()) {
        Some(name) if index.join(name).is_dir() => Ok(Some(index.join(name))),
        // It was replaced meanwhile.
        Some(_) if plain::read(&path).is_ok_and(|now| now != bytes) => current(index),
        Some(name) => {
            let expected = "the number of a generation whose folder is there";
            Err(IndexError::damaged(&path, 4, expected, name))
        }
        None => {
            let is_right =
                |(byte, form): &(&u8, &u8)| byte == form || **form == b'0' && byte.is_ascii_digit();
            let wrong = bytes.iter().zip(b"gen-000000").take_while(is_right).count() as u64;
            let found = bytes[..bytes.len().min(32)].escape_ascii().to_string();
            let expected = "the name of a generation, such as gen-000001, and a line feed";
            Err(IndexError::damaged(&path, wrong, expected, found))
        }
    }
}

pub(crate) fn number_of(generation: &Path) -> Option<u32> {
    generation_number(generation.file_name()?.to_str()?)
}

/// Sorted by number.
pub(crate) fn generations(index: &Path) -> Result<Vec<(u32, PathBuf)>, IndexError> {
    let numbered = |(name, path): (String, PathBuf)| Some((generation_number(&name)?, path));
    let mut found: Vec<_> = entries(index)?.into_iter().filter_map(numbered).collect();
    found.sort();
    Ok(found)
}

/// Sorted.
pub(crate) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, IndexError> {
    storage::caught(folder, || {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(IndexError::storage("read the folder", folder))? {
            let entry = entry.map_err(IndexError::storage("read the folder", folder))?;
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
        found.sort();
        Ok(found)
    })
}
