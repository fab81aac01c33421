//! Figures 3, 4 and 5: time by blocks, how many queries have so many, and what the stages take.

use super::{Bench, Planned, print, ways};
use millrace::gpu::huang::DEFAULT_THREADS;
use millrace::gpu::huang::batch::How;
use millrace::gpu::huang::list::BLOCK;
use serde_json::json;
use std::collections::BTreeMap;

/// Blocks of the lists of a query.
fn blocks(planned: &Planned) -> u64 {
    planned.terms.iter().map(|term| u64::from(term.df).div_ceil(BLOCK as u64)).sum()
}

/// The paper says that so much of its queries have fewer blocks than these.
const PAPER_BLOCKS: u64 = 50_000;
const PAPER_SHARE: f64 = 0.81;

/// Fewer queries have no time of their own.
const LEAST_QUERIES: usize = 16;

impl<'a> Bench<'a> {
    /// Queries by the next power of two of their blocks.
    fn by_blocks(&self) -> BTreeMap<u64, Vec<&'a Planned>> {
        let mut bins: BTreeMap<u64, Vec<&Planned>> = BTreeMap::new();
        for planned in self.planned {
            bins.entry(blocks(planned).next_power_of_two()).or_default().push(planned);
        }
        bins
    }

    pub(super) fn figure_3(&mut self) -> anyhow::Result<()> {
        for (upto, queries) in self.by_blocks() {
            if queries.len() < LEAST_QUERIES {
                continue;
            }
            let batches = self.batches(&queries, (10, DEFAULT_THREADS))?;
            for way in ways() {
                let took = self.time(&batches, way)?;
                let cpu_us = self.cpu_us(&queries, way, 10, 1)?;
                print(json!({
                    "row": "huang-figure3", "way": way.name, "k": 10, "threads": DEFAULT_THREADS,
                    "blocks_upto": upto, "queries": queries.len(), "us": took.us,
                    "latency_ms": took.latency_ms, "one_thread_us": cpu_us,
                    "times_one_thread": cpu_us / took.us,
                }))?;
            }
        }
        Ok(())
    }

    pub(super) fn figure_4(&self) -> anyhow::Result<()> {
        let (all, mut upto_here) = (self.planned.len() as f64, 0.0);
        for (upto, queries) in self.by_blocks() {
            let share = queries.len() as f64 / all;
            upto_here += share;
            print(json!({
                "row": "huang-figure4", "blocks_upto": upto, "queries": queries.len(),
                "share": share, "share_upto": upto_here,
            }))?;
        }
        let fewer = self.planned.iter().filter(|planned| blocks(planned) < PAPER_BLOCKS).count();
        print(json!({
            "row": "huang-figure4", "blocks_below": PAPER_BLOCKS, "share": fewer as f64 / all,
            "paper_share": PAPER_SHARE,
        }))
    }

    /// Of 1,000 queries, by cycles of multiprocessors.
    pub(super) fn figure_5(&mut self) -> anyhow::Result<()> {
        let step = (self.planned.len() / 1000).max(1);
        let queries: Vec<&Planned> = self.planned.iter().step_by(step).take(1000).collect();
        let timed = How { timed: true, ..How::default() };
        for threads in [32, 64, 128, 256] {
            let batches = self.batches(&queries, (10, threads))?;
            for way in ways() {
                let mut sums = [0.0; 3];
                for batch in &batches {
                    self.device.launch(batch, &batch.steps(way.kernel, timed))?;
                    self.device.wait()?;
                    for stages in batch.stages(self.device.output()) {
                        let of = [stages.initialization, stages.scoring, stages.merging];
                        sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of as f64);
                    }
                }
                let all: f64 = sums.iter().sum();
                let [initialization, scoring, merging] = sums.map(|sum| sum / all);
                print(json!({
                    "row": "huang-figure5", "way": way.name, "k": 10, "threads": threads,
                    "queries": queries.len(), "initialization": initialization, "scoring": scoring,
                    "merging": merging, "cycles_per_query": all / queries.len() as f64,
                }))?;
            }
        }
        Ok(())
    }
}
