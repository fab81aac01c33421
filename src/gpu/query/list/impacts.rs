//! Lists of learned weights in the memory of a device, for sums that are exact
//! (`kernels/query_impacts.cuh` has the layout). Documents are numbered anew there, so that a
//! sample which is spread over all of them comes first. Each posting takes 3 bytes: where the sum
//! of its document is in its window, and the weight. A weight above 255 is several postings, which
//! add up to it; postings of deleted documents are left out.

use super::{PlacedList, Windows};

/// Of documents, one in so many is in the sample.
pub(crate) const SPREAD: u32 = 64;

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

/// No posting: in a row of banks.
const EMPTY: u32 = u32::MAX;

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
    let slices = (windows.len() as u64).min(df);
    table_bytes(windows) as u64 + 3 * df + UNIT_BYTES as u64 * slices
}

fn table_bytes(windows: Windows) -> usize {
    (8 * (windows.len() + 1)).next_multiple_of(TABLE_ALIGNMENT)
}

/// Lanes and units of bytes of a group of so many postings.
fn group(postings: usize) -> (usize, usize) {
    let bytes = 3 * EACH * postings.div_ceil(EACH);
    let units = bytes.div_ceil(UNIT_BYTES);
    (units * UNIT_BYTES / (3 * EACH), units)
}

#[derive(Default)]
pub(super) struct ImpactMaker {
    /// Numbers and weights of sampled documents, and of the others; both rise.
    parts: [Vec<(u32, u32)>; 2],
    /// Postings, of which great weights are several.
    slots: usize,
    /// The greatest weight.
    most: u32,
    /// Postings in rows, one for each bank: its place times 256, and 8 bits of the weight.
    /// [`EMPTY`] between windows.
    rows: Vec<u32>,
    ordered: Vec<u32>,
    starts: Vec<[u32; 2]>,
    chunks: Vec<u8>,
    rests: Vec<u8>,
}

impl ImpactMaker {
    pub(super) fn begin(&mut self) {
        self.parts.iter_mut().for_each(Vec::clear);
        self.slots = 0;
        self.most = 0;
    }

    pub(super) fn push(&mut self, windows: Windows, docids: &[u32], tfs: &[u32], norms: &[f32]) {
        for (&docid, &impact) in docids.iter().zip(tfs) {
            if norms[docid as usize].is_finite() {
                let part = usize::from(!docid.is_multiple_of(SPREAD));
                self.parts[part].push((number(docid, windows.documents), impact));
                self.slots += impact.div_ceil(255) as usize;
                self.most = self.most.max(impact);
            }
        }
    }

    /// Whether the list would become too long.
    pub(super) fn is_too_great(&self) -> bool {
        self.slots > most_postings(self.parts.iter().map(Vec::len).sum())
    }

    pub(super) fn finish(&mut self, windows: Windows, out: &mut Vec<u8>) -> PlacedList {
        self.starts.clear();
        self.chunks.clear();
        self.rests.clear();
        let parts = std::mem::take(&mut self.parts);
        let mut left = [&parts[0][..], &parts[1][..]];
        for window in 0..windows.len() as u32 {
            self.start();
            let mut ends: [usize; BANKS] = std::array::from_fn(|bank| bank);
            // A window may have the last sampled documents and the first of the others.
            for part in &mut left {
                let here = part.iter().take_while(|posting| posting.0 >> windows.bits == window);
                let mut len = 0;
                for &(number, impact) in here {
                    self.place(number & ((1 << windows.bits) - 1), impact, &mut ends);
                    len += 1;
                }
                *part = &part[len..];
            }
            let end = ends.into_iter().max().unwrap_or(0).min(self.rows.len());
            self.close(end);
        }
        self.start();
        self.parts = parts;
        let begin = out.len();
        out.extend_from_slice(bytemuck::cast_slice(&self.starts));
        out.resize(begin + table_bytes(windows), 0);
        out.extend_from_slice(&self.chunks);
        out.extend_from_slice(&self.rests);
        PlacedList {
            postings: (self.chunks.len() / (3 * CHUNK)) as u32,
            exceptions: self.most,
            most: 1.0,
        }
    }

    fn start(&mut self) {
        let chunks = self.chunks.len() / (3 * CHUNK);
        let units = self.rests.len() / UNIT_BYTES;
        self.starts.push([chunks as u32, units as u32]);
    }

    /// Puts a document of the window into the rows of its bank, whose next place is among `ends`.
    #[inline(always)]
    fn place(&mut self, offset: u32, impact: u32, ends: &mut [usize; BANKS]) {
        let end = &mut ends[offset as usize % BANKS];
        let mut left = impact;
        while left > 0 {
            if self.rows.len() <= *end {
                self.rows.resize(2 * *end + BANKS, EMPTY);
            }
            let here = left.min(255);
            self.rows[*end] = offset << 8 | here;
            *end += BANKS;
            left -= here;
        }
    }

    /// Writes the postings of a window, which are in the first `end` places of the rows.
    fn close(&mut self, end: usize) {
        let Self { rows, ordered, chunks, rests, .. } = self;
        if ordered.len() < end + CHUNK {
            ordered.resize(end + CHUNK, 0);
        }
        let mut len = 0;
        for posting in &mut rows[..end] {
            ordered[len] = *posting;
            len += usize::from(*posting != EMPTY);
            *posting = EMPTY;
        }
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
    for window in 0..windows.len() {
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
    use super::super::{Layout, ListMaker};
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
            piece in 1..200usize,
        ) {
            let windows = Windows { documents, bits, layout: Layout::Impacts };
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
            let expected: BTreeMap<u32, u32> =
                live.clone().map(|&(docid, weight)| (number(docid, documents), weight)).collect();
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
        let windows = Windows { documents: 100, bits: 14, layout: Layout::Impacts };
        let mut maker = ImpactMaker::default();
        for (weight, refused) in [(255 * 60, false), (u32::MAX, true)] {
            maker.begin();
            maker.push(windows, &[3], &[weight], &[0.0; 100]);
            assert_eq!(maker.is_too_great(), refused);
        }
    }
}
