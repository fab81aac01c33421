//! Engines that answer queries by the CPU and devices together: a scheduler over other engines. All
//! waiting queries are in queues that the workers share ([`Queues`]), by their predicted costs on
//! either.
//!
//! The first workers, as many as devices need, feed devices and drive an engine for them; the
//! others answer queries of the CPU, so that no answer of a device waits behind a long query. A
//! feeder answers one itself only while devices have nothing and all others are busy.
//!
//! What devices cannot answer, and what they have had for far too long, goes to the CPU before all
//! else. While a device owes answers that were given up, or all are lost, all queries are the
//! CPU's.

#[cfg(test)]
pub(crate) mod tests;

use super::machine::Hardware;
use super::models::Predict;
use super::policy::{Policy, Processor};
use super::queues::{Queues, URGENT};
use crate::crew::{lock, spawn};
use crate::dataflow::query::answered_by::ProcessorShares;
use crate::index::error::IndexError;
use crate::query::engines::engine::whole::WholeEngine;
use crate::query::engines::engine::{Answer, Engines, Pace, QueryEngine, Wakers};
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The most queries that wait here; others wait where they came from and lose only their place.
const MOST_WAITING: usize = 2048;

/// A device is too slow when it needs this many times what all its queries should take.
const SLOW: f64 = 8.0;

/// Seconds before which no device is too slow: the first lists may take so long.
const LEAST_PATIENCE: f64 = 0.1;

/// Called with the first query taken back from a device, and how long the device had it.
pub type OnSlow = Box<dyn Fn(Duration) + Send + Sync>;

pub struct Scheduling {
    pub policy: Policy,
    pub deadline: Duration,
    /// Whether a query that has waited for longer is left unanswered.
    pub shed: bool,
    pub predict: Predict,
    /// Called once for a device that is too slow.
    pub on_slow: Option<OnSlow>,
    pub shares: Arc<ProcessorShares>,
}

struct HybridState {
    queues: Queues<(u64, Plan)>,
    idle: Vec<usize>,
    /// Seconds of a device for a query: the mean of the last ones.
    device_seconds: f64,
    failing: usize,
}

impl HybridState {
    /// Takes a sleeping worker that feeds devices or does not.
    fn wake(&mut self, feeders: usize, feeds: bool) -> Option<usize> {
        let at = self.idle.iter().rposition(|&worker| (worker < feeders) == feeds);
        at.map(|at| self.idle.swap_remove(at))
    }
}

struct SharedQueues {
    state: Mutex<HybridState>,
    /// Queries that wait, read without the lock.
    waiting: AtomicUsize,
    /// Queries that devices have, as far as workers have looked.
    on_devices: AtomicUsize,
    /// Number of workers that feed devices: the first ones.
    feeders: AtomicUsize,
    /// Rises when it is time to look for overdue queries of devices.
    looks: AtomicU64,
    scheduling: Scheduling,
    machine: Hardware,
    /// Whether a query was taken back from a device that was too slow.
    slow: AtomicBool,
    wakers: Arc<Wakers>,
    began: Instant,
}

impl SharedQueues {
    fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.began).as_secs_f64()
    }

    fn now(&self) -> f64 {
        self.seconds(Instant::now())
    }

    /// Wakes all workers now and then while devices have queries, until the scheduler is gone.
    fn look(shared: Weak<Self>, pause: Duration) {
        loop {
            std::thread::sleep(pause);
            let Some(shared) = shared.upgrade() else { return };
            if shared.on_devices.load(Ordering::Relaxed) > 0 {
                shared.looks.fetch_add(1, Ordering::Relaxed);
                shared.wakers.wake(&Vec::from_iter(0..shared.wakers.workers()));
            }
        }
    }
}

pub struct Hybrid {
    shared: Arc<SharedQueues>,
    devices: Box<dyn Engines>,
}

impl fmt::Debug for Hybrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hybrid").field("shares", self.shares()).finish_non_exhaustive()
    }
}

