//! Which processor does a query, and which query does a processor that is free do next? Rules of the papers, over two kinds
//! of processor: the threads of the CPU, and devices.
//!
//! Nothing here knows a clock or a thread: the engine that serves real queries and the simulation both ask these queues.

use super::features::Costs;
use super::policy::{Policy, Processor};
use std::collections::VecDeque;

/// Of waiting queries so many are looked at to find the next one.
const LOOKED_AT: usize = 32;

/// A query that costs one processor so many times what it costs the other belongs to the other: the 20 % of `ding09`.
const MUCH_BETTER: f64 = 1.2;

/// A query that has waited so much of the time to its deadline is done next by its better processor: "a substantial
/// part" in `ding09`.
pub const URGENT: f64 = 0.7;

/// Work that may be on devices ahead of what they are at, as a part of the time to the deadline: so little that who is idle finds
/// queries to steal, and that a device that fails or hangs has few.
const AHEAD: f64 = 0.125;

/// Seconds of work that fill a device: one that does 37,000 queries a second with 400 at a time does 27,000 with 100
/// (docs/measurements/2026-11-22-hybrid.md). A short deadline allows this part of its time.
const FILLED: (f64, f64) = (8e-3, 0.4);

/// A query that waits.
#[derive(Debug)]
struct Waiting<T> {
    item: T,
    costs: Costs,
    /// When it came, in seconds.
    came: f64,
}

/// Queries of one kind of processor.
#[derive(Debug)]
struct Kind<T> {
    /// Processors.
    servers: usize,
    /// Queries that wait for this kind.
    own: VecDeque<Waiting<T>>,
    /// Those that the other kind could not do: they have waited already, and nobody steals them.
    returned: VecDeque<Waiting<T>>,
    /// Seconds of work of `own`.
    backlog: f64,
    /// Queries that are being done, and the seconds that they take together.
    under_way: (usize, f64),
    /// Queries that were taken.
    taken: u64,
    /// None of them works.
    lost: bool,
}

impl<T> Kind<T> {
    fn new(servers: usize) -> Self {
        Self {
            servers: servers.max(1),
            own: VecDeque::new(),
            returned: VecDeque::new(),
            backlog: 0.0,
            under_way: (0, 0.0),
            taken: 0,
            lost: false,
        }
    }

    /// Queries that wait for it or are being done.
    fn has(&self) -> usize {
        self.own.len() + self.returned.len() + self.under_way.0
    }
}

/// Queries that wait for a processor; see the [module](self). Times are seconds since any one instant.
#[derive(Debug)]
pub struct Queues<T> {
    policy: Policy,
    deadline: f64,
    kinds: [Kind<T>; 2],
    either: VecDeque<Waiting<T>>,
    /// From which ratio of costs on a query belongs to one kind.
    much_better: f64,
    coin: u64,
}

