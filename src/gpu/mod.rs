//! Indexing and queries on NVIDIA GPUs. The driver and NVRTC are looked for at run time; neither is
//! needed to build or to run millrace.
//!
//! | module | |
//! | --- | --- |
//! | [`floor`] | devices, memory, kernels, events and errors, for all others |
//! | [`invert`] | texts to postings lists |
//! | [`query`] | ranked queries |
//!
//! Every source `kernels/x.cu` has a wrapper `x.rs` here, which checks all lengths before it
//! launches a kernel and holds the kernel's twin in plain Rust; `sources` lists them. Those in a
//! folder of a paper below `kernels` are that paper's.

#![allow(unsafe_code)]

pub(crate) mod floor;
pub(crate) mod invert;
pub(crate) mod query;

/// Every source that lies in `kernels/`, with its default tuning; those of papers are below it.
#[cfg(test)]
pub(crate) fn sources() -> Vec<floor::nvrtc::KernelSource> {
    vec![invert::source(), query::QueryTuning::default().source()]
}