impl Hybrid {
    /// Schedules queries over the CPU and the engines `devices` of this many devices.
    pub fn new(
        devices: Box<dyn Engines>,
        number: usize,
        scheduling: Scheduling,
        wakers: &Arc<Wakers>,
    ) -> std::io::Result<Self> {
        let deadline = scheduling.deadline.as_secs_f64();
        let queues = Queues::new(scheduling.policy, deadline, wakers.workers(), number);
        let state = HybridState { queues, idle: Vec::new(), device_seconds: 1e-3, failing: 0 };
        let shared = Arc::new(SharedQueues {
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
            on_devices: AtomicUsize::new(0),
            feeders: AtomicUsize::new(1),
            looks: AtomicU64::new(0),
            scheduling,
            machine: Hardware { threads: wakers.workers(), devices: number.max(1) },
            slow: AtomicBool::new(false),
            wakers: wakers.clone(),
            began: Instant::now(),
        });
        let pause = Duration::from_secs_f64((deadline / 8.0).clamp(0.005, 0.05));
        let weak = Arc::downgrade(&shared);
        spawn("scheduler", move || SharedQueues::look(weak, pause))?;
        Ok(Self { shared, devices })
    }

    pub(crate) fn shares(&self) -> &Arc<ProcessorShares> {
        &self.shared.scheduling.shares
    }
}

impl Engines for Hybrid {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        let mut device = self.devices.engine(worker, snapshot)?;
        let mut back = Vec::new();
        // From now on it leaves to this engine what it cannot answer.
        device.give_back(None, &mut back);
        Ok(Box::new(HybridEngine {
            shared: self.shared.clone(),
            worker,
            cpu: WholeEngine::default(),
            device,
            on_device: 0,
            works: true,
            looked: 0,
            back,
            answers: Vec::new(),
        }))
    }
}

struct HybridEngine {
    shared: Arc<SharedQueues>,
    worker: usize,
    cpu: WholeEngine,
    device: Box<dyn QueryEngine>,
    on_device: usize,
    /// Whether it worked at the last look.
    works: bool,
    looked: u64,
    back: Vec<(u64, Plan)>,
    answers: Vec<Answer>,
}

impl HybridEngine {
    fn feeds(&self) -> bool {
        self.worker < self.shared.feeders.load(Ordering::Relaxed)
    }

    fn collect(&mut self, kind: Processor) {
        let before = self.answers.len();
        let shares = &self.shared.scheduling.shares;
        let count = match kind {
            Processor::Cpu => {
                self.cpu.take(&mut self.answers);
                &shares.cpu
            }
            Processor::Device => {
                self.device.take(&mut self.answers);
                &shares.devices
            }
        };
        let answered = self.answers.len() - before;
        if answered > 0 {
            count.fetch_add(answered as u64, Ordering::Relaxed);
            let mut state = lock(&self.shared.state);
            (0..answered).for_each(|_| state.queues.done(kind));
        }
        if kind == Processor::Device {
            self.left_device(answered);
        }
    }

    fn left_device(&mut self, queries: usize) {
        self.on_device -= queries;
        self.shared.on_devices.fetch_sub(queries, Ordering::Relaxed);
    }

    /// Takes from devices what they cannot answer, and what is overdue.
    fn look_after_device(&mut self) {
        let shared = self.shared.clone();
        let looks = shared.looks.load(Ordering::Relaxed);
        let overdue = if looks != std::mem::replace(&mut self.looked, looks) && self.on_device > 0 {
            let work = lock(&shared.state).queues.work_under_way(Processor::Device);
            let deadline = URGENT * shared.scheduling.deadline.as_secs_f64();
            let patience = deadline.max(SLOW * work).max(LEAST_PATIENCE);
            let patience = Duration::try_from_secs_f64(patience).ok();
            patience.and_then(|patience| Some((patience, Instant::now().checked_sub(patience)?)))
        } else {
            None
        };
        let mut back = std::mem::take(&mut self.back);
        self.device.give_back(None, &mut back);
        if let Some((patience, before)) = overdue {
            let suited = back.len();
            self.device.give_back(Some(before), &mut back);
            let first = back.len() > suited && !shared.slow.swap(true, Ordering::Relaxed);
            if let Some(on_slow) = shared.scheduling.on_slow.as_ref().filter(|_| first) {
                on_slow(patience);
            }
        }
        let works = self.device.works();
        if back.is_empty() && works == self.works {
            self.back = back;
            return;
        }
        self.left_device(back.len());
        let mut state = lock(&shared.state);
        let now = shared.now();
        for (number, plan) in back.drain(..) {
            let costs = (shared.scheduling.predict)(&plan);
            state.queues.done(Processor::Device);
            state.queues.give_back((number, plan), costs, now, Processor::Device);
        }
        if works != std::mem::replace(&mut self.works, works) {
            if works {
                state.failing -= 1;
            } else {
                state.failing += 1;
            }
            match state.failing {
                0 => state.queues.regain(Processor::Device),
                _ => state.queues.lose(Processor::Device),
            }
        }
        shared.waiting.store(state.queues.len(), Ordering::Relaxed);
        let woken = state.wake(shared.feeders.load(Ordering::Relaxed), false);
        drop(state);
        shared.wakers.wake(woken.as_slice());
        self.back = back;
    }

