//! Lists of learned weights in the memory of a device, for sums that are exact
//! (`kernels/query_impacts.cuh` has the layout). Documents are renumbered there, so that a
//! sample which is spread over all of them comes first. Each posting takes 3 bytes: where the sum
//! of its document is in its window, and the weight. A weight above 255 is several postings, which
//! add up to it; postings of deleted documents are left out.
//!
//! [`Layout::DocumentBlocks`] has the greatest weight of each block of documents too, as if blocks
//! were the documents of windows behind all others.

use super::{Layout, PlacedList, Windows};

/// Of documents, one in this many is in the sample.
pub(crate) const SPREAD: u32 = 64;

/// Documents of a block, and windows of documents for each window of blocks.
pub(crate) const BLOCK: u32 = 32;

/// Banks of shared memory.
const BANKS: usize = 32;

/// Postings of a lane.
const EACH: usize = 8;

const GROUP_LANES: usize = 8;

const CHUNK: usize = 32 * EACH;

/// A rest that lacks fewer is filled to a chunk.
const FILLED: usize = 32;

const UNIT_BYTES: usize = 32;

const TABLE_ALIGNMENT: usize = 256;

/// Lists that become longer than this, by weights above 255, are left to the CPU.
fn most_postings(df: usize) -> usize {
    64 * df + (1 << 20)
}

pub(crate) fn sampled(documents: u32) -> u32 {
    documents.div_ceil(SPREAD)
}

/// The number that a document has on the device.
fn number(docid: u32, documents: u32) -> u32 {
    match docid % SPREAD {
        0 => docid / SPREAD,
        _ => sampled(documents) + docid - docid / SPREAD - 1,
    }
}

pub(in crate::gpu::query) fn about_bytes(windows: Windows, df: u64) -> u64 {
    let slices = (slices(windows) as u64).min(df);
    // Some four postings of a list are in the same block.
    let postings = if windows.layout == Layout::DocumentBlocks { df + df / 4 } else { df };
    table_bytes(windows) as u64 + 3 * postings + UNIT_BYTES as u64 * slices
}

/// Windows of documents and of blocks.
pub(crate) fn slices(windows: Windows) -> usize {
    let of_documents = windows.len();
    match windows.layout {
        Layout::DocumentBlocks => of_documents + of_documents.div_ceil(BLOCK as usize),
        _ => of_documents,
    }
}

fn table_bytes(windows: Windows) -> usize {
    (8 * (slices(windows) + 1)).next_multiple_of(TABLE_ALIGNMENT)
}

/// Lanes and units of bytes of a group of this many postings.
fn group(postings: usize) -> (usize, usize) {
    let bytes = 3 * EACH * postings.div_ceil(EACH);
    let units = bytes.div_ceil(UNIT_BYTES);
    (units * UNIT_BYTES / (3 * EACH), units)
}

/// Windows that have documents of the sample.
fn first_windows(windows: Windows) -> usize {
    sampled(windows.documents).div_ceil(1 << windows.bits) as usize
}

#[derive(Debug, Default)]
pub(super) struct ImpactMaker {
    /// Numbers and weights of documents of the first windows, which come together at the end: those
    /// of the sample, and others, which share the last of these windows. Both rise.
    first: [Vec<(u32, u32)>; 2],
    /// Blocks of all other documents, with their greatest weights. They rise.
    blocks: Vec<(u32, u32)>,
    /// Postings of live documents, and those of the list, of which great weights are several.
    postings: usize,
    slots: usize,
    most: u32,
    /// The open window; none before the first.
    window: Option<usize>,
    /// Postings of the window in rows, one for each bank: its place times 256, and 8 bits of the
    /// weight.
    rows: Vec<u32>,
    /// Where the next one of each bank goes.
    ends: [u32; BANKS],
    ordered: Vec<u32>,
    slices: Slices,
}

