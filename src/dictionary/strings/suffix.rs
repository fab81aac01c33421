//! Suffixes of terms, which are compared without a look at other strings. What a trie collection
//! leaves of a term is hardly ever longer than eight bytes. These, their number and the collection
//! are 12 bytes, which say all of it; the string of a longer one lies elsewhere.

use super::short;
use crate::dictionary::closed::order_key;
use crate::pages;

/// Bytes of the longest suffix that is not long.
const HERE: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(4))]
pub struct Suffix {
    /// The bytes, then zeros. Of a long one, its place among other strings.
    here: [u8; HERE],
    pub collection: u16,
    len: u8,
    rest: u8,
}

const _: () = assert!(size_of::<Suffix>() == 12);

impl Suffix {
    /// At most 255 bytes. A long suffix is found in `bytes` itself, from 0 on.
    #[inline(always)]
    pub(crate) fn new(collection: u16, bytes: &[u8]) -> Self {
        let len = u8::try_from(bytes.len()).expect("analysis cuts terms at 255 bytes");
        let mut here = [0; HERE];
        if bytes.len() <= HERE {
            short::copy(bytes, &mut here);
        }
        Self { here, collection, len, rest: 0 }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether its bytes lie elsewhere.
    #[inline(always)]
    pub(crate) fn is_long(&self) -> bool {
        self.len() > HERE
    }

    /// Appends a long one, which `from` has, to `to`, and returns it with its place there.
    #[inline(always)]
    pub(crate) fn moved(&self, from: &[u8], to: &mut Vec<u8>) -> Self {
        if !self.is_long() {
            return *self;
        }
        let here = (to.len() as u64).to_le_bytes();
        pages::reserve(to, self.len());
        to.extend_from_slice(self.of(from));
        Self { here, ..*self }
    }

    /// The place of a long one.
    #[inline(always)]
    pub(crate) fn start(&self) -> usize {
        u64::from_le_bytes(self.here) as usize
    }

    /// `strings` has the bytes of a long one.
    #[inline(always)]
    pub(crate) fn of<'a>(&'a self, strings: &'a [u8]) -> &'a [u8] {
        if self.is_long() {
            &strings[self.start()..][..self.len()]
        } else {
            &self.here[..self.len()]
        }
    }

    #[inline(always)]
    pub(crate) fn order_key(&self, strings: &[u8]) -> u64 {
        if self.is_long() {
            return order_key(self.collection, self.of(strings));
        }
        u64::from(self.collection) << 48 | u64::from_be_bytes(self.here) >> 16
    }

    /// Whether two are the same term; `a` and `b` have the bytes of long ones.
    #[inline(always)]
    pub(crate) fn same(&self, a: &[u8], other: &Self, b: &[u8]) -> bool {
        let below = |of: &Self| (of.collection, of.len);
        if below(self) != below(other) {
            return false;
        }
        if self.is_long() {
            return short::equal(self.of(a), other.of(b));
        }
        self.here == other.here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn law_a_suffix_is_its_bytes(a in "[ab]{0,12}", b in "[ab]{0,12}", long in 0usize..300) {
            let b = if long > 255 { a.clone() } else { b + &"a".repeat(long.min(240) / 20) };
            let of = |bytes: &str, collection| {
                let mut strings = b"others".to_vec();
                (Suffix::new(collection, bytes.as_bytes()).moved(bytes.as_bytes(), &mut strings), strings)
            };
            let (a_suffix, a_strings) = of(&a, 7);
            let (b_suffix, b_strings) = of(&b, 7);
            prop_assert_eq!(a_suffix.of(&a_strings), a.as_bytes());
            prop_assert_eq!(a_suffix.order_key(&a_strings), order_key(7, a.as_bytes()));
            prop_assert_eq!(b_suffix.of(&b_strings), b.as_bytes());
            prop_assert_eq!(a_suffix.same(&a_strings, &b_suffix, &b_strings), a == b);
            let (other, strings) = of(&a, 8);
            prop_assert!(!other.same(&strings, &a_suffix, &a_strings));
        }
    }
}
