//! The plain forms of the inner loops, always inlined, so that `best.rs` can have them compiled for
//! machines with AVX2.

use std::ops::Range;

pub(super) use super::bitmaps::{count_bits, number_bits, pick_common, rank_bits, test_bits};
use super::{
    BLOCK, BlockRoom, CandidateShares, CodeSums, DocidBlock, LINE, Left, Matches, NO_DOCID, Rest,
    ScoredDocuments, ScoredPostings, SoughtDocids, SumSink, UNMATCHED, bits_to_exceed,
};
use crate::index::block_bounds::BlockCodes;
use crate::score::block_codes::scaled_up;
use crate::score::bm25::score;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

/// Up to this many candidates a block are looked for one by one.
const FEW: usize = 4;

/// The first block from block `from` on whose last docid is at least `docid`; the number of blocks
/// if there is none.
#[inline(always)]
pub(in super::super) fn first_block(last_docids: &[[u8; 4]], from: usize, docid: u32) -> usize {
    let mut from = from;
    let mut step = 1;
    let below = |last: &[u8; 4]| u32::from_le_bytes(*last) < docid;
    while last_docids.get(from + step - 1).is_some_and(below) {
        from += step;
        step *= 2;
    }
    let end = last_docids.len().min(from + step);
    from + last_docids[from.min(end)..end].partition_point(below)
}

#[inline(always)]
pub(super) fn first_posting(docids: &BlockRoom, from: usize, len: usize, docid: u32) -> usize {
    from + docids[from..len].partition_point(|&other| other < docid)
}

#[inline(always)]
pub(super) fn share_out(
    last_docids: &[[u8; 4]],
    from: usize,
    sought: SoughtDocids<'_>,
    shares: &mut CandidateShares,
) {
    let mut block = from;
    let mut next = 0;
    let SoughtDocids { docids: candidates, count } = sought;
    shares.len = 0;
    while next < count {
        block = first_block(last_docids, block, candidates[next]);
        next = match last_docids.get(block) {
            None => count,
            Some(&last) => {
                let last = u32::from_le_bytes(last);
                next + candidates[next..count].iter().take_while(|&&docid| docid <= last).count()
            }
        };
        shares.push(block, next);
    }
}

#[inline(always)]
pub(super) fn match_block(
    candidates: &BlockRoom,
    from: usize,
    end: usize,
    block: DocidBlock<'_>,
    matches: &mut Matches<'_>,
) {
    let docids = &block.docids[..block.len];
    let Matches { found, docids: met, kept, positions } = matches;
    if end - from <= FEW {
        for (candidate, &wanted) in (from..).zip(&candidates[from..end]) {
            let at = docids.partition_point(|&docid| docid < wanted);
            met[*found] = wanted;
            kept[*found] = candidate as u32;
            positions[*found] = block.first + at as u32;
            *found += usize::from(docids.get(at) == Some(&wanted));
        }
        return;
    }
    let mut candidate = from;
    let mut at = 0;
    while candidate < end && at < docids.len() {
        let wanted = candidates[candidate];
        let docid = docids[at];
        met[*found] = wanted;
        kept[*found] = candidate as u32;
        positions[*found] = block.first + at as u32;
        *found += usize::from(wanted == docid);
        candidate += usize::from(wanted <= docid);
        at += usize::from(docid <= wanted);
    }
}

#[inline(always)]
pub(super) fn scores(
    weight: f32,
    docids: &BlockRoom,
    tfs: &[u32; BLOCK],
    len: usize,
    norms: &[f32],
    scores: &mut [f32; BLOCK],
) {
    for (sum, &docid) in scores.iter_mut().zip(&docids[..len]) {
        *sum = norms[docid as usize];
    }
    for (sum, &tf) in scores[..len].iter_mut().zip(tfs) {
        *sum = score(weight, tf, *sum);
    }
}

#[inline(always)]
pub(super) fn add_scores(
    weight: f32,
    tfs: &BlockRoom,
    norms: &[f32; BLOCK],
    count: usize,
    sums: &mut [f32; BLOCK],
) {
    for ((sum, &tf), &norm) in sums[..count].iter_mut().zip(tfs).zip(norms) {
        *sum += score(weight, tf, norm);
    }
}

#[inline(always)]
pub(super) fn add_documents(
    postings: ScoredPostings<'_>,
    first: u32,
    norms: &[f32; 64],
    sums: &mut [f32; 64],
) {
    let ScoredPostings { weight, docids, tfs, len } = postings;
    let from = docids[..len].partition_point(|docid| *docid < first);
    let rest = &docids[from..len];
    let here = &rest[..rest.partition_point(|docid| docid - first < 64).min(64)];
    for (&docid, &tf) in here.iter().zip(&tfs[from..]) {
        let place = (docid - first) as usize % 64;
        sums[place] += weight.score(tf, norms[place]);
    }
}

#[inline(always)]
pub(super) fn scale_up(scores: &[f32], scale: f32, scaled: &mut [u16]) {
    for (scaled, &score) in scaled.iter_mut().zip(scores) {
        *scaled = scaled_up(score, scale);
    }
}

#[inline(always)]
pub(super) fn collect_sums(sums: &[[u16; 64]], bar: u16, found: &mut Vec<u32>) {
    for (first, sums) in (0..).step_by(64).zip(sums) {
        let reach = (first..).zip(sums).filter(|(_, sum)| **sum >= bar);
        found.extend(reach.map(|(number, _)| number));
    }
}

