//! Finds phrases in documents that have all of their words: where these stand is read posting by
//! posting, or a block at a time where several of its postings are asked for.

#![allow(unsafe_code)]

use super::memory::{Bits, PhraseMemory, PositionsMemory};
use super::windows::{in_any_order, in_order, keep_starts};
use super::{Matching, Wish, is_empty, ones, set};
use crate::cpu::Level;
use crate::index::list::{ListError, ListView, MAX_BLOCK};
use crate::index::positions::ListPositions;
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::kernels::places::{LANES, Places, pairs_within};
use crate::query::kernels::{BlockRoom, FoundDocids, NO_DOCID, SoughtDocids, add_scores};
use crate::query::phrase::Phrase;
use crate::query::scratch::{Candidates, Scratch};
use crate::query::top_k::TopK;
use crate::score::weight::ROUNDING;
use std::ops::Range;

/// What is done with the documents that have a phrase.
enum Found<'f> {
    /// The docid of each in the run is passed on, and how often it has the phrase.
    Each(&'f mut dyn FnMut(u32, u32)),
    /// The best are offered. As no document has a phrase more often than any of its words, the
    /// positions of most need not be read.
    Best(&'f mut TopK),
}

/// Finds the documents of a run that have a phrase, which is all of a query, and does with them
/// what is wished; returns how many there are, unless only the best are wished. None are given.
pub(super) fn search(
    run: &RunSearch<'_>,
    number: usize,
    wish: &mut Wish<'_>,
    scratch: &mut Scratch,
) -> Result<u64, ListError> {
    let Some(phrase) = PhraseSearch::new(run, number) else { return Ok(0) };
    let of_words = |word: &PhraseWord<'_>| run.terms[word.term];
    let terms: Vec<RunTerm<'_>> = phrase.words.iter().map(of_words).collect();
    let dense = phrase.words.iter().map(|word| run.dense.get(word.term).cloned().flatten());
    let dense: Vec<_> = dense.collect();
    let of_words = RunSearch { terms: &terms, dense: &dense, ..*run };
    let mut memory = std::mem::take(&mut scratch.trees.searched);
    memory.begin(phrase.words.len());
    let wanted = run.wanted();
    let mut all = 0;
    let searched = of_words.each_match(scratch, |cursors, count, candidates| {
        if let Wish::Best(top) = wish {
            phrase.verify(count, cursors, candidates, &mut memory, Found::Best(top))?;
            top.tighten();
            return Ok(());
        }
        let mut found = |docid: u32, tf: u32| {
            let norm = run.norms_for(phrase.phrase.weight).documents[docid as usize];
            // Deleted documents have infinite norms, and blocks reach beyond the wanted ones.
            if norm < f32::INFINITY && wanted.contains(&docid) {
                all += 1;
                if let Wish::Offer(top) = wish {
                    let score = run.norms.static_of(docid) + phrase.phrase.weight.score(tf, norm);
                    top.offer(run.first_docid + docid, score);
                }
            }
        };
        phrase.verify(count, cursors, candidates, &mut memory, Found::Each(&mut found))
    });
    scratch.trees.searched = memory;
    searched.map(|()| all)
}

impl Matching<'_> {
    /// The documents of `within` that have a phrase; how often each has it is kept until the next
    /// call for the same phrase.
    pub(super) fn phrase(&mut self, number: usize, within: &Bits) -> Result<Bits, ListError> {
        let mut all = self.copy(within);
        for (_, term) in &self.run.phrases[number].words {
            if is_empty(&all) {
                break;
            }
            let has = self.leaf(*term, &all)?;
            self.keep(&mut all, has);
        }
        let matches = self.phrase_with_words(number, &all);
        self.memory.spare.push(all);
        matches
    }

    /// The same of documents that have all of its words.
    pub(super) fn phrase_with_words(
        &mut self,
        number: usize,
        candidates: &Bits,
    ) -> Result<Bits, ListError> {
        let mut of_phrase = std::mem::take(self.memory.phrase(number));
        of_phrase.clear();
        let mut matches = self.take();
        if let Some(phrase) = PhraseSearch::new(self.run, number) {
            let first = self.window.start;
            let mut memory = std::mem::take(&mut self.memory.searched);
            memory.begin(phrase.words.len());
            self.cursors.iter_mut().for_each(Cursor::reset);
            let mut of_window = ones(candidates).peekable();
            while of_window.peek().is_some() {
                let docids = self.candidates.matches(phrase.words.len());
                let mut count = 0;
                for (docid, offset) in docids[..MAX_BLOCK].iter_mut().zip(&mut of_window) {
                    *docid = first + offset;
                    count += 1;
                }
                docids[count..count + 16].fill(NO_DOCID);
                phrase.place(count, self.cursors, self.candidates)?;
                let mut found = |docid: u32, tf: u32| {
                    set(&mut matches, docid - first);
                    of_phrase.push((docid - first, tf));
                };
                let found = Found::Each(&mut found);
                phrase.verify(count, self.cursors, self.candidates, &mut memory, found)?;
            }
            self.memory.searched = memory;
        }
        *self.memory.phrase(number) = of_phrase;
        Ok(matches)
    }
}

