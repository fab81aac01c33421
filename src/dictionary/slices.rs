//! Memory for the postings of an open run: blocks that never move, cut into slices that belong to
//! one list each and double in size, so that a list of any length wastes less than it uses.

use crate::codec::prefetch::prefetch;
use crate::dictionary::strings::short;
use crate::order::MOST_RUN_BYTES;
use crate::pages::Area;

/// Bytes of a slice by its level, the link included.
const SLICE_BYTES: [u16; 17] =
    [8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 512, 512, 1024, 2048, 4096];
/// Bytes at the end of a slice that give the place of the next one.
const LINK: usize = 4;

/// Slices begin at multiples of this many bytes, and links and chains count these.
const UNIT: usize = 8;

/// Bytes of a block. No slice crosses its end: what is left there is less than a slice.
const BLOCK: usize = 1 << 25;
/// Bytes at the beginning of the first block that are not on huge pages: a short list takes little.
const SMALL: usize = 1 << 22;

/// Slices are numbered by `u32`, so they end here.
const MOST_BYTES: u64 = (u32::MAX as u64 + 1) * UNIT as u64;
/// What is left for the last piece of a run: more than any document, of less than 4 GiB, has terms.
const _: () = assert!(MOST_RUN_BYTES + (4 << 30) <= MOST_BYTES);

/// Run limits keep the bytes below `MOST_BYTES`. Every block has room for `BLOCK` bytes, of which
/// the system gives what is written.
#[derive(Default)]
pub(crate) struct Slices {
    blocks: Vec<Area>,
    /// Bytes of the last block that are in use.
    used: usize,
    before: usize,
}

/// One list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The first slice and the last one, in units.
    head: u32,
    last: u32,
    /// Bytes that are free in the last one.
    left: u16,
    level: u8,
}

impl Chain {
    /// Where the next byte goes.
    #[inline(always)]
    fn write(&self) -> usize {
        let end = usize::from(SLICE_BYTES[usize::from(self.level)]) - LINK;
        self.last as usize * UNIT + end - usize::from(self.left)
    }
}

impl Slices {
    pub(crate) fn len(&self) -> usize {
        self.before + self.used
    }

    /// Forgets all lists; the memory of the first block is kept.
    pub(crate) fn clear(&mut self) {
        self.blocks.truncate(1);
        self.used = 0;
        self.before = 0;
    }

    fn slice(&mut self, level: u8) -> u32 {
        let bytes = usize::from(SLICE_BYTES[usize::from(level)]);
        if self.blocks.is_empty() || self.used + bytes > BLOCK {
            self.blocks.push(Area::new(BLOCK, if self.blocks.is_empty() { SMALL } else { 0 }));
            self.before += std::mem::take(&mut self.used);
        }
        let start = (self.blocks.len() - 1) * BLOCK + self.used;
        self.used += bytes;
        u32::try_from(start / UNIT).expect("run limits keep the postings of a run below 32 GiB")
    }

    #[inline(always)]
    fn at(&self, place: usize) -> &[u8] {
        &self.blocks[place / BLOCK][place % BLOCK..]
    }

    #[inline(always)]
    fn at_mut(&mut self, place: usize) -> &mut [u8] {
        &mut self.blocks[place / BLOCK][place % BLOCK..]
    }

    pub(crate) fn begin(&mut self) -> Chain {
        let head = self.slice(0);
        Chain { head, last: head, left: SLICE_BYTES[0] - LINK as u16, level: 0 }
    }

    /// Prefetches the end of a list.
    #[inline]
    pub(crate) fn prefetch(&self, chain: &Chain) {
        let place = chain.write();
        if let Some(byte) = self.blocks.get(place / BLOCK).and_then(|b| b.get(place % BLOCK)) {
            prefetch(byte);
        }
    }

    #[inline]
    pub(crate) fn prefetch_head(&self, chain: &Chain) {
        prefetch(&self.at(chain.head as usize * UNIT)[0]);
    }

    /// Prefetches the slice behind the first `slices` of a list, if it has one.
    #[inline]
    pub(crate) fn prefetch_behind(&self, chain: &Chain, slices: usize) {
        let mut slice = chain.head;
        for level in 0..slices {
            if slice == chain.last {
                return;
            }
            slice = self.next(slice, level);
        }
        prefetch(&self.at(slice as usize * UNIT)[0]);
    }

