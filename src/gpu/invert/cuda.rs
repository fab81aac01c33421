//! How does a CUDA device run the steps? On one stream, by a thread that waits for it: what is written goes through two pinned
//! buffers by turns, results through others.

use super::machine::{
    Arrays, DeviceMemory, Downloader, MOST_TAKEN, Machine, NextParcel, Places, Reading, Uploader,
};
use super::steps::{ARRAYS, Array, Step};
use super::upload::CudaUploader;
use super::{KERNELS, source};
use crate::crew::{Awaited, Crew, lock};
use crate::gpu::device::Device;
use crate::gpu::error::{Cuda, GpuError, Work};
use crate::gpu::events::is_done;
use crate::gpu::lane::event;
use crate::gpu::modules::Toolchain;
use crate::gpu::query::device::launch;
use crate::gpu::query::slab::{Slab, Staging};
use crate::gpu::query::steps::Argument;
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, DriverError, result};
use std::collections::{BTreeMap, HashMap};
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes of each pinned buffer.
const STAGED_BYTES: usize = 4 << 20;

/// Bytes that a thread copies at a time, and threads that copy: one copies a third of what a device takes in the same time.
const COPY_BYTES: usize = 512 << 10;
const COPIERS: usize = 4;

/// Threads that take parts of an array to the host: who puts lists in a file through a map, page by page, does 1.3 GB/s, and 16 do 21.
const TAKERS: usize = 16;

/// How long a thread looks again and again whether something is done, before it sleeps between two looks: most of what it waits for takes less
/// than going to sleep and waking up. Longer, and workers miss the core that it takes.
const LOOKING: Duration = Duration::from_micros(100);
const PAUSE: Duration = Duration::from_micros(20);

/// A pinned buffer and the end of its last copy.
#[derive(Debug)]
struct Buffer {
    staging: Staging,
    copied: CudaEvent,
}

impl Buffer {
    fn new(device: &Device, bytes: usize) -> Result<Self, GpuError> {
        let staging = Staging::new(device, "texts and lists", bytes)?;
        Ok(Self { staging, copied: event(device)? })
    }
}

/// Two pinned buffers: one is filled while what was copied from the other is on its way.
#[derive(Debug)]
struct Buffers {
    buffers: [Buffer; 2],
    /// Which is filled, and how far.
    current: usize,
    filled: usize,
    crew: Crew,
}

fn failed(device: &Device, source: DriverError) -> GpuError {
    let (device, work) = (device.info().to_string(), Work::Download(0));
    GpuError::Work { device, work, source: Cuda(source) }
}

/// Waits until what stands before an event is done.
pub(super) fn wait(device: &Device, event: &CudaEvent) -> Result<(), GpuError> {
    let began = Instant::now();
    while !is_done(event).map_err(|e| failed(device, e))? {
        match began.elapsed() < LOOKING {
            true => spin_loop(),
            false => sleep(PAUSE),
        }
    }
    Ok(())
}

impl Buffers {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let buffer = || Buffer::new(device, STAGED_BYTES);
        let (buffers, crew) = ([buffer()?, buffer()?], Crew::new("copier"));
        Ok(Self { buffers, current: 0, filled: 0, crew })
    }

    /// Enqueues copies of parts to the device, one behind the other.
    ///
    /// # Safety
    /// The memory stays until the copies are done.
    unsafe fn send(
        &mut self,
        (to, at): (&Slab, u64),
        parts: &[&[u8]],
        device: &Device,
        stream: &CudaStream,
    ) -> Result<(), GpuError> {
        let (mut at, mut parts, mut rest) = (at, parts.iter(), &[][..]);
        loop {
            if self.filled == STAGED_BYTES {
                (self.current, self.filled) = (1 - self.current, 0);
                // Its last copy is the last one that was enqueued from it.
                wait(device, &self.buffers[self.current].copied)?;
            }
            let (buffer, first) = (&mut self.buffers[self.current], self.filled);
            // SAFETY: what is copied from this buffer lies before that.
            let mut room = unsafe { &mut buffer.staging.bytes_mut()[first..] };
            let mut copies = Vec::new();
            while !room.is_empty() {
                if rest.is_empty() {
                    let Some(part) = parts.next() else { break };
                    rest = *part;
                    continue;
                }
                let len = rest.len().min(room.len()).min(COPY_BYTES);
                let (to, behind) = room.split_at_mut(len);
                let (from, more) = rest.split_at(len);
                (room, rest) = (behind, more);
                copies.push((to, from));
                self.filled += len;
            }
            let filled = self.filled - first;
            if filled == 0 {
                return Ok(());
            }
            copy_all(&mut self.crew, copies);
            let to = to.part(at, filled as u64);
            let call = |e| device.call("copy texts to the device", e);
            device.context().bind_to_thread().map_err(call)?;
            // SAFETY: the array has so many bytes from there on, and the caller answers for it; this part of the buffer is not filled again
            // before, and it waits for the device when it is dropped.
            let copied = unsafe { buffer.staging.copy_up(first..self.filled, to, stream) };
            copied.and_then(|()| buffer.copied.record(stream)).map_err(call)?;
            at += filled as u64;
        }
    }
}

