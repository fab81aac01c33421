//! How does a CUDA device run the steps? On one stream, by a thread that waits for it: what is
//! written goes through two pinned buffers by turns, results through others.

use super::download::{CudaDownloader, Making};
use super::machine::{Arrays, DeviceMemory, Downloader, Machine, Places, Reading, Uploader};
use super::staged::{Buffer, Buffers, COPY_BYTES, STAGED_BYTES, copy_all, failed, wait};
use super::steps::{ARRAYS, InvertArray, Step};
use super::upload::CudaUploader;
use super::{KERNELS, source};
use crate::crew::lock;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::slab::Slab;
use crate::gpu::floor::steps::Argument;
use crate::gpu::floor::steps::launch;
use crate::gpu::lane::event;
use cudarc::driver::{CudaFunction, CudaStream, result};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Whoever counts comes before whoever finds forms of later batches: it has many short kernels that
/// it waits for. A lower number comes first.
const FIRST: i32 = -1;
const LATER: i32 = 0;

/// Milliseconds and launches, by kernel.
pub(crate) type Times = BTreeMap<&'static str, (f64, u32)>;

/// A CUDA device with the arrays of one inverter.
#[derive(Debug)]
pub struct CudaMachine {
    arrays: Arrays<Slab>,
    up: Buffers,
    down: Buffer,
    stream: Arc<CudaStream>,
    /// Arrays that kernels use of which it is not known whether they are done, a bit for each.
    in_use: u128,
    shared: Arc<Shared>,
    device: Arc<Device>,
}

/// What machines of a device share.
#[derive(Debug)]
struct Shared {
    functions: HashMap<&'static str, CudaFunction>,
    downloader: Mutex<Making>,
    /// What kernels took, if that is measured.
    times: Mutex<Option<Times>>,
    /// The same, without a lock for each launch.
    measured: AtomicBool,
}

impl CudaMachine {
    /// Loads the kernels.
    ///
    /// # Errors
    /// They do not compile, or the driver refuses.
    pub fn open(device: Device, toolchain: &Toolchain) -> Result<Self, GpuError> {
        let device = Arc::new(device);
        let module = toolchain.load(&device, &source())?;
        let mut functions = HashMap::new();
        for name in KERNELS {
            functions.insert(name, module.kernel(&device, name)?.function().clone());
        }
        let (downloader, times, measured) = Default::default();
        Self::with(Arc::new(Shared { functions, downloader, times, measured }), device, FIRST)
    }

    fn with(shared: Arc<Shared>, device: Arc<Device>, priority: i32) -> Result<Self, GpuError> {
        let stream = device.context().new_stream_with_priority(priority);
        let stream = stream.map_err(|e| device.call("make a stream", e))?;
        let (up, down) = (Buffers::new(&device)?, Buffer::new(&device, STAGED_BYTES)?);
        Ok(Self { arrays: Arrays::new(), up, down, stream, in_use: 0, shared, device })
    }

    /// Measures from now on what each kernel takes, of all machines of the device, or does not.
    pub fn measure(&mut self, measured: bool) {
        *lock(&self.shared.times) = measured.then(Times::new);
        self.shared.measured.store(measured, Ordering::Relaxed);
    }

