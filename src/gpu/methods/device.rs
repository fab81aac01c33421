//! A device that answers batches by a method: it has the kernels, norms and static scores, the
//! parts that stay, and memory that one batch at a time works in. A batch brings the parts that it
//! lacks in the same copy as its queries.

use super::batch::{AskedPart, BatchRoom, FoundHits, MethodBatch};
use super::lists::ListCache;
use super::travelling::KeptLists;
use super::{DeviceMethod, MethodArray, MethodStep, source};
use crate::crew::Crew;
use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::events::Ticket;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::pinned::Pinned;
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
    /// Of the free memory, for a batch; and at most so many bytes.
    const BATCH_PERCENT: u64 = 25;
    const MOST_BATCH_BYTES: u64 = 8 << 30;

    /// Of what is left then, for lists.
    const LISTS_PERCENT: u64 = 80;
}

/// Upper bound of lists on a device, by bytes on disk: so many times as many, plus so many.
const MOST_GROWTH: u64 = 4;
const MORE_BYTES: u64 = 1 << 20;

/// That most batches have room for.
const TERMS: usize = 8;

/// Parts that a thread brings, if there are few.
const PARTS_OF_THREAD: usize = 8;

/// Bytes of laid-out lists that the host caches, unless set otherwise.
const MOST_KEPT: u64 = 1 << 30;

#[derive(Debug)]
pub struct MethodDevice<M: DeviceMethod> {
    /// For a batch, and for its results.
    input: Pinned,
    output: Pinned,
    /// The beginning and the end of the last batch.
    span: Option<(Ticket, Ticket)>,
    crew: Crew,
    on: CudaArrays<MethodArray>,
    snapshot: Arc<Snapshot>,
    cache: ListCache<M::Key, M::Laid>,
    kept: KeptLists<M::Key, M::Laid, M::Layer>,
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
        let names = M::KERNELS.iter().map(|&name| (name, shared));
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
        let input = Pinned::new(&on.device, "queries", input)?;
        let output = Pinned::new(&on.device, "hits", output)?;
        let left = on.device.free_bytes()?.min(on.device.memory().left());
        let lists = memory.lists.unwrap_or(left / 100 * MethodMemory::LISTS_PERCENT);
        on.take(MethodArray::Cached, "postings lists", lists)?;
        Ok(Self {
            input,
            output,
            span: None,
            crew: Crew::new("writer"),
            on,
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
    pub fn fill(&mut self, wanted: &[M::Part], bytes: u64) -> Result<(), GpuError> {
        self.cache = ListCache::default();
        let Self { snapshot, on, cache, crew, threads, .. } = self;
        let arena = on.memory.of(MethodArray::Cached);
        cache.bring(wanted, arena, bytes, crew, *threads, |layer, part, bytes| {
            M::lay(snapshot, layer, part, bytes).map(|laid| (M::key(part), laid))
        })
    }

    /// If the method's cache grows, brings parts that are not there, while there is room.
    pub(super) fn grow<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart<M>>,
    ) -> Result<(), GpuError> {
        let Self { snapshot, on, cache, crew, threads, .. } = self;
        if !M::GROWS || cache.is_full() {
            return Ok(());
        }
        let mut known = HashSet::new();
        let is_new =
            |of: &&'a AskedPart<M>| cache.place(&of.key).is_none() && known.insert(&of.key);
        let wanted: Vec<_> = asked.into_iter().filter(is_new).collect();
        let arena = on.memory.of(MethodArray::Cached);
        let threads = (*threads).min(wanted.len().div_ceil(PARTS_OF_THREAD));
        cache.bring(&wanted, arena, arena.bytes(), crew, threads, |layer, of, bytes| {
            M::lay(snapshot, layer, &of.part, bytes).map(|laid| (of.key.clone(), laid))
        })
    }

    /// Restarts the host's cache of laid-out parts, with room for `most` bytes.
    pub fn keep(&mut self, most: u64) {
        self.kept = KeptLists::new(most);
    }

    /// Lays out those parts that are neither on the device nor cached.
    pub fn lay_ahead<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a AskedPart<M>>,
    ) -> Result<(), IndexError> {
        let Self { snapshot, cache, kept, crew, threads, .. } = self;
        let travel = asked.into_iter().filter(|asked| cache.place(&asked.key).is_none());
        let wanted = travel.map(|asked| (&asked.key, &asked.part));
        let lay = |layer: &mut _, part: &&M::Part, out: &mut _| M::lay(snapshot, layer, part, out);
        kept.lay_ahead(wanted, crew, *threads, lay)
    }

