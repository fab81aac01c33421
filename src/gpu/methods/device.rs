//! How does a device take batches and give results? It has the kernels, what documents are worth,
//! the parts that stay, and memory that one batch at a time works in. A batch brings the parts that
//! it lacks in the same copy as its queries.

use super::batch::{AskedPart, BatchRoom, Found, MethodBatch};
use super::lists::ListCache;
use super::travelling::Kept;
use super::{DeviceMethod, MethodArray, MethodStep, source};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::slab::Slab;
use crate::gpu::lane::{Lane, event};
use crate::gpu::query::plan::MOST_HITS;
use crate::index::error::IndexError;
use crate::query::snapshot::Snapshot;
use cudarc::driver::{CudaEvent, CudaFunction};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What the memory of a device is used for.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes for lists that stay; most of what is free if left out.
    pub lists: Option<u64>,
    /// The most bytes of lists that travel with a batch, unless those of the method.
    pub travelling: Option<u64>,
    pub queries: usize,
    /// Hits that most queries ask for.
    pub k: usize,
}

impl Memory {
    /// Of the free memory so much is for a batch, in percent, and no more bytes than these.
    const BATCH_PERCENT: u64 = 25;
    const MOST_BATCH_BYTES: u64 = 8 << 30;

    /// Of what is left then, lists take so much, in percent.
    const LISTS_PERCENT: u64 = 80;
}

/// Lists take so many times as many bytes on a device as on disk, at most, and so many more.
const MOST_GROWTH: u64 = 4;
const MORE_BYTES: u64 = 1 << 20;

/// Terms of a query that most batches have room for.
const TERMS: usize = 8;

/// Of few parts a thread brings so many.
const PARTS_OF_THREAD: usize = 8;

/// Bytes of lists that the host keeps laid out to travel, unless others are asked for.
const MOST_KEPT: u64 = 1 << 30;

/// A device that answers queries about one collection by a method.
#[derive(Debug)]
pub struct MethodDevice<M: DeviceMethod> {
    lane: Lane,
    snapshot: Arc<Snapshot>,
    functions: HashMap<&'static str, CudaFunction>,
    norms: Slab,
    statics: Slab,
    globals: Slab,
    words: Slab,
    arena: Slab,
    cache: ListCache<M::Key, M::Laid>,
    kept: Kept<M::Key, M::Laid, M::Layer>,
    room: BatchRoom,
    /// Threads of the host that bring lists.
    threads: usize,
    /// Bytes of lists that travelled.
    travelled: u64,
}

