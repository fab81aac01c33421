//! Postings in few bytes: the gap and *tf is one*, which most have, share the first vbyte.
//!
//! A posting is `vbyte(2 * gap_minus_one + (tf > 1))`, then `vbyte(tf - 2)` if tf > 1: the form of
//! a list's tail (`docs/index-format.md`, Postings), and of all postings while a run is built.

use super::vbyte;

/// Bytes of the longest posting: a gap of 33 bits and a tf of 32.
pub(crate) const MAX_BYTES: usize = 10;

/// Appends a posting; `tf` is 1 or more.
#[inline]
pub(crate) fn put(gap_minus_one: u32, tf: u32, out: &mut Vec<u8>) {
    debug_assert!(tf > 0);
    if gap_minus_one < 64 && tf == 1 {
        return out.push((gap_minus_one as u8) << 1);
    }
    vbyte::put((u64::from(gap_minus_one) << 1) | u64::from(tf > 1), out);
    if tf > 1 {
        vbyte::put(u64::from(tf - 2), out);
    }
}

/// The postings of a whole list, with docids.
#[cfg(test)]
pub(crate) fn list(bytes: &[u8]) -> Vec<(u32, u32)> {
    let (mut at, mut next) = (0, 0);
    let mut list = Vec::new();
    while let Some((gap, tf)) = get(bytes, &mut at) {
        list.push((next + gap, tf));
        next += gap + 1;
    }
    assert_eq!(at, bytes.len());
    list
}

/// Bytes that [`put`] appends.
#[inline]
pub(crate) fn bytes(gap_minus_one: u32, tf: u32) -> usize {
    let more = if tf > 1 { vbyte::bytes(u64::from(tf - 2)) } else { 0 };
    vbyte::bytes(u64::from(gap_minus_one) << 1) + more
}

#[inline(always)]
pub(crate) fn fits_word(gap_minus_one: u32, tf: u32) -> bool {
    (gap_minus_one < 1 << 13) & (tf < 2 + (1 << 7))
}

/// A short posting as a little-endian word, and its bytes, 1 to 3; those behind are arbitrary, as
/// is all for a posting that it does not [hold](fits_word). Branch-free.
#[inline(always)]
pub(crate) fn word(gap_minus_one: u32, tf: u32) -> (u32, u8) {
    let folded = (gap_minus_one << 1) | u32::from(tf > 1);
    let two = u32::from(folded >= 0x80);
    let gap = (folded & 0x7f) | (two << 7) | ((folded >> 7) << 8);
    (gap | (tf.wrapping_sub(2) << (8 + 8 * two)), (1 + two) as u8 + u8::from(tf > 1))
}

/// The posting at the beginning of a [`word`], as (`gap_minus_one`, tf - 1, bytes). Branch-free.
#[inline(always)]
pub(crate) fn of_word(word: u32) -> (u32, u32, usize) {
    let more = word & 1;
    let two = word >> 7 & 1;
    let folded = (word & 0x7f) | ((word >> 1) & 0x3f80 & two.wrapping_neg());
    let tf_byte = (word >> (8 + 8 * two)) & 0xff;
    (folded >> 1, (tf_byte + 1) & more.wrapping_neg(), 1 + two as usize + more as usize)
}

/// Whether bytes that begin with `word` begin with a posting that a [`word`] holds, whose tf - 1 is
/// `less_one`. A gap of two bytes of which the second is zero is refused: it should have one.
#[inline(always)]
fn is_word(word: u32, less_one: u32) -> bool {
    (word & 0x8080 != 0x8080) & (word & 0xff80 != 0x80) & (less_one <= 0x80)
}

#[inline(always)]
pub(crate) fn fits_long_word(gap_minus_one: u32, tf: u32) -> bool {
    (gap_minus_one < 1 << 27) & (tf < 2 + (1 << 7))
}