/// A buffer and a stream of its own.
#[derive(Debug)]
struct Taker {
    buffer: Buffer,
    stream: Arc<CudaStream>,
}

impl Taker {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let stream = device.context().new_stream();
        let stream = stream.map_err(|e| device.call("make a stream", e))?;
        Ok(Self { buffer: Buffer::new(device, MOST_TAKEN as usize)?, stream })
    }

    /// Brings bytes of the device to the buffer.
    ///
    /// # Safety
    /// The memory has so many from `from` on, and stays until this returns.
    unsafe fn bring(
        &mut self,
        device: &Device,
        from: u64,
        bytes: usize,
    ) -> Result<&[u8], GpuError> {
        let Self { buffer, stream } = self;
        let call = |e| device.call("copy lists from the device", e);
        device.context().bind_to_thread().map_err(call)?;
        // SAFETY: the caller answers for the memory, and nobody looks at the buffer before the copy is done.
        unsafe { buffer.staging.copy_down(from, 0, bytes, stream) }
            .and_then(|()| buffer.copied.record(stream))
            .map_err(call)?;
        wait(device, &buffer.copied)?;
        // SAFETY: the copy is done.
        Ok(unsafe { &buffer.staging.bytes()[..bytes] })
    }
}

/// Takes parts of arrays to the host by several threads.
struct CudaDownloader {
    takers: Vec<Taker>,
    crew: Crew,
    device: Arc<Device>,
}

impl CudaDownloader {
    fn new(device: &Arc<Device>) -> Result<Self, GpuError> {
        let takers: Result<_, _> = (0..TAKERS).map(|_| Taker::new(device)).collect();
        Ok(Self { takers: takers?, crew: Crew::new("taker"), device: device.clone() })
    }
}

impl Downloader for CudaDownloader {
    fn download(&mut self, next: NextParcel<'_>) -> Result<(), GpuError> {
        let device = &*self.device;
        let take_parcels = |taker: &mut Taker| {
            while let Some(parcel) = next() {
                let from = parcel.memory().downcast_ref::<Slab>();
                let from = from.expect("a CUDA device has lent it");
                let Range { start, end } = parcel.bytes();
                // SAFETY: the memory has these bytes, and the parcel has it until they are taken.
                let bytes = unsafe {
                    taker.bring(device, from.part(start, end - start), (end - start) as usize)
                }?;
                parcel.take(bytes);
            }
            Ok(())
        };
        let take_parcels = &take_parcels;
        let takers = self.takers.iter_mut().map(|taker| move || take_parcels(taker));
        self.crew.all(takers.collect()).into_iter().collect()
    }
}

/// Who takes parts of arrays to the host. A thread pins its buffers while the first batches are inverted: when they are needed a run would wait for that,
/// and before the first batch other buffers are pinned.
#[derive(Debug, Default)]
struct Making {
    has_begun: bool,
    thread: Option<Awaited<Result<CudaDownloader, GpuError>>>,
}

impl Making {
    fn begin(&mut self, device: &Arc<Device>) -> Result<(), GpuError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let of = device.clone();
        let thread = Awaited::begin("pinning", move || CudaDownloader::new(&of));
        let refused = |source| GpuError::Thread { device: device.info().to_string(), source };
        self.thread = Some(thread.map_err(refused)?);
        Ok(())
    }

    fn made(&mut self) -> Option<Result<CudaDownloader, GpuError>> {
        self.thread.take().map(Awaited::made)
    }
}

/// Whoever counts comes before whoever finds forms of later batches: it has many short kernels that it waits for. A lower number comes first.
const FIRST: i32 = -1;
const LATER: i32 = 0;

/// Milliseconds and launches, by kernel.
pub type Times = BTreeMap<&'static str, (f64, u32)>;

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

