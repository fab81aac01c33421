//! A device that takes several batches at a time, and the memory of one batch. A [`QueryDevice`]
//! has the kernels, the norms, and the arena of the lists. A [`BatchSlot`] has a stream of its own,
//! memory on the device, and pinned memory for a batch and its results. All steps of a batch are
//! enqueued at once, without the host in between; an event says when the results are there.

use super::QueryTuning;
use super::batch::{BatchAnswer, INPUT_HEAD_BYTES, QueryBatch, QueryBatchRoom};
use super::fixed::MOST_IMPACT_TERMS;
use super::list::{Layout, Windows};
use super::plan::{QueryRecord, QueryState, TermRecord};
use super::steps::{Array, Groups, LaunchSettings, QueryStep, Zeroed, document_blocks_bytes};
use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::events::Ticket;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::pinned::Pinned;
use crate::gpu::floor::slab::Slab;
use crate::gpu::floor::steps::Kernels;
use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use std::collections::HashMap;
use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

/// For one collection.
#[derive(Debug)]
pub struct QueryDevice {
    device: Arc<Device>,
    kernels: Kernels,
    machine: LaunchSettings,
    windows: Windows,
    norms: Arc<Slab>,
    arena: Arc<Slab>,
}

/// What kernels of learned weights reach: places are numbers of 32 bytes.
const MOST_ARENA_BYTES: u64 = 32 << 32;

/// Of the free memory, for lists, if nobody says.
const ARENA_PERCENT: u64 = 75;

impl QueryDevice {
    /// Loads the kernels and all norms, for lists in a layout; the arena takes `arena_bytes`, or
    /// most of what is free.
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        norms: &[f32],
        layout: Layout,
        arena_bytes: Option<u64>,
    ) -> Result<Self, GpuError> {
        let tuning = QueryTuning::of_device(device.most_shared_bytes());
        let shared_bytes = |name: &'static str| match name {
            "query_sample" | "query_or" => tuning.or_shared_bytes(8),
            "query_wide_sample" | "query_wide_or" => tuning.or_shared_bytes(16),
            "query_and" => tuning.and_shared_bytes(),
            "query_select" => tuning.select_shared_bytes(),
            "query_impact_sample" => tuning.impact_shared_bytes(true),
            "query_impact_or" | "query_impact_bounds" => tuning.impact_shared_bytes(false),
            _ => 0,
        };
        let source = tuning.source();
        let kernels = source.kernels().into_iter().map(|name| (name, shared_bytes(name)));
        let kernels = Kernels::load(toolchain, &device, &source, kernels)?;
        let bits = match layout {
            Layout::Bounds => tuning.window_bits,
            Layout::Impacts | Layout::DocumentBlocks => tuning.impact_bits,
        };
        let windows = Windows { documents: norms.len() as u32, bits, layout };
        let on_device = Arc::new(Slab::new(&device, "norms", 4 * norms.len() as u64)?);
        on_device.write(0, bytemuck::cast_slice(norms))?;
        let arena_bytes = match arena_bytes {
            Some(bytes) => bytes,
            None => device.free_bytes()? / 100 * ARENA_PERCENT,
        };
        let arena_bytes = arena_bytes.min(MOST_ARENA_BYTES);
        let arena = Arc::new(Slab::new(&device, "postings lists", arena_bytes)?);
        let machine = LaunchSettings { tuning, multiprocessors: device.info().multiprocessors };
        Ok(Self { device: Arc::new(device), kernels, machine, windows, norms: on_device, arena })
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn windows(&self) -> Windows {
        self.windows
    }

    pub fn arena(&self) -> &Arc<Slab> {
        &self.arena
    }

    /// The norms and the lists, with a stream of its own.
    pub(super) fn arrays(&self) -> Result<CudaArrays<Array>, GpuError> {
        let mut on = CudaArrays::new(self.device.clone(), self.kernels.clone(), None)?;
        on.memory.put(Array::Norms, self.norms.clone());
        on.memory.put(Array::Arena, self.arena.clone());
        Ok(on)
    }

    /// The capacity of a slot.
    pub fn room(&self, queries: usize, k: u32) -> QueryBatchRoom {
        let candidates = 1 << 15;
        let sorted_shared = self.machine.tuning.sorted;
        let layout = self.windows.layout;
        // Learned weights come for many terms, and with a threshold that lets few through.
        let [terms, candidates_per_hit] = match layout {
            Layout::Bounds => [24, 128],
            Layout::Impacts | Layout::DocumentBlocks => [72, 16],
        };
        let mut room = QueryBatchRoom {
            layout,
            records: 2 * queries,
            terms: (terms as usize * queries).max(MOST_IMPACT_TERMS),
            keys: 0,
            hits: 0,
            sorted: 0,
            sorted_shared,
            candidates,
            candidates_per_hit,
        };
        // At least one query of the greatest k, twice for AND+OR.
        let greatest = super::plan::MOST_HITS as u32;
        let queries = queries as u64;
        // Of queries that ask for very many hits, a batch holds fewer.
        const MOST_KEYS: u64 = 1 << 26;
        room.keys = (queries * u64::from(room.capacity(k))).min(MOST_KEYS);
        room.keys = room.keys.max(2 * u64::from(room.capacity(greatest)));
        room.hits = (queries * u64::from(k)).max(2 * u64::from(greatest));
        room.sorted =
            if k > sorted_shared { queries * u64::from(k.next_power_of_two()) } else { 0 };
        room.sorted = room.sorted.max(2 * u64::from(greatest));
        room
    }
}

