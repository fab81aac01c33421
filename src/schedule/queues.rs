//! Which processor does a query, and which query does a processor that is free do next? Rules of the papers, over two kinds
//! of processor: the threads of the CPU, and devices.
//!
//! Nothing here knows a clock or a thread: the engine that serves real queries and the simulation both ask these queues.

use super::features::Costs;
use std::collections::VecDeque;
use std::str::FromStr;

/// Of waiting queries so many are looked at to find the next one.
const LOOKED_AT: usize = 32;

/// A query that costs one processor so many times what it costs the other belongs to the other: the 20 % of `ding09`.
const MUCH_BETTER: f64 = 1.2;

/// A query that has waited so much of the time to its deadline is done next by its better processor: "a substantial
/// part" in `ding09`.
pub const URGENT: f64 = 0.7;

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// A thread.
    Cpu,
    /// A device.
    Device,
}

impl Processor {
    /// The other kind.
    pub fn other(self) -> Self {
        match self {
            Self::Cpu => Self::Device,
            Self::Device => Self::Cpu,
        }
    }
}

/// By which rule queries go to processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// All go to one kind.
    Only(Processor),
    /// By chance, as many to each kind: `huang`'s SD.
    Halves,
    /// By the number of blocks of all lists: those with fewer go to one kind, all others to the other. `huang`'s LBD.
    ByBlocks {
        /// The number.
        threshold: u64,
        /// Who does those below it.
        below: Processor,
    },
    /// Each goes to the kind that does it in less time.
    Best,
    /// The same, but one query after the other: the third curve of `ding09`, figure 7.
    BestSerial,
    /// `ding09`, section 9: those that suit one kind much better, and a group for either; who has nothing to do takes the
    /// oldest of that group, then steals from the other; what comes near its deadline goes first.
    Groups,
}

impl Policy {
    /// The names that [`FromStr`] reads.
    pub const NAMES: &str = "cpu, gpu, sd, lbd:N, lbd-reverse:N, best, best-serial, ding09";
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let by_blocks = |number: &str, below| {
            let threshold =
                number.parse().map_err(|_| format!("{number} is no number of blocks"))?;
            Ok(Self::ByBlocks { threshold, below })
        };
        match text.split_once(':') {
            Some(("lbd", number)) => by_blocks(number, Processor::Device),
            Some(("lbd-reverse", number)) => by_blocks(number, Processor::Cpu),
            None if text == "cpu" => Ok(Self::Only(Processor::Cpu)),
            None if text == "gpu" => Ok(Self::Only(Processor::Device)),
            None if text == "sd" => Ok(Self::Halves),
            None if text == "best" => Ok(Self::Best),
            None if text == "best-serial" => Ok(Self::BestSerial),
            None if text == "ding09" => Ok(Self::Groups),
            _ => Err(format!("the schedules are {}", Self::NAMES)),
        }
    }
}

/// A query that waits.
#[derive(Debug)]
struct Waiting<T> {
    item: T,
    costs: Costs,
    /// When it came, in seconds.
    came: f64,
}

/// Queries that wait for a processor; see the [module](self). Times are seconds since any one instant.
#[derive(Debug)]
pub struct Queues<T> {
    policy: Policy,
    deadline: f64,
    /// Processors of each kind.
    servers: [usize; 2],
    own: [VecDeque<Waiting<T>>; 2],
    either: VecDeque<Waiting<T>>,
    /// Seconds of work that waits for each kind alone.
    backlog: [f64; 2],
    /// From which ratio of costs on a query belongs to one kind.
    much_better: f64,
    /// Queries that are being done.
    under_way: usize,
    coin: u64,
}