    /// Takes queries for this worker by the policy, for devices as many as there is room for. If
    /// there are none, the worker counts as asleep. Returns whether devices and the CPU got any.
    fn take_on(&mut self) -> [bool; 2] {
        let mut got = [false; 2];
        let feeds = self.feeds();
        let workers = self.shared.wakers.workers();
        let feeders = self.shared.feeders.load(Ordering::Relaxed);
        let mut state = lock(&self.shared.state);
        state.idle.retain(|&idle| idle != self.worker);
        let now = self.shared.now();
        while self.shared.scheduling.shed
            && let Some((number, plan)) = state.queues.take_late(now)
        {
            let known = plan.known();
            self.answers.push(Answer { number, known, late: true, ..Answer::default() });
        }
        let before = self.on_device;
        while feeds
            && self.device.room()
            && let Some((number, plan)) = state.queues.take(Processor::Device, now)
        {
            self.device.submit(number, plan);
            self.on_device += 1;
            got[0] = true;
        }
        self.shared.on_devices.fetch_add(self.on_device - before, Ordering::Relaxed);
        // A device has nobody while its feeder is away with a query of the CPU.
        let others = state.idle.iter().any(|&worker| worker >= feeders);
        let leaves = feeds && workers > 1 && (self.on_device > 0 || others);
        if !leaves && let Some((number, plan)) = state.queues.take(Processor::Cpu, now) {
            self.cpu.submit(number, plan);
            got[1] = true;
        }
        let left = state.queues.len();
        self.shared.waiting.store(left, Ordering::Relaxed);
        // A worker with a query of the CPU is away for some time: another takes what is left.
        let wakes = (got[1] || leaves) && state.queues.has_for(Processor::Cpu);
        let turn =
            state.queues.turn().map(|kind| kind == Processor::Device).filter(|of| *of != feeds);
        let woken = match turn {
            Some(of) => state.wake(feeders, of),
            None if wakes => state.wake(feeders, false),
            None => None,
        };
        if got == [false; 2] {
            state.idle.push(self.worker);
        }
        drop(state);
        self.shared.wakers.wake(woken.as_slice());
        got
    }
}

impl QueryEngine for HybridEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        self.submit_of(number, plan, Instant::now());
    }

    fn submit_of(&mut self, number: u64, plan: Plan, came: Instant) {
        let costs = (self.shared.scheduling.predict)(&plan);
        let feeds = self.feeds();
        let mut state = lock(&self.shared.state);
        let mean = &mut state.device_seconds;
        *mean += (costs.on(Processor::Device) - *mean) / 64.0;
        let feeders = self.shared.machine.feeders(*mean);
        if self.shared.feeders.swap(feeders, Ordering::Relaxed) != feeders {
            state.queues.set_threads(self.shared.machine.threads - feeders);
        }
        let group = state.queues.push((number, plan), costs, self.shared.seconds(came));
        let left = state.queues.len();
        self.shared.waiting.store(left, Ordering::Relaxed);
        // This worker takes one itself, if it does such.
        let mut woken = None;
        if group != Some(Processor::Cpu) && !feeds {
            woken = state.wake(feeders, true);
        }
        let worth = group != Some(Processor::Device) || state.queues.is_worth_stealing(&costs);
        if woken.is_none() && worth && (feeds || left > 1) {
            let other = state.wake(feeders, false);
            woken = other.or_else(|| state.wake(feeders, true));
        }
        drop(state);
        self.shared.wakers.wake(woken.as_slice());
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        let pace = self.device.advance()?;
        self.collect(Processor::Device);
        self.look_after_device();
        let [devices, cpu] = self.take_on();
        if devices {
            // Queries are on their way before this worker is away with one of its own.
            self.device.advance()?;
        }
        if cpu {
            self.cpu.advance()?;
            self.collect(Processor::Cpu);
        }
        Ok(match pace {
            _ if devices || cpu => Pace::Busy,
            Pace::Idle | Pace::Full if !self.room() => Pace::Full,
            Pace::Full => Pace::Idle,
            pace => pace,
        })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&mut self) -> bool {
        self.shared.waiting.load(Ordering::Relaxed) < MOST_WAITING
    }
}
