//! Tests whether the difference between two runs is more than chance.
//!
//! Both tests are paired by query and two-sided; Smucker, Allan and Carterette (CIKM 2007) compare
//! them. [`t_test`] is Student's. [`randomisation`] is Fisher's: it swaps the two values of each
//! query by a coin and counts how often the means differ as much. With up to [`EXACT`] queries that
//! differ all ways are counted, else [`SAMPLES`] are drawn from a fixed seed.

#![warn(missing_docs)]

use serde::Serialize;
use statrs::function::beta::{checked_beta_reg, inv_beta_reg};

/// Greatest number of differing queries for which all ways are counted.
pub(crate) const EXACT: usize = 16;
/// Ways that are drawn for more queries.
pub(crate) const SAMPLES: u64 = 100_000;

/// Comparison of a run with another by one measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// This run's mean, less the other's.
    pub difference: f64,
    /// Queries for which this run is better.
    pub better: usize,
    /// Queries for which it is worse.
    pub worse: usize,
    /// Where the mean of the difference lies with a confidence of 95 %, by Student's t; `None`
    /// where the t-test has no p.
    pub interval: Option<[f64; 2]>,
    /// p of [`t_test`].
    pub t_test_p: Option<f64>,
    /// p of [`randomisation`].
    pub randomisation_p: f64,
    /// [`holm`]'s p of the t-test, where several runs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_test_p_holm: Option<f64>,
    /// [`holm`]'s p of the randomisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomisation_p_holm: Option<f64>,
}

impl Comparison {
    /// Compares the values of two runs, query by query.
    ///
    /// # Panics
    /// If their numbers differ, or there are none.
    pub fn new(values: &[f64], others: &[f64]) -> Self {
        assert!(
            values.len() == others.len() && !values.is_empty(),
            "values are of the same queries"
        );
        let differences: Vec<f64> = values.iter().zip(others).map(|(a, b)| a - b).collect();
        // Without the sign of a negative zero.
        let difference = differences.iter().sum::<f64>() / differences.len() as f64 + 0.0;
        let reach = t_reach(&differences);
        Self {
            difference,
            interval: reach.map(|reach| [difference - reach, difference + reach]),
            better: differences.iter().filter(|&&d| d > 0.0).count(),
            worse: differences.iter().filter(|&&d| d < 0.0).count(),
            t_test_p: t_test(&differences),
            randomisation_p: randomisation(&differences),
            t_test_p_holm: None,
            randomisation_p_holm: None,
        }
    }

    /// Adjusts the p of several runs that are compared with one, measure by measure. A run that
    /// does not differ has the p 1.
    pub fn adjust(runs: &mut [&mut Vec<Self>]) {
        let several = if runs.len() > 1 { runs[0].len() } else { 0 };
        for measure in 0..several {
            let column = |p: fn(&Self) -> f64| runs.iter().map(|run| p(&run[measure])).collect();
            let t_test: Vec<f64> = column(|row| row.t_test_p.unwrap_or(1.0));
            let randomisation: Vec<f64> = column(|row| row.randomisation_p);
            for row in runs.iter_mut().map(|run| &mut run[measure]) {
                row.t_test_p_holm = row.t_test_p.map(|p| holm(&t_test, p));
                row.randomisation_p_holm = Some(holm(&randomisation, row.randomisation_p));
            }
        }
    }
}

/// Adjusts a p of several tests, so that the chance that any below a bound is one by chance is at
/// most the bound (Holm, Scandinavian Journal of Statistics 6, 1979).
fn holm(all: &[f64], of: f64) -> f64 {
    let times = |least: f64| all.iter().filter(|&&p| p >= least).count() as f64;
    all.iter().filter(|&&p| p <= of).map(|&p| p * times(p)).fold(0.0, f64::max).min(1.0)
}

/// Squared standard error of the mean; `None` with fewer than two queries or no difference.
fn squared_error(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    let is_known = differences.len() >= 2 && (squares > 0.0 || mean != 0.0);
    is_known.then(|| squares / (n - 1.0) / n)
}

/// How far the interval of 95 % confidence goes from the mean.
fn t_reach(differences: &[f64]) -> Option<f64> {
    let error = squared_error(differences)?;
    let freedom = differences.len() as f64 - 1.0;
    let x = inv_beta_reg(freedom / 2.0, 0.5, 0.05);
    Some((error * freedom * (1.0 - x) / x).sqrt())
}

/// p of Student's paired t-test, two-sided; `None` with fewer than two queries or no difference.
pub(crate) fn t_test(differences: &[f64]) -> Option<f64> {
    let error = squared_error(differences)?;
    let freedom = differences.len() as f64 - 1.0;
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    // P(|T| >= t) = I_x(freedom / 2, 1 / 2) with x = freedom / (freedom + t^2).
    let x = if error == 0.0 { 0.0 } else { freedom / (freedom + mean * mean / error) };
    checked_beta_reg(freedom / 2.0, 0.5, x).ok()
}

pub(crate) fn randomisation(differences: &[f64]) -> f64 {
    let differ: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
    let observed = differ.iter().sum::<f64>().abs();
    // Sums of the same numbers in other orders of additions differ by a little.
    let least = observed - 1e-9 * differ.iter().map(|d| d.abs()).sum::<f64>();
    if differ.len() <= EXACT {
        let ways = 1u64 << differ.len();
        let as_great = (0..ways).filter(|&way| swapped(&differ, |_| way).abs() >= least).count();
        return as_great as f64 / ways as f64;
    }
    let mut seed = 0u64;
    let mut as_great = 0u64;
    let mut coins = vec![0; differ.len().div_ceil(64)];
    for _ in 0..SAMPLES {
        coins.fill_with(|| next(&mut seed));
        as_great += u64::from(swapped(&differ, |at| coins[at]).abs() >= least);
    }
    // The unchanged runs are one of the ways.
    (as_great + 1) as f64 / (SAMPLES + 1) as f64
}

