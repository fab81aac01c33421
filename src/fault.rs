//! Injects failures for tests. Builds with debug assertions read `MILLRACE_FAULT` once:
//!
//! | value | effect |
//! | --- | --- |
//! | `count` | prints the number of storage operations to stderr when the process ends its job |
//! | `crash@N` | the process dies, as by `kill -9`, just before storage operation N (from 0) |
//! | `fail@N` | storage operation N fails with *no space left on device* |
//! | `eio@N` | storage operation N fails with *input/output error* |
//! | `short@N` | storage operation N, a write, writes half of its bytes and then fails so |
//! | `panic:NAME` | the operator NAME panics at its first work |
//! | `error:NAME` | the operator NAME fails at its first work |
//! | `trap@N` | a GPU ends with a fault when a launch comes to its trie collection N (from 0) |
//!
//! `MILLRACE_RUN_LIMIT=BYTES` replaces the cost at which a run of a build ends, so that little
//! input gives many runs; `MILLRACE_PARCEL_BYTES=BYTES` the size of the buffers in which lists go
//! to a device, so that short lists are too long for them.
//!
//! Release builds contain none of it.

use std::io;

/// What a storage operation has to do instead of succeeding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Injected {
    Nothing,
    /// Write half, then fail.
    Short,
}

/// To be called before every write, sync, rename and removal of an index file.
#[inline]
pub(crate) fn storage() -> io::Result<Injected> {
    if cfg!(debug_assertions) { enabled::storage() } else { Ok(Injected::Nothing) }
}

pub(crate) fn no_space() -> io::Error {
    // ENOSPC
    io::Error::from_raw_os_error(28)
}

/// To be called by the operator `name` when it does work. Panics when a panic is injected.
#[inline]
pub(crate) fn operator(name: &str) -> io::Result<()> {
    if cfg!(debug_assertions) { enabled::operator(name) } else { Ok(()) }
}

/// The cost in bytes at which a run ends: `limit`, or that of a test.
pub(crate) fn run_limit(limit: u64) -> u64 {
    enabled::number("MILLRACE_RUN_LIMIT").unwrap_or(limit)
}

/// Bytes of a buffer in which lists go to a device: `bytes`, or those of a test.
pub(crate) fn parcel_bytes(bytes: usize) -> usize {
    enabled::number("MILLRACE_PARCEL_BYTES").map_or(bytes, |asked| asked as usize)
}

/// The trie collection of a launch at which a GPU is to end with a fault.
pub(crate) fn trap_at() -> Option<u32> {
    if cfg!(debug_assertions) { enabled::trap_at() } else { None }
}

/// Prints the number of operations for `count`.
pub fn report() {
    if cfg!(debug_assertions) {
        enabled::report();
    }
}

mod enabled {
    use super::Injected;
    use std::io;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    enum FaultPlan {
        None,
        Count,
        Crash(u64),
        Fail(u64),
        Io(u64),
        Short(u64),
        Panic(String),
        Error(String),
        Trap(u32),
    }

    static OPERATIONS: AtomicU64 = AtomicU64::new(0);
    static PLAN: LazyLock<FaultPlan> = LazyLock::new(|| {
        let Ok(text) = std::env::var("MILLRACE_FAULT") else { return FaultPlan::None };
        let number = |s: &str| s.parse().expect("MILLRACE_FAULT: a number after @");
        match text.split_once(['@', ':']) {
            None if text == "count" => FaultPlan::Count,
            Some(("crash", n)) => FaultPlan::Crash(number(n)),
            Some(("fail", n)) => FaultPlan::Fail(number(n)),
            Some(("eio", n)) => FaultPlan::Io(number(n)),
            Some(("short", n)) => FaultPlan::Short(number(n)),
            Some(("trap", n)) => {
                FaultPlan::Trap(n.parse().expect("MILLRACE_FAULT: a number after @"))
            }
            Some(("panic", name)) => FaultPlan::Panic(name.to_string()),
            Some(("error", name)) => FaultPlan::Error(name.to_string()),
            _ => panic!("MILLRACE_FAULT: `{text}` is not a fault"),
        }
    });

    pub(super) fn storage() -> io::Result<Injected> {
        let now = OPERATIONS.fetch_add(1, Ordering::SeqCst);
        match *PLAN {
            FaultPlan::Crash(n) if n == now => std::process::abort(),
            FaultPlan::Fail(n) if n == now => Err(super::no_space()),
            // EIO
            FaultPlan::Io(n) if n == now => Err(io::Error::from_raw_os_error(5)),
            FaultPlan::Short(n) if n == now => Ok(Injected::Short),
            _ => Ok(Injected::Nothing),
        }
    }

    pub(super) fn operator(name: &str) -> io::Result<()> {
        match &*PLAN {
            FaultPlan::Panic(n) if n == name => panic!("injected panic in {name}"),
            FaultPlan::Error(n) if n == name => {
                Err(io::Error::other(format!("injected error in {name}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn trap_at() -> Option<u32> {
        match *PLAN {
            FaultPlan::Trap(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn number(name: &str) -> Option<u64> {
        if !cfg!(debug_assertions) {
            return None;
        }
        let text = std::env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name}: a number of bytes")))
    }

    pub(super) fn report() {
        if matches!(*PLAN, FaultPlan::Count) {
            use std::io::Write as _;
            let operations = OPERATIONS.load(Ordering::SeqCst);
            _ = writeln!(io::stderr(), "storage operations: {operations}");
        }
    }
}
