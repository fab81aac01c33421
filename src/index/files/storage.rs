//! The only module that creates, writes, syncs, renames or removes an index file. Every such step
//! asks [`fault::storage`] first, so that tests can make each one fail.

pub(crate) mod filled;
mod gathered;
mod spill;
mod sums;
#[cfg(test)]
mod tests;

pub(crate) use filled::{FileRoom, FilledFile};
pub(crate) use gathered::{GatheredFile, SharedBytes};
pub(crate) use spill::Spill;
use sums::{FileSums, RoomSums};

use crate::crew::Crew;
use crate::fault::{self, Injected};
use crate::index::error::IndexError;
use crate::index::format::{
    ALIGNMENT, FileHeader, HEADER_BYTES, LIST_ALIGNMENT, file_path, has_sums, padding,
};
use crate::shown::panicked;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Ends the long work of one job, such as a merge or a check, from any thread, and tells any thread
/// its progress. What publishes or removes a generation goes on. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<SharedProgress>);

#[derive(Debug, Default)]
struct SharedProgress {
    stopped: AtomicBool,
    /// Work in all and done: postings of a merge, bytes of a check, queries.
    all: AtomicU64,
    done: AtomicU64,
}

impl Stop {
    pub fn set(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
    }

    pub(crate) fn clear(&self) {
        self.0.stopped.store(false, Ordering::SeqCst);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// `Stopped` if the job is to end.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        if self.is_set() { Err(IndexError::Stopped) } else { Ok(()) }
    }

    pub fn expect(&self, more: u64) {
        self.0.all.fetch_add(more, Ordering::Relaxed);
    }

    pub fn pass(&self, more: u64) {
        self.0.done.fetch_add(more, Ordering::Relaxed);
    }

    /// Work done and in all: postings of a merge, bytes of a check, queries. None before it begins.
    pub fn how_far(&self) -> Option<(u64, u64)> {
        let [done, all] = [&self.0.done, &self.0.all].map(|n| n.load(Ordering::Relaxed));
        (all > 0).then_some((done.min(all), all))
    }
}

pub(crate) const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// The most bytes before a list that begins at a multiple of 16 bytes.
pub(crate) const ZEROS: [u8; LIST_ALIGNMENT as usize] = [0; LIST_ALIGNMENT as usize];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Below the generation's folder, with `/` between the parts.
    pub name: String,
    pub bytes: u64,
    /// CRC-32 (IEEE) of all its bytes.
    #[serde(with = "hexadecimal")]
    pub crc32: u32,
}

/// Checksums as eight hexadecimal digits, as other tools print them.
pub(crate) mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(crc: &u32, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{crc:08x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let text = String::deserialize(from)?;
        let crc = u32::from_str_radix(&text, 16).map_err(D::Error::custom)?;
        if format!("{crc:08x}") == text {
            Ok(crc)
        } else {
            Err(D::Error::custom("a checksum is eight hexadecimal digits"))
        }
    }
}

/// A binary file that is written from its first byte to its last, except for the header, which is
/// known last. It is not synced: [`sync_all`] does that for all files of a generation together.
/// Memory: [`WRITE_BUFFER_BYTES`], and 4 bytes for each 64 KiB of a file whose blocks have
/// checksums.
#[derive(Debug)]
pub(crate) struct StorageFile {
    file: File,
    path: PathBuf,
    name: String,
    buffer: Vec<u8>,
    sums: FileSums,
}

impl StorageFile {
    /// The file `name` of a generation must not be there yet.
    pub(crate) fn create(generation: &Path, name: &str) -> Result<Self, IndexError> {
        let path = file_path(generation, name);
        let file = attempt("create", &path, || File::create_new(&path))?;
        let sums = if has_sums(&path) { FileSums::of_blocks() } else { FileSums::default() };
        let buffer = Vec::with_capacity(WRITE_BUFFER_BYTES);
        Ok(Self { file, path, name: name.to_string(), buffer, sums })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes behind the header so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.sums.at() - HEADER_BYTES as u64 + self.buffer.len() as u64
    }

    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        if bytes.len() <= WRITE_BUFFER_BYTES - self.buffer.len() {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write_long(bytes)
    }

