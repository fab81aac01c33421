//! How do workers have their queries answered by devices? Each worker has a `GpuEngine`, which hands
//! planned queries to the thread of a device and takes answers back without ever waiting. Queries that a
//! device gives back are answered here, on the CPU: the answers are the same.

use super::device::QueryDevice;
use super::plan::{MOST_HITS, Scale};
use super::service::{Counts, Done, Driver, Job, Pace as DriverPace};
use crate::gpu::device::Device;
use crate::gpu::discover::DeviceInfo;
use crate::gpu::error::GpuError;
use crate::gpu::modules::Toolchain;
use crate::query::engine::whole::WholeEngines;
use crate::query::engine::{Answer, EngineError, Engines, Pace, QueryEngine, Wakers};
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How devices answer queries.
#[derive(Clone, Copy, Debug)]
pub struct GpuOptions {
    /// Queries of a batch.
    pub batch: usize,
    /// Batches in flight on a device.
    pub slots: usize,
    /// Bytes of each device's memory for lists; most of what is free if left out.
    pub memory: Option<u64>,
    /// Hits that most queries ask for.
    pub k: usize,
    /// Threads that bring lists to a device.
    pub fetchers: usize,
    /// Whether batches of few queries are launched as graphs.
    pub graphs: bool,
    /// How long a batch that is not full waits for more queries while others are in flight.
    pub patience: Duration,
}

impl Default for GpuOptions {
    /// Batches of 256 queries for the best ten, three in flight.
    fn default() -> Self {
        Self {
            batch: 256,
            slots: 3,
            memory: None,
            k: 10,
            fetchers: 4,
            graphs: false,
            patience: Duration::from_micros(300),
        }
    }
}

/// Is told of a device that failed, once for each.
pub type OnLost = Arc<dyn Fn(&GpuError) + Send + Sync>;

/// The thread of a device.
struct DeviceThread {
    jobs: Option<Sender<Job>>,
    lost: Arc<AtomicBool>,
    /// Queries that it has.
    has: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            _ = thread.join();
        }
    }
}

/// Makes the engines of the workers of a process, which share its devices.
pub struct GpuEngines {
    devices: Arc<Vec<DeviceThread>>,
    snapshot: Arc<Snapshot>,
    answers: Vec<Mutex<Option<Receiver<Vec<Done>>>>>,
    counts: Arc<Counts>,
    room: usize,
}

impl std::fmt::Debug for GpuEngines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpuEngines").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl GpuEngines {
    /// Opens devices for queries of `snapshot`, each with a thread of its own, for the workers that
    /// `wakers` wake.
    ///
    /// # Errors
    /// A device cannot be opened, or has not the memory.
    ///
    /// # Panics
    /// If there is no device.
    pub fn open(
        devices: &[DeviceInfo],
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        options: GpuOptions,
        wakers: &Arc<Wakers>,
        on_lost: &OnLost,
    ) -> Result<Self, GpuError> {
        assert!(!devices.is_empty(), "one device at least");
        let counts = Arc::new(Counts::default());
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..wakers.workers()).map(|_| channel()).unzip();
        let threads = devices
            .iter()
            .map(|info| {
                let shared = (wakers.clone(), counts.clone());
                start(info, toolchain, snapshot, options, shared, &senders, on_lost)
            })
            .collect::<Result<Vec<_>, _>>()?;
        // As many as all slots take twice, so that the next batch waits when one is done.
        let room = 2 * options.batch * (options.slots + 1) * devices.len();
        let room = (room / wakers.workers().max(1)).max(64);
        let answers = receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect();
        let snapshot = snapshot.clone();
        Ok(Self { devices: Arc::new(threads), snapshot, answers, counts, room })
    }

    /// What the devices did.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

fn start(
    info: &DeviceInfo,
    toolchain: &Toolchain,
    snapshot: &Arc<Snapshot>,
    options: GpuOptions,
    (wakers, counts): (Arc<Wakers>, Arc<Counts>),
    answers: &[Sender<Vec<Done>>],
    on_lost: &OnLost,
) -> Result<DeviceThread, GpuError> {
    let query =
        QueryDevice::open(Device::open(info, 1)?, toolchain, snapshot.norms(), options.memory)?
            .with_graphs(options.graphs);
    let has = Arc::new(AtomicUsize::new(0));
    let (answers, had) = (answers.to_vec(), has.clone());
    let reply = Box::new(move |worker: usize, done: Vec<Done>| {
        had.fetch_sub(done.len(), Ordering::Relaxed);
        // A worker that has ended takes no answers, and needs no waking.
        if answers[worker].send(done).is_ok() {
            wakers.wake(&[worker]);
        }
    });
    let pace =
        DriverPace { batch: options.batch, slots: options.slots, patience: options.patience };
    let driver =
        Driver::new(query, snapshot.clone(), pace, options.k, options.fetchers, (reply, counts))?;
    let (sender, jobs) = channel();
    let lost = Arc::new(AtomicBool::new(false));
    let (flag, on_lost) = (lost.clone(), on_lost.clone());
    let thread = std::thread::Builder::new()
        .name(format!("gpu-{}", info.ordinal))
        .spawn(move || driver.run(&jobs, &flag, |error| on_lost(&error)))
        .map_err(|source| GpuError::Thread { device: info.to_string(), source })?;
    Ok(DeviceThread { jobs: Some(sender), lost, has, thread: Some(thread) })
}

