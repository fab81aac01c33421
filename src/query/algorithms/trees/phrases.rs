//! Finds phrases in documents that have all of their words: where these stand is read posting by
//! posting, or a block at a time where several of its postings are asked for.

#![allow(unsafe_code)]

use super::memory::{Bits, FoundPhrase, PositionsMemory, TreeMemory};
use super::windows::{in_any_order, in_order, keep_starts};
use super::{Matching, combine, fill, is_empty, ones_of, set};
use crate::cpu::Level;
use crate::index::list::{ListError, ListView, MAX_BLOCK};
use crate::index::positions::ListPositions;
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::kernels::places::{LANES, Places, pairs_within};
use crate::query::phrase::Phrase;
use crate::query::top_k::TopK;
use crate::score::weight::ROUNDING;
use std::ops::Range;

/// So many postings of a block are read alone; they take about as long as all of it.
const FEW_POSTINGS: u32 = 1;

/// What is done with the documents that have a phrase.
enum Found<'f> {
    /// They are noted, and how often each has it.
    Noted(&'f mut Bits, &'f mut FoundPhrase),
    /// The best are offered.
    Best(&'f mut TopK),
}

impl<'m> Matching<'m> {
    /// The documents of `within` that have a phrase; how often each has it is kept until the next
    /// call for the same phrase.
    pub(super) fn phrase(&mut self, number: usize, within: &Bits) -> Result<Bits, ListError> {
        let mut of_phrase = std::mem::take(self.memory.phrase(number));
        of_phrase.clear();
        let (terms, candidates) = self.candidates(number, within)?;
        let mut matches = self.take();
        if !is_empty(&candidates) {
            let found = Found::Noted(&mut matches, &mut of_phrase);
            self.verify(number, &terms, &candidates, found)?;
        }
        self.memory.spare.push(candidates);
        *self.memory.phrase(number) = of_phrase;
        Ok(matches)
    }

    /// Offers the best documents of the window, from one on, that have a phrase. As no document has
    /// it more often than any of its words, the positions of most need not be read.
    pub(super) fn best_of_phrase(
        &mut self,
        number: usize,
        from: u32,
        top: &mut TopK,
    ) -> Result<u64, ListError> {
        let mut within = self.take();
        fill(&mut within, from - self.window.start, self.window.end - self.window.start);
        let (terms, candidates) = self.candidates(number, &within)?;
        if !is_empty(&candidates) {
            self.verify(number, &terms, &candidates, Found::Best(top))?;
            top.tighten();
        }
        self.memory.spare.extend([within, candidates]);
        Ok(0)
    }

    /// The terms of a phrase, the rarest first, and the documents of `within` that have all.
    fn candidates(
        &mut self,
        number: usize,
        within: &Bits,
    ) -> Result<(Vec<usize>, Bits), ListError> {
        let run = self.run;
        let mut terms: Vec<usize> = run.phrases[number].words.iter().map(|word| word.1).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.sort_by_key(|&term| run.terms[term].list.map_or(0, |list| list.df()));
        let mut all = self.copy(within);
        for &term in &terms {
            if is_empty(&all) {
                break;
            }
            let has = self.leaf(term, &all)?;
            combine(&mut all, &has, |all, has| all & has);
            self.memory.spare.push(has);
        }
        Ok((terms, all))
    }

