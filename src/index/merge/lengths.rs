//! The documents' lengths for bounds, as the encoder takes them: codes of a byte each, which
//! threads share.

use crate::crew::{Crew, lock};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{
    FileHeader, FileKind, HEADER_BYTES, LONG, file_path, padding, run_file, run_name,
};
use crate::index::list::MAX_BLOCK;
use crate::score::bounds::code_below;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Documents that are read at a time.
const AT_ONCE: usize = 1 << 12;
/// With fewer documents for each, starting a thread does not pay.
const LEAST_DOCUMENTS: usize = 64 * AT_ONCE;

/// The codes of the documents' lengths (`score::bounds`) of one run.
///
/// Memory: a byte for each document as long as that leaves a quarter of the memory; else a page.
#[derive(Debug)]
pub(super) struct Lengths {
    path: PathBuf,
    documents: u64,
    codes: Codes,
}

/// Which lengths of a file are those of documents: every this many, from one on.
#[derive(Clone, Copy, Debug)]
struct Column {
    step: u64,
    first: u64,
}

#[derive(Debug)]
enum Codes {
    All(Vec<u8>),
    /// Threads take turns: a list of few documents meets each page once.
    Page(Mutex<LengthPage>),
}

#[derive(Debug)]
struct LengthPage {
    window: FileWindow,
    column: Column,
    long: Vec<(u32, u32)>,
    first: u64,
    codes: Vec<u8>,
}

