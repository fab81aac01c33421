//! Computes PageRank: power iteration, and pushing of residuals where few nodes are not yet right.
//!
//! ```text
//! +--> (exchange by slice) -> rank --+
//! +------- feedback, round + 1 ------+
//! ```
//!
//! A worker has a slice of the nodes ([`score::pagerank`](crate::score::pagerank)), and the time is
//! the round. In a round of power iteration every worker sends what its nodes give to their links
//! to all others, as one shared array, and each node pulls. When the links of the nodes whose
//! residual is too large are fewer than a `FEW`th of all, those nodes push instead, and only they
//! work. What a few nodes push may reach all within some rounds: when more links than that were
//! pushed along in a round, the next one pulls again. All workers see the same sums and decide
//! alike.
//!
//! - In: a graph and the ranks to begin with. Out: ranks with the same bits for any number of
//!   workers.
//! - Memory: 24 bytes a node beside the graph, and 8 for each worker; 16 bytes for each link that
//!   is pushed along in a round, a `FEW`th of the links at first.
//! - Work per activation: a round of one slice.

use crate::crew::lock;
use crate::dataflow::control::{Control, Guard, JobError};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dataflow::workers;
use crate::score::graph::Graph;
use crate::score::pagerank::{Push, RankSettings, Slice, Sums, normalise};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{ConnectLoop, Feedback};
use timely::worker::Worker;

/// Pushing costs about so many times as much as pulling, a link.
const FEW: u64 = 8;

/// What a worker tells another one after a round.
#[derive(Clone)]
struct Message {
    to: usize,
    from: usize,
    what: What,
}

#[derive(Clone)]
enum What {
    /// What nodes give to their links, from the first node of the sender's slice; the sums of the
    /// step before, of which there is none at first.
    Contributions(u32, Arc<Vec<f64>>, Option<Sums>),
    /// What was pushed to the receiver's nodes, how many of the sender's nodes pushed, and along
    /// how many links.
    Pushed(Vec<Push>, u64, u64),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// The rank of each node; their sum is 1.
    pub ranks: Vec<f64>,
    /// The ranks to begin with the next time; their sum is about the number of nodes.
    pub raw: Vec<f64>,
    pub power_rounds: u32,
    pub push_rounds: u32,
    /// Nodes that pushed, in all rounds.
    pub pushes: u64,
}

/// Computes the ranks of a graph on so many workers. `first` are ranks to begin with, as
/// [`Ranks::raw`] has them; 1 is good where nothing is known.
///
/// # Errors
/// When `control` ends the job.
pub fn pagerank(
    graph: &Arc<Graph>,
    asked: RankSettings,
    first: Vec<f64>,
    workers: usize,
    control: &Arc<Control>,
) -> Result<Ranks, JobError> {
    assert_eq!(first.len(), graph.nodes() as usize, "a rank for each node");
    let found = Arc::new(Mutex::new(Ranks { raw: first.clone(), ..Ranks::default() }));
    let (graph, shared, result) = (graph.clone(), control.clone(), found.clone());
    let first = Arc::new(first);
    workers::run(workers, control, move |worker| {
        let nodes = graph.slice(worker.index(), worker.peers());
        let ranks = first[nodes.start as usize..nodes.end as usize].to_vec();
        let slice = Slice::new(nodes, ranks);
        let ranker = Ranker::new(graph.clone(), asked, slice, worker.index(), worker.peers());
        rank(worker, ranker, &shared, &found);
    })?;
    let mut found = std::mem::take(&mut *lock(&result));
    found.ranks = found.raw.clone();
    normalise(&mut found.ranks);
    Ok(found)
}

/// Joins the operator to itself.
fn rank(worker: &mut Worker, ranker: Ranker, control: &Arc<Control>, found: &Arc<Mutex<Ranks>>) {
    let found = found.clone();
    let guard = Guard::new(control, "Rank", worker.index());
    worker.dataflow_named::<u64, _, _>("pagerank", |scope| {
        let (handle, cycle) = scope.feedback::<Vec<Local<Message>>>(1);
        let to = Exchange::new(|Local(message): &Local<Message>| message.to as u64);
        cycle
            .unary_frontier::<CapacityContainerBuilder<_>, _, _, _>(to, "Rank", move |cap, _| {
                let mut open = BTreeMap::<u64, Vec<Message>>::new();
                // Its capability and its state go together when the ranks are found.
                let mut state = Some((cap, ranker));
                move |(input, frontier), output| {
                    input.for_each(|cap, messages| {
                        let messages = messages.drain(..).map(|Local(message)| message);
                        open.entry(*cap.time()).or_default().extend(messages);
                    });
                    let Some((cap, ranker)) = state.as_mut() else { return };
                    let round = *cap.time();
                    if round > 0 && frontier.less_equal(&round) {
                        return;
                    }
                    let messages = open.remove(&round).unwrap_or_default();
                    let sent = guard.work(|| match round {
                        0 => Ok(Some(ranker.begin())),
                        _ => Ok(ranker.round(messages)),
                    });
                    match sent {
                        Some(Some(sent)) => {
                            output.session(&*cap).give_iterator(sent.into_iter().map(Local));
                            cap.downgrade(&(round + 1));
                        }
                        Some(None) => {
                            let (_, ranker) = state.take().expect("looked at above");
                            ranker.finish(&mut lock(&found));
                        }
                        None => state = None,
                    }
                }
            })
            .connect_loop(handle);
    });
}

