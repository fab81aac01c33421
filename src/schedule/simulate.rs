//! How would a stream of queries fare under a policy? A simulation of threads and devices with costs that were measured,
//! for machines that have no device, and for more rates than a run can try.

use super::features::Costs;
use super::queues::{Policy, Processor, Queues};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A query of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it comes, in seconds.
    pub at: f64,
    /// What a scheduler believes that it costs.
    pub predicted: Costs,
    /// What it costs.
    pub real: Costs,
}

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Threads.
    pub threads: usize,
    /// Devices.
    pub devices: usize,
}

/// A processor that becomes free: when, in nanoseconds, and which it is.
type Free = Reverse<(u64, usize)>;

/// The latency of each query, in seconds, in the order of the arrivals.
///
/// # Panics
/// If the arrivals are not in the order of time.
pub fn latencies(
    arrivals: &[Arrival],
    policy: Policy,
    deadline: f64,
    machine: Machine,
) -> Vec<f64> {
    assert!(arrivals.is_sorted_by(|a, b| a.at <= b.at), "arrivals are in order");
    let kind = |server: usize| match server < machine.threads {
        true => Processor::Cpu,
        false => Processor::Device,
    };
    let mut queues = Queues::new(policy, deadline, (machine.threads, machine.devices));
    let mut idle: Vec<usize> = (0..machine.threads + machine.devices).collect();
    let mut busy: BinaryHeap<Free> = BinaryHeap::new();
    let mut found = vec![0.0; arrivals.len()];
    let mut next = 0;
    loop {
        let coming = arrivals.get(next).map(|arrival| (arrival.at * 1e9) as u64);
        let free = busy.peek().map(|Reverse((at, _))| *at);
        let now = match (coming, free) {
            (None, None) => break,
            (Some(coming), Some(free)) => coming.min(free),
            (Some(now), None) | (None, Some(now)) => now,
        };
        while let Some(Reverse((at, server))) = busy.peek().copied()
            && at <= now
        {
            busy.pop();
            queues.done();
            idle.push(server);
        }
        while let Some(arrival) = arrivals.get(next)
            && (arrival.at * 1e9) as u64 <= now
        {
            queues.push(next, arrival.predicted, arrival.at);
            next += 1;
        }
        // Those that are free, each as long as there is something for it.
        let mut at = 0;
        while at < idle.len() {
            let server = idle[at];
            let Some(query) = queues.take(kind(server), now as f64 / 1e9) else {
                at += 1;
                continue;
            };
            let end = now + (arrivals[query].real.on(kind(server)) * 1e9) as u64;
            found[query] = end as f64 / 1e9 - arrivals[query].at;
            busy.push(Reverse((end, server)));
            idle.swap_remove(at);
            // Another may be allowed now what it was not before.
            at = 0;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rate: f64, n: usize) -> Vec<Arrival> {
        (0..n)
            .map(|i| {
                let cpu = 0.001 + (i * 7919 % 100) as f64 / 10_000.0;
                let seconds = [cpu, 0.004 + (i * 104_729 % 100) as f64 / 50_000.0];
                let costs = Costs { seconds, blocks: (cpu * 1e6) as u64 };
                Arrival { at: i as f64 / rate, predicted: costs, real: costs }
            })
            .collect()
    }

    #[test]
    fn alone_a_query_takes_what_it_costs() {
        let arrivals = stream(1.0, 50);
        let machine = Machine { threads: 1, devices: 1 };
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
        let machine = Machine { threads: 1, devices: 1 };
        let mean = |policy: &str, rate: f64| {
            let found = latencies(&stream(rate, 4000), policy.parse().unwrap(), 0.5, machine);
            found.iter().sum::<f64>() / found.len() as f64
        };
        // 167 and 200 a second are what one of each can do.
        assert!(mean("cpu", 300.0) > 1.0 && mean("gpu", 300.0) > 1.0);
        assert!(mean("ding09", 300.0) < 0.05, "{}", mean("ding09", 300.0));
        assert!(mean("ding09", 300.0) < mean("sd", 300.0));
        assert!(mean("ding09", 300.0) <= mean("best-serial", 300.0));
    }

    #[test]
    fn wrong_predictions_lose_nothing() {
        let mut arrivals = stream(250.0, 500);
        for (i, arrival) in arrivals.iter_mut().enumerate() {
            arrival.predicted.seconds.swap(0, i % 2);
        }
        let found = latencies(&arrivals, Policy::Groups, 0.02, Machine { threads: 2, devices: 1 });
        for (latency, arrival) in found.iter().zip(&arrivals) {
            let least = arrival.real.seconds[0].min(arrival.real.seconds[1]);
            assert!(*latency >= least - 1e-8);
        }
    }
}