/// What the windows of a list have, one after the other.
#[derive(Debug, Default)]
struct Slices {
    starts: Vec<[u32; 2]>,
    chunks: Vec<u8>,
    rests: Vec<u8>,
}

impl Slices {
    fn start(&mut self) {
        let chunks = self.chunks.len() / (3 * CHUNK);
        let units = self.rests.len() / UNIT_BYTES;
        self.starts.push([chunks as u32, units as u32]);
    }
}

impl ImpactMaker {
    pub(super) fn begin(&mut self) {
        self.first.iter_mut().for_each(Vec::clear);
        self.blocks.clear();
        self.postings = 0;
        self.slots = 0;
        self.most = 0;
        self.window = None;
    }

    /// Without norms no document is deleted.
    pub(super) fn push(&mut self, windows: Windows, docids: &[u32], tfs: &[u32], norms: &[f32]) {
        let first = first_windows(windows);
        if self.window.is_none() {
            self.open(first);
        }
        for (&docid, &impact) in docids.iter().zip(tfs) {
            if !norms.is_empty() && norms[docid as usize] == f32::INFINITY {
                continue;
            }
            self.postings += 1;
            self.most = self.most.max(impact);
            let number = number(docid, windows.documents);
            let window = (number >> windows.bits) as usize;
            if window < first {
                self.first[usize::from(!docid.is_multiple_of(SPREAD))].push((number, impact));
                continue;
            }
            self.add(windows, window, number, impact);
            if windows.layout == Layout::DocumentBlocks {
                bound(&mut self.blocks, number, impact);
            }
        }
    }

    /// Whether the list would become too long.
    pub(super) fn is_too_great(&self) -> bool {
        let of_first = self.first.iter().flatten().map(|posting| posting.1.div_ceil(255) as usize);
        // Blocks may have as many.
        self.slots + of_first.sum::<usize>() > most_postings(self.postings) / 2
    }

    pub(super) fn finish(&mut self, windows: Windows, out: &mut Vec<u8>) -> PlacedList {
        let first = first_windows(windows);
        if self.window.is_none() {
            self.open(first);
        }
        self.close_before(windows.len());
        let parts = std::mem::take(&mut self.first);
        if windows.layout == Layout::DocumentBlocks {
            self.add_blocks(windows, parts.iter().flatten());
        }
        let rest = std::mem::take(&mut self.slices);
        self.open(0);
        for &(number, impact) in parts.iter().flatten() {
            self.add(windows, (number >> windows.bits) as usize, number, impact);
        }
        self.first = parts;
        self.close_before(first);
        let Slices { starts, chunks, rests } = &mut self.slices;
        if let Some([chunks, units]) = starts.pop() {
            starts.extend(rest.starts.iter().map(|start| [start[0] + chunks, start[1] + units]));
        }
        let begin = out.len();
        out.extend_from_slice(bytemuck::cast_slice(starts));
        out.resize(begin + table_bytes(windows), 0);
        let all_chunks = (chunks.len() + rest.chunks.len()) / (3 * CHUNK);
        for part in [&*chunks, &rest.chunks, &*rests, &rest.rests] {
            out.extend_from_slice(part);
        }
        // It has the greater buffers.
        self.slices = rest;
        PlacedList { postings: all_chunks as u32, exceptions: self.most, most: 1.0 }
    }

