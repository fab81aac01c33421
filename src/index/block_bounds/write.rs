//! Makes the bounds of blocks of a finished run, whose lists are read once more.

use super::{BLOCK_DOCUMENTS, BODY, DATA, RunBounds, words_of};
use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, StorageFile, remove_file};
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES};
use crate::index::generations::manifest::{RunEntry, Settings};
use crate::index::lexicon::{LexiconStream, TermEntry};
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use crate::index::run::Run;
use crate::score::block_codes::{CODES, ImpactCodes};
use crate::score::bounds::greatest_tf;
use libm::exp;
use std::path::Path;

/// Shorter lists have no bounds: all of their postings are soon read.
pub(super) const LEAST_DF: u32 = 256;

/// Bounds pay up to this share of what they would be in random order, where nothing is skipped.
const PAYING: f64 = 0.7;

const WINDOW_BYTES: usize = 64 << 10;

/// Postings of the lists that a thread takes at a time, about.
const PART: u64 = 1 << 18;

/// Parts that are in memory together, for each thread.
const PARTS: usize = 4;

/// Writes and syncs the bounds of finished runs of learned vectors in the folder of a generation,
/// if they have none and bounds pay, and adds them to its `files`. The bytes do not depend on the
/// threads.
///
/// Memory: for each thread some MB, or what the longest list takes.
///
/// # Errors
/// `Damaged`, `List`, `Storage`.
pub(crate) fn write_missing_bounds<'a>(
    generation: &Path,
    runs: impl IntoIterator<Item = &'a RunEntry>,
    files: &mut Vec<FileEntry>,
    settings: &Settings,
    threads: usize,
) -> Result<(), IndexError> {
    for run in runs.into_iter().filter(|_| settings.has_impacts()) {
        let name = run.file(FileKind::Bounds);
        if files.iter().all(|file| file.name != name) {
            files.extend(write_bounds(generation, run, name, threads)?);
        }
    }
    Ok(())
}

fn write_bounds(
    generation: &Path,
    entry: &RunEntry,
    name: String,
    threads: usize,
) -> Result<Option<FileEntry>, IndexError> {
    let maker = BoundsMaker::new(generation, entry)?;
    let mut file = StorageFile::create(generation, &name)?;
    file.write(bytemuck::cast_slice(maker.codes.impacts()))?;
    let mut offsets = Vec::new();
    let mut ends = Vec::new();
    let mut saved = 0;
    maker.each_list(threads, |term, data, of_list| {
        saved += of_list;
        file.write(bytemuck::cast_slice(data))?;
        offsets.push(term.offset);
        ends.push(BODY + file.body_bytes() - DATA);
        Ok(())
    })?;
    if saved <= 0 {
        return remove_file(file.path()).map(|()| None);
    }
    file.write(bytemuck::cast_slice(&offsets))?;
    file.write(bytemuck::cast_slice(&ends))?;
    let data_bytes = ends.last().copied().unwrap_or(0);
    let values = [entry.documents.into(), ends.len() as u64, data_bytes, 0, 0];
    file.finish(FileHeader { kind: FileKind::Bounds, values, last: 0 }).map(Some)
}

/// Checks that the bounds of a run are those that its lists have.
///
/// # Errors
/// `Damaged`, `List`, `Storage`.
pub(crate) fn check_bounds(
    generation: &Path,
    entry: &RunEntry,
    threads: usize,
) -> Result<(), IndexError> {
    let bounds = RunBounds::open_unverified(generation, entry)?;
    let maker = BoundsMaker::new(generation, entry)?;
    if bounds.codes != maker.codes {
        return Err(bounds.damaged(BODY, "the impacts that codes stand for", "others"));
    }
    let mut lists = 0;
    let mut end = 0;
    maker.each_list(threads, |term, data, _| {
        let at = DATA + end;
        end += 8 * data.len() as u64;
        let is_next = bounds.offsets().get(lists) == Some(&term.offset)
            && bounds.ends().get(lists) == Some(&end);
        if !is_next || bounds.data(lists)? != (at, data) {
            let expected = format!("the bounds of the list at byte {}", term.offset);
            return Err(bounds.damaged(at, expected, "others"));
        }
        lists += 1;
        Ok(())
    })?;
    if (lists as u64, end) != (bounds.lists, bounds.data_bytes) {
        let found = format!("{} in {} bytes", bounds.lists, bounds.data_bytes);
        return Err(bounds.damaged(24, format!("{lists} lists in {end} bytes"), found));
    }
    Ok(())
}

/// Makes the bounds of the lists of a run.
struct BoundsMaker {
    run: Run,
    codes: ImpactCodes,
}

impl BoundsMaker {
    fn new(generation: &Path, entry: &RunEntry) -> Result<Self, IndexError> {
        let run = Run::open_unverified(generation, entry)?;
        let mut terms = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
        let mut greatest = 1;
        while terms.advance()? {
            let term = terms.term().list;
            if term.df >= LEAST_DF {
                // The pairs of a bound are sorted by falling impact.
                let bounds = run.list(term)?.list_bounds();
                let of_list = bounds.iter().map(|bound| greatest_tf(bound[0])).max();
                greatest = greatest.max(of_list.unwrap_or(1));
            }
        }
        Ok(Self { run, codes: ImpactCodes::new(greatest) })
    }

