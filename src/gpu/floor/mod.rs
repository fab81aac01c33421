//! The floor of all GPU rooms: devices, memory, kernels, events, errors.
//!
//! A room names its arrays in an enum, and makes [`Step`](steps::Step)s: which kernel runs with
//! which of them. [`Kernels`](steps::Kernels) are loaded by name.
//! [`CudaArrays`](arrays::CudaArrays) are a device with arrays, each a [`Slab`](slab::Slab) that is
//! taken once and given back when all is done, and a stream that runs steps. Copies go through
//! [`Pinned`](pinned::Pinned) memory; a [`Ticket`](events::Ticket) knows when what stands before it
//! is done, or says what failed. Who never waits is written against
//! [`Machine`](machine::Machine), a device that is given work, and is tested on one that is
//! emulated.

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
