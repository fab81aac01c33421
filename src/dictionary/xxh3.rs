//! XXH3 of 64 bits without a seed, of what is long, with the vector units of the processor that it runs on: `xxhash_rust` takes those that the
//! whole program is compiled for, which is a quarter of what most processors have.
//!
//! What it computes: eight sums of 64 bits take a stripe of 64 bytes at a time. A word of the stripe is added to the neighbouring sum,
//! and, keyed with eight bytes of the secret, its halves are multiplied and added to its own. The next stripe takes the secret from eight
//! bytes further on. Behind 16 stripes, a block, the sums are scrambled. A stripe is taken so if more bytes follow it; the last 64 bytes are
//! taken at the end, with a part of the secret of their own. At the end the sums are folded into one. Up to 240 bytes are hashed in other ways, which are
//! left to `xxhash_rust`.

use crate::cpu::{Level, level};
use xxhash_rust::const_xxh3::const_custom_default_secret;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes that are taken at a time.
const STRIPE: usize = 64;
/// Stripes of a block.
const BLOCK: usize = 16;
/// The most bytes that are hashed in other ways.
const MOST_SHORT: usize = 240;
/// Bytes that are kept until more follow.
const HELD: usize = 4 * STRIPE;

static SECRET: [u8; 192] = const_custom_default_secret(0);
/// Where the secret begins for the last stripe, and for folding; scrambling takes its last 64 bytes.
const LAST: usize = 121;
const FOLD: usize = 11;
const SCRAMBLE: usize = 128;

const PRIME_32_1: u64 = 0x9e37_79b1;
const PRIME_64_1: u64 = 0x9e37_79b1_85eb_ca87;

type Sums = [u64; 8];
type Bytes = [u8; STRIPE];

const FIRST_SUMS: Sums = [
    0xc2b2_ae3d,
    PRIME_64_1,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x85eb_ca77,
    0x27d4_eb2f_1656_67c5,
    PRIME_32_1,
];

/// The hash of some bytes.
#[inline]
pub(crate) fn xxh3(bytes: &[u8]) -> u64 {
    if bytes.len() <= MOST_SHORT {
        return xxh3_64(bytes);
    }
    let mut sums = FIRST_SUMS;
    let (_, last) = bytes.split_last_chunk().expect("there are more than 240 bytes");
    let many = (bytes.len() - 1) / STRIPE * STRIPE;
    take(&mut sums, &bytes[..many], 0, Some(last));
    fold(&sums, bytes.len() as u64)
}

/// The hash of bytes that come in parts.
#[derive(Clone)]
pub(crate) struct Xxh3 {
    sums: Sums,
    /// Stripes of the block so far.
    stripe: usize,
    bytes: u64,
    /// The last bytes, and before them the stripe that was taken last, if one was.
    last: [u8; STRIPE + HELD],
    held: usize,
}

impl Default for Xxh3 {
    fn default() -> Self {
        Self { sums: FIRST_SUMS, stripe: 0, bytes: 0, last: [0; STRIPE + HELD], held: 0 }
    }
}

impl Xxh3 {
    /// Adds the bytes that follow.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let now = bytes.len().min(HELD - self.held);
        self.hold(&bytes[..now]);
        bytes = &bytes[now..];
        if bytes.is_empty() {
            return;
        }
        self.stripe = take(&mut self.sums, &self.last[STRIPE..], self.stripe, None);
        self.last.copy_within(HELD.., 0);
        self.held = 0;
        let (many, rest) = bytes.split_at((bytes.len() - 1) / STRIPE * STRIPE);
        self.stripe = take(&mut self.sums, many, self.stripe, None);
        if let Some(taken) = many.last_chunk::<STRIPE>() {
            self.last[..STRIPE].copy_from_slice(taken);
        }
        self.hold(rest);
    }

    fn hold(&mut self, bytes: &[u8]) {
        let from = STRIPE + self.held;
        self.last[from..from + bytes.len()].copy_from_slice(bytes);
        self.held += bytes.len();
    }

    /// The hash of all that came.
    pub(crate) fn digest(&self) -> u64 {
        let (known, held) = (&self.last[..STRIPE + self.held], &self.last[STRIPE..][..self.held]);
        if self.bytes <= MOST_SHORT as u64 {
            return xxh3_64(held);
        }
        let mut sums = self.sums;
        let many = (held.len() - 1) / STRIPE * STRIPE;
        take(&mut sums, &held[..many], self.stripe, known.last_chunk());
        fold(&sums, self.bytes)
    }
}

