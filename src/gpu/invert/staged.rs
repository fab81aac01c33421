//! Copies to a CUDA device, through two pinned buffers that alternate, filled by several threads.

use super::steps::InvertArray;
use crate::crew::Crew;
use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::events::Ticket;
use crate::gpu::floor::pinned::{Pinned, copy_all};

/// Of each pinned buffer.
pub(super) const STAGED_BYTES: usize = 4 << 20;

/// Bytes that a thread copies at a time, and threads: one copies a third of what a device takes.
pub(super) const COPY_BYTES: usize = 512 << 10;
pub(super) const COPIERS: usize = 4;

/// One is filled while the other is copied.
#[derive(Debug)]
pub(super) struct StagingBuffers {
    /// With the last copy from each.
    buffers: [(Pinned, Option<Ticket>); 2],
    /// Which is filled, and how far.
    current: usize,
    filled: usize,
    pub(super) crew: Crew,
}

impl StagingBuffers {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let buffer = || Ok((Pinned::new(device, "texts", STAGED_BYTES)?, None));
        let buffers = [buffer()?, buffer()?];
        let crew = Crew::new("copier");
        Ok(Self { buffers, current: 0, filled: 0, crew })
    }

    /// Enqueues copies of parts to the device, end to end.
    pub(super) fn send(
        &mut self,
        on: &CudaArrays<InvertArray>,
        to: InvertArray,
        at: u64,
        parts: &[&[u8]],
    ) -> Result<(), GpuError> {
        let to = on.memory.of(to);
        let mut at = at;
        let mut parts = parts.iter();
        let mut rest = &[][..];
        loop {
            if self.filled == STAGED_BYTES {
                self.current = 1 - self.current;
                self.filled = 0;
                // The last copy that was enqueued from it.
                self.buffers[self.current].1.as_ref().map_or(Ok(()), Ticket::wait)?;
            }
            let (buffer, copied) = &mut self.buffers[self.current];
            let first = self.filled;
            // SAFETY: all copies from this buffer are of bytes before that.
            let mut room = unsafe { &mut buffer.bytes_mut()[first..] };
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
                room = behind;
                rest = more;
                copies.push((to, from));
                self.filled += len;
            }
            let filled = self.filled - first;
            if filled == 0 {
                return Ok(());
            }
            copy_all(&mut self.crew, COPIERS, copies);
            let to = to.part(at, filled as u64);
            // SAFETY: the array has so many bytes from there on, and this part of the buffer is not
            // filled again before; both wait for the device when they are dropped.
            unsafe { buffer.copy_up(first..self.filled, to, &on.stream) }?;
            *copied = Some(on.ticket(GpuWork::Upload(filled as u64))?);
            at += filled as u64;
        }
    }
}
