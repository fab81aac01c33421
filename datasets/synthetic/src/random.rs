//! Random numbers by SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number
//! generators*, OOPSLA 2014): a counter whose every value is mixed, so that numbers do not wait for
//! each other and any stream is made from a few integers in no time.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a number; different numbers stay different.
#[inline(always)]
pub(super) fn mix(mut n: u64) -> u64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// What a stream of random numbers is for, so that streams of equal numbers differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Words = 1,
    Documents = 2,
    Queries = 3,
    Arrivals = 4,
    Clusters = 5,
    Log = 6,
    PageRank = 7,
    Permutation = 8,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The stream that belongs to these numbers.
    pub(super) fn new(seed: u64, purpose: Purpose, major: u64, minor: u64) -> Self {
        let keys = [purpose as u64, major, minor];
        Self {
            state: keys
                .iter()
                .fold(mix(seed ^ STEP), |state, &key| mix(state ^ mix(key.wrapping_add(1)))),
        }
    }

    /// 64 random bits.
    #[inline(always)]
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `n`, from 32 bits: no number is likelier than another by more than n / 2^32.
    #[inline(always)]
    pub(super) fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// A number from 0 to just under 1, a multiple of 2^-53.
    #[inline]
    pub(super) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from the normal distribution with mean 0 and variance 1, by Marsaglia's polar
    /// method.
    pub(super) fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.fraction() - 1.0;
            let y = 2.0 * self.fraction() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * crate::real::ln(square) / square).sqrt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, purpose, major, minor| Random::new(seed, purpose, major, minor).bits();
        let one = first(1, Purpose::Documents, 2, 3);
        assert_eq!(one, first(1, Purpose::Documents, 2, 3));
        for other in [
            first(2, Purpose::Documents, 2, 3),
            first(1, Purpose::Queries, 2, 3),
            first(1, Purpose::Documents, 3, 2),
            first(1, Purpose::Documents, 2, 4),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(7, Purpose::Words, 0, 0);
        let sample: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = sample.iter().sum::<f64>() / sample.len() as f64;
        let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / sample.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn numbers_below_reach_all_and_no_more() {
        let mut random = Random::new(8, Purpose::Words, 0, 0);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
