//! A simulation of threads and devices with measured costs: the latencies of a stream of queries
//! under a policy, for machines without a device and for more rates than a run can try.

use super::features::{Cost, CostModel, Costs};
use super::machine::Hardware;
use super::policy::{Policy, PolicyChoice, Processor};
use super::queues::Queues;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Seconds.
    pub at: f64,
    pub predicted: Costs,
    pub real: Costs,
}

/// Time in nanoseconds, the processor that becomes free, and the number of its answers.
type ProcessorFree = Reverse<(u64, usize, usize)>;

/// A stream under way. Servers are threads, then devices.
struct Simulation<'a> {
    arrivals: &'a [Arrival],
    threads: usize,
    /// The least time between two queries of a device.
    host_seconds: f64,
    queues: Queues<usize>,
    idle: Vec<usize>,
    events: BinaryHeap<ProcessorFree>,
    /// The first query that has not come.
    next: usize,
    latencies: Vec<f64>,
}

/// The latency of each query in seconds. A device takes as one batch the work that it may have at a
/// time: the sum of what its queries take beside others, or what the feeding threads need, and once
/// the longest extra time alone. So a device does more with many queries at a time. A thread takes
/// longer the more of them are busy. Where both kinds have queries, some threads only feed devices.
///
/// # Panics
/// If the arrivals are not in order of time.
pub fn latencies(
    arrivals: &[Arrival],
    policy: Policy,
    deadline: f64,
    machine: Hardware,
) -> Vec<f64> {
    assert!(arrivals.is_sorted_by(|a, b| a.at <= b.at), "arrivals are in order");
    let mean = arrivals.iter().map(|it| it.real.seconds[1]).sum::<f64>() / arrivals.len() as f64;
    let (feeders, threads) = match policy {
        // All threads feed.
        Policy::Only(_) => (machine.threads, machine.threads),
        _ => {
            let feeders = machine.feeders(mean);
            (feeders, machine.threads.saturating_sub(feeders).max(1))
        }
    };
    let mut simulation = Simulation {
        arrivals,
        threads,
        host_seconds: machine.host_seconds(feeders),
        queues: Queues::new(policy, deadline, threads, machine.devices),
        idle: (0..threads + machine.devices).collect(),
        events: BinaryHeap::new(),
        next: 0,
        latencies: vec![0.0; arrivals.len()],
    };
    while let Some(now) = simulation.next_time() {
        simulation.end_until(now);
        simulation.begin(now);
    }
    simulation.latencies
}

impl Simulation<'_> {
    fn kind(&self, server: usize) -> Processor {
        if server < self.threads { Processor::Cpu } else { Processor::Device }
    }

    /// When the next query comes or a server becomes free.
    fn next_time(&self) -> Option<u64> {
        let coming = self.arrivals.get(self.next).map(|arrival| (arrival.at * 1e9) as u64);
        let free = self.events.peek().map(|Reverse((at, ..))| *at);
        coming.into_iter().chain(free).min()
    }

    /// Lets servers become free and queries come.
    fn end_until(&mut self, now: u64) {
        while let Some(Reverse((at, server, answers))) = self.events.peek().copied()
            && at <= now
        {
            self.events.pop();
            (0..answers).for_each(|_| self.queues.done(self.kind(server)));
            self.idle.push(server);
        }
        while let Some(arrival) = self.arrivals.get(self.next)
            && (arrival.at * 1e9) as u64 <= now
        {
            self.queues.push(self.next, arrival.predicted, arrival.at);
            self.next += 1;
        }
    }

    /// Gives queries to idle servers as long as one may take some.
    fn begin(&mut self, now: u64) {
        let seconds = now as f64 / 1e9;
        let mut at = 0;
        while at < self.idle.len() {
            let server = self.idle[at];
            let Some(query) = self.queues.take(self.kind(server), seconds) else {
                at += 1;
                continue;
            };
            let mut batch = vec![query];
            let took = match self.kind(server) {
                Processor::Cpu => {
                    let busy = self.queues.under_way(Processor::Cpu) as f64 / self.threads as f64;
                    self.arrivals[query].real.on_thread_beside(busy)
                }
                Processor::Device => self.fill(&mut batch, seconds),
            };
            let end = now + (took * 1e9) as u64;
            for &query in &batch {
                self.latencies[query] = end as f64 / 1e9 - self.arrivals[query].at;
            }
            self.events.push(Reverse((end, server, batch.len())));
            self.idle.swap_remove(at);
            // Another may now be allowed.
            at = 0;
        }
    }

    /// Fills a batch that has one query with what a device may have at a time; how long it takes.
    fn fill(&mut self, batch: &mut Vec<usize>, now: f64) -> f64 {
        let mut work = 0.0;
        let mut longer = 0.0_f64;
        let mut added = 0;
        loop {
            let Costs { seconds: [_, together], alone: [_, alone], .. } =
                self.arrivals[batch[added]].real;
            work += together.max(self.host_seconds);
            longer = longer.max(alone - together);
            added += 1;
            if work >= self.queues.ahead() {
                break;
            }
            let Some(query) = self.queues.take(Processor::Device, now) else { break };
            batch.push(query);
        }
        work + longer
    }
}

