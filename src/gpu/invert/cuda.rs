//! A CUDA device that inverts: one stream, and a thread that waits for it.

use super::download::{CudaDownloader, Making};
use super::machine::{ArrayReading, DeviceMemory, Downloader, InvertMachine, Uploader};
use super::source;
use super::steps::{InvertArray, InvertStep};
use super::upload::CudaUploader;
use crate::crew::lock;
use crate::gpu::floor::arrays::{ArrayPlaces, CudaArrays};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::machine::{CudaQueue, DeviceWork, UnderWay};
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::pinned::{copy_all, groups};
use crate::gpu::floor::slab::Slab;
use crate::gpu::floor::steps::{Argument, Kernels};
use std::collections::{BTreeMap, HashSet};
use std::mem::take;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A lower number goes first: counting, which waits for many short kernels, before finding forms.
const FIRST: i32 = -1;
const LATER: i32 = 0;

/// Between two waits a device is given a few small arrays, each by a buffer of its own, and brings
/// some results; of large arrays one buffer is filled while others are copied.
const BUFFERS: usize = 3;
const BUFFER_BYTES: usize = 4 << 20;

/// Bytes that a thread copies at a time, and threads: one copies a third of what a device takes.
const PIECE_BYTES: usize = 512 << 10;
const COPIERS: usize = 4;

/// Milliseconds and launches, by kernel.
pub(crate) type Times = BTreeMap<&'static str, (f64, u32)>;

#[derive(Debug)]
pub struct CudaMachine {
    /// Arrays of kernels that may still run.
    in_use: HashSet<InvertArray>,
    shared: Arc<SharedKernels>,
    queue: CudaQueue<InvertArray>,
}

#[derive(Debug)]
struct SharedKernels {
    kernels: Kernels,
    downloader: Mutex<Making>,
    /// What kernels took that were measured.
    times: Mutex<Times>,
    measured: AtomicBool,
}

impl CudaMachine {
    pub fn open(device: Device, toolchain: &Toolchain) -> Result<Self, GpuError> {
        let source = source();
        let names = source.kernels().into_iter().map(|name| (name, 0));
        let kernels = Kernels::load(toolchain, &device, &source, names)?;
        let (downloader, times, measured) = Default::default();
        let shared = SharedKernels { kernels, downloader, times, measured };
        Self::with(Arc::new(shared), Arc::new(device), FIRST)
    }

    fn with(
        shared: Arc<SharedKernels>,
        device: Arc<Device>,
        priority: i32,
    ) -> Result<Self, GpuError> {
        let on = CudaArrays::new(device, shared.kernels.clone(), Some(priority))?;
        let queue = CudaQueue::new(on, BUFFERS, BUFFER_BYTES, COPIERS)?;
        Ok(Self { in_use: HashSet::new(), shared, queue })
    }

    /// From now on measures, or not, what each kernel of all machines of the device takes.
    pub fn measure(&mut self, measured: bool) {
        self.shared.measured.store(measured, Ordering::Relaxed);
    }

    /// Since the last call, if [measured](Self::measure).
    pub fn take_times(&mut self) -> Times {
        take(&mut *lock(&self.shared.times))
    }

    /// Device memory in use: arrays of this and its siblings, and texts.
    pub fn bytes(&self) -> u64 {
        self.queue.on.device.memory().used()
    }

    fn finish_with(&mut self, array: InvertArray) -> Result<(), GpuError> {
        if self.in_use.contains(&array) {
            self.queue.on.ticket(GpuWork::Download(0))?.wait()?;
            self.in_use.clear();
        }
        Ok(())
    }

    /// Brings parts of arrays that fit a buffer, and waits for all that was enqueued.
    fn bring(
        &mut self,
        down: Vec<(InvertArray, Range<u64>)>,
        to: Vec<&mut [u8]>,
    ) -> Result<(), GpuError> {
        let work = DeviceWork { up: vec![], steps: vec![], down };
        let brought = self.queue.begin_soon(&work)?;
        brought.wait()?;
        self.in_use.clear();
        let mut bytes = brought.bytes();
        let copies = to.into_iter().map(|to| {
            let from = bytes.split_off(..to.len()).expect("as many bytes were brought");
            (to, from)
        });
        copy_all(&mut self.queue.crew, COPIERS, copies.collect());
        Ok(())
    }
}

impl InvertMachine for CudaMachine {
    fn sibling(&self) -> Result<Box<dyn InvertMachine>, GpuError> {
        Ok(Box::new(Self::with(self.shared.clone(), self.queue.on.device.clone(), LATER)?))
    }

    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError> {
        // Arrays that stay of batches are many, and none grows.
        let more = if array == InvertArray::Kept { 0 } else { bytes / 4 };
        let ample = (bytes + more).next_multiple_of(1 << 16);
        self.queue.on.reserve(array, "texts and their lists", bytes, ample, kept)
    }

    fn places(&mut self) -> &mut dyn ArrayPlaces<InvertArray> {
        &mut self.queue.on.memory
    }

    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        let mut at = at;
        for slices in groups(parts, PIECE_BYTES, BUFFER_BYTES) {
            let bytes = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
            let up = vec![(array, at, slices)];
            self.queue.begin_soon(&DeviceWork { up, steps: vec![], down: vec![] })?;
            at += bytes;
        }
        Ok(())
    }

    fn read(&mut self, parts: &mut [ArrayReading<'_>]) -> Result<(), GpuError> {
        let mut down = Vec::new();
        let mut all = Vec::new();
        let mut filled = 0;
        for ArrayReading { array, at, to } in parts {
            for (at, to) in (*at..).step_by(PIECE_BYTES).zip(to.chunks_mut(PIECE_BYTES)) {
                if filled + to.len() > BUFFER_BYTES {
                    self.bring(take(&mut down), take(&mut all))?;
                    filled = 0;
                }
                filled += to.len();
                down.push((*array, at..at + to.len() as u64));
                all.push(to);
            }
        }
        self.bring(down, all)
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        Ok(Box::new(CudaUploader::new(self.queue.on.device.clone())?))
    }

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError> {
        let made = lock(&self.shared.downloader).made();
        let made = made.unwrap_or_else(|| CudaDownloader::new(&self.queue.on.device));
        Ok(Box::new(made?))
    }

    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError> {
        self.finish_with(array)?;
        Ok(self.queue.on.memory.take(array).map(|lent| Box::new(lent) as _))
    }

    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        let memory = memory.downcast::<Arc<Slab>>().expect("a CUDA device made it");
        self.finish_with(array)?;
        lock(&self.shared.downloader).begin(&self.queue.on.device)?;
        let old = self.queue.on.memory.put(array, *memory);
        Ok(old.map(|old| Box::new(old) as _))
    }

    fn run(&mut self, steps: &[InvertStep]) -> Result<(), GpuError> {
        if self.shared.measured.load(Ordering::Relaxed) {
            let took = self.queue.on.time(steps)?;
            let mut times = lock(&self.shared.times);
            for (step, took) in steps.iter().zip(took) {
                let time = times.entry(step.kernel).or_default();
                *time = (time.0 + f64::from(took), time.1 + 1);
            }
            return Ok(());
        }
        self.in_use.extend(steps.iter().flat_map(|step| &step.arguments).filter_map(|argument| {
            match argument {
                Argument::Array(array, _) => Some(array),
                Argument::Number(_) => None,
            }
        }));
        steps.iter().try_for_each(|step| self.queue.on.launch(step))
    }
}
