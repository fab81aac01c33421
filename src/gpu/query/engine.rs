//! The engine of workers whose queries devices answer. Each worker has a `GpuEngine`, which hands
//! planned queries to the thread of a device and takes answers back without ever waiting. Queries
//! that a device returns are answered here, on the CPU, with the same hits.

use super::batch::MOST_BY_BLOCKS;
use super::device::QueryDevice;
use super::driver::Driver;
use super::gather::{DeviceGathering, Next};
use super::list::Layout;
use super::method::{GivenDevice, GpuOptions, ThreadWork};
use super::service::{Counts, DeviceAnswer, DeviceDesk, DeviceJob, OnLost, Why};
use crate::crew::{Awaited, lock};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::index::error::IndexError;
use crate::query::engines::engine::whole::WholeEngines;
use crate::query::engines::engine::{Answer, Engines, Pace, QueryEngine, Wakers};
use crate::query::plan::Plan;
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::Mode;
use crate::score::named::Score;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[derive(Debug)]
struct DeviceThread {
    jobs: Sender<DeviceJob>,
    /// Dropped behind the sender, and waited for.
    _thread: Awaited<()>,
    lost: Arc<AtomicBool>,
    has: Arc<AtomicUsize>,
}

/// For queries that mostly ask for `k` hits. Blocks pay on a device where they do on a CPU.
pub fn layout_of(snapshot: &Snapshot, k: usize) -> Layout {
    let blocks = || snapshot.generation().runs().iter().all(|run| run.bounds().is_some());
    match snapshot.scoring().score {
        Score::Impact if k <= MOST_BY_BLOCKS as usize && blocks() => Layout::DocumentBlocks,
        Score::Impact => Layout::Impacts,
        _ => Layout::Bounds,
    }
}

/// The engines of the workers of a process, which share its devices.
#[derive(Debug)]
pub struct GpuEngines {
    devices: Arc<Vec<DeviceThread>>,
    snapshot: Arc<Snapshot>,
    answers: Vec<Mutex<Option<Receiver<Vec<DeviceAnswer>>>>>,
    counts: Arc<Counts>,
    options: GpuOptions,
    room: usize,
}

impl GpuEngines {
    /// Opens devices for queries of `snapshot`, each with a thread of its own, for the workers that
    /// `wakers` wake; `counts` are of all devices.
    ///
    /// # Panics
    /// If there is no device.
    pub(crate) fn open(
        devices: &[DeviceInfo],
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        options: GpuOptions,
        wakers: &Arc<Wakers>,
        on_lost: &OnLost,
        counts: &Arc<Counts>,
    ) -> Result<Self, GpuError> {
        assert!(!devices.is_empty(), "one device at least");
        let counts = counts.clone();
        let (senders, receivers): (Vec<Sender<_>>, Vec<_>) =
            (0..wakers.workers()).map(|_| channel()).unzip();
        let parts = if options.partition { devices.len() } else { 1 };
        let start = |(number, info): (usize, &DeviceInfo)| {
            let has = Arc::new(AtomicUsize::new(0));
            let had = has.clone();
            let (answers, wakers) = (senders.clone(), wakers.clone());
            let reply = Box::new(move |worker: usize, done: Vec<DeviceAnswer>| {
                had.fetch_sub(done.len(), Ordering::Relaxed);
                // A worker that has ended takes no answers, and needs no waking.
                if answers[worker].send(done).is_ok() {
                    wakers.wake(&[worker]);
                }
            });
            let device = Device::open(info, 1)?;
            let (jobs, from) = channel();
            let lost = Arc::new(AtomicBool::new(false));
            let desk = DeviceDesk::new(from, reply, counts.clone(), lost.clone(), on_lost.clone());
            let share = snapshot.docids_of_share(number % parts, parts);
            let given = GivenDevice { device, toolchain, snapshot, share, options: &options, desk };
            let run = match &options.method {
                Some(method) => method.open(given)?,
                None => work_of(given)?,
            };
            let thread = Awaited::begin(&format!("gpu-{}", info.ordinal), run)
                .map_err(|source| GpuError::Thread { device: info.to_string(), source })?;
            Ok(DeviceThread { jobs, _thread: thread, lost, has })
        };
        let threads =
            devices.iter().enumerate().map(start).collect::<Result<Vec<_>, GpuError>>()?;
        // As many as all slots take twice, so that the next batch waits when one is done.
        let room = 2 * options.batch * (options.slots + 1) * devices.len() / parts;
        let room = (room / wakers.workers().max(1)).max(64);
        let answers = receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect();
        let snapshot = snapshot.clone();
        let devices = Arc::new(threads);
        Ok(Self { devices, snapshot, answers, counts, options, room })
    }
}

