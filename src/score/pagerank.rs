//! How much is a document worth by the links that lead to it? PageRank (Brin, Page 1998), the
//! arithmetic of one slice of the nodes; `dataflow::pagerank` spreads slices over workers.
//!
//! The ranks x solve
//!
//! ```text
//! x(v) = (1 - d) + d * sum over links u -> v of x(u) / degree(u)
//! ```
//!
//! and are divided by their sum at the end. A node without links passes nothing on. That gives the same
//! ranks as giving its share to all nodes alike, since both scale all ranks by one factor (with uniform
//! teleport; Del Corso, Gullì, Romani 2005), and needs no sum over all nodes in each round. It also leaves
//! what is far from a change as it was, when documents come and go.
//!
//! With r = the right side - x, the distance of x to the solution is at most |r| / (1 - d) in L1, and that of
//! the ranks divided by their sum at most twice that over the sum.
//!
//! Additions happen in one order whatever the slices are: a node's links by their sources, sums over
//! all nodes in blocks of [`BLOCK`]. So the ranks have the same bits for any number of workers.

use std::ops::Range;

/// Nodes that are summed up together; slices end at multiples of it.
pub const BLOCK: u32 = 1024;

/// Links between nodes, by source and by target.
///
/// Memory: 8 bytes a link and 16 bytes a node.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    out_ends: Vec<u64>,
    targets: Vec<u32>,
    in_ends: Vec<u64>,
    sources: Vec<u32>,
}

impl Graph {
    /// Makes the graph of `nodes` nodes and links (source, target). A link to itself, and one that is
    /// there twice, do not count.
    ///
    /// # Panics
    /// When a link names a node that is not there.
    pub fn new(nodes: u32, mut links: Vec<(u32, u32)>) -> Self {
        links.sort_unstable();
        links.dedup();
        links.retain(|&(source, target)| source != target);
        let mut out_ends = vec![0u64; nodes as usize];
        let mut in_ends = vec![0u64; nodes as usize];
        for &(source, target) in &links {
            out_ends[source as usize] += 1;
            in_ends[target as usize] += 1;
        }
        let mut starts = Vec::with_capacity(nodes as usize);
        let (mut out_end, mut in_end) = (0, 0);
        for (out, into) in out_ends.iter_mut().zip(&mut in_ends) {
            starts.push(in_end);
            out_end += *out;
            in_end += *into;
            (*out, *into) = (out_end, in_end);
        }
        let mut sources = vec![0; links.len()];
        for &(source, target) in &links {
            let place = &mut starts[target as usize];
            sources[*place as usize] = source;
            *place += 1;
        }
        let targets = links.into_iter().map(|(_, target)| target).collect();
        Self { out_ends, targets, in_ends, sources }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.out_ends.len() as u32
    }

    /// The number of links.
    pub fn links(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The targets of a node's links, ascending.
    pub fn targets(&self, node: u32) -> &[u32] {
        row(&self.out_ends, &self.targets, node)
    }

    /// The nodes with a link to this one, ascending.
    pub fn sources(&self, node: u32) -> &[u32] {
        row(&self.in_ends, &self.sources, node)
    }

    /// The nodes of slice number `slice` of `slices`: whole blocks.
    pub fn slice(&self, slice: usize, slices: usize) -> Range<u32> {
        let blocks = self.nodes().div_ceil(BLOCK) as usize;
        let border = |slice: usize| {
            ((blocks * slice / slices) as u64 * u64::from(BLOCK)).min(u64::from(self.nodes()))
                as u32
        };
        border(slice)..border(slice + 1)
    }
}

fn row<'a>(ends: &[u64], values: &'a [u32], node: u32) -> &'a [u32] {
    let start = node.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &values[start as usize..ends[node as usize] as usize]
}

/// What is asked of the ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSettings {
    /// The damping factor d, between 0 and 1.
    pub damping: f64,
    /// The L1 distance of the ranks, of a sum of 1, to the exact ones, at most.
    pub tolerance: f64,
}

impl RankSettings {
    /// Whether ranks with the sum `sum` are good enough when their `residual` is at most this.
    pub fn is_met(&self, residual: f64, sum: f64) -> bool {
        2.0 * residual <= self.tolerance * (1.0 - self.damping) * sum
    }

    /// A node whose residual is at most this needs no pushing. If that holds for all nodes the
    /// ranks are good enough, since their sum is at least (1 - d) times the number of nodes.
    pub fn least_push(&self) -> f64 {
        self.tolerance * (1.0 - self.damping) * (1.0 - self.damping) / 2.0
    }
}