/// Queries of the streams behind a choice.
const CHOSEN_BY: usize = 3000;

const THRESHOLDS: usize = 16;

/// Queries that arrive at `times`, with predictions of the model.
fn stream(costs: &[Cost], model: &CostModel, times: impl Iterator<Item = f64>) -> Vec<Arrival> {
    let arrival = |(at, cost): (f64, &Cost)| Arrival {
        at,
        predicted: model.costs(&cost.features),
        real: cost.known(),
    };
    times.zip(costs.iter().cycle()).map(arrival).collect()
}

fn thresholds(costs: &[Cost]) -> Vec<u64> {
    let mut blocks: Vec<u64> = costs.iter().map(|cost| cost.features.blocks).collect();
    blocks.sort_unstable();
    let last = blocks.len().saturating_sub(1);
    let cuts = (0..=THRESHOLDS).map(|part| blocks.get(part * last / THRESHOLDS).map(|n| n + 1));
    let mut cuts: Vec<u64> = cuts.flatten().collect();
    cuts.dedup();
    cuts
}

/// Chooses by the time of all queries at once, and among those within 5 % of the best by the mean
/// latency at half of that rate. `times` gives arrivals at a rate of one a second.
///
/// # Panics
/// If there are no costs.
pub fn choose(
    costs: &[Cost],
    model: &CostModel,
    deadline: f64,
    machine: Hardware,
    times: impl Fn() -> Vec<f64>,
) -> PolicyChoice {
    assert!(!costs.is_empty(), "there are costs");
    let at_once = stream(costs, model, std::iter::repeat_n(0.0, CHOSEN_BY));
    let together = |policy: &Policy| {
        let found = latencies(&at_once, *policy, deadline, machine);
        found.into_iter().fold(0.0, f64::max)
    };
    let least = |policies: &[Policy]| {
        let took = policies.iter().map(|policy| (*policy, together(policy)));
        let took: Vec<(Policy, f64)> = took.collect();
        took.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are policies")
    };
    let kinds = [Processor::Device, Processor::Cpu];
    let all = thresholds(costs).into_iter();
    let all = all.flat_map(|threshold| kinds.map(|below| Policy::ByBlocks { threshold, below }));
    let (by_blocks, _) = least(&all.collect::<Vec<_>>());
    let only = kinds.map(Policy::Only);
    let policies = [Policy::Groups, Policy::Best, by_blocks, Policy::Halves, only[0], only[1]];
    let (_, soonest) = least(&policies);
    let rate = 0.5 * CHOSEN_BY as f64 / soonest;
    let spread = stream(costs, model, times().into_iter().map(|at| at / rate).take(CHOSEN_BY));
    let mean = |policy: &Policy| latencies(&spread, *policy, deadline, machine).iter().sum::<f64>();
    let near = policies.into_iter().filter(|policy| together(policy) <= 1.05 * soonest);
    let best = near.map(|policy| (policy, mean(&policy))).min_by(|a, b| a.1.total_cmp(&b.1));
    PolicyChoice { best: best.map_or(Policy::Groups, |(policy, _)| policy), by_blocks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::ding09::features::Features;

    fn spaced(rate: f64, n: usize) -> Vec<Arrival> {
        (0..n)
            .map(|i| {
                let cpu = 0.001 + (i * 7919 % 100) as f64 / 10_000.0;
                let seconds = [cpu, 0.004 + (i * 104_729 % 100) as f64 / 50_000.0];
                let costs = Costs::new(seconds, (cpu * 1e6) as u64);
                Arrival { at: i as f64 / rate, predicted: costs, real: costs }
            })
            .collect()
    }

    #[test]
    fn alone_a_query_takes_what_it_costs() {
        let arrivals = spaced(1.0, 50);
        let machine = Hardware { threads: 1, devices: 1 };
        for (policy, kind) in [("cpu", Processor::Cpu), ("gpu", Processor::Device)] {
            let found = latencies(&arrivals, policy.parse().unwrap(), 0.5, machine);
            for (latency, arrival) in found.iter().zip(&arrivals) {
                assert!((latency - arrival.real.on(kind)).abs() < 1e-8);
            }
        }
        let best = latencies(&arrivals, Policy::Best, 0.5, machine);
        for (latency, arrival) in best.iter().zip(&arrivals) {
            assert!((latency - arrival.real.on(arrival.real.better())).abs() < 1e-8);
        }
    }

    #[test]
    fn both_together_do_more_than_one_and_groups_more_than_halves() {
        let machine = Hardware { threads: 1, devices: 1 };
        let mean = |policy: &str, rate: f64| {
            let found = latencies(&spaced(rate, 4000), policy.parse().unwrap(), 0.5, machine);
            found.iter().sum::<f64>() / found.len() as f64
        };
        // One of each can do 167 and 200 a second.
        assert!(mean("cpu", 300.0) > 1.0 && mean("gpu", 300.0) > 1.0);
        assert!(mean("ding09", 300.0) < 0.05, "{}", mean("ding09", 300.0));
        assert!(mean("ding09", 300.0) < mean("sd", 300.0));
        assert!(mean("ding09", 300.0) <= mean("best-serial", 300.0));
    }

    #[test]
    fn wrong_predictions_lose_nothing() {
        let mut arrivals = spaced(250.0, 500);
        for (i, arrival) in arrivals.iter_mut().enumerate() {
            arrival.predicted.seconds.swap(0, i % 2);
        }
        let found = latencies(&arrivals, Policy::Groups, 0.02, Hardware { threads: 2, devices: 1 });
        for (latency, arrival) in found.iter().zip(&arrivals) {
            let least = arrival.real.seconds[0].min(arrival.real.seconds[1]);
            assert!(*latency >= least - 1e-8);
        }
    }

    #[test]
    fn a_device_that_is_slow_alone_is_fast_beside_others() {
        let costs = Costs { alone: [1.0, 0.01], ..Costs::new([1.0, 0.001], 1) };
        let arrivals = [Arrival { at: 0.0, predicted: costs, real: costs }; 5];
        let policy = Policy::Only(Processor::Device);
        let found = latencies(&arrivals, policy, 0.5, Hardware { threads: 1, devices: 1 });
        // All five are a batch, which takes once what one of them takes longer alone.
        assert!(found.iter().all(|latency| (latency - 0.014).abs() < 1e-8), "{found:?}");
    }

    #[test]
    fn a_device_does_no_more_than_threads_feed_it_and_less_with_few_queries_at_a_time() {
        let stream = |seconds: f64, longer: f64| {
            let costs = Costs { alone: [1.0, seconds + longer], ..Costs::new([1.0, seconds], 1) };
            vec![Arrival { at: 0.0, predicted: costs, real: costs }; 20_000]
        };
        let rate = |stream: &[Arrival], deadline, threads| {
            let machine = Hardware { threads, devices: 1 };
            let found = latencies(stream, Policy::Only(Processor::Device), deadline, machine);
            20_000.0 / found.into_iter().fold(0.0, f64::max)
        };
        // One thread feeds a device that does a million a second a quarter of what four do.
        let [one, four] = [1, 4].map(|threads| rate(&stream(1e-6, 0.0), 0.5, threads));
        assert!((3.9..4.1).contains(&(four / one)), "{one} {four}");
        // Short deadlines allow little work at a time.
        let [short, long] = [0.005, 0.5].map(|deadline| rate(&stream(1e-4, 2e-3), deadline, 8));
        assert!(short < 0.6 * long && long > 9000.0, "{short} {long}");
    }

    #[test]
    fn the_best_policy_is_chosen() {
        let cost = |i: usize, device: f64| {
            let df = 64 * (1 + i as u32 * 7919 % 1000);
            let seconds = [1e-6 * f64::from(df), device];
            Cost { features: Features::of([df]), seconds, alone: seconds }
        };
        let machine = Hardware { threads: 2, devices: 1 };
        let choose = |device: f64| {
            let costs: Vec<Cost> = (0..400).map(|i| cost(i, device)).collect();
            let model = CostModel::learn(&costs).unwrap();
            choose(&costs, &model, 0.5, machine, || (0..4000).map(f64::from).collect())
        };
        // A device that is slow is left alone; one that is fast with long queries gets these, but
        // not all.
        assert!(matches!(
            choose(9.0).best,
            Policy::Groups | Policy::Best | Policy::Only(Processor::Cpu)
        ));
        let even = choose(0.016);
        assert!(!matches!(even.best, Policy::Only(_) | Policy::Halves), "{even:?}");
        let below = Processor::Cpu;
        let Policy::ByBlocks { threshold, below: found } = even.by_blocks else {
            panic!("{even:?}")
        };
        assert_eq!(found, below);
        assert!((200..900).contains(&threshold), "{threshold}");
    }
}
