//! How does a device take batches and give results? It has the kernels, the norms, the lists that
//! stay, and memory that one batch at a time works in. A batch brings the lists that it lacks in
//! the same copy as its queries.

use super::batch::{AskedTerm, HuangArray, HuangBatch, HuangRoom, HuangWay, Key, MOST_TERMS};
use super::cache::{self, Cache, key_of};
use super::list::{HuangLaid, ListLayer, Worth};
use super::{KERNELS, Traversal, source};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::slab::Slab;
use crate::gpu::floor::steps::Step;
use crate::gpu::lane::Lane;
use crate::gpu::query::plan::MOST_HITS;
use crate::gpu::travelling::Kept;
use crate::gpu::turns::Memory;
use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use cudarc::driver::CudaFunction;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// How a device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HuangTuning {
    /// Threads of a block, and parts of the documents.
    pub threads: u32,
    /// How these go through lists.
    pub traversal: Traversal,
    /// Whether the threads of a query have one threshold: see [`HuangWay`].
    pub shared_threshold: bool,
}

impl Default for HuangTuning {
    fn default() -> Self {
        let (threads, traversal) = (super::DEFAULT_THREADS, Traversal::default());
        Self { threads, traversal, shared_threshold: false }
    }
}

/// The most bytes of lists that travel with a batch.
const MOST_TRAVELLING: u64 = 256 << 20;

/// Bytes of lists that the host keeps laid out to travel.
const MOST_KEPT: u64 = 1 << 30;

/// A device that answers queries about one collection.
#[derive(Debug)]
pub struct HuangDevice {
    lane: Lane,
    snapshot: Arc<Snapshot>,
    functions: HashMap<&'static str, CudaFunction>,
    norms: Slab,
    arena: Slab,
    cache: Cache,
    kept: Kept<Key, HuangLaid, ListLayer>,
    words: Slab,
    room: HuangRoom,
    /// Threads of the host that bring lists.
    threads: usize,
    /// Bytes of lists that travelled.
    travelled: u64,
}

/// A term of a query that is asked.
#[derive(Clone, Debug)]
pub struct HuangTerm<'a> {
    /// Its lists, run by run.
    pub entries: Vec<Option<&'a TermEntry>>,
    pub weight: f32,
}

/// Lays out the list with these entries.
fn lay(
    snapshot: &Snapshot,
    layer: &mut ListLayer,
    entries: &[Option<&TermEntry>],
    out: &mut Vec<u8>,
) -> Result<HuangLaid, IndexError> {
    let entries: Vec<Option<TermEntry>> = entries.iter().map(|entry| entry.copied()).collect();
    layer.lay(snapshot.generation(), &entries, worth(snapshot), out)
}

fn worth(snapshot: &Snapshot) -> Worth<'_> {
    Worth { norms: snapshot.norms(), bounds: snapshot.bounds() }
}

impl HuangDevice {
    /// Loads the kernels and the norms of all documents, takes its memory, and brings the lists
    /// that stay, by so many threads.
    ///
    /// # Errors
    /// The kernels do not load, there is not so much memory, or the lexicon of the index is
    /// damaged.
    ///
    /// # Panics
    /// If lists have [another form](super::list::check_form) than a device can read.
    pub fn open(
        device: Device,
        toolchain: &Toolchain,
        snapshot: &Arc<Snapshot>,
        memory: Memory,
        threads: usize,
    ) -> Result<Self, GpuError> {
        let shared = device.most_shared_bytes();
        let module = toolchain.load(&device, &source())?;
        let mut functions = HashMap::new();
        for name in KERNELS {
            let function = module.kernel(&device, name)?.function_sharing(&device, shared)?;
            functions.insert(name, function);
        }
        let norms = Slab::new(&device, "norms", 4 * snapshot.norms().len() as u64)?;
        norms
            .write(0, bytemuck::cast_slice(snapshot.norms()))
            .map_err(|e| device.call("copy norms to the device", e))?;
        // More than all lists take on a device cannot travel.
        let runs = snapshot.generation().runs().iter();
        let list_bytes: u64 =
            runs.map(|run| 2 * run.postings_header().list_bytes + (1 << 20)).sum();
        let words = memory.of_batch(device.free_bytes()?);
        let words = Slab::new(&device, "a batch of queries", words)?;
        let room = HuangRoom {
            words: words.bytes() / 4,
            hits: (memory.queries * memory.k).max(MOST_HITS) as u64,
            terms: (memory.queries * MOST_TERMS / 2).max(MOST_TERMS),
            list_bytes: list_bytes.min(MOST_TRAVELLING) as usize,
            shared_bytes: shared,
        };
        let lane = Lane::new(device, room.input_bytes(), room.output_bytes())?;
        let device = lane.device();
        let left = device.free_bytes()?.min(device.memory().left());
        let arena = Slab::new(device, "postings lists", memory.of_lists(left))?;
        let generation = snapshot.generation();
        let cache = cache::fill(generation, worth(snapshot), (device, &arena), threads)?;
        Ok(Self {
            snapshot: snapshot.clone(),
            lane,
            functions,
            norms,
            arena,
            cache,
            kept: Kept::new(MOST_KEPT),
            words,
            room,
            threads,
            travelled: 0,
        })
    }

