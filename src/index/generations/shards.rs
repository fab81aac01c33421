//! Shards: several processes make one generation. Each writes a shard, a generation folder of its
//! own over neighbouring documents, and one process makes them live together.
//!
//! The shard of process k is `INDEX/shard-k/gen-G`, where G is the number of the whole generation.
//! The manifest in `INDEX/gen-G` lists the shards with the checksums of their manifests
//! (`docs/index-format.md`, Shards). Only `CURRENT` says what is live, on the disk of process 0.
//! Docids count from the first document of a shard, which is `first_docid` in the whole index.

use crate::index::error::IndexError;
use crate::index::files::{plain, storage};
use crate::index::format::{
    LOCK, MANIFEST, RUNS, generation_name, generation_number, shard_name, shard_number,
};
use crate::index::generations::folder::{IndexLock, entries, generations, number_of};
use crate::index::generations::generation::{Generation, with_live};
use crate::index::generations::in_use::Unused;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::run_files::unnamed;
use std::path::{Path, PathBuf};

impl ShardedManifest {
    /// The manifest of the live generation of the index in the folder `index`; none if that is
    /// whole.
    pub fn live(index: &Path) -> Result<Option<Self>, IndexError> {
        with_live(index, Self::read)
    }

    /// The manifest of the live generation, or `Shards` if it has not a shard for each process.
    pub fn live_for(index: &Path, processes: usize) -> Result<Self, IndexError> {
        let live = Self::live(index)?;
        let shards = live.as_ref().map_or(1, |live| live.shards.len());
        match live {
            Some(live) if shards == processes => Ok(live),
            _ => Err(IndexError::Shards { path: index.to_path_buf(), shards, processes }),
        }
    }

    /// Opens a shard, which has to be on this disk and to be the one that is listed.
    pub(crate) fn open(&self, index: &Path, shard: usize) -> Result<Generation, IndexError> {
        let folder = self.folder(index, shard);
        self.check_listed(&folder, shard)?;
        Generation::open_folder(&folder)
    }

    /// Checks that the manifest in the folder of a shard is the one that is listed.
    pub(crate) fn check_listed(&self, folder: &Path, shard: usize) -> Result<(), IndexError> {
        let listed = &self.shards[shard];
        let path = folder.join(MANIFEST);
        let bytes = plain::read(&path)?;
        let manifest = Manifest::decode(&path, &bytes)?;
        let crc = crc32fast::hash(&bytes);
        if crc != listed.manifest_crc32 || manifest.statistics != listed.statistics {
            let expected = format!("the manifest with checksum {:08x}", listed.manifest_crc32);
            return Err(IndexError::damaged(&path, 0, expected, format_args!("{crc:08x}")));
        }
        Ok(())
    }
}

/// The right to write a shard, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct ShardLock {
    folder: PathBuf,
    _lock: IndexLock,
}

impl ShardLock {
    /// Locks shard `shard` of the index in the folder `index`. Both folders are created if they are
    /// not there.
    pub(crate) fn acquire(index: &Path, shard: usize) -> Result<Self, IndexError> {
        let folder = index.join(shard_name(shard));
        Ok(Self { _lock: IndexLock::acquire(&folder)?, folder })
    }

    /// Makes an empty folder for generation `number`, and removes all others of the shard but those
    /// to `keep`.
    pub(crate) fn begin(&self, number: u32, keep: &[u32]) -> Result<PathBuf, IndexError> {
        self.retain(keep)?;
        let path = self.folder.join(generation_name(number));
        storage::create_dir(&path)?;
        storage::create_dir(&self.folder.join(RUNS))?;
        Ok(path)
    }

    /// Syncs what a new generation of the shard has `unsynced`.
    pub(crate) fn sync(&self, mut unsynced: Vec<PathBuf>) -> Result<(), IndexError> {
        unsynced.push(self.folder.clone());
        storage::sync_all(&unsynced)
    }

