//! Says how important each document is, where there are no links to tell. Values follow the power
//! law that PageRank follows on the web: the share of pages above x falls as x^-1.1 (Pandurangan,
//! Raghavan and Upfal, *Using PageRank to characterize web structure*, COCOON 2002). They are
//! independent of the text and add up to about 1.

use crate::documents::Name;
use crate::random::{Purpose, Random};
use crate::real::pow;
use std::io::{self, Write};

/// The exponent of the tail.
const EXPONENT: f64 = 1.1;

/// Writes `name TAB value`, a line for each document of all files, in their order.
///
/// # Errors
/// Of `out`.
pub fn write(out: &mut impl Write, seed: u64, documents_of_files: &[u64]) -> io::Result<()> {
    let all: u64 = documents_of_files.iter().sum();
    // The mean of a Pareto distribution with the least value m is m a / (a - 1).
    let least = (EXPONENT - 1.0) / EXPONENT / all.max(1) as f64;
    for (file, &documents) in documents_of_files.iter().enumerate() {
        for number in 0..documents {
            let file = file as u32;
            let mut random = Random::new(seed, Purpose::PageRank, file.into(), number);
            let value = least * pow(1.0 - random.fraction(), -1.0 / EXPONENT);
            out.write_all(Name::new(file, number).as_bytes())?;
            writeln!(out, "\t{value:e}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_law() {
        let mut out = Vec::new();
        write(&mut out, 3, &[60_000, 40_000]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<(&str, f64)> = text
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(name, value)| (name, value.parse().unwrap()))
            .collect();
        assert_eq!(lines.len(), 100_000);
        assert_eq!((lines[0].0, lines[60_000].0), ("syn-00000-00000000", "syn-00001-00000000"));
        let above = |x: f64| lines.iter().filter(|(_, value)| *value > x).count() as f64;
        let least = (EXPONENT - 1.0) / EXPONENT / 1e5;
        assert!(above(least * 0.999) == 1e5);
        // Ten times the value, 10^-1.1 of the pages.
        for x in [10.0, 100.0] {
            let ratio = above(least * x) / above(least * x / 10.0);
            assert!((ratio - 0.0794).abs() < 0.015, "{ratio}");
        }
    }
}