/// The memory of one batch, from its records to its results.
#[derive(Debug)]
pub struct BatchSlot {
    room: QueryBatchRoom,
    input: Pinned,
    output: Pinned,
    graphs: HashMap<Groups, SlotGraph>,
    on: CudaArrays<Array>,
    /// The beginning and the end of the last batch.
    began: Option<Ticket>,
    done: Option<Ticket>,
    busy: bool,
    /// The kernels of the last batch worked on the memory of the host.
    mapped: bool,
    hits: u64,
    records: usize,
}

/// Batches of up to this many records are launched as graphs, which launch faster; larger ones take
/// much longer on the device, and differ.
const MOST_GRAPHED: u32 = 4;

struct SlotGraph(CudaGraph);

// SAFETY: a slot, and with it its graphs, is one thread's at a time.
unsafe impl Send for SlotGraph {}

impl fmt::Debug for SlotGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").finish_non_exhaustive()
    }
}

/// At most.
fn input_bytes(room: &QueryBatchRoom) -> usize {
    let records = room.records * size_of::<QueryRecord>();
    INPUT_HEAD_BYTES + records + room.terms * size_of::<TermRecord>()
}

/// Of all states and hits.
fn output_bytes(room: &QueryBatchRoom) -> usize {
    hits_at(room) + 8 * room.hits as usize
}

/// Hits stand behind the states.
fn hits_at(room: &QueryBatchRoom) -> usize {
    room.records * size_of::<QueryState>()
}

impl BatchSlot {
    pub fn new(device: &QueryDevice, room: QueryBatchRoom) -> Result<Self, GpuError> {
        let windows = device.windows;
        let mut on = device.arrays()?;
        for (array, bytes) in [
            (Array::Terms, (room.terms * size_of::<TermRecord>()) as u64),
            (Array::Records, (room.records * size_of::<QueryRecord>()) as u64),
            // And all that is zeroed with them.
            (Array::States, Zeroed::new(room.layout, room.records).bytes() as u64),
            (Array::Keys, 8 * room.keys),
            (Array::Sorted, 8 * room.sorted),
            (Array::DocumentBlocks, document_blocks_bytes(windows, room.records) as u64),
            (Array::Input, input_bytes(&room) as u64),
            (Array::Answers, hits_at(&room) as u64),
            (Array::Hits, 8 * room.hits),
        ] {
            on.take(array, "batches of queries", bytes)?;
        }
        Ok(Self {
            input: Pinned::new(&on.device, "queries", input_bytes(&room))?,
            output: Pinned::new(&on.device, "hits", output_bytes(&room))?,
            graphs: HashMap::new(),
            on,
            began: None,
            done: None,
            busy: false,
            mapped: false,
            hits: 0,
            records: 0,
            room,
        })
    }

    pub fn room(&self) -> &QueryBatchRoom {
        &self.room
    }

    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Enqueues all steps of a batch whose lists are in the arena, where they stay until
    /// [`is_done`](Self::is_done).
    ///
    /// # Panics
    /// If the slot is busy, or the batch does not fit it.
    pub fn launch(&mut self, device: &QueryDevice, batch: &QueryBatch) -> Result<(), GpuError> {
        if batch.groups.len() > MOST_GRAPHED {
            let steps = device.machine.batch(device.windows, batch.groups);
            return self.run(batch, &steps);
        }
        self.begin(batch, true)?;
        if !self.graphs.contains_key(&batch.groups) {
            let steps = device.machine.batch(device.windows, batch.groups);
            let graph = self.capture(&steps)?;
            self.graphs.insert(batch.groups, graph);
        }
        let call = |e| self.on.device.call("launch a graph of kernels", e);
        self.graphs[&batch.groups].0.launch().map_err(call)?;
        self.end()
    }

