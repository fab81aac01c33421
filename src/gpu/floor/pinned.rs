//! Pinned host memory, through which copies go.
//!
//! Only a copy from or to pinned memory runs beside everything else. Pinning is slow, so buffers
//! are made once; a [`Ticket`](super::events::Ticket) tells when the last copy of one is done.

use super::device::{Device, refused};
use super::discover::DeviceInfo;
use super::error::GpuError;
use crate::crew::Crew;
use cudarc::driver::sys::CU_MEMHOSTALLOC_DEVICEMAP;
use cudarc::driver::{CudaContext, CudaStream, result};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that a thread writes at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes of a copy to the device; the last may be shorter.
const COPY_BYTES: usize = 4 << 20;

/// Less is copied by one thread.
const LEAST_SHARED: usize = 2 << 20;

/// Cuts parts into pieces, and groups these so that each group has at most `most` bytes, or one
/// piece.
pub(crate) fn groups<'a>(
    parts: &[&'a [u8]],
    piece_bytes: usize,
    most: usize,
) -> Vec<Vec<&'a [u8]>> {
    let mut groups = Vec::<Vec<&[u8]>>::new();
    let mut bytes = 0;
    for piece in parts.iter().flat_map(|part| part.chunks(piece_bytes)) {
        bytes += piece.len();
        match groups.last_mut() {
            Some(group) if bytes <= most => group.push(piece),
            _ => {
                bytes = piece.len();
                groups.push(vec![piece]);
            }
        }
    }
    groups
}

/// Copies each second slice to the first of its pair, which is as long; `threads` share large work.
pub(crate) fn copy_all(crew: &mut Crew, threads: usize, copies: Vec<(&mut [u8], &[u8])>) {
    let copy = |(to, from): (&mut [u8], &[u8])| to.copy_from_slice(from);
    match copies.iter().map(|(to, _)| to.len()).sum::<usize>() < LEAST_SHARED {
        true => copies.into_iter().for_each(copy),
        false => crew.share(threads.saturating_sub(1), copies, copy),
    }
}

/// Memory of the host for copies, or on which kernels work.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<CudaContext>,
    info: DeviceInfo,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: it owns its memory, like a box.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(crate) fn new(device: &Device, what: &'static str, bytes: usize) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound; the memory is freed once, below.
            unsafe { result::malloc_host(bytes, CU_MEMHOSTALLOC_DEVICEMAP) }
        });
        let full = |e| device.no_memory("pinned host memory", what, bytes as u64, e);
        let at = taken.map_err(full)?;
        // SAFETY: the memory has this many bytes, and nobody else knows it.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, bytes) };
        Ok(Self { context, info: device.info().clone(), at, bytes })
    }

    /// # Safety
    /// No copy or kernel that writes to it is under way.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: all bytes were written once, and the caller answers for the device.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }

    /// # Safety
    /// No copy or kernel that reads or writes it is under way.
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.bytes) }
    }

    /// # Safety
    /// `to` is a place on the device with this many bytes, and both stay until the copy is done.
    pub(crate) unsafe fn copy_up(
        &self,
        bytes: Range<usize>,
        to: u64,
        stream: &CudaStream,
    ) -> Result<(), GpuError> {
        let copied = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: the caller answers for it.
            unsafe { result::memcpy_htod_async(to, &self.bytes()[bytes], stream.cu_stream()) }
        });
        copied.map_err(|e| refused(&self.info, "copy to the device", e))
    }

    /// Writes parts end to end from byte `at` on, by `threads` of a crew, and enqueues their copies
    /// as they get there: one thread copies within the host at a fifth of what PCIe brings. Returns
    /// where they end.
    ///
    /// # Safety
    /// As [`copy_up`](Self::copy_up), and no copy of the bytes is under way.
    ///
    /// # Panics
    /// If a part has no room.
    pub(crate) unsafe fn write_up(
        &mut self,
        at: usize,
        parts: &[&[u8]],
        (crew, threads): (&mut Crew, usize),
        to: u64,
        stream: &CudaStream,
    ) -> Result<usize, GpuError> {
        let mut end = at;
        for group in groups(parts, PIECE_BYTES, COPY_BYTES) {
            let begin = end;
            // SAFETY: copies that are under way are of bytes before these.
            let mut room = unsafe { &mut self.bytes_mut()[begin..] };
            let writes = group.into_iter().map(|piece| {
                end += piece.len();
                (room.split_off_mut(..piece.len()).expect("a part has room"), piece)
            });
            copy_all(crew, threads, writes.collect());
            // SAFETY: the caller answers for it.
            unsafe { self.copy_up(begin..end, to + (begin - at) as u64, stream) }?;
        }
        Ok(end)
    }

    /// # Safety
    /// As [`copy_up`](Self::copy_up).
    pub(crate) unsafe fn copy_down(
        &mut self,
        from: u64,
        at: usize,
        len: usize,
        stream: &CudaStream,
    ) -> Result<(), GpuError> {
        if len == 0 {
            return Ok(());
        }
        let copied = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: the caller answers for it.
            unsafe {
                let to = &mut self.bytes_mut()[at..at + len];
                result::memcpy_dtoh_async(to, from, stream.cu_stream())
            }
        });
        copied.map_err(|e| refused(&self.info, "copy from the device", e))
    }

    pub(crate) fn address(&self) -> u64 {
        // Devices and the host share one address space, with one address for pinned memory.
        self.at as u64
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let done = self.context.bind_to_thread().and_then(|()| self.context.synchronize());
        // SAFETY: no kernel runs any more, or the device is lost anyway.
        let freed = unsafe { result::free_host(self.at) };
        self.context.record_err(done.and(freed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_all_bytes_in_their_order() {
        let bytes: Vec<u8> = (0..=200).collect();
        let parts = [&bytes[..7], &[], &bytes[7..60], &bytes[60..61], &bytes[61..]];
        for (piece_bytes, most) in [(1, 4), (3, 3), (8, 30), (16, 64), (30, 8), (1000, 1000)] {
            let groups = groups(&parts, piece_bytes, most);
            for group in &groups {
                assert!(group.iter().all(|piece| (1..=piece_bytes).contains(&piece.len())));
                assert!(group.concat().len() <= most || group.len() == 1);
            }
            // None could have gone with those before.
            let mut both = groups.windows(2).map(|two| two[0].concat().len() + two[1][0].len());
            assert!(both.all(|bytes| bytes > most), "{piece_bytes}, {most}");
            assert_eq!(groups.concat().concat(), bytes);
        }
        assert!(groups(&[], 16, 16).is_empty());
    }

    #[test]
    fn copies_are_whole_however_many_share_them() {
        let mut crew = Crew::new("test");
        for (bytes, each) in [(0, 1), (5, 2), (1000, 7), (LEAST_SHARED, 1000), (3_000_001, 65_536)]
        {
            let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0xa5; bytes];
            copy_all(&mut crew, 3, to.chunks_mut(each).zip(from.chunks(each)).collect());
            assert!(to == from);
        }
    }
}