/// Opens a device for queries; returns the work of its thread.
fn work_of(given: GivenDevice<'_>) -> Result<ThreadWork, GpuError> {
    let GivenDevice { device, toolchain, snapshot, share, options, desk } = given;
    let norms = snapshot.norms_of(&share);
    let layout = layout_of(snapshot, options.k);
    let query = QueryDevice::open(device, toolchain, norms, layout, options.memory)?;
    let driver = Driver::new(query, snapshot.clone(), share, options.clone(), desk)?;
    Ok(Box::new(move || driver.run()))
}

impl Engines for GpuEngines {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        let receiver = lock(&self.answers[worker]).take();
        let answers = receiver.expect("the engine of a worker is made once");
        let cpu = WholeEngines.engine(worker, snapshot)?;
        let devices = self.devices.clone();
        Ok(Box::new(GpuEngine {
            worker,
            devices,
            snapshot: self.snapshot.clone(),
            answers,
            open: HashMap::new(),
            ready: Vec::new(),
            back: VecDeque::new(),
            begun: VecDeque::new(),
            searcher: Searcher::new(),
            cpu,
            leaves_back: false,
            recalled: HashSet::new(),
            counts: self.counts.clone(),
            options: self.options.clone(),
            room: self.room,
        }))
    }
}

struct GpuEngine {
    worker: usize,
    devices: Arc<Vec<DeviceThread>>,
    /// What the devices answer from.
    snapshot: Arc<Snapshot>,
    answers: Receiver<Vec<DeviceAnswer>>,
    /// Queries of this worker at devices.
    open: HashMap<u64, DeviceGathering>,
    ready: Vec<Answer>,
    back: VecDeque<(u64, Plan)>,
    /// Queries that devices have begun, with their hits before a docid.
    begun: VecDeque<(u64, Arc<Plan>, Vec<Hit>, u32)>,
    searcher: Searcher,
    cpu: Box<dyn QueryEngine>,
    /// Somebody else answers queries for the CPU.
    leaves_back: bool,
    /// Queries that were taken back from devices which have not answered them.
    recalled: HashSet<u64>,
    counts: Arc<Counts>,
    options: GpuOptions,
    room: usize,
}

impl GpuEngine {
    /// The working device with the fewest queries.
    fn device(&self) -> Option<&DeviceThread> {
        let working = self.devices.iter().filter(|device| !device.lost.load(Ordering::Acquire));
        working.min_by_key(|device| device.has.load(Ordering::Relaxed))
    }

    /// Devices that answer a query together.
    fn parts(&self) -> usize {
        if self.options.partition { self.devices.len() } else { 1 }
    }

    fn send(&mut self, number: u64, plan: &Arc<Plan>) {
        let chosen: Vec<&DeviceThread> = match self.options.partition {
            true => self.devices.iter().collect(),
            false => self.device().into_iter().collect(),
        };
        let mut sent = 0;
        for device in chosen {
            let job = DeviceJob { worker: self.worker, number, plan: plan.clone() };
            device.has.fetch_add(1, Ordering::Relaxed);
            sent += usize::from(device.jobs.send(job).is_ok());
        }
        for _ in sent..self.parts() {
            self.answered(number, Err(Why::Lost));
        }
    }

