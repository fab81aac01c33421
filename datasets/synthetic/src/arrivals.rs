//! Arrival times of queries as a Poisson process: independent of each other, at a mean rate. This
//! is how `tatikonda11` loads a search node (section 4.1).

use crate::random::{Purpose, Random};

/// Times of arrivals, in seconds, from a seed; they rise and do not end.
///
/// ```
/// use synthetic::arrivals::Poisson;
///
/// let times: Vec<f64> = Poisson::new(1, 100.0).take(10_000).collect();
/// assert!(times.is_sorted());
/// assert!((95.0..105.0).contains(&times[9_999]));
/// ```
#[derive(Clone, Debug)]
pub struct Poisson {
    random: Random,
    rate: f64,
    now: f64,
}

impl Poisson {
    /// Arrivals at `rate` a second in the mean.
    pub fn new(seed: u64, rate: f64) -> Self {
        Self { random: Random::new(seed, Purpose::Arrivals, 0, 0), rate, now: 0.0 }
    }
}

impl Iterator for Poisson {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        // 1 - u is above 0, so its logarithm is a number.
        self.now += -(1.0 - self.random.fraction()).ln() / self.rate;
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let times: Vec<f64> =
            std::iter::once(0.0).chain(Poisson::new(7, 2.0).take(100_000)).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        // The second moment of an exponential distribution is twice the square of its mean.
        assert!((squares - 0.5).abs() < 0.03, "{squares}");
        let others: Vec<f64> = Poisson::new(8, 2.0).take(3).collect();
        assert_ne!(times[1..4], others);
    }
}