impl<T> Queues<T> {
    /// Queues without queries, for so many threads and devices. Answers are to be there after `deadline` seconds.
    pub fn new(policy: Policy, deadline: f64, (threads, devices): (usize, usize)) -> Self {
        Self {
            policy,
            deadline,
            servers: [threads.max(1), devices.max(1)],
            own: [VecDeque::new(), VecDeque::new()],
            either: VecDeque::new(),
            backlog: [0.0; 2],
            much_better: MUCH_BETTER,
            under_way: 0,
            coin: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Queries that wait.
    pub fn len(&self) -> usize {
        self.own[0].len() + self.own[1].len() + self.either.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a query that came at a time.
    pub fn push(&mut self, item: T, costs: Costs, came: f64) {
        let waiting = Waiting { item, costs, came };
        match self.group(&costs) {
            Some(kind) => {
                self.backlog[kind as usize] += costs.on(kind);
                self.own[kind as usize].push_back(waiting);
            }
            None => self.either.push_back(waiting),
        }
    }

    /// The kind that a query belongs to; `None` for either.
    fn group(&mut self, costs: &Costs) -> Option<Processor> {
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
                let better = costs.better();
                let much = costs.on(better.other()) > self.much_better * costs.on(better);
                much.then_some(better)
            }
        }
    }

    /// Takes the query that a free processor of a kind is to do now; [`done`](Self::done) is to be called when it is.
    pub fn take(&mut self, kind: Processor, now: f64) -> Option<T> {
        if self.policy == Policy::BestSerial && (self.under_way > 0 || !self.is_next(kind)) {
            return None;
        }
        let taken = match self.policy {
            Policy::Groups => self.take_of_groups(kind, now),
            _ => self.take_of(kind, 0),
        };
        self.under_way += usize::from(taken.is_some());
        taken
    }

    /// A query that was taken is done.
    pub fn done(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Whether the oldest query is one of a kind.
    fn is_next(&self, kind: Processor) -> bool {
        let [mine, others] = [kind, kind.other()].map(|kind| self.own[kind as usize].front());
        match (mine, others) {
            (Some(mine), Some(other)) => mine.came <= other.came,
            (mine, _) => mine.is_some(),
        }
    }

    fn take_of(&mut self, kind: Processor, at: usize) -> Option<T> {
        let waiting = self.own[kind as usize].remove(at)?;
        let backlog = &mut self.backlog[kind as usize];
        *backlog = (*backlog - waiting.costs.on(kind)).max(0.0);
        Some(waiting.item)
    }

    fn take_of_groups(&mut self, kind: Processor, now: f64) -> Option<T> {
        let urgent = now - URGENT * self.deadline;
        if let Some(at) = self
            .either
            .front()
            .filter(|it| it.came < urgent && it.costs.better() == kind)
            .map(|_| 0)
        {
            return self.either.remove(at).map(|it| it.item);
        }
        let own = &self.own[kind as usize];
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
        if let Some(oldest) = self.either.pop_front() {
            return Some(oldest.item);
        }
        self.steal(kind)
    }

    /// Takes a query of the other kind, if it is done here before the other comes to its last one: a thread that began
    /// what a device does a hundred times as fast would make everybody wait.
    fn steal(&mut self, kind: Processor) -> Option<T> {
        let other = kind.other();
        let queue = &self.own[other as usize];
        let wait = self.backlog[other as usize] / self.servers[other as usize] as f64;
        let loss = |it: &Waiting<T>| it.costs.on(kind) / it.costs.on(other);
        let (at, least) = queue
            .iter()
            .take(LOOKED_AT)
            .enumerate()
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
        Costs { seconds: [cpu, device], blocks: (1000.0 * cpu) as u64 }
    }

    fn all(queues: &mut Queues<u32>, kind: Processor, now: f64) -> Vec<u32> {
        std::iter::from_fn(|| queues.take(kind, now)).collect()
    }

    #[test]
    fn names_are_read() {
        assert_eq!("ding09".parse(), Ok(Policy::Groups));
        assert_eq!(
            "lbd:30000".parse(),
            Ok(Policy::ByBlocks { threshold: 30000, below: Processor::Device })
        );
        assert!("lbd:x".parse::<Policy>().unwrap_err().contains("no number"));
        assert!("lbd".parse::<Policy>().unwrap_err().contains("best-serial"));
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
        (0..1000).for_each(|item| queues.push(item, costs(1.0, 1.0), 0.0));
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
        queues.done();
        assert_eq!(queues.take(Processor::Cpu, 5.0), Some(2));
        assert_eq!(queues.take(Processor::Cpu, 5.0), None);
        queues.done();
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
        for policy in
            ["cpu", "gpu", "sd", "lbd:500", "lbd-reverse:500", "best", "best-serial", "ding09"]
        {
            let mut queues = Queues::new(policy.parse().unwrap(), 0.05, (2, 1));
            for item in 0..300u32 {
                let cpu = f64::from(item * 7919 % 1000 + 1) / 1000.0;
                let device = f64::from(item * 104_729 % 1000 + 1) / 1000.0;
                queues.push(item, costs(cpu, device), f64::from(item) / 1000.0);
            }
            let (mut seen, mut now) = (Vec::new(), 0.3);
            while !queues.is_empty() {
                for kind in [Processor::Cpu, Processor::Cpu, Processor::Device] {
                    if let Some(item) = queues.take(kind, now) {
                        seen.push(item);
                        queues.done();
                    }
                }
                now += 0.001;
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..300).collect::<Vec<_>>(), "{policy}");
        }
    }
}
