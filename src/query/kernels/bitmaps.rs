//! The plain forms of the inner loops over bitmaps of documents.

use super::{BlockRoom, FoundDocids, Line, SoughtDocids};
use crate::index::run::dense::{LINE_DOCUMENTS, LINE_WORDS};

#[inline(always)]
pub(super) fn test_bits(bits: &[u64], sought: SoughtDocids<'_>, found: FoundDocids<'_>) -> usize {
    let SoughtDocids { docids, count } = sought;
    let mut at = 0;
    for (number, &docid) in (0..).zip(&docids[..count]) {
        found.docids[at] = docid;
        found.kept[at] = number;
        at += usize::from(bits[docid as usize / 64] >> (docid % 64) & 1 == 1);
    }
    at
}

#[inline(always)]
pub(super) fn number_bits(line: &Line, first: u32, docids: &mut BlockRoom) -> usize {
    let mut at = 0;
    for (first, &word) in (first..).step_by(64).zip(line) {
        let mut rest = word;
        while rest != 0 {
            docids[at] = first + rest.trailing_zeros();
            at += 1;
            rest &= rest - 1;
        }
    }
    at
}

#[inline(always)]
pub(super) fn pick_common(common: &Line, line: &Line, numbers: &[u32], picked: &mut BlockRoom) {
    let mut at = 0;
    let mut before = 0;
    for (&common, &word) in common.iter().zip(line) {
        let mut rest = common & word;
        while rest != 0 {
            let earlier = word & ((rest & rest.wrapping_neg()) - 1);
            picked[at] = numbers[before + earlier.count_ones() as usize];
            at += 1;
            rest &= rest - 1;
        }
        before += word.count_ones() as usize;
    }
}

#[inline(always)]
pub(super) fn rank_bits(bits: &[u64], before: &[u32], docids: &[u32], ranks: &mut BlockRoom) {
    let lines = bits.as_chunks::<LINE_WORDS>().0;
    for (rank, &docid) in ranks.iter_mut().zip(docids) {
        let line = (docid / LINE_DOCUMENTS) as usize;
        let mut earlier = 0;
        // All words of the line, so that nothing has to be guessed: those before whole, a part of
        // its own, and nothing of those behind.
        for (first, &word) in (0..).step_by(64).zip(&lines[line]) {
            let bits = (docid % LINE_DOCUMENTS).saturating_sub(first);
            let kept = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
            earlier += (word & kept).count_ones();
        }
        *rank = before[line] + earlier;
    }
}

#[inline(always)]
pub(super) fn count_bits(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}
