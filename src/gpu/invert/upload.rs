//! Uploads texts to a CUDA device from pinned memory of the host, while another thread drives it.

use super::machine::{DeviceMemory, Uploader};
use crate::buffers::Pin;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::slab::Slab;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use std::ffi::c_void;
use std::sync::Arc;

/// Memory of somebody else that is pinned.
struct PinnedText {
    context: Arc<CudaContext>,
    at: usize,
}

impl PinnedText {
    /// # Safety
    /// As [`Uploader::pin`] says.
    unsafe fn new(context: &Arc<CudaContext>, memory: *const [u8]) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        let at = memory.cast::<u8>().expose_provenance();
        let all = sys::CU_MEMHOSTREGISTER_PORTABLE;
        // SAFETY: the context is bound; the caller answers for the memory, which devices only read.
        unsafe { sys::cuMemHostRegister_v2(at as *mut c_void, memory.len(), all) }.result()?;
        Ok(Self { context: context.clone(), at })
    }
}

impl Drop for PinnedText {
    fn drop(&mut self) {
        // SAFETY: the context is bound; the memory's owner retains it until this is dropped.
        let unpin = || unsafe { sys::cuMemHostUnregister(self.at as *mut c_void) }.result();
        self.context.record_err(self.context.bind_to_thread().and_then(|()| unpin()));
    }
}

/// On a stream of its own.
pub(super) struct CudaUploader {
    stream: Arc<CudaStream>,
    /// The system has refused to pin memory, and is not asked again.
    refused: bool,
    device: Arc<Device>,
}

impl CudaUploader {
    pub(super) fn new(device: Arc<Device>) -> Result<Self, GpuError> {
        Ok(Self { stream: device.new_stream(None)?, refused: false, device })
    }

    /// Enqueues copies of parts to a text, end to end.
    ///
    /// # Safety
    /// The text has this many bytes, and it and the parts stay until the copies are done.
    unsafe fn send(&self, text: &Slab, parts: &[&[u8]]) -> Result<(), DriverError> {
        self.device.context().bind_to_thread()?;
        let mut at = 0;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let to = text.part(at, part.len() as u64);
            // SAFETY: the caller answers for both.
            unsafe { result::memcpy_htod_async(to, part, self.stream.cu_stream()) }?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

impl Uploader for CudaUploader {
    unsafe fn pin(&mut self, memory: *const [u8]) -> Option<Pin> {
        if self.refused {
            return None;
        }
        // SAFETY: the caller answers for the memory.
        let pinned = unsafe { PinnedText::new(self.device.context(), memory) };
        self.refused = pinned.is_err();
        pinned.ok().map(|pinned| Box::new(pinned) as _)
    }

    fn upload(
        &mut self,
        parts: &[&[u8]],
        old: Option<DeviceMemory>,
    ) -> Result<DeviceMemory, GpuError> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let old = old.and_then(|old| old.downcast::<Arc<Slab>>().ok());
        let text = match old.filter(|old| old.bytes() >= bytes) {
            Some(old) => old,
            None => Box::new(Arc::new(Slab::new(&self.device, "texts", bytes + bytes / 4)?)),
        };
        // SAFETY: the text is as long as all parts; all live until this returns, behind the copies.
        let sent = unsafe { self.send(&text, parts) };
        let sent = sent.map_err(|e| self.device.call("copy texts to the device", e));
        let sent = sent.and_then(|()| self.device.ticket(&self.stream, GpuWork::Upload(bytes)));
        let sent = sent.and_then(|ticket| ticket.wait());
        if sent.is_err() {
            self.stream.context().record_err(self.stream.synchronize());
        }
        sent.map(|()| text as _)
    }
}
