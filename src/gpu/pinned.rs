//! Which host memory do copies go through?
//!
//! Only a copy from or to pinned memory runs beside everything else. Pinning is slow, so buffers are
//! made once and taken in turns. Those for uploads are write-combined: fast to write and to copy, very
//! slow to read. Those for downloads are ordinary memory. A buffer knows its last copy, and gives its
//! bytes to nobody before that is done.

use super::device::Device;
use super::error::{Cuda, GpuError};
use bytemuck::Pod;
use cudarc::driver::{
    CudaEvent, CudaStream, DriverError, HostSlice, PinnedHostSlice, SyncOnDrop, sys,
};
use std::ops::Range;

/// Which way a buffer's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device.
    Upload,
    /// From the device.
    Download,
}

/// Pinned memory.
#[derive(Debug)]
pub struct Pinned {
    /// Its own event is never recorded, so that asking for its bytes does not wait.
    slice: PinnedHostSlice<u8>,
    /// Its last copy.
    copied: CudaEvent,
    device: String,
}

impl Pinned {
    pub(super) fn new(device: &Device, way: Way, bytes: usize) -> Result<Self, GpuError> {
        let (flags, what) = match way {
            Way::Upload => (sys::CU_MEMHOSTALLOC_WRITECOMBINED, "uploads"),
            Way::Download => (0, "downloads"),
        };
        let failed = |source| GpuError::Memory {
            device: device.info().to_string(),
            place: "pinned host memory",
            what,
            bytes: bytes as u64,
            source: Cuda(source),
        };
        // SAFETY: every byte is set below, before anything else can see the memory.
        let slice = unsafe { device.context().alloc_pinned_with_flags::<u8>(bytes, flags) };
        let mut slice = slice.map_err(failed)?;
        slice.as_mut_slice().map_err(failed)?.fill(0);
        let copied = device.context().new_event(None).map_err(failed)?;
        Ok(Self { slice, copied, device: device.info().to_string() })
    }

    /// Bytes that it holds.
    pub fn len(&self) -> usize {
        self.slice.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes.
    ///
    /// # Errors
    /// Its last copy failed, or is under way still, which is a bug of whoever asks.
    pub fn bytes(&self) -> Result<&[u8], GpuError> {
        self.settle()?;
        self.slice.as_slice().map_err(|source| self.failed(source))
    }

    /// Its bytes, to be written.
    ///
    /// # Errors
    /// Its last copy failed, or is under way still, which is a bug of whoever asks.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8], GpuError> {
        self.settle()?;
        let device = &self.device;
        self.slice.as_mut_slice().map_err(|source| failed(device, source))
    }

    fn settle(&self) -> Result<(), GpuError> {
        match is_done(&self.copied).map_err(|source| self.failed(source))? {
            true => Ok(()),
            false => Err(GpuError::Busy { device: self.device.clone() }),
        }
    }

    fn failed(&self, source: DriverError) -> GpuError {
        failed(&self.device, source)
    }

    /// A part of it as values, to be copied to the device.
    ///
    /// # Panics
    /// The part is not aligned, or beyond the end.
    pub(super) fn part<T: Pod>(&self, bytes: Range<usize>) -> Result<Part<'_, T>, DriverError> {
        let values = bytemuck::cast_slice(&self.slice.as_slice()?[bytes]);
        Ok(Part { values, copied: &self.copied })
    }

    /// A part of it as values, to be copied into.
    ///
    /// # Panics
    /// The part is not aligned, or beyond the end.
    pub(super) fn part_mut<T: Pod>(
        &mut self,
        bytes: Range<usize>,
    ) -> Result<PartMut<'_, T>, DriverError> {
        let values = bytemuck::cast_slice_mut(&mut self.slice.as_mut_slice()?[bytes]);
        Ok(PartMut { values, copied: &self.copied })
    }
}

fn failed(device: &str, source: DriverError) -> GpuError {
    let (device, operation) = (device.to_owned(), "copy through pinned memory");
    GpuError::Call { device, operation, source: Cuda(source) }
}

/// Asks an event whether the work before it is done.
pub(super) fn is_done(event: &CudaEvent) -> Result<bool, DriverError> {
    // An event can be asked only while its context is the thread's.
    event.context().bind_to_thread()?;
    event.try_is_complete()
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Only a job that ends early has copies under way here; they must not outlive the memory.
        self.copied.context().record_err(self.copied.synchronize());
    }
}

/// A part of pinned memory that a copy reads.
pub(super) struct Part<'a, T> {
    values: &'a [T],
    copied: &'a CudaEvent,
}

/// A part of pinned memory that a copy writes.
pub(super) struct PartMut<'a, T> {
    values: &'a mut [T],
    copied: &'a CudaEvent,
}

fn ordered<'a>(copied: &'a CudaEvent, stream: &'a CudaStream) -> SyncOnDrop<'a> {
    // A copy waits for the one before, so that the last one's event stands for all.
    stream.context().record_err(stream.wait(copied));
    SyncOnDrop::Record(Some((copied, stream)))
}

impl<T> HostSlice<T> for Part<'_, T> {
    fn len(&self) -> usize {
        self.values.len()
    }

    unsafe fn stream_synced_slice<'a>(
        &'a self,
        stream: &'a CudaStream,
    ) -> (&'a [T], SyncOnDrop<'a>) {
        (self.values, ordered(self.copied, stream))
    }

    unsafe fn stream_synced_mut_slice<'a>(
        &'a mut self,
        _: &'a CudaStream,
    ) -> (&'a mut [T], SyncOnDrop<'a>) {
        unreachable!("a part that is read is not written")
    }
}

impl<T> HostSlice<T> for PartMut<'_, T> {
    fn len(&self) -> usize {
        self.values.len()
    }

    unsafe fn stream_synced_slice<'a>(
        &'a self,
        stream: &'a CudaStream,
    ) -> (&'a [T], SyncOnDrop<'a>) {
        (self.values, ordered(self.copied, stream))
    }

    unsafe fn stream_synced_mut_slice<'a>(
        &'a mut self,
        stream: &'a CudaStream,
    ) -> (&'a mut [T], SyncOnDrop<'a>) {
        (self.values, ordered(self.copied, stream))
    }
}

/// Pinned buffers of one size that are taken in turns.
#[derive(Debug)]
pub struct PinnedPool {
    free: Vec<Pinned>,
    buffers: usize,
    buffer_bytes: usize,
}

impl PinnedPool {
    /// Makes `buffers` buffers of `buffer_bytes` each.
    ///
    /// # Errors
    /// There is not so much memory to pin.
    pub fn new(
        device: &Device,
        way: Way,
        buffers: usize,
        buffer_bytes: usize,
    ) -> Result<Self, GpuError> {
        let free = (0..buffers).map(|_| Pinned::new(device, way, buffer_bytes));
        Ok(Self { free: free.collect::<Result<_, _>>()?, buffers, buffer_bytes })
    }

    /// Takes a buffer; none while all are taken.
    pub fn take(&mut self) -> Option<Pinned> {
        self.free.pop()
    }

    /// Gives a buffer back whose last copy is done.
    pub fn give(&mut self, buffer: Pinned) {
        self.free.push(buffer);
    }

    /// Bytes of one buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Host memory of all buffers, in bytes.
    pub fn host_bytes(&self) -> usize {
        self.buffers * self.buffer_bytes
    }
}
