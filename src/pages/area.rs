//! Memory that begins at a huge page and grows without copies: the system maps and moves its pages.

use super::{HUGE, LARGE};
use std::alloc::{Layout, handle_alloc_error};
use std::num::NonZero;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};

/// A multiple of every page size of the system but that of huge pages.
const PAGE: usize = 64 << 10;

/// Bytes, zero at first; pages are allocated when they are written, as huge ones if the system has
/// them. A buffer of the allocator has small pages at both ends.
pub(crate) struct Area {
    /// At a huge page; without bytes, dangling but aligned for any kind of element.
    start: NonNull<u8>,
    /// A multiple of [`PAGE`].
    bytes: usize,
}

// SAFETY: it owns its bytes, as a vector does.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Default for Area {
    fn default() -> Self {
        let nowhere = NonZero::new(PAGE).expect("a page has bytes");
        Self { start: NonNull::without_provenance(nowhere), bytes: 0 }
    }
}

impl Area {
    /// An area of at least `bytes`, the first `small` of them on small pages to save memory.
    pub(crate) fn new(bytes: usize, small: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE);
        let layout =
            Layout::array::<u8>(bytes + HUGE).expect("an area is no larger than an object may be");
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the system chooses a place where nothing is.
        let map = unsafe { libc::mmap(null_mut(), layout.size(), access, flags, -1, 0) };
        let map = NonNull::new(map).filter(|map| map.as_ptr() != libc::MAP_FAILED);
        let map = map.unwrap_or_else(|| handle_alloc_error(layout)).cast::<u8>();
        let before = map.align_offset(HUGE);
        // SAFETY: the area and both margins are the map, which nobody else knows.
        let start = unsafe {
            let start = map.add(before);
            give_back(map, before);
            give_back(start.add(bytes), HUGE - before);
            start
        };
        #[cfg(target_os = "linux")]
        if small < bytes {
            // SAFETY: these pages are the area's, and it is advice.
            unsafe {
                libc::madvise(start.add(small).as_ptr().cast(), bytes - small, libc::MADV_HUGEPAGE)
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = small;
        Self { start, bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same bytes in an area of at least `bytes`, which are more, and as many as a huge page
    /// has: what it takes is what is written, and whenever pages are given back, all cores that run
    /// threads of the process stop for a moment.
    pub(crate) fn grown(self, bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(HUGE);
        let mut larger = Self::new(bytes, if bytes < LARGE { bytes } else { 0 });
        // Small pages would stay small if they were moved.
        if self.bytes < LARGE {
            larger[..self.bytes].copy_from_slice(&self);
        } else {
            self.move_to(&mut larger);
        }
        larger
    }

    #[cfg(target_os = "linux")]
    fn move_to(self, larger: &mut Self) {
        let from = self.start.as_ptr().cast();
        let to = larger.start.as_ptr().cast::<libc::c_void>();
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the pages of both are theirs. Nothing refers to those of `self`, which ends here,
        // and `larger` has at least as many, which are replaced as a whole.
        let moved = unsafe { libc::mremap(from, self.bytes, self.bytes, how, to) };
        if moved == libc::MAP_FAILED {
            // The pages to replace may be gone.
            handle_alloc_error(Layout::array::<u8>(larger.bytes).expect("there is such an area"));
        }
        std::mem::forget(self);
    }

    #[cfg(not(target_os = "linux"))]
    fn move_to(self, larger: &mut Self) {
        larger[..self.bytes].copy_from_slice(&self);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the area ends here.
        unsafe { give_back(self.start, self.bytes) };
    }
}

/// # Safety
/// The pages were mapped, and nobody uses them any more.
unsafe fn give_back(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as the caller vouches.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

impl Deref for Area {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: this many bytes are the area's, and the system has set them to zero.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Area {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}
