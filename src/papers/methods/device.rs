//! A device that answers batches by a method: it has the kernels, norms and static scores, the
//! parts that stay, and memory that one batch at a time works in. A batch brings the parts that it
//! lacks in the same copy as its queries.

use super::batch::{AskedPart, BatchRoom, FoundHits, MethodBatch};
use super::lists::{DevicePart, ListCache};
use super::travelling::KeptLists;
use super::{DeviceMethod, MethodArray, MethodStep, source};
use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::events::Ticket;
use crate::gpu::floor::machine::{CudaQueue, DeviceWork, LentTicket, UnderWay};
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::steps::Kernels;
use crate::gpu::query::plan::MOST_HITS;
use crate::index::error::IndexError;
use crate::query::snapshot::Snapshot;
use std::collections::HashSet;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Arc;
use std::thread::yield_now;

#[derive(Clone, Copy, Debug)]
pub struct MethodMemory {
    /// For lists that stay; most of what is free if left out.
    pub lists: Option<u64>,
    /// For lists that travel with a batch; as the method has it if left out.
    pub travelling: Option<u64>,
    pub queries: usize,
    /// Hits that most queries ask for.
    pub k: usize,
}

impl MethodMemory {
    /// Of the free memory, for a batch; and at most this many bytes.
    const BATCH_PERCENT: u64 = 25;
    const MOST_BATCH_BYTES: u64 = 8 << 30;

    /// Of what is left then, for lists.
    const LISTS_PERCENT: u64 = 80;
}

/// Upper bound of lists on a device, by bytes on disk: so many times as many, plus so many.
const MOST_GROWTH: u64 = 4;
const MORE_BYTES: u64 = 1 << 20;

/// Terms that most batches have room for.
const TERMS: usize = 8;

/// Parts that a thread brings, if there are few.
const PARTS_OF_THREAD: usize = 8;

/// Bytes of laid-out lists that the host caches, unless set otherwise.
const MOST_KEPT: u64 = 1 << 30;

#[derive(Debug)]
pub struct MethodDevice<M: DeviceMethod> {
    /// The beginning of the last batch, and its end, with its results.
    last: Option<(Ticket, LentTicket)>,
    queue: CudaQueue<MethodArray>,
    snapshot: Arc<Snapshot>,
    cache: ListCache<M::Laid>,
    kept: KeptLists<M::Laid, M::Layer>,
    room: BatchRoom,
    /// Of the host, to bring lists.
    threads: usize,
    travelled: u64,
}