/// Takes whole stripes, of which the first is the block's with this number, and behind them the last one, if it comes. Returns the number of the next.
#[inline]
fn take(sums: &mut Sums, stripes: &[u8], first: usize, last: Option<&Bytes>) -> usize {
    take_by(level(), sums, stripes, first, last)
}

/// [`take`] by what a level has, which is one of this machine.
#[inline]
fn take_by(
    level: Level,
    sums: &mut Sums,
    stripes: &[u8],
    first: usize,
    last: Option<&Bytes>,
) -> usize {
    match level {
        // SAFETY: the processor has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::take_avx512(sums, stripes, first, last) },
        // SAFETY: the processor has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86::take_avx2(sums, stripes, first, last) },
        Level::Portable => take_portable(sums, stripes, first, last),
    }
}

/// The parts of the secret for the stripes of a block, each on a line of the processor's cache.
static KEYS: Keys = {
    let mut keys = [[0; STRIPE]; BLOCK];
    let mut i = 0;
    while i < BLOCK * STRIPE {
        keys[i / STRIPE][i % STRIPE] = SECRET[8 * (i / STRIPE) + i % STRIPE];
        i += 1;
    }
    Keys(keys)
};

#[repr(align(64))]
struct Keys([Bytes; BLOCK]);

/// Calls `add` with each of the stripes and its key, and `scramble` at the end of each block; returns the number of the next stripe.
#[inline(always)]
fn each_stripe<T>(
    sums: &mut T,
    stripes: &[u8],
    first: usize,
    add: impl Fn(&mut T, &Bytes, &Bytes),
    scramble: impl Fn(&mut T),
) -> usize {
    let (mut stripes, mut first) = (stripes.as_chunks::<STRIPE>().0, first % BLOCK);
    loop {
        let keys = &KEYS.0[first..];
        for (bytes, key) in stripes.iter().zip(keys) {
            add(sums, bytes, key);
        }
        let Some(rest) = stripes.get(keys.len()..) else { return first + stripes.len() };
        scramble(sums);
        (stripes, first) = (rest, 0);
    }
}

/// The part of the secret from a place on.
#[inline(always)]
fn secret(at: usize) -> &'static Bytes {
    SECRET[at..].first_chunk().expect("the secret goes on for a stripe")
}

fn take_portable(sums: &mut Sums, stripes: &[u8], first: usize, last: Option<&Bytes>) -> usize {
    let words = |bytes: &Bytes| -> Sums {
        std::array::from_fn(|i| u64::from_le_bytes(*bytes[8 * i..].first_chunk().expect("a word")))
    };
    let add = |sums: &mut Sums, bytes: &Bytes, key: &Bytes| {
        let (data, key) = (words(bytes), words(key));
        for i in 0..8 {
            let keyed = data[i] ^ key[i];
            let product = (keyed & 0xffff_ffff) * (keyed >> 32);
            sums[i] = sums[i].wrapping_add(product).wrapping_add(data[i ^ 1]);
        }
    };
    let scramble = |sums: &mut Sums| {
        for (sum, key) in sums.iter_mut().zip(words(secret(SCRAMBLE))) {
            *sum = (*sum ^ *sum >> 47 ^ key).wrapping_mul(PRIME_32_1);
        }
    };
    let next = each_stripe(sums, stripes, first, add, scramble);
    if let Some(bytes) = last {
        add(sums, bytes, secret(LAST));
    }
    next
}

