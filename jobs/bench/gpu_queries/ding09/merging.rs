//! Figure 6: what does Parallel Merge Find take for each element, by length, levels of splitters, and splitters?

use super::super::print;
use super::{Bench, SPLITTERS};
use crate::bench::median;
use anyhow::ensure;
use millrace::gpu::ding09::steps::merging;
use millrace::gpu::ding09::twin::merge_find;
use millrace::gpu::ding09::{MOST_MERGE_LEVELS, Merging};
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
        let mut equal = (0..12).map(|i| 5000 << i).chain([16_000_000]).map(|n| (n, n));
        let mut longer = (0..7).map(|i| (200_000, 200_000 << i));
        let splitters = self.args.splitters;
        let mergings = || (0..=MOST_MERGE_LEVELS).map(|levels| Merging { levels, splitters });
        equal
            .try_for_each(|lengths| self.merge(("ding09-figure6", "equal"), lengths, mergings()))?;
        longer.try_for_each(|lengths| {
            self.merge(("ding09-figure6", "200,000 in more"), lengths, mergings())
        })
    }

    /// By splitters of a level, for each number of levels that has some.
    pub(super) fn splitters(&mut self) -> anyhow::Result<()> {
        let of = |levels| SPLITTERS.map(|splitters| Merging { levels, splitters });
        let mergings: Vec<Merging> = (1..=MOST_MERGE_LEVELS).flat_map(of).collect();
        for lengths in [(5000, 5000), (1_000_000, 1_000_000), (200_000, 12_800_000)] {
            self.merge(("ding09-splitters", "several"), lengths, mergings.iter().copied())?;
        }
        Ok(())
    }

    /// Looks for `m` numbers among `n`, and compares with the twin's places.
    fn merge(
        &mut self,
        (row, lengths): (&str, &str),
        (m, n): (u32, u32),
        mergings: impl Iterator<Item = Merging>,
    ) -> anyhow::Result<()> {
        // Both over the same range.
        let (a, b) = (rising(m, 8 * (n / m), 1), rising(n, 8, 2));
        let expected = merge_find(&a, &b);
        for how in mergings {
            let (steps, places) = merging((m, n), how);
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
            ensure!(found == expected, "{m} against {n}, {how:?}: wrong places");
            print(json!({
                "row": row, "lengths": lengths, "a": m, "b": n, "merge_levels": how.levels, "splitters": how.splitters,
                "ns_per_element": median(&mut ns),
            }))?;
        }
        Ok(())
    }
}
