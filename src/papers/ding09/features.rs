//! Features of a query that are known before it is answered, and its predicted cost.

use super::model_tree::{Errors, Example, FEATURES, ModelTree};
use super::policy::{PolicyChoice, Processor};
use serde::{Deserialize, Serialize};

/// Postings of a block, as in `huang`.
const BLOCK: u64 = 64;

/// The features of `ding09`, section 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// Distinct terms that are in the collection.
    pub terms: u32,
    pub shortest: u32,
    /// Postings of the second shortest list; of the only one, if there is one.
    pub second: u32,
    pub sum: u64,
    /// Blocks of 64 postings of all lists.
    pub blocks: u64,
}

impl Features {
    /// From the postings of each list; empty lists do not count.
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

    /// A model reads logarithms, since costs are powers of lengths rather than sums.
    pub(crate) fn numbers(&self) -> [f64; FEATURES] {
        let log = |postings: u64| (1.0 + postings as f64).ln();
        let [shortest, second] = [self.shortest, self.second].map(|len| log(u64::from(len)));
        [f64::from(self.terms), shortest, second, log(self.sum)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub features: Features,
    /// Seconds of a thread while all others have queries too, and of a device that has many.
    pub seconds: [f64; 2],
    /// Seconds of a thread and of a device while nothing else is done.
    pub alone: [f64; 2],
}

impl Cost {
    /// The example that a model learns from for a kind of processor: 0 is the CPU.
    pub fn example(&self, kind: usize) -> Example {
        Example { features: self.features.numbers(), took: self.seconds[kind] }
    }

    pub fn known(&self) -> Costs {
        let Self { features, seconds, alone } = *self;
        let alone = [alone[0].min(seconds[0]), alone[1].max(seconds[1])];
        Costs { alone, ..Costs::new(seconds, features.blocks) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// As [`Cost::seconds`].
    pub seconds: [f64; 2],
    /// As [`Cost::alone`].
    pub alone: [f64; 2],
    /// Of a hundred queries 99 take at most this many times the prediction.
    pub tails: [f64; 2],
    pub blocks: u64,
}

impl Costs {
    /// Of a query that costs the same alone and beside others.
    pub(crate) fn new(seconds: [f64; 2], blocks: u64) -> Self {
        Self { seconds, alone: seconds, tails: [1.0; 2], blocks }
    }

    /// Seconds of a thread while this share of all is busy: they share caches and memory.
    pub(crate) fn on_thread_beside(&self, busy: f64) -> f64 {
        self.alone[0] + (self.seconds[0] - self.alone[0]).max(0.0) * busy.min(1.0)
    }

    /// Seconds of a device with `others`, which share the extra time of a query alone.
    pub(crate) fn on_device_beside(&self, others: usize) -> f64 {
        let [_, together] = self.seconds;
        let [_, alone] = self.alone;
        together + (alone - together).max(0.0) / (1 + others) as f64
    }

    pub(crate) fn on(&self, kind: Processor) -> f64 {
        self.seconds[kind as usize]
    }

    pub(crate) fn most(&self, kind: Processor) -> f64 {
        self.on(kind) * self.tails[kind as usize]
    }

    pub(crate) fn better(&self) -> Processor {
        if self.seconds[0] <= self.seconds[1] { Processor::Cpu } else { Processor::Device }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// In seconds of a thread.
    pub cpu: ModelTree,
    pub device: ModelTree,
    /// The mean ratio of the time that a query takes alone to that beside others: thread, device.
    pub alone: [f64; 2],
    /// Errors of the predictions for queries that were held out: thread, device.
    pub errors: [Errors; 2],
    /// The policies that suit such queries, if they were looked for.
    #[serde(default)]
    pub choice: Option<PolicyChoice>,
}

impl CostModel {
    /// Learns from three quarters of the queries and takes the errors from the others. `None` with
    /// fewer than eight queries, or if one took no time.
    pub fn learn(queries: &[Cost]) -> Option<Self> {
        if queries.len() < 8 {
            return None;
        }
        let examples = |kind: usize, held_out: bool| -> Vec<Example> {
            let chosen = queries.iter().enumerate().filter(|(at, _)| (at % 4 == 3) == held_out);
            chosen.map(|(_, cost)| cost.example(kind)).collect()
        };
        let [cpu, device] = [0, 1].map(|kind| ModelTree::learn(&examples(kind, false)));
        let cpu = cpu?;
        let device = device?;
        let errors = [cpu.errors(&examples(0, true)), device.errors(&examples(1, true))];
        let sum = |of: fn(&Cost) -> f64| queries.iter().map(of).sum::<f64>();
        let alone = [
            sum(|cost| cost.known().alone[0]) / sum(|cost| cost.seconds[0]),
            sum(|cost| cost.known().alone[1]) / sum(|cost| cost.seconds[1]),
        ];
        Some(Self { cpu, device, alone, errors, choice: None })
    }

    pub fn costs(&self, features: &Features) -> Costs {
        let numbers = features.numbers();
        let seconds = [self.cpu.predict(&numbers), self.device.predict(&numbers)];
        let alone = [self.alone[0] * seconds[0], self.alone[1] * seconds[1]];
        let tails = self.errors.map(|errors| errors.tail);
        Costs { alone, tails, ..Costs::new(seconds, features.blocks) }
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
        let cost = |i: u32| {
            let features = Features::of([i * 37 % 1000 + 1, i * 911 % 100_000 + 1, i * 7 % 50 + 1]);
            let sum = features.sum as f64;
            let seconds = [1e-6 + 2e-9 * sum, 5e-5 + 1e-11 * sum];
            Cost { features, seconds, alone: [0.5 * seconds[0], 3.0 * seconds[1]] }
        };
        let queries: Vec<Cost> = (1..400u32).map(cost).collect();
        let model = CostModel::learn(&queries).unwrap();
        assert!(model.errors.iter().all(|errors| errors.mean_relative < 0.2), "{:?}", model.errors);
        assert_eq!(model.costs(&Features::of([3, 9, 20])).better(), Processor::Cpu);
        assert_eq!(model.costs(&Features::of([40, 90_000, 900])).better(), Processor::Device);
        assert!((model.alone[0] - 0.5).abs() < 1e-9 && (model.alone[1] - 3.0).abs() < 1e-9);
        // What shares a device with many others takes less of it; what shares a processor with
        // other threads takes longer.
        let costs = queries[9].known();
        assert_eq!(costs.on_device_beside(0), costs.alone[1]);
        assert!(costs.on_device_beside(99) < 1.03 * costs.on(Processor::Device));
        assert_eq!(costs.on_thread_beside(0.0), costs.alone[0]);
        assert_eq!(costs.on_thread_beside(1.0), costs.on(Processor::Cpu));
        assert!(CostModel::learn(&queries[..7]).is_none());
    }
}
