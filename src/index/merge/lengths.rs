//! How do the documents' lengths, which bounds are made of, reach the encoder? As codes, a byte
//! each: all of them, which threads share, where there is memory for that; otherwise in pages that
//! each thread reads when they are asked for. A list of few documents meets each page once, so a
//! page that is gone again costs as much as thousands of postings.

#![forbid(unsafe_code)]

use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::window::Window;
use crate::index::format::{HEADER_BYTES, Header, Kind, LONG, padding};
use crate::index::list::MAX_BLOCK;
use crate::score::bounds::code_below;
use std::path::Path;
use std::sync::Arc;

/// Documents of a page: 8 KiB are read for it.
const PAGE: usize = 1 << 12;
/// With fewer pages for each it is not worth starting a thread.
const LEAST_PAGES: usize = 64;
/// The least memory that pages may be given: there is always one.
const LEAST_BYTES: u64 = 8 * PAGE as u64;

/// The codes of the documents' lengths (`score::bounds`) of one run.
///
/// Memory: a byte for each document, or what it was given; a window of a page; and 8 bytes for each
/// document of 65,535 tokens or more. What several hold whole is there once.
#[derive(Debug)]
pub(super) struct Lengths {
    /// The codes of all documents, if they are held whole.
    whole: Option<Arc<Vec<u8>>>,
    window: Window,
    documents: u64,
    /// The long documents and their codes.
    long: Vec<(u32, u8)>,
    /// Each page has one place, its number modulo the places, which are a power of two.
    codes: Vec<u8>,
    /// Which page is at each place.
    pages: Vec<Option<u32>>,
}

/// Reads the `count` documents of 65,535 tokens or more, and their lengths, which stand from byte
/// `first` of a file of lengths on.
pub(super) fn long_documents(
    window: &mut Window,
    first: u64,
    count: u64,
) -> Result<Vec<(u32, u32)>, IndexError> {
    let mut long = Vec::new();
    for number in 0..count {
        let pair = window.read(first.saturating_add(8 * number), 8)?;
        let number =
            |at: usize| u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        long.push((number(0), number(4)));
    }
    Ok(long)
}

/// What there is of a long document, by its docid.
pub(super) fn of_long<T: Copy>(long: &[(u32, T)], docid: u64) -> Option<T> {
    long.binary_search_by_key(&docid, |long| long.0.into()).ok().map(|at| long[at].1)
}

/// The file of lengths at `path` says that a document is long, and does not have it among those.
#[cold]
pub(super) fn no_long(path: &Path, docid: u64) -> IndexError {
    let expected = format!("document {docid} among the long ones");
    IndexError::damaged(path, HEADER_BYTES as u64 + 2 * docid, expected, "none")
}

impl Lengths {
    /// Opens the lengths of a run, in the file at `path`; about `memory_bytes` are used, if there
    /// are so many documents.
    pub(super) fn open(path: &Path, memory_bytes: u64) -> Result<Self, IndexError> {
        let mut window = Window::open(path, 2 * PAGE)?;
        let first = window.length().min(HEADER_BYTES as u64) as usize;
        let header = Header::parse(path, Kind::Lengths, window.read(0, first)?)?;
        let [documents, _, long, ..] = header.values;
        // A file of other length is found when a read meets its end.
        let bytes = documents.saturating_mul(2).min(window.length());
        let first = HEADER_BYTES as u64 + bytes + padding(bytes);
        let long = long_documents(&mut window, first, long)?;
        let long = long.into_iter().map(|(docid, length)| (docid, code_below(length))).collect();
        let pages = documents.div_ceil(PAGE as u64).max(1);
        let affordable = memory_bytes.max(LEAST_BYTES) / PAGE as u64;
        // A power of two, so that the place of a page takes no division.
        let places = match pages <= affordable {
            true => pages.next_power_of_two(),
            false => 1 << affordable.ilog2(),
        } as usize;
        // Pages are made when they are first filled.
        let (whole, codes) = (None, Vec::new());
        Ok(Self { whole, window, documents, long, codes, pages: vec![None; places] })
    }

    /// The codes of all documents, if they take no more than `memory_bytes`, read by so many
    /// `threads`.
    pub(super) fn whole(
        path: &Path,
        memory_bytes: u64,
        threads: usize,
    ) -> Result<Option<Arc<Vec<u8>>>, IndexError> {
        let documents = Self::open(path, 0)?.documents;
        let pages = documents.div_ceil(PAGE as u64);
        if pages.saturating_mul(PAGE as u64) > memory_bytes {
            return Ok(None);
        }
        let mut codes = vec![0; documents as usize];
        let each = (pages as usize).div_ceil(threads.max(1)).max(LEAST_PAGES) * PAGE;
        let read = |(number, part): (usize, &mut [u8])| {
            let mut lengths = Self::open(path, 0)?;
            let first = number * each / PAGE;
            let mut pages = (first as u64..).zip(part.chunks_mut(PAGE));
            pages.try_for_each(|(page, codes)| lengths.read_page(page, codes))
        };
        let parts = codes.chunks_mut(each).enumerate();
        let read = parts.map(|part| move || read(part)).collect();
        Crew::new("lengths").all(read).into_iter().collect::<Result<(), _>>()?;
        Ok(Some(Arc::new(codes)))
    }

    /// As [`open`](Self::open), with the codes of all documents.
    pub(super) fn shared(path: &Path, whole: &Arc<Vec<u8>>) -> Result<Self, IndexError> {
        Ok(Self { whole: Some(whole.clone()), ..Self::open(path, 0)? })
    }

