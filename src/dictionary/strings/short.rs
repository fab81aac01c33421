//! Copies and compares strings of a few bytes without a call. Nearly all suffixes of terms are
//! shorter than 16 bytes; the two ends of such a string, which may overlap, are whole words.

/// Copies `bytes` to the beginning of `to`. Panics if they do not fit.
#[inline(always)]
pub(crate) fn copy(bytes: &[u8], to: &mut [u8]) {
    let n = bytes.len();
    let to = &mut to[..n];
    match n {
        0 => {}
        1..=3 => {
            to[0] = bytes[0];
            to[n / 2] = bytes[n / 2];
            to[n - 1] = bytes[n - 1];
        }
        4..=7 => {
            to[..4].copy_from_slice(&bytes[..4]);
            to[n - 4..].copy_from_slice(&bytes[n - 4..]);
        }
        8..=16 => {
            to[..8].copy_from_slice(&bytes[..8]);
            to[n - 8..].copy_from_slice(&bytes[n - 8..]);
        }
        _ => to.copy_from_slice(bytes),
    }
}

/// Bytes that [`push`] copies without a call, and has to have room for.
pub(crate) const PUSHED: usize = 16;

/// What is copied is never read again at once: a word over two that were just written would wait
/// for them.
#[inline(always)]
pub(crate) fn push(bytes: &[u8], to: &mut Vec<u8>) {
    let n = bytes.len();
    let start = to.len();
    to.reserve(PUSHED);
    match n {
        0 => {}
        1..=3 => to.extend_from_slice(&[bytes[0], bytes[n / 2], bytes[n - 1]]),
        4..=7 => {
            to.extend_from_slice(&bytes[..4]);
            to.truncate(start + n - 4);
            to.extend_from_slice(&bytes[n - 4..]);
        }
        8..=PUSHED => {
            to.extend_from_slice(&bytes[..8]);
            to.truncate(start + n - 8);
            to.extend_from_slice(&bytes[n - 8..]);
        }
        _ => to.extend_from_slice(bytes),
    }
    to.truncate(start + n);
}

#[inline(always)]
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    let n = a.len();
    if n != b.len() {
        return false;
    }
    match n {
        0 => true,
        1..=3 => a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1],
        4..=7 => a[..4] == b[..4] && a[n - 4..] == b[n - 4..],
        8..=16 => a[..8] == b[..8] && a[n - 8..] == b[n - 8..],
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn oracle_is_what_slices_do(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            before in prop::collection::vec(any::<u8>(), 0..4),
            change in (0usize..40, any::<u8>()),
        ) {
            let mut to = vec![0; bytes.len() + 3];
            copy(&bytes, &mut to);
            prop_assert_eq!(&to[..bytes.len()], &bytes);
            prop_assert_eq!(&to[bytes.len()..], [0; 3]);
            let mut pushed = before.clone();
            push(&bytes, &mut pushed);
            prop_assert_eq!(&pushed, &[&before[..], &bytes[..]].concat());
            let mut other = bytes.clone();
            prop_assert!(equal(&bytes, &other));
            if let Some(byte) = other.get_mut(change.0) {
                *byte = change.1;
            }
            prop_assert_eq!(equal(&bytes, &other), bytes == other);
            prop_assert_eq!(equal(&bytes, &pushed), bytes == pushed);
        }
    }
}
