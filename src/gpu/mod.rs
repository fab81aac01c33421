//! Indexing and queries on NVIDIA GPUs. The driver and NVRTC are looked for at run time; neither is
//! needed to build or to run millrace.
//!
//! | module | |
//! | --- | --- |
//! | [`floor`] | devices, memory, kernels, events and errors, for all others |
//! | [`btree`] | a run's dictionary in the B-trees of Wei and JaJa |
//! | [`invert`] | texts to postings lists |
//! | [`indexer`] | the indexer of the dataflow: tokens in, runs out |
//! | [`query`] | ranked queries |
//! | [`methods`] | what the methods of papers share, and how another is added |
//! | [`ding09`], [`huang`], [`wang`] | queries as these papers have them |
//!
//! Every source `kernels/x.cu` has a wrapper `x.rs` here, which checks all lengths before it
//! launches a kernel and holds the kernel's twin in plain Rust. `sources` lists them all.

#![allow(unsafe_code)]

pub(crate) mod btree;
pub(crate) mod ding09;
pub(crate) mod floor;
pub(crate) mod huang;
pub(crate) mod indexer;
pub(crate) mod invert;
pub(crate) mod methods;
pub(crate) mod query;
pub(crate) mod wang;

/// Every source under `kernels/`, with its default tuning.
#[cfg(test)]
pub(crate) fn sources() -> Vec<floor::nvrtc::KernelSource> {
    vec![
        btree::TreeTuning::default().source(),
        methods::source::<ding09::DingTuning>(),
        methods::source::<huang::HuangTuning>(),
        invert::source(),
        query::QueryTuning::default().source(),
        methods::source::<wang::WangTuning>(),
    ]
}