/// [`word`] for longer gaps, in 1 to 5 bytes.
#[inline(always)]
pub(crate) fn long_word(gap_minus_one: u32, tf: u32) -> (u64, usize) {
    let folded = u64::from((gap_minus_one << 1) | u32::from(tf > 1));
    let more =
        u32::from(folded >= 1 << 7) + u32::from(folded >= 1 << 14) + u32::from(folded >= 1 << 21);
    let sevens = (folded & 0x7f)
        | (folded & (0x7f << 7)) << 1
        | (folded & (0x7f << 14)) << 2
        | (folded & (0x7f << 21)) << 3;
    let gap = sevens | 0x80_8080 & !(u64::MAX << (8 * more));
    let tf_byte = u64::from(tf.wrapping_sub(2));
    (gap | tf_byte << (8 + 8 * more), 1 + more as usize + usize::from(tf > 1))
}

/// Reads the posting at `bytes[*at]` as (`gap_minus_one`, tf) and moves `at` behind it. `None` if
/// it is cut short or holds a value that no posting has.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Option<(u32, u32)> {
    let folded = vbyte::get(bytes, at)?;
    let gap_minus_one = u32::try_from(folded >> 1).ok()?;
    if folded & 1 == 0 {
        return Some((gap_minus_one, 1));
    }
    let tf = vbyte::get(bytes, at)?.checked_add(2)?;
    Some((gap_minus_one, u32::try_from(tf).ok()?))
}

/// Reads postings from `bytes[*at]` on into columns of `gap_minus_one` and tf - 1, until these are
/// full or the bytes end; moves `at` behind them and returns their number. `None` as [`get`].
///
/// Nearly all postings have a gap of one or two bytes and a tf of none or one; these are read
/// without a branch, two from each word, so that the next word waits for a load and a few additions
/// and for no guess. Eight postings of a byte each are read at once.
#[inline]
pub(crate) fn get_many(
    bytes: &[u8],
    at: &mut usize,
    gaps: &mut [u32],
    tfs: &mut [u32],
) -> Option<usize> {
    let most = gaps.len().min(tfs.len());
    let gaps = &mut gaps[..most];
    let tfs = &mut tfs[..most];
    let mut count = 0;
    let mut place = *at;
    while let (Some(gaps), Some(tfs)) = (eight(gaps, count), eight(tfs, count)) {
        let Some(word) = bytes.get(place..).and_then(|rest| rest.first_chunk::<8>()) else {
            break;
        };
        let whole = u64::from_le_bytes(*word);
        if whole & 0x8181_8181_8181_8181 == 0 {
            for (gap, byte) in gaps.iter_mut().zip(word) {
                *gap = u32::from(byte >> 1);
            }
            tfs.fill(0);
            count += 8;
            place += 8;
            continue;
        }
        let first = of_word(whole as u32);
        let behind = (whole >> (8 * first.2)) as u32;
        let second = of_word(behind);
        if is_word(whole as u32, first.1) & is_word(behind, second.1) {
            (gaps[0], tfs[0], gaps[1], tfs[1]) = (first.0, first.1, second.0, second.1);
            count += 2;
            place += first.2 + second.2;
            continue;
        }
        let (gap_minus_one, tf) = get(bytes, &mut place)?;
        gaps[0] = gap_minus_one;
        tfs[0] = tf - 1;
        count += 1;
    }
    for (gap, tf) in gaps[count..].iter_mut().zip(&mut tfs[count..]) {
        if let Some(word) = bytes.get(place..).and_then(|rest| rest.first_chunk()) {
            let word = u32::from_le_bytes(*word);
            let (gap_minus_one, less_one, bytes) = of_word(word);
            if is_word(word, less_one) {
                *gap = gap_minus_one;
                *tf = less_one;
                count += 1;
                place += bytes;
                continue;
            }
        } else if place >= bytes.len() {
            break;
        }
        let (gap_minus_one, whole) = get(bytes, &mut place)?;
        *gap = gap_minus_one;
        *tf = whole - 1;
        count += 1;
    }
    *at = place;
    Some(count)
}

