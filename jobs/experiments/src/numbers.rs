//! What several measurements of one thing come to: their mean, median and quantiles, the fastest,
//! and the middle one.

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

/// Passes of which the middle one counts.
pub(crate) const PASSES: usize = 3;

/// The middle one of several passes, and the least and the greatest figure of all.
pub(crate) struct Middle<R> {
    pub(crate) middle: R,
    pub(crate) spread: [f64; 2],
}

/// The middle one of this many passes, by the figure that `of` finds in each.
pub(crate) fn middle<R>(
    passes: usize,
    of: impl Fn(&R) -> f64,
    mut pass: impl FnMut() -> anyhow::Result<R>,
) -> anyhow::Result<Middle<R>> {
    let mut all = (0..passes.max(1)).map(|_| pass()).collect::<anyhow::Result<Vec<R>>>()?;
    all.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let spread = [of(&all[0]), of(&all[all.len() - 1])];
    Ok(Middle { middle: all.swap_remove(all.len() / 2), spread })
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
