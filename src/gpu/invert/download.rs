//! Takes lists from a CUDA device to the host, by several threads with a pinned buffer each.

use super::machine::{Downloader, MOST_TAKEN, NextParcel};
use crate::crew::{Awaited, Crew};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::pinned::Pinned;
use crate::gpu::floor::slab::Slab;
use cudarc::driver::CudaStream;
use std::ops::Range;
use std::sync::Arc;

/// One thread that puts lists in a file through a map, page by page, does 1.3 GB/s, and 16 do 21.
const TAKERS: usize = 16;

#[derive(Debug)]
struct Taker {
    buffer: Pinned,
    stream: Arc<CudaStream>,
}

impl Taker {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let buffer = Pinned::new(device, "lists", MOST_TAKEN as usize)?;
        Ok(Self { buffer, stream: device.new_stream(None)? })
    }

    /// Copies bytes of the device to the buffer.
    ///
    /// # Safety
    /// The memory has this many from `from` on, and stays until this returns.
    unsafe fn bring(
        &mut self,
        device: &Device,
        from: u64,
        bytes: usize,
    ) -> Result<&[u8], GpuError> {
        let Self { buffer, stream } = self;
        // SAFETY: the caller answers for the memory, and the buffer is read after the copy.
        unsafe { buffer.copy_down(from, 0, bytes, stream) }?;
        device.ticket(stream, GpuWork::Download(bytes as u64))?.wait()?;
        // SAFETY: the copy is done.
        Ok(unsafe { &buffer.bytes()[..bytes] })
    }
}

pub(super) struct CudaDownloader {
    takers: Vec<Taker>,
    crew: Crew,
    device: Arc<Device>,
}

impl CudaDownloader {
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, GpuError> {
        let takers: Result<_, _> = (0..TAKERS).map(|_| Taker::new(device)).collect();
        Ok(Self { takers: takers?, crew: Crew::new("taker"), device: device.clone() })
    }
}

impl Downloader for CudaDownloader {
    fn download(&mut self, next: NextParcel<'_>) -> Result<(), GpuError> {
        let device = &*self.device;
        let take_parcels = |taker: &mut Taker| {
            while let Some(parcel) = next() {
                let from = parcel.memory().downcast_ref::<Arc<Slab>>();
                let from = from.expect("a CUDA device has lent it");
                let Range { start, end } = parcel.bytes();
                // SAFETY: the memory has these bytes, and the parcel has it until they are taken.
                let bytes = unsafe {
                    taker.bring(device, from.part(start, end - start), (end - start) as usize)
                }?;
                parcel.take(bytes);
            }
            Ok(())
        };
        let take_parcels = &take_parcels;
        let takers = self.takers.iter_mut().map(|taker| move || take_parcels(taker));
        self.crew.all(takers.collect()).into_iter().collect()
    }
}

/// A downloader that a thread makes while the first batches are inverted: pinning its buffers later
/// would hold up a run, and before the first batch other buffers are pinned.
#[derive(Debug, Default)]
pub(super) struct Making {
    has_begun: bool,
    thread: Option<Awaited<Result<CudaDownloader, GpuError>>>,
}

impl Making {
    pub(super) fn begin(&mut self, device: &Arc<Device>) -> Result<(), GpuError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let of = device.clone();
        let thread = Awaited::begin("pinning", move || CudaDownloader::new(&of));
        let refused = |source| GpuError::Thread { device: device.info().to_string(), source };
        self.thread = Some(thread.map_err(refused)?);
        Ok(())
    }

    pub(super) fn made(&mut self) -> Option<Result<CudaDownloader, GpuError>> {
        self.thread.take().map(Awaited::made)
    }
}
