//! Lists that have bitmaps: which searches ask for them, and AND of such lists. The bitmap of a
//! list tells whether it has a document, and how many of its postings come before, so that no docid
//! of it is decoded.

pub(crate) mod memory;

use self::memory::DecodedTfs;
use super::auto;
use crate::cpu::Level;
use crate::index::list::{ListError, ListView};
use crate::index::run::dense::{Bitmap, LINE_DOCUMENTS};
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::kernels::{BlockRoom, Line, count_bits, number_bits, pick_common, rank_bits};
use crate::query::scratch::{Candidates, Scratch};
use crate::query::top_k::TopK;
use crate::query::wanted::{Algorithm, Stage};

/// The numbers of the postings of a line.
static NUMBERS: BlockRoom = {
    let mut numbers = [0; _];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = at as u32;
        at += 1;
    }
    numbers
};

impl RunSearch<'_> {
    /// Whether a search of words looks documents up in bitmaps: AND, and OR where some lists may
    /// only be asked for candidates.
    pub(crate) fn wants_bitmaps(&self, stage: Stage, algorithm: Algorithm, hits: usize) -> bool {
        let goes_by_ranges = self.blocks.is_none() && self.norms.statics.is_empty();
        self.terms.len() > 1
            && match (stage, algorithm) {
                (Stage::All, Algorithm::Handed(handed)) => !handed.finds_all(),
                (Stage::All, _) => true,
                (Stage::Any, Algorithm::MaxScore) => goes_by_ranges,
                (Stage::Any, Algorithm::Auto) => goes_by_ranges && !auto::scores_all(self, hits),
                _ => false,
            }
    }

    /// The bitmap of a term's list, if it has one and somebody asked for it. A part of a list has
    /// none, as its postings are numbered from its own first one.
    pub(crate) fn bitmap(&self, term: usize) -> Option<&Bitmap> {
        let bitmap = self.dense.get(term)?.as_deref();
        bitmap.filter(|_| self.terms[term].list.is_some_and(|list| list.wanted() == (0..u32::MAX)))
    }

    /// Whether all terms have one.
    pub(super) fn has_bitmaps(&self) -> bool {
        (0..self.terms.len()).all(|term| self.bitmap(term).is_some())
    }

    /// The documents of a line that have every term.
    fn common(&self, line: usize) -> Line {
        let mut common = [u64::MAX; _];
        let lines = (0..self.terms.len()).filter_map(|term| self.bitmap(term)?.line(line));
        for bits in lines {
            common.iter_mut().zip(bits).for_each(|(common, bits)| *common &= bits);
        }
        common
    }

    /// The lines that have documents with every term, and these.
    fn lines(&self) -> impl Iterator<Item = (usize, Line)> {
        let lines = 0..self.documents.div_ceil(LINE_DOCUMENTS) as usize;
        let of_lines = lines.map(|line| (line, self.common(line)));
        of_lines.filter(|(_, common)| common.iter().any(|&word| word != 0))
    }

    /// How many documents have every term.
    pub(super) fn count_bitmaps(&self) -> u64 {
        let of_lines = self.lines().map(|(_, common)| count_bits(self.level, &common));
        of_lines.map(u64::from).sum()
    }

    /// Offers all documents that have every term, and returns their number.
    pub(super) fn offer_bitmaps(
        &self,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<u64, ListError> {
        scratch.reset_cursors(self.terms.len());
        let Scratch { cursors, candidates, decoded, .. } = scratch;
        decoded.resize_with(self.terms.len().max(decoded.len()), DecodedTfs::default);
        decoded.iter_mut().for_each(DecodedTfs::clear);
        let mut all = 0;
        for (line, common) in self.lines() {
            let first = line as u32 * LINE_DOCUMENTS;
            let docids = candidates.matches(self.terms.len());
            let count = number_bits(self.level, &common, first, docids);
            all += count as u64;
            self.offer_by(count, candidates, top, |term, list, tfs| {
                let Some(bitmap) = self.bitmap(term) else { return Ok(()) };
                let Some(bits) = bitmap.line(line) else { return Ok(()) };
                let postings = bitmap.before[line] as usize..bitmap.before[line + 1] as usize;
                let of_line =
                    decoded[term].of(list, postings, self.documents, &mut cursors[term])?;
                pick_common(self.level, &common, bits, of_line, tfs);
                Ok(())
            })?;
        }
        Ok(all)
    }

    /// [`each_match`](Self::each_match) of lists that all have bitmaps.
    pub(super) fn each_of_bitmaps(
        &self,
        scratch: &mut Scratch,
        mut each: impl FnMut(&mut [Cursor], usize, &mut Candidates) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        scratch.reset_cursors(self.terms.len());
        let Scratch { cursors, candidates, .. } = scratch;
        for (line, common) in self.lines() {
            let first = line as u32 * LINE_DOCUMENTS;
            let docids = candidates.matches(self.terms.len());
            let count = number_bits(self.level, &common, first, docids);
            for (term, cursor) in (0..self.terms.len()).zip(&mut *cursors) {
                let (Some(list), Some(bitmap)) = (self.terms[term].list, self.bitmap(term)) else {
                    continue;
                };
                let Some(bits) = bitmap.line(line) else { continue };
                let numbers = &mut candidates.kept;
                pick_common(self.level, &common, bits, &NUMBERS, numbers);
                let before = bitmap.before[line];
                cursor.go_to_positions(&list, self.documents, before, &numbers[..count])?;
            }
            each(cursors, count, candidates)?;
        }
        Ok(())
    }
}

impl Cursor {
    /// Makes postings the candidates, given by their numbers from number `first` on.
    #[inline]
    pub(crate) fn go_to_positions(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        first: u32,
        numbers: &[u32],
    ) -> Result<(), ListError> {
        for (position, &number) in self.positions.iter_mut().zip(numbers) {
            *position = first + number;
        }
        self.load_tail(list, documents, numbers.len())
    }

    /// Makes the postings of documents the candidates, which rise and of which all are in the
    /// list's bitmap.
    pub(crate) fn go_to_documents(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        bitmap: &Bitmap,
        docids: &[u32],
        level: Level,
    ) -> Result<(), ListError> {
        rank_bits(level, &bitmap.bits, &bitmap.before, docids, &mut self.positions);
        self.load_tail(list, documents, docids.len())
    }

    /// Decodes the tail if the last of `count` candidates is there: its term frequencies are.
    fn load_tail(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        count: usize,
    ) -> Result<(), ListError> {
        let tail = list.full_blocks();
        let last = self.positions[..count].last();
        if last.is_some_and(|last| list.place_of(*last).0 == tail) && self.block != tail {
            self.load(list, tail, documents)?;
        }
        Ok(())
    }
}