#[inline(always)]
pub(super) fn greatest_sums(sums: &[[u16; 64]], greatest: &mut Vec<u16>) {
    greatest.extend(sums.iter().map(|sums| sums.iter().copied().fold(0, u16::max)));
}

#[inline(always)]
pub(super) fn add_codes(
    codes: &BlockCodes<'_>,
    from: usize,
    of_codes: &CodeSums,
    sums: &mut [[u16; 64]],
) {
    codes.each_word(from, from + sums.len(), |number, word, codes| {
        let sums = &mut sums[number - from];
        let mut left = word;
        for &code in codes {
            let sum = &mut sums[left.trailing_zeros() as usize % 64];
            *sum = sum.saturating_add(of_codes.0[usize::from(code)]);
            left &= left.wrapping_sub(1);
        }
    });
}

#[inline(always)]
pub(super) fn blend_all(weight: Weight, frequencies: &mut [f32], sums: &mut [f32]) {
    for (frequency, sum) in frequencies.iter_mut().zip(sums) {
        let score = weight.blend(*frequency);
        *frequency = if *frequency > 0.0 { score } else { 0.0 };
        *sum += *frequency;
    }
}

#[inline(always)]
pub(super) fn add_all(scores: &[f32], sums: &mut [f32]) {
    sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
}

#[inline(always)]
pub(super) fn collect_reaching(sums: &[f32], rest: f32, bar: f32, found: &mut Vec<u32>) {
    let reaches = |sum: f32| (sum > 0.0) & (sum + rest >= bar);
    let (chunks, tail) = sums.as_chunks::<64>();
    let mut add = |first: usize, sums: &[f32]| {
        let here = (first as u32..).zip(sums).filter(|(_, sum)| reaches(**sum));
        found.extend(here.map(|(place, _)| place));
    };
    for (at, sums) in chunks.iter().enumerate() {
        // Most chunks have none.
        let any = sums.iter().fold(0, |any, &sum| any | u32::from(reaches(sum)));
        if any > 0 {
            add(64 * at, sums);
        }
    }
    add(64 * chunks.len(), tail);
}

#[inline(always)]
pub(super) fn score_all(weight: Weight, tfs: &[u32], norms: &mut [f32]) {
    weight.score_all(tfs, norms);
}

#[inline(always)]
pub(super) fn offer_block<S: SumSink>(
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    first_docid: u32,
    sink: &mut S,
) {
    for (&docid, &score) in docids[part.clone()].iter().zip(&scores[part]) {
        if score > sink.bar() {
            sink.push(first_docid + docid, score);
        }
    }
}

#[inline(always)]
pub(super) fn sweep<S: SumSink>(accumulators: &mut [f32], first_docid: u32, sink: &mut S) {
    let mut bar = bits_to_exceed(sink);
    let mut docid = first_docid;
    for chunk in accumulators.chunks_mut(16) {
        let greatest = chunk.iter().fold(i32::MIN, |most, sum| most.max(sum.to_bits() as i32));
        if greatest > bar {
            for (lane, sum) in chunk.iter().enumerate() {
                if sum.to_bits() as i32 > bar {
                    sink.push(docid + lane as u32, *sum);
                }
            }
            bar = bits_to_exceed(sink);
        }
        chunk.fill(UNMATCHED);
        docid = docid.wrapping_add(chunk.len() as u32);
    }
}

#[inline(always)]
pub(super) fn collect(
    accumulators: &mut [f32],
    lines: &mut [u8],
    first_docid: u32,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    let mut docid = first_docid;
    for (sums, line) in accumulators.chunks_exact_mut(LINE).zip(lines) {
        if *line != 0 {
            found.make_room(LINE);
            for (lane, sum) in sums.iter_mut().enumerate() {
                push_if(*sum > bar, docid.wrapping_add(lane as u32), *sum, found);
                *sum = UNMATCHED;
            }
            *line = 0;
        }
        docid = docid.wrapping_add(LINE as u32);
    }
}

/// There must be room for one.
#[inline(always)]
fn push_if(wanted: bool, docid: u32, sum: f32, found: &mut ScoredDocuments) {
    found.docids[found.len] = docid;
    found.sums[found.len] = sum;
    found.len += usize::from(wanted);
}

#[inline(always)]
pub(super) fn collect_block(
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    for (&docid, &score) in docids[part.clone()].iter().zip(&scores[part]) {
        push_if(score > bar, docid, score, found);
    }
}

#[inline(always)]
pub(super) fn narrow(bar: f32, rest: Rest<'_>, left: &mut Left) {
    let mut count = 0;
    for at in 0..left.count {
        let docid = left.docids[at];
        let sum = left.sums[at];
        let more = rest.of_ranges[((docid - rest.first) >> rest.shift) as usize];
        left.docids[count] = docid;
        left.sums[count] = sum;
        left.slots[count] = left.slots[at];
        count += usize::from(sum + more > bar);
    }
    left.docids[count..count + 16].fill(NO_DOCID);
    left.count = count;
}

#[inline(always)]
pub(super) fn mosts(weight: f32, bounds: &[Bound; 16], norms: &BoundNorms) -> [f32; 16] {
    bounds.map(|bound| norms.most(weight.into(), &bound))
}
