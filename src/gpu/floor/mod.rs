//! The floor of all GPU rooms: devices, memory, kernels, events, errors.

pub mod cache;
pub mod device;
pub mod discover;
pub mod error;
pub mod events;
pub mod inventory;
pub(crate) mod lost;
pub mod memory;
pub mod modules;
pub mod nvrtc;
pub mod pinned;
pub mod slab;
pub mod steps;
pub mod version;
pub mod wake;