    /// What kernels took since the last call, if that is [measured](Self::measure).
    pub fn take_times(&mut self) -> Times {
        lock(&self.shared.times).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Bytes of the device's memory that are in use: its arrays, those of its siblings, and texts.
    pub fn bytes(&self) -> u64 {
        self.device.memory().used()
    }

    /// Waits until all that was enqueued is done.
    fn finish(&mut self) -> Result<(), GpuError> {
        self.down.copied.record(&self.stream).map_err(|e| failed(&self.device, e))?;
        wait(&self.device, &self.down.copied)?;
        self.in_use = 0;
        Ok(())
    }

    /// Waits until no kernel uses an array.
    fn finish_with(&mut self, array: InvertArray) -> Result<(), GpuError> {
        if self.in_use >> array as usize & 1 != 0 { self.finish() } else { Ok(()) }
    }

    /// Waits until all that was enqueued is done, and takes parts of the buffer.
    fn take(&mut self, brought: Vec<(&mut [u8], Range<usize>)>) -> Result<(), GpuError> {
        self.finish()?;
        // SAFETY: the copies are done.
        let bytes = unsafe { self.down.staging.bytes() };
        let copies = brought.into_iter().map(|(to, from)| (to, &bytes[from]));
        copy_all(&mut self.up.crew, copies.collect());
        Ok(())
    }

    /// Reads parts of arrays, and waits until they are there, unless something fails.
    fn try_read(&mut self, parts: &mut [Reading<'_>]) -> Result<(), GpuError> {
        // What of the buffer goes where.
        let (mut brought, mut filled) = (Vec::new(), 0);
        for Reading { array, at, to, is_pinned } in parts {
            let mut at = *at;
            if *is_pinned && !to.is_empty() {
                let from = self.array(*array).part(at, to.len() as u64);
                let call = |e| self.device.call("copy columns from the device", e);
                self.device.context().bind_to_thread().map_err(call)?;
                // SAFETY: the array has so many bytes, and whoever reads waits until the copy is
                // done.
                unsafe { result::memcpy_dtoh_async(to, from, self.stream.cu_stream()) }
                    .map_err(call)?;
                continue;
            }
            for to in to.chunks_mut(COPY_BYTES) {
                if filled + to.len() > STAGED_BYTES {
                    self.take(std::mem::take(&mut brought))?;
                    filled = 0;
                }
                let from = self.array(*array).part(at, to.len() as u64);
                let call = |e| self.device.call("copy lists from the device", e);
                self.device.context().bind_to_thread().map_err(call)?;
                // SAFETY: the array has so many bytes, and nobody looks at this part of the buffer
                // before the copy is done.
                unsafe { self.down.staging.copy_down(from, filled, to.len(), &self.stream) }
                    .map_err(call)?;
                at += to.len() as u64;
                let end = filled + to.len();
                brought.push((to, filled..end));
                filled = end;
            }
        }
        self.take(brought)
    }

    fn array(&self, array: InvertArray) -> &Slab {
        self.arrays.of(array).expect("an array is reserved before it is used")
    }

    fn launch(&mut self, step: &Step) -> Result<(), GpuError> {
        const { assert!(ARRAYS <= u128::BITS as usize) };
        for argument in &step.arguments {
            if let Argument::Array(array, _) = argument {
                self.in_use |= 1 << *array as usize;
            }
        }
        let address = |array| self.array(array).address();
        // SAFETY: `steps` has the arguments that the kernel declares, which the tests pass to it
        // too, and the inverter has reserved what the kernel writes and reads for as many items as
        // it is told.
        unsafe {
            launch(&self.device, &self.stream, &self.shared.functions[step.kernel], step, address)
        }
    }
}

impl Machine for CudaMachine {
    fn sibling(&self) -> Result<Box<dyn Machine>, GpuError> {
        Ok(Box::new(Self::with(self.shared.clone(), self.device.clone(), LATER)?))
    }

    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError> {
        let old = self.arrays.place(array);
        let had = old.as_ref().map_or(0, Slab::bytes);
        assert!(kept <= had, "{array:?} has {had} bytes, of which {kept} are to stay");
        if bytes <= had && old.is_some() {
            return Ok(());
        }
        if kept == 0 {
            // Both need not have room at once.
            *old = None;
        }
        let what = "texts and their lists";
        // What stays of batches is many arrays, none of which grows.
        let more = if array == InvertArray::Kept { 0 } else { bytes / 4 };
        let ample = (bytes + more).next_multiple_of(1 << 16);
        let slab = Slab::new(&self.device, what, ample)
            .or_else(|_| Slab::new(&self.device, what, bytes))?;
        if let Some(old) = old.as_ref().filter(|_| kept > 0) {
            let (to, from) = (slab.part(0, kept), old.part(0, kept));
            let copied = self.device.context().bind_to_thread().and_then(|()| {
                // SAFETY: both have so many bytes; the old ones are freed when all work on the
                // device is done.
                unsafe {
                    result::memcpy_dtod_async(to, from, kept as usize, self.stream.cu_stream())
                }
            });
            copied.map_err(|e| self.device.call("copy on the device", e))?;
        }
        *self.arrays.place(array) = Some(slab);
        Ok(())
    }

    fn places(&mut self) -> &mut dyn Places {
        &mut self.arrays
    }

    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        let to = self.arrays.of(array).expect("it is reserved before it is used");
        // SAFETY: whoever frees an array waits for the device.
        unsafe { self.up.send((to, at), parts, &self.device, &self.stream) }
    }

    fn read(&mut self, parts: &mut [Reading<'_>]) -> Result<(), GpuError> {
        let read = self.try_read(parts);
        if read.is_err() {
            // Copies to memory of others may be under way.
            self.stream.context().record_err(self.stream.synchronize());
        }
        read
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        Ok(Box::new(CudaUploader::new(self.device.clone())?))
    }

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError> {
        let made = lock(&self.shared.downloader).made();
        let made = made.unwrap_or_else(|| CudaDownloader::new(&self.device));
        Ok(Box::new(made?))
    }

    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError> {
        self.finish_with(array)?;
        Ok(self.arrays.place(array).take().map(|lent| Box::new(lent) as _))
    }

    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        let memory = memory.downcast::<Slab>().expect("a CUDA device made it");
        self.finish_with(array)?;
        lock(&self.shared.downloader).begin(&self.device)?;
        let old = self.arrays.place(array).replace(*memory);
        Ok(old.map(|old| Box::new(old) as _))
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), GpuError> {
        if !self.shared.measured.load(Ordering::Relaxed) {
            return steps.iter().try_for_each(|step| self.launch(step));
        }
        for step in steps {
            let (began, ended) = (event(&self.device)?, event(&self.device)?);
            began.record(&self.stream).map_err(|e| failed(&self.device, e))?;
            self.launch(step)?;
            ended.record(&self.stream).map_err(|e| failed(&self.device, e))?;
            wait(&self.device, &ended)?;
            let took = began.elapsed_ms(&ended).map_err(|e| failed(&self.device, e))?;
            if let Some(times) = lock(&self.shared.times).as_mut() {
                let time = times.entry(step.kernel).or_default();
                *time = (time.0 + f64::from(took), time.1 + 1);
            }
        }
        Ok(())
    }
}

impl Drop for CudaMachine {
    fn drop(&mut self) {
        // A build that ends early has work under way here, which uses arrays and buffers.
        self.stream.context().record_err(self.stream.synchronize());
    }
}