    pub fn kept(&self) -> &KeptLists<M::Key, M::Laid, M::Layer> {
        &self.kept
    }

    pub fn device(&self) -> &Device {
        &self.on.device
    }

    pub fn cache(&self) -> &ListCache<M::Key, M::Laid> {
        &self.cache
    }

    pub fn cache_room(&self) -> u64 {
        self.on.memory.of(MethodArray::Cached).bytes()
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
        asked: &[AskedPart<M>],
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

    /// Enqueues steps of a finished batch, made by [`add`](Self::add) with the parts that are there
    /// now. If it is `timed`, tickets say when the first step began and when each was done.
    fn launch(
        &mut self,
        batch: &MethodBatch<M>,
        steps: &[MethodStep],
        timed: bool,
    ) -> Result<Vec<Ticket>, GpuError> {
        let Self { input, output, crew, on, threads, .. } = self;
        let bytes = [batch.input().bytes, batch.output().bytes];
        let [to, from] = [MethodArray::Input, MethodArray::Output].map(|array| on.memory.of(array));
        let fits = bytes[0] as u64 <= to.bytes() && bytes[1] as u64 <= from.bytes();
        assert!(fits && batch.used().words <= self.room.words, "a batch fits its room");
        let copied = GpuWork::Upload(bytes[0] as u64);
        let began = on.ticket(copied)?;
        // SAFETY: no copy is under way, since every batch is waited for before the next; both have
        // so many bytes, and live until the batch is done.
        unsafe {
            input.write_up(&batch.parts(), crew, *threads, to.address(), &on.stream)?;
        }
        let mut tickets = Vec::new();
        if timed {
            tickets.push(on.ticket(copied)?);
        }
        for step in steps {
            on.launch(step)?;
            if timed {
                tickets.push(on.ticket(GpuWork::Kernel(step.launched()))?);
            }
        }
        // SAFETY: both have so many bytes, and nobody reads them until the batch is done.
        unsafe { output.copy_down(from.address(), 0, bytes[1], &on.stream) }?;
        let done = on.ticket(GpuWork::Download(bytes[1] as u64))?;
        self.travelled += batch.used().list_bytes as u64;
        self.span = Some((began, done));
        Ok(tickets)
    }

    /// Spins: a batch takes from tens of microseconds to some hundred milliseconds.
    fn wait(&self) -> Result<&(Ticket, Ticket), GpuError> {
        let span = self.span.as_ref().expect("a batch was launched");
        while !span.1.is_done()? {
            spin_loop();
            yield_now();
        }
        Ok(span)
    }

    /// Runs steps of a finished batch, and waits; returns milliseconds of the copy and each step.
    pub fn time_steps(
        &mut self,
        batch: &MethodBatch<M>,
        steps: &[MethodStep],
    ) -> Result<Vec<f32>, GpuError> {
        let tickets = self.launch(batch, steps, true)?;
        let (began, _) = self.wait()?;
        let before = std::iter::once(began).chain(&tickets);
        tickets.iter().zip(before).map(|(ticket, before)| ticket.ms_since(before)).collect()
    }

    /// Of the last batch, on the device.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        let (began, done) = self.wait()?;
        done.ms_since(began)
    }

    /// The results of a batch that is done, for [`MethodBatch::answers`].
    pub fn output(&self) -> &[u8] {
        // SAFETY: whoever launches a batch waits for it.
        unsafe { self.output.bytes() }
    }

    /// Writes to the memory of batches: for measurements.
    pub fn write_words(&self, at: u64, words: &[u32]) -> Result<(), GpuError> {
        self.on.memory.of(MethodArray::Words).write(4 * at, bytemuck::cast_slice(words))
    }

    pub fn read_words(&self, at: u64, len: usize) -> Result<Vec<u32>, GpuError> {
        let bytes = self.on.memory.of(MethodArray::Words).read(4 * at, 4 * len)?;
        Ok(bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect())
    }

    pub fn answer(&mut self, batch: &MethodBatch<M>) -> Result<Vec<FoundHits>, GpuError> {
        self.launch(batch, &M::steps(batch), false)?;
        self.wait()?;
        Ok(batch.answers(self.output()))
    }
}
