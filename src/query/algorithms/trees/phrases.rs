//! Finds phrases in documents that have all of their words: where these stand is read posting by
//! posting, or a block at a time where several of its postings are asked for.

use super::memory::{Bits, FoundPhrase, PositionsMemory, TreeMemory};
use super::{Matching, combine, fill, is_empty, ones, set};
use crate::index::list::{ListError, ListView};
use crate::index::positions::ListPositions;
use crate::query::cursor::Cursor;
use crate::query::top_k::TopK;
use crate::query::tree::Phrase;
use crate::score::weight::ROUNDING;

/// From this many postings on a block is read whole: they take about as long as all of it.
const FEW_POSTINGS: u32 = 3;

/// What is done with the documents that have a phrase.
enum Found<'f> {
    /// They are noted, and how often each has it.
    Noted(&'f mut Bits, &'f mut FoundPhrase),
    /// The best are offered.
    Best(&'f mut TopK),
}

impl Matching<'_> {
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
        mut found: Found<'_>,
    ) -> Result<(), ListError> {
        let Self { run, cursors, memory, window, .. } = self;
        let TreeMemory { positions, starts, .. } = &mut **memory;
        let phrase = &run.phrases[number];
        let mut words = Vec::new();
        for &term in terms {
            let lists = (run.terms[term].list, run.positions.get(term).copied().flatten());
            // All of the candidates have it.
            let (Some(list), Some(places)) = lists else { return Ok(()) };
            words.push((term, list, places));
        }
        if positions.len() < words.len() {
            positions.resize_with(words.len(), PositionsMemory::default);
        }
        cursors[..words.len()].iter_mut().for_each(Cursor::reset);
        positions.iter_mut().for_each(|memory| memory.block = None);
        let is_exact = phrase.slop == 0 && phrase.ordered;
        let score = |offset: u32, tf: u32| {
            let docid = window.start + offset;
            let norm = run.norms.documents[docid as usize];
            // Deleted documents have infinite norms.
            (norm < f32::INFINITY)
                .then(|| run.norms.static_of(docid) + phrase.weight.score(tf, norm))
        };
        'documents: for offset in ones(candidates) {
            let docid = window.start + offset;
            let mut most = u32::MAX;
            for ((_, list, _), cursor) in words.iter().zip(&mut **cursors) {
                cursor.seek(list, run.documents, docid, run.level)?;
                if let Found::Best(_) = found {
                    most = most.min(cursor.tf(list)?);
                }
            }
            if let Found::Best(top) = &found {
                match score(offset, most) {
                    Some(most) if most * ROUNDING > top.threshold() => {}
                    _ => continue,
                }
            }
            starts.clear();
            for (at, ((term, list, places), cursor)) in words.iter().zip(&mut **cursors).enumerate()
            {
                let here = positions[at].read(places, cursor, list)?;
                if is_exact {
                    let of_term = phrase.words.iter().filter(|word| word.1 == *term);
                    for (nth, &(place, _)) in of_term.enumerate() {
                        keep_starts(starts, at + nth == 0, place, here);
                    }
                    if starts.is_empty() {
                        continue 'documents;
                    }
                }
            }
            let of = |term: usize| {
                let at = words.iter().position(|of| of.0 == term);
                at.map_or(&[][..], |at| &positions[at].found[..])
            };
            let tf = match (is_exact, phrase.ordered) {
                (true, _) => starts.len() as u32,
                (_, true) => in_order(phrase, of),
                (_, false) => in_any_order(phrase, of),
            };
            if tf == 0 {
                continue;
            }
            match &mut found {
                Found::Noted(matches, tfs) => {
                    set(matches, offset);
                    tfs.push((offset, tf));
                }
                Found::Best(top) => {
                    let score = score(offset, tf);
                    score.into_iter().for_each(|score| top.offer(run.first_docid + docid, score));
                }
            }
        }
        Ok(())
    }
}

/// Keeps the starts of a phrase from which a word stands at its `place`; all of the word's, if it
/// is the first that is looked at.
fn keep_starts(starts: &mut Vec<u32>, is_first: bool, place: u32, positions: &[u32]) {
    if is_first {
        starts.extend(positions.iter().filter_map(|position| position.checked_sub(place)));
        return;
    }
    let mut at = 0;
    starts.retain(|start| {
        let wanted = start + place;
        while positions.get(at).is_some_and(|&position| position < wanted) {
            at += 1;
        }
        positions.get(at) == Some(&wanted)
    });
}

/// How many windows that do not overlap have the words in their order, each as far behind the one
/// before it as in the phrase or farther, with so many further words at most in all. The earliest
/// end from each start is taken, and from the earliest start that does: no other choice leaves more
/// room.
fn in_order<'p>(phrase: &Phrase, of: impl Fn(usize) -> &'p [u32]) -> u32 {
    let mut count = 0;
    let mut after = 0;
    let [(first_place, first), rest @ ..] = &phrase.words[..] else { return 0 };
    'starts: for &start in of(*first) {
        if start < after {
            continue;
        }
        let (mut at, mut place) = (start, *first_place);
        for &(next, term) in rest {
            let positions = of(term);
            let least = at + (next - place);
            let found = positions.partition_point(|&position| position < least);
            let Some(&position) = positions.get(found) else { break 'starts };
            (at, place) = (position, next);
        }
        if at - start - (place - first_place) <= phrase.slop {
            count += 1;
            after = at + 1;
        }
    }
    count
}

