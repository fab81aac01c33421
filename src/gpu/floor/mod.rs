//! Devices, memory, kernels, events and errors, on which all other GPU modules stand.
//!
//! A module names its arrays in an enum, and makes [`Step`](steps::Step)s: which kernel runs with
//! which of them. [`Kernels`](steps::Kernels) are loaded by name.
//! [`CudaArrays`](arrays::CudaArrays) are a device with arrays, each a [`Slab`](slab::Slab) that is
//! freed when all work is done, and a stream that runs steps: nothing else launches a kernel.
//! Copies go through [`Pinned`](pinned::Pinned) memory, of which a
//! [`CudaQueue`](machine::CudaQueue) has some buffers; a [`Ticket`](events::Ticket) knows when the
//! work before it is done, or what failed. Code that never waits is written against
//! [`Machine`](machine::Machine), and tested on an emulated one.

pub(crate) mod arrays;
pub(crate) mod cache;
pub(crate) mod device;
pub(crate) mod discover;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod inventory;
pub(crate) mod lost;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nvrtc;
pub(crate) mod pinned;
pub(crate) mod slab;
pub(crate) mod steps;
pub(crate) mod version;
pub(crate) mod wake;
