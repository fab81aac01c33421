//! Generations in use: a reader holds a shared lock on the manifest of each that it has open, and
//! removing one needs that lock alone, so a generation in use stays until the next job.
//!
//! On a local disk mapped files would outlive their names, on others not, and a generation must not
//! lose a file while it is opened. Where the file system has no locks, readers do not count.

use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::format::MANIFEST;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Attempts to lock, and the pause between: other attempts to claim hold it for some microseconds.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps a generation from being removed until it is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    _manifest: File,
}

impl InUse {
    /// `Storage`, as if the manifest were gone, if the generation is being removed.
    pub(crate) fn of(generation: &Path) -> Result<Self, IndexError> {
        let path = generation.join(MANIFEST);
        let manifest = plain::open(&path)?;
        for attempt in 1.. {
            match manifest.try_lock_shared() {
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let source = io::Error::from(io::ErrorKind::NotFound);
                    return Err(IndexError::Storage { operation: "lock", path, source });
                }
                // Without locks readers do not count.
                Ok(()) | Err(TryLockError::Error(_)) => break,
            }
        }
        Ok(Self { _manifest: manifest })
    }
}

/// The right to remove what lies at a path, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Unused {
    _manifests: Vec<File>,
}

impl Unused {
    /// Claims a generation, a folder of generations, or a file; none if a generation there is in
    /// use.
    pub(crate) fn claim(path: &Path) -> Option<Self> {
        let inside = fs::read_dir(path).into_iter().flatten().flatten();
        let folders = inside.map(|entry| entry.path()).chain([path.to_path_buf()]);
        let mut manifests = Vec::new();
        // Without a manifest it was never published, or is half removed.
        for manifest in folders.filter_map(|folder| plain::open(&folder.join(MANIFEST)).ok()) {
            if matches!(manifest.try_lock(), Err(TryLockError::WouldBlock)) {
                return None;
            }
            manifests.push(manifest);
        }
        Some(Self { _manifests: manifests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::folder::IndexLock;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};

    #[test]
    fn a_generation_stays_while_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let first = index.join("gen-000001");
        let second = index.join("gen-000002");
        build(index, &collection(1, 30, 20), &[]);
        let used = Generation::open(index).unwrap();
        let again = Generation::open(index).unwrap();
        build(index, &collection(2, 30, 20), &[]);
        assert!(first.exists() && second.exists());
        drop(used);
        build(index, &collection(3, 30, 20), &[]);
        assert!(first.exists() && !second.exists());
        assert_eq!(Generation::open(index).unwrap().manifest().generation, 3);
        drop(again);
        IndexLock::acquire(index).unwrap().remove_debris().unwrap();
        assert!(!first.exists());
    }

    #[test]
    fn what_is_being_removed_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(1, 30, 20), &[]);
        let generation = folder.path().join("gen-000001");
        let claimed = Unused::claim(folder.path()).unwrap();
        assert!(InUse::of(&generation).unwrap_err().is_not_found());
        drop(claimed);
        let used = InUse::of(&generation).unwrap();
        assert!(Unused::claim(&generation).is_none() && Unused::claim(folder.path()).is_none());
        drop(used);
        assert!(Unused::claim(&generation).is_some());
    }
}
