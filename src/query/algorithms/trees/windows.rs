//! Where a document has a phrase, by the positions of its words.

use crate::query::phrase::Phrase;

/// Keeps the starts of a phrase from which a word stands at its `place`; all of the word's, if it
/// is the first that is looked at.
pub(super) fn keep_starts(starts: &mut Vec<u32>, is_first: bool, place: u32, positions: &[u32]) {
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
/// before it as in the phrase or farther, with this many further words at most in all. The earliest
/// end from each start is taken, and from the earliest start that does: no other choice leaves more
/// room.
pub(super) fn in_order<'p>(phrase: &Phrase, of: impl Fn(usize) -> &'p [u32]) -> u32 {
    let mut count = 0;
    let mut after = 0;
    let [(first_place, first), rest @ ..] = &phrase.words[..] else { return 0 };
    'starts: for &start in of(*first) {
        if start < after {
            continue;
        }
        let (mut at, mut place) = (start, *first_place);
        for &(next, term) in rest {
            let least = at + (next - place);
            // A document has few.
            let Some(&position) = of(term).iter().find(|&&position| position >= least) else {
                break 'starts;
            };
            if position - start - (next - first_place) > phrase.slop {
                continue 'starts;
            }
            (at, place) = (position, next);
        }
        count += 1;
        after = at + 1;
    }
    count
}

/// The same for words in any order, each of them at a place of its own.
pub(super) fn in_any_order<'p>(phrase: &Phrase, of: impl Fn(usize) -> &'p [u32]) -> u32 {
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
        let mut latest = words.iter().map(|&(term, times)| {
            let positions = of(term);
            let upto = positions.partition_point(|&position| position <= end);
            let start = *positions.get(upto.checked_sub(times)?)?;
            (start >= after).then_some(start)
        });
        let start = latest.try_fold(u32::MAX, |least, start| Some(least.min(start?)));
        if start.is_some_and(|start| end - start <= span) {
            count += 1;
            after = end + 1;
        }
    }
    count
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
