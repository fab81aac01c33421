//! The links of the pages of the sources: HTML is searched once in each new or changed file, and
//! its links stay in one file beside the history.
//!
//!
//! ```text
//! magic; files; a key of each file
//! for each page: file, links, hash of its name (two), key, a key of each link
//! 2^64 - 1; hash of all before
//! ```
//!
//! All are little-endian u64. The file can be removed at any time: it is found out again.

use crate::dataflow::rebuild::links::PageLinks;
use crate::fault;
use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

const MAGIC: u64 = u64::from_le_bytes(*b"MRLINKS2");

/// Stands for the number of a file behind the last page.
const END: u64 = u64::MAX;

/// Equal path, bytes and format have equal links.
pub(crate) fn file_key(path: &Path, hash: &str, format: &str) -> u64 {
    let parts = [path.as_os_str().as_bytes(), hash.as_bytes(), format.as_bytes()];
    XxHash3_64::oneshot(&parts.join(&0))
}

/// Reads stored links; its hash is checked behind the last.
pub(crate) struct LinkReader {
    file: BufReader<File>,
    /// The file's length bounds every list.
    most: u64,
    files: Vec<u64>,
    hash: XxHash3_64,
}

impl LinkReader {
    /// Nothing if there is no file, or it is another one.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let most = file.metadata().ok()?.len() / 8;
        let file = BufReader::with_capacity(1 << 18, file);
        let mut reader = Self { file, most, files: Vec::new(), hash: XxHash3_64::new() };
        let [magic, files] = reader.read().ok()?;
        reader.files = reader.list(files).ok().filter(|_| magic == MAGIC)?;
        Some(reader)
    }

    pub(crate) fn files(&self) -> &[u64] {
        &self.files
    }

    /// # Errors
    /// When the file cannot be read, or is not what was written.
    pub(crate) fn next(&mut self) -> io::Result<Option<PageLinks>> {
        let [file] = self.read()?;
        if file == END {
            let expected = self.hash.finish();
            let [sealed] = self.read()?;
            return if sealed == expected { Ok(None) } else { Err(damaged()) };
        }
        let [links, low, high, key] = self.read()?;
        if file >= self.files.len() as u64 {
            return Err(damaged());
        }
        let name = u128::from(high) << 64 | u128::from(low);
        Ok(Some(PageLinks { file: file as u32, name, key, targets: self.list(links)? }))
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u64; N]> {
        let mut words = [0; N];
        self.fill(&mut words)?;
        Ok(words)
    }

    fn list(&mut self, length: u64) -> io::Result<Vec<u64>> {
        if length > self.most {
            return Err(damaged());
        }
        let mut words = vec![0; length as usize];
        self.fill(&mut words)?;
        Ok(words)
    }

    fn fill(&mut self, words: &mut [u64]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice_mut(words);
        self.file.read_exact(bytes)?;
        self.hash.write(bytes);
        Ok(())
    }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the links that are kept are damaged")
}

pub(crate) struct LinkWriter {
    path: PathBuf,
    next: PathBuf,
    file: BufWriter<File>,
    hash: XxHash3_64,
}

impl LinkWriter {
    /// Begins a file with the links of the files of these keys, which will replace that at `path`.
    pub(crate) fn create(path: &Path, files: &[u64]) -> io::Result<Self> {
        let next = path.with_extension("tmp");
        fault::storage()?;
        let file = BufWriter::with_capacity(1 << 18, File::create(&next)?);
        let mut writer = Self { path: path.to_path_buf(), next, file, hash: XxHash3_64::new() };
        writer.write(&[MAGIC, files.len() as u64])?;
        writer.write(files)?;
        Ok(writer)
    }

    pub(crate) fn push(&mut self, page: &PageLinks) -> io::Result<()> {
        let low = page.name as u64;
        let high = (page.name >> 64) as u64;
        let links = page.targets.len() as u64;
        self.write(&[page.file.into(), links, low, high, page.key])?;
        self.write(&page.targets)
    }

    fn write(&mut self, words: &[u64]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice(words);
        self.hash.write(bytes);
        self.file.write_all(bytes)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write(&[END])?;
        self.write(&[self.hash.finish()])?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        fault::storage()?;
        fs::rename(&self.next, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links");
        assert!(LinkReader::open(&path).is_none());
        let page = |file, targets: &[u64]| PageLinks {
            file,
            name: u128::MAX - 5,
            key: 9,
            targets: targets.to_vec(),
        };
        let pages = [page(0, &[1, u64::MAX]), page(1, &[]), page(1, &[7])];
        let mut writer = LinkWriter::create(&path, &[11, 12]).unwrap();
        pages.iter().for_each(|page| writer.push(page).unwrap());
        assert!(!path.exists());
        writer.finish().unwrap();
        let read = || -> io::Result<(Vec<u64>, Vec<PageLinks>)> {
            let mut reader = LinkReader::open(&path).ok_or(ErrorKind::InvalidData)?;
            let mut all = Vec::new();
            while let Some(page) = reader.next()? {
                all.push(page);
            }
            Ok((reader.files().to_vec(), all))
        };
        assert_eq!(read().unwrap(), (vec![11, 12], pages.to_vec()));
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            read().unwrap_err();
            fs::write(&path, &good[..at]).unwrap();
            read().unwrap_err();
        }
    }
}
