//! What is known of a query before it is answered, and what it will cost.

use super::model_tree::{Errors, Example, FEATURES, ModelTree};
use super::queues::Processor;
use serde::{Deserialize, Serialize};

/// Postings of a block, where blocks are counted as in `huang`.
const BLOCK: u64 = 64;

/// The features of `ding09`, section 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// Distinct terms that are in the collection.
    pub terms: u32,
    /// Postings of the shortest list.
    pub shortest: u32,
    /// Postings of the second shortest list; of the shortest, where there is one.
    pub second: u32,
    /// Postings of all lists.
    pub sum: u64,
    /// Blocks of 64 postings of all lists.
    pub blocks: u64,
}

impl Features {
    /// Those of a query whose lists have so many postings. Terms without any are left out.
    pub fn of(dfs: impl IntoIterator<Item = u32>) -> Self {
        let mut features = Self { shortest: u32::MAX, second: u32::MAX, ..Self::default() };
        for df in dfs.into_iter().filter(|df| *df > 0) {
            features.terms += 1;
            features.sum += u64::from(df);
            features.blocks += u64::from(df).div_ceil(BLOCK);
            features.second = features.second.min(df.max(features.shortest));
            features.shortest = features.shortest.min(df);
        }
        if features.terms == 0 {
            return Self::default();
        }
        if features.terms == 1 {
            features.second = features.shortest;
        }
        features
    }

    /// As a model reads them: costs are powers of lengths rather than sums of them.
    pub fn numbers(&self) -> [f64; FEATURES] {
        let log = |postings: u64| (1.0 + postings as f64).ln();
        let [shortest, second] = [self.shortest, self.second].map(|len| log(u64::from(len)));
        [f64::from(self.terms), shortest, second, log(self.sum)]
    }
}

/// What a query costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Seconds of a thread of the CPU, and of a device.
    pub seconds: [f64; 2],
    /// Blocks of its lists.
    pub blocks: u64,
}

impl Costs {
    /// Seconds of a processor.
    pub fn on(&self, kind: Processor) -> f64 {
        self.seconds[kind as usize]
    }

    /// The kind that takes less time.
    pub fn better(&self) -> Processor {
        if self.seconds[0] <= self.seconds[1] { Processor::Cpu } else { Processor::Device }
    }
}

/// What queries cost on a machine, learned from some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// Of a thread of the CPU, in seconds.
    pub cpu: ModelTree,
    /// Of a device, in seconds.
    pub device: ModelTree,
    /// How far the predictions of queries were that nothing was learned from, as above.
    pub errors: [Errors; 2],
}

impl CostModel {
    /// Learns from queries and what they took on the CPU and on a device, three quarters of them, and looks at the others
    /// for the errors. `None` with fewer than eight queries, or one that took no time.
    pub fn learn(queries: &[(Features, [f64; 2])]) -> Option<Self> {
        if queries.len() < 8 {
            return None;
        }
        let examples = |kind: usize, held_out: bool| -> Vec<Example> {
            let chosen = queries.iter().enumerate().filter(|(at, _)| (at % 4 == 3) == held_out);
            chosen
                .map(|(_, (features, took))| Example {
                    features: features.numbers(),
                    took: took[kind],
                })
                .collect()
        };
        let [cpu, device] = [0, 1].map(|kind| ModelTree::learn(&examples(kind, false)));
        let (cpu, device) = (cpu?, device?);
        let errors = [cpu.errors(&examples(0, true)), device.errors(&examples(1, true))];
        Some(Self { cpu, device, errors })
    }

    /// What a query will cost, about.
    pub fn costs(&self, features: &Features) -> Costs {
        let numbers = features.numbers();
        let seconds = [self.cpu.predict(&numbers), self.device.predict(&numbers)];
        Costs { seconds, blocks: features.blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_shortest_are_found() {
        let features = Features::of([70, 0, 5, 900, 64]);
        let expected =
            Features { terms: 4, shortest: 5, second: 64, sum: 1039, blocks: 2 + 1 + 15 + 1 };
        assert_eq!(features, expected);
        assert_eq!(Features::of([0]), Features::default());
        let one = Features::of([9]);
        assert_eq!((one.shortest, one.second), (9, 9));
    }

    #[test]
    fn a_model_tells_long_queries_from_short_ones() {
        let queries: Vec<(Features, [f64; 2])> = (1..400u32)
            .map(|i| {
                let features =
                    Features::of([i * 37 % 1000 + 1, i * 911 % 100_000 + 1, i * 7 % 50 + 1]);
                let sum = features.sum as f64;
                (features, [1e-6 + 2e-9 * sum, 5e-5 + 1e-11 * sum])
            })
            .collect();
        let model = CostModel::learn(&queries).unwrap();
        assert!(model.errors.iter().all(|errors| errors.mean_relative < 0.2), "{:?}", model.errors);
        assert_eq!(model.costs(&Features::of([3, 9, 20])).better(), Processor::Cpu);
        assert_eq!(model.costs(&Features::of([40, 90_000, 900])).better(), Processor::Device);
        assert!(CostModel::learn(&queries[..7]).is_none());
    }
}
