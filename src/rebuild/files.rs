//! Finds the files of the sources that have changed since they were read: by a hash of each, which
//! is that of the manifest ([`input::hash`](crate::input::hash)), or, where the job trusts them, by
//! size and time.
//!
//! All threads hash the chunks of a file, so that one large file is as fast as many small ones.

use super::error::RebuildError;
use crate::crew::Crew;
use crate::fault;
use crate::input::hash::{CHUNK_BYTES, InputHash, NAME};
use crate::shown::now;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// What is trusted to tell that a file has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Only its bytes: it is hashed.
    #[default]
    Content,
    /// Its size and the time of its last change, where both are as they were.
    Mtime,
}

/// A file as it was when its bytes were hashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    #[serde(with = "path_bytes")]
    pub path: PathBuf,
    pub bytes: u64,
    /// Last change, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Another file that is moved to its place has another.
    pub inode: u64,
    pub hash: String,
}

/// A path as text, or as a list of bytes if they are not UTF-8.
mod path_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(to),
            None => path.as_os_str().as_bytes().serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Either::deserialize(from)? {
            Either::Text(path) => path,
            Either::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

/// What was known of the files when a generation became live.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub generation: u32,
    /// In nanoseconds since 1970.
    pub looked_ns: i64,
    pub files: Vec<FileState>,
}

/// A time stamp younger than this when it was looked at proves nothing: the file may have been
/// written again within the clock's tick.
const TICK_NS: i64 = 2_000_000_000;

impl Known {
    pub(crate) fn file(&self, path: impl AsRef<Path>) -> Option<&FileState> {
        let path = path.as_ref();
        let at = self.files.binary_search_by(|file| file.path.as_path().cmp(path)).ok()?;
        Some(&self.files[at])
    }

    /// Fills in missing hashes with those of the bytes as they were read, by path; a file that has
    /// changed since it was looked at, or was not read, is dropped.
    pub(crate) fn complete<'a>(&mut self, read: impl IntoIterator<Item = (&'a Path, &'a str)>) {
        let read: HashMap<&Path, &str> = read.into_iter().collect();
        self.files.retain_mut(|file| {
            if file.hash.is_empty()
                && let Some(&hash) = read.get(file.path.as_path())
                && let Ok(now) = fs::metadata(&file.path)
                && (now.len(), mtime_ns(&now), now.ino()) == (file.bytes, file.mtime_ns, file.inode)
            {
                file.hash = hash.to_string();
            }
            !file.hash.is_empty()
        });
    }

    /// The known hash of a file, if size, time and inode are as they were.
    fn trusted(&self, path: &Path, now: &Metadata) -> Option<&str> {
        let file = self.file(path)?;
        let same = (file.bytes, file.mtime_ns, file.inode) == (now.len(), mtime_ns(now), now.ino());
        (same && file.mtime_ns < self.looked_ns - TICK_NS).then_some(file.hash.as_str())
    }
}

fn mtime_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Looks at files by this many threads; `known` is what is known if `trust` allows to use it. A
/// file of which nothing is known is hashed if it `needs` that, by its path and length; else its
/// hash is empty. The files come back sorted by path.
///
/// # Errors
/// When a file cannot be read, is not a plain file, or changes meanwhile.
pub(crate) fn look(
    paths: &[PathBuf],
    trust: Trust,
    known: &Known,
    needs: impl Fn(&Path, u64) -> bool,
    threads: usize,
) -> Result<Known, RebuildError> {
    let looked_ns = i64::try_from(now().as_nanosecond()).unwrap_or(i64::MAX);
    let mut files = Vec::with_capacity(paths.len());
    let mut unknown = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(RebuildError::io(path))?;
        if !metadata.is_file() {
            let wrong = io::Error::other("a rebuild reads plain files only");
            return Err(RebuildError::io(path)(wrong));
        }
        let hash = match trust {
            Trust::Mtime => known.trusted(path, &metadata).map(str::to_string),
            Trust::Content => None,
        };
        if hash.is_none() && needs(path, metadata.len()) {
            unknown.push((files.len(), path));
        }
        files.push(FileState {
            path: path.clone(),
            bytes: metadata.len(),
            mtime_ns: mtime_ns(&metadata),
            inode: metadata.ino(),
            hash: hash.unwrap_or_default(),
        });
    }
    hash_all(&mut files, &unknown, threads)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Known { generation: 0, looked_ns, files })
}

/// Chunks that a thread claims at once.
const TASK_CHUNKS: u64 = 16;

fn hash_all(
    files: &mut [FileState],
    unknown: &[(usize, &PathBuf)],
    threads: usize,
) -> Result<(), RebuildError> {
    let of_file = |&(at, path): &(usize, _)| {
        let chunks = files[at].bytes.div_ceil(CHUNK_BYTES);
        (0..chunks).step_by(TASK_CHUNKS as usize).map(move |first| (at, path, first))
    };
    let tasks: Vec<(usize, &PathBuf, u64)> = unknown.iter().flat_map(of_file).collect();
    let found =
        Crew::new("hasher").in_order(threads, tasks.len(), |buffer: &mut Vec<u8>, task| {
            let (at, path, first) = tasks[task];
            hash_chunks(path, first, files[at].bytes, buffer).map_err(RebuildError::io(path))
        })?;
    let mut found = tasks.iter().zip(found).peekable();
    for &(at, path) in unknown {
        let of_file = std::iter::from_fn(|| found.next_if(|((of, ..), _)| *of == at));
        let hashes: Vec<u64> = of_file.flat_map(|(_, chunks)| chunks).collect();
        let now = fs::metadata(path).map_err(RebuildError::io(path))?;
        let file = &mut files[at];
        if (now.len(), mtime_ns(&now), now.ino()) != (file.bytes, file.mtime_ns, file.inode) {
            let wrong = io::Error::other("the file changed while it was read");
            return Err(RebuildError::io(path)(wrong));
        }
        file.hash = format!("{NAME}:{:016x}", InputHash::of_chunks(&hashes));
    }
    Ok(())
}