    /// Looks for a phrase in documents that have all of its terms.
    fn verify(
        &mut self,
        number: usize,
        terms: &[usize],
        candidates: &Bits,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        match self.run.level {
            Level::Portable => self.verify_each(number, terms, candidates, found),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor.
            Level::Avx2 => unsafe { self.verify_avx2(number, terms, candidates, found) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx512 => unsafe { self.verify_avx512(number, terms, candidates, found) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn verify_avx2(
        &mut self,
        number: usize,
        terms: &[usize],
        candidates: &Bits,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        self.verify_each(number, terms, candidates, found)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2,bmi1,popcnt")]
    fn verify_avx512(
        &mut self,
        number: usize,
        terms: &[usize],
        candidates: &Bits,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        self.verify_each(number, terms, candidates, found)
    }

    #[inline(always)]
    fn verify_each(
        &mut self,
        number: usize,
        terms: &[usize],
        candidates: &Bits,
        mut found: Found<'_>,
    ) -> Result<(), ListError> {
        let run = self.run;
        let first = self.window.start;
        let phrase = &run.phrases[number];
        // All of the candidates have all.
        let Some(mut words) = self.words(terms) else { return Ok(()) };
        let cursors = &mut self.cursors[..words.len()];
        cursors.iter_mut().for_each(Cursor::reset);
        let TreeMemory { positions, starts, .. } = &mut *self.memory;
        positions.resize_with(words.len().max(positions.len()), PositionsMemory::default);
        positions.iter_mut().for_each(|memory| memory.block = None);
        let check = Check::new(phrase, &words, run.level);
        let score = |docid: u32, tf: u32| {
            let norm = run.norms.documents[docid as usize];
            // Deleted documents have infinite norms.
            (norm < f32::INFINITY)
                .then(|| run.norms.static_of(docid) + phrase.weight.score(tf, norm))
        };
        for (at, &documents) in candidates.iter().enumerate() {
            for offset in ones_of(at, documents) {
                let docid = first + offset;
                let mut most = u32::MAX;
                for (word, cursor) in words.iter().zip(&mut *cursors) {
                    word.go_to(cursor, run, docid, offset)?;
                    if let Found::Best(_) = found {
                        most = most.min(cursor.tf(&word.list)?);
                    }
                }
                if let Found::Best(top) = &found {
                    match score(docid, most) {
                        Some(most) if most * ROUNDING > top.threshold() => {}
                        _ => continue,
                    }
                }
                let tf = check.count(&words, cursors, positions, starts)?;
                match &mut found {
                    _ if tf == 0 => {}
                    Found::Noted(matches, tfs) => {
                        set(matches, offset);
                        tfs.push((offset, tf));
                    }
                    Found::Best(top) => {
                        let score = score(docid, tf);
                        score.into_iter().for_each(|of| top.offer(run.first_docid + docid, of));
                    }
                }
            }
            for word in &mut words {
                word.before += word.dense.map_or(0, |dense| dense[at].count_ones());
            }
        }
        Ok(())
    }

    /// What is known of terms in the window; none if one of them has no list.
    fn words(&mut self, terms: &[usize]) -> Option<Vec<PhraseWord<'m>>> {
        let run = self.run;
        let start = self.window.start as usize / 64;
        let word = |&term: &usize| {
            let list = run.terms[term].list?;
            let places = run.positions.get(term).copied().flatten()?;
            let dense = self.dense(term);
            Some(PhraseWord { term, list, places, dense, before: 0 })
        };
        let mut words: Vec<PhraseWord<'m>> = terms.iter().map(word).collect::<Option<_>>()?;
        let ranks = &mut self.memory.ranks;
        for word in words.iter_mut().filter(|word| word.dense.is_some()) {
            ranks.resize(run.terms.len().max(ranks.len()), (0, 0));
            let (upto, before) = &mut ranks[word.term];
            let Some(Some(all)) = run.dense.get(word.term) else { continue };
            *before += all[*upto..start].iter().map(|bits| bits.count_ones()).sum::<u32>();
            *upto = start;
            word.before = *before;
        }
        Some(words)
    }
}

/// A term of a phrase in a run.
struct PhraseWord<'l> {
    term: usize,
    list: ListView<'l>,
    places: ListPositions<'l>,
    /// The bitmap of the list in the window, if there is one, and how many of its documents come
    /// before the 64 that are looked at.
    dense: Option<&'l [u64]>,
    before: u32,
}

impl PhraseWord<'_> {
    /// Goes to the posting of a document that has the term, at an offset in the window.
    #[inline(always)]
    fn go_to(
        &self,
        cursor: &mut Cursor,
        run: &RunSearch<'_>,
        docid: u32,
        offset: u32,
    ) -> Result<(), ListError> {
        let Some(dense) = self.dense else {
            return cursor.seek(&self.list, run.documents, docid, run.level);
        };
        let earlier = dense[offset as usize / 64] & ((1 << (offset % 64)) - 1);
        let posting = (self.before + earlier.count_ones()) as usize;
        let block = posting / self.list.block_len();
        if cursor.block != block {
            cursor.load(&self.list, block, run.documents)?;
        }
        cursor.at = posting % self.list.block_len();
        Ok(())
    }
}

/// How a phrase is looked for in a document.
struct Check<'p> {
    phrase: &'p Phrase,
    level: Level,
    is_exact: bool,
    /// How far the first place of the second rarest word is behind that of the rarest at least, in
    /// documents with the phrase, and how much more it may be.
    least: u32,
    span: u32,
}

impl<'p> Check<'p> {
    fn new(phrase: &'p Phrase, words: &[PhraseWord<'_>], level: Level) -> Self {
        let is_exact = phrase.slop == 0 && phrase.ordered;
        let place = |at: usize| {
            let term = words.get(at).map(|word| word.term);
            phrase.words.iter().find(|word| Some(word.1) == term).map_or(0, |word| word.0)
        };
        let distance = place(1).wrapping_sub(place(0));
        let slop = phrase.slop;
        let (least, span) = match phrase.ordered {
            true if distance as i32 >= 0 => (distance, slop),
            true => (distance.wrapping_sub(slop), slop),
            false => {
                let all = phrase.words.last().map_or(0, |last| last.0) + slop;
                (all.wrapping_neg(), 2 * all)
            }
        };
        Self { phrase, level, is_exact, least, span }
    }

