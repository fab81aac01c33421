//! Which host memory do copies go through?
//!
//! Only a copy from or to pinned memory runs beside everything else. Pinning is slow, so buffers
//! are made once and taken in turns. Those for uploads are write-combined: fast to write and to
//! copy, very slow to read. Those for downloads are ordinary memory. A buffer knows its last copy,
//! and gives its bytes to nobody before that is done.

use super::device::{Device, Ticket};
use super::error::{Cuda, GpuError, GpuWork};
use super::events::is_done;
use bytemuck::Pod;
use cudarc::driver::{
    CudaEvent, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DriverError, PinnedHostSlice,
    result, sys,
};
use std::ops::Range;

/// Which way a buffer's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Upload,
    Download,
}

#[derive(Debug)]
pub struct Pinned {
    /// Its own event is never recorded, so that asking for its bytes does not wait.
    slice: PinnedHostSlice<u8>,
    /// Recorded behind every copy.
    copied: CudaEvent,
    device: String,
    ordinal: usize,
}

impl Pinned {
    pub(crate) fn new(device: &Device, way: Way, bytes: usize) -> Result<Self, GpuError> {
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
        let (device, ordinal) = (device.info().to_string(), device.info().ordinal);
        Ok(Self { slice, copied, device, ordinal })
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
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8], GpuError> {
        self.settle()?;
        let (device, ordinal) = (&self.device, self.ordinal);
        self.slice.as_mut_slice().map_err(|source| failed(device, ordinal, source))
    }

    fn settle(&self) -> Result<(), GpuError> {
        match is_done(&self.copied).map_err(|source| self.failed(source))? {
            true => Ok(()),
            false => Err(GpuError::Busy { device: self.device.clone() }),
        }
    }

    fn failed(&self, source: DriverError) -> GpuError {
        failed(&self.device, self.ordinal, source)
    }

    /// Enqueues a copy of a part of it by `copy`, behind its last one.
    ///
    /// # Panics
    /// The part is beyond the end.
    fn copy_from(
        &self,
        bytes: Range<usize>,
        stream: &CudaStream,
        copy: impl FnOnce(&[u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let part = &self.slice.as_slice()?[bytes];
        stream.wait(&self.copied)?;
        copy(part)?;
        self.mark(stream)
    }

    /// Enqueues a copy into a part of it by `copy`, behind its last one.
    ///
    /// # Panics
    /// The part is beyond the end.
    fn copy_into(
        &mut self,
        bytes: Range<usize>,
        stream: &CudaStream,
        copy: impl FnOnce(&mut [u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        // A copy waits for the one before, so that the last one's event stands for all.
        stream.wait(&self.copied)?;
        copy(&mut self.slice.as_mut_slice()?[bytes])?;
        self.mark(stream)
    }

    /// Records that a copy is under way. Without the record nobody would know: then it is waited
    /// for.
    fn mark(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.copied.record(stream).or_else(|error| stream.synchronize().and(Err(error)))
    }
}

impl Device {
    /// Enqueues a copy of `bytes` of `from` to the beginning of `to`.
    ///
    /// # Panics
    /// The part is longer than one of them, or no whole number of values.
    pub(crate) fn copy_up<T: DeviceRepr + Pod>(
        &self,
        stream: &CudaStream,
        from: &Pinned,
        bytes: Range<usize>,
        to: &mut impl DevicePtrMut<T>,
    ) -> Result<Ticket, GpuError> {
        let len = bytes.len();
        assert!(
            len <= to.num_bytes() && len.is_multiple_of(size_of::<T>()),
            "a copy that does not fit"
        );
        let (place, _guard) = to.device_ptr_mut(stream);
        let copied = self.context().bind_to_thread().and_then(|()| {
            from.copy_from(bytes, stream, |part| {
                // SAFETY: the target has room for the part, and pinned memory waits for its copies.
                unsafe { result::memcpy_htod_async(place, part, stream.cu_stream()) }
            })
        });
        copied.map_err(|e| self.call("copy to the device", e))?;
        self.ticket(stream, GpuWork::Upload(len as u64))
    }

    /// Enqueues a copy of all of `from` to where `at` is in `to`, in bytes. The ticket's time is
    /// when `to` can be read.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If `to` is too short.
    pub fn copy_down<T: DeviceRepr + Pod>(
        &self,
        stream: &CudaStream,
        from: &impl DevicePtr<T>,
        to: &mut Pinned,
        at: usize,
    ) -> Result<Ticket, GpuError> {
        let bytes = from.num_bytes();
        let (place, _guard) = from.device_ptr(stream);
        let copied = self.context().bind_to_thread().and_then(|()| {
            to.copy_into(at..at + bytes, stream, |part| {
                // SAFETY: both have so many bytes, and pinned memory waits for its copies.
                unsafe { result::memcpy_dtoh_async(part, place, stream.cu_stream()) }
            })
        });
        copied.map_err(|e| self.call("copy from the device", e))?;
        self.ticket(stream, GpuWork::Download(bytes as u64))
    }
}

fn failed(device: &str, ordinal: usize, source: DriverError) -> GpuError {
    super::lost::note(ordinal, source);
    let (device, operation) = (device.to_owned(), "copy through pinned memory");
    GpuError::Call { device, operation, source: Cuda(source) }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Only a job that ends early has copies under way here; they must not outlive the memory.
        self.copied.context().record_err(self.copied.synchronize());
    }
}

/// Pinned buffers of one size that are taken in turns.
#[derive(Debug)]
pub struct PinnedPool {
    free: Vec<Pinned>,
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
        Ok(Self { free: free.collect::<Result<_, _>>()?, buffer_bytes })
    }

    /// Takes a buffer; none while all are taken.
    pub fn take(&mut self) -> Option<Pinned> {
        self.free.pop()
    }

    /// Gives a buffer back whose last copy is done.
    pub(crate) fn give(&mut self, buffer: Pinned) {
        self.free.push(buffer);
    }

    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }
}
