//! How do several processes make one generation? Each writes a shard, a generation folder of its own
//! over neighbouring documents, and one process makes them live together.
//!
//! The shard of process k is `INDEX/shard-k/gen-G`, where G is the number of the whole generation.
//! The manifest in `INDEX/gen-G` lists the shards with the checksums of their manifests
//! (`docs/index-format.md`, Shards), and `INDEX/CURRENT` names it. Nothing in the folder of a shard says
//! that it is live: on one disk as on several only `CURRENT` does, on the disk of process 0. Docids
//! count from the first document of a shard; those of the whole index begin with its `first_docid`.

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{
    LOCK, MANIFEST, RUNS, VERSION, generation_name, generation_number, shard_name, shard_number,
};
use crate::index::generation::{Generation, with_live};
use crate::index::in_use::Unused;
use crate::index::manifest::read::Sealed;
use crate::index::manifest::write::sealed;
use crate::index::manifest::{Manifest, Settings, Statistics, Summary};
use crate::index::plain;
use crate::index::publish::{IndexLock, generations, number_of};
use crate::index::storage::{self, hexadecimal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The manifest of a generation of several shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardedManifest {
    /// Format version of all files.
    pub format: u32,
    /// Number of the generation, that of its folder and of the folders of its shards.
    pub generation: u32,
    /// When it was written, in seconds since 1970 (UTC).
    pub created: u64,
    /// The command line that wrote it, of process 0.
    pub command: String,
    /// What made terms and lists of the input, alike in all shards but for the memory.
    pub settings: Settings,
    /// Documents whose name an earlier one has, in the same shard or another.
    pub duplicate_names: u64,
    /// The shards, by docid; the folder of each is named for its place here.
    pub shards: Vec<ShardEntry>,
}

/// A shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Docid of its first document in the whole index.
    pub first_docid: u32,
    /// How many docids it takes: its documents, deleted ones too.
    pub docids: u32,
    /// What there is in it.
    pub statistics: Statistics,
    /// Its runs.
    pub runs: u64,
    /// Its inputs.
    pub inputs: u64,
    /// Bytes of its files without the manifest.
    pub bytes: u64,
    /// CRC-32 of its manifest.
    #[serde(with = "hexadecimal")]
    pub manifest_crc32: u32,
}

impl ShardEntry {
    /// Describes the shard in the folder of a generation whose files are finished, except for its
    /// place among the others.
    ///
    /// # Errors
    /// `Storage`, `Damaged`.
    pub fn of(generation: &Path) -> Result<Self, IndexError> {
        let manifest = Summary::read(generation)?;
        Ok(Self {
            first_docid: 0,
            docids: manifest.runs.iter().map(|run| run.documents).sum(),
            runs: manifest.runs.len() as u64,
            inputs: manifest.inputs,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            statistics: manifest.statistics,
            manifest_crc32: manifest.crc32,
        })
    }
}

/// Reads the manifest of a shard, and the checksum of its bytes.
fn read_whole(generation: &Path) -> Result<(Manifest, u32), IndexError> {
    let path = generation.join(MANIFEST);
    let bytes = plain::read(&path)?;
    Ok((Manifest::decode(&path, &bytes)?, crc32fast::hash(&bytes)))
}

impl ShardedManifest {
    /// Puts shards in a row: gives each its first docid.
    ///
    /// # Errors
    /// `Refused` when there are more documents than docids.
    pub fn line_up(&mut self, index: &Path) -> Result<(), IndexError> {
        let mut next = 0u64;
        for shard in &mut self.shards {
            shard.first_docid = u32::try_from(next).map_err(|_| too_many(index))?;
            next += u64::from(shard.docids);
        }
        u32::try_from(next).map(drop).map_err(|_| too_many(index))
    }

