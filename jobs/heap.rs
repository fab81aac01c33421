//! How is freed memory given back?

/// Lets the allocator of a job with a budget of `memory` bytes take large buffers from the system
/// and give each back when it is freed.
///
/// glibc raises its threshold for such buffers to the size of the largest one freed so far, and from
/// then on keeps them in an arena for each thread, which no other thread can use: with four workers
/// a build held twice its budget. A megabyte is more than a piece, so that the buffers that come and
/// go stay in the arenas; a large budget can afford more, and fewer page faults.
pub(crate) fn give_back_large_buffers(memory: u64) {
    #[cfg(target_env = "gnu")]
    {
        let large = (memory / 256).clamp(1 << 20, 32 << 20) as libc::c_int;
        // SAFETY: nothing else sets the allocator's parameters.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, large);
        }
    }
}
