//! Figure 6: what Parallel Merge Find takes for each element, by length and levels of splitters.

use super::Ding09Bench;
use crate::numbers::median;
use crate::rows::print;
use anyhow::ensure;
use millrace::inside::gpu::{Argument, Geometry, Step};
use millrace::inside::papers::{DingTuning, MOST_MERGE_LEVELS, MethodArray, TILE};
use serde_json::json;

/// Each measurement is taken so often; the median counts.
const PASSES: usize = 9;

/// Rising numbers with random gaps, of a mean of `gap` and a half, by a linear congruence.
fn rising(len: u32, gap: u32, mut seed: u64) -> Vec<u32> {
    let mut last = 0;
    let next = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        last += 1 + (((seed >> 33) * u64::from(2 * gap)) >> 31) as u32;
        last
    };
    (0..len).map(next).collect()
}

/// The steps of Parallel Merge Find alone, of `m` numbers at the beginning of the words in `n` that
/// follow them; and the word from which on places come out. They belong to an empty batch.
fn steps((m, n): (u32, u32), merging: DingTuning) -> (Vec<Step<MethodArray>>, u64) {
    let word = |word: u64| Argument::Array(MethodArray::Words, 4 * word);
    let places = u64::from(m) + u64::from(n);
    let step = |level| Step {
        kernel: "ding_merge_find",
        geometry: Geometry { blocks: m.div_ceil(TILE), threads: TILE, shared_bytes: 0 },
        arguments: vec![
            word(0),
            Argument::Number(m),
            word(m.into()),
            Argument::Number(n),
            Argument::Number(level),
            Argument::Number(merging.levels),
            Argument::Number(merging.bits()),
            word(places),
        ],
    };
    ((1..=merging.levels + 1).map(step).collect(), places)
}

impl Ding09Bench<'_> {
    pub(super) fn figure_6(&mut self) -> anyhow::Result<()> {
        let equal = (0..12).map(|i| 5000 << i).chain([16_000_000]).map(|n| ("equal", n, n));
        let longer = (0..7).map(|i| ("200,000 in more", 200_000, 200_000 << i));
        equal.chain(longer).try_for_each(|(lengths, m, n)| self.merge(lengths, (m, n)))
    }

    /// Looks for `m` numbers among `n`, and compares with a search's places.
    fn merge(&mut self, lengths: &str, (m, n): (u32, u32)) -> anyhow::Result<()> {
        // Both over the same range.
        let a = rising(m, 8 * (n / m), 1);
        let b = rising(n, 8, 2);
        let places = a.iter().map(|&docid| b.partition_point(|&head| head < docid) as u32);
        let expected: Vec<u32> = places.collect();
        let batch = self.device.batch(DingTuning::default(), true);
        for levels in 0..=MOST_MERGE_LEVELS {
            let how = DingTuning { levels, splitters: None };
            let (steps, places) = steps((m, n), how);
            self.device.write_words(0, &a)?;
            self.device.write_words(u64::from(m), &b)?;
            let mut ns = Vec::with_capacity(PASSES);
            for _ in 0..PASSES {
                let times = self.device.time_steps(&batch, &steps)?;
                let ms: f64 = times[1..].iter().copied().map(f64::from).sum();
                ns.push(ms * 1e6 / f64::from(m));
            }
            let found = self.device.read_words(places, m as usize)?;
            ensure!(found == expected, "{m} against {n}, {how:?}: wrong places");
            print(json!({
                "row": "ding09-figure6", "lengths": lengths, "a": m, "b": n,
                "merge_levels": levels, "ns_per_element": median(&mut ns),
            }))?;
        }
        Ok(())
    }
}
