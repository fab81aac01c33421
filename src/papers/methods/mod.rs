//! What the methods of papers by which devices answer queries have in common: one driver. (The
//! default engine has a device of its own, and shares only the queue's desk.)
//!
//! # How a method is added
//! By kernels that answer a batch of queries, and one folder, `papers/NAME/gpu/`; memory, copies,
//! launches, queues and replies are the driver's:
//!
//! 1. `kernels/NAME/NAME.cu`. Its text and sizes go to `tests/support/pretended/kernels.rs` too,
//!    and to the `sources` of `papers`.
//! 2. `gpu/mod.rs`: a `struct` of what can be tuned, and [`DeviceMethod`] for it, which makes it a
//!    row of `METHODS`; its options are in [`given`].
//! 3. `gpu/list.rs`: the layout of a postings list, or another part of an index, on a device. The
//!    device checks no byte, so damage has to be found there.
//! 4. `gpu/batch.rs`: the record of a query ([`DeviceMethod::make`]), and the launches of a batch
//!    ([`DeviceMethod::steps`]).
//! 5. `gpu/tests/twin.rs`: the same in plain Rust; `tests/gpu/inside/NAME.rs` compares both under
//!    emulation. Tables of a paper are a file of `jobs/experiments`.
//!
//! # The driver
//!
//! | module | |
//! | --- | --- |
//! | [`batch`] | the queries of a batch, and the layout of what kernels read and write |
//! | [`device`] | a device's kernels, its memory, and the way of a batch to it and back |
//! | [`lists`] | the parts that are on a device for good |
//! | [`travelling`] | the parts that come with a batch, and those that the host caches |
//! | [`turns`] | the thread of a device: from planned queries to hits |
//!
//! A device holds as many parts as its memory has room for, in the order of [`DeviceMethod::stay`],
//! or as they are asked for. All others travel with each batch that asks for them. Each device has
//! a thread; a query goes to the one that has the fewest, or to all, by ranges of documents.

pub(crate) mod batch;
pub(crate) mod device;
pub mod given;
pub(crate) mod lists;
pub(crate) mod travelling;
pub(crate) mod turns;

use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::nvrtc::KernelSource;
use crate::gpu::floor::steps;
use crate::gpu::query::method::{GivenDevice, HandedMethod, ThreadWork, weights};
use crate::gpu::query::plan::{MOST_HITS, Scale};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::list::Form;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Mode;
use crate::score::named::Score;
use crate::settings::SettingError;
use batch::{MadeQuery, MethodBatch, PlacedQuery};
use bytemuck::Pod;
use device::{MethodDevice, MethodMemory};
use lists::DevicePart;
use std::fmt::Debug;
use turns::MethodTurns;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodArray {
    /// The parts that stay, in bytes.
    Cached,
    /// The batch's records, and the parts that travel with it: [`MethodBatch::parts`].
    Input,
    /// f32: of all documents.
    Norms,
    /// f32: what documents' scores begin with, where these are in global order.
    Statics,
    /// f32, by document.
    Globals,
    /// The batch's memory, in words.
    Words,
    /// For the host: [`MethodBatch::output`].
    Output,
}

pub(crate) type MethodArgument = steps::Argument<MethodArray>;

pub(crate) type MethodStep = steps::Step<MethodArray>;

pub(crate) fn source<M: DeviceMethod>() -> KernelSource {
    KernelSource { name: M::NAME, text: M::TEXT, sizes: M::SIZES.to_vec() }
}

pub fn check_lists<M: DeviceMethod>(generation: &Generation) -> Result<(), GpuError> {
    let mut forms = generation.runs().iter().map(|run| run.postings_header().form);
    let first = forms.clone().next();
    let other = forms.find(|&form| !M::reads(form, first.unwrap_or(form)));
    let [reads, remedy] = M::READS;
    let method = M::NAME;
    other.map_or(Ok(()), |form| {
        let why = format!(
            "{method} reads lists of {reads}, and the index has some of {form}: build it with \
             {remedy}, or merge it so"
        );
        Err(GpuError::Setting(SettingError::value("algorithm", why)))
    })
}

