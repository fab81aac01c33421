//! Prefetching of memory into the cache.

#![allow(unsafe_code)]

/// Prefetches the cache line in which `what` begins.
#[inline(always)]
pub(crate) fn prefetch<T>(what: &T) {
    prefetch_at(std::slice::from_ref(what), 0);
}

/// Prefetches the cache line in which an element of a slice begins; harmless past its end.
#[inline(always)]
pub(crate) fn prefetch_at<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address reads nothing and has no effect that a program can see.
        unsafe { _mm_prefetch(slice.as_ptr().wrapping_add(index).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Prefetches the first `count` bytes, as far as there are any.
#[inline(always)]
pub(crate) fn prefetch_bytes(bytes: &[u8], count: usize) {
    for line in bytes[..count.min(bytes.len())].chunks(LINE) {
        prefetch(&line[0]);
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
