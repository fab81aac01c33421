//! Where in a page stand the bytes that mean something in markup? The places of a few KiB at a time
//! are found with vector instructions and then stepped through: text between tags, and tags, are
//! short, and a search for each of them costs more than what it passes over.

use crate::cpu::{Level, level};

/// Bytes in which places are found at a time.
const WINDOW: usize = 2048;

/// What stands behind the last place.
const NO_PLACE: u16 = u16::MAX;

/// The bytes that are found, by the low half of them, in which they differ; the others are bytes
/// with another low half.
const FOUND: [u8; 16] = {
    let set = b"<&>=\"'";
    let mut table = [0; 16];
    table[0] = 1;
    let mut i = 0;
    while i < set.len() {
        assert!(set[i] & 15 != 0 && table[(set[i] & 15) as usize] == 0);
        table[(set[i] & 15) as usize] = set[i];
        i += 1;
    }
    table
};

/// Steps through a page.
pub(super) struct Marks<'a> {
    page: &'a [u8],
    level: Level,
    /// Where the part begins whose places are known, and where it ends.
    base: usize,
    end: usize,
    places: [u16; WINDOW + 64],
    next: usize,
}

impl<'a> Marks<'a> {
    /// Steps through `page` from its beginning.
    pub(super) fn new(page: &'a [u8]) -> Self {
        Self::with_level(page, level())
    }

    fn with_level(page: &'a [u8], level: Level) -> Self {
        Self { page, level, base: 0, end: 0, places: [NO_PLACE; WINDOW + 64], next: 0 }
    }

    /// Steps to the first `<` or `&` that is at or behind `from` and was not passed, or to the
    /// page's end.
    #[inline(always)]
    pub(super) fn text_end(&mut self, from: usize) -> usize {
        self.step(from, |byte| matches!(byte, b'<' | b'&'))
    }

    /// Steps past the first `>`, `=`, `"` or `'` that is at or behind `from` and was not passed;
    /// tells where it is, or the page's end.
    #[inline(always)]
    pub(super) fn in_tag(&mut self, from: usize) -> usize {
        let place = self.step(from, |byte| !matches!(byte, b'<' | b'&'));
        // At the page's end there is none to step past.
        self.next += usize::from(place < self.page.len());
        place
    }

    #[inline(always)]
    fn step(&mut self, from: usize, is_sought: impl Fn(u8) -> bool) -> usize {
        loop {
            let place = self.places[self.next];
            if place == NO_PLACE {
                let start = from.max(self.end);
                if start >= self.page.len() {
                    return self.page.len();
                }
                self.fill(start);
                continue;
            }
            let place = self.base + usize::from(place);
            if place >= from && is_sought(self.page[place]) {
                return place;
            }
            self.next += 1;
        }
    }

    /// Finds the places of the part in which `from` is.
    #[inline(never)]
    fn fill(&mut self, from: usize) {
        self.base = from - from % 64;
        self.end = self.base + WINDOW;
        self.next = 0;
        let part = &self.page[self.base..self.page.len().min(self.base + WINDOW)];
        let found = match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor.
            Level::Avx512 => unsafe { find_avx512(part, &mut self.places) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor.
            Level::Avx2 => unsafe { find_avx2(part, &mut self.places) },
            Level::Portable => find(part, &mut self.places, portable),
        };
        self.places[found] = NO_PLACE;
    }
}

