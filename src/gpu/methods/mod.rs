//! Methods of papers by which devices answer queries, all on one driver: `ding09`, `huang`, `wang`.
//! Their answers are those of every other engine. (The default engine, [`query`](super::query), has
//! a device of its own, and shares the queue's [`desk`](super::query::service) alone.)
//!
//! # How a method is added
//! Somebody who has kernels that answer a batch of queries writes one folder, `src/gpu/NAME/`, and
//! nothing of memory, copies, launches, queues or replies:
//!
//! 1. `kernels/NAME.cu`. Its text and sizes go to `tests/pretended/kernels.rs` too, and it is one
//!    of the `sources` of `gpu`.
//! 2. `src/gpu/NAME.rs`: a `struct` of what can be tuned, and [`DeviceMethod`] for it.
//! 3. `NAME/list.rs`: how a postings list, or another part of an index, lies in the memory of a
//!    device. The device believes every byte, so what is damaged has to be found there.
//! 4. `NAME/batch.rs`: what kernels are told of a query ([`DeviceMethod::make`]), and which
//!    launches answer a batch ([`DeviceMethod::steps`]).
//! 5. `NAME/twin.rs`: what the kernels find, in plain Rust; `tests/inside/NAME.rs` compares both
//!    under emulation.
//! 6. A variant of [`GpuMethod`](super::query::engine::GpuMethod), and its options in
//!    [`given`](super::query::given). Tables of a paper are a file of `jobs/experiments`.
//!
//! # What the driver does
//! | module | what it has |
//! | --- | --- |
//! | [`batch`] | the queries of a batch, and where all lies that kernels read and write |
//! | [`device`] | a device's kernels, its memory, and the way of a batch to it and back |
//! | [`lists`] | the parts that are on a device for good |
//! | [`travelling`] | the parts that come with a batch, and those that the host keeps laid out |
//! | [`turns`] | the thread of a device: from planned queries to answers |
//!
//! A device keeps as many parts as its memory has room for, in the order of [`DeviceMethod::stay`],
//! or as they are asked for. All others travel with each batch that asks for them. Several devices
//! have a thread each, and a query goes to the one that has the fewest, or to all of them by ranges
//! of documents.

pub(crate) mod batch;
pub(crate) mod device;
pub(crate) mod lists;
pub(crate) mod travelling;
pub(crate) mod turns;

use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::nvrtc::Source;
use crate::gpu::floor::steps;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::lexicon::TermEntry;
use crate::index::list::Form;
use crate::query::snapshot::Snapshot;
use crate::settings::SettingError;
use batch::{Made, MethodBatch, PlacedQuery};
use bytemuck::Pod;
use std::fmt::Debug;
use std::hash::Hash;

/// An array that kernels work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodArray {
    /// The parts that stay, in bytes.
    Cached,
    /// What the host says of the batch, and the parts that travel with it: [`MethodBatch::parts`].
    Input,
    /// f32: norms of all documents.
    Norms,
    /// f32: what their scores begin with, where they are in global order.
    Statics,
    /// f32: their global scores.
    Globals,
    /// The batch's memory, in words.
    Words,
    /// What the host is told: [`MethodBatch::output`].
    Output,
}

pub(crate) type Argument = steps::Argument<MethodArray>;

/// A launch of a batch.
pub(crate) type MethodStep = steps::Step<MethodArray>;

/// The source of a method's kernels.
pub(crate) fn source<M: DeviceMethod>() -> Source {
    Source { name: M::NAME, text: M::TEXT, sizes: M::SIZES.to_vec() }
}

/// Makes sure that a device can read all lists of a generation.
pub fn check_lists<M: DeviceMethod>(generation: &Generation) -> Result<(), GpuError> {
    let mut forms = generation.runs().iter().map(|run| run.postings_header().form);
    let first = forms.clone().next();
    let other = forms.find(|&form| !M::reads(form, first.unwrap_or(form)));
    let ([reads, remedy], method) = (M::READS, M::NAME);
    other.map_or(Ok(()), |form| {
        let why = format!(
            "{method} reads lists of {reads}, and the index has some of {form}: build it with \
             {remedy}, or merge it so"
        );
        Err(GpuError::Setting(SettingError::value("algorithm", why)))
    })
}

