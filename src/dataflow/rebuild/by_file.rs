//! Documents that stay in their file: of nearly all that files with few changes have, the next new
//! document is the same as the next old one. They need not be compared with those of all files.
//!
//! Threads take file after file, each on its own. Every old document is compared with the new one
//! behind the last that was found, and looked up among all of its file if they differ. So it does
//! not matter what lies between, or whether documents of several runs lie among each other. Of a
//! file with more than `WINDOW` documents those are looked at that lie where the document would
//! lie if it had moved as the last ones have; what is not found there is left to the comparison
//! of all files.
//!
//! - Memory: for each thread the new documents in a window with a table, 2.8 MB; a bit for each
//!   document of the file; and for each stretch of documents that moved alike 28 bytes.

use super::pairs::{NewPairFile, PairFile, PairRow};
use super::seen::SeenDocuments;
use super::touched::{GONE, TouchedDocument, TouchedDocuments, TouchedFiles};
use crate::crew::{Crew, lock};
use crate::index::documents::moves::Relocated;
use crate::index::documents::pieces::SeenDocument;
use crate::index::documents::{Location, name_hash};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// New documents that are looked at together, at most.
const WINDOW: u32 = if cfg!(test) { 1 << 7 } else { 1 << 16 };

/// Old documents after which it is looked where the next ones may lie.
const BLOCK: usize = if cfg!(test) { 1 << 2 } else { 1 << 7 };

/// So many documents of a block, at least, tell how far all have moved.
const LEAST_FOUND: usize = 2;

/// Rows of a thread that are given to the file of all at a time, at most.
const ROWS: usize = 1 << 12;

/// Takes both sides apart. Returns the documents that stay at another place of their file, by
/// rising docids, and all that are new, gone or elsewhere.
///
/// # Errors
/// As reading both; `Stopped`.
pub(super) fn by_file(
    old: &TouchedDocuments,
    new: &SeenDocuments,
    folder: &Path,
    threads: usize,
    stop: &Stop,
) -> Result<(Vec<Relocated>, PairFile), IndexError> {
    let others = Mutex::new(NewPairFile::create(folder, "others")?);
    let files = new.files().max(old.files());
    let of_file = |state: &mut FileState, number: usize| {
        stop.check()?;
        let file = if number == files as usize { GONE } else { number as u32 };
        state.of_file(old, new, file, &others)
    };
    let moved = Crew::new("compare").in_order(threads, files as usize + 1, of_file)?;
    let mut moved = moved.concat();
    moved.sort_by_key(Relocated::docid);
    Ok((moved, others.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?))
}

/// What a thread keeps from file to file.
#[derive(Default)]
struct FileState {
    open: TouchedFiles,
    window: NewWindow,
}

impl FileState {
    fn of_file(
        &mut self,
        old: &TouchedDocuments,
        new: &SeenDocuments,
        file: u32,
        others: &Mutex<NewPairFile>,
    ) -> Result<Vec<Relocated>, IndexError> {
        let Self { open, window } = self;
        let mut moved = Vec::new();
        let mut others = OtherRows { rows: Vec::new(), file: others };
        window.begin(new.of_file(file));
        for stretch in old.of_file(file) {
            window.turn_back();
            old.of_stretch(open, stretch, |document| {
                let name = name_hash(document.name);
                let Some(now) = window.find(new, name, &document)? else {
                    return others.put(PairRow::new(name, document.content, false, document.docid));
                };
                let TouchedDocument { docid, was, lies, .. } = document;
                if (now.offset, now.bytes, now.input) != (lies.offset, lies.bytes, file) {
                    Relocated::new(docid, was, now).add_to(&mut moved);
                }
                Ok(())
            })?;
        }
        others.flush()?;
        window.left(new, |number, row| {
            others.put(PairRow::new(row.name(), row.content, true, number))
        })?;
        others.flush()?;
        Ok(moved)
    }
}

/// What a file has beside documents that stay in it, of one side after the other.
struct OtherRows<'a> {
    rows: Vec<PairRow>,
    file: &'a Mutex<NewPairFile>,
}