fn hash_chunks(path: &Path, first: u64, bytes: u64, buffer: &mut Vec<u8>) -> io::Result<Vec<u64>> {
    let file = File::open(path)?;
    buffer.resize(CHUNK_BYTES as usize, 0);
    let last = bytes.div_ceil(CHUNK_BYTES).min(first + TASK_CHUNKS);
    let hash = |chunk: u64| {
        let at = chunk * CHUNK_BYTES;
        let part = &mut buffer[..(bytes - at).min(CHUNK_BYTES) as usize];
        file.read_exact_at(part, at)?;
        Ok(XxHash3_64::oneshot(part))
    };
    (first..last).map(hash).collect()
}

/// Replaces a file by these bytes at once, so that no reader sees a part.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), RebuildError> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.tmp", std::process::id()));
    let write = || {
        fault::storage()?;
        fs::write(&new, bytes)?;
        fault::storage()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| {
        _ = fs::remove_file(&new);
        RebuildError::io(path)(error)
    })
}

/// Reads what is known; nothing if the file is missing or damaged: it is found out again.
pub(crate) fn read_json<T: DeserializeOwned + Default>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_default()
}

pub(crate) fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), RebuildError> {
    let json = serde_json::to_vec(value).map_err(io::Error::from);
    replace(path, &json.map_err(RebuildError::io(path))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    fn set_time(path: &Path, seconds_ago: u64) -> SystemTime {
        let time = SystemTime::now() - Duration::from_secs(seconds_ago);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        time
    }

    #[test]
    fn hashes_are_those_of_the_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [0, 1, CHUNK_BYTES, 35 * CHUNK_BYTES + 7];
        let paths: Vec<PathBuf> = sizes
            .iter()
            .map(|&size| {
                let path = folder.path().join(size.to_string());
                let bytes: Vec<u8> = (0..size).map(|at| ((at * at) >> 9) as u8).collect();
                fs::write(&path, bytes).unwrap();
                path
            })
            .collect();
        for threads in [1, 3] {
            let known =
                look(&paths, Trust::Content, &Known::default(), |_, _| true, threads).unwrap();
            assert!(known.files.is_sorted_by_key(|file| &file.path));
            for file in &known.files {
                let mut hash = InputHash::default();
                hash.update(&fs::read(&file.path).unwrap());
                assert_eq!(file.hash, format!("xxh3-1m:{:016x}", hash.digest()), "{:?}", file.path);
            }
        }
    }

    #[test]
    fn time_stamps_are_trusted_where_they_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        let paths = [path.clone()];
        let look = |trust, known: &Known| look(&paths, trust, known, |_, _| true, 1).unwrap();
        let fresh = look(Trust::Content, &Known::default());
        let time = set_time(&path, 100);
        let known = look(Trust::Content, &Known::default());
        // Another content of the same length at the same time: only its bytes tell.
        fs::write(&path, "behind").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(look(Trust::Mtime, &known).files, known.files);
        assert_ne!(look(Trust::Content, &known).files, known.files);
        // A file that was written when it was looked at is not trusted.
        assert_ne!(look(Trust::Mtime, &fresh).files[0].hash, fresh.files[0].hash);
        // Nor is one that was moved to its place, with its time.
        let other = folder.path().join("b");
        fs::write(&other, "beside").unwrap();
        File::options().append(true).open(&other).unwrap().set_modified(time).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(look(Trust::Mtime, &known).files[0].hash, known.files[0].hash);
    }

    #[test]
    fn what_is_known_comes_back_or_is_found_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("files.json");
        assert_eq!(read_json::<Known>(&path), Known::default());
        fs::write(folder.path().join("a"), "text").unwrap();
        let known =
            look(&[folder.path().join("a")], Trust::Content, &Known::default(), |_, _| true, 1)
                .unwrap();
        replace_json(&path, &known).unwrap();
        assert_eq!(read_json::<Known>(&path), known);
        fs::write(&path, "{\"generation\": 1").unwrap();
        assert_eq!(read_json::<Known>(&path), Known::default());
        let missing =
            look(&[folder.path().join("z")], Trust::Content, &known, |_, _| true, 1).unwrap_err();
        assert!(missing.to_string().ends_with("/z"));
        look(&[folder.path().to_path_buf()], Trust::Content, &known, |_, _| true, 1).unwrap_err();
    }

    #[test]
    fn hashes_that_nobody_needs_are_those_of_who_reads() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
        paths.iter().for_each(|path| fs::write(path, "text").unwrap());
        let needs = |path: &Path, bytes| bytes == 4 && path.ends_with("a");
        let mut known = look(&paths, Trust::Content, &Known::default(), needs, 1).unwrap();
        let hash = known.files[0].hash.clone();
        assert!(known.files.iter().map(|file| file.hash.is_empty()).eq([false, true, true, true]));
        // One was written meanwhile, and one was not read.
        fs::write(&paths[2], "another text").unwrap();
        let read = paths[..3].iter().map(PathBuf::as_path);
        known.complete(read.map(|path| (path, "as read")));
        let left: Vec<_> = known.files.iter().map(|file| file.hash.as_str()).collect();
        assert_eq!(left, [&hash, "as read"]);
    }
}
