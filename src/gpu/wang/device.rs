//! How does a device take batches and give results? It has the kernel, what documents are worth,
//! the lists that stay, and memory that one batch at a time works in. A batch brings the lists that
//! it lacks in the same copy as its queries.

use super::batch::{Array, AskedTerm, Found, Key, MOST_TERMS, WangBatch, WangRoom};
use super::cache::{self, Cache, WantedLists};
use super::list::{WangLaid, WangLayer};
use super::{KERNEL, source};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::slab::Slab;
use crate::gpu::lane::{Lane, event};
use crate::gpu::query::plan::MOST_HITS;
use crate::gpu::travelling::Kept;
use crate::gpu::turns::Memory;
use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use cudarc::driver::{CudaEvent, CudaFunction};
use std::sync::Arc;

/// The most bytes of lists that travel with a batch, unless others are asked for.
const MOST_TRAVELLING: u64 = 256 << 20;

/// Bytes of lists that the host keeps laid out to travel, unless others are asked for.
const MOST_KEPT: u64 = 1 << 30;

/// A device that answers queries about one collection.
#[derive(Debug)]
pub struct WangDevice {
    lane: Lane,
    snapshot: Arc<Snapshot>,
    function: CudaFunction,
    norms: Slab,
    statics: Slab,
    globals: Slab,
    arena: Slab,
    cache: Cache,
    kept: Kept<Key, WangLaid, WangLayer>,
    room: WangRoom,
    copied: CudaEvent,
    /// Threads of the host that bring lists.
    threads: usize,
    /// Bytes of lists that travelled.
    travelled: u64,
}

/// A term of a query that is asked.
#[derive(Clone, Copy, Debug)]
pub struct WangTerm {
    /// Its list in the only run.
    pub entry: TermEntry,
    pub weight: f32,
}

