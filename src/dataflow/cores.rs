//! Binds workers to cores.
//!
//! A worker that is woken begins on the core of the one that woke it, and a scheduler that sees two
//! busy threads there moves one of them only after milliseconds: longer than a query takes. A
//! worker with a core of its own begins at once. Where cores are left over the scheduler finds them
//! by itself, and workers of other processes are not shut out.

/// Binds the calling thread to the `worker`-th core that the process may use, if these are as many
/// as the `workers`; else, or where the system has no such call, does nothing.
pub(super) fn bind(worker: usize, workers: usize) {
    #[cfg(target_os = "linux")]
    if let Some(core) = core_of(&allowed(), worker, workers) {
        let mut one = rustix::thread::CpuSet::new();
        one.set(core);
        // Where it is refused the scheduler goes on as before.
        _ = rustix::thread::sched_setaffinity(None, &one);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (worker, workers);
}

/// Ascending.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

#[cfg(target_os = "linux")]
fn core_of(allowed: &[usize], worker: usize, workers: usize) -> Option<usize> {
    allowed.get(worker).copied().filter(|_| workers == allowed.len())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn each_worker_gets_a_core_if_there_are_as_many() {
        let cores = |workers: usize| -> Vec<Option<usize>> {
            (0..workers).map(|worker| core_of(&[1, 4, 6], worker, workers)).collect()
        };
        assert_eq!(cores(3), [Some(1), Some(4), Some(6)]);
        assert_eq!(cores(2), [None; 2]);
        assert_eq!(cores(4), [None; 4]);
        assert_eq!(core_of(&[], 0, 1), None);
    }

    #[test]
    fn a_bound_thread_has_one_core() {
        let before = allowed();
        let cores = before.len();
        let bound = std::thread::spawn(move || {
            bind(cores - 1, cores);
            allowed()
        });
        assert_eq!(bound.join().unwrap(), before[cores - 1..]);
        assert_eq!(allowed(), before);
    }
}
