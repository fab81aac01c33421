//! The device that an inverter needs: arrays that grow, copies both ways, and launches. The tests
//! have an emulated one, so that the host's part is the same there.

use super::steps::{InvertArray, InvertStep};
use crate::buffers::Pin;
use crate::dictionary::closed::ClosedError;
use crate::gpu::floor::arrays::ArrayPlaces;
use crate::gpu::floor::error::GpuError;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// Called once in a build.
pub(crate) type MakeMachine =
    Arc<dyn Fn() -> Result<Box<dyn InvertMachine>, ClosedError> + Send + Sync>;

/// Memory of an array that somebody else uses meanwhile: of texts that come, or of lists that go.
pub(crate) type DeviceMemory = Box<dyn Any + Send + Sync>;

/// Copies texts to a device, while another thread drives it.
pub trait Uploader: Send {
    /// Pins memory until the result is dropped, so that the device reads it directly. None if the
    /// system refuses: then the driver copies it first.
    ///
    /// # Safety
    /// The memory is not pinned, and stays until the result is dropped.
    unsafe fn pin(&mut self, memory: *const [u8]) -> Option<Pin>;

    /// Copies parts to a device, end to end, and waits; `old` is memory that may be used.
    fn upload(
        &mut self,
        parts: &[&[u8]],
        old: Option<DeviceMemory>,
    ) -> Result<DeviceMemory, GpuError>;
}

pub(crate) const MOST_TAKEN: u64 = 4 << 20;

pub trait TextParcel {
    /// [Lent](InvertMachine::lend) memory.
    fn memory(&self) -> &DeviceMemory;

    /// At most [`MOST_TAKEN`].
    fn bytes(&self) -> Range<u64>;

    fn take(self: Box<Self>, bytes: &[u8]);
}

/// Waits for the next parcel; None if there will be no more.
pub(crate) type NextParcel<'a> = &'a (dyn Fn() -> Option<Box<dyn TextParcel + 'a>> + Sync);

/// Takes lists to the host, while another thread drives the device.
pub trait Downloader: Send {
    /// Takes parcels until no more will come. Several threads may call `next`, and take at once.
    fn download(&mut self, next: NextParcel<'_>) -> Result<(), GpuError>;
}

pub struct ArrayReading<'a> {
    pub array: InvertArray,
    pub at: u64,
    /// As many bytes are read.
    pub to: &'a mut [u8],
}

/// A device with the arrays of one inverter. Copies and launches take effect in the order of calls.
pub trait InvertMachine: Send {
    /// A machine of the same device, with arrays of its own, which works beside this one: memory
    /// that one [lends](Self::lend) the other may [adopt](Self::adopt).
    fn sibling(&self) -> Result<Box<dyn InvertMachine>, GpuError>;

    /// Makes an array at least so long, in bytes; the first `kept` stay, the others are undefined.
    ///
    /// # Errors
    /// There is too little memory; the array is as before.
    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError>;

    fn places(&mut self) -> &mut dyn ArrayPlaces<InvertArray>;

    /// The parts go end to end.
    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError>;

    /// Reads when all before is done: the host waits once for all that fit into a buffer.
    fn read(&mut self, parts: &mut [ArrayReading<'_>]) -> Result<(), GpuError>;

    fn run(&mut self, steps: &[InvertStep]) -> Result<(), GpuError>;

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError>;

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError>;

    /// Takes the memory away from an array, if it has any, when all before is done.
    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError>;

    /// Puts uploaded texts, or lent memory, in the place of an array; returns what was there, which
    /// no earlier launch uses any more.
    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError>;
}
