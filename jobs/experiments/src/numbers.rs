//! What several measurements of one thing come to: their mean, median and quantiles, and the
//! fastest.

use std::num::NonZeroUsize;

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The least value that a share `q` of all does not exceed.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

/// What the fastest of several passes returns, by the seconds that `of` finds in it.
pub(crate) fn fastest<R, E>(
    passes: NonZeroUsize,
    of: impl Fn(&R) -> f64,
    mut pass: impl FnMut() -> Result<R, E>,
) -> Result<R, E> {
    let mut best = pass()?;
    for _ in 1..passes.get() {
        let next = pass()?;
        if of(&next) < of(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// Numbers from 0 up to 1 that look like chance.
pub(crate) fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}
