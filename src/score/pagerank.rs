//! PageRank (Brin, Page 1998): the arithmetic of one slice of the nodes; `dataflow::pagerank`
//! spreads slices over workers.
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
//! and that of the ranks divided by their sum at most twice that over the sum.
//!
//! Additions happen in one order whatever the slices are: a node's links by their sources, sums
//! over all nodes in blocks of [`BLOCK`]. So the ranks have the same bits for any number of
//! workers.

use super::graph::{BLOCK, Graph};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSettings {
    /// The damping factor d, between 0 and 1.
    pub damping: f64,
    /// The greatest L1 distance of the ranks, of sum 1, to the exact ones.
    pub tolerance: f64,
}

impl RankSettings {
    /// Whether ranks with this sum and a residual of at most `residual` are good enough.
    pub(crate) fn is_met(&self, residual: f64, sum: f64) -> bool {
        2.0 * residual <= self.tolerance * (1.0 - self.damping) * sum
    }

    /// A node whose residual is at most this needs no pushing. If that holds for all nodes the
    /// ranks are good enough, since their sum is at least (1 - d) times the number of nodes.
    pub(crate) fn least_push(&self) -> f64 {
        self.tolerance * (1.0 - self.damping) * (1.0 - self.damping) / 2.0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slice {
    nodes: Range<u32>,
    ranks: Vec<f64>,
    residuals: Vec<f64>,
}

/// Sums over the nodes of a slice, block by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// Of the absolute residuals, before the step.
    pub residuals: Vec<f64>,
    /// Of the ranks, after the step.
    pub ranks: Vec<f64>,
    /// Links of nodes whose residual is to be pushed.
    pub active_links: u64,
}

impl Sums {
    /// Adds the sums of the next slice.
    pub(crate) fn append(&mut self, next: Sums) {
        self.residuals.extend(next.residuals);
        self.ranks.extend(next.ranks);
        self.active_links += next.active_links;
    }
}

/// A push of a residual along a link: target, source, amount.
pub(crate) type Push = (u32, u32, f64);

impl Slice {
    pub(crate) fn new(nodes: Range<u32>, ranks: Vec<f64>) -> Self {
        assert_eq!(nodes.len(), ranks.len(), "a rank for each node");
        Self { nodes, residuals: vec![0.0; ranks.len()], ranks }
    }

    pub(crate) fn start(&self) -> u32 {
        self.nodes.start
    }

    pub(crate) fn into_ranks(self) -> Vec<f64> {
        self.ranks
    }

    /// What each node passes along each of its links, before damping.
    pub(crate) fn contributions(&self, graph: &Graph) -> Vec<f64> {
        let share = |(node, rank): (u32, &f64)| match graph.targets(node).len() {
            0 => 0.0,
            degree => rank / degree as f64,
        };
        self.nodes.clone().zip(&self.ranks).map(share).collect()
    }

    /// The residuals from the contributions of all nodes, by pulling.
    pub(crate) fn pull(&mut self, graph: &Graph, contributions: &[f64], damping: f64) {
        for (at, node) in self.nodes.clone().enumerate() {
            let sources = graph.sources(node).iter();
            let sum: f64 = sources.map(|&source| contributions[source as usize]).sum();
            self.residuals[at] = (1.0 - damping) + damping * sum - self.ranks[at];
        }
    }

    /// A round of power iteration: every node takes its residual.
    pub(crate) fn step(&mut self, graph: &Graph, least: f64) -> Sums {
        let active_links = self.active(least).map(|at| self.degree(graph, at)).sum();
        let residuals = sums(&self.residuals, f64::abs);
        for (rank, residual) in self.ranks.iter_mut().zip(&self.residuals) {
            *rank += residual;
        }
        Sums { residuals, ranks: sums(&self.ranks, |rank| rank), active_links }
    }

    /// Nodes take large residuals and push them along links into `out`; returns how many did.
    pub(crate) fn push(&mut self, graph: &Graph, asked: &RankSettings, out: &mut Vec<Push>) -> u64 {
        let active: Vec<usize> = self.active(asked.least_push()).collect();
        for &at in &active {
            let node = self.nodes.start + at as u32;
            let residual = std::mem::take(&mut self.residuals[at]);
            self.ranks[at] += residual;
            let targets = graph.targets(node);
            let amount = asked.damping * (residual / targets.len() as f64);
            out.extend(targets.iter().map(|&target| (target, node, amount)));
        }
        active.len() as u64
    }

    /// Takes pushes to nodes of this slice, in the order of targets and sources.
    pub(crate) fn take(&mut self, pushed: &mut [Push]) {
        pushed.sort_unstable_by_key(|&(target, source, _)| (target, source));
        for &mut (target, _, amount) in pushed {
            self.residuals[(target - self.nodes.start) as usize] += amount;
        }
    }

    fn active(&self, least: f64) -> impl Iterator<Item = usize> + '_ {
        let residuals = self.residuals.iter().enumerate();
        residuals.filter(move |(_, residual)| residual.abs() > least).map(|(at, _)| at)
    }

    fn degree(&self, graph: &Graph, at: usize) -> u64 {
        graph.targets(self.nodes.start + at as u32).len() as u64
    }
}

fn sums(values: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    values.chunks(BLOCK as usize).map(|block| block.iter().map(|&value| f(value)).sum()).collect()
}

pub fn normalise(ranks: &mut [f64]) {
    let sum: f64 = sums(ranks, |rank| rank).iter().sum();
    for rank in ranks {
        *rank /= sum;
    }
}
