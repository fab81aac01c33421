//! How does a device take batches and give results? It has the kernels, the norms, the arena of the
//! lists, and memory that one batch at a time works in. All steps of a batch are enqueued at once.

use super::batch::{DingBatch, DingRoom};
use super::steps::{self, DingArray, Step};
use super::{KERNELS, Merging, source};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::slab::Slab;
use crate::gpu::lane::{Lane, event};
use crate::gpu::query::plan::MOST_HITS;
use crate::gpu::turns::Memory;
use crate::query::top_k::Hit;
use cudarc::driver::{CudaEvent, CudaFunction};
use std::collections::HashMap;

/// Columns of segments whose exceptions a batch decodes, at most: those of four billion postings.
const MOST_ITEMS: usize = 1 << 17;

/// A device that answers queries about one collection.
#[derive(Debug)]
pub struct DingDevice {
    lane: Lane,
    functions: HashMap<&'static str, CudaFunction>,
    norms: Slab,
    arena: Slab,
    words: Slab,
    documents: u32,
    room: DingRoom,
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
        let of_batch = memory.of_batch(device.free_bytes()?);
        let words = Slab::new(&device, "a batch of queries", of_batch)?;
        let left = device.free_bytes()?.min(device.memory().left());
        let arena = Slab::new(&device, "postings lists", memory.of_lists(left))?;
        let terms = memory.queries.max(4) * 16;
        let hits = (memory.queries * memory.k).max(MOST_HITS) as u64;
        let room = DingRoom { words: words.bytes() / 4, hits, terms, items: MOST_ITEMS };
        let (input, output) = (room.input_bytes(), room.output_bytes());
        Ok(Self {
            lane: Lane::new(device, input, output)?,
            documents: norms.len() as u32,
            room,
            norms: on_device,
            functions,
            arena,
            words,
        })
    }

    pub fn device(&self) -> &Device {
        self.lane.device()
    }

    /// Where lists go.
    pub fn arena(&self) -> &Slab {
        &self.arena
    }

    /// An empty batch about its documents.
    pub fn batch(&self, all_terms: bool) -> DingBatch {
        DingBatch::new(self.documents, all_terms)
    }

    /// What a batch may hold.
    pub fn room(&self) -> &DingRoom {
        &self.room
    }

    /// Enqueues all steps of a batch that is finished and fits the [room](Self::room), and whose
    /// lists are in the arena and stay there until it [was waited for](Self::wait).
    ///
    /// # Panics
    /// If it does not fit.
    pub(crate) fn launch(&mut self, batch: &DingBatch, steps: &[Step]) -> Result<(), GpuError> {
        self.begin(batch)?;
        for step in steps {
            self.step(step)?;
        }
        self.lane.end(batch.output().bytes)
    }

    /// As [`launch`](Self::launch), and waits; returns the milliseconds that each step took.
    ///
    /// # Errors
    /// The driver refuses, or the work failed.
    ///
    /// # Panics
    /// As there.
    pub fn time_steps(&mut self, batch: &DingBatch, steps: &[Step]) -> Result<Vec<f32>, GpuError> {
        let events = (0..=steps.len()).map(|_| event(self.device()));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        self.begin(batch)?;
        self.lane.record(&events[0])?;
        for (step, event) in steps.iter().zip(&events[1..]) {
            self.step(step)?;
            self.lane.record(event)?;
        }
        self.lane.end(batch.output().bytes)?;
        self.wait()?;
        let between = |pair: &[CudaEvent]| pair[0].elapsed_ms(&pair[1]);
        events.windows(2).map(|pair| between(pair).map_err(|e| self.lane.failed(e))).collect()
    }

    fn begin(&mut self, batch: &DingBatch) -> Result<(), GpuError> {
        assert!(batch.used().words <= self.room.words, "a batch fits its room");
        let bytes = (batch.input().bytes, batch.output().bytes);
        self.lane.begin(bytes, |to| batch.write(to))
    }

    fn step(&self, step: &Step) -> Result<(), GpuError> {
        let address = |array| match array {
            DingArray::Arena => self.arena.address(),
            DingArray::Input => self.lane.input_on(),
            DingArray::Words => self.words.address(),
            DingArray::Norms => self.norms.address(),
            DingArray::Output => self.lane.output_on(),
        };
        let function = &self.functions[step.kernel];
        // SAFETY: `steps` has the arguments that the kernel declares, which the tests pass to it
        // too; a batch that fits keeps kernels within this device's memory, and lists lie in the
        // arena where their terms say.
        unsafe { self.lane.step(function, step, address) }
    }

    /// Waits until the batch is done: it takes from tens of microseconds to some milliseconds.
    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        self.lane.wait()
    }

    /// Milliseconds on the device from the first copy of the last batch, which is done, to its
    /// last.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        self.lane.took_ms()
    }

    /// What the kernels said of a batch that is done: for [`DingBatch::answers`] and
    /// [`DingBatch::ranks`].
    pub fn output(&self) -> &[u8] {
        self.lane.output()
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
        written.map_err(|e| self.device().call("copy numbers to the device", e))
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
        let bytes = bytes.map_err(|e| self.device().call("copy numbers from the device", e))?;
        Ok(bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Answers a batch that fits, and waits.
    ///
    /// # Errors
    /// The driver refuses, or the work failed.
    ///
    /// # Panics
    /// As [`launch`](Self::launch).
    pub fn answer(
        &mut self,
        batch: &DingBatch,
        merging: Merging,
    ) -> Result<Vec<Vec<Hit>>, GpuError> {
        self.launch(batch, &steps::batch(batch, merging))?;
        self.wait()?;
        Ok(batch.answers(self.output()))
    }
}
