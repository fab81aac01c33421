//! Which host memory do copies go through?
//!
//! Only a copy from or to pinned memory runs beside everything else. Pinning is slow, so it is made
//! once; who takes several in turns knows by a [`Ticket`](super::events::Ticket) when the last copy
//! of each is done.

use super::device::Device;
use super::error::GpuError;
use crate::crew::lock;
use cudarc::driver::sys::CU_MEMHOSTALLOC_DEVICEMAP;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A thread writes so many bytes at a time.
const PIECE_BYTES: usize = 1 << 20;

/// So many are copied at a time, and fewer at the end.
const COPY_BYTES: usize = 4 << 20;

/// Some neighbouring bytes that one thread writes: where each part of them goes.
struct Piece<'a> {
    begin: usize,
    end: usize,
    writes: Vec<(&'a mut [u8], &'a [u8])>,
}

/// Cuts parts, which go to places that rise, into pieces of at most so many bytes.
fn pieces<'a>(
    mut room: &'a mut [u8],
    parts: &[(usize, &'a [u8])],
    piece_bytes: usize,
) -> Vec<Piece<'a>> {
    let (mut at, mut pieces) = (0, Vec::<Piece<'a>>::new());
    for &(place, mut bytes) in parts {
        room.split_off_mut(..place - at).expect("a part has room");
        at = place;
        while !bytes.is_empty() {
            if pieces.last().is_none_or(|piece| at - piece.begin >= piece_bytes) {
                pieces.push(Piece { begin: at, end: at, writes: Vec::new() });
            }
            let piece = pieces.last_mut().expect("there is one");
            let len = bytes.len().min(piece.begin + piece_bytes - at);
            let to = room.split_off_mut(..len).expect("a part has room");
            piece.writes.push((to, bytes.split_off(..len).expect("it has so many")));
            at += len;
            piece.end = at;
        }
    }
    pieces
}

/// Memory of the host that the device copies from and to beside everything else, or that kernels
/// work on.
pub(crate) struct Pinned {
    context: Arc<CudaContext>,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: it owns its memory, like a box.
unsafe impl Send for Pinned {}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Pinned {
    pub(crate) fn new(device: &Device, what: &'static str, bytes: usize) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound; the memory is freed once, below.
            unsafe { result::malloc_host(bytes, CU_MEMHOSTALLOC_DEVICEMAP) }
        });
        let refused = |e| device.no_memory("pinned host memory", (what, bytes as u64), e);
        let at = taken.map_err(refused)?;
        // SAFETY: the memory has so many bytes, and nobody else knows it.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, bytes) };
        Ok(Self { context, at, bytes })
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

    /// Enqueues a copy of some of its bytes.
    ///
    /// # Safety
    /// `to` is a place on the device with so many bytes, and both stay until the copy is done.
    pub(crate) unsafe fn copy_up(
        &self,
        bytes: Range<usize>,
        to: u64,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller answers for it.
        unsafe { result::memcpy_htod_async(to, &self.bytes()[bytes], stream.cu_stream()) }
    }

    /// Writes parts, each to its place, by so many threads, and enqueues their copies as they get
    /// there: all bytes up to the end of the last part are copied, whatever stood between parts.
    /// Places rise, and parts do not overlap.
    ///
    /// # Safety
    /// As [`copy_up`](Self::copy_up), and no copy of the bytes is under way.
    ///
    /// # Panics
    /// If a part has no room, or places do not rise.
    pub(crate) unsafe fn write_up(
        &mut self,
        parts: &[(usize, &[u8])],
        to: u64,
        stream: &CudaStream,
        threads: usize,
    ) -> Result<(), DriverError> {
        let at = self.at;
        // SAFETY: the caller answers for it.
        let pieces = pieces(unsafe { self.bytes_mut() }, parts, PIECE_BYTES);
        let ends: Vec<usize> = pieces.iter().map(|piece| piece.end).collect();
        let threads = threads.min(pieces.len());
        let written: Vec<AtomicBool> = ends.iter().map(|_| AtomicBool::new(false)).collect();
        let pieces = Mutex::new(pieces.into_iter().enumerate());
        let write_next = || -> bool {
            let next = lock(&pieces).next();
            let Some((number, piece)) = next else { return false };
            piece.writes.into_iter().for_each(|(room, bytes)| room.copy_from_slice(bytes));
            written[number].store(true, Ordering::Release);
            true
        };
        let (mut copied, mut number) = (0, 0);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| while write_next() {});
            }
            while number < ends.len() {
                if !write_next() {
                    std::thread::yield_now();
                }
                while number < ends.len() && written[number].load(Ordering::Acquire) {
                    number += 1;
                }
                let end = number.checked_sub(1).map_or(0, |last| ends[last]);
                if end > copied && (number == ends.len() || end - copied >= COPY_BYTES) {
                    // SAFETY: these pieces are written, so nobody writes there any more, and the
                    // copy only reads.
                    let bytes = unsafe {
                        std::slice::from_raw_parts(at.cast::<u8>().add(copied), end - copied)
                    };
                    // SAFETY: the caller answers for it.
                    unsafe {
                        result::memcpy_htod_async(to + copied as u64, bytes, stream.cu_stream())
                    }?;
                    copied = end;
                }
            }
            Ok(())
        })
    }

    /// Enqueues a copy to its bytes from `at` on.
    ///
    /// # Safety
    /// As [`copy_up`](Self::copy_up).
    pub(crate) unsafe fn copy_down(
        &mut self,
        from: u64,
        at: usize,
        len: usize,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller answers for it.
        unsafe {
            let to = &mut self.bytes_mut()[at..at + len];
            result::memcpy_dtoh_async(to, from, stream.cu_stream())
        }
    }

    /// Where kernels find it.
    pub(crate) fn address(&self) -> u64 {
        // Devices and the host share one space of addresses, in which pinned memory has one for
        // all.
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
    fn pieces_write_each_part_to_its_place() {
        let bytes: Vec<u8> = (0..=200).collect();
        let parts: [(usize, &[u8]); 5] = [
            (0, &bytes[..7]),
            (8, &[]),
            (8, &bytes[10..60]),
            (60, &bytes[60..61]),
            (90, &bytes[..15]),
        ];
        let mut expected = vec![255; 110];
        for (place, part) in parts {
            expected[place..place + part.len()].copy_from_slice(part);
        }
        for piece_bytes in [1, 3, 8, 16, 1000] {
            let mut room = vec![255; 110];
            let (mut end, pieces) = (0, pieces(&mut room, &parts, piece_bytes));
            // Backwards, as threads might.
            for piece in pieces
                .into_iter()
                .inspect(|piece| {
                    assert!(piece.begin >= end && piece.end - piece.begin <= piece_bytes);
                    end = piece.end;
                })
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                piece.writes.into_iter().for_each(|(room, bytes)| room.copy_from_slice(bytes));
            }
            assert_eq!((room == expected, end), (true, 105), "{piece_bytes}");
        }
        assert!(pieces(&mut [], &[], 16).is_empty());
    }
}
