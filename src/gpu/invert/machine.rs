//! What is asked of a device that inverts? Arrays that grow, copies both ways, and launches; the tests have one that is
//! emulated, so that the host's part is the same there.

use super::steps::{Array, Step};
use crate::dictionary::closed::ClosedError;
use crate::gpu::error::GpuError;
use std::any::Any;
use std::sync::Arc;

/// Makes a machine, once for each device that inverts.
pub type MakeMachine = Arc<dyn Fn() -> Result<Box<dyn Machine>, ClosedError> + Send + Sync>;

/// The texts of a batch on a device: an array of it, whatever that is there.
pub type DeviceText = Box<dyn Any + Send>;

/// Brings texts to a device, while another thread drives it.
pub trait Uploader: Send {
    /// Brings parts to a device, one behind the other, and returns when they are there; `old` are texts that nobody needs.
    ///
    /// # Errors
    /// There is not so much memory, or the device refuses.
    fn upload(&mut self, parts: &[&[u8]], old: Option<DeviceText>) -> Result<DeviceText, GpuError>;
}

/// A device with the arrays of one inverter. Copies and launches take effect in the order of the calls.
pub trait Machine: Send {
    /// Makes an array at least so long, in bytes; the first `kept` bytes stay, the others have no meaning.
    ///
    /// # Errors
    /// There is not so much memory; the array is as before.
    fn reserve(&mut self, array: Array, bytes: u64, kept: u64) -> Result<(), GpuError>;

    /// Frees all arrays but some, and those that are [set aside](Self::set_aside).
    fn free_but(&mut self, kept: &[Array]);

    /// Puts an array behind those that are set aside; it is not there any more.
    fn set_aside(&mut self, array: Array);

    /// Gives an array and the one that was set aside as number `n` each other's memory.
    fn exchange(&mut self, array: Array, n: usize);

    /// Frees what was set aside.
    fn free_aside(&mut self);

    /// Gives two arrays each other's memory.
    fn swap(&mut self, one: Array, other: Array);

    /// Writes parts to an array, one behind the other.
    ///
    /// # Errors
    /// The device refuses.
    fn write(&mut self, array: Array, at: u64, parts: &[&[u8]]) -> Result<(), GpuError>;

    /// Reads of an array, when all before is done.
    ///
    /// # Errors
    /// The device refuses, or what was before failed.
    fn read(&mut self, array: Array, at: u64, to: &mut [u8]) -> Result<(), GpuError>;

    /// Launches kernels one after the other.
    ///
    /// # Errors
    /// The device refuses.
    fn run(&mut self, steps: &[Step]) -> Result<(), GpuError>;

    /// Somebody who brings texts while this device works.
    ///
    /// # Errors
    /// There is no memory for it, or the device refuses.
    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError>;

    /// Puts texts that were brought in the place of an array; gives back what was there, which nothing uses that was launched before.
    ///
    /// # Errors
    /// What was launched before failed.
    fn adopt(&mut self, array: Array, text: DeviceText) -> Result<Option<DeviceText>, GpuError>;
}

impl Machine for Box<dyn Machine> {
    fn reserve(&mut self, array: Array, bytes: u64, kept: u64) -> Result<(), GpuError> {
        (**self).reserve(array, bytes, kept)
    }

    fn free_but(&mut self, kept: &[Array]) {
        (**self).free_but(kept);
    }

    fn set_aside(&mut self, array: Array) {
        (**self).set_aside(array);
    }

    fn exchange(&mut self, array: Array, n: usize) {
        (**self).exchange(array, n);
    }

    fn free_aside(&mut self) {
        (**self).free_aside();
    }

    fn swap(&mut self, one: Array, other: Array) {
        (**self).swap(one, other);
    }

    fn write(&mut self, array: Array, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        (**self).write(array, at, parts)
    }

    fn read(&mut self, array: Array, at: u64, to: &mut [u8]) -> Result<(), GpuError> {
        (**self).read(array, at, to)
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), GpuError> {
        (**self).run(steps)
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        (**self).uploader()
    }

    fn adopt(&mut self, array: Array, text: DeviceText) -> Result<Option<DeviceText>, GpuError> {
        (**self).adopt(array, text)
    }
}