impl<T> Queues<T> {
    /// Queues without queries, for so many threads and devices. Answers are to be there after `deadline` seconds.
    pub fn new(policy: Policy, deadline: f64, (threads, devices): (usize, usize)) -> Self {
        Self {
            policy,
            deadline,
            kinds: [Kind::new(threads), Kind::new(devices)],
            either: VecDeque::new(),
            much_better: MUCH_BETTER,
            coin: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// From now on so many threads take queries.
    pub fn set_threads(&mut self, threads: usize) {
        self.kinds[Processor::Cpu as usize].servers = threads.max(1);
    }

    /// Queries that wait.
    pub fn len(&self) -> usize {
        let waiting = |kind: &Kind<T>| kind.own.len() + kind.returned.len();
        self.kinds.iter().map(waiting).sum::<usize>() + self.either.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queries that a kind does now.
    pub fn under_way(&self, kind: Processor) -> usize {
        self.kinds[kind as usize].under_way.0
    }

    /// Whether queries wait that are for a kind, or for either.
    pub fn has_for(&self, kind: Processor) -> bool {
        let of = &self.kinds[kind as usize];
        !(of.own.is_empty() && of.returned.is_empty() && self.either.is_empty())
    }

    /// Whose turn it is, where one query is done at a time and none is now.
    pub fn turn(&self) -> Option<Processor> {
        let is_free = self.policy == Policy::BestSerial
            && self.kinds.iter().all(|kind| kind.under_way.0 == 0);
        let kinds = [Processor::Cpu, Processor::Device];
        kinds.into_iter().find(|&kind| is_free && self.is_next(kind))
    }

    /// Whether a thread would have done a query that is a device's before the device comes to its last one.
    pub fn is_worth_stealing(&self, costs: &Costs) -> bool {
        self.policy == Policy::Groups && costs.on(Processor::Cpu) <= self.wait(Processor::Device)
    }

    /// Seconds until a kind has done all that it has.
    fn wait(&self, kind: Processor) -> f64 {
        let of = &self.kinds[kind as usize];
        (of.backlog + of.under_way.1) / of.servers as f64
    }

    /// Seconds of work that a kind does now, on each of its processors.
    pub fn work_under_way(&self, kind: Processor) -> f64 {
        let kind = &self.kinds[kind as usize];
        kind.under_way.1 / kind.servers as f64
    }

    /// Adds a query that came at a time; says which kind it belongs to, if to one.
    pub fn push(&mut self, item: T, mut costs: Costs, came: f64) -> Option<Processor> {
        let [cpu, device] = &self.kinds;
        costs.seconds = [
            costs.on_thread_beside(cpu.has() as f64 / cpu.servers as f64),
            costs.on_device_beside(device.has() / device.servers),
        ];
        let group = self.group(&costs);
        self.queue(Waiting { item, costs, came }, group);
        group
    }

    fn queue(&mut self, waiting: Waiting<T>, group: Option<Processor>) {
        match group {
            Some(kind) => {
                let of = &mut self.kinds[kind as usize];
                of.backlog += waiting.costs.on(kind);
                of.own.push_back(waiting);
            }
            None => self.either.push_back(waiting),
        }
    }

    /// Adds a query that one kind was given and cannot do: the other does it, before all that wait.
    pub fn give_back(&mut self, item: T, costs: Costs, came: f64, by: Processor) {
        self.kinds[by.other() as usize].returned.push_back(Waiting { item, costs, came });
    }

    /// No processor of a kind works any more: the other kind gets its queries.
    pub fn lose(&mut self, kind: Processor) {
        let of = &mut self.kinds[kind as usize];
        of.lost = true;
        of.backlog = 0.0;
        let waiting = std::mem::take(&mut of.own);
        for waiting in waiting {
            self.queue(waiting, Some(kind.other()));
        }
    }

    /// Processors of a kind work again.
    pub fn regain(&mut self, kind: Processor) {
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
            Policy::CachedFirst { .. } if costs.cached => Some(Processor::Device),
            Policy::CachedFirst { .. } => Some(Processor::Cpu),
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
    pub fn ahead(&self) -> f64 {
        FILLED.0.min(FILLED.1 * self.deadline).max(AHEAD * self.deadline)
    }

    /// Takes the query that a free processor of a kind is to do now; [`done`](Self::done) is to be called when it is.
    /// Devices, which have several at a time, get none while they have enough to do.
    pub fn take(&mut self, kind: Processor, now: f64) -> Option<T> {
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
        of.taken += 1;
        Some(waiting.item)
    }

    fn next(&mut self, kind: Processor, now: f64) -> Option<Waiting<T>> {
        match self.policy {
            Policy::Groups => self.next_of_groups(kind, now),
            Policy::CachedFirst { balance } => {
                self.take_of(kind, 0).or_else(|| self.take_uncached(kind, balance))
            }
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

    /// A query that a kind was given is done, or it was [given back](Self::give_back).
    pub fn done(&mut self, kind: Processor) {
        let (queries, seconds) = &mut self.kinds[kind as usize].under_way;
        // Of many together nobody knows which it was.
        *seconds -= *seconds / (*queries).max(1) as f64;
        *queries = queries.saturating_sub(1);
    }

    /// Takes a query that has waited for longer than to its deadline.
    pub fn take_late(&mut self, now: f64) -> Option<T> {
        let came = now - self.deadline;
        let is_late = |queue: &VecDeque<Waiting<T>>| queue.front().is_some_and(|it| it.came < came);
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

    /// Whether the oldest query is one of a kind.
    fn is_next(&self, kind: Processor) -> bool {
        let [mine, others] = [kind, kind.other()].map(|kind| self.kinds[kind as usize].own.front());
        match (mine, others) {
            (Some(mine), Some(other)) => mine.came <= other.came,
            (mine, _) => mine.is_some(),
        }
    }

    fn take_of(&mut self, kind: Processor, at: usize) -> Option<Waiting<T>> {
        let of = &mut self.kinds[kind as usize];
        let waiting = of.own.remove(at)?;
        of.backlog = (of.backlog - waiting.costs.on(kind)).max(0.0);
        Some(waiting)
    }

    /// Takes a query of the other kind, as far as the balance of queries allows it.
    fn take_uncached(&mut self, kind: Processor, balance: f64) -> Option<Waiting<T>> {
        let [cpu, devices] = [0, 1].map(|kind| self.kinds[kind].taken as f64);
        let most = match kind {
            Processor::Device => balance * (cpu + devices + 1.0) - devices,
            Processor::Cpu => (1.0 - balance) * (cpu + devices + 1.0) - cpu,
        };
        if most > 0.0 { self.take_of(kind.other(), 0) } else { None }
    }

    fn next_of_groups(&mut self, kind: Processor, now: f64) -> Option<Waiting<T>> {
        let urgent = now - URGENT * self.deadline;
        let either = self.either.front();
        if either.is_some_and(|it| it.came < urgent && it.costs.better() == kind) {
            return self.either.pop_front();
        }
        let own = &self.kinds[kind as usize].own;
        if own.front().is_some_and(|it| it.came < urgent) {
            return self.take_of(kind, 0);
        }
        // Short ones first, but each more urgent the longer it has waited for its cost: the highest response ratio.
        let ratio = |it: &Waiting<T>| (now - it.came) / it.costs.on(kind);
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

    /// Whether a query may miss its deadline if a kind begins it now, and would not if the other did.
    fn is_late_here(&self, waiting: &Waiting<T>, kind: Processor, now: f64) -> bool {
        let left = waiting.came + self.deadline - now;
        waiting.costs.most(kind) > left && waiting.costs.most(kind.other()) <= left
    }

    /// Takes a query of the other kind, if it is done here before the other comes to its last one: a thread that began
    /// what a device does a hundred times as fast would make everybody wait.
    fn steal(&mut self, kind: Processor, now: f64) -> Option<Waiting<T>> {
        let other = kind.other();
        let (of, wait) = (&self.kinds[other as usize], self.wait(other));
        let loss = |it: &Waiting<T>| it.costs.on(kind) / it.costs.on(other);
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
        // Who has to steal often has too few of its own: more go to the group for either.
        self.much_better = (self.much_better * 1.01).min(4.0);
        self.take_of(other, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(cpu: f64, device: f64) -> Costs {
        Costs::new([cpu, device], (1000.0 * cpu) as u64)
    }

    fn all(queues: &mut Queues<u32>, kind: Processor, now: f64) -> Vec<u32> {
        let next = || queues.take(kind, now).inspect(|_| queues.done(kind));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_goes_to_its_kind() {
        let mut queues = Queues::new(Policy::Best, 0.5, (1, 1));
        for (item, costs) in [(1, costs(1.0, 2.0)), (2, costs(3.0, 2.0)), (3, costs(1.0, 1.5))] {
            queues.push(item, costs, 0.0);
        }
        assert_eq!(all(&mut queues, Processor::Cpu, 1.0), [1, 3]);
        assert_eq!(all(&mut queues, Processor::Device, 1.0), [2]);

        let by_blocks = Policy::ByBlocks { threshold: 2000, below: Processor::Device };
        let mut queues = Queues::new(by_blocks, 0.5, (1, 1));
        queues.push(1, costs(1.0, 1.0), 0.0);
        queues.push(2, costs(2.0, 1.0), 0.0);
        assert_eq!(all(&mut queues, Processor::Device, 1.0), [1]);
        assert_eq!(all(&mut queues, Processor::Cpu, 1.0), [2]);

        let mut queues = Queues::new(Policy::Halves, 0.5, (1, 1));
        for item in 0..1000 {
            queues.push(item, costs(1.0, 1.0), 0.0);
        }
        let here = all(&mut queues, Processor::Cpu, 1.0).len();
        assert!((400..600).contains(&here), "{here}");
        assert_eq!(all(&mut queues, Processor::Device, 1.0).len(), 1000 - here);
    }

    #[test]
    fn one_after_the_other_is_one_at_a_time_in_order() {
        let mut queues = Queues::new(Policy::BestSerial, 0.5, (4, 1));
        for (item, costs) in [(1, costs(2.0, 1.0)), (2, costs(1.0, 2.0)), (3, costs(1.0, 2.0))] {
            queues.push(item, costs, f64::from(item));
        }
        assert_eq!(queues.take(Processor::Cpu, 5.0), None);
        assert_eq!(queues.take(Processor::Device, 5.0), Some(1));
        assert_eq!(queues.take(Processor::Cpu, 5.0), None);
        queues.done(Processor::Device);
        assert_eq!(queues.take(Processor::Cpu, 5.0), Some(2));
        assert_eq!(queues.take(Processor::Cpu, 5.0), None);
        queues.done(Processor::Cpu);
        assert_eq!(queues.take(Processor::Cpu, 5.0), Some(3));
    }

    #[test]
    fn who_is_idle_takes_the_oldest_of_either_and_then_steals() {
        let mut queues = Queues::new(Policy::Groups, 0.5, (1, 1));
        queues.push(1, costs(0.011, 0.010), 0.0);
        queues.push(2, costs(0.010, 0.011), 0.01);
        for item in 3..7 {
            queues.push(item, costs(0.030, 0.010 + f64::from(item) / 1000.0), 0.02);
        }
        // Either, oldest first; then what it loses least by, as long as the other is busy for longer.
        assert_eq!(queues.take(Processor::Cpu, 0.05), Some(1));
        assert_eq!(queues.take(Processor::Cpu, 0.05), Some(2));
        assert_eq!(queues.take(Processor::Cpu, 0.05), Some(6));
        assert_eq!(queues.take(Processor::Cpu, 0.05), Some(5));
        assert_eq!(
            queues.take(Processor::Cpu, 0.05),
            None,
            "0.027 s of work wait, and it would take 0.03"
        );
        assert_eq!(all(&mut queues, Processor::Device, 0.05), [3, 4]);
    }

    #[test]
    fn what_may_come_late_is_left_to_the_other() {
        let mut queues = Queues::new(Policy::Groups, 0.1, (2, 1));
        // One in a hundred takes a thread five times what is predicted, which would be too late.
        let uncertain = |cpu: f64, device: f64| Costs { tails: [5.0, 1.1], ..costs(cpu, device) };
        assert_eq!(queues.push(1, uncertain(0.03, 0.09), 0.0), Some(Processor::Device));
        assert_eq!(queues.push(2, uncertain(0.01, 0.09), 0.0), Some(Processor::Cpu));
        // The device would come to it after 0.09 s.
        assert_eq!(queues.push(3, uncertain(0.018, 0.02), 0.0), Some(Processor::Cpu));
        assert_eq!(queues.take(Processor::Cpu, 0.0001), Some(2));
        assert_eq!(queues.take(Processor::Cpu, 0.0001), Some(3));
        assert_eq!(
            queues.take(Processor::Cpu, 0.0001),
            None,
            "nobody steals what he may do too late"
        );
        assert_eq!(queues.take(Processor::Device, 0.0001), Some(1));
        // Of those for either each takes what he does in time, and what nobody does goes as if there were no deadline.
        let mut queues = Queues::new(Policy::Groups, 0.1, (2, 1));
        assert_eq!(queues.push(1, uncertain(0.019, 0.019), 0.0), None);
        assert_eq!(queues.push(2, uncertain(0.002, 0.002), 0.01), None);
        assert_eq!(queues.take(Processor::Cpu, 0.06), Some(2));
        assert_eq!(queues.take(Processor::Cpu, 0.06), None);
        assert_eq!(queues.take(Processor::Cpu, 0.09), Some(1));
    }

    #[test]
    fn short_ones_go_first_until_others_are_urgent() {
        let mut queues = Queues::new(Policy::Groups, 0.5, (1, 1));
        queues.push(1, costs(0.1, 1.0), 0.0);
        queues.push(2, costs(0.001, 1.0), 0.01);
        assert_eq!(queues.take(Processor::Cpu, 0.02), Some(2));
        queues.push(3, costs(0.0001, 1.0), 0.1);
        assert_eq!(queues.take(Processor::Cpu, 0.36), Some(1));
        queues.push(4, costs(0.0105, 0.0100), 0.4);
        // It is urgent, and its better processor is the device.
        assert_eq!(queues.take(Processor::Device, 0.76), Some(4));
        assert_eq!(queues.take(Processor::Cpu, 0.76), Some(3));
        assert!(queues.is_empty());
    }

    #[test]
    fn law_nothing_is_lost_or_done_twice() {
        for policy in [
            "cpu",
            "gpu",
            "sd",
            "lbd:500",
            "lbd-reverse:500",
            "best",
            "best-serial",
            "ding09",
            "cached-first:0.4",
        ] {
            let mut queues = Queues::new(policy.parse().unwrap(), 0.05, (2, 1));
            for item in 0..300u32 {
                let cpu = f64::from(item * 7919 % 1000 + 1) / 1000.0;
                let device = f64::from(item * 104_729 % 1000 + 1) / 1000.0;
                queues.push(item, costs(cpu, device), f64::from(item) / 1000.0);
            }
            let (mut seen, mut now) = (Vec::new(), 0.3);
            while !queues.is_empty() {
                assert!(now < 60.0, "{policy} comes to no end");
                for kind in [Processor::Cpu, Processor::Cpu, Processor::Device] {
                    if let Some(item) = queues.take(kind, now) {
                        seen.push(item);
                        queues.done(kind);
                    }
                }
                now += 0.001;
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..300).collect::<Vec<_>>(), "{policy}");
        }
    }

    #[test]
    fn a_kind_that_is_lost_leaves_all_to_the_other() {
        for policy in ["gpu", "sd", "best", "ding09"] {
            let mut queues = Queues::new(policy.parse().unwrap(), 50.0, (1, 1));
            for item in 0..10 {
                queues.push(item, costs(2.0, 1.0), 0.0);
            }
            let taken = queues.take(Processor::Device, 1.0).unwrap();
            queues.lose(Processor::Device);
            assert_eq!(queues.take(Processor::Device, 1.0), None);
            queues.push(10, costs(2.0, 1.0), 1.0);
            queues.done(Processor::Device);
            queues.give_back(taken, costs(2.0, 1.0), 0.0, Processor::Device);
            // What has waited longest goes first.
            let found = all(&mut queues, Processor::Cpu, 2.0);
            assert_eq!((found[0], found.len()), (taken, 11), "{policy}");
            queues.regain(Processor::Device);
            for item in 11..40 {
                queues.push(item, costs(2.0, 0.1), 2.0);
            }
            assert!(queues.take(Processor::Device, 3.0).is_some(), "{policy}");
        }
    }

    #[test]
    fn a_device_gets_no_more_than_it_does_soon() {
        let mut queues = Queues::new(Policy::Only(Processor::Device), 0.8, (1, 1));
        for item in 0..10 {
            queues.push(item, costs(1.0, 0.06), 0.0);
        }
        // A tenth of a second is an eighth of the deadline.
        let mut taken = || queues.take(Processor::Device, 0.0).is_some();
        assert_eq!((0..4).map(|_| taken()).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(queues.take_late(0.7), None);
        assert_eq!(queues.take_late(0.9), Some(2));
        // A short deadline leaves room for a full device: 8 of 20 ms.
        let mut queues = Queues::new(Policy::Only(Processor::Device), 0.02, (1, 1));
        (0..30).for_each(|item| _ = queues.push(item, costs(1.0, 0.001), 0.0));
        let taken = std::iter::from_fn(|| queues.take(Processor::Device, 0.0)).count();
        assert!((8..=9).contains(&taken), "{taken}");
    }

    #[test]
    fn what_is_cached_goes_to_devices_and_the_rest_by_balance() {
        let of = |balance: f64| {
            let mut queues = Queues::new(Policy::CachedFirst { balance }, 0.5, (1, 1));
            for item in 0..100 {
                let cached = item % 4 == 0;
                queues.push(item, Costs { cached, ..costs(0.001, 0.001) }, 0.0);
            }
            let mut shares = [0, 0];
            while !queues.is_empty() {
                for kind in [Processor::Device, Processor::Cpu] {
                    if queues.take(kind, 1.0).is_some() {
                        shares[kind as usize] += 1;
                        queues.done(kind);
                    }
                }
            }
            shares
        };
        assert_eq!(of(0.0), [75, 25]);
        assert_eq!(of(1.0), [50, 50], "nobody is idle");
        let [cpu, devices] = of(0.4);
        assert!((38..=42).contains(&devices), "{cpu} and {devices}");
    }
}
