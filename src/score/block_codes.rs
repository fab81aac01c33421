//! Codes of impacts in one byte, rounded up, for bounds of blocks of documents: a table of the
//! impacts that they stand for, made for a run. Impacts up to 255 have codes of their own. If there
//! are greater ones, the steps are one at first and grow by a factor later, so that a few great
//! impacts do not make the bounds of all others loose.

use libm::pow;

/// With code 0, which stands for no posting.
pub(crate) const CODES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImpactCodes {
    /// By code, rising from 0 on.
    impacts: Box<[u32; CODES]>,
    /// The codes of the first impacts, which nearly all are.
    first: Box<[u8; FIRST_IMPACTS]>,
}

const FIRST_IMPACTS: usize = 4096;

impl ImpactCodes {
    /// For impacts up to the greatest.
    pub(crate) fn new(greatest: u32) -> Self {
        let mut impacts = [0; CODES];
        let mut impact = 0u32;
        for (code, entry) in impacts.iter_mut().enumerate().skip(1) {
            let left = (CODES - code) as f64;
            let factor = pow(f64::from(greatest) / f64::from(impact.max(1)), 1.0 / left);
            let grown = (f64::from(impact) * factor).ceil() as u32;
            impact = grown.max(impact.saturating_add(1));
            // Rounding may leave the last one below.
            *entry = if code < CODES - 1 { impact } else { impact.max(greatest) };
        }
        Self::of_file(&impacts)
    }

    pub(crate) fn of_file(impacts: &[u32; CODES]) -> Self {
        let first = std::array::from_fn(|impact| code_of(impacts, impact as u32));
        Self { impacts: Box::new(*impacts), first: Box::new(first) }
    }

    pub(crate) fn impacts(&self) -> &[u32; CODES] {
        &self.impacts
    }

    /// The code of the least impact that is not below this one, which is not above the greatest.
    #[inline]
    pub(crate) fn code(&self, impact: u32) -> u8 {
        let first = self.first.get(impact as usize);
        first.copied().unwrap_or_else(|| code_of(&self.impacts, impact))
    }
}

fn code_of(impacts: &[u32; CODES], impact: u32) -> u8 {
    impacts.partition_point(|&other| other < impact).min(CODES - 1) as u8
}

/// What scales have in them beyond what is asked for: scaled numbers are rounded.
pub(crate) const SCALE_SLACK: f64 = 1.0 + 1e-5;

/// A whole number that is not below `most` times `scale` without [`SCALE_SLACK`]; the greatest of
/// 16 bits if none is.
#[inline(always)]
pub(crate) fn scaled_up(most: f32, scale: f32) -> u16 {
    // Behind this number the last bits of a float are whole numbers; vectors have no other cast.
    const WHOLE: f32 = 8_388_608.0;
    ((most * scale + 1.0).min(65_535.0) + WHOLE).to_bits() as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn impacts_up_to_255_are_exact() {
        for greatest in [1, 7, 100, 255] {
            let codes = ImpactCodes::new(greatest);
            for impact in 1..=greatest {
                assert_eq!(codes.impacts()[usize::from(codes.code(impact))], impact, "{greatest}");
            }
        }
    }

    #[test]
    fn one_great_impact_does_not_loosen_the_others() {
        let codes = ImpactCodes::new(10_000);
        for impact in 1..=10_000u32 {
            let bound = codes.impacts()[usize::from(codes.code(impact))];
            assert!(bound - impact <= 1 + impact / 20, "{impact}: {bound}");
        }
    }

    proptest! {
        #[test]
        fn law_no_impact_is_above_that_of_its_code(
            (greatest, shift) in (1..=u32::MAX, 0..32u32),
            impact in any::<prop::sample::Index>(),
        ) {
            let greatest = (greatest >> shift).max(1);
            let codes = ImpactCodes::new(greatest);
            let impacts = codes.impacts();
            prop_assert!(impacts.is_sorted() && impacts[0] == 0 && impacts[CODES - 1] >= greatest);
            let impact = 1 + impact.index(greatest as usize) as u32;
            let code = usize::from(codes.code(impact));
            prop_assert!(impacts[code] >= impact && impacts[code - 1] < impact);
        }

        #[test]
        fn law_scaled_numbers_are_rounded_up(
            most in 0.0f32..1e9,
            share in 0.0f64..1.5,
        ) {
            let scale = 65_535.0 / f64::from(most.max(1e-9)) * share;
            let scaled = f64::from(scaled_up(most, (scale * SCALE_SLACK) as f32));
            let exact = f64::from(most) * scale;
            prop_assert!(scaled >= exact.min(65_535.0), "{} {}", scaled, exact);
            prop_assert!(scaled <= exact * 1.0001 + 2.0);
        }
    }
}