impl<M: DeviceMethod> MethodDevice<M> {
    /// Loads the kernels, norms and static scores, and takes its memory. `threads` of the host will
    /// bring lists; none is there yet.
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        memory: MethodMemory,
        threads: usize,
    ) -> Result<Self, GpuError> {
        let shared = device.most_shared_bytes();
        let names = M::kernels().into_iter().map(|name| (name, shared));
        let kernels = Kernels::load(toolchain, &device, &source::<M>(), names)?;
        let mut on = CudaArrays::new(Arc::new(device), kernels, None)?;
        for (array, what, values) in [
            (MethodArray::Norms, "norms", snapshot.norms()),
            (MethodArray::Statics, "static scores", snapshot.statics()),
            (MethodArray::Globals, "global scores", snapshot.globals()),
        ] {
            let bytes: &[u8] = bytemuck::cast_slice(values);
            on.take(array, what, bytes.len() as u64)?.write(0, bytes)?;
        }
        let of_batch = on.device.free_bytes()? / 100 * MethodMemory::BATCH_PERCENT;
        let of_batch = if M::HAS_WORDS { of_batch.min(MethodMemory::MOST_BATCH_BYTES) } else { 0 };
        let words = on.take(MethodArray::Words, "a batch of queries", of_batch)?.bytes();
        // No more can travel than all lists take on a device.
        let runs = snapshot.generation().runs().iter();
        let all_lists =
            runs.map(|run| MOST_GROWTH * run.postings_header().list_bytes + MORE_BYTES).sum();
        let terms = (memory.queries * TERMS).max(M::MOST_TERMS);
        let room = BatchRoom {
            words: words / 4,
            hits: (memory.queries * memory.k).max(MOST_HITS) as u64,
            terms,
            list_bytes: memory.travelling.unwrap_or(M::MOST_TRAVELLING).min(all_lists) as usize,
            more: M::more_bytes(terms),
            shared_bytes: shared,
        };
        let input = room.input_bytes::<M>();
        let output = room.output_bytes::<M>();
        on.take(MethodArray::Input, "queries", input as u64)?;
        on.take(MethodArray::Output, "hits", output as u64)?;
        let left = on.device.free_bytes()?.min(on.device.memory().left());
        let lists = memory.lists.unwrap_or(left / 100 * MethodMemory::LISTS_PERCENT);
        on.take(MethodArray::Cached, "postings lists", lists)?;
        // A batch and then its results.
        let queue = CudaQueue::new(on, 1, input.max(output), threads)?;
        Ok(Self {
            last: None,
            queue,
            snapshot: snapshot.clone(),
            cache: ListCache::default(),
            kept: KeptLists::new(MOST_KEPT),
            room,
            threads,
            travelled: 0,
        })
    }

    pub fn bring(&mut self, how: &M) -> Result<(), GpuError> {
        let wanted = how.stay(self.snapshot.generation()).map_err(|source| GpuError::Index {
            device: self.device().info().to_string(),
            source: Box::new(source),
        })?;
        self.fill(&wanted, self.cache_room())
    }

    /// Replaces the parts that stay by as many of `wanted`, in their order, as fit `bytes`.
    pub fn fill(&mut self, wanted: &[DevicePart], bytes: u64) -> Result<(), GpuError> {
        self.cache = ListCache::default();
        let Self { snapshot, cache, threads, .. } = self;
        let CudaQueue { on, crew, .. } = &mut self.queue;
        let arena = on.memory.of(MethodArray::Cached);
        let wanted: Vec<_> = wanted.iter().collect();
        cache.bring(&wanted, arena, bytes, crew, *threads, |layer, part, bytes| {
            M::lay(snapshot, layer, part, bytes)
        })
    }

    /// If the method's cache grows, brings parts that are not there, while there is room.
    pub(super) fn grow<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart>,
    ) -> Result<(), GpuError> {
        let Self { snapshot, cache, threads, .. } = self;
        let CudaQueue { on, crew, .. } = &mut self.queue;
        if !M::GROWS || cache.is_full() {
            return Ok(());
        }
        let mut known = HashSet::new();
        let is_new = |of: &&'a AskedPart| cache.place(&of.key).is_none() && known.insert(&of.key);
        let wanted: Vec<_> = asked.into_iter().filter(is_new).map(|of| &of.part).collect();
        let arena = on.memory.of(MethodArray::Cached);
        let threads = (*threads).min(wanted.len().div_ceil(PARTS_OF_THREAD));
        cache.bring(&wanted, arena, arena.bytes(), crew, threads, |layer, part, bytes| {
            M::lay(snapshot, layer, part, bytes)
        })
    }

    /// Restarts the host's cache of laid-out parts, with room for `most` bytes.
    pub fn keep(&mut self, most: u64) {
        self.kept = KeptLists::new(most);
    }

    /// Lays out those parts that are neither on the device nor cached.
    pub fn lay_ahead<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart>,
    ) -> Result<(), IndexError> {
        let Self { snapshot, cache, kept, queue, threads, .. } = self;
        let travel = asked.into_iter().filter(|asked| cache.place(&asked.key).is_none());
        let wanted = travel.map(|asked| (&asked.key, &asked.part));
        kept.lay_ahead(wanted, &mut queue.crew, *threads, |layer, part, out| {
            M::lay(snapshot, layer, part, out)
        })
    }

    pub fn kept(&self) -> &KeptLists<M::Laid, M::Layer> {
        &self.kept
    }

    pub fn device(&self) -> &Device {
        &self.queue.on.device
    }

    pub fn cache(&self) -> &ListCache<M::Laid> {
        &self.cache
    }

    pub fn cache_room(&self) -> u64 {
        self.queue.on.memory.of(MethodArray::Cached).bytes()
    }

    pub(crate) fn list_bytes(&self) -> u64 {
        self.cache.bytes() + self.travelled
    }

    pub fn room(&self) -> &BatchRoom {
        &self.room
    }

    /// An empty batch with the device's capacity.
    pub fn batch(&self, how: M, all_terms: bool) -> MethodBatch<M> {
        MethodBatch::new(how, all_terms, self.snapshot.norms().len() as u32, self.room)
    }

    /// Adds a query for the best `k` of some documents; false if there is no room.
    pub fn add(
        &mut self,
        batch: &mut MethodBatch<M>,
        asked: &[AskedPart],
        k: u32,
        docids: Range<u32>,
    ) -> Result<bool, IndexError> {
        let Self { snapshot, cache, kept, .. } = self;
        let lay = |t: usize| {
            let AskedPart { key, part, .. } = &asked[t];
            kept.list(key, |layer, out| M::lay(snapshot, layer, part, out))
        };
        batch.add(asked, k, docids, |key| cache.place(key), lay)
    }

    /// Spins: a batch takes from tens of microseconds to some hundred milliseconds.
    fn finish(&mut self, work: &DeviceWork<'_, MethodArray>) -> Result<(), GpuError> {
        self.last = None;
        let began = self.queue.on.ticket(work.named())?;
        let given = self.queue.begin(work)?.expect("no other work has the buffer");
        while !given.is_done()? {
            spin_loop();
            yield_now();
        }
        self.last = Some((began, given));
        Ok(())
    }

    /// Copies of a finished batch, made by [`add`](Self::add) with the parts that are there now.
    fn up<'a>(&self, batch: &'a MethodBatch<M>) -> Vec<(MethodArray, u64, Vec<&'a [u8]>)> {
        assert!(batch.used().words <= self.room.words, "a batch fits its room");
        vec![(MethodArray::Input, 0, batch.parts())]
    }

    /// Runs steps of a finished batch; returns milliseconds of the copy and each step.
    pub fn time_steps(
        &mut self,
        batch: &MethodBatch<M>,
        steps: &[MethodStep],
    ) -> Result<Vec<f32>, GpuError> {
        self.finish(&DeviceWork { up: self.up(batch), steps: vec![], down: vec![] })?;
        let mut took = vec![self.took_ms()?];
        took.extend(self.queue.on.time(steps)?);
        self.finish(&DeviceWork { up: vec![], steps: vec![], down: down(batch) })?;
        Ok(took)
    }

    fn last(&self) -> &(Ticket, LentTicket) {
        self.last.as_ref().expect("a batch was answered")
    }

    /// Of the last batch, on the device.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        let (began, done) = self.last();
        done.ms_since(began)
    }

    /// The results of the last batch, for [`MethodBatch::answers`].
    pub fn output(&self) -> &[u8] {
        self.last().1.bytes()
    }

    /// Writes to the memory of batches: for measurements.
    pub fn write_words(&self, at: u64, words: &[u32]) -> Result<(), GpuError> {
        self.queue.on.memory.of(MethodArray::Words).write(4 * at, bytemuck::cast_slice(words))
    }

    pub fn read_words(&self, at: u64, len: usize) -> Result<Vec<u32>, GpuError> {
        let bytes = self.queue.on.memory.of(MethodArray::Words).read(4 * at, 4 * len)?;
        Ok(bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
    }

    pub fn answer(&mut self, batch: &MethodBatch<M>) -> Result<Vec<FoundHits>, GpuError> {
        self.finish(&DeviceWork { up: self.up(batch), steps: M::steps(batch), down: down(batch) })?;
        self.travelled += batch.used().list_bytes as u64;
        Ok(batch.answers(self.output()))
    }
}

fn down<M: DeviceMethod>(batch: &MethodBatch<M>) -> Vec<(MethodArray, Range<u64>)> {
    vec![(MethodArray::Output, 0..batch.output().bytes as u64)]
}