/// A method, with what can be tuned of it.
pub trait DeviceMethod: Copy + Debug + Send + Sync + 'static {
    /// The stem of the kernels' file.
    const NAME: &'static str;

    /// Their source, and the sizes that they are compiled with.
    const TEXT: &'static str;
    const SIZES: &'static [(&'static str, u32)] = &[];

    const KERNELS: &'static [&'static str];

    /// Which lists they read, in words, and the settings with which an index gets such lists.
    const READS: [&'static str; 2] = ["", ""];

    /// Terms of a query at most.
    const MOST_TERMS: usize;

    /// Whether kernels work on memory of the batch.
    const HAS_WORDS: bool = true;

    /// Whether parts that are asked for stay on a device too, as long as there is room.
    const GROWS: bool = false;

    /// The most bytes of parts that travel with a batch, for which memory of the host is pinned.
    const MOST_TRAVELLING: u64 = 256 << 20;

    /// Bytes that kernels say of each query, and of each term, beside [`Said`](Self::Said).
    const SAID_BESIDE: [usize; 2] = [0; 2];

    /// What lies in one piece in the memory of a device: the list of a term, or its beginning.
    type Part: Debug + Send + Sync;
    /// By what a part is found.
    type Key: Clone + Debug + Eq + Hash + Send + Sync;
    /// What has to be known of a part that is laid out.
    type Laid: Copy + Debug + Send;
    /// Lays parts out, one after the other.
    type Layer: Debug + Default + Send;
    /// A term of a query, as kernels read it.
    type Term: Debug + Pod;
    /// A query, as kernels read it.
    type Record: Debug + Pod;
    /// What kernels say of a query: the number of its hits first.
    type Said: AsRef<[u32]> + Debug + Default + Pod;
    /// What is planned of a batch beside its records.
    type Plan: Debug + Default;

    /// Whether kernels read lists of a form, in an index whose first run has lists of another.
    fn reads(_form: Form, _first: Form) -> bool {
        true
    }

    /// The part that is the list of a term, by its entries in all runs; `None` if there is none.
    fn part(entries: impl Iterator<Item = Option<TermEntry>>) -> Option<Self::Part>;

    fn key(part: &Self::Part) -> Self::Key;

    /// The parts that are to be on a device before any is asked for, and to stay, those first that
    /// matter most.
    ///
    /// # Errors
    /// When the index is damaged.
    fn stay(&self, _generation: &Generation) -> Result<Vec<Self::Part>, IndexError> {
        Ok(Vec::new())
    }

    /// Lays a part out into `out`, which is empty, and will be at a multiple of 16 bytes.
    ///
    /// # Errors
    /// When the index is damaged.
    fn lay(
        snapshot: &Snapshot,
        layer: &mut Self::Layer,
        part: &Self::Part,
        out: &mut Vec<u8>,
    ) -> Result<Self::Laid, IndexError>;

    /// Makes the record of a query, and adds its terms to those of the batch.
    fn make(batch: &mut MethodBatch<Self>, query: &PlacedQuery<Self::Laid>) -> Made<Self::Record>;

    /// Bytes of [`MethodBatch::more`] that a batch of so many terms has at most.
    fn more_bytes(_terms: usize) -> usize {
        0
    }

    /// Plans a batch whose queries are sorted, and writes [`MethodBatch::more`].
    fn plan(_batch: &mut MethodBatch<Self>) {}

    /// The launches that answer a batch, which is finished.
    fn steps(batch: &MethodBatch<Self>) -> Vec<MethodStep>;

    /// The docid from which a query is not answered, if it is not.
    fn rest(_said: &Self::Said) -> Option<u32> {
        None
    }
}
