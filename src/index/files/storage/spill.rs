//! Holds bytes that belong behind a section which is still being written: in memory while they are
//! few, then in a file beside.

use super::{StorageFile, attempt, remove_file, write_at};
use crate::index::error::IndexError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are written now and read back once, in the same order. Memory: the limit.
#[derive(Debug)]
pub(crate) struct Spill {
    path: PathBuf,
    limit: usize,
    buffer: Vec<u8>,
    /// Created when the buffer overflows.
    file: Option<File>,
    spilled: u64,
}

impl Spill {
    /// The file at `path` is created when more than `limit` bytes come.
    pub(crate) fn new(path: PathBuf, limit: usize) -> Self {
        Self { path, limit, buffer: Vec::new(), file: None, spilled: 0 }
    }

    /// The same with a file beside that at `path`, whose name goes on with `ending`.
    pub(crate) fn beside(path: &Path, ending: &str, limit: usize) -> Self {
        let mut path = path.as_os_str().to_owned();
        path.push(ending);
        Self::new(path.into(), limit)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        if self.buffer.len() + bytes.len() > self.limit {
            let path = &self.path;
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(attempt("create", path, || File::create_new(path))?),
            };
            write_at(file, path, &self.buffer, self.spilled)?;
            self.spilled += self.buffer.len() as u64;
            self.buffer.clear();
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends everything to `to` and removes the file.
    pub(crate) fn pour(self, to: &mut StorageFile) -> Result<(), IndexError> {
        if let Some(file) = &self.file {
            let mut part = vec![0; self.limit.clamp(1, 64 << 10)];
            let mut at = 0;
            while at < self.spilled {
                let rest = usize::try_from(self.spilled - at).unwrap_or(usize::MAX);
                let length = part.len().min(rest);
                let part = &mut part[..length];
                file.read_exact_at(part, at).map_err(IndexError::storage("read", &self.path))?;
                to.write(part)?;
                at += length as u64;
            }
            remove_file(&self.path)?;
        }
        to.write(&self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::format::{FileHeader, FileKind};

    #[test]
    fn what_is_poured_is_what_was_pushed() {
        for (limit, parts) in [(0, 3), (16, 0), (16, 1), (16, 2), (16, 3), (100, 1000)] {
            let folder = tempfile::tempdir().unwrap();
            let mut spill = Spill::new(folder.path().join("spill"), limit);
            let mut expected = Vec::new();
            for i in 0..parts {
                let part = [i as u8; 8];
                spill.push(&part).unwrap();
                expected.extend_from_slice(&part);
            }
            assert_eq!(folder.path().join("spill").exists(), expected.len() > limit);
            let mut to = StorageFile::create(folder.path(), "to").unwrap();
            spill.pour(&mut to).unwrap();
            to.finish(FileHeader { kind: FileKind::Ends, values: [0; 5], last: 0 }).unwrap();
            assert!(!folder.path().join("spill").exists());
            assert_eq!(std::fs::read(folder.path().join("to")).unwrap()[64..], expected);
        }
    }
}
