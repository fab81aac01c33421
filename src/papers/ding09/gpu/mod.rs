//! Queries on a device as the paper has them, a [method](crate::papers::methods): lists of `rice`
//! and `pfor` as on disk, AND by Parallel Merge Find from the shortest list on, and OR with an
//! accumulator for each document (`kernels/ding09`). The hits are those of every other engine.

pub(crate) mod batch;
pub(crate) mod list;
pub(crate) mod steps;
#[cfg(test)]
#[path = "tests/twin.rs"]
pub(crate) mod twin;

use crate::index::error::IndexError;
use crate::index::list::Form;
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery};
use crate::papers::methods::lists::DevicePart;
use crate::papers::methods::{DeviceMethod, MethodStep};
use crate::query::snapshot::Snapshot;
use batch::{DingPlan, DingRecord, DingTermRecord, Rank};
use list::{DingLaid, DingLayer};

/// The paper's choice.
pub(crate) const MERGE_LEVELS: u32 = 3;

pub(crate) const MOST_SPLITTERS: u32 = 1 << 16;

pub const MOST_MERGE_LEVELS: u32 = 4;

/// Parameters of Parallel Merge Find (section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DingTuning {
    /// Levels of splitters, 0 to [`MOST_MERGE_LEVELS`].
    pub levels: u32,
    /// Splitters for each of the level before, a power of two from 2 to [`MOST_SPLITTERS`]; if
    /// none, about m^(1 / (levels + 1)) of m elements, so that all levels grow by the same factor.
    pub splitters: Option<u32>,
}

impl Default for DingTuning {
    fn default() -> Self {
        Self::USUAL
    }
}

impl DingTuning {
    pub(crate) const USUAL: Self = Self { levels: MERGE_LEVELS, splitters: None };

    pub(crate) fn is_number_of_splitters(splitters: u32) -> bool {
        splitters.is_power_of_two() && (2..=MOST_SPLITTERS).contains(&splitters)
    }

    /// The logarithm of the splitters, or 0.
    pub fn bits(self) -> u32 {
        self.splitters.map_or(0, u32::trailing_zeros)
    }
}

impl DeviceMethod for DingTuning {
    const NAME: &'static str = "ding09";
    const TEXT: &'static str = concat!(
        include_str!("../../../../kernels/common.cuh"),
        include_str!("../../../../kernels/score.cuh"),
        include_str!("../../../../kernels/bits.cuh"),
        include_str!("../../../../kernels/ding09/list.cuh"),
        include_str!("../../../../kernels/ding09/open.cuh"),
        include_str!("../../../../kernels/ding09/find.cuh"),
        include_str!("../../../../kernels/ding09/top.cuh"),
        include_str!("../../../../kernels/ding09/ding09.cu"),
    );
    const SIZES: &'static [(&'static str, u32)] = &[
        ("DECODE_SHARED_BYTES", steps::DECODE_SHARED_BYTES),
        ("SUM_SHARED_BYTES", steps::SUM_SHARED_BYTES),
    ];
    const READS: [&'static str; 2] =
        ["rice and pfor, all with blocks of one size", "the codec pfor"];
    const MOST_TERMS: usize = 64;
    const GROWS: bool = true;
    /// Few, since nothing travels before memory is full.
    const MOST_TRAVELLING: u64 = 16 << 20;
    const SAID_BESIDE: [usize; 2] = [0, size_of::<Rank>()];

    type Laid = DingLaid;
    type Layer = DingLayer;
    type Term = DingTermRecord;
    type Record = DingRecord;
    type Said = [u32; 1];
    type Plan = DingPlan;

    fn reads(form: Form, first: Form) -> bool {
        form.has_segments() && form.block_len() == first.block_len()
    }

    fn lay(
        snapshot: &Snapshot,
        layer: &mut DingLayer,
        part: &DevicePart,
        out: &mut Vec<u8>,
    ) -> Result<DingLaid, IndexError> {
        layer.begin();
        snapshot.generation().for_each_list(&part.entries, |run, list| {
            layer.add(list, run.first_docid(), run.documents())
        })?;
        Ok(layer.finish(out))
    }

    fn make(batch: &mut MethodBatch<Self>, query: &PlacedQuery<DingLaid>) -> MadeQuery<DingRecord> {
        batch::make(batch, query)
    }

    fn more_bytes(terms: usize) -> usize {
        8 * batch::MOST_ITEMS + 20 * terms
    }

    fn plan(batch: &mut MethodBatch<Self>) {
        batch::plan(batch);
    }

    fn steps(batch: &MethodBatch<Self>) -> Vec<MethodStep> {
        steps::all(batch)
    }
}