fn fold(sums: &Sums, bytes: u64) -> u64 {
    let key = |at: usize| u64::from_le_bytes(*SECRET[at..].first_chunk().expect("a word"));
    let mut hash = bytes.wrapping_mul(PRIME_64_1);
    for i in 0..4 {
        let at = FOLD + 16 * i;
        let product = u128::from(sums[2 * i] ^ key(at)) * u128::from(sums[2 * i + 1] ^ key(at + 8));
        hash = hash.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(0x1656_6791_9e37_79f9);
    hash ^ hash >> 32
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Bytes, LAST, PRIME_32_1, SCRAMBLE, Sums, each_stripe, secret};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load_512(bytes: &Bytes) -> __m512i {
        // SAFETY: a stripe is 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add_512(sum: &mut __m512i, bytes: &Bytes, key: &Bytes) {
        let data = load_512(bytes);
        let keyed = _mm512_xor_si512(data, load_512(key));
        let product = _mm512_mul_epu32(keyed, _mm512_srli_epi64::<32>(keyed));
        let turned = _mm512_shuffle_epi32::<0b_01_00_11_10>(data);
        *sum = _mm512_add_epi64(*sum, _mm512_add_epi64(product, turned));
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn scramble_512(sum: &mut __m512i) {
        let mixed = _mm512_xor_si512(*sum, _mm512_srli_epi64::<47>(*sum));
        let keyed = _mm512_xor_si512(mixed, load_512(secret(SCRAMBLE)));
        let prime = _mm512_set1_epi64(PRIME_32_1 as i64);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(keyed), prime);
        *sum = _mm512_add_epi64(_mm512_mul_epu32(keyed, prime), _mm512_slli_epi64::<32>(high));
    }

    /// `take` with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) fn take_avx512(
        sums: &mut Sums,
        stripes: &[u8],
        first: usize,
        last: Option<&Bytes>,
    ) -> usize {
        // SAFETY: eight words are 64 bytes.
        let mut sum = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
        let next = each_stripe(
            &mut sum,
            stripes,
            first,
            |sum, bytes, key| add_512(sum, bytes, key),
            |sum| scramble_512(sum),
        );
        if let Some(bytes) = last {
            add_512(&mut sum, bytes, secret(LAST));
        }
        // SAFETY: eight words are 64 bytes.
        unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum) };
        next
    }

    type Halves = [__m256i; 2];

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_256(bytes: &Bytes, half: usize) -> __m256i {
        // SAFETY: each half of a stripe is 32 bytes.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>().add(half)) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_256(sums: &mut Halves, bytes: &Bytes, key: &Bytes) {
        for (half, sum) in sums.iter_mut().enumerate() {
            let data = load_256(bytes, half);
            let keyed = _mm256_xor_si256(data, load_256(key, half));
            let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
            let turned = _mm256_shuffle_epi32::<0b_01_00_11_10>(data);
            *sum = _mm256_add_epi64(*sum, _mm256_add_epi64(product, turned));
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn scramble_256(sums: &mut Halves) {
        for (half, sum) in sums.iter_mut().enumerate() {
            let mixed = _mm256_xor_si256(*sum, _mm256_srli_epi64::<47>(*sum));
            let keyed = _mm256_xor_si256(mixed, load_256(secret(SCRAMBLE), half));
            let prime = _mm256_set1_epi64x(PRIME_32_1 as i64);
            let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(keyed), prime);
            *sum = _mm256_add_epi64(_mm256_mul_epu32(keyed, prime), _mm256_slli_epi64::<32>(high));
        }
    }

    /// `take` with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) fn take_avx2(
        sums: &mut Sums,
        stripes: &[u8],
        first: usize,
        last: Option<&Bytes>,
    ) -> usize {
        // SAFETY: the first four words and the last four are 32 bytes each.
        let mut both = [0, 4].map(|at| unsafe { _mm256_loadu_si256(sums.as_ptr().add(at).cast()) });
        let next = each_stripe(
            &mut both,
            stripes,
            first,
            |sums, bytes, key| add_256(sums, bytes, key),
            |sums| scramble_256(sums),
        );
        if let Some(bytes) = last {
            add_256(&mut both, bytes, secret(LAST));
        }
        for (at, sum) in [0, 4].into_iter().zip(both) {
            // SAFETY: the first four words and the last four are 32 bytes each.
            unsafe { _mm256_storeu_si256(sums.as_mut_ptr().add(at).cast(), sum) };
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| ((i * i) >> 5) as u8).collect()
    }

    #[test]
    fn every_way_takes_alike() {
        let bytes = bytes(5000);
        for (first, stripes) in [(0, 0), (0, 15), (0, 16), (7, 9), (15, 1), (3, 70)] {
            for last in [None, bytes.last_chunk()] {
                let stripes = &bytes[..stripes * STRIPE];
                let mut expected = FIRST_SUMS;
                let next = take_portable(&mut expected, stripes, first, last);
                assert_eq!(next, (first + stripes.len() / STRIPE) % BLOCK);
                for level in Level::all() {
                    let mut sums = FIRST_SUMS;
                    let found = take_by(level, &mut sums, stripes, first, last);
                    assert_eq!((sums, found), (expected, next), "{level:?}");
                }
            }
        }
    }

    #[test]
    fn every_length_has_the_hash_of_the_library() {
        let bytes = bytes(3000);
        for length in 0..bytes.len() {
            assert_eq!(xxh3(&bytes[..length]), xxh3_64(&bytes[..length]), "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn law_parts_have_the_hash_of_the_whole(
            parts in prop::collection::vec(prop_oneof![0usize..70, 200usize..300, 900usize..1100], 0..12),
        ) {
            let bytes = bytes(parts.iter().sum());
            let (mut hash, mut at) = (Xxh3::default(), 0);
            for part in parts {
                hash.update(&bytes[at..at + part]);
                at += part;
                prop_assert_eq!(hash.digest(), xxh3_64(&bytes[..at]));
            }
        }
    }
}