    fn write_long(&mut self, mut bytes: &[u8]) -> Result<(), IndexError> {
        while bytes.len() > WRITE_BUFFER_BYTES - self.buffer.len() {
            let (now, rest) = bytes.split_at(WRITE_BUFFER_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(now);
            self.flush()?;
            bytes = rest;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends zeros up to a multiple of 8.
    pub(crate) fn pad(&mut self) -> Result<(), IndexError> {
        let zeros = [0; ALIGNMENT as usize];
        // At most 7.
        self.write(&zeros[..padding(self.body_bytes()) as usize])
    }

    /// The checksums of what was written, which are not taken any more; none if they were not.
    pub(crate) fn take_sums(&mut self) -> Result<Option<Spill>, IndexError> {
        self.flush()?;
        self.sums.take_units()
    }

    /// Writes the header, the rest of the body, and the checksums of blocks.
    pub(crate) fn finish(mut self, header: FileHeader) -> Result<FileEntry, IndexError> {
        if self.sums.has_units() {
            self.pad()?;
        }
        if let Some(sums) = self.take_sums()? {
            sums.pour(&mut self)?;
            self.pad()?;
            self.flush()?;
        }
        let header = header.encode();
        write_at(&self.file, &self.path, &header, 0)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header);
        crc.combine(self.sums.crc());
        let bytes = self.sums.at();
        Ok(FileEntry { name: self.name, bytes, crc32: crc.finalize() })
    }

    fn flush(&mut self) -> Result<(), IndexError> {
        if !self.buffer.is_empty() {
            let mut sums = self.sums.room(self.sums.at());
            write_at(&self.file, &self.path, &self.buffer, self.sums.at())?;
            sums.add(&self.buffer);
            self.sums.take(sums)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The parent must be there.
pub(crate) fn create_dir(path: &Path) -> Result<(), IndexError> {
    if path.is_dir() {
        return Ok(());
    }
    attempt("create the folder", path, || fs::create_dir(path))
}

/// Creates a folder and its missing parents, and syncs them.
pub(crate) fn create_dirs(path: &Path) -> Result<(), IndexError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    create_dirs(parent)?;
    attempt("create the folder", path, || fs::create_dir(path))?;
    sync_dir(parent)
}

pub(crate) fn open_lock(path: &Path) -> Result<File, IndexError> {
    attempt("open", path, || OpenOptions::new().write(true).create(true).truncate(false).open(path))
}

/// Syncs that go on at a time: a disk does many for the price of one.
const SYNCS: usize = 32;

/// Syncs files, and what was created, renamed and removed in folders, side by side.
pub(crate) fn sync_all(paths: &[PathBuf]) -> Result<(), IndexError> {
    let sync = |(): &mut (), number: usize| sync(&paths[number]);
    Crew::new("syncer").in_order(SYNCS, paths.len(), sync).map(drop)
}

pub(crate) fn sync(path: &Path) -> Result<(), IndexError> {
    attempt("sync", path, || File::open(path)?.sync_all())
}

/// Syncs what was created, renamed and removed in a folder.
pub(crate) fn sync_dir(path: &Path) -> Result<(), IndexError> {
    attempt("sync the folder", path, || File::open(path)?.sync_all())
}

/// Replaces a file that has the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), IndexError> {
    attempt("rename", from, || fs::rename(from, to))
}

pub(crate) fn remove_file(path: &Path) -> Result<(), IndexError> {
    attempt("remove", path, || fs::remove_file(path))
}

pub(crate) fn remove_empty(path: &Path) -> Result<(), IndexError> {
    attempt("remove the folder", path, || fs::remove_dir(path))
}

/// Removes files by this many `threads`: of a file in memory the system frees page after page.
///
/// # Errors
/// `Storage`, of the first that cannot be removed; the others are gone.
pub(crate) fn remove_files(paths: &[PathBuf], threads: usize) -> Result<(), IndexError> {
    let remove = |(): &mut (), number: usize| Ok::<_, IndexError>(remove_file(&paths[number]));
    Crew::new("remover").in_order(threads, paths.len(), remove)?.into_iter().collect()
}

/// Reads or removes what is in a folder: the standard library panics where it cannot be closed.
pub(crate) fn caught<T>(
    folder: &Path,
    work: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let error = io::Error::other(panicked(&*cause).to_string());
        Err(IndexError::storage("read or remove what is in it", folder)(error))
    })
}

/// Removes a file or a folder with everything in it. Symbolic links are removed, not followed.
pub(crate) fn remove_tree(path: &Path) -> Result<(), IndexError> {
    let metadata = fs::symlink_metadata(path).map_err(IndexError::storage("remove", path))?;
    if !metadata.is_dir() {
        return remove_file(path);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(IndexError::storage("read the folder", path))? {
        let path = entry.map_err(IndexError::storage("read the folder", path))?.path();
        match fs::symlink_metadata(&path).map_err(IndexError::storage("remove", &path))?.is_dir() {
            true => remove_tree(&path)?,
            false => files.push(path),
        }
    }
    remove_files(&files, 1)?;
    attempt("remove the folder", path, || fs::remove_dir(path))
}

/// Links the file `from` to the second name `to`, or copies it where the file system has no hard
/// links.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<(), IndexError> {
    match attempt("link", to, || fs::hard_link(from, to)) {
        Err(IndexError::Storage { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::CrossesDevices
                    | io::ErrorKind::TooManyLinks
            ) =>
        {
            copy(from, to)
        }
        linked => linked,
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), IndexError> {
    let mut source = File::open(from).map_err(IndexError::storage("open", from))?;
    let file = attempt("create", to, || File::create_new(to))?;
    let mut buffer = vec![0; WRITE_BUFFER_BYTES];
    let mut at = 0;
    loop {
        let read = source.read(&mut buffer).map_err(IndexError::storage("read", from))?;
        if read == 0 {
            return attempt("sync", to, || file.sync_all());
        }
        write_at(&file, to, &buffer[..read], at)?;
        at += read as u64;
    }
}

/// Writes a small file whole, and does not sync it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), IndexError> {
    let file = attempt("create", path, || File::create(path))?;
    write_at(&file, path, bytes, 0)
}

fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), IndexError> {
    let written = fault::storage().and_then(|injected| match injected {
        Injected::Nothing => file.write_all_at(bytes, offset),
        Injected::Short => {
            file.write_all_at(&bytes[..bytes.len() / 2], offset).and(Err(fault::no_space()))
        }
    });
    written.map_err(IndexError::storage("write", path))
}

fn attempt<T>(
    operation: &'static str,
    path: &Path,
    step: impl FnOnce() -> io::Result<T>,
) -> Result<T, IndexError> {
    let done = fault::storage().and_then(|injected| match injected {
        Injected::Nothing => step(),
        Injected::Short => Err(fault::no_space()),
    });
    done.map_err(IndexError::storage(operation, path))
}
