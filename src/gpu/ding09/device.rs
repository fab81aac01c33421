//! How does a device take batches and give results? It has the kernels, the norms, the arena of the lists, and
//! memory that one batch at a time works in. All steps of a batch are enqueued at once.

use super::batch::{Batch, Room};
use super::steps::{self, Array, Step};
use super::{KERNELS, Merging, source};
use crate::gpu::device::Device;
use crate::gpu::error::{Cuda, GpuError, Work};
use crate::gpu::events::is_done;
use crate::gpu::modules::Toolchain;
use crate::gpu::query::device::launch;
use crate::gpu::query::plan::MOST_HITS;
use crate::gpu::query::slab::{Slab, Staging};
use crate::gpu::turns::Memory;
use crate::query::top_k::Hit;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, DriverError};
use std::collections::HashMap;
use std::sync::Arc;

/// Columns of segments whose exceptions a batch decodes, at most: those of four billion postings.
const MOST_ITEMS: usize = 1 << 17;

/// A device that answers queries about one collection.
#[derive(Debug)]
pub struct DingDevice {
    device: Device,
    functions: HashMap<&'static str, CudaFunction>,
    norms: Slab,
    arena: Slab,
    words: Slab,
    documents: u32,
    room: Room,
    input: Staging,
    input_on: Slab,
    output: Staging,
    output_on: Slab,
    stream: Arc<CudaStream>,
    began: CudaEvent,
    done: CudaEvent,
}

