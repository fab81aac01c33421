//! Computes PageRank by differential dataflow's `iterate`: the second method.
//!
//! A rank is a number of surfers, which is how often the node is in a differential collection. In
//! each iteration a node with links sends a share of its surfers along each, rounded down, and new
//! surfers come to every node. Changes of numbers alone travel, and yet a trial found this 50 times
//! slower than power iteration at ten million links, and to need gigabytes: nearly all numbers
//! change in nearly all iterations. It is here to be compared with (`score::pagerank`).
//!
//! - In: a graph. Out: the rank of each node, once the dataflow is complete, and how far rounding
//!   may have moved them.
//! - Memory: the changes of all numbers in all iterations.

use crate::rig::lock;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::{AsCollection, VecCollection};
use millrace::inside::dataflow::workers;
use millrace::inside::score::{Graph, RankSettings, normalise};
use millrace::{Control, JobError};
use std::sync::{Arc, Mutex};
use timely::dataflow::operators::vec::{Filter, ToStream};
use timely::order::Product;

/// Surfers of each node at first; new ones are those times (1 - damping).
const SURFERS: isize = 1_000_000_000;

/// Ranks by whole numbers of surfers.
pub(super) struct Rounded {
    /// The rank of each node; their sum is 1.
    pub(super) ranks: Vec<f64>,
    /// Their L1 distance to the exact ones is at most this.
    pub(super) distance: f64,
}

/// Computes the ranks of a graph on so many workers.
///
/// # Errors
/// When `control` ends the job.
pub(super) fn pagerank_by_iterate(
    graph: &Arc<Graph>,
    asked: RankSettings,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Rounded, JobError> {
    let n = graph.nodes() as usize;
    // Each iteration leaves of the distance that times the damping factor; it is at most n at
    // first, and the sum of all ranks is at least (1 - damping) n.
    let goal = asked.tolerance * (1.0 - asked.damping) / 2.0;
    let iterations = (goal.ln() / asked.damping.ln()).ceil().max(1.0) as u32;
    let found = Arc::new(Mutex::new(vec![0isize; n]));
    let given = graph.clone();
    let result = found.clone();
    workers::run(workers, control, move |worker| {
        let graph = given.clone();
        let found = found.clone();
        let nodes = graph.slice(worker.index(), worker.peers());
        worker.dataflow_named::<u32, _, _>("pagerank by iterate", |scope| {
            let targets = |node| graph.targets(node).iter().map(move |&to| ((node, to), 0, 1));
            let links: Vec<_> = nodes.clone().flat_map(targets).collect();
            let links = links.to_stream(scope).as_collection();
            let nodes = nodes.map(|node| (node, 0, 1)).to_stream(scope).as_collection();
            surfers(nodes, links, asked.damping, iterations).inspect_batch(move |_, surfers| {
                let mut found = lock(&found);
                for (node, _, more) in surfers {
                    found[*node as usize] += more;
                }
            });
        });
    })?;
    let found = lock(&result);
    let mut ranks: Vec<f64> = found.iter().map(|&surfers| surfers as f64).collect();
    let sum: f64 = ranks.iter().sum();
    normalise(&mut ranks);
    // Of each node's surfers fewer than one a link are lost in an iteration, and one to the
    // rounding of the new ones; what is lost is lost again in part in each later iteration.
    let lost = (graph.links() as f64 + n as f64) / (1.0 - asked.damping);
    Ok(Rounded { ranks, distance: asked.tolerance + 2.0 * lost / sum.max(1.0) })
}

type NodeCollection<'scope> = VecCollection<'scope, u32, u32, isize>;
type LinkCollection<'scope> = VecCollection<'scope, u32, (u32, u32), isize>;

fn surfers<'scope>(
    nodes: NodeCollection<'scope>,
    links: LinkCollection<'scope>,
    damping: f64,
    iterations: u32,
) -> NodeCollection<'scope> {
    let degrees = links.clone().map(|(source, _)| source).count();
    let outer = nodes.scope();
    outer.iterative::<u32, _, _>(|inner| {
        let links = links.enter(inner);
        let degrees = degrees.enter(inner);
        let begin = nodes.clone().enter(inner).explode(|node| Some((node, SURFERS)));
        let new = ((1.0 - damping) * SURFERS as f64).round() as isize;
        let new = nodes.enter(inner).explode(move |node| Some((node, new)));
        let step = Product::new(Default::default(), 1);
        let (variable, ranks) = Variable::new_from(begin, step);
        let sent = degrees
            .semijoin(ranks)
            // Of a node's surfers so many go along each of its links.
            .threshold(move |&(_, degree), &surfers| {
                (damping * (surfers as f64 / degree as f64)).floor() as isize
            })
            .map(|(node, _)| node);
        let came = links.semijoin(sent).map(|(_, target)| target);
        let next = came.concat(new).consolidate();
        let next = next.inner.filter(move |(_, time, _)| time.inner < iterations).as_collection();
        variable.set(next.clone());
        next.leave(outer)
    })
}