    fn answered(&mut self, number: u64, found: Result<Vec<Hit>, Why>) {
        let parts = self.parts();
        let Some(gathering) = self.open.get_mut(&number) else {
            self.recalled.remove(&number);
            return;
        };
        match gathering.take(found, parts) {
            Next::Wait => {}
            Next::Again(plan) => self.send(number, &plan),
            Next::Hits(hits) => {
                self.ready.push(Answer::new(number, &gathering.plan, hits, None));
                self.open.remove(&number);
                self.counts.answered.fetch_add(1, Ordering::Relaxed);
            }
            Next::Back(plan, why) => {
                self.open.remove(&number);
                self.back(number, plan, why);
            }
        }
    }

    /// A device has begun a query, which the CPU ends.
    fn begun(&mut self, number: u64, hits: Vec<Hit>, from: u32) {
        let Some(gathering) = self.open.remove(&number) else {
            self.recalled.remove(&number);
            return;
        };
        self.counts.continued.fetch_add(1, Ordering::Relaxed);
        self.begun.push_back((number, gathering.plan, hits, from));
    }

    /// Leaves a query to the CPU.
    fn back(&mut self, number: u64, plan: Plan, why: Why) {
        self.counts.back(why);
        self.back.push_back((number, plan));
    }
}

impl QueryEngine for GpuEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        if plan.is_whole() || plan.snapshot().is_filtered() {
            return self.back(number, plan, Why::Unsuited);
        }
        let k = plan.wanted().k;
        let any = plan.known() && k > 0;
        let lacks = plan.terms().iter().any(|term| term.df == 0);
        if !any || (lacks && plan.wanted().mode == Mode::And) {
            self.ready.push(Answer::new(number, &plan, Vec::new(), None));
            return;
        }
        if !self.options.suits(&plan, &self.snapshot) {
            return self.back(number, plan, Why::Unsuited);
        }
        let gathering = DeviceGathering::new(plan, self.parts());
        let plan = gathering.plan.clone();
        self.open.insert(number, gathering);
        self.send(number, &plan);
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        while let Ok(done) = self.answers.try_recv() {
            for done in done {
                match done {
                    DeviceAnswer::Hits(number, hits) => self.answered(number, Ok(hits)),
                    DeviceAnswer::Begun(number, hits, from) => self.begun(number, hits, from),
                    DeviceAnswer::Back(number, why) => self.answered(number, Err(why)),
                }
            }
        }
        if let Some((number, plan, hits, from)) = self.begun.pop_front() {
            let hits = self.searcher.go_on(&plan, &hits, from)?.to_vec();
            self.ready.push(Answer::new(number, &plan, hits, None));
        }
        if !self.leaves_back
            && self.cpu.room()
            && let Some((number, plan)) = self.back.pop_front()
        {
            self.cpu.submit(number, plan);
        }
        let pace = self.cpu.advance()?;
        self.cpu.take(&mut self.ready);
        Ok(match pace {
            Pace::Idle if !self.back.is_empty() || !self.begun.is_empty() => Pace::Busy,
            // The device wakes this worker when it has answered some.
            Pace::Idle if !self.room() => Pace::Full,
            pace => pace,
        })
    }

    fn failed(&mut self) -> Option<u64> {
        self.cpu.failed()
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.ready);
    }

    fn room(&mut self) -> bool {
        self.takes() > 0
    }

    fn takes(&self) -> usize {
        self.room.saturating_sub(self.open.len() + self.back.len() + self.begun.len())
    }

    fn give_back(&mut self, overdue: Option<Instant>, queries: &mut Vec<(u64, Plan)>) {
        self.leaves_back = true;
        queries.extend(self.back.drain(..));
        let Some(before) = overdue else { return };
        let late =
            |(number, open): (&u64, &DeviceGathering)| (open.since < before).then_some(*number);
        let late: Vec<u64> = self.open.iter().filter_map(late).collect();
        for number in late {
            let Some(open) = self.open.remove(&number) else { continue };
            self.counts.back(Why::Slow);
            self.recalled.insert(number);
            queries.push((number, open.as_asked()));
        }
    }

    fn works(&self) -> bool {
        let works = |device: &DeviceThread| !device.lost.load(Ordering::Acquire);
        let devices = self.devices.iter();
        let enough = if self.options.partition {
            devices.clone().all(works)
        } else {
            devices.clone().any(works)
        };
        enough && self.recalled.is_empty()
    }
}