    /// Makes a graph of steps, which serves all batches of the same groups.
    fn capture(&self, steps: &[QueryStep]) -> Result<SlotGraph, GpuError> {
        let call = |e| self.on.device.call("make a graph of kernels", e);
        // Other threads go on with their own calls meanwhile.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.on.stream.begin_capture(mode).map_err(call)?;
        let launched = steps.iter().try_for_each(|step| self.launch_step(step));
        // A stream that captures takes no other work, so this comes before any error.
        let graph = self.on.stream.end_capture(CUgraphInstantiate_flags(0)).map_err(call);
        launched?;
        graph.map(|graph| SlotGraph(graph.expect("steps were captured")))
    }

    /// Enqueues chosen steps: to measure each.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn run(&mut self, batch: &QueryBatch, steps: &[QueryStep]) -> Result<(), GpuError> {
        self.begin(batch, false)?;
        let len = batch.input_bytes();
        let to = self.on.memory.of(Array::Input).part(0, len as u64);
        // SAFETY: both parts have this many bytes, and live until the slot goes, which waits.
        unsafe { self.input.copy_up(0..len, to, &self.on.stream) }?;
        steps.iter().try_for_each(|step| self.launch_step(step))?;
        let states = self.records * size_of::<QueryState>();
        let hits = 8 * self.hits as usize;
        let hits_at = hits_at(&self.room);
        for (array, at, len) in [(Array::Answers, 0, states), (Array::Hits, hits_at, hits)] {
            let from = self.on.memory.of(array).part(0, len as u64);
            // SAFETY: both parts are the slot's, fit its output, and are not read while it is busy.
            unsafe { self.output.copy_down(from, at, len, &self.on.stream) }?;
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), GpuError> {
        self.done = Some(self.on.ticket(GpuWork::Download(8 * self.hits))?);
        Ok(())
    }

    /// Writes a batch where its kernels read it, or where it is copied from.
    fn begin(&mut self, batch: &QueryBatch, mapped: bool) -> Result<(), GpuError> {
        assert!(!self.busy, "a slot has one batch at a time");
        assert!(
            batch.records.len() <= self.room.records && batch.terms.len() <= self.room.terms,
            "a batch fits its slot"
        );
        // SAFETY: the slot is not busy, so no kernel reads it.
        batch.write(unsafe { self.input.bytes_mut() });
        self.busy = true;
        self.mapped = mapped;
        self.records = batch.records.len();
        self.hits = batch.hits;
        self.done = None;
        self.began = Some(self.on.ticket(GpuWork::Upload(batch.input_bytes() as u64))?);
        Ok(())
    }

    /// The records of a batch that fits the room restrict kernels to the slot's memory, and lists
    /// lie in the arena where their terms say.
    fn launch_step(&self, step: &QueryStep) -> Result<(), GpuError> {
        let zeroed = Zeroed::new(self.room.layout, self.records);
        let zeroed_at = self.on.memory.of(Array::States).address();
        self.on.launch_with(step, |array| match array {
            Array::Input if self.mapped => Some(self.input.address()),
            Array::Answers if self.mapped => Some(self.output.address()),
            Array::Hits if self.mapped => Some(self.output.address() + hits_at(&self.room) as u64),
            array => zeroed.place(array).map(|at| zeroed_at + at as u64),
        })
    }

    /// Whether the batch is done. Never waits.
    ///
    /// # Errors
    /// It failed, and the device cannot be used any more.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.done.as_ref().map_or(Ok(true), Ticket::is_done)
    }

    /// For measurements.
    pub fn wait(&self) -> Result<(), GpuError> {
        while !self.is_done()? {
            spin_loop();
        }
        Ok(())
    }

    /// Milliseconds of the last batch, which is done, on the device from first step to results.
    ///
    /// # Panics
    /// If there was no batch.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        let (began, done) = self.began.as_ref().zip(self.done.as_ref()).expect("there was a batch");
        done.ms_since(began)
    }

    /// The answers to the launched batch, which is done; the slot is free then.
    pub fn answers(&mut self, batch: &QueryBatch) -> Vec<BatchAnswer> {
        self.busy = false;
        // SAFETY: the batch is done, and with it all copies.
        let output = unsafe { self.output.bytes() };
        let states: &[QueryState] =
            bytemuck::cast_slice(&output[..self.records * size_of::<QueryState>()]);
        let after = hits_at(&self.room);
        let hits: &[u64] = bytemuck::cast_slice(&output[after..after + 8 * self.hits as usize]);
        (0..batch.len()).map(|query| batch.answer(query, states, hits)).collect()
    }

    /// Forgets the batch, which is done.
    pub fn free(&mut self) {
        self.busy = false;
    }
}
