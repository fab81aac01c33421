//! Which pages of the sources lead to which? Links of HTML are looked for once in each file that is
//! new or has changed, and kept in one file beside the history.
//!
//! ```text
//! 8 bytes of magic; u64: files; a u64 key of each file; u64: hash of these keys
//! for each page: u32 file, u32 links, u128 hash of its name, u64 key, a u64 key of each link
//! u32 2^32 - 1, u32 0, u64: hash of all pages
//! ```
//!
//! Numbers are little-endian. The file can be removed at any time: all of it can be found out
//! again.

use crate::dataflow::rebuild::links::PageLinks;
use crate::fault;
use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"MRLINKS1";

/// The number of the file of what ends the pages.
const END: u32 = u32::MAX;

/// The key of a file: whoever has this path, these bytes and this format has the same links.
pub(crate) fn file_key(path: &str, hash: &str, format: &str) -> u64 {
    XxHash3_64::oneshot(format!("{path}\0{hash}\0{format}").as_bytes())
}

/// The links that are kept, as they are read.
pub(crate) struct LinkReader {
    file: BufReader<File>,
    files: Vec<u64>,
    hash: XxHash3_64,
}

impl LinkReader {
    /// Opens the file; nothing if there is none, or its head is not whole.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(path).ok()?);
        let length = file.get_ref().metadata().ok()?.len();
        let magic: [u8; 8] = bytes(&mut file).ok()?;
        let count = u64::from_le_bytes(bytes(&mut file).ok()?);
        if magic != MAGIC || count > length / 8 {
            return None;
        }
        let mut files = Vec::with_capacity(count as usize);
        for _ in 0..count {
            files.push(u64::from_le_bytes(bytes(&mut file).ok()?));
        }
        let sealed = u64::from_le_bytes(bytes(&mut file).ok()?);
        let hash = XxHash3_64::new();
        (sealed == XxHash3_64::oneshot(bytemuck::cast_slice(&files))).then_some(Self {
            file,
            files,
            hash,
        })
    }

    /// The keys of all files that links are known of.
    pub(crate) fn files(&self) -> &[u64] {
        &self.files
    }

    /// Reads the next page into `page`; whether there is one.
    ///
    /// # Errors
    /// When it cannot be read, or the file is not what was written.
    pub(crate) fn next(&mut self, page: &mut PageLinks) -> io::Result<bool> {
        let damaged =
            || io::Error::new(ErrorKind::InvalidData, "the links that are kept are damaged");
        let head: [u8; 8] = bytes(&mut self.file)?;
        self.hash.write(&head);
        let [file, count] = [0, 4].map(|at| u32_at(&head, at));
        if file == END {
            let sealed = u64::from_le_bytes(bytes(&mut self.file)?);
            return if sealed == self.hash.finish() { Ok(false) } else { Err(damaged()) };
        }
        if file as usize >= self.files.len() {
            return Err(damaged());
        }
        let own: [u8; 24] = bytes(&mut self.file)?;
        self.hash.write(&own);
        let (name, key) = own.split_at(16);
        page.file = file;
        page.name = name.first_chunk().map_or(0, |name| u128::from_le_bytes(*name));
        page.key = key.first_chunk().map_or(0, |key| u64::from_le_bytes(*key));
        page.targets.clear();
        for _ in 0..count {
            let target: [u8; 8] = bytes(&mut self.file)?;
            self.hash.write(&target);
            page.targets.push(u64::from_le_bytes(target));
        }
        Ok(true)
    }
}

fn u32_at(bytes: &[u8; 8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Links that are written, in the place of those that are kept.
pub(crate) struct LinkWriter {
    path: PathBuf,
    next: PathBuf,
    file: BufWriter<File>,
    hash: XxHash3_64,
}

impl LinkWriter {
    /// Begins a file with the links of the files of these keys, which will take the place of that
    /// at `path`.
    pub(crate) fn create(path: &Path, files: &[u64]) -> io::Result<Self> {
        let next = path.with_extension("tmp");
        fault::storage()?;
        let mut file = BufWriter::with_capacity(1 << 18, File::create(&next)?);
        file.write_all(&MAGIC)?;
        file.write_all(&(files.len() as u64).to_le_bytes())?;
        files.iter().try_for_each(|key| file.write_all(&key.to_le_bytes()))?;
        file.write_all(&XxHash3_64::oneshot(bytemuck::cast_slice(files)).to_le_bytes())?;
        Ok(Self { path: path.to_path_buf(), next, file, hash: XxHash3_64::new() })
    }

    pub(crate) fn push(&mut self, page: &PageLinks) -> io::Result<()> {
        self.write(&page.file.to_le_bytes())?;
        self.write(&(page.targets.len() as u32).to_le_bytes())?;
        self.write(&page.name.to_le_bytes())?;
        self.write(&page.key.to_le_bytes())?;
        self.write(bytemuck::cast_slice(&page.targets))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.write(bytes);
        self.file.write_all(bytes)
    }

    /// Puts the file in its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write(&END.to_le_bytes())?;
        self.write(&[0; 4])?;
        let sealed = self.hash.finish();
        self.file.write_all(&sealed.to_le_bytes())?;
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
        let read = || -> io::Result<Vec<PageLinks>> {
            let mut reader = LinkReader::open(&path).ok_or(ErrorKind::InvalidData)?;
            assert_eq!(reader.files(), [11, 12]);
            let (mut all, mut page) = (Vec::new(), PageLinks::default());
            while reader.next(&mut page)? {
                all.push(page.clone());
            }
            Ok(all)
        };
        assert_eq!(read().unwrap(), pages);
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
