//! Texts to postings lists on a device. The host finds documents; the device finds forms, makes
//! terms of plain ones, counts, sorts and writes lists (`kernels/invert.cu`). What other forms mean
//! the host says once.
//!
//! [`service`] has the thread that drives the device, [`runs`] divides its batches into runs, and
//! [`inverter`] makes lists of a batch, by the [`steps`] of a [`machine`]: a CUDA device ([`cuda`])
//! or an emulated one, whose kernels are `twin`.

pub(crate) mod classes;
pub(crate) mod cuda;
mod download;
pub(crate) mod inverter;
pub(crate) mod machine;
pub(crate) mod runs;
pub(crate) mod service;
pub(crate) mod steps;
pub(crate) mod text;
#[cfg(test)]
#[path = "invert/tests/twin.rs"]
pub(crate) mod twin;
mod upload;

use crate::gpu::floor::nvrtc::KernelSource;

/// Nothing in an index depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvertTuning {
    /// 1 to 64. With few bits different forms have the same fingerprint: for tests.
    pub fingerprint_bits: u32,
    /// Slots that are tried for a fingerprint.
    pub probes: u32,
    /// Postings of lists that are gathered together, unless one has more; below 2^32 - 1.
    pub gathered_at_once: u32,
    /// The same of lists that are encoded together.
    pub encoded_at_once: u32,
}

impl Default for InvertTuning {
    fn default() -> Self {
        Self {
            fingerprint_bits: 64,
            probes: 256,
            gathered_at_once: u32::MAX - 1,
            encoded_at_once: 128 << 20,
        }
    }
}

pub(crate) fn source() -> KernelSource {
    let text = concat!(
        include_str!("../../kernels/common.cuh"),
        include_str!("../../kernels/invert_scan.cuh"),
        include_str!("../../kernels/invert_forms.cuh"),
        include_str!("../../kernels/invert_terms.cuh"),
        include_str!("../../kernels/invert_hash.cuh"),
        include_str!("../../kernels/invert_lists.cuh"),
        include_str!("../../kernels/invert_encode.cuh"),
        include_str!("../../kernels/invert_sort.cuh"),
        include_str!("../../kernels/invert.cu"),
    );
    let sizes = vec![
        ("CLASS_PAGES", classes::PAGES as u32),
        ("LONGEST_FORM", text::LONGEST_FORM),
        ("MOST_PIECES", text::MOST_PIECES as u32),
        ("SCAN_SHARED_BYTES", steps::SCAN_SHARED_BYTES),
        ("SORT_COUNT_SHARED_BYTES", steps::postings::SORT_COUNT_SHARED_BYTES),
        ("SORT_SCATTER_SHARED_BYTES", steps::postings::SORT_SCATTER_SHARED_BYTES),
        ("MEASURE_SHARED_BYTES", steps::postings::MEASURE_SHARED_BYTES),
        ("MEASURE_PARTS_SHARED_BYTES", steps::encode::MEASURE_PARTS_SHARED_BYTES),
        ("BOUND_LISTS_SHARED_BYTES", steps::encode::BOUND_LISTS_SHARED_BYTES),
        ("WRITE_PARTS_SHARED_BYTES", steps::encode::WRITE_PARTS_SHARED_BYTES),
    ];
    KernelSource { name: "invert", text, sizes }
}
