//! A CUDA device that inverts: one stream, and a thread that waits for it. Writes go through two
//! pinned buffers that alternate, results through others.

use super::download::{CudaDownloader, Making};
use super::machine::{ArrayReading, DeviceMemory, Downloader, InvertMachine, Uploader};
use super::staged::{COPIERS, COPY_BYTES, STAGED_BYTES, StagingBuffers};
use super::steps::{InvertArray, InvertStep};
use super::upload::CudaUploader;
use super::{KERNELS, source};
use crate::crew::lock;
use crate::gpu::floor::arrays::{ArrayPlaces, CudaArrays};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::pinned::{Pinned, copy_all};
use crate::gpu::floor::slab::Slab;
use crate::gpu::floor::steps::{Argument, Kernels};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A lower number goes first: counting, which waits for many short kernels, before finding forms.
const FIRST: i32 = -1;
const LATER: i32 = 0;

/// Milliseconds and launches, by kernel.
pub(crate) type Times = BTreeMap<&'static str, (f64, u32)>;

#[derive(Debug)]
pub struct CudaMachine {
    up: StagingBuffers,
    down: Pinned,
    /// Arrays of kernels that may still run.
    in_use: HashSet<InvertArray>,
    shared: Arc<SharedKernels>,
    on: CudaArrays<InvertArray>,
}

#[derive(Debug)]
struct SharedKernels {
    kernels: Kernels,
    downloader: Mutex<Making>,
    /// What kernels took, if measured.
    times: Mutex<Option<Times>>,
    /// The same, without a lock for each launch.
    measured: AtomicBool,
}

impl CudaMachine {
    pub fn open(device: Device, toolchain: &Toolchain) -> Result<Self, GpuError> {
        let names = KERNELS.map(|name| (name, 0));
        let kernels = Kernels::load(toolchain, &device, &source(), names)?;
        let (downloader, times, measured) = Default::default();
        let shared = SharedKernels { kernels, downloader, times, measured };
        Self::with(Arc::new(shared), Arc::new(device), FIRST)
    }

    fn with(
        shared: Arc<SharedKernels>,
        device: Arc<Device>,
        priority: i32,
    ) -> Result<Self, GpuError> {
        let up = StagingBuffers::new(&device)?;
        let down = Pinned::new(&device, "lists", STAGED_BYTES)?;
        let on = CudaArrays::new(device, shared.kernels.clone(), Some(priority))?;
        Ok(Self { up, down, in_use: HashSet::new(), shared, on })
    }

    /// From now on measures, or not, what each kernel of all machines of the device takes.
    pub fn measure(&mut self, measured: bool) {
        *lock(&self.shared.times) = measured.then(Times::new);
        self.shared.measured.store(measured, Ordering::Relaxed);
    }

    /// Since the last call, if [measured](Self::measure).
    pub fn take_times(&mut self) -> Times {
        lock(&self.shared.times).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Device memory in use: arrays of this and its siblings, and texts.
    pub fn bytes(&self) -> u64 {
        self.on.device.memory().used()
    }

    /// Waits for all that was enqueued, which ends with a copy of so many bytes.
    fn finish(&mut self, bytes: usize) -> Result<(), GpuError> {
        self.on.ticket(GpuWork::Download(bytes as u64))?.wait()?;
        self.in_use.clear();
        Ok(())
    }

    fn finish_with(&mut self, array: InvertArray) -> Result<(), GpuError> {
        if self.in_use.contains(&array) { self.finish(0) } else { Ok(()) }
    }

    /// Waits for all that was enqueued, and copies parts of the buffer.
    fn take(&mut self, brought: Vec<(&mut [u8], Range<usize>)>) -> Result<(), GpuError> {
        self.finish(brought.iter().map(|(_, from)| from.len()).sum())?;
        // SAFETY: the copies are done.
        let bytes = unsafe { self.down.bytes() };
        let copies = brought.into_iter().map(|(to, from)| (to, &bytes[from]));
        copy_all(&mut self.up.crew, COPIERS, copies.collect());
        Ok(())
    }

    fn launch(&mut self, step: &InvertStep) -> Result<(), GpuError> {
        self.in_use.extend(step.arguments.iter().filter_map(|argument| match argument {
            Argument::Array(array, _) => Some(array),
            Argument::Number(_) => None,
        }));
        self.on.launch(step)
    }
}

impl InvertMachine for CudaMachine {
    fn sibling(&self) -> Result<Box<dyn InvertMachine>, GpuError> {
        Ok(Box::new(Self::with(self.shared.clone(), self.on.device.clone(), LATER)?))
    }

    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError> {
        // Arrays that stay of batches are many, and none grows.
        let more = if array == InvertArray::Kept { 0 } else { bytes / 4 };
        let ample = (bytes + more).next_multiple_of(1 << 16);
        self.on.reserve(array, "texts and their lists", bytes, ample, kept)
    }

    fn places(&mut self) -> &mut dyn ArrayPlaces<InvertArray> {
        &mut self.on.memory
    }

    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        self.up.send(&self.on, array, at, parts)
    }

    fn read(&mut self, parts: &mut [ArrayReading<'_>]) -> Result<(), GpuError> {
        // Parts of the buffer and their destinations.
        let mut brought = Vec::new();
        let mut filled = 0;
        for ArrayReading { array, at, to } in parts {
            let mut at = *at;
            for to in to.chunks_mut(COPY_BYTES) {
                if filled + to.len() > STAGED_BYTES {
                    self.take(std::mem::take(&mut brought))?;
                    filled = 0;
                }
                let from = self.on.memory.of(*array).part(at, to.len() as u64);
                // SAFETY: the array has so many bytes; the buffer is read behind the copy.
                unsafe { self.down.copy_down(from, filled, to.len(), &self.on.stream) }?;
                at += to.len() as u64;
                let end = filled + to.len();
                brought.push((to, filled..end));
                filled = end;
            }
        }
        self.take(brought)
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        Ok(Box::new(CudaUploader::new(self.on.device.clone())?))
    }

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError> {
        let made = lock(&self.shared.downloader).made();
        let made = made.unwrap_or_else(|| CudaDownloader::new(&self.on.device));
        Ok(Box::new(made?))
    }

    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError> {
        self.finish_with(array)?;
        Ok(self.on.memory.take(array).map(|lent| Box::new(lent) as _))
    }

    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        let memory = memory.downcast::<Slab>().expect("a CUDA device made it");
        self.finish_with(array)?;
        lock(&self.shared.downloader).begin(&self.on.device)?;
        let old = self.on.memory.put(array, *memory);
        Ok(old.map(|old| Box::new(old) as _))
    }

    fn run(&mut self, steps: &[InvertStep]) -> Result<(), GpuError> {
        if !self.shared.measured.load(Ordering::Relaxed) {
            return steps.iter().try_for_each(|step| self.launch(step));
        }
        for step in steps {
            let work = GpuWork::Kernel(step.launched());
            let began = self.on.ticket(work)?;
            self.launch(step)?;
            let ended = self.on.ticket(work)?;
            ended.wait()?;
            let took = ended.ms_since(&began)?;
            if let Some(times) = lock(&self.shared.times).as_mut() {
                let time = times.entry(step.kernel).or_default();
                *time = (time.0 + f64::from(took), time.1 + 1);
            }
        }
        Ok(())
    }
}