impl DingDevice {
    /// Loads the kernels and the norms of all documents, and takes its memory.
    ///
    /// # Errors
    /// The kernels do not load, or there is not so much memory.
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        norms: &[f32],
        memory: Memory,
    ) -> Result<Self, GpuError> {
        let module = toolchain.load(&device, &source())?;
        let mut functions = HashMap::new();
        for name in KERNELS {
            functions.insert(name, module.kernel(&device, name)?.function().clone());
        }
        let on_device = Slab::new(&device, "norms", 4 * norms.len() as u64)?;
        on_device
            .write(0, bytemuck::cast_slice(norms))
            .map_err(|e| device.call("copy norms to the device", e))?;
        let context = device.context().clone();
        let stream = context.new_stream().map_err(|e| device.call("make a stream", e))?;
        let event = || {
            let flags = CUevent_flags::CU_EVENT_DEFAULT;
            context.new_event(Some(flags)).map_err(|e| device.call("make an event", e))
        };
        let (began, done) = (event()?, event()?);
        let of_batch = memory.of_batch(device.free_bytes()?);
        let words = Slab::new(&device, "a batch of queries", of_batch)?;
        let left = device.free_bytes()?.min(device.memory().left());
        let arena = Slab::new(&device, "postings lists", memory.of_lists(left))?;
        let terms = memory.queries.max(4) * 16;
        let hits = (memory.queries * memory.k).max(MOST_HITS) as u64;
        let room = Room { words: words.bytes() / 4, hits, terms, items: MOST_ITEMS };
        let (input, output) = (room.input_bytes(), room.output_bytes());
        Ok(Self {
            input: Staging::new(&device, "queries", input)?,
            input_on: Slab::new(&device, "queries", input as u64)?,
            output: Staging::new(&device, "hits", output)?,
            output_on: Slab::new(&device, "hits", output as u64)?,
            documents: norms.len() as u32,
            room,
            norms: on_device,
            device,
            functions,
            arena,
            words,
            stream,
            began,
            done,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Where lists go.
    pub fn arena(&self) -> &Slab {
        &self.arena
    }

    /// An empty batch about its documents.
    pub fn batch(&self, all_terms: bool) -> Batch {
        Batch::new(self.documents, all_terms)
    }

    /// What a batch may hold.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Enqueues all steps of a batch that is finished and fits the [room](Self::room), and whose lists are in the
    /// arena and stay there until it [is done](Self::is_done).
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn launch(&mut self, batch: &Batch, steps: &[Step]) -> Result<(), GpuError> {
        self.begin(batch)?;
        for step in steps {
            self.step(step)?;
        }
        self.end(batch)
    }

    /// As [`launch`](Self::launch), and waits; returns the milliseconds that each step took.
    ///
    /// # Errors
    /// The driver refuses, or the work failed.
    ///
    /// # Panics
    /// As there.
    pub fn time_steps(&mut self, batch: &Batch, steps: &[Step]) -> Result<Vec<f32>, GpuError> {
        let context = self.device.context().clone();
        let call = |e| self.device.call("time kernels", e);
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let events = (0..=steps.len()).map(|_| context.new_event(flags).map_err(call));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        self.begin(batch)?;
        let record = |event: &CudaEvent, on: &Self| {
            event.record(&on.stream).map_err(|e| on.device.call("time kernels", e))
        };
        record(&events[0], self)?;
        for (step, event) in steps.iter().zip(&events[1..]) {
            self.step(step)?;
            record(event, self)?;
        }
        self.end(batch)?;
        self.wait()?;
        let between = |pair: &[CudaEvent]| pair[0].elapsed_ms(&pair[1]);
        events.windows(2).map(|pair| between(pair).map_err(|e| self.failed(e))).collect()
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), GpuError> {
        let (len, output) = (batch.input().bytes, batch.output().bytes);
        let fits = len as u64 <= self.input_on.bytes() && output as u64 <= self.output_on.bytes();
        assert!(fits && batch.used().words <= self.room.words, "a batch fits its room");
        // SAFETY: no copy is under way: every batch is waited for before the next.
        batch.write(unsafe { self.input.bytes_mut() });
        let call = |e| self.device.call("copy queries to the device", e);
        self.device.context().bind_to_thread().map_err(call)?;
        self.began.record(&self.stream).map_err(call)?;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: both have so many bytes, and live until the batch is done.
        unsafe { self.input.copy_up(0..len, self.input_on.address(), &self.stream) }.map_err(call)
    }

    fn step(&self, step: &Step) -> Result<(), GpuError> {
        let address = |array| match array {
            Array::Arena => self.arena.address(),
            Array::Input => self.input_on.address(),
            Array::Words => self.words.address(),
            Array::Norms => self.norms.address(),
            Array::Output => self.output_on.address(),
        };
        let function = &self.functions[step.kernel];
        // SAFETY: `steps` has the arguments that the kernel declares, which the tests pass to it too; a batch that
        // fits keeps kernels within this device's memory, and lists lie in the arena where their terms say.
        unsafe { launch(&self.device, &self.stream, function, step, address) }
    }

    fn end(&mut self, batch: &Batch) -> Result<(), GpuError> {
        let len = batch.output().bytes;
        let call = |e| self.device.call("copy hits from the device", e);
        // SAFETY: both have so many bytes, and nobody looks at them until the batch is done.
        unsafe { self.output.copy_down(self.output_on.address(), 0, len, &self.stream) }
            .map_err(call)?;
        self.done.record(&self.stream).map_err(call)
    }

    /// Whether the batch is done. Never waits.
    ///
    /// # Errors
    /// It failed, and the device cannot be used any more.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        is_done(&self.done).map_err(|e| self.failed(e))
    }

    /// Waits until the batch is done: it takes from tens of microseconds to some milliseconds.
    ///
    /// # Errors
    /// As [`is_done`](Self::is_done).
    pub fn wait(&self) -> Result<(), GpuError> {
        while !self.is_done()? {
            std::hint::spin_loop();
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Milliseconds on the device from the first copy of the last batch, which is done, to its last.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        self.began.elapsed_ms(&self.done).map_err(|e| self.failed(e))
    }

    fn failed(&self, source: DriverError) -> GpuError {
        GpuError::Work {
            device: self.device.info().to_string(),
            work: Work::Download(self.output_on.bytes()),
            source: Cuda(source),
        }
    }

    /// What the kernels said of a batch that is done: for [`Batch::answers`] and [`Batch::ranks`].
    pub fn output(&self) -> &[u8] {
        // SAFETY: the batch is done, and with it all copies.
        unsafe { self.output.bytes() }
    }

    /// Writes to the memory of batches: for measurements.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn write_words(&self, at: u64, words: &[u32]) -> Result<(), GpuError> {
        let written = self.words.write(4 * at, bytemuck::cast_slice(words));
        written.map_err(|e| self.device.call("copy numbers to the device", e))
    }

    /// Reads of it.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn read_words(&self, at: u64, len: usize) -> Result<Vec<u32>, GpuError> {
        let bytes = self.words.read(4 * at, 4 * len);
        let bytes = bytes.map_err(|e| self.device.call("copy numbers from the device", e))?;
        Ok(bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Answers a batch that fits, and waits.
    ///
    /// # Errors
    /// The driver refuses, or the work failed.
    ///
    /// # Panics
    /// As [`launch`](Self::launch).
    pub fn answer(&mut self, batch: &Batch, merging: Merging) -> Result<Vec<Vec<Hit>>, GpuError> {
        self.launch(batch, &steps::batch(batch, merging))?;
        self.wait()?;
        Ok(batch.answers(self.output()))
    }
}
