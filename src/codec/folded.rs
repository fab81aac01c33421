//! How is one posting written in few bytes? The gap and *tf is one* share the first vbyte, since
//! most postings have a tf of one.
//!
//! A posting is `vbyte(2 * gap_minus_one + (tf > 1))`, then `vbyte(tf - 2)` if tf > 1: the form of
//! a list's tail (`docs/index-format.md`, Postings), and of all postings while a run is built.

use super::vbyte;

/// Bytes of the longest posting: a gap of 33 bits and a tf of 32.
pub const MAX_BYTES: usize = 10;

/// Appends a posting; `tf` is at least 1.
#[inline]
pub fn put(gap_minus_one: u32, tf: u32, out: &mut Vec<u8>) {
    debug_assert!(tf > 0);
    if gap_minus_one < 64 && tf == 1 {
        return out.push((gap_minus_one as u8) << 1);
    }
    vbyte::put((u64::from(gap_minus_one) << 1) | u64::from(tf > 1), out);
    if tf > 1 {
        vbyte::put(u64::from(tf - 2), out);
    }
}

/// Bytes that [`put`] appends.
#[inline]
pub fn bytes(gap_minus_one: u32, tf: u32) -> usize {
    let more = if tf > 1 { vbyte::bytes(u64::from(tf - 2)) } else { 0 };
    vbyte::bytes(u64::from(gap_minus_one) << 1) + more
}

/// Whether [`word`] holds a posting.
#[inline(always)]
pub fn fits_word(gap_minus_one: u32, tf: u32) -> bool {
    (gap_minus_one < 1 << 13) & (tf < 2 + (1 << 7))
}

/// The bytes of a short posting as a little-endian word, and how many there are, 1 to 3; those behind
/// them are of no meaning. Has no branch; what it gives for a posting that it does not
/// [hold](fits_word) has no meaning either.
#[inline(always)]
pub fn word(gap_minus_one: u32, tf: u32) -> (u32, u8) {
    let folded = (gap_minus_one << 1) | u32::from(tf > 1);
    let two = u32::from(folded >= 0x80);
    let gap = (folded & 0x7f) | (two << 7) | ((folded >> 7) << 8);
    (gap | (tf.wrapping_sub(2) << (8 + 8 * two)), (1 + two) as u8 + u8::from(tf > 1))
}

/// Reads the posting that begins at `bytes[*at]` as (`gap_minus_one`, tf) and moves `at` behind it.
/// `None` when it is cut short or holds a value that no posting has.
#[inline]
pub fn get(bytes: &[u8], at: &mut usize) -> Option<(u32, u32)> {
    let folded = vbyte::get(bytes, at)?;
    let gap_minus_one = u32::try_from(folded >> 1).ok()?;
    if folded & 1 == 0 {
        return Some((gap_minus_one, 1));
    }
    let tf = vbyte::get(bytes, at)?.checked_add(2)?;
    Some((gap_minus_one, u32::try_from(tf).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_reads_what_it_wrote(postings in prop::collection::vec((any::<u32>(), 1u32..), 0..50)) {
            let mut bytes = Vec::new();
            for &(gap, tf) in &postings {
                let before = bytes.len();
                put(gap, tf, &mut bytes);
                prop_assert!(bytes.len() - before <= MAX_BYTES);
                prop_assert_eq!(bytes.len() - before, super::bytes(gap, tf));
                let (word, len) = word(gap, tf);
                if fits_word(gap, tf) {
                    prop_assert_eq!(&bytes[before..], &word.to_le_bytes()[..usize::from(len)]);
                }
            }
            let mut at = 0;
            for &posting in &postings {
                prop_assert_eq!(get(&bytes, &mut at), Some(posting));
            }
            prop_assert_eq!((at, get(&bytes, &mut at)), (bytes.len(), None));
        }
    }
}