#[inline(always)]
fn eight(column: &mut [u32], from: usize) -> Option<&mut [u32; 8]> {
    column.get_mut(from..)?.first_chunk_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Columns of any length hold what is read one by one.
        #[test]
        fn oracle_many_are_read_as_one_by_one(
            postings in prop::collection::vec(
                prop_oneof![(any::<u32>(), 0u32..31, 1u32.., 0u32..32), (any::<u32>(), 26u32..32, 1u32..3, 0u32..2)],
                0..80,
            ),
            room in 1usize..40,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            let mut ends = vec![0];
            for &(gap, less, tf, tf_less) in &postings {
                let gap = gap >> less;
                let tf = (tf >> tf_less).max(1);
                put(gap, tf, &mut bytes);
                expected.push((gap, tf - 1));
                ends.push(bytes.len());
            }
            let mut at = 0;
            let mut found = Vec::new();
            loop {
                let mut gaps = vec![7; room];
                let mut tfs = vec![7; room];
                let count = get_many(&bytes, &mut at, &mut gaps, &mut tfs).unwrap();
                prop_assert_eq!(at, ends[found.len() + count]);
                found.extend(gaps.into_iter().zip(tfs).take(count));
                if count < room {
                    break;
                }
            }
            prop_assert_eq!(&found, &expected);
            let cut = cut.index(bytes.len() + 1);
            let mut gaps = [0; 80];
            let mut tfs = [0; 80];
            let read = get_many(&bytes[..cut], &mut 0, &mut gaps, &mut tfs);
            prop_assert_eq!(read, ends.binary_search(&cut).ok());
        }

        #[test]
        fn oracle_many_are_read_as_one_after_the_other(
            bytes in prop::collection::vec(prop_oneof![4 => 0u8..6, 2 => Just(0x80u8), 1 => any::<u8>()], 0..40),
            most in 0usize..40,
        ) {
            let mut at = 0;
            let mut expected = Some(Vec::new());
            while let Some(postings) = &mut expected && at < bytes.len() && postings.len() < most {
                match get(&bytes, &mut at) {
                    Some((gap, tf)) => postings.push((gap, tf - 1)),
                    None => expected = None,
                }
            }
            let mut gaps = vec![0; most];
            let mut tfs = vec![0; most];
            let mut end = 0;
            let read = get_many(&bytes, &mut end, &mut gaps, &mut tfs);
            prop_assert_eq!(read, expected.as_ref().map(Vec::len));
            if let Some(expected) = expected {
                prop_assert_eq!(end, at);
                let read: Vec<_> = gaps.into_iter().zip(tfs).take(expected.len()).collect();
                prop_assert_eq!(read, expected);
            }
        }

        #[test]
        fn law_reads_what_it_wrote(postings in prop::collection::vec((any::<u32>(), 1u32..), 0..50)) {
            let mut bytes = Vec::new();
            for &(gap, tf) in &postings {
                let before = bytes.len();
                put(gap, tf, &mut bytes);
                prop_assert!(bytes.len() - before <= MAX_BYTES);
                prop_assert_eq!(bytes.len() - before, super::bytes(gap, tf));
            }
            let short = postings.iter().flat_map(|&(gap, tf)| {
                [(gap >> 4, tf), (gap >> 5, tf % 129 + 1), (gap >> 19, tf % 131 + 1), (gap >> 20, 1)]
            });
            for (gap, tf) in short {
                bytes.clear();
                put(gap, tf, &mut bytes);
                if fits_word(gap, tf) {
                    let (word, len) = word(gap, tf);
                    prop_assert_eq!(&bytes[..], &word.to_le_bytes()[..usize::from(len)]);
                    prop_assert_eq!(of_word(word), (gap, tf - 1, usize::from(len)));
                }
                if fits_long_word(gap, tf) {
                    let (word, len) = long_word(gap, tf);
                    prop_assert_eq!(&bytes[..], &word.to_le_bytes()[..len]);
                }
            }
            bytes.clear();
            for &(gap, tf) in &postings {
                put(gap, tf, &mut bytes);
            }
            let mut at = 0;
            for &posting in &postings {
                prop_assert_eq!(get(&bytes, &mut at), Some(posting));
            }
            prop_assert_eq!((at, get(&bytes, &mut at)), (bytes.len(), None));
        }
    }
}
