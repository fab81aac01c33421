//! The place of a term's string, among strings that may take more than 4 GiB, in 8 bytes, so that
//! an entry of a table is no larger than with places of 32 bits.

use crate::order::MOST_STRING_BYTES;

const PLACE_BITS: u32 = 40;
const LENGTH_BITS: u32 = 8;
/// The last piece of a run has far fewer than as many again.
const _: () = assert!(2 * MOST_STRING_BYTES < 1 << PLACE_BITS);

/// The place of a term's string, the term's trie collection, and the string's length: 40, 16 and 8
/// bits of one `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringPlace(u64);

impl StringPlace {
    /// Panics if the string begins at 1 TiB or later, which the limit of a run rules out, or has
    /// more than 255 bytes.
    #[inline]
    pub(crate) fn new(start: usize, collection: u16, bytes: usize) -> Self {
        assert!(start >> PLACE_BITS == 0, "run limits keep the strings of a run below 1 TiB");
        let bytes = u8::try_from(bytes).expect("analysis cuts terms at 255 bytes");
        let below = u64::from(collection) << LENGTH_BITS | u64::from(bytes);
        Self((start as u64) << (u64::BITS - PLACE_BITS) | below)
    }

    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        (self.0 >> (u64::BITS - PLACE_BITS)) as usize
    }

    #[inline(always)]
    pub(crate) fn collection(self) -> u16 {
        (self.0 >> LENGTH_BITS) as u16
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        usize::from(self.0 as u8)
    }

    #[inline(always)]
    pub(crate) fn of(self, strings: &[u8]) -> &[u8] {
        &strings[self.start()..][..self.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_parts_keep_apart(
            start in prop_oneof![0usize..1000, (4 << 30) - 2..(4usize << 30) + 2, (1 << 40) - 2..1usize << 40],
            collection in prop_oneof![Just(0), any::<u16>(), Just(u16::MAX)],
            bytes in prop_oneof![Just(0), 0usize..256, Just(255)],
        ) {
            let place = StringPlace::new(start, collection, bytes);
            prop_assert_eq!((place.start(), place.collection()), (start, collection));
            prop_assert_eq!(place.0 as u8 as usize, bytes);
            let strings = vec![7; start % 1000 + bytes];
            let near = StringPlace::new(start % 1000, collection, bytes);
            prop_assert_eq!(near.of(&strings), &vec![7; bytes][..]);
        }
    }

    #[test]
    #[should_panic(expected = "below 1 TiB")]
    fn a_place_has_forty_bits() {
        StringPlace::new(1 << 40, 0, 1);
    }
}