/// Reads the `count` documents of 65,535 tokens or more, and their lengths, from byte `first` of a
/// file of lengths on.
pub(super) fn long_documents(
    window: &mut FileWindow,
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

/// The entry of a long document.
pub(super) fn of_long<T: Copy>(long: &[(u32, T)], docid: u64) -> Option<T> {
    long.binary_search_by_key(&docid, |long| long.0.into()).ok().map(|at| long[at].1)
}

/// The file of lengths at `path` marks a document as long, and does not have it among those.
#[cold]
pub(super) fn no_long(path: &Path, docid: u64) -> IndexError {
    let expected = format!("document {docid} among the long ones");
    IndexError::damaged(path, HEADER_BYTES as u64 + 2 * docid, expected, "none")
}

impl Lengths {
    /// Those of run `number` of a generation, and behind them those of each of its fields. Also
    /// returns what they leave of this many bytes of memory.
    pub(super) fn of_run(
        generation: &Path,
        number: u32,
        fields: usize,
        mut memory_bytes: u64,
        threads: usize,
    ) -> Result<(Vec<Self>, u64), IndexError> {
        let mut all = Vec::with_capacity(fields + 1);
        for field in 0..=fields as u64 {
            let (kind, column) = match field.checked_sub(1) {
                None => (FileKind::Lengths, Column { step: 1, first: 0 }),
                Some(first) => (FileKind::Fields, Column { step: fields as u64, first }),
            };
            let path = file_path(generation, &run_file(&run_name(number), kind));
            all.push(Self::read(&path, kind, column, memory_bytes, threads)?);
            memory_bytes = all[all.len() - 1].memory_behind(memory_bytes);
        }
        Ok((all, memory_bytes))
    }

    fn read(
        path: &Path,
        kind: FileKind,
        column: Column,
        memory_bytes: u64,
        threads: usize,
    ) -> Result<Self, IndexError> {
        let mut window = FileWindow::open(path, 2 * AT_ONCE)?;
        let first = window.length().min(HEADER_BYTES as u64) as usize;
        let header = FileHeader::parse(path, kind, window.read(0, first)?)?;
        let [documents, _, long, ..] = header.values;
        // A file of another length is found when a read meets its end.
        let bytes = documents.saturating_mul(2 * column.step).min(window.length());
        let behind = HEADER_BYTES as u64 + bytes + padding(bytes);
        let long = long_documents(&mut window, behind, long)?;
        let documents = bytes / 2 / column.step;
        let codes = if documents > memory_bytes / 4 * 3 {
            Codes::Page(Mutex::new(LengthPage { window, column, long, first: 0, codes: vec![] }))
        } else {
            Codes::All(read_all(path, column, documents, &long, threads)?)
        };
        Ok(Self { path: path.to_path_buf(), documents, codes })
    }

    /// The memory left of `memory_bytes`.
    pub(super) fn memory_behind(&self, memory_bytes: u64) -> u64 {
        match &self.codes {
            Codes::All(codes) => memory_bytes.saturating_sub(codes.len() as u64),
            Codes::Page(_) => memory_bytes,
        }
    }

    /// Gives the codes of documents, which rise, counted from document `base`.
    ///
    /// # Errors
    /// `Damaged` if there is no such document.
    #[inline]
    pub(super) fn of(
        &self,
        base: u64,
        docids: &[u32],
        codes: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError> {
        let end = base + docids.last().map_or(0, |&docid| u64::from(docid) + 1);
        if end > self.documents {
            return Err(self.missing(end - 1));
        }
        match &self.codes {
            Codes::All(all) => {
                let all = &all[base as usize..end as usize];
                for (code, &docid) in codes.iter_mut().zip(docids) {
                    *code = all[docid as usize];
                }
            }
            Codes::Page(page) => {
                let mut page = lock(page);
                for (code, &docid) in codes.iter_mut().zip(docids) {
                    *code = page.code(base + u64::from(docid), self.documents)?;
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn missing(&self, docid: u64) -> IndexError {
        let expected = format!("more than {docid} documents, as the runs have them");
        IndexError::damaged(&self.path, 16, expected, self.documents)
    }
}

impl LengthPage {
    fn code(&mut self, docid: u64, documents: u64) -> Result<u8, IndexError> {
        let at = docid.checked_sub(self.first).filter(|&at| at < self.codes.len() as u64);
        let at = match at {
            Some(at) => at as usize,
            None => {
                self.first = docid / AT_ONCE as u64 * AT_ONCE as u64;
                let count = (documents - self.first).min(AT_ONCE as u64) as usize;
                self.codes.resize(count, 0);
                let (column, codes) = (self.column, &mut self.codes);
                read_codes(&mut self.window, column, &self.long, self.first, codes)
                    .inspect_err(|_| self.codes.clear())?;
                (docid - self.first) as usize
            }
        };
        Ok(self.codes[at])
    }
}

fn read_all(
    path: &Path,
    column: Column,
    documents: u64,
    long: &[(u32, u32)],
    threads: usize,
) -> Result<Vec<u8>, IndexError> {
    let mut codes = vec![0; documents as usize];
    let each = codes.len().div_ceil(threads.max(1)).max(LEAST_DOCUMENTS);
    let read = |(number, part): (usize, &mut [u8])| {
        let mut window = FileWindow::open(path, 2 * AT_ONCE)?;
        let first = (number * each) as u64;
        let mut parts = (first..).step_by(AT_ONCE).zip(part.chunks_mut(AT_ONCE));
        parts.try_for_each(|(docid, codes)| read_codes(&mut window, column, long, docid, codes))
    };
    let parts = codes.chunks_mut(each).enumerate();
    let read = parts.map(|part| move || read(part)).collect();
    Crew::new("lengths").all(read).into_iter().collect::<Result<(), _>>()?;
    Ok(codes)
}

fn read_codes(
    window: &mut FileWindow,
    Column { step, first }: Column,
    long: &[(u32, u32)],
    docid: u64,
    codes: &mut [u8],
) -> Result<(), IndexError> {
    let path = window.path().to_path_buf();
    let at = HEADER_BYTES as u64 + 2 * step * docid;
    let lengths = window.read(at, 2 * step as usize * codes.len())?.as_chunks().0;
    let numbers = (step * docid + first..).step_by(step as usize);
    let own = lengths.iter().skip(first as usize).step_by(step as usize);
    for (number, (code, &length)) in numbers.zip(codes.iter_mut().zip(own)) {
        *code = code_below(match u16::from_le_bytes(length) {
            LONG => of_long(long, number).ok_or_else(|| no_long(&path, number))?,
            length => length.into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::documents::{DocumentsWriter, Location};

    #[test]
    fn lengths_are_read_by_any_number_of_threads_with_any_memory() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let mut table = DocumentsWriter::create(folder.path(), 0, 0).unwrap();
        let length = |docid: u32| docid.wrapping_mul(0x9e37_79b1) >> (docid % 32);
        let documents = 2 * LEAST_DOCUMENTS as u32 + 7;
        for docid in 0..documents {
            table.push("", length(docid), Location::default(), 0).unwrap();
        }
        table.finish().unwrap();
        let most = 1 << 40;
        for (threads, memory) in [(0, most), (1, most), (3, most), (3, u64::from(documents))] {
            let (lengths, left) = Lengths::of_run(folder.path(), 0, 0, memory, threads).unwrap();
            let taken = if memory == most { u64::from(documents) } else { 0 };
            assert_eq!(left, memory - taken);
            let lengths = &lengths[0];
            let mut codes = [0; MAX_BLOCK];
            for step in [1usize, 1000, AT_ONCE + 1] {
                for base in [0, 5, AT_ONCE as u32] {
                    let docids: Vec<u32> = (0..documents - base).step_by(step).collect();
                    for docids in docids.chunks(MAX_BLOCK) {
                        lengths.of(base.into(), docids, &mut codes).unwrap();
                        for (&docid, &code) in docids.iter().zip(&codes) {
                            assert_eq!(code, code_below(length(base + docid)));
                        }
                    }
                }
            }
            let error = lengths.of(u64::from(documents), &[0], &mut codes).unwrap_err();
            assert!(error.to_string().contains("000000.lengths"));
        }
    }
}
