//! `ding09`: Shuai Ding, Jinru He, Hao Yan, Torsten Suel: Using Graphics Processors for High
//! Performance IR Query Processing. WWW 2009, pages 421 to 430.
//!
//! The paper answers queries on a GPU, decodes Rice and PForDelta there, intersects by Parallel
//! Merge Find, and in the end divides a stream of queries between CPU and GPU.
//!
//! | section | what | file |
//! | --- | --- | --- |
//! | 9, features | what is known of a query before it is answered | [`features`] |
//! | 9, rules of costs | a tree of linear models of costs | [`model_tree`], [`models`] |
//! | | measuring costs, alone and beside others | [`measure`] |
//! | 9, three groups, deadlines | which side takes which query | [`policy`], [`queues`] |
//! | 9 | the scheduler over engines of both sides | [`hybrid`], [`machine`] |
//! | figure 7 | streams that are simulated, and the best policy | [`simulate`] |
//! | 6 to 8 | the engine on a GPU | [`gpu`], [`methods`](super::methods), `kernels/ding09` |
//! | 6 | Rice and PForDelta | `codec/rice.rs`, `codec/pfor.rs` |
//! | tables 1 to 3, figures 4 and 6 | | `jobs/experiments/src/gpu_queries/ding09.rs` |
//!
//! What differs: a model tree in place of rules; an idle side steals only what is worth it; a
//! device is given little work ahead, so that one that fails has few queries; some threads only
//! feed devices. The policies of `huang` (SD, LBD) are two more of the same scheduler.

pub(crate) mod features;
pub(crate) mod gpu;
pub(crate) mod hybrid;
pub(crate) mod machine;
pub(crate) mod measure;
pub(crate) mod model_tree;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod simulate;
