//! How do gaps become docids? Each is the one before plus the gap plus 1: a prefix sum, sixteen or
//! eight values a step.

#[cfg(target_arch = "x86_64")]
use super::bp128::{avx2, avx512};
use crate::cpu::{Level, level};

/// Turns `gap_minus_one` values into docids in place: `values[i]` becomes `previous` plus values 0
/// to i plus i + 1, wrapping. `previous` is `u32::MAX` (-1) where nothing comes before.
#[inline]
pub fn docids(previous: u32, values: &mut [u32]) {
    match level() {
        // SAFETY: `level` found the instructions.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::sum_docids(previous, values) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::sum_docids(previous, values) },
        Level::Portable => portable(previous, values),
    }
}

/// The path that every machine has, and the ends of the others.
#[inline]
pub(super) fn portable(previous: u32, values: &mut [u32]) {
    let mut docid = previous;
    for value in values {
        docid = docid.wrapping_add(*value).wrapping_add(1);
        *value = docid;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn twin_all_paths_give_the_same_docids(
            gaps in prop::collection::vec(any::<u32>(), 0..150),
            previous in any::<u32>(),
        ) {
            let mut expected = gaps.clone();
            portable(previous, &mut expected);
            let mut found = gaps.clone();
            docids(previous, &mut found);
            prop_assert_eq!(&found, &expected);
            #[cfg(target_arch = "x86_64")]
            if level() >= Level::Avx2 {
                let mut found = gaps;
                // SAFETY: the level is there.
                unsafe { avx2::sum_docids(previous, &mut found) };
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