/// The ranks of a slice of the nodes.
#[derive(Clone, Debug)]
pub struct Slice {
    nodes: Range<u32>,
    ranks: Vec<f64>,
    residuals: Vec<f64>,
}

/// Sums over the nodes of a slice, block by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of the absolute residuals, before the step.
    pub residuals: Vec<f64>,
    /// Of the ranks, after the step.
    pub ranks: Vec<f64>,
    /// Links of nodes whose residual has to be pushed.
    pub active_links: u64,
}

impl Sums {
    /// Adds the sums of the slice behind.
    pub fn append(&mut self, next: Sums) {
        self.residuals.extend(next.residuals);
        self.ranks.extend(next.ranks);
        self.active_links += next.active_links;
    }
}

/// What a pushed residual gives to a target of a link: target, source, amount.
pub type Push = (u32, u32, f64);

impl Slice {
    /// Begins with `ranks`, those of `nodes`.
    pub fn new(nodes: Range<u32>, ranks: Vec<f64>) -> Self {
        assert_eq!(nodes.len(), ranks.len(), "a rank for each node");
        Self { nodes, residuals: vec![0.0; ranks.len()], ranks }
    }

    /// The first node.
    pub fn start(&self) -> u32 {
        self.nodes.start
    }

    /// The ranks.
    pub fn into_ranks(self) -> Vec<f64> {
        self.ranks
    }

    /// What each node gives to the target of each of its links, before damping.
    pub fn contributions(&self, graph: &Graph) -> Vec<f64> {
        let share = |(node, rank): (u32, &f64)| match graph.targets(node).len() {
            0 => 0.0,
            degree => rank / degree as f64,
        };
        self.nodes.clone().zip(&self.ranks).map(share).collect()
    }

    /// Computes the residuals from the contributions of all nodes, by pulling.
    pub fn pull(&mut self, graph: &Graph, contributions: &[f64], damping: f64) {
        for (at, node) in self.nodes.clone().enumerate() {
            let sources = graph.sources(node).iter();
            let sum: f64 = sources.map(|&source| contributions[source as usize]).sum();
            self.residuals[at] = (1.0 - damping) + damping * sum - self.ranks[at];
        }
    }

    /// A round of power iteration: every node takes its residual.
    pub fn step(&mut self, graph: &Graph, least: f64) -> Sums {
        let active_links = self.active(least).map(|at| self.degree(graph, at)).sum();
        let residuals = sums(&self.residuals, f64::abs);
        for (rank, residual) in self.ranks.iter_mut().zip(&self.residuals) {
            *rank += residual;
        }
        Sums { residuals, ranks: sums(&self.ranks, |rank| rank), active_links }
    }

    /// Nodes take the residuals that have to be pushed, and give them on along their links. `out`
    /// gets what the targets get.
    pub fn push(&mut self, graph: &Graph, asked: &RankSettings, out: &mut Vec<Push>) -> u64 {
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

    /// Takes what was pushed to nodes of this slice, in the order of targets and sources.
    pub fn take(&mut self, pushed: &mut [Push]) {
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

/// Sums of `f` over blocks.
fn sums(values: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    values.chunks(BLOCK as usize).map(|block| block.iter().map(|&value| f(value)).sum()).collect()
}

/// Divides ranks by their sum.
pub fn normalise(ranks: &mut [f64]) {
    let sum: f64 = sums(ranks, |rank| rank).iter().sum();
    for rank in ranks {
        *rank /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_go_both_ways() {
        let graph = Graph::new(4, vec![(2, 0), (0, 1), (2, 1), (2, 2), (0, 1), (3, 1)]);
        assert_eq!((graph.nodes(), graph.links()), (4, 4));
        let targets: Vec<_> = (0..4).map(|node| graph.targets(node).to_vec()).collect();
        assert_eq!(targets, [vec![1], vec![], vec![0, 1], vec![1]]);
        let sources: Vec<_> = (0..4).map(|node| graph.sources(node).to_vec()).collect();
        assert_eq!(sources, [vec![2], vec![0, 2, 3], vec![], vec![]]);
    }

    #[test]
    fn slices_are_whole_blocks_and_cover_all() {
        for nodes in [0, 1, BLOCK, BLOCK + 1, 10 * BLOCK - 1] {
            let graph = Graph::new(nodes, Vec::new());
            for slices in 1..5 {
                let mut next = 0;
                for slice in 0..slices {
                    let range = graph.slice(slice, slices);
                    assert!(
                        range.start == next
                            && (range.end.is_multiple_of(BLOCK) || range.end == nodes)
                    );
                    next = range.end;
                }
                assert_eq!(next, nodes);
            }
        }
    }
}