    /// The slice behind one of this level.
    #[inline(always)]
    fn next(&self, slice: u32, level: usize) -> u32 {
        let link = &self.at(slice as usize * UNIT)[usize::from(SLICE_BYTES[level]) - LINK..];
        u32::from_le_bytes(*link.first_chunk().expect("a link is behind a whole slice"))
    }

    #[inline]
    pub(crate) fn append(&mut self, chain: &mut Chain, mut bytes: &[u8]) {
        loop {
            let n = bytes.len().min(usize::from(chain.left));
            let at = chain.write();
            let (now, rest) = bytes.split_at(n);
            if !now.is_empty() {
                short::copy(now, self.at_mut(at));
            }
            chain.left -= n as u16;
            bytes = rest;
            if bytes.is_empty() {
                return;
            }
            let link = chain.write();
            chain.level = (chain.level + 1).min(SLICE_BYTES.len() as u8 - 1);
            let next = self.slice(chain.level);
            self.at_mut(link)[..LINK].copy_from_slice(&next.to_le_bytes());
            chain.last = next;
            chain.left = SLICE_BYTES[usize::from(chain.level)] - LINK as u16;
        }
    }

    #[inline(always)]
    pub(crate) fn append_word(&mut self, chain: &mut Chain, word: u64, count: usize) {
        let left = usize::from(chain.left);
        if count > left {
            return self.append(chain, &word.to_le_bytes()[..count]);
        }
        // What is behind them is not in use yet: the rest of the slice, and its link.
        let to = self.at_mut(chain.write());
        let low = word as u32;
        let high = (word >> 32) as u32;
        to[..4].copy_from_slice(&low.to_le_bytes());
        to[left.min(4)..][..4].copy_from_slice(&high.to_le_bytes());
        chain.left -= count as u16;
    }

    /// Calls `take` with the bytes of a list, a slice at a time.
    pub(crate) fn read(&self, chain: &Chain, mut take: impl FnMut(&[u8])) {
        let mut slice = chain.head;
        let mut level = 0usize;
        loop {
            let at = slice as usize * UNIT;
            if slice == chain.last {
                return take(&self.at(at)[..chain.write() - at]);
            }
            let next = self.next(slice, level);
            prefetch(&self.at(next as usize * UNIT)[0]);
            take(&self.at(at)[..usize::from(SLICE_BYTES[level]) - LINK]);
            slice = next;
            level = (level + 1).min(SLICE_BYTES.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    /// Chains count units, so that a list may go on behind 4 GiB.
    #[test]
    fn places_go_beyond_4_gib() {
        let left = SLICE_BYTES[16] - LINK as u16;
        let mut chain = Chain { head: 0, last: u32::MAX, left, level: 16 };
        assert_eq!(chain.write() as u64, u64::from(u32::MAX) * 8);
        chain.left = 1;
        assert_eq!(chain.write() as u64, u64::from(u32::MAX) * 8 + 4091);
        assert!(SLICE_BYTES.iter().all(|&bytes| usize::from(bytes).is_multiple_of(UNIT)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/slices.txt")
        ))]

        #[test]
        fn law_reads_what_was_appended(parts in prop::collection::vec((0usize..8, prop::collection::vec(any::<u8>(), 0..700)), 0..200)) {
            let mut slices = Slices::default();
            let mut chains: Vec<Chain> = (0..8).map(|_| slices.begin()).collect();
            let mut expected = vec![Vec::new(); 8];
            for (list, bytes) in parts {
                slices.append(&mut chains[list], &bytes);
                expected[list].extend_from_slice(&bytes);
                let word = 0x0807_0605_0403_0201 * (bytes.len() as u64 % 15);
                let count = bytes.len() % 9;
                slices.append_word(&mut chains[list], word, count);
                expected[list].extend_from_slice(&word.to_le_bytes()[..count]);
            }
            for (chain, expected) in chains.iter().zip(&expected) {
                let mut got = Vec::new();
                slices.read(chain, |bytes| got.extend_from_slice(bytes));
                prop_assert_eq!(&got, expected);
            }
            // Waste is bounded, as the cost of a byte assumes.
            let used: usize = expected.iter().map(Vec::len).sum();
            prop_assert!(slices.len() <= 2 * used + 8 * 24, "{} for {}", slices.len(), used);
        }
    }
}
