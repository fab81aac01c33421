//! Makes a log of queries. People ask the same again and again: the r-th most frequent query comes
//! in proportion to r^-s, and most of the different ones come once or twice (Baeza-Yates and
//! others, *The impact of caching on search engines*, SIGIR 2007, find s about 0.83).

use crate::queries::Queries;
use crate::random::{Purpose, Random};
use crate::zipf::{Law, Ranks};

/// A log over a number of different queries.
pub struct QueryLog<'q, 'm> {
    queries: &'q mut Queries<'m>,
    popularity: Ranks,
    seed: u64,
    least: f64,
}

impl<'q, 'm> QueryLog<'q, 'm> {
    /// A log of at most `distinct` different queries, at least one; query r of them, from 1, comes
    /// in proportion to r^-`skew` (0.2 to 3), and by chance at least `least` documents have all its
    /// terms.
    pub fn new(
        queries: &'q mut Queries<'m>,
        seed: u64,
        (distinct, skew): (u32, f64),
        least: f64,
    ) -> Self {
        // One exponent for all, and no rank is favoured beyond it.
        let law = Law::new(skew, 1.0 / skew);
        let popularity = Ranks::new(&law, distinct.max(1), 0, 1.0);
        Self { queries, popularity, seed, least }
    }

    /// What was asked in place `number` of the log; none if few queries have so many documents.
    pub fn line(&mut self, number: u64) -> Option<String> {
        let mut random = Random::new(self.seed, Purpose::Log, number, 0);
        let rank = self.popularity.draw(&mut random);
        self.queries.frequent_query(rank.into(), self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Model, Recipe};
    use std::collections::HashMap;

    fn log(skew: f64, least: f64) -> HashMap<String, usize> {
        let model = Model::new(Recipe::default()).unwrap();
        let mut queries = Queries::new(&model, Format::Tsv, &[500]).unwrap();
        let mut log = QueryLog::new(&mut queries, 5, (1000, skew), least);
        let mut times = HashMap::new();
        (0..4000).for_each(|number| *times.entry(log.line(number).unwrap()).or_default() += 1);
        times
    }

    #[test]
    fn few_queries_are_asked_often() {
        let times = log(0.83, 0.0);
        let mut counts: Vec<usize> = times.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert!((600..1000).contains(&counts.len()), "{}", counts.len());
        // r^-0.83 over 1,000 queries: the first comes in 1 of about 13.5 lines.
        assert!((200..420).contains(&counts[0]), "{}", counts[0]);
        assert!(counts[..50].iter().sum::<usize>() > 1500);
        assert_eq!(times, log(0.83, 0.0));
    }

    #[test]
    fn a_log_of_frequent_queries_leaves_the_others_out() {
        let all = log(0.83, 0.0);
        let frequent = log(0.83, 0.1);
        let same = frequent.keys().filter(|query| all.contains_key(*query)).count();
        // Some were frequent enough as they were drawn.
        assert!((1..frequent.len()).contains(&same), "{same} of {}", frequent.len());
        let model = Model::new(Recipe::default()).unwrap();
        let mut queries = Queries::new(&model, Format::Tsv, &[500]).unwrap();
        assert_eq!(QueryLog::new(&mut queries, 5, (1000, 0.83), 501.0).line(0), None);
    }
}
