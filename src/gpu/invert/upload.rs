//! How do texts get to a CUDA device? Some threads take parts of them in turn, each into one of its two pinned buffers while the
//! other one is copied, on a stream of its own: nobody waits for anybody else before all is there.

use super::cuda::{Buffer, wait};
use super::machine::{DeviceMemory, Uploader};
use crate::crew::Crew;
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::query::slab::Slab;
use cudarc::driver::CudaStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that bring texts, and bytes of each of their buffers: beside workers that parse on all cores, one copies 2.8 GB/s, a twentieth of what a
/// device takes. Both buffers stay in the caches of its core.
const SENDERS: usize = 8;
const SENT_BYTES: usize = 1 << 20;

/// A buffer that is filled while the other one is copied.
struct Sender {
    buffers: [Buffer; 2],
    next: usize,
    stream: Arc<CudaStream>,
}

impl Sender {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let stream = device.context().new_stream();
        let stream = stream.map_err(|e| device.call("make a stream", e))?;
        let buffer = || Buffer::new(device, SENT_BYTES);
        Ok(Self { buffers: [buffer()?, buffer()?], next: 0, stream })
    }

    /// Fills a buffer, of which so many bytes go to a place of the device, and enqueues their copy.
    ///
    /// # Safety
    /// There are so many bytes at that place, and they stay until the copy is done.
    unsafe fn send(
        &mut self,
        device: &Device,
        (to, bytes): (u64, usize),
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), GpuError> {
        let buffer = &mut self.buffers[self.next];
        wait(device, &buffer.copied)?;
        // SAFETY: its last copy is done.
        fill(unsafe { &mut buffer.staging.bytes_mut()[..bytes] });
        let call = |e| device.call("copy texts to the device", e);
        device.context().bind_to_thread().map_err(call)?;
        // SAFETY: the caller answers for the place; the buffer is filled again when the copy is done, and waits for the device
        // when it is dropped.
        unsafe { buffer.staging.copy_up(0..bytes, to, &self.stream) }
            .and_then(|()| buffer.copied.record(&self.stream))
            .map_err(call)?;
        self.next = 1 - self.next;
        Ok(())
    }

    /// Waits until all copies are done.
    fn finish(&self, device: &Device) -> Result<(), GpuError> {
        self.buffers.iter().try_for_each(|buffer| wait(device, &buffer.copied))
    }
}

/// Brings texts with several threads.
pub(super) struct CudaUploader {
    senders: Vec<Sender>,
    crew: Crew,
    device: Arc<Device>,
}

impl CudaUploader {
    pub(super) fn new(device: Arc<Device>) -> Result<Self, GpuError> {
        let senders = (0..SENDERS).map(|_| Sender::new(&device)).collect::<Result<_, _>>()?;
        Ok(Self { senders, crew: Crew::new("sender"), device })
    }

    /// Copies parts to a text, one behind the other; no copy is under way when this returns.
    fn send(&mut self, text: &Slab, parts: &[&[u8]], bytes: u64) -> Result<(), GpuError> {
        let mut end = 0;
        let ends = parts.iter().map(|part| {
            end += part.len() as u64;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let (device, next) = (&*self.device, AtomicUsize::new(0));
        let send = |sender: &mut Sender| {
            loop {
                let at = (next.fetch_add(1, Ordering::Relaxed) * SENT_BYTES) as u64;
                if at >= bytes {
                    return sender.finish(device);
                }
                let here = (bytes - at).min(SENT_BYTES as u64);
                let to = (text.part(at, here), here as usize);
                // SAFETY: the part of the text has so many bytes, and the text is borrowed until no copy is under way.
                unsafe { sender.send(device, to, |buffer| gather((parts, &ends), at, buffer)) }?;
            }
        };
        let send = &send;
        let senders = self.senders.iter_mut().map(|sender| move || send(sender));
        let sent: Result<(), GpuError> = self.crew.all(senders.collect()).into_iter().collect();
        if sent.is_err() {
            self.synchronize();
        }
        sent
    }

    /// Waits for all copies, whatever came of them.
    fn synchronize(&self) {
        for Sender { stream, .. } in &self.senders {
            stream.context().record_err(stream.synchronize());
        }
    }
}

/// Fills a buffer with what stands from `at` on in parts, one behind the other, which end where `ends` says.
fn gather((parts, ends): (&[&[u8]], &[u64]), at: u64, mut to: &mut [u8]) {
    let mut part = ends.partition_point(|&end| end <= at);
    let mut from = (at - part.checked_sub(1).map_or(0, |before| ends[before])) as usize;
    while !to.is_empty() {
        let bytes = &parts[part][from..];
        let (here, rest) = to.split_at_mut(bytes.len().min(to.len()));
        here.copy_from_slice(&bytes[..here.len()]);
        (to, part, from) = (rest, part + 1, 0);
    }
}

impl Uploader for CudaUploader {
    fn upload(
        &mut self,
        parts: &[&[u8]],
        old: Option<DeviceMemory>,
    ) -> Result<DeviceMemory, GpuError> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let old = old.and_then(|old| old.downcast::<Slab>().ok());
        let text = match old.filter(|old| old.bytes() >= bytes) {
            Some(old) => old,
            None => Box::new(Slab::new(&self.device, "texts", bytes + bytes / 4)?),
        };
        self.send(&text, parts, bytes)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_what_stands_in_the_parts() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        for cuts in [&[][..], &[0, 0, 10, 10, 999], &[300, 301, 700]] {
            let ends: Vec<usize> = cuts.iter().copied().chain([bytes.len()]).collect();
            let (mut start, mut parts) = (0, Vec::new());
            for &end in &ends {
                parts.push(&bytes[start..end]);
                start = end;
            }
            let ends: Vec<u64> = ends.into_iter().map(|end| end as u64).collect();
            for len in [1, 7, 300, 1000] {
                for at in (0..bytes.len()).step_by(len) {
                    let end = bytes.len().min(at + len);
                    let mut buffer = vec![0xa5; end - at];
                    gather((&parts, &ends), at as u64, &mut buffer);
                    assert_eq!(buffer, bytes[at..end]);
                }
            }
        }
        gather((&[], &[]), 0, &mut []);
    }
}
