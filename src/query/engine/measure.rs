//! What does a query cost an engine? Measured one query at a time, and all together: what a device does for one query alone
//! it can do for several side by side, and threads that share caches and memory take longer.

use super::whole::Whole;
use super::{Answer, EngineError, QueryEngine};
use crate::query::plan::Plan;
use crate::schedule::features::{Cost, Features};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

/// Times that each query is asked for; the least time counts.
const TIMES: usize = 3;

/// Submits queries as long as there is room and looks for answers until all are there; returns the seconds.
fn answer(engine: &mut dyn QueryEngine, plans: &[Plan]) -> Result<f64, EngineError> {
    let (mut next, mut answers): (usize, Vec<Answer>) = (0, Vec::new());
    let began = Instant::now();
    while answers.len() < plans.len() {
        while next < plans.len() && engine.room() > 0 {
            engine.submit(next as u64, plans[next].clone());
            next += 1;
        }
        engine.advance()?;
        engine.take(&mut answers);
        // The thread of a device may want this core.
        std::thread::yield_now();
    }
    Ok(began.elapsed().as_secs_f64())
}

/// The seconds of each query, one after the other.
fn alone(engine: &mut dyn QueryEngine, plans: &[Plan]) -> Result<Vec<f64>, EngineError> {
    let mut least = vec![f64::INFINITY; plans.len()];
    // The first time lists come from wherever they are.
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

/// Seconds of all queries, added up, where as many threads as there are cores take one after the other.
fn on_all_threads(plans: &[Plan]) -> Result<f64, EngineError> {
    let next = AtomicUsize::new(0);
    let thread = || {
        let (mut engine, mut seconds) = (Whole::default(), 0.0);
        while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            seconds += answer(&mut engine, std::slice::from_ref(plan))?;
        }
        Ok(seconds)
    };
    std::thread::scope(|scope| {
        let threads = 0..available_parallelism().map_or(1, NonZeroUsize::get);
        let threads: Vec<_> = threads.map(|_| scope.spawn(thread)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that measures")).sum()
    })
}

/// What each of some queries costs a thread of the CPU and an engine of a device, in seconds: beside others, its part of
/// the time that all take together, by what each takes alone. Queries that find nothing by their terms are left out.
///
/// # Errors
/// As [`QueryEngine::advance`].
pub fn costs(device: &mut dyn QueryEngine, plans: &[Plan]) -> Result<Vec<Cost>, EngineError> {
    let plans: Vec<Plan> = plans.iter().filter(|plan| plan.known()).cloned().collect();
    let on_cpu = alone(&mut Whole::default(), &plans)?;
    let on_device = alone(device, &plans)?;
    let together = answer(device, &plans)?;
    let beside = [
        on_all_threads(&plans)? / on_cpu.iter().sum::<f64>(),
        together / on_device.iter().sum::<f64>(),
    ];
    let took = plans.iter().zip(on_cpu.into_iter().zip(on_device));
    let cost = |(plan, (cpu, device)): (&Plan, (f64, f64))| Cost {
        features: Features::of(plan.terms().iter().map(|term| term.df)),
        seconds: [cpu * beside[0].max(1.0), device * beside[1]],
        alone: [cpu, device],
    };
    Ok(took.map(cost).collect())
}
