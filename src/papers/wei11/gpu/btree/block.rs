//! The form in which a parsed block comes to the device: the bytes of its pieces end to end, a
//! table of where each part of a stream lies and goes, and one of its collections.
//! `kernels/wei11/btree.cu` names the columns.

#[cfg(test)]
use crate::gpu::floor::machine::ALIGN;
use crate::papers::wei11::stream::TokenGroup;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::cmp::Reverse;

pub(crate) type ShareRow = [u32; 4];

/// Places in a block's streams have 32 bits.
pub(crate) const MOST_BLOCK_BYTES: u64 =
    u32::MAX as u64 - STREAM_ALIGN as u64 * TRIE_COLLECTIONS as u64;

const STREAM_ALIGN: u32 = 16;

/// Rows that are read behind the last segment.
pub(super) const PADDING: usize = 32;

/// Upper limits of the blocks of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub bytes: usize,
    pub segments: usize,
}

impl Most {
    /// The most that fits this many bytes of pinned memory, four fifths of them pieces; a segment,
    /// of which a piece may have one for each collection, has a row of 16 bytes.
    pub(crate) fn of_buffer(bytes: usize) -> Self {
        let bytes = bytes.saturating_sub(2 * TRIE_COLLECTIONS * 16);
        Self { bytes: bytes / 5 * 4, segments: (bytes / 80).max(TRIE_COLLECTIONS) }
    }

    #[cfg(test)]
    pub(crate) fn pinned_bytes(&self) -> usize {
        let rows =
            [self.segments + PADDING, TRIE_COLLECTIONS].map(|rows| rows * size_of::<ShareRow>());
        [self.bytes, rows[0], rows[1]].iter().map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
    }

    pub(crate) fn holds(&self, block: &TokenBlock) -> bool {
        block.input_bytes as usize <= self.bytes && block.segments_len() as usize <= self.segments
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBlock {
    /// By collection, then docid; then rows of zeros as padding.
    pub segments: Vec<ShareRow>,
    /// By falling bytes.
    pub work: Vec<ShareRow>,
    pub input_bytes: u32,
    pub stream_bytes: u32,
    pub tokens: u64,
}

#[derive(Clone, Copy, Default)]
struct CollectionShare {
    bytes: u32,
    segments: u32,
    place: u32,
    next: u32,
}

impl TokenBlock {
    /// The tables of consecutive pieces, each with its first docid, counted from the run's first.
    ///
    /// # Panics
    /// If the block has more than [`MOST_BLOCK_BYTES`].
    pub(crate) fn of(block: &[(&TokenGroup, u32)]) -> Self {
        let bytes: u64 = block.iter().map(|(group, _)| group.bytes.len() as u64).sum();
        assert!(bytes <= MOST_BLOCK_BYTES, "a block has {bytes} bytes");
        let mut shares = vec![CollectionShare::default(); TRIE_COLLECTIONS];
        for (group, _) in block {
            let mut start = 0;
            for &(collection, end) in &group.collections {
                let share = &mut shares[usize::from(collection)];
                share.bytes += end - start;
                share.segments += u32::from(end > start);
                start = end;
            }
        }
        let mut work = Vec::new();
        let mut place = 0;
        let mut next = 0;
        for (collection, share) in (0u32..).zip(&mut shares).filter(|(_, share)| share.bytes > 0) {
            share.place = place;
            share.next = next;
            work.push([collection, place / STREAM_ALIGN, share.bytes, next]);
            place += share.bytes.next_multiple_of(STREAM_ALIGN);
            next += share.segments;
        }
        // The longest first: one that comes last would run alone.
        work.sort_unstable_by_key(|&[collection, _, bytes, _]| (Reverse(bytes), collection));
        let mut segments = vec![[0; 4]; next as usize + PADDING];
        let mut base = 0;
        for &(group, first) in block {
            let mut start = 0;
            for &(collection, end) in &group.collections {
                let share = &mut shares[usize::from(collection)];
                let bytes = end - start;
                if bytes > 0 {
                    segments[share.next as usize] = [base + start, share.place, bytes, first];
                    share.next += 1;
                    share.place += bytes;
                }
                start = end;
            }
            base += group.bytes.len() as u32;
        }
        let tokens = block.iter().map(|(group, _)| u64::from(group.tokens)).sum();
        Self { segments, work, input_bytes: base, stream_bytes: place, tokens }
    }

    pub(crate) fn segments_len(&self) -> u32 {
        (self.segments.len() - PADDING.min(self.segments.len())) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::wei11::stream::StreamWriter;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn blocks_fit_the_buffer_that_they_are_made_for() {
        for bytes in [2 << 20, 3_333_333, 16 << 20, 512 << 20] {
            let most = Most::of_buffer(bytes);
            assert!(most.pinned_bytes() <= bytes, "{most:?} for {bytes}");
            assert!(most.bytes > bytes / 2, "{most:?} for {bytes}");
        }
    }

    proptest! {
        /// Following the tables gives the stream of each collection.
        #[test]
        fn law_segments_are_the_streams(
            pieces in prop::collection::vec(prop::collection::btree_map(0u16..50, 1usize..70, 0..20), 0..6),
        ) {
            let groups: Vec<TokenGroup> = pieces
                .iter()
                .map(|piece| {
                    let mut writer = StreamWriter::new(0, 0);
                    for (&collection, &bytes) in piece {
                        writer.token(collection, 0, &vec![b'a' + (bytes % 26) as u8; bytes]);
                    }
                    writer.finish(Arc::default(), Arc::default())
                })
                .collect();
            let pieces: Vec<(&TokenGroup, u32)> = groups.iter().zip((0u32..).map(|p| p * 10)).collect();
            let block = TokenBlock::of(&pieces);
            let input: Vec<u8> = groups.iter().flat_map(|group| group.bytes.iter().copied()).collect();
            prop_assert_eq!(block.input_bytes as usize, input.len());
            prop_assert!(block.work.is_sorted_by_key(|row| Reverse(row[2])));
            let mut collections = 0;
            for &[collection, place, bytes, mut segment] in &block.work {
                let mut stream: Vec<(u32, u8)> = Vec::new();
                while stream.len() < bytes as usize {
                    let [from, to, bytes, first] = block.segments[segment as usize];
                    prop_assert_eq!(to as usize, place as usize * 16 + stream.len());
                    stream.extend(input[from as usize..][..bytes as usize].iter().map(|&b| (first, b)));
                    segment += 1;
                }
                let expected: Vec<(u32, u8)> = pieces
                    .iter()
                    .flat_map(|&(group, first)| group.streams().map(move |s| (first, s)))
                    .filter(|&(_, (c, _))| u32::from(c) == collection)
                    .flat_map(|(first, (_, stream))| stream.iter().map(move |&b| (first, b)))
                    .collect();
                prop_assert_eq!(stream, expected);
                collections += 1;
            }
            let expected: std::collections::BTreeSet<u16> =
                groups.iter().flat_map(|g| g.collections.iter().map(|&(c, _)| c)).collect();
            prop_assert_eq!(collections, expected.len());
            prop_assert_eq!(block.segments_len() as usize, groups.iter().map(|g| g.collections.len()).sum::<usize>());
        }
    }
}