/// The same for words in any order, each of them at a place of its own.
fn in_any_order<'p>(phrase: &Phrase, of: impl Fn(usize) -> &'p [u32]) -> u32 {
    let mut words: Vec<(usize, usize)> = Vec::new();
    for &(_, term) in &phrase.words {
        match words.iter_mut().find(|(known, _)| *known == term) {
            Some((_, times)) => *times += 1,
            None => words.push((term, 1)),
        }
    }
    let span = phrase.words.last().map_or(0, |last| last.0) + phrase.slop;
    let mut ends: Vec<u32> = words.iter().flat_map(|&(term, _)| of(term).iter().copied()).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut count = 0;
    let mut after = 0;
    for end in ends {
        // The latest places of all words up to here, behind the window before.
        let latest = words.iter().map(|&(term, times)| {
            let positions = of(term);
            let upto = positions.partition_point(|&position| position <= end);
            let start = *positions.get(upto.checked_sub(times)?)?;
            (start >= after).then_some(start)
        });
        let start = latest.fold(Some(u32::MAX), |least, start| Some(least?.min(start?)));
        if start.is_some_and(|start| end - start <= span) {
            count += 1;
            after = end + 1;
        }
    }
    count
}

impl PositionsMemory {
    /// Reads the positions of the posting of a cursor.
    fn read(
        &mut self,
        list: &ListPositions<'_>,
        cursor: &mut Cursor,
        postings: &ListView<'_>,
    ) -> Result<&[u32], ListError> {
        let Cursor { block, at, .. } = *cursor;
        if self.block != Some(block) {
            let tfs = cursor.tfs_here(postings)?;
            self.starts.clear();
            self.starts.push(0);
            let mut sum = 0u64;
            for &tf in tfs {
                sum += u64::from(tf);
                self.starts.push(sum as u32);
            }
            list.expect_count(block, sum, tfs.len())?;
            self.block = Some(block);
            self.asked = 0;
        }
        let [start, end] = [self.starts[at], self.starts[at + 1]].map(|at| at as usize);
        self.asked += 1;
        let all = *self.starts.last().expect("the first is there") as usize;
        if self.asked == FEW_POSTINGS {
            self.sums.resize(all, 0);
            list.decode(block, &mut self.sums)?;
            let mut sum = 0u32;
            for value in &mut self.sums {
                sum = sum.wrapping_add(*value);
                *value = sum;
            }
        }
        self.found.clear();
        if self.asked >= FEW_POSTINGS {
            let before = start.checked_sub(1).map_or(0, |before| self.sums[before]);
            let own = &self.sums[start..end];
            self.found.extend(own.iter().map(|sum| sum.wrapping_sub(before)));
            return Ok(&self.found);
        }
        self.found.resize(end - start, 0);
        list.decode_from(block, all, start, &mut self.found)?;
        let mut sum = 0u32;
        for value in &mut self.found {
            sum = sum.wrapping_add(*value);
            *value = sum;
        }
        Ok(&self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::weight::Weight;

    fn phrase(words: &[(u32, usize)], slop: u32, ordered: bool) -> Phrase {
        Phrase { words: words.to_vec(), slop, ordered, weight: Weight::default() }
    }

    #[test]
    fn windows_do_not_overlap() {
        let lists: [&[u32]; 3] = [&[0, 4, 9, 20], &[2, 5, 12, 21], &[7]];
        let of = |term: usize| lists[term];
        for (words, slop, ordered, any) in [
            // `a b` stands at 4 and 20, and with one word between at 0.
            (&[(0, 0), (1, 1)][..], 0, 2, 2),
            (&[(0, 0), (1, 1)], 1, 3, 3),
            (&[(0, 0), (1, 1)], 2, 4, 4),
            // A word that is a hole.
            (&[(0, 0), (2, 1)], 0, 1, 3),
            (&[(0, 0), (2, 1)], 1, 2, 4),
            (&[(0, 1), (1, 0)], 2, 1, 4),
            (&[(0, 0), (1, 1), (2, 2)], 1, 1, 1),
            (&[(0, 2), (1, 0), (2, 1)], 0, 0, 0),
            (&[(0, 2), (1, 1), (2, 0)], 2, 0, 1),
            // A word twice needs two places.
            (&[(0, 0), (1, 0)], 3, 1, 1),
            (&[(0, 0), (1, 0)], 2, 0, 0),
        ] {
            let asked = phrase(words, slop, true);
            assert_eq!(in_order(&asked, of), ordered, "{words:?} {slop}");
            let asked = phrase(words, slop, false);
            assert_eq!(in_any_order(&asked, of), any, "{words:?} {slop} in any order");
        }
    }

    #[test]
    fn starts_are_kept() {
        let mut starts = Vec::new();
        keep_starts(&mut starts, true, 2, &[0, 1, 5, 9, 30]);
        assert_eq!(starts, [3, 7, 28]);
        keep_starts(&mut starts, false, 0, &[3, 8, 28]);
        assert_eq!(starts, [3, 28]);
    }
}