    /// Bytes that the pages take when all places are filled; nothing for what is held whole.
    pub(super) fn memory_bytes(&self) -> u64 {
        if self.whole.is_some() {
            return 0;
        }
        let pages = self.documents.div_ceil(PAGE as u64).max(1);
        pages.min(self.pages.len() as u64) * PAGE as u64
    }

    /// Reads the codes of documents, which rise, counted from document `base`.
    ///
    /// # Errors
    /// `Damaged` if there is no such document; `Storage`.
    #[inline]
    pub(super) fn read(
        &mut self,
        base: u64,
        docids: &[u32],
        codes: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError> {
        if let Some(whole) = &self.whole {
            // They rise, so that the last is the greatest.
            let end = docids.last().map_or(0, |&docid| docid as usize + 1);
            let Some(all) = whole.get(base as usize..).and_then(|all| all.get(..end)) else {
                return Err(self.missing(base + end as u64 - 1));
            };
            for (code, &docid) in codes.iter_mut().zip(docids) {
                *code = all[docid as usize];
            }
            return Ok(());
        }
        for (code, &docid) in codes.iter_mut().zip(docids) {
            let docid = base + u64::from(docid);
            let (page, at) = (docid / PAGE as u64, docid as usize % PAGE);
            let place = page as usize & (self.pages.len() - 1);
            if self.pages[place].map(u64::from) != Some(page) {
                self.fill(page, place)?;
            }
            *code = self.codes[place * PAGE + at];
        }
        Ok(())
    }

    #[cold]
    fn missing(&self, docid: u64) -> IndexError {
        let expected = format!("more than {docid} documents, as the runs have them");
        IndexError::damaged(self.window.path(), 16, expected, self.documents)
    }

    #[cold]
    fn fill(&mut self, page: u64, place: usize) -> Result<(), IndexError> {
        let first = page * PAGE as u64;
        let Some(count) = self.documents.checked_sub(first).filter(|count| *count > 0) else {
            return Err(self.missing(first));
        };
        let mut codes = std::mem::take(&mut self.codes);
        if codes.len() < (place + 1) * PAGE {
            codes.resize((place + 1) * PAGE, 0);
        }
        let here = &mut codes[place * PAGE..][..count.min(PAGE as u64) as usize];
        let read = self.read_page(page, here);
        self.codes = codes;
        read?;
        self.pages[place] = Some(page as u32);
        Ok(())
    }

    /// Reads the codes of the documents of a page, as many as it has.
    fn read_page(&mut self, page: u64, codes: &mut [u8]) -> Result<(), IndexError> {
        let first = page * PAGE as u64;
        let lengths = self.window.read(HEADER_BYTES as u64 + 2 * first, 2 * codes.len())?;
        for (docid, (code, &length)) in (first..).zip(codes.iter_mut().zip(lengths.as_chunks().0)) {
            *code = match u16::from_le_bytes(length) {
                LONG => match of_long(&self.long, docid) {
                    Some(code) => code,
                    None => return Err(no_long(self.window.path(), docid)),
                },
                length => code_below(length.into()),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::documents::{DocumentsWriter, Location};
    use crate::index::files::storage::Durability;

    #[test]
    fn lengths_are_read_with_any_memory() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let mut table = DocumentsWriter::create(folder.path(), 0, Durability::Scratch, 0).unwrap();
        let length = |docid: u32| docid.wrapping_mul(0x9e37_79b1) >> (docid % 32);
        let documents = 12 * PAGE as u32 + 7;
        for docid in 0..documents {
            table.push(b"", length(docid), Location::default(), 0).unwrap();
        }
        table.finish().unwrap();
        for (memory_bytes, places) in [(0, 8), (10 * PAGE as u64, 8), (1 << 30, 13)] {
            let mut lengths =
                Lengths::open(&folder.path().join("runs/000000.lengths"), memory_bytes).unwrap();
            let mut codes = [0; MAX_BLOCK];
            for step in [1usize, 1000, PAGE + 1] {
                for base in [0, 5, PAGE as u32] {
                    let docids: Vec<u32> = (0..documents - base).step_by(step).collect();
                    for docids in docids.chunks(MAX_BLOCK) {
                        lengths.read(base.into(), docids, &mut codes).unwrap();
                        for (&docid, &code) in docids.iter().zip(&codes) {
                            assert_eq!(code, code_below(length(base + docid)));
                        }
                    }
                }
            }
            assert_eq!(lengths.memory_bytes(), places * PAGE as u64);
            assert!(lengths.codes.len() as u64 <= places * PAGE as u64);
            let error = lengths.read(u64::from(documents) + PAGE as u64, &[0], &mut codes);
            assert!(error.unwrap_err().to_string().contains("000000.lengths"));
        }
        let path = folder.path().join("runs/000000.lengths");
        assert!(Lengths::whole(&path, u64::from(documents), 3).unwrap().is_none(), "by pages");
        let whole = Lengths::whole(&path, 13 * PAGE as u64, 3).unwrap().unwrap();
        assert_eq!(whole.len(), documents as usize);
        let mut lengths = Lengths::shared(&path, &whole).unwrap();
        assert_eq!(lengths.memory_bytes(), 0);
        let mut codes = [0; MAX_BLOCK];
        let docids: Vec<u32> = (0..documents - 5).step_by(999).collect();
        lengths.read(5, &docids, &mut codes).unwrap();
        for (&docid, &code) in docids.iter().zip(&codes) {
            assert_eq!(code, code_below(length(5 + docid)));
        }
        let error = lengths.read(u64::from(documents), &[0], &mut codes).unwrap_err();
        assert!(error.to_string().contains("000000.lengths"));
    }
}