/// The sum of all differences; bit i of `coins(w)` changes the sign of number 64 w + i.
fn swapped(differences: &[f64], coins: impl Fn(usize) -> u64) -> f64 {
    let mut sum = 0.0;
    for (at, block) in differences.chunks(64).enumerate() {
        let coins = coins(at);
        for (bit, difference) in block.iter().enumerate() {
            sum += f64::from_bits(difference.to_bits() ^ (coins >> bit & 1) << 63);
        }
    }
    sum
}

/// Random bits (splitmix64: Steele, Lea and Flood, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_difference_is_no_evidence() {
        assert_eq!(t_test(&[0.0; 5]), None);
        assert_eq!(t_test(&[0.3]), None);
        assert_eq!(randomisation(&[0.0; 5]), 1.0);
        assert_eq!(t_test(&[0.5, 0.5, 0.5]), Some(0.0));
    }

    /// All 2^3 ways: only +++ and --- reach a sum of 6.
    #[test]
    fn few_queries_are_counted_exactly() {
        assert_eq!(randomisation(&[1.0, 2.0, 3.0]), 0.25);
        assert_eq!(randomisation(&[1.0, -1.0]), 1.0);
        assert_eq!(randomisation(&[0.1, 0.2, 0.3, 0.0]), 0.25);
    }

    /// By statsmodels 0.15, `multipletests` with `holm`.
    #[test]
    fn p_of_several_is_that_of_another_implementation() {
        for (all, expected) in [
            (&[0.01, 0.04, 0.03, 0.005][..], &[0.03, 0.06, 0.06, 0.02][..]),
            (&[0.5, 0.5], &[1.0, 1.0]),
            (&[0.04, 0.001, 0.04], &[0.08, 0.003, 0.08]),
            (&[0.0, 1.0, 0.9], &[0.0, 1.0, 1.0]),
        ] {
            for (&p, expected) in all.iter().zip(expected) {
                assert!((holm(all, p) - expected).abs() < 1e-12, "{all:?} {p}");
            }
        }
    }

    /// p by scipy 1.17: `ttest_1samp` and `permutation_test` (exact up to 16 values).
    #[test]
    fn p_is_that_of_another_implementation() {
        for (differences, t, randomised) in GOLDEN {
            let near = |a: f64, b: f64, slack: f64| assert!((a - b).abs() < slack, "{a}, not {b}");
            near(t_test(differences).unwrap(), t, 1e-9);
            let slack = if differences.len() <= EXACT { 1e-9 } else { 0.005 };
            near(randomisation(differences), randomised, slack);
        }
    }

    /// The quantiles of t are those of printed tables.
    #[test]
    fn the_interval_is_that_of_students_t() {
        assert_eq!(t_reach(&[0.3]), None);
        assert_eq!(t_reach(&[0.0; 4]), None);
        assert_eq!(t_reach(&[0.5, 0.5, 0.5]), Some(0.0));
        for (differences, quantile) in
            [(&[1.0, 3.0][..], 12.706), (GOLDEN[0].0, 2.201), (GOLDEN[2].0, 2.001)]
        {
            let found = t_reach(differences).unwrap() / squared_error(differences).unwrap().sqrt();
            assert!((found - quantile).abs() < 5e-4, "{found}, not {quantile}");
        }
        for (differences, p, _) in GOLDEN {
            let found = Comparison::new(differences, &vec![0.0; differences.len()]);
            let [low, high] = found.interval.unwrap();
            assert!(low < found.difference && found.difference < high);
            // The interval is without 0 where p is below 0.05.
            assert_eq!(low > 0.0 || high < 0.0, p < 0.05);
        }
    }

    /// Differences, p of the t-test, p of the randomisation test.
    const GOLDEN: [(&[f64], f64, f64); 3] = [
        (
            &[
                0.05, 0.11, -0.005, -0.128, -0.041, -0.148, 0.062, 0.317, -0.048, -0.074, 0.148,
                0.121,
            ],
            0.44347894994915943,
            0.462890625,
        ),
        (
            &[
                -0.009, -0.113, -0.023, 0.05, -0.154, -0.066, -0.21, -0.149, -0.204, -0.044,
                -0.147, 0.007, -0.004, -0.039, -0.272, -0.074,
            ],
            0.0012178989090578579,
            0.0009765625,
        ),
        (
            &[
                0.013, 0.037, 0.0, -0.052, -0.127, -0.101, 0.179, -0.101, 0.015, 0.153, -0.068,
                0.0, 0.037, 0.03, -0.164, 0.0, 0.224, -0.212, 0.149, 0.038, -0.076, 0.32, 0.0,
                -0.16, 0.0, 0.107, -0.008, 0.0, 0.01, 0.12, 0.0, -0.081, 0.05, -0.049, 0.039,
                -0.158, -0.067, -0.009, 0.155, 0.192, -0.179, 0.0, 0.117, -0.279, -0.049, 0.0,
                0.209, 0.0, -0.029, -0.035, 0.0, 0.249, -0.044, -0.026, 0.0, 0.002, 0.0, -0.147,
                0.018, -0.047,
            ],
            0.8265748030192487,
            0.8292231707768293,
        ),
    ];
}
