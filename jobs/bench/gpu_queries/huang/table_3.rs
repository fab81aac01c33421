//! Table 3: batches are dealt to one device, and to all that there are.

use super::{Bench, Way, batches, print, ways};
use millrace::gpu::huang::BATCH;
use millrace::gpu::huang::batch::HuangBatch;
use millrace::gpu::huang::device::HuangDevice;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The paper's table 3 in milliseconds, by threads: AND, OR, WAND and BMW on one device and on four.
const TABLE_3: [(u32, [[f64; 2]; 4]); 3] = [
    (64, [[5.81, 1.51], [30.32, 5.67], [7.45, 1.75], [4.47, 0.94]]),
    (128, [[6.08, 1.38], [29.53, 5.38], [7.86, 1.63], [4.47, 0.93]]),
    (256, [[7.56, 1.65], [34.42, 6.50], [8.97, 1.98], [6.51, 1.12]]),
];

/// Every device has so many batches of a pass if all of them work. One alone has batches of the same size: they take as long as
/// their longest queries, so that smaller ones would hardly take less.
const BATCHES_OF_DEVICE: usize = 2;

/// Passes that count.
const PASSES: usize = 2;

/// Seconds of a pass, in which devices take the next batch when they have ended one. Each has all batches, since lists
/// lie elsewhere on each.
fn pass(
    devices: &mut [&mut HuangDevice],
    batches: &[Vec<HuangBatch>],
    way: Way,
) -> anyhow::Result<f64> {
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let next = &next;
    std::thread::scope(|scope| {
        let work = |device: &mut HuangDevice, batches: &[HuangBatch]| -> anyhow::Result<()> {
            while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                std::hint::black_box(device.answer(batch, way.kernel, way.how)?);
            }
            Ok(())
        };
        let each = devices.iter_mut().zip(batches);
        let threads: Vec<_> =
            each.map(|(device, batches)| scope.spawn(move || work(device, batches))).collect();
        let done = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
        done.collect::<anyhow::Result<()>>()
    })?;
    Ok(start.elapsed().as_secs_f64())
}

impl Bench<'_> {
    pub(super) fn table_3(&mut self) -> anyhow::Result<()> {
        let all = self.all();
        let others = 1..self.source.devices.len();
        let mut others = others.map(|n| self.source.open(n)).collect::<Result<Vec<_>, _>>()?;
        let mut counts = vec![1];
        while counts.last().is_some_and(|last| 2 * last <= others.len() + 1) {
            counts.extend(counts.last().map(|last| 2 * last));
        }
        let most = counts.iter().copied().max().unwrap_or(1);
        let size = all.len().div_ceil(BATCHES_OF_DEVICE * most);
        let size = size.clamp(1, self.source.args.batch_or(BATCH));
        for (threads, paper) in TABLE_3 {
            let mut one_us = [0.0; 4];
            for &count in &counts {
                let mut devices: Vec<&mut HuangDevice> =
                    std::iter::once(&mut self.device).chain(&mut others).take(count).collect();
                let made = devices.iter_mut().map(|on| batches(on, &all, (10, threads), size));
                let batches = made.collect::<anyhow::Result<Vec<_>>>()?;
                for (n, way) in ways().into_iter().enumerate() {
                    pass(&mut devices, &batches, way)?;
                    let mut seconds = 0.0;
                    for _ in 0..PASSES {
                        seconds += pass(&mut devices, &batches, way)?;
                    }
                    let us = 1e6 * seconds / (PASSES * all.len()) as f64;
                    if count == 1 {
                        one_us[n] = us;
                    }
                    print(json!({
                        "row": "huang-table3", "way": way.name, "k": 10, "threads": threads,
                        "gpus": count, "queries": all.len(), "batch": size, "us": us,
                        "times_one": one_us[n] / us, "paper_ms_1_gpu": paper[n][0],
                        "paper_ms_4_gpus": paper[n][1],
                    }))?;
                }
            }
        }
        Ok(())
    }
}