impl<M: DeviceMethod> MethodDevice<M> {
    /// Loads the kernels and what documents are worth, and takes its memory. So many threads of the
    /// host will bring lists; none is there yet.
    ///
    /// # Errors
    /// The kernels do not load, or there is not so much memory.
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        memory: Memory,
        threads: usize,
    ) -> Result<Self, GpuError> {
        let shared = device.most_shared_bytes();
        let module = toolchain.load(&device, &source::<M>())?;
        let mut functions = HashMap::new();
        for &name in M::KERNELS {
            let function = module.kernel(&device, name)?.function_sharing(&device, shared)?;
            functions.insert(name, function);
        }
        let of_documents = |what, values: &[f32]| {
            let slab = Slab::new(&device, what, 4 * values.len() as u64)?;
            slab.write(0, bytemuck::cast_slice(values))
                .map_err(|e| device.call("copy what documents are worth", e))?;
            Ok(slab)
        };
        let norms = of_documents("norms", snapshot.norms())?;
        let statics = of_documents("static scores", snapshot.statics())?;
        let globals = of_documents("global scores", snapshot.globals())?;
        let of_batch = device.free_bytes()? / 100 * Memory::BATCH_PERCENT;
        let of_batch = if M::HAS_WORDS { of_batch.min(Memory::MOST_BATCH_BYTES) } else { 0 };
        let words = Slab::new(&device, "a batch of queries", of_batch)?;
        // More than all lists take on a device cannot travel.
        let runs = snapshot.generation().runs().iter();
        let all_lists =
            runs.map(|run| MOST_GROWTH * run.postings_header().list_bytes + MORE_BYTES).sum();
        let terms = (memory.queries * TERMS).max(M::MOST_TERMS);
        let room = BatchRoom {
            words: words.bytes() / 4,
            hits: (memory.queries * memory.k).max(MOST_HITS) as u64,
            terms,
            list_bytes: memory.travelling.unwrap_or(M::MOST_TRAVELLING).min(all_lists) as usize,
            more: M::more_bytes(terms),
            shared_bytes: shared,
        };
        let lane = Lane::new(device, room.input_bytes::<M>(), room.output_bytes::<M>())?;
        let left = lane.device().free_bytes()?.min(lane.device().memory().left());
        let lists = memory.lists.unwrap_or(left / 100 * Memory::LISTS_PERCENT);
        let arena = Slab::new(lane.device(), "postings lists", lists)?;
        Ok(Self {
            lane,
            snapshot: snapshot.clone(),
            functions,
            norms,
            statics,
            globals,
            words,
            arena,
            cache: ListCache::default(),
            kept: Kept::new(MOST_KEPT),
            room,
            threads,
            travelled: 0,
        })
    }

    /// Brings the parts that stay, as the method would have it.
    ///
    /// # Errors
    /// The index is damaged, or the device takes no copy.
    pub fn bring(&mut self, how: &M) -> Result<(), GpuError> {
        let wanted = how.stay(self.snapshot.generation()).map_err(|source| GpuError::Index {
            device: self.device().info().to_string(),
            source: Box::new(source),
        })?;
        self.fill(&wanted, self.cache_room())
    }

    /// Brings parts that stay, in the place of those that did: as many, in their order, as have
    /// room in so many bytes of the memory for lists.
    pub fn fill(&mut self, wanted: &[M::Part], bytes: u64) -> Result<(), GpuError> {
        self.cache = ListCache::default();
        let Self { snapshot, lane, arena, cache, threads, .. } = self;
        cache.bring(wanted, (lane.device(), arena, bytes), *threads, |layer, part, bytes| {
            M::lay(snapshot, layer, part, bytes).map(|laid| (M::key(part), laid))
        })
    }

    /// Brings those of some parts that are not there, to stay too, if the method has such, as long
    /// as there is room.
    pub(super) fn grow<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart<M>>,
    ) -> Result<(), GpuError> {
        let Self { snapshot, lane, arena, cache, threads, .. } = self;
        if !M::GROWS || cache.is_full() {
            return Ok(());
        }
        let mut known = HashSet::new();
        let is_new =
            |of: &&'a AskedPart<M>| cache.place(&of.key).is_none() && known.insert(&of.key);
        let wanted: Vec<_> = asked.into_iter().filter(is_new).collect();
        let room = (lane.device(), &*arena, arena.bytes());
        let threads = (*threads).min(wanted.len().div_ceil(PARTS_OF_THREAD));
        cache.bring(&wanted, room, threads, |layer, of, bytes| {
            M::lay(snapshot, layer, &of.part, bytes).map(|laid| (of.key.clone(), laid))
        })
    }

    /// Keeps up to so many bytes of parts laid out on the host, from now on, and none of those that
    /// were.
    pub fn keep(&mut self, most: u64) {
        self.kept = Kept::new(most);
    }

    /// Lays out those of some parts that are neither on the device nor kept.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn lay_ahead<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart<M>>,
    ) -> Result<(), IndexError> {
        let Self { snapshot, cache, kept, threads, .. } = self;
        let travel = asked.into_iter().filter(|asked| cache.place(&asked.key).is_none());
        let wanted = travel.map(|asked| (&asked.key, &asked.part));
        kept.lay_ahead(wanted, *threads, |layer, part, out| M::lay(snapshot, layer, part, out))
    }

    /// Parts that the host keeps laid out.
    pub fn kept(&self) -> &Kept<M::Key, M::Laid, M::Layer> {
        &self.kept
    }

    pub fn device(&self) -> &Device {
        self.lane.device()
    }

    pub fn cache(&self) -> &ListCache<M::Key, M::Laid> {
        &self.cache
    }

    /// Bytes that parts which stay have room in.
    pub fn cache_room(&self) -> u64 {
        self.arena.bytes()
    }

    /// Bytes of parts that were copied to the device.
    pub(crate) fn list_bytes(&self) -> u64 {
        self.cache.bytes() + self.travelled
    }

    /// What a batch may hold.
    pub fn room(&self) -> &BatchRoom {
        &self.room
    }

    /// An empty batch about its documents, which may hold what the device has room for.
    pub fn batch(&self, how: M, all_terms: bool) -> MethodBatch<M> {
        MethodBatch::new(how, all_terms, self.snapshot.norms().len() as u32, self.room)
    }

    /// Adds a query for the best `k` of some documents to a batch; false if there is no room.
    ///
    /// # Errors
    /// When a part that has to travel is damaged.
    pub fn add(
        &mut self,
        batch: &mut MethodBatch<M>,
        asked: &[AskedPart<M>],
        best: (u32, Range<u32>),
    ) -> Result<bool, IndexError> {
        let Self { snapshot, cache, kept, .. } = self;
        let lay = |t: usize| {
            let AskedPart { key, part, .. } = &asked[t];
            kept.list(key, |layer, out| M::lay(snapshot, layer, part, out))
        };
        batch.add(asked, best, |key| cache.place(key), lay)
    }

    /// Enqueues steps of a batch that is finished, and was made by [`add`](Self::add) with the
    /// parts that are there now. Records an event before the first step, and one behind each, as
    /// far as there are.
    fn launch(
        &mut self,
        batch: &MethodBatch<M>,
        steps: &[MethodStep],
        events: &[CudaEvent],
    ) -> Result<(), GpuError> {
        assert!(batch.used().words <= self.room.words, "a batch fits its room");
        let bytes = (batch.input().bytes, batch.output().bytes);
        self.lane.begin(bytes, &batch.parts(), self.threads)?;
        let address = |array| match array {
            MethodArray::Cached => self.arena.address(),
            MethodArray::Input => self.lane.input_on(),
            MethodArray::Norms => self.norms.address(),
            MethodArray::Statics => self.statics.address(),
            MethodArray::Globals => self.globals.address(),
            MethodArray::Words => self.words.address(),
            MethodArray::Output => self.lane.output_on(),
        };
        let mut events = events.iter();
        let mut record = || events.next().map_or(Ok(()), |event| self.lane.record(event));
        record()?;
        for step in steps {
            let function = &self.functions[step.kernel];
            // SAFETY: `DeviceMethod::steps` has the arguments that the kernels declare, which the
            // tests pass to them too; a batch that fits keeps them within this device's memory, and
            // parts lie where terms say.
            unsafe { self.lane.step(function, step, address) }?;
            record()?;
        }
        self.travelled += batch.used().list_bytes as u64;
        self.lane.end(bytes.1)
    }

    /// Does steps of a batch that is finished, and waits; returns the milliseconds to copy queries
    /// and lists, and those that each step took.
    pub fn time_steps(
        &mut self,
        batch: &MethodBatch<M>,
        steps: &[MethodStep],
    ) -> Result<Vec<f32>, GpuError> {
        let events = (0..=steps.len()).map(|_| event(self.device()));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        self.launch(batch, steps, &events)?;
        self.lane.wait()?;
        let mut took = vec![self.lane.took_ms_to(&events[0])?];
        for pair in events.windows(2) {
            took.push(pair[0].elapsed_ms(&pair[1]).map_err(|e| self.lane.failed(e))?);
        }
        Ok(took)
    }

    /// Milliseconds on the device of the last batch, which is done.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        self.lane.took_ms()
    }

    /// What the kernels said of a batch that is done: for [`MethodBatch::answers`].
    pub fn output(&self) -> &[u8] {
        self.lane.output()
    }

    /// Writes to the memory of batches: for measurements.
    pub fn write_words(&self, at: u64, words: &[u32]) -> Result<(), GpuError> {
        let written = self.words.write(4 * at, bytemuck::cast_slice(words));
        written.map_err(|e| self.device().call("copy numbers to the device", e))
    }

    /// Reads of it.
    pub fn read_words(&self, at: u64, len: usize) -> Result<Vec<u32>, GpuError> {
        let bytes = self.words.read(4 * at, 4 * len);
        let bytes = bytes.map_err(|e| self.device().call("copy numbers from the device", e))?;
        Ok(bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Answers a batch that is finished, which takes from tens of microseconds to some hundred
    /// milliseconds.
    pub fn answer(&mut self, batch: &MethodBatch<M>) -> Result<Vec<Found>, GpuError> {
        self.launch(batch, &M::steps(batch), &[])?;
        self.lane.wait()?;
        Ok(batch.answers(self.output()))
    }
}
