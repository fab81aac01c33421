//! Answers queries by the CPU and by devices together: a scheduler over other engines. All queries that wait are in
//! queues that the workers share ([`Queues`]), by what they will cost on either; each worker drives an engine of the CPU
//! and one of the devices, and takes for both whatever the policy gives it.

use super::whole::Whole;
use super::{Answer, EngineError, Engines, Pace, QueryEngine, Wakers};
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Mode;
use crate::schedule::features::{CostModel, Costs, Features};
use crate::schedule::queues::{Policy, Processor, Queues};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Queries that wait here at most; the others wait where they came from, and lose nothing by it but their place.
const MOST_WAITING: usize = 2048;

/// What queries cost on a machine, by what they ask for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// The machine that was measured.
    pub machine: String,
    /// A model for each mode, by its name.
    pub modes: BTreeMap<String, CostModel>,
}

impl Models {
    /// The costs of a query: of a mode that nothing is known of, as if it were of another one.
    fn costs(&self, plan: &Plan) -> Costs {
        let features = Features::of(plan.terms().iter().map(|term| term.df));
        let name = plan.wanted().mode.name();
        let model = self.modes.get(name).or_else(|| self.modes.values().next());
        let unknown = Costs { seconds: [1e-3; 2], blocks: features.blocks };
        model.map_or(unknown, |model| model.costs(&features))
    }

    /// Whether costs of a mode are known.
    pub fn knows(&self, mode: Mode) -> bool {
        self.modes.contains_key(mode.name())
    }

    /// How this machine is called: its host, its processor, and devices.
    pub fn name_of_machine(devices: impl Iterator<Item = String>) -> String {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let cpu = model.map_or("unknown processor", |(_, model)| model);
        let devices = Vec::from_iter(devices).join(", ");
        format!("{}: {threads} threads of {cpu}; {devices}", host.trim())
    }
}

/// Queries that each kind of processor has answered.
#[derive(Debug, Default, Serialize)]
pub struct Shares {
    /// Threads of the CPU.
    pub cpu: AtomicU64,
    /// Devices. What these give back is answered by the CPU, and counted here.
    pub devices: AtomicU64,
}

struct State {
    queues: Queues<(u64, Plan)>,
    /// Workers that sleep.
    idle: Vec<usize>,
}

struct Shared {
    state: Mutex<State>,
    /// Queries that wait, to be looked at without the lock.
    waiting: AtomicUsize,
    models: Models,
    wakers: Arc<Wakers>,
    began: Instant,
    shares: Arc<Shares>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

/// Makes the engines of workers that share queues.
pub struct Hybrid {
    shared: Arc<Shared>,
    devices: Box<dyn Engines>,
}

impl fmt::Debug for Hybrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hybrid").field("shares", &self.shared.shares).finish_non_exhaustive()
    }
}

impl Hybrid {
    /// Schedules queries over the CPU and what `devices` makes, of which there are so many.
    pub fn new(
        (devices, number): (Box<dyn Engines>, usize),
        models: Models,
        policy: Policy,
        deadline: Duration,
        wakers: &Arc<Wakers>,
    ) -> Self {
        let queues = Queues::new(policy, deadline.as_secs_f64(), (wakers.workers(), number));
        let shared = Shared {
            state: Mutex::new(State { queues, idle: Vec::new() }),
            waiting: AtomicUsize::new(0),
            models,
            wakers: wakers.clone(),
            began: Instant::now(),
            shares: Arc::default(),
        };
        Self { shared: Arc::new(shared), devices }
    }

    /// Who has answered how many.
    pub fn shares(&self) -> &Arc<Shares> {
        &self.shared.shares
    }
}

impl Engines for Hybrid {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, EngineError> {
        Ok(Box::new(HybridEngine {
            shared: self.shared.clone(),
            worker,
            cpu: Whole::default(),
            device: self.devices.engine(worker, snapshot)?,
            answers: Vec::new(),
        }))
    }
}

struct HybridEngine {
    shared: Arc<Shared>,
    worker: usize,
    cpu: Whole,
    device: Box<dyn QueryEngine>,
    answers: Vec<Answer>,
}

impl HybridEngine {
    /// Moves the answers of one engine to those of this.
    fn collect(&mut self, kind: Processor) {
        let before = self.answers.len();
        let shares = &self.shared.shares;
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
            let mut state = self.shared.lock();
            (0..answered).for_each(|_| state.queues.done());
        }
    }

    /// Takes what the policy gives this worker now, for devices as much as there is room. Counts the worker among those
    /// that sleep if there is nothing. Says whether devices and the CPU got any.
    fn take_on(&mut self) -> [bool; 2] {
        let mut got = [false; 2];
        let mut state = self.shared.lock();
        state.idle.retain(|&idle| idle != self.worker);
        let now = self.shared.now();
        while self.device.room() > 0
            && let Some((number, plan)) = state.queues.take(Processor::Device, now)
        {
            self.device.submit(number, plan);
            got[0] = true;
        }
        // Whoever takes queries in leaves those of the CPU to others while any of these sleeps: what comes in would wait.
        let leaves = self.worker == 0 && !state.idle.is_empty();
        if !leaves && let Some((number, plan)) = state.queues.take(Processor::Cpu, now) {
            self.cpu.submit(number, plan);
            got[1] = true;
        }
        let left = state.queues.len();
        self.shared.waiting.store(left, Ordering::Relaxed);
        // Whoever begins a query of the CPU is away for some time: another looks after what is left.
        let woken = if (got[1] || leaves) && left > 0 { state.idle.pop() } else { None };
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
        let costs = self.shared.models.costs(&plan);
        let mut state = self.shared.lock();
        state.queues.push((number, plan), costs, self.shared.now());
        self.shared.waiting.store(state.queues.len(), Ordering::Relaxed);
        // This worker takes one itself.
        let woken = if state.queues.len() > 1 { state.idle.pop() } else { None };
        drop(state);
        self.shared.wakers.wake(woken.as_slice());
    }

    fn advance(&mut self) -> Result<Pace, EngineError> {
        let pace = self.device.advance()?;
        self.collect(Processor::Device);
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
            Pace::Idle | Pace::Full if self.room() == 0 => Pace::Full,
            Pace::Full => Pace::Idle,
            pace => pace,
        })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&self) -> usize {
        MOST_WAITING.saturating_sub(self.shared.waiting.load(Ordering::Relaxed))
    }
}