    /// How often the document of the cursors has the phrase.
    #[inline(always)]
    fn count(
        &self,
        words: &[PhraseWord<'_>],
        cursors: &mut [Cursor],
        positions: &mut [PositionsMemory],
        starts: &mut Vec<u32>,
    ) -> Result<u32, ListError> {
        let Self { phrase, level, is_exact, least, span } = *self;
        let mut read = |positions: &mut [PositionsMemory], some: Range<usize>| {
            let lists = words[some.clone()].iter().zip(&mut cursors[some.clone()]);
            lists
                .zip(&mut positions[some])
                .try_for_each(|((word, cursor), memory)| memory.read(level, word, cursor))
        };
        let all = words.len();
        // Most candidates fail by the two rarest words.
        let two = all.min(2);
        read(positions, 0..two)?;
        if let [first, second] = &positions[..two] {
            let pairs = pairs_within(level, first.places(), second.places(), least, span);
            if pairs == 0 || is_exact && phrase.words.len() == two {
                return Ok(pairs);
            }
        }
        read(positions, two..all)?;
        if !is_exact {
            positions[..all].iter_mut().for_each(PositionsMemory::note);
            let of = |term: usize| {
                let at = words.iter().position(|of| of.term == term);
                at.map_or(&[][..], |at| &positions[at].found[..])
            };
            return Ok(if phrase.ordered {
                in_order(phrase, of)
            } else {
                in_any_order(phrase, of)
            });
        }
        starts.clear();
        for (at, word) in words.iter().enumerate() {
            positions[at].note();
            let of_term = phrase.words.iter().filter(|of| of.1 == word.term);
            for (nth, &(place, _)) in of_term.enumerate() {
                keep_starts(starts, at + nth == 0, place, &positions[at].found);
            }
        }
        Ok(starts.len() as u32)
    }
}

impl PositionsMemory {
    /// Reads the positions of the posting of a cursor.
    #[inline(always)]
    fn read(
        &mut self,
        level: Level,
        word: &PhraseWord<'_>,
        cursor: &mut Cursor,
    ) -> Result<(), ListError> {
        let Cursor { block, at, .. } = *cursor;
        if self.block != Some(block) {
            self.open(level, word, cursor)?;
        }
        let [start, end] = [self.starts[at], self.starts[at + 1]].map(|at| at as usize);
        if !self.is_whole && self.asked == FEW_POSTINGS {
            self.read_whole(level, word, block)?;
        }
        self.asked += 1;
        if self.is_whole {
            self.of_posting = start..end;
            return Ok(());
        }
        self.read_alone(word, block, start, end - start)
    }

    /// Opens the block of a cursor. All of it is read at once if one document in a few has the
    /// term.
    #[inline(never)]
    fn open(
        &mut self,
        level: Level,
        word: &PhraseWord<'_>,
        cursor: &mut Cursor,
    ) -> Result<(), ListError> {
        let tfs = cursor.tfs_here(&word.list)?;
        self.starts.resize(MAX_BLOCK + 1, 0);
        let mut sum = 0u64;
        for (start, &tf) in self.starts[1..].iter_mut().zip(tfs) {
            sum += u64::from(tf);
            *start = sum as u32;
        }
        let postings = tfs.len();
        word.places.expect_count(cursor.block, sum, postings)?;
        self.all = sum as usize;
        self.block = Some(cursor.block);
        self.asked = 0;
        self.is_whole = false;
        if word.dense.is_some() { self.read_whole(level, word, cursor.block) } else { Ok(()) }
    }

    fn read_whole(
        &mut self,
        level: Level,
        word: &PhraseWord<'_>,
        block: usize,
    ) -> Result<(), ListError> {
        self.is_whole = true;
        word.places.decode_sums(level, block, self.all, &mut self.sums, &mut self.ends)
    }

    fn read_alone(
        &mut self,
        word: &PhraseWord<'_>,
        block: usize,
        start: usize,
        tf: usize,
    ) -> Result<(), ListError> {
        self.of_posting = 0..tf;
        self.alone.resize((tf + LANES).max(self.alone.len()), 0);
        let alone = &mut self.alone[..tf];
        word.places.decode_from(block, self.all, start, alone)?;
        let mut sum = 0u32;
        for value in alone {
            sum = sum.wrapping_add(*value);
            *value = sum;
        }
        Ok(())
    }

    #[inline(always)]
    fn places(&self) -> Places<'_> {
        let Range { start, end } = self.of_posting;
        let sums = if self.is_whole { &self.sums } else { &self.alone };
        Places::of(sums, start, end)
    }

    fn note(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(self.places().iter());
        self.found = found;
    }
}