    pub fn device(&self) -> &Device {
        self.lane.device()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Bytes of lists that were copied to the device.
    pub(crate) fn list_bytes(&self) -> u64 {
        self.cache.bytes() + self.travelled
    }

    /// What a batch may hold.
    pub fn room(&self) -> &HuangRoom {
        &self.room
    }

    /// An empty batch about its documents.
    pub fn batch(&self, threads: u32) -> HuangBatch {
        HuangBatch::new(self.snapshot.norms().len() as u32, threads)
    }

    /// Adds a query for the best `k` of some documents to a batch; false if there is no room.
    ///
    /// # Errors
    /// When a list that has to travel is damaged.
    pub fn add(
        &mut self,
        batch: &mut HuangBatch,
        terms: &[HuangTerm],
        best: (u32, Range<u32>),
    ) -> Result<bool, IndexError> {
        let Self { snapshot, cache, kept, room, .. } = self;
        let keys: Vec<Key> = terms.iter().map(|term| key_of(&term.entries)).collect();
        let asked: Vec<AskedTerm<'_>> = terms
            .iter()
            .zip(&keys)
            .map(|(term, key)| AskedTerm { key, cached: cache.place(key), weight: term.weight })
            .collect();
        batch.add(&asked, best, room, |t| {
            kept.list(&keys[t], |layer, out| lay(snapshot, layer, &terms[t].entries, out))
        })
    }

    /// Lays out those of some lists, each by its entries in all runs, that are neither on the
    /// device nor kept.
    pub(crate) fn lay_ahead<'a>(
        &mut self,
        lists: impl IntoIterator<Item = Vec<Option<&'a TermEntry>>>,
    ) -> Result<(), IndexError> {
        let Self { snapshot, cache, kept, threads, .. } = self;
        let wanted = lists.into_iter().map(|entries| (key_of(&entries), entries));
        let wanted = wanted.filter(|(key, _)| cache.place(key).is_none());
        kept.lay_ahead(wanted, *threads, |layer, entries, out| lay(snapshot, layer, entries, out))
    }

    /// Enqueues all launches of a batch that is finished, and was made by [`add`](Self::add).
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If it has no room.
    pub fn launch(
        &mut self,
        batch: &HuangBatch,
        steps: &[Step<HuangArray>],
    ) -> Result<(), GpuError> {
        assert!(batch.words() <= self.room.words, "a batch fits its room");
        let output = batch.output().bytes;
        let bytes = (batch.input().bytes, output);
        self.lane.begin_parts(bytes, &batch.parts(), self.threads)?;
        let address = |array| match array {
            HuangArray::Cached => self.arena.address(),
            HuangArray::Input => self.lane.input_on(),
            HuangArray::Norms => self.norms.address(),
            HuangArray::Words => self.words.address(),
            HuangArray::Output => self.lane.output_on(),
        };
        for step in steps {
            let function = &self.functions[step.kernel];
            // SAFETY: `HuangBatch::steps` has the arguments that the kernel declares, which the
            // tests pass to it too; a batch that fits keeps kernels within this device's memory,
            // and lists lie where their terms say.
            unsafe { self.lane.step(function, step, address) }?;
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

    /// Milliseconds on the device from the first copy of the last batch, which is done, to its
    /// last.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn took_ms(&self) -> Result<f32, GpuError> {
        self.lane.took_ms()
    }

    /// What the kernels said of a batch that is done: for [`HuangBatch::answers`] and
    /// [`HuangBatch::stages`].
    pub fn output(&self) -> &[u8] {
        self.lane.output()
    }

    /// Answers a batch that is finished by a kernel, and waits.
    ///
    /// # Errors
    /// The driver refuses, or the work failed.
    ///
    /// # Panics
    /// As [`launch`](Self::launch).
    pub fn answer(
        &mut self,
        batch: &HuangBatch,
        kernel: &'static str,
        how: HuangWay,
    ) -> Result<Vec<Vec<Hit>>, GpuError> {
        self.launch(batch, &batch.steps(kernel, how))?;
        self.wait()?;
        Ok(batch.answers(self.output()))
    }
}
