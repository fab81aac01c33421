//! How is freed memory given back?

/// Lets the allocator take large buffers from the system and give each back when it is freed.
///
/// glibc raises its threshold for such buffers to the size of the largest one freed so far, and from
/// then on keeps them in an arena for each thread, which no other thread can use: with four workers
/// a build held twice its budget. A megabyte is more than a piece, so that the buffers that come and
/// go stay in the arenas.
pub(crate) fn give_back_large_buffers() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: nothing else sets the allocator's parameters, and no worker thread runs yet.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
        }
    }
}
