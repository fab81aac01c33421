//! What is asked of a device that inverts? Arrays that grow, copies both ways, and launches; the
//! tests have one that is emulated, so that the host's part is the same there.

use super::steps::{ARRAYS, InvertArray, Step};
use crate::dictionary::closed::ClosedError;
use crate::dictionary::device::text_buffers::Pin;
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

/// Arrays, and memory of some that is set aside: what is moved and freed without a copy.
#[derive(Debug)]
pub(crate) struct Arrays<M> {
    there: Vec<Option<M>>,
    aside: Vec<Option<M>>,
}

impl<M> Arrays<M> {
    pub(crate) fn new() -> Self {
        Self { there: (0..ARRAYS).map(|_| None).collect(), aside: Vec::new() }
    }

    pub(crate) fn of(&self, array: InvertArray) -> Option<&M> {
        self.there[array as usize].as_ref()
    }

    pub(crate) fn place(&mut self, array: InvertArray) -> &mut Option<M> {
        &mut self.there[array as usize]
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> impl Iterator<Item = &M> {
        self.there.iter().flatten()
    }

    /// All memory, that which is set aside too.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &M> {
        self.there.iter().chain(&self.aside).flatten()
    }
}

impl<M> Default for Arrays<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// What can be done with [`Arrays`] of any memory.
pub trait Places {
    fn free_but(&mut self, kept: &[InvertArray]);

    fn free(&mut self, arrays: &[InvertArray]);

    /// Puts an array behind those that are set aside; it is not there any more.
    fn set_aside(&mut self, array: InvertArray);

    /// Gives an array and the one that was set aside as number `n` each other's memory.
    fn exchange(&mut self, array: InvertArray, n: usize);

    fn free_aside(&mut self);

    /// Gives two arrays each other's memory.
    fn swap(&mut self, one: InvertArray, other: InvertArray);
}

impl<M> Places for Arrays<M> {
    fn free_but(&mut self, kept: &[InvertArray]) {
        for (array, memory) in self.there.iter_mut().enumerate() {
            if kept.iter().all(|&kept| array != kept as usize) {
                *memory = None;
            }
        }
    }

    fn free(&mut self, arrays: &[InvertArray]) {
        arrays.iter().for_each(|&array| self.there[array as usize] = None);
    }

    fn set_aside(&mut self, array: InvertArray) {
        self.aside.push(self.there[array as usize].take());
    }

    fn exchange(&mut self, array: InvertArray, n: usize) {
        std::mem::swap(&mut self.there[array as usize], &mut self.aside[n]);
    }

    fn free_aside(&mut self) {
        self.aside.clear();
    }

    fn swap(&mut self, one: InvertArray, other: InvertArray) {
        self.there.swap(one as usize, other as usize);
    }
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

    fn places(&mut self) -> &mut dyn Places;

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

impl Machine for Box<dyn Machine> {
    fn sibling(&self) -> Result<Box<dyn Machine>, GpuError> {
        (**self).sibling()
    }

    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError> {
        (**self).reserve(array, bytes, kept)
    }

    fn places(&mut self) -> &mut dyn Places {
        (**self).places()
    }

    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        (**self).write(array, at, parts)
    }

    fn read(&mut self, parts: &mut [Reading<'_>]) -> Result<(), GpuError> {
        (**self).read(parts)
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), GpuError> {
        (**self).run(steps)
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        (**self).uploader()
    }

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError> {
        (**self).downloader()
    }

    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError> {
        (**self).lend(array)
    }

    fn adopt(
        &mut self,
        array: InvertArray,
        memory: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        (**self).adopt(array, memory)
    }
}
