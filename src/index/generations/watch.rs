//! Watches whether the live generation is another than the one that a job has open. As long as it
//! is not, a look is one question to the file system.

use crate::index::error::IndexError;
use crate::index::format::CURRENT;
use crate::index::generations::folder::current;
use crate::index::generations::manifest::Manifest;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tells one `CURRENT` from another: each generation replaces the file.
type CurrentStamp = (u64, u64, i64, i64);

#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    seen: Option<CurrentStamp>,
}

impl Watch {
    pub fn new(index: &Path) -> Self {
        Self { path: index.to_path_buf(), seen: None }
    }

    /// Whether the live generation may be another one than `open`; looks at the same one again only
    /// if `again` is set. Compares manifests too, since an index that was removed and built anew
    /// has the same numbers.
    pub fn is_other(&mut self, open: &Manifest, again: bool) -> Result<bool, IndexError> {
        // The index is being removed, or built anew.
        let Ok(file) = self.path.join(CURRENT).metadata() else { return Ok(false) };
        let stamp = (file.dev(), file.ino(), file.mtime(), file.mtime_nsec());
        if self.seen.replace(stamp) == Some(stamp) && !again {
            return Ok(false);
        }
        let Some(live) = current(&self.path)? else { return Ok(false) };
        match Manifest::read(&live) {
            Ok(manifest) => Ok(manifest != *open),
            // Opening it tells what is wrong with it, or it was replaced meanwhile.
            Err(_) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};

    #[test]
    fn only_another_generation_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(1, 20, 20), &[]);
        let first = Generation::open(index).unwrap().manifest().clone();
        let mut watch = Watch::new(index);
        assert!(!watch.is_other(&first, false).unwrap());
        assert!(!watch.is_other(&first, true).unwrap());
        build(index, &collection(2, 20, 20), &[]);
        assert!(watch.is_other(&first, false).unwrap());
        assert!(!watch.is_other(&first, false).unwrap());
        assert!(watch.is_other(&first, true).unwrap());
        assert!(Watch::new(index).is_other(&first, false).unwrap());
        // The same number, and another index.
        for entry in std::fs::read_dir(index).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                .unwrap();
        }
        assert!(!watch.is_other(&first, false).unwrap());
        build(index, &collection(3, 20, 20), &[]);
        assert!(watch.is_other(&first, false).unwrap());
        std::fs::write(index.join(CURRENT), "nonsense").unwrap();
        assert!(watch.is_other(&first, false).is_err());
    }
}
