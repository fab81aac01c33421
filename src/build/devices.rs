//! The devices that a build uses: [`gpus`], or [`none`] in a library without the feature `gpu`.

#[cfg(feature = "gpu")]
mod gpus;
#[cfg(feature = "gpu")]
mod lost;
#[cfg(not(feature = "gpu"))]
mod none;

#[cfg(feature = "gpu")]
pub use gpus::usable_gpus;
#[cfg(feature = "gpu")]
pub(super) use gpus::{ChosenDevices, begin_to_find};
#[cfg(feature = "gpu")]
pub(super) use lost::on_cpu;
#[cfg(not(feature = "gpu"))]
pub(super) use none::{NoDevices as ChosenDevices, begin_to_find, on_cpu};
