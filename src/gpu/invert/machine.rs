//! What is asked of a device that inverts? Arrays that grow, copies both ways, and launches; the
//! tests have one that is emulated, so that the host's part is the same there.

use super::steps::{InvertArray, Step};
use crate::dictionary::closed::ClosedError;
use crate::dictionary::device::text_buffers::Pin;
use crate::gpu::floor::arrays::Places;
use crate::gpu::floor::error::GpuError;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// Makes the machine of a build.
pub(crate) type MakeMachine = Arc<dyn Fn() -> Result<Box<dyn Machine>, ClosedError> + Send + Sync>;

/// Memory of an array that somebody else uses meanwhile, whatever that is on a device: of texts
/// that are brought, or of lists that are taken.
pub(crate) type DeviceMemory = Box<dyn Any + Send + Sync>;

/// Brings texts to a device, while another thread drives it.
pub trait Uploader: Send {
    /// Pins memory until what comes back is dropped, so that a device takes what lies there without
    /// a copy on its way. Nothing comes back if the system refuses: then the driver copies it
    /// first.
    ///
    /// # Safety
    /// The memory is not pinned, and stays until what comes back is dropped.
    unsafe fn pin(&mut self, memory: *const [u8]) -> Option<Pin>;

    /// Brings parts to a device, one behind the other, and returns when they are there; `old` are
    /// texts that nobody needs.
    fn upload(
        &mut self,
        parts: &[&[u8]],
        old: Option<DeviceMemory>,
    ) -> Result<DeviceMemory, GpuError>;
}

/// Bytes of a part that is taken to the host, at most.
pub(crate) const MOST_TAKEN: u64 = 4 << 20;

/// Bytes of a device that are taken to the host.
pub trait Parcel {
    /// Memory that was [lent](Machine::lend).
    fn memory(&self) -> &DeviceMemory;

    /// Which of its bytes, [`MOST_TAKEN`] at most.
    fn bytes(&self) -> Range<u64>;

    fn take(self: Box<Self>, bytes: &[u8]);
}

/// Gives the next parcel, if one is still to come; whoever asks may wait for it.
pub(crate) type NextParcel<'a> = &'a (dyn Fn() -> Option<Box<dyn Parcel + 'a>> + Sync);

/// Takes what lies on a device to the host, while another thread drives it.
pub trait Downloader: Send {
    /// Takes parcels until no more will come. Several threads may ask for the next one and take
    /// what they have at once.
    fn download(&mut self, next: NextParcel<'_>) -> Result<(), GpuError>;
}

/// A part of an array that goes to the host.
pub struct Reading<'a> {
    pub array: InvertArray,
    pub at: u64,
    /// Where it goes; as many bytes are read.
    pub to: &'a mut [u8],
    /// That is [pinned](Uploader::pin), so that nobody has to copy them.
    pub is_pinned: bool,
}

/// A device with the arrays of one inverter. Copies and launches take effect in the order of the
/// calls.
pub trait Machine: Send {
    /// Another one of the same device, with arrays of its own, which works beside this one: memory
    /// that one [lends](Self::lend) the other may [adopt](Self::adopt).
    fn sibling(&self) -> Result<Box<dyn Machine>, GpuError>;

    /// Makes an array at least so long, in bytes; the first `kept` bytes stay, the others have no
    /// meaning.
    ///
    /// # Errors
    /// There is not so much memory; the array is as before.
    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError>;

    fn places(&mut self) -> &mut dyn Places<InvertArray>;

    /// Writes parts to an array, one behind the other.
    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError>;

    /// Reads parts of arrays, when all before is done: the host waits once for all that fit into a
    /// buffer.
    fn read(&mut self, parts: &mut [Reading<'_>]) -> Result<(), GpuError>;

    /// Launches kernels one after the other.
    fn run(&mut self, steps: &[Step]) -> Result<(), GpuError>;

    /// Somebody who brings texts while this device works.
    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError>;

    /// Somebody who takes arrays to the host while this device works.
    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError>;

    /// Gives away the memory of an array, if it is there, when all before is done; it is not there
    /// any more.
    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError>;

    /// Puts texts that were brought, or memory that was lent, in the place of an array; gives back
    /// what was there, which nothing uses that was launched before.
    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError>;
}
