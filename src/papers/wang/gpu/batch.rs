//! A batch of queries as the kernel reads it, sorted by the shared memory of a block, which depends
//! on the terms and k, and by the length of the shortest list.

use super::list::WangLaid;
use super::{KERNEL, ROUNDS, WangTuning};
use crate::gpu::floor::steps::Argument::{Array as In, Number};
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery, in_a_word};
use crate::papers::methods::travelling::TravellingTerm;
use crate::papers::methods::{MethodArray, MethodStep};
use crate::score::wang::slack;
use bytemuck::{Pod, Zeroable};

/// Of a block, with room for `capacity` keys.
pub fn wang_shared_bytes(threads: u32, terms: usize, capacity: u32) -> u32 {
    8 * capacity + 8 * threads + 4 * threads * terms as u32 + 16
}

/// Queries whose blocks take at most this many bytes share a launch, whose blocks take the same.
const CLASSES: [u32; 4] = [4 << 10, 8 << 10, 16 << 10, 48 << 10];

/// As in `kernels/wang/list.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct WangTermRecord {
    place: u64,
    postings: u32,
    buckets: u32,
    shift: u32,
    block_bits: u32,
    travels: u32,
    weight: f32,
}

/// As in `kernels/wang/wang.cu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct WangRecord {
    by_length: u64,
    slack: f64,
    first_term: u32,
    terms: u32,
    k: u32,
    capacity: u32,
    hits: u32,
    cut: u32,
}

pub(super) fn make(
    batch: &mut MethodBatch<WangTuning>,
    query: &PlacedQuery<WangLaid>,
) -> MadeQuery<WangRecord> {
    let threads = batch.how.round;
    assert!(ROUNDS.contains(&threads), "a round of {threads}");
    let first_term = batch.terms.len() as u32;
    let terms = query.terms.len();
    let k = query.k;
    batch.terms.extend(query.terms.iter().map(
        |&TravellingTerm { place, laid, travels, weight }| {
            let WangLaid { postings, buckets, shift, block_bits, .. } = laid;
            let travels = travels.into();
            WangTermRecord { place, postings, buckets, shift, block_bits, travels, weight }
        },
    ));
    let order = query.by_length(|laid| laid.df);
    let shortest = query.terms[order[0]].laid.postings;
    let ends = query.terms.iter().filter_map(|list| list.laid.end);
    let capacity = k.min(shortest).max(1).next_power_of_two();
    let record = WangRecord {
        by_length: in_a_word(&order),
        slack: slack(terms),
        first_term,
        terms: terms as u32,
        k,
        capacity,
        hits: batch.used().hits as u32,
        cut: ends.min().unwrap_or(batch.documents),
    };
    let shared_bytes = wang_shared_bytes(threads, terms, capacity);
    MadeQuery {
        record,
        words: 0,
        hits: k.min(capacity),
        more: 0,
        shared_bytes,
        class: CLASSES.partition_point(|&most| most < shared_bytes) as u32,
        work: shortest.into(),
    }
}

pub(super) fn steps(batch: &MethodBatch<WangTuning>) -> Vec<MethodStep> {
    let more = [
        In(MethodArray::Statics, 0),
        In(MethodArray::Globals, 0),
        Number(batch.documents),
        In(MethodArray::Output, 0),
        In(MethodArray::Output, batch.output().hits as u64),
    ];
    batch.step_by_class(KERNEL, batch.how.round, &more)
}
