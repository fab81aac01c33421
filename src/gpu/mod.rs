//! Indexing and queries on NVIDIA GPUs. The driver and NVRTC are looked for at run time; neither is
//! needed to build or to run millrace.
//!
//! | module | |
//! | --- | --- |
//! | [`floor`] | devices, memory, kernels, events and errors, for all others |
//! | [`invert`] | texts to postings lists |
//! | [`query`] | ranked queries |
//! | [`methods`] | what the methods of papers share, and how another is added |
//! | [`ding09`], [`huang`], [`wang`] | queries as these papers have them |
//!
//! Every source `kernels/x.cu` has a wrapper `x.rs` here, which checks all lengths before it
//! launches a kernel and holds the kernel's twin in plain Rust; `sources` lists them. Those of
//! `kernels/wei11` are in that paper's folder.

#![allow(unsafe_code)]

pub(crate) mod ding09;
pub(crate) mod floor;
pub(crate) mod huang;
pub(crate) mod invert;
pub(crate) mod methods;
pub(crate) mod query;
pub(crate) mod wang;

/// Every source that lies in `kernels/`, with its default tuning; those of papers are below it.
#[cfg(test)]
pub(crate) fn sources() -> Vec<floor::nvrtc::KernelSource> {
    vec![
        methods::source::<ding09::DingTuning>(),
        methods::source::<huang::HuangTuning>(),
        invert::source(),
        query::QueryTuning::default().source(),
        methods::source::<wang::WangTuning>(),
    ]
}
