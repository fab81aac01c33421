//! Work that several threads share.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many threads as there are cores.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What `work` makes of 0, 1, 2 and so on, in this order. Each of this many threads begins with a
/// state of its own and takes the next number, until there is nothing to make of one.
pub(crate) fn in_turn<S, T: Send>(
    threads: usize,
    begin: impl Fn() -> anyhow::Result<S> + Sync,
    work: impl Fn(&mut S, usize) -> anyhow::Result<Option<T>> + Sync,
) -> anyhow::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let thread = || -> anyhow::Result<Vec<(usize, T)>> {
        let mut state = begin()?;
        let mut made = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = work(&mut state, number)? else { return Ok(made) };
            made.push((number, one));
        }
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.append(&mut part?);
    }
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, one)| one).collect())
}