    /// Adds all blocks, those of the first windows before all others.
    fn add_blocks<'a>(&mut self, windows: Windows, first: impl Iterator<Item = &'a (u32, u32)>) {
        let mut of_first = Vec::new();
        first.for_each(|&(number, impact)| bound(&mut of_first, number, impact));
        let blocks = std::mem::take(&mut self.blocks);
        for &(block, impact) in of_first.iter().chain(&blocks) {
            self.add(windows, windows.len() + (block >> windows.bits) as usize, block, impact);
        }
        self.blocks = blocks;
        self.close_before(slices(windows));
    }

    fn open(&mut self, window: usize) {
        self.window = Some(window);
        self.ends = std::array::from_fn(|bank| bank as u32);
        let Slices { starts, chunks, rests } = &mut self.slices;
        starts.clear();
        chunks.clear();
        rests.clear();
        self.slices.start();
    }

    /// Puts a document, or a block, of a window into the rows, behind those of its bank.
    #[inline(always)]
    fn add(&mut self, windows: Windows, window: usize, number: u32, impact: u32) {
        if self.window != Some(window) {
            self.close_before(window);
        }
        let offset = number & ((1 << windows.bits) - 1);
        let end = &mut self.ends[offset as usize % BANKS];
        if impact <= 255
            && let Some(place) = self.rows.get_mut(*end as usize)
        {
            *place = offset << 8 | impact;
            *end += BANKS as u32;
            self.slots += 1;
        } else {
            self.add_great(offset, impact);
        }
    }

    /// The same for any weight, and where the rows have no room. What is too long is left out.
    #[cold]
    fn add_great(&mut self, offset: u32, impact: u32) {
        let end = &mut self.ends[offset as usize % BANKS];
        let mut left = impact;
        let most = most_postings(self.postings);
        while left > 0 && self.slots <= most {
            let at = *end as usize;
            if self.rows.len() <= at {
                self.rows.resize((2 * at).next_multiple_of(BANKS) + BANKS, 0);
            }
            let here = left.min(255);
            self.rows[at] = offset << 8 | here;
            *end += BANKS as u32;
            self.slots += 1;
            left -= here;
        }
        if left > 0 {
            // However many follow.
            self.slots = usize::MAX / 2;
        }
    }

    /// Closes the open window and those before another.
    fn close_before(&mut self, window: usize) {
        let open = self.window.unwrap_or(window);
        for _ in open..window {
            self.close();
            self.slices.start();
        }
        self.window = Some(window);
    }

    /// Writes the postings of a window.
    fn close(&mut self) {
        let Self { rows, ends, ordered, .. } = self;
        let Slices { chunks, rests, .. } = &mut self.slices;
        let counts = ends.map(|end| end / BANKS as u32);
        let most = counts.iter().copied().max().unwrap_or(0);
        let room = most as usize * BANKS + CHUNK;
        if ordered.len() < room {
            ordered.resize(room, 0);
        }
        let mut len = 0;
        for (number, row) in (0..most).zip(rows.as_chunks::<BANKS>().0) {
            let mut left = banks_with(&counts, number);
            if left == u32::MAX {
                ordered[len..len + BANKS].copy_from_slice(row);
                len += BANKS;
                continue;
            }
            while left != 0 {
                ordered[len] = row[left.trailing_zeros() as usize];
                len += 1;
                left &= left - 1;
            }
        }
        *ends = std::array::from_fn(|bank| bank as u32);
        let whole = (len + FILLED - 1) / CHUNK * CHUNK;
        for at in (0..whole).step_by(CHUNK) {
            put(filled(ordered, at, len, 32), 32, chunks);
        }
        for at in (whole..len).step_by(GROUP_LANES * EACH) {
            let (lanes, units) = group((len - at).min(GROUP_LANES * EACH));
            let end = rests.len() + units * UNIT_BYTES;
            put(filled(ordered, at, len, lanes), lanes, rests);
            rests.resize(end, 0);
        }
    }
}

/// Notes the weight of a document in its block.
#[inline(always)]
fn bound(blocks: &mut Vec<(u32, u32)>, number: u32, impact: u32) {
    match blocks.last_mut() {
        Some((block, most)) if *block == number / BLOCK => *most = impact.max(*most),
        _ => blocks.push((number / BLOCK, impact)),
    }
}