impl Engines for GpuEngines {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, EngineError> {
        let receiver =
            self.answers[worker].lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let answers = receiver.expect("the engine of a worker is made once");
        let cpu = WholeEngines.engine(worker, snapshot)?;
        let devices = self.devices.clone();
        Ok(Box::new(GpuEngine {
            worker,
            devices,
            snapshot: self.snapshot.clone(),
            answers,
            ready: Vec::new(),
            back: VecDeque::new(),
            cpu,
            counts: self.counts.clone(),
            out: 0,
            room: self.room,
        }))
    }
}

/// The engine of one worker.
struct GpuEngine {
    worker: usize,
    devices: Arc<Vec<DeviceThread>>,
    /// What the devices answer from.
    snapshot: Arc<Snapshot>,
    answers: Receiver<Vec<Done>>,
    ready: Vec<Answer>,
    /// Queries for the CPU.
    back: VecDeque<(u64, Plan)>,
    cpu: Box<dyn QueryEngine>,
    counts: Arc<Counts>,
    /// Queries that devices have of this worker.
    out: usize,
    room: usize,
}

impl GpuEngine {
    /// The device with the fewest queries, of those that work.
    fn device(&self) -> Option<&DeviceThread> {
        let working = self.devices.iter().filter(|device| !device.lost.load(Ordering::Acquire));
        working.min_by_key(|device| device.has.load(Ordering::Relaxed))
    }

    /// Whether a device can answer the query, as far as the weights of its terms, its k and what it is
    /// answered from decide.
    fn suits(&self, plan: &Plan) -> bool {
        let known = plan.terms().iter().filter(|term| term.df > 0);
        let weights: Vec<f32> = known.map(|term| term.weight).collect();
        (1..=MOST_HITS).contains(&plan.wanted().k)
            && Arc::ptr_eq(plan.snapshot(), &self.snapshot)
            && Scale::new(weights.iter().copied()).is_some()
    }
}

impl QueryEngine for GpuEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        let k = plan.wanted().k;
        let any = plan.known() && k > 0;
        let lacks = plan.terms().iter().any(|term| term.df == 0);
        if !any || (lacks && plan.wanted().mode == crate::query::wanted::Mode::And) {
            self.ready.push(Answer { number, hits: Vec::new(), known: plan.known() });
            return;
        }
        if !self.suits(&plan) {
            self.counts.unsuited.fetch_add(1, Ordering::Relaxed);
            return self.back.push_back((number, plan));
        }
        let job = Job { worker: self.worker, number, plan: Box::new(plan) };
        let sent = match self.device().map(|device| (device, device.jobs.as_ref())) {
            Some((device, Some(jobs))) => {
                device.has.fetch_add(1, Ordering::Relaxed);
                jobs.send(job).map_err(|unsent| unsent.0)
            }
            _ => Err(job),
        };
        match sent {
            Ok(()) => self.out += 1,
            Err(job) => {
                self.counts.lost.fetch_add(1, Ordering::Relaxed);
                self.back.push_back((job.number, *job.plan));
            }
        }
    }

    fn advance(&mut self) -> Result<Pace, EngineError> {
        while let Ok(done) = self.answers.try_recv() {
            self.out -= done.len();
            for done in done {
                match done {
                    Done::Hits(number, hits, plan) => {
                        self.ready.push(Answer { number, hits, known: plan.known() });
                    }
                    Done::Back(number, plan) => self.back.push_back((number, *plan)),
                }
            }
        }
        if self.cpu.room() > 0
            && let Some((number, plan)) = self.back.pop_front()
        {
            self.cpu.submit(number, plan);
        }
        let pace = self.cpu.advance()?;
        self.cpu.take(&mut self.ready);
        Ok(match pace {
            Pace::Idle if !self.back.is_empty() => Pace::Busy,
            // The device wakes this worker when it has answered some.
            Pace::Idle if self.room() == 0 => Pace::Full,
            pace => pace,
        })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.ready);
    }

    fn room(&self) -> usize {
        self.room.saturating_sub(self.out + self.back.len())
    }
}