/// The bits of a step, by what compilers make vector instructions of where there are any.
fn portable(step: &[u8; 64]) -> u64 {
    let mut is_found = [0; 64];
    for (is_found, &byte) in is_found.iter_mut().zip(step) {
        // Without branches.
        let is = |found: u8| u8::from(byte == found);
        *is_found = is(b'<') | is(b'&') | is(b'>') | is(b'=') | is(b'"') | is(b'\'');
    }
    // The lowest bits of eight bytes come together in the highest byte of the product.
    let (eights, _) = is_found.as_chunks::<8>();
    eights.iter().rev().fold(0, |word, eight| {
        word << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// Writes the places in `part` to `places`, 64 bytes at a time, of which `marks_of` gives the bits;
/// tells how many.
#[inline(always)]
fn find(
    part: &[u8],
    places: &mut [u16; WINDOW + 64],
    marks_of: impl Fn(&[u8; 64]) -> u64,
) -> usize {
    let mut found = 0;
    let mut push = |at: usize, mut marks: u64| {
        let all = found + marks.count_ones() as usize;
        // Some at a time without a look at how many there are.
        while marks != 0 {
            let to: &mut [u16] = &mut places[found..found + 4];
            for place in to {
                *place = (at + marks.trailing_zeros() as usize) as u16;
                marks &= marks.wrapping_sub(1);
            }
            found += 4;
        }
        found = all;
    };
    let (steps, rest) = part.as_chunks::<64>();
    for (i, step) in steps.iter().enumerate() {
        push(i * 64, marks_of(step));
    }
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    push(steps.len() * 64, marks_of(&last));
    found
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn find_avx2(part: &[u8], places: &mut [u16; WINDOW + 64]) -> usize {
    use std::arch::x86_64::*;
    // SAFETY: the table has 16 bytes.
    let table = unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(FOUND.as_ptr().cast())) };
    find(part, places, |step| {
        // SAFETY: the first 32 of the step's 64 bytes, and the last 32.
        let halves = unsafe {
            [
                _mm256_loadu_si256(step.as_ptr().cast()),
                _mm256_loadu_si256(step.as_ptr().add(32).cast()),
            ]
        };
        // A byte from 0x80 on gets 0, which it is not.
        let [low, high] = halves
            .map(|x| _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, x), x)));
        u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn find_avx512(part: &[u8], places: &mut [u16; WINDOW + 64]) -> usize {
    use crate::cpu::IOTA;
    use std::arch::x86_64::*;
    // SAFETY: the arrays have 16 and 64 bytes.
    let (table, iota) = unsafe {
        (
            _mm512_broadcast_i32x4(_mm_loadu_si128(FOUND.as_ptr().cast())),
            _mm512_loadu_si512(IOTA.as_ptr().cast()),
        )
    };
    let (mut at, mut found) = (0, 0);
    while at < part.len() {
        let left = part.len() - at;
        let inside = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
        // SAFETY: the mask leaves out the bytes behind the part, which are not read.
        let x = unsafe { _mm512_maskz_loadu_epi8(inside, part.as_ptr().add(at).cast()) };
        let marks = _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, x), x);
        let here = _mm512_maskz_compress_epi8(marks, iota);
        let base = _mm512_set1_epi16(at as i16);
        let n = marks.count_ones() as usize;
        let to = &mut places[found..found + 64];
        // SAFETY: there is room for 64 places from `found` on.
        unsafe {
            let wide = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(here));
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_add_epi16(wide, base));
            if n > 32 {
                let wide = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(here));
                _mm512_storeu_si512(to.as_mut_ptr().add(32).cast(), _mm512_add_epi16(wide, base));
            }
        }
        found += n;
        at += 64;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps through `page`: each step goes so many bytes on first, and is one in a tag or not.
    fn check(page: &[u8], steps: &[(usize, bool)]) {
        for level in Level::all() {
            let mut marks = Marks::with_level(page, level);
            let mut at = 0;
            for &(skipped, in_tag) in steps {
                let from = (at + skipped).min(page.len());
                let set = if in_tag { &b">=\"'"[..] } else { b"<&" };
                let found = page[from..].iter().position(|byte| set.contains(byte));
                let expected = found.map_or(page.len(), |n| from + n);
                let place = if in_tag { marks.in_tag(from) } else { marks.text_end(from) };
                assert_eq!(place, expected, "{level:?}");
                at = (place + usize::from(in_tag)).min(page.len());
            }
        }
    }

    #[test]
    fn every_byte_is_marked_or_not() {
        let page: Vec<u8> = (0..=u8::MAX).collect();
        for from in 0..=page.len() {
            for in_tag in [false, true] {
                check(&page, &[(from, in_tag), (0, in_tag), (1, !in_tag)]);
            }
        }
        check(b"", &[(0, true), (0, false)]);
    }

    proptest! {
        #[test]
        fn oracle_marks_are_where_the_bytes_are(
            pieces in proptest::collection::vec((any::<u8>(), 0usize..9), 0..2000),
            gap in 0usize..5000,
            steps in proptest::collection::vec((prop_oneof![9 => 0usize..30, 1 => 0usize..6000], any::<bool>()), 0..300),
        ) {
            let set = b"<&>=\"'";
            let mut page = Vec::new();
            for (i, (byte, blanks)) in pieces.iter().enumerate() {
                page.push(*set.get(usize::from(*byte % 16)).unwrap_or(byte));
                page.extend(std::iter::repeat_n(b' ', if i == 1000 { gap } else { *blanks }));
            }
            check(&page, &steps);
        }
    }
}
