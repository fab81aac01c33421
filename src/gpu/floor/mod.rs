//! The floor of all GPU rooms: devices, memory, kernels, events, errors.

pub(crate) mod cache;
pub(crate) mod device;
pub(crate) mod discover;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod inventory;
pub(crate) mod lost;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nvrtc;
pub(crate) mod pinned;
pub(crate) mod slab;
pub(crate) mod steps;
pub(crate) mod version;
pub(crate) mod wake;
