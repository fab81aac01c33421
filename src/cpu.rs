//! The vector instructions of this machine, detected once for the fast paths of all modules, and
//! what several of these begin with.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// A greater level includes the smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing beyond the target's baseline.
    Portable,
    /// AVX2 and BMI.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ, VL, VBMI and VBMI2, and multiplication without carry.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The numbers of the bytes of a vector.
#[cfg(target_arch = "x86_64")]
pub(crate) static IOTA: [u8; 64] = {
    let mut iota = [0; 64];
    let mut i = 0;
    while i < 64 {
        iota[i] = i as u8;
        i += 1;
    }
    iota
};

/// One instruction intersects two vectors, on few of the machines that have [`Level::Avx512`].
#[cfg(target_arch = "x86_64")]
pub(crate) static INTERSECTS: LazyLock<bool> =
    LazyLock::new(|| is_x86_feature_detected!("avx512vp2intersect"));

const UNKNOWN: u8 = u8::MAX;

static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);

#[inline]
pub(crate) fn level() -> Level {
    match KNOWN.load(Ordering::Relaxed) {
        #[cfg(target_arch = "x86_64")]
        2 => Level::Avx512,
        #[cfg(target_arch = "x86_64")]
        1 => Level::Avx2,
        0 => Level::Portable,
        _ => find(),
    }
}

#[cold]
fn find() -> Level {
    let level = detect();
    KNOWN.store(level as u8, Ordering::Relaxed);
    level
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("pclmulqdq");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        (false, _) => Level::Portable,
    }
}
