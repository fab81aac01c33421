//! PageRank (Brin, Page 1998): the arithmetic of one slice of the nodes; a rebuild spreads slices
//! over threads (`rebuild::rank`).
//!
//! The ranks x solve
//!
//! ```text
//! x(v) = (1 - d) + d * sum over links u -> v of x(u) / degree(u)
//! ```
//!
//! and are divided by their sum at the end. A node without links passes nothing on, which gives the
//! same ranks as spreading its share over all nodes, since both scale all ranks by one factor (with
//! uniform teleport; Del Corso, Gullì, Romani 2005), needs no sum over all nodes in each round, and
//! leaves what is far from a change as it was.
//!
//! With r = the right side - x, the distance of x to the solution is at most |r| / (1 - d) in L1,
//! and that of the ranks divided by their sum at most twice that over the sum. A round makes of the
//! residual that times d, at most.
//!
//! Additions happen in one order whatever the slices are: a node's links by their sources, sums
//! over all nodes in blocks of [`BLOCK`]. So the ranks have the same bits for any number of
//! threads.

#[cfg(test)]
mod tests;

use super::graph::{BLOCK, Graph};
use crate::crew::Crew;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RankSettings {
    /// The damping factor d, between 0 and 1.
    pub damping: f64,
    /// The greatest L1 distance of the ranks, of sum 1, to the exact ones.
    pub tolerance: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ranks {
    /// The rank of each node; their sum is 1.
    pub ranks: Vec<f64>,
    /// The ranks to begin with the next time; their sum is about the number of nodes.
    pub raw: Vec<f64>,
    pub rounds: u32,
}

/// Computes the ranks of a graph on this many threads. `first` are ranks to begin with, as
/// [`Ranks::raw`] has them; 1 is good where nothing is known.
///
/// Memory: 24 bytes a node beside the graph.
///
/// # Errors
/// What `go_on` says, which is asked before each round.
pub(crate) fn pagerank<E>(
    graph: &Graph,
    asked: RankSettings,
    first: Vec<f64>,
    threads: usize,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<Ranks, E> {
    assert_eq!(first.len(), graph.nodes() as usize, "a rank for each node");
    let slices: Vec<_> = (0..threads).map(|slice| graph.slice(slice, threads)).collect();
    let mut crew = Crew::new("ranks");
    let mut raw = first;
    let mut shares = vec![0.0; graph.nodes() as usize];
    let mut rounds = 0;
    loop {
        go_on()?;
        let given = |(nodes, shares): (&Range<u32>, _)| {
            let nodes = nodes.clone();
            let raw = &raw;
            move || give(graph, nodes, raw, shares)
        };
        crew.all(slices.iter().zip(cut(&slices, &mut shares)).map(given).collect());
        let taken = |(nodes, raw): (&Range<u32>, _)| {
            let nodes = nodes.clone();
            let shares = &shares;
            move || take(graph, nodes, raw, shares, asked.damping)
        };
        let sums =
            crew.all(slices.iter().zip(cut(&slices, &mut raw)).map(taken).collect()).concat();
        rounds += 1;
        let residual: f64 = sums.iter().map(|(residual, _)| residual).sum();
        let sum: f64 = sums.iter().map(|(_, ranks)| ranks).sum();
        if 2.0 * asked.damping * residual <= asked.tolerance * (1.0 - asked.damping) * sum {
            break;
        }
    }
    let mut ranks = raw.clone();
    normalise(&mut ranks);
    Ok(Ranks { ranks, raw, rounds })
}

/// The parts of `values` that are of slices of the nodes.
fn cut<'a>(slices: &[Range<u32>], values: &'a mut [f64]) -> Vec<&'a mut [f64]> {
    let mut rest = values;
    let part = |nodes: &Range<u32>| rest.split_off_mut(..nodes.len());
    slices.iter().map(part).collect::<Option<_>>().expect("each node has a value")
}

/// What nodes give to the target of each of their links, before damping.
fn give(graph: &Graph, nodes: Range<u32>, raw: &[f64], shares: &mut [f64]) {
    for (node, share) in nodes.zip(shares) {
        *share = match graph.targets(node).len() {
            0 => 0.0,
            degree => raw[node as usize] / degree as f64,
        };
    }
}

/// Lets nodes take what others give them. Returns, for each block of them, the sums of what has
/// changed and of what they have now.
fn take(
    graph: &Graph,
    nodes: Range<u32>,
    raw: &mut [f64],
    shares: &[f64],
    damping: f64,
) -> Vec<(f64, f64)> {
    let mut next = nodes.start;
    let block = |ranks: &mut [f64]| {
        let mut residuals = 0.0;
        let mut sum = 0.0;
        for (node, rank) in (next..).zip(ranks.iter_mut()) {
            let sources = graph.sources(node).iter();
            let taken: f64 = sources.map(|&source| shares[source as usize]).sum();
            let residual = (1.0 - damping) + damping * taken - *rank;
            *rank += residual;
            residuals += residual.abs();
            sum += *rank;
        }
        next += BLOCK;
        (residuals, sum)
    };
    raw.chunks_mut(BLOCK as usize).map(block).collect()
}

pub(crate) fn normalise(ranks: &mut [f64]) {
    let blocks = ranks.chunks(BLOCK as usize).map(|block| block.iter().sum::<f64>());
    let sum: f64 = blocks.sum();
    for rank in ranks {
        *rank /= sum;
    }
}
