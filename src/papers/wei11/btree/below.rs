//! Counts the caches of a node that are below a number. With vectors all are compared, as by the 32
//! threads of the paper's GPU indexer; the counts of the 32 bits are the answer.

#![allow(unsafe_code)]

use super::node::MOST_TERMS;

/// The caches of a node, and its padding.
pub(super) type Caches = [u32; MOST_TERMS + 1];

/// Implementations with vector instructions may be used only where the CPU has them.
pub(super) trait Vectors {
    fn below(caches: &Caches, cache: u32) -> usize;
}

pub(super) struct Portable;

impl Vectors for Portable {
    #[inline(always)]
    fn below(caches: &Caches, cache: u32) -> usize {
        caches.iter().map(|&other| u32::from(other < cache)).sum::<u32>() as usize
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Caches, Vectors};
    use std::arch::x86_64::*;

    /// AVX2 and POPCNT.
    pub(in super::super) struct Avx2;

    impl Vectors for Avx2 {
        #[inline(always)]
        fn below(caches: &Caches, cache: u32) -> usize {
            let mut mask = 0u32;
            for (i, eight) in caches.as_chunks::<8>().0.iter().enumerate() {
                // SAFETY: the type is used only where AVX2 is, and `eight` has the 32 bytes.
                let bits = unsafe {
                    // The comparison is signed: both sides are moved by 2^31.
                    let half = _mm256_set1_epi32(i32::MIN);
                    let eight = _mm256_xor_si256(_mm256_loadu_si256(eight.as_ptr().cast()), half);
                    let cache = _mm256_xor_si256(_mm256_set1_epi32(cache as i32), half);
                    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(cache, eight)))
                };
                mask |= (bits as u32) << (8 * i);
            }
            mask.count_ones() as usize
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::Avx2;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::cpu::{Level, level};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn twin_vectors_count_as_portable_code(mut caches in prop::array::uniform32(any::<u32>()), cache in any::<u32>(), at in 0usize..32) {
            caches.sort_unstable();
            for cache in [cache, caches[at], caches[at].saturating_add(1), 0, u32::MAX] {
                let expected = Portable::below(&caches, cache);
                if level() >= Level::Avx2 {
                    prop_assert_eq!(Avx2::below(&caches, cache), expected);
                }
            }
        }
    }
}
