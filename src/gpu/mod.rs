//! What runs on NVIDIA GPUs, and how?
//!
//! Nothing here is needed to build or to run millrace: the driver and NVRTC are looked for at run
//! time.
//!
//! | module | the question that it answers |
//! | --- | --- |
//! | [`discover`] | which devices can be used, and why not the others |
//! | [`inventory`] | what is said of them |
//! | [`version`] | which version of CUDA, which architecture |
//! | [`nvrtc`] | how a kernel's source becomes code |
//! | [`cache`] | where the code is kept |
//! | [`modules`] | how an owner gets its kernels |
//! | [`device`] | how an owner works on a device |
//! | [`memory`] | how much of its memory may be used |
//! | [`slab`] | which memory is taken, and given back when everything is done |
//! | `arrays` | where arrays lie which have names |
//! | [`pinned`] | which host memory copies go through |
//! | [`steps`] | how kernels are launched whose arguments have names |
//! | [`events`] | how anybody knows that work is done |
//! | [`wake`] | who tells a worker |
//! | [`machine`] | what is asked of a device with arrays that have names |
//! | [`error`] | what can go wrong |
//! | [`btree`] | how a device indexes a run in the paper's B-trees |
//! | [`ding09`] | how it answers queries as `ding09` has it |
//! | [`huang`] | how it answers queries as `huang` has it |
//! | [`indexer`] | how a GPU indexer takes its tokens and gives its runs |
//! | [`invert`] | how a device turns texts into postings lists |
//! | [`methods`] | how methods of papers share a device, and how another is added |
//! | [`query`] | how a device answers ranked queries |
//! | [`wang`] | how it answers queries as `wang` has it |
//!
//! Every source `kernels/x.cu` has a wrapper `x.rs` here, which checks all lengths before it
//! launches a kernel and holds the kernel's twin in plain Rust. `sources` lists them all.

pub(crate) mod btree;
pub(crate) mod ding09;
pub(crate) mod floor;
pub(crate) mod huang;
pub(crate) mod indexer;
pub(crate) mod invert;
pub(crate) mod methods;
pub(crate) mod query;
pub(crate) mod wang;

/// Every source under `kernels/`, as it is compiled when nothing is tuned by hand.
#[cfg(test)]
pub(crate) fn sources() -> Vec<floor::nvrtc::Source> {
    vec![
        btree::TreeTuning::default().source(),
        methods::source::<ding09::Merging>(),
        methods::source::<huang::HuangTuning>(),
        invert::source(),
        query::Tuning::default().source(),
        methods::source::<wang::WangTuning>(),
    ]
}