/// A bit for each bank that has more than `row` postings.
#[inline(always)]
fn banks_with(counts: &[u32; BANKS], row: u32) -> u32 {
    let more = counts.map(|count| u8::from(count > row));
    let eights = more.as_chunks::<8>().0.iter().zip(0..);
    // The product has the last bits of all bytes in its highest byte.
    let bits = |of: u64| (of.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    eights.map(|(eight, nth)| bits(u64::from_le_bytes(*eight)) << (8 * nth)).sum()
}

/// The postings for some lanes from `at` on, of `len` in all. Of what lacks the weight is 0.
#[inline(always)]
fn filled(ordered: &mut [u32], at: usize, len: usize, lanes: usize) -> &[u32] {
    let postings = &mut ordered[at..][..lanes * EACH];
    for (place, lacking) in postings.iter_mut().enumerate().skip(len - at) {
        *lacking = (place % lanes) as u32 * 256;
    }
    postings
}

/// Appends postings for some lanes: the n-th of all lanes are neighbours in their order.
#[inline(always)]
fn put(postings: &[u32], lanes: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + 3 * EACH * lanes, 0);
    let (places, weights) = out[begin..].split_at_mut(2 * EACH * lanes);
    let places = places.as_chunks_mut::<{ 2 * EACH }>().0.iter_mut();
    let lines = places.zip(weights.as_chunks_mut::<EACH>().0).enumerate();
    for (lane, (places, weights)) in lines {
        for (nth, (place, weight)) in places.as_chunks_mut().0.iter_mut().zip(weights).enumerate() {
            let posting = postings[nth * lanes + lane];
            *place = ((posting >> 8) as u16 * 4).to_le_bytes();
            *weight = posting as u8;
        }
    }
}

