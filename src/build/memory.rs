//! Keeps the resident memory of a process to what its builds have allocated.

#![allow(unsafe_code)]
#![warn(missing_docs)]

/// Lets the allocator of a process whose builds have `memory` bytes take large buffers from the
/// system and give each back when it is freed. It changes the whole process, so a program calls it
/// once, before its threads, if [`BuildOptions::memory`](super::BuildOptions::memory) is to bound
/// the resident memory too. It does nothing where the allocator is not glibc's.
///
/// glibc raises its threshold for such buffers to the largest one freed so far, and from then on
/// keeps them in an arena for each thread: with four workers a build held twice its budget. From
/// 256 MiB on a piece is less than large, so that buffers that come and go stay in the arenas, for
/// fewer page faults; in less memory the holes that those leave took a quarter of it. An arena
/// keeps half of that at its end for what follows.
pub fn give_back_large_buffers(memory: u64) {
    #[cfg(target_env = "gnu")]
    {
        let large = if memory < 256 << 20 { 128 << 10 } else { memory / 256 };
        let large = large.min(32 << 20) as libc::c_int;
        // At least what glibc has by itself.
        let kept = (memory / 512).clamp(128 << 10, 16 << 20) as libc::c_int;
        // SAFETY: `mallopt` takes its lock, and these parameters accept any size.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, large);
            libc::mallopt(libc::M_TRIM_THRESHOLD, large);
            libc::mallopt(libc::M_TOP_PAD, kept);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = memory;
}

/// The greatest resident memory of this process so far, in bytes; 0 where the system does not tell.
pub fn peak_resident() -> u64 {
    status_bytes("VmHWM:")
}

/// The resident memory of this process now, in bytes; 0 where the system does not tell.
pub(crate) fn resident() -> u64 {
    status_bytes("VmRSS:")
}

fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
