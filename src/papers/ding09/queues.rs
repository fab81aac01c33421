//! Queues of queries between two kinds of processor, the threads of the CPU and devices: which kind
//! a query goes to and which query a free processor takes, by the [policies](super::policy) of the
//! papers.
//!
//! Nothing here knows a clock or a thread, so that engines and the simulation share it.

use super::features::Costs;
use super::policy::{Policy, Processor};
use std::collections::VecDeque;

/// Waiting queries that are searched for the next one.
const LOOKED_AT: usize = 32;

/// A query belongs to one kind if it costs the other so many times as much: the 20 % of `ding09`.
const MUCH_BETTER: f64 = 1.2;

/// The part of the deadline after which a query goes next: "a substantial part" in `ding09`.
pub(crate) const URGENT: f64 = 0.7;

/// Work queued on devices, as a part of the deadline: so little that idle threads find queries to
/// steal and that a device that fails or hangs has few.
const AHEAD: f64 = 0.125;

/// Seconds of work that fill a device, and the part of a short deadline allowed for them: a device
/// that does 37,000 queries a second with 400 at a time does 27,000 with 100
/// (docs/measurements/papers.md).
const FILLED: (f64, f64) = (8e-3, 0.4);

#[derive(Debug)]
struct WaitingItem<T> {
    item: T,
    costs: Costs,
    came: f64,
}

#[derive(Debug)]
struct ProcessorQueue<T> {
    servers: usize,
    own: VecDeque<WaitingItem<T>>,
    /// Those that the other kind could not do; nobody steals them.
    returned: VecDeque<WaitingItem<T>>,
    /// Seconds of work of `own`.
    backlog: f64,
    /// Queries in progress, and their seconds together.
    under_way: (usize, f64),
    lost: bool,
}

impl<T> ProcessorQueue<T> {
    fn new(servers: usize) -> Self {
        let (own, returned, backlog, under_way, lost) = Default::default();
        Self { servers: servers.max(1), own, returned, backlog, under_way, lost }
    }

    /// Queries that wait or are in progress.
    fn has(&self) -> usize {
        self.own.len() + self.returned.len() + self.under_way.0
    }
}

/// Times are seconds since any one instant.
#[derive(Debug)]
pub(crate) struct Queues<T> {
    policy: Policy,
    deadline: f64,
    kinds: [ProcessorQueue<T>; 2],
    either: VecDeque<WaitingItem<T>>,
    /// The ratio of costs from which a query belongs to one kind.
    much_better: f64,
    coin: u64,
}

