//! What is known of the documents of a run, a row for each or bytes of names, until the run is
//! written: in a file without a name, filled by any threads in any order.

use crate::fault;
use crate::index::error::IndexError;
use bytemuck::{AnyBitPattern, NoUninit};
use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct RowsFile<R> {
    file: File,
    folder: PathBuf,
    rows: PhantomData<R>,
}

impl<R: AnyBitPattern + NoUninit> RowsFile<R> {
    /// In the folder of a generation.
    pub(super) fn create(folder: &Path) -> Result<Self, IndexError> {
        let error = IndexError::storage("keep documents", folder);
        let file = fault::storage().and_then(|_| tempfile::tempfile_in(folder)).map_err(error)?;
        Ok(Self { file, folder: folder.to_path_buf(), rows: PhantomData })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes neighbouring rows from `first` on.
    pub(super) fn put(&self, first: u64, rows: &[R]) -> Result<(), IndexError> {
        let bytes = bytemuck::cast_slice(rows);
        let written = fault::storage().and_then(|_| self.file.write_all_at(bytes, Self::at(first)));
        written.map_err(IndexError::storage("keep documents", &self.folder))
    }

    /// Reads neighbouring rows from `first` on, all of which were put.
    pub(super) fn read(&self, first: u64, rows: &mut [R]) -> Result<(), IndexError> {
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(rows), Self::at(first));
        read.map_err(IndexError::storage("read documents in", &self.folder))
    }

    fn at(row: u64) -> u64 {
        size_of::<R>() as u64 * row
    }
}