/// What a worker does in a round.
struct Ranker {
    graph: Arc<Graph>,
    asked: RankSettings,
    slice: Slice,
    me: usize,
    workers: usize,
    all: Vec<f64>,
    power_rounds: u32,
    push_rounds: u32,
    pushes: u64,
}

impl Ranker {
    fn new(
        graph: Arc<Graph>,
        asked: RankSettings,
        slice: Slice,
        me: usize,
        workers: usize,
    ) -> Self {
        let all = vec![0.0; graph.nodes() as usize];
        let (power_rounds, push_rounds, pushes) = Default::default();
        Self { graph, asked, slice, me, workers, all, power_rounds, push_rounds, pushes }
    }

    fn begin(&mut self) -> Vec<Message> {
        self.contribute(None)
    }

    /// Takes what all workers sent in a round; gives what is sent in the next, or nothing when
    /// the ranks are found.
    fn round(&mut self, mut messages: Vec<Message>) -> Option<Vec<Message>> {
        messages.sort_by_key(|message| message.from);
        let (mut sums, mut pushed, mut pushing) = (None::<Sums>, Vec::new(), None::<[u64; 2]>);
        for Message { what, .. } in messages {
            match what {
                What::Contributions(start, shares, before) => {
                    self.all[start as usize..][..shares.len()].copy_from_slice(&shares);
                    if let Some(before) = before {
                        sums.get_or_insert_default().append(before);
                    }
                }
                What::Pushed(pushes, nodes, links) => {
                    pushed.extend(pushes);
                    let pushing = pushing.get_or_insert_default();
                    pushing[0] += nodes;
                    pushing[1] += links;
                }
            }
        }
        match pushing {
            Some([0, _]) => return None,
            Some([_, links]) if links > self.graph.links() / FEW => {
                // Pulling finds what was pushed too: the ranks are those from which it was pushed.
                return Some(self.contribute(None));
            }
            Some(_) => {
                self.slice.take(&mut pushed);
                return Some(self.push());
            }
            None => {}
        }
        let damping = self.asked.damping;
        if let Some(sums) = &sums {
            let (residual, sum) = (sums.residuals.iter().sum::<f64>(), sums.ranks.iter().sum());
            // The step has made of the residual that times the damping factor, at most.
            if self.asked.is_met(damping * residual, sum) {
                return None;
            }
        }
        self.slice.pull(&self.graph, &self.all, damping);
        let few = |sums: &Sums| sums.active_links < self.graph.links() / FEW;
        if sums.as_ref().is_some_and(few) {
            return Some(self.push());
        }
        let sums = self.slice.step(&self.graph, self.asked.least_push());
        self.power_rounds += 1;
        Some(self.contribute(Some(sums)))
    }

    fn contribute(&mut self, sums: Option<Sums>) -> Vec<Message> {
        let shares = Arc::new(self.slice.contributions(&self.graph));
        let what = What::Contributions(self.slice.start(), shares, sums);
        let message = |to| Message { to, from: self.me, what: what.clone() };
        (0..self.workers).map(message).collect()
    }

    fn push(&mut self) -> Vec<Message> {
        let mut pushed = Vec::new();
        let nodes = self.slice.push(&self.graph, &self.asked, &mut pushed);
        let links = pushed.len() as u64;
        self.push_rounds += 1;
        self.pushes += nodes;
        let mut to = vec![Vec::new(); self.workers];
        let ends: Vec<u32> =
            (0..self.workers).map(|slice| self.graph.slice(slice, self.workers).end).collect();
        for push in pushed {
            to[ends.partition_point(|&end| end <= push.0)].push(push);
        }
        let message =
            |(to, pushed)| Message { to, from: self.me, what: What::Pushed(pushed, nodes, links) };
        to.into_iter().enumerate().map(message).collect()
    }

    fn finish(self, found: &mut Ranks) {
        found.power_rounds = self.power_rounds;
        found.push_rounds = self.push_rounds;
        found.pushes += self.pushes;
        let start = self.slice.start() as usize;
        let ranks = self.slice.into_ranks();
        found.raw[start..][..ranks.len()].copy_from_slice(&ranks);
    }
}

#[cfg(test)]
mod tests;
