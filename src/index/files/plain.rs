//! Opens a file of an index only if it is a plain one: a job would wait for ever for a pipe.

use crate::index::error::IndexError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub(crate) fn open(path: &Path) -> Result<File, IndexError> {
    open_plain(path).map_err(IndexError::storage("open", path))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, IndexError> {
    let mut bytes = Vec::new();
    let read = open_plain(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(IndexError::storage("read", path))?;
    Ok(bytes)
}

/// [`open`], with the system's error. Checks before it opens: opening a pipe waits for a writer.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let kind = path.metadata()?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
        return Err(io::Error::other(format!("expected a plain file, found {what}")));
    }
    File::open(path)
}
