//! `experiments pagerank`: what PageRank costs by differential dataflow's `iterate`, beside the
//! power iteration of a rebuild (`score/pagerank.rs`).
//!
//! Both get one graph in memory, with sources at random and targets by a power law. Expected:
//! `iterate` takes tens of times longer and gigabytes, since nearly all numbers change in nearly
//! all iterations.

mod iterate;

use crate::args::workers_or_cores;
use crate::numbers::uniform;
use anyhow::ensure;
use iterate::pagerank_by_iterate;
use millrace::Control;
use millrace::inside::score::{Graph, RankSettings, pagerank};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Nodes of the graph.
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    nodes: u32,
    /// Links of the graph.
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    links: usize,
    /// Worker threads (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Greatest L1 distance of all ranks, which add up to 1, from the exact ones.
    #[arg(long, default_value_t = 1e-6, value_name = "F")]
    tolerance: f64,
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.nodes > 0, "--nodes is above 0");
    let workers = workers_or_cores(args.workers);
    let links = links(1, args.nodes, args.links);
    let graph = Arc::new(Graph::new(args.nodes, vec![links], workers));
    let asked = RankSettings { damping: 0.85, tolerance: args.tolerance };
    let control = Arc::new(Control::default());
    let row = |method: &str, began: Instant, distance: Option<f64>| {
        crate::rows::print(json!({
            "method": method, "nodes": graph.nodes(), "links": graph.links(), "workers": workers,
            "tolerance": args.tolerance, "seconds": began.elapsed().as_secs_f64(), "distance": distance,
        }))
    };
    let began = Instant::now();
    let first = vec![1.0; args.nodes as usize];
    let power = pagerank(&graph, asked, first, workers, || anyhow::Ok(()))?;
    row("power", began, None)?;
    let began = Instant::now();
    let rounded = pagerank_by_iterate(&graph, asked, workers, &control)?;
    let apart = distance(&power.ranks, &rounded.ranks);
    row("differential", began, Some(apart))?;
    let most = args.tolerance + rounded.distance;
    ensure!(apart <= most, "the ranks are {apart} apart, which is beyond {most}");
    Ok(())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Links that favour some targets, among so many nodes.
fn links(seed: u64, nodes: u32, count: usize) -> Vec<(u32, u32)> {
    let mut next = uniform(seed);
    let mut node = |power| (next().powi(power) * f64::from(nodes)) as u32;
    (0..count).map(|_| (node(1), node(3))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn twin_differential_iterate(seed in 1u64..u64::MAX, nodes in 1u32..200, workers in 1usize..=2) {
            let graph = Arc::new(Graph::new(nodes, vec![links(seed, nodes, nodes as usize * 3)], 1));
            let control = Arc::new(Control::default());
            let exact = RankSettings { damping: 0.85, tolerance: 1e-9 };
            let first = vec![1.0; nodes as usize];
            let found = pagerank(&graph, exact, first, workers, || anyhow::Ok(())).unwrap();
            let asked = RankSettings { damping: 0.85, tolerance: 1e-6 };
            let rounded = pagerank_by_iterate(&graph, asked, workers, &control).unwrap();
            let apart = distance(&found.ranks, &rounded.ranks);
            let most = rounded.distance;
            prop_assert!(most <= 1e-5 && apart <= most + 1e-9, "{apart} is beyond {most}");
        }
    }
}
