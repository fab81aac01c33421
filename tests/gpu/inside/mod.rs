//! Tests of what the library does not show: kernels against their twins, emulated and on devices.
//! They are compiled with the library (`src/lib.rs`) and run without the binary.

mod btree;
mod ding09;
#[path = "../../support/emulation/mod.rs"]
mod emulation;
mod gpu;
mod gpu_impacts;
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
