//! Tests of what the library does not show: kernels against their twins, emulated and on devices.
//! They are compiled with the library (`src/lib.rs`) and run without the binary.

#[cfg(feature = "papers")]
mod btree;
#[cfg(feature = "papers")]
mod ding09;
#[path = "../../support/emulation/mod.rs"]
mod emulation;
mod gpu;
mod gpu_impacts;
#[cfg(feature = "papers")]
mod gpu_indexer;
mod gpu_lists;
mod gpu_queries;
#[cfg(feature = "papers")]
mod huang;
#[cfg(feature = "papers")]
mod hybrid;
#[cfg(feature = "papers")]
mod indexer;
mod invert;
#[cfg(feature = "papers")]
mod methods;
#[cfg(feature = "papers")]
mod pretended;
mod util;
#[cfg(feature = "papers")]
mod wang;