    /// Reads the manifest in the folder of a generation; none if the generation is whole.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn read(generation: &Path) -> Result<Option<Self>, IndexError> {
        let path = generation.join(MANIFEST);
        let bytes = plain::read(&path)?;
        let manifest = Self::decode(&path, &bytes)?;
        match &manifest {
            Some(manifest) if number_of(generation) != Some(manifest.generation) => {
                let expected = "the number of the generation's folder";
                Err(IndexError::damaged(&path, 0, expected, manifest.generation))
            }
            _ => Ok(manifest),
        }
    }

    /// Reads and verifies the manifest that stands in the file at `path`; none if it is that of a
    /// whole generation.
    ///
    /// # Errors
    /// `Damaged`, `Newer`.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Option<Self>, IndexError> {
        let sealed = Sealed::open(path, bytes)?;
        if sealed.shards == 0 {
            return Ok(None);
        }
        let manifest: Self = sealed.parse()?;
        if manifest.format != VERSION {
            let expected = format!("format version {VERSION}");
            return Err(IndexError::damaged(path, 0, expected, manifest.format));
        }
        let mut lined_up = manifest.clone();
        lined_up.line_up(path)?;
        if lined_up != manifest {
            let expected = "first docids that follow from the documents";
            return Err(IndexError::damaged(path, 0, expected, "others"));
        }
        Ok(Some(manifest))
    }

    /// Lays the manifest out, its checksum last.
    pub fn encode(&self) -> String {
        sealed(self)
    }

    /// Returns the number of the generation in a folder if it has shards, or may have some because
    /// its manifest cannot be read.
    pub fn number_with_shards(generation: &Path) -> Option<u32> {
        match Self::read(generation) {
            Ok(manifest) => manifest.map(|manifest| manifest.generation),
            Err(_) => number_of(generation),
        }
    }

    /// Reads the manifest of the live generation of the index in the folder `index`; none if that is
    /// whole.
    ///
    /// # Errors
    /// `NoIndex`, `Storage`, `Damaged`, `Newer`.
    pub fn live(index: &Path) -> Result<Option<Self>, IndexError> {
        with_live(index, Self::read)
    }

    /// Reads the manifest of the live generation, which has to have a shard for each process.
    ///
    /// # Errors
    /// `Shards`, and those of [`live`](Self::live).
    pub fn live_for(index: &Path, processes: usize) -> Result<Self, IndexError> {
        let live = Self::live(index)?;
        let shards = live.as_ref().map_or(1, |live| live.shards.len());
        match live {
            Some(live) if shards == processes => Ok(live),
            _ => Err(IndexError::Shards { path: index.to_path_buf(), shards, processes }),
        }
    }

    /// Documents of all shards.
    pub fn documents(&self) -> u64 {
        self.sum(|s| s.documents)
    }

    /// Indexed tokens of all shards.
    pub fn tokens(&self) -> u64 {
        self.sum(|s| s.tokens)
    }

    /// Adds up a number of all shards. The manifest may say anything.
    pub fn sum(&self, number: impl Fn(&Statistics) -> u64) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.saturating_add(number(&shard.statistics)))
    }

    /// The shard that has a document of the whole index.
    pub fn shard_of(&self, docid: u32) -> Option<usize> {
        let after = self.shards.partition_point(|shard| shard.first_docid <= docid);
        // Empty shards begin where the next one does.
        let shard = after.checked_sub(1)?;
        let within = docid - self.shards[shard].first_docid;
        (within < self.shards[shard].docids).then_some(shard)
    }

    /// The folder of a shard's generation.
    pub fn folder(&self, index: &Path, shard: usize) -> PathBuf {
        index.join(shard_name(shard)).join(generation_name(self.generation))
    }

    /// Opens a shard, which has to be on this disk and to be the one that is listed.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open(&self, index: &Path, shard: usize, verify: bool) -> Result<Generation, IndexError> {
        let folder = self.folder(index, shard);
        self.check_listed(&folder, shard)?;
        Generation::open_folder(&folder, verify)
    }

    /// Checks that the manifest in the folder of a shard is the one that is listed.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn check_listed(&self, folder: &Path, shard: usize) -> Result<(), IndexError> {
        let listed = &self.shards[shard];
        let (manifest, crc) = read_whole(folder)?;
        if crc != listed.manifest_crc32 || manifest.statistics != listed.statistics {
            let expected = format!("the manifest with checksum {:08x}", listed.manifest_crc32);
            let path = folder.join(MANIFEST);
            return Err(IndexError::damaged(&path, 0, expected, format_args!("{crc:08x}")));
        }
        Ok(())
    }
}

fn too_many(index: &Path) -> IndexError {
    IndexError::refused(index, format_args!("there are more than {} documents", u32::MAX))
}

/// The right to write a shard of an index, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct ShardLock {
    folder: PathBuf,
    _lock: IndexLock,
}

impl ShardLock {
    /// Takes the lock of shard `shard` of the index in the folder `index`. Both folders are created
    /// if they are not there.
    ///
    /// # Errors
    /// `Locked` if another process writes the shard; `Storage`.
    pub fn acquire(index: &Path, shard: usize) -> Result<Self, IndexError> {
        let folder = index.join(shard_name(shard));
        Ok(Self { _lock: IndexLock::acquire(&folder)?, folder })
    }

    /// Removes all generations of the shard but those to `keep`, and makes an empty folder for generation
    /// `number`. Returns the folder.
    ///
    /// # Errors
    /// `Storage`.
    pub fn begin(&self, number: u32, keep: &[u32]) -> Result<PathBuf, IndexError> {
        self.retain(keep)?;
        let path = self.folder.join(generation_name(number));
        storage::create_dir(&path)?;
        storage::create_dir(&path.join(RUNS))?;
        Ok(path)
    }