impl WangDevice {
    /// Loads the kernel and what documents are worth, and takes its memory, [`Memory::batch`] for
    /// lists that travel with a batch. So many threads of the host will bring lists; none is there
    /// yet.
    ///
    /// # Errors
    /// The kernel does not load, or there is not so much memory.
    ///
    /// # Panics
    /// If the snapshot is not in [global order](Snapshot::check_global).
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        memory: Memory,
        threads: usize,
    ) -> Result<Self, GpuError> {
        assert!(snapshot.check_global().is_ok(), "documents are in global order");
        let shared = device.most_shared_bytes();
        let module = toolchain.load(&device, &source())?;
        let function = module.kernel(&device, KERNEL)?.function_sharing(&device, shared)?;
        let of_documents = |what, values: &[f32]| {
            let slab = Slab::new(&device, what, 4 * values.len() as u64)?;
            slab.write(0, bytemuck::cast_slice(values))
                .map_err(|e| device.call("copy what documents are worth", e))?;
            Ok(slab)
        };
        let norms = of_documents("norms", snapshot.norms())?;
        let statics = of_documents("static scores", snapshot.statics())?;
        let globals = of_documents("global scores", snapshot.globals())?;
        // More than all lists take on a device cannot travel.
        let runs = snapshot.generation().runs().iter();
        let list_bytes: u64 =
            runs.map(|run| 4 * run.postings_header().list_bytes + (1 << 20)).sum();
        let room = WangRoom {
            hits: (memory.queries * memory.k).max(MOST_HITS) as u64,
            terms: (memory.queries * MOST_TERMS / 2).max(MOST_TERMS),
            list_bytes: list_bytes.min(memory.batch.unwrap_or(MOST_TRAVELLING)) as usize,
            shared_bytes: shared,
        };
        let copied = event(&device)?;
        let lane = Lane::new(device, room.input_bytes(), room.output_bytes())?;
        let device = lane.device();
        let left = device.free_bytes()?.min(device.memory().left());
        let arena = Slab::new(device, "postings lists", memory.of_lists(left))?;
        Ok(Self {
            snapshot: snapshot.clone(),
            function,
            norms,
            statics,
            globals,
            arena,
            cache: Cache::default(),
            kept: Kept::new(MOST_KEPT),
            room,
            lane,
            copied,
            threads,
            travelled: 0,
        })
    }

    /// Brings lists that stay, in the place of those that did: as many, in their order, as have
    /// room in so many bytes of the memory for lists.
    ///
    /// # Errors
    /// The device takes no copy.
    pub fn fill(&mut self, wanted: &[WantedLists], bytes: u64) -> Result<(), GpuError> {
        self.cache = Cache::default();
        let room = (self.lane.device(), &self.arena, bytes);
        self.cache = cache::fill(self.snapshot.generation(), wanted, room, self.threads)?;
        Ok(())
    }

    /// Keeps up to so many bytes of lists laid out on the host, from now on, and none of those that
    /// were.
    pub fn keep(&mut self, most: u64) {
        self.kept = Kept::new(most);
    }

    /// Lays out those of some lists that are neither on the device nor kept.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn lay_ahead(
        &mut self,
        entries: impl IntoIterator<Item = TermEntry>,
    ) -> Result<(), IndexError> {
        let Self { snapshot, cache, kept, threads, .. } = self;
        let travel = entries.into_iter().filter(|entry| cache.place(&entry.offset).is_none());
        let wanted = travel.map(|entry| (entry.offset, entry));
        kept.lay_ahead(wanted, *threads, |layer, &entry, out| {
            layer.lay(snapshot.generation(), entry, None, out)
        })
    }

    /// Lists that the host keeps laid out.
    pub fn kept(&self) -> &Kept<Key, WangLaid, WangLayer> {
        &self.kept
    }

    pub fn device(&self) -> &Device {
        self.lane.device()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Bytes that lists which stay have room in.
    pub fn cache_room(&self) -> u64 {
        self.arena.bytes()
    }

    /// Bytes of lists that were copied to the device.
    pub(crate) fn list_bytes(&self) -> u64 {
        self.cache.bytes() + self.travelled
    }

    /// What a batch may hold.
    pub fn room(&self) -> &WangRoom {
        &self.room
    }

    /// An empty batch about its documents.
    ///
    /// # Panics
    /// As [`WangBatch::new`].
    pub fn batch(&self, round: u32) -> WangBatch {
        WangBatch::new(self.snapshot.norms().len() as u32, round)
    }

    /// Adds a query for the best `k` to a batch that may hold what `room` says, which is no more
    /// than the device's [room](Self::room); false if there is no room.
    ///
    /// # Errors
    /// When a list that has to travel is damaged.
    pub fn add_within(
        &mut self,
        batch: &mut WangBatch,
        terms: &[WangTerm],
        k: u32,
        room: &WangRoom,
    ) -> Result<bool, IndexError> {
        let Self { snapshot, cache, kept, .. } = self;
        let asked: Vec<AskedTerm> = terms
            .iter()
            .map(|&WangTerm { entry, weight }| {
                let key = entry.offset;
                AskedTerm { key, cached: cache.place(&key), weight }
            })
            .collect();
        batch.add(&asked, k, room, |t| {
            let entry = terms[t].entry;
            let lay = |layer: &mut WangLayer, out: &mut Vec<u8>| {
                layer.lay(snapshot.generation(), entry, None, out)
            };
            kept.list(&entry.offset, lay)
        })
    }

    /// As [`add_within`](Self::add_within) the whole room.
    pub(crate) fn add(
        &mut self,
        batch: &mut WangBatch,
        terms: &[WangTerm],
        k: u32,
    ) -> Result<bool, IndexError> {
        let room = self.room;
        self.add_within(batch, terms, k, &room)
    }

    /// Enqueues all launches of a batch that is finished, and was made by [`add`](Self::add) with
    /// the lists that are there now.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If it has no room.
    pub fn launch(&mut self, batch: &WangBatch) -> Result<(), GpuError> {
        let output = batch.output_bytes();
        let bytes = (batch.input().bytes, output);
        self.lane.begin_parts(bytes, &batch.parts(), self.threads)?;
        self.lane.record(&self.copied)?;
        let address = |array| match array {
            Array::Cached => self.arena.address(),
            Array::Input => self.lane.input_on(),
            Array::Norms => self.norms.address(),
            Array::Statics => self.statics.address(),
            Array::Globals => self.globals.address(),
            Array::Output => self.lane.output_on(),
        };
        for step in batch.steps() {
            // SAFETY: `WangBatch::steps` has the arguments that the kernel declares, which the
            // tests pass to it too; a batch that fits keeps it within this device's memory, and
            // lists lie where their terms say.
            unsafe { self.lane.step(&self.function, &step, address) }?;
        }
        self.travelled += batch.list_bytes() as u64;
        self.lane.end(output)
    }

    /// Waits until the batch is done: it takes from tens of microseconds to some hundred
    /// milliseconds.
    ///
    /// # Errors
    /// It failed, and the device cannot be used any more.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.lane.wait()
    }

    /// Milliseconds on the device of the last batch, which is done: to copy its queries and lists,
    /// and all.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn took_ms(&self) -> Result<(f32, f32), GpuError> {
        Ok((self.lane.took_ms_to(&self.copied)?, self.lane.took_ms()?))
    }

    /// What the kernel said of a batch that is done: for [`WangBatch::answers`].
    pub fn output(&self) -> &[u8] {
        self.lane.output()
    }

    /// Answers a batch that is finished, and waits.
    ///
    /// # Panics
    /// As [`launch`](Self::launch).
    pub(crate) fn answer(&mut self, batch: &WangBatch) -> Result<Vec<Found>, GpuError> {
        self.launch(batch)?;
        self.wait()?;
        Ok(batch.answers(self.output()))
    }
}
