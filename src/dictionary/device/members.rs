//! What a form adds to the sketch of its piece: one member, and more if it is long, hashes of its
//! key or of its bytes.

use crate::dictionary::strings::hash::hash;
use crate::order::SKETCH_UNIT_BYTES;
use crate::text::analysis::MAX_TERM_BYTES;
use crate::text::scan::{TokenKey, key_of};

/// Mixes a key: multiply and fold, so that both halves reach the upper bits.
#[inline]
fn mix(key: TokenKey) -> u64 {
    let product = u128::from(key[0] ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(key[1].rotate_left(23) ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as u64 ^ product as u64
}

/// Makes every bit of a hash depend on all of the mixed key, as a [`Sketch`](crate::order::Sketch)
/// needs it (the finalizer of MurmurHash3, Appleby 2011).
fn scatter(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The hash of a token that has a key, its only member of the [`Sketch`](crate::order::Sketch).
#[inline]
pub(crate) fn hash_of_key(key: TokenKey) -> u64 {
    scatter(mix(key))
}

/// Calls `f` with the hash of each started unit of a form of `bytes` bytes.
#[inline]
pub(crate) fn for_each_unit(hash: u64, bytes: usize, mut f: impl FnMut(u64)) {
    f(hash);
    // No term is longer, however long its form.
    for more in 1..=bytes.min(MAX_TERM_BYTES) / SKETCH_UNIT_BYTES {
        f(hash.wrapping_mul(2 * more as u64 + 1).rotate_left(17));
    }
}

/// The hash of a lower-cased token, and its bytes, or 0 where there are less than a unit.
pub(crate) fn hash_of_token(token: &str) -> (u64, usize) {
    match key_of(token.as_bytes()) {
        // A key is shorter than a unit.
        Some(key) => (hash_of_key(key), 0),
        None => (hash(token.as_bytes()), token.len()),
    }
}

/// Calls `f` with the hash of each member that a lower-cased token, which has a term, adds to the
/// [`Sketch`](crate::order::Sketch) of its piece: what a [memo](crate::dictionary::memo) adds.
pub(crate) fn for_each_member(token: &str, f: impl FnMut(u64)) {
    let (hash, bytes) = hash_of_token(token);
    for_each_unit(hash, bytes, f);
}