/// A term of a phrase in a run.
struct PhraseWord<'l> {
    term: usize,
    list: ListView<'l>,
    places: ListPositions<'l>,
}

/// A phrase that is looked for in a run.
struct PhraseSearch<'p> {
    run: &'p RunSearch<'p>,
    phrase: &'p Phrase,
    /// Its terms, the rarest first.
    words: Vec<PhraseWord<'p>>,
    check: Check<'p>,
}

impl<'p> PhraseSearch<'p> {
    /// `None` if no document of the run has one of its words.
    fn new(run: &'p RunSearch<'p>, number: usize) -> Option<Self> {
        let phrase = &run.phrases[number];
        let mut terms: Vec<usize> = phrase.words.iter().map(|word| word.1).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.sort_by_key(|&term| run.terms[term].list.map_or(0, |list| list.df()));
        let word = |&term: &usize| {
            let list = run.terms[term].list?;
            let places = run.positions.get(term).copied().flatten()?;
            Some(PhraseWord { term, list, places })
        };
        let words: Vec<PhraseWord<'_>> = terms.iter().map(word).collect::<Option<_>>()?;
        let check = Check::new(phrase, &words);
        Some(Self { run, phrase, words, check })
    }

    /// Sets the places of documents, which have all words, in the lists.
    fn place(
        &self,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
    ) -> Result<(), ListError> {
        let Self { run, words, .. } = self;
        let Candidates { docids: [first, second], kept, .. } = candidates;
        let (docids, met) = if words.len() % 2 == 1 { (first, second) } else { (second, first) };
        for (word, cursor) in words.iter().zip(cursors) {
            if let Some(bitmap) = run.bitmap(word.term) {
                let docids = &docids[..count];
                cursor.go_to_documents(&word.list, run.documents, bitmap, docids, run.level)?;
                continue;
            }
            let sought = SoughtDocids { docids, count };
            let into = FoundDocids { docids: met, kept };
            let (found, _) = cursor.find(&word.list, run.documents, sought, into, run.level)?;
            // The list had all of them before.
            if found < count {
                let (expected, found) = (docids[count - 1], met[found]);
                return Err(ListError::Order { offset: 0, expected, found });
            }
        }
        Ok(())
    }