/// With its tuning.
pub trait DeviceMethod: Copy + Debug + Send + Sync + 'static {
    /// The stem of the kernels' file.
    const NAME: &'static str;

    /// And the sizes that it is compiled with.
    const TEXT: &'static str;
    const SIZES: &'static [(&'static str, u32)] = &[];

    /// The lists that kernels read, in words, and the settings that make an index of such lists.
    const READS: [&'static str; 2] = ["", ""];

    /// Of a query.
    const MOST_TERMS: usize;

    /// Queries of a batch.
    const BATCH: usize = 256;

    /// Whether kernels use memory of the batch.
    const HAS_WORDS: bool = true;

    /// Whether parts that are asked for stay on a device too, while there is room.
    const GROWS: bool = false;

    /// Of parts that travel with a batch, for which memory of the host is pinned.
    const MOST_TRAVELLING: u64 = 256 << 20;

    /// Bytes that kernels write for each query, and for each term, beside [`Said`](Self::Said).
    const SAID_BESIDE: [usize; 2] = [0; 2];

    /// Description of a laid-out part of a list, for term records.
    type Laid: Copy + Debug + Send;
    /// Lays out parts, one after the other.
    type Layer: Debug + Default + Send;
    /// As kernels read it.
    type Term: Debug + Pod;
    /// As kernels read it.
    type Record: Debug + Pod;
    /// The kernels' result of a query: its number of hits first.
    type Said: AsRef<[u32]> + Debug + Default + Pod;
    /// What is planned for a batch beside its records.
    type Plan: Debug + Default;

    fn kernels() -> Vec<&'static str> {
        source::<Self>().kernels()
    }

    /// Whether it has such a score, in a mode.
    fn has_score(score: Score, _mode: Mode) -> bool {
        score.is_saturation()
    }

    /// Whether it answers a query with a score that it has.
    fn suits(plan: &Plan) -> bool {
        plan.snapshot().statics().is_empty() && Scale::new(weights(plan)).is_some()
    }

    /// # Errors
    /// It does not read such an index.
    fn check(snapshot: &Snapshot) -> Result<(), GpuError> {
        check_lists::<Self>(snapshot.generation())
    }

    /// In an index whose first run has lists of form `first`.
    fn reads(_form: Form, _first: Form) -> bool {
        true
    }

    /// The parts that are brought before any is asked for, and stay, most important first.
    fn stay(&self, _generation: &Generation) -> Result<Vec<DevicePart>, IndexError> {
        Ok(Vec::new())
    }

    /// Lays a part out into `out`, which is empty, and will be at a multiple of 16 bytes.
    fn lay(
        snapshot: &Snapshot,
        layer: &mut Self::Layer,
        part: &DevicePart,
        out: &mut Vec<u8>,
    ) -> Result<Self::Laid, IndexError>;

    /// Makes the record of a query, and adds its terms to the batch's.
    fn make(
        batch: &mut MethodBatch<Self>,
        query: &PlacedQuery<Self::Laid>,
    ) -> MadeQuery<Self::Record>;

    /// Bytes of [`MethodBatch::more`] for this many terms, at most.
    fn more_bytes(_terms: usize) -> usize {
        0
    }

    /// Plans a batch whose queries are sorted, and writes [`MethodBatch::more`].
    fn plan(_batch: &mut MethodBatch<Self>) {}

    /// The launches of a finished batch.
    fn steps(batch: &MethodBatch<Self>) -> Vec<MethodStep>;

    /// The docid from which a query is not answered, if it is not.
    fn rest(_said: &Self::Said) -> Option<u32> {
        None
    }
}

impl<M: DeviceMethod> HandedMethod for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn batch(&self) -> usize {
        M::BATCH
    }

    fn has_score(&self, score: Score, mode: Mode) -> bool {
        M::has_score(score, mode)
    }

    fn check(&self, snapshot: &Snapshot) -> Result<(), GpuError> {
        M::check(snapshot)
    }

    fn suits(&self, plan: &Plan) -> bool {
        let scoring = plan.snapshot().scoring();
        M::has_score(scoring.score, plan.wanted().mode) && M::suits(plan)
    }

    fn open(&self, given: GivenDevice<'_>) -> Result<ThreadWork, GpuError> {
        let GivenDevice { device, toolchain, snapshot, share, options, desk } = given;
        let memory = MethodMemory {
            lists: options.memory,
            travelling: None,
            queries: options.batch,
            k: options.k.clamp(1, MOST_HITS),
        };
        let threads = options.fetchers;
        let mut device = MethodDevice::open(device, toolchain, snapshot, memory, threads)?;
        device.bring(self)?;
        let turns = MethodTurns::new(device, *self, share, options.batch, desk);
        Ok(Box::new(move || turns.run()))
    }
}
