//! Docids in a random order, for collections whose order says nothing.

use crate::random::{Purpose, Random};

/// A new number for each of `n` documents: every order is as likely as any other, to 32 bits. The
/// same for the same seed.
pub fn permutation(seed: u64, n: u32) -> Vec<u32> {
    let mut random = Random::new(seed, Purpose::Permutation, n.into(), 0);
    let mut numbers: Vec<u32> = (0..n).collect();
    // Fisher and Yates.
    for last in (1..n).rev() {
        numbers.swap(last as usize, random.below(last + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_and_in_no_order() {
        let numbers = permutation(3, 1000);
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..1000));
        let rising = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 999 pairs rise");
        assert_ne!(numbers, permutation(4, 1000));
        assert_eq!(numbers, permutation(3, 1000));
        assert_eq!((permutation(1, 0), permutation(1, 1)), (vec![], vec![0]));
    }
}
