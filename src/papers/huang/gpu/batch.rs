//! A batch of queries as the kernels read it, sorted by numbers of terms, which decide how much
//! shared memory a block takes, and by postings.

use super::HuangTuning;
use super::list::HuangLaid;
use crate::gpu::floor::steps::Argument::{Array as In, Number};
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery, in_a_word};
use crate::papers::methods::{DeviceMethod as _, MethodArray, MethodStep};
use bytemuck::{Pod, Zeroable};

/// Shared memory of a thread for each term.
const CURSOR_BYTES: u32 = 4 * 8;

/// Shared memory of a block: cursors, the best scores of threads, and a threshold.
pub fn huang_shared_bytes(threads: u32, terms: usize) -> u32 {
    CURSOR_BYTES * threads * terms as u32 + 4 * threads + 16
}

/// Queries of up to this many terms are launched together, with the same shared memory for each
/// block. Up to five terms, registers bound the threads of a multiprocessor. Few classes, since few
/// blocks run at the end of a launch.
const CLASSES: [usize; 3] = [5, 10, HuangTuning::MOST_TERMS];

/// As in `kernels/huang/list.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct HuangTermRecord {
    place: u64,
    blocks: u32,
    travels: u32,
    weight: f32,
    most: f32,
    per_bound: f32,
    spare: u32,
}

/// As in `kernels/huang/huang.cu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct HuangRecord {
    heaps: u64,
    by_length: u64,
    first_term: u32,
    terms: u32,
    k: u32,
    capacity: u32,
    hits: u32,
    from: u32,
    to: u32,
    slack: f32,
}

/// Cycles of a multiprocessor that a query took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Stages {
    /// To find where the lists begin for each thread.
    pub initialization: u64,
    pub scoring: u64,
    pub merging: u64,
}

/// Bounds are for a weight of 1: so much more makes up for the rounding of the product.
const ROUNDING: f32 = 1.0 + 16.0 * f32::EPSILON;

pub(super) fn make(
    batch: &mut MethodBatch<HuangTuning>,
    query: &PlacedQuery<HuangLaid>,
) -> MadeQuery<HuangRecord> {
    let first_term = batch.terms.len() as u32;
    let terms = query.terms.len();
    let k = query.k;
    batch.terms.extend(query.terms.iter().map(|list| {
        let per_bound = list.weight * ROUNDING;
        HuangTermRecord {
            place: list.place,
            blocks: list.laid.blocks,
            travels: list.travels.into(),
            weight: list.weight,
            most: per_bound * list.laid.most,
            per_bound,
            spare: 0,
        }
    }));
    let threads = batch.how.threads;
    let capacity = k.min(batch.documents.div_ceil(threads)).max(1);
    let record = HuangRecord {
        heaps: batch.used().words,
        by_length: in_a_word(&query.by_length(|laid| laid.postings)),
        first_term,
        terms: terms as u32,
        k,
        capacity,
        hits: batch.used().hits as u32,
        from: query.docids.start,
        to: query.docids.end,
        slack: 1.0 - (2 * terms + 8) as f32 * f32::EPSILON,
    };
    MadeQuery {
        record,
        words: 2 * u64::from(capacity) * u64::from(threads),
        hits: k,
        more: 0,
        shared_bytes: huang_shared_bytes(threads, terms),
        class: CLASSES.partition_point(|&most| most < terms) as u32,
        work: query.terms.iter().map(|list| u64::from(list.laid.postings)).sum(),
    }
}

pub(super) fn steps(batch: &MethodBatch<HuangTuning>) -> Vec<MethodStep> {
    let HuangTuning { threads, traversal, shared_threshold, timed } = batch.how;
    let kernel = if batch.all_terms { "huang_and" } else { traversal.kernel() };
    let output = batch.output();
    let more = [
        Number(batch.documents),
        Number(timed.into()),
        Number(shared_threshold.into()),
        In(MethodArray::Words, 0),
        In(MethodArray::Output, 0),
        In(MethodArray::Output, output.beside as u64),
        In(MethodArray::Output, output.hits as u64),
    ];
    batch.step_by_class(kernel, threads, &more)
}

impl MethodBatch<HuangTuning> {
    /// What the stages of the queries took, in the order in which they were added.
    pub fn stages(&self, output: &[u8]) -> Vec<Stages> {
        let each = output[self.output().beside..].chunks_exact(size_of::<Stages>());
        self.as_added(each.map(bytemuck::pod_read_unaligned))
    }
}
