//! Huge pages of 2 MiB for large tables: each takes one entry of the TLB where small ones take 512.
//! A look-up at a random place of a table of 32 MiB is a fifth faster.

#![allow(unsafe_code)]

mod area;
mod grown;

pub(crate) use area::Area;
pub(crate) use grown::Grown;

use bytemuck::Zeroable;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

/// The least bytes of a buffer on huge pages.
const LARGE: usize = 4 << 20;

/// On huge pages if the buffer is large and the system has them.
pub(crate) fn with_capacity<T>(count: usize) -> Vec<T> {
    let buffer = Vec::with_capacity(count);
    advise(&buffer);
    buffer
}

/// Zeros; no page is touched here.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Vec<T> {
    let layout = Layout::array::<T>(count).expect("a size in bytes");
    if layout.size() == 0 {
        return std::iter::repeat_with(T::zeroed).take(count).collect();
    }
    // SAFETY: the layout is that of a vector of `count` elements and not empty; zeros are valid.
    let buffer = unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Vec::from_raw_parts(start, count, count)
    };
    advise(&buffer);
    buffer
}

/// Makes room for `more` elements; a buffer that grows at least doubles.
#[inline]
pub(crate) fn reserve<T: Copy>(buffer: &mut Vec<T>, more: usize) {
    if buffer.capacity() - buffer.len() < more {
        grow(buffer, more);
    }
}

#[inline]
pub(crate) fn push<T: Copy>(buffer: &mut Vec<T>, element: T) {
    reserve(buffer, 1);
    buffer.push(element);
}

#[cold]
fn grow<T: Copy>(buffer: &mut Vec<T>, more: usize) {
    let least = buffer.len() + more;
    let count = least.max(buffer.capacity() * 2).max(64);
    if Layout::array::<T>(count).is_ok_and(|layout| layout.size() < LARGE) {
        buffer.reserve(count - buffer.len());
        return;
    }
    let mut larger = with_capacity(count);
    larger.extend_from_slice(buffer);
    *buffer = larger;
}

/// Gives back what the allocator keeps of memory that was freed, if it is glibc's: a tenth of a
/// second for 1.5 GB, which the end of a thread, or of the process, takes otherwise.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's locks and leaves memory in use as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

pub(crate) const HUGE: usize = 2 << 20;

/// Asks for huge pages under a buffer; the system may have none, which is no error.
fn advise<T>(buffer: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = buffer.as_ptr() as usize;
        let end = start + buffer.capacity() * size_of::<T>();
        let first = start.next_multiple_of(PAGE);
        let last = end / PAGE * PAGE;
        if end - start >= LARGE {
            // SAFETY: the pages lie wholly inside the buffer, and the advice changes no byte.
            unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = buffer;
}
