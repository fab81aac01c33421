//! The scale of PageRank beside the other part of the score [`wang`](super::wang). The paper wants
//! both in the same space, and says no more.

#![warn(missing_docs)]

use crate::settings::names;
use libm::log;

/// What stands for PageRank. Each keeps the order of the documents, and is 0 to 1 once it is
/// divided by its greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticScale {
    /// PageRank itself. Of a power law it is next to nothing for nearly all documents.
    #[default]
    Greatest,
    /// Its logarithm over the least above 0.
    Log,
    /// How many documents have less.
    Rank,
}

names!(StaticScale { Greatest = "greatest", Log = "log", Rank = "rank" });

impl StaticScale {
    /// Puts the PageRanks of all documents on this scale. Numbers below 0 belong to none, and stay.
    pub(crate) fn put(self, ranks: &mut [f32]) {
        match self {
            Self::Greatest => {}
            Self::Log => {
                let above = ranks.iter().copied().filter(|&rank| rank > 0.0);
                let least = f64::from(above.fold(f32::INFINITY, f32::min));
                for rank in ranks.iter_mut().filter(|rank| **rank > 0.0) {
                    *rank = log(f64::from(*rank) / least) as f32;
                }
            }
            Self::Rank => {
                let mut sorted: Vec<f32> = ranks.iter().copied().filter(|&r| r >= 0.0).collect();
                sorted.sort_unstable_by(f32::total_cmp);
                for rank in ranks.iter_mut().filter(|rank| **rank >= 0.0) {
                    *rank = sorted.partition_point(|other| other < rank) as f32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: f32 = f32::NEG_INFINITY;

    fn put(scale: &str, ranks: &[f32]) -> Vec<f32> {
        let mut ranks = ranks.to_vec();
        StaticScale::named(scale).unwrap().put(&mut ranks);
        ranks
    }

    #[test]
    fn each_scale_gives_known_values() {
        let ranks = [8.0, 0.0, 2.0, GONE, 2.0, 4.0];
        assert_eq!(put("greatest", &ranks), ranks);
        let two = std::f64::consts::LN_2 as f32;
        assert_eq!(put("log", &ranks), [2.0 * two, 0.0, 0.0, GONE, 0.0, two]);
        assert_eq!(put("rank", &ranks), [4.0, 0.0, 1.0, GONE, 1.0, 3.0]);
        assert_eq!(StaticScale::named("least"), None);
    }

    #[test]
    fn equal_ranks_stay_equal_and_the_order_stays() {
        let ranks: Vec<f32> = (0..500u32).map(|n| (n * 7919 % 97) as f32 * 1e-9).collect();
        for name in StaticScale::ALL.map(StaticScale::name) {
            let scaled = put(name, &ranks);
            for (a, b) in (0..500).zip(1..500) {
                let before = ranks[a].total_cmp(&ranks[b]);
                // The least above 0 may be told from 0 or not.
                let is_low = ranks[a].max(ranks[b]) <= 1e-9;
                assert!(is_low || scaled[a].total_cmp(&scaled[b]) == before, "{name} {a} {b}");
            }
            for same in [0.0, 3.0] {
                let all = put(name, &[same; 4]);
                assert!(all.iter().all(|&scaled| scaled == all[0]), "{name} {same}");
            }
            assert!(put(name, &[]).is_empty());
        }
    }
}
