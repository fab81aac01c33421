//! Measurement of what queries cost an engine, one at a time and all together: a device can do for
//! several queries at once what it does for one, and threads that share caches and memory take
//! longer.

use super::features::{Cost, Features};
use crate::crew::Crew;
use crate::crew::cores;
use crate::index::error::IndexError;
use crate::query::engines::engine::whole::WholeEngine;
use crate::query::engines::engine::{Answer, QueryEngine};
use crate::query::plan::Plan;
use std::time::Instant;

/// The least of this many times counts.
const TIMES: usize = 3;

/// Submits queries while there is room until all answers are there; returns the seconds.
fn answer(engine: &mut dyn QueryEngine, plans: &[Plan]) -> Result<f64, IndexError> {
    let mut next: usize = 0;
    let mut answers: Vec<Answer> = Vec::new();
    let began = Instant::now();
    while answers.len() < plans.len() {
        while next < plans.len() && engine.room() {
            engine.submit(next as u64, plans[next].clone());
            next += 1;
        }
        engine.advance()?;
        engine.take(&mut answers);
        // The device's thread may need this core.
        std::thread::yield_now();
    }
    Ok(began.elapsed().as_secs_f64())
}

/// The seconds of each query, one after the other.
fn alone(engine: &mut dyn QueryEngine, plans: &[Plan]) -> Result<Vec<f64>, IndexError> {
    let mut least = vec![f64::INFINITY; plans.len()];
    // The first time is left out: lists come from wherever they are.
    for time in 0..=TIMES {
        for (plan, least) in plans.iter().zip(&mut least) {
            let took = answer(engine, std::slice::from_ref(plan))?;
            if time > 0 {
                *least = least.min(took);
            }
        }
    }
    Ok(least)
}

/// Classes of queries by length that a device gets at once.
const CLASSES: usize = 8;

/// Least number of queries at once, unless a device is full before, after [`MOST_SECONDS`].
const AT_ONCE: usize = 2000;

const MOST_SECONDS: f64 = 0.5;

/// A device is full if four times the queries take at least this much longer.
const FULL: f64 = 2.0;

/// Sum of the seconds of all queries, with a thread for each core.
fn on_all_threads(plans: &[Plan]) -> Result<f64, IndexError> {
    let threads = cores();
    let seconds =
        Crew::new("measure").in_order(threads, plans.len(), |engine: &mut WholeEngine, at| {
            answer(engine, std::slice::from_ref(&plans[at]))
        })?;
    Ok(seconds.iter().sum())
}

/// Seconds of a device for each query among queries of about its length: its part, in proportion to
/// `alone`, of the time of its class. Beside others a short query takes less.
fn beside_others(
    engine: &mut dyn QueryEngine,
    plans: &[Plan],
    alone: &[f64],
) -> Result<Vec<f64>, IndexError> {
    let length = |at: usize| plans[at].terms().iter().map(|term| u64::from(term.df)).sum::<u64>();
    let mut by_length: Vec<usize> = (0..plans.len()).collect();
    by_length.sort_by_key(|&at| length(at));
    let mut seconds = alone.to_vec();
    for class in by_length.chunks(plans.len().div_ceil(CLASSES).max(1)) {
        let once: f64 = class.iter().map(|&at| alone[at]).sum();
        // More and more until the device is full; one that does a query at a time is at once.
        let mut times = 1;
        let mut took = f64::INFINITY;
        let mut before = 0.8 * once / FULL;
        loop {
            let of = |at: &usize| plans[*at].clone();
            let queries = class.iter().map(of).cycle().take(times * class.len());
            let all = answer(engine, &queries.collect::<Vec<_>>())?;
            took = took.min(all / times as f64);
            let full = all > MOST_SECONDS && all > FULL * before;
            if times * class.len() >= AT_ONCE || full {
                break;
            }
            before = all;
            times *= 4;
        }
        let share = took / once;
        class.iter().for_each(|&at| seconds[at] *= share);
    }
    Ok(seconds)
}

/// What each query costs a thread of the CPU and an engine of a device, in seconds, alone and
/// beside others. Queries without known terms are left out.
pub fn costs(device: &mut dyn QueryEngine, plans: &[Plan]) -> Result<Vec<Cost>, IndexError> {
    let plans: Vec<Plan> = plans.iter().filter(|plan| plan.known()).cloned().collect();
    let on_cpu = alone(&mut WholeEngine::default(), &plans)?;
    let on_device = alone(device, &plans)?;
    let beside = beside_others(device, &plans, &on_device)?;
    let crowded = (on_all_threads(&plans)? / on_cpu.iter().sum::<f64>()).max(1.0);
    let cost = |at: usize| Cost {
        features: Features::of(plans[at].terms().iter().map(|term| term.df)),
        seconds: [on_cpu[at] * crowded, beside[at]],
        alone: [on_cpu[at], on_device[at]],
    };
    Ok((0..plans.len()).map(cost).collect())
}
