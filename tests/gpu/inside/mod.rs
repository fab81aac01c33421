//! Tests of what is inside the library: kernels against their twins, emulated and on devices, and
//! what files from elsewhere hold. They are compiled with the library and run without the binary.

mod btree;
mod ding09;
#[path = "../../support/emulation/mod.rs"]
mod emulation;
mod gpu;
mod gpu_indexer;
mod gpu_lists;
mod gpu_queries;
mod huang;
mod hybrid;
mod indexer;
mod invert;
mod methods;
mod pretended;
mod util;
mod wang;