/// Copies the beginning of each second slice to the first of its pair, as long as that is; several threads share large work.
fn copy_all(crew: &mut Crew, mut copies: Vec<(&mut [u8], &[u8])>) {
    let copy = |copies: &mut [(&mut [u8], &[u8])]| {
        for (to, from) in copies {
            to.copy_from_slice(&from[..to.len()]);
        }
    };
    if copies.len() < 2 * COPIERS {
        return copy(&mut copies);
    }
    let each = copies.len().div_ceil(COPIERS);
    crew.all(copies.chunks_mut(each).map(|copies| move || copy(copies)).collect());
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

    /// Another one for a lane of its own.
    pub(super) fn lane(&self) -> Result<Self, GpuError> {
        Self::with(self.shared.clone(), self.device.clone(), FIRST)
    }

    fn with(shared: Arc<Shared>, device: Arc<Device>, priority: i32) -> Result<Self, GpuError> {
        let stream = device.context().new_stream_with_priority(priority);
        let stream = stream.map_err(|e| device.call("make a stream", e))?;
        let (up, down) = (Buffers::new(&device)?, Buffer::new(&device, STAGED_BYTES)?);
        Ok(Self { arrays: Arrays::new(), up, down, stream, in_use: 0, shared, device })
    }

    /// Its device, opened.
    pub(super) fn opened(&self) -> &Device {
        &self.device
    }

    /// The same; nobody will ask a machine of the device for who takes lists to the host, so that none is made ahead.
    #[must_use]
    pub fn without_downloader(self) -> Self {
        lock(&self.shared.downloader).has_begun = true;
        self
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
    fn finish_with(&mut self, array: Array) -> Result<(), GpuError> {
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
                // SAFETY: the array has so many bytes, and whoever reads waits until the copy is done.
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
                // SAFETY: the array has so many bytes, and nobody looks at this part of the buffer before the copy is done.
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

    fn array(&self, array: Array) -> &Slab {
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
        // SAFETY: `steps` has the arguments that the kernel declares, which the tests pass to it too, and the inverter
        // has reserved what the kernel writes and reads for as many items as it is told.
        unsafe {
            launch(&self.device, &self.stream, &self.shared.functions[step.kernel], step, address)
        }
    }
}

impl Machine for CudaMachine {
    fn device(&self) -> String {
        self.device.info().to_string()
    }

    fn sibling(&self) -> Result<Box<dyn Machine>, GpuError> {
        Ok(Box::new(Self::with(self.shared.clone(), self.device.clone(), LATER)?))
    }

    fn reserve(&mut self, array: Array, bytes: u64, kept: u64) -> Result<(), GpuError> {
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
        let more = if array == Array::Kept { 0 } else { bytes / 4 };
        let ample = (bytes + more).next_multiple_of(1 << 16);
        let slab = Slab::new(&self.device, what, ample)
            .or_else(|_| Slab::new(&self.device, what, bytes))?;
        if let Some(old) = old.as_ref().filter(|_| kept > 0) {
            let (to, from) = (slab.part(0, kept), old.part(0, kept));
            let [here, there] = [slab.context(), old.context()].map(|context| context.cu_ctx());
            let (bytes, stream) = (kept as usize, self.stream.cu_stream());
            let copied = self.device.context().bind_to_thread().and_then(|()| {
                // SAFETY: both have so many bytes; the old ones are freed when all work on the devices is done.
                unsafe {
                    match here == there {
                        true => result::memcpy_dtod_async(to, from, bytes, stream),
                        false => result::memcpy_peer_async(here, to, there, from, bytes, stream),
                    }
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

    fn write(&mut self, array: Array, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
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

    fn lend(&mut self, array: Array) -> Result<Option<DeviceMemory>, GpuError> {
        self.finish_with(array)?;
        Ok(self.arrays.place(array).take().map(|lent| Box::new(lent) as _))
    }

    fn adopt(
        &mut self,
        array: Array,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        let mut memory = memory.downcast::<Slab>().expect("a CUDA device made it");
        memory.used_by(self.device.context());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole_however_many_share_them() {
        let mut crew = Crew::new("test");
        for (bytes, each) in [(0, 1), (5, 2), (1000, 7), (1000, 100), (4096, 1)] {
            let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0xa5; bytes];
            copy_all(&mut crew, to.chunks_mut(each).zip(from.chunks(each)).collect());
            assert_eq!(to, from);
        }
    }
}
