//! Figure 6: what does Parallel Merge Find take for each element, by length and levels of splitters?

use super::super::print;
use super::Bench;
use crate::bench::median;
use anyhow::ensure;
use millrace::gpu::ding09::MOST_MERGE_LEVELS;
use millrace::gpu::ding09::steps::merging;
use millrace::gpu::ding09::twin::merge_find;
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

impl Bench<'_> {
    pub(super) fn figure_6(&mut self) -> anyhow::Result<()> {
        let equal = (0..12).map(|i| 5000 << i).chain([16_000_000]).map(|n| (n, n));
        let longer = (0..7).map(|i| (200_000, 200_000 << i));
        for (m, n) in equal.chain(longer) {
            // Both over the same range.
            let (a, b) = (rising(m, 8 * (n / m), 1), rising(n, 8, 2));
            let expected = merge_find(&a, &b);
            for levels in 0..=MOST_MERGE_LEVELS {
                let (steps, places) = merging((m, n), levels);
                self.device.write_words(0, &a)?;
                self.device.write_words(u64::from(m), &b)?;
                let batch = self.device.batch(true);
                let mut ns = Vec::with_capacity(PASSES);
                for _ in 0..PASSES {
                    let times = self.device.time_steps(&batch, &steps)?;
                    let ms: f64 = times.into_iter().map(f64::from).sum();
                    ns.push(ms * 1e6 / f64::from(m));
                }
                let found = self.device.read_words(places, m as usize)?;
                ensure!(found == expected, "{m} against {n}, {levels} levels: wrong places");
                print(json!({
                    "row": "ding09-figure6", "a": m, "b": n, "merge_levels": levels,
                    "ns_per_element": median(&mut ns),
                }))?;
            }
        }
        Ok(())
    }
}