/// A list as kernels read it: numbers of documents and parts of weights.
#[cfg(test)]
pub(crate) fn read(windows: Windows, placed: PlacedList, bytes: &[u8]) -> Vec<(u32, u32)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut found = Vec::new();
    let mut lanes_at = |window: usize, at: usize, lanes: usize| {
        for slot in 0..lanes * EACH {
            let place = &bytes[at + 2 * slot..][..2];
            let place = u32::from(u16::from_le_bytes(place.try_into().unwrap()));
            let weight = u32::from(bytes[at + 2 * lanes * EACH + slot]);
            assert!(place.is_multiple_of(4) && place / 4 < 1 << windows.bits);
            if weight > 0 {
                found.push(((window << windows.bits) as u32 + place / 4, weight));
            }
        }
    };
    let chunks_at = table_bytes(windows);
    let rests_at = chunks_at + placed.postings as usize * 3 * CHUNK;
    for window in 0..slices(windows) {
        let starts = 8 * window;
        for chunk in word(starts)..word(starts + 8) {
            lanes_at(window, chunks_at + 3 * CHUNK * chunk, 32);
        }
        let end = word(starts + 12);
        for unit in (word(starts + 4)..end).step_by(6) {
            let lanes = (end - unit).min(6) * 4 / 3;
            lanes_at(window, rests_at + UNIT_BYTES * unit, lanes);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::ListMaker;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn documents_have_different_numbers_and_the_sample_comes_first() {
        for documents in [1, 2, 63, 64, 65, 128, 129, 1000] {
            let mut numbers: Vec<u32> = (0..documents).map(|d| number(d, documents)).collect();
            let first = (0..documents).step_by(64).map(|d| number(d, documents));
            assert!(first.eq(0..sampled(documents)), "{documents}");
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..documents), "{documents}");
        }
    }

    #[test]
    fn groups_have_the_lanes_that_their_bytes_tell() {
        for postings in 1..=64 {
            let (lanes, units) = group(postings);
            assert!(lanes * EACH >= postings && lanes <= 8 && 24 * lanes <= 32 * units);
            assert_eq!(lanes, units * 4 / 3, "as the kernel reads it");
        }
    }

    proptest! {
        #[test]
        fn law_a_list_gives_its_weights_back(
            documents in 1..3000u32,
            bits in prop::sample::select(vec![6u32, 9, 14]),
            chosen in prop::collection::btree_map(0..3000u32, prop_oneof![1..4u32, 1..256u32, 254..1100u32], 0..900),
            dense in any::<bool>(),
            layout in prop::sample::select(vec![Layout::Impacts, Layout::DocumentBlocks]),
            piece in 1..200usize,
        ) {
            let windows = Windows { documents, bits, layout };
            let norms: Vec<f32> =
                (0..documents).map(|d| if d % 11 == 5 { f32::INFINITY } else { 0.0 }).collect();
            let all: Vec<(u32, u32)> = match dense {
                true => (0..documents).map(|d| (d, 1 + d * 7 % 300)).collect(),
                false => chosen.into_iter().filter(|posting| posting.0 < documents).collect(),
            };
            let mut maker = ListMaker::default();
            maker.begin(1.0.into());
            for part in all.chunks(piece) {
                let (docids, weights): (Vec<u32>, Vec<u32>) = part.iter().copied().unzip();
                maker.push(windows, &docids, &weights, &norms);
            }
            let mut bytes = Vec::new();
            let placed = maker.finish(windows, &mut bytes);
            prop_assert!(bytes.len().is_multiple_of(16));
            let mut sums = BTreeMap::new();
            for (number, part) in read(windows, placed, &bytes) {
                *sums.entry(number).or_insert(0) += part;
            }
            let live = all.iter().filter(|posting| norms[posting.0 as usize].is_finite());
            let mut expected: BTreeMap<u32, u32> =
                live.clone().map(|&(docid, weight)| (number(docid, documents), weight)).collect();
            if layout == Layout::DocumentBlocks {
                let of_blocks = (windows.len() << bits) as u32;
                for (number, weight) in expected.clone() {
                    let most = expected.entry(of_blocks + number / BLOCK).or_insert(0);
                    *most = weight.max(*most);
                }
            }
            prop_assert_eq!(sums, expected);
            prop_assert_eq!(placed.exceptions, live.map(|posting| posting.1).max().unwrap_or(0));
        }
    }

    /// All 32 lanes of a chunk add to different banks at a time, if documents allow it.
    #[test]
    fn lanes_of_a_chunk_meet_different_banks() {
        let windows = Windows { documents: 1 << 14, bits: 14, layout: Layout::Impacts };
        let mut maker = ImpactMaker::default();
        maker.begin();
        let docids: Vec<u32> = (0..1 << 14).collect();
        maker.push(windows, &docids, &vec![3; 1 << 14], &vec![0.0; 1 << 14]);
        let mut bytes = Vec::new();
        assert_eq!(maker.finish(windows, &mut bytes).postings, 64);
        for chunk in bytes[table_bytes(windows)..].chunks(3 * CHUNK) {
            for slot in 0..EACH {
                let bank = |lane: usize| chunk[2 * (lane * EACH + slot)] / 4 % 32;
                let mut banks: Vec<u8> = (0..32).map(bank).collect();
                banks.sort_unstable();
                banks.dedup();
                assert_eq!(banks.len(), 32);
            }
        }
    }

    #[test]
    fn lists_of_enormous_weights_are_refused() {
        let documents = 1 << 21;
        let windows = Windows { documents, bits: 14, layout: Layout::Impacts };
        let norms = vec![0.0; documents as usize];
        let mut maker = ImpactMaker::default();
        for (weight, refused) in [(255 * 60, false), (u32::MAX, true)] {
            // In a window of the sample, and in one behind it with many others.
            for (docid, others) in [(3, 0), (50_000, 0), (50_000, 200_000)] {
                let docids: Vec<u32> = (docid..=docid + others).collect();
                let mut weights = vec![1; docids.len()];
                weights[0] = weight;
                maker.begin();
                maker.push(windows, &docids, &weights, &norms);
                assert_eq!(maker.is_too_great(), refused, "{weight} {docid} {others}");
            }
        }
    }
}
