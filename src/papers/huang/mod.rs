//! `huang`: Haibing Huang, Mingming Ren, Yue Zhao, Rebecca J. Stones, Rui Zhang, Gang Wang,
//! Xiaoguang Liu: GPU-Accelerated Block-Max Query Processing. ICA3PP 2017.
//!
//! The paper answers queries on a GPU, a query a block of threads, by AND, OR, WAND and BMW, and
//! divides them between CPU and GPU by their number of blocks (LBD).
//!
//! | section | what | file |
//! | --- | --- | --- |
//! | 2.2 | WAND and block-max WAND, document at a time | [`wand`], on the CPU |
//! | 2.1 | NewPFD, the greatest impact of each block | `codec/newpfd.rs`, `score/bounds.rs` |
//! | 3, 4 | the engine on a GPU, the static cache | `gpu`, `papers/methods`, `kernels/huang` |
//! | 3.2 | LBD and SD | policies of the scheduler of [`ding09`](super::ding09) |
//! | tables 1 to 3, figures 3 to 7 | | `jobs/experiments/src/gpu_queries/huang.rs` |
//!
//! On the CPU the paper's order (BMW before AND before OR before WAND) is not found: where terms
//! are independent of each other, finding what to skip costs more than it saves.

#[cfg(feature = "gpu")]
pub(crate) mod gpu;
pub(super) mod wand;
