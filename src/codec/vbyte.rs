//! Variable-byte codes of integers, LEB128: seven bits a byte, low bits first, the high bit set on
//! all bytes but the last. Only the shortest form of a value is accepted, so that equal values have
//! equal bytes (`docs/index-format.md`, Lexicon).

mod blocks;

pub(crate) use blocks::VByte;

/// The most bytes that a value takes.
pub(crate) const MAX_BYTES: usize = 10;

#[inline]
pub(crate) fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that [`put`] appends.
#[inline]
pub(crate) const fn bytes(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Reads the value at `bytes[*at]` and moves `at` behind it. `None`, with `at` unmoved, if the
/// value is cut short, needs more than 64 bits or is not in its shortest form.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(u64::from(first));
    }
    get_long(bytes, at)
}

fn get_long(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for (count, &byte) in bytes[*at..].iter().take(MAX_BYTES).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * count);
        if byte < 0x80 {
            // A last byte of zero adds nothing; the tenth byte has room for one bit.
            if byte == 0 || (count == MAX_BYTES - 1 && byte > 1) {
                return None;
            }
            *at += count + 1;
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(value, &mut bytes);
        bytes
    }

    #[test]
    fn borders_of_every_length_come_back() {
        for bits in 0..64 {
            for value in [(1u64 << bits) - 1, 1 << bits, u64::MAX >> bits] {
                let bytes = bytes_of(value);
                assert_eq!(bytes.len(), super::bytes(value));
                let mut at = 0;
                assert_eq!(get(&bytes, &mut at), Some(value));
                assert_eq!(at, bytes.len());
            }
        }
    }

    #[test]
    fn values_cut_short_overlong_or_too_wide_are_refused() {
        let overlong = [0x80, 0x00];
        let too_wide = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        let endless = [0x80; 12];
        for bytes in [&[][..], &[0x80], &overlong, &too_wide, &endless] {
            let mut at = 0;
            assert_eq!(get(bytes, &mut at), None, "{bytes:x?}");
            assert_eq!(at, 0);
        }
        let mut at = 7;
        assert_eq!(get(&[1, 2, 3], &mut at), None);
    }

    proptest! {
        #[test]
        fn law_values_come_back(values in prop::collection::vec(any::<u64>(), 0..50), shift in 0..64u32) {
            let mut bytes = Vec::new();
            for value in &values {
                put(value >> shift, &mut bytes);
            }
            let mut at = 0;
            for value in &values {
                prop_assert_eq!(get(&bytes, &mut at), Some(value >> shift));
            }
            prop_assert_eq!(at, bytes.len());
        }

        #[test]
        fn law_whatever_is_read_was_in_its_only_form(bytes in prop::collection::vec(any::<u8>(), 0..14)) {
            let mut at = 0;
            if let Some(value) = get(&bytes, &mut at) {
                prop_assert_eq!(bytes_of(value), &bytes[..at]);
            }
        }
    }
}