impl OtherRows<'_> {
    fn put(&mut self, row: PairRow) -> Result<(), IndexError> {
        if self.rows.last_mut().is_some_and(|last| last.extend(&row)) {
            return Ok(());
        }
        if self.rows.len() == ROWS {
            self.flush()?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IndexError> {
        let mut file = lock(self.file);
        self.rows.drain(..).try_for_each(|row| file.put(Some(row)))
    }
}

/// Neighbouring new documents of a file, of which each is found once.
#[derive(Default)]
struct NewWindow {
    /// All of the file.
    numbers: Range<u32>,
    /// A bit for each of these: it was found.
    found: Vec<u64>,
    /// The number of the first row.
    first: u32,
    rows: Vec<SeenDocument>,
    /// The row behind the one that was found last.
    next: usize,
    /// Places of rows by their hashes, of equal ones that of the first; empty until a document is
    /// not the next one. For each row the next equal one, if it is in the table.
    slots: Vec<u32>,
    equal: Vec<u32>,
    /// Documents that were looked for since `turn_back`, and how far those moved that were found
    /// among the last ones.
    looked: usize,
    shifts: Vec<i64>,
}

const NONE: u32 = u32::MAX;

impl NewWindow {
    /// Turns to the documents of a file.
    fn begin(&mut self, numbers: Range<u32>) {
        self.found.clear();
        self.found.resize(numbers.len().div_ceil(64), 0);
        self.first = numbers.start;
        self.rows.clear();
        self.slots.clear();
        self.numbers = numbers;
    }

    /// The next document that is looked for may lie before the last one.
    fn turn_back(&mut self) {
        self.looked = 0;
        self.shifts.clear();
        self.shifts.resize(LEAST_FOUND, 0);
    }

    fn is_found(&self, row: usize) -> bool {
        let at = (self.first - self.numbers.start) as usize + row;
        self.found[at / 64] >> (at % 64) & 1 == 1
    }

    /// Finds a document that was not found before, and where it lies.
    fn find(
        &mut self,
        new: &SeenDocuments,
        name: u128,
        document: &TouchedDocument<'_>,
    ) -> Result<Option<Location>, IndexError> {
        if self.looked.is_multiple_of(BLOCK) {
            self.follow(new, document.lies.offset)?;
        }
        self.looked += 1;
        let is_it = |row: &SeenDocument| (row.name(), row.content) == (name, document.content);
        let row = match self.rows.get(self.next) {
            Some(row) if is_it(row) && !self.is_found(self.next) => Some(self.next),
            _ => self.look_up(name, document.content),
        };
        let Some(row) = row else { return Ok(None) };
        let at = (self.first - self.numbers.start) as usize + row;
        self.found[at / 64] |= 1 << (at % 64);
        self.next = row + 1;
        let place = self.rows[row].place;
        self.shifts.push(place.offset.wrapping_sub(document.lies.offset) as i64);
        Ok(Some(place))
    }

    /// Moves on, or back, to where documents from this offset on lie, if they have moved as the
    /// last ones have.
    fn follow(&mut self, new: &SeenDocuments, offset: u64) -> Result<(), IndexError> {
        let Range { start, end } = self.numbers;
        let mut shifts = std::mem::take(&mut self.shifts);
        let found = shifts.len();
        if end - start <= WINDOW {
            if self.rows.is_empty() && start < end {
                self.read(new, start)?;
            }
        } else if found >= LEAST_FOUND {
            let (_, shift, _) = shifts.select_nth_unstable(found / 2);
            let offset = offset.saturating_add_signed(*shift);
            let is_behind =
                |row: Option<&SeenDocument>| row.is_none_or(|row| offset > row.place.offset);
            let has_end = self.first + self.rows.len() as u32 == end;
            let has_it = self.first == start || is_behind(self.rows.get(self.rows.len() / 8));
            if self.rows.is_empty()
                || !has_it
                || !has_end && is_behind(self.rows.get(self.rows.len() / 2))
            {
                self.turn_to(new, offset)?;
            }
        }
        shifts.clear();
        self.shifts = shifts;
        Ok(())
    }

    /// Reads what lies around an offset.
    fn turn_to(&mut self, new: &SeenDocuments, offset: u64) -> Result<(), IndexError> {
        let mut reader = new.reader()?;
        let mut before = self.numbers.clone();
        while !before.is_empty() {
            let middle = before.start + before.len() as u32 / 2;
            match reader.get(middle)?.place.offset < offset {
                true => before.start = middle + 1,
                false => before.end = middle,
            }
        }
        let first = before.start.saturating_sub(WINDOW / 4).min(self.numbers.end - WINDOW);
        self.read(new, first.max(self.numbers.start))?;
        self.next = (before.start - self.first) as usize;
        Ok(())
    }

    fn read(&mut self, new: &SeenDocuments, first: u32) -> Result<(), IndexError> {
        let end = self.numbers.end.min(first.saturating_add(WINDOW));
        new.read(first..end, &mut self.rows)?;
        self.first = first;
        self.next = 0;
        self.slots.clear();
        Ok(())
    }

    /// The first row with this name and content that was not found before.
    fn look_up(&mut self, name: u128, content: u64) -> Option<usize> {
        if self.slots.is_empty() {
            self.index();
        }
        let slot = self.slot(name, content).ok()?;
        let mut at = self.slots[slot] as usize;
        while self.is_found(at) {
            match self.equal[at] {
                NONE => return None,
                next => at = next as usize,
            }
            self.slots[slot] = at as u32;
        }
        Some(at)
    }

    /// The slot of a name and content; as an error the free one where they belong.
    fn slot(&self, name: u128, content: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = (name as u64 ^ content) as usize & mask;
        loop {
            match self.slots[slot] {
                NONE => return Err(slot),
                row => {
                    let row = &self.rows[row as usize];
                    if (row.name(), row.content) == (name, content) {
                        return Ok(slot);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Makes the table.
    fn index(&mut self) {
        self.slots.resize((2 * self.rows.len()).next_power_of_two().max(2), NONE);
        self.equal.clear();
        self.equal.resize(self.rows.len(), NONE);
        for at in (0..self.rows.len()).rev() {
            if self.is_found(at) {
                continue;
            }
            let row = &self.rows[at];
            match self.slot(row.name(), row.content) {
                Ok(slot) => self.equal[at] = std::mem::replace(&mut self.slots[slot], at as u32),
                Err(slot) => self.slots[slot] = at as u32,
            }
        }
    }

    /// Calls `take` with the number of each document of the file that was not found.
    fn left(
        &mut self,
        new: &SeenDocuments,
        mut take: impl FnMut(u32, &SeenDocument) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let Range { start, end } = self.numbers;
        for first in (start..end).step_by(WINDOW as usize) {
            if self.first != first || self.rows.is_empty() {
                self.read(new, first)?;
            }
            for row in (0..self.rows.len()).filter(|row| !self.is_found(*row)) {
                take(first + row as u32, &self.rows[row])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::rebuild::pairs::{NEW, numbers};
    use bytemuck::Zeroable;

    /// Name, content and offset in the file.
    type Document = (u32, u64, u64);

    fn at(documents: impl IntoIterator<Item = (u32, u64)>) -> Vec<Document> {
        (0..).zip(documents).map(|(at, (name, content))| (name, content, 10 * at)).collect()
    }

    /// How many documents of runs stay in a file, and the names of the others of both sides.
    fn apart(runs: &[Vec<Document>], new: &[Document]) -> (usize, [Vec<u32>; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let place = |offset| Location { offset, bytes: 9, input: 0 };
        let named = |name: u32| format!("n{name}");
        let document = |&(name, content, offset): &Document| (named(name), content, place(offset));
        let all: Vec<Vec<_>> = runs.iter().map(|run| run.iter().map(document).collect()).collect();
        let old = TouchedDocuments::of_runs(folder.path(), &all, &[Some(0)]);
        // So that all have moved.
        let rows = new.iter().map(|&(name, content, offset)| {
            SeenDocument::new(named(name).as_bytes(), content, place(offset + 1))
        });
        let seen = SeenDocuments::of_rows(folder.path(), &rows.collect::<Vec<_>>());
        let (moved, others) = by_file(&old, &seen, folder.path(), 2, &Stop::default()).unwrap();
        let old: Vec<Document> = runs.concat();
        let moved: Vec<_> = moved.iter().flat_map(Relocated::each).collect();
        for &(docid, more) in &moved {
            let (name, content, offset) = old[docid as usize];
            let now = (name, content, offset.wrapping_add(more) - 1);
            assert!(new.contains(&now), "{now:?}");
        }
        let mut rows = vec![PairRow::zeroed()];
        others.read(0..others.rows, &mut rows).unwrap();
        let mut names = [Vec::new(), Vec::new()];
        for row in rows {
            let is_new = row.side >= NEW;
            let side = if is_new { new } else { &old };
            let of = numbers(row.side).map(|number| side[number as usize].0);
            names[usize::from(is_new)].extend(of);
        }
        names.iter_mut().for_each(|names| names.sort_unstable());
        (moved.len(), names)
    }

    #[test]
    fn few_changes_leave_few_others() {
        for documents in [60, 3_000] {
            let old: Vec<(u32, u64)> = (0..documents).map(|n| (n, 7)).collect();
            let same = apart(&[at(old.clone())], &at(old.clone()));
            assert_eq!(same, (documents as usize, [vec![], vec![]]));
            // Changed, gone, new, and moved as far as is looked.
            let mut new = old.clone();
            new[5].1 = 8;
            new.remove(25);
            new.insert(30, (20_000, 1));
            let moved = new.remove(15);
            new.insert(40, moved);
            let (count, others) = apart(&[at(old.clone())], &at(new));
            assert_eq!((count, others), (documents as usize - 2, [vec![5, 25], vec![5, 20_000]]));
        }
        assert_eq!(apart(&[], &at([(1, 1), (2, 2)])), (0, [vec![], vec![1, 2]]));
        assert_eq!(apart(&[at([(1, 1), (2, 2)])], &[]), (0, [vec![1, 2], vec![]]));
    }

    /// Of equal ones as many as there are on both sides, and each once.
    #[test]
    fn equal_documents_are_found_once_each() {
        let same = |count| at((0..count).map(|_| (1, 1)));
        for (old, new) in [(50, 50), (50, 20), (20, 50), (1, 0), (900, 400)] {
            let (count, [gone, came]) = apart(&[same(old)], &same(new));
            let both = old.min(new) as usize;
            assert_eq!(
                (count, gone.len(), came.len()),
                (both, old as usize - both, new as usize - both)
            );
        }
    }

    /// A file that is larger than what is looked at together.
    #[test]
    fn a_large_file_is_followed() {
        let old: Vec<(u32, u64)> = (0..3_000).map(|n| (n, 7)).collect();
        // A part as long as several windows goes, which is before all others or among them.
        for gone in [0..500, 1_000..1_400, 2_500..3_000] {
            let mut new = old.clone();
            new.drain(gone.start as usize..gone.end as usize);
            let (count, [gone_names, came]) = apart(&[at(old.clone())], &at(new.clone()));
            assert_eq!((count, came.len()), (new.len(), 0));
            assert_eq!(gone_names, gone.collect::<Vec<u32>>());
        }
        // A tenth of the documents lies in a later run.
        let is_late = |(name, ..): &Document| name % 10 == 3;
        let (late, first): (Vec<Document>, Vec<Document>) =
            at(old.clone()).into_iter().partition(is_late);
        let mut new = old.clone();
        new.insert(7, (20_000, 1));
        let (count, others) = apart(&[first, late], &at(new));
        assert_eq!((count, others), (3_000, [vec![], vec![20_000]]));
        // None is there any more.
        let new: Vec<(u32, u64)> = (5_000..8_000).map(|n| (n, 7)).collect();
        let (count, others) = apart(&[at(old)], &at(new));
        assert_eq!((count, others[0].len(), others[1].len()), (0, 3_000, 3_000));
    }
}