impl<T> Queues<T> {
    /// `deadline` is the seconds in which answers are due.
    pub(crate) fn new(policy: Policy, deadline: f64, threads: usize, devices: usize) -> Self {
        Self {
            policy,
            deadline,
            kinds: [ProcessorQueue::new(threads), ProcessorQueue::new(devices)],
            either: VecDeque::new(),
            much_better: MUCH_BETTER,
            coin: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.kinds[Processor::Cpu as usize].servers = threads.max(1);
    }

    pub(crate) fn len(&self) -> usize {
        let waiting = |kind: &ProcessorQueue<T>| kind.own.len() + kind.returned.len();
        self.kinds.iter().map(waiting).sum::<usize>() + self.either.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn under_way(&self, kind: Processor) -> usize {
        self.kinds[kind as usize].under_way.0
    }

    /// Whether queries wait for this kind or for either.
    pub(crate) fn has_for(&self, kind: Processor) -> bool {
        let of = &self.kinds[kind as usize];
        !(of.own.is_empty() && of.returned.is_empty() && self.either.is_empty())
    }

    /// The kind to go next under [`Policy::BestSerial`], if no query is in progress.
    pub(crate) fn turn(&self) -> Option<Processor> {
        let is_free = self.policy == Policy::BestSerial
            && self.kinds.iter().all(|kind| kind.under_way.0 == 0);
        let kinds = [Processor::Cpu, Processor::Device];
        kinds.into_iter().find(|&kind| is_free && self.is_next(kind))
    }

    /// Whether a thread would finish a device's query before the device comes to its last one.
    pub(crate) fn is_worth_stealing(&self, costs: &Costs) -> bool {
        self.policy == Policy::Groups && costs.on(Processor::Cpu) <= self.wait(Processor::Device)
    }

    /// Seconds until a kind has done all its queries.
    fn wait(&self, kind: Processor) -> f64 {
        let of = &self.kinds[kind as usize];
        (of.backlog + of.under_way.1) / of.servers as f64
    }

    /// Seconds of work in progress on each processor of a kind.
    pub(crate) fn work_under_way(&self, kind: Processor) -> f64 {
        let kind = &self.kinds[kind as usize];
        kind.under_way.1 / kind.servers as f64
    }

    /// Adds a query that came at `came`; returns the kind that it belongs to, if to one.
    pub(crate) fn push(&mut self, item: T, mut costs: Costs, came: f64) -> Option<Processor> {
        let [cpu, device] = &self.kinds;
        costs.seconds = [
            costs.on_thread_beside(cpu.has() as f64 / cpu.servers as f64),
            costs.on_device_beside(device.has() / device.servers),
        ];
        let group = self.group(&costs);
        self.queue(WaitingItem { item, costs, came }, group);
        group
    }

    fn queue(&mut self, waiting: WaitingItem<T>, group: Option<Processor>) {
        match group {
            Some(kind) => {
                let of = &mut self.kinds[kind as usize];
                of.backlog += waiting.costs.on(kind);
                of.own.push_back(waiting);
            }
            None => self.either.push_back(waiting),
        }
    }

    /// Adds a query that kind `by` took and cannot do: the other does it before all that wait.
    pub(crate) fn give_back(&mut self, item: T, costs: Costs, came: f64, by: Processor) {
        self.kinds[by.other() as usize].returned.push_back(WaitingItem { item, costs, came });
    }

    /// No processor of a kind works: the other kind gets its queries.
    pub(crate) fn lose(&mut self, kind: Processor) {
        let of = &mut self.kinds[kind as usize];
        of.lost = true;
        of.backlog = 0.0;
        let waiting = std::mem::take(&mut of.own);
        for waiting in waiting {
            self.queue(waiting, Some(kind.other()));
        }
    }

    pub(crate) fn regain(&mut self, kind: Processor) {
        self.kinds[kind as usize].lost = false;
    }

    /// The kind that a query belongs to; `None` for either.
    fn group(&mut self, costs: &Costs) -> Option<Processor> {
        if let Some(lost) = self.kinds.iter().position(|kind| kind.lost) {
            return Some(if lost == 0 { Processor::Device } else { Processor::Cpu });
        }
        match self.policy {
            Policy::Only(kind) => Some(kind),
            Policy::Halves => {
                // xorshift (Marsaglia 2003): the same queries go to the same kinds in each run.
                self.coin ^= self.coin << 13;
                self.coin ^= self.coin >> 7;
                self.coin ^= self.coin << 17;
                Some(if self.coin >> 63 == 0 { Processor::Cpu } else { Processor::Device })
            }
            Policy::ByBlocks { threshold, below } if costs.blocks < threshold => Some(below),
            Policy::ByBlocks { below, .. } => Some(below.other()),
            Policy::Best | Policy::BestSerial => Some(costs.better()),
            Policy::Groups => {
                let kinds = [Processor::Cpu, Processor::Device];
                let [cpu, device] =
                    kinds.map(|kind| costs.most(kind) + self.wait(kind) > self.deadline);
                if cpu != device {
                    return Some(if cpu { Processor::Device } else { Processor::Cpu });
                }
                let better = costs.better();
                let much = costs.on(better.other()) > self.much_better * costs.on(better);
                much.then_some(better)
            }
        }
    }

    /// Seconds of work that a device may have at a time.
    pub(crate) fn ahead(&self) -> f64 {
        FILLED.0.min(FILLED.1 * self.deadline).max(AHEAD * self.deadline)
    }

    /// Takes the next query for a free processor of a kind, which ends with [`done`](Self::done).
    /// Devices get none while they have enough.
    pub(crate) fn take(&mut self, kind: Processor, now: f64) -> Option<T> {
        let ahead = self.ahead();
        let of = &mut self.kinds[kind as usize];
        let ahead = ahead * of.servers as f64;
        let busy = kind == Processor::Device && of.under_way.1 > ahead;
        if of.lost || busy {
            return None;
        }
        let waiting = match of.returned.pop_front() {
            Some(waiting) => waiting,
            None => self.next(kind, now)?,
        };
        let of = &mut self.kinds[kind as usize];
        of.under_way.0 += 1;
        of.under_way.1 += waiting.costs.on(kind);
        Some(waiting.item)
    }

    fn next(&mut self, kind: Processor, now: f64) -> Option<WaitingItem<T>> {
        match self.policy {
            Policy::Groups => self.next_of_groups(kind, now),
            Policy::BestSerial => {
                if self.turn() == Some(kind) {
                    self.take_of(kind, 0)
                } else {
                    None
                }
            }
            _ => self.take_of(kind, 0),
        }
    }

    /// A query that a kind took is done or was [given back](Self::give_back).
    pub(crate) fn done(&mut self, kind: Processor) {
        let (queries, seconds) = &mut self.kinds[kind as usize].under_way;
        // The mean, since it is not known which query it was.
        *seconds -= *seconds / (*queries).max(1) as f64;
        *queries = queries.saturating_sub(1);
    }

    /// Takes a query that is past its deadline.
    pub(crate) fn take_late(&mut self, now: f64) -> Option<T> {
        let came = now - self.deadline;
        let is_late =
            |queue: &VecDeque<WaitingItem<T>>| queue.front().is_some_and(|it| it.came < came);
        if is_late(&self.either) {
            return self.either.pop_front().map(|waiting| waiting.item);
        }
        for kind in [Processor::Cpu, Processor::Device] {
            let of = &mut self.kinds[kind as usize];
            if is_late(&of.returned) {
                return of.returned.pop_front().map(|waiting| waiting.item);
            }
            if is_late(&of.own) {
                return self.take_of(kind, 0).map(|waiting| waiting.item);
            }
        }
        None
    }

    fn is_next(&self, kind: Processor) -> bool {
        let [mine, others] = [kind, kind.other()].map(|kind| self.kinds[kind as usize].own.front());
        match (mine, others) {
            (Some(mine), Some(other)) => mine.came <= other.came,
            (mine, _) => mine.is_some(),
        }
    }

    fn take_of(&mut self, kind: Processor, at: usize) -> Option<WaitingItem<T>> {
        let of = &mut self.kinds[kind as usize];
        let waiting = of.own.remove(at)?;
        of.backlog = (of.backlog - waiting.costs.on(kind)).max(0.0);
        Some(waiting)
    }

    fn next_of_groups(&mut self, kind: Processor, now: f64) -> Option<WaitingItem<T>> {
        let urgent = now - URGENT * self.deadline;
        let either = self.either.front();
        if either.is_some_and(|it| it.came < urgent && it.costs.better() == kind) {
            return self.either.pop_front();
        }
        let own = &self.kinds[kind as usize].own;
        if own.front().is_some_and(|it| it.came < urgent) {
            return self.take_of(kind, 0);
        }
        // Short ones first, more urgent the longer they wait for their cost: response ratio.
        let ratio = |it: &WaitingItem<T>| (now - it.came) / it.costs.on(kind);
        let next =
            own.iter().take(LOOKED_AT).enumerate().max_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1)));
        if let Some(at) = next.map(|(at, _)| at) {
            return self.take_of(kind, at);
        }
        let either = self.either.iter().take(LOOKED_AT);
        match either.into_iter().position(|it| !self.is_late_here(it, kind, now)) {
            Some(at) => self.either.remove(at),
            None => self.steal(kind, now),
        }
    }

    /// Whether a query may miss its deadline on this kind and would not on the other.
    fn is_late_here(&self, waiting: &WaitingItem<T>, kind: Processor, now: f64) -> bool {
        let left = waiting.came + self.deadline - now;
        waiting.costs.most(kind) > left && waiting.costs.most(kind.other()) <= left
    }

    /// Takes a query of the other kind if it ends here before the other comes to its last one: a
    /// thread must not begin what a device does a hundred times as fast.
    fn steal(&mut self, kind: Processor, now: f64) -> Option<WaitingItem<T>> {
        let other = kind.other();
        let of = &self.kinds[other as usize];
        let wait = self.wait(other);
        let loss = |it: &WaitingItem<T>| it.costs.on(kind) / it.costs.on(other);
        let (at, least) = of
            .own
            .iter()
            .take(LOOKED_AT)
            .enumerate()
            .filter(|(_, it)| !self.is_late_here(it, kind, now))
            .min_by(|a, b| loss(a.1).total_cmp(&loss(b.1)))?;
        if least.costs.on(kind) > wait {
            return None;
        }
        // Frequent stealing means too few queries of its own: more go to the group for either.
        self.much_better = (self.much_better * 1.01).min(4.0);
        self.take_of(other, at)
    }
}

#[cfg(test)]
mod tests;