    /// Looks for the phrase in the matches among the candidates, whose places are in the cursors.
    fn verify(
        &self,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
        memory: &mut PhraseMemory,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        match self.run.level {
            Level::Portable => {
                self.verify_each(Level::Portable, count, cursors, candidates, memory, found)
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor.
            Level::Avx2 => unsafe { self.verify_avx2(count, cursors, candidates, memory, found) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx512 => unsafe {
                self.verify_avx512(count, cursors, candidates, memory, found)
            },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn verify_avx2(
        &self,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
        memory: &mut PhraseMemory,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        self.verify_each(Level::Avx2, count, cursors, candidates, memory, found)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx2,bmi1,popcnt")]
    fn verify_avx512(
        &self,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
        memory: &mut PhraseMemory,
        found: Found<'_>,
    ) -> Result<(), ListError> {
        self.verify_each(Level::Avx512, count, cursors, candidates, memory, found)
    }

    #[inline(always)]
    fn verify_each(
        &self,
        level: Level,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
        memory: &mut PhraseMemory,
        mut found: Found<'_>,
    ) -> Result<(), ListError> {
        let left = match &found {
            Found::Each(_) => {
                (0..).zip(&mut candidates.kept[..count]).for_each(|(at, kept)| *kept = at);
                count
            }
            Found::Best(top) => self.keep_best(count, cursors, candidates, top.threshold())?,
        };
        let first_docid = self.run.first_docid;
        let weight = self.phrase.weight;
        let Candidates { docids, kept, norms, sums, .. } = candidates;
        let docids = &docids[(self.words.len() - 1) % 2];
        let kept = &kept[..left];
        for (at, &place) in kept.iter().enumerate() {
            let place = place as usize;
            if let Found::Best(top) = &found
                && sums[place] * ROUNDING <= top.threshold()
            {
                continue;
            }
            let later = kept.get(at + FEW_POSTINGS).map(|&place| place as usize);
            let tf = self.check.count(level, &self.words, cursors, memory, place, later)?;
            match &mut found {
                _ if tf == 0 => {}
                Found::Each(found) => found(docids[place], tf),
                Found::Best(top) => {
                    let docid = docids[place];
                    let score = self.run.norms.static_of(docid) + weight.score(tf, norms[place]);
                    top.offer(first_docid + docid, score);
                }
            }
        }
        Ok(())
    }

    /// Keeps the matches that may be among the best: as often as a document has the word that it
    /// has least often is a bound. Their bounds are in the sums.
    fn keep_best(
        &self,
        count: usize,
        cursors: &mut [Cursor],
        candidates: &mut Candidates,
        threshold: f32,
    ) -> Result<usize, ListError> {
        let Candidates { docids, kept, norms, tfs, sums, .. } = candidates;
        let docids = &docids[(self.words.len() - 1) % 2][..count];
        let mut least: BlockRoom = [u32::MAX; _];
        for (word, cursor) in self.words.iter().zip(cursors) {
            cursor.tfs_of_positions(&word.list, &mut tfs[..count])?;
            least.iter_mut().zip(&tfs[..count]).for_each(|(least, tf)| *least = (*least).min(*tf));
        }
        let documents = self.run.norms_for(self.phrase.weight).documents;
        for ((norm, sum), &docid) in norms.iter_mut().zip(&mut *sums).zip(docids) {
            *norm = documents[docid as usize];
            *sum = self.run.norms.static_of(docid);
        }
        add_scores(self.run.level, self.phrase.weight, &least, norms, count, sums);
        let mut left = 0;
        for place in 0..count {
            kept[left] = place as u32;
            // Deleted documents have infinite norms.
            let may = sums[place] * ROUNDING > threshold && norms[place] < f32::INFINITY;
            left += usize::from(may);
        }
        Ok(left)
    }
}

/// This many postings of a block are read alone; more take about as long as all of it.
const FEW_POSTINGS: usize = 2;

/// How a phrase is looked for in a document.
struct Check<'p> {
    phrase: &'p Phrase,
    is_exact: bool,
    /// How far the first place of the second rarest word is behind that of the rarest at least, in
    /// documents with the phrase, and how much more it may be.
    least: u32,
    span: u32,
}

impl<'p> Check<'p> {
    fn new(phrase: &'p Phrase, words: &[PhraseWord<'_>]) -> Self {
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
        Self { phrase, is_exact, least, span }
    }

    /// How often the match at a place has the phrase; `later` is the place of one that comes soon.
    #[inline(always)]
    fn count(
        &self,
        level: Level,
        words: &[PhraseWord<'_>],
        cursors: &mut [Cursor],
        memory: &mut PhraseMemory,
        place: usize,
        later: Option<usize>,
    ) -> Result<u32, ListError> {
        let Self { phrase, is_exact, least, span } = *self;
        let PhraseMemory { positions, starts } = memory;
        let mut read = |positions: &mut [PositionsMemory], some: Range<usize>| {
            let lists = words[some.clone()].iter().zip(&mut cursors[some.clone()]);
            lists.zip(&mut positions[some]).try_for_each(|((word, cursor), memory)| {
                memory.read(level, word, cursor, place, later)
            })
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
    /// Reads the positions of the match at a place; all of the block if the posting of `later` is
    /// in it too.
    #[inline(always)]
    fn read(
        &mut self,
        level: Level,
        word: &PhraseWord<'_>,
        cursor: &mut Cursor,
        place: usize,
        later: Option<usize>,
    ) -> Result<(), ListError> {
        let (block, at) = word.list.place_of(cursor.positions[place]);
        if self.block != Some(block) {
            self.open(word, block, cursor)?;
        }
        let [start, end] = [self.starts[at], self.starts[at + 1]].map(|at| at as usize);
        if !self.is_whole {
            let is_here = |place: usize| word.list.place_of(cursor.positions[place]).0 == block;
            if !later.is_some_and(is_here) {
                return self.read_alone(word, block, start, end - start);
            }
            self.read_whole(level, word, block)?;
        }
        self.of_posting = start..end;
        Ok(())
    }

    #[inline(never)]
    fn open(
        &mut self,
        word: &PhraseWord<'_>,
        block: usize,
        cursor: &mut Cursor,
    ) -> Result<(), ListError> {
        let tfs = cursor.tfs_at(&word.list, block)?;
        self.starts.resize(MAX_BLOCK + 1, 0);
        let mut sum = 0u64;
        for (start, &tf) in self.starts[1..].iter_mut().zip(tfs) {
            sum += u64::from(tf);
            *start = sum as u32;
        }
        word.places.expect_count(block, sum, tfs.len())?;
        self.all = sum as usize;
        self.block = Some(block);
        self.is_whole = false;
        Ok(())
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
