//! How do bytes go from the host to a CUDA device? Through two pinned buffers by turns, which
//! several threads fill.

use crate::crew::Crew;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{Cuda, GpuError, GpuWork};
use crate::gpu::floor::events::is_done;
use crate::gpu::floor::slab::{Slab, Staging};
use crate::gpu::lane::event;
use cudarc::driver::{CudaEvent, CudaStream, DriverError};
use std::hint::spin_loop;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes of each pinned buffer.
pub(super) const STAGED_BYTES: usize = 4 << 20;

/// Bytes that a thread copies at a time, and threads that copy: one copies a third of what a device
/// takes in the same time.
pub(super) const COPY_BYTES: usize = 512 << 10;
const COPIERS: usize = 4;

/// How long a thread looks again and again whether something is done, before it sleeps between two
/// looks: most of what it waits for takes less than going to sleep and waking up. Longer, and
/// workers miss the core that it takes.
const LOOKING: Duration = Duration::from_micros(100);
const PAUSE: Duration = Duration::from_micros(20);

/// A pinned buffer and the end of its last copy.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) staging: Staging,
    pub(super) copied: CudaEvent,
}

impl Buffer {
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Self, GpuError> {
        let staging = Staging::new(device, "texts and lists", bytes)?;
        Ok(Self { staging, copied: event(device)? })
    }
}

/// Two pinned buffers: one is filled while what was copied from the other is on its way.
#[derive(Debug)]
pub(super) struct Buffers {
    buffers: [Buffer; 2],
    /// Which is filled, and how far.
    current: usize,
    filled: usize,
    pub(super) crew: Crew,
}

pub(super) fn failed(device: &Device, source: DriverError) -> GpuError {
    let (device, work) = (device.info().to_string(), GpuWork::Download(0));
    GpuError::Work { device, work, source: Cuda(source) }
}

/// Waits until what stands before an event is done.
pub(super) fn wait(device: &Device, event: &CudaEvent) -> Result<(), GpuError> {
    let began = Instant::now();
    while !is_done(event).map_err(|e| failed(device, e))? {
        match began.elapsed() < LOOKING {
            true => spin_loop(),
            false => sleep(PAUSE),
        }
    }
    Ok(())
}

impl Buffers {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let buffer = || Buffer::new(device, STAGED_BYTES);
        let (buffers, crew) = ([buffer()?, buffer()?], Crew::new("copier"));
        Ok(Self { buffers, current: 0, filled: 0, crew })
    }

    /// Enqueues copies of parts to the device, one behind the other.
    ///
    /// # Safety
    /// The memory stays until the copies are done.
    pub(super) unsafe fn send(
        &mut self,
        (to, at): (&Slab, u64),
        parts: &[&[u8]],
        device: &Device,
        stream: &CudaStream,
    ) -> Result<(), GpuError> {
        let (mut at, mut parts, mut rest) = (at, parts.iter(), &[][..]);
        loop {
            if self.filled == STAGED_BYTES {
                (self.current, self.filled) = (1 - self.current, 0);
                // Its last copy is the last one that was enqueued from it.
                wait(device, &self.buffers[self.current].copied)?;
            }
            let (buffer, first) = (&mut self.buffers[self.current], self.filled);
            // SAFETY: what is copied from this buffer lies before that.
            let mut room = unsafe { &mut buffer.staging.bytes_mut()[first..] };
            let mut copies = Vec::new();
            while !room.is_empty() {
                if rest.is_empty() {
                    let Some(part) = parts.next() else { break };
                    rest = *part;
                    continue;
                }
                let len = rest.len().min(room.len()).min(COPY_BYTES);
                let (to, behind) = room.split_at_mut(len);
                let (from, more) = rest.split_at(len);
                (room, rest) = (behind, more);
                copies.push((to, from));
                self.filled += len;
            }
            let filled = self.filled - first;
            if filled == 0 {
                return Ok(());
            }
            copy_all(&mut self.crew, copies);
            let to = to.part(at, filled as u64);
            let call = |e| device.call("copy texts to the device", e);
            device.context().bind_to_thread().map_err(call)?;
            // SAFETY: the array has so many bytes from there on, and the caller answers for it;
            // this part of the buffer is not filled again before, and it waits for the device when
            // it is dropped.
            let copied = unsafe { buffer.staging.copy_up(first..self.filled, to, stream) };
            copied.and_then(|()| buffer.copied.record(stream)).map_err(call)?;
            at += filled as u64;
        }
    }
}

/// Copies the beginning of each second slice to the first of its pair, as long as that is; several
/// threads share large work.
pub(super) fn copy_all(crew: &mut Crew, mut copies: Vec<(&mut [u8], &[u8])>) {
    let copy = |copies: &mut [(&mut [u8], &[u8])]| {
        for (to, from) in copies {
            to.copy_from_slice(&from[..to.len()]);
        }
    };
    if copies.len() < 2 * COPIERS {
        return copy(&mut copies);
    }
    let each = copies.len().div_ceil(COPIERS);
    crew.all(copies.chunks_mut(each).map(|copies| move || copy(copies)).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole_however_many_share_them() {
        let mut crew = Crew::new("test");
        for (bytes, each) in [(0, 1), (5, 2), (1000, 7), (1000, 100), (4096, 1)] {
            let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0xa5; bytes];
            copy_all(&mut crew, to.chunks_mut(each).zip(from.chunks(each)).collect());
            assert_eq!(to, from);
        }
    }
}