    /// Makes a generation of the shard last, whose files are synced.
    ///
    /// # Errors
    /// `Storage`.
    pub fn sync(&self, generation: &Path) -> Result<(), IndexError> {
        storage::sync_dir(&generation.join(RUNS))?;
        storage::sync_dir(generation)?;
        storage::sync_dir(&self.folder)
    }

    /// Removes all generations of the shard but those to `keep`.
    ///
    /// # Errors
    /// `Storage`.
    pub fn retain(&self, keep: &[u32]) -> Result<(), IndexError> {
        for (number, path) in generations(&self.folder)? {
            if !keep.contains(&number)
                && let Some(_unused) = Unused::claim(&path)
            {
                storage::remove_tree(&path)?;
            }
        }
        Ok(())
    }
}

impl IndexLock {
    /// Writes the manifest of a generation of several shards, all of which have synced, and makes
    /// it the live one. Generations before it stay; [`remove_debris`](Self::remove_debris) removes
    /// them.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_sharded(&self, manifest: &ShardedManifest) -> Result<(), IndexError> {
        let path = self.index().join(generation_name(manifest.generation));
        storage::write_whole(&path.join(MANIFEST), manifest.encode().as_bytes())?;
        storage::sync_dir(&path)?;
        self.keep_all()?;
        self.switch(manifest.generation)?;
        // What is kept too long now is removed later.
        let _ = self.keep_few();
        Ok(())
    }
}

/// Returns folders of shards, or generations in them, that belong to none of the generations in the
/// folders `keep`.
pub(super) fn debris(index: &Path, keep: &[&Path]) -> Result<Vec<PathBuf>, IndexError> {
    // Shards of a generation whose manifest cannot be read stay: nobody knows how many it has.
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
    for (name, folder) in entries(index)? {
        let Some(shard) = shard_number(&name) else { continue };
        if !folder.is_dir() {
            continue;
        }
        let is_kept = |name: &str| {
            generation_number(name).is_some_and(|number| {
                kept.iter().any(|&(kept, shards)| kept == number && shard < shards)
            })
        };
        let inside = entries(&folder)?;
        let ours = |name: &str| name == LOCK || generation_number(name).is_some();
        if inside.iter().all(|(name, _)| ours(name) && !is_kept(name)) {
            debris.push(folder);
        } else {
            let old = inside.into_iter().filter(|(name, _)| name != LOCK && ours(name));
            debris.extend(old.filter(|(name, _)| !is_kept(name)).map(|(_, path)| path));
        }
    }
    Ok(debris)
}

/// Names and paths in a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, IndexError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(IndexError::storage("read the folder", folder))? {
        let entry = entry.map_err(IndexError::storage("read the folder", folder))?;
        found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection, write_generation};

    /// Builds an index of three shards, of 20, 0 and 7 documents, as generation 1.
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
            own.sync(&folder).unwrap();
            manifest.shards.push(ShardEntry::of(&folder).unwrap());
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
        let error = Generation::open(index, false).unwrap_err();
        assert!(matches!(error, IndexError::Sharded { shards: 3, .. }), "{error}");
        assert_eq!(manifest.documents(), 27);
        let shards: Vec<_> = [0, 19, 20, 26, 27, u32::MAX].map(|d| manifest.shard_of(d)).into();
        assert_eq!(shards, [Some(0), Some(0), Some(2), Some(2), None, None]);
        assert_eq!(manifest.open(index, 2, true).unwrap().documents().len(), 7);
        assert_eq!(crate::index::check::check(index).unwrap().documents, 27);

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
            crate::index::check::check(index).unwrap_err();
            fs::write(&path, &bytes[..at]).unwrap();
            ShardedManifest::live(index).unwrap_err();
        }
    }

    #[test]
    fn a_shard_that_is_not_the_listed_one_is_refused() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let manifest = three(a.path());
        build(b.path(), &collection(8, 7, 30), &[]);
        let shard = a.path().join("shard-2/gen-000001");
        fs::remove_dir_all(&shard).unwrap();
        fs::rename(b.path().join("gen-000001"), &shard).unwrap();
        let error = manifest.open(a.path(), 2, false).unwrap_err().to_string();
        assert!(error.contains("shard-2/gen-000001/manifest.json"), "{error}");
        assert_eq!(crate::index::check::check(a.path()).unwrap_err().len(), 1);
        fs::remove_dir_all(&shard).unwrap();
        assert!(manifest.open(a.path(), 2, false).unwrap_err().is_not_found());
        crate::index::check::check(a.path()).unwrap_err();
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
        let found = crate::index::publish::debris(index, &[&live]).unwrap();
        let debris = ["shard-0/gen-000009", "shard-3", "shard-4/gen-000001"];
        assert_eq!(found, debris.map(|path| index.join(path)));

        // Nobody knows what belongs to a generation whose manifest is damaged.
        fs::write(live.join(MANIFEST), "{").unwrap();
        let found = crate::index::publish::debris(index, &[&live]).unwrap();
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