    /// Calls `take` with each list that has bounds, in the order of the lexicon, their data, and
    /// how far the codes are below what still pays.
    fn each_list(
        &self,
        threads: usize,
        mut take: impl FnMut(TermEntry, &[u64], i64) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let mut terms = LexiconStream::open(self.run.lexicon().path(), WINDOW_BYTES)?;
        let mut crew = Crew::new("bounder");
        let mut is_done = false;
        while !is_done {
            let mut parts: Vec<Vec<TermEntry>> = Vec::new();
            let mut room = 0;
            while parts.len() < threads.max(1) * PARTS || room > 0 {
                if !terms.advance()? {
                    is_done = true;
                    break;
                }
                let term = terms.term().list;
                if term.df >= LEAST_DF {
                    if room == 0 {
                        parts.push(Vec::new());
                        room = PART;
                    }
                    room = room.saturating_sub(term.df.into());
                    parts.last_mut().expect("a part was begun").push(term);
                }
            }
            let make = |coder: &mut BlockCoder, number: usize| -> Result<Vec<_>, IndexError> {
                parts[number].iter().map(|term| self.data_of(term, coder)).collect()
            };
            let made = crew.in_order(threads, parts.len(), make)?;
            for (term, data) in parts.iter().flatten().zip(made.iter().flatten()) {
                data.as_ref().map_or(Ok(()), |(data, saved)| take(*term, data, *saved))?;
            }
        }
        Ok(())
    }

    fn data_of(
        &self,
        term: &TermEntry,
        coder: &mut BlockCoder,
    ) -> Result<Option<(Vec<u64>, i64)>, IndexError> {
        let place = HEADER_BYTES as u64 + term.offset;
        let coded = coder.code(&self.run.list(*term)?, self.run.documents(), &self.codes);
        let coded = coded.map_err(IndexError::list(self.run.postings_path(), place))?;
        Ok(coded.map(|data| (data, coder.saved(self.run.documents()))))
    }
}

/// Codes lists, one after the other.
#[derive(Default)]
pub(crate) struct BlockCoder {
    /// A bit for each block, and the codes of those that have postings.
    words: Vec<u64>,
    codes: Vec<u8>,
    /// Of postings, by their codes.
    counts: Vec<u32>,
    columns: SegmentColumns,
}

impl BlockCoder {
    /// The data of a list's bounds, if that pays: if they take at most a byte a posting. A list
    /// without bounds of its own has none.
    pub(crate) fn code(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        codes: &ImpactCodes,
    ) -> Result<Option<Vec<u64>>, ListError> {
        if list.list_bounds().is_empty() {
            return Ok(None);
        }
        self.words.clear();
        self.words.resize(words_of(documents), 0);
        self.codes.clear();
        self.counts.clear();
        self.counts.resize(CODES, 0);
        self.columns.close();
        let mut docids = [0; MAX_BLOCK];
        let mut impacts = [0; MAX_BLOCK];
        let mut block = u32::MAX;
        let mut most = 0;
        for number in 0..list.blocks() {
            let columns = &mut self.columns;
            let count =
                list.decode_postings(number, documents, columns, &mut docids, &mut impacts)?;
            for (&docid, &impact) in docids[..count].iter().zip(&impacts) {
                let here = docid / BLOCK_DOCUMENTS;
                if here != block {
                    if block != u32::MAX {
                        self.codes.push(codes.code(most));
                    }
                    block = here;
                    most = 0;
                    self.words[here as usize / 64] |= 1 << (here % 64);
                }
                most = most.max(impact);
                self.counts[usize::from(codes.code(impact))] += 1;
            }
        }
        self.codes.push(codes.code(most));
        Ok(self.data(list.df()))
    }

    /// How far the sum of the codes is below [`PAYING`] of what it would be in the mean if the
    /// postings stood anywhere in the run.
    fn saved(&self, documents: u32) -> i64 {
        let blocks = f64::from(documents.div_ceil(BLOCK_DOCUMENTS));
        let mut anywhere = 0.0;
        let mut above = 0.0;
        let mut without = 1.0;
        for (code, &count) in (0..=u8::MAX).zip(&self.counts).rev() {
            // The share of blocks that would have no posting of this code or a greater one.
            above += f64::from(count);
            let still = exp(-above / blocks);
            anywhere += f64::from(code) * blocks * (without - still);
            without = still;
        }
        (PAYING * anywhere) as i64 - self.codes.iter().copied().map(i64::from).sum::<i64>()
    }

    fn data(&mut self, df: u32) -> Option<Vec<u64>> {
        let tops = self.words.chunks(64).map(|words| {
            let bit = |(number, word): (usize, &u64)| u64::from(*word != 0) << number;
            words.iter().enumerate().map(bit).sum::<u64>()
        });
        let mut data: Vec<u64> = tops.collect();
        data.extend(self.words.iter().filter(|word| **word != 0));
        if 8 * data.len() + self.codes.len() > df as usize {
            return None;
        }
        self.codes.resize(self.codes.len().next_multiple_of(8), 0);
        data.extend(self.codes.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight)));
        Some(data)
    }
}
