//! `wang`: Dongdong Wang, Wenqing Yu, Rebecca J. Stones, Junjie Ren, Gang Wang, Xiaoguang Liu,
//! Mingming Ren: Efficient GPU-based Query Processing with Pruned List Caching in Search Engines.
//! ICPADS 2017.
//!
//! The paper answers queries of AND on a GPU whose documents are in the order of a global score, so
//! that a search may end early; keeps the beginnings of lists there that most queries visit; and
//! lets the CPU end what such beginnings cannot.
//!
//! | section | what | file |
//! | --- | --- | --- |
//! | 2.2, equations 1 to 4 | the score and the global score | `score/wang.rs` |
//! | 2.2 | documents in global order | `index/merge/ordered.rs` |
//! | 3.1, 3.2, algorithm 1 | rounds of the shortest list, and their end, on the CPU | [`rounds`] |
//! | 3.1.1 | hash segmentation | [`segments`] |
//! | 3.1 to 3.2 | the engine on a GPU | `gpu`, `papers/methods`, `kernels/wang` |
//! | 3.2.1 | beginnings of lists, and what follows | [`visits`], `query/searcher/runs.rs` |
//! | 2.1.5, 3.3 | which lists are cached: Qtf, QtfDf, VFB | [`demand`], `index/cache_plan.rs` |
//! | 4 | logs of queries: plans of scheduled rebuilds | `logs`, `counted_log` |
//! | figures 2 to 10 | | `jobs/experiments/src/gpu_queries/wang` |
//!
//! What differs: buckets of hash segmentation lead to blocks, since lists are packed; the printed
//! stop test is unsafe for beginnings of lists, and ours is not ([`rounds`]).

#[cfg(feature = "rebuild")]
mod counted_log;
pub(crate) mod demand;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
#[cfg(feature = "rebuild")]
pub(super) mod logs;
pub(crate) mod rounds;
mod segments;
#[cfg(test)]
mod tests;
pub(crate) mod visits;