    /// Removes all generations of the shard but those to `keep`.
    pub(crate) fn retain(&self, keep: &[u32]) -> Result<(), IndexError> {
        for (number, path) in generations(&self.folder)? {
            if !keep.contains(&number)
                && let Some(_unused) = Unused::claim(&path)
            {
                storage::remove_tree(&path)?;
            }
        }
        storage::remove_files(&unnamed(&self.folder, &[])?, 1)
    }
}

/// The folders of shards that are on this disk.
pub(crate) fn shards(index: &Path) -> Result<Vec<PathBuf>, IndexError> {
    let found = entries(index)?.into_iter();
    let folders = found.filter(|(name, path)| shard_number(name).is_some() && path.is_dir());
    Ok(folders.map(|(_, path)| path).collect())
}

/// Folders of shards, or generations in them, that belong to none of the generations in the folders
/// `keep`.
pub(crate) fn debris(index: &Path, keep: &[&Path]) -> Result<Vec<PathBuf>, IndexError> {
    // Shards of a generation whose manifest cannot be read stay: their number is unknown.
    let kept: Vec<_> = keep
        .iter()
        .filter_map(|path| match (Summary::read(path), number_of(path)?) {
            (Ok(summary), _) if summary.shards == 0 => None,
            (Ok(summary), number) if summary.generation == number => {
                Some((number, summary.shards as usize))
            }
            (_, number) => Some((number, usize::MAX)),
        })
        .collect();
    let mut debris = Vec::new();
    for folder in shards(index)? {
        let name = folder.file_name().and_then(|name| name.to_str());
        let Some(shard) = name.and_then(shard_number) else { continue };
        let is_kept = |name: &str| {
            generation_number(name).is_some_and(|number| {
                kept.iter().any(|&(kept, shards)| kept == number && shard < shards)
            })
        };
        let inside = entries(&folder)?;
        let ours = |name: &str| generation_number(name).is_some();
        if inside
            .iter()
            .all(|(name, _)| [LOCK, RUNS].contains(&&**name) || ours(name) && !is_kept(name))
        {
            debris.push(folder);
        } else {
            let old = inside.into_iter().filter(|(name, _)| ours(name));
            debris.extend(old.filter(|(name, _)| !is_kept(name)).map(|(_, path)| path));
        }
    }
    Ok(debris)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::format::VERSION;
    use crate::index::generations::manifest::sharded::ShardEntry;
    use crate::index::generations::publish::debris;
    use crate::index::testing::{build, collection, write_generation};
    use std::fs;

    /// Generation 1 of three shards, of 20, 0 and 7 documents.
    fn three(index: &Path) -> ShardedManifest {
        let lock = IndexLock::acquire(index).unwrap();
        lock.remove_debris().unwrap();
        let (generation, _) = lock.next_folder().unwrap();
        let mut manifest =
            ShardedManifest { format: VERSION, generation, ..ShardedManifest::default() };
        for (shard, documents) in [20, 0, 7].into_iter().enumerate() {
            let own = ShardLock::acquire(index, shard).unwrap();
            let folder = own.begin(generation, &[]).unwrap();
            write_generation(&folder, generation, &collection(7, documents, 30), &[]);
            own.sync(vec![folder.clone()]).unwrap();
            manifest.shards.push(Summary::read(&folder).unwrap().shard());
        }
        manifest.line_up(index).unwrap();
        lock.publish_sharded(&manifest).unwrap();
        manifest
    }

    #[test]
    fn shards_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let manifest = three(index);
        assert_eq!(ShardedManifest::live(index).unwrap(), Some(manifest.clone()));
        assert_eq!(ShardedManifest::live_for(index, 3).unwrap(), manifest);
        let error = ShardedManifest::live_for(index, 2).unwrap_err();
        assert!(matches!(error, IndexError::Shards { shards: 3, processes: 2, .. }), "{error}");
        let error = Generation::open(index).unwrap_err();
        assert!(matches!(error, IndexError::Sharded { shards: 3, .. }), "{error}");
        assert_eq!(manifest.documents(), 27);
        let shards: Vec<_> = [0, 19, 20, 26, 27, u32::MAX].map(|d| manifest.shard_of(d)).into();
        assert_eq!(shards, [Some(0), Some(0), Some(2), Some(2), None, None]);
        assert_eq!(manifest.open(index, 2).unwrap().documents().len(), 7);
        assert_eq!(crate::index::inspect::check::check(index).unwrap().documents, 27);

        build(index, &collection(1, 3, 3), &[]);
        assert_eq!(ShardedManifest::live(index).unwrap(), None);
        let error = ShardedManifest::live_for(index, 2).unwrap_err();
        assert!(matches!(error, IndexError::Shards { shards: 1, processes: 2, .. }), "{error}");
        assert!(!index.join("shard-0").exists());
    }

    #[test]
    fn every_flipped_byte_of_the_manifest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        three(index);
        let path = index.join("gen-000001").join(MANIFEST);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            ShardedManifest::live(index).unwrap_err();
            crate::index::inspect::check::check(index).unwrap_err();
            fs::write(&path, &bytes[..at]).unwrap();
            ShardedManifest::live(index).unwrap_err();
        }
    }

    #[test]
    fn a_shard_that_is_not_the_listed_one_is_refused() {
        let a = tempfile::tempdir().unwrap();
        let b = tempfile::tempdir().unwrap();
        let manifest = three(a.path());
        build(b.path(), &collection(8, 7, 30), &[]);
        let shard = a.path().join("shard-2/gen-000001");
        fs::remove_dir_all(&shard).unwrap();
        fs::rename(b.path().join("gen-000001"), &shard).unwrap();
        fs::remove_dir_all(a.path().join("shard-2/runs")).unwrap();
        fs::rename(b.path().join("runs"), a.path().join("shard-2/runs")).unwrap();
        let error = manifest.open(a.path(), 2).unwrap_err().to_string();
        assert!(error.contains("shard-2/gen-000001/manifest.json"), "{error}");
        assert_eq!(crate::index::inspect::check::check(a.path()).unwrap_err().len(), 1);
        fs::remove_dir_all(&shard).unwrap();
        assert!(manifest.open(a.path(), 2).unwrap_err().is_not_found());
        crate::index::inspect::check::check(a.path()).unwrap_err();
    }

    #[test]
    fn only_what_is_live_or_foreign_stays() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        three(index);
        for path in ["shard-0/gen-000009", "shard-3/gen-000001", "shard-4/gen-000001", "shard-x"] {
            fs::create_dir_all(index.join(path)).unwrap();
        }
        fs::write(index.join("shard-4/notes"), "mine").unwrap();
        let live = index.join("gen-000001");
        let found = debris(index, &[&live]).unwrap();
        let expected = ["shard-0/gen-000009", "shard-3", "shard-4/gen-000001"];
        assert_eq!(found, expected.map(|path| index.join(path)));

        fs::write(live.join(MANIFEST), "{").unwrap();
        let found = debris(index, &[&live]).unwrap();
        assert_eq!(found, [index.join("shard-0/gen-000009")]);
    }

    #[test]
    fn there_are_not_more_documents_than_docids() {
        let shard = |docids| ShardEntry { docids, ..ShardEntry::default() };
        let line_up = |shards: &[u32]| {
            let shards = shards.iter().map(|&documents| shard(documents)).collect();
            let mut manifest = ShardedManifest { shards, ..ShardedManifest::default() };
            manifest.line_up(Path::new("x")).map(|()| manifest.shards.last().unwrap().first_docid)
        };
        assert_eq!(line_up(&[u32::MAX, 0]).unwrap(), u32::MAX);
        for too_many in [[1, u32::MAX, 0], [u32::MAX, u32::MAX, 1]] {
            line_up(&too_many).unwrap_err();
        }
    }
}
